"""Error bars: the model's own covariance, scaled by what it missed on slices left out.

A level that answers between its coordinates adds s_l^2 (k(q, q) + lambda_l - k' C_l^-1 k) to the
variance, its covariance at the coordinate asked for. A level that is passed through adds nothing.

How they are scaled
-------------------
Row j of H_l predicts slice j of level l from all other slices: H_l = -C_l^-1 / diag(C_l^-1) off the
diagonal, 0 on it. Applied along several axes at once, these rows predict cells as if the slices of
all those levels had been left out, in closed form. For every set of levels that may be asked
between at once (a *pattern*) some cells are predicted so, and the sum of the levels' variances is
multiplied by what makes the 90 % band hold 90 % of them. Noise in a cell is missed by every level
but counts once: that is why a pattern has a factor of its own.

Under a joint ridge the whole grid is one layer, and cells are left out one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from dkrls_cli.arrays import Array, Indices, Slices
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.tensors import apply, contract
from dkrls_cli.threads import one_blas_thread

Z90 = 1.6448536269514722
"""Half width of the band that holds 90 % of a normal distribution, in standard deviations."""

_CELLS = 4096
"""Cells predicted for every pattern: as many as tell a quantile to a percent."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """What the covariances of a model are scaled by.

    Attributes
    ----------
    errors
        Root mean square of what was missed on slices left out of every level (L,), or under a
        joint ridge on cells left out (1,).
    scales
        s_l^2 of every level (L,), or s^2 of the one layer of a joint ridge (1,).
    factors
        Of every pattern (2, ..., 2), an axis per level: index 1 where it is asked between its
        coordinates. Under a joint ridge there is but one pattern, and no axis.
    """

    errors: Array
    scales: Array
    factors: Array


@dataclass(frozen=True, eq=False)
class _LeftOut:
    """Some slices of a level: their places, and what predicts them from all others."""

    nodes: Indices
    rows: Array  # of H_l (slices, m)
    variance: Array  # of what they predict, before it is scaled (slices,)


def calibrate(cascade: Cascade) -> Calibration:
    """Scales and factors of a trained model."""
    if cascade.joint_ridge is not None:
        diagonal = _joint_diagonal(cascade)
        missed = cascade.weights(range(cascade.ndim)) / diagonal
        scale = _band(missed, 1.0 / diagonal)
        return Calibration(np.array([_root_mean_square(missed)]), np.array([scale]), np.ones(()))
    each = max(4, round(_CELLS ** (1 / cascade.ndim)))
    with one_blas_thread():
        levels = [_left_out(cascade, axis, each) for axis in range(cascade.ndim)]
    missed = _missed(cascade, levels)
    errors, scales = np.ones(cascade.ndim), np.ones(cascade.ndim)
    for axis, alone in enumerate(np.eye(cascade.ndim, dtype=int)):
        spread = _sum([v.variance * on for v, on in zip(levels, alone, strict=True)])
        errors[axis] = _root_mean_square(missed[tuple(alone)])
        scales[axis] = np.mean(missed[tuple(alone)] ** 2 / spread)
    factors = np.ones((2,) * cascade.ndim)
    for pattern in list(np.ndindex(factors.shape))[1:]:
        parts = zip(scales, levels, pattern, strict=True)
        factors[pattern] = _band(missed[pattern], _sum([s * v.variance * on for s, v, on in parts]))
    return Calibration(errors, scales, factors)


def _left_out(cascade: Cascade, axis: int, most: int) -> _LeftOut:
    """Slices of a level spread evenly; not its ends, where leaving out tests extrapolation."""
    nodes = np.argsort(cascade.coordinates[axis])
    if nodes.size > 3 and cascade.levels[axis].kernel.period is None:
        nodes = nodes[1:-1]
    if nodes.size > most:
        nodes = nodes[np.linspace(0, nodes.size - 1, most).astype(np.intp)]
    inverse = cascade.spectra[axis].inverse(cascade.levels[axis].ridge, nodes)  # rows of C_l^-1
    own = np.arange(nodes.size), nodes
    diagonal = inverse[own]
    rows = -inverse / diagonal[:, None]
    rows[own] = 0.0
    return _LeftOut(nodes, rows, 1.0 / diagonal)


def _missed(cascade: Cascade, levels: Sequence[_LeftOut]) -> Array:
    """Predicted less true, (2, ..., 2, slices of every level): of every pattern all its cells.

    Every slice is there twice, as it is and left out, so that one pass serves all patterns.
    """
    twice = [
        np.concatenate([np.eye(m)[v.nodes], v.rows])
        for m, v in zip(cascade.shape, levels, strict=True)
    ]
    framed = [
        both if frame is None else both @ frame
        for both, frame in zip(twice, cascade.frames, strict=True)
    ]
    found = apply(cascade.core, framed)
    found -= cascade.mean * reduce(np.multiply.outer, [both.sum(axis=1) for both in twice])
    halves = found.reshape([size for v in levels for size in (2, v.nodes.size)])
    axes = range(cascade.ndim)
    patterns = halves.transpose([2 * a for a in axes] + [2 * a + 1 for a in axes])
    return np.asarray(patterns - patterns[(0,) * cascade.ndim])


def _root_mean_square(missed: Array) -> float:
    return float(np.sqrt(np.mean(missed**2)))


def _band(missed: Array, variance: Array) -> float:
    """What to multiply a variance by, so that the 90 % band holds 90 % of what was missed."""
    known = variance > 0
    ratios = np.abs(missed[known]) / np.sqrt(variance[known])
    return float((np.quantile(ratios, 0.9) / Z90) ** 2) if ratios.size else 1.0


def _sum(parts: Sequence[Array]) -> Array:
    """The sum of what every level adds, on the product of their coordinates."""
    return reduce(np.add.outer, parts)


def variance(
    cascade: Cascade, known: Calibration, queries: Sequence[Array], *, smooth: bool = False
) -> Array:
    """Variance of the answers on a product grid; 0 where all is passed through."""
    whole = tuple(slice(0, query.size) for query in queries)
    return variances(cascade, known, queries, smooth=smooth)(whole)


def variances(
    cascade: Cascade, known: Calibration, queries: Sequence[Array], *, smooth: bool = False
) -> Callable[[Slices], Array]:
    """What gives the variance of any part of a product grid; the common work is done here."""
    nodes = [cascade.nodes(axis, query, smooth) for axis, query in enumerate(queries)]
    if cascade.joint_ridge is None:
        parts = _level_parts(cascade, known, queries, nodes)
        asked = [(n < 0).astype(np.intp) for n in nodes]

        def level_variance(part: Slices) -> Array:
            here = np.ix_(*[a[p] for a, p in zip(asked, part, strict=True)])
            return known.factors[here] * _sum([v[p] for v, p in zip(parts, part, strict=True)])

        return level_variance
    rows = [cascade.kernel_rows(axis, query) ** 2 for axis, query in enumerate(queries)]
    inverse, ridge = _joint_inverse(cascade), cascade.joint_ridge

    def joint_variance(part: Slices) -> Array:
        explained = apply(inverse, [row[p] for row, p in zip(rows, part, strict=True)])
        result = known.scales[0] * _left(_joint_prior(cascade), explained, ridge)
        cells = [np.flatnonzero(n[p] >= 0) for n, p in zip(nodes, part, strict=True)]
        result[np.ix_(*cells)] = 0.0
        return np.asarray(result)

    return joint_variance


def variance_at_points(
    cascade: Cascade, known: Calibration, points: Sequence[Array], *, smooth: bool = False
) -> Array:
    """Variance of the answers at scattered points."""
    nodes = [cascade.nodes(axis, query, smooth) for axis, query in enumerate(points)]
    if cascade.joint_ridge is None:
        factors = known.factors[tuple((n < 0).astype(np.intp) for n in nodes)]
        return np.asarray(factors * np.sum(_level_parts(cascade, known, points, nodes), axis=0))

    def rows(axis: int, part: slice) -> Array:
        return np.asarray(cascade.kernel_rows(axis, points[axis][part]) ** 2)

    inverse, count = _joint_inverse(cascade), points[0].size
    explained = contract(inverse, count, rows, {}, widest=max(cascade.shape))
    result = known.scales[0] * _left(_joint_prior(cascade), explained, cascade.joint_ridge)
    return np.where(np.all([n >= 0 for n in nodes], axis=0), 0.0, result)


def filled_variance(cascade: Cascade, known: Calibration, axis: int) -> Array:
    """Variance of a cell that was missing, by its place along one axis: as if left out there."""
    left_out = 1.0 / cascade.spectra[axis].inverse_diagonal(cascade.levels[axis].ridge)
    alone = tuple(np.eye(cascade.ndim, dtype=int)[axis])
    return np.asarray(known.factors[alone] * known.scales[axis] * left_out)


def _level_parts(
    cascade: Cascade, known: Calibration, queries: Sequence[Array], nodes: Sequence[Indices]
) -> list[Array]:
    """What each level adds at its own coordinates."""
    parts = []
    for axis, query in enumerate(queries):
        spectrum, level = cascade.spectra[axis], cascade.levels[axis]
        asked = np.flatnonzero(nodes[axis] < 0)
        distinct, which = np.unique(query[asked], return_inverse=True)
        explained = np.empty(distinct.size)
        block = max(1, 2**22 // spectrum.rank)
        for start in range(0, distinct.size, block):
            rows = cascade.kernel_rows(axis, distinct[start : start + block])
            explained[start : start + block] = spectrum.explained(level.ridge, rows)
        left = _left(level.kernel.variance, explained, level.ridge)
        part = np.zeros(query.size)
        part[asked] = known.scales[axis] * left[which]
        parts.append(part)
    return parts


def _left(prior: float, explained: Array, ridge: float) -> Array:
    """What of the prior variance the data leaves open, and the noise; never below the noise."""
    return np.asarray(np.maximum(prior - explained, 0.0) + ridge)


def _joint_prior(cascade: Cascade) -> float:
    return math.prod(level.kernel.variance for level in cascade.levels)


def _joint_inverse(cascade: Cascade) -> Array:
    """1 / (p + lambda) over the products p of the levels' eigenvalues."""
    products = reduce(np.multiply.outer, [spectrum.values for spectrum in cascade.spectra])
    return np.asarray(1.0 / (products + (cascade.joint_ridge or 0.0)))


def _joint_diagonal(cascade: Cascade) -> Array:
    """Diagonal of the inverse of the whole system, in the shape of the grid."""
    return apply(_joint_inverse(cascade), [s.vectors**2 for s in cascade.spectra])
