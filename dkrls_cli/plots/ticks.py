"""Ticks of axes and colour bars: round numbers, degrees, dates of any calendar, and labels.

The same ticks serve pictures and drawings in the terminal, so nothing here depends on matplotlib,
and dates are counted by the calendar of the file.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dkrls_cli.errors import SettingError
from dkrls_cli.grid.axes import Axis, is_latitude
from dkrls_cli.grid.calendars import TimeScale

# Characters between two labels beside each other.
_GAP = 2

# Characters of a text label: more of them would leave no room for a picture.
_LONGEST = 20

# Share of the range by which a tick may lie beyond its end: rounding of steps.
_SLACK = 1e-9

# Degrees between ticks that divide a turn; above 90 there would be too few of them.
_DEGREES = (1, 2, 5, 10, 15, 20, 30, 45, 60, 90)

# Size from which on numbers are written with an exponent, and that of steps below which they are.
_LARGE, _SMALL = 1e6, 1e-4

# Steps of dates from short to long: amount and unit. Days are counted from the first of a month.
_DATE_STEPS = (
    *((amount, "S") for amount in (1, 5, 15, 30)),
    *((amount, "MIN") for amount in (1, 5, 15, 30)),
    *((amount, "H") for amount in (1, 3, 6, 12)),
    *((amount, "D") for amount in (1, 2, 5, 10, 15)),
    *((amount, "M") for amount in (1, 3, 6)),
    *((amount * size, "Y") for size in (1, 10, 100, 1000, 10000) for amount in (1, 2, 5)),
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DATE = re.compile(r"([+-]?\d+)-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d))?)?")


@dataclass(frozen=True)
class Tick:
    """A place on an axis and its label.

    Attributes
    ----------
    number
        The place.
    text
        The label in one line.
    short, context
        The label of an axis from left to right in two lines. The second is the same for many ticks,
        the year of months for example, and is shown where it changes; it may be empty.
    """

    number: float
    text: str
    short: str
    context: str = ""

    @property
    def width(self) -> int:
        """Characters of the wider of the two lines."""
        return max(len(self.short), len(self.context))


def axis_ticks(
    axis: Axis, low: float, high: float, most: int, room: float = math.inf
) -> list[Tick]:
    """Return the ticks of an axis: as many as there is room for.

    Parameters
    ----------
    axis
        The axis. Its numbers are the places.
    low, high
        The range that is shown.
    most
        Most ticks.
    room
        Characters that all labels beside each other may take, gaps between them included.
    """
    coarsest: list[Tick] = []
    for ticks in _candidates(axis, low, high, most):
        if len(ticks) >= 2 and _fit(ticks, most, room):
            return ticks
        if len(ticks) >= 2 or not coarsest:
            coarsest = ticks
    thinned = (coarsest[::step] for step in range(1, len(coarsest) + 1))
    return next((ticks for ticks in thinned if _fit(ticks, most, room)), coarsest[:1])


def _fit(ticks: Sequence[Tick], most: int, room: float) -> bool:
    """Return whether there is room for ticks beside each other."""
    return len(ticks) <= most and sum(tick.width + _GAP for tick in ticks) <= room


def number_ticks(low: float, high: float, most: int, room: float = math.inf) -> list[Tick]:
    """Return ticks at round numbers of a range, as many as there is room for."""
    return axis_ticks(Axis("value", np.array([low, high])), low, high, most, room)


def label_contexts(ticks: Sequence[Tick]) -> list[str]:
    """Return the second line of every label: its context where it changes, else nothing."""
    before = ["", *(tick.context for tick in ticks)]
    return [
        tick.context if tick.context != last else ""
        for tick, last in zip(ticks, before, strict=False)
    ]


def _candidates(axis: Axis, low: float, high: float, most: int) -> Iterator[list[Tick]]:
    """Yield ticks from close to far apart."""
    if axis.labels is not None or not high > low:
        yield from _own_ticks(axis, low, high)
        return
    if axis.time is not None:
        yield from _date_candidates(axis, axis.time, low, high, most)
        return
    for step in _steps(axis, high - low, most):
        yield _round_ticks(axis, low, high, step)


def _own_ticks(axis: Axis, low: float, high: float) -> Iterator[list[Tick]]:
    """Yield ticks at the coordinates themselves: at all, at every second, fifth, tenth, ..."""
    inside = np.flatnonzero((axis.numbers >= low) & (axis.numbers <= high))
    shown = axis.take(inside)
    every = [
        Tick(float(number), text, text)
        for number, text in zip(shown.numbers, map(_cut, shown.texts), strict=True)
    ]
    for size in range(len(str(len(every)))):
        for step in (1, 2, 5):
            yield every[:: step * 10**size]


def _cut(text: str) -> str:
    """Return the beginning of a label that is too long."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


