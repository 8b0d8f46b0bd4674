"""Error bars in outages: gaps of many steps between the coordinates of a level.

Slices left out one by one tell how far answers err one step from the data. They say nothing of the
middle of an outage, where there is only the kernel to go by. So blocks of neighbouring slices are
left out elsewhere, as wide as the outage, and predicted from the slices around them. In the outage
the variance is multiplied by the factor with which the 90 % band holds 90 % of the cells of these
blocks that lie further from the data than a slice left out alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.calibration.local import LocalScale, student_factor
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars.bars import Z90
from dkrls_cli.cascade.errorbars.levels import LevelBars
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.spectrum import Spectrum
from dkrls_cli.cascade.splines.cardinal import DEGREES
from dkrls_cli.cascade.splines.pieces import piece_weights
from dkrls_cli.cascade.tensors import apply
from dkrls_cli.circle import wrap

_WIDE = 3.0
"""Width of an outage at least, in distances from a slice left out alone to its neighbour: the
middle of the outage is half as far again from the data."""

_BLOCKS = 8
"""Blocks that are left out for one width at most, spread evenly."""

_BESIDE = 100
"""Slices on each side of a block that predict it, at most."""

_SHORE = 4
"""Slices on each side of a block at least: from fewer, kernels and splines with a slope overshoot
as they do nowhere beside an outage."""

_FIBRES, _NUMBERS = 1024, 2**22
"""Fibres that are predicted at most, spread evenly over the grid, and their numbers."""

_NARROWER = 0.7
"""Share of a width that is tried next where no block of that width has data on both sides."""

_EDGE = 1 / 3
"""Share of an outage, at most, on each side of which the factor goes over from that of its end."""

_LEAST = 0.1
"""Factor of the variance at least: few blocks may be met by chance."""


@dataclass(frozen=True, eq=False)
class Line:
    """The coordinates of a level in rising order; those of a circle begin behind its widest gap.

    Attributes
    ----------
    places
        The coordinates that distances are measured in, rising (m,).
    order
        Places of the slices in the data, in that order (m,).
    gaps
        Distance from every slice to the next; from the last one of a circle to the first.
    """

    places: Array
    order: Indices
    gaps: Array

    @classmethod
    def of(cls, coordinates: Array, kernel: Kernel) -> Line:
        """Return the line of coordinates in any order.

        >>> Line.of(np.array([350.0, 0.0, 10.0, 340.0]), Kernel(period=360.0)).places.tolist()
        [340.0, 350.0, 360.0, 370.0]
        """
        period = kernel.period
        places = wrap(kernel.warped(coordinates), period)
        order = np.argsort(places)
        places = places[order]
        if period is None:
            return cls(places, order, np.diff(places))
        widest = int(np.argmax(np.diff(places, append=places[0] + period)))
        order, places = np.roll(order, -widest - 1), np.roll(places, -widest - 1)
        places = np.where(places < places[0], places + period, places)
        return cls(places, order, np.diff(places, append=places[0] + period))

    @cached_property
    def reach(self) -> float:
        """Distance of most slices to their nearest neighbour."""
        beside = np.minimum(self.gaps[1:], self.gaps[:-1])
        return float(np.quantile(beside, 0.9)) if beside.size else math.inf

    @property
    def known_gap(self) -> float:
        """Width up to which slices left out alone tell of a gap, with room for rounding."""
        return _WIDE * (1 + 1e-6) * self.reach

    def find_outages(self) -> list[int]:
        """Return behind which slices there is a gap wider than slices left out alone tell of.

        >>> Line.of(np.array([0.0, 1.0, 2.0, 7.0, 8.0, 9.0]), Kernel()).find_outages()
        [2]
        """
        return np.flatnonzero(self.gaps > self.known_gap).tolist()

    def place_blocks(self, width: float) -> list[slice]:
        """Return blocks of slices between two that lie so far apart, spread evenly.

        There is no outage within or beside a block. Where none is so wide they are narrower, but
        wider than what slices left out alone tell of; else there is none.
        """
        while width > self.known_gap:
            starts, ends = self._find_blocks(width)
            if starts.size:
                some = np.linspace(0, starts.size - 1, min(starts.size, _BLOCKS)).astype(np.intp)
                return [
                    slice(int(a), int(b)) for a, b in zip(starts[some], ends[some], strict=True)
                ]
            width *= _NARROWER
        return []

    def _find_blocks(self, width: float) -> tuple[Indices, Indices]:
        """Return the starts and ends of all blocks between two slices at least so far apart.

        No outage lies between these two, and enough slices around them.
        """
        ends = np.searchsorted(self.places, self.places + width * (1 - 1e-9))
        starts = np.arange(self.places.size)
        enough = (starts + 1 >= _SHORE) & (ends + _SHORE <= self.places.size)
        starts, ends = starts[enough], ends[enough]
        outages = np.append(0, np.cumsum(self.gaps > self.known_gap))
        whole = outages[ends] == outages[starts]
        return starts[whole] + 1, ends[whole]

    def depths(self, block: slice) -> Array:
        """Return how far the slices of a block are from those beside it."""
        inside = self.places[block]
        before, behind = self.places[block.start - 1], self.places[block.stop]
        return np.asarray(np.minimum(inside - before, behind - inside))


def with_outages(bars: LevelBars, cascade: Cascade, axis: int) -> LevelBars:
    """Return error bars that are as wide in the outages of a level as blocks left out tell."""
    level, coordinates = cascade.levels[axis], cascade.coordinates[axis]
    period = level.kernel.period
    line = Line.of(coordinates, level.kernel)
    outages = line.find_outages()
    if not outages:
        return bars
    places, fibres = coordinates[line.order], sample_fibres(cascade, axis)[line.order]
    whole = _whole_spectrum(cascade, axis, line.order)

    @cache
    def factor(steps: int, across: Level) -> float:
        blocks = line.place_blocks(line.reach * 2 ** (steps / 2))
        miss = partial(_miss_block, bars, across, axis, places, fibres)
        if whole is not None:
            miss = partial(_miss_of_all, bars, level, axis, places, fibres, whole)
        missed = [miss(block) for block in blocks]
        deep = [line.depths(block) > (1 + 1e-9) * line.reach for block in blocks]
        return _band_factor([ratios[inside] for ratios, inside in zip(missed, deep, strict=True)])

    marks: dict[float, float] = {}
    for before in outages:
        width = float(line.gaps[before])
        across = _answering(level, line.places[before] + width / 2)
        inside = factor(round(2 * math.log2(width / line.reach)), across)
        low, high = places[before], places[(before + 1) % places.size]
        if period is not None:
            high = low + (high - low) % period
        edge = min(line.reach / width, _EDGE) * (high - low)
        marks |= {low: 1.0, low + edge: inside, high - edge: inside, high: 1.0}
    local = list(bars.local or (None,) * cascade.ndim)
    local[axis] = _mark(local[axis], marks, period)
    return replace(bars, local=tuple(local))


def _whole_spectrum(cascade: Cascade, axis: int, order: Indices) -> Spectrum | None:
    """Return the spectrum of a level with its slices in some order.

    There is none of splines and long levels, nor where directions drown in round-off.
    """
    factor = None if cascade.levels[axis].kernel.is_spline else cascade.factor(axis)
    if isinstance(factor, Spectrum) and factor.rank == order.size:
        return Spectrum(factor.vectors[order], factor.values)
    return None


def _answering(level: Level, place: float) -> Level:
    """Return a level with the one spline that answers at a place; of two, the less tame one."""
    kernel = level.kernel
    if not kernel.pieces:
        return level
    weights = piece_weights(kernel.family, kernel.pieces, np.array([place]))
    family = max((name for name, own in weights.items() if own[0] > 0), key=DEGREES.__getitem__)
    return replace(level, kernel=replace(kernel, family=family, pieces=()))


def _miss_block(
    bars: LevelBars, level: Level, axis: int, places: Array, fibres: Array, block: slice
) -> Array:
    """Return squared errors in a block that is left out, in units of their variances (b, fibres).

    They are 0 where the variance is.
    """
    around = np.arange(places.size)[max(0, block.start - _BESIDE) : block.stop + _BESIDE]
    kept = np.setdiff1d(around, np.arange(block.start, block.stop))
    others = fit_cascade(np.zeros(kept.size), [places[kept]], [level])
    query = places[block]
    missed = np.asarray(others.answer_rows(0, query, False) @ fibres[kept]) - fibres[block]
    variance = bars.variance_alone(others, axis, query)[:, None]
    return np.divide(missed**2, variance, out=np.zeros(missed.shape), where=variance > 0)


def _miss_of_all(
    bars: LevelBars,
    level: Level,
    axis: int,
    places: Array,
    fibres: Array,
    whole: Spectrum,
    block: slice,
) -> Array:
    """Return the result of :func:`_miss_block` in closed form, from all slices outside the block.

    With the rows A of (K + ridge)^-1 in the block, what is missed is A_BB^-1 (A Y), and its
    variance the diagonal of A_BB^-1.
    """
    rows = whole.inverse(level.ridge, block)
    own = np.linalg.inv(rows[:, block])
    missed = own @ (rows @ fibres)
    variance = (own.diagonal() * bars.scale_alone(axis, places[block], level.kernel.period))[
        :, None
    ]
    return np.divide(missed**2, variance, out=np.zeros(missed.shape), where=variance > 0)


def _band_factor(ratios: Sequence[Array]) -> float:
    """Return the factor with which the 90 % band holds 90 % of the cells; 1 if none tells.

    Few blocks tell it less surely, so the band is wider.
    """
    cells = np.concatenate([np.zeros(0), *map(np.ravel, ratios)])
    if not cells.size:
        return 1.0
    return max(float(np.quantile(cells, 0.9)) / Z90**2 * student_factor(len(ratios)), _LEAST)


def sample_fibres(cascade: Cascade, axis: int) -> Array:
    """Return fibres of the data along an axis, less its mean, as columns (m, fibres)."""
    most = max(1, min(_FIBRES, _NUMBERS // cascade.shape[axis]))
    each = max(1, round(most ** (1 / max(1, cascade.ndim - 1))))
    nodes = [
        np.arange(size) if place == axis else _spread(size, each)
        for place, size in enumerate(cascade.shape)
    ]
    rows = [cascade.data_rows(place, which) for place, which in enumerate(nodes)]
    values = np.asarray(apply(cascade.core, rows), np.float64)
    return np.moveaxis(values, axis, 0).reshape(cascade.shape[axis], -1) - cascade.mean


def _spread(size: int, most: int) -> Indices:
    """Return places spread evenly over an axis."""
    return np.linspace(0, size - 1, min(size, most)).astype(np.intp)


def _mark(
    known: LocalScale | None, marks: Mapping[float, float], period: float | None
) -> LocalScale:
    """Return a local scale that is multiplied by other factors at marked places."""
    places, factors = np.array(list(marks)), np.array(list(marks.values()))
    if known is not None:
        factors = factors * known.at(places, period)
        places = np.concatenate([places, known.places])
        factors = np.concatenate([factors, known.factors])
    rising, first = np.unique(wrap(places, period), return_index=True)
    return LocalScale(rising, factors[first])
