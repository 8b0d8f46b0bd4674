"""Which missing cells of a grid are filled, decided part by part as for the whole grid.

Land is told by one pass over the grid (:mod:`dkrls_cli.model.tiling.scan`). Gaps and distances are
measured with as many coordinates beside a part as they can reach.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.errors import InputError
from dkrls_cli.gaps.holes import Reach, within_reach
from dkrls_cli.gaps.pattern import gap_lengths
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.cf import natural_period, place_of
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.answering.masks import lasting_mask, of_the_sea
from dkrls_cli.model.filling.cells import (
    ROUNDING,
    MaskLike,
    leave_out,
    missing_at_first,
    open_cells,
    unknown_mask,
)
from dkrls_cli.model.filling.lengths import (
    Distance,
    GapLimits,
    circle_of,
    distance_text,
    read_lengths,
    read_reaches,
)
from dkrls_cli.model.tiling.scan import Summary


@dataclass(frozen=True, eq=False)
class CellRules:
    """Rules by which missing cells are filled or left.

    Attributes
    ----------
    axes, outer
        Axes of the grid, and the place of the one that parts are ranges of.
    masked
        Cells that stay missing; sizes of 1 are repeated.
    limits
        The longest gaps to fill, by axis.
    reaches
        How far from data cells are filled, by axis.
    within
        The same as it was given; None: there is no limit.
    """

    axes: tuple[Axis, ...]
    outer: int
    masked: Mask
    limits: Mapping[int, float]
    reaches: Mapping[int, Reach]
    within: Distance | None = None

    def rows(self, start: int, stop: int) -> Indices:
        """Return the coordinates of the outer axis that have to be seen to decide about a part."""
        numbers = self.axes[self.outer].numbers
        low, high = start, stop
        if self.outer in self.limits:
            low, high = _widen(numbers, start, stop, self.limits[self.outer])
        if self.outer in self.reaches:
            reach = self.reaches[self.outer]
            near = _widen(reach.coordinates, start, stop, reach.length)
            low, high = min(low, near[0]), max(high, near[1])
        return np.arange(low, high)

    def choose(self, missing: Mask, rows: Indices, part: slice) -> tuple[Mask, dict[str, int]]:
        """Return the cells of a part to fill, and the number of those left, by reason.

        Parameters
        ----------
        missing
            Which cells are missing, at the coordinates that :meth:`rows` returned.
        rows
            These coordinates.
        part
            The range of coordinates to decide about.
        """
        inside = [slice(None)] * missing.ndim
        inside[self.outer] = slice(part.start - rows[0], part.stop - rows[0])
        own = tuple(inside)
        cells = missing[own].copy()
        left = {"left as masked": leave_out(cells, _take(self.masked, self.outer, part))}
        for place, limit in self.limits.items():
            axis = self.axes[place]
            numbers = axis.numbers[rows] if place == self.outer else axis.numbers
            lengths = gap_lengths(missing, place, numbers, circle_of(axis, self.axes))[own]
            too_long = lengths > limit * (1 + ROUNDING)
            left[f"left in gaps along {axis.name}"] = leave_out(cells, too_long)
        if self.within is not None:
            near = {
                place: replace(reach, coordinates=reach.coordinates[rows])
                if place == self.outer
                else reach
                for place, reach in self.reaches.items()
            }
            reason = f"left further than {distance_text(self.within)} from data"
            left[reason] = leave_out(cells, ~within_reach(missing, near)[own])
        return cells, left


def _widen(numbers: Array, start: int, stop: int, length: float) -> tuple[int, int]:
    """Return a range of indices that reaches beyond a part by more than a length on each side."""
    sign = 1.0 if numbers[-1] >= numbers[0] else -1.0
    rising, room = sign * numbers, length * (1 + 2 * ROUNDING)
    low = int(np.searchsorted(rising, rising[start] - room, side="left"))
    high = int(np.searchsorted(rising, rising[stop - 1] + room, side="right"))
    return max(0, low - 1), min(numbers.size, high + 1)


def _take(mask: Mask, axis: int, part: slice) -> Mask:
    """Return a part of a mask whose sizes of 1 are repeated."""
    if mask.ndim == 0 or mask.shape[axis] == 1:
        return mask
    return mask[(slice(None),) * axis + (part,)]


def land_axes(axes: Sequence[Axis], hierarchy: Sequence[str]) -> tuple[int, ...] | None:
    """Return the axes along which land has no data; None if only its shape can tell it."""
    places = [place for place, axis in enumerate(axes) if place_of(axis)]
    others = [i for i, axis in enumerate(axes) if i not in places and axis.size > 1]
    if places and others:
        return tuple(others)
    if any(axes[place].size > 1 for place in places):
        return None
    return ([axis.name for axis in axes].index(hierarchy[-1]),)


def make_rules(
    grid: Grid,
    hierarchy: Sequence[str],
    outer: int,
    summary: Summary,
    mask: MaskLike | None,
    max_gap: GapLimits | None,
    within: Distance | None,
    first: Grid | None,
) -> tuple[CellRules, str]:
    """Return the rules by which cells of a grid are filled, and a note on land.

    Parameters
    ----------
    grid
        The grid without its values: these may be anything of its shape.
    hierarchy
        Names of the dimensions from level 0 to the last.
    outer
        Place of the axis that parts are ranges of.
    summary
        What one pass over the grid has found.
    mask, max_gap, within
        As for :func:`dkrls_cli.model.fill.fill`.
    first
        The first slice of the last level, if the mask is ``first``.

    Raises
    ------
    InputError
        If land can only be told by shape, or the mask does not fit the grid.
    SettingError
        If the mask, a dimension, a length or a distance is not a possible one.
    """
    limits = read_lengths(max_gap or {}, grid.axes, "longest gap")
    reaches = {} if within is None else read_reaches(within, grid.axes, hierarchy)
    if mask is None:
        mask = "always" if within is None else "none"
    masked, note = _masked(grid, mask, hierarchy, summary, first)
    return CellRules(grid.axes, outer, masked, limits, reaches, within), note


def _masked(
    grid: Grid, mask: MaskLike, hierarchy: Sequence[str], summary: Summary, first: Grid | None
) -> tuple[Mask, str]:
    """Return the cells that stay missing, in a shape that broadcasts, and a note on land."""
    if not isinstance(mask, str):
        return ~open_cells(grid, mask), ""
    if mask == "none":
        return np.zeros((), bool), ""
    if mask == "first":
        last = grid.dims.index(hierarchy[-1])
        return missing_at_first(grid if first is None else first, last), ""
    if mask != "always":
        raise unknown_mask(mask)
    axes = land_axes(grid.axes, hierarchy)
    if axes is None and summary.missing:
        return _land_by_shape(grid)
    return _land(grid, hierarchy, axes or (), summary), ""


def _land(grid: Grid, hierarchy: Sequence[str], along: tuple[int, ...], summary: Summary) -> Mask:
    """Return the cells without any data along some axes, as they are told of the whole grid.

    The rules are asked about a grid of two coordinates along these axes, which has data where the
    whole one has any.
    """
    if not along:
        return np.zeros((), bool)
    seen = np.where(summary.seen[along], 0.0, np.nan)
    axes = list(grid.axes)
    for place in along:
        axes[place] = axes[place].take([0, -1])
        seen = np.repeat(seen, 2, axis=place)
    small = replace(grid, values=seen, axes=tuple(axes))
    cells = lasting_mask(small, hierarchy).cells
    for place in along:
        axis = grid.axes[place]
        if axis.labels is not None and natural_period(axis) is None:  # texts that have no data
            lost = np.zeros(axis.size, bool)
            lost[summary.empty[place]] = True
            cells = cells | lost.reshape([-1 if i == place else 1 for i in range(cells.ndim)])
    return cells


def _land_by_shape(grid: Grid) -> tuple[Mask, str]:
    """Return the land of a map: all missing cells of a quantity of the sea; others are refused."""
    if of_the_sea(grid):
        note = "land cannot be told from gaps by the data, which has fewer than two times: all "
        return np.ones((), bool), (
            f"{note}missing cells are taken for land and stay missing: the quantity is of the sea"
        )
    raise InputError(
        "Which holes of a map are land is told by their shape, and the map is larger than the "
        "memory that is allowed. Say what is land by a mask (none fills all), or fill only cells "
        "within a distance from data.",
        setting="mask within",
    )


def is_first(mask: Any) -> bool:
    """Return whether a mask is what is missing in the first slice of the last level."""
    return isinstance(mask, str) and mask == "first"
