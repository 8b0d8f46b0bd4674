"""Cells of the data along a level, and the intervals of a question cut at their ends.

The mean over an interval is made up of the means over its pieces, each a part of one cell of the
data or of none. What is known of a cell, such as what the ridge smooths away in it, is shared by
all of its pieces.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.cascade.functionals.functional import Functional, Means
from dkrls_cli.circle import spacing
from dkrls_cli.errors import InputError

# Part of the width of a cell that is rounding of its ends.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class SourceCells:
    """The cells of the samples of a level.

    Attributes
    ----------
    low, high
        Ends of the cells, in the order of the samples (m,).
    latitude
        Whether means are weighted by the cosine of the coordinate, in degrees.
    period
        Length of the circle, or None for a line.
    are_means
        Whether the samples are means over the cells, and not values at their coordinates.
    places
        Places of the samples that have the cells among all samples of the level, where values have
        others beside them; None: every sample has a cell.

    Raises
    ------
    InputError
        If cells overlap.
    """

    low: Array
    high: Array
    latitude: bool = False
    period: float | None = None
    are_means: bool = True
    places: Indices | None = None

    def __post_init__(self) -> None:
        low, high = self._rising
        slack = _ROUNDING * float(np.min(high - low))
        over = np.flatnonzero(low[1:] < high[:-1] - slack)
        around = self.period is not None and high[-1] > low[0] + self.period + slack
        if over.size or around:
            place = over[0] if over.size else low.size - 1
            raise InputError(
                f"The cells of the data overlap: that from {low[place]:g} to {high[place]:g} and "
                "the next. Means over such cells are not known to make up others."
            )

    @classmethod
    def around(
        cls, nodes: Array, low: Array, high: Array, latitude: bool, period: float | None
    ) -> Self:
        """Return the cells of values at nodes: at most half a usual step to either side."""
        half = 0.5 * spacing(nodes)
        return cls(
            np.maximum(low, nodes - half), np.minimum(high, nodes + half), latitude, period, False
        )

    @property
    def _rising(self) -> tuple[Array, Array]:
        order = np.argsort(self.low)
        return self.low[order], self.high[order]

    @property
    def means(self) -> Means:
        """The means over the cells."""
        return Means(self.low, self.high, self.latitude)

    def area(self, low: Array, high: Array) -> Array:
        """Return the areas of intervals: widths, or differences of the sine of latitude."""
        if not self.latitude:
            return high - low
        middle, half = np.radians((low + high) / 2), np.radians((high - low) / 2)
        return np.asarray(2 * np.cos(middle) * np.sin(half))

    def cut(self, asked: Means) -> Pieces:
        """Return intervals cut at the ends of the cells."""
        if not len(asked):
            none = np.zeros(0, np.intp)
            return Pieces(self, asked, none, none, asked.low, asked.high)
        turns = [0.0]
        if self.period is not None:
            first = math.floor((asked.low.min() - self.high.max()) / self.period)
            last = math.ceil((asked.high.max() - self.low.min()) / self.period)
            turns = [turn * self.period for turn in range(first, last + 1)]
        low = np.concatenate([self.low + turn for turn in turns])
        high = np.concatenate([self.high + turn for turn in turns])
        order = np.argsort(low)
        low, high, cells = (
            low[order],
            high[order],
            np.tile(np.arange(self.low.size), len(turns))[order],
        )
        parts: list[tuple[int, int, float, float]] = []
        for place, (a, b) in enumerate(zip(asked.low.tolist(), asked.high.tolist(), strict=True)):
            parts += self._cut_one(place, a, b, low, high, cells)
        which, owners, starts, ends = zip(*parts, strict=True)
        return Pieces(
            self, asked, np.array(which), np.array(owners), np.array(starts), np.array(ends)
        )

    def find(self, query: Array) -> Indices:
        """Return the cell that every coordinate lies in, or -1."""
        tiny = _ROUNDING * float(np.min(self.high - self.low))
        at = self.cut(Means(query - tiny, query + tiny, False))
        return at.cell[np.searchsorted(at.which, np.arange(query.size))]

    def _cut_one(
        self, place: int, a: float, b: float, low: Array, high: Array, cells: Indices
    ) -> list[tuple[int, int, float, float]]:
        """Return the pieces of one interval: its place, the cell or -1, and its ends."""
        found, at = [], a
        slack = _ROUNDING * (b - a)
        first = int(np.searchsorted(high, a, "right"))
        for cell in range(first, low.size):
            start, end = float(low[cell]), float(high[cell])
            near = _ROUNDING * (end - start)
            if start >= b - slack or end <= a + slack:
                if start >= b - slack:
                    break
                continue
            if start > at + slack:
                found.append((place, -1, at, start))
            # ends that agree but for rounding are those of the cell: a whole cell is whole
            begin = start if abs(max(start, a) - start) <= near else max(start, a)
            finish = end if abs(min(end, b) - end) <= near else min(end, b)
            found.append((place, int(cells[cell]), begin, finish))
            at = finish
        if b - at > slack or not found:
            found.append((place, -1, at, b))
        return found


@dataclass(frozen=True, eq=False)
class Pieces:
    """Intervals cut at the ends of the cells of the data.

    Attributes
    ----------
    source, asked
        The cells, and the intervals.
    which
        Place of the interval of every piece, rising (p,).
    cell
        The cell that a piece is a part of, or -1.
    low, high
        Its ends, which may be turns away from those of the cell.
    """

    source: SourceCells
    asked: Means
    which: Indices
    cell: Indices
    low: Array
    high: Array

    @cached_property
    def share(self) -> Array:
        """Share of every piece in its interval; the shares of an interval sum to 1."""
        areas = self.source.area(self.low, self.high)
        return np.asarray(areas / np.bincount(self.which, areas, len(self.asked))[self.which])

    @cached_property
    def part(self) -> Array:
        """Share of every piece in its cell; 0 without a cell."""
        whole = self.source.area(self.source.low, self.source.high)
        areas = self.source.area(self.low, self.high)
        return np.where(self.cell < 0, 0.0, areas / whole[self.cell])

    @property
    def whole(self) -> Mask:
        """Which pieces are a whole cell."""
        return np.asarray(np.abs(self.part - 1.0) <= _ROUNDING)

    @property
    def tiled(self) -> Mask:
        """Which cells the pieces of all intervals make up once (m,)."""
        own = self.cell >= 0
        covered = np.bincount(self.cell[own], self.part[own], self.source.low.size)
        return np.asarray(np.abs(covered - 1.0) <= _ROUNDING)

    @property
    def known(self) -> Mask:
        """Which intervals are unions of whole cells (q,)."""
        return np.asarray(np.bincount(self.which, ~self.whole, len(self.asked)) == 0)

    def shares(self, size: int) -> Array:
        """Return the shares of all samples of the level in the intervals (q, size)."""
        found = np.zeros((len(self.asked), size))
        own = self.cell >= 0
        cells = self.cell[own]
        places = cells if self.source.places is None else self.source.places[cells]
        np.add.at(found, (self.which[own], places), self.share[own])
        return found

    def average(self, values: Array) -> Array:
        """Return the means over the intervals of means over the pieces, (p, n) -> (q, n)."""
        if not len(self.asked):
            return np.empty((0, *values.shape[1:]))
        starts = np.flatnonzero(np.diff(self.which, prepend=-1))
        return np.asarray(np.add.reduceat(values * self.share[:, None], starts, axis=0))


def known_means(source: SourceCells, asked: Functional) -> Mask:
    """Return which questions are means over unions of cells of data that are means (q,)."""
    if not (source.are_means and isinstance(asked, Means) and len(asked)):
        return np.zeros(len(asked), bool)
    return source.cut(asked).known


def own_cells(source: SourceCells, asked: Functional) -> Indices | None:
    """Return the cells that means are taken over, one each, of data that are means; or None."""
    if not isinstance(asked, Means) or not len(asked) or not known_means(source, asked).all():
        return None
    cells = source.cut(asked).cell
    return cells if cells.size == len(asked) else None
