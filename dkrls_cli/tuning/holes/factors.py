"""Factors of the variance in holes, from the errors of hidden cells.

The variance of an answer is f (v + lambda)^gamma, with v from draws of the model and a factor f for
every power of two of the distance to data. Gamma says how errors grow with v at one distance: the
rim of a wide hole and a single gap are both beside data, and a model that is chosen by the many
small gaps promises too little in the few wide ones.

Errors of neighbouring cells go together, so a thousand cells of one hole tell little more than one.
Cells are taken in groups, each a hole or, of a very large one, a part. By the differences between
groups the mean square has a number of degrees of freedom (Satterthwaite), and bands are as much
wider as those of Student's t distribution are: little with many holes, much with two or three.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.gaps.holes import label_holes

BANDS = ((0.9, 1.6448536269514722), (0.95, 1.959963984540054))
"""Bands, as the share that they hold and their half width in standard deviations."""

_TINY = 1e-30
"""Least factor: keeps logarithms finite where all hidden cells are predicted exactly."""

_LENGTHS = 8
"""Length of a part of a very large hole, in distances to data: its parts are told apart."""

_FREEDOM = 3.0
"""Degrees of freedom of a further group at most: similar groups may be so by chance."""

_AS_MUCH = (2.0, 10.0)
"""Degrees of freedom that count as much as what is known of cells nearer to data.

Few cells make bands wider, if that is what they ask for, rather than narrower.
"""

_POWERS = (1.0, 2.0)
"""Least and largest gamma: errors may grow faster than the model says, never slower."""

_BINS, _IN_A_BIN = 5, 20
"""Groups of cells by v that tell gamma, and cells in one at least."""

_DOUBT, _RANGE = 10.0, 0.1
"""Degrees of freedom, and variance of log v, that count as much as a gamma of 1."""


@dataclass(frozen=True, eq=False)
class Misses:
    """Errors of hidden cells, those of all hidings one after the other.

    Attributes
    ----------
    errors
        Answer minus value (n,).
    variances
        v + lambda (n,).
    powers
        Power of two of the distance to data (n,).
    groups
        For each power, the group of every cell at this distance or farther, -1 of others (p, n).
    """

    errors: Array
    variances: Array
    powers: Indices
    groups: Indices


def group_cells(hidden: Mask, powers: Indices, power: int) -> Indices:
    """Return the group of every hidden cell (n,) whose distance has at least this power, or -1.

    A group is a hole: connected cells. One that is longer than eight times the distance is cut into
    parts of about that length.

    Parameters
    ----------
    hidden
        The hidden cells.
    powers
        Power of two of the distance of each to data (n,).
    power
        The least power.
    """
    far = np.zeros(hidden.shape, bool)
    far[hidden] = powers >= power
    labels, count = label_holes(far, corners=True)
    places = np.argwhere(far)
    own = labels[far] - 1
    low = np.full((count, hidden.ndim), np.iinfo(np.intp).max)
    high = np.full((count, hidden.ndim), -1)
    np.minimum.at(low, own, places)
    np.maximum.at(high, own, places)
    sides = high - low + 1
    parts = np.maximum(1, sides // (_LENGTHS * 2**power))
    part = (places - low[own]) * parts[own] // sides[own]
    _, numbers = np.unique(np.column_stack([own, part]), axis=0, return_inverse=True)
    result = np.full(powers.size, -1)
    result[powers >= power] = numbers.ravel()
    return result


def freedom(squares: Array, groups: Indices) -> float:
    """Return the degrees of freedom of the mean of squares that are alike within groups.

    The mean of a chi-squared distribution with k degrees of freedom has a variance of 2 / k of its
    square. The variance here is that of the sums over groups. One group has one degree.
    """
    counts = np.bincount(groups).astype(np.float64)
    sums = np.bincount(groups, squares)[counts > 0]
    counts = counts[counts > 0]
    mean, number = float(sums.sum() / counts.sum()), counts.size
    most = 1.0 + _FREEDOM * (number - 1)
    if number < 2 or mean <= 0:
        return most
    between = float(np.sum((sums - counts * mean) ** 2)) * number / (number - 1)
    variance = between / float(counts.sum()) ** 2
    return float(np.clip(2.0 * mean**2 / max(variance, _TINY * mean**2), 1.0, most))


def student_factor(degrees: float | Array) -> Array:
    """Return how many times the variance of wider bands is, for so many degrees of freedom."""
    from scipy.special import stdtrit

    wider = [stdtrit(degrees, (1.0 + share) / 2.0) / z for share, z in BANDS]
    return np.asarray(np.mean(wider, axis=0) ** 2)


def band_factor(ratios: Array) -> float:
    """Return the factor of the variance with which bands hold these errors as they promise.

    It is the larger of what the bands of 90 % and of 95 % ask for: large errors are more frequent
    than those of a normal distribution.
    """
    bands = [float(np.quantile(ratios, share)) / z for share, z in BANDS]
    return max(max(bands) ** 2, _TINY)


def factors_by_power(misses: Misses, power: float = 1.0) -> tuple[Array, Array]:
    """Return factors on (v + lambda)^gamma for each power of two, and their degrees of freedom.

    The fewer degrees of freedom, the more a factor is that of the power below. A power without any
    cell has that factor, and none.
    """
    ratios = np.abs(misses.errors) / misses.variances ** (power / 2.0)
    count = int(misses.powers.max(initial=0)) + 1
    logs, degrees = np.zeros(count), np.zeros(count)
    before = math.log(band_factor(ratios))
    for place in range(count):
        here = misses.powers == place
        if here.any():
            degrees[place] = freedom(ratios[here] ** 2, misses.groups[place, here])
            own = math.log(band_factor(ratios[here]))
            weight, nearer = degrees[place], _AS_MUCH[int(own < before)]
            before = (weight * own + nearer * before) / (weight + nearer)
        logs[place] = before
    return np.exp(logs), degrees


def find_power(misses: Misses, degrees: Sequence[float] | Array) -> float:
    """Return gamma: how errors grow with the variance among cells equally far from data.

    Cells of each distance are sorted into groups by v, and a line is fitted to the factors that
    these ask for. The fewer degrees of freedom there are, the nearer gamma is to 1.
    """
    ratios = np.abs(misses.errors) / np.sqrt(misses.variances)
    slope = curve = 0.0
    for place, weight in enumerate(degrees):
        here = np.flatnonzero(misses.powers == place)
        if here.size < _BINS * _IN_A_BIN:
            continue
        order = here[np.argsort(misses.variances[here], kind="stable")]
        bins = np.array_split(order, _BINS)
        logs = np.array([np.log(misses.variances[cells]).mean() for cells in bins])
        asked = np.array([math.log(band_factor(ratios[cells])) for cells in bins])
        logs -= logs.mean()
        slope += weight * float(logs @ asked)
        curve += weight * (float(logs @ logs) + _BINS * _RANGE)
    if curve <= 0:
        return 1.0
    total = float(np.sum(degrees))
    return float(np.clip(1.0 + slope / curve * total / (total + _DOUBT), *_POWERS))
