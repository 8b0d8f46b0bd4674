"""Arrays in fewer bytes: the same to the last bit when they are read, and never more of them."""

import json
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dkrls_cli.model import narrowing
from dkrls_cli.model.narrowing import (
    narrow_coordinates,
    narrow_values,
    pack_mask,
    unpack_mask,
    widen,
)

RNG = np.random.default_rng(3)


def again(form: dict[str, Any], stored: np.ndarray | None) -> np.ndarray:
    """What is read of an array whose form went through the header of a file."""
    read = json.loads(json.dumps(form))
    return stored if not read and stored is not None else widen(read, stored)


def assert_same(found: np.ndarray, values: np.ndarray) -> None:
    assert (found.dtype, found.shape) == (values.dtype, values.shape)
    assert found.tobytes() == values.tobytes()


def size_of(form: dict[str, Any], stored: np.ndarray | None) -> int:
    return len(json.dumps(form)) + (0 if stored is None else stored.nbytes)


FINITE = {"allow_nan": False, "allow_infinity": False}
SHAPES = hnp.array_shapes(max_dims=2, max_side=40)
TYPES = ["f8", "f4", "f2", "i2", "i8", "u1", "u8"]


@given(st.sampled_from(TYPES).flatmap(lambda t: hnp.arrays(t, SHAPES, elements=None)))
def test_any_numbers_come_back(values: np.ndarray) -> None:
    if values.dtype.kind == "f":
        values = np.nan_to_num(values)
    for narrow in (narrow_values, narrow_coordinates):
        form, stored = narrow(values)
        assert_same(again(form, stored), values)
        assert stored is None or stored.nbytes <= values.nbytes


@given(
    hnp.arrays("i8", hnp.array_shapes(max_dims=2, min_side=2), elements=st.integers(-9999, 9999)),
    st.sampled_from([1, 10, 1000, 24, 1440, 86400, 3600]),
    st.sampled_from([1, 60, 3600]),
)
def test_whole_numbers_of_parts_take_one_or_two_bytes(
    steps: np.ndarray, parts: int, unit: int
) -> None:
    values = np.cumsum(unit * steps, axis=0) / parts
    form, stored = narrow_coordinates(values)
    assert_same(again(form, stored), values)
    assert stored is None or stored.dtype.itemsize <= 2 or not values.any()


HOURS = np.arange(8760.0) + 438288.0


@pytest.mark.parametrize(
    "values",
    [
        HOURS,
        HOURS / 24,
        HOURS * 3600,
        np.arange(-89.875, 90, 0.25),
        np.linspace(0.1, 7.3, 2000),
        np.arange(0.1, 300, 0.1),
        np.round(-89.95 + 0.1 * np.arange(1800), 2),
        np.stack([HOURS, HOURS + 1], 1),
        np.full(500, 0.1),
        np.arange(300, dtype="i8"),
        np.arange(300, 0, -1, dtype="u2"),
        np.arange(0, 300, 0.5, dtype="f4"),
    ],
    ids=lambda values: f"{values.dtype} {values.flat[1]:g}",
)
def test_equal_steps_are_stored_once(values: np.ndarray) -> None:
    form, stored = narrow_coordinates(values)
    assert stored is None
    assert_same(again(form, stored), values)
    assert not again(form, stored).flags.writeable


@pytest.mark.parametrize(
    ("steps", "dtype"),
    [
        ([1, 255], "u1"),
        ([1, 256], "u2"),
        ([-128, 127], "i1"),
        ([-1, 128], "i2"),
        ([1, 65536], "u4"),
        ([-1, 32768], "i4"),
        ([3600, 86400], "u1"),
    ],
)
def test_steps_are_stored_in_the_smallest_type(steps: list[int], dtype: str) -> None:
    values = np.cumsum([0.5, *steps * 20])
    form, stored = narrow_coordinates(values)
    assert stored is not None
    assert stored.dtype == dtype
    assert_same(again(form, stored), values)


def test_rows_of_many_numbers_do_not_go_to_the_header() -> None:
    corners = np.arange(8.0) + np.arange(100.0)[:, None]
    assert narrow_coordinates(corners)[1] is None
    assert narrow_coordinates(np.arange(9.0) + np.arange(100.0)[:, None])[1] is not None
    assert len(json.dumps(narrow_coordinates(np.ones((2, 5000)))[0])) < 99


