"""Smooth functions of one coordinate as Chebyshev series: computed once, evaluated often."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Array

_EPS = float(np.finfo(np.float64).eps)

# Error of a resolved series, as a share of the largest value: far above round-off, far below peaks.
_RIGHT = 1e-11


@dataclass(frozen=True, eq=False)
class Series:
    """A vector-valued function on an interval: sum over k of T_k(s) terms[k], s in [-1, 1]."""

    terms: Array
    low: float
    half: float

    def __call__(self, coordinates: Array) -> Array:
        """Return the values (n, size) at coordinates (n,) of the interval."""
        from numpy.polynomial.chebyshev import chebvander

        scaled = (coordinates - self.low) / self.half - 1.0
        return np.asarray(chebvander(scaled, len(self.terms) - 1) @ self.terms)

    def __matmul__(self, matrix: Array) -> Series:
        """Return the series of the function times a matrix."""
        return Series(self.terms @ matrix, self.low, self.half)


def resolve(
    function: Callable[[Array], Array],
    low: float,
    high: float,
    limit: int,
    peaks: Array | None = None,
    noise: float = 1.0,
) -> Series | None:
    """Return the series of a function (n,) -> (n, size) on [low, high], or None.

    The series is accepted when its last terms have fallen to round-off of the largest, `noise`
    times 8 epsilons: the values of the function carry the same round-off. None for a function with
    kinks, or with more detail than `limit` terms can hold.

    Peaks that are much narrower than the interval may all lie between the points of a series, which
    then seems to be resolved. So it has to be right at both ends, and at `peaks` on the interval.
    """
    count, half = 16, 0.5 * (float(high) - float(low))
    while count < limit and 0 < half < math.inf:
        turns = np.outer(np.arange(count), 2 * np.arange(count) + 1) % (4 * count)
        cosines = np.cos(
            0.5 * np.pi / count * turns
        )  # T_k at the Chebyshev points; T_1: the points
        terms = (2.0 / count) * (cosines @ function(low + half * (1.0 + cosines[1])))
        terms[0] *= 0.5
        sizes = np.abs(terms).max(axis=1)
        kept = 1 + int(np.flatnonzero(sizes >= 8 * noise * _EPS * sizes.max())[-1])
        if kept <= count - 4:
            series = Series(terms[:kept], low, half)
            return series if peaks is None or _is_right(series, function, peaks) else None
        count += count // 2
    return None


def _is_right(series: Series, function: Callable[[Array], Array], peaks: Array) -> bool:
    """Return whether a series has the values of its function at its ends and at some peaks."""
    ends = np.array([series.low, series.low + 2 * series.half])
    inside = (peaks > ends[0]) & (peaks < ends[1])
    places = np.concatenate([ends, peaks[inside]])
    values = function(places)
    return bool(np.abs(series(places) - values).max() <= _RIGHT * np.abs(values).max())
