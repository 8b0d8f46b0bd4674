from datetime import datetime

import cftime
import numpy as np
import pytest
from hypothesis import given, settings
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
    assert scale.numbers(["2020-01-01T18:30-05:30"]) == expected
    assert scale.numbers(["2020-01-01T19-05"]) == expected
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
    ("calendar", "days"),
    [
        ("standard", ["01-31", "02-29", "03-31", "04-30", "05-31", "06-30"]),
        ("proleptic_gregorian", ["01-31", "02-29", "03-31", "04-30", "05-31", "06-30"]),
        ("julian", ["01-31", "02-29", "03-31", "04-30", "05-31", "06-30"]),
        ("noleap", ["01-31", "02-28", "03-31", "04-30", "05-31", "06-30"]),
        ("366_day", ["01-31", "02-29", "03-31", "04-30", "05-31", "06-30"]),
        ("360_day", ["01-30", "02-30", "03-30", "04-30", "05-30", "06-30"]),
    ],
)
def test_months_from_their_last_day_end_with_every_month(calendar, days):
    scale = TimeScale("days since 1900-01-01", calendar)
    found = scale.texts(scale.steps(f"2020-{days[0]}", "2020-06-30", "1M"))
    assert found == [f"2020-{day}" for day in days]


def test_years_from_a_leap_day_go_on_from_the_last_of_february():
    scale = TimeScale("hours since 1900-01-01")
    found = scale.texts(scale.steps("2020-02-29T06:30:15.5", "2024-03-01", "1Y"))
    assert [text[:10] for text in found] == [
        "2020-02-29",
        "2021-02-28",
        "2022-02-28",
        "2023-02-28",
        "2024-02-29",
    ]
    assert {text[10:] for text in found} == {"T06:30:15.500000"}


@pytest.mark.parametrize("year", [1900, 2000, 2100])
def test_the_last_of_february_is_that_of_the_calendar(year):
    for calendar in CALENDARS:
        scale = TimeScale("days since 1800-01-01", calendar)
        day = cftime.datetime(year, 2, 1, calendar=calendar).daysinmonth
        found = scale.texts(
            scale.steps(f"{year}-01-30", f"{year}-02-30", "1M")
            if calendar == "360_day"
            else scale.steps(f"{year}-01-30", f"{year}-03-01", "1M")
        )
        assert found == [f"{year}-01-30", f"{year}-02-{day}"]


def test_steps_of_months_keep_the_offset_of_the_start():
    scale = TimeScale("hours since 2020-01-01")
    plain = scale.steps("2020-01-15T02:00", "2020-04-15T02:00", "1M")
    assert plain.size == 4
    moved = scale.steps("2020-01-15T04:00+02:00", "2020-04-15T04:00+02:00", "1M")
    assert moved.tolist() == plain.tolist()


@pytest.mark.parametrize(
    ("step", "hours"),
    [
        ("PT30M", 0.5),
        ("30MIN", 0.5),
        ("90S", 0.025),
        ("6h", 6.0),
        ("1.5D", 36.0),
        ("P2W", 336.0),
        ("1M", 365.2425 * 2),
        ("1Y", 365.2425 * 24),
        ("P1M", 365.2425 * 2),
    ],
)
def test_the_length_of_a_step(step, hours):
    assert TimeScale("hours since 2000-01-01").length(step) == pytest.approx(hours)


@pytest.mark.parametrize(
    ("unit", "seconds"),
    [
        ("microseconds", 1e-6),
        ("ms", 1e-3),
        ("sec", 1.0),
        ("mins", 60.0),
        ("hr", 3600.0),
        ("d", 86400.0),
    ],
)
def test_units_are_counted_by_their_length(unit, seconds):
    scale = TimeScale(f"{unit} since 2000-01-01")
    assert scale.numbers(["2000-01-02"]).tolist() == pytest.approx([86400 / seconds])
    assert scale.day == pytest.approx(86400 / seconds)


