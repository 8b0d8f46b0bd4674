"""Coordinates of a dimension as the user writes them: ``lat=10:20:0.5``, ``time=2020-01-31``.

With a step, ``10:20:0.5`` are new coordinates; without one, ``10:20`` are the training coordinates
in that range, its ends included.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dkrls_cli.errors import SettingError
from dkrls_cli.spelling import suggest

if TYPE_CHECKING:
    from dkrls_cli.arrays import Array
    from dkrls_cli.grid.axes import Axis
    from dkrls_cli.grid.calendars import TimeScale

_CLOCK = r"\d{1,2}(?::\d{1,2}(?::\d{1,2}(?:\.\d*)?)?)?"
_TIME = rf"[+-]?\d+(?:-\d+){{0,2}}(?:[T ]{_CLOCK})?Z?"
_DATE_STEPS = re.compile(rf"({_TIME}):({_TIME}):([^:]+)")
_DATE_RANGE = re.compile(rf"({_TIME}):({_TIME})")
# Degrees that two longitudes may differ by and be the same, as stored in single and in double
# precision.
_SAME_DEGREES = {"float32": 1e-4, "float64": 1e-9}
# Days that two times may differ by and be the same: about 0.1 ms, above the rounding of dates.
_SAME_DAYS = 1e-9
# Decimals of degrees that are kept when a longitude is moved by a turn: 359.9 is -0.1.
_DEGREE_DECIMALS = 9
# Coordinates in a range: more are a slip of the step, and take minutes and gigabytes to answer.
_MOST = 10**6


def parse_at(
    texts: Sequence[str] | None, model_axes: Sequence[Axis], owner: str = "model"
) -> dict[str, Any]:
    """Return the coordinates asked for, by dimension.

    Parameters
    ----------
    texts
        One ``DIM=SPEC`` for each dimension. SPEC is ``all``, a list such as ``10,12.5,20``, a
        range ``start:stop:step`` that includes the stop if it falls on a step, or a range
        ``start:stop`` of the model's own coordinates. DIM is found by
        :func:`dkrls_cli.grid.cf.find_axis`.
    model_axes
        Axes of the model. A dimension that is not named keeps its own coordinates.
    owner
        Word for a message: what has the axes, a model or a file.

    Raises
    ------
    SettingError
        If a text cannot be understood, or names no dimension of the model; if the model has no
        coordinate in a range.

    Examples
    --------
    >>> from dkrls_cli.grid.axes import axis_of
    >>> axes = [axis_of("latitude", [50.0, 40.0, 30.0, 20.0])]
    >>> parse_at(["lat=20:40"], axes)["latitude"].tolist()
    [40.0, 30.0, 20.0]
    """
    from dkrls_cli.grid.cf import find_axis

    at: dict[str, Any] = {}
    given: set[str] = set()
    for text in texts or ():
        name, equals, spec = (part.strip() for part in text.partition("="))
        if not equals or not spec:
            raise SettingError(f"'{text}' is not DIM=SPEC, like lat=10:20:0.5.")
        axis = find_axis(name, model_axes, owner)
        dim = axis.name
        if dim in given:
            raise SettingError(
                f"Coordinates of '{dim}' were given twice. Put commas between them: {dim}=1,2,3."
            )
        given.add(dim)
        if spec != "all":
            at[dim] = _coordinates(axis, spec)
    return at


def parse_region(texts: Sequence[str], axes: Sequence[Axis]) -> dict[str, Any]:
    """Return the ranges of a region by dimension: its two ends, or None for all of a dimension.

    Parameters
    ----------
    texts
        Texts such as ``lat=20:60,lon=-10:30``, ``time=2000:2009`` or ``lat,lon``.
    axes
        Axes to choose from, by name or by what they are.

    Raises
    ------
    SettingError
        If a text cannot be understood, or a dimension is named twice.

    Examples
    --------
    >>> from dkrls_cli.grid.axes import axis_of
    >>> parse_region(["lat=20:60,lon"], [axis_of("lat", [0.0, 9.0]), axis_of("lon", [0.0, 9.0])])
    {'lat': (20.0, 60.0), 'lon': None}
    """
    from dkrls_cli.grid.cf import find_axis

    found: dict[str, Any] = {}
    for word in (word.strip() for text in texts for word in text.split(",")):
        name, equals, spec = (part.strip() for part in word.partition("="))
        axis = find_axis(name, axes, "model", " for a mean over a region")
        if axis.name in found:
            raise SettingError(f"'{axis.name}' is named twice in the region.")
        found[axis.name] = _ends(axis, word, spec) if equals else None
    return found


def _ends(axis: Axis, text: str, spec: str) -> tuple[Any, Any]:
    """Return the two ends of a range: numbers, or texts of dates."""
    if axis.time is not None:
        match = _DATE_RANGE.fullmatch(spec)
        if match is None:
            raise SettingError(f"'{text}' is not DIM=FIRST:LAST, like time=2000:2009.")
        return match[1], match[2]
    low, colon, high = spec.partition(":")
    if not colon or ":" in high:
        raise SettingError(f"'{text}' is not DIM=LOW:HIGH, like lat=20:60.")
    return _number(axis.name, low), _number(axis.name, high)


def _coordinates(axis: Axis, spec: str) -> Any:
    if axis.labels is not None:
        return _labels(axis, spec)
    if axis.time is not None:
        return _dates(axis, spec)
    if spec.count(":") == 1:
        return _numbers_between(axis, spec)
    if ":" in spec:
        return _range(axis, spec)
    return [_number(axis.name, word) for word in spec.split(",")]


def _labels(axis: Axis, spec: str) -> list[str]:
    """Return one label, those of a list with commas, or those of a range by position.

    Labels may have commas and colons themselves: what is a label is never split.
    """
    known = list(axis.labels or ())
    words = [word.strip() for word in spec.split(",")]
    if spec in known:
        return [spec]
    if ":" not in spec or all(word in known for word in words):
        return words
    ends = _label_range(spec, known)
    if ends is None:
        first, last = (word.strip() for word in spec.split(":", 1))
        unknown = first if first not in known else last
        raise SettingError(
            f"{axis.name}={spec}: '{axis.name}' has no '{unknown}'. A range of text labels is "
            f"first:last, by position.{suggest(unknown, known)}"
        )
    low, high = sorted(map(known.index, ends))
    return known[low : high + 1]


def _label_range(spec: str, known: Sequence[str]) -> tuple[str, str] | None:
    """Return the two labels around a colon, or None if no colon stands between two labels."""
    for place in (at for at, letter in enumerate(spec) if letter == ":"):
        first, last = spec[:place].strip(), spec[place + 1 :].strip()
        if first in known and last in known:
            return first, last
    return None


def _dates(axis: Axis, spec: str) -> Any:
    """Return dates as numbers, all of them dates that can be written again."""
    assert axis.time is not None
    try:
        numbers = _date_numbers(axis, axis.time, spec)
        axis.time.texts(numbers)
    except OverflowError:
        raise SettingError(
            f"{axis.name}={spec} is too far away to be counted in '{axis.time.units}'."
        ) from None
    return numbers


def _date_numbers(axis: Axis, scale: TimeScale, spec: str) -> Array:
    dim = axis.name
    words = [word.strip() for word in spec.split(",")]
    dates = all(re.fullmatch(_TIME, word) for word in words)  # 2020-01-01T12:30:00 is no range
    match = None if dates else _DATE_RANGE.fullmatch(spec)
    if match:
        return _dates_between(axis, scale, spec, match.groups())
    match = None if dates else _DATE_STEPS.fullmatch(spec)
    if match:
        start, stop, step = match.groups()
        first, last = scale.numbers([start, stop])
        _refuse_too_many(dim, spec, (last - first) / scale.length(step))
        numbers = scale.steps(start, stop, step)
        if not numbers.size:
            raise SettingError(f"{dim}={spec}: steps of {step} do not lead from {start} to {stop}.")
        return numbers
    if not dates and ":" in spec and "T" not in spec:
        raise SettingError(
            f"{dim}={spec} is no range of dates: start:stop, or start:stop:step with a step like "
            "7D."
        )
    return scale.numbers(words)


def _dates_between(axis: Axis, scale: TimeScale, spec: str, words: Sequence[str]) -> Array:
    """Return the axis' own dates from the beginning of one time to the end of another."""
    import numpy as np

    first, second = (scale.span(word) for word in words)
    if first[0] > second[0] and first[0] >= second[1]:
        first, second = second, first
    low, (last, end) = first[0], second
    numbers, slack = axis.numbers, _SAME_DAYS * scale.day
    inside = numbers >= low - slack
    inside &= (numbers < end - slack) | (abs(numbers - last) <= slack)
    if not inside.any():
        raise _nothing_between(axis, spec)
    return np.asarray(numbers[inside])


