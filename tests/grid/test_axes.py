from datetime import datetime

import cftime
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.circle import nearest
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.axes import (
    Axis,
    axis_of,
    calendar_of,
    convert_cells,
    convert_coordinates,
    index_axis,
    is_latitude,
    is_longitude,
    list_some,
    number_axis,
    refuse_places,
    text_axis,
)
from dkrls_cli.grid.calendars import TimeScale

KINDS = {
    "float64": np.array([0.25, 3.5, -1.0]),
    "float32": np.array([0.1, 0.2, 0.3], np.float32),
    "int16": np.array([10, 5, 1], np.int16),
    "datetime64": np.array(["2001-02-03", "2001-02-04T06", "2001-02-09"], "datetime64[ns]"),
    "cftime": np.array([cftime.datetime(2000, 2, d, calendar="360_day") for d in (1, 29, 30)]),
    "text": np.array(["north", "south", "a b"]),
    "bytes": np.array([b"north ", b"south", b"x"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_coordinates_come_back_in_their_own_terms(kind):
    values = KINDS[kind]
    axis = axis_of("d", values)
    decoded = axis.values
    if kind == "bytes":
        assert decoded.tolist() == ["north", "south", "x"]
    else:
        np.testing.assert_array_equal(decoded, values)
        assert decoded.dtype.kind == values.dtype.kind


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_read_back_as_the_same_coordinates(kind):
    axis = axis_of("d", KINDS[kind])
    np.testing.assert_array_equal(axis.encode(axis.texts), axis.numbers)


def test_a_decimal_finds_the_float32_coordinate_it_means():
    axis = axis_of("lat", KINDS["float32"])
    assert axis.encode(0.1) == axis.numbers[0]
    assert axis.encode(0.15) == 0.15


def test_new_coordinates_keep_the_stored_type_only_where_it_holds_them():
    axis = axis_of("level", KINDS["int16"])
    assert axis.at([7.0]).values.dtype == np.int16
    assert axis.at([7.5]).values.dtype == np.float64


def test_python_dates_are_dates():
    axis = axis_of("time", [datetime(2020, 1, 1), datetime(2020, 1, 2)])
    assert axis.encode("2020-01-01T12:00") == axis.numbers.mean()


def test_unknown_labels_are_named_with_those_there_are():
    axis = text_axis("station", ["a", "b", "c", "d", "e"])
    with pytest.raises(SettingError, match=r"no 'z'.*a, b, c, d, \.\.\. \(5 in all\)"):
        axis.encode(["a", "z"])


def test_what_is_no_number_is_refused_by_name():
    with pytest.raises(SettingError, match="'north' is not a number"):
        axis_of("lat", [1.0, 2.0]).encode("north")


@pytest.mark.parametrize(
    "values", [np.zeros((2, 2)), np.array([1j, 2j]), np.array([{}, []], object)]
)
def test_coordinates_that_are_none_are_refused(values):
    with pytest.raises(InputError, match="'d'"):
        axis_of("d", values)


def test_a_dimension_without_coordinates_counts_from_zero():
    axis = index_axis("x", 3)
    assert axis.numbers.tolist() == [0, 1, 2]
    assert not axis.has_coordinate


LON = {"units": "degrees_east"}


def test_a_longitude_by_name_alone_needs_two_coordinates():
    assert not is_longitude(axis_of("lon", [5.0]))
    assert is_longitude(axis_of("lon", [5.0, 6.0]))
    assert is_longitude(axis_of("x", [5.0], {"units": "degrees_E"}))
    assert axis_of("x", [5.0], {"units": "degrees_E"}).turn == 360
    assert is_latitude(axis_of("lat", [5.0]))
    assert not is_latitude(axis_of("lat", [5.0], {"units": "m"}))


@pytest.mark.parametrize(
    ("name", "attrs", "far"),
    [
        ("lat", {}, 90.1),
        ("y", {"units": "degrees_north"}, -999.0),
        ("lon", {}, -721.0),
        ("x", {"standard_name": "longitude"}, 1e20),
    ],
)
def test_places_that_are_on_no_globe_are_refused(name, attrs, far):
    with pytest.raises(InputError, match=f"'{name}' has .*, which is no l"):
        refuse_places(axis_of(name, [0.0, 1.0, far], attrs))


def test_places_on_the_globe_and_other_numbers_are_left_alone():
    refuse_places(axis_of("lat", [-90.0005, 90.0]))
    refuse_places(axis_of("lon", [-720.0, 0.0, 720.0]))
    refuse_places(axis_of("lat", [0.0, 5000.0], {"units": "m"}))
    refuse_places(axis_of("x", [0.0, 1e9]))
    refuse_places(index_axis("lat", 200))
    refuse_places(text_axis("lat", [str(n) for n in range(200)]))


@pytest.mark.parametrize(
    ("plain", "numbers"),
    [
        ([350.0, 355.0, 0.0, 5.0], [-10.0, -5.0, 0.0, 5.0]),
        ([0.5, 325.5, 340.5, 355.5], [0.5, -34.5, -19.5, -4.5]),
        ([170.0, 175.0, 180.0, -175.0, -170.0], [170.0, 175.0, 180.0, 185.0, 190.0]),
        ([-60.0, -30.0, 0.0, 20.0], [-60.0, -30.0, 0.0, 20.0]),
        ([0.0, 90.0, 180.0, 270.0], [0.0, 90.0, 180.0, 270.0]),
        ([20.0, 330.0, 340.0], [20.0, -30.0, -20.0]),
        ([0.0, 100.0, 280.0, 350.0], [0.0, 100.0, 280.0, 350.0]),
        ([0.0, 100.0, 281.0, 350.0], [0.0, 100.0, -79.0, -10.0]),
        ([0.0, 45.0, 320.0 - 150.0, 320.0], [0.0, 45.0, 170.0, 320.0]),
    ],
)
def test_longitude_is_laid_out_without_a_jump(plain, numbers):
    axis = axis_of("x", plain, LON)
    spread = np.subtract.outer(axis.numbers, axis.numbers)
    np.testing.assert_array_equal(spread, np.subtract.outer(numbers, numbers))
    np.testing.assert_array_equal(axis.values, plain)


def test_longitude_is_asked_for_in_any_convention_and_written_as_asked():
    axis = axis_of("lon", [350.0, 355.0, 0.0, 5.0], LON)
    asked = axis.at([-7.5, 352.5, 2.0, 362.0])
    assert asked.numbers.tolist() == pytest.approx(
        [axis.numbers[0] + 2.5, axis.numbers[0] + 2.5, axis.numbers[2] + 2, axis.numbers[2] + 2]
    )
    assert asked.values.tolist() == [-7.5, 352.5, 2.0, 362.0]


@pytest.mark.parametrize("units", ["m", "degrees_north", "radians"])
def test_what_is_not_degrees_of_longitude_has_no_turn(units):
    assert axis_of("lon", [350.0, 0.0, 10.0], {"units": units}).turn is None


def test_decimals_find_float32_coordinates_that_were_added_up():
    axis = axis_of("lat", np.arange(0, 2, 0.1, dtype=np.float32))
    np.testing.assert_array_equal(axis.encode(np.round(axis.numbers, 1)), axis.numbers)
    assert axis.encode(0.1001) == 0.1001


# Turns of longitude -------------------------------------------------------------------------------


def distance_to(axis, number):
    """How far a number lies from the range of an axis."""
    low, high = axis.numbers.min(), axis.numbers.max()
    return max(low - number, number - high, 0.0)


@given(
    start=st.integers(-180, 180),
    width=st.integers(2, 300),
    asked=st.lists(st.floats(-1000, 1000), min_size=1, max_size=5),
)
def test_longitudes_are_moved_to_the_nearest_turn(start, width, asked):
    axis = axis_of("x", np.linspace(start, start + width, 30), LON)
    found = axis.unwrap(np.array(asked))
    turns = (found - asked) / 360
    np.testing.assert_allclose(turns, np.round(turns), atol=1e-9)
    for number in found:
        others = [distance_to(axis, number + turn) for turn in (-360.0, 360.0)]
        assert distance_to(axis, number) <= min(others) + 1e-9


@pytest.mark.parametrize(
    ("asked", "number"),
    [(29.0, 29.0), (210.0, 210.0), (211.0, -149.0), (-1.0, -1.0), (350.0, -10.0), (369.0, 9.0)],
)
def test_between_two_turns_the_nearer_one_is_taken(asked, number):
    axis = axis_of("x", np.arange(0.0, 61, 10), LON)
    assert axis.encode(asked).tolist() == [number]
    assert axis.at(asked).plain.tolist() == [asked]


def test_a_line_is_not_unwrapped():
    axis = axis_of("x", [0.0, 10.0])
    assert axis.encode(-350.0).tolist() == [-350.0]
    assert axis.at(370.0).written is None


def test_a_ring_of_longitudes_that_is_whole_stays_as_it_is():
    ring = np.arange(0.0, 360, 30)
    assert axis_of("lon", ring, LON).numbers.tolist() == ring.tolist()
    rolled = np.roll(ring, 5)
    assert axis_of("lon", rolled, LON).numbers.tolist() == rolled.tolist()


def test_longitudes_that_are_not_finite_have_no_turn():
    assert axis_of("lon", [0.0, np.nan], LON).turn is None


def test_some_longitudes_keep_their_convention():
    axis = axis_of("lon", [350.0, 355.0, 0.0, 5.0], LON)
    part = axis.take([2, 0])
    assert part.plain.tolist() == [0.0, 350.0]
    assert np.ptp(part.numbers) == 10


# Single precision ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("off", "snaps"), [(3e-5, True), (5e-5, False), (-3e-5, True)])
def test_single_precision_is_believed_to_four_units_in_the_last_place(off, snaps):
    axis = axis_of("x", np.array([0.0, 50.0, 100.0], np.float32))  # 4 eps 100 = 4.8e-5
    expected = 50.0 if snaps else 50.0 + off
    assert axis.encode(50.0 + off).tolist() == [expected]
    assert axis_of("x", [0.0, 50.0, 100.0]).encode(50.0 + off).tolist() == [50.0 + off]


def test_close_coordinates_are_not_mixed_up():
    axis = axis_of("x", np.array([1000.0, 1000.0001, 1000.0002], np.float32))
    step = float(np.diff(axis.numbers).min())
    assert axis.encode(1000.0 + 0.4 * step).tolist() == [1000.0 + 0.4 * step]
    assert axis.encode(1000.0 + 0.0005 * step).tolist() == [1000.0]


def test_the_nearer_of_two_coordinates_is_meant():
    axis = axis_of("x", np.array([0.1, 0.2, 0.3, 0.4], np.float32))
    np.testing.assert_array_equal(axis.encode([0.4, 0.1, 0.3, 0.2]), axis.numbers[[3, 0, 2, 1]])


def test_one_coordinate_in_single_precision_is_no_scale_to_go_by():
    axis = axis_of("x", np.array([0.1], np.float32))
    assert axis.encode(0.1).tolist() == [0.1]


@pytest.mark.parametrize(
    ("own", "given", "found"),
    [
        ([0.1, 0.2, 0.3], [0.3, 0.1, 0.15], [0.3, 0.1, np.float32(0.15)]),
        ([0.1, 0.2, 0.3], [0.3, 0.5], [0.3, 0.5]),
        ([350.1, 350.4, 350.7], [-9.9, 710.7, -9.3], [350.1, 350.7, 350.7]),  # turns away
    ],
)
def test_coordinates_given_in_single_precision_are_those_they_mean(own, given, found):
    axis = axis_of("lon", own, LON)
    given = np.array(given, np.float32)
    asked = axis.at(given)
    np.testing.assert_array_equal(asked.numbers, found)
    np.testing.assert_array_equal(asked.values, given)  # as they were written
    np.testing.assert_array_equal(axis.encode(given), found)
    wide = given.astype(np.float64)
    assert not np.isin(axis.encode(wide), own).any()
    np.testing.assert_array_equal(axis.encode(wide, single=True), found)
    like = convert_coordinates(axis_of("x", given, LON), axis)
    np.testing.assert_array_equal(axis.encode(like), found)


@pytest.mark.parametrize("units", ["days since 2000-01-01", "hours since 1900-01-01"])
def test_times_in_single_precision_are_those_of_another_epoch(units):
    days, scale = 40 + np.arange(9) / 3, TimeScale("days since 2000-01-01")
    single = np.append(days[3:], 44.0).astype(np.float32)
    theirs = Axis("time", single.astype(np.float64), "float32", scale)
    texts = scale.texts(days)
    own = Axis("time", TimeScale(units).numbers(texts), time=TimeScale(units))
    new = own.continue_with(theirs)
    np.testing.assert_array_equal(new.numbers[:-1], own.numbers[3:])
    assert new.texts[-1][:10] == "2000-02-14"
    np.testing.assert_array_equal(theirs.encode(texts[3:]), theirs.numbers[:-1])


@pytest.mark.parametrize(
    "units", ["days since 1850-01-01", "hours since 1850-01-01", "months since 1960-01-01"]
)
@pytest.mark.parametrize("own_units", ["hours since 2000-01-01", None])
def test_rounded_times_are_ours_in_the_units_that_were_rounded(units, own_units):
    coarse, hours = TimeScale(units), TimeScale("hours since 2000-01-01")
    texts = hours.texts(np.arange(48.0))
    fine = TimeScale(own_units or units)
    own = Axis("time", fine.numbers(texts), time=fine)
    single = coarse.numbers(texts).astype(np.float32).astype(np.float64)
    theirs = Axis("time", single, "float32", coarse)
    found = own.encode(convert_coordinates(theirs, own))
    np.testing.assert_array_equal(found, own.numbers)
    np.testing.assert_array_equal(theirs.encode(texts), single)  # and the other way round
    between = Axis("time", single + 0.4 * np.diff(single).min(), "float64", coarse)
    assert not np.isin(own.encode(convert_coordinates(between, own)), own.numbers).any()


def test_a_rounded_time_that_may_be_one_of_two_is_neither():
    minutes = TimeScale("minutes since 2000-01-01")
    own = Axis("time", np.arange(60.0), time=minutes)
    days = TimeScale("days since 1850-01-01")
    rounded = days.numbers(minutes.texts(own.numbers)).astype(np.float32).astype(np.float64)
    theirs = Axis("time", np.unique(rounded), "float32", days)
    found = convert_coordinates(theirs, own)
    np.testing.assert_allclose(found, minutes.numbers(days.texts(theirs.numbers)), atol=1e-9)


def test_what_is_computed_in_single_precision_may_be_off_by_its_last_digit():
    days = np.arange(54786, 54788, 1 / 8)
    own = Axis("x", days.astype(np.float32).astype(np.float64), "float32")
    off = np.nextafter(own.numbers.astype(np.float32), np.float32(0)).astype(np.float64)
    np.testing.assert_array_equal(own.encode(off), own.numbers)
    far = own.numbers + 0.25 / 8
    np.testing.assert_array_equal(own.encode(far), far)


def test_lengths_that_are_counted_the_other_way_change_sign():
    depth = axis_of("z", [0.0, 10.0, 50.0], {"units": "m", "positive": "down"})
    heights = axis_of("z", [-50.0, -0.0], {"units": "m", "positive": "up"})
    found = convert_coordinates(heights, depth)
    assert found.tolist() == [50.0, 0.0]
    assert not np.signbit(found).any()
    far = axis_of("z", np.array([-0.05], np.float32), {"units": "km", "positive": "Up"})
    assert depth.encode(convert_coordinates(far, depth)).tolist() == [50.0]
    same = axis_of("z", [-50.0], {"units": "m", "positive": "down"})
    unknown = axis_of("z", [-50.0], {"units": "m"})
    assert [float(convert_coordinates(a, depth)[0]) for a in (same, unknown)] == [-50.0, -50.0]
    pressure = axis_of("z", [850.0], {"units": "hPa", "positive": "down"})
    other = axis_of("z", [850.0], {"units": "hPa", "positive": "up"})  # by mistake
    assert convert_coordinates(other, pressure).tolist() == [850.0]


def test_colatitudes_are_no_latitudes():
    lat = axis_of("lat", [10.0, 50.0], {"units": "degrees_north"})
    marks = {"units": "degrees", "standard_name": "colatitude"}
    from_pole = axis_of("lat", [80.0, 40.0], marks)
    with pytest.raises(InputError, match="'lat' are latitudes here and colatitudes there"):
        convert_coordinates(from_pole, lat)
    with pytest.raises(InputError, match="'lat' are colatitudes here and latitudes there"):
        convert_coordinates(lat, from_pole)
    assert convert_coordinates(from_pole, from_pole).tolist() == [80.0, 40.0]
    assert not is_latitude(axis_of("lat", [80.0, 40.0], {"long_name": "Co-latitude"}))
    assert is_latitude(axis_of("lat", [80.0, 40.0], {"long_name": "Latitude, not colatitude"}))


def test_latitudes_far_beyond_the_poles_are_none_of_another_grid():
    lat = axis_of("lat", [10.0, 50.0], {"units": "degrees_north"})
    halo = axis_of("lat", [85.0, 95.0], {"units": "degrees_north"})
    assert convert_coordinates(halo, lat).tolist() == [85.0, 95.0]
    with pytest.raises(InputError, match="'lat' has 110, which is no latitude"):
        convert_coordinates(axis_of("lat", [80.0, 110.0], {"units": "degrees_north"}), lat)


def test_masked_coordinates_are_refused():
    masked = np.ma.masked_array([0.0, 1.0, 9.9e36], mask=[False, False, True])
    with pytest.raises(InputError, match="1 of 3 coordinates of 'x' are masked"):
        axis_of("x", masked)
    with pytest.raises(InputError, match="1 of 3 coordinates of 'x' are masked"):
        axis_of("x", [0.0, 1.0]).at(masked)
    assert axis_of("x", masked[:2]).numbers.tolist() == [0.0, 1.0]


# Axes that grow -----------------------------------------------------------------------------------


def test_new_labels_get_the_next_positions():
    axis = text_axis("run", ["a", "b"])
    new = axis.continue_with(text_axis("run", ["c", "b", "d"]))
    assert new.numbers.tolist() == [2, 1, 3]
    assert new.texts == ["c", "b", "d"]
    grown = axis.append(new.take([0, 2]))
    assert grown.texts == ["a", "b", "c", "d"]


def test_positions_are_counted_on():
    axis = index_axis("x", 3)
    new = axis.continue_with(index_axis("x", 2))
    assert new.numbers.tolist() == [3, 4]
    assert axis.append(new, without=2).numbers.tolist() == [2, 3, 4]


def test_numbers_of_a_bare_dimension_continue_numbers_as_they_are():
    assert axis_of("x", [5.0, 6.0]).continue_with(index_axis("x", 2)).numbers.tolist() == [0, 1]


def test_longitudes_that_follow_keep_their_convention():
    axis = axis_of("lon", [340.0, 350.0], LON)
    grown = axis.append(axis.continue_with(axis_of("lon", [0.0, 10.0], LON)), without=1)
    assert grown.plain.tolist() == [350.0, 0.0, 10.0]
    assert np.diff(grown.numbers).tolist() == [10.0, 10.0]
    assert axis_of("x", [1.0]).append(axis_of("x", [2.0])).written is None


# Coordinates of another axis ----------------------------------------------------------------------


def dates(units, numbers, calendar="standard"):
    return Axis("time", np.array(numbers, float), time=TimeScale(units, calendar))


def test_dates_are_converted_between_units():
    own = dates("days since 2000-01-01", [0, 1])
    theirs = dates("hours since 2000-01-02", [0, 36])
    assert np.asarray(convert_coordinates(theirs, own)).tolist() == [1.0, 2.5]
    assert convert_coordinates(own, own) is own.numbers


def test_labels_and_longitudes_are_converted_as_they_are_written():
    labels = text_axis("s", ["a", "b"])
    assert convert_coordinates(labels, labels) == ["a", "b"]
    lon = axis_of("lon", [350.0, 0.0, 10.0], LON)
    assert convert_coordinates(lon, lon).tolist() == [350.0, 0.0, 10.0]


@pytest.mark.parametrize(
    ("theirs", "own", "words"),
    [
        (axis_of("x", [1.0]), text_axis("x", ["a"]), r"there \(numbers\) than here \(text labels"),
        (dates("days since 2000-01-01", [1]), axis_of("time", [1.0]), r"\(days since 2000-01-01\)"),
        (
            axis_of("t", [1.0], {"units": "months since 2000-01-01"}),
            axis_of("t", [1.0], {"units": "months since 1990-01-01"}),
            r"\(months since 2000-01-01\) than here \(months since 1990-01-01\)",
        ),
        (
            axis_of("t", [1.0], {"units": "days since 2000-01-01", "calendar": "noleap"}),
            axis_of("t", [1.0], {"units": "days since 2000-01-01"}),
            r"\(days since 2000-01-01, calendar noleap\) than here \(days since 2000-01-01\)",
        ),
    ],
)
def test_coordinates_of_another_kind_are_refused(theirs, own, words):
    with pytest.raises(InputError, match=words):
        convert_coordinates(theirs, own)


def test_calendars_that_agree_today_have_one_name():
    for calendar in ("standard", "gregorian", "proleptic_gregorian"):
        assert calendar_of(dates("days since 2000-01-01", [0], calendar)) == "standard"
    assert calendar_of(dates("days since 2000-01-01", [0], "noleap")) == "noleap"
    assert calendar_of(axis_of("x", [1.0])) == "none"
    assert calendar_of(axis_of("x", [1.0], {"calendar": "noleap", "units": "m"})) == "none"
    units = {"units": "days since 2000-01-01"}
    for name, calendar in (("Gregorian", "standard"), ("365_day", "noleap"), (" ", "standard")):
        assert calendar_of(axis_of("time", [1.0], {**units, "calendar": name})) == calendar
    assert calendar_of(axis_of("time", [1.0], units)) == "standard"


def test_units_are_those_of_the_attributes_or_of_the_dates():
    assert axis_of("z", [1.0], {"units": "m"}).units == "m"
    assert axis_of("z", [1.0]).units == ""
    assert dates("hours since 2000-01-01", [0]).units == "hours since 2000-01-01"


def test_numbers_that_do_not_fit_the_stored_type_are_not_cut():
    axis = axis_of("level", np.array([1, 2], np.int8))
    assert axis.at([300.0]).values.tolist() == [300.0]
    assert axis.at([np.nan]).values.dtype == np.float64
    assert text_axis("s", ["a"]).stored.tolist() == [0.0]


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, ""), (1, "0"), (4, "0, 1, 2, 3"), (5, "0, 1, 2, 3, ... (5 in all)")],
)
def test_long_lists_are_shortened(count, text):
    assert list_some([str(i) for i in range(count)]) == text


