"""Variances of means over a region: from how well slices of just these means are predicted.

Averaged over all other axes as the answer is, the data is a series along one level. How far its
samples are off when they are left out is known in closed form
(:func:`dkrls_cli.cascade.errorbars.leave_out`), and gives
the scale s_l^2 of that level for this region: errors that go together in the region stay in the
series, those that do not have averaged out. With L the functional along the level the variance is

    sum over l of s_l^2 (L L'k - (L k)' C^-1 (L k) + lambda_l N),

N being what the functional leaves of independent noise. Nothing is assumed of how errors go
together in space. Under a joint ridge the variance is that of the posterior
(:mod:`dkrls_cli.cascade.functionals.bars`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import numpy as np

from dkrls_cli.arrays import Array, Indices, Slices
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars import copies_of, leave_out
from dkrls_cli.cascade.functionals.answers import NO_CELLS, all_rows
from dkrls_cli.cascade.functionals.bars import answered, noise_left
from dkrls_cli.cascade.functionals.cells import SourceCells
from dkrls_cli.cascade.functionals.functional import Functional
from dkrls_cli.cascade.functionals.rows import left_variance
from dkrls_cli.cascade.poles.continuation import Continuation

# Answers along the axes that are not averaged from which scales are taken: enough for a mean.
_MOST = 512


def region_blocks(
    cascade: Cascade,
    asked: Sequence[Functional],
    *,
    smooth: bool = False,
    cells: Mapping[int, SourceCells] = NO_CELLS,
    poles: Continuation | None = None,
) -> Callable[[Slices], Array]:
    """Return a function that computes the variance of a block of means, with a ridge per level.

    `poles` are rows of the cascade that go on across the poles.
    """
    parts = region_parts(cascade, asked, smooth, cells, poles)

    def variance(part: Slices) -> Array:
        return np.asarray(reduce(np.add.outer, [v[p] for v, p in zip(parts, part, strict=True)]))

    return variance


def region_parts(
    cascade: Cascade,
    asked: Sequence[Functional],
    smooth: bool,
    cells: Mapping[int, SourceCells],
    poles: Continuation | None = None,
) -> list[Array]:
    """Return what every level adds to the variance, at its own questions."""
    errors, copies = cascade.covariance, copies_of(cascade, poles)
    found = []
    for axis, each in enumerate(asked):
        between = answered(cascade, axis, each, smooth, cells.get(axis))
        here = np.flatnonzero(between)
        part = np.zeros(len(each))
        if here.size:
            left = left_variance(errors, axis, each.take(here))
            left += errors.levels[axis].ridge * noise_left(errors, axis, each.take(here))
            scale = region_scale(cascade, axis, asked, smooth, cells, copies.get(axis))
            part[here] = scale * left
        found.append(part)
    return found


def region_scale(
    cascade: Cascade,
    axis: int,
    asked: Sequence[Functional],
    smooth: bool = False,
    cells: Mapping[int, SourceCells] = NO_CELLS,
    copies: Indices | None = None,
) -> float:
    """Return s^2 of a level for means over a region, from samples left out of their series.

    `copies` has the place of the sample that each sample copies, -1 where it copies none.
    """
    series = region_series(cascade, axis, asked, smooth, cells)
    left = leave_out(cascade, axis, cascade.shape[axis], copies)
    known, predicted = np.split(left.twice @ series, 2)
    return float(np.mean((predicted - known) ** 2 / left.variance[:, None]))


def region_series(
    cascade: Cascade,
    axis: int,
    asked: Sequence[Functional],
    smooth: bool,
    cells: Mapping[int, SourceCells],
) -> Array:
    """Return the data along one axis (m, n), averaged along the others as the answers are."""
    few = [
        each if other == axis else each.take(_spread_out(len(each)))
        for other, each in enumerate(asked)
    ]
    rows = all_rows(cascade, few, smooth, cells, skip=axis)
    own = cascade.frames[axis]
    operators = [own if other == axis else row for other, row in enumerate(rows)]
    found = np.moveaxis(cascade.apply_centred(operators), axis, 0)
    return found.reshape(len(found), -1)


def _spread_out(size: int) -> Indices:
    """Return some of many questions, evenly spread."""
    return np.unique(np.linspace(0, size - 1, min(size, _MOST)).astype(np.intp))
