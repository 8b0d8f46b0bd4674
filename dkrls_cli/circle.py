"""Coordinates on a line, or on a circle of a given period.

A period of None means a line. On a circle, numbers that lie whole turns apart are the same place.
"""

from __future__ import annotations

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask

_EPS = float(np.finfo(np.float64).eps)


def wrap(z: Array, period: float | None) -> Array:
    """Return coordinates on one turn of the circle, [0, period); on a line, as they are."""
    return z if period is None else np.mod(z, period)


def nearest(z: Array, nodes: Array, period: float | None) -> tuple[Indices, Mask]:
    """Return the index of the node nearest to each coordinate, and whether it is the same place.

    The same place is the same number but for rounding: 0.1 + 0.2 is the node 0.3. On a circle
    the numbers may lie turns apart, and adding a turn rounds.
    """
    there, here = wrap(nodes, period), wrap(z, period)
    order = np.argsort(there, kind="stable")
    place = np.searchsorted(there[order], here)
    sides = order[np.stack([place - 1, place]) % nodes.size]  # (2, len(z))
    with np.errstate(over="ignore"):
        distance = np.abs(there[sides] - here)
    if period is not None:
        distance = np.minimum(distance, period - distance)
    closer = np.argmin(distance, axis=0)
    columns = np.arange(z.size)
    slack = _rounding(nodes) if period is None else _turn_rounding(z, period)
    return sides[closer, columns], distance[closer, columns] <= slack


def repeated(z: Array, period: float | None) -> tuple[int, int] | None:
    """Return the indices of two coordinates that are the same place, or None."""
    wrapped = wrap(z, period)
    around = np.argsort(wrapped, kind="stable")
    if period is not None and z.size > 1:
        around = np.append(around, around[:1])
    with np.errstate(over="ignore"):
        gaps = np.abs(np.diff(wrapped[around]))
    slack: Array | float = 0.0
    if period is not None:
        gaps = np.minimum(gaps, period - gaps)
        slack = _turn_rounding(z[around[1:]], period)
    close = np.flatnonzero(gaps <= slack)
    if close.size == 0:
        return None
    first, second = sorted(around[close[0] : close[0] + 2].tolist())
    return first, second


def spacing(z: Array) -> float:
    """Return the median distance between neighbouring distinct coordinates; 1 if there is one."""
    gaps = np.diff(np.sort(z))
    gaps = gaps[gaps > 0]
    return float(np.median(gaps)) if gaps.size else 1.0


def outside(z: Array, nodes: Array, period: float | None) -> Mask:
    """Return which coordinates lie beyond the nodes, where a model could only extrapolate."""
    if period is not None:
        return np.zeros(z.shape, bool)
    low, high = nodes.min(), nodes.max()
    slack = 1e-9 * max(high - low, abs(low), abs(high))
    return np.asarray((z < low - slack) | (z > high + slack))


def _turn_rounding(z: Array, period: float) -> Array:
    """Return how far apart on the circle two coordinates of one place may lie."""
    return np.minimum(4 * _EPS * np.maximum(np.abs(z), period), 1e-9 * period)


def _rounding(nodes: Array) -> float:
    """Return how far from a node a number of the same place may lie: far less than a step."""
    if nodes.size < 2:
        return 0.0
    ordered = np.sort(nodes)
    with np.errstate(over="ignore"):
        step = float(np.min(np.diff(ordered)))
    return min(8 * _EPS * float(np.abs(ordered[[0, -1]]).max()), 1e-6 * step)
