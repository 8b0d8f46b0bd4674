import cftime
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.calendars import TimeScale

CALENDARS = ["standard", "proleptic_gregorian", "noleap", "all_leap", "360_day", "julian"]
UNITS = [
    "days since 1850-01-01",
    "hours since 1-1-1 00:00:0.0",
    "seconds since 1970-01-01T00:00:00Z",
    "minutes since 2001-3-4 5:06:07 +02:00",
]


@pytest.mark.parametrize("calendar", CALENDARS)
@pytest.mark.parametrize("units", UNITS)
def test_numbers_are_those_of_cftime(units, calendar):
    scale = TimeScale(units, calendar)
    texts = ["1999-12-31", "2000-02-28T12:30", "2004-07-01T00:00:01.5", "1583-01-01"]
    dates = [
        cftime.datetime(1999, 12, 31, calendar=calendar)
        if calendar != "360_day"
        else cftime.datetime(1999, 12, 30, calendar=calendar),
        cftime.datetime(2000, 2, 28, 12, 30, calendar=calendar),
        cftime.datetime(2004, 7, 1, 0, 0, 1, 500000, calendar=calendar),
        cftime.datetime(1583, 1, 1, calendar=calendar),
    ]
    texts[0] = dates[0].isoformat()[:10]
    expected = np.array(cftime.date2num(dates, units, calendar), float)
    np.testing.assert_allclose(scale.numbers(texts), expected, rtol=1e-13)


@pytest.mark.parametrize("calendar", CALENDARS)
@given(days=st.integers(-150_000, 150_000), seconds=st.integers(0, 86399))
def test_texts_read_back_to_the_same_number(calendar, days, seconds):
    scale = TimeScale("seconds since 1950-06-15", calendar)
    number = np.array([days * 86400.0 + seconds])
    assert scale.numbers(scale.texts(number)) == number


def test_dates_are_datetime64_where_it_holds_them_and_cftime_elsewhere():
    scale = TimeScale("days since 2000-01-01")
    assert scale.dates(np.array([0.5]))[0] == np.datetime64("2000-01-01T12")
    assert TimeScale("days since 2000-01-01", "360_day").dates(np.array([59.0]))[0].day == 30
    far = scale.dates(np.array([-400 * 365.25]))
    assert far[0].year == 1599


def test_dates_of_several_kinds_are_understood():
    scale = TimeScale("hours since 2020-01-01", "proleptic_gregorian")
    expected = [24.0]
    assert scale.numbers(["2020-01-02"]) == expected
    assert scale.numbers(["2020-01-02T02:00+02:00"]) == expected
    assert scale.numbers(np.array(["2020-01-02"], "datetime64[D]")) == expected
    day = cftime.datetime(2020, 1, 2, calendar="proleptic_gregorian")
    assert scale.numbers(np.array([day])) == expected


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("7D", ["2020-01-01", "2020-01-08", "2020-01-15"]),
        ("P1W", ["2020-01-01", "2020-01-08", "2020-01-15"]),
        ("168H", ["2020-01-01", "2020-01-08", "2020-01-15"]),
        ("14D", ["2020-01-01", "2020-01-15"]),
        ("20D", ["2020-01-01"]),
    ],
)
def test_steps_include_the_stop_when_it_falls_on_one(step, expected):
    scale = TimeScale("hours since 1900-01-01")
    assert scale.texts(scale.steps("2020-01-01", "2020-01-15", step)) == expected


def test_months_and_years_follow_the_calendar():
    scale = TimeScale("days since 1900-01-01", "noleap")
    assert scale.texts(scale.steps("2019-11-15", "2020-02-15", "1M")) == [
        "2019-11-15",
        "2019-12-15",
        "2020-01-15",
        "2020-02-15",
    ]
    assert len(scale.steps("2000-01-01", "2010-01-01", "5Y")) == 3


@pytest.mark.parametrize(
    ("units", "calendar", "message"),
    [
        ("months since 1900-01-01", "standard", "are not"),
        ("days since yesterday", "standard", "cannot be read"),
        ("days since 0000-01-01", "standard", "year 0"),
        ("metres", "standard", "are not"),
        ("days since 1900-01-01", "mayan", "mayan"),
    ],
)
def test_scales_that_mean_nothing_are_refused(units, calendar, message):
    with pytest.raises(InputError, match=message):
        TimeScale(units, calendar)


@pytest.mark.parametrize("text", ["soon", "2020-13-01", "2020-02-30", "2020-01-01T25:00"])
def test_dates_that_are_none_are_refused_by_name(text):
    with pytest.raises(SettingError, match=text):
        TimeScale("days since 1900-01-01").numbers([text])
    with pytest.raises(SettingError, match="2000-02-31"):
        TimeScale("days since 1900-01-01", "360_day").numbers(["2000-02-31"])


def test_a_date_of_another_calendar_is_refused():
    other = np.array([cftime.datetime(2000, 1, 1, calendar="noleap")])
    with pytest.raises(SettingError, match="noleap"):
        TimeScale("days since 1900-01-01", "360_day").numbers(other)


@pytest.mark.parametrize("step", ["7", "D", "-1D", "0D", "1.5M", "1 fortnight"])
def test_steps_that_are_none_are_refused(step):
    with pytest.raises(SettingError, match="step"):
        TimeScale("days since 1900-01-01").steps("2000-01-01", "2001-01-01", step)


@pytest.mark.parametrize(
    ("units", "calendar", "day", "year"),
    [
        ("days since 2000-01-01", "standard", 1.0, 365.2425),
        ("hours since 2000-01-01", "360_day", 24.0, 8640.0),
        ("seconds since 2000-01-01", "noleap", 86400.0, 365 * 86400.0),
    ],
)
def test_a_day_and_a_year_in_units_of_the_scale(units, calendar, day, year):
    scale = TimeScale(units, calendar)
    assert (scale.day, scale.year) == (day, year)
