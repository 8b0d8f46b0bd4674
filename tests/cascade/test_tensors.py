"""Products along axes against einsum, and spans of tensors of known rank."""

import numpy as np
import pytest

from dkrls_cli.cascade import tensors
from dkrls_cli.cascade.tensors import along, apply, contract, count_points, lay_out, span

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


# ---- products


@pytest.mark.parametrize("less", [0.0, 2.5])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1, 30, 10**6])
@pytest.mark.parametrize(("shape", "axis"), SHAPES_AND_AXES)
def test_large_tensors_are_multiplied_in_parts(
    shape: tuple[int, ...],
    axis: int,
    size: int,
    dtype: type,
    less: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those in single precision, and those that a number is taken off."""
    monkeypatch.setattr(tensors, "AT_ONCE", size)
    tensor = (10 + np.random.default_rng(1).standard_normal(shape)).astype(dtype)
    matrix = np.random.default_rng(2).standard_normal((6, shape[axis]))
    exact = tensor.astype(np.float64) - less
    expected = np.moveaxis(np.tensordot(matrix, exact, (1, axis)), 0, axis)
    found = along(tensor, axis, matrix, less)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_is_taken_off_is_taken_off_once(dtype: type) -> None:
    tensor = (300 + np.random.default_rng(1).standard_normal((4, 5, 6))).astype(dtype)
    rows, places = np.random.default_rng(2).standard_normal((3, 5)), np.array([3, 1])
    centred = tensor.astype(np.float64) - 300
    for operators in (
        [None, None, None],
        [places, None, None],
        [places, rows, rows @ np.eye(5, 6)],
        [None, rows, places],
    ):
        found = apply(tensor, operators, 300.0)
        np.testing.assert_allclose(found, apply(centred, operators), atol=1e-12)
        assert not np.shares_memory(found, tensor)


@pytest.mark.parametrize("size", [1, 200, 10**6])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_span_of_single_precision_is_that_of_the_same_numbers(
    axis: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensors, "AT_ONCE", size)
    waves = [np.random.default_rng(m).integers(1, 30, m).astype(float) for m in (24, 25, 26)]
    tensor = np.multiply.outer(np.multiply.outer(*waves[:2]), waves[2])  # exact in both
    single, double = span(tensor.astype(np.float32), axis), span(tensor, axis)
    assert single is not None
    assert double is not None
    assert single.shape == double.shape == (tensor.shape[axis], 1)
    assert lost(tensor, axis, single) < 1e-12


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


@pytest.mark.parametrize("taken", [(), (1,), (0, 2), (0, 1, 2)])
def test_contract_answers_many_blocks_of_points_like_one(
    taken: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensors, "_BLOCK_NUMBERS", 1)
    test_contract_is_a_sum_over_all_axes_at_every_point(taken, 700)


@pytest.mark.parametrize(
    ("numbers", "widest", "block"),
    [
        (300 * 30, 6, 300),
        (300 * 40, 40, 300),
        (300 * 50, 40, 375),
        (129 * 30 - 1, 6, 128),
        (1, 6, 128),
    ],
)
def test_blocks_of_points_hold_so_many_numbers(
    numbers: int, widest: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tensor has 30 numbers per index of its longest axis; 128 points are always worth it."""
    monkeypatch.setattr(tensors, "_BLOCK_NUMBERS", numbers)
    asked = []

    def rows(axis: int, part: slice) -> np.ndarray:
        asked.append((axis, part.start, part.stop - part.start))
        return np.zeros((len(range(1000)[part]), (5, 7, 6)[axis]))

    contract(np.ones((5, 7, 6)), 1000, rows, {}, widest)
    starts = range(0, 1000, block)
    assert asked == [(axis, start, block) for start in starts for axis in (1, 0, 2)]


def test_contract_keeps_half_a_megabyte_at_once() -> None:
    assert tensors._BLOCK_NUMBERS * 8 == 2**19
    assert tensors._MOST_NUMBERS * 8 == 2**26


@pytest.mark.parametrize(
    ("numbers", "block"),
    [(30, 2184), (512, 128), (2**16, 128), (2**17, 64), (2**23, 1), (2**30, 1)],
)
def test_points_with_many_numbers_come_in_small_blocks(numbers: int, block: int) -> None:
    assert tensors._block_of_points(numbers, widest=6) == block


SIX = np.arange(6)
OPERATORS = {  # of an axis of 6: shorter, longer, of the same length
    "fewer rows": RNG.standard_normal((2, 6)),
    "more rows": RNG.standard_normal((9, 6)),
    "all": SIX,
    "backwards": SIX[::-1],
    "some": np.array([4, 0, 4]),
    "many": np.array([4, 0, 4, 1, 2, 3, 5, 5]),
}


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1, 700])
@pytest.mark.parametrize("taken", [(), (0,), (0, 2)])
@pytest.mark.parametrize("name", OPERATORS)
def test_contract_spreads_points_over_other_axes(
    name: str, taken: tuple[int, ...], count: int
) -> None:
    tensor = RNG.standard_normal((4, 6, 5, 6))
    operator, last = OPERATORS[name], RNG.standard_normal((7, 6))
    matrix = np.eye(6)[operator] if operator.ndim == 1 else operator
    rows = [RNG.standard_normal((count, size)) for size in tensor.shape]
    looked_up = {axis: RNG.integers(0, tensor.shape[axis], count) for axis in taken}
    for axis, indices in looked_up.items():
        rows[axis] = np.eye(tensor.shape[axis])[indices]
    given = tensor.copy()
    answers = contract(
        tensor, count, lambda axis, part: rows[axis][part], looked_up, 6, {3: last, 1: operator}
    )
    expected = np.einsum("abcd,na,nc,pb,qd->npq", tensor, rows[0], rows[2], matrix, last)
    np.testing.assert_allclose(answers, expected, atol=1e-12)
    np.testing.assert_array_equal(tensor, given)