def _numbers_between(axis: Axis, spec: str) -> Array:
    """Return the axis' own numbers in a range; on a circle eastward from start to stop."""
    import numpy as np

    ends = axis.at([_number(axis.name, word) for word in spec.split(":")]).plain
    if axis.turn is not None:
        return _degrees_between(axis, spec, *ends.tolist())
    plain = axis.plain
    inside = (plain >= ends.min()) & (plain <= ends.max())
    if not inside.any():
        raise _nothing_between(axis, spec)
    return np.asarray(plain[inside])


def _degrees_between(axis: Axis, spec: str, start: float, stop: float) -> Array:
    """Return the axis' own longitudes from start eastward to stop, without a jump between them.

    They are moved by whole turns, so that 350:10 and -10:10 both are -10 to 10. Those of an axis
    that runs westward do so here.
    """
    import numpy as np

    turn = axis.turn or 0.0
    slack = _SAME_DEGREES.get(axis.dtype, _SAME_DEGREES["float64"])
    if start > stop:
        start, stop = (start - turn, stop) if start >= turn / 2 else (start, stop + turn)
    offset = np.mod(axis.plain - start + slack, turn) - slack
    inside = np.flatnonzero(offset <= min(stop - start, turn) + slack)
    if not inside.size:
        raise _nothing_between(axis, spec)
    backward = axis.size > 1 and np.median(np.diff(axis.plain)) < 0
    order = inside[np.argsort(offset[inside], kind="stable")][:: -1 if backward else 1]
    plain = axis.plain[order]
    turns = np.round((start + offset[order] - plain) / turn)
    moved = plain + turn * turns
    if axis.dtype != "float32":
        moved = np.round(moved, _DEGREE_DECIMALS)
    return np.asarray(np.where(turns == 0, plain, moved))


