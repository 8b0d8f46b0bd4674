"""Numbers kept on disk between two stages: written part by part along one axis, read tile by tile.

A tile has all samples of the spooled axis, one after the other, and its own part of the other axes.
Parts of the first stage are put into the tiles at their places, in any order and from any process.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Slices


@dataclass(frozen=True)
class Spool:
    """A file of tiles.

    Attributes
    ----------
    path
        The file, which exists.
    axis
        The spooled axis.
    samples
        Its number of samples.
    tiles
        The part of every axis that a tile has; along the spooled axis it is not looked at.
    dtype
        Name of the type of the numbers.
    """

    path: str
    axis: int
    samples: int
    tiles: tuple[Slices, ...]
    dtype: str

    @cached_property
    def _offsets(self) -> list[int]:
        """Number of numbers before each tile."""
        sizes = [self.samples * self._cells(tile) for tile in self.tiles]
        return [0, *np.cumsum(sizes).tolist()]

    @property
    def bytes(self) -> int:
        """Size of the file."""
        return int(self._offsets[-1] * self._item)

    @property
    def _item(self) -> int:
        return np.dtype(self.dtype).itemsize

    def _shape(self, tile: Slices, samples: int) -> tuple[int, ...]:
        """Return the sizes of a tile with the spooled axis first."""
        others = [part for axis, part in enumerate(tile) if axis != self.axis]
        return (samples, *(part.stop - part.start for part in others))

    def _cells(self, tile: Slices) -> int:
        """Return the cells of a tile at one sample."""
        return math.prod(self._shape(tile, 1))

    def put(self, values: NDArray[Any], first: int) -> None:
        """Put all answers at some samples of the spooled axis, from `first` on, into the tiles."""
        moved = np.moveaxis(values, self.axis, 0)
        descriptor = os.open(self.path, os.O_WRONLY)
        try:
            for tile, offset in zip(self.tiles, self._offsets[:-1], strict=True):
                others = [part for axis, part in enumerate(tile) if axis != self.axis]
                part = np.ascontiguousarray(moved[(slice(None), *others)], self.dtype)
                start = (offset + first * self._cells(tile)) * self._item
                _write_all(descriptor, part.data.cast("B"), start)
        finally:
            os.close(descriptor)

    def take(self, place: int) -> NDArray[Any]:
        """Return a tile, all samples of the spooled axis in it."""
        tile = self.tiles[place]
        shape = self._shape(tile, self.samples)
        with open(self.path, "rb") as file:
            file.seek(self._offsets[place] * self._item)
            numbers = np.fromfile(file, self.dtype, math.prod(shape))
        return np.moveaxis(numbers.reshape(shape), 0, self.axis)


def _write_all(descriptor: int, data: memoryview, start: int) -> None:
    """Write bytes at a place of a file: one call of the system may write some of them only."""
    while data:
        written = os.pwrite(descriptor, data, start)
        data, start = data[written:], start + written


def make_spool(
    folder: str | os.PathLike[str], axis: int, samples: int, tiles: Sequence[Slices], dtype: str
) -> Spool:
    """Create the file of a spool in a folder."""
    path = os.path.join(os.fspath(folder), "spool")
    with open(path, "wb"):
        return Spool(path, axis, samples, tuple(tiles), dtype)
