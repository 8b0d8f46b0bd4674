"""The kernel and its sums in blocks, against plain formulas."""

import numpy as np
import pytest
from baselines.known_samples import gaussian as plain_gaussian
from scipy.spatial.distance import cdist

from dkrls_cli.baselines import gaussian as module
from dkrls_cli.baselines.gaussian import apply_gaussian, expand, gaussian, squared_distances

RNG = np.random.default_rng(2)


@pytest.mark.parametrize("features", [1, 2, 5])
def test_distances_are_those_of_scipy(features: int) -> None:
    points, centres = RNG.normal(size=(6, features)), RNG.normal(size=(9, features))
    expected = cdist(points, centres, "sqeuclidean")
    np.testing.assert_allclose(squared_distances(points, centres.T), expected, rtol=1e-12)


def test_equal_points_have_distance_zero_far_from_the_origin() -> None:
    points = 1e8 + RNG.normal(size=(5, 3))
    assert (np.diag(squared_distances(points, points.T)) == 0).all()


def test_the_kernel_is_computed_in_place() -> None:
    squares = np.array([[0.0, 8.0]])
    result = apply_gaussian(squares, 2.0)
    assert result is squares
    np.testing.assert_allclose(result, [[1.0, np.exp(-1.0)]], rtol=1e-15)


def test_the_kernel_has_one_length_scale() -> None:
    points, centres = RNG.normal(size=(4, 2)), RNG.normal(size=(7, 2))
    expected = plain_gaussian(points, centres, 0.6)
    np.testing.assert_allclose(gaussian(0.6)(points, centres.T), expected, rtol=1e-12)


@pytest.mark.parametrize("count", [1, 7, 8, 9, 40])
@pytest.mark.parametrize("centres", [0, 1, 15, 16, 17, 50])
def test_sums_in_blocks_are_the_whole_sum(
    count: int, centres: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BLOCK_POINTS", 8)
    monkeypatch.setattr(module, "BLOCK_CELLS", 128)
    points, places = RNG.normal(size=(count, 2)), RNG.normal(size=(centres, 2))
    weights, sizes = RNG.normal(size=centres), []

    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        sizes.append((len(a), b.shape[1]))
        return gaussian(0.8)(a, b)

    answers = expand(kernel, points, places.T, weights)
    expected = plain_gaussian(points, places, 0.8) @ weights
    np.testing.assert_allclose(answers, expected, rtol=1e-12, atol=1e-14)
    assert all(high <= 8 and high * wide <= 128 for high, wide in sizes)


def test_a_block_is_one_megabyte() -> None:
    assert 8 * module.BLOCK_CELLS == 2**20
    assert module.BLOCK_CELLS % module.BLOCK_POINTS == 0
