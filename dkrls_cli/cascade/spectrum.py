"""The spectrum of a Gram matrix: the algebra of K + ridge, and the directions float64 can use.

With K = V diag(w) V', everything that a level contributes is a product with
(K + ridge)^-1 = V diag(1 / (w + ridge)) V'. That algebra stands here once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.kernels import gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.threads import one_blas_thread

# Up to this size one thread factorises fastest, and is not slowed down by other processes.
_SMALL = 1024

# Coordinates above which a level is long: Cholesky is then far cheaper than all eigenvectors.
_LONG = 2000

# Smallest ridge, as a share of the kernel's variance, with which Cholesky keeps enough digits.
_LEAST_RIDGE = 1e-7

# Relative error of a symmetric eigensolver.
ROUND_OFF = 4 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Directions of a Gram matrix K = V diag(w) V' that a model works with.

    Attributes
    ----------
    vectors
        V, orthonormal columns (m, rank).
    values
        w, descending, none below 0 (rank,).
    triangular
        True for a long level: V is J', with J the inverse of the Cholesky factor of K + ridge, and
        w + ridge is 1. Then V diag(1 / (w + ridge)) V' is (K + ridge)^-1 as well, which is all that
        answers need, and a further coordinate is a further column.
    """

    vectors: Array
    values: Array
    triangular: bool = False

    @property
    def rank(self) -> int:
        """Number of directions."""
        return self.values.size

    def solvable(self, ridge: float) -> Spectrum:
        """Drop the directions in which w + ridge is round-off: at most 4 eps times the largest.

        A symmetric eigensolver errs by about eps times the norm, so there 1 / (w + ridge) would be
        noise. With a ridge above that every direction stays: even one with a tiny w carries an
        answer, as much as sqrt(w) / (w + ridge), and w need not be known better than the ridge.
        """
        live = self.values + ridge > ROUND_OFF * self.values[0]
        return self.first(int(np.count_nonzero(live)))

    def solve(self, ridge: float, right: Array) -> Array:
        """Return diag(1 / (w + ridge)) V' right, the solution in the eigenbasis (rank, n)."""
        return np.asarray((self.vectors.T @ right) / (self.values + ridge)[:, None])

    def inverse(self, ridge: float, rows: Indices | slice = slice(None)) -> Array:
        """Return some rows of (K + ridge)^-1 = V diag(1 / (w + ridge)) V', all by default."""
        return np.asarray((self.vectors[rows] / (self.values + ridge)) @ self.vectors.T)

    def inverse_diagonal(self, ridge: float) -> Array:
        """Return the diagonal of (K + ridge)^-1 (m,)."""
        return np.asarray(self.vectors**2 @ (1.0 / (self.values + ridge)))

    def explained(self, ridge: float, rows: Array) -> Array:
        """Return k' (K + ridge)^-1 k of kernel rows k' V (q, rank): variance that data explains."""
        return np.asarray(rows**2 @ (1.0 / (self.values + ridge)))

    def expressible(self) -> Spectrum:
        """Drop the directions in which w itself is round-off."""
        return self.solvable(0.0)

    def first(self, rank: int) -> Spectrum:
        """Return the spectrum with its first directions only."""
        if rank == self.rank:
            return self
        return Spectrum(np.ascontiguousarray(self.vectors[:, :rank]), self.values[:rank])


def decompose(gram: Array) -> Spectrum:
    """Return all directions of a Gram matrix (m, m)."""
    with one_blas_thread() if len(gram) <= _SMALL else nullcontext():
        values, vectors = np.linalg.eigh(gram)
    return Spectrum(np.ascontiguousarray(vectors[:, ::-1]), np.maximum(values[::-1], 0.0))


def factor(gram: Array, ridge: float) -> Spectrum:
    """Return the triangular spectrum of K + ridge (m, m), by Cholesky: faster than eigenvectors."""
    lower = np.linalg.cholesky(gram + ridge * np.eye(len(gram)))
    return _triangular(_invert_lower(lower), ridge)


def extend(known: Spectrum, across: Array, gram: Array, ridge: float) -> Spectrum:
    """Return a triangular spectrum with k more coordinates: the old rows of J stay, as in KRLS.

    `across` is the Gram matrix between old and new coordinates (m, k), `gram` among the new (k, k).
    """
    old = known.vectors.T
    beside = (old @ across).T
    left = gram + ridge * np.eye(len(gram)) - beside @ beside.T
    new = _invert_lower(np.linalg.cholesky(left))
    size = len(old)
    rows = np.zeros((size + len(new), size + len(new)))
    rows[:size, :size], rows[size:, size:] = old, new
    rows[size:, :size] = -new @ (beside @ old)
    return _triangular(rows, ridge)


def spectra_of(
    axes: Sequence[Array],
    levels: Sequence[Level],
    joint_ridge: float | None,
    known: Sequence[Spectrum | None],
) -> tuple[Spectrum, ...]:
    """Return the directions of every level that its ridge can solve for.

    Under a joint ridge that is the level's share of it. Spectra that are `known` are not computed
    again.
    """
    if joint_ridge is None:
        return tuple(_solvable(*each) for each in zip(axes, levels, known, strict=True))
    whole = [
        spectrum or decompose(gram(level.kernel, axis, axis))
        for level, axis, spectrum in zip(levels, axes, known, strict=True)
    ]
    largest = math.prod(spectrum.values[0] for spectrum in whole)
    return tuple(s.solvable(joint_ridge * float(s.values[0]) / largest) for s in whole)


def _solvable(axis: Array, level: Level, known: Spectrum | None) -> Spectrum:
    """Return the spectrum of a level with its own ridge.

    A known triangular spectrum may lack the last coordinates: it is extended by them.
    """
    size = 0 if known is None else len(known.vectors)
    if known is not None and known.triangular:
        old, new = axis[:size], axis[size:]
        if new.size == 0:
            return known
        across, among = gram(level.kernel, old, new), gram(level.kernel, new, new)
        return extend(known, across, among, level.ridge)
    if known is not None and size == axis.size:
        return known.solvable(level.ridge)
    gramian = gram(level.kernel, axis, axis)
    if axis.size > _LONG and level.ridge > _LEAST_RIDGE * level.kernel.variance:
        return factor(gramian, level.ridge)
    return decompose(gramian).solvable(level.ridge)


def _triangular(rows: Array, ridge: float) -> Spectrum:
    """Return the spectrum of which J' are the vectors and 1 is w + ridge."""
    return Spectrum(rows.T, np.full(len(rows), 1.0 - ridge), triangular=True)


def _invert_lower(lower: NDArray[Any]) -> Array:
    """Return the inverse of a lower triangular matrix."""
    from scipy.linalg.lapack import dtrtri

    return np.asarray(dtrtri(lower.T)[0].T, np.float64)
