"""The spectrum of a Gram matrix and what of it float64 can use. Plain arrays only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.kernels import gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.threads import one_blas_thread

_SMALL = 1024
"""Up to this size one thread factorises fastest, and does not suffer from other processes."""

_TRIANGLE = 128
"""Up to this size a triangular matrix is inverted like any other."""

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
        Of a long level: V is J', the inverse of the Cholesky factor of K + ridge, and w + ridge
        is 1. Then V diag(1 / (w + ridge)) V' is (K + ridge)^-1 all the same, which is all that
        answers are made from, and a further coordinate is a further column.
    """

    vectors: Array
    values: Array
    triangular: bool = False

    @property
    def rank(self) -> int:
        """Number of directions."""
        return self.values.size

    def solvable(self, ridge: float) -> Spectrum:
        """Without the directions in which w + ridge is round-off: at most 4 eps times the largest.

        A symmetric eigensolver errs by about eps times the norm, so there 1 / (w + ridge) would be
        noise. With a ridge above that every direction stays: even one with a tiny w carries an
        answer, as much as sqrt(w) / (w + ridge), and w need not be known better than the ridge.
        """
        live = self.values + ridge > ROUND_OFF * self.values[0]
        return self._first(int(np.count_nonzero(live)))

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
        """Only the directions in which w itself is above round-off."""
        return self.solvable(0.0)

    def _first(self, rank: int) -> Spectrum:
        if rank == self.rank:
            return self
        return Spectrum(np.ascontiguousarray(self.vectors[:, :rank]), self.values[:rank])


def decompose(gram: Array) -> Spectrum:
    """All directions of a Gram matrix (m, m)."""
    with one_blas_thread() if len(gram) <= _SMALL else nullcontext():
        values, vectors = np.linalg.eigh(gram)
    return Spectrum(np.ascontiguousarray(vectors[:, ::-1]), np.maximum(values[::-1], 0.0))


def triangle(gram: Array, ridge: float) -> Spectrum:
    """A Gram matrix and its ridge (m, m) by way of Cholesky: faster than all directions."""
    lower = np.asarray(np.linalg.cholesky(gram + ridge * np.eye(len(gram))), np.float64)
    return _triangle(_inverse(lower), ridge)


def widened(known: Spectrum, across: Array, gram: Array, ridge: float) -> Spectrum:
    """A triangular spectrum with more coordinates: Gram matrices to the old (m, k) and among them.

    A row of J for each, as in KRLS: the old ones stay.
    """
    old = known.vectors.T
    beside = (old @ across).T
    left = gram + ridge * np.eye(len(gram)) - beside @ beside.T
    new = _inverse(np.asarray(np.linalg.cholesky(left), np.float64))
    size = len(old)
    rows = np.zeros((size + len(new), size + len(new)))
    rows[:size, :size], rows[size:, size:] = old, new
    rows[size:, :size] = -new @ (beside @ old)
    return _triangle(rows, ridge)


def _triangle(rows: Array, ridge: float) -> Spectrum:
    return Spectrum(rows.T, np.full(len(rows), 1.0 - ridge), triangular=True)


def _inverse(lower: Array) -> Array:
    """The inverse of a lower triangular matrix, halves of it by matrix products."""
    size = len(lower)
    if size <= _TRIANGLE:
        return np.asarray(np.tril(np.linalg.inv(lower)), np.float64)
    half = size // 2
    first, last = _inverse(lower[:half, :half]), _inverse(lower[half:, half:])
    result = np.zeros(lower.shape)
    result[:half, :half], result[half:, half:] = first, last
    result[half:, :half] = -last @ (lower[half:, :half] @ first)
    return result


_LONG, _LEAST_RIDGE = 2000, 1e-7
"""Coordinates of a long level, and what ridge (beside its kernel) it needs for Cholesky."""


def spectra_of(
    axes: Sequence[Array],
    levels: Sequence[Level],
    joint_ridge: float | None,
    known: Sequence[Spectrum | None],
) -> tuple[Spectrum, ...]:
    """The directions of every level that its ridge (its share of the joint one) can solve for."""
    if joint_ridge is None:
        return tuple(_solvable(*each) for each in zip(axes, levels, known, strict=True))
    whole = [
        factor or decompose(gram(level.kernel, axis, axis))
        for level, axis, factor in zip(levels, axes, known, strict=True)
    ]
    largest = math.prod(spectrum.values[0] for spectrum in whole)
    return tuple(s.solvable(joint_ridge * float(s.values[0]) / largest) for s in whole)


def _solvable(axis: Array, level: Level, known: Spectrum | None) -> Spectrum:
    """The spectrum of a level with its own ridge; a known one may lack the last coordinates."""
    size = 0 if known is None else len(known.vectors)
    if known is not None and size == axis.size:
        return known if known.triangular else known.solvable(level.ridge)
    if known is not None and known.triangular:
        old, new = axis[:size], axis[size:]
        across, among = gram(level.kernel, old, new), gram(level.kernel, new, new)
        return widened(known, across, among, level.ridge)
    gramian = gram(level.kernel, axis, axis)
    if axis.size > _LONG and level.ridge > _LEAST_RIDGE * level.kernel.variance:
        return triangle(gramian, level.ridge)
    return decompose(gramian).solvable(level.ridge)
