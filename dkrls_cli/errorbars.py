"""Error bars: the model's own covariance, scaled by what it missed on slices left out.

A level that answers between its coordinates adds s_l^2 (1 + lambda_l - k' C_l^-1 k) to the
variance, its covariance at the coordinate asked for; s_l^2 is the mean over slices of
(residual left out)^2 (C_l^-1)_jj, which would be 1 if the data had the variance of the kernel. A
level that is passed through adds nothing. Under a joint ridge the whole grid is one layer, and the
same holds of it once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from dkrls_cli.cascade import Cascade
from dkrls_cli.kernels import Array
from dkrls_cli.spectral import one_blas_thread
from dkrls_cli.tensors import Indices, apply, contract
from dkrls_cli.tuning import slices

_FIBRES = 512
"""As many as tell a mean square to a few percent."""


def scales(cascade: Cascade, values: Array) -> tuple[float, ...]:
    """s_l^2 of every level, or s^2 of the one layer of a joint ridge; `values` is the data."""
    if cascade.joint_ridge is not None:
        weights = cascade.weights(range(cascade.ndim))
        return (float(np.mean(weights**2 / _joint_diagonal(cascade))),)
    with one_blas_thread():
        return tuple(
            _scale(cascade, axis, slices(values, axis, cascade.mean, _FIBRES))
            for axis in range(cascade.ndim)
        )


def variance(
    cascade: Cascade, scale: Sequence[float], queries: Sequence[Array], *, smooth: bool = False
) -> Array:
    """Variance of the answers on a product grid; 0 where all is passed through."""
    nodes = [cascade.nodes(axis, query, smooth) for axis, query in enumerate(queries)]
    if cascade.joint_ridge is None:
        parts = _level_parts(cascade, scale, queries, nodes)
        return reduce(np.add.outer, parts)
    rows = [cascade.kernel_rows(axis, query) ** 2 for axis, query in enumerate(queries)]
    result = scale[0] * _left(apply(_joint_inverse(cascade), rows), cascade.joint_ridge)
    result[np.ix_(*[np.flatnonzero(n >= 0) for n in nodes])] = 0.0
    return np.asarray(result)


def variance_at_points(
    cascade: Cascade, scale: Sequence[float], points: Sequence[Array], *, smooth: bool = False
) -> Array:
    """Variance of the answers at scattered points."""
    nodes = [cascade.nodes(axis, query, smooth) for axis, query in enumerate(points)]
    if cascade.joint_ridge is None:
        return np.asarray(np.sum(_level_parts(cascade, scale, points, nodes), axis=0))

    def rows(axis: int, part: slice) -> Array:
        return np.asarray(cascade.kernel_rows(axis, points[axis][part]) ** 2)

    inverse, count = _joint_inverse(cascade), points[0].size
    explained = contract(inverse, count, rows, {}, widest=max(cascade.shape))
    result = scale[0] * _left(explained, cascade.joint_ridge)
    return np.where(np.all([n >= 0 for n in nodes], axis=0), 0.0, result)


def _level_parts(
    cascade: Cascade, scale: Sequence[float], queries: Sequence[Array], nodes: Sequence[Indices]
) -> list[Array]:
    """What each level adds at its own coordinates."""
    parts = []
    for axis, query in enumerate(queries):
        spectrum, ridge = cascade.spectra[axis], cascade.levels[axis].ridge
        asked = np.flatnonzero(nodes[axis] < 0)
        distinct, which = np.unique(query[asked], return_inverse=True)
        inverse = 1.0 / (spectrum.values + ridge)
        explained = np.empty(distinct.size)
        block = max(1, 2**22 // spectrum.rank)
        for start in range(0, distinct.size, block):
            rows = cascade.kernel_rows(axis, distinct[start : start + block])
            explained[start : start + block] = rows**2 @ inverse
        part = np.zeros(query.size)
        part[asked] = scale[axis] * _left(explained, ridge)[which]
        parts.append(part)
    return parts


def _left(explained: Array, ridge: float) -> Array:
    """What of the prior variance 1 the data leaves open, and the noise; never below the noise."""
    return np.asarray(np.maximum(1.0 - explained, 0.0) + ridge)


def _scale(cascade: Cascade, axis: int, data: Array) -> float:
    v, w = cascade.spectra[axis].vectors, cascade.spectra[axis].values
    inverse = 1.0 / (w + cascade.levels[axis].ridge)
    weights = (v * inverse) @ (v.T @ data)
    diagonal = (v * v) @ inverse
    inner = np.ones(diagonal.size, bool)
    if diagonal.size > 3 and cascade.levels[axis].kernel.period is None:
        order = np.argsort(cascade.coordinates[axis])
        inner[order[[0, -1]]] = False  # leaving an end out tests extrapolation
    return float(np.mean(weights[inner] ** 2 / diagonal[inner, None]))


def _joint_inverse(cascade: Cascade) -> Array:
    """1 / (p + lambda) over the products p of the levels' eigenvalues."""
    products = reduce(np.multiply.outer, [spectrum.values for spectrum in cascade.spectra])
    return np.asarray(1.0 / (products + (cascade.joint_ridge or 0.0)))


def _joint_diagonal(cascade: Cascade) -> Array:
    """Diagonal of the inverse of the whole system, in the shape of the grid."""
    return apply(_joint_inverse(cascade), [s.vectors**2 for s in cascade.spectra])
