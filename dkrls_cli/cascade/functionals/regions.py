"""Variances of means over a region: from how well just these means are predicted.

Averaged over all other axes as the answer is, the data is a series along one level. How far its
samples are off when they are left out is known in closed form
(:func:`dkrls_cli.cascade.errorbars.leaving.leave_out`), and gives
the scale s_l^2 of that level for this region: errors that go together in the region stay in the
series, those that do not have averaged out. Where errors clearly go by place, as in an ocean that
varies near its surface, a range has the scale of the samples around it
(:mod:`dkrls_cli.cascade.calibration.local`). With L the functional along the level the variance is

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
half of the noise is left: as of cells with two samples, one of which is known. Of few samples the
variance is no less than a share of that of such errors.

Rules were made on ten grids (ocean, E1, tas, theta, potential temperature, electron content, the
simulated field, three generated ones) and are reported on 14 others (rain, salinity, El Nino, A1B,
electron density, analysed sea surface, pressure, brightness, satellite, five generated ones), every
second slice, a fifth or runs of three held out of one, two or all dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TypeAlias

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask, Slices
from dkrls_cli.cascade.calibration.local import LocalScale, find_local_scale, student_factor
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

# Answers along the axes that are not averaged from which scales are taken: enough for a mean.
_MOST = 512

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

    def variance(part: Slices) -> Array:
        return np.asarray(reduce(np.add.outer, [v[p] for v, p in zip(parts, part, strict=True)]))

    return variance


def region_parts(
    cascade: Cascade,
    asked: Sequence[Functional],
    smooth: bool,
    cells: Mapping[int, SourceCells],
    poles: Continuation | None = None,
    make: SeriesMaker | None = None,
) -> list[Array]:
    """Return what every level adds to the variance, at its own questions."""
    errors, copies = cascade.covariance, copies_of(cascade, poles)

    def series(axis: int) -> Array:
        few = [each.take(_spread_out(len(each))) for each in asked]
        if make is not None:
            return make(axis, few)
        return region_series(cascade, axis, few, smooth, cells)

    found = []
    for axis, each in enumerate(asked):
        source = cells.get(axis)
        if isinstance(each, Means) and not smooth and source is not None and not source.are_means:
            found.append(_range_part(cascade, axis, each, series(axis), cells, copies.get(axis)))
            continue
        between = answered(cascade, axis, each, smooth, source)
        here = np.flatnonzero(between)
        part = np.zeros(len(each))
        if here.size:
            left = left_variance(errors, axis, each.take(here))
            left += errors.levels[axis].ridge * noise_left(errors, axis, each.take(here))
            scale = left_out_scale(cascade, axis, series(axis), copies.get(axis))
            part[here] = scale * left
        found.append(part)
    return found


def _range_part(
    cascade: Cascade,
    axis: int,
    each: Means,
    series: Array,
    cells: Mapping[int, SourceCells],
    copies: Indices | None,
) -> Array:
    """Return what a level adds to the variance of means over ranges of it (q,)."""
    alone, local = _left_out_scales(cascade, axis, series, copies)
    errors = cascade.covariance
    found = np.empty(len(each))
    for place in range(len(each)):
        one = each[place : place + 1]
        pieces = cells[axis].cut(one)
        if (gaps := find_gaps(pieces, cascade.coordinates[axis])).any():
            found[place] = alone * _open_in_gaps(errors, axis, pieces, gaps, local)
        else:
            scale, least = _window_errors(cascade, axis, one, series, cells) or (alone, 0.0)
            here = float(pieces.share @ local(0.5 * (pieces.low + pieces.high)))
            found[place] = here * max(scale * _open_in_cells(errors, axis, one), least)
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


def _open_in_cells(errors: Cascade, axis: int, asked: Means) -> float:
    """Return what a level leaves open of the mean over a range that its cells cover.

    Of what it leaves open of the smooth field, noise in the samples is a part. The mean passes
    through them, so that this part is none of its error; half of the noise is, at least.
    """
    noise = errors.levels[axis].ridge * float(noise_left(errors, axis, asked)[0])
    left = float(left_variance(errors, axis, asked)[0])
    return max(left - noise, 0.0) + _UNSEEN * noise


def _window_errors(
    cascade: Cascade,
    axis: int,
    asked: Means,
    series: Array,
    cells: Mapping[int, SourceCells],
) -> tuple[float, float] | None:
    """Return scale and least variance of means over a range, from samples with their own cells."""
    nodes, own = cascade.coordinates[axis], cells[axis].places
    if own is not None:
        nodes, series = nodes[own], series[own]
    low, high = float(asked.low[0]), float(asked.high[0])
    return window_errors(cascade.levels[axis], nodes, series, low, high, latitude=asked.latitude)


def left_out_scale(
    cascade: Cascade, axis: int, series: Array, copies: Indices | None = None
) -> float:
    """Return s^2 of a level for means over a region, from samples left out of their series (m, n).

    It is the mean square of what they are off by, wider where few samples tell it. `copies` has the
    place of the sample that each sample copies, -1 where it copies none.
    """
    return _left_out_scales(cascade, axis, series, copies)[0]


def _left_out_scales(
    cascade: Cascade, axis: int, series: Array, copies: Indices | None
) -> tuple[float, Callable[[Array], Array]]:
    """Return s^2 of a level for means over a region, and a function of its factors by place."""
    left = leave_out(cascade, axis, cascade.shape[axis], copies)
    known, predicted = np.split(left.twice @ series, 2)
    squares = ((predicted - known) ** 2).mean(axis=1) / left.variance
    scale = float(squares.mean()) * student_factor(squares.size)
    period, places = cascade.levels[axis].kernel.period, cascade.coordinates[axis][left.nodes]
    runs = np.array_split(np.argsort(places), min(places.size, _MOST_PLACES))
    places, squares = (np.array([each[run].mean() for run in runs]) for each in (places, squares))
    found = find_local_scale(places, squares, closed=period is not None, gain=_GAIN)
    local = LocalScale(np.zeros(1), np.ones(1)) if found is None else found[0]
    return scale, lambda query: local.at(query, period)


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
