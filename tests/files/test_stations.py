"""Answers at stations and points as CF has them: what is written is what was given."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import xarray as xr

from dkrls_cli.errors import InputError, OutputError
from dkrls_cli.files import stations as module
from dkrls_cli.files.patching.members import whole_chunks
from dkrls_cli.files.stations import write_stations
from dkrls_cli.files.text.points import PointBlock, join_blocks, point_blocks
from dkrls_cli.grid.axes import Axis, axis_of, index_axis, text_axis
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.grid.style import Companion, Style

TIME = Axis(
    "time",
    np.arange(4.0),
    "float64",
    TimeScale("days since 2000-02-27", "360_day"),
    attrs={"bounds": "time_bnds", "axis": "T"},
)
LAT = axis_of("lat", [0.0, 90.0], {"units": "degrees_north", "axis": "Y", "long_name": "breadth"})
LON = axis_of("lon", np.arange(0.0, 360, 30), {"units": "degrees", "bounds": "lon_bnds"})
HEIGHT = axis_of("height", [2.0], {"units": "m", "positive": "up"})
TABLE = 'id,lat,lon,name,alt,rank\n7,1.5,-10,Øst,100,1\n008,2.5,350,"b, c",NA,2\n9,3,7,,20.5,3\n'
ATTRS = {"units": "K", "standard_name": "air_temperature", "cell_methods": "lat: lon: mean"}
ATTRS |= {"coordinates": "lat lon", "actual_range": np.array([1.0, 2.0]), "comment": "kept"}
STD = {"units": "K", "standard_name": "air_temperature standard_error"}
PLACE = ("latitude", "longitude")
VALUES = np.arange(12.0).reshape(3, 4)
STYLE = Style(
    "float32",
    -9e9,
    global_attrs={
        "title": "A model",
        "history": "long ago",
        "cdm_data_type": "Grid",
        "Conventions": "CF-1.0",
    },
)


def table(text: str, axes: list[Axis], spread: tuple[str, ...], folder: Path) -> PointBlock:
    path = folder / "table.csv"
    path.write_text(text, encoding="utf-8")
    return join_blocks(list(point_blocks(str(path), axes, 2, spread)))


def series(folder: Path, text: str = TABLE, name: str = "o.nc", **options: Any) -> xr.Dataset:
    """Write three stations at four times, and read them again with xarray."""
    stations = table(text, [TIME, LAT, LON, HEIGHT], ("time",), folder)
    values = options.pop("values", VALUES[: len(stations.cells)])
    variables = options.pop("variables", {"t": (values, ATTRS), "t_std": (values / 10, STD)})
    style = options.pop("style", STYLE)
    write_stations(
        str(folder / name), stations, [TIME], variables, style, ["dkrls", "predict"],
        overwrite=False, **options,
    )  # fmt: skip
    return xr.load_dataset(folder / name, decode_times=False, decode_coords=False)


def points(folder: Path, text: str) -> xr.Dataset:
    places = table(text, [TIME, LAT, LON], (), folder)
    variables = {"t": (np.arange(float(len(places.cells))), ATTRS)}
    write_stations(str(folder / "p.nc"), places, [], variables, STYLE, ["dkrls"], overwrite=False)
    return xr.load_dataset(folder / "p.nc", decode_times=False, decode_coords=False)


def checked(path: Path) -> str:
    """What compliance-checker finds, at its strictest."""
    found = shutil.which("compliance-checker") or "/nowhere"
    if not Path(found).exists():
        pytest.skip("compliance-checker is not installed")
    words = [found, "-t", "cf:1.8", "-c", "strict", str(path)]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout


# Time series --------------------------------------------------------------------------------------


def test_stations_are_time_series_of_cf(tmp_path: Path) -> None:
    out = series(tmp_path)
    assert out.attrs["featureType"] == "timeSeries"
    assert out.attrs["Conventions"] == "CF-1.8"
    assert out.t.dims == out.t_std.dims == ("time", "station")
    np.testing.assert_array_equal(out.t, VALUES.T)
    np.testing.assert_array_equal(out.t_std, (VALUES / 10).T.astype(np.float32))
    assert out.t.dtype == np.float32
    assert out.t.encoding["_FillValue"] == np.float32(-9e9)
    assert out.t.attrs["ancillary_variables"] == "t_std"
    assert set(out.t.attrs["coordinates"].split()) == {"lat", "lon", "height", "id", "alt"}
    assert out.t_std.attrs["coordinates"] == out.t.attrs["coordinates"]
    assert out.height.dims == ()  # the same for all
    assert {out[name].dims for name in ("lat", "lon", "id", "alt", "name", "rank")} == {
        ("station",)
    }


def test_coordinates_are_as_they_were_written_with_their_marks(tmp_path: Path) -> None:
    out = series(tmp_path)
    assert out.lon.values.tolist() == [-10, 350, 7]
    assert out.height.values == 2
    assert out.height.attrs == {"long_name": "height", "units": "m", "positive": "up"}
    assert out.lat.attrs == {
        "standard_name": "latitude",
        "units": "degrees_north",
        "long_name": "breadth",
    }
    assert out.lon.attrs == {"standard_name": "longitude", "units": "degrees_east"}
    assert out.time.values.tolist() == [0, 1, 2, 3]
    assert out.time.attrs == {
        "standard_name": "time",
        "units": "days since 2000-02-27",
        "calendar": "360_day",
    }


def test_a_coordinate_with_a_column_is_one_of_each_station(tmp_path: Path) -> None:
    out = series(tmp_path, "lat,lon,height\n1,2,2\n3,4,2.5\n")
    assert out.height.dims == ("station",)
    assert out.height.values.tolist() == [2, 2.5]


def test_time_grows_so_that_files_can_be_joined(tmp_path: Path) -> None:
    series(tmp_path)
    with netCDF4.Dataset(tmp_path / "o.nc") as file:
        assert file.dimensions["time"].isunlimited()
        assert not file.dimensions["station"].isunlimited()
        assert file["t"].chunking() == [4, 3]


def test_other_columns_are_kept_as_numbers_or_texts(tmp_path: Path) -> None:
    out = series(tmp_path)
    assert out.id.values.tolist() == ["7", "008", "9"]  # 008 is a name
    assert out.id.attrs["cf_role"] == "timeseries_id"
    assert out.name.values.tolist() == ["Øst", "b, c", ""]
    np.testing.assert_array_equal(out.alt, [100, np.nan, 20.5])
    assert out["rank"].values.tolist() == [1, 2, 3]
    assert out["rank"].dtype == np.int32  # CF 1.8 has no 64 bits
    assert out["rank"].attrs["long_name"] == "rank"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1", "-2"], np.array([1, -2], np.int32)),
        (["1", "999999999"], np.array([1, 999999999], np.int32)),
        (["1", "9999999999"], np.array([1.0, 9999999999.0])),
        (["1", "NA"], np.array([1, np.nan])),
        (["1e3", "2.5"], np.array([1000, 2.5])),
        (["01", "2"], np.array(["01", "2"])),
        (["-01", "2"], np.array(["-01", "2"])),
        (["0", "0.5"], np.array([0, 0.5])),
        (["a", "2"], np.array(["a", "2"])),
        (["", ""], np.array(["", ""])),
        ([], np.array([], "<U1")),
    ],
)
def test_a_column_is_numbers_where_all_cells_are(texts: list[str], expected: np.ndarray) -> None:
    found = module._parse_column(texts)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype.kind == expected.dtype.kind


def test_attributes_that_are_not_true_of_stations_are_left_out(tmp_path: Path) -> None:
    out = series(tmp_path)
    assert set(out.t.attrs) == {
        *("units", "standard_name", "comment", "ancillary_variables", "coordinates")
    }
    assert out.attrs["title"] == "A model"
    assert "cdm_data_type" not in out.attrs
    first, second = out.attrs["history"].splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT.*Z: dkrls predict \(dkrls .*\)", first)
    assert second == "long ago"


def test_without_names_and_titles_there_are_plain_ones(tmp_path: Path) -> None:
    out = series(tmp_path, style=Style(), variables={"t": (VALUES, {})})
    assert out.attrs["title"] == "t at 3 stations"
    assert out.t.attrs["long_name"] == "t"
    assert "ancillary_variables" not in out.t.attrs
    assert "_FillValue" not in out.t.encoding


def test_missing_answers_are_marked(tmp_path: Path) -> None:
    values = VALUES.copy()
    values[1, 2] = np.nan
    out = series(tmp_path, variables={"t": (values, ATTRS)})
    np.testing.assert_array_equal(out.t, values.T)
    out = series(tmp_path, name="q.nc", style=Style(), variables={"t": (values, ATTRS)})
    np.testing.assert_array_equal(out.t, values.T)
    assert np.isnan(out.t.encoding["_FillValue"])


def test_a_map_projection_and_scalars_are_kept(tmp_path: Path) -> None:
    companions = {
        "crs": Companion((), np.int32(0), {"grid_mapping_name": "x"}),
        "height": Companion((), np.float64(2.0), {"units": "m", "standard_name": "height"}),
        "month": Companion(("time",), np.arange(4), {}),
    }
    style = Style(grid_mapping="crs", companions=companions)
    out = series(tmp_path, style=style)
    assert (float(out.height), out.height.attrs["units"]) == (2.0, "m")
    assert "month" not in out
    assert out.t.attrs["grid_mapping"] == out.t_std.attrs["grid_mapping"] == "crs"
    assert out.crs.attrs["grid_mapping_name"] == "x"


# Identifiers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "rows", "expected", "values"),
    [
        ("name,ID", ["a,1", "b,2"], "ID", [1, 2]),
        ("name,id", ["a,1", "b,1"], "name", ["a", "b"]),  # an identifier is not there twice
        ("name,id", ["a,1", "b,"], "name", ["a", "b"]),  # nor missing
        ("id,Station", ["1,x", "2,y"], "Station", ["x", "y"]),
        ("id,station", ["1,x", "2,y"], "station_id", ["x", "y"]),
        ("note,zip", ["1,x", "2,y"], "station_id", [1, 2]),  # the rows are numbered
        ("station_id,zip", ["q,x", "q,y"], "station_id_", [1, 2]),
    ],
)
def test_stations_are_identified(
    tmp_path: Path, header: str, rows: list[str], expected: str, values: list[Any]
) -> None:
    text = f"lat,lon,{header}\n1,2,{rows[0]}\n3,4,{rows[1]}\n"
    out = series(tmp_path, text)
    marked = [name for name, v in out.variables.items() if "cf_role" in v.attrs]
    assert marked == [expected]
    assert out[expected].values.tolist() == values
    assert expected in out.t.attrs["coordinates"].split()


def test_labels_of_a_dimension_identify_stations(tmp_path: Path) -> None:
    axes = [text_axis("station", ["a", "b"]), TIME]
    text = "station,lat,longitude\nb,1,2\na,3,4\n"
    stations = table(text, axes, ("time",), tmp_path)
    write_stations(
        str(tmp_path / "o.nc"), stations, [TIME], {"t": (VALUES[:2], {})}, Style(), ["dkrls"],
        overwrite=False,
    )  # fmt: skip
    out = xr.load_dataset(tmp_path / "o.nc", decode_coords=False, decode_times=False)
    assert out.station_id.values.tolist() == ["b", "a"]
    assert out.station_id.attrs["cf_role"] == "timeseries_id"
    assert out.longitude.attrs["units"] == "degrees_east"  # a column that is no dimension
    assert out.attrs["featureType"] == "timeSeries"


def test_a_place_is_marked_once(tmp_path: Path) -> None:
    out = series(tmp_path, "id,lat,lon,latitude,Long,time_zone\na,1,2,9,8,7\nb,3,4,x,6,5\n")
    marked = [name for name, v in out.variables.items() if v.attrs.get("standard_name") in PLACE]
    assert sorted(marked) == ["lat", "lon"]
    assert out.Long.attrs == {"long_name": "Long", "coordinates": out.t.attrs["coordinates"]}


def test_stations_without_a_place_are_no_feature_of_cf(tmp_path: Path) -> None:
    stations = table("sensor\nb\na\n", [text_axis("sensor", ["a", "b"]), TIME], ("time",), tmp_path)
    write_stations(
        str(tmp_path / "o.nc"), stations, [TIME], {"t": (VALUES[:2], {})}, Style(), ["dkrls"],
        overwrite=False,
    )  # fmt: skip
    out = xr.load_dataset(tmp_path / "o.nc", decode_times=False)
    assert "featureType" not in out.attrs
    assert not any("cf_role" in v.attrs for v in out.variables.values())
    assert out.coords["sensor"].values.tolist() == ["b", "a"]


def test_stations_on_other_axes_are_no_time_series(tmp_path: Path) -> None:
    depth = index_axis("depth", 4)
    stations = table("lat,lon\n1,2\n", [LAT, LON, depth], ("depth",), tmp_path)
    write_stations(
        str(tmp_path / "o.nc"), stations, [depth], {"t": (VALUES[:1], {})}, Style(), ["dkrls"],
        overwrite=False,
    )  # fmt: skip
    out = xr.load_dataset(tmp_path / "o.nc")
    assert "featureType" not in out.attrs
    assert out.t.dims == ("station", "depth")
    assert "depth" not in out.coords


def test_time_comes_first_and_the_stations_before_other_axes(tmp_path: Path) -> None:
    depth = axis_of("depth", [1.0, 2.0], {"units": "m", "positive": "down"})
    stations = table(
        "lat,lon\n1,2\n3,4\n5,6\n", [LAT, LON, depth, TIME], ("depth", "time"), tmp_path
    )
    values = np.arange(24.0).reshape(3, 2, 4)
    write_stations(
        str(tmp_path / "o.nc"), stations, [depth, TIME], {"t": (values, {})}, Style(), ["dkrls"],
        overwrite=False,
    )  # fmt: skip
    out = xr.load_dataset(tmp_path / "o.nc", decode_times=False)
    assert out.t.dims == ("time", "station", "depth")
    np.testing.assert_array_equal(out.t.transpose("station", "depth", "time"), values)
    assert "featureType" not in out.attrs


def test_projected_places_are_places(tmp_path: Path) -> None:
    axes = [axis_of(n, [0.0, 1.0], {"standard_name": f"projection_{n}_coordinate"}) for n in "xy"]
    stations = table("x,y\n0,1\n", [*axes, TIME], ("time",), tmp_path)
    write_stations(
        str(tmp_path / "o.nc"), stations, [TIME], {"t": (VALUES[:1], {})}, Style(), ["dkrls"],
        overwrite=False,
    )  # fmt: skip
    assert xr.load_dataset(tmp_path / "o.nc").attrs["featureType"] == "timeSeries"


# Points -------------------------------------------------------------------------------------------


def test_points_have_their_own_times(tmp_path: Path) -> None:
    out = points(tmp_path, "id,lat,lon,time\na,1,2,2000-02-28\na,1,3,2000-02-30T12\n")
    assert out.attrs["featureType"] == "point"
    assert out.t.dims == ("obs",)
    assert out.time.dims == ("obs",)
    assert out.time.values.tolist() == [1, 3.5]
    assert out.time.attrs["calendar"] == "360_day"
    assert set(out.t.attrs["coordinates"].split()) == {"lat", "lon", "time"}
    assert out.id.values.tolist() == ["a", "a"]
    assert "cf_role" not in out.id.attrs


def test_points_without_a_time_are_no_feature_of_cf(tmp_path: Path) -> None:
    places = table("lat,lon\n1,2\n", [LAT, LON], (), tmp_path)
    write_stations(
        str(tmp_path / "o.nc"), places, [], {"t": (VALUES[0, :1], {})}, Style(), ["dkrls"],
        overwrite=False,
    )  # fmt: skip
    assert "featureType" not in xr.load_dataset(tmp_path / "o.nc").attrs


# Names --------------------------------------------------------------------------------------------


def test_titles_become_names_that_cf_allows(tmp_path: Path) -> None:
    text = "lat,lon,id,Höhe (m),2nd,obs,time?\n1,2,a,3,4,5,6\n3,4,b,5,6,7,8\n"
    out = series(tmp_path, text)
    found = {v.attrs.get("long_name"): name for name, v in out.variables.items()}
    assert found["Höhe (m)"] == "H_he__m_"
    assert found["2nd"] == "column_2nd"
    assert found["time?"] == "time_"


def test_two_titles_with_one_name_stay_apart(tmp_path: Path) -> None:
    out = series(tmp_path, "lat,lon,a b,a-b\n1,2,3,4\n")
    assert out["a_b"].values.tolist() == [3]
    assert out["a_b_"].values.tolist() == [4]


@pytest.mark.parametrize("title", ["t", "t_std"])
def test_a_column_may_not_have_the_name_of_an_answer(tmp_path: Path, title: str) -> None:
    with pytest.raises(InputError, match=f"a column '{title}' already"):
        series(tmp_path, f"lat,lon,{title}\n1,2,3\n")
    assert not (tmp_path / "o.nc").exists()


# Files --------------------------------------------------------------------------------------------


def test_a_store_holds_the_same(tmp_path: Path) -> None:
    series(tmp_path)
    stations = table(TABLE, [TIME, LAT, LON, HEIGHT], ("time",), tmp_path)
    variables = {"t": (VALUES, ATTRS), "t_std": (VALUES / 10, STD)}
    path = str(tmp_path / "o.zarr")
    write_stations(path + "/", stations, [TIME], variables, STYLE, ["dkrls"], overwrite=False)
    ours = xr.load_dataset(tmp_path / "o.nc")
    theirs = xr.load_dataset(path, engine="zarr")
    for name in ("id", "name"):
        theirs[name] = theirs[name].astype(object)
    xr.testing.assert_equal(ours, theirs)


def test_a_file_that_exists_is_kept_unless_it_may_be_replaced(tmp_path: Path) -> None:
    series(tmp_path)
    with pytest.raises(OutputError, match="exists already"):
        series(tmp_path)


def test_a_library_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **options: Any) -> None:
        raise ModuleNotFoundError(name="zarr")

    monkeypatch.setattr(xr.Dataset, "to_zarr", fail)
    with pytest.raises(InputError, match=r"needs zarr to be written: pip install"):
        series(tmp_path, name="o.zarr")


@pytest.mark.parametrize(
    ("shape", "chunks"),
    [
        ((4, 3), (4, 3)),
        ((2**17, 2), (2**16, 2)),
        ((5, 2**18), (1, 2**17)),
        ((3, 2**16), (2, 2**16)),
    ],
)
def test_chunks_hold_a_megabyte(shape: tuple[int, ...], chunks: tuple[int, ...]) -> None:
    assert whole_chunks(shape) == chunks


@pytest.mark.parametrize("kind", ["series", "points", "numbered", "plain"])
def test_compliance_checker_has_no_findings(tmp_path: Path, kind: str) -> None:
    if kind == "series":
        series(tmp_path)
    elif kind == "points":
        points(tmp_path, "id,lat,lon,time,note\na,1,2,2000-02-28,x\nb,1,3,2000-02-30T12,\n")
    elif kind == "numbered":
        series(tmp_path, "lat,lon,n\n1,2,3\n4,5,6\n")
    else:
        series(tmp_path, style=Style(), variables={"t": (VALUES, {"units": "K"})})
    told = checked(tmp_path / ("p.nc" if kind == "points" else "o.nc"))
    assert "All tests passed!" in told, told


@pytest.mark.skipif(sys.platform == "win32", reason="the tools are those of Unix")
@pytest.mark.parametrize("tool", ["ncdump", "cdo"])
def test_the_usual_tools_read_stations(tmp_path: Path, tool: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    series(tmp_path)
    words = {"ncdump": ["-v", "id"], "cdo": ["-s", "outputtab,value", "-selname,t"]}[tool]
    told = subprocess.run(
        [tool, *words, str(tmp_path / "o.nc")], capture_output=True, text=True, check=True
    ).stdout
    if tool == "ncdump":
        assert re.search(r'id =\s+"7",\s+"008",\s+"9"', told)
    else:
        found = [float(word) for word in told.split() if re.fullmatch(r"[\d.]+", word)]
        assert found == VALUES.T.ravel().tolist()
