"""Files people really have: each fits and predicts, or is refused in one clear line."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sample_files as files
import xarray as xr
from sample_files import EAST, LAT, LON, NORTH, grid, latlon, netcdf, timed
from shell import dkrls, refusal

from dkrls_cli.errors import InputError
from dkrls_cli.files.reading import open_source, read_coordinates

SHARED = Path(__file__).parents[3] / "shared" / "data"


def only(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("name", files.WHOLE)
def test_a_file_with_this_trait_fits_and_predicts(name: str, tmp_path: Path) -> None:
    path, model = files.WHOLE[name](tmp_path), tmp_path / "m.npz"
    said = dkrls("fit", path, "-o", model).stderr
    note = files.NOTES.get(name, "")
    assert note in said
    assert said.count("Note: ") == bool(note), said
    assert len(dkrls("predict", model).stdout.splitlines()) > 1


@pytest.mark.parametrize("name", files.REFUSED)
def test_a_file_with_this_trait_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    build, reason = files.REFUSED[name]
    path = build(tmp_path)
    before = only(tmp_path)
    assert reason in refusal("fit", path, "-o", tmp_path / "m.npz", "--missing", "error")
    assert only(tmp_path) == before


# Several files ------------------------------------------------------------------------------------


def part(path: Path, days: Any, units: str = "days since 2000-01-01", **options: Any) -> Path:
    attrs = {"units": units, "calendar": "standard"}
    return grid(path, {"time": (np.asarray(days, float), attrs), "lat": (LAT, NORTH)}, **options)


def test_files_join_along_time(tmp_path: Path) -> None:
    paths = [part(tmp_path / f"p{i}.nc", np.arange(4) + 4 * i) for i in range(3)]
    source = open_source([str(path) for path in paths])
    assert source.shape == (12, LAT.size)
    assert source.notes == ["3 files joined along time"]
    whole = xr.concat([xr.load_dataset(path).t for path in paths], "time")
    np.testing.assert_array_equal(source.grid().values, whole)


def test_a_quoted_pattern_joins_in_order_of_names(tmp_path: Path) -> None:
    for i in range(3):
        part(tmp_path / f"p{i}.nc", np.arange(4) + 4 * i)
    dkrls("fit", tmp_path / "p*.nc", "-o", tmp_path / "m.npz")
    rows = dkrls("predict", tmp_path / "m.npz", "--at", "lat=0").stdout.splitlines()
    assert [row.split(",")[0] for row in (rows[1], rows[-1])] == ["2000-01-01", "2000-01-12"]


def test_files_of_one_time_step_join(tmp_path: Path) -> None:
    paths = [str(part(tmp_path / f"p{i}.nc", [i])) for i in range(4)]
    assert open_source(paths).shape == (4, LAT.size)


@pytest.mark.parametrize("named", [True, False])
def test_files_with_a_scalar_time_join(tmp_path: Path, named: bool) -> None:
    paths = [
        str(
            latlon(
                tmp_path / f"p{i}.nc",
                extra={"time": ((), float(i), {"units": "days since 2000-01-01"})},
                var_attrs={"coordinates": "time"} if named else {},
            )
        )
        for i in range(4)
    ]
    source = open_source(paths)
    assert [axis.name for axis in source.axes] == ["time", "lat", "lon"]
    assert source.axes[0].texts == [f"2000-01-0{i}" for i in range(1, 5)]
    assert source.grid().values.shape == (4, LAT.size, LON.size)


def test_time_units_may_differ_from_file_to_file(tmp_path: Path) -> None:
    first = part(tmp_path / "a.nc", [0, 1, 2])
    second = part(tmp_path / "b.nc", [0, 24, 48], "hours since 2000-01-04")
    axis = open_source([str(first), str(second)]).axes[0]
    assert axis.texts == [f"2000-01-0{i}" for i in range(1, 7)]
    assert axis.units == "days since 2000-01-01"


def test_records_without_coordinates_go_on_counting(tmp_path: Path) -> None:
    paths = [
        str(grid(tmp_path / f"{i}.nc", {"lat": (LAT, NORTH), "run": (np.arange(3), None)}))
        for i in range(2)
    ]
    axis = open_source(paths, levels=["lat", "run"]).axes[1]
    assert axis.texts == ["0", "1", "2", "3", "4", "5"]


def test_a_level_of_one_coordinate_may_be_the_one_to_join(tmp_path: Path) -> None:
    paths = [
        str(grid(tmp_path / f"{i}.nc", {"z": (np.array([float(i)]), {}), "lat": (LAT, NORTH)}))
        for i in range(3)
    ]
    assert open_source(paths, levels=["lat", "z"]).shape == (3, LAT.size)


def other_latitudes(path: Path) -> Path:
    time = (np.arange(5.0, 9), {"units": "days since 2000-01-01"})
    return grid(path, {"time": time, "lat": (LAT + 1, NORTH)})


def other_variable(path: Path) -> Path:
    moved = part(path, np.arange(5, 9))
    with xr.open_dataset(moved, decode_times=False) as dataset:
        renamed = dataset.rename(t="s").load()
    renamed.to_netcdf(path)
    return path


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (lambda path: part(path, [2, 3]), "Coordinate 2000-01-03 of 'time' is in more than one"),
        (other_latitudes, "has other coordinates of 'lat' than the first file"),
        (other_variable, "has s (time, lat), the first file has t (time, lat)"),
        (latlon, "has t (lat, lon), the first file has t (time, lat)"),
        (
            lambda path: timed(path, "days since 2001-01-01", "360_day"),
            "The files count 'time' by calendars standard and 360_day",
        ),
        (
            lambda path: timed(path, "months since 2001-01-01", None),
            "The files count 'time' by calendars standard and none",
        ),
    ],
)
def test_files_that_do_not_go_together_are_refused(
    tmp_path: Path, second: Any, reason: str
) -> None:
    first = part(tmp_path / "a.nc", [0, 1, 2])
    args = ["fit", first, second(tmp_path / "b.nc"), "-o", tmp_path / "m.npz"]
    assert reason in refusal(*args)


def test_longitudes_and_labels_are_not_joined(tmp_path: Path) -> None:
    paths = [latlon(tmp_path / f"{i}.nc") for i in range(2)]
    assert "not along 'lon'" in refusal("fit", *paths, "-o", tmp_path / "m.npz")


def test_tables_join(tmp_path: Path) -> None:
    for year in (2000, 2001):
        rows = "".join(f"{year}-0{m}-01,{s},{m}\n" for m in range(1, 5) for s in "ab")
        (tmp_path / f"{year}.csv").write_text(f"time,site,t\n{rows}")
    source = open_source([str(tmp_path / "200?.csv")])
    assert [axis.size for axis in source.axes] == [8, 2]


# Details ------------------------------------------------------------------------------------------


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


def test_longitude_without_its_repeats(tmp_path: Path) -> None:
    lon = np.arange(-45.0, 405, 45)  # a halo of one column on either side
    source = open_source([str(grid(tmp_path / "h.nc", {"lat": (LAT, NORTH), "lon": (lon, EAST)}))])
    assert source.shape == (LAT.size, 8)
    assert source.notes == ["lon 315.0, 360.0 repeat earlier ones and are dropped"]
    np.testing.assert_array_equal(source.axes[1].plain, lon[:8])
    assert source.grid().values.shape == source.shape


def test_repeats_of_longitudes_in_single_precision_are_seen(tmp_path: Path) -> None:
    lon = np.append(np.arange(0.1, 360, 45), 360.1).astype("float32")
    path = grid(tmp_path / "f.nc", {"lat": (LAT, NORTH), "lon": (lon, EAST)})
    assert open_source([str(path)]).shape == (LAT.size, 8)


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


def test_coordinates_of_another_file_are_found_by_what_they_are(tmp_path: Path) -> None:
    own = open_source([str(files.WHOLE["four_dimensions"](tmp_path))]).axes
    theirs = grid(
        tmp_path / "other.nc",
        {
            "when": (np.array([24.0]), {"units": "hours since 2000-01-01"}),
            "y": (LAT[1:3], {"units": "degrees_north"}),
            "x": (np.array([-90.0, 90]), {"standard_name": "longitude", "units": "degrees"}),
        },
        extra={"depth": ((), 7.0, {})},
    )
    found = read_coordinates(str(theirs), own)
    assert {name: np.asarray(values).tolist() for name, values in found.items()} == {
        "time": [1.0],
        "depth": [7.0],
        "lat": LAT[1:3].tolist(),
        "lon": [-90.0, 90.0],
    }


def test_a_file_without_any_of_the_dimensions_is_no_model_for_answers(tmp_path: Path) -> None:
    own = open_source([str(latlon(tmp_path / "a.nc"))]).axes
    other = files.WHOLE["one_dimension"](tmp_path)
    with pytest.raises(InputError, match="has no coordinate of the model's dimensions lat, lon"):
        read_coordinates(str(other), own)


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


# Files that came from elsewhere -------------------------------------------------------------------


def shared(name: str) -> Path:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{path} is not here")
    return path


def test_a_climate_model_of_360_days(tmp_path: Path) -> None:
    path, out = shared("E1_north_america.nc"), tmp_path / "o.nc"
    dkrls("fit", path, "-o", tmp_path / "m.npz")
    at = ["--at", "time=1861-01-30:1861-07-30:1M", "--at", "latitude=30", "--at", "longitude=-100"]
    dkrls("predict", tmp_path / "m.npz", *at, "-o", out)
    answers = xr.load_dataset(out).air_temperature
    assert answers.time.dt.calendar == "360_day"
    assert answers.shape == (7, 1, 1)
    assert 250 < answers.min() < answers.max() < 320


def test_missing_cells_are_counted_and_located(tmp_path: Path) -> None:
    path = shared("bcsd_obs_1999.nc")
    assert "2 variables to choose from: pr (" in refusal("fit", path, "-o", tmp_path / "m.npz")
    words = ("--var", "tas", "-o", tmp_path / "m.npz", "--missing", "error")
    line = refusal("fit", path, *words)
    assert "7116 of 32076 cells of 'tas' are missing" in line
    assert "the first at time=1999-01-31, latitude=33.0625, longitude=-79.3125" in line


def test_profiles_of_the_atlantic(tmp_path: Path) -> None:
    path = shared("atlantic_profiles.nc")
    assert "variables to choose from" in refusal("fit", path, "-o", tmp_path / "m.npz")


def test_a_wide_table_of_months(tmp_path: Path) -> None:
    dkrls("fit", shared("elnino.csv"), "-o", tmp_path / "m.npz")
    row = dkrls("predict", tmp_path / "m.npz", "--at", "YEAR=1980.5", "--at", "column=JUN").stdout
    assert row.splitlines()[1].startswith("1980.5,JUN,2")


def test_a_table_without_header_is_refused(tmp_path: Path) -> None:
    path = shared("intel_lab_subsfin_14400x52.txt")
    line = refusal("fit", path, "-o", tmp_path / "m.npz")
    assert "which is no name. Expected a header" in line or "has one column" in line
