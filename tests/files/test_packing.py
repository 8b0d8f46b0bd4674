"""What is stored is what was given, to half a step of its packing, or it is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dkrls_cli.files.packing import encode, pack, packed_range
from dkrls_cli.grid.style import Packing, Style

# Packed numbers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "attrs", "number", "expected"),
    [
        ("i2", {}, 1.5, 2),
        ("i2", {}, 2.5, 2),
        ("i2", {}, 1e9, 32767),
        ("i2", {}, -1e9, -32768),
        ("u1", {}, -3.0, 0),
        ("u1", {}, 300.0, 255),
        # a number that marks a missing value moves towards zero, where there is one more
        ("i2", {"_FillValue": np.int16(-32768)}, -1e9, -32767),
        ("i2", {"_FillValue": np.int16(32767)}, 1e9, 32766),
        ("i2", {"_FillValue": np.int16(-1)}, -1.0, 0),
        ("i2", {"_FillValue": np.int16(1)}, 1.0, 0),
        ("i2", {"_FillValue": np.int16(0)}, 0.0, 1),
        ("u1", {"_FillValue": np.uint8(0)}, 0.0, 1),
        ("u1", {"_FillValue": np.uint8(255)}, 255.0, 254),
        ("i2", {"missing_value": np.int16(-999)}, -999.0, -998),
        ("i2", {"missing_value": np.array([-999], "i2")}, -999.0, -998),
        # two marks beside each other
        ("i2", {"_FillValue": np.int16(-999), "missing_value": np.int16(-998)}, -999.0, -997),
        ("i2", {"_FillValue": np.int16(-998), "missing_value": np.int16(-999)}, -999.0, -997),
        ("i2", {"_FillValue": np.int16(0), "missing_value": np.int16(1)}, 0.0, 2),
        ("i2", {"_FillValue": np.int16(0), "missing_value": np.int16(1)}, 1.0, -1),
        # signed bytes that stand for unsigned ones
        ("i1", {"_Unsigned": "true"}, 200.0, 200 - 256),
        ("i1", {"_Unsigned": "TRUE", "_FillValue": np.int8(-1)}, 255.0, 254 - 256),
        ("i1", {"_Unsigned": "true", "_FillValue": np.int8(-1)}, -5.0, 0),
        ("i1", {"_Unsigned": "false"}, 200.0, 127),
        # marks of another type, and several
        ("i2", {"missing_value": -5.0}, -5.0, -4),
        ("i2", {"missing_value": np.array([-5, -4], "i2")}, -5.0, -3),
        # netCDF itself marks what nobody wrote, where no other mark is given
        ("i2", {}, -32767.0, -32766),
        ("i2", {"_FillValue": np.int16(5)}, -32767.0, -32767),
        ("i1", {}, -127.0, -127),
        # marks that no stored number can be
        ("i2", {"missing_value": np.int32(65536 - 5)}, -5.0, -5),
        ("i2", {"missing_value": -5.5}, -5.0, -5),
        ("i2", {"missing_value": np.nan}, -5.0, -5),
        ("i2", {"missing_value": "none"}, -5.0, -5),
        # the largest numbers of eight bytes
        ("i8", {}, 1e30, 2**63 - 1024),
        ("u8", {}, 1e30, 2**64 - 2048),
        ("f4", {"_FillValue": np.float32(7.0)}, 7.0, 7.0),
        ("f4", {}, 0.1, np.float32(0.1)),
    ],
)
def test_numbers_are_packed_as_the_file_packs_them(
    dtype: str, attrs: dict[str, Any], number: float, expected: float
) -> None:
    found = pack(np.array([number, 7.0]), np.dtype(dtype), attrs).stored
    assert found.dtype == dtype
    assert found.tolist() == [expected, 7]


def test_nothing_to_pack_is_nothing() -> None:
    assert pack(np.empty(0), np.dtype("i2"), {"_FillValue": np.int16(-1)}).stored.size == 0


def test_what_does_not_fit_is_counted() -> None:
    mark = {"_FillValue": np.int16(32767)}
    found = pack(np.array([1e9, 32767.4, 32767.6, -32768.0, -32769.0, 5.0]), np.dtype("i2"), mark)
    assert (found.beyond, found.marked) == (3, 1)


@given(st.lists(st.integers(-32768, 32767), min_size=1), st.integers(-32768, 32767))
def test_integers_that_are_no_mark_stay(numbers: list[int], mark: int) -> None:
    found = pack(np.array(numbers, float), np.dtype("i2"), {"_FillValue": np.int16(mark)})
    assert found.beyond == 0
    assert found.marked == numbers.count(mark)
    same = found.stored == numbers
    assert np.count_nonzero(~same) == found.marked


# Variables as they are stored ---------------------------------------------------------------------

STEPS = {"scale_factor": np.float32(0.5), "add_offset": 10.0, "_FillValue": np.int16(-99)}
SHORT = Packing("int16", STEPS)


def packed_style(attrs: Any = STEPS, dtype: str = "int16", **options: Any) -> Style:
    return Style("float32", packing=Packing(dtype, attrs), **options)


def test_values_are_rounded_to_the_step_of_the_packing() -> None:
    values = np.array([[10.0, 10.3], [np.nan, -3.0]], "f4")
    found = encode("t", values, {"units": "K"}, packed_style())
    assert found.values.tolist() == [[0, 1], [-99, -26]]
    assert found.values.dtype == np.int16
    assert found.attrs == {"units": "K", **STEPS}
    assert found.notes == ()


@pytest.mark.parametrize(
    ("values", "attrs", "reason"),
    [
        ([1.0, 1e6], STEPS, "1 cell beyond -16374 to 16393.5"),
        ([-1e6, 1e6], STEPS, "2 cells beyond -16374 to 16393.5"),
        ([1.0, -39.5], STEPS, "1 cell equal to a mark of missing values"),
        ([1.0, np.nan], {"scale_factor": 0.5}, "cells are missing, and its integers have no mark"),
        ([1.0, -16383.5], {"scale_factor": 0.5}, "1 cell equal to a mark of missing values"),
    ],
)
def test_what_a_packing_cannot_hold_is_written_as_floats_with_a_note(
    values: list[float], attrs: Any, reason: str
) -> None:
    found = encode("t", np.array(values), {"units": "K"}, packed_style(attrs))
    assert found.values.dtype == np.float32
    np.testing.assert_array_equal(found.values, np.array(values, "f4"))
    assert "scale_factor" not in found.attrs
    assert "add_offset" not in found.attrs
    (note,) = found.notes
    assert note.startswith(f"'t' is written as float32 and not packed as int16: {reason}")


def test_a_missing_value_marks_what_is_missing_where_there_is_no_fill_value() -> None:
    attrs = {"scale_factor": 0.5, "missing_value": np.int16(-7)}
    found = encode("t", np.array([1.0, np.nan]), {}, packed_style(attrs))
    assert found.values.tolist() == [2, -7]


def test_signed_bytes_that_stand_for_unsigned_ones_come_back() -> None:
    attrs = {"scale_factor": 0.5, "_Unsigned": "true", "_FillValue": np.int8(-1)}
    found = encode("t", np.array([0.0, 100.0, np.nan, 127.0]), {}, packed_style(attrs, "int8"))
    assert found.values.dtype == np.int8
    assert found.values.view("u1").tolist() == [0, 200, 255, 254]
    refused = encode("t", np.array([128.0]), {}, packed_style(attrs, "int8"))
    assert "1 cell beyond 0 to 127" in refused.notes[0]


@pytest.mark.parametrize(("dtype", "largest"), [("uint8", 255), ("int32", 2**31 - 1)])
def test_a_packing_holds_all_its_integers(dtype: str, largest: int) -> None:
    style = packed_style({"add_offset": 1.0}, dtype)
    assert encode("t", np.array([largest + 1.0]), {}, style).values.tolist() == [largest]
    assert encode("t", np.array([largest + 2.0]), {}, style).notes


@pytest.mark.parametrize(
    ("attrs", "kept"),
    [
        ({"valid_range": np.array([2, 6], "i2")}, True),
        ({"valid_range": np.array([3, 6], "i2")}, False),
        ({"valid_range": np.array([2, 5], "i2")}, False),
        ({"valid_min": np.int16(2)}, True),
        ({"valid_min": np.int16(3)}, False),
        ({"valid_max": np.int16(6)}, True),
        ({"valid_max": np.int16(5)}, False),
    ],
)
def test_valid_packed_numbers_are_stated_where_all_are_valid(attrs: Any, kept: bool) -> None:
    style = packed_style({"scale_factor": 0.5, "_FillValue": np.int16(-9), **attrs})
    found = encode("t", np.array([1.0, 3.0, np.nan]), {}, style)
    assert not found.notes
    assert (next(iter(attrs)) in found.attrs) == kept


@pytest.mark.parametrize(
    ("attrs", "kept"),
    [
        ({"valid_range": np.array([1, 3], "i2")}, True),
        ({"valid_range": [1.5, 3.0]}, False),
        ({"actual_range": [1.0, 3.0]}, True),
        ({"actual_range": [1.0, 4.0]}, False),
        ({"actual_range": "1 to 3"}, False),
        ({"valid_min": 1.0}, True),
        ({"valid_max": 2.0}, False),
        ({"valid_max": [1.0, 9.0]}, False),
    ],
)
def test_stated_ranges_of_floats_are_kept_where_they_hold(attrs: Any, kept: bool) -> None:
    found = encode("t", np.array([1.0, 3.0, np.nan]), attrs, Style("float32"))
    (key,) = attrs
    assert (key in found.attrs) == kept
    if kept and key.startswith("valid"):
        assert np.asarray(found.attrs[key]).dtype == np.float32  # CF: the type of the values
    assert key not in encode("t", np.array([np.nan]), attrs, Style()).attrs


@pytest.mark.parametrize(
    ("style", "marks"),
    [
        (Style("float32", -9.0), {"_FillValue": -9.0}),
        (Style("float32", -9.0, ("missing_value",)), {"missing_value": -9.0}),
        (
            Style("float32", -9.0, ("_FillValue", "missing_value")),
            {"_FillValue": -9.0, "missing_value": -9.0},
        ),
    ],
)
def test_missing_floats_are_marked_as_in_the_source(style: Style, marks: Any) -> None:
    found = encode("t", np.array([1.0, np.nan]), {}, style)
    assert found.values.tolist() == [1.0, -9.0]
    assert found.attrs == marks
    assert {type(mark) for mark in found.attrs.values()} == {np.float32}
    assert encode("t", np.array([1.0, 2.0]), {}, style).attrs == marks


def test_missing_floats_without_a_mark_get_one() -> None:
    found = encode("t", np.array([1.0, np.nan]), {}, Style("float32"))
    assert np.isnan(found.attrs["_FillValue"])
    np.testing.assert_array_equal(found.values, [1.0, np.nan])
    assert encode("t", np.array([1.0, 2.0]), {}, Style("float32")).attrs == {}
    marked = encode("t", np.array([1.0, 2.0]), {}, Style("float32", np.nan))
    assert np.isnan(marked.attrs["_FillValue"])


def test_a_number_that_marks_missing_values_is_not_lost() -> None:
    found = encode("t", np.array([0.0, np.nan, 2.0]), {}, Style("float32", 0.0, ("missing_value",)))
    np.testing.assert_array_equal(found.values, [0.0, np.nan, 2.0])
    assert list(found.attrs) == ["_FillValue"]
    assert np.isnan(found.attrs["_FillValue"])
    assert found.notes == (
        "'t' has cells equal to 0, which marks missing values in the source: NaN marks them here",
    )


def test_numbers_that_single_precision_cannot_hold_stay_double() -> None:
    found = encode("t", np.array([1e39, 1.0]), {}, Style("float32"))
    assert found.values.tolist() == [1e39, 1.0]
    assert found.notes == ("'t' is written as float64: float32 cannot hold it",)


@given(
    hnp.arrays(np.int16, 12, elements=st.integers(-32766, 32767)),
    st.floats(1e-3, 1e3),
    st.floats(-1e3, 1e3),
)
def test_a_packed_variable_comes_back_to_the_bit(raw: Any, scale: float, offset: float) -> None:
    style = packed_style({"scale_factor": scale, "add_offset": offset, "_FillValue": -32767})
    assert encode("t", raw * scale + offset, {}, style).values.tolist() == raw.tolist()


@given(hnp.arrays(np.float64, 8, elements=st.floats(-1e3, 1e3)), st.floats(0.1, 10))
def test_packing_changes_a_number_by_half_a_step_at_most(values: Any, scale: float) -> None:
    style = packed_style({"scale_factor": scale, "_FillValue": np.int16(-32768)})
    found = encode("t", values, {}, style)
    assert np.abs(found.values * scale - values).max() <= scale / 2 * (1 + 1e-9)


def test_the_range_of_a_packing_leaves_out_marks() -> None:
    assert packed_range(Packing("int8", {"_FillValue": np.int8(-128)})) == (-127.0, 127.0)
    assert packed_range(Packing("uint8", {"scale_factor": -2.0})) == (-510.0, 0.0)