def test_steps_add_up_to_large_whole_numbers() -> None:
    values = 2**62 + np.cumsum([0, 1, 255, 3])
    form, stored = narrow_coordinates(values)
    assert stored is not None
    assert stored.dtype == np.uint8
    assert_same(again(form, stored), values)


def test_steps_that_save_nothing_are_not_stored() -> None:
    irregular = np.sort(RNG.random(100))
    assert narrow_coordinates(irregular) == ({}, pytest.approx(irregular))
    wide = np.cumsum([0.0, 1.0, 2.0**33, 1.0])
    form, stored = narrow_coordinates(wide + 0.1)
    assert (form, stored.dtype) == ({}, np.float64)  # type: ignore[union-attr]
    small = np.array([5, 1, 200], "u1")
    assert narrow_coordinates(small)[0] == {}


@pytest.mark.parametrize(
    "values",
    [
        np.array([0.0, -0.0, 1.0, 2.0]),
        np.array([-1e308, 1e308, 1.5e308]),
        np.array([5e-324, 1e-323, 3.0]),
        np.array([2.0**53, 2.0**53 + 2, 2.0**53 + 6]),
        np.array([2**63 - 1, -(2**63), 0]),
        np.array([2**64 - 1, 0, 5], "u8"),
        np.array([1.0]),
        np.array(3.5),
        np.empty((0, 3)),
        np.empty((3, 0)),
    ],
)
def test_edges_of_the_number_line_come_back(values: np.ndarray) -> None:
    assert_same(again(*narrow_coordinates(values)), values)
    assert_same(again(*narrow_values(values)), values)


# ---- data


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(30, 50), (4, 25, 20), (3000,)])
def test_large_data_takes_fewer_bytes_than_it_has(dtype: str, shape: tuple[int, ...]) -> None:
    values = RNG.standard_normal(shape).astype(dtype)
    form, stored = narrow_values(values)
    assert size_of(form, stored) < 0.95 * values.nbytes
    assert_same(again(form, stored), values)
    turned = values.T  # not in the order of memory
    assert_same(again(*narrow_values(turned)), np.ascontiguousarray(turned))


def test_data_that_float32_holds_takes_half() -> None:
    values = RNG.standard_normal((40, 50)).astype("f4").astype("f8")
    form, stored = narrow_values(values)
    assert form["held"] == "<f4"
    assert size_of(form, stored) < 0.48 * values.nbytes
    assert_same(again(form, stored), values)
    values[3, 4] += 1e-12
    assert narrow_values(values)[0]["held"] == "<f8"


def test_exponents_that_are_not_alike_are_left_as_they_are() -> None:
    random = RNG.integers(0, 255, (2000, 4), dtype=np.uint8)
    random[:, 3] = RNG.permutation(np.arange(2000) % 256)
    values = np.nan_to_num(random.view("<f4")[:, 0], posinf=1, neginf=-1)
    form, stored = narrow_values(values)
    assert form == {}
    assert stored is not None
    assert_same(stored, values)


def test_texts_are_utf8() -> None:
    values = np.array(["a", "bé", "", "日本"])
    form, stored = narrow_coordinates(values)
    assert stored is not None
    assert stored.dtype == "S6"
    assert_same(again(form, stored), values)
    assert_same(again(*narrow_coordinates(np.asarray("one"))), np.asarray("one"))


# ---- damage

EVEN = {"dtype": "<f8", "start": 0.0, "step": 1.0, "parts": 1}
SPLIT, BYTES = narrow_values(RNG.standard_normal(1000))


