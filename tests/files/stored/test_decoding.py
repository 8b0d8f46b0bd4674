"""Stored numbers are decoded as xarray does it, and its gaps are closed."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import xarray as xr

from dkrls_cli import open_grid
from dkrls_cli.files.reading import open_file
from dkrls_cli.files.stored import decoding
from dkrls_cli.files.stored.decoding import Decoder, float_type

PACKINGS: list[tuple[str, dict[str, Any]]] = [
    ("f4", {}),
    ("f8", {"_FillValue": 5.0}),
    ("f4", {"_FillValue": np.float32(0.1)}),
    ("f4", {"_FillValue": np.float32(2), "missing_value": np.array([3, 7], "i4")}),
    ("f4", {"_FillValue": np.float32(np.nan)}),
    (">f4", {"_FillValue": np.float32(3)}),
    ("f4", {"scale_factor": 0.5}),
    ("f8", {"scale_factor": np.float32(0.1), "add_offset": 3.0, "_FillValue": 4.0}),
    ("i1", {}),
    ("i1", {"_Unsigned": "true", "_FillValue": np.int8(-1), "scale_factor": np.float32(0.1)}),
    ("u1", {"_Unsigned": "false", "_FillValue": np.uint8(254)}),
    ("u1", {"_FillValue": np.uint8(7)}),
    ("i2", {"scale_factor": 0.1, "add_offset": 20.0, "_FillValue": np.int16(5)}),
    ("i2", {"scale_factor": np.float32(0.1), "add_offset": np.float32(20)}),
    (">i2", {"scale_factor": np.float32(0.01), "missing_value": np.int16(-7)}),
    ("u2", {"_FillValue": np.uint16(65535)}),
    ("i4", {"scale_factor": np.float32(0.1), "_FillValue": np.int32(3)}),
    ("i4", {}),
    ("i8", {"_FillValue": np.int64(4)}),
]


@pytest.mark.parametrize(("kind", "attrs"), PACKINGS)
def test_values_are_those_of_xarray(kind: str, attrs: dict[str, Any]) -> None:
    stored = np.arange(-10, 3 * decoding._BLOCK % 1000 + 990).astype(kind).reshape(4, -1)
    if kind == "f4":
        stored[1, :2] = 0.1, np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        variable = xr.Variable(("x", "y"), stored, dict(attrs))
        expected = xr.conventions.decode_cf_variable("v", variable, decode_times=False).values
    decoder = Decoder.of(stored.dtype, attrs)
    found = decoder.decode(stored.copy())
    assert found.dtype == decoder.dtype == float_type(expected.dtype)
    np.testing.assert_array_equal(found, expected.astype(found.dtype))


def test_blocks_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = np.arange(35, dtype="i4").reshape(5, 7)
    attrs = {"scale_factor": 0.5, "_FillValue": np.int32(11)}
    whole = Decoder.of(stored.dtype, attrs).decode(stored)
    assert np.flatnonzero(np.isnan(whole)).tolist() == [11]
    monkeypatch.setattr(decoding, "_BLOCK", 4)
    for kind in ("i2", "i4", "f4"):
        part = Decoder.of(np.dtype(kind), attrs).decode(stored.astype(kind))
        np.testing.assert_array_equal(part, whole)


def test_common_packings_need_no_xarray_but_for_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Decoder.of(np.dtype("f4"), {"_FillValue": np.float32(3)})
    packed = Decoder.of(np.dtype("i2"), {"scale_factor": 0.5, "_FillValue": np.int16(3)})
    monkeypatch.setattr(decoding, "_decode", None)
    values = np.arange(5, dtype="f4")
    assert np.shares_memory(plain.decode(values), values)
    np.testing.assert_array_equal(values, [0, 1, 2, np.nan, 4])
    np.testing.assert_array_equal(packed.decode(np.arange(5, dtype="i2"))[2:], [1, np.nan, 2])


@pytest.mark.parametrize(
    ("kind", "attrs", "missing"),
    [
        ("i2", {}, [-32767]),
        ("i2", {"_FillValue": np.int16(5)}, [5]),
        ("i4", {"scale_factor": 0.5, "add_offset": 2.0}, [-2147483647]),
        ("i2", {"missing_value": "7"}, [-32767, 7]),
        ("f4", {"missing_value": "7"}, [7]),
        ("i4", {"_FillValue": 7.5, "add_offset": 0.5}, [7]),
        ("i4", {"_FillValue": np.int32(5), "missing_value": 0.08, "scale_factor": 0.01}, [5, 8]),
        ("i4", {"_FillValue": np.float32(0.07), "scale_factor": np.float32(0.01)}, [7]),
        ("i4", {"missing_value": 7.4}, [-2147483647]),
        ("f4", {"missing_value": "none"}, []),
        ("f4", {"missing_value": 8 + 1e-9, "_FillValue": np.float32(5)}, [5, 8]),  # of more digits
        ("f4", {"missing_value": np.array([7 + 1e-9, 1e300]), "scale_factor": 0.5}, [7]),
    ],
)
def test_fill_values_that_xarray_leaves_are_masked(
    kind: str, attrs: dict[str, Any], missing: list[int]
) -> None:
    stored = np.array([-2147483647, -32767, 5, 7, 8]).astype(kind)
    found = Decoder.of(stored.dtype, attrs).decode(stored.copy())
    np.testing.assert_array_equal(np.isnan(found), np.isin(stored, missing))


@pytest.mark.parametrize(
    "attrs",
    [
        {"_Unsigned": "true", "missing_value": np.int8(-1)},
        {"_Unsigned": "true", "missing_value": np.array([-1, -56], "i1"), "scale_factor": 0.05},
        {"_Unsigned": "true", "_FillValue": np.int8(-3), "missing_value": np.int8(-1)},
        {"_Unsigned": "True", "missing_value": np.int8(7), "add_offset": np.float32(4)},
    ],
)
def test_bytes_that_stand_for_unsigned_ones_are_read_as_netcdf4_reads_them(
    tmp_path: Path, attrs: dict[str, Any]
) -> None:
    path, stored = tmp_path / "a.nc", np.arange(256).astype("u1").view("i1").reshape(2, 128)
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("y", 2)
        file.createDimension("x", 128)
        variable = file.createVariable("v", "i1", ("y", "x"), fill_value=attrs.get("_FillValue"))
        variable.set_auto_maskandscale(False)
        variable.setncatts({key: value for key, value in attrs.items() if key != "_FillValue"})
        variable[:] = stored
    with netCDF4.Dataset(path) as file:
        expected = np.ma.filled(file["v"][:].astype("f8"), np.nan)
    assert np.isnan(expected).any()
    np.testing.assert_allclose(Decoder.of(stored.dtype, attrs).decode(stored), expected)
    np.testing.assert_allclose(open_grid(path).values, expected)


def test_a_number_says_that_integers_are_unsigned_as_well(tmp_path: Path) -> None:
    stored = np.array([[-1, -2, -128], [0, 7, 127]], "i1")
    kept = {"_FillValue": np.int8(-1), "scale_factor": np.float32(0.5)}
    expected = np.array([[np.nan, 127.0, 64.0], [0.0, 3.5, 63.5]])
    for said in (np.int32(1), np.int8(1), "1"):
        found = Decoder.of(stored.dtype, {**kept, "_Unsigned": said}).decode(stored)
        np.testing.assert_array_equal(found, expected)
    path = tmp_path / "a.nc"
    attrs = {**kept, "_Unsigned": np.int32(1)}
    array = xr.DataArray(stored, {"y": [0.0, 1.0], "x": [0.0, 1.0, 2.0]}, ("y", "x"), attrs=attrs)
    array.to_dataset(name="v").to_netcdf(path)
    grid = open_file(str(path)).grid()
    np.testing.assert_array_equal(grid.values, expected)
    assert grid.style.packing is not None
    assert grid.style.packing.attrs["_Unsigned"] == "true"  # as all readers know it
    signed = Decoder.of(stored.dtype, {"_Unsigned": np.int32(0)}).decode(stored)
    np.testing.assert_array_equal(signed, stored)


def test_equal_variables_share_a_decoder_and_others_do_not() -> None:
    attrs = {"scale_factor": np.float32(0.5), "units": "K"}
    one = Decoder.of(np.dtype("i2"), attrs)
    assert Decoder.of(np.dtype("i2"), {**attrs, "units": "degC"}) is one
    for other in (np.float64(0.5), 0.5, np.float32(0.25)):
        assert Decoder.of(np.dtype("i2"), {"scale_factor": other}) is not one
    assert Decoder.of(np.dtype("u2"), attrs) is not one
    for scale in range(2, 3 * decoding._MOST_KEPT):
        Decoder.of(np.dtype("f4"), {"scale_factor": float(scale)})
    assert len(decoding._kept) <= decoding._MOST_KEPT


def test_rows_of_any_length_are_no_numbers(tmp_path: Path) -> None:
    rows = np.empty(2, object)
    rows[:] = [np.arange(1.0), np.arange(2.0)]
    with pytest.raises(ValueError, match="sequence"):
        Decoder.of(np.dtype("f8"), {}).decode(rows)


def test_attributes_are_those_that_netcdf_reads(tmp_path: Path) -> None:
    """The types of attributes decide the type of the values."""
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 5)
        variable = file.createVariable("v", "i2", ("x",), fill_value=-1)
        variable.set_auto_maskandscale(False)
        variable.setncatts({"scale_factor": np.float32(0.1), "add_offset": np.float32(2)})
        variable[:] = np.arange(-1, 4)
        attrs = {key: variable.getncattr(key) for key in variable.ncattrs()}
    found = Decoder.of(np.dtype("i2"), attrs).decode(np.arange(-1, 4).astype("i2"))
    with xr.open_dataset(path) as dataset:
        np.testing.assert_array_equal(found, dataset.v.values)
        assert found.dtype == dataset.v.dtype == np.float32


@pytest.mark.parametrize(("kind", "mark"), [("f4", -999.9), (">f4", 1e20), ("f8", np.float32(0.1))])
def test_marks_of_other_precision_than_the_numbers_mean_the_nearest_one(
    kind: str, mark: float
) -> None:
    """Such as a missing_value of 1e20 that was written in double precision beside float32."""
    near = np.nextafter(np.array(mark, kind), 0)
    stored = np.array([1, mark, str(mark), near], kind)
    found = Decoder.of(stored.dtype, {"missing_value": mark}).decode(stored.copy())
    np.testing.assert_array_equal(np.isnan(found), [False, True, True, False])