def test_dates_before_the_reform_are_julian_in_the_mixed_calendar():
    for calendar, days in {"standard": 1, "proleptic_gregorian": 11}.items():
        scale = TimeScale("days since 1582-10-15", calendar)
        assert scale.numbers(["1582-10-04"]).tolist() == [-days]
        assert scale.numbers(np.array(["1582-10-04"], "datetime64[D]")).tolist() == [-days]
        assert scale.texts(np.array([-float(days)])) == ["1582-10-04"]


@pytest.mark.parametrize(
    ("day", "kind"),
    [("1678-12-31", "O"), ("1679-01-01", "M"), ("2261-12-31", "M"), ("2262-01-01", "O")],
)
def test_nanoseconds_hold_dates_from_1679_to_2261(day, kind):
    scale = TimeScale("days since 2000-01-01")
    found = scale.dates(scale.numbers([day]))
    assert found.dtype.kind == kind
    assert str(found[0])[:10] == day


def test_numbers_beyond_numpy_are_left_to_cftime():
    scale = TimeScale("days since 2000-01-01", "proleptic_gregorian")
    for days in (2_300_000, 2_400_000):
        expected = np.datetime64("2000-01-01") + days
        assert scale.texts(np.array([float(days)])) == [str(expected)]
    assert scale.dates(np.empty(0)).dtype.kind == "M"


def test_dates_of_numpy_are_read_in_the_calendar_of_the_scale():
    scale = TimeScale("days since 2000-01-01", "noleap")
    assert scale.numbers(np.array(["2000-03-01"], "datetime64[D]")).tolist() == [59]


def test_some_calendars_have_a_year_0():
    assert TimeScale("days since 0000-01-01", "noleap").numbers(["0001-01-01"]).tolist() == [365]


def test_no_dates_are_no_numbers():
    scale = TimeScale("days since 2000-01-01", "360_day")
    for nothing in ([], np.empty(0, object), np.empty(0, "datetime64[D]"), np.empty(0, "U10")):
        assert scale.numbers(nothing).size == 0


def test_a_missing_date_is_refused():
    with pytest.raises(SettingError, match=r"NaT"):
        TimeScale("days since 2000-01-01").numbers(np.array(["2000-01-01", "NaT"], "datetime64[D]"))


