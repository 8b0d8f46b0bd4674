"""What is missing of a grid, and cells to hold out that are missing in the same way.

Held-out cells tell what a model will miss in the gaps only if they lie as the gaps do: a single
cell among observed ones is easily found, the middle of a cloud is not. So the gaps themselves are
moved elsewhere on the grid, and what they cover there is hidden. A large grid is seen through a few
windows of neighbouring cells, in which distances and gaps stay what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask, Slices
from dkrls_cli.gaps.pattern import SCATTERED, pattern, scattered

_WHOLE, _WINDOW, _WINDOWS = 60_000, 20_000, 3
"""Cells of a grid that is seen whole, of a window, and how many windows."""

_HELD_OUT = 0.15
_MOVES, _TILE = 20, 8


@dataclass(frozen=True, eq=False)
class Window:
    """A part of the grid with some of its observed cells hidden.

    Attributes
    ----------
    coordinates
        One vector per axis.
    values
        The data of the part, all of it that is observed.
    hidden
        Observed cells that are held out.
    answers
        The part completed without them.
    """

    coordinates: tuple[Array, ...]
    values: Array
    hidden: Mask
    answers: Array

    @property
    def seen(self) -> Array:
        """The data without what is hidden."""
        return np.where(self.hidden, np.nan, self.values)

    @property
    def residuals(self) -> Array:
        """What the answers miss on the hidden cells."""
        return np.asarray(self.answers[self.hidden] - self.values[self.hidden])


def windows_of(
    values: Array, coordinates: Sequence[Array], rng: np.random.Generator
) -> list[Window]:
    """The parts of the grid that are looked at, with cells hidden."""
    observed = np.isfinite(values)
    gaps, shape = scattered(observed), pattern(observed).shape
    found = []
    for part in _parts(observed):
        piece = np.array(values[part], np.float64)
        hidden = _hidden(np.isfinite(piece), gaps[part], shape, rng)
        axes = tuple(np.asarray(c[s]) for c, s in zip(coordinates, part, strict=True))
        found.append(Window(axes, piece, hidden, piece))
    return found


def _parts(observed: Mask) -> list[Slices]:
    """All of a small grid; of a large one windows spread over it where much is observed."""
    if observed.size <= _WHOLE:
        return [tuple(slice(0, size) for size in observed.shape)]
    sides = _sides(observed.shape, _WINDOW)
    choices = [
        sorted({0, (size - side) // 2, size - side})
        for size, side in zip(observed.shape, sides, strict=True)
    ]
    parts = [
        tuple(slice(start, start + side) for start, side in zip(corner, sides, strict=True))
        for corner in product(*choices)
    ]
    counts = [np.count_nonzero(observed[part]) for part in parts]
    good = [part for part, count in zip(parts, counts, strict=True) if 2 * count >= max(counts)]
    taken = np.unique(np.linspace(0, len(good) - 1, _WINDOWS).round().astype(int))
    return [good[place] for place in taken]


def _sides(shape: Sequence[int], cells: int) -> list[int]:
    """Sides of a window of so many cells, as equal as the grid allows."""
    sides = [0] * len(shape)
    left = float(cells)
    for done, axis in enumerate(np.argsort(shape)):
        sides[axis] = min(shape[axis], max(2, int(left ** (1 / (len(shape) - done)))))
        left /= sides[axis]
    return sides


def _hidden(observed: Mask, gaps: Mask, shape: Sequence[int], rng: np.random.Generator) -> Mask:
    """Observed cells to hold out: the gaps that are there, moved elsewhere.

    Where there are too few, pieces of the shape of a gap around cells drawn at random.
    """
    enough = np.count_nonzero(gaps) > SCATTERED * np.count_nonzero(observed)
    hidden = _moved(observed, gaps, rng) if enough else _pieces(observed, shape, rng)
    return hidden if hidden.any() else _pieces(observed, [1] * observed.ndim, rng)


def _moved(observed: Mask, gaps: Mask, rng: np.random.Generator) -> Mask:
    """Observed cells under the gaps of another place, in as many tiles of the grid as it takes."""
    wanted = _HELD_OUT * int(np.count_nonzero(observed))
    axes = tuple(range(observed.ndim))
    hidden = np.zeros(observed.shape, bool)
    for _ in range(_MOVES):
        under = observed & np.roll(gaps, [int(rng.integers(size)) for size in gaps.shape], axes)
        share = (wanted - int(np.count_nonzero(hidden))) / max(1, int(np.count_nonzero(under)))
        hidden |= under & (_tiles(observed.shape, rng) < share)
        if share < 1:
            break
    return hidden


def _tiles(shape: Sequence[int], rng: np.random.Generator) -> Array:
    """A random number for every tile of the grid, on all its cells."""
    drawn = rng.random([-(-size // _TILE) for size in shape])
    return drawn[np.ix_(*[np.arange(size) // _TILE for size in shape])]


def _pieces(observed: Mask, shape: Sequence[int], rng: np.random.Generator) -> Mask:
    """Observed cells in pieces of a shape around cells drawn at random."""
    hidden = np.zeros(observed.shape, bool)
    places = np.argwhere(observed)
    wanted = max(1, int(_HELD_OUT * len(places)))
    sides = [
        size if side >= size else min(side, max(1, size // 3))
        for side, size in zip(shape, observed.shape, strict=True)
    ]
    for centre in places[rng.permutation(len(places))]:
        hidden[_around(centre, sides)] = True
        if np.count_nonzero(hidden & observed) >= wanted:
            break
    hidden &= observed
    return hidden if np.count_nonzero(hidden) < len(places) else np.zeros(observed.shape, bool)


def _around(centre: Indices, sides: Sequence[int]) -> Slices:
    return tuple(
        slice(max(0, int(place) - side // 2), int(place) - side // 2 + side)
        for place, side in zip(centre, sides, strict=True)
    )
