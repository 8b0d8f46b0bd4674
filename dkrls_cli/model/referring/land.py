"""Answers at scattered points of grids with land: every slice is completed before it answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices, Mask, Slices
from dkrls_cli.cascade.streaming.windows import PointRows
from dkrls_cli.cascade.tensors import lay_out
from dkrls_cli.errors import SettingError
from dkrls_cli.gaps.bars import GapBars
from dkrls_cli.gaps.lasting.bars import LandBars
from dkrls_cli.model.answering.answers import PointQuery
from dkrls_cli.model.lasting.slices import COMPLETED, LandSlices
from dkrls_cli.model.model import Model
from dkrls_cli.model.referring.sums import CELL, PointSums
from dkrls_cli.model.referring.tiles import Tile


@dataclass(frozen=True, eq=False)
class LandSums(PointSums):
    """Answers of completed slices at points, less the mean.

    Attributes
    ----------
    land
        Completes the slices.
    nodes
        Samples of the points along the axes of a slice, -1 between them.
    asked
        Numbers of the points along every axis.
    smooth
        Whether answers do not pass through the data.
    """

    land: LandSlices = field(kw_only=True)
    nodes: tuple[Indices, ...] = field(kw_only=True)
    asked: tuple[Array, ...] = field(kw_only=True)
    smooth: bool = field(kw_only=True)

    @classmethod
    def of_land(cls, query: PointQuery, model: Model, land: LandSlices) -> LandSums:
        """Return the answers to a query of a stand-in.

        Raises
        ------
        SettingError
            If something other than values at the slices of the data is asked for.
        """
        names = [model.axes[axis].name for axis in land.places]
        if query.linear is not None:
            raise SettingError(
                "Derivatives at points of a grid with missing cells need the whole grid in memory. "
                "Ask for values, or fill the grid first, land as well."
            )
        if set(query.spread) & set(land.places):
            raise SettingError(
                f"Points of a grid with missing cells beyond memory need coordinates of "
                f"{' and '.join(names)} each: these cannot be given for all points together."
            )
        rows = {}
        for axis, numbers in enumerate(query.asked):
            if axis in land.places:
                own = land.solver.rows(land.places.index(axis), numbers)
                starts = np.zeros(numbers.size, np.intp)
                rows[axis] = PointRows(starts, own, model.shape[axis])
            elif axis not in query.spread:
                nodes = slice_nodes(model, axis, numbers)
                rows[axis] = PointRows.at_samples(nodes, model.shape[axis])
        samples = {
            axis: np.unique(slice_nodes(model, axis, query.asked[axis])) for axis in query.spread
        }
        smooth = query.rules.smooth
        at = [model.cascade.find_nodes(axis, query.asked[axis], smooth) for axis in land.places]
        asked = tuple(query.asked)
        return cls(model, rows, samples, land=land, nodes=tuple(at), asked=asked, smooth=smooth)

    @property
    def whole(self) -> frozenset[int]:
        """Axes along which a tile has all samples: those of a slice."""
        return frozenset(self.land.places)

    @property
    def cell_bytes(self) -> int:
        """Bytes in use for each cell of a tile, whose slices are completed."""
        return CELL + COMPLETED

    def prepare(
        self, values: NDArray[Any], box: Slices, groups: Indices
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the coefficients of the slices of a box, and their cells less the mean.

        Slices that no point needs are not completed: all of theirs is 0.
        """
        land, order = self.land, [*self.land.slices, *self.land.places]
        shape = [values.shape[axis] for axis in order]
        needed, own, _ = self.complete(values, box, groups)
        count = math.prod(shape[: len(land.slices)])
        cells, coefficients = (np.zeros((count, *own.shape[1:])) for _ in range(2))
        cells[needed] = own
        coefficients[needed] = land.solver.coefficients(own)
        back = np.argsort(order)
        return coefficients.reshape(shape).transpose(back), cells.reshape(shape).transpose(back)

    def complete(
        self, values: NDArray[Any], box: Slices, groups: Indices
    ) -> tuple[Indices, Array, Mask]:
        """Return the slices of a box that points need: numbers, cells less the mean, and gaps."""
        land = self.land
        gone = land.refuse_gaps(values, box)
        flat, missing = (
            own.transpose([*land.slices, *land.places]).reshape(-1, *land.missing.shape)
            for own in (values, gone)
        )
        needed = np.flatnonzero(self._needed(box, groups))
        seen = np.where(missing[needed], np.nan, flat[needed].astype(np.float64))
        return needed, land.complete(seen), missing[needed]

    def _needed(self, box: Slices, groups: Indices) -> Mask:
        """Return which slices of a box, in C order, points of some groups need.

        All points of a group are of one slice, as far as they have slices of their own.
        """
        first = np.array([self.groups[place][0] for place in groups])
        places = []
        for axis in self.land.slices:
            if axis in self.rows:
                some = self.rows[axis].starts[first]
            else:
                some = self.samples[axis]
                some = some[(some >= box[axis].start) & (some < box[axis].stop)]
            places.append(some - box[axis].start)
        needed = np.zeros([box[axis].stop - box[axis].start for axis in self.land.slices], bool)
        spread = [place for place, axis in enumerate(self.land.slices) if axis in self.samples]
        needed[tuple(lay_out(places, spread))] = True
        return needed.ravel()

    def pass_through(
        self, found: Array, points: Indices, cells: NDArray[Any], where: Sequence[slice]
    ) -> None:
        """Replace answers at cells of the data, which pass through one by one."""
        own = dict(zip(self.land.places, (nodes[points] for nodes in self.nodes), strict=True))
        here = np.flatnonzero(np.all([nodes >= 0 for nodes in own.values()], axis=0))
        places = tuple(
            own[axis][here] if axis in own else rows.starts[points][here] - where[axis].start
            for axis, rows in self.rows.items()
        )
        found[here] = cells[places]


