"""Land of a stored grid, seen at one of its times or at all of them.

Land is what is missing all along the dimensions that are no places, time above all
(:mod:`dkrls_cli.model.answering.masks`). If nothing else is missing, every time shows it. So one is
looked at, and whoever reads the others compares them with it. If other cells are missing at some
times, all of them have to be looked at, which takes one more pass over the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Indices, Mask
from dkrls_cli.files.source import Source, mask_unusable
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.cf import place_of
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.chunked.ground import stored_chunks
from dkrls_cli.model.chunked.panels import Stored, find_spread
from dkrls_cli.model.tiling.scan import PartReader, scan


@dataclass(frozen=True, eq=False)
class Land:
    """Cells of a stored grid that are missing at all times.

    Attributes
    ----------
    source
        The grid.
    slices
        Places of the axes along which the same cells are missing: those that are no places.
    missing
        The missing cells, of size 1 along these axes.
    varied
        Whether other cells are missing as well at some times, which were all looked at.
    empty
        If so, the coordinates of every axis at which no cell is there.
    most
        If so, the missing cells of a slice at most.
    """

    source: Source
    slices: tuple[int, ...]
    missing: Mask
    varied: bool = False
    empty: tuple[Indices, ...] = ()
    most: int = 0

    @property
    def places(self) -> tuple[int, ...]:
        """Places of all other axes: those of one slice."""
        return tuple(axis for axis in range(self.missing.ndim) if axis not in self.slices)

    @property
    def names(self) -> str:
        """Names of the dimensions of the slices."""
        return " and ".join(self.source.axes[axis].name for axis in self.slices)

    @property
    def gap_note(self) -> str:
        """Return words on missing cells that differ from slice to slice; empty if they do not."""
        if not self.varied:
            return ""
        lost = max((self.empty[axis].size for axis in self.slices), default=0)
        without = f", and {lost} without any data have no answers" if lost else ""
        return (
            f"cells are missing at some coordinates of {self.names} only: each is answered on its "
            f"own{without}"
        )

    def indices(self, count: int) -> list[Indices]:
        """Return the coordinates of some slices, far from each other, with all their cells."""
        longest = max(self.slices, key=lambda axis: self.source.shape[axis])
        chunk = stored_chunks(self.source)[longest]
        found = _middle(self.source.axes, self.slices)
        found[longest] = find_spread(self.source.shape[longest], chunk, count, count)
        return found

    def panel(self, count: int) -> Grid:
        """Read some slices, far from each other, with all their cells."""
        indices = self.indices(count)
        axes = tuple(axis.take(own) for axis, own in zip(self.source.axes, indices, strict=True))
        source = self.source
        return Grid(_read(source, indices), axes, source.name, source.attrs, source.style)


def find_land(source: Source) -> Land | None:
    """Look at one time of a stored grid; return what is missing there, None if nothing is.

    None is returned as well if the grid has no places or no times, if nothing at all is there at
    the time, or if chunks lie so that looking would read much of the file.
    """
    slices = slice_axes(source.axes)
    if not slices or source.read is None or source.errors is not None:
        return None
    indices = _middle(source.axes, slices)
    stored = Stored(source.shape, stored_chunks(source), np.dtype(source.dtype).itemsize)
    if stored.touched(indices)[1] > stored.few:
        return None
    missing = np.isnan(_read(source, indices))
    return None if missing.all() or not missing.any() else Land(source, slices, missing)


def scan_land(source: Source) -> Land | None:
    """Look at all times of a stored grid; return what is missing at all of them.

    None is returned if the grid has no places or no times, or cannot be read part by part.
    """
    slices = slice_axes(source.axes)
    if not slices or source.read is None or source.errors is not None:
        return None
    longest = max(slices, key=lambda axis: source.shape[axis])
    found = scan(PartReader(source, longest), [slices])
    missing = ~found.seen[slices]
    partly = np.delete(found.gaps, found.empty[longest])  # slices without data are not solved for
    most = min(int(partly.max()), missing.size - 1)
    return Land(source, slices, missing, True, found.empty, most)


def slice_axes(axes: Sequence[Axis]) -> tuple[int, ...]:
    """Return the axes along which land lasts: no places, beside places that have several cells."""
    kinds = [place_of(axis) for axis in axes]
    if not any(kind and axis.size > 1 for kind, axis in zip(kinds, axes, strict=True)):
        return ()
    return tuple(i for i, axis in enumerate(axes) if not kinds[i] and axis.size > 1)


def _middle(axes: Sequence[Axis], slices: Sequence[int]) -> list[Indices]:
    """Return all coordinates of places, and the middle one of other axes."""
    return [
        np.array([axis.size // 2]) if place in slices else np.arange(axis.size)
        for place, axis in enumerate(axes)
    ]


def _read(source: Source, indices: Sequence[Indices]) -> NDArray[Any]:
    """Return the values at some coordinates, NaN where cells are missing."""
    assert source.read is not None
    return mask_unusable(source.read(indices))[0]
