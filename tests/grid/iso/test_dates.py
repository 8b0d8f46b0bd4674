"""Texts of dates are read as numpy reads them, and other texts are none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.grid.iso.dates import datetime64_of, read_date, smallest_part

SHIFTED = ["2020-0130", "2020+05", "2020-01+02:00"]  # neither a day nor a time of day


@given(st.datetimes())
def test_dates_are_those_of_python(date):
    fields = read_date(date.isoformat())
    micro = 10**6 * date.second + date.microsecond
    assert fields == (date.year, date.month, date.day, date.hour, date.minute, micro, 0)
    assert fields.is_some_day
    assert datetime64_of(date.isoformat()) == np.datetime64(date, "us")


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("2020", (2020, 1, 1, 0, 0, 0, 0)),
        ("1-2-3", (1, 2, 3, 0, 0, 0, 0)),
        (" 2020-01-02 3:04:5.5 ", (2020, 1, 2, 3, 4, 5_500_000, 0)),
        ("2020-01-02T03Z", (2020, 1, 2, 3, 0, 0, 0)),
        ("2020-01-02 03:04 UTC", (2020, 1, 2, 3, 4, 0, 0)),
        ("2020-01-02T03:04+05:30", (2020, 1, 2, 3, 4, 0, 330)),
        ("2020-01-02T03:04-0530", (2020, 1, 2, 3, 4, 0, -330)),
        ("2020-01-02+01:00", (2020, 1, 2, 0, 0, 0, 60)),
        ("2020-01T03-01", (2020, 1, 1, 3, 0, 0, -60)),
        ("-0044-03-15", (-44, 3, 15, 0, 0, 0, 0)),
        ("360000-02-30", (360000, 2, 30, 0, 0, 0, 0)),
    ],
)
def test_parts_may_be_left_out(text, fields):
    assert read_date(text) == fields


@pytest.mark.parametrize(
    "text", ["", "soon", "2020-", "2020-1-1-", "12:00", "2020-01-01T1:2:3:4", *SHIFTED]
)
def test_other_texts_are_no_dates(text):
    assert read_date(text) is None
    assert datetime64_of(text) is None


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("2020-13-01", False),
        ("2020-00-01", False),
        ("2020-02-31", True),  # of some calendar perhaps
        ("2020-01-32", False),
        ("2020-01-01T24", False),
        ("2020-01-01T23:60", False),
        ("2020-01-01T23:59:60", False),
        ("2020-01-01T23:59:59.9", True),
    ],
)
def test_a_day_and_a_time_of_day_are_some(text, holds):
    assert read_date(text).is_some_day == holds


def test_dates_that_numpy_does_not_know_are_none():
    assert datetime64_of("2020-02-30") is None
    assert datetime64_of("2020-01-01T12:00+01:30") == np.datetime64("2020-01-01T10:30")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("2020", "year"),
        ("2020-02", "month"),
        ("2020-02-03", "day"),
        ("2020-02-03T04", "time"),
        ("2020-02 04", "time"),
        ("2020Z", "year"),
    ],
)
def test_the_smallest_part_that_is_named(text, part):
    assert smallest_part(text) == part
