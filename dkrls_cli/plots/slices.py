"""Which part of a grid a picture shows: one or two dimensions, and how these are turned.

Of more than two dimensions, places are shown before times: a map at the last time, a section at the
first of other coordinates. Longitude and time run from left to right, the vertical and latitude
upward or downward, and coordinates rise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.circle import nearest
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.source import Source, mask_unusable
from dkrls_cli.grid.axes import Axis, is_latitude, list_some
from dkrls_cli.grid.cf import is_time, kilometres, place_of
from dkrls_cli.grid.grid import Grid

# Dimensions that a picture has.
_MOST = 2

# Least and largest height of a panel as a part of its width, and that of one without a natural one.
_FLATTEST, _TALLEST, _USUAL = 0.3, 1.4, 0.62

# Part of a number that rounding may change: coordinates of files are often in single precision.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Fixed:
    """A coordinate that a picture shows and that nobody asked for by its very value.

    Attributes
    ----------
    dim, text
        The dimension, and the coordinate as the user would write it.
    reason
        Why it is shown: ``the last of 48``.
    asked
        Whether another coordinate was asked for, to which this is the nearest.
    """

    dim: str
    text: str
    reason: str
    asked: bool = False


@dataclass(frozen=True, eq=False)
class Slice:
    """A grid on one or two dimensions, with rising coordinates, the one from left to right last.

    Attributes
    ----------
    grid
        The values on these dimensions.
    fixed
        Axes of one coordinate that the whole grid has beside them.
    """

    grid: Grid
    fixed: tuple[Axis, ...]


def fix_dimensions(axes: Sequence[Axis]) -> dict[str, int]:
    """Return the indices at which all but two dimensions are shown: the last time, else the first.

    >>> from dkrls_cli.grid.axes import axis_of
    >>> names = ("time", "lat", "lon")
    >>> fix_dimensions([axis_of(name, [0.0, 1.0, 2.0]) for name in names])
    {'time': 2}
    """
    long = [axis for axis in axes if axis.size > 1]
    kept = sorted(range(len(long)), key=lambda place: (_rank(long[place]), place))[-_MOST:]
    rest = [axis for place, axis in enumerate(long) if place not in kept]
    return {axis.name: shown_index(axis) for axis in rest}


def _rank(axis: Axis) -> int:
    """Return how much a dimension should be shown: places first, times last."""
    if is_time(axis):
        return 0
    ranks = {"longitude": 3, "latitude": 3, "projection": 3, "vertical": 2}
    return ranks.get(place_of(axis) or "", 1)


def shown_index(axis: Axis) -> int:
    """Return the index of the coordinate that is shown: that of the last time, or 0."""
    return int(np.argmax(axis.numbers)) if is_time(axis) else 0


def describe_fixed(axes: Sequence[Axis], fixed: Mapping[str, int]) -> list[Fixed]:
    """Return what was chosen for dimensions of which one coordinate is shown."""
    known = {axis.name: axis for axis in axes}
    return [_describe(known[dim], index) for dim, index in fixed.items()]


def _describe(axis: Axis, index: int) -> Fixed:
    which = "last" if is_time(axis) else "first"
    return Fixed(axis.name, axis.take([index]).texts[0], f"the {which} of {axis.size}")


def read_slice(source: Source, at: Mapping[str, Any]) -> tuple[Slice, list[Fixed]]:
    """Read the part of a variable of a file that a picture shows.

    Parameters
    ----------
    source
        The variable, whose values are not read yet.
    at
        Coordinates by dimension. The cells that they lie in are shown.

    Returns
    -------
    Slice
        The values on one or two dimensions.
    list of Fixed
        What is shown in place of what was asked for, and what was chosen for other dimensions.

    Raises
    ------
    SettingError
        If a coordinate lies in no cell of the file, or one cell is left.
    """
    told: list[Fixed] = []
    indices: list[Indices] = []
    for axis in source.axes:
        if axis.name not in at:
            indices.append(np.arange(axis.size))
            continue
        asked = axis.at(at[axis.name])
        indices.append(_find_cells(axis, asked))
        told += _describe_nearest(axis, asked, indices[-1])
    part = [axis.take(places) for axis, places in zip(source.axes, indices, strict=True)]
    fixed = fix_dimensions(part)
    told += describe_fixed(part, fixed)
    kept = [
        places[[fixed[axis.name]]] if axis.name in fixed else places
        for axis, places in zip(source.axes, indices, strict=True)
    ]
    return orient(read_part(source, kept)), told


def _find_cells(axis: Axis, asked: Axis) -> Indices:
    """Return the cells that coordinates lie in, or raise SettingError if there is none."""
    near, _ = nearest(asked.numbers, axis.numbers, axis.turn)
    apart = np.abs(axis.numbers[near] - asked.numbers)
    if axis.turn is not None:
        apart = np.minimum(apart, np.abs(axis.turn - apart))
    gaps = np.diff(np.sort(axis.numbers))
    widest = float(gaps.max(initial=0.0)) / 2 * (1 + _ROUNDING)
    far = apart > max(widest, _ROUNDING * float(np.abs(axis.numbers).max()))
    if far.any() or np.unique(near).size < near.size:
        wrong = int(np.argmax(far)) if far.any() else 0
        there = axis.take([int(near[wrong])]).texts[0]
        what = "no" if far.any() else "not all of these coordinates; there is one cell for"
        raise SettingError(
            f"The file has {what} {axis.name}={asked.take([wrong]).texts[0]}; the nearest is "
            f"{there}. Data is drawn where it is; a model answers in between."
        )
    return np.asarray(near, np.intp)


def _describe_nearest(axis: Axis, asked: Axis, cells: Indices) -> list[Fixed]:
    """Return what is shown in place of coordinates that the file does not have."""
    if nearest(asked.numbers, axis.numbers, axis.turn)[1].all():
        return []
    shown, wanted = (list_some(one.texts) for one in (axis.take(cells), asked))
    return [Fixed(axis.name, shown, f"the nearest to {wanted}", asked=True)]


def read_part(source: Source, indices: Sequence[Indices]) -> Grid:
    """Read the values of a variable at some coordinates of every axis, in any order."""
    rising = [np.sort(places) for places in indices]
    values = source.load()[np.ix_(*rising)] if source.read is None else source.read(rising)
    known, _ = mask_unusable(np.asarray(values))
    back = [np.searchsorted(order, places) for order, places in zip(rising, indices, strict=True)]
    axes = tuple(axis.take(places) for axis, places in zip(source.axes, indices, strict=True))
    return Grid(known[np.ix_(*back)], axes, source.name, source.attrs, source.style)


def orient(grid: Grid) -> Slice:
    """Return a grid of at most two long dimensions as it is drawn.

    Raises
    ------
    SettingError
        If no dimension has more than one coordinate.
    InputError
        If a coordinate is not finite, or no cell has a value.
    """
    fixed = tuple(axis for axis in grid.axes if axis.size == 1)
    places = [place for place, axis in enumerate(grid.axes) if axis.size > 1]
    if not places:
        raise SettingError(
            f"One cell of '{grid.name}' is left, {float(grid.values.ravel()[0]):.6g}: there is "
            "nothing to draw. Ask for a range of coordinates along one or two dimensions."
        )
    assert len(places) <= _MOST, "the others are fixed before"
    long = [grid.axes[place] for place in places]
    order = sorted(range(len(long)), key=lambda place: (_rightward(long[place]), place))
    values = grid.values.reshape([axis.size for axis in long]).transpose(order)
    turned = replace(grid, values=values, axes=tuple(long[place] for place in order), errors=None)
    return Slice(_rising(turned), fixed)


def _rightward(axis: Axis) -> int:
    """Return how much a dimension should run from left to right."""
    if is_time(axis):
        return 5
    if axis.labels is not None:
        return 1
    if axis.turn is not None:
        return 6
    letter = str(axis.attrs.get("axis", "")).upper()
    standard = str(axis.attrs.get("standard_name", ""))
    if place_of(axis) == "projection":
        return 4 if letter == "X" or standard == "projection_x_coordinate" else 2
    return {"longitude": 6, "latitude": 2, "vertical": 0}.get(place_of(axis) or "", 3)


def _rising(grid: Grid) -> Grid:
    """Return a grid with rising coordinates, all of them finite and not all of them equal."""
    for axis in grid.axes:
        if not np.isfinite(axis.numbers).all():
            raise InputError(f"A coordinate of '{axis.name}' is missing or not finite.")
        if np.ptp(axis.numbers) == 0:
            raise InputError(f"All coordinates of '{axis.name}' are {axis.texts[0]}.")
    axes = tuple(map(_without_turns, grid.axes))
    orders = [np.argsort(axis.numbers, kind="stable") for axis in axes]
    return replace(grid, axes=axes).take(orders)


def _without_turns(axis: Axis) -> Axis:
    """Return an axis with the numbers that lie closest together: as written, or as a kernel sees.

    Longitudes that were asked for as 350 to 370 are written that way; those of a file that jump
    from 360 to 0 have no jump in the numbers that a kernel sees.
    """
    closest = min((axis.plain, axis.numbers), key=lambda numbers: float(np.ptp(numbers)))
    return replace(axis, numbers=closest, written=None)


def refuse_empty(values: Array, name: str, fixed: Sequence[Axis]) -> None:
    """Raise InputError if no cell of a slice has a value."""
    if not np.isfinite(values).any():
        where = ", ".join(f"{axis.name}={axis.texts[0]}" for axis in fixed)
        at = f" at {where}" if where else ""
        raise InputError(
            f"No cell of '{name}' has a value{at}: there is nothing to draw. Choose other "
            "coordinates."
        )


def cell_edges(axis: Axis) -> Array:
    """Return the edges of cells half-way between rising coordinates; latitudes end at the poles.

    >>> from dkrls_cli.grid.axes import axis_of
    >>> cell_edges(axis_of("lat", [80.0, 84.0, 88.0])).tolist()
    [78.0, 82.0, 86.0, 90.0]
    """
    numbers = axis.numbers
    middles = (numbers[1:] + numbers[:-1]) / 2
    first, last = 2 * numbers[0] - middles[0], 2 * numbers[-1] - middles[-1]
    edges = np.concatenate([[first], middles, [last]])
    return np.clip(edges, -90.0, 90.0) if is_latitude(axis) else edges


def proportion(up: Axis, right: Axis) -> float:
    """Return the height of a panel as a part of its width: the real one for maps."""
    sides = [float(np.ptp(axis.numbers)) for axis in (up, right)]
    natural = _USUAL
    if is_latitude(up) and right.turn is not None:
        middle = math.radians(float(up.numbers.min() + up.numbers.max()) / 2)
        natural = sides[0] / sides[1] / max(math.cos(middle), 0.5)
    elif "projection" in (place_of(up), place_of(right)) and kilometres(up) == kilometres(right):
        natural = sides[0] / sides[1]
    return min(max(natural, _FLATTEST), _TALLEST)
