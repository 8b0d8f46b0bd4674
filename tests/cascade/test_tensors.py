"""Products along axes against einsum, and spans against tensors of known rank."""

import numpy as np
import pytest

from dkrls_cli.cascade.tensors import along, apply, contract, span

RNG = np.random.default_rng(5)
LETTERS = "abcdef"
SHAPES = [(7,), (4, 9), (9, 2), (3, 5, 12), (12, 3, 2), (2, 3, 4, 5)]
SHAPES_AND_AXES = [(shape, axis) for shape in SHAPES for axis in range(len(shape))]


def low_rank(shape: tuple[int, ...], axis: int, rank: int, seed: int = 0) -> np.ndarray:
    """Noise whose fibres along one axis span `rank` directions."""
    rng = np.random.default_rng(seed)
    others = shape[:axis] + shape[axis + 1 :]
    fibres = rng.standard_normal((*others, rank)) @ rng.standard_normal((rank, shape[axis]))
    return np.moveaxis(fibres, -1, axis)


def lost(tensor: np.ndarray, axis: int, basis: np.ndarray) -> float:
    """Largest part of the tensor outside the basis, relative to its largest value."""
    fibres = np.moveaxis(tensor, axis, -1)
    return np.abs(fibres - fibres @ basis @ basis.T).max() / np.abs(tensor).max()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("shape", "axis"), SHAPES_AND_AXES)
def test_along_is_a_product_with_every_fibre(
    shape: tuple[int, ...], axis: int, dtype: type
) -> None:
    tensor = RNG.standard_normal(shape).astype(dtype)
    matrix = RNG.standard_normal((6, shape[axis]))
    letters = LETTERS[: len(shape)]
    sums = f"{letters},z{letters[axis]}->{letters.replace(letters[axis], 'z')}"
    expected = np.einsum(sums, tensor.astype(np.float64), matrix)
    np.testing.assert_allclose(along(tensor, axis, matrix), expected, atol=1e-13)


def test_apply_multiplies_takes_and_leaves_alone() -> None:
    tensor = RNG.standard_normal((4, 5, 6))
    matrix, indices = RNG.standard_normal((8, 4)), np.array([3, 0, 3])
    expected = np.einsum("abc,za->zbc", tensor, matrix)[:, indices]
    np.testing.assert_allclose(apply(tensor, [matrix, indices, None]), expected, atol=1e-13)


@pytest.mark.parametrize("operator", [None, np.arange(4), np.eye(4)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_apply_makes_a_new_array_of_doubles(operator: np.ndarray | None, dtype: type) -> None:
    tensor = np.arange(4, dtype=dtype)
    result = apply(tensor, [operator])
    result += 1
    assert result.dtype == np.float64
    np.testing.assert_array_equal(tensor, np.arange(4))


@pytest.mark.parametrize("count", [0, 1, 700])
@pytest.mark.parametrize("taken", [(), (1,), (0, 2), (0, 1, 2)])
def test_contract_is_a_sum_over_all_axes_at_every_point(taken: tuple[int, ...], count: int) -> None:
    tensor = RNG.standard_normal((4, 6, 5))
    rows = [RNG.standard_normal((count, size)) for size in tensor.shape]
    looked_up = {axis: RNG.integers(0, tensor.shape[axis], count) for axis in taken}
    for axis, indices in looked_up.items():
        rows[axis] = np.eye(tensor.shape[axis])[indices]
    answers = contract(tensor, count, lambda axis, part: rows[axis][part], looked_up, widest=6)
    np.testing.assert_allclose(answers, np.einsum("abc,na,nb,nc->n", tensor, *rows), atol=1e-13)


@pytest.mark.parametrize("rank", [1, 2, 5, 8])
@pytest.mark.parametrize(
    ("shape", "axis"), [((40, 50), 0), ((50, 40), 1), ((40, 6, 7), 0), ((6, 40, 7), 1)]
)
def test_span_finds_the_rank_and_all_of_the_data(
    shape: tuple[int, ...], axis: int, rank: int
) -> None:
    tensor = low_rank(shape, axis, rank)
    basis = span(tensor, axis)
    assert basis is not None
    assert basis.shape == (40, rank)
    np.testing.assert_allclose(basis.T @ basis, np.eye(rank), atol=1e-13)
    assert lost(tensor, axis, basis) < 1e-12


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_span_sees_small_directions_beside_large_ones(axis: int) -> None:
    tensor = low_rank((30, 30, 30), axis, 2) + 1e-9 * low_rank((30, 30, 30), axis, 3, seed=1)
    basis = span(tensor, axis)
    assert basis is not None
    assert basis.shape == (30, 5)
    assert lost(tensor, axis, basis) < 1e-13


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_noise_spans_too_much(axis: int) -> None:
    assert span(RNG.standard_normal((24, 25, 26)), axis) is None


def test_a_faint_trace_of_noise_is_not_thrown_away() -> None:
    assert span(low_rank((40, 50), 0, 2) + 1e-10 * RNG.standard_normal((40, 50)), 0) is None


@pytest.mark.parametrize("shape", [(1, 13, 2), (3, 20, 1), (2, 24, 2), (1, 28, 4), (3, 48, 3)])
def test_few_fibres_are_spanned_whole(shape: tuple[int, ...]) -> None:
    tensor = np.random.default_rng(0).standard_normal(shape)
    basis = span(tensor, 1)
    assert basis is None or lost(tensor, 1, basis) < 1e-12


@pytest.mark.parametrize("side", [1, 2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_few_fibres_among_zeros_are_spanned_whole(side: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tensor = np.zeros((30, 20, 30))
    rows, columns = (rng.choice(30, side, replace=False) for _ in range(2))
    tensor[np.ix_(rows, range(20), columns)] = rng.standard_normal((side, 20, side))
    basis = span(tensor, 1)
    assert basis is None or lost(tensor, 1, basis) < 1e-12


def test_zeros_span_one_direction_and_stay_zero() -> None:
    basis = span(np.zeros((20, 9)), 0)
    assert basis is not None
    assert basis.shape == (20, 1)
    assert np.isfinite(basis).all()


def test_short_axes_are_left_in_samples() -> None:
    assert span(np.ones((11, 50)), 0) is None
