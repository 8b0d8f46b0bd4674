"""Regions are stored as the whole is, and what is known of them adds up."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.files.packing import encode
from dkrls_cli.files.regions import slots
from dkrls_cli.files.regions.slots import Blank, Slot, Tally
from dkrls_cli.grid.axes import index_axis
from dkrls_cli.grid.style import Packing, Style

STATED = {"valid_min": -2.0, "valid_max": 2.0, "actual_range": [-1.0, 1.0], "units": "K"}
STYLES = [
    Style("float32"),
    Style("float32", fill=-99.0, marks=("missing_value",)),
    Style(packing=Packing("int16", {"scale_factor": 0.1, "_FillValue": np.int16(-1)})),
    Style(packing=Packing("int8", {"missing_value": np.int8(-9), "valid_max": np.int8(1)})),
]


def slot_of(style: Style, may_miss: bool = True) -> Slot:
    return Slot.of(Blank("t", (index_axis("x", 9),), {}, style, may_miss), STATED)


@given(
    values=st.lists(st.sampled_from([-3.0, -1.0, 0.0, 0.5, 1.0, math.nan]), min_size=9, max_size=9),
    cut=st.integers(0, 9),
    style=st.sampled_from(STYLES),
)
def test_two_regions_are_stored_as_the_whole(values: list[float], cut: int, style: Style) -> None:
    whole = encode("t", np.array(values), STATED, style)
    slot = slot_of(style, may_miss=bool(np.isnan(values).any()))
    parts = [slot.store(np.array(part)) for part in (values[:cut], values[cut:])]
    stored = np.concatenate([part for part, _ in parts])
    tally = parts[0][1] + parts[1][1]
    np.testing.assert_array_equal(stored, whole.values)
    assert stored.dtype == whole.values.dtype
    attrs = {**slot.attrs, **slot.ranges(tally)}
    assert attrs.keys() == whole.attrs.keys()
    for key, value in attrs.items():
        np.testing.assert_array_equal(value, whole.attrs[key])
        assert np.asarray(value).dtype == np.asarray(whole.attrs[key]).dtype
    assert slot.all_notes(tally) == list(whole.notes) == []


def test_blocks_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "_BLOCK", 4)
    values = np.arange(30.0).reshape(5, 6)[:, ::2]
    for style in STYLES:
        stored, tally = slot_of(style).store(values)
        np.testing.assert_array_equal(stored, encode("t", values, {}, style).values)
        assert (tally.low, tally.high) == (0.0, 28.0)


@pytest.mark.parametrize("fill", [0.0, 2.0, -3.0])
def test_single_values_with_a_mark_among_them_are_stored_beside_it(fill: float) -> None:
    slot = slot_of(Style("float32", fill=fill, marks=("_FillValue",)))
    values = np.linspace(-3, 2, 11, dtype=np.float32)
    stored, tally = slot.store(values)
    assert tally.marked == 1
    assert fill not in stored
    assert fill in values
    np.testing.assert_allclose(stored, values, atol=1e-6)


def test_values_that_are_stored_as_they_are_take_no_copy() -> None:
    values = np.linspace(-3, 2, 12, dtype=np.float32).reshape(3, 4)
    for slot in (slot_of(Style("float32")), slot_of(Style("float32", fill=9.0, marks=("x",)))):
        stored, tally = slot.store(values)
        assert stored is values
        assert (tally.low, tally.high, tally.marked) == (-3.0, 2.0, 0)
        assert slot.store(values.astype(np.float64))[1] == tally
        infinite, known = slot.store(np.float32([1, np.inf, np.nan]))
        assert infinite[1] == known.high == np.inf
        assert slot.store(values[:0])[1].low == math.inf


def test_integers_without_a_mark_are_not_used_for_what_may_be_missing() -> None:
    style = Style("float32", packing=Packing("int16", {"scale_factor": 0.1}))
    slot = slot_of(style)
    assert (slot.dtype, slot.packing) == ("float32", None)
    assert slot.notes == encode("t", np.array([1, np.nan]), {}, style).notes
    assert np.isnan(slot.attrs["_FillValue"])
    assert slot_of(style, may_miss=False).dtype == "int16"


def test_a_region_is_filled_exactly() -> None:
    slot = Slot.of(Blank("t", (index_axis("x", 9), index_axis("y", 4))), {})
    part = (slice(2, 20), slice(None))
    assert slot.region(part, np.zeros((7, 4))) == (slice(2, 9), slice(0, 4))
    for shape in ((7, 1), (6, 4), (1, 7, 4)):
        with pytest.raises(ValueError, match="do not fill"):
            slot.region(part, np.zeros(shape))
    with pytest.raises(ValueError, match="do not fill"):
        slot.region((slice(0, 9, 2), slice(None)), np.zeros((9, 4)))


def test_tallies_add_up_and_are_kept_as_json() -> None:
    one, other = Tally(1.0, 2.0, 10, 20, 1, 0), Tally(-1.0, 1.5, None, None, 0, 3)
    assert one + other == other + one == Tally(-1.0, 2.0, 10, 20, 1, 3)
    assert one + Tally() == one
    for tally in (one, Tally()):
        assert Tally.from_dict(json.loads(json.dumps(tally.as_dict()))) == tally