class LandVariances(LandSums):
    """Variances of the answers at points of slices, each of which misses cells of its own."""

    def add(self, values: NDArray[Any], tile: Tile) -> tuple[Indices, Slices, Array]:
        """Return the points that need a tile, the part of their variances, and these."""
        needed, cells, missing = self.complete(values, tile.box, tile.groups)
        known = {int(needed[place]): own for place, own in self.land.error_bars(cells, missing)}
        part = tuple(self._kept(tile.box).values())
        points = [self.groups[place] for place in tile.groups]
        found = [self._variance(own, part, tile.box, known) for own in points]
        return np.concatenate(points), part, np.concatenate(found)

    def _variance(
        self, points: Indices, part: Slices, box: Slices, known: Mapping[int, GapBars]
    ) -> Array:
        """Return the variances of points that are of one slice, as far as they have their own."""
        bars, land = self.model.bars, self.land
        assert isinstance(bars, LandBars)
        cascade = bars.slice_of(self.model.cascade)
        asked = [self.asked[axis][points] for axis in land.places]
        kept = {axis: self.samples[axis][own] for axis, own in zip(self.samples, part, strict=True)}
        found = np.full((points.size, *(own.size for own in kept.values())), np.nan)
        sizes = [box[axis].stop - box[axis].start for axis in land.slices]
        for where in np.ndindex(found.shape[1:]):
            own = {axis: int(kept[axis][place]) for axis, place in zip(kept, where, strict=True)}
            at = [own.get(a, self._slice_at(a, points)) - box[a].start for a in land.slices]
            number = int(np.ravel_multi_index(at, sizes))
            if number in known:
                found[:, *where] = known[number].variance_at_points(
                    cascade, asked, smooth=self.smooth
                )
        return found

    def _slice_at(self, axis: int, points: Indices) -> int:
        """Return the sample of an axis of slices that points have; 0 if all points share some."""
        return int(self.rows[axis].starts[points[0]]) if axis in self.rows else 0


def slice_nodes(model: Model, axis: int, numbers: Array) -> Indices:
    """Return the slices at some coordinates.

    Raises
    ------
    SettingError
        If the data has none there.
    """
    nodes = model.cascade.find_nodes(axis, numbers, False)
    if (nodes < 0).any():
        raise SettingError(
            f"Beyond memory, a grid with missing cells is answered at the coordinates of "
            f"'{model.axes[axis].name}' that it has. Ask there, or fill it first, land as well."
        )
    return nodes
