"""Weights k' C^-1 of slices in a forecast: a factor of C^-1 that is extended row by row."""

from __future__ import annotations

import math

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.kernels import gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.threads import one_blas_thread

_NEW_ROWS, _ROOM = 8, 16
"""A factor is extended by at most one row in eight, and has room for 16 more rows or twice."""

_LARGE = 256
"""Size from which scipy's triangular inverse saves more than importing scipy takes (0.1 s)."""


def same_offsets(offsets: Array, nodes: Array, coordinate: float) -> bool:
    """Return whether nodes lie as far from a coordinate as offsets say, but for rounding.

    Weights depend on distances only, so a shift of all coordinates does not change them.
    """
    if offsets.shape != nodes.shape:
        return False
    slack = 8 * float(np.finfo(np.float64).eps) * max(abs(coordinate), abs(float(nodes[0])))
    return bool(np.abs(nodes - coordinate - offsets).max() <= slack)


class Factor:
    """The inverse J of the Cholesky factor of a level's C, so that J'J = C^-1.

    A new coordinate at the end adds a row. Removing one from the front changes all rows.
    """

    def __init__(self, level: Level) -> None:
        self._kernel, self._ridge = level.kernel, level.ridge
        self._nodes, self._rows = np.empty(0), np.empty((0, 0))
        self._asked: tuple[float, Array, Array] | None = None

    def weights(self, nodes: Array, query: float) -> Array:
        """Return the weights k' C^-1 of the slices at `nodes` in the answer at `query`."""
        self._follow(nodes)
        across, weights = self._solve(nodes, query)
        self._asked = query, across, weights
        return weights

    def _follow(self, nodes: Array) -> None:
        """Extend the factor to these nodes, or compute it anew if that is less work."""
        known = self._nodes.size
        few = 0 <= nodes.size - known <= 1 + nodes.size // _NEW_ROWS
        if few and np.array_equal(nodes[:known], self._nodes):
            for place in range(known, nodes.size):
                self._add(nodes, place)
        else:
            covariance = gram(self._kernel, nodes, nodes) + self._ridge * np.eye(nodes.size)
            lower = np.asarray(np.linalg.cholesky(covariance), np.float64)
            self._rows = _invert_lower(lower)
        self._nodes = nodes

    def _solve(self, nodes: Array, query: float) -> tuple[Array, Array]:
        """Return J k and J'J k for the kernel vector k of a coordinate."""
        rows = self._rows[: nodes.size, : nodes.size]
        across = rows @ gram(self._kernel, nodes, np.array([query]))[:, 0]
        return across, across @ rows

    def _add(self, nodes: Array, place: int) -> None:
        """Add the row of one more coordinate, from the last query if that was the coordinate."""
        if place == len(self._rows):
            self._rows = np.pad(self._rows, (0, max(_ROOM, place)))
        node, own = float(nodes[place]), self._kernel.variance + self._ridge
        asked, across, weights = self._asked or (math.nan, nodes, nodes)
        if asked != node or across.size != place:
            across, weights = self._solve(nodes[:place], node)
        left = math.sqrt(max(float(own - across @ across), self._ridge))
        self._rows[place, :place] = -weights / left
        self._rows[place, place] = 1.0 / left


def _invert_lower(lower: Array) -> Array:
    """Return the inverse of a lower triangular matrix."""
    if len(lower) < _LARGE:
        return np.asarray(np.linalg.inv(lower), np.float64)
    from scipy.linalg.lapack import dtrtri

    with one_blas_thread():  # from here on it holds for the BLAS of scipy too
        upper, _ = dtrtri(lower.T)  # the transpose is in the order of Fortran already
    return np.asarray(upper.T, np.float64)
