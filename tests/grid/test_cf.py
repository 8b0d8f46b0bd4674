"""One table says what a coordinate is, for axes, files and coordinates of other files alike."""

import numpy as np
import pytest

from dkrls_cli.errors import SettingError
from dkrls_cli.grid.axes import axis_of, is_latitude, is_longitude, text_axis
from dkrls_cli.grid.cf import (
    by_dimension,
    counts_time,
    find_axis,
    find_name,
    hierarchy_of,
    is_called,
    is_place,
    is_time,
    kilometres,
    marked_role,
    meaning_of,
    natural_cycles,
    natural_period,
    period_beside,
    place_of,
    role_of,
)

# The spellings of the CF conventions, sections 4.1 and 4.2, written out.
NORTH = ["degrees_north", "degree_north", "degree_N", "degrees_N", "degreeN", "degreesN"]
EAST = ["degrees_east", "degree_east", "degree_E", "degrees_E", "degreeE", "degreesE"]
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


@pytest.mark.parametrize("case", [str, str.lower, str.upper])
@pytest.mark.parametrize(
    ("role", "units"),
    [*(("latitude", units) for units in NORTH), *(("longitude", units) for units in EAST)],
)
def test_every_spelling_of_degrees_marks_its_role(role, units, case):
    attrs = {"units": case(units)}
    assert marked_role(attrs) == role_of("anything", attrs) == role
    assert is_place("anything", attrs)
    axis = axis_of("anything", [1.0, 2.0], attrs)
    assert (is_longitude(axis), is_latitude(axis)) == (role == "longitude", role == "latitude")


@pytest.mark.parametrize(
    ("attrs", "role"),
    [
        ({"standard_name": "latitude"}, "latitude"),
        ({"standard_name": "latitude", "units": "degrees"}, "latitude"),
        ({"standard_name": "Longitude", "units": "deg"}, "longitude"),
        ({"standard_name": "longitude", "units": "deg_east"}, "longitude"),
        ({"standard_name": "longitude", "units": "radian"}, None),
        ({"standard_name": "latitude", "units": "radian"}, None),
        ({"standard_name": "grid_longitude", "units": "degrees"}, None),
        ({"standard_name": "time"}, "time"),
        ({"standard_name": "time", "units": "day of year"}, "time"),
        ({"axis": "T"}, "time"),
        ({"axis": "t"}, "time"),
        ({"axis": "X"}, None),
        ({"axis": "Y", "units": "m"}, None),
        ({"axis": ""}, None),
        ({"units": "days since 2000-01-01"}, "time"),
        ({"units": "Months SINCE 1960-01-01"}, "time"),
        ({"units": "degrees north"}, "latitude"),
        ({"units": " degrees_north "}, "latitude"),
        ({"units": "degrees"}, None),
        ({"units": 1}, None),
        ({}, None),
    ],
)
def test_attributes_mark_a_role(attrs, role):
    assert marked_role(attrs) == role
    assert role_of("anything", attrs) == role


@pytest.mark.parametrize(
    ("name", "units", "role"),
    [
        ("lat", "", "latitude"),
        ("Latitude", "degrees", "latitude"),
        ("lons", "degree", "longitude"),
        ("long", "deg", "longitude"),
        ("time", "", "time"),
        ("time", "1", "time"),
        ("lat", "m", None),
        ("lon", "radians", None),
        ("lat", "degrees_east", "longitude"),
        ("nav_lat", "", None),
        ("x", "", None),
    ],
)
def test_a_name_counts_where_attributes_say_nothing_else(name, units, role):
    assert role_of(name, {"units": units} if units else {}) == role


@pytest.mark.parametrize(
    ("name", "attrs", "expected"),
    [
        ("nav_lon", {}, True),
        ("XLAT_M", {}, True),
        ("TLONG", {"units": "degrees"}, True),
        ("lat_rho", {"units": "radians"}, True),
        ("lon2", {}, True),
        ("latitude", {"units": "degrees"}, True),
        ("anything", {"units": "degrees_N"}, True),
        ("anything", {"standard_name": "longitude"}, True),
        ("lat", {"units": "W m-2"}, False),
        ("nav_lat", {"units": "m"}, False),
        ("lat_heat_flux", {}, False),
        ("longwave", {}, False),
        ("temperature", {"units": "degrees C"}, False),
        ("time", {"units": "days since 2000-01-01"}, False),
    ],
)
def test_places_are_told_from_data(name, attrs, expected):
    assert is_place(name, attrs) == expected


def test_units_count_time_from_a_date():
    assert counts_time({"units": "hours since 1900-01-01"})
    assert not counts_time({"units": "sincerity"})
    assert not counts_time({})


