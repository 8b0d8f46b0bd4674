"""Which grids can go on across the poles: a latitude that reaches one, a longitude that closes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dkrls_cli.cascade.poles.continuation import Continuation, plan_rows
from dkrls_cli.errors import SettingError
from dkrls_cli.grid.axes import Attributes, Axis
from dkrls_cli.grid.cf import place_of

Poles = Literal["auto", "none", "scalar", "vector"]
"""Ways across the poles.

``scalar``: the field goes on with the same sign. ``vector``: it is a component of a vector and goes
on with the opposite sign. ``none``: it ends there. ``auto``: what predicts latitudes best.
"""

SIGNS: dict[Poles, int] = {"scalar": 1, "vector": -1}
"""Sign of a field behind a pole."""

KINDS: dict[int, Poles] = {1: "scalar", -1: "vector"}
"""Ways across the poles by sign."""

# Standard names of components of vectors, whose directions turn round at a pole.
_COMPONENT = re.compile(r"(^|_)(eastward|northward)(_|$)")


@dataclass(frozen=True)
class PolePlan:
    """A latitude and a longitude that can go on across the poles.

    Attributes
    ----------
    latitude, longitude
        Places of the axes in the data.
    kind
        The way across the poles; never ``none``.
    """

    latitude: int
    longitude: int
    kind: Poles = "auto"

    def signs(self, attrs: Attributes) -> tuple[int, ...]:
        """Return the signs that a variable with these attributes may have behind a pole."""
        if self.kind != "auto":
            return (SIGNS[self.kind],)
        standard = str(attrs.get("standard_name", "")).strip()
        return (-1,) if _COMPONENT.search(standard) else (1, -1)


def plan_poles(
    axes: Sequence[Axis], periods: Sequence[float | None], kind: Poles
) -> PolePlan | None:
    """Return how a grid goes on across the poles, or None if it does not.

    Parameters
    ----------
    axes
        Axes of the grid.
    periods
        Length of the circle that each of them lies on, or None for a line.
    kind
        The way across the poles that was asked for.

    Raises
    ------
    SettingError
        If the grid reaches no pole and was asked to go on there.
    """
    if kind == "none":
        return None
    kinds = [place_of(axis) for axis in axes]
    latitudes = [
        place
        for place, axis in enumerate(axes)
        if kinds[place] == "latitude" and periods[place] is None and any(plan_rows(axis.numbers))
    ]
    longitudes = [
        place
        for place, axis in enumerate(axes)
        if kinds[place] == "longitude" and _closes(axis, periods[place])
    ]
    if len(latitudes) == len(longitudes) == 1:
        return PolePlan(latitudes[0], longitudes[0], kind)
    if kind == "auto":
        return None
    lacking = "latitude that reaches a pole" if not latitudes else "longitude that closes a circle"
    raise SettingError(
        f"The data cannot go on across the poles as a {kind}: it has no {lacking}. Expected "
        "latitudes in degrees, in order, the last within one and a half steps of a pole, and "
        "longitudes all round.",
        setting="poles",
    )


def _closes(axis: Axis, period: float | None) -> bool:
    """Return whether longitudes go all round; a fit drops those that repeat the first."""
    return axis.turn is not None and (period == axis.turn or axis.distinct.size < axis.size)


def extend_axes(axes: Sequence[Axis], rows: Continuation) -> tuple[Axis, ...]:
    """Return axes with the latitudes of the rows that are added."""
    extended, own = list(axes), axes[rows.latitude]
    extended[rows.latitude] = replace(own, numbers=rows.extend_latitudes(own.numbers))
    return tuple(extended)
