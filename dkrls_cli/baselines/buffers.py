"""Room that grows: kept samples and symmetric matrices that are updated in place."""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas

from dkrls_cli.arrays import Array


class Centres:
    """Samples kept, one per column, each with a weight; room doubles when it runs out."""

    def __init__(self, features: int) -> None:
        self._points = np.empty((features, 64))
        self._weights = np.empty(64)
        self._start, self._end = 0, 0

    def __len__(self) -> int:
        return self._end - self._start

    @property
    def points(self) -> Array:
        """The samples (D, m), oldest first, as a view."""
        return self._points[:, self._start : self._end]

    @property
    def weights(self) -> Array:
        """Their weights (m,), as a view."""
        return self._weights[self._start : self._end]

    def extend(self, points: Array, weights: Array | float) -> None:
        """Keep samples (n, D)."""
        if self._end + len(points) > self._weights.size:
            self._move(2 * (len(self) + len(points)))
        new = slice(self._end, self._end + len(points))
        self._points[:, new] = points.T
        self._weights[new] = weights
        self._end = new.stop

    def forget(self, oldest: int) -> None:
        """Drop so many of the oldest."""
        self._start += oldest

    def _move(self, room: int) -> None:
        points, weights = np.empty((len(self._points), room)), np.empty(room)
        points[:, : len(self)], weights[: len(self)] = self.points, self.weights
        self._points, self._weights, self._start, self._end = points, weights, 0, len(self)


class Symmetric:
    """A symmetric matrix (m, m) that grows, kept in the lower triangle of a larger square.

    Beyond m the square is zero, so BLAS works on all of it, in place and without views.
    """

    def __init__(self) -> None:
        self._a = np.zeros((16, 16), order="F")
        self.size = 0

    def times(self, v: Array) -> Array:
        """A v (m,)."""
        padded = np.zeros(len(self._a))
        padded[: self.size] = v
        return np.asarray(blas.dsymv(1.0, self._a, padded, lower=1)[: self.size])

    def diagonal(self) -> Array:
        """The diagonal (m,)."""
        return self._a.diagonal()[: self.size]

    def column(self, place: int) -> Array:
        """One column (m,), as a copy."""
        return np.concatenate((self._a[place, :place], self._a[place : self.size, place]))

    def dense(self) -> Array:
        """All of it (m, m)."""
        lower = np.tril(self._a[: self.size, : self.size])
        return np.asarray(lower + np.tril(lower, -1).T)

    def append(self, column: Array | None = None, corner: float = 0.0) -> None:
        """Grow by one row and column."""
        if self.size == len(self._a):
            larger = np.zeros((self.size + self.size // 4 + 16,) * 2, order="F")
            larger[: self.size, : self.size] = self._a
            self._a = larger
        self.size += 1
        self.put(self.size - 1, column, corner)

    def clear(self) -> None:
        """Back to size 0, with the room it has."""
        self._a[:] = 0.0
        self.size = 0

    def put(self, place: int, column: Array | None = None, corner: float = 0.0) -> None:
        """Set one row and column, whose own entry is the corner; without a column to zeros."""
        whole = np.zeros(self.size)
        if column is not None:
            whole[: column.size] = column
        self._a[place, :place] = whole[:place]
        self._a[place : self.size, place] = whole[place:]
        self._a[place, place] = corner

    def add_outer(self, scale: float, v: Array) -> None:
        """A += scale v v'."""
        padded = np.zeros(len(self._a))
        padded[: self.size] = v
        self._a = blas.dsyr(scale, padded, lower=1, a=self._a, overwrite_a=1)

    def mix(self, share: float, other: Symmetric) -> None:
        """A <- share A + (1 - share) other, which has grown alike."""
        self._a *= share
        blas.daxpy(other._a.T.ravel(), self._a.T.reshape(-1), a=1.0 - share)

    def fade(self, share: float) -> None:
        """A <- share A + (1 - share) I."""
        self._a *= share
        self._a[np.diag_indices(self.size)] += 1.0 - share

    def extend_inverse(self, v: Array, s: float) -> None:
        """From the inverse of K to that of K with a row more.

        With b the new column beside the diagonal: v = K^-1 b, s = corner - b'v. The inverse is
        K^-1 bordered with zeros, plus [v; -1][v; -1]' / s.
        """
        self.append()
        self.add_outer(1.0 / s, np.append(v, -1.0))

    def replace_in_inverse(self, place: int, v: Array, s: float) -> None:
        """As `extend_inverse`, then without the row at `place`, which the new one takes.

        Leaving row r out of an inverse G is G - g g' / G_rr, with g its column r.
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