@pytest.mark.parametrize(
    "axis",
    [
        axis_of("t", np.array(["2020-01-01", "2020-01-02"], "datetime64[D]")),
        axis_of("Time", [1.0, 2]),
        axis_of("t", [1.0, 2], {"axis": "T"}),
        axis_of("t", [1.0, 2], {"standard_name": "time"}),
        axis_of("t", [1.0, 2], {"units": "months since 1960-01-01"}),
    ],
)
def test_time_is_the_last_level_whatever_marks_it(axis):
    x, y = axis_of("x", [1.0, 2]), axis_of("y", [1.0, 2], {"axis": "Y"})
    assert is_time(axis)
    assert not is_time(x)
    assert hierarchy_of([axis, x, y], None) == ("x", "y", axis.name)


def test_levels_name_every_dimension_once():
    axes = [axis_of("x", [1.0, 2]), axis_of("y", [1.0, 2])]
    assert hierarchy_of(axes, ["y", "x"]) == ("y", "x")
    for levels in (["x"], ["x", "x"], ["x", "y", "z"], ["x", "z"]):
        with pytest.raises(SettingError, match=r"are not the dimensions of the data, x, y"):
            hierarchy_of(axes, levels)


DEGREES_EAST = {"units": "degrees_east"}


@pytest.mark.parametrize(
    ("axis", "period"),
    [
        (axis_of("lon", np.arange(0.0, 360, 10), DEGREES_EAST), 360.0),
        (axis_of("lon", np.arange(-180.0, 180, 2.5), DEGREES_EAST), 360.0),
        (axis_of("lon", np.arange(0.0, 346, 10), DEGREES_EAST), 360.0),
        (axis_of("lon", np.arange(0.0, 331, 10), DEGREES_EAST), None),
        (axis_of("lon", np.append(np.arange(0.0, 331, 10), 331.0), DEGREES_EAST), 360.0),
        (axis_of("lon", np.delete(np.arange(0.0, 360, 10), [5, 6]), DEGREES_EAST), 360.0),
        (axis_of("lon", np.delete(np.arange(0.0, 360, 10), range(5, 20)), DEGREES_EAST), 360.0),
        (axis_of("lon", np.delete(np.arange(0.0, 331, 10), range(5, 20)), DEGREES_EAST), None),
        (axis_of("lon", np.delete(np.arange(0.0, 341, 10), range(5, 20)), DEGREES_EAST), 360.0),
        (axis_of("lon", np.delete(np.arange(0.0, 360, 10), range(5, 30)), DEGREES_EAST), None),
        (axis_of("lon", np.arange(-180.0, 181, 10), DEGREES_EAST), None),
        (axis_of("lon", np.arange(0.0, 350, 45), DEGREES_EAST), 360.0),
        (axis_of("x", np.arange(0.0, 360, 10)), None),
        (axis_of("month", np.arange(1, 13)), 12.0),
        (axis_of("Month_of_Year", np.arange(1, 13)), 12.0),
        (axis_of("month", np.arange(1, 7)), None),
        (axis_of("hour", np.arange(0, 24, 3)), 24.0),
        (axis_of("hour", np.arange(0, 25)), None),
        (axis_of("dayofyear", np.arange(1, 366)), 365.25),
        (text_axis("column", MONTHS), 12.0),
        (text_axis("column", [month.upper() + "." for month in MONTHS]), 12.0),
        (text_axis("column", MONTHS[::-1]), None),
        (text_axis("month", MONTHS[:11]), None),
        (axis_of("lon", [0.0, 180.0], DEGREES_EAST), None),
        (axis_of("lon", [0.0, 120.0, 240.0], DEGREES_EAST), 360.0),
        (axis_of("month", np.arange("2020-01", "2021-01", dtype="datetime64[M]")), None),
    ],
)
def test_a_circle_is_found_where_the_coordinates_close_it(axis, period):
    assert natural_period(axis) == period


def times(start, stop, step):
    return axis_of("t", np.arange(np.datetime64(start), np.datetime64(stop), step))


MONTH = axis_of("month", np.arange(1, 13))
HOUR = axis_of("hour", np.arange(0, 24, 3))
LON = axis_of("lon", np.arange(0.0, 360, 10), DEGREES_EAST)
YEARS, DATES = axis_of("YEAR", np.arange(1950, 2011)), times("2001-01-01", "2001-02-01", 1)


