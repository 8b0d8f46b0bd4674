"""Coordinates of a dimension as the user writes them: ``lat=10:20:0.5``, ``time=2020-01-31``."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.arrays import Array
    from dkrls_cli.grid.axes import Axis
    from dkrls_cli.grid.calendars import TimeScale

_TIME = r"[+-]?\d+(?:-\d+){0,2}(?:[T ]\d+(?::\d+(?::\d+(?:\.\d*)?)?)?)?Z?"
_DATE_RANGE = re.compile(rf"({_TIME}):({_TIME}):([^:]+)")
# Coordinates in a range: more are a slip of the step, and would fill the memory.
_MOST = 10**8


def parse_at(texts: Sequence[str] | None, model_axes: Sequence[Axis]) -> dict[str, Any]:
    """Return the coordinates asked for, by dimension.

    Parameters
    ----------
    texts
        One ``DIM=SPEC`` for each dimension. SPEC is ``all``, a list such as ``10,12.5,20``, or a
        range ``start:stop:step`` that includes the stop if it falls on a step.
    model_axes
        Axes of the model. A dimension that is not named keeps its own coordinates.

    Raises
    ------
    SettingError
        If a text cannot be understood, or names no dimension of the model.
    """
    at: dict[str, Any] = {}
    axes = {axis.name: axis for axis in model_axes}
    for text in texts or ():
        dim, equals, spec = (part.strip() for part in text.partition("="))
        if not equals or not spec:
            raise SettingError(f"'{text}' is not DIM=SPEC, like lat=10:20:0.5.")
        if dim not in axes:
            raise SettingError(f"The model has no dimension '{dim}'. It has {', '.join(axes)}.")
        if dim in at:
            raise SettingError(
                f"Coordinates of '{dim}' were given twice. Put commas between them: {dim}=1,2,3."
            )
        if spec != "all":
            at[dim] = _coordinates(axes[dim], spec)
    return at


def _coordinates(axis: Axis, spec: str) -> Any:
    if axis.labels is not None:
        return _labels(axis, spec)
    if axis.time is not None:
        return _dates(axis, spec)
    if ":" in spec:
        return _range(axis.name, spec)
    return [_number(axis.name, word) for word in spec.split(",")]


def _labels(axis: Axis, spec: str) -> list[str]:
    """Return the labels of a list with commas, or the one label that has commas itself."""
    return [spec] if spec in (axis.labels or ()) else [w.strip() for w in spec.split(",")]


def _dates(axis: Axis, spec: str) -> Any:
    """Return dates as numbers, all of them dates that can be written again."""
    assert axis.time is not None
    try:
        numbers = _date_numbers(axis.name, axis.time, spec)
        axis.time.texts(numbers)
    except OverflowError:
        raise SettingError(
            f"{axis.name}={spec} is too far away to be counted in '{axis.time.units}'."
        ) from None
    return numbers


def _date_numbers(dim: str, scale: TimeScale, spec: str) -> Array:
    words = [word.strip() for word in spec.split(",")]
    dates = all(re.fullmatch(_TIME, word) for word in words)  # 2020-01-01T12:30:00 is no range
    match = None if dates else _DATE_RANGE.fullmatch(spec)
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
            f"{dim}={spec} is no range of dates: start:stop:step, with a step like 7D."
        )
    return scale.numbers(words)


def _range(dim: str, spec: str) -> Any:
    """Return the numbers of a range, with no more decimals than its words have."""
    import numpy as np

    words = spec.split(":")
    if len(words) != 3:
        raise SettingError(f"{dim}={spec} is not start:stop:step, like {dim}=10:20:0.5.")
    start, stop, step = (_number(dim, word) for word in words)
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
        raise SettingError(f"{dim}={spec} has more than {_MOST} coordinates. Take a larger step.")


def _number(dim: str, word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        raise SettingError(f"{dim}: '{word.strip()}' is not a number.") from None
    if not math.isfinite(number):
        raise SettingError(f"{dim}: '{word.strip()}' is not a finite number.")
    return number