@pytest.mark.parametrize(
    ("axis", "units"),
    [
        (axis_of("x", [0.0, 1.0], {"units": "degrees_north"}), "degrees_north"),
        (axis_of("x", [0.0, 1.0], {"units": "Hours Since 1900-01-01"}), "Hours"),
        (axis_of("x", [0.0, 1.0], {"units": "1"}), ""),
        (axis_of("x", [0.0, 1.0]), ""),
        (axis_of("x", np.array(["2020-01-01"], "datetime64[D]")), "days"),
        (text_axis("x", ["a"], {"units": "m"}), ""),
    ],
)
def test_units_of_distances(axis, units):
    assert axis.length_units == units


def test_a_label_that_is_nearly_right_gets_a_suggestion():
    with pytest.raises(SettingError, match=r"has no 'nort'.* Did you mean 'north'"):
        text_axis("site", ["north", "south"]).at(["nort"])


@pytest.mark.parametrize(("off", "snaps"), [(4e-5, True), (5e-5, False)])
def test_the_ends_are_believed_as_far_as_the_middle(off, snaps):
    axis = axis_of("x", np.array([0.0, 50.0, 100.0], np.float32))
    assert axis.encode([100.0 + off])[0] == (100.0 if snaps else 100.0 + off)
    assert axis.encode([-off])[0] == (0.0 if snaps else -off)
    assert axis.encode([-off, 200.0])[0] == (0.0 if snaps else -off)


