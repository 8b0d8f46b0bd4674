"""What dimensions are, by the conventions of CF and by their names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dkrls_cli.circle import spacing
from dkrls_cli.errors import SettingError
from dkrls_cli.grid.axes import Axis

_CIRCLES = {
    **dict.fromkeys(("month", "months", "monthofyear"), 12.0),
    **dict.fromkeys(("hour", "hours", "hourofday"), 24.0),
    **dict.fromkeys(("doy", "dayofyear", "yearday"), 365.25),
}


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def natural_period(axis: Axis) -> float | None:
    """The circle that the coordinates close, if they do: the way round is an ordinary step.

    Degrees of longitude, and by their name months, hours of the day and days of the year; twelve
    names of months in order are months as well.
    """
    named = _CIRCLES.get(axis.name.lower().replace("_", "")) if axis.time is None else None
    if axis.labels is not None:
        named = 12.0 if tuple(label.lower()[:3] for label in axis.labels) == _MONTHS else None
    circle = axis.turn or named
    if circle is None or axis.size < 3:
        return None
    way_round = circle - float(np.ptp(axis.numbers))
    return circle if 0 < way_round <= 1.5 * spacing(axis.numbers) else None


def natural_cycles(axis: Axis) -> tuple[float, ...]:
    """The day and the year, for times that see four times of them and come round twice."""
    if axis.time is None or axis.size < 3:
        return ()
    longest = float(np.ptp(axis.numbers)) / 2
    return tuple(
        cycle
        for cycle in (axis.time.day, axis.time.year)
        if 4 * spacing(axis.numbers) <= cycle <= longest
    )


def is_time(axis: Axis) -> bool:
    """Whether a dimension is time, by its units, attributes or name."""
    marked = str(axis.attrs.get("axis", "")).upper() == "T"
    named = "time" in (axis.name.lower(), str(axis.attrs.get("standard_name", "")).lower())
    return axis.time is not None or marked or named


def hierarchy_of(axes: Sequence[Axis], levels: Sequence[str] | None) -> tuple[str, ...]:
    """Names from level 0 to the last."""
    dims = [axis.name for axis in axes]
    if levels is None:
        return tuple(axis.name for axis in sorted(axes, key=is_time))
    names = tuple(levels)
    if sorted(names) != sorted(dims):
        raise SettingError(
            f"The levels {', '.join(names)} are not the dimensions of the data, {', '.join(dims)}. "
            "Name each of them once."
        )
    return names