@pytest.mark.parametrize("spread", [(), (1,), (0, 2), (2, 0)])
def test_vectors_laid_out_broadcast_to_the_shape_of_contract(spread: tuple[int, ...]) -> None:
    sizes = [axis + 2 if axis in spread else 9 for axis in range(4)]
    vectors = [RNG.standard_normal(size) for size in sizes]
    assert count_points(vectors, spread) == 9
    whole = np.broadcast_arrays(*lay_out(vectors, spread))
    assert whole[0].shape == (9, *(sizes[axis] for axis in sorted(spread)))
    for axis, vector in enumerate(vectors):
        place = sorted(spread).index(axis) + 1 if axis in spread else 0
        seen = np.moveaxis(whole[axis], place, -1)
        np.testing.assert_array_equal(seen, np.broadcast_to(vector, seen.shape))


# ---- spans


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


@pytest.mark.parametrize("length", [39, 40, 41, 43])
@pytest.mark.parametrize("beyond", [0, 1])
def test_a_span_is_two_directions_below_a_quarter_at_most(length: int, beyond: int) -> None:
    rank = length // 4 - 2 + beyond
    basis = span(low_rank((length, 60), 0, rank), 0)
    assert (basis is None) == bool(beyond)
    assert basis is None or basis.shape == (length, rank)


def test_twelve_samples_are_enough_for_a_frame() -> None:
    basis = span(low_rank((12, 50), 0, 1), 0)
    assert basis is not None
    assert basis.shape == (12, 1)


@pytest.mark.parametrize("rank", [5, 6, 7, 8, 9, 12, 18, 19, 25])
def test_directions_that_the_first_fibres_do_not_show_are_found(rank: int) -> None:
    """The fibres that are looked at first are zero: more sums of all fibres are needed."""
    others, length = 2000, 80
    first = np.linspace(0, others - 1, length // 4 + 8).astype(int)
    tensor = low_rank((length, others), 0, rank)
    tensor[:, first] = 0.0
    basis = span(tensor, 0)
    if rank > length // 4 - 2:
        assert basis is None
    else:
        assert basis is not None
        assert basis.shape == (length, rank)
        assert lost(tensor, 0, basis) < 1e-12


@pytest.mark.parametrize(("share", "rank"), [(1.01e-14, 3), (1e-14, 2), (0.99e-14, 2)])
@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_directions_up_to_1e_14_of_the_largest_are_round_off(
    share: float, rank: int, size: float
) -> None:
    assert tensors._rank(size * np.array([1.0, 0.5, share])) == rank


def test_a_span_of_single_precision_is_in_double_precision() -> None:
    tensor = np.ones((20, 30), np.float32)
    basis = span(tensor, 0)
    assert basis is not None
    assert basis.dtype == np.float64


def test_products_of_single_precision_are_made_in_double() -> None:
    rng = np.random.default_rng(7)
    tensor = rng.random((3, 40, 9)).astype(np.float32)
    matrix = rng.random((5, 40)).astype(np.float32)
    wide, tall = tensor.astype(np.float64), matrix.astype(np.float64)
    exact = np.einsum("pm,amb->apb", tall, wide)
    np.testing.assert_allclose(along(tensor, 1, matrix), exact, rtol=1e-13)
    np.testing.assert_allclose(apply(tensor, [None, matrix, None]), exact, rtol=1e-13)
    rows = [rng.random((6, size)).astype(np.float32) for size in tensor.shape]
    points = np.einsum("amb,pa,pm,pb->p", wide, *[row.astype(np.float64) for row in rows])
    found = contract(tensor, 6, lambda axis, part: rows[axis][part], {}, 40)
    np.testing.assert_allclose(found, points, rtol=1e-13)
    places = np.array([0, 2, 1, 1, 0, 2])
    looked_up = np.einsum("pmb,pm,pb->p", wide[places], *[r.astype(np.float64) for r in rows[1:]])
    found = contract(tensor, 6, lambda axis, part: rows[axis][part], {0: places}, 40)
    np.testing.assert_allclose(found, looked_up, rtol=1e-13)


def test_no_fibre_is_looked_at_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long axis has few fibres beside it."""
    seen = []
    plain = np.linalg.svd

    def counted(matrix: np.ndarray, **how: bool) -> object:
        seen.append(matrix.shape)
        return plain(matrix, **how)

    monkeypatch.setattr(np.linalg, "svd", counted)
    basis = span(RNG.standard_normal((500, 3)), 0)
    assert basis is not None
    assert seen[0] == (3, 500)


@pytest.mark.parametrize("rank", [3, 49])
def test_a_long_axis_is_spanned_by_all_of_its_samples(rank: int) -> None:
    """Samples that are looked at first may hide a direction, which the sums then show."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((5000, rank)) @ rng.standard_normal((rank, 50))
    values[1] += 10.0 * rng.standard_normal(50)  # at a place that is not among the first
    basis = span(values, 0, 50)
    assert (basis is None) == (rank == 49)
    if basis is not None:
        assert basis.shape == (5000, rank + 1)
        np.testing.assert_allclose(basis @ (basis.T @ values), values, atol=1e-9)