@pytest.mark.parametrize(
    ("units", "own_units", "numbers", "expected"),
    [
        ("Pa", "hPa", [85000.0, 100.0], [850.0, 1.0]),
        ("hPa", "Pa", [850.0, 0.1], [85000.0, 10.0]),
        ("mbar", "hPa", [850.3], [850.3]),
        ("dbar", "kPa", [7.0], [70.0]),
        ("km", "m", [0.3], [300.0]),
        ("cm", "metres", [5.0], [0.05]),
        ("radians", "degrees_north", [np.pi / 4], [45.0]),
        ("degree_E", "degrees", [12.3], [12.3]),
        ("degrees_west", "degrees_east", [12.3], [-12.3]),
        ("radian", "degree_S", [np.pi / 4], [-45.0]),
        ("arc_minutes", "degrees_north", [90.0], [1.5]),
        ("weeks", "days", [2.0], [14.0]),
        ("years", "months", [1.5], [18.0]),
        ("sigma_level", "1", [0.3], [0.3]),  # of which nothing is known
        ("kelvins", "K", [5.0], [5.0]),
        ("", "m", [5.0], [5.0]),
    ],
)
def test_coordinates_in_other_units_are_converted(units, own_units, numbers, expected):
    theirs = number_axis("z", np.array(numbers), {"units": units})
    own = number_axis("z", np.array([0.0, 1.0]), {"units": own_units})
    np.testing.assert_array_equal(convert_coordinates(theirs, own), expected)
    cells = np.array([numbers[0], 2 * numbers[0]]).reshape(1, 2)
    found = convert_cells(cells, theirs, own)
    np.testing.assert_allclose(found, [[expected[0], 2 * expected[0]]], rtol=1e-15)


