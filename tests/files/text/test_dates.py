"""Dates in other forms than ISO 8601 are read where one reading is possible, and else doubted."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.files.text.dates import looks_like_date, read_dates

DAYS = st.dates(date(1600, 1, 1), date(2200, 1, 1))
NAMES = "January February March April May June July August September October November December"


@pytest.mark.parametrize(
    ("texts", "dates", "form"),
    [
        (["2020/01/31"], ["2020-01-31"], "year/month/day"),
        (["2020.1.3 12:30"], ["2020-01-03T12:30"], "year/month/day"),
        (["31/01/2020", "1/2/2020"], ["2020-01-31", "2020-02-01"], "day/month/year"),
        (["1.2.2020", "13.2.2020"], ["2020-02-01", "2020-02-13"], "day/month/year"),
        (["31-01-2020"], ["2020-01-31"], "day/month/year"),
        (["01/31/2020", "1/2/2020"], ["2020-01-31", "2020-01-02"], "month/day/year"),
        (["1/31/2020 3:05 PM"], ["2020-01-31T15:05"], "month/day/year"),
        (["1/31/2020 12:05 am"], ["2020-01-31T00:05"], "month/day/year"),
        (["1/31/2020 12:05:30PM"], ["2020-01-31T12:05:30"], "month/day/year"),
        (["01/01/2020", "02/02/2020"], ["2020-01-01", "2020-02-02"], "day/month/year"),
        (["Jan-2020", "FEB 2020", "march2020"], ["2020-01", "2020-02", "2020-03"], "name"),
        (["1 January 2020", "Feb 3, 2020"], ["2020-01-01", "2020-02-03"], "name of the month"),
        (["2020-Mar-04", "2020-Sept"], ["2020-03-04", "2020-09"], "name of the month"),
        (["04-Mar-2020 06:00"], ["2020-03-04T06:00"], "name of the month"),
        (["31/02/2020"], ["2020-02-31"], "day/month/year"),  # left to who knows the calendar
    ],
)
def test_one_reading_is_taken(texts, dates, form):
    reading = read_dates("t", texts)
    assert (reading.texts, reading.doubt) == (dates, None)
    assert reading.form.startswith(form)
    assert all(map(looks_like_date, texts))


@pytest.mark.parametrize(
    ("texts", "text", "why"),
    [
        (["01/02/2020"], "01/02/2020", "can be 2020-02-01 or 2020-01-02"),
        (["1.2.2020"], "1.2.2020", "can be 2020-02-01 or 2020-01-02"),
        (["1/1/2020", "5-6-2020"], "5-6-2020", "can be 2020-06-05 or 2020-05-06"),
        (["12/12/2020", "12/1/2020"], "12/1/2020", "can be 2020-01-12 or 2020-12-01"),
        (["13/1/2020", "1/14/2020"], "1/14/2020", "has day and month in another order than '13/1"),
        (["1/14/2020", "13/1/2020"], "13/1/2020", "has day and month in another order than '1/14"),
        (["31/01/20"], "31/01/20", "has a year of two digits"),
        (["31.01.20"], "31.01.20", "has a year of two digits"),
        (["Jan-20", "Feb-20"], "Jan-20", "has a year of two digits"),
    ],
)
def test_two_readings_are_a_doubt(texts, text, why):
    reading = read_dates("t", texts)
    assert reading.texts == []
    assert reading.doubt[0] == text
    assert reading.doubt[1].startswith(why)
    assert all(map(looks_like_date, texts))


@pytest.mark.parametrize(
    "texts",
    [
        [],
        ["Jan", "Feb"],
        ["1.2.3"],
        ["2020-01-31"],
        ["31/01/2020", "north"],
        ["20200131"],
        ["s1"],
        ["2020"],
        ["12.5"],
        ["1/2"],
        ["192.168.1.2"],
    ],
)
def test_other_texts_are_no_dates(texts):
    assert read_dates("x", texts) is None


@pytest.mark.parametrize("name", ["time", "Date", "timestamp", "YYYYMMDD"])
def test_eight_digits_are_a_date_under_the_name_of_one(name):
    assert read_dates(name, ["20200131", "19991231"]).texts == ["2020-01-31", "1999-12-31"]
    for texts in (["20200131", "20201301"], ["20200132"], ["2020013"], ["00010101"], ["99991231"]):
        assert read_dates(name, texts) is None


@given(st.lists(DAYS, min_size=1, max_size=9, unique=True), st.sampled_from("/.-"))
def test_what_is_read_is_the_day_that_was_written(days, mark):
    right = [str(day) for day in days]
    for form in (f"%d{mark}%m{mark}%Y", f"%m{mark}%d{mark}%Y"):
        reading = read_dates("t", [day.strftime(form) for day in days])
        unclear = all(day.day <= 12 for day in days) and any(d.day != d.month for d in days)
        assert (reading.doubt is not None) == unclear
        if not unclear:
            assert reading.texts == right
    months = NAMES.split()
    named = [f"{day.day} {months[day.month - 1]} {day.year}" for day in days]
    assert read_dates("t", named).texts == right
    short = [f"{months[day.month - 1][:3]}-{day.year}" for day in days]
    assert read_dates("t", short).texts == [text[:7] for text in right]
