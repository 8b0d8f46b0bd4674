"""Cells of the data: means over other cells that keep it, whether it is means or values.

A level takes its samples for values at the coordinates. Where they are means y over cells S, the
values beside them are found by two steps of correction: with P and M the operators that answer
from data with values at the coordinates and with means over the cells,

    p = (I + D + D^2) y,    D = P - M,

so that the means over cells of what is answered from p differ from y by D^3 y, and by what the
ridge smooths. That residual, y - M p, is added as a constant in every cell. So the mean over a cell
of the data is the data, the mean over a union of cells is theirs, and the means over all parts of a
cell make up the mean over the cell: areas times means have the same sum on either grid. Values
between coordinates have the same residual, and derivatives have none.

Data that are values at coordinates need no correction. What the ridge smooths away at them is added
to means in the same way, as a constant in the cell around each, so that the mean over a month or a
region of noisy data is that of the data, as values at training coordinates are the data. Such cells
are no wider than the usual step: in a gap nothing is known of what the ridge smooths away.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.functionals.functional import Functional, Means, Values
from dkrls_cli.cascade.functionals.rows import answer_long
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
        starts = np.flatnonzero(np.diff(self.which, prepend=-1))
        return np.asarray(np.add.reduceat(values * self.share[:, None], starts, axis=0))


@dataclass(frozen=True, eq=False)
class CellRows:
    """Rows (q, m) that answer from means over the cells of a level with its own ridge.

    Attributes
    ----------
    cascade, axis
        The model, and the axis of the level.
    source
        The cells of its samples.
    asked
        What is asked for.
    smooth
        Whether what the ridge smooths away is not added again.
    """

    cascade: Cascade
    axis: int
    source: SourceCells
    asked: Functional
    smooth: bool = False
    ndim: ClassVar[int] = 2

    def __len__(self) -> int:
        """Return the number of questions."""
        return len(self.asked)

    def __getitem__(self, part: slice) -> CellRows:
        """Return some of the rows."""
        return CellRows(self.cascade, self.axis, self.source, self.asked[part], self.smooth)

    def __matmul__(self, fibres: Array) -> Array:
        """Return the answers (q, n) from data (m, n)."""
        nodes = Values(self.cascade.coordinates[self.axis])
        term, total = fibres, fibres
        for _ in range(2 if self.source.are_means else 0):
            weights = self._solve(term)
            term = self._answer(nodes, weights) - self._answer(self.source.means, weights)
            total = total + term
        weights = self._solve(total)
        means = self._answer(self.source.means, weights)
        seen = means if self.source.are_means else self._answer(nodes, weights)
        residual = np.zeros_like(fibres) if self.smooth else fibres - seen
        if self.source.places is not None:
            residual = residual[self.source.places]
        if isinstance(self.asked, Means):
            return self._over(self.source.cut(self.asked), weights, means, residual)
        found = self._answer(self.asked, weights)
        if isinstance(self.asked, Values):
            inside, cell = self._inside(self.asked.query)
            found[inside] += residual[cell[inside]]
        return found

    def _over(self, pieces: Pieces, weights: Array, means: Array, residual: Array) -> Array:
        """Return the means over intervals, of which the parts of a cell make up the cell."""
        found = np.empty((pieces.cell.size, means.shape[1]))
        whole = pieces.whole
        found[whole] = means[pieces.cell[whole]]
        rest = Means(pieces.low[~whole], pieces.high[~whole], self.source.latitude)
        if len(rest):
            found[~whole] = self._answer(rest, weights)
        own = pieces.cell >= 0
        # rounding is taken out where the parts of a cell are all there: their sum is the cell's
        sums = np.zeros_like(means)
        np.add.at(sums, pieces.cell[own], pieces.part[own, None] * found[own])
        excess = np.where(pieces.tiled[:, None], sums - means, 0.0)
        found[own] += residual[pieces.cell[own]] - excess[pieces.cell[own]]
        return pieces.average(found)

    def _inside(self, query: Array) -> tuple[Mask, Indices]:
        """Return which coordinates lie in a cell, and in which."""
        tiny = _ROUNDING * float(np.min(self.source.high - self.source.low))
        at = self.source.cut(Means(query - tiny, query + tiny, False))
        first = np.searchsorted(at.which, np.arange(query.size))
        cell = at.cell[first]
        return np.asarray(cell >= 0), cell

    def _solve(self, fibres: Array) -> Array:
        """Return the weights C^-1 y."""
        factor, ridge = self.cascade.factor(self.axis), self.cascade.levels[self.axis].ridge
        if isinstance(factor, LongFactor):
            return factor.solve(fibres)
        return np.asarray(factor.vectors @ factor.solve(ridge, fibres))

    def _answer(self, asked: Functional, weights: Array) -> Array:
        """Return L k(., c) weights."""
        factor, nodes = self.cascade.factor(self.axis), self.cascade.coordinates[self.axis]
        if isinstance(factor, LongFactor):
            return answer_long(factor, asked, weights)
        return np.asarray(asked.rows(self.cascade.levels[self.axis].kernel, nodes) @ weights)


def cell_rows(
    cascade: Cascade, axis: int, source: SourceCells, asked: Functional, smooth: bool
) -> Array | CellRows:
    """Return the rows (q, r_l) that answer from the core along an axis of means over cells."""
    operator, frame = CellRows(cascade, axis, source, asked, smooth), cascade.frames[axis]
    if frame is not None:
        return operator @ np.asarray(frame, np.float64)
    if cascade.is_long(axis):
        return operator
    return operator @ np.eye(cascade.shape[axis])


def known_means(source: SourceCells, asked: Functional) -> Mask:
    """Return which questions are means over unions of cells of data that are means (q,)."""
    if not (source.are_means and isinstance(asked, Means) and len(asked)):
        return np.zeros(len(asked), bool)
    return source.cut(asked).known
