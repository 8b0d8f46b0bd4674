"""Error bars of models of grids with missing cells.

The exact variance at a missing cell takes a solve per cell. What is used instead is the variance
given the nearest observed cells before and after it along every axis only. Under a product of
kernels that is a closed form: with v_l the variance along axis l alone, as a share of that without
data, it is

    1 / (1 + sum_l (1 / v_l - 1))

of that, so it grows with the distance to data in every direction, and less where one direction
helps. How it relates to what is really missed, the cells held out while the setting was chosen
say: the variance is s^2 (it + lambda)^gamma, with gamma such that its growth with distance is that
of their errors, and s such that nine of ten of them lie within the band of 90 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask, Slices
from dkrls_cli.cascade import errorbars
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars import Z90
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.tensors import apply, contract
from dkrls_cli.circle import wrap

_POWERS = (0.2, 1.5)
_SPANS = 5
_UNSCALED = errorbars.Calibration(np.ones(1), np.ones(1), np.ones(()))
_LEAST = 1e-12
_AT_ONCE = 2**16


@dataclass(frozen=True, eq=False)
class GapBars:
    """What the error bars of a model of a grid with gaps are made from.

    Attributes
    ----------
    distance
        How far every cell is from data, in the shape of the grid: its variance given its
        neighbours, from 0 (observed) to that of the kernels (none of them near).
    scale, power
        s^2 and gamma.
    error
        Root mean square error on the cells held out.
    """

    distance: Array
    scale: float
    power: float
    error: float


Bars = errorbars.Calibration | GapBars
"""What the error bars of a model are made from, complete grid or not."""


def distance(
    coordinates: Sequence[Array], kernels: Sequence[Kernel], observed: Mask, ridge: float
) -> Array:
    """Variance of every missing cell given its neighbours along the axes; 0 where observed."""
    precision = np.zeros(observed.shape)
    prior = math.prod(kernel.variance for kernel in kernels)
    for axis, (kernel, nodes) in enumerate(zip(kernels, coordinates, strict=True)):
        order = np.argsort(wrap(nodes, kernel.period))
        similarity = gram(kernel, nodes[order], nodes[order]) / kernel.variance
        for part in _beside(observed.shape, axis):
            seen = np.moveaxis(observed[part], axis, 0)[order]
            before, after = _neighbours(seen, circle=kernel.period is not None)
            np.moveaxis(precision[part], axis, 0)[order] += _precision(
                similarity, before, after, ridge / prior
            )
    precision += 1.0
    result = np.divide(prior, precision, out=precision)
    np.maximum(result, _LEAST * prior, out=result)
    result[observed] = 0.0
    return result


def _beside(shape: Sequence[int], axis: int) -> Iterator[Slices]:
    """Parts of a grid that are whole along one axis and small enough to stay in the cache."""
    whole = [slice(None)] * len(shape)
    others = [other for other in range(len(shape)) if other != axis]
    if not others:
        yield tuple(whole)
        return
    cut = max(others, key=lambda other: shape[other])
    step = max(1, _AT_ONCE * shape[cut] // math.prod(shape))
    for start in range(0, shape[cut], step):
        yield (*whole[:cut], slice(start, start + step), *whole[cut + 1 :])


def _precision(similarity: Array, before: Indices, after: Indices, ridge: float) -> Array:
    """What two neighbours along the first axis add: k' D^-1 k, D their covariance given the cell.

    A neighbour that is none is similar to nothing.
    """
    padded = np.pad(similarity, ((0, 1), (0, 1)))
    here = np.arange(len(similarity)).reshape(-1, *[1] * (before.ndim - 1))
    one, other, both = padded[here, before], padded[here, after], padded[before, after]
    lone = before == after
    other[lone] = both[lone] = 0.0
    left, right, shared = 1.0 + ridge - one**2, 1.0 + ridge - other**2, both - one * other
    spread = np.maximum(left * right - shared**2, _LEAST * (ridge + _LEAST))
    found = (one**2 * right - 2 * one * other * shared + other**2 * left) / spread
    return np.asarray(np.maximum(found, 0.0))


def _neighbours(observed: Mask, *, circle: bool) -> tuple[Indices, Indices]:
    """Places along the first axis of the nearest observed cells before and after, or its size."""
    size = len(observed)
    turns = np.concatenate([observed] * 3) if circle else observed
    places = np.arange(len(turns)).reshape(-1, *[1] * (observed.ndim - 1))
    before = np.maximum.accumulate(np.where(turns, places, -1), axis=0)
    after = np.minimum.accumulate(np.where(turns, places, len(turns))[::-1], axis=0)[::-1]
    if circle:  # a turn before and a turn after
        before, after = before[size : 2 * size], after[size : 2 * size]
        never = ~observed.any(axis=0)
        return np.where(never, size, before % size), np.where(never, size, after % size)
    return np.where(before < 0, size, before), after


def calibrated(reached: Array, missed: Array) -> tuple[float, float]:
    """s^2 and gamma from how far cells held out are from data, and what was missed there.

    Gamma is such that the width of the band fits near the data and far from it alike.
    """
    squares = missed**2
    if not squares.any():
        return 0.0, 1.0
    spans = np.array_split(np.argsort(reached, kind="stable"), min(_SPANS, squares.size))
    far = np.array([np.log(reached[span]).mean() for span in spans])
    wide = np.log([_ninth_tenth(squares[span]) + _LEAST * squares.max() for span in spans])
    far -= far.mean()
    slope = float(far @ wide / (far @ far)) if np.ptp(far) > 0.1 else 1.0
    power = min(max(slope, _POWERS[0]), _POWERS[1])
    return _ninth_tenth(squares / reached**power) / Z90**2, power


def _ninth_tenth(squares: Array) -> float:
    """What nine of ten more of the kind would stay below."""
    return float(np.quantile(squares, min(1.0, 0.9 * (1.0 + 1.0 / squares.size))))


def variance(
    cascade: Cascade, bars: GapBars, queries: Sequence[Array], *, smooth: bool = False
) -> Array:
    """Variance of the answers on a product grid; 0 where an observed cell is passed through."""
    whole = tuple(slice(0, query.size) for query in queries)
    return variances(cascade, bars, queries, smooth=smooth)(whole)


def variances(
    cascade: Cascade, bars: GapBars, queries: Sequence[Array], *, smooth: bool = False
) -> Callable[[Slices], Array]:
    """What gives the variance of any part of a product grid; the common work is done here."""
    between = errorbars.variances(cascade, _UNSCALED, queries, smooth=True)
    hats = [_hats(cascade, axis, query) for axis, query in enumerate(queries)]
    nodes = [cascade.nodes(axis, query, smooth) for axis, query in enumerate(queries)]

    def variance_of(part: Slices) -> Array:
        away = apply(bars.distance, [hat[p] for hat, p in zip(hats, part, strict=True)])
        result = _variance(cascade, bars, between(part), away)
        here = [n[p] for n, p in zip(nodes, part, strict=True)]
        known = [np.flatnonzero(n >= 0) for n in here]
        cells = bars.distance[np.ix_(*[n[k] for n, k in zip(here, known, strict=True)])]
        result[np.ix_(*known)] *= cells > 0
        return result

    return variance_of


def variance_at_points(
    cascade: Cascade, bars: GapBars, points: Sequence[Array], *, smooth: bool = False
) -> Array:
    """Variance of the answers at scattered points."""
    between = errorbars.variance_at_points(cascade, _UNSCALED, points, smooth=True)

    def rows(axis: int, part: slice) -> Array:
        return _hats(cascade, axis, points[axis][part])

    away = contract(bars.distance, points[0].size, rows, {}, widest=max(cascade.shape))
    result = _variance(cascade, bars, between, away)
    nodes = [cascade.nodes(axis, query, smooth) for axis, query in enumerate(points)]
    known = np.flatnonzero(np.all([n >= 0 for n in nodes], axis=0))
    result[known] *= bars.distance[tuple(n[known] for n in nodes)] > 0
    return result


def _variance(cascade: Cascade, bars: GapBars, between: Array, away: Array) -> Array:
    """From what full data leaves open (with the ridge), and the distance from the data there is."""
    ridge = cascade.joint_ridge or 0.0
    return np.asarray(bars.scale * np.maximum(between, away + ridge) ** bars.power)


def _hats(cascade: Cascade, axis: int, query: Array) -> Array:
    """Rows (q, m) of linear interpolation between the coordinates; beyond them, the last one."""
    kernel = cascade.levels[axis].kernel
    there, here = (wrap(c, kernel.period) for c in (cascade.coordinates[axis], query))
    order = np.argsort(there)
    places = there[order]
    if kernel.period is not None:
        order = np.concatenate([order[-1:], order, order[:1]])
        places = np.concatenate([places[-1:] - kernel.period, places, places[:1] + kernel.period])
    if places.size == 1:
        return np.ones((query.size, 1))
    right = np.clip(np.searchsorted(places, here), 1, places.size - 1)
    share = (here - places[right - 1]) / (places[right] - places[right - 1])
    share = np.clip(share, 0.0, 1.0)
    rows, each = np.zeros((query.size, there.size)), np.arange(query.size)
    np.add.at(rows, (each, order[right - 1]), 1.0 - share)
    np.add.at(rows, (each, order[right]), share)
    return rows
