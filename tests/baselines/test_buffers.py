"""Growing storage against plain arrays, over several times its first size."""

import numpy as np
import pytest

from dkrls_cli.baselines.buffers import FIRST_CENTRES, FIRST_ROWS, Centres, Symmetric

RNG = np.random.default_rng(3)


def positive(size: int) -> np.ndarray:
    root = RNG.normal(size=(size, size))
    return np.asarray(root @ root.T + size * np.eye(size))


def symmetric(matrix: np.ndarray) -> Symmetric:
    result = Symmetric()
    for i in range(len(matrix)):
        result.append(matrix[i, :i], matrix[i, i])
    return result


@pytest.mark.parametrize("batch", [1, 7, FIRST_CENTRES, FIRST_CENTRES + 1])
def test_centres_keep_their_order_while_they_grow_and_are_dropped(batch: int) -> None:
    centres, points, weights = Centres(2), np.empty((0, 2)), np.empty(0)
    for _ in range(9):
        new, of_new = RNG.normal(size=(batch, 2)), RNG.normal(size=batch)
        centres.extend(new, of_new)
        points, weights = np.vstack([points, new]), np.append(weights, of_new)
        centres.drop_oldest(batch // 3)
        points, weights = points[batch // 3 :], weights[batch // 3 :]
        assert len(centres) == len(points)
        np.testing.assert_array_equal(centres.points, points.T)
        np.testing.assert_array_equal(centres.weights, weights)


def test_weights_are_a_view() -> None:
    centres = Centres(1)
    centres.extend(np.zeros((3, 1)), 1.0)
    centres.weights[1] += 5.0
    assert centres.weights.tolist() == [1.0, 6.0, 1.0]


@pytest.mark.parametrize("size", [0, 1, FIRST_ROWS, FIRST_ROWS + 1, 3 * FIRST_ROWS])
def test_a_symmetric_matrix_is_the_dense_one(size: int) -> None:
    matrix, v = positive(size), RNG.normal(size=size)
    kept = symmetric(matrix)
    assert kept.size == size
    np.testing.assert_array_equal(kept.dense(), matrix)
    np.testing.assert_array_equal(kept.diagonal(), np.diag(matrix))
    np.testing.assert_allclose(kept.times(v), matrix @ v, rtol=1e-10)
    for place in range(size):
        np.testing.assert_array_equal(kept.column(place), matrix[:, place])
    kept.add_outer(-0.3, v)
    np.testing.assert_allclose(kept.dense(), matrix - 0.3 * np.outer(v, v), rtol=1e-12)


def test_a_row_can_be_replaced() -> None:
    matrix, column = positive(6), RNG.normal(size=6)
    kept = symmetric(matrix)
    kept.put(2, column, 9.0)
    matrix[2], matrix[:, 2], matrix[2, 2] = column, column, 9.0
    np.testing.assert_array_equal(kept.dense(), matrix)
    kept.put(2)
    matrix[2], matrix[:, 2] = 0.0, 0.0
    np.testing.assert_array_equal(kept.dense(), matrix)


def test_clearing_leaves_nothing_behind() -> None:
    kept = symmetric(positive(20))
    kept.clear()
    assert kept.size == 0
    kept.append(corner=2.0)
    kept.append(corner=3.0)
    np.testing.assert_array_equal(kept.dense(), np.diag([2.0, 3.0]))


def test_matrices_are_mixed() -> None:
    one, two = positive(20), positive(20)
    kept = symmetric(one)
    kept.mix(0.7, symmetric(two))
    np.testing.assert_allclose(kept.dense(), 0.7 * one + 0.3 * two, rtol=1e-12)
    kept = symmetric(one)
    kept.mix_identity(0.6)
    np.testing.assert_allclose(kept.dense(), 0.6 * one + 0.4 * np.eye(20), rtol=1e-12)


def test_the_inverse_of_a_growing_matrix() -> None:
    matrix = positive(40)
    inverse = Symmetric()
    for m in range(40):
        v = inverse.times(matrix[m, :m])
        inverse.extend_inverse(v, matrix[m, m] - matrix[m, :m] @ v)
        expected = np.linalg.inv(matrix[: m + 1, : m + 1])
        np.testing.assert_allclose(inverse.dense(), expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("place", [0, 3, 7])
def test_the_inverse_of_a_matrix_with_one_row_replaced(place: int) -> None:
    whole = positive(9)
    old, b, corner = whole[:8, :8], whole[8, :8], whole[8, 8]
    inverse = symmetric(np.linalg.inv(old))
    v = inverse.times(b)
    inverse.replace_in_inverse(place, v, corner - b @ v)
    order = np.arange(8)
    order[place] = 8
    expected = np.linalg.inv(whole[np.ix_(order, order)])
    np.testing.assert_allclose(inverse.dense(), expected, rtol=1e-8, atol=1e-12)
