"""Sums over tiles of the data, at scattered points.

The answer at a point is a sum over the samples near it, so that it can be made in any order. Points
whose windows begin near each other form groups; every tile of the data is read once, multiplied
with the rows of the groups that need it, and added to their answers. Along axes that all points
share, the answers are kept in samples until all tiles are there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices, Slices
from dkrls_cli.cascade.streaming.windows import PointRows, add_products, group_points
from dkrls_cli.model.model import Model
from dkrls_cli.model.referring.tiles import Needs, Tile
from dkrls_cli.model.streaming.answering import centre_box
from dkrls_cli.model.streaming.boxes import Boxes

CELL = 8 * 4
"""Bytes in use for each cell of a tile: as it is read, less the mean, cut to a window, a product.
"""

ANSWER = 8 * 4
"""Bytes in use for each answer: its sum, rows applied to it, the answer and its error."""


@dataclass(frozen=True, eq=False)
class PointSums:
    """Sums over tiles of the data at points, in samples along the axes that all points share.

    Attributes
    ----------
    model
        Stand-in of the model.
    rows
        Rows of the points, by axis of the points.
    samples
        Rising places of the samples that are kept, by axis that all points share.
    """

    model: Model
    rows: Mapping[int, PointRows]
    samples: Mapping[int, Indices]

    @cached_property
    def groups(self) -> list[Indices]:
        """Groups of points whose windows begin near each other."""
        return group_points(list(self.rows.values()))

    @property
    def whole(self) -> frozenset[int]:
        """Axes along which a tile has all samples: those that go on across the poles."""
        poles = self.model.poles
        return frozenset() if poles is None else frozenset((poles.latitude, poles.longitude))

    @property
    def count(self) -> int:
        """Number of points."""
        return next(iter(self.rows.values())).starts.size

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the sums."""
        return (self.count, *(own.size for own in self.samples.values()))

    @property
    def cell_bytes(self) -> int:
        """Bytes in use for each cell of a tile."""
        return CELL

    @property
    def bytes_each(self) -> int:
        """Bytes that a point takes."""
        own = sum(rows.width + 1 for rows in self.rows.values())
        return 8 * own + ANSWER * math.prod(self.shape[1:])

    def needs(self) -> Needs:
        """Return what the points need of the data."""
        windows = {axis: rows.windows(self.groups) for axis, rows in self.rows.items()}
        return Needs(windows, self.samples, self.whole)

    def prepare(
        self, values: NDArray[Any], box: Slices, groups: Indices
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return what rows are applied to, and the data of a box less the mean: the same here."""
        centred = centre_box(values, box, self.model, np.dtype(np.float64))
        return centred, centred

    def add(self, values: NDArray[Any], tile: Tile) -> tuple[Indices, Slices, Array]:
        """Return the points that need a tile, the part of their sums, and what it adds there."""
        tensor, cells = self.prepare(values, tile.box, tile.groups)
        where = [
            slice(0, size) if axis in self.whole else here
            for axis, (here, size) in enumerate(zip(tile.box, tensor.shape, strict=True))
        ]
        points = np.concatenate([self.groups[place] for place in tile.groups])
        own = [rows.take(points) for rows in self.rows.values()]
        turned = self._turn(tensor, where)
        found = np.zeros((points.size, *turned.shape[len(self.rows) :]))
        first = 0
        for place in tile.groups:
            some = np.arange(first, first + self.groups[place].size)
            add_products(found, some, own, turned, [where[axis] for axis in self.rows])
            first += some.size
        self.pass_through(found, points, self._turn(cells, where), where)
        return points, tuple(self._kept(where).values()), found

    def pass_through(
        self, found: Array, points: Indices, cells: NDArray[Any], where: Sequence[slice]
    ) -> None:
        """Replace answers that are cells of the data, where rows do not return these."""

    def _kept(self, where: Sequence[slice]) -> dict[int, slice]:
        """Return which of the samples that are kept a box has, by axis that all points share."""
        found = {}
        for axis, some in self.samples.items():
            first, last = np.searchsorted(some, [where[axis].start, where[axis].stop])
            found[axis] = slice(int(first), int(last))
        return found

    def _turn(self, box: NDArray[Any], where: Sequence[slice]) -> NDArray[Any]:
        """Return a box with the axes of points first, and only the samples that are kept."""
        for axis, part in self._kept(where).items():
            places = self.samples[axis][part] - where[axis].start
            if places.size < box.shape[axis]:
                box = box.take(places, axis)
        return box.transpose([*self.rows, *self.samples])


@dataclass(frozen=True, eq=False)
class TileTask:
    """Reads a tile, and returns what it adds to the sums of points."""

    boxes: Boxes
    sums: PointSums

    def __call__(self, tile: Tile) -> tuple[Indices, Slices, Array]:
        """Read a tile."""
        return self.sums.add(self.boxes.read_box(tile.box), tile)
