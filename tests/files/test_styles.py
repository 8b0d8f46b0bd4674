"""The style of a variable: its types and marks, and the variables that stand beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sample_files as files
import xarray as xr
from sample_files import EAST, LAT, NORTH, RAW, grid, netcdf, packed

from dkrls_cli.files.packing import encode
from dkrls_cli.files.reading import open_file, open_source
from dkrls_cli.files.styles import coordinate_of, is_packed, marked_fills
from dkrls_cli.grid.style import Style

UP = {"units": "m", "standard_name": "height"}
DAYS = {"units": "days since 2000-01-01"}


def style(path: Path, var: str | None = None) -> Style:
    return open_file(str(path), var).style


# Types and marks ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "attrs", "expected"),
    [
        ("f4", {}, "float32"),
        ("f8", {}, "float64"),
        (">f4", {}, "float32"),
        ("i1", {}, "float32"),
        ("i2", {}, "float32"),
        ("u2", {"_FillValue": np.uint16(9)}, "float32"),
        ("i4", {}, "float64"),
        ("i4", {"_FillValue": np.int32(9)}, "float64"),
        ("i2", {"scale_factor": np.float32(0.5)}, "float32"),
        ("i2", {"scale_factor": np.float64(0.5)}, "float64"),
    ],
)
def test_the_floating_type_holds_the_stored_one(
    tmp_path: Path, dtype: str, attrs: Any, expected: str
) -> None:
    path = packed(tmp_path / "a.nc", (RAW // 100).astype(dtype), attrs)
    found = style(path)
    assert found.dtype == expected
    assert (found.packing is not None) == ("scale_factor" in attrs)


@pytest.mark.parametrize(
    ("attrs", "fill", "marks"),
    [
        ({}, None, None),
        ({"_FillValue": np.float32(-9)}, -9.0, ("_FillValue",)),
        ({"missing_value": np.float32(-9)}, -9.0, ("missing_value",)),
        (
            {"_FillValue": np.float32(-9), "missing_value": np.float32(-9)},
            -9.0,
            ("_FillValue", "missing_value"),
        ),
        # two that differ would make readers complain: the first marks all that is missing
        ({"_FillValue": np.float32(-9), "missing_value": np.float32(-8)}, -9.0, ("_FillValue",)),
        ({"missing_value": "-9"}, -9.0, ("missing_value",)),
        ({"missing_value": "none"}, None, None),
    ],
)
def test_marks_of_missing_values_are_those_of_the_file(
    tmp_path: Path, attrs: Any, fill: float | None, marks: Any
) -> None:
    found = style(packed(tmp_path / "a.nc", RAW.astype("f4"), attrs))
    assert found.fill == fill
    assert marks is None or found.marks == marks


def test_a_packing_is_kept_with_the_types_of_its_attributes(tmp_path: Path) -> None:
    attrs = {
        "scale_factor": np.float32(0.5),
        "add_offset": np.float64(3),
        "_FillValue": np.int16(-9),
        "missing_value": np.int16(-9),
        "valid_range": np.array([0, 9000], "i2"),
    }
    found = style(packed(tmp_path / "a.nc", RAW, {**attrs, "units": "K"}))
    assert found.packing is not None
    assert found.packing.dtype == "int16"
    assert found.packing.attrs.keys() == attrs.keys()
    for key, value in attrs.items():
        assert np.asarray(found.packing.attrs[key]).dtype == np.asarray(value).dtype
        np.testing.assert_array_equal(found.packing.attrs[key], value)
    assert found.fill is None
    big = style(packed(tmp_path / "b.nc", RAW.astype(">i2"), attrs))
    assert big.packing is not None
    assert big.packing.dtype == "int16"


@pytest.mark.parametrize(
    ("mark", "kept"),
    [(-9.99, [-999]), ("-999", [-999]), (-9.994, []), ("none", []), (-1e6, [])],
)
def test_missing_cells_are_written_as_integers_that_mark_them(
    tmp_path: Path, mark: Any, kept: list[int]
) -> None:
    raw = RAW.copy()
    raw.flat[3] = -999
    attrs = {"scale_factor": 0.01, "missing_value": mark}
    source = open_file(str(packed(tmp_path / "a.nc", raw, attrs)))
    assert source.style.packing is not None
    assert np.ravel(source.style.packing.marks).tolist() == kept
    values = source.grid().values
    assert np.isnan(values.flat[3]) == bool(kept)
    values.flat[3] = np.nan
    again = encode("a", values, {}, source.style)
    assert again.values.dtype == ("int16" if kept else "float64")
    assert not kept or again.values.flat[3] == -999


def test_unsigned_bytes_are_told_from_signed_ones(tmp_path: Path) -> None:
    found = style(files.WHOLE["packed_unsigned"](tmp_path)).packing
    assert found is not None
    assert (found.dtype, found.attrs["_Unsigned"]) == ("int8", "true")


def test_scaled_floats_are_not_packed(tmp_path: Path) -> None:
    assert style(packed(tmp_path / "a.nc", RAW.astype("f4"), {"scale_factor": 2.0})).packing is None


def test_dimensions_that_grow_are_known(tmp_path: Path) -> None:
    path = files.WHOLE["unlimited_time_with_bounds"](tmp_path)
    assert style(path).unlimited == ("time",)
    assert style(files.latlon(tmp_path / "a.nc")).unlimited == ()


# Beside the data ----------------------------------------------------------------------------------


def beside(folder: Path, named: str = "", **extra: Any) -> Path:
    attrs = {"coordinates": named} if named else {}
    axes = {"time": (np.arange(3.0), DAYS), "lat": (LAT, NORTH)}
    return grid(folder / "a.nc", axes, extra=extra, var_attrs=attrs)


def test_a_scalar_time_grows_instead_of_the_dimensions_behind_it(tmp_path: Path) -> None:
    when = {"time": ((), 3.0, DAYS)}
    axes = {"depth": (np.array([0.0, 5.0]), UP), "lat": (LAT, NORTH)}
    path = grid(tmp_path / "a.nc", axes, unlimited="depth", extra=when)
    assert open_file(str(path)).axes[0].name == "time"
    assert style(path).unlimited == ("time",)
    fixed = grid(tmp_path / "b.nc", axes, extra=when)
    assert style(fixed).unlimited == ()


def test_coordinates_that_a_variable_names_stand_beside_it(tmp_path: Path) -> None:
    extra = {
        "height": ((), np.float32(2), UP),
        "period": (("time",), np.array([6, 12, 18], "i4"), {"units": "hours"}),
        "other": ((), 3.0, {}),
        "station": (("lat",), np.array(["a", "b", "c", "d", "é"], object), {}),
        "depth": (("lat", "n"), np.zeros((5, 2)), {}),  # not on dimensions of the data
    }
    found = style(beside(tmp_path, "time height period station depth absent", **extra)).companions
    assert list(found) == ["height", "period", "station"]
    assert found["height"].values.dtype == np.float32
    assert found["height"].attrs == UP
    assert (found["period"].dims, found["period"].values.dtype) == (("time",), np.int32)
    assert found["station"].values.tolist() == ["a", "b", "c", "d", "é"]


def test_fields_of_places_need_no_name(tmp_path: Path) -> None:
    found = style(files.WHOLE["rotated_pole"](tmp_path))
    assert found.companions["lat"].dims == ("rlat", "rlon")
    assert found.companions["rotated_pole"].values.dtype == np.int32  # a character in the file
    assert found.grid_mapping == "rotated_pole"


def test_the_coordinate_of_a_bare_dimension_does_not_stand_beside_it(tmp_path: Path) -> None:
    path = files.WHOLE["latitude_beside_a_bare_dimension"](tmp_path)
    assert style(path).companions == {}


def test_large_fields_do_not_stand_beside_the_data(tmp_path: Path) -> None:
    dims = ("time", "lat", "x")
    axes = {"time": (np.arange(3.0), DAYS), "lat": (LAT, NORTH), "x": (np.arange(2.0), {})}
    extra = {"z": (dims, np.zeros((3, 5, 2)), {"units": "m"})}
    path = grid(tmp_path / "a.nc", axes, extra=extra, var_attrs={"coordinates": "z"})
    assert style(path, "t").companions == {}


def test_characters_stay_characters(tmp_path: Path) -> None:
    names = np.array([[b"a", b"b"], [b"c", b" "]])
    variables = {
        "x": (("x",), np.arange(2.0), {}),
        "name": (("x", "n"), names, {}),
        "t": (("x", "y"), np.ones((2, 3)), {"coordinates": "name"}),
    }
    found = style(netcdf(tmp_path / "a.nc", variables), "t").companions["name"]
    assert (found.values.dtype.kind, found.dims) == ("S", ("x",))


@pytest.mark.parametrize("key", ["bounds", "climatology"])
def test_bounds_belong_to_their_axis(tmp_path: Path, key: str) -> None:
    edges = np.stack([LAT - 1, LAT + 1], 1).astype("f4")
    axes = {"time": (np.arange(3.0), DAYS), "lat": (LAT, {**NORTH, key: "lat_edges"})}
    extra = {"lat_edges": (("lat", "nv"), edges, {})}
    found = style(grid(tmp_path / "a.nc", axes, extra=extra))
    assert found.bounds == {"lat": (key, "lat_edges")}
    companion = found.companions["lat_edges"]
    assert (companion.dims, companion.values.dtype) == (("lat", "nv"), np.float32)
    np.testing.assert_array_equal(companion.values, edges)


def test_bounds_of_other_dimensions_are_not_those_of_an_axis(tmp_path: Path) -> None:
    axes = {"time": (np.arange(3.0), DAYS), "lat": (LAT, {**NORTH, "bounds": "edges"})}
    assert style(grid(tmp_path / "a.nc", axes)).bounds == {}
    extra = {"edges": (("time", "nv"), np.zeros((3, 2)), {})}
    assert style(grid(tmp_path / "b.nc", axes, extra=extra), "t").bounds == {}


def test_a_projection_may_name_its_coordinates(tmp_path: Path) -> None:
    axes = {"y": (np.arange(3.0), {"units": "m"}), "x": (np.arange(4.0), {"units": "m"})}
    extra = {"crs": ((), np.int32(7), {"grid_mapping_name": "mercator"})}
    for text in ("crs: x y", "crs: x z"):
        path = grid(tmp_path / "a.nc", axes, extra=extra, var_attrs={"grid_mapping": text})
        found = style(path)
        assert found.companions["crs"].values == 7
        assert found.grid_mapping == (text if text.endswith("y") else "crs")
    path = grid(tmp_path / "b.nc", axes, var_attrs={"grid_mapping": "nowhere"})
    assert style(path).grid_mapping is None


def test_the_coordinates_of_the_file_are_known_also_those_left_out(tmp_path: Path) -> None:
    found = open_source([str(files.WHOLE["longitude_repeats_its_first"](tmp_path))]).style
    assert found.coordinates["lon"][-1] == found.coordinates["lon"][0] + 360


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_zarr_is_read_alike(tmp_path: Path) -> None:
    source = files.WHOLE["unlimited_time_with_bounds"](tmp_path)
    with xr.open_dataset(source, decode_times=False) as dataset:
        dataset.load().to_zarr(tmp_path / "a.zarr", zarr_format=2)
    first, second = style(source), style(tmp_path / "a.zarr")
    assert second.companions.keys() == first.companions.keys()
    for name, one in first.companions.items():
        np.testing.assert_array_equal(second.companions[name].values, one.values)
    assert (second.bounds, second.dtype) == (first.bounds, first.dtype)


def test_parts_of_a_style_are_found_in_the_encoding() -> None:
    array = xr.DataArray(np.zeros(2), dims="x")
    assert not is_packed(array)
    array.encoding = {"add_offset": 1.0, "_FillValue": -9, "missing_value": [-9, -8]}
    assert is_packed(array)
    assert marked_fills(array) == [-9.0, -8.0]
    dataset = xr.Dataset({"lat": ("x", [1.0, 2.0], NORTH), "lon": ("y", [1.0, 2.0], EAST)})
    assert coordinate_of(dataset, "x") == "lat"
    assert coordinate_of(dataset.rename(lat="y2"), "y") == "lon"
    both = dataset.assign(longitude=("y", [3.0, 4.0], EAST))
    assert coordinate_of(both, "y") is None
