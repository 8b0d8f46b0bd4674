"""Time as numbers: CF units and calendars, dates to numbers and back.

The only door to cftime, which is imported for the calendars and years that need it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array
from dkrls_cli.errors import InputError, SettingError

Dates = NDArray[Any]
"""datetime64 values, or cftime objects in an object array."""

_MICROSECONDS = {
    **dict.fromkeys(("microsecond", "microseconds", "microsec", "microsecs", "us"), 1),
    **dict.fromkeys(("millisecond", "milliseconds", "millisec", "millisecs", "msec", "ms"), 1000),
    **dict.fromkeys(("second", "seconds", "sec", "secs", "s"), 10**6),
    **dict.fromkeys(("minute", "minutes", "min", "mins"), 60 * 10**6),
    **dict.fromkeys(("hour", "hours", "hr", "hrs", "h"), 3600 * 10**6),
    **dict.fromkeys(("day", "days", "d"), 86400 * 10**6),
}
_MIXED = ("standard", "gregorian")
_CALENDARS = (
    *_MIXED,
    "proleptic_gregorian",
    "julian",
    "noleap",
    "365_day",
    "all_leap",
    "366_day",
    "360_day",
)
_YEAR_DAYS = {"360_day": 360.0, "julian": 365.25}
_YEAR_DAYS |= dict.fromkeys(("noleap", "365_day"), 365.0)
_YEAR_DAYS |= dict.fromkeys(("all_leap", "366_day"), 366.0)
_MEAN_YEAR_DAYS = 365.2425
_REFORM = np.datetime64("1582-10-15")
_UNITS = re.compile(r"^\s*(\w+)\s+since\s+(.+?)\s*$", re.IGNORECASE)
_DATE = re.compile(
    r"^\s*([+-]?\d{1,6})(?:-(\d{1,2})(?:-(\d{1,2}))?)?"
    r"(?:[T\s]+(\d{1,2})(?::(\d{1,2})(?::(\d{1,2}(?:\.\d*)?))?)?)?"
    r"\s*(?:Z|UTC|GMT|([+-])(\d{1,2}):?(\d{2})?)?\s*$",
    re.IGNORECASE,
)
_STEP = re.compile(r"^\s*P?T?(\d+(?:\.\d+)?)\s*(Y|M|W|D|H|MIN|S)\s*$", re.IGNORECASE)
_STEP_SECONDS = {"W": 7 * 86400, "D": 86400, "H": 3600, "MIN": 60, "S": 1}


@dataclass(frozen=True)
class TimeScale:
    """Numbers that stand for dates: ``units`` such as ``days since 1850-01-01``, and a calendar.

    Examples
    --------
    >>> scale = TimeScale("days since 2000-01-01", "360_day")
    >>> scale.numbers(["2000-02-30", "2001-01-01"])
    array([ 59., 360.])
    >>> scale.texts(np.array([59.0]))
    ['2000-02-30']
    """

    units: str
    calendar: str = "standard"

    def __post_init__(self) -> None:
        match = _UNITS.match(self.units)
        if not match or match[1].lower() not in _MICROSECONDS:
            raise InputError(f"Time units '{self.units}' are not '<unit> since <date>'.")
        if self.calendar not in _CALENDARS:
            raise InputError(f"Unknown calendar '{self.calendar}'.")
        fields = _fields(match[2])
        if fields is None:
            raise InputError(f"Time units '{self.units}' count from a date that cannot be read.")
        if fields[0] == 0 and self.calendar in (*_MIXED, "julian"):
            raise InputError(f"Time units '{self.units}' count from a year 0, which never was.")

    @cached_property
    def _microseconds(self) -> int:
        """Length of the unit."""
        return _MICROSECONDS[self._parts[0].lower()]

    @property
    def day(self) -> float:
        """A day in units of this scale."""
        return 86400e6 / self._microseconds

    @property
    def year(self) -> float:
        """A mean year of the calendar in units of this scale."""
        return _YEAR_DAYS.get(self.calendar, _MEAN_YEAR_DAYS) * self.day

    @cached_property
    def _parts(self) -> tuple[str, str]:
        match = _UNITS.match(self.units)
        assert match is not None
        return match[1], match[2]

    @cached_property
    def _epoch(self) -> np.datetime64 | None:
        """The reference as datetime64, or None where numpy's calendar is not this one's."""
        if self.calendar not in (*_MIXED, "proleptic_gregorian"):
            return None
        epoch = _datetime64(self._parts[1])
        if epoch is None or (self.calendar in _MIXED and epoch < _REFORM):
            return None
        return epoch

    def numbers(self, dates: Sequence[Any] | Dates) -> Array:
        """Dates (ISO texts, datetime64, datetime or cftime objects) as numbers on this scale."""
        values = np.asarray(dates)
        if values.dtype.kind in "US" or (values.size and isinstance(values.flat[0], str)):
            return self._from_texts([str(v) for v in values.tolist()])
        if values.dtype.kind == "O" and values.size and hasattr(values.flat[0], "calendar"):
            return self._from_cftime(values)
        return self._from_datetime64(values.astype("datetime64[us]"))

    def _from_texts(self, texts: Sequence[str]) -> Array:
        if self._epoch is not None:
            try:
                return self._from_datetime64(np.array([_datetime64(t) for t in texts]))
            except TypeError:
                pass  # one of them is no date to numpy: found out below which, and said
        return self._from_cftime(np.array([self._cftime(t) for t in texts], object))

    def _from_datetime64(self, dates: NDArray[np.datetime64]) -> Array:
        if np.isnat(dates).any():
            raise SettingError("A date is missing (NaT).")
        if self._epoch is None or (self.calendar in _MIXED and (dates < _REFORM).any()):
            return self._from_cftime(np.array([self._cftime(str(d)) for d in dates], object))
        return np.asarray((dates - self._epoch).astype(np.int64) / self._microseconds)

    def _from_cftime(self, dates: Dates) -> Array:
        import cftime

        other = getattr(dates.flat[0], "calendar", self.calendar) if dates.size else self.calendar
        if other and _same_calendar(other) != _same_calendar(self.calendar):
            raise SettingError(f"A date of calendar '{other}' on a '{self.calendar}' time axis.")
        return np.asarray(cftime.date2num(dates, self.units, self.calendar), np.float64)

    def _cftime(self, text: str) -> Any:
        import cftime

        fields = _fields(text)
        if fields is None:
            raise SettingError(f"'{text}' is not a date. Expected ISO 8601, like 2020-01-31T12:00.")
        year, month, day, hour, minute, micro, offset = fields
        try:
            date = cftime.datetime(
                year,
                month,
                day,
                hour,
                minute,
                micro // 10**6,
                micro % 10**6,
                calendar=self.calendar,
            )
        except ValueError as error:
            calendar = f"calendar '{self.calendar}'"
            raise SettingError(f"'{text}' is not a date of {calendar}: {error}.") from None
        return date - timedelta(minutes=offset)

    def dates(self, numbers: Array) -> Dates:
        """Numbers as datetime64[ns] where that calendar and range hold them, else as cftime."""
        stamps = self._stamps(numbers)
        if stamps is not None:
            years = stamps.astype("datetime64[Y]").astype(np.int64) + 1970
            if years.size == 0 or (years.min() > 1678 and years.max() < 2262):
                return stamps.astype("datetime64[ns]")
        import cftime

        dates = cftime.num2date(numbers, self.units, self.calendar, only_use_cftime_datetimes=True)
        return np.asarray(dates, object)

    def texts(self, numbers: Array) -> list[str]:
        """Numbers as ISO 8601 texts, as short as they all allow."""
        stamps = self._stamps(numbers)
        if stamps is not None:
            texts: list[str] = np.datetime_as_string(stamps, unit="us").tolist()
        else:
            import cftime

            dates = cftime.num2date(numbers, self.units, self.calendar)
            texts = [d.isoformat(timespec="microseconds") for d in np.atleast_1d(dates)]
        for tail in (".000000", ":00", "T00:00"):
            if not all(text.endswith(tail) for text in texts):
                break
            texts = [text[: -len(tail)] for text in texts]
        return texts

    def _stamps(self, numbers: Array) -> NDArray[np.datetime64] | None:
        """Numbers as datetime64[us], or None where numpy's calendar is not this one's."""
        micro = np.rint(numbers * self._microseconds)
        if self._epoch is None or (micro.size and np.abs(micro).max() > 2e17):
            return None
        stamps: NDArray[np.datetime64] = self._epoch + micro.astype("timedelta64[us]")
        early = self.calendar in _MIXED and (stamps < _REFORM).any()
        return None if early else stamps

    def steps(self, start: str, stop: str, step: str) -> Array:
        """Numbers from start to stop (included if it falls on a step); a step like 7D or 1M."""
        amount, unit = _amount(step)
        first, last = self.numbers([start, stop])
        if unit in ("Y", "M"):
            return self._month_steps(start, last, amount, unit)
        width = self.length(step)
        count = int(np.floor((last - first) / width + 1e-9)) + 1
        return np.asarray(first + width * np.arange(count))

    def length(self, step: str) -> float:
        """A step like 7D or 1M in units of this scale; months and years are mean ones."""
        amount, unit = _amount(step)
        if unit in ("Y", "M"):
            return float(amount) * self.year / (1 if unit == "Y" else 12)
        return float(amount) * _STEP_SECONDS[unit] * 1e6 / self._microseconds

    def _month_steps(self, start: str, last: float, amount: str, unit: str) -> Array:
        if "." in amount:
            raise SettingError(
                f"A step of {amount}{unit} is not a whole number of months or years."
            )
        width = int(amount) * (12 if unit == "Y" else 1)
        numbers: list[float] = []
        while (number := self._months_after(start, width * len(numbers))) <= last:
            numbers.append(number)
        return np.array(numbers)

    def _months_after(self, start: str, months: int) -> float:
        fields = _fields(start)
        assert fields is not None  # it was a date a moment ago
        year, month, day, hour, minute, micro, _ = fields
        turned = month - 1 + months
        text = f"{year + turned // 12:04d}-{turned % 12 + 1:02d}-{day:02d}"
        return float(self.numbers([f"{text}T{hour:02d}:{minute:02d}:{micro / 1e6:09.6f}"])[0])


def _amount(step: str) -> tuple[str, str]:
    """Number and unit of a time step."""
    match = _STEP.match(step)
    if not match or float(match[1]) <= 0:
        raise SettingError(
            f"'{step}' is not a time step. Expected a number and Y, M, W, D, H, MIN or S: 7D."
        )
    minutes = re.match(r"P?T.*\dM$", step, re.IGNORECASE)
    return match[1], "MIN" if minutes else match[2].upper()


def _fields(text: str) -> tuple[int, int, int, int, int, int, int] | None:
    """Year, month, day, hour, minute, microseconds, offset from UTC in minutes."""
    match = _DATE.match(text)
    if not match:
        return None
    year, month, day = int(match[1]), int(match[2] or 1), int(match[3] or 1)
    hour, minute = int(match[4] or 0), int(match[5] or 0)
    micro = round(float(match[6] or 0) * 1e6)
    sign = -1 if match[7] == "-" else 1
    offset = sign * (int(match[8] or 0) * 60 + int(match[9] or 0))
    return year, month, day, hour, minute, micro, offset


def _datetime64(text: str) -> np.datetime64 | None:
    fields = _fields(text)
    if fields is None:
        return None
    year, month, day, hour, minute, micro, offset = fields
    try:
        date = np.datetime64(f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}", "us")
    except ValueError:
        return None
    return date + np.timedelta64(micro, "us") - np.timedelta64(offset, "m")


def _same_calendar(name: str) -> str:
    return {"gregorian": "standard", "365_day": "noleap", "366_day": "all_leap"}.get(name, name)
