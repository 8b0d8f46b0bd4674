"""Coordinates of a grid at which no cell is observed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from dkrls_cli.arrays import Indices, Mask
from dkrls_cli.gaps.pattern import empty_slices
from dkrls_cli.grid.axes import Axis, list_some
from dkrls_cli.grid.cf import place_of
from dkrls_cli.grid.grid import Grid

_CAP = 60.0
"""Latitude from which on data encloses the pole: a cap of 30 degrees is a hole like others."""


_LONG_RUN = 2
"""Coordinates of an outage from which blocks are left out: a single one is like any slice."""

_FEWEST_BLOCKS = 4
"""Blocks at least: of fewer, what is left is no longer like the whole."""


def drop_lost_slices(
    grid: Grid, enclosed: Mapping[int, Indices] = MappingProxyType({})
) -> tuple[Grid, list[str]]:
    """Return the grid without coordinates at which no cell is observed, and a note per axis.

    A grid without any observed cell is returned as it is. Coordinates in `enclosed`, by axis, stay.
    """
    observed = grid.observed
    if not observed.any():
        return grid, []
    lost = [
        np.setdiff1d(gone, enclosed.get(place, ()))
        for place, gone in enumerate(empty_slices(observed))
    ]
    notes = lost_notes(grid.axes, lost)
    kept = [np.setdiff1d(np.arange(a.size), gone) for a, gone in zip(grid.axes, lost, strict=True)]
    return (grid.take(kept) if notes else grid), notes


def lost_notes(axes: Sequence[Axis], lost: Sequence[Indices]) -> list[str]:
    """Return a note on every axis some of whose coordinates are left out, as they have no data."""
    return [
        f"{axis.name}: {gone.size} of {axis.size} coordinates have no observed cell and are left "
        f"out, {list_some(axis.take(gone).texts)}"
        for axis, gone in zip(axes, lost, strict=True)
        if gone.size
    ]


def enclosed_coordinates(grid: Grid, group: Sequence[int]) -> dict[int, Indices]:
    """Return the coordinates without data that data encloses on the sphere, by axis."""
    return enclosed_among(grid.axes, empty_slices(grid.observed), group)


def enclosed_among(
    axes: Sequence[Axis], empty: Sequence[Indices], group: Sequence[int]
) -> dict[int, Indices]:
    """Return those of the coordinates without data that data encloses on the sphere, by axis.

    They are all longitudes, the latitudes between those with data, and those towards a pole if the
    last one with data is less than 30 degrees from it.
    """
    result = {}
    for place in group:
        numbers, gone = axes[place].numbers, empty[place]
        if place_of(axes[place]) == "latitude":
            known = np.delete(numbers, gone)
            south = -math.inf if known.min() <= -_CAP else known.min()
            north = math.inf if known.max() >= _CAP else known.max()
            gone = gone[(numbers[gone] > south) & (numbers[gone] < north)]
        result[place] = gone
    return result


def outage_folds(observed: Mask) -> dict[int, int]:
    """Return into how many blocks to cut the slices with data, by axis: as wide as its outages.

    An outage is a run of coordinates without data between others with data. Half of the missing
    slices of an axis lie in outages at least as wide as a block. An axis whose outages are single
    coordinates has no blocks: single slices tell of them.
    """
    found = {}
    for axis, lost in enumerate(empty_slices(observed)):
        width = _typical_outage(observed.shape[axis], lost)
        if width >= _LONG_RUN:
            kept = observed.shape[axis] - lost.size
            found[axis] = max(_FEWEST_BLOCKS, round(kept / width))
    return found


def _typical_outage(size: int, lost: Indices) -> int:
    """Return the width of the outage in which the missing coordinate of middle rank lies, or 0.

    >>> _typical_outage(12, np.array([0, 2, 4, 5, 6, 11]))
    3
    """
    runs = np.diff(np.setdiff1d(np.arange(size), lost)) - 1
    runs = np.sort(runs[runs > 0])
    return int(runs[np.searchsorted(runs.cumsum(), runs.sum() / 2, "right")]) if runs.size else 0
