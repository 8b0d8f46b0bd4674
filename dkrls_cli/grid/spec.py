"""What ``--at`` says: coordinates of a dimension as the user writes them."""

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
_MOST = 10**8


def parse_at(texts: Sequence[str] | None, model_axes: Sequence[Axis]) -> dict[str, Any]:
    """Coordinates by dimension; a dimension that is not named keeps its training coordinates."""
    at: dict[str, Any] = {}
    axes = {axis.name: axis for axis in model_axes}
    for text in texts or ():
        dim, equals, spec = (part.strip() for part in text.partition("="))
        if not equals or not spec:
            raise SettingError(f"--at {text} is not DIM=SPEC, like --at lat=10:20:0.5.")
        if dim not in axes:
            raise SettingError(f"The model has no dimension '{dim}'. It has {', '.join(axes)}.")
        if dim in at:
            raise SettingError(f"--at was given twice for '{dim}'. Put commas: --at {dim}=1,2,3.")
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
    """A label may itself hold commas."""
    return [spec] if spec in (axis.labels or ()) else [w.strip() for w in spec.split(",")]


def _dates(axis: Axis, spec: str) -> Any:
    """Dates as numbers, all of them dates that can be written."""
    assert axis.time is not None
    try:
        numbers = _date_numbers(axis.name, axis.time, spec)
        axis.time.texts(numbers)
    except OverflowError:
        raise SettingError(f"--at {axis.name}={spec}: that is too far away to count.") from None
    return numbers


def _date_numbers(dim: str, scale: TimeScale, spec: str) -> Array:
    words = [word.strip() for word in spec.split(",")]
    dates = all(re.fullmatch(_TIME, word) for word in words)  # 2020-01-01T12:30:00 is no range
    match = None if dates else _DATE_RANGE.fullmatch(spec)
    if match:
        start, stop, step = match.groups()
        numbers = scale.steps(start, stop, step)
        if not numbers.size:
            raise SettingError(
                f"--at {dim}={spec}: steps of {step} do not lead from {start} to {stop}."
            )
        return numbers
    if not dates and ":" in spec and "T" not in spec:
        raise SettingError(f"--at {dim}={spec} is no range of dates: start:stop:step, step 7D.")
    return scale.numbers(words)


def _range(dim: str, spec: str) -> Any:
    import numpy as np

    words = spec.split(":")
    if len(words) != 3:
        raise SettingError(f"--at {dim}={spec} is not start:stop:step, like {dim}=10:20:0.5.")
    start, stop, step = (_number(dim, word) for word in words)
    if step == 0 or (stop - start) / step < 0:
        raise SettingError(
            f"--at {dim}={spec}: steps of {step:g} do not lead from {start:g} to {stop:g}."
        )
    count = int(np.floor((stop - start) / step * (1 + 1e-12) + 1e-9)) + 1
    if count > _MOST:
        raise SettingError(f"--at {dim}={spec} are {count} coordinates, more than {_MOST}.")
    # Decimal steps give decimal coordinates: 0.1 * 3 is to be 0.3, as written.
    digits = max(len(word.partition(".")[2]) for word in words) if "e" not in spec.lower() else 15
    return np.round(start + step * np.arange(count), digits)


def _number(dim: str, word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        raise SettingError(f"--at {dim}: '{word.strip()}' is not a number.") from None
    if not math.isfinite(number):
        raise SettingError(f"--at {dim}: '{word.strip()}' is not a finite number.")
    return number