@pytest.mark.parametrize("turns", [-360.0, 0.0, 360.0, 720.0])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_longitudes_in_single_precision_are_those_of_the_data_turns_away_too(dtype, turns):
    degrees = np.round(np.arange(0.1, 360.0, 3.6), 1)
    own = axis_of("lon", degrees.astype(dtype), {"units": "degrees_east"})
    theirs = axis_of("lon", (degrees + turns).astype("f4"), {"units": "degrees_east"})
    plain = convert_coordinates(theirs, own)
    np.testing.assert_allclose(plain, degrees + turns, rtol=1e-6)
    assert nearest(own.encode(plain), own.numbers, 360.0)[1].all()
    texts = [f"{degree + turns:.1f}" for degree in degrees]
    assert nearest(own.encode([float(text) for text in texts]), own.numbers, 360.0)[1].all()


def test_coordinates_in_single_precision_are_those_of_the_data_or_stay():
    own = axis_of("lat", np.array([40.1, 40.2, 40.3]))
    theirs = axis_of("lat", np.array([40.3, 40.15, 40.1, 40.3001], "f4"))
    found = own.encode(convert_coordinates(theirs, own))
    assert found.tolist() == [40.3, float(np.float32(40.15)), 40.1, float(np.float32(40.3001))]
    exact = axis_of("lat", np.array([40.3 + 1e-6]))  # in double precision that is another place
    assert own.encode(convert_coordinates(exact, own)).tolist() == [40.3 + 1e-6]


def test_cells_of_longitudes_in_radians_are_converted():
    own = axis_of("lon", np.arange(0.0, 360.0, 30.0), {"units": "degrees_east"})
    theirs = number_axis("lon", np.array([0.1]), {"units": "radian"})
    found = convert_cells(np.array([[0.0, np.pi / 2]]), theirs, own)
    np.testing.assert_allclose(found, [[0.0, 90.0]])


@pytest.mark.parametrize(
    ("here", "there"), [("hPa", "m"), ("hPa", "atm"), ("gpm", "m"), ("K", "degC"), ("sigma", "eta")]
)
def test_units_of_another_kind_are_refused(here, there):
    theirs = number_axis("z", np.array([1.0]), {"units": there})
    own = number_axis("z", np.array([0.0, 1.0]), {"units": here})
    expected = f"in '{here}' here and in '{there}' there, which do not convert"
    with pytest.raises(InputError, match=expected):
        convert_coordinates(theirs, own)
