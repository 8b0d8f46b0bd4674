"""Lengths of gaps and distances from data up to which cells are filled, as they are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from dkrls_cli.errors import SettingError
from dkrls_cli.gaps.holes import Reach
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.cf import by_dimension, period_beside, place_of
from dkrls_cli.model.answering.masks import steps_round

GapLimits: TypeAlias = Mapping[str, float | str]
"""The longest gaps to fill, by dimension: a number, or for time a duration like 5D."""

Distance: TypeAlias = float | str | Mapping[str, float | str]
"""The largest distance from data: a number of cells, or lengths by dimension as in gap limits."""


def read_lengths(
    given: Mapping[str, float | str], axes: Sequence[Axis], what: str
) -> dict[int, float]:
    """Return lengths by dimension in units of the coordinates, by place of the axis."""
    places = {axis.name: place for place, axis in enumerate(axes)}
    return {
        places[dim]: _length(axes[places[dim]], length, what)
        for dim, length in by_dimension(given, axes).items()
    }


def circle_of(axis: Axis, axes: Sequence[Axis]) -> float | None:
    """Return the length of the circle that an axis closes, also if it has a coordinate twice."""
    return period_beside(axis.take(axis.distinct), axes)


def _length(axis: Axis, given: float | str, what: str) -> float:
    """Return a length along an axis in units of its coordinates."""
    try:
        length = float(given)
    except ValueError:
        if axis.time is None:
            raise SettingError(
                f"Invalid {what} '{given}' along '{axis.name}': that is not a number."
            ) from None
        length = axis.time.length(str(given))
    if not length > 0:
        raise SettingError(f"Invalid {what} {given} along '{axis.name}'. It must be above 0.")
    return length


def read_reaches(
    within: Distance, axes: Sequence[Axis], hierarchy: Sequence[str]
) -> dict[int, Reach]:
    """Return how far from data cells are filled along each axis, by place of the axis."""
    if not isinstance(within, Mapping):
        return _cell_reaches(within, axes, hierarchy)
    lengths = read_lengths(within, axes, "distance")
    for place, length in lengths.items():
        axis = axes[place]
        if axis.labels is not None:
            raise SettingError(f"'{axis.name}' holds text labels, which have no distance.")
        if length == np.inf:
            raise SettingError(f"Invalid distance {length} along '{axis.name}'. It must be finite.")
    if not lengths:
        raise SettingError("The distance from data names no dimension. Give a number, or one each.")
    circles = {place: axes[place].turn or period_beside(axes[place], axes) for place in lengths}
    return {
        place: Reach(axes[place].numbers, length, circles[place])
        for place, length in lengths.items()
    }


def _cell_reaches(
    within: float | str, axes: Sequence[Axis], hierarchy: Sequence[str]
) -> dict[int, Reach]:
    """Return how far from data cells are filled, for a distance in cells."""
    try:
        count = float(within)
    except ValueError:
        count = np.nan
    if not 0 < count < np.inf:
        raise SettingError(
            f"Invalid distance '{within}' from data. Give a number of cells above 0, or a distance "
            "for each of some dimensions."
        )
    ordered = [place for place, axis in enumerate(axes) if axis.labels is None]
    places = [place for place in ordered if place_of(axes[place]) is not None]
    others = [place for place in ordered if axes[place].name != hierarchy[-1]]
    chosen = places or others or ordered
    if not chosen:
        raise SettingError("All dimensions hold text labels, which have no distance.")
    return {place: _steps(axes[place], axes, count) for place in chosen}


def _steps(axis: Axis, axes: Sequence[Axis], count: float) -> Reach:
    """Return a reach in steps from coordinate to coordinate, round a circle that they close."""
    ranks = np.argsort(np.argsort(axis.numbers, kind="stable"), kind="stable").astype(np.float64)
    return Reach(ranks, count, steps_round(axis, axes))


def distance_text(within: Distance) -> str:
    """Return a distance from data in words."""
    if isinstance(within, Mapping):
        return ", ".join(f"{dim} {length}" for dim, length in within.items())
    return "1 cell" if float(within) == 1 else f"{float(within):g} cells"