@pytest.mark.parametrize(
    ("units", "calendar", "message"),
    [
        ("fortnights since 1900-01-01", "standard", "are not '<unit> since <date>'"),
        ("common_years since 1900-01-01", "standard", "are not"),
        ("months since spring", "standard", "cannot be read"),
        ("months since 0000-01-01", "standard", "year 0"),
        ("days since yesterday", "standard", "cannot be read"),
        ("days since 0000-01-01", "standard", "year 0"),
        ("days since 0000-01-01", "julian", "year 0"),
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
    with pytest.raises(SettingError, match=r"2000-02-31"):
        TimeScale("days since 1900-01-01", "360_day").numbers(["2000-02-31"])


def test_a_date_of_another_calendar_is_refused():
    other = np.array([cftime.datetime(2000, 1, 1, calendar="noleap")])
    with pytest.raises(SettingError, match=r"noleap"):
        TimeScale("days since 1900-01-01", "360_day").numbers(other)


@pytest.mark.parametrize("step", ["7", "D", "-1D", "0D", "1.5M", "1 fortnight"])
def test_steps_that_are_none_are_refused(step):
    with pytest.raises(SettingError, match=r"step"):
        TimeScale("days since 1900-01-01").steps("2000-01-01", "2001-01-01", step)


@pytest.mark.parametrize(
    ("units", "calendar", "day", "year"),
    [
        ("days since 2000-01-01", "standard", 1.0, 365.2425),
        ("hours since 2000-01-01", "360_day", 24.0, 8640.0),
        ("seconds since 2000-01-01", "noleap", 86400.0, 365 * 86400.0),
        ("days since 2000-01-01", "365_day", 1.0, 365.0),
        ("days since 2000-01-01", "all_leap", 1.0, 366.0),
        ("days since 2000-01-01", "366_day", 1.0, 366.0),
        ("days since 2000-01-01", "julian", 1.0, 365.25),
        ("months since 2000-01-01", "360_day", 1 / 30, 12.0),
        ("months since 2000-01-01", "standard", 12 / 365.2425, 12.0),
        ("years since 2000-01-01", "noleap", 1 / 365, 1.0),
    ],
)
def test_a_day_and_a_year_in_units_of_the_scale(units, calendar, day, year):
    scale = TimeScale(units, calendar)
    assert (scale.day, scale.year) == (pytest.approx(day, rel=1e-15), year)


@pytest.mark.parametrize("calendar", CALENDARS)
@pytest.mark.parametrize(("text", "after"), [("2003", "2004"), ("2003-12", "2004-01")])
def test_a_year_and_a_month_last_up_to_the_next(calendar, text, after):
    scale = TimeScale("hours since 2001-01-01", calendar)
    begin, end = scale.span(text)
    assert [begin, end] == scale.numbers([text, after]).tolist()


def test_a_day_lasts_a_day_and_an_instant_nothing():
    scale = TimeScale("hours since 2020-01-01")
    assert scale.span("2020-01-02") == (24.0, 48.0)
    assert scale.span("2020-01-02T06") == scale.span("2020-01-02 06:00") == (30.0, 30.0)
    assert scale.span("2020-01-02T00:00") == (24.0, 24.0)
    with pytest.raises(SettingError, match=r"not a date"):
        scale.span("soon")


# Months and years ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("units", "calendar", "number", "date"),
    [
        ("months since 1960-01-01", "standard", 0.5, "1960-01-16T12:00"),
        ("months since 1960-01-01", "standard", 1.5, "1960-02-15T12:00"),  # a leap year
        ("months since 1960-01-01", "noleap", 1.5, "1960-02-15"),
        ("months since 1960-01-01", "standard", 14.5, "1961-03-16T12:00"),
        ("months since 1960-01-01", "standard", -0.5, "1959-12-16T12:00"),
        ("months since 1960-01-01", "standard", 480.0, "2000-01-01"),
        ("months since 1960-01-31", "standard", 1.0, "1960-02-29"),
        ("months since 1960-01-31", "standard", 2.0, "1960-03-31"),
        ("months since 1960-01-15 06:00", "julian", 2.0, "1960-03-15T06:00"),
        ("months since 1960-01-01 00:00 +02:00", "standard", 1.0, "1960-01-31T22:00"),
        ("month since 1500-01-01", "standard", 1200.0, "1600-01-01"),  # over the reform
        ("years since 2000-01-01", "standard", 0.5, "2000-07-02"),
        ("years since 2000-01-01", "standard", 1.5, "2001-07-02T12:00"),
        ("Years since 2000-02-29", "standard", 1.0, "2001-02-28"),
        ("yr since 2000-01-01", "all_leap", 1.5, "2001-07-02"),
        ("months since 1960-01-01", "360_day", 0.5, "1960-01-16"),
        ("months since 1960-01-16", "360_day", 1.5, "1960-03-01"),
        ("years since 1960-01-01", "360_day", 1.25, "1961-04-01"),
    ],
)
def test_months_and_years_are_those_of_the_calendar(units, calendar, number, date):
    scale = TimeScale(units, calendar)
    assert scale.texts(np.array([number])) == [date]
    assert scale.numbers([date]).tolist() == [number]


@pytest.mark.parametrize(
    ("unit", "date", "number"),
    [
        ("months", "1960-01-31T12:00", 30.5 / 31),  # more than a mean month
        ("months", "1961-03-01T12:00", 14 + 0.5 / 31),
        ("months", "1959-12-01T12:00", -1 + 0.5 / 31),
        ("years", "1960-12-31T12:00", 365.5 / 366),  # more than a mean year
        ("years", "1961-01-01T12:00", 1 + 0.5 / 365),
    ],
)
def test_ends_of_months_belong_to_their_month(unit, date, number):
    scale = TimeScale(f"{unit} since 1960-01-01")
    assert scale.numbers([date]).tolist() == [pytest.approx(number, rel=1e-13)]
    assert scale.texts(np.array([number])) == [date]


@pytest.mark.parametrize("number", [0.0, 7.25, -3.5, 481.75])
def test_months_of_30_days_are_those_of_cftime(number):
    units, calendar = "months since 1960-01-01", "360_day"
    expected = cftime.num2date(number, units, calendar)
    found = TimeScale(units, calendar).dates(np.array([number]))
    assert found.tolist() == [expected]
    assert TimeScale(units, calendar).numbers(np.array([expected])).tolist() == [number]


LAST_DAY = {"360_day": "1900-01-30"}
FEW = settings(max_examples=15)


@pytest.mark.parametrize("unit", ["months", "years"])
@pytest.mark.parametrize("calendar", CALENDARS)
@FEW
@given(st.lists(st.integers(-3_000_000, 6_000_000), min_size=1, max_size=9))
def test_counted_months_come_back_from_their_dates(unit, calendar, thousandths):
    scale = TimeScale(f"{unit} since {LAST_DAY.get(calendar, '1900-01-31')} 18:00", calendar)
    numbers = np.array(thousandths) / (1000 if unit == "months" else 16_000)
    assert scale.numbers(scale.texts(numbers)).tolist() == numbers.tolist()


@pytest.mark.parametrize("unit", ["months", "years"])
@pytest.mark.parametrize("calendar", CALENDARS)
@FEW
@given(
    days=st.lists(st.integers(-80_000, 150_000), min_size=1, max_size=9),
    seconds=st.integers(0, 86399),
)
def test_dates_come_back_from_counted_months_to_the_second(unit, calendar, days, seconds):
    dated = TimeScale("seconds since 1950-06-15", calendar)
    texts = dated.texts(np.array(days) * 86400.0 + seconds)
    scale = TimeScale(f"{unit} since 1960-01-01", calendar)
    numbers = scale.numbers(texts)
    assert scale.texts(numbers) == texts
    assert dated.numbers(scale.dates(numbers)).tolist() == dated.numbers(texts).tolist()


@FEW
@given(st.integers(0, 30 * 10**15))
def test_dates_come_back_from_counted_months_to_two_microseconds(micro):
    dated = TimeScale("microseconds since 1960-01-01", "proleptic_gregorian")
    date = np.array([micro // 10 + 0.0])
    scale = TimeScale("months since 1960-01-01", "proleptic_gregorian")
    back = dated.numbers(scale.dates(scale.numbers(dated.texts(date))))
    assert abs(back - date) <= 2


@pytest.mark.parametrize("calendar", CALENDARS)
@FEW
@given(st.lists(st.floats(-2000, 2000), min_size=2, max_size=9, unique=True))
def test_counted_months_are_in_the_order_of_their_dates(calendar, numbers):
    since = LAST_DAY.get(calendar, "1900-01-31")
    texts = TimeScale(f"months since {since}", calendar).texts(np.sort(np.array(numbers)))
    days = TimeScale(f"days since {since}", calendar).numbers(texts)
    assert (np.diff(days) >= 0).all()


@pytest.mark.parametrize("calendar", CALENDARS)
@pytest.mark.parametrize("months", [1, 7, 120])
def test_whole_months_are_steps_of_the_calendar(calendar, months):
    scale = TimeScale("months since 1960-01-30", calendar)
    days = TimeScale("days since 1960-01-30", calendar)
    expected = days.texts(days.steps("1960-01-30", "1990-01-30", f"{months}M"))
    assert scale.texts(np.arange(0.0, 361.0, months)) == expected
    found = scale.steps("1960-01-30", "1990-01-30", f"{months}M")
    np.testing.assert_array_equal(found, np.arange(0.0, 361.0, months))


def test_steps_of_days_are_days_whatever_the_month():
    scale = TimeScale("months since 1960-01-01")
    found = scale.texts(scale.steps("1960-01-16", "1960-03-15", "30D"))
    assert found == ["1960-01-16", "1960-02-15"]
    with pytest.raises(SettingError, match="step"):
        scale.steps("2000-01-01", "2001-01-01", "1.5M")


@pytest.mark.parametrize(
    ("units", "step", "length"),
    [
        ("months since 1960-01-01", "1M", 1.0),
        ("months since 1960-01-01", "2Y", 24.0),
        ("years since 1960-01-01", "6M", 0.5),
        ("months since 1960-01-01", "45D", 45 * 12 / 365.2425),
    ],
)
def test_lengths_are_counted_in_months_and_years(units, step, length):
    assert TimeScale(units).length(step) == pytest.approx(length, rel=1e-14)


@pytest.mark.parametrize("calendar", CALENDARS)
def test_only_months_that_differ_in_length_are_told(calendar):
    assert TimeScale("months since 1960-01-01", calendar).counts_months == (calendar != "360_day")
    assert not TimeScale("days since 1960-01-01", calendar).counts_months


def test_no_months_are_no_dates():
    scale = TimeScale("months since 1960-01-01")
    assert scale.numbers([]).size == 0
    assert scale.texts(np.empty(0)) == []
    assert scale.dates(np.empty(0)).size == 0
    with pytest.raises(SettingError, match="NaT"):
        scale.numbers(np.array(["NaT"], "datetime64[D]"))


@pytest.mark.parametrize("date", ["2000-13-01", "2000-00-01", "2000-01-32", "2000-01-01 24:00"])
def test_units_count_from_a_date_that_is_one(date):
    with pytest.raises(InputError, match="count from a date that cannot be read"):
        TimeScale(f"days since {date}")
    TimeScale("days since 2000-12-31 23:59:59")


@pytest.mark.parametrize("none", [None, np.datetime64("NaT"), float("nan")])
def test_dates_that_are_none_are_refused(none):
    with pytest.raises(SettingError, match="A date is missing"):
        TimeScale("days since 2000-01-01").numbers([datetime(2000, 1, 2), none])


@pytest.mark.parametrize("calendar", ["standard", "proleptic_gregorian"])
def test_dates_of_calendars_that_agree_are_read(calendar):
    dates = [cftime.DatetimeGregorian(2000, 1, 5, 12), cftime.DatetimeGregorian(1582, 10, 15)]
    other = [cftime.DatetimeProlepticGregorian(*d.timetuple()[:6]) for d in dates]
    scale = TimeScale("days since 2000-01-01", calendar)
    expected = scale.numbers(["2000-01-05T12:00", "1582-10-15"])
    for same in (dates, other):
        np.testing.assert_array_equal(scale.numbers(same), expected)


def test_dates_of_calendars_that_differ_are_refused():
    with pytest.raises(SettingError, match="A date of calendar 'standard'"):
        TimeScale("days since 2000-01-01", "proleptic_gregorian").numbers(
            [cftime.DatetimeGregorian(1582, 10, 4)]
        )


@pytest.mark.parametrize("calendar", ["standard", "noleap", "360_day"])
@pytest.mark.parametrize(
    ("units", "day"), [("nanoseconds", 86400e9), ("weeks", 1 / 7), ("ns", 86400e9)]
)
def test_weeks_and_nanoseconds_are_units_as_others(units, day, calendar):
    scale, days = (TimeScale(f"{unit} since 1970-01-01", calendar) for unit in (units, "days"))
    texts = ["1970-01-01T00:00", "1999-12-30T18:30", "2000-01-30T00:00"]
    numbers = scale.numbers(texts)
    np.testing.assert_allclose(numbers, days.numbers(texts) * day, rtol=1e-14)
    assert scale.texts(numbers) == texts
    np.testing.assert_array_equal(scale.numbers(scale.dates(numbers)), numbers)
    assert scale.day == pytest.approx(day)
    steps = scale.steps("2000-01-01", "2000-03-01", "1M")
    assert scale.texts(steps) == ["2000-01-01", "2000-02-01", "2000-03-01"]
    low, high = scale.span("2000-01")
    assert (high - low) / day == pytest.approx(30 if calendar == "360_day" else 31)


def test_nanoseconds_that_xarray_writes_are_the_dates_that_it_reads():
    times = np.datetime64("2000-01-05T12:00:00.123456", "ns") + np.arange(3) * np.timedelta64(
        1, "h"
    )
    numbers = times.astype(np.int64).astype(np.float64)
    found = TimeScale("nanoseconds since 1970-01-01").dates(numbers)
    np.testing.assert_array_equal(found, times)
