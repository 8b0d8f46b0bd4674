"""Functionals of one level: what is asked for along its axis.

A level answers with rows k(q, c) C^-1, one for every coordinate q. Another linear question has
another row: with L the functional, (L k(., c)) C^-1. It has the same solve and the same
covariance, L L'k - (L k)' C^-1 (L k).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.functionals.derivatives import (
    derivative_covariance,
    derivative_gram,
    prior_variance,
)
from dkrls_cli.cascade.functionals.quadrature import make_rule
from dkrls_cli.cascade.kernels import Kernel, gram


class Functional(Protocol):
    """Linear questions along one axis."""

    def __len__(self) -> int:
        """Return the number of questions."""

    def __getitem__(self, part: slice) -> Self:
        """Return some of the questions."""

    def take(self, which: Indices) -> Self:
        """Return some of the questions in any order."""

    @property
    def of_one(self) -> float:
        """The functional of the function that is 1 everywhere."""

    @property
    def scale(self) -> float:
        """Size of the functional of noise that is independent from cell to cell: 0 or 1."""

    def rows(self, kernel: Kernel, nodes: Array) -> Array:
        """Return L k(., c) of every question and node (q, m)."""

    def prior(self, kernel: Kernel) -> Array:
        """Return L L'k, the prior variance of every answer (q,)."""

    def covariance(self, kernel: Kernel) -> Array:
        """Return L L'k between all pairs of answers (q, q)."""


@dataclass(frozen=True, eq=False)
class Values:
    """Values at coordinates."""

    query: Array
    of_one = 1.0
    scale = 1.0

    def __len__(self) -> int:
        """Return the number of coordinates."""
        return self.query.size

    def __getitem__(self, part: slice) -> Values:
        """Return some of the coordinates."""
        return Values(self.query[part])

    def take(self, which: Indices) -> Values:
        """Return some of the coordinates in any order."""
        return Values(self.query[which])

    def rows(self, kernel: Kernel, nodes: Array) -> Array:
        """Return k(q, c) (q, m)."""
        return gram(kernel, self.query, nodes)

    def prior(self, kernel: Kernel) -> Array:
        """Return k(q, q) (q,)."""
        return np.full(len(self), kernel.variance)

    def covariance(self, kernel: Kernel) -> Array:
        """Return k(q, q') (q, q)."""
        return gram(kernel, self.query, self.query)


@dataclass(frozen=True, eq=False)
class Derivatives:
    """Derivatives of order 1 or 2 at coordinates.

    Examples
    --------
    >>> Derivatives(np.array([0.0]), 1).rows(Kernel(sigma=1.0), np.array([0.0, 1.0])).round(4)
    array([[-0.    ,  0.6065]])
    """

    query: Array
    order: int
    of_one = 0.0
    scale = 0.0

    def __len__(self) -> int:
        """Return the number of coordinates."""
        return self.query.size

    def __getitem__(self, part: slice) -> Derivatives:
        """Return some of the coordinates."""
        return Derivatives(self.query[part], self.order)

    def take(self, which: Indices) -> Derivatives:
        """Return some of the coordinates in any order."""
        return Derivatives(self.query[which], self.order)

    def rows(self, kernel: Kernel, nodes: Array) -> Array:
        """Return the derivatives of k(q, c) by q (q, m)."""
        return derivative_gram(kernel, self.query, nodes, self.order)

    def prior(self, kernel: Kernel) -> Array:
        """Return the prior variance of the derivatives (q,)."""
        return prior_variance(kernel, self.query, self.order)

    def covariance(self, kernel: Kernel) -> Array:
        """Return the prior covariance of the derivatives (q, q)."""
        return derivative_covariance(kernel, self.query, self.order)


