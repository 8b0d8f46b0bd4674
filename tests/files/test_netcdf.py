"""A variable of a NetCDF file or Zarr store: chosen, labelled, unpacked, opened once."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sample_files as files
import xarray as xr
from sample_files import LAT, LON, NORTH, grid, latlon, netcdf
from shell import dkrls, refusal

from dkrls_cli.errors import InputError
from dkrls_cli.files.netcdf import open_dataset, open_xarray, read_axis, read_scalars
from dkrls_cli.files.reading import open_file, open_slices, open_source
from dkrls_cli.files.source import Source, kind_of


def test_var_is_needed_only_where_there_is_a_choice(tmp_path: Path) -> None:
    path = files.REFUSED["two_variables"][0](tmp_path)
    assert open_source([str(path)], "s").name == "s"
    with pytest.raises(InputError, match=r"no variable 'x'. It has t \(lat 5 x lon 8\), s"):
        open_source([str(path)], "x")


def test_a_variable_that_cannot_be_modelled_is_refused_by_name(tmp_path: Path) -> None:
    cov = files.REFUSED["dimension_twice"][0](tmp_path)
    assert "has a dimension twice: x, x" in refusal("fit", cov, "--var", "c", "--dry-run")
    names = files.WHOLE["names_beside_a_bare_dimension"](tmp_path)
    assert "Expected numbers" in refusal("fit", names, "--var", "station_name", "--dry-run")
    scalar = files.REFUSED["scalars_only"][0](tmp_path)
    assert "no dimension of more than one" in refusal("fit", scalar, "--var", "t", "--dry-run")


def test_a_latitude_can_be_modelled_if_asked_for(tmp_path: Path) -> None:
    path = files.WHOLE["projected_grid_with_latitudes"](tmp_path)
    dkrls("fit", path, "--var", "lat", "-o", tmp_path / "m.npz")


@pytest.mark.parametrize(
    ("name", "attrs", "is_place"),
    [
        ("nav_lon", {}, True),
        ("XLAT_M", {}, True),
        ("lat_rho", {"units": "degree_north"}, True),
        ("TLONG", {"units": "degrees"}, True),
        ("anything", {"units": "degrees_east"}, True),
        ("lat_heat_flux", {}, False),
        ("longwave", {}, False),
        ("lat", {"units": "W m-2"}, False),
        ("temperature", {"units": "degrees C"}, False),
    ],
)
def test_latitudes_and_longitudes_are_told_from_data(
    name: str, attrs: dict[str, str], is_place: bool, tmp_path: Path
) -> None:
    values = files.field(range(4), range(5))
    dims = ("j", "i")
    path = netcdf(tmp_path / "a.nc", {"v": (dims, values, {}), name: (dims, values, attrs)})
    line = refusal("fit", path, "--dry-run")
    assert ("is on a curvilinear grid" if is_place else "2 variables to choose from") in line


def test_what_never_was_written_is_missing_even_packed(tmp_path: Path) -> None:
    raw = files.RAW.copy()
    raw[0, 0] = -32767
    path = files.packed(tmp_path / "p.nc", raw, {"scale_factor": np.float32(0.01)})
    line = refusal("fit", path, "-o", tmp_path / "m.npz", "--missing", "error")
    assert "1 of 30 cells of 't' are missing" in line


def test_valid_range_of_packed_values_is_not_kept(tmp_path: Path) -> None:
    attrs = {"scale_factor": 0.01, "valid_range": np.array([0, 3000], "int16"), "units": "K"}
    path = files.packed(tmp_path / "p.nc", files.RAW, attrs)
    assert open_source([str(path)]).attrs == {"units": "K"}


def test_a_lock_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = latlon(tmp_path / "a.nc")

    def locked(*_: Any, **__: Any) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable", str(path))

    monkeypatch.setattr(xr, "open_dataset", locked)
    line = refusal("fit", path, "-o", tmp_path / "m.npz")
    assert "try again with HDF5_USE_FILE_LOCKING=FALSE" in line


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = files.WHOLE["zarr_store"](tmp_path)

    def absent(*_: Any, **__: Any) -> None:
        raise ModuleNotFoundError("No module named 'zarr'", name="zarr")

    monkeypatch.setattr(xr, "open_dataset", absent)
    assert "needs zarr to be read: pip install 'dkrls-cli[zarr]'" in refusal(
        "fit", path, "-o", tmp_path / "m.npz"
    )


@pytest.mark.skipif(sys.platform == "win32" or os.getuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    for path in (latlon(tmp_path / "a.nc"), files.WHOLE["long_table"](tmp_path)):
        path.chmod(0)
        assert "Permission denied" in refusal("fit", path, "-o", tmp_path / "m.npz")


# Every trait --------------------------------------------------------------------------------------

TABLES = ("long_table", "zipped_table", "wide_table")


@pytest.mark.parametrize("name", [name for name in files.WHOLE if name not in TABLES])
def test_values_are_those_of_xarray(name: str, tmp_path: Path) -> None:
    path = files.WHOLE[name](tmp_path)
    source = open_source([str(path)])
    found = source.grid()
    note = files.NOTES.get(name, "")
    if note.startswith(("answers are kept", "lon 360.0 repeats", "cell_methods tells of")):
        note = ""  # what the fit tells, not the file
    assert any(note in said for said in source.notes) if note else source.notes == []
    with open_xarray(str(path), kind_of(str(path))) as dataset:
        array = dataset[source.name]
        assert found.dims == array.dims
        np.testing.assert_array_equal(found.values, array.values)
        assert found.style.global_attrs == dataset.attrs
    assert found.values.dtype == source.dtype
    assert found.values.dtype.isnative


@pytest.mark.parametrize("name", files.REFUSED)
def test_what_cannot_be_used_is_refused(name: str, tmp_path: Path) -> None:
    build, reason = files.REFUSED[name]
    path = build(tmp_path)
    with pytest.raises(InputError) as caught:
        open_source([str(path)]).grid().refuse_missing()
    assert reason in str(caught.value)
    assert "--" not in str(caught.value)


# Choosing -----------------------------------------------------------------------------------------


def opened(path: Path, var: str | None = None, likely: str | None = None) -> Source:
    return open_dataset(str(path), "netcdf", var, lambda _: False, likely)


def test_a_likely_variable_is_taken_if_it_is_there(tmp_path: Path) -> None:
    path = files.REFUSED["two_variables"][0](tmp_path)
    assert opened(path, likely="s").name == "s"
    assert opened(path, "t", likely="s").name == "t"
    with pytest.raises(InputError, match="2 variables to choose from"):
        opened(path, likely="absent")
    with pytest.raises(InputError, match="2 variables to choose from"):
        opened(path, likely="lat")  # a coordinate is no likely variable


def test_the_variable_of_most_dimensions_is_chosen(tmp_path: Path) -> None:
    small = {"m": (("lat",), files.field(LAT), {})}
    path = latlon(tmp_path / "a.nc", extra=small)
    source = opened(path)
    assert source.name == "t"
    assert source.notes == ["variable t taken, the only one of most dimensions (not m)"]
    long = grid(tmp_path / "b.nc", {"lat": (LAT, NORTH)}, extra={"n": (("z", "lat"), [LAT], {})})
    assert opened(long).name == "n"  # of as many that count, the one of more dimensions


@pytest.mark.parametrize(
    ("name", "attrs", "pointer"),
    [
        ("lat_bnds", {}, {}),
        ("lat_Vertices", {}, {}),
        ("area", {}, {"cell_measures": "area: area"}),
        ("flag", {}, {"ancillary_variables": "flag"}),
        ("where", {"units": "degrees_N"}, {}),
        ("where", {"standard_name": "latitude", "units": "degrees"}, {}),
    ],
)
def test_variables_that_describe_others_are_not_chosen(
    tmp_path: Path, name: str, attrs: Any, pointer: Any
) -> None:
    described = {name: (("time", "lat"), files.field(range(3), LAT), attrs)}
    path = tmp_path / "a.nc"
    grid(
        path,
        {"time": (np.arange(3.0), {}), "lat": (LAT, NORTH)},
        extra=described,
        var_attrs=pointer,
    )
    assert opened(path).name == "t"


def test_a_long_list_of_variables_is_cut(tmp_path: Path) -> None:
    many = {f"v{i}": (("x",), np.arange(3.0), {}) for i in range(13)}
    with pytest.raises(InputError, match=r"13 variables .* v11 \(x 3\) and 1 more\. Choose"):
        opened(netcdf(tmp_path / "a.nc", many))
    many.popitem()
    with pytest.raises(InputError, match=r"12 variables .* v11 \(x 3\)\. Choose"):
        opened(netcdf(tmp_path / "b.nc", many))


@pytest.mark.parametrize("units", ["degrees_N", "degreesN", "degree_north"])
def test_curvilinear_grids_are_known_by_any_spelling(tmp_path: Path, units: str) -> None:
    values = files.field(range(4), range(5))
    place = {"where": (("j", "i"), values, {"units": units})}
    path = netcdf(tmp_path / "a.nc", {"v": (("j", "i"), values, {}), **place})
    with pytest.raises(InputError, match="curvilinear grid: 'where' varies along j and i"):
        opened(path)


@pytest.mark.parametrize(
    ("start", "attrs", "counts"),
    [
        (0, {}, True),
        (1, {}, True),
        (2, {}, False),
        (0, {"units": "1"}, True),
        (0, {"units": "m"}, False),
    ],
)
def test_indexes_of_a_curvilinear_grid_are_no_coordinates(
    tmp_path: Path, start: int, attrs: dict[str, str], counts: bool
) -> None:
    values = files.field(range(4), range(5))
    variables = {
        "j": (("j",), np.arange(4) + start, attrs),
        "i": (("i",), np.arange(5) + start, attrs),
        "v": (("j", "i"), values, {}),
        "nav_lat": (("j", "i"), values, {}),
    }
    path = netcdf(tmp_path / "a.nc", variables)
    if counts:
        with pytest.raises(InputError, match="curvilinear"):
            opened(path)
    else:
        assert opened(path, "v").shape == (4, 5)


def test_a_dimension_of_size_one_makes_no_grid_curvilinear(tmp_path: Path) -> None:
    values = files.field(range(1), range(5))
    variables = {"v": (("z", "y"), values, {}), "nav_lat": (("z", "y"), values, {})}
    assert opened(netcdf(tmp_path / "a.nc", variables), "v").shape == (1, 5)


# Axes ---------------------------------------------------------------------------------------------


def axis(path: Path, dim: str, notes: list[str] | None = None) -> Any:
    with open_xarray(str(path), "netcdf") as dataset:
        return read_axis(dataset, dim, [] if notes is None else notes)


def test_the_coordinate_beside_a_bare_dimension_is_used_if_it_is_the_only_one(
    tmp_path: Path,
) -> None:
    values = {"v": (("n",), LAT, {}), "where": (("n",), LAT, {"units": "degree_N"})}
    notes: list[str] = []
    assert axis(netcdf(tmp_path / "a.nc", values), "n", notes).numbers.tolist() == LAT.tolist()
    assert notes == ["dimension n has no coordinate: those of where are used"]
    values["when"] = (("n",), LAT, {"units": "days since 2000-01-01"})
    notes = []
    found = axis(netcdf(tmp_path / "b.nc", values), "n", notes)
    assert not found.has_coordinate
    assert notes == ["dimension n has no coordinate: its positions 0 to 4 are used"]


def test_times_that_cannot_be_dates_stay_numbers_and_this_is_noted(tmp_path: Path) -> None:
    for units, reason in {
        "fortnights since 2000-01-01": "are not '<unit> since <date>'",
        "days since yesterday": "cannot be read",
    }.items():
        path = files.timed(tmp_path / "a.nc", units, None)
        notes: list[str] = []
        found = axis(path, "time", notes)
        assert found.time is None
        assert found.units == units
        assert reason in notes[0]
        assert notes[0].endswith("its numbers are used as they are, not as dates")


def test_numbers_in_a_file_that_stand_alone_are_axes_of_one_coordinate(tmp_path: Path) -> None:
    extra = {
        "height": ((), 2.0, {"units": "m"}),
        "time": ((), 5.0, {"units": "days since 2000-01-01"}),
        "crs": ((), np.array("x"), {}),
    }
    path = latlon(tmp_path / "a.nc", extra=extra)
    with open_xarray(str(path), "netcdf") as dataset:
        found = {axis.name: axis.texts for axis in read_scalars(dataset)}
    assert found == {"height": ["2.0"], "time": ["2000-01-06"]}
    assert [axis.name for axis in opened(path, "t").scalars] == ["time"]


def test_dimensions_of_one_coordinate_stay(tmp_path: Path) -> None:
    path = grid(tmp_path / "a.nc", {"z": (np.array([7.0]), {}), "lat": (LAT, NORTH)})
    source = opened(path)
    assert source.shape == (1, LAT.size)
    assert source.axes[0].texts == ["7.0"]
    assert (source.scalars, source.notes) == ((), [])


@pytest.mark.parametrize(
    ("attrs", "raw", "missing"),
    [
        ({}, -32767, 1),
        ({"_FillValue": np.int16(5)}, -32767, 0),
        ({"scale_factor": 0.5, "add_offset": 2.0}, -32767, 1),
        ({"missing_value": "7"}, 7, 1),
        ({"missing_value": "7"}, 8, 0),
        ({"missing_value": "none"}, 7, 0),
    ],
)
def test_fill_values_that_xarray_leaves_are_masked(
    tmp_path: Path, attrs: Any, raw: int, missing: int
) -> None:
    values = files.RAW.copy()
    values[0, 0] = raw
    found = opened(files.packed(tmp_path / "a.nc", values, attrs)).grid()
    assert np.count_nonzero(~found.observed) == missing


def test_the_style_is_how_the_file_keeps_the_variable(tmp_path: Path) -> None:
    half = files.packed(tmp_path / "a.nc", files.RAW.astype("f4"), {"_FillValue": np.float32(-9)})
    style = opened(half).style
    assert (style.dtype, style.fill, style.grid_mapping) == ("float32", -9.0, None)
    packed_attrs = {"scale_factor": 0.5, "_FillValue": np.int16(-9)}
    style = opened(files.packed(tmp_path / "b.nc", files.RAW, packed_attrs)).style
    assert (style.dtype, style.fill) == ("float64", None)
    mapped = opened(files.WHOLE["projected_grid_with_latitudes"](tmp_path)).style
    assert mapped.grid_mapping == "crs"
    assert mapped.companions["crs"].attrs["grid_mapping_name"] == "lambert_conformal_conic"


# Months and years ---------------------------------------------------------------------------------


def test_calendar_months_are_told(tmp_path: Path) -> None:
    source = opened(files.timed(tmp_path / "a.nc", "months since 1960-01-01", None, np.arange(4.0)))
    assert source.notes == [
        "time: 'months since 1960-01-01' are taken as calendar months and years"
    ]
    assert source.axes[0].texts == ["1960-01-01", "1960-02-01", "1960-03-01", "1960-04-01"]
    even = opened(files.timed(tmp_path / "b.nc", "months since 1960-01-01", "360_day"))
    assert even.notes == []


def test_the_calendar_of_months_of_30_days_has_another_name_too(tmp_path: Path) -> None:
    times = np.arange(4.0) + 0.5
    source = opened(files.timed(tmp_path / "a.nc", "months since 1960-01-01", "360", times))
    assert source.notes == ["time: calendar '360' is taken as 360_day"]
    assert source.axes[0].texts == ["1960-01-16", "1960-02-16", "1960-03-16", "1960-04-16"]


def test_months_too_far_away_are_numbers(tmp_path: Path) -> None:
    path = files.timed(tmp_path / "a.nc", "months since 1960-01-01", None, np.arange(4) * 1e12)
    (note,) = opened(path).notes
    assert note.endswith("its numbers are used as they are, not as dates")


# Opened once --------------------------------------------------------------------------------------


@pytest.fixture
def datasets(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Paths that are opened, and closed."""
    seen: list[Any] = []
    really = xr.open_dataset

    def open_and_note(path: str, **options: Any) -> xr.Dataset:
        dataset = really(path, **options)
        seen.append(["open", dataset])
        close = dataset._close
        dataset.set_close(lambda: (seen.append(["close", dataset]), close()))
        return dataset

    monkeypatch.setattr(xr, "open_dataset", open_and_note)
    return seen


