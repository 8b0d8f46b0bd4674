"""Time as numbers: CF units and calendars, dates to numbers and back.

The only door to cftime, which is imported for the calendars and years that need it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.iso.dates import datetime64_of, read_date, smallest_part
from dkrls_cli.grid.iso.durations import SECONDS, read_duration

Dates = NDArray[Any]
"""datetime64 values, or cftime objects in an object array."""

# Microseconds in a unit of time, by the names that CF allows, and those that files have besides.
_MICROSECONDS: dict[str, float] = {
    **dict.fromkeys(("nanosecond", "nanoseconds", "nanosec", "nanosecs", "ns"), 1e-3),
    **dict.fromkeys(("microsecond", "microseconds", "microsec", "microsecs", "us"), 1),
    **dict.fromkeys(("millisecond", "milliseconds", "millisec", "millisecs", "msec", "ms"), 1000),
    **dict.fromkeys(("second", "seconds", "sec", "secs", "s"), 10**6),
    **dict.fromkeys(("minute", "minutes", "min", "mins"), 60 * 10**6),
    **dict.fromkeys(("hour", "hours", "hr", "hrs", "h"), 3600 * 10**6),
    **dict.fromkeys(("day", "days", "d"), 86400 * 10**6),
    **dict.fromkeys(("week", "weeks"), 7 * 86400 * 10**6),
}
# Units of fixed length that cftime does not know.
_OURS = ("nanosecond", "nanoseconds", "nanosec", "nanosecs", "ns", "week", "weeks")
# Calendar months in a unit of time that is no fixed number of days.
_MONTHS = {
    **dict.fromkeys(("month", "months", "mon", "mons"), 1),
    **dict.fromkeys(("year", "years", "yr", "yrs"), 12),
}
# Decimals to which counted months and years are rounded, the last that gives the same date: numbers
# of that many decimals come back from dates to the bit.
_DECIMALS = (13, 12, 9, 6)
# Microseconds to whose multiples dates are rounded, where a number cannot tell them apart: a month
# number of 2000 is exact to 0.6 microseconds, and a date at a full second must stay there.
_FULL = 1000.0
# Calendars that are Julian before the reform of 1582 and Gregorian after it.
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
# Mean length of a year in days, by calendar; the Gregorian one for all others.
_YEAR_DAYS = {"360_day": 360.0, "julian": 365.25}
_YEAR_DAYS |= dict.fromkeys(("noleap", "365_day"), 365.0)
_YEAR_DAYS |= dict.fromkeys(("all_leap", "366_day"), 366.0)
_MEAN_YEAR_DAYS = 365.2425
# First day of the Gregorian calendar. Earlier dates of a mixed calendar are left to cftime.
_REFORM = np.datetime64("1582-10-15")
_NO_DATE = "A date is missing (NaT). Expected a date for every coordinate."
_UNITS = re.compile(r"^\s*(\w+)\s+since\s+(.+?)\s*$", re.IGNORECASE)


@dataclass(frozen=True)
class TimeScale:
    """Numbers that stand for dates: units such as ``days since 1850-01-01``, and a calendar.

    Months and years are those of the calendar, counted from the reference date: 14.5 months are 14
    whole ones and half of the days of the 15th. So do files count that say ``months since``; those
    of UDUNITS, of 30.44 days each, would drift away from the months. In the calendar 360_day, where
    every month has 30 days, both are the same.

    Attributes
    ----------
    units
        ``<unit> since <date>``, as CF has it.
    calendar
        Name of a CF calendar.

    Raises
    ------
    InputError
        If the units or the calendar cannot be understood.

    Examples
    --------
    >>> scale = TimeScale("days since 2000-01-01", "360_day")
    >>> scale.numbers(["2000-02-30", "2001-01-01"])
    array([ 59., 360.])
    >>> scale.texts(np.array([59.0]))
    ['2000-02-30']
    >>> TimeScale("months since 1960-01-01").texts(np.array([0.0, 13.0, 14.5]))
    ['1960-01-01T00:00', '1961-02-01T00:00', '1961-03-16T12:00']
    """

    units: str
    calendar: str = "standard"

    def __post_init__(self) -> None:
        match = _UNITS.match(self.units)
        if not match or match[1].lower() not in (*_MICROSECONDS, *_MONTHS):
            raise InputError(
                f"Time units '{self.units}' are not '<unit> since <date>', with a unit from years "
                "to nanoseconds."
            )
        if self.calendar not in _CALENDARS:
            raise InputError(
                f"Unknown calendar '{self.calendar}'. Choose from: {', '.join(_CALENDARS)}."
            )
        fields = read_date(match[2])
        if fields is None or not fields.is_some_day:
            raise InputError(f"Time units '{self.units}' count from a date that cannot be read.")
        if fields.year == 0 and self.calendar in (*_MIXED, "julian"):
            raise InputError(
                f"Time units '{self.units}' count from a year 0, which the calendar "
                f"'{self.calendar}' does not have."
            )

    @cached_property
    def _months(self) -> int:
        """Calendar months in the unit, 0 if it has a fixed length."""
        return _MONTHS.get(self._parts[0].lower(), 0)

    @cached_property
    def _by_microseconds(self) -> bool:
        """Whether dates are read and written by the microseconds that the numbers stand for."""
        return self._months > 0 or self._parts[0].lower() in _OURS

    @property
    def counts_months(self) -> bool:
        """Whether the unit is a month or a year of the calendar, and these differ in length."""
        return self._months > 0 and self.calendar != "360_day"

    @cached_property
    def _microseconds(self) -> float:
        """Length of the unit in microseconds, a mean one if it is a month or a year."""
        if self._months:
            days = _YEAR_DAYS.get(self.calendar, _MEAN_YEAR_DAYS) * self._months / 12
            return days * _MICROSECONDS["day"]
        return _MICROSECONDS[self._parts[0].lower()]

    @property
    def day(self) -> float:
        """Length of a day in units of this scale."""
        return 86400e6 / self._microseconds

    @property
    def year(self) -> float:
        """Length of a mean year of the calendar in units of this scale."""
        if self._months:
            return 12.0 / self._months
        return _YEAR_DAYS.get(self.calendar, _MEAN_YEAR_DAYS) * self.day

    @cached_property
    def _parts(self) -> tuple[str, str]:
        match = _UNITS.match(self.units)
        assert match is not None
        return match[1], match[2]

    @cached_property
    def _epoch(self) -> np.datetime64 | None:
        """Reference date as datetime64, or None if numpy's calendar differs from this one."""
        if self.calendar not in (*_MIXED, "proleptic_gregorian"):
            return None
        epoch = datetime64_of(self._parts[1])
        if epoch is None or (self.calendar in _MIXED and epoch < _REFORM):
            return None
        return epoch

    def numbers(self, dates: Sequence[Any] | Dates) -> Array:
        """Return dates as numbers on this scale.

        Dates are ISO 8601 texts, datetime64, datetime or cftime objects.

        Raises
        ------
        SettingError
            If one is no date of the calendar.
        """
        values = np.asarray(dates)
        if not values.size:
            return np.empty(0)
        if values.dtype.kind == "O" and _are_none(values.ravel()).any():
            raise SettingError(_NO_DATE)
        if self._by_microseconds:
            return self._from_linear(self._linear.numbers(values))
        if values.dtype.kind in "US" or isinstance(values.flat[0], str):
            return self._from_texts([str(v) for v in values.tolist()])
        if hasattr(values.flat[0], "calendar"):
            return self._from_cftime(values)
        return self._from_datetime64(values.astype("datetime64[us]"))

    def _from_texts(self, texts: Sequence[str]) -> Array:
        if self._epoch is not None:
            try:
                return self._from_datetime64(np.array([datetime64_of(t) for t in texts]))
            except TypeError:
                pass  # numpy does not know one of the dates: cftime finds out which and why
        return self._from_cftime(np.array([self._cftime(t) for t in texts], object))

    def _from_datetime64(self, dates: NDArray[np.datetime64]) -> Array:
        if np.isnat(dates).any():
            raise SettingError(_NO_DATE)
        if self._epoch is None or (self.calendar in _MIXED and (dates < _REFORM).any()):
            return self._from_cftime(np.array([self._cftime(str(d)) for d in dates], object))
        return np.asarray((dates - self._epoch).astype(np.int64) / self._microseconds)

    def _from_cftime(self, dates: Dates) -> Array:
        import cftime

        other = getattr(dates.flat[0], "calendar", self.calendar)
        both = {_same_calendar(other), _same_calendar(self.calendar)}
        if both == {"standard", "proleptic_gregorian"} and all(_is_late(d) for d in dates.flat):
            return self._from_texts([date.isoformat() for date in dates.flat])
        if other and _same_calendar(other) != _same_calendar(self.calendar):
            raise SettingError(
                f"A date of calendar '{other}' was given for a time axis of calendar "
                f"'{self.calendar}'."
            )
        return np.asarray(cftime.date2num(dates, self.units, self.calendar), np.float64)

    def _cftime(self, text: str) -> Any:
        import cftime

        fields = read_date(text)
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
        """Return numbers as datetime64[ns] if its calendar and range hold them, else as cftime."""
        if self._by_microseconds:
            return self._linear.dates(self._to_linear(numbers))
        stamps = self._stamps(numbers)
        if stamps is not None:
            years = stamps.astype("datetime64[Y]").astype(np.int64) + 1970
            if years.size == 0 or (years.min() > 1678 and years.max() < 2262):
                return stamps.astype("datetime64[ns]")
        import cftime

        dates = cftime.num2date(numbers, self.units, self.calendar, only_use_cftime_datetimes=True)
        return np.asarray(dates, object)

    def texts(self, numbers: Array) -> list[str]:
        """Return numbers as ISO 8601 texts of equal precision, as short as all of them allow."""
        if self._by_microseconds:
            return self._linear.texts(self._to_linear(numbers))
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
        """Return numbers as datetime64[us], or None if numpy's calendar differs from this one."""
        with np.errstate(over="ignore"):
            micro = np.rint(numbers * self._microseconds)
        if self._epoch is None or (micro.size and np.abs(micro).max() > 2e17):
            return None
        stamps: NDArray[np.datetime64] = self._epoch + micro.astype("timedelta64[us]")
        early = self.calendar in _MIXED and (stamps < _REFORM).any()
        return None if early else stamps

    def steps(self, start: str, stop: str, step: str) -> Array:
        """Return numbers from start to stop, which is included if it falls on a step.

        A step is a number and a unit: 7D, 1M. Months and years count from the start, and a day
        that a month does not have is its last one: 01-31, 02-29, 03-31, 04-30.
        """
        if self._by_microseconds:
            return self._from_linear(self._linear.steps(start, stop, step))
        amount, unit = read_duration(step)
        first, last = self.numbers([start, stop])
        if unit in ("Y", "M"):
            return self._month_steps(start, last, amount, unit)
        width = self.length(step)
        count = int(np.floor((last - first) / width + 1e-9)) + 1
        return np.asarray(first + width * np.arange(count))

    def length(self, step: str) -> float:
        """Return the length of a step such as 7D or 1M in units of this scale.

        Months and years have their mean length.
        """
        amount, unit = read_duration(step)
        if unit in ("Y", "M"):
            return float(amount) * self.year / (1 if unit == "Y" else 12)
        return float(amount) * SECONDS[unit] * 1e6 / self._microseconds

    def span(self, text: str) -> tuple[float, float]:
        """Return where the time that a text names begins and ends, as numbers on this scale.

        A year, a month or a day lasts up to the next one, which is not part of it. With a time of
        day the text is an instant, and its end is its beginning.

        Raises
        ------
        SettingError
            If the text is no date of the calendar.

        Examples
        --------
        >>> TimeScale("days since 2020-01-01").span("2020-02")
        (31.0, 60.0)
        """
        begin = float(self.numbers([text])[0])
        match smallest_part(text):
            case "time":
                return begin, begin
            case "day":
                return begin, begin + self.day
            case "month":
                return begin, self._months_after(text, 1)
            case "year":
                return begin, self._months_after(text, 12)

    @cached_property
    def _linear(self) -> TimeScale:
        """A scale of fixed length from the same date, in microseconds: whole numbers are exact."""
        return TimeScale(f"microseconds since {self._parts[1]}", self.calendar)

    def _to_linear(self, numbers: Array) -> Array:
        """Return counted months or years as microseconds since the reference date."""
        counted = np.asarray(numbers, np.float64)
        if self.counts_months:
            whole = np.floor(counted)
            start, end = self._starts(whole), self._starts(whole + 1)
            micro = start + np.rint((counted - whole) * (end - start))
        else:
            micro = np.rint(counted * self._microseconds)
        full = _FULL * np.rint(micro / _FULL)
        blur = 2 * np.spacing(np.abs(counted)) * self._microseconds
        return np.asarray(np.where(np.abs(micro - full) <= blur, full, micro))

    def _from_linear(self, micro: Array) -> Array:
        """Return microseconds since the reference date as counted months or years."""
        mean = micro / self._microseconds
        if not self.counts_months:
            return self._shortest(mean, micro)
        whole = np.floor(mean) - 2  # calendar and mean months are never this far apart
        end = self._starts(whole + 1)
        while (late := end <= micro).any():
            whole = whole + late
            end = self._starts(whole + 1)
        start = self._starts(whole)
        return self._shortest(whole + (micro - start) / (end - start), micro)

    def _shortest(self, counted: Array, micro: Array) -> Array:
        """Return counted months rounded to as few decimals as give the same date."""
        found = counted
        for decimals in _DECIMALS:
            rounded = np.round(counted, decimals)
            found = np.where(self._to_linear(rounded) == micro, rounded, found)
        return found

    def _starts(self, counted: Array) -> Array:
        """Return where whole months or years begin, in microseconds since the reference date."""
        wanted, place = np.unique(counted, return_inverse=True)
        starts = [_month_start(self._linear, int(number) * self._months) for number in wanted]
        return np.array(starts, np.float64)[place].reshape(counted.shape)

    def _month_steps(self, start: str, last: float, amount: str, unit: str) -> Array:
        """Return numbers from start to last in whole months or years."""
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
        """Return the number of the date some months after the start, at the latest its last day."""
        fields = read_date(start)
        assert fields is not None  # `steps` has read the start already
        year, month, day, hour, minute, micro, offset = fields
        years, month = divmod(month - 1 + months, 12)
        year, month = year + years, month + 1
        day = min(day, self._last_day(year, month))
        text = f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{micro / 1e6:09.6f}"
        return float(self.numbers([text])[0]) - offset * 60e6 / self._microseconds

    def _last_day(self, year: int, month: int) -> int:
        """Return the number of days in a month."""
        import cftime

        return int(cftime.datetime(year, month, 1, calendar=self.calendar).daysinmonth)


@lru_cache(maxsize=2**16)
def _month_start(scale: TimeScale, months: int) -> float:
    """Return the number of the date some calendar months after the reference date of a scale."""
    return scale._months_after(scale._parts[1], months)


def _are_none(values: Dates) -> Mask:
    """Return which of some objects are no date: None, NaT or NaN, which differs from itself."""
    others = np.not_equal(values, values).astype(bool)
    return np.asarray(others | np.array([value is None for value in values.flat]))


def _is_late(date: Any) -> bool:
    """Return whether a date lies behind the reform of 1582, where both calendars agree."""
    return (date.year, date.month, date.day) >= (1582, 10, 15)


def _same_calendar(name: str) -> str:
    return {"gregorian": "standard", "365_day": "noleap", "366_day": "all_leap"}.get(name, name)
