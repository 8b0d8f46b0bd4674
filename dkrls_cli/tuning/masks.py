"""Hide observed cells of a grid in the way its missing cells lie.

The error on hidden cells tells the error in the gaps only if hidden cells lie as the gaps do: a
single cell among observed ones is easy to predict, the middle of a cloud is not. So the gaps
themselves are shifted to other places on the grid, and observed cells under them are hidden. A
large grid is seen through a few windows of neighbouring cells, which keep distances and gaps as
they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask, Slices
from dkrls_cli.cascade.factors import choice
from dkrls_cli.gaps.pattern import SCATTERED, pattern, scattered

WHOLE, WINDOW, WINDOWS = 60_000, 20_000, 3
"""Cells up to which a grid is seen whole; beyond, cells of a window and number of windows."""

_SIDE, _MOST_WINDOWS = 512, 12
"""Coordinates of a long axis in a window, and most windows: small ones are more in number.

A spectrum of 512 coordinates takes a tenth of a second.
"""

_HELD_OUT = 0.15
"""Share of the observed cells to hide: enough to compare settings by, few enough to fit without."""

_SHIFTS = 20
"""Most shifts of the gaps; each hides what is observed under it, until enough is hidden."""

_TILE = 8
"""Side in cells of the tiles in which shifted gaps are kept or not: whole gaps of usual size."""


@dataclass(frozen=True, eq=False)
class HiddenWindow:
    """A part of the grid, some of its observed cells hidden.

    Attributes
    ----------
    coordinates
        One vector per axis.
    values
        The data of the part, hidden cells included, NaN where it is missing.
    hidden
        True in observed cells that are hidden.
    answers
        The part completed without the hidden cells.
    """

    coordinates: tuple[Array, ...]
    values: Array
    hidden: Mask
    answers: Array

    @property
    def seen(self) -> Array:
        """The data with hidden cells missing (NaN)."""
        return np.where(self.hidden, np.nan, self.values)

    @property
    def residuals(self) -> Array:
        """Answers minus data in the hidden cells."""
        return np.asarray(self.answers[self.hidden] - self.values[self.hidden])


def hide_cells(
    values: Array, coordinates: Sequence[Array], rng: np.random.Generator
) -> list[HiddenWindow]:
    """Return the grid, or windows of a large one, with some observed cells hidden."""
    observed = np.isfinite(values)
    gaps, shape = scattered(observed), pattern(observed).shape
    found = []
    for part in _windows(observed):
        piece = np.array(values[part], np.float64)
        hidden = _hide(np.isfinite(piece), gaps[part], shape, rng)
        axes = tuple(_cut(c, s) for c, s in zip(coordinates, part, strict=True))
        found.append(HiddenWindow(axes, piece, hidden, piece))
    return found


def _cut(coordinates: Array, part: slice) -> Array:
    """Return a part of an axis; of a long one counted from its first coordinate.

    Kernels know differences only, so windows of equal steps have the same spectra.
    """
    cut = np.asarray(coordinates[part])
    return cut - cut[0] if coordinates.size > choice.LONG else cut


def _windows(observed: Mask) -> list[Slices]:
    """Return the whole of a small grid, or windows of a large one where most is observed.

    Windows lie at the ends and in the middle of each axis, and more of them along a long axis.
    Those with at least half as many observed cells as the fullest are good, and three of them are
    taken, spread evenly, or more if they are small.
    """
    long = [size > choice.LONG for size in observed.shape]
    if observed.size <= WHOLE and not any(long):
        return [tuple(slice(0, size) for size in observed.shape)]
    sides = [
        min(side, _SIDE) if is_long else side
        for side, is_long in zip(window_sides(observed.shape, WINDOW), long, strict=True)
    ]
    wanted = min(_MOST_WINDOWS, max(WINDOWS, WINDOWS * WINDOW // math.prod(sides)))
    choices = [
        np.unique(np.linspace(0, size - side, wanted if is_long else 3).astype(int)).tolist()
        for size, side, is_long in zip(observed.shape, sides, long, strict=True)
    ]
    parts = [
        tuple(slice(start, start + side) for start, side in zip(corner, sides, strict=True))
        for corner in product(*choices)
    ]
    counts = [np.count_nonzero(observed[part]) for part in parts]
    good = [part for part, count in zip(parts, counts, strict=True) if 2 * count >= max(counts)]
    taken = np.unique(np.linspace(0, len(good) - 1, wanted).round().astype(int))
    return [good[place] for place in taken]


def window_sides(shape: Sequence[int], cells: int) -> list[int]:
    """Return the sides of a window of about so many cells, as equal as the grid allows."""
    sides = [0] * len(shape)
    left = float(cells)
    for done, axis in enumerate(np.argsort(shape)):
        sides[axis] = min(shape[axis], max(2, int(left ** (1 / (len(shape) - done)))))
        left /= sides[axis]
    return sides


def _hide(observed: Mask, gaps: Mask, shape: Sequence[int], rng: np.random.Generator) -> Mask:
    """Return observed cells to hide: those under shifted gaps.

    With too few gaps to shift, hide boxes of the shape of a gap. If neither hides a cell, hide
    single cells.
    """
    enough = np.count_nonzero(gaps) > SCATTERED * np.count_nonzero(observed)
    hidden = _shift_gaps(observed, gaps, rng) if enough else _place_boxes(observed, shape, rng)
    return hidden if hidden.any() else _place_boxes(observed, [1] * observed.ndim, rng)


def _shift_gaps(observed: Mask, gaps: Mask, rng: np.random.Generator) -> Mask:
    """Return observed cells under shifted gaps, in as many tiles of the grid as are needed."""
    wanted = _HELD_OUT * int(np.count_nonzero(observed))
    axes = tuple(range(observed.ndim))
    hidden = np.zeros(observed.shape, bool)
    for _ in range(_SHIFTS):
        under = observed & np.roll(gaps, [int(rng.integers(size)) for size in gaps.shape], axes)
        share = (wanted - int(np.count_nonzero(hidden))) / max(1, int(np.count_nonzero(under)))
        hidden |= under & (_draw_tiles(observed.shape, rng) < share)
        if share < 1:
            break
    return hidden


def _draw_tiles(shape: Sequence[int], rng: np.random.Generator) -> Array:
    """Return a random number from 0 to 1 for every tile, on all cells of the tile."""
    drawn = rng.random([-(-size // _TILE) for size in shape])
    return drawn[np.ix_(*[np.arange(size) // _TILE for size in shape])]


def _place_boxes(observed: Mask, shape: Sequence[int], rng: np.random.Generator) -> Mask:
    """Return observed cells in boxes of a shape around cells drawn at random.

    A side is at most a third of its axis, or else as long as the axis. Return no cell at all if
    every observed cell would be hidden.
    """
    hidden = np.zeros(observed.shape, bool)
    places = np.argwhere(observed)
    wanted = max(1, int(_HELD_OUT * len(places)))
    sides = [
        size if side >= size else min(side, max(1, size // 3))
        for side, size in zip(shape, observed.shape, strict=True)
    ]
    for centre in places[rng.permutation(len(places))]:
        hidden[_box(centre, sides)] = True
        if np.count_nonzero(hidden & observed) >= wanted:
            break
    hidden &= observed
    return hidden if np.count_nonzero(hidden) < len(places) else np.zeros(observed.shape, bool)


def _box(centre: Indices, sides: Sequence[int]) -> Slices:
    """Return the box with these sides around a cell, cut off at the edges of the grid."""
    return tuple(
        slice(max(0, int(place) - side // 2), int(place) - side // 2 + side)
        for place, side in zip(centre, sides, strict=True)
    )