# Numbers and degrees ------------------------------------------------------------------------------


def _steps(axis: Axis, span: float, most: int) -> Iterator[float]:
    """Yield round steps from short to long; those of degrees divide a turn."""
    first = math.floor(math.log10(span / (4 * max(most, 1))))
    round_steps = [m * 10.0**e for e in range(first, first + 5) for m in (1, 2, 5)]
    if not _in_degrees(axis):
        yield from round_steps
        return
    yield from (step for step in round_steps if step < 1)
    yield from map(float, _DEGREES)


def _in_degrees(axis: Axis) -> bool:
    return axis.turn is not None or is_latitude(axis)


def _round_ticks(axis: Axis, low: float, high: float, step: float) -> list[Tick]:
    """Return the ticks at multiples of a step."""
    slack = _SLACK * (high - low)
    first, last = math.ceil((low - slack) / step), math.floor((high + slack) / step)
    numbers = [place * step for place in range(first, last + 1)]
    decimals = max(0, -_exponent(step))
    size = max((abs(number) for number in numbers), default=0.0)
    exponent = size >= _LARGE or step < _SMALL
    digits = _exponent(size) - _exponent(step) if exponent and size else 0
    texts = [f"{n:.{digits}e}" if exponent else f"{n:.{decimals}f}" for n in numbers]
    if axis.turn is not None:
        texts = [longitude_text(number, decimals) for number in numbers]
    elif is_latitude(axis):
        texts = [latitude_text(number, decimals) for number in numbers]
    return [Tick(n, t, t) for n, t in zip(numbers, map(_shorten, texts), strict=True)]


def _exponent(number: float) -> int:
    """Return the power of ten of the first digit of a number above 0."""
    return math.floor(math.log10(number) + 1e-9)


def _shorten(text: str) -> str:
    """Return a number without the zeros of its exponent, and zero without a sign."""
    text = re.sub(r"e([+-])0*(\d)", lambda m: f"e{m[1].strip('+')}{m[2]}", text)
    return "0" if re.fullmatch(r"-?0(\.0*)?(e0)?", text) else text


def longitude_text(degrees: float, decimals: int) -> str:
    """Return a longitude as 120°W, 0° or 180°.

    >>> longitude_text(240.0, 0), longitude_text(-180.0, 0), longitude_text(360.5, 1)
    ('120°W', '180°', '0.5°E')
    """
    east = round(math.remainder(degrees, 360.0), decimals)
    side = "" if abs(east) in (0.0, 180.0) else "E" if east > 0 else "W"
    return f"{_magnitude(east, decimals)}°{side}"


def latitude_text(degrees: float, decimals: int) -> str:
    """Return a latitude as 30°N, 30°S or 0°.

    >>> latitude_text(-12.5, 1), latitude_text(-0.0, 0)
    ('12.5°S', '0°')
    """
    north = round(degrees, decimals)
    side = "" if north == 0 else "N" if north > 0 else "S"
    return f"{_magnitude(north, decimals)}°{side}"