def steps(datasets: list[Any]) -> list[str]:
    return [step for step, _ in datasets]


def test_the_metadata_of_a_file_is_read_once_and_the_file_closed(
    tmp_path: Path, datasets: list[Any]
) -> None:
    source = open_source([str(latlon(tmp_path / "a.nc"))])
    assert steps(datasets) == ["open", "close"]
    first = source.grid().values
    np.testing.assert_array_equal(source.grid().values, first)
    assert source.read is not None
    np.testing.assert_array_equal(source.read([np.arange(n) for n in first.shape]), first)
    assert steps(datasets) == ["open", "close"]


def test_each_of_several_files_is_opened_once(tmp_path: Path, datasets: list[Any]) -> None:
    attrs = {"units": "days since 2000-01-01"}
    for i in range(3):
        times = np.arange(4.0) + 4 * i
        grid(tmp_path / f"{i}.nc", {"time": (times, attrs), "lat": (LAT, NORTH)})
    open_source([f"{tmp_path}/*.nc"]).grid()
    assert sorted(steps(datasets)) == ["close"] * 3 + ["open"] * 3


def test_new_slices_and_likely_variables_open_a_file_once(
    tmp_path: Path, datasets: list[Any]
) -> None:
    path = str(files.REFUSED["two_variables"][0](tmp_path))
    assert open_slices([path], None, ("lat", "lon"), "s").name == "s"
    assert open_source([path], likely="s").name == "s"
    assert steps(datasets).count("open") == 2


