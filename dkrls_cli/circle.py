"""Coordinates on a line, or on a circle of a given period.

A period of None means a line. On a circle, numbers that lie whole turns apart are the same place:
with a period of 360, the longitudes -10, 350 and 710 are one place.

"The same place" allows for rounding and nothing else: its tolerances are a few epsilons of the
largest number involved, and never more than a tiny part of a step or a turn.
"""

from __future__ import annotations

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask

# Machine epsilon: the relative step from one float64 to the next.
_EPS = float(np.finfo(np.float64).eps)

# Tolerance on a line, in epsilons of the largest node: room for a few sums and products.
_LINE_EPSILONS = 8

# The tolerance on a line is at most this part of the smallest step between nodes, so that nodes
# which are nearly equal stay distinct places.
_PART_OF_STEP = 1e-6

# Tolerance on a circle, in epsilons of the largest of both coordinates and the period: adding or
# removing turns rounds once or twice.
_CIRCLE_EPSILONS = 4

# The tolerance on a circle is at most this part of a turn, however many turns away a number lies.
_PART_OF_TURN = 1e-9

# A coordinate is outside if it is beyond the nodes by more than this part of their size or range:
# far more than rounding, far less than any step that matters.
_PART_OUTSIDE = 1e-9


def wrap(z: Array, period: float | None) -> Array:
    """Return coordinates on one turn of the circle, [0, period), or unchanged on a line.

    Examples
    --------
    >>> wrap(np.array([-10.0, 370.0]), 360.0)
    array([350.,  10.])
    """
    return z if period is None else np.mod(z, period)


def nearest(z: Array, nodes: Array, period: float | None) -> tuple[Indices, Mask]:
    """Return the index of the node nearest to each coordinate, and whether both are one place.

    Both are one place if they are equal but for rounding: 0.1 + 0.2 is at the node 0.3. On a
    circle they may lie turns apart.

    Examples
    --------
    >>> index, same = nearest(np.array([0.1 + 0.2, 0.9]), np.array([0.0, 0.3, 1.0]), None)
    >>> index.tolist(), same.tolist()
    ([1, 2], [True, False])
    """
    there, here = wrap(nodes, period), wrap(z, period)
    order = np.argsort(there, kind="stable")
    place = np.searchsorted(there[order], here)
    sides = order[np.stack([place - 1, place]) % nodes.size]  # (2, len(z)): node below and above
    with np.errstate(over="ignore"):
        distance = np.abs(there[sides] - here)
    if period is not None:
        distance = np.minimum(distance, period - distance)
    closer, columns = np.argmin(distance, axis=0), np.arange(z.size)
    index = sides[closer, columns]
    slack = _line_tolerance(nodes) if period is None else _circle_tolerance(z, nodes[index], period)
    return index, distance[closer, columns] <= slack


def repeated(z: Array, period: float | None) -> tuple[int, int] | None:
    """Return the indices of two coordinates that are one place, or None if all places differ.

    On a line only equal numbers are one place; on a circle, numbers whole turns apart as well,
    but for the rounding of those turns.

    Examples
    --------
    >>> repeated(np.array([-180.0, 0.0, 180.0]), 360.0)
    (0, 2)
    """
    wrapped = wrap(z, period)
    around = np.argsort(wrapped, kind="stable")
    if period is not None and z.size > 1:
        around = np.append(around, around[:1])  # the last coordinate is next to the first
    with np.errstate(over="ignore"):
        gaps = np.abs(np.diff(wrapped[around]))
    slack: Array | float = 0.0
    if period is not None:
        gaps = np.minimum(gaps, period - gaps)
        slack = _circle_tolerance(z[around[1:]], z[around[:-1]], period)
    close = np.flatnonzero(gaps <= slack)
    if close.size == 0:
        return None
    first, second = sorted(around[close[0] : close[0] + 2].tolist())
    return first, second


def spacing(z: Array) -> float:
    """Return the median step between neighbouring distinct coordinates, or 1 if there is no step.

    Examples
    --------
    >>> spacing(np.array([4.0, 0.0, 1.0, 1.0, 2.0]))
    1.0
    """
    gaps = np.diff(np.sort(z))
    gaps = gaps[gaps > 0]
    return float(np.median(gaps)) if gaps.size else 1.0


def outside(z: Array, nodes: Array, period: float | None) -> Mask:
    """Return which coordinates lie beyond all nodes, where a model has to extrapolate.

    Nothing is outside a circle.

    Examples
    --------
    >>> outside(np.array([-1.0, 0.0, 5.0]), np.array([0.0, 4.0]), None).tolist()
    [True, False, True]
    """
    if period is not None:
        return np.zeros(z.shape, bool)
    low, high = nodes.min(), nodes.max()
    slack = _PART_OUTSIDE * max(high - low, abs(low), abs(high))
    return np.asarray((z < low - slack) | (z > high + slack))


def is_behind(z: float, rising: Array) -> bool:
    """Return whether a number is beyond the last of rising nodes, and not the same place.

    Examples
    --------
    >>> nodes = np.array([0.1, 0.2, 0.3])
    >>> is_behind(0.4, nodes), is_behind(0.1 + 0.2, nodes)
    (True, False)
    """
    size = max(abs(float(rising[0])), abs(float(rising[-1])))
    return z - float(rising[-1]) > _LINE_EPSILONS * _EPS * size


def is_even(rising: Array) -> bool:
    """Return whether all steps between coordinates that rise are equal but for rounding.

    Examples
    --------
    >>> is_even(np.arange(7) * 0.1), is_even(np.array([0.0, 1.0, 2.5]))
    (True, False)
    """
    steps, size = np.diff(rising), float(np.abs(rising[[0, -1]]).max())
    return bool(np.ptp(steps) <= _LINE_EPSILONS * _EPS * size) if steps.size else True


def _circle_tolerance(one: Array, other: Array, period: float) -> Array:
    """Return how far apart, along the circle, the two numbers of each pair may be one place."""
    size = np.maximum(np.maximum(np.abs(one), np.abs(other)), period)
    return np.minimum(_CIRCLE_EPSILONS * _EPS * size, _PART_OF_TURN * period)


def _line_tolerance(nodes: Array) -> float:
    """Return how far from a node, on a line, another number is the same place."""
    if nodes.size < 2:
        return 0.0
    ordered = np.sort(nodes)
    with np.errstate(over="ignore"):
        step = float(np.min(np.diff(ordered)))
    rounding = _LINE_EPSILONS * _EPS * float(np.abs(ordered[[0, -1]]).max())
    return min(rounding, _PART_OF_STEP * step)
