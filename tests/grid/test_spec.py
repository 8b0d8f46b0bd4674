"""Coordinates are what the user writes, to the last digit, or refused with the reason."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.errors import SettingError
from dkrls_cli.grid.axes import Axis, axis_of, text_axis
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.grid.spec import parse_at

DAYS = TimeScale("days since 2000-01-01")
AXES = [
    Axis("time", np.arange(3.0), time=DAYS),
    axis_of("lat", [10.0, 20.0]),
    text_axis("site", ["a", "b, c", "d"]),
]


def asked(text):
    (values,) = parse_at([text], AXES).values()
    return np.asarray(values).tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lat=12.5", [12.5]),
        (" lat = 1, 2,-3e1 ", [1.0, 2.0, -30.0]),
        ("lat=0:1:0.25", [0.0, 0.25, 0.5, 0.75, 1.0]),
        ("lat=0:1:0.3", [0.0, 0.3, 0.6, 0.9]),
        ("lat=1:0:-0.5", [1.0, 0.5, 0.0]),
        ("lat=5:5:1", [5.0]),
        ("lat=0:2.9999999999:1", [0.0, 1.0, 2.0, 3.0]),
        ("lat=0:2.9999999:1", [0.0, 1.0, 2.0]),
        ("lat=0:0.3:0.1", [0.0, 0.1, 0.2, 0.3]),
        ("lat=0:3e-1:1e-1", [0.0, 0.1, 0.2, 0.3]),
        ("site=a", ["a"]),
        ("site=d,a", ["d", "a"]),
        ("site=b, c", ["b, c"]),
        ("time=2000-01-03", [2.0]),
        ("time=2000-01-03T12:30:00", [2.0 + 12.5 / 24]),
        ("time=2000-01-03, 2000-01-02", [2.0, 1.0]),
        ("time=2000-01-01:2000-01-05:2D", [0.0, 2.0, 4.0]),
        ("time=2000-01-31:2000-04-30:1M", [30.0, 59.0, 90.0, 120.0]),
        ("time=2000-01-01T06:2000-01-01T18:6H", [0.25, 0.5, 0.75]),
        ("time=2000-02", [31.0]),
    ],
)
def test_coordinates_are_those_that_are_written(text, expected):
    assert asked(text) == expected


@given(start=st.integers(-999, 999), step=st.integers(1, 99), count=st.integers(1, 60))
def test_a_range_in_decimals_has_the_numbers_that_one_would_write(start, step, count):
    stop = start + step * (count - 1)
    found = asked(f"lat={start / 100}:{stop / 100}:{step / 100}")
    assert found == [round((start + step * i) / 100, 2) for i in range(count)]


def test_dimensions_that_are_not_named_or_named_all_keep_their_coordinates():
    assert parse_at(None, AXES) == {}
    assert parse_at([], AXES) == {}
    assert list(parse_at(["lat=1", "site=all"], AXES)) == ["lat"]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["lat"], "'lat' is not DIM=SPEC, like lat="),
        (["=1"], "no dimension ''"),
        (["lat= "], "'lat= ' is not DIM=SPEC"),
        (["depth=1"], "no dimension 'depth'. The model has time, lat, site"),
        (["sit=a"], "no dimension 'sit'. .* Did you mean 'site'"),
        (["lat=1", "latitude=2"], "Coordinates of 'lat' were given twice"),
        (["lat=all", "lat=2"], "Coordinates of 'lat' were given twice"),
        (["lat=1", "lat=2"], "Coordinates of 'lat' were given twice. .* lat=1,2,3"),
        (["lat=x"], "lat: 'x' is not a number"),
        (["lat=1,,2"], "lat: '' is not a number"),
        (["lat=nan"], "lat: 'nan' is not a finite number"),
        (["lat=1e400"], "lat: '1e400' is not a finite"),
        (["lat=1:2"], "lat=1:2: there is no coordinate in that range.* from 10.0 to 20.0"),
        (["lat=1:x"], "lat: 'x' is not a number"),
        (["lat=:20"], "lat: '' is not a number"),
        (["site=a:q"], "'site' has no 'q'. A range of text labels is first:last"),
        (["site=q:a"], "'site' has no 'q'"),
        (["lat=1:2:3:4"], "is not start:stop:step"),
        (["lat=2:1:1"], "steps of 1 do not lead from 2 to 1"),
        (["lat=1:2:-1"], "steps of -1 do not lead from 1 to 2"),
        (["lat=1:2:0"], "steps of 0 do not lead from 1 to 2"),
        (["lat=0:1:1e-12"], "more than 1000000 coordinates"),
        (["lat=0:1e308:1e-300"], "more than 1000000 coordinates"),
        (["time=soon"], "'soon' is not a date"),
        (["time=2000-01-01:soon"], "no range of dates: start:stop, or start:stop:step"),
        (["time=2001:2002"], "no coordinate in that range.* from 2000-01-01 to 2000-01-03"),
        (["time=2000-02-30:2000-03"], "'2000-02-30' is not a date"),
        (["time=2000-02-01:2000-01-01:1D"], "do not lead from 2000-02-01 to 2000-01-01"),
        (["time=2000-02-01:2000-01-01:1M"], "do not lead from 2000-02-01 to 2000-01-01"),
        (["time=2000-01-01:2000-02-01:1x"], "'1x' is not a time step"),
        (["time=2000-01-01:2020-01-01:1S"], "more than 1000000 coordinates"),
    ],
)
def test_what_cannot_be_understood_is_refused(texts, words):
    with pytest.raises(SettingError, match=words) as caught:
        parse_at(texts, AXES)
    assert "--" not in str(caught.value)


def test_the_largest_range_that_is_allowed(monkeypatch):
    monkeypatch.setattr("dkrls_cli.grid.spec._MOST", 5)
    assert len(asked("lat=0:4:1")) == len(asked("time=2000-01-01:2000-01-05:1D")) == 5
    for text in ("lat=0:5:1", "time=2000-01-01:2000-01-06:1D"):
        with pytest.raises(SettingError, match=r"more than 5 coordinates"):
            asked(text)


def test_dates_too_far_away_to_count_are_refused():
    far = TimeScale("microseconds since 2000-01-01", "noleap")
    with pytest.raises(SettingError, match=r"too far away to be counted in 'microseconds since"):
        parse_at(["time=999999-01-01"], [Axis("time", np.arange(3.0), time=far)])


# Ranges of the model's own coordinates


def between(axis, text):
    (values,) = parse_at([text], [axis]).values()
    return np.asarray(values).tolist()


def test_a_range_takes_the_coordinates_between_its_ends_and_the_ends():
    lat = axis_of("latitude", [50.0, 40.0, 30.5, 20.0])
    for text in ("lat=20:40", "lat=40:20", "latitude=19:40.2"):
        assert between(lat, text) == [40.0, 30.5, 20.0]
    assert between(lat, "lat=30.5:30.5") == [30.5]
    assert between(lat, "lat=-90:90") == [50.0, 40.0, 30.5, 20.0]


def test_ends_are_included_as_they_are_written_in_single_precision():
    x = axis_of("x", np.arange(6, dtype=np.float32) / np.float32(10))
    assert np.round(between(x, "x=0.1:0.3"), 6).tolist() == [0.1, 0.2, 0.3]


def test_labels_are_taken_by_position():
    site = text_axis("site", ["z", "b:c", "a", "12:30", "q"])
    assert between(site, "site=z:a") == between(site, "site=a:z") == ["z", "b:c", "a"]
    assert between(site, "site=b:c") == ["b:c"]
    assert between(site, "site=b:c:12:30") == ["b:c", "a", "12:30"]
    assert between(site, "site=12:30,q") == ["12:30", "q"]
    with pytest.raises(SettingError, match=r"'site' has no 'zz'"):
        parse_at(["site=zz:q"], [site])


HOURS = Axis("date", np.arange(0.0, 24 * 400, 6), time=TimeScale("hours since 2020-01-01"))


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("time=2020-01:2020-03", "2020-01-01T00", "2020-03-31T18"),
        ("date=2020-03:2020-01", "2020-01-01T00", "2020-03-31T18"),
        ("date=2020:2020", "2020-01-01T00", "2020-12-31T18"),
        ("date=2019:2020-02", "2020-01-01T00", "2020-02-29T18"),
        ("date=2020-02-28:2020-03-01", "2020-02-28T00", "2020-03-01T18"),
        ("date=2020-02-28T06:2020-02-28T12", "2020-02-28T06", "2020-02-28T12"),
        ("date=2020-02-28T06:00:2020-02-28T12:00:00", "2020-02-28T06", "2020-02-28T12"),
        ("date=2020-02-28T06:2020-02-28T11:59", "2020-02-28T06", "2020-02-28T06"),
        ("date=2020-02-28T01:2020-02-28", "2020-02-28T06", "2020-02-28T18"),
    ],
)
def test_a_range_of_dates_ends_with_all_of_the_time_it_names(text, first, last):
    found = between(HOURS, text)
    low, high = HOURS.time.numbers([first, last])
    assert found == [n for n in HOURS.numbers.tolist() if low <= n <= high]


@pytest.mark.parametrize("calendar", ["noleap", "360_day", "all_leap", "julian"])
def test_a_month_ends_as_its_calendar_has_it(calendar):
    scale = TimeScale("days since 2001-01-01", calendar)
    axis = Axis("time", np.arange(0.0, 400), time=scale)
    days = {"noleap": 28, "360_day": 30, "all_leap": 29, "julian": 28}[calendar]
    january = 30 if calendar == "360_day" else 31
    assert between(axis, "time=2001-02:2001-02") == list(range(january, january + days))


def test_dates_that_were_stored_with_rounding_are_in_their_range():
    days = TimeScale("days since 2020-01-01")
    axis = Axis("time", np.array([0.1 * 3, 31.0 - 1e-12, 32.0]), time=days)
    assert len(between(axis, "time=2020-02:2020-03")) == 2
    assert len(between(axis, "time=2020-01:2020-01")) == 1


EAST = {"units": "degrees_east"}
GLOBE = axis_of("lon", np.arange(0.0, 360, 5), EAST)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lon=350:10", [-10, -5, 0, 5, 10]),
        ("lon=-10:10", [-10, -5, 0, 5, 10]),
        ("longitude=355:362", [355, 360]),
        ("lon=175:-175", [175, 180, 185]),
        ("lon=10:20", [10, 15, 20]),
        ("lon=-350:-340", [-350, -345, -340]),
        ("lon=5:5", [5]),
    ],
)
def test_a_range_of_longitudes_runs_eastward_without_a_jump(text, expected):
    found = between(GLOBE, text)
    assert found == expected
    at = GLOBE.at(found)
    assert set(at.numbers.tolist()) <= set(GLOBE.numbers.tolist())
    westward = axis_of("lon", GLOBE.plain[::-1], EAST)
    assert between(westward, text) == expected[::-1]
    shifted = axis_of("lon", np.arange(-180.0, 180, 5), EAST)
    assert between(shifted, text) == expected


def test_a_turn_of_longitudes_is_all_of_them_once():
    assert between(GLOBE, "lon=0:360") == GLOBE.plain.tolist()
    assert between(GLOBE, "lon=-180:180") == list(range(-180, 180, 5))
    assert len(between(GLOBE, "lon=10:5")) == 72
    assert between(GLOBE, "lon=10:-10")[::68] == [10, 350]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_longitudes_moved_by_a_turn_are_the_same_place(dtype):
    lon = axis_of("lon", np.arange(0, 3600, 3).astype(dtype) / dtype(10), EAST)
    found = between(lon, "lon=-0.9:0.9")
    np.testing.assert_allclose(found, [-0.9, -0.6, -0.3, 0, 0.3, 0.6, 0.9], atol=1e-4)
    if dtype is np.float64:
        assert found == [-0.9, -0.6, -0.3, 0.0, 0.3, 0.6, 0.9]
    at = lon.at(found).numbers
    assert np.abs(at[:, None] - lon.numbers).min(1).max() < 1e-12


def test_no_longitude_in_a_range_is_refused():
    with pytest.raises(SettingError, match=r"lon=1:4: there is no coordinate .* 0.0 to 355.0"):
        between(GLOBE, "lon=1:4")


def test_one_coordinate_is_a_range_as_well():
    assert between(axis_of("depth", [5.0]), "depth=0:10") == [5.0]
    assert between(axis_of("lon", [5.0], EAST), "lon=-10:10") == [5.0]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("lon=355:5:2.5", [355.0, 357.5, 360.0, 362.5, 365.0]),
        ("lon=170:-170:10", [170.0, 180.0, 190.0]),
        ("lon=10:0:-5", [10.0, 5.0, 0.0]),
    ],
)
def test_steps_of_longitude_go_eastward_across_the_seam(spec, expected):
    ring = axis_of("lon", np.arange(0.0, 360, 5), {"units": "degrees_east"})
    assert parse_at([spec], [ring])["lon"].tolist() == expected
    with pytest.raises(SettingError, match="do not lead from"):
        parse_at(
            [spec.replace("lon", "x")] if ":-5" not in spec else ["x=355:5:2"],
            [axis_of("x", [1.0, 2.0])],
        )


def test_one_longitude_is_no_turn_and_more_than_a_turn_is_no_range():
    ring = axis_of("lon", np.arange(0.0, 360, 5), {"units": "degrees_east"})
    assert parse_at(["lon=10:10:5"], [ring])["lon"].tolist() == [10.0]
    with pytest.raises(SettingError, match="do not lead from"):
        parse_at(["lon=400:10:5"], [ring])