def _nothing_between(axis: Axis, spec: str) -> SettingError:
    """Return the error for a range in which an axis has no coordinate."""
    plain = axis.plain
    low, high = axis.take([int(plain.argmin()), int(plain.argmax())]).texts
    return SettingError(
        f"{axis.name}={spec}: there is no coordinate in that range. Known ones are from {low} to "
        f"{high}. Choose a wider range, or give a step: start:stop:step."
    )


def _range(axis: Axis, spec: str) -> Any:
    """Return the numbers of a range, with no more decimals than its words have.

    Longitudes go eastward across the seam: 350:10:5 are 350, 355, 360, 365, 370.
    """
    import numpy as np

    dim, words = axis.name, spec.split(":")
    if len(words) != 3:
        raise SettingError(f"{dim}={spec} is not start:stop:step, like {dim}=10:20:0.5.")
    start, stop, step = (_number(dim, word) for word in words)
    if axis.turn and step > 0 and 0 < start - stop < axis.turn:
        stop += axis.turn
    if step == 0 or (stop - start) / step < 0:
        raise SettingError(
            f"{dim}={spec}: steps of {step:g} do not lead from {start:g} to {stop:g}."
        )
    steps = (stop - start) / step * (1 + 1e-12) + 1e-9
    _refuse_too_many(dim, spec, steps)
    count = math.floor(steps) + 1
    # Decimal steps give decimal coordinates: 0.1 * 3 is to be 0.3, as written.
    digits = max(len(word.partition(".")[2]) for word in words) if "e" not in spec.lower() else 15
    return np.round(start + step * np.arange(count), digits)


def _refuse_too_many(dim: str, spec: str, steps: float) -> None:
    if steps >= _MOST:
        raise SettingError(
            f"{dim}={spec} has more than {_MOST} coordinates. Take a larger step, or ask for parts."
        )


def _number(dim: str, word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        raise SettingError(f"{dim}: '{word.strip()}' is not a number.") from None
    if not math.isfinite(number):
        raise SettingError(f"{dim}: '{word.strip()}' is not a finite number.")
    return number
