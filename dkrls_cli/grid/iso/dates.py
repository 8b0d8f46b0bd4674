"""Dates as texts: what they say, and how much of a date they name."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

import numpy as np

_DATE = re.compile(
    r"^\s*([+-]?\d{1,6})(?:-(\d{1,2})(?:-(\d{1,2}))?)?"
    r"(?:[T\s]+(\d{1,2})(?::(\d{1,2})(?::(\d{1,2}(?:\.\d*)?))?)?)?"
    r"\s*(?:Z|UTC|GMT|([+-])(\d{1,2}):?(\d{2})?)?\s*$",
    re.IGNORECASE,
)


class DateFields(NamedTuple):
    """The numbers of a date: `micro` are microseconds of the minute, `offset` minutes from UTC."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    micro: int
    offset: int

    @property
    def is_some_day(self) -> bool:
        """Whether they are those of some day of some calendar, and of a time of day."""
        some_day = 1 <= self.month <= 12 and 1 <= self.day <= 31
        return some_day and self.hour < 24 and self.minute < 60 and self.micro < 60 * 10**6


def read_date(text: str) -> DateFields | None:
    """Return the numbers of a date, 1 or 0 for those that the text leaves out; None if it is none.

    An offset from UTC stands behind a day or a time of day: 2020-0130 is no year with an offset.

    >>> read_date("2020-02-30T12+01:00")
    DateFields(year=2020, month=2, day=30, hour=12, minute=0, micro=0, offset=60)
    """
    match = _DATE.match(text)
    if not match or (match[7] and not (match[3] or match[4])):
        return None
    year, month, day = int(match[1]), int(match[2] or 1), int(match[3] or 1)
    hour, minute = int(match[4] or 0), int(match[5] or 0)
    micro = round(float(match[6] or 0) * 1e6)
    sign = -1 if match[7] == "-" else 1
    offset = sign * (int(match[8] or 0) * 60 + int(match[9] or 0))
    return DateFields(year, month, day, hour, minute, micro, offset)


def smallest_part(text: str) -> Literal["year", "month", "day", "time"]:
    """Return the smallest part that the text of a date names.

    >>> smallest_part("2020"), smallest_part("2020-01"), smallest_part("2020-01-01T00")
    ('year', 'month', 'time')
    """
    match = _DATE.match(text)
    assert match is not None  # the text is one of a date
    _, month, day, hour, *_ = match.groups()
    if hour is not None:
        return "time"
    if day is not None:
        return "day"
    return "year" if month is None else "month"


def datetime64_of(text: str) -> np.datetime64 | None:
    """Return a date as datetime64[us], or None if it is no date of numpy's calendar."""
    fields = read_date(text)
    if fields is None:
        return None
    year, month, day, hour, minute, micro, offset = fields
    try:
        date = np.datetime64(f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}", "us")
    except ValueError:
        return None
    return date + np.timedelta64(micro, "us") - np.timedelta64(offset, "m")
