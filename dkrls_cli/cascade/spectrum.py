"""The spectrum of a Gram matrix: the algebra of K + ridge, and the directions float64 can use.

With K = V diag(w) V', everything that a level contributes is a product with
(K + ridge)^-1 = V diag(1 / (w + ridge)) V'. That algebra stands here once.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.threads import one_blas_thread

# Up to this size one thread factorises fastest, and is not slowed down by other processes.
_SMALL = 1024

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
    """

    vectors: Array
    values: Array

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
