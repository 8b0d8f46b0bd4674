"""Place the wide holes of a grid over observed cells, several times.

The gaps of a grid shifted as a whole hide each of its holes once. Beside many small gaps one wide
hole is then judged by one place, and places differ: the error in one may be ten times that in
another. So wide holes are placed one by one, shifted and mirrored, until there are several of each
or enough cells are hidden. A hole keeps its shape, and does not reach beyond the edges of the grid,
where it would be a gap of another kind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Indices, Mask
from dkrls_cli.gaps.holes import label_holes
from dkrls_cli.gaps.pattern import distance_to_data

PLACEMENTS = 8
"""Placements of each hole at most: from there on more of them tell little new."""

_DEEP = 2.0
"""Distance to data of the middle of a wide hole, in cells; other gaps are shifted as they are."""

_RIM = 2.0
"""Distance to such a cell of the others of the hole: the corners of a box of four dimensions."""

_AS_LARGE = 0.1
"""Size of a hole that is placed, as a share of the largest one."""

_MOST = 0.15
"""Share of the observed cells that may be hidden in this way."""

_TRIES = 40
"""Places that are tried for one hole."""

_WELL, _ENOUGH = 0.8, 0.4
"""Share of a hole that should be observed; and that must be, in the best place found."""


@dataclass(frozen=True, eq=False)
class Placed:
    """Holes that were placed over observed cells.

    Attributes
    ----------
    hidden
        Observed cells under them.
    holes
        The missing cells of which they are copies.
    """

    hidden: Mask
    holes: Mask


def place_holes(observed: Mask, gaps: Mask, rng: np.random.Generator) -> Placed:
    """Return the observed cells under copies of the wide holes among the gaps.

    Holes that are too large to be hidden beside others, or fit nowhere, are left out.

    Parameters
    ----------
    observed
        True where a cell has a value.
    gaps
        The missing cells that are to be filled.
    rng
        Random numbers that decide where holes are placed.
    """
    hidden, copied = np.zeros(observed.shape, bool), np.zeros(observed.shape, bool)
    most = _MOST * np.count_nonzero(observed)
    holes = [hole for hole in wide_holes(observed, gaps) if len(hole) <= most]
    for _ in range(PLACEMENTS):
        for hole in holes:
            if np.count_nonzero(hidden) + len(hole) > most:
                continue
            free = observed & ~hidden
            places = _find_place(hole, free, rng)
            if places is not None:
                hidden[places] |= free[places]
                copied[tuple(hole.T)] = True
    return Placed(hidden, copied)


def wide_holes(observed: Mask, gaps: Mask) -> list[Indices]:
    """Return the cells (n, axes) of each wide hole, the largest first, small ones left out."""
    deep = distance_to_data(observed) >= _DEEP
    if not deep.any():
        return []
    wide = gaps & (distance_to_data(deep) <= _RIM)
    labels, count = label_holes(wide, corners=True)
    places, numbers = np.argwhere(wide), labels[wide] - 1
    sizes = np.bincount(numbers, minlength=count)
    ends = np.cumsum(sizes)
    cells = places[np.argsort(numbers, kind="stable")]
    return [
        cells[ends[place] - sizes[place] : ends[place]]
        for place in np.argsort(-sizes, kind="stable")
        if sizes[place] >= _AS_LARGE * sizes.max()
    ]


def _find_place(hole: Indices, free: Mask, rng: np.random.Generator) -> tuple[Indices, ...] | None:
    """Return the cells of a hole in a random place where most of it is free; None if there is none.

    Of some places the first good one is taken, or else the best.
    """
    corner = hole.min(axis=0)
    sides = hole.max(axis=0) - corner + 1
    best, found = _ENOUGH, None
    for _ in range(_TRIES):
        mirrored = rng.random(len(sides)) < 0.5
        moved = np.where(mirrored, sides - 1 - (hole - corner), hole - corner)
        moved = moved + rng.integers(np.array(free.shape) - sides + 1)
        places = tuple(moved.T)
        share = float(free[places].mean())
        if share >= best:
            best, found = share, places
        if share >= _WELL:
            break
    return found
