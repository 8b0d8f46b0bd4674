"""Tiles of a stored grid that scattered points need.

Tiles are whole chunks of the file where these are small enough. Every chunk is read once for all
points, and only if the window of a point meets it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Indices, Slices

_LEAST = 2**18
"""Cells of a tile at least, if the grid has as many: opening a file for each takes time."""


@dataclass(frozen=True, eq=False)
class Tile:
    """A box of the data, and the groups of points that need some of it."""

    box: Slices
    groups: Indices


@dataclass(frozen=True, eq=False)
class Needs:
    """The parts of a grid that points need.

    Attributes
    ----------
    windows
        First sample and the one behind the last that each group of points needs (groups, 2), by
        axis of the points; on a circle, the last may lie behind the end.
    samples
        Rising places of the samples that all points need, by axis that they share.
    whole
        Axes along which a tile has all samples.
    """

    windows: Mapping[int, Indices]
    samples: Mapping[int, Indices]
    whole: frozenset[int] = frozenset()

    @property
    def _groups(self) -> int:
        return len(next(iter(self.windows.values())))

    def tiles(self, shape: Sequence[int], sizes: Sequence[int]) -> Iterator[Tile]:
        """Yield the tiles of a grid that are needed, each cut to what is needed of it.

        Parameters
        ----------
        shape
            Samples of every axis.
        sizes
            Samples of a tile along every axis.

        Examples
        --------
        >>> needs = Needs({0: np.array([[0, 2], [5, 7]])}, {1: np.array([1, 8])})
        >>> for tile in needs.tiles([9, 9], [4, 9]):
        ...     print(tile.box, tile.groups)
        (slice(0, 2, None), slice(1, 9, None)) [0]
        (slice(5, 7, None), slice(1, 9, None)) [1]
        """
        yield from self._cut((), np.arange(self._groups), shape, sizes)

    def _cut(
        self, box: Slices, groups: Indices, shape: Sequence[int], sizes: Sequence[int]
    ) -> Iterator[Tile]:
        """Yield the tiles that have the first axes in common."""
        axis = len(box)
        if axis == len(shape):
            yield Tile(box, groups)
            return
        if axis in self.whole:
            yield from self._cut((*box, slice(0, shape[axis])), groups, shape, sizes)
            return
        for start in range(0, shape[axis], sizes[axis]):
            stop = min(start + sizes[axis], shape[axis])
            part, own = self._meet(axis, slice(start, stop), groups, shape[axis])
            if part is not None:
                yield from self._cut((*box, part), own, shape, sizes)

    def _meet(
        self, axis: int, part: slice, groups: Indices, size: int
    ) -> tuple[slice | None, Indices]:
        """Return what is needed of a part of an axis, None if nothing is, and the groups."""
        if axis in self.samples:
            some = self.samples[axis]
            some = some[(some >= part.start) & (some < part.stop)]
            return (slice(int(some[0]), int(some[-1]) + 1) if some.size else None), groups
        first, last = self.windows[axis][groups].T
        meets = (first < part.stop) & (last > part.start)
        again = last - size > part.start  # the window goes on at the start of the circle
        own = meets | again
        if not own.any():
            return None, groups
        start = part.start if again.any() else max(part.start, int(first[meets].min()))
        stops = np.concatenate([last[meets], last[again] - size])
        return slice(start, min(part.stop, int(stops.max()))), groups[own]


def tile_sizes(
    shape: Sequence[int], chunks: Sequence[int], whole: frozenset[int], most: float
) -> list[int]:
    """Return the samples of a tile along every axis.

    Parameters
    ----------
    shape, chunks
        Samples of every axis, and of a stored chunk.
    whole
        Axes along which a tile has all samples.
    most
        Cells at most; a tile that is whole along some axes may have more.

    Examples
    --------
    >>> tile_sizes([4000, 720, 720], [100, 720, 720], frozenset(), 2**23)
    [15, 720, 720]
    >>> tile_sizes([4000, 720, 720], [1, 90, 90], frozenset(), 2**23)
    [1, 720, 720]
    """
    sizes = [size if axis in whole else chunks[axis] for axis, size in enumerate(shape)]
    free = [axis for axis in range(len(sizes)) if axis not in whole]
    for axis in free:  # the outermost first, so that what is read lies together in the file
        if math.prod(sizes) > most:
            others = math.prod(sizes) // sizes[axis]
            pieces = -(-sizes[axis] // max(1, int(most // others)))
            sizes[axis] = -(-sizes[axis] // pieces)
    for axis in reversed(free):
        while sizes[axis] < shape[axis] and math.prod(sizes) < min(_LEAST, most / 2):
            sizes[axis] = min(2 * sizes[axis], shape[axis])
    return sizes
