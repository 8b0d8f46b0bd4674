"""Files people really have: each fits and predicts, or is refused in one clear line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import sample_files as files
import xarray as xr
from sample_files import EAST, LAT, LON, NORTH, asked_of, grid, latlon, netcdf, timed
from shell import dkrls, refusal

from dkrls_cli.errors import InputError
from dkrls_cli.files.reading import (
    has_variable,
    open_file,
    open_grid,
    open_slices,
    open_source,
    read_targets,
)

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


def test_files_of_different_precision_join_without_rounding(tmp_path: Path) -> None:
    values = [np.full((4, LAT.size), number) for number in (0.1, 0.3, 0.7)]
    time = [np.arange(4.0) + 4 * i for i in range(3)]
    attrs = {"units": "days since 2000-01-01"}
    paths = []
    for i, dtype in enumerate(("f4", "f8", "f4")):
        data = {"t": (("time", "lat"), values[i].astype(dtype), {})}
        axes = {"time": (("time",), time[i], attrs), "lat": (("lat",), LAT, NORTH)}
        paths.append(str(netcdf(tmp_path / f"p{i}.nc", {**axes, **data})))
    found = open_source(paths).grid().values
    expected = [values[0].astype("f4"), values[1], values[2].astype("f4")]
    np.testing.assert_array_equal(found, np.concatenate(expected))
    assert found.dtype == np.float64
    assert open_source(paths[::2]).grid().values.dtype == np.float32


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


def other_units(path: Path) -> Path:
    moved = part(path, np.arange(5, 9))
    with netCDF4.Dataset(moved, "r+") as dataset:
        dataset["t"].setncattr("units", "degF")
    return path


def other_units_of_latitudes(path: Path) -> Path:
    """The same numbers, which are other places."""
    moved = part(path, np.arange(5, 9))
    with netCDF4.Dataset(moved, "r+") as dataset:
        dataset["lat"].setncattr("units", "km")
    return path


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (other_units, "b.nc' are in 'degF', those of the first file in 'K'"),
        (
            other_units_of_latitudes,
            "b.nc' are in 'km', those of the first file in 'degrees_north'",
        ),
        (lambda path: part(path, [2, 3]), "Coordinate 2000-01-03 of 'time' is in more than one"),
        (other_latitudes, "has other coordinates of 'lat' than the first file"),
        (other_variable, "has s (time, lat), the first file has t (time, lat)"),
        (latlon, "has t (lat, lon), the first file has t (time, lat)"),
        (
            lambda path: timed(path, "days since 2001-01-01", "360_day"),
            "The files count 'time' by calendars standard and 360_day",
        ),
        (
            lambda path: timed(path, "fortnights since 2001-01-01", None),
            "of another kind there (fortnights since 2001-01-01) than here (days since 2000-01-01)",
        ),
    ],
)
def test_files_that_do_not_go_together_are_refused(
    tmp_path: Path, second: Any, reason: str
) -> None:
    first = part(tmp_path / "a.nc", [0, 1, 2])
    args = ["fit", first, second(tmp_path / "b.nc"), "-o", tmp_path / "m.npz"]
    assert reason in refusal(*args)


@pytest.mark.parametrize("lacking", [[0], [1], [1, 2]])
def test_files_without_units_are_taken_to_have_those_of_others(
    tmp_path: Path, lacking: list[int]
) -> None:
    paths = [part(tmp_path / f"{place}.nc", [2 * place, 2 * place + 1]) for place in range(3)]
    names = [str(path) for path in paths]
    assert len(open_source(names).notes) == 1
    for place in lacking:
        with netCDF4.Dataset(paths[place], "r+") as dataset:
            dataset["t"].delncattr("units")
    more = " nor in 1 more" if len(lacking) > 1 else ""
    note = f"'t' has no units in '{paths[lacking[0]]}'{more}: taken to be 'K', as in others"
    assert open_source(names).notes[1:] == [note]


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
    found = asked_of(theirs, own)
    assert {name: np.asarray(values).tolist() for name, values in found.items()} == {
        "time": [1.0],
        "depth": [7.0],
        "lat": LAT[1:3].tolist(),
        "lon": [-90.0, 90.0],
    }


@pytest.mark.parametrize(
    ("own", "theirs", "unused"),
    [
        ([("time", "days since 2000-01-01"), ("y", "")], ["time", "lat"], ("lat",)),
        ([("time", "days since 2000-01-01"), ("lat", "degrees_north")], ["time", "lat"], ()),
        ([("z", "m"), ("lat", "degrees_north")], ["time", "lat"], ()),  # no times here at all
        ([("z", "m"), ("lat", "degrees_north")], ["lat", "plev"], ("plev",)),
        ([("when", "hours since 2000-01-01"), ("lat", "degrees_north")], ["lat", "plev"], ()),
    ],
)
def test_coordinates_that_no_dimension_takes_are_told(
    tmp_path: Path, own: list[tuple[str, str]], theirs: list[str], unused: tuple[str, ...]
) -> None:
    units = {"time": "days since 2000-01-01", "lat": "degrees_north", "plev": "hPa"}
    path = grid(tmp_path / "b.nc", {name: (LAT, {"units": units[name]}) for name in theirs})
    here = {name: (LAT, {"units": text} if text else {}) for name, text in own}
    axes = open_source([str(grid(tmp_path / "a.nc", here))]).axes
    assert read_targets(str(path), [axes]).unused == unused


def test_a_target_on_other_dimensions_is_noted(tmp_path: Path) -> None:
    source = grid(tmp_path / "a.nc", {"y": (LAT, {}), "n": (LAT, {})})
    other = grid(tmp_path / "b.nc", {"lat": (LAT, NORTH), "n": (LAT[:2], {})})
    told = dkrls("regrid", source, "--like", other, "-o", tmp_path / "c.nc").stderr
    assert f"lat of '{other}' are coordinates of no dimension here, and are not used." in told


def test_a_file_without_any_of_the_dimensions_is_no_model_for_answers(tmp_path: Path) -> None:
    own = open_source([str(latlon(tmp_path / "a.nc"))]).axes
    other = files.WHOLE["one_dimension"](tmp_path)
    with pytest.raises(InputError, match="has no coordinate of the model's dimensions lat, lon"):
        asked_of(other, own)


@pytest.mark.parametrize("units", ["degrees_N", "degreeN", "degrees_north"])
def test_latitudes_of_another_file_are_found_in_any_spelling(tmp_path: Path, units: str) -> None:
    own = open_source([str(latlon(tmp_path / "a.nc"))]).axes
    theirs = {"y": (LAT[1:3], {"units": units}), "x": (LON[:2], {"units": "degreesE"})}
    found = asked_of(grid(tmp_path / "b.nc", theirs), own)
    assert found["lat"].tolist() == LAT[1:3].tolist()
    assert found["lon"].tolist() == LON[:2].tolist()


def test_answers_on_the_grid_of_another_file_use_its_latitudes(tmp_path: Path) -> None:
    dkrls("fit", latlon(tmp_path / "a.nc"), "-o", tmp_path / "m.npz")
    other = grid(tmp_path / "b.nc", {"phi": (np.array([0.0, 7.0]), {"units": "degrees_N"})})
    rows = dkrls("predict", tmp_path / "m.npz", "--like", other, "--at", "lon=0").stdout
    assert [row.split(",")[0] for row in rows.splitlines()[1:]] == ["0.0", "7.0"]


@pytest.mark.parametrize(
    ("name", "attrs", "size"),
    [
        ("y", {"units": "radian", "standard_name": "latitude"}, np.pi / 180),
        ("latitude", {"units": "rad"}, np.pi / 180),
        ("latitude", {"units": "degrees_south"}, -1.0),
    ],
)
def test_a_latitude_in_other_units_is_converted(
    tmp_path: Path, name: str, attrs: dict[str, str], size: float
) -> None:
    own = open_source([str(latlon(tmp_path / "a.nc"))]).axes
    other = grid(tmp_path / "b.nc", {name: (LAT * size, attrs), "x": (LON, EAST)})
    np.testing.assert_allclose(asked_of(other, own)["lat"], LAT)
    deep = grid(tmp_path / "c.nc", {"y": (LAT, {"units": "m"}), "x": (LON, EAST)})
    assert list(asked_of(deep, own)) == ["lon"]


def test_other_coordinates_are_found_by_their_standard_name_or_name(tmp_path: Path) -> None:
    deep = {"standard_name": "depth", "units": "m"}
    own = open_source([str(grid(tmp_path / "a.nc", {"z": (LAT, deep), "n": (LAT, {})}))]).axes
    other = grid(tmp_path / "b.nc", {"level": (LAT[:2], deep), "n": (LAT[:3], {})})
    found = asked_of(other, own)
    assert found["z"].tolist() == LAT[:2].tolist()
    assert found["n"].tolist() == LAT[:3].tolist()
    bare = grid(tmp_path / "c.nc", {"level": (LAT[:2], {}), "lat": (LAT, NORTH), "n": (LAT, {})})
    assert list(asked_of(bare, own)) == ["n"]


def test_coordinates_of_a_table_are_found(tmp_path: Path) -> None:
    own = open_source([str(files.WHOLE["long_table"](tmp_path))]).axes
    (tmp_path / "b.csv").write_text("station,time,w\nb,2020-01-03,1\na,2020-01-03,2\n")
    found = asked_of(tmp_path / "b.csv", own)
    assert found["station"] == ["b", "a"]
    assert own[0].at(found["time"]).texts == ["2020-01-03"]


def test_variables_of_a_dataset_are_known_by_name(tmp_path: Path) -> None:
    path = str(latlon(tmp_path / "a.nc"))
    assert has_variable([path], "t")
    assert not has_variable([path], "absent")
    assert not has_variable([path], "lat")
    assert not has_variable([str(files.WHOLE["long_table"](tmp_path))], "temp")


# One variable as an array -------------------------------------------------------------------------


def test_a_grid_is_opened_as_xarray_has_it(tmp_path: Path) -> None:
    path = files.WHOLE["four_dimensions"](tmp_path)
    found = open_grid(path)
    with xr.open_dataset(path) as dataset:
        expected = dataset.t.load()
    np.testing.assert_array_equal(found.values, expected.values)
    assert found.dims == expected.dims
    assert (found.name, found.attrs) == (expected.name, expected.attrs)
    for dim in found.dims:
        np.testing.assert_array_equal(found[dim].values, expected[dim].values)


def test_fills_are_masked_in_an_array(tmp_path: Path) -> None:
    packed = open_grid(files.REFUSED["missing_in_packed"][0](tmp_path))
    assert int(packed.isnull().sum()) == 2
    assert float(packed[0, 0]) == pytest.approx(files.RAW[0, 0] * 0.01 + 1)


def test_several_files_and_a_chosen_variable_are_an_array(tmp_path: Path) -> None:
    paths = [part(tmp_path / f"p{i}.nc", np.arange(4) + 4 * i) for i in range(2)]
    for given in (paths, [str(path) for path in paths], str(tmp_path / "p*.nc")):
        assert open_grid(given).time.size == 8
    two = files.REFUSED["two_variables"][0](tmp_path)
    assert open_grid(two, "s").name == "s"
    with pytest.raises(InputError, match="Choose one by its name"):
        open_grid(two)


def test_one_cell_is_no_grid(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,v\n1,2\n")
    with pytest.raises(InputError, match=r"'v' in '.*a.csv' is one cell. Expected a grid"):
        open_source([str(tmp_path / "a.csv")])
    assert open_file(str(tmp_path / "a.csv")).shape == (1,)


def test_new_slices_may_be_one(tmp_path: Path) -> None:
    path = str(part(tmp_path / "a.nc", [3]))
    one = open_slices([path], None, ("lat", "time"), "t")
    assert (one.shape, one.notes) == ((1, LAT.size), [])
    assert open_source([path]).shape == (1, LAT.size)
    more = str(part(tmp_path / "b.nc", [4, 5]))
    joined = open_slices([path, more], None, ("lat", "time"), "t")
    assert joined.axes[0].texts == ["2000-01-04", "2000-01-05", "2000-01-06"]
    assert joined.grid().values.shape == (3, LAT.size)


def test_the_likely_column_of_a_table_is_taken(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("time,site,v,w\n1,a,5,6\n1,b,7,8\n")
    path = str(tmp_path / "a.csv")
    assert open_slices([path], None, ("site", "time"), "v").grid().values.ravel().tolist() == [5, 7]
    assert open_slices([path], "w", ("site", "time"), "v").grid().values.ravel().tolist() == [6, 8]


def test_coordinates_twice_in_one_of_several_files_are_refused(tmp_path: Path) -> None:
    first, second = part(tmp_path / "a.nc", [0, 1]), part(tmp_path / "b.nc", [3, 2])
    assert open_source([str(first), str(second)]).axes[0].numbers.tolist() == [0, 1, 3, 2]
    again = part(tmp_path / "c.nc", [4, 0])
    with pytest.raises(InputError, match="2000-01-01 of 'time' is in more than one"):
        open_source([str(first), str(again)])


# Files that came from elsewhere, each with a twin made here ---------------------------------------


def shared(name: str) -> Path:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{path} is not here")
    return path


def check_360_days(path: Path, folder: Path, at: list[str], name: str) -> xr.DataArray:
    dkrls("fit", path, "-o", folder / "m.npz")
    words = [word for spec in at for word in ("--at", spec)]
    dkrls("predict", folder / "m.npz", *words, "-o", folder / "o.nc")
    answers = xr.load_dataset(folder / "o.nc")[name]
    assert answers.time.dt.calendar == "360_day"
    return answers


def test_a_climate_model_of_360_days(tmp_path: Path) -> None:
    at = ["time=1861-01-30:1861-07-30:1M", "latitude=30", "longitude=-100"]
    path = shared("E1_north_america.nc")
    answers = check_360_days(path, tmp_path, at, "air_temperature")
    assert answers.shape == (7, 1, 1)
    assert 250 < answers.min() < answers.max() < 320


def test_a_made_model_of_360_days(tmp_path: Path) -> None:
    path = timed(tmp_path / "a.nc", "days since 1861-01-01", "360_day", np.arange(0.0, 300, 15))
    answers = check_360_days(path, tmp_path, ["time=1861-01-30:1861-07-30:1M", "lat=30"], "t")
    assert answers.shape == (7, 1)
    assert {date.day for date in answers.time.values} == {30}


def check_missing(path: Path, folder: Path, var: str, choice: str, words: list[str]) -> None:
    assert choice in refusal("fit", path, "-o", folder / "m.npz")
    options = ("--var", var, "-o", folder / "m.npz", "--missing", "error")
    line = refusal("fit", path, *options)
    assert all(word in line for word in words)


def test_missing_cells_are_counted_and_located(tmp_path: Path) -> None:
    words = [
        "7116 of 32076 cells of 'tas' are missing",
        "the first at time=1999-01-31, latitude=33.0625, longitude=-79.3125",
    ]
    path = shared("bcsd_obs_1999.nc")
    check_missing(path, tmp_path, "tas", "2 variables to choose from: pr (", words)


def test_made_missing_cells_are_counted_and_located(tmp_path: Path) -> None:
    holes = files.field(LAT, LON)
    holes[2, 3] = holes[4, 1] = np.nan
    path = latlon(tmp_path / "a.nc", extra={"tas": (("lat", "lon"), holes, {})})
    words = ["2 of 40 cells of 'tas' are missing (5 %), the first at lat=0.0, lon=135.0"]
    check_missing(path, tmp_path, "tas", "2 variables to choose from: t (", words)


def test_profiles_of_the_atlantic(tmp_path: Path) -> None:
    path = shared("atlantic_profiles.nc")
    assert "variables to choose from" in refusal("fit", path, "-o", tmp_path / "m.npz")


def test_made_profiles(tmp_path: Path) -> None:
    shape, values = ("profile", "level"), files.field(range(4), range(5))
    variables = {name: (shape, values, {}) for name in ("temperature", "salinity", "pressure")}
    path = netcdf(tmp_path / "a.nc", variables)
    assert "3 variables to choose from" in refusal("fit", path, "-o", tmp_path / "m.npz")


def test_a_wide_table_of_months(tmp_path: Path) -> None:
    dkrls("fit", shared("elnino.csv"), "-o", tmp_path / "m.npz")
    row = dkrls("predict", tmp_path / "m.npz", "--at", "YEAR=1980.5", "--at", "column=JUN").stdout
    assert row.splitlines()[1].startswith("1980.5,JUN,2")


def test_a_made_wide_table_of_months(tmp_path: Path) -> None:
    dkrls("fit", files.WHOLE["wide_table"](tmp_path), "-o", tmp_path / "m.npz")
    row = dkrls("predict", tmp_path / "m.npz", "--at", "YEAR=2002.5", "--at", "column=FEB").stdout
    year, month, value = row.splitlines()[1].split(",")
    assert (year, month) == ("2002.5", "FEB")
    assert 4 < float(value) < 6


def test_a_table_without_header_is_refused(tmp_path: Path) -> None:
    path = shared("intel_lab_subsfin_14400x52.txt")
    line = refusal("fit", path, "-o", tmp_path / "m.npz")
    assert "which is no name. Expected a header" in line or "has one column" in line


def test_a_made_table_without_header_is_refused(tmp_path: Path) -> None:
    for separator, words in ((",", "which is no name. Expected a header"), (" ", "has one column")):
        rows = [separator.join(f"{i + 0.5 * j}" for j in range(3)) for i in range(4)]
        (tmp_path / "a.txt").write_text("\n".join(rows))
        assert words in refusal("fit", tmp_path / "a.txt", "-o", tmp_path / "m.npz")


def test_netcdf_in_a_pipe_or_under_the_name_of_a_table_is_refused(tmp_path: Path) -> None:
    source = latlon(tmp_path / "a.nc")
    line = refusal("fit", "-", "-o", tmp_path / "m.npz", stdin=source.read_bytes())
    assert "Standard input is a NetCDF file. Only tables are read from a pipe" in line
    source.rename(tmp_path / "a.csv")
    line = refusal("fit", tmp_path / "a.csv", "-o", tmp_path / "m.npz")
    assert "is a NetCDF file, whatever its name" in line
