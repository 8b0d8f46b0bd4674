"""Means over intervals, by sums over points that are exact to rounding.

The mean of a kernel k(., c) over [a, b], weighted or not, is a sum of its values at the points of
Gauss-Legendre rules. An interval is cut where a kernel may have a kink, at the nodes c inside it,
and each piece further, so that no part is wider than the kernel bends: two length scales within
reach of an end of the piece, where the kernel of a node at or behind that end has not vanished,
and a part of the period of a circle or a cycle everywhere. There the rule of 12 points errs by
less than 1e-15 of the kernel's largest value. Where a kernel is one of logarithms or roots, the
coordinate at most doubles within a part. The polynomials of a spline are integrated exactly.

Sums rather than closed forms, although most families have one (error functions, exponentials):
- the kernel between two means is W K W', so a Gram matrix of means has no eigenvalue below 0 but
  by rounding. Its closed forms are second differences, which lose (sigma / width)^2 of the digits.
- chords of a circle, the cycle, weights such as the cosine of latitude need no other formula, and
  long levels answer a mean as they answer values, at so many points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.kernels import CYCLE_SIGMA, Kernel
from dkrls_cli.errors import SettingError

# Points of a part of an interval, and the widest part in length scales.
_POINTS, _WIDTH = 12, 2.0

# Length scales beyond which every kernel is below round-off.
_REACH = 40.0

# Parts of a circle, and of a cycle: chords bend that fast, however long the length scale.
_TURN, _CYCLE = 12.0, 2.0 / CYCLE_SIGMA

# Widest part where means are weighted by the cosine of latitude, in degrees.
_DEGREES = 30.0

# Points of all intervals together at most: 512 MB with their weights.
_MOST = 2**25


@dataclass(frozen=True, eq=False)
class Rule:
    """Points and weights of the means over intervals.

    Attributes
    ----------
    points, weights
        Those of all intervals, one after the other; the weights of an interval sum to 1.
    starts
        Where the points of each interval start, and the end of the last (q + 1,).
    """

    points: Array
    weights: Array
    starts: Indices

    def __len__(self) -> int:
        """Return the number of intervals."""
        return self.starts.size - 1

    def __getitem__(self, part: slice) -> Rule:
        """Return the rule of some consecutive intervals."""
        low, high, step = part.indices(len(self))
        assert step == 1
        high = max(low, high)
        first, last = int(self.starts[low]), int(self.starts[high])
        starts = self.starts[low : high + 1] - first
        return Rule(self.points[first:last], self.weights[first:last], starts)

    def take(self, which: Indices) -> Rule:
        """Return the rule of some intervals in any order."""
        counts = np.diff(self.starts)[which]
        starts = np.append(0, np.cumsum(counts))
        inside = np.arange(starts[-1]) - np.repeat(starts[:-1], counts)
        places = np.repeat(self.starts[:-1][which], counts) + inside
        return Rule(self.points[places], self.weights[places], starts)

    def average(self, values: Array) -> Array:
        """Return the means of values at all points, (points, n) -> (q, n)."""
        if not len(self):
            return np.empty((0, *values.shape[1:]))
        weights = self.weights.reshape(-1, *(1,) * (values.ndim - 1))
        return np.add.reduceat(values * weights, self.starts[:-1], axis=0)


def make_rule(kernel: Kernel, low: Array, high: Array, nodes: Array, *, latitude: bool) -> Rule:
    """Return the rule of the means over intervals.

    Parameters
    ----------
    kernel
        The kernel of the level.
    low, high
        Ends of the intervals (q,), each pair in rising order.
    nodes
        Where kernels are centred (m,).
    latitude
        Whether means are weighted by the cosine of the coordinate, in degrees.

    Raises
    ------
    SettingError
        If that takes too many points.
    InputError
        If an interval reaches to where a warped kernel has no coordinates.
    """
    kernel.warped(low)
    kinks = _kinks(kernel, nodes, float(low.min()), float(high.max())) if low.size else nodes
    first, last = np.searchsorted(kinks, low, "right"), np.searchsorted(kinks, high, "left")
    parts, counts, total = [np.empty((0, 2))], np.zeros(low.size, np.intp), 0
    for place, (a, b) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        inside = kinks[first[place] : last[place]] if last[place] > first[place] else kinks[:0]
        edges = _cut(kernel, np.concatenate([[a], inside, [b]]), latitude)
        counts[place] = edges.size - 1
        parts.append(np.stack([edges[:-1], edges[1:]], axis=1))
        total += (edges.size - 1) * _POINTS
        if total > _MOST:
            raise SettingError(
                f"Means over {low.size} intervals with a length scale of {kernel.sigma:g} take "
                "more points than fit the memory. Ask for fewer cells, or for narrower ones."
            )
    ends = np.concatenate(parts)
    nodes_1, weights_1 = _legendre(_POINTS)
    middle, half = ends.mean(axis=1), 0.5 * (ends[:, 1] - ends[:, 0])
    points = (middle[:, None] + half[:, None] * nodes_1).ravel()
    weights = (half[:, None] * weights_1).ravel()
    if latitude:
        weights = weights * np.maximum(np.cos(np.radians(points)), 0.0)
    starts = np.append(0, np.cumsum(counts * _POINTS))
    if low.size:
        totals = np.add.reduceat(weights, starts[:-1])
        weights = weights / np.repeat(totals, np.diff(starts))
    return Rule(points, weights, starts)


@cache
def _legendre(count: int) -> tuple[Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return np.asarray(nodes, np.float64), np.asarray(weights, np.float64)


def _kinks(kernel: Kernel, nodes: Array, low: float, high: float) -> Array:
    """Return the places between two ends where a kernel may have a kink, in rising order."""
    if kernel.period is None:
        found = np.sort(nodes)
        return found[(found > low) & (found < high)]
    turns = np.arange(
        math.floor((low - nodes.max()) / kernel.period),
        math.ceil((high - nodes.min()) / kernel.period) + 1,
    )
    found = np.sort(np.add.outer(turns * kernel.period, nodes).ravel())
    return np.unique(found[(found > low) & (found < high)])


def _cut(kernel: Kernel, edges: Array, latitude: bool) -> Array:
    """Return the edges of parts that are nowhere wider than the kernel bends."""
    widest = _DEGREES if latitude else math.inf
    if kernel.period is not None:
        widest = min(widest, kernel.period / _TURN)
    if kernel.cycle is not None:
        widest = min(widest, kernel.cycle / _CYCLE)
    if kernel.warp is not None:
        return _cut_warped(kernel, edges)
    if kernel.is_spline:
        return edges
    fine = min(_WIDTH * kernel.sigma, widest)
    if np.diff(edges).max(initial=0.0) <= fine:
        return edges
    found = [edges[:1]]
    for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        found.append(_piece(a, b, fine, widest, _REACH * kernel.sigma))
    return np.concatenate(found)


def _cut_warped(kernel: Kernel, edges: Array) -> Array:
    """Return the edges of parts in which a warped coordinate, and its kernel, bend little."""
    doubled = [edges[:1]]
    for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        doubled.append(np.exp(_even(math.log(a), math.log(b), math.log(2.0))))
        doubled[-1][-1] = b
    parts = np.concatenate(doubled)
    if kernel.is_spline:
        return parts
    steepest = np.diff(kernel.warped(parts)) * 2.0  # a slope changes by less than two within a part
    counts = np.maximum(1, np.ceil(steepest / (_WIDTH * kernel.sigma))).astype(int)
    finer = [_even(a, b, (b - a) / n) for a, b, n in zip(parts, parts[1:], counts, strict=False)]
    return np.concatenate([parts[:1], *finer])


def _piece(a: float, b: float, fine: float, widest: float, reach: float) -> Array:
    """Return the edges that follow a, up to b: fine within reach of both ends, else widest."""
    if b - a <= 2 * reach:
        return _even(a, b, fine)
    middle = _even(a + reach, b - reach, widest)
    return np.concatenate([_even(a, a + reach, fine), middle, _even(b - reach, b, fine)])


def _even(a: float, b: float, step: float) -> Array:
    """Return edges behind a, up to b, in even steps of at most `step`."""
    count = max(1, math.ceil((b - a) / step))
    return np.append(a + (b - a) * np.arange(1, count) / count, b)
