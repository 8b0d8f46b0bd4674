"""Variances of means over a region: from how well just these means are predicted.

Averaged over all other axes as the answer is, the data is a series along one level. How far its
samples are off when they are left out is known in closed form
(:func:`dkrls_cli.cascade.errorbars.leaving.leave_out`), and gives the scale s_l^2 of that level for
this region: errors that go together in the region stay in the series, those that do not have
averaged out. Each of several series has a scale of its own, as far as they differ by more than
chance; and where errors clearly go by place, as in an ocean that varies near its surface, a range
has the scale of the samples around it (:mod:`dkrls_cli.cascade.calibration.local`). With L the
functional along the level the variance is

    sum over l of s_l^2 (L L'k - (L k)' C^-1 (L k) + lambda_l N),

N being what the functional leaves of independent noise. Nothing is assumed of how errors go
together in space. Under a joint ridge the variance is that of the posterior
(:mod:`dkrls_cli.cascade.functionals.bars`).

Ranges
------
A mean over a range passes through the data in the cells around its coordinates. Where the range has
gaps, two usual steps and wider, they are what is not known: cells of a usual step are taken for
known, each for its sample, and L is the mean of the samples that the gaps lack, a usual step apart,
with their share in the range. The mean of the field over a gap would be told as better known where
a kernel is shorter than a step, as if a sample stood for its cell only where there is one. Without
gaps it is open how well samples stand for their cells. The scale is then that of means over such
ranges, of which every second sample is left out (:mod:`dkrls_cli.cascade.functionals.windows`), and
half of the noise is left, with the scale of single samples: as of cells with two samples, one of
which is known. Of few samples the variance is no less than a share of that of such errors.

Rules were made on ten grids (ocean, E1, tas, theta, potential temperature, electron content, the
simulated field, three generated ones) and are reported on 14 others (rain, salinity, El Nino, A1B,
electron density, analysed sea surface, pressure, brightness, satellite, five generated ones), every
second slice, a fifth or runs of three held out of one, two or all dimensions. Samples in gaps,
scales by place and by series, and that of noise came later: made on El Nino, potential temperature,
tas and the ocean, and reported on salinity, rain, the simulated field and seven generated ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask, Slices
from dkrls_cli.cascade.calibration.local import (
    LocalScale,
    find_local_scale,
    series_scales,
    student_factor,
)
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars.leaving import copies_of, leave_out
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.functionals.answers import NO_CELLS, all_rows
from dkrls_cli.cascade.functionals.bars import answered, noise_left
from dkrls_cli.cascade.functionals.cells import Pieces, SourceCells
from dkrls_cli.cascade.functionals.functional import Functional, Means, Values
from dkrls_cli.cascade.functionals.rows import left_variance
from dkrls_cli.cascade.functionals.windows import window_errors
from dkrls_cli.cascade.poles.continuation import Continuation
from dkrls_cli.circle import spacing

SeriesMaker: TypeAlias = Callable[[int, Sequence[Functional]], Array]
"""Returns the data less its mean along one axis (m, n), averaged along the others as the questions
tell; that of the axis itself does not count."""

# Questions along an axis that is not averaged which have scales of their own; others have those of
# the nearest.
_MOST = 512

# Part of the errors of samples left out of a series that are independent: neighbours share errors.
_INDEPENDENT = 0.5

# Part of a usual step that is a gap if no cell is there: beside one that is missing it is a whole.
_WIDE = 0.5

# Samples missing in a range whose errors are taken together; of more of them each gap is a mean of
# its own, and independent of the others.
_MOST_MISSING = 128

# Gain of the log-likelihood from which errors go by place: few numbers tell it of one region.
_GAIN = 2.0

# Places at most by which errors go, each of one sample or a run of them: a matrix of 8 MB.
_MOST_PLACES = 1024

# Part of the variance of noise that the samples of a range without gaps leave open.
_UNSEEN = 0.5


@dataclass(frozen=True, eq=False)
class RegionPart:
    """Part of the variance of means over a region that one level adds.

    Attributes
    ----------
    axis
        Its axis.
    left
        What it leaves open of its own questions (q,).
    scales
        The scale of every answer: of size q or 1 along the axis, and of some evenly spread
        questions along the others.
    """

    axis: int
    left: Array
    scales: Array

    def block(self, part: Slices, sizes: Sequence[int]) -> Array:
        """Return a block of the variance of all answers, which have so many questions by axis."""
        places = [
            _nearest_of(sparse, size)[own]
            for own, sparse, size in zip(part, self.scales.shape, sizes, strict=True)
        ]
        left = self.left[part[self.axis]]
        left = left.reshape([-1 if axis == self.axis else 1 for axis in range(len(part))])
        return np.asarray(left * self.scales[np.ix_(*places)])


def region_blocks(
    cascade: Cascade,
    asked: Sequence[Functional],
    *,
    smooth: bool = False,
    cells: Mapping[int, SourceCells] = NO_CELLS,
    poles: Continuation | None = None,
    make: SeriesMaker | None = None,
) -> Callable[[Slices], Array]:
    """Return a function that computes the variance of a block of means, with a ridge per level.

    `poles` are rows of the cascade that go on across the poles. `make` returns the data along one
    axis where the cascade does not hold it.
    """
    parts = region_parts(cascade, asked, smooth, cells, poles, make)
    sizes = [len(each) for each in asked]

    def variance(part: Slices) -> Array:
        none = np.zeros([len(range(size)[own]) for own, size in zip(part, sizes, strict=True)])
        return np.asarray(sum((each.block(part, sizes) for each in parts), none))

    return variance


def region_parts(
    cascade: Cascade,
    asked: Sequence[Functional],
    smooth: bool,
    cells: Mapping[int, SourceCells],
    poles: Continuation | None = None,
    make: SeriesMaker | None = None,
) -> list[RegionPart]:
    """Return what the levels add to the variance, but for those that add nothing."""
    errors, copies = cascade.covariance, copies_of(cascade, poles)
    few = [each.take(_spread_out(len(each))) for each in asked]

    def series(axis: int) -> Array:
        if make is not None:
            return make(axis, few)
        return region_series(cascade, axis, few, smooth, cells)

    found = []
    for axis, each in enumerate(asked):
        source = cells.get(axis)
        if isinstance(each, Means) and not smooth and source is not None and not source.are_means:
            scales = _range_variances(cascade, axis, each, series(axis), cells, copies.get(axis))
            left = np.ones(len(each))
        else:
            here = np.flatnonzero(answered(cascade, axis, each, smooth, source))
            if not here.size:
                continue
            left = np.zeros(len(each))
            left[here] = left_variance(errors, axis, each.take(here))
            left[here] += errors.levels[axis].ridge * noise_left(errors, axis, each.take(here))
            scales = left_out_scales(cascade, axis, series(axis), copies.get(axis))[0][None]
        others = [len(some) for other, some in enumerate(few) if other != axis]
        laid_out = np.moveaxis(scales.reshape(len(scales), *others), 0, axis)
        found.append(RegionPart(axis, left, laid_out))
    return found


def _range_variances(
    cascade: Cascade,
    axis: int,
    each: Means,
    series: Array,
    cells: Mapping[int, SourceCells],
    copies: Indices | None,
) -> Array:
    """Return what a level adds to the variances of means of n series over ranges of it (q, n)."""
    alone, local = left_out_scales(cascade, axis, series, copies)
    errors = cascade.covariance
    found = np.empty((len(each), series.shape[1]))
    for place in range(len(each)):
        one = each[place : place + 1]
        pieces = cells[axis].cut(one)
        if (gaps := find_gaps(pieces, cascade.coordinates[axis])).any():
            found[place] = alone * _open_in_gaps(errors, axis, pieces, gaps, local)
        else:
            scale, least = _window_errors(cascade, axis, one, series, cells) or (alone, 0.0)
            here = float(pieces.share @ local(0.5 * (pieces.low + pieces.high)))
            smooth, noise = _open_in_cells(errors, axis, one)
            found[place] = here * np.maximum(scale * smooth + alone * noise, least)
    return found


def find_gaps(pieces: Pieces, nodes: Array) -> Mask:
    """Return which pieces of a range are gaps (p,): no cell is there for half a usual step.

    If one piece is, all that no cell has are.
    """
    beside = pieces.cell < 0
    wide = pieces.high - pieces.low >= _WIDE * spacing(nodes)
    return np.asarray(beside & bool((beside & wide).any()))


def _open_in_gaps(
    errors: Cascade, axis: int, pieces: Pieces, gaps: Mask, local: Callable[[Array], Array]
) -> float:
    """Return what a level leaves open of the mean over the gaps of a range, times their share.

    `local` tells factors of its variance by place.
    """
    level, nodes = errors.levels[axis], errors.coordinates[axis]
    low, high, share = pieces.low[gaps], pieces.high[gaps], pieces.share[gaps]
    share = share * np.sqrt(local(0.5 * (low + high)))
    samples = np.maximum(1, np.rint((high - low) / spacing(nodes)).astype(np.intp))
    noise = level.ridge * float(np.sum(share**2 / samples))
    asked: Functional = Means(low, high, pieces.asked.latitude)
    if samples.sum() > _MOST_MISSING:
        return float(share**2 @ left_variance(errors, axis, asked)) + noise
    asked, share = Values(_even_places(low, high, samples)), np.repeat(share / samples, samples)
    rows = share @ asked.rows(level.kernel, nodes)
    factor = errors.factor(axis)
    if isinstance(factor, LongFactor):
        explained = float(rows @ factor.solve(rows[:, None])[:, 0])
    else:
        explained = float(np.sum((rows @ factor.vectors) ** 2 / (factor.values + level.ridge)))
    prior = float(share @ asked.covariance(level.kernel) @ share)
    return max(prior - explained, 0.0) + noise


def _even_places(low: Array, high: Array, counts: Indices) -> Array:
    """Return the middles of so many equal parts of every interval.

    >>> _even_places(np.array([0.0, 4.0]), np.array([1.0, 6.0]), np.array([1, 2])).tolist()
    [0.5, 4.5, 5.5]
    """
    part = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    width = np.repeat((high - low) / counts, counts)
    return np.asarray(np.repeat(low, counts) + (part + 0.5) * width)


def _open_in_cells(errors: Cascade, axis: int, asked: Means) -> tuple[float, float]:
    """Return what a level leaves open of the mean over a range that its cells cover, and of noise.

    Of what it leaves open of the smooth field, noise in the samples is a part. The mean passes
    through them, so that this part is none of its error; half of the noise is, at least.
    """
    noise = errors.levels[axis].ridge * float(noise_left(errors, axis, asked)[0])
    left = float(left_variance(errors, axis, asked)[0])
    return max(left - noise, 0.0), _UNSEEN * noise


def _window_errors(
    cascade: Cascade,
    axis: int,
    asked: Means,
    series: Array,
    cells: Mapping[int, SourceCells],
) -> tuple[Array, Array] | None:
    """Return scales and least variances of means over a range, from samples with own cells."""
    nodes, own = cascade.coordinates[axis], cells[axis].places
    if own is not None:
        nodes, series = nodes[own], series[own]
    low, high = float(asked.low[0]), float(asked.high[0])
    return window_errors(cascade.levels[axis], nodes, series, low, high, latitude=asked.latitude)


def left_out_scales(
    cascade: Cascade, axis: int, series: Array, copies: Indices | None = None
) -> tuple[Array, Callable[[Array], Array]]:
    """Return s^2 of a level for means over a region, and a function of factors by place.

    They come from samples left out of their series (m, n), of which each has a scale of its own:
    the mean square of what it is off by, wider where few samples tell it. `copies` has the place of
    the sample that each sample copies, -1 where it copies none.
    """
    left = leave_out(cascade, axis, cascade.shape[axis], copies)
    known, predicted = np.split(left.twice @ series, 2)
    squares = (predicted - known) ** 2 / left.variance[:, None]
    scales = series_scales(squares, _INDEPENDENT * len(squares))
    period, places = cascade.levels[axis].kernel.period, cascade.coordinates[axis][left.nodes]
    by_place = np.divide(squares, scales, out=squares, where=scales > 0).mean(axis=1)
    runs = np.array_split(np.argsort(places), min(places.size, _MOST_PLACES))
    places, by_place = (np.array([each[run].mean() for run in runs]) for each in (places, by_place))
    found = find_local_scale(places, by_place, closed=period is not None, gain=_GAIN)
    local = LocalScale(np.zeros(1), np.ones(1)) if found is None else found[0]
    return scales * student_factor(len(squares)), lambda query: local.at(query, period)


def region_series(
    cascade: Cascade,
    axis: int,
    asked: Sequence[Functional],
    smooth: bool,
    cells: Mapping[int, SourceCells],
) -> Array:
    """Return the data along one axis (m, n), averaged along the others as the answers are."""
    rows = all_rows(cascade, asked, smooth, cells, skip=axis)
    own = cascade.frames[axis]
    operators = [own if other == axis else row for other, row in enumerate(rows)]
    found = np.moveaxis(cascade.apply_centred(operators), axis, 0)
    return found.reshape(len(found), -1)


def _spread_out(size: int) -> Indices:
    """Return some of many questions, evenly spread."""
    return np.unique(np.linspace(0, size - 1, min(size, _MOST)).astype(np.intp))


def _nearest_of(some: int, size: int) -> Indices:
    """Return which of so many evenly spread questions is next to each of all (size,)."""
    steps = (some - 1) / max(size - 1, 1)
    return np.asarray(np.rint(steps * np.arange(size)), np.intp)