@pytest.mark.parametrize(
    ("axis", "others", "period"),
    [
        (MONTH, [], 12.0),
        (MONTH, [LON, HOUR], 12.0),
        (MONTH, [LON, YEARS], None),
        (MONTH, [DATES], None),
        (MONTH, [YEARS.take([3])], 12.0),
        (text_axis("column", MONTHS), [YEARS], None),
        (HOUR, [DATES], None),
        (HOUR, [MONTH], 24.0),
        (LON, [YEARS, DATES], 360.0),
    ],
)
def test_months_and_hours_beside_years_or_dates_go_on_in_the_next(axis, others, period):
    assert period_beside(axis, [*others, axis]) == period
    assert period_beside(axis, [axis, *others]) == period


@pytest.mark.parametrize(
    ("axis", "cycles"),
    [
        (times("2001-01", "2004-01", np.timedelta64(1, "M")), ["year"]),
        (times("2001-01", "2002-06", np.timedelta64(1, "M")), []),
        (times("2001", "2041", np.timedelta64(1, "Y")), []),
        (times("2001-01-01", "2001-03-01", np.timedelta64(6, "h")), ["day"]),
        (times("2001-01-01", "2001-03-01", np.timedelta64(7, "h")), []),
        (times("2001-01-01T00", "2001-01-03T01", np.timedelta64(1, "h")), ["day"]),
        (times("2001-01-01T00", "2001-01-03T00", np.timedelta64(1, "h")), []),
        (times("2001-01-01T00", "2003-12-31T00", np.timedelta64(6, "h")), ["day", "year"]),
        (axis_of("t", np.arange(900.0)), []),
        (times("2001-01-01", "2001-01-03", np.timedelta64(1, "D")), []),
    ],
)
def test_days_and_years_are_cycles_where_times_resolve_them(axis, cycles):
    assert natural_cycles(axis) == tuple(getattr(axis.time, cycle) for cycle in cycles)


# Places -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "attrs", "place"),
    [
        ("lat", {}, "latitude"),
        ("x", {"units": "degrees_east"}, "longitude"),
        ("rlat", {"standard_name": "grid_latitude", "units": "degrees"}, "latitude"),
        ("rlon", {"standard_name": "grid_longitude", "units": "degrees"}, "longitude"),
        ("a", {"axis": "Z"}, "vertical"),
        ("a", {"axis": "z"}, "vertical"),
        ("a", {"positive": "Down"}, "vertical"),
        ("a", {"positive": "up"}, "vertical"),
        ("a", {"positive": "yes"}, None),
        ("a", {"units": "hPa"}, "vertical"),
        ("a", {"units": "millibar"}, "vertical"),
        ("a", {"units": "dbar"}, "vertical"),
        ("a", {"units": "Pa"}, "vertical"),
        ("a", {"units": "m"}, None),
        ("a", {"units": "days"}, None),
        ("a", {"standard_name": "depth"}, "vertical"),
        ("a", {"standard_name": "height_above_mean_sea_level"}, "vertical"),
        ("a", {"standard_name": "depth_below_geoid"}, "vertical"),
        ("a", {"standard_name": "air_pressure"}, "vertical"),
        ("a", {"standard_name": "atmosphere_hybrid_sigma_pressure_coordinate"}, "vertical"),
        ("a", {"standard_name": "ocean_s_coordinate_g2"}, "vertical"),
        ("a", {"standard_name": "sea_surface_height"}, None),
        ("a", {"standard_name": "forecast_period"}, None),
        ("depth", {}, "vertical"),
        ("Level", {}, "vertical"),
        ("plev", {}, "vertical"),
        ("deptht", {}, "vertical"),
        ("z", {"axis": "Y"}, None),
        ("levelling", {}, None),
        ("a", {"standard_name": "projection_x_coordinate", "units": "rad"}, "projection"),
        ("a", {"standard_name": "projection_y_coordinate", "units": "m"}, "projection"),
        ("a", {"standard_name": "projection_x_angular_coordinate"}, "projection"),
        ("a", {"axis": "X", "units": "km"}, "projection"),
        ("a", {"axis": "y", "units": "meters"}, "projection"),
        ("a", {"axis": "X", "units": "1"}, None),
        ("a", {"axis": "X"}, None),
        ("x", {}, None),
        ("time", {}, None),
        ("a", {"axis": "T", "positive": "up"}, None),
        ("member", {}, None),
        ("month", {}, None),
    ],
)
def test_places_are_told_from_other_dimensions(name, attrs, place):
    assert place_of(axis_of(name, [1.0, 2.0], attrs)) == place
    assert place_of(axis_of(name, [1.0], attrs)) == place


def test_dates_and_labels_are_no_places():
    assert place_of(axis_of("depth", np.array(["2001-01-01", "2001-01-02"], "M8[D]"))) is None
    assert place_of(text_axis("level", ["low", "high"])) is None
    assert place_of(text_axis("lat", ["south", "north"])) is None