@pytest.mark.parametrize(
    ("form", "stored", "message"),
    [
        ({**EVEN, "count": 2**24 + 1}, None, "equal steps are none, or too many"),
        ({**EVEN, "count": 0}, None, "too many"),
        ({**EVEN, "count": -5}, None, "too many"),
        ({**EVEN, "start": [0.0] * 3, "count": 2**23}, None, "too many"),
        ({**EVEN, "start": float("nan"), "count": 3}, None, "not finite"),
        ({**EVEN, "step": 1e308, "count": 9}, None, "not finite"),
        ({"dtype": "<f8"}, None, "stored in another form"),
        ({"dtype": "<U900"}, np.array([b"a"]), "stored in another form"),
        ({"dtype": "|O"}, np.ones(3), "has no form"),
        ({"dtype": "<U4"}, np.array([b"\xff\xff\xff\xff"]), "utf-8"),
        (SPLIT, BYTES[:-1], "are not those of shape"),
        ({**SPLIT, "shape": [10**6, 10**6]}, BYTES, "are not those of shape"),
        ({**SPLIT, "deflated": SPLIT["deflated"] - 1}, BYTES, "are not those of shape"),
        ({**SPLIT, "held": "<i8"}, BYTES, "are not those of shape"),
        (SPLIT, np.r_[np.uint8([7]), BYTES[1:]], "deflated bytes are damaged"),
        (SPLIT, np.r_[BYTES[: SPLIT["deflated"]], np.full(7000, 255, np.uint8)], ""),
    ],
)
def test_a_damaged_form_is_refused(
    form: dict[str, Any], stored: np.ndarray | None, message: str
) -> None:
    if not message:  # sign and exponent are whole, and so the numbers are finite
        assert np.isfinite(widen(form, stored)).all()
        return
    with pytest.raises(ValueError, match=message):
        widen(form, stored)


def test_split_numbers_that_are_not_finite_are_refused() -> None:
    top = np.frombuffer(zlib.compress(b"\x7f" * 1000), np.uint8)
    bad = np.concatenate([top, np.full(7000, 255, np.uint8)])
    with pytest.raises(ValueError, match="not finite"):
        widen({**SPLIT, "deflated": top.size}, bad)
    short = np.frombuffer(zlib.compress(b"\x3f" * 999), np.uint8)
    with pytest.raises(ValueError, match="1000 bytes were deflated, but not these"):
        widen({**SPLIT, "deflated": short.size}, np.concatenate([short, bad[-7000:]]))


@pytest.mark.parametrize("missing", ["dtype", "step", "parts", "count"])
def test_a_form_that_lacks_a_part_is_refused(missing: str) -> None:
    form = {**EVEN, "count": 3}
    del form[missing]
    with pytest.raises(KeyError):
        widen(form, None)


def test_arrays_that_are_too_long_are_not_made_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrowing, "_MOST_EVEN", 50)
    assert narrow_coordinates(np.arange(50.0))[1] is None
    assert narrow_coordinates(np.arange(51.0))[1] is not None


# ---- masks


@given(hnp.arrays(bool, hnp.array_shapes(max_dims=3, max_side=30)))
def test_masks_come_back(mask: np.ndarray) -> None:
    packed = pack_mask(mask)
    assert packed.size <= (mask.size + 7) // 8
    assert np.array_equal(unpack_mask(packed, mask.shape, "cells"), mask)


def test_masks_of_land_are_small_and_others_one_bit_per_cell() -> None:
    land = np.zeros((200, 300), bool)
    land[50:120, 30:80] = True
    assert pack_mask(land).size < 300
    scattered = RNG.random((200, 300)) < 0.5
    assert pack_mask(scattered).size == 7500
    for mask in (land, scattered):
        assert np.array_equal(unpack_mask(pack_mask(mask), mask.shape, "cells"), mask)


@pytest.mark.parametrize("shape", [(200, 299), (201, 300), (10**6, 10**6), (2, 3)])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_masks_of_another_grid_are_refused(shape: tuple[int, ...], share: float) -> None:
    packed = pack_mask(RNG.random((200, 300)) < share)
    with pytest.raises(ValueError, match=r"land cells do not fit the (grid|memory)"):
        unpack_mask(packed, shape, "land cells")


def test_a_mask_that_does_not_fit_the_memory_is_not_unfolded(monkeypatch):
    packed = pack_mask(np.zeros(1000, bool))
    monkeypatch.setattr("dkrls_cli.model.narrowing.available_bytes", lambda: 4000.0)
    assert unpack_mask(packed, (1000,), "cells").size == 1000
    monkeypatch.setattr("dkrls_cli.model.narrowing.available_bytes", lambda: 3999.0)
    with pytest.raises(ValueError, match="cells do not fit the memory: they are 1000"):
        unpack_mask(packed, (1000,), "cells")