@dataclass(frozen=True, eq=False)
class Means:
    """Means over intervals.

    Attributes
    ----------
    low, high
        Ends of the intervals (q,), `low` below `high`.
    latitude
        Whether coordinates are degrees of latitude, and means are weighted by their cosine.

    Examples
    --------
    >>> Means(np.array([-1.0]), np.array([1.0])).rows(Kernel(sigma=1.0), np.zeros(1)).round(4)
    array([[0.8556]])
    """

    low: Array
    high: Array
    latitude: bool = False
    of_one = 1.0
    scale = 1.0

    def __len__(self) -> int:
        """Return the number of intervals."""
        return self.low.size

    def __getitem__(self, part: slice) -> Means:
        """Return some of the intervals."""
        return Means(self.low[part], self.high[part], self.latitude)

    def take(self, which: Indices) -> Means:
        """Return some of the intervals in any order."""
        return Means(self.low[which], self.high[which], self.latitude)

    @cached_property
    def width(self) -> Array:
        """Widths of the intervals (q,)."""
        return self.high - self.low

    def rows(self, kernel: Kernel, nodes: Array) -> Array:
        """Return the means of k(., c) (q, m)."""
        rule = make_rule(kernel, self.low, self.high, nodes, latitude=self.latitude)
        result = np.empty((len(self), nodes.size))
        for part in parts_of(np.diff(rule.starts), nodes.size):
            some = rule[part]
            result[part] = some.average(gram(kernel, some.points, nodes))
        return result

    def prior(self, kernel: Kernel) -> Array:
        """Return the means of k over both of its arguments (q,).

        That is one integral, of k(s) times the autocorrelation of the weights, over the distances
        s from 0 to the width of the interval. Distances are those of warped coordinates, in which
        the weight of a place is the slope of its coordinate.
        """
        low, high = kernel.warped(self.low), kernel.warped(self.high)
        plain, width = kernel.unwarped, high - low
        distances = make_rule(plain, 0 * width, width, np.zeros(1), latitude=False)
        s = distances.points
        which = np.repeat(np.arange(len(self)), np.diff(distances.starts))
        pairs = _WARPED_PAIRS[kernel.warp](s, low[which], high[which])
        if self.latitude:
            pairs = self._pairs(s, which)
        found = gram(plain, s, np.zeros(1))[:, 0] * pairs
        return np.asarray(width * distances.average(found))

    def covariance(self, kernel: Kernel) -> Array:
        """Return the means of k over pairs of intervals (q, q).

        Points of one interval are the nodes of the other, so that a kink of the kernel lies within
        an interval only where two of them overlap; the variances are those of :meth:`prior`.
        """
        edges = np.unique(np.concatenate([self.low, self.high]))
        rule = make_rule(kernel, self.low, self.high, edges, latitude=self.latitude)
        found = np.empty((len(self), len(self)))
        for part in parts_of(np.diff(rule.starts), rule.points.size):
            some = rule[part]
            between = rule.average(gram(kernel, rule.points, some.points))
            found[part] = some.average(np.ascontiguousarray(between.T))
        np.fill_diagonal(found, self.prior(kernel))
        return found

    def _pairs(self, s: Array, which: Indices) -> Array:
        """Return the density of pairs of latitudes at distances s within intervals."""
        width = self.width[which]
        s, width = np.radians(s), np.radians(width)
        middle = np.radians(0.5 * (self.low + self.high))[which]
        total = 2.0 * np.cos(middle) * np.sin(0.5 * width)  # the integral of the cosine
        among = (width - s) * np.cos(s) + np.cos(2.0 * middle) * np.sin(width - s)
        return np.asarray(math.radians(1.0) * among / total**2)


def _even_pairs(s: Array, low: Array, high: Array) -> Array:
    """Return the density of pairs of places at distances s within intervals."""
    width = high - low
    return np.asarray(2.0 * (width - s) / width**2)


def _log_pairs(s: Array, low: Array, high: Array) -> Array:
    """Return the density of pairs of logarithms, which count by their exponential."""
    width = high - low
    return np.asarray(np.exp(s) * np.expm1(2.0 * (width - s)) / np.expm1(width) ** 2)


def _root_pairs(s: Array, low: Array, high: Array) -> Array:
    """Return the density of pairs of roots, which count by twice their size."""
    first, last = low + 0.5 * s, high - 0.5 * s
    among = (first**2 + first * last + last**2) / 3.0 - 0.25 * s**2
    return np.asarray(8.0 * (last - first) * among / (high**2 - low**2) ** 2)


_WARPED_PAIRS = {None: _even_pairs, "log": _log_pairs, "sqrt": _root_pairs}

# Numbers of kernel rows that are computed at once: 64 MB.
_AT_ONCE = 2**23


def parts_of(counts: Indices, columns: int) -> list[slice]:
    """Return slices over questions of so many points each, a bounded number of rows at a time."""
    most = max(1, _AT_ONCE // max(1, columns))
    found, start, sum_of = [], 0, 0
    for place, count in enumerate(counts.tolist()):
        if sum_of and sum_of + count > most:
            found.append(slice(start, place))
            start, sum_of = place, 0
        sum_of += count
    if counts.size:
        found.append(slice(start, counts.size))
    return found