def test_the_vertical_has_no_role_in_which_axes_stand_for_one_another():
    assert role_of("depth", {"axis": "Z", "standard_name": "depth"}) is None
    assert role_of("x", {"standard_name": "projection_x_coordinate", "units": "m"}) is None


@pytest.mark.parametrize(
    ("units", "length"),
    [("m", 1e-3), ("Kilometers", 1.0), ("km", 1.0), ("degrees", None), ("", None)],
)
def test_lengths_are_measured_in_kilometres(units, length):
    assert kilometres(axis_of("x", [0.0, 1.0], {"units": units})) == length


# Names as users write them

DATES = axis_of("day", np.array(["2020-01-01", "2020-01-02"], "datetime64[D]"))
LATITUDE = axis_of("nav", [0.0, 1.0], {"units": "degrees_north"})
PRESSURE = axis_of("plev", [1.0, 2.0], {"standard_name": "air_pressure", "units": "Pa"})
RADIANS = axis_of("lats", [0.0, 1.0], {"units": "radian", "standard_name": "latitude"})
PLAIN = axis_of("x", [0.0, 1.0])


@pytest.mark.parametrize(
    ("name", "axis"),
    [
        ("nav", LATITUDE),
        ("lat", LATITUDE),
        ("Latitude", LATITUDE),
        ("time", DATES),
        ("TIME", DATES),
        ("day", DATES),
        ("air_pressure", PRESSURE),
        ("x", PLAIN),
    ],
)
def test_an_axis_is_found_by_its_name_its_role_or_its_standard_name(name, axis):
    axes = [PLAIN, LATITUDE, DATES, PRESSURE, RADIANS]
    assert find_axis(name, axes) is axis
    assert is_called(axis, name)
    assert by_dimension({name: 3}, axes) == {axis.name: 3}


def test_an_exact_name_wins():
    lat, latitude = axis_of("lat", [0.0, 1.0]), axis_of("latitude", [0.0, 1.0])
    assert find_axis("lat", [latitude, lat]) is lat
    assert find_axis("latitude", [latitude, lat]) is latitude
    odd = axis_of("time", ["a", "b"])
    assert find_axis("time", [DATES, odd]) is odd


def test_a_name_of_two_axes_is_refused():
    with pytest.raises(SettingError, match=r"'latitudes' to set can mean nav and lat here"):
        find_axis("latitudes", [LATITUDE, axis_of("lat", [0.0, 1.0])], purpose=" to set")


@pytest.mark.parametrize("name", ["", "lon", "longitude", "depth", "radian"])
def test_a_name_of_no_axis_is_refused(name):
    with pytest.raises(SettingError, match=f"no dimension '{name}'. The model has x, nav, lats"):
        find_axis(name, [PLAIN, LATITUDE, RADIANS], "model")


def test_a_latitude_in_radians_is_none():
    assert meaning_of(RADIANS) == ""
    with pytest.raises(SettingError, match=r"no dimension 'latitude'"):
        find_axis("latitude", [RADIANS, PLAIN])


def test_two_names_of_one_axis_are_refused():
    with pytest.raises(SettingError, match=r"Dimension 'nav' of it was given twice"):
        by_dimension({"lat": 1, "latitude": 2}, [LATITUDE], purpose=" of it")


def test_a_column_is_found_for_an_axis():
    assert find_name(LATITUDE, ["id", "lat", "lon"]) == "lat"
    assert find_name(LATITUDE, ["lat", "nav"]) == "nav"
    assert find_name(LATITUDE, ["lat", "latitude"]) is None
    assert find_name(PLAIN, ["lat", "lon"]) is None
    assert find_name(DATES, ["time", "v"]) == "time"


def test_levels_may_be_named_by_role():
    assert hierarchy_of([PLAIN, LATITUDE, DATES], ["time", "x", "lat"]) == ("day", "x", "nav")
    with pytest.raises(SettingError, match=r"Name each of them once. Did you mean 'nav'"):
        hierarchy_of([PLAIN, LATITUDE], ["x", "nv"])
    with pytest.raises(SettingError, match=r"Name each of them once"):
        hierarchy_of([PLAIN, LATITUDE], ["lat", "latitude"])


def test_a_dimension_of_one_coordinate_comes_first_unless_it_is_time():
    x, z, time = axis_of("x", [1.0, 2]), axis_of("z", [1.0]), axis_of("time", [3.0])
    assert hierarchy_of([x, z, time], None) == ("z", "x", "time")
    assert hierarchy_of([time, x, z], ["time", "x"]) == ("z", "time", "x")
