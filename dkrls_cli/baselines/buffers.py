"""Growing storage: kept samples, and symmetric matrices that are updated in place."""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas

from dkrls_cli.arrays import Array

# Samples and rows that there is room for at first; both grow when they are full.
FIRST_CENTRES, FIRST_ROWS = 64, 16


class Centres:
    """Kept samples, one per column, each with a weight; the storage doubles when it is full."""

    def __init__(self, features: int) -> None:
        self._points = np.empty((features, FIRST_CENTRES))
        self._weights = np.empty(FIRST_CENTRES)
        self._start, self._end = 0, 0

    def __len__(self) -> int:
        return self._end - self._start

    @property
    def points(self) -> Array:
        """The samples (D, m), oldest first, as a view."""
        return self._points[:, self._start : self._end]

    @property
    def weights(self) -> Array:
        """The weights (m,) of the samples, as a view."""
        return self._weights[self._start : self._end]

    def extend(self, points: Array, weights: Array | float) -> None:
        """Append samples (n, D) with their weights."""
        if self._end + len(points) > self._weights.size:
            self._grow(2 * (len(self) + len(points)))
        new = slice(self._end, self._end + len(points))
        self._points[:, new] = points.T
        self._weights[new] = weights
        self._end = new.stop

    def drop_oldest(self, count: int) -> None:
        """Drop the `count` oldest samples."""
        self._start += count

    def _grow(self, room: int) -> None:
        """Move the samples to storage for `room` of them."""
        points, weights = np.empty((len(self._points), room)), np.empty(room)
        points[:, : len(self)], weights[: len(self)] = self.points, self.weights
        self._points, self._weights, self._start, self._end = points, weights, 0, len(self)


class Symmetric:
    """A symmetric matrix (m, m) that grows, kept in the lower triangle of a larger square.

    The square is zero beyond row m, so BLAS works on all of it, in place and without views.
    """

    def __init__(self) -> None:
        self._a = np.zeros((FIRST_ROWS, FIRST_ROWS), order="F")
        self.size = 0

    def times(self, v: Array) -> Array:
        """Return A v (m,)."""
        padded = np.zeros(len(self._a))
        padded[: self.size] = v
        return np.asarray(blas.dsymv(1.0, self._a, padded, lower=1)[: self.size])

    def diagonal(self) -> Array:
        """Return the diagonal (m,)."""
        return self._a.diagonal()[: self.size]

    def column(self, place: int) -> Array:
        """Return one column (m,), as a copy."""
        return np.concatenate((self._a[place, :place], self._a[place : self.size, place]))

    def dense(self) -> Array:
        """Return the whole matrix (m, m), as a copy."""
        lower = np.tril(self._a[: self.size, : self.size])
        return np.asarray(lower + np.tril(lower, -1).T)

    def append(self, column: Array | None = None, corner: float = 0.0) -> None:
        """Add one row and column at the end; zeros without a `column`."""
        if self.size == len(self._a):
            larger = np.zeros((self.size + self.size // 4 + FIRST_ROWS,) * 2, order="F")
            larger[: self.size, : self.size] = self._a
            self._a = larger
        self.size += 1
        self.put(self.size - 1, column, corner)

    def clear(self) -> None:
        """Set the size to 0 and keep the storage."""
        self._a[:] = 0.0
        self.size = 0

    def put(self, place: int, column: Array | None = None, corner: float = 0.0) -> None:
        """Set row and column `place`, with `corner` on the diagonal; zeros without a `column`."""
        whole = np.zeros(self.size)
        if column is not None:
            whole[: column.size] = column
        self._a[place, :place] = whole[:place]
        self._a[place : self.size, place] = whole[place:]
        self._a[place, place] = corner

    def add_outer(self, scale: float, v: Array) -> None:
        """Add scale v v' to A."""
        padded = np.zeros(len(self._a))
        padded[: self.size] = v
        self._a = blas.dsyr(scale, padded, lower=1, a=self._a, overwrite_a=1)

    def mix(self, share: float, other: Symmetric) -> None:
        """Set A to share A + (1 - share) B, where the matrix B has the same size and storage."""
        self._a *= share
        blas.daxpy(other._a.T.ravel(), self._a.T.reshape(-1), a=1.0 - share)

    def mix_identity(self, share: float) -> None:
        """Set A to share A + (1 - share) I."""
        self._a *= share
        self._a[np.diag_indices(self.size)] += 1.0 - share

    def extend_inverse(self, v: Array, s: float) -> None:
        """Turn the inverse of K into that of K with one more row and column.

        With b the new column beside the diagonal: v = K^-1 b, s = corner - b'v. The new inverse is
        K^-1 bordered with zeros, plus [v; -1][v; -1]' / s.
        """
        self.append()
        self.add_outer(1.0 / s, np.append(v, -1.0))

    def replace_in_inverse(self, place: int, v: Array, s: float) -> None:
        """Apply `extend_inverse`, then remove row `place` of K; the new row takes its place.

        Removing row r from K turns its inverse G into G - g g' / G_rr, with g the column r of G.
        """
        gone, old = self.column(place), v[place]
        corner = gone[place] + old**2 / s
        u = v.copy()
        u[place] = -1.0
        gone[place] = 0.0
        gone += (old / s) * u
        self.put(place)
        self.add_outer(1.0 / s, u)
        self.add_outer(-1.0 / corner, gone)