def _magnitude(number: float, decimals: int) -> str:
    return "0" if number == 0 else f"{abs(number):.{decimals}f}"


# Dates --------------------------------------------------------------------------------------------


def _date_candidates(
    axis: Axis, scale: TimeScale, low: float, high: float, most: int
) -> list[list[Tick]]:
    """Return ticks at round dates, or at the own ones where the calendar lacks years around them.

    Steps that would give far too many ticks, or hardly one, are left out.
    """
    steps = [
        (amount, unit)
        for amount, unit in _DATE_STEPS
        if 0.5 <= (high - low) / scale.length(f"{amount}{unit}") <= 4 * most + 4
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of cftime, for years that no calendar has
        try:
            return [_date_ticks(scale, low, high, *step) for step in steps]
        except (SettingError, ValueError, OverflowError, Warning):
            return list(_own_ticks(axis, low, high))


def _date_ticks(scale: TimeScale, low: float, high: float, amount: int, unit: str) -> list[Tick]:
    """Return the ticks at multiples of a step of dates."""
    numbers = _dates(scale, low, high, amount, unit)
    slack = _SLACK * (high - low)
    inside = numbers[(numbers >= low - slack) & (numbers <= high + slack)]
    whole = inside + scale.length("0.5S")  # a date that is rounded down is the one meant
    texts = scale.texts(whole) if inside.size else []
    return [_date_tick(n, t, unit) for n, t in zip(inside.tolist(), texts, strict=True)]


def _dates(scale: TimeScale, low: float, high: float, amount: int, unit: str) -> np.ndarray:
    """Return the numbers of round dates around a range."""
    (year, month), (last_year, last_month) = (_year_month(scale, end) for end in (low, high))
    if unit == "Y":
        years = range(year // amount * amount, last_year + 1, amount)
        return scale.numbers([f"{one:04d}-01-01" for one in years if one])
    if unit == "M":
        months = range(12 * year, 12 * last_year + 12, amount)
        return scale.numbers([_first_of_month(place) for place in months])
    months = range(12 * year + month - 1, 12 * last_year + last_month)
    begins = scale.numbers([_first_of_month(place) for place in months])
    if unit == "D" and amount > 1:
        days = np.arange(0, 27, amount)[: max(2, 30 // amount)]
        return np.asarray((begins[:, None] + scale.day * days).ravel())
    step = scale.length(f"{amount}{unit}")
    midnight = begins[0] + math.floor((low - begins[0]) / scale.day) * scale.day
    first, last = (math.floor((number - midnight) / step) for number in (low, high))
    return np.asarray(midnight + step * np.arange(first, last + 2))


def _year_month(scale: TimeScale, number: float) -> tuple[int, int]:
    match = _DATE.match(scale.texts(np.array([number]))[0])
    if match is None:
        raise ValueError("a date that cannot be read")
    return int(match[1]), int(match[2])


def _first_of_month(months: int) -> str:
    """Return the first day of a month, counted from January of the year 0."""
    year, month = divmod(months, 12)
    return f"{year:04d}-{month + 1:02d}-01"


def _date_tick(number: float, text: str, unit: str) -> Tick:
    """Return the tick of a date, with as much of the date as its unit needs."""
    match = _DATE.match(text)
    if match is None:
        raise ValueError("a date that cannot be read")
    year, month, day = match[1], _MONTHS[int(match[2]) - 1], str(int(match[3]))
    date = f"{year}-{match[2]}"
    if unit == "Y":
        return Tick(number, year, year)
    if unit == "M":
        return Tick(number, date, month, year)
    if unit == "D":
        return Tick(number, f"{date}-{match[3]}", day, f"{month} {year}")
    clock = f"{match[4] or '00'}:{match[5] or '00'}" + (f":{match[6] or '00'}" * (unit == "S"))
    return Tick(number, f"{date}-{match[3]} {clock}", clock, f"{day} {month} {year}")
