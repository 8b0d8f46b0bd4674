"""Which spline answers where along a level.

A phase boundary, a kink or a steep end needs another spline than the smooth rest of a table, and
one spline for all of it is chosen for the worst place. So every inner slice has a cost for each
spline, a change from one spline to another has a cost too, and the cheapest path along the level is
taken.

The cost of a slice is the logarithm of its mean square error, in which every slice counts alike,
and that error as a multiple of the least mean over all slices, in which large errors count most.
The first alone would let small errors choose the spline across an edge, the second alone would let
the edge choose the splines of all other places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.splines.pieces import Piece
from dkrls_cli.tuning.candidates import Candidate
from dkrls_cli.tuning.tables.leftout import Slices

_CHANGE = 5.0
"""Cost of a change from one spline to the next, in logarithms of mean squares: 3 to 8 gave the same
on 20 tables."""

_GAIN = 10.0
"""Least gain of a path with changes over one spline for all slices. On ten noisy slices the best
path is cheaper than one spline by up to five."""

_MEDIAN_TURN = 0.954
"""Median difference of two numbers drawn from a normal distribution, in its standard deviations."""

_LEAST = 5
"""Inner slices from which splines may change: of fewer, none tells where."""


def join_splines(slices: Slices, splines: Sequence[Candidate]) -> Candidate:
    """Return the best of some splines, or one with pieces of several if that is clearly better."""
    costs = slice_costs(np.array([slices.spline_errors(one.kernel.family) for one in splines]))
    alone = costs.sum(axis=1)
    change = cost_of_change(costs)
    path = cheapest_path(costs, change)
    changes = np.count_nonzero(np.diff(path))
    joined = costs[path, np.arange(path.size)].sum() + change * changes
    if path.size < _LEAST or alone.min() - joined < _GAIN:
        return splines[int(alone.argmin())]
    return _join(slices, [splines[place] for place in path])


def slice_costs(squares: Array) -> Array:
    """Return the costs of slices from their mean square errors, both (splines, slices)."""
    least = squares.min(axis=0).mean()
    return np.asarray(np.log(squares) + squares / least)


def cost_of_change(costs: Array) -> float:
    """Return what a change of the spline costs, from the costs of slices (splines, slices).

    Where few cells make a slice, chance says which spline meets it best. Summed over slices such
    differences are a random walk, which strays by its step times the root of their number. A change
    costs twice that, so that no change follows chance.
    """
    beside = costs - costs[costs.sum(axis=1).argmin()]
    turns = np.median(np.abs(np.diff(beside, axis=1)), axis=1)
    step = float(turns.max()) / _MEDIAN_TURN
    return max(_CHANGE, 2.0 * step * math.sqrt(costs.shape[1]))


def cheapest_path(costs: Array, change: float) -> Indices:
    """Return the row to take in each column for the least sum of costs and changes of the row.

    >>> cheapest_path(np.array([[0.0, 0.0, 9.0, 9.0], [9.0, 1.0, 0.0, 0.0]]), 5.0).tolist()
    [0, 0, 1, 1]
    """
    total, origins = costs[:, 0], []
    for own in costs.T[1:]:
        best = int(total.argmin())
        changed = total > total[best] + change
        origins.append(np.where(changed, best, np.arange(total.size)))
        total = np.where(changed, total[best] + change, total) + own
    path = [int(total.argmin())]
    for origin in reversed(origins):
        path.append(int(origin[path[-1]]))
    return np.array(path[::-1])


def _join(slices: Slices, along: Sequence[Candidate]) -> Candidate:
    """Return the spline with one piece for each run of the same spline along inner slices."""
    steps = zip(pairwise(slices.inner_coordinates.tolist()), pairwise(along), strict=True)
    pieces = tuple(
        Piece(after.kernel.family, low, high)
        for (low, high), (before, after) in steps
        if after is not before
    )
    kernel = replace(along[0].kernel, pieces=pieces)
    error = math.sqrt(float(np.mean(slices.spline_errors(kernel.family, pieces))))
    return replace(along[0], kernel=kernel, error=error)