def test_a_file_that_is_refused_is_closed(tmp_path: Path, datasets: list[Any]) -> None:
    path = files.REFUSED["two_variables"][0](tmp_path)
    with pytest.raises(InputError):
        open_source([str(path)])
    assert steps(datasets) == ["open", "close"]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are not listed here")
def test_a_source_leaves_no_open_file_if_it_is_not_read_or_read_whole(tmp_path: Path) -> None:
    def is_open() -> bool:
        handles = Path("/proc/self/fd").iterdir()
        return any("latlon.nc" in os.readlink(handle) for handle in handles if handle.is_symlink())

    source = open_source([str(latlon(tmp_path / "latlon.nc"))])
    assert not is_open()
    source.load()
    assert not is_open()


def test_longitudes_are_those_of_the_table(tmp_path: Path) -> None:
    path = grid(tmp_path / "a.nc", {"y": (LAT, NORTH), "x": (LON, {"units": "degreesE"})})
    assert [axis.turn for axis in opened(path).axes] == [None, 360.0]


@pytest.mark.parametrize("kind", ["nc", "zarr"])
def test_a_file_that_declares_what_it_does_not_hold_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cells that were never written take no room: a few bytes may declare gigabytes."""
    path = tmp_path / f"a.{kind}"
    if kind == "nc":
        import netCDF4

        with netCDF4.Dataset(path, "w") as dataset:
            for name in "xy":
                dataset.createDimension(name, 3000)
            dataset.createVariable("v", "f8", ("x", "y"), chunksizes=(100, 100))
    else:
        import zarr

        group = zarr.open_group(path, mode="w", zarr_format=2)
        labels = {"_ARRAY_DIMENSIONS": ["x", "y"]}
        group.create_array("v", shape=(3000, 3000), dtype="f8", attributes=labels)
    line = refusal("fit", path, "-o", tmp_path / "m.npz")
    assert "declares 72000000 bytes of 'v': hardly any of it was written" in line
    monkeypatch.setattr("dkrls_cli.files.netcdf._ALWAYS_HELD", 72_000_000)
    assert "hardly" not in refusal("fit", path, "-o", tmp_path / "m.npz", "--missing", "error")


@pytest.mark.parametrize("ending", ["nc", "zarr"])
def test_parts_are_read_as_the_whole_is(tmp_path: Path, ending: str) -> None:
    """Packed numbers, marks of missing cells, a scalar time, and any ascending indices."""
    values = np.arange(40.0).reshape(5, 8)
    values[1, 2] = np.nan
    array = xr.Dataset(
        {"t": (("lat", "lon"), values)},
        {"lat": LAT, "lon": LON, "time": 3.0},
    )
    array.time.attrs["units"] = "days since 2000-01-01"
    packing = {"dtype": "i2", "scale_factor": 0.5, "_FillValue": np.int16(-1)}
    path = tmp_path / f"a.{ending}"
    if ending == "zarr":
        array.to_zarr(path, encoding={"t": packing}, zarr_format=2)
    else:
        array.to_netcdf(path, encoding={"t": packing})
    source = open_source([str(path)])
    assert source.read is not None
    rows = [[np.arange(5), np.arange(8)], [np.array([0, 1, 4]), np.array([2, 4, 6])]]
    rows += [[np.array([3]), np.array([1, 2, 5, 7])]]
    for own in rows:
        indices = [np.arange(1)] * (len(source.shape) - 2) + own
        part = source.read(indices)
        np.testing.assert_array_equal(part.squeeze(), values[np.ix_(*own)].squeeze())
        assert part.shape == tuple(each.size for each in indices)
    np.testing.assert_array_equal(source.grid().values.squeeze(), values)


@pytest.mark.parametrize("form", ["NETCDF4", "NETCDF3_CLASSIC", "contiguous", "zarr"])
def test_chunks_are_those_of_the_file(tmp_path: Path, form: str) -> None:
    data = xr.Dataset({"t": (("x", "y"), np.zeros((6, 8)))}, {"time": 3.0})
    data.time.attrs["units"] = "days since 2000-01-01"
    path = str(tmp_path / ("a.zarr" if form == "zarr" else "a.nc"))
    if form == "zarr":
        data.to_zarr(path, encoding={"t": {"chunks": (3, 4)}}, zarr_format=2)
    elif form == "NETCDF4":
        data.to_netcdf(path, encoding={"t": {"chunksizes": (3, 4)}})
    else:
        data.to_netcdf(path, format="NETCDF4" if form == "contiguous" else form)
    source = open_source([path])
    assert source.chunks == ((1, 3, 4) if form in ("NETCDF4", "zarr") else None)
    assert source.paths == (path,)


def test_coordinates_in_half_precision_are_written_in_single(tmp_path: Path) -> None:
    data = xr.DataArray([1.0, 2.0, 4.0], {"x": [0.5, 1.5, 2.5]}, name="a")
    data.to_zarr(tmp_path / "a.zarr", consolidated=False, encoding={"x": {"dtype": "f2"}})
    axis = open_file(str(tmp_path / "a.zarr")).axes[0]
    assert (axis.dtype, axis.stored.tolist()) == ("float32", [0.5, 1.5, 2.5])


@pytest.mark.parametrize(("fill", "told"), [(0.0, True), (np.nan, False), (-9.0, False)])
def test_zeros_that_a_store_has_for_missing_are_told(
    tmp_path: Path, fill: float, told: bool
) -> None:
    path, encoding = tmp_path / "a.zarr", {"a": {"_FillValue": fill}}
    data = xr.DataArray([1.0, 0.0, 4.0], {"x": [0.5, 1.5, 2.5]}, ("x",), "a")
    data.to_dataset().to_zarr(path, consolidated=False, encoding=encoding, zarr_format=2)
    source = open_file(str(path))
    assert any("'a' that hold 0, its fill value" in note for note in source.notes) == told
    assert np.isnan(source.grid().values[1]) == told
    if told:
        about = json.loads((path / "a" / ".zarray").read_text())
        (path / "a" / ".zarray").write_text(json.dumps({**about, "fill_value": None}))
        assert open_file(str(path)).grid().values[1] == 0.0
