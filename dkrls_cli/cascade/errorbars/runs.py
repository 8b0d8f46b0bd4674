"""Variance of cells in the middle of runs of missing ones, from one level at a time.

A missing cell is known at least as well as any one level alone tells it, from the cells with data
before and after the run of missing ones that it lies in. Along a level that is what the slices
outside the run leave open there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.circle import wrap

# Slices on each side of a run that tell of it: farther ones add nothing.
_BESIDE = 32

Alone = Callable[[Cascade, int, Array], Array]
"""Variance of answers between the coordinates of a model of some slices of one level alone."""


def variance_in_runs(cascade: Cascade, missing: Mask, alone: Alone) -> Array:
    """Return the variance of every missing cell by the level that tells it best; 0 of others.

    It is infinite where no level has data in the row of a cell.
    """
    result = np.where(missing, np.inf, 0.0)
    for axis, size in enumerate(missing.shape):
        if size > 1:
            np.minimum(result, _along(cascade, axis, missing, alone), out=result)
    return result


def _along(cascade: Cascade, axis: int, missing: Mask, alone: Alone) -> Array:
    """Return the variance of missing cells by what one level tells; 0 of others."""
    level, own = cascade.covariance.levels[axis], cascade.coordinates[axis]
    period = level.kernel.period
    order = np.argsort(wrap(own, period))
    rows = np.moveaxis(missing, axis, 0)[order]
    cells = np.nonzero(rows)
    before, after = (ends[cells] for ends in _ends(rows, circle=period is not None))
    runs, which, counts = np.unique(
        np.stack([before, after]), axis=1, return_inverse=True, return_counts=True
    )
    of_runs = np.split(np.argsort(which.ravel(), kind="stable"), np.cumsum(counts)[:-1])
    found = np.full(cells[0].size, np.inf)
    for (low, high), inside in zip(runs.T, of_runs, strict=True):
        kept = _beside(low, high, own.size, circle=period is not None)
        if kept.size:
            others = fit_cascade(np.zeros(kept.size), [own[order[kept]]], [level])
            query = own[order[np.arange(low + 1, high) % own.size]]
            place = (cells[0][inside] - low - 1) % own.size
            found[inside] = alone(others, axis, query)[place]
    result = np.zeros(rows.shape)
    result[cells] = found
    return np.moveaxis(result[np.argsort(order)], 0, axis)


def _ends(missing: Mask, *, circle: bool) -> tuple[Indices, Indices]:
    """Return the places along the first axis between which the run of a missing cell lies.

    On a line they are -1 and the size where there is no data on that side; on a circle, they count
    on beyond its ends.
    """
    size = len(missing)
    turns = np.concatenate([missing] * 3) if circle else missing
    places = np.arange(len(turns)).reshape(-1, *[1] * (missing.ndim - 1))
    before = np.maximum.accumulate(np.where(turns, -1, places), axis=0)
    after = np.minimum.accumulate(np.where(turns, len(turns), places)[::-1], axis=0)[::-1]
    if not circle:
        return before, after
    whole = missing.all(axis=0)
    return (
        np.where(whole, -1, before[size : 2 * size] - size),
        np.where(whole, size, after[size : 2 * size] - size),
    )


def _beside(low: int, high: int, size: int, *, circle: bool) -> Indices:
    """Return the places on both sides of a run, in order.

    >>> _beside(1, 4, 6, circle=False), _beside(-1, 2, 4, circle=True)
    (array([0, 1, 4, 5]), array([2, 3]))
    """
    if high - low > size:  # the whole row is missing
        return np.arange(0)
    sides = np.r_[low - _BESIDE + 1 : low + 1, high : high + _BESIDE]
    run = np.arange(low + 1, high) % size
    sides = sides % size if circle else sides[(sides >= 0) & (sides < size)]
    return np.setdiff1d(sides, run)
