"""How large residuals usually are, place by place, and how large they are by chance.

Residuals are divided by a scale that is a product of one factor for each axis: each slice has a
factor of its own, the median size of its residuals. So a restless season or sensor counts as such.
Medians and quantiles take no notice of a few bad cells.

The limit for a false-alarm rate lies in the tail, which bad cells fill. It is therefore
extrapolated from quantiles that they hardly touch, on each side on its own, by the distribution of
what exceeds a high limit, which is Pareto's with some shape for all kinds of data. The quantiles
are those that a quarter, a tenth and a twenty-fifth of the residuals exceed, of many residuals
further ones; their two distances tell the shape (Pickands' estimate).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask

# Times that the factors of all axes are determined, one axis after the other.
_SWEEPS = 3
# Cells of a slice from which on it has a factor of its own.
_FEWEST = 8

# Median size of normal numbers.
_HALF = 0.6744897501960817

# Shares of the residuals that exceed the quantiles by which the tail is told, each 2.5 times the
# next: bad cells are fewer than the last.
_TAILS = (0.25, 0.1, 0.04)
# The same, and the numbers from which on they are known well: nearer to the limit, they tell more
# of a tail that grows heavier. Cells that are surely bad have been left out before.
_FAR_TAILS, _MANY = (0.1, 0.04, 0.016), 5_000
# What is added to the shape, since tails beyond are heavier than these quantiles tell, and the
# least and the largest shape: from nearly normal to Student's with two degrees of freedom.
_CAUTION, _SHAPES = 0.05, (-0.05, 0.6)

# Numbers from which on their tail is looked at, and from which on each side has its own.
_FEWEST_IN_TAIL, _FEWEST_ON_SIDE = 50, 400


@dataclass(frozen=True)
class Limits:
    """Sizes of residuals, in local scales, that are exceeded by chance at the false-alarm rate.

    Attributes
    ----------
    low, high
        Largest size of a residual below, and above what is expected.
    """

    low: float
    high: float

    def capped(self, most: float) -> Limits:
        """Return limits that are no larger than a given size."""
        return Limits(min(self.low, most), min(self.high, most))

    def beyond(self, others: Limits) -> Limits:
        """Return limits that are no smaller than others."""
        return Limits(max(self.low, others.low), max(self.high, others.high))

    def at_least(self, least: float) -> Limits:
        """Return limits that are no smaller than a given size."""
        return Limits(max(self.low, least), max(self.high, least))

    def excess(self, scaled: Array) -> Array:
        """Return the size of residuals in units of the limit: bad above 1, NaN where missing."""
        return np.where(scaled < 0, -scaled / self.low, scaled / self.high)


def robust_spread(numbers: Array) -> float:
    """Return the standard deviation of normal numbers with these quartiles; 0 without numbers.

    If half of the numbers are equal, it is the plain standard deviation.

    >>> round(robust_spread(np.array([-1.0, 0.0, 1.0, 1e9])), 2)
    1.48
    """
    known = numbers[~np.isnan(numbers)]
    if not known.size:
        return 0.0
    middle = float(np.median(np.abs(known - np.median(known)))) / _MEDIAN_OF_NORMAL
    return middle or float(np.std(known))


# Median of the size of normal numbers of standard deviation 1.
_MEDIAN_OF_NORMAL = 0.6745


def local_scale(sizes: Array, used: Mask) -> Array:
    """Return the usual size of residuals at every cell, as that of normal numbers.

    Parameters
    ----------
    sizes
        Sizes of the residuals, each divided by its standard error; NaN where missing.
    used
        Which cells count; those without a residual do not if most of them have none.

    Returns
    -------
    Array
        Standard deviations, in the shape of the grid.
    """
    known = used & ~np.isnan(sizes)
    if not _median(sizes[known]):
        known = known & (sizes > 0)  # the others tell the scale
    typical = max(_median(sizes[known]), _LEAST)
    relative = np.where(known, sizes, np.nan) / typical
    factors = [np.ones(m) for m in sizes.shape]
    for _ in range(_SWEEPS):
        for axis in range(sizes.ndim):
            others = [f for place, f in enumerate(factors) if place != axis]
            others.insert(axis, np.ones(sizes.shape[axis]))
            factors[axis] = _slice_factors(relative / _product(others), axis)
    scale = typical / _HALF * _product(factors)
    return scale * nearby_scale(np.where(known, sizes, np.nan) / scale, known, _WIDE)


# Smallest scale of all: residuals of constant data are 0.
_LEAST = 1e-300


def _median(values: Array) -> float:
    return float(np.median(values)) if values.size else 0.0


def _product(factors: Sequence[Array]) -> Array:
    """Return the product of one factor for each axis, on the grid."""
    return np.asarray(reduce(np.multiply.outer, factors))


def _slice_factors(relative: Array, axis: int) -> Array:
    """Return the median of every slice, as far as slices differ by more than chance."""
    flat = np.moveaxis(relative, axis, 0).reshape(relative.shape[axis], -1)
    count = (~np.isnan(flat)).sum(axis=1)
    logs = np.zeros(len(flat))
    enough = count >= _FEWEST
    if enough.sum() < 2:
        return np.ones(len(flat))
    logs[enough] = np.log(np.maximum(np.nanmedian(flat[enough], axis=1), _SMALLEST))
    return np.asarray(np.exp(_drawn_in(logs, count.astype(float), enough, _MEDIAN_CHANCE)))


def _drawn_in(logs: Array, count: Array, known: Mask, chance: float) -> Array:
    """Return logarithms of scales, drawn towards 0 as far as chance explains them.

    Each is known from so many residuals, and `chance` is the variance that a single one would give
    it. What they vary by more than that is their own.
    """
    noise = chance / np.maximum(count, 1.0)
    own = float(np.mean(logs[known] ** 2 - noise[known])) if known.any() else 0.0
    return np.where(known, logs * max(own, 0.0) / (max(own, 0.0) + noise), 0.0)


# Variance of the logarithm of the median size of n normal numbers, times n, and that of the mean
# logarithm of their sizes; more than of independent ones, because residuals of neighbours go
# together.
_MEDIAN_CHANCE, _MEAN_CHANCE = 2.7, 1.5


def growth(left: Array, spread: Array, used: Mask, axes: Sequence[int]) -> float:
    """Return the power with which errors grow as their standard errors by the model do.

    At the ends of an axis, cells are predicted from one side only. How much larger residuals are
    there tells how much larger they are where neighbours have been taken out.
    """
    found = [_LEAST_GROWTH]
    sizes = np.where(used, np.abs(left), np.nan)
    for axis in axes:
        size = left.shape[axis]
        if size < _FEWEST:
            continue
        ends, inner = np.array([0, size - 1]), np.arange(2, size - 2)
        told, seen = (_ratio(array, ends, inner, axis) for array in (spread, sizes))
        if told > _TELLING and seen > 0:
            found.append(math.log(seen) / math.log(told))
    return min(max(found), _MOST_GROWTH)


# Powers with which errors may grow, and the ratio of standard errors from which on ends tell it.
_LEAST_GROWTH, _MOST_GROWTH, _TELLING = 1.5, 3.0, 1.2


def _ratio(array: Array, above: Indices, below: Indices, axis: int) -> float:
    """Return the median of some slices divided by that of others; 0 if there is none."""
    parts = [np.take(array, places, axis) for places in (above, below)]
    high, low = (_median(part[~np.isnan(part)]) for part in parts)
    return high / low if low > 0 else 0.0


def nearby_scale(relative: Array, good: Mask, reach: int) -> Array:
    """Return how large residuals are around every cell, in units of what is usual there.

    That is the geometric mean over neighbours, the cell itself left out, as far as it differs from
    1 by more than chance.

    Parameters
    ----------
    relative
        Sizes of residuals in units of their local scale.
    good
        Cells that count.
    reach
        Number of neighbours on each side along every axis, four times as many of a single series.
    """
    known = good & ~np.isnan(relative)
    logs = np.where(known, np.log(np.maximum(relative, _SMALLEST)) - _MEAN_LOG, 0.0)
    total, count = logs, known.astype(float)
    reach = 4 * reach if max(relative.shape) == relative.size else reach
    for axis in range(relative.ndim):
        total, count = (_box_sum(array, axis, reach) for array in (total, count))
    total, count = total - logs, count - known
    mean = total / np.maximum(count, 1.0)
    return np.asarray(np.exp(_drawn_in(mean, count, count > 0, _MEAN_CHANCE)))


# Neighbours on each side that show how large residuals are nearby: many, so that a bad cell, which
# moves what is expected of those next to it, has no part in it.
_WIDE = 4
# Mean of the logarithm of the size of normal numbers, none below the smallest factor.
_MEAN_LOG = -0.6


def _box_sum(array: Array, axis: int, reach: int) -> Array:
    """Return the sums over neighbours along an axis."""
    moved = np.moveaxis(array, axis, 0)
    size = len(moved)
    total = np.concatenate([np.zeros_like(moved[:1]), np.cumsum(moved, axis=0)])
    high = np.minimum(np.arange(size) + reach + 1, size)
    low = np.maximum(np.arange(size) - reach, 0)
    return np.moveaxis(total[high] - total[low], 0, axis)


# Smallest factor of a slice: where half of the residuals are 0, the median says nothing.
_SMALLEST = 0.05


def find_limits(scaled: Array, rate: float) -> Limits:
    """Return the limits that residuals in local scales exceed at the false-alarm rate by chance.

    Parameters
    ----------
    scaled
        Residuals divided by their local scale, of the cells that are used (n,).
    rate
        Share of good cells that may exceed the limits, both sides together.

    Examples
    --------
    >>> numbers = np.random.default_rng(0).normal(size=10_000)
    >>> bool(3.2 < find_limits(numbers, 1e-3).high < 3.9)
    True
    """
    sides = -scaled[scaled < 0], scaled[scaled > 0]
    if min(side.size for side in sides) < _FEWEST_ON_SIDE:
        both = _limit(np.abs(scaled), rate)
        return Limits(both, both)
    return Limits(*(_limit(side, rate) for side in sides))


# Shares of the residuals that exceed the inner quantiles by which a heavy tail is known, each 1.6
# times the next: a tenth of bad cells makes none. Those of normal numbers have a shape of -0.2, of
# exponential ones 0; one above 0.5 is heavy.
_INNER, _HEAVY = (0.512, 0.32, 0.2), 0.5
# Shares that exceed the quantiles by which the limit of a heavy tail is told, which bad cells must
# not fill either, and the largest shape, since such tails grow lighter again far out.
_OUTER, _HEAVIEST = (0.4, 0.16, 0.064), 0.8


def heavy_limits(scaled: Array, rate: float) -> Limits:
    """Return the limits where even the inner residuals tell a heavy tail; 0 on the other sides.

    Those of log-normal numbers, or counts that differ by orders of magnitude, are. Cells far out
    are good there, and so all residuals tell the limit, suspicious ones among them.

    Examples
    --------
    >>> numbers = np.random.default_rng(0).normal(size=10_000)
    >>> heavy_limits(numbers, 1e-3)
    Limits(low=0.0, high=0.0)
    >>> bool(100 < heavy_limits(np.expm1(2 * numbers), 1e-3).high)
    True
    """
    return Limits(*(_heavy_limit(side, rate) for side in (-scaled[scaled < 0], scaled[scaled > 0])))


def _heavy_limit(sizes: Array, rate: float) -> float:
    """Return the size that is exceeded with the given probability; 0 if the tail is not heavy."""
    if sizes.size < _FEWEST_ON_SIDE or rate >= _OUTER[-1]:
        return 0.0
    if not _shape(sizes, _INNER) > _HEAVY:
        return 0.0
    middle, high = (float(q) for q in np.quantile(sizes, 1.0 - np.array(_OUTER[1:])))
    shape, ratio = min(_shape(sizes, _OUTER) + _CAUTION, _HEAVIEST), _OUTER[0] / _OUTER[1]
    if not np.isfinite(shape):
        return 0.0
    grown = ((_OUTER[1] / rate) ** shape - 1.0) / (ratio**shape - 1.0)
    return middle + (high - middle) * float(grown)


def _shape(sizes: Array, tails: Sequence[float]) -> float:
    """Return the shape of a tail by three of its quantiles; NaN if two of them are equal."""
    low, middle, high = (float(q) for q in np.quantile(sizes, 1.0 - np.array(tails)))
    if not high > middle > low:
        return np.nan
    return math.log((high - middle) / (middle - low)) / math.log(tails[0] / tails[1])


# Degrees of freedom of a scale that is told by the median size of residuals, for each of them: the
# median is as good as the standard deviation of 0.37 times as many.
_TOLD = 0.37


def _limit(sizes: Array, rate: float) -> float:
    """Return the size that is exceeded with the given probability, from its inner quantiles."""
    from scipy.special import ndtri, stdtrit

    normal = float(ndtri(1.0 - rate / 2.0))
    tails = _FAR_TAILS if sizes.size >= _MANY and rate < _FAR_TAILS[-1] else _TAILS
    if sizes.size < _FEWEST_IN_TAIL:
        return float(stdtrit(max(_TOLD * sizes.size, 1.0), 1.0 - rate / 2.0))
    if rate >= tails[-1]:
        return float(np.quantile(sizes, 1.0 - rate))
    low, middle, high = (float(q) for q in np.quantile(sizes, 1.0 - np.array(tails)))
    if not high > middle > low:
        return max(normal, high)
    ratio = tails[0] / tails[1]
    shape = np.log((high - middle) / (middle - low)) / np.log(ratio) + _CAUTION
    shape = float(np.clip(shape, *_SHAPES))
    grown = ((tails[1] / rate) ** shape - 1.0) / (ratio**shape - 1.0)
    return max(middle + (high - middle) * float(grown), normal)
