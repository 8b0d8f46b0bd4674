"""Error bars scaled so that they hold the errors on data left out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.calibration.local import (
    LocalScale,
    count_independent,
    find_local_scale,
    student_factor,
)
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars.bars import Z90, outer_sum
from dkrls_cli.cascade.errorbars.growth import with_growth
from dkrls_cli.cascade.errorbars.joint import JointBars
from dkrls_cli.cascade.errorbars.leaving import LeftOut, copies_of, leave_out
from dkrls_cli.cascade.errorbars.levels import LevelBars
from dkrls_cli.cascade.errorbars.outages import with_outages
from dkrls_cli.cascade.poles.continuation import Continuation
from dkrls_cli.cascade.solvers import JointSolver
from dkrls_cli.cascade.tensors import apply
from dkrls_cli.threads import one_blas_thread

# Cells predicted for every pattern: a quantile to a percent, and 25 slices of three levels each.
_CELLS = 2**14


def calibrate(
    cascade: Cascade, rows: Continuation | None = None, passed: Collection[int] = ()
) -> LevelBars | JointBars:
    """Return the error bars of a model of a complete grid.

    Rows that go on across the poles are copies: a slice is left out together with its copy, and
    copies count for nothing themselves. Cells of a joint ridge are left out of the data alone.
    Levels in `passed`, by axis, are never asked between their coordinates: their errors say nothing
    of where those of the other levels are larger.
    """
    if cascade.joint_ridge is not None and rows is not None:
        cascade = rows.bare(cascade)
    solver = cascade.solver
    if isinstance(solver, JointSolver):
        return _joint_bars(cascade, solver)
    return _level_bars(cascade, copies_of(cascade, rows), passed)


def _joint_bars(cascade: Cascade, solver: JointSolver) -> JointBars:
    """Return error bars scaled by the residuals of cells left out one by one."""
    diagonal = solver.inverse_diagonal()
    missed = solver.weights(range(cascade.ndim))
    missed /= diagonal
    variance = np.reciprocal(diagonal, out=diagonal)
    return JointBars(_root_mean_square(missed), _band_factor(missed, variance))


def _level_bars(
    cascade: Cascade, copies: Mapping[int, Indices], passed: Collection[int]
) -> LevelBars:
    """Return error bars scaled by the errors on slices left out of every set of levels."""
    each = max(4, round(_CELLS ** (1 / cascade.ndim)))
    with one_blas_thread():
        levels = [leave_out(cascade, axis, each, copies.get(axis)) for axis in range(cascade.ndim)]
    missed = _missed(cascade, levels)
    errors, scales = np.ones(cascade.ndim), np.ones(cascade.ndim)
    for axis, alone in enumerate(np.eye(cascade.ndim, dtype=int)):
        spread = outer_sum([v.variance * on for v, on in zip(levels, alone, strict=True)])
        errors[axis] = _root_mean_square(missed[tuple(alone)])
        scales[axis] = np.mean(missed[tuple(alone)] ** 2 / spread)
    asked = tuple(int(axis not in passed) for axis in range(cascade.ndim))
    local = _find_local_scales(cascade, levels, missed[asked], scales * asked)
    factors = np.ones((2,) * cascade.ndim)
    for pattern in list(np.ndindex(factors.shape))[1:]:
        parts = zip(scales, levels, pattern, strict=True)
        variance = outer_sum([scale * v.variance * on for scale, v, on in parts])
        for axis, known in enumerate(local):
            if known is not None and pattern[axis]:
                variance *= known[1].reshape(-1, *[1] * (cascade.ndim - axis - 1))
        factors[pattern] = _band_factor(missed[pattern], variance)
    few = [student_factor(level.nodes.size) for level in levels]
    kept = tuple(None if known is None else known[0] for known in local)
    bars = LevelBars(errors, scales * few, factors, kept if any(kept) else ())
    for axis in set(range(cascade.ndim)) - set(copies):
        bars = with_growth(with_outages(bars, cascade, axis), cascade, axis)
    return bars


def _find_local_scales(
    cascade: Cascade, levels: Sequence[LeftOut], missed: Array, scales: Array
) -> list[tuple[LocalScale, Array] | None]:
    """Return the local scale of every level, from cells left out along all that have a scale."""
    variance = outer_sum([s * v.variance for s, v in zip(scales, levels, strict=True)])
    spread = np.sqrt(variance)
    ratios = np.divide(missed, spread, out=np.zeros(missed.shape), where=variance > 0)
    found = []
    for axis, level in enumerate(levels):
        cells = np.moveaxis(ratios, axis, 0).reshape(len(level.nodes), -1)
        places = cascade.coordinates[axis][level.nodes]
        closed = cascade.levels[axis].kernel.period is not None
        fibres = count_independent(cells)
        squares = np.mean(cells**2, axis=1)
        found.append(find_local_scale(places, squares, closed=closed, fibres=fibres))
    return found


def _missed(cascade: Cascade, levels: Sequence[LeftOut]) -> Array:
    """Return predicted less true values of every pattern, (2, ..., 2, slices of every level).

    Every slice is there twice, as it is and left out, so that one pass serves all patterns.
    """
    twice = [level.twice for level in levels]
    framed = [
        both if frame is None else both @ frame
        for both, frame in zip(twice, cascade.frames, strict=True)
    ]
    sums = [(both @ np.ones((m, 1)))[:, 0] for m, both in zip(cascade.shape, twice, strict=True)]
    found = apply(cascade.core, framed)
    found -= cascade.mean * reduce(np.multiply.outer, sums)
    halves = found.reshape([size for v in levels for size in (2, v.nodes.size)])
    axes = range(cascade.ndim)
    patterns = halves.transpose([2 * a for a in axes] + [2 * a + 1 for a in axes])
    return np.asarray(patterns - patterns[(0,) * cascade.ndim])


def _root_mean_square(missed: Array) -> float:
    return float(np.sqrt(np.mean(missed**2)))


def _band_factor(missed: Array, variance: Array) -> float:
    """Return the factor of a variance with which the 90 % band holds 90 % of the errors."""
    known = variance > 0
    ratios = missed[known]  # in place from here on: the arrays of a joint ridge are whole grids
    np.abs(ratios, out=ratios)
    spread = variance[known]
    ratios /= np.sqrt(spread, out=spread)
    if not ratios.size:
        return 1.0
    return float((np.quantile(ratios, 0.9, overwrite_input=True) / Z90) ** 2)
