"""What is accepted as numbers, what is refused with which words, and blocks of grids."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dkrls_cli.arrays import (
    are_finite,
    as_numbers,
    blocks,
    checked_gaps,
    checked_values,
    fits_single,
    freeze,
    is_frozen,
    round_to_single,
    vector_of,
)
from dkrls_cli.errors import InputError, SettingError

ALL = {
    "as_numbers": lambda values: as_numbers(values, "values"),
    "checked_values": checked_values,
    "checked_gaps": checked_gaps,
    "vector_of": lambda values: vector_of(values, "values"),
}
each = pytest.mark.parametrize("convert", ALL.values(), ids=ALL)
NUMBERS = st.floats(allow_nan=True, allow_infinity=True, width=64)


@each
@pytest.mark.parametrize(
    "values", [[1, 2], (1.0, 2.0), np.array([1, 2], "int16"), np.array([1, 2], ">f4"), ["1", "2"]]
)
def test_numbers_of_any_type_become_float64(convert, values) -> None:
    found = convert(values)
    assert found.dtype == np.float64
    assert found.tolist() == [1.0, 2.0]


@each
def test_a_complete_grid_of_single_precision_stays_as_it_is(convert) -> None:
    values = np.array([1, 2], "f4")
    assert (convert(values) is values) == (convert is checked_values)
    assert convert(np.ma.masked_array(values, [False, False])).dtype == np.float64


def test_an_array_is_frozen_if_nobody_can_write_to_it() -> None:
    owner = np.zeros((4, 3))
    part = owner[1:].T
    part.setflags(write=False)
    assert not is_frozen(part)  # who has the owner can change it
    freeze(part)
    assert is_frozen(part)
    assert not owner.flags.writeable
    assert not is_frozen(np.frombuffer(bytearray(8), np.uint8)[:2])
    read_only = np.frombuffer(bytearray(8), np.uint8)
    read_only.setflags(write=False)
    assert not is_frozen(read_only)  # what has the bytes is no array, and may change them


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_number_that_is_not_finite_is_enough(bad: float) -> None:
    values = np.ones((3, 4), "f4")
    assert are_finite(values)
    assert are_finite(values[:0])
    values[2, 1] = bad
    assert not are_finite(values)


def test_large_arrays_are_looked_at_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dkrls_cli.arrays.AT_ONCE", 4)
    values = np.ones((5, 3))
    assert fits_single(values)
    values[4, 2] = 0.1
    assert not fits_single(values)


@each
def test_float64_is_not_copied(convert) -> None:
    given_values = np.array([1.0, 2.0])
    assert np.shares_memory(convert(given_values), given_values)


@each
@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([1j], "complex"),
        (["warm"], "warm"),
        ([object()], "object"),
        (
            np.array([1, "NaT"], "m8[D]"),
            r"durations\. Divide them by one, .* decode_timedelta=False",
        ),
        (np.ma.masked_array(np.array([1, 2], "m8[s]"), [True, False]), "durations"),
        (np.array(["2000-01-01"], "M8[D]"), "dates"),
    ],
)
def test_what_is_no_number_is_refused(convert, values, why: str) -> None:
    with pytest.raises(InputError, match=f"The values must be real numbers: .*{why}"):
        convert(values)


@pytest.mark.parametrize("convert", [as_numbers, vector_of])
def test_the_error_is_the_one_asked_for_and_names_what_is_wrong(convert) -> None:
    with pytest.raises(SettingError, match="The sigmas must be real numbers"):
        convert(["a"], "sigmas", SettingError)


@pytest.mark.parametrize("dtype", ["int16", "f4", "f8"])
def test_masked_cells_become_nan(dtype: str) -> None:
    masked = np.ma.masked_equal(np.array([[1, -9], [3, 4]], dtype), -9)
    for convert in (checked_gaps, lambda values: as_numbers(values, "values")):
        np.testing.assert_array_equal(convert(masked), [[1, np.nan], [3, 4]])
    with pytest.raises(InputError, match="1 of 4 values are missing or infinite"):
        checked_values(masked)
    assert masked.mask[0, 1]  # the array given is left as it is


def test_a_masked_array_without_a_masked_cell_is_complete() -> None:
    np.testing.assert_array_equal(checked_values(np.ma.array([1, 2])), [1.0, 2.0])


@pytest.mark.parametrize("values", [5.0, [], np.empty((3, 0))])
def test_values_without_a_cell_are_refused(values) -> None:
    with pytest.raises(InputError, match=r"Values of shape \(.*\) hold no grid"):
        checked_values(values)


def test_one_cell_is_a_grid() -> None:
    assert checked_values([5]).tolist() == [5.0]
    assert checked_gaps([5]).tolist() == [5.0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_bad_cell_anywhere_is_found(bad: float, place: int) -> None:
    values = [1.0, 2.0, 3.0]
    values[place] = bad
    with pytest.raises(InputError, match=r"^1 of 3 values are missing or infinite\."):
        checked_values(values)
    with pytest.raises(InputError, match=f"1 values that are not finite, the first {bad}"):
        vector_of(values, "steps")


def test_all_cells_missing_is_refused() -> None:
    with pytest.raises(InputError, match=r"^All 2 values are missing\. Expected at least one"):
        checked_gaps([np.nan, np.nan])
    np.testing.assert_array_equal(checked_gaps([np.nan, 1.0]), [np.nan, 1.0])


def test_the_first_bad_number_is_named() -> None:
    with pytest.raises(InputError, match=r"hold 3 values that are not finite, the first inf\."):
        vector_of([1, np.inf, np.nan, -np.inf], "steps")


@given(st.lists(NUMBERS, min_size=1, max_size=12))
def test_complete_values_are_those_with_finite_numbers_only(values: list[float]) -> None:
    bad = int(np.sum(~np.isfinite(values)))
    if bad == 0:
        assert checked_values(values).tolist() == values
    else:
        with pytest.raises(InputError, match=f"^{bad} of {len(values)} values are missing or inf"):
            checked_values(values)


@given(st.lists(NUMBERS, min_size=1, max_size=12))
def test_values_with_gaps_need_one_number_and_no_infinity(values: list[float]) -> None:
    infinite = int(np.sum(np.isinf(values)))
    if infinite:
        with pytest.raises(InputError, match=f"^{infinite} of {len(values)} values are infinite"):
            checked_gaps(values)
    elif np.isnan(values).all():
        with pytest.raises(InputError, match=f"^All {len(values)} values are missing"):
            checked_gaps(values)
    else:
        np.testing.assert_array_equal(checked_gaps(values), values)


def test_a_single_number_is_a_vector_of_one() -> None:
    assert vector_of(3, "coordinates").tolist() == [3.0]


@pytest.mark.parametrize("shape", [(2, 2), (1, 1), (1, 1, 1)])
def test_a_matrix_is_no_vector(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"The steps must be a vector, got shape \(") as told:
        vector_of(np.ones(shape), "steps")
    assert str(shape) in str(told.value)


@given(st.lists(NUMBERS, min_size=1, max_size=12))
def test_a_vector_holds_finite_numbers_only(values: list[float]) -> None:
    bad = [value for value in values if not np.isfinite(value)]
    if not bad:
        assert vector_of(values, "steps").tolist() == values
    else:
        words = f"The steps hold {len(bad)} values that are not finite, the first {bad[0]}."
        with pytest.raises(SettingError, match=words):
            vector_of(values, "steps", SettingError)


# ---- single precision


@given(hnp.arrays(np.float64, 5))
def test_values_fit_single_precision_if_it_gives_them_back(values: np.ndarray) -> None:
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32).astype(np.float64)
    same = np.array_equal(rounded, values, equal_nan=True)
    assert fits_single(values) == same
    assert fits_single(rounded)


def test_some_cells_are_rounded_and_none_becomes_infinite() -> None:
    values = np.array([0.1, 0.1, 1e300, -1e300, 2.5])
    cells = np.array([True, False, True, True, True])
    rounded = round_to_single(values, cells)
    assert rounded.dtype == np.float64
    assert rounded.tolist() == [float(np.float32(0.1)), 0.1, 1e300, -1e300, 2.5]


# ---- blocks


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(1, 60))
def test_blocks_part_the_grid_in_c_order(shape: list[int], cells: int) -> None:
    numbers = np.arange(math.prod(shape)).reshape(shape)
    parts = [numbers[block] for block in blocks(shape, cells)]
    np.testing.assert_array_equal(np.concatenate([part.ravel() for part in parts]), numbers.ravel())
    assert max(part.size for part in parts) <= cells


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(1, 60))
def test_blocks_are_as_large_as_they_may_be(shape: list[int], cells: int) -> None:
    """A block ends where its axis does, or where one more index along it would be too much."""
    for block in blocks(shape, cells):
        sides = [part.stop - part.start for part in block]
        cut = next((axis for axis, side in enumerate(sides) if side < shape[axis]), None)
        if cut is None:
            assert math.prod(shape) <= cells
            continue
        last_cut = max(axis for axis, side in enumerate(sides) if side < shape[axis])
        assert all(side == 1 for side in sides[:last_cut])
        ends = block[last_cut].stop == shape[last_cut]
        assert ends or math.prod(sides) + math.prod(sides[last_cut + 1 :]) > cells


@pytest.mark.parametrize(
    ("cells", "count"), [(120, 1), (119, 2), (60, 2), (59, 4), (20, 6), (1, 120)]
)
def test_blocks_are_counted_at_their_limits(cells: int, count: int) -> None:
    assert len(list(blocks((2, 3, 20), cells))) == count


def test_an_empty_grid_has_no_block() -> None:
    assert list(blocks((3, 0, 2), 10)) == []
