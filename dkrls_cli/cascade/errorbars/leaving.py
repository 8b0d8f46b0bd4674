"""Slices of a level that are left out, and the rows that predict them from all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.poles.continuation import Continuation
from dkrls_cli.cascade.poles.pairs import leave_out_pairs
from dkrls_cli.cascade.splines.pieces import piecewise_left_out
from dkrls_cli.cascade.tensors import Rows


def copies_of(cascade: Cascade, rows: Continuation | None) -> dict[int, Indices]:
    """Return, by axis, the place of the slice that each slice copies, or -1: none on most axes."""
    if rows is None:
        return {}
    return {rows.latitude: rows.copies(cascade.shape[rows.latitude])}


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Some slices of a level, and the rows that predict them from all other slices.

    Attributes
    ----------
    nodes
        Places of the slices.
    twice
        Rows (2 x slices, m): those that take the slices as they are, and those of H_l.
    variance
        Variance of the predictions, before scaling (slices,).
    """

    nodes: Indices
    twice: Array | Rows
    variance: Array


@dataclass(frozen=True, eq=False)
class _LongRowsTwice:
    """The rows of :class:`LeftOut` for a long level: y, and y - C^-1 y / diag(C^-1)."""

    factor: LongFactor
    nodes: Indices
    diagonal: Array
    ndim: ClassVar[int] = 2

    def __len__(self) -> int:
        """Return the number of rows."""
        return 2 * self.nodes.size

    def __getitem__(self, part: slice) -> Rows:
        """Return the rows of some slices."""
        return _LongRowsTwice(self.factor, self.nodes[part], self.diagonal[part])

    def __matmul__(self, fibres: Array) -> Array:
        """Return the slices of fibres (m, n), and their predictions."""
        known = fibres[self.nodes]
        if self.nodes.size < fibres.shape[1]:
            weights = self._inverse_rows @ fibres
        else:
            weights = self.factor.solve(fibres)[self.nodes]
        return np.concatenate([known, known - weights / self.diagonal[:, None]])

    @property
    def _inverse_rows(self) -> Array:
        """Rows of C^-1 of the slices (slices, m), which are also its columns."""
        units = np.zeros((self.factor.coordinates.size, self.nodes.size))
        units[self.nodes, np.arange(self.nodes.size)] = 1.0
        return self.factor.solve(units).T


def leave_out(cascade: Cascade, axis: int, most: int, copies: Indices | None = None) -> LeftOut:
    """Leave out slices spread evenly over a level, but not its ends: that tests extrapolation.

    `copies` has the place of the slice that each slice copies, -1 where it copies none.
    """
    nodes = np.argsort(cascade.coordinates[axis])
    if nodes.size > 3 and cascade.levels[axis].kernel.period is None:
        nodes = nodes[1:-1]
    if copies is not None:
        nodes = nodes[copies[nodes] < 0]
    if nodes.size > most:
        nodes = nodes[np.linspace(0, nodes.size - 1, most).astype(np.intp)]
    if cascade.levels[axis].kernel.is_spline:
        return _leave_out_of_spline(cascade, axis, nodes)
    factor = cascade.factor(axis)
    if isinstance(factor, LongFactor):
        nodes = nodes if copies is None else np.setdiff1d(nodes, copies)
        diagonal = factor.inverse_diagonal()[nodes]
        return LeftOut(nodes, _LongRowsTwice(factor, nodes, diagonal), 1.0 / diagonal)
    inverse = factor.inverse(cascade.levels[axis].ridge, nodes)  # rows of C_l^-1
    own = np.arange(nodes.size), nodes
    diagonal = inverse[own]
    variance = 1.0 / diagonal
    if copies is None:
        rows = -inverse / diagonal[:, None]
    else:
        others = factor.inverse(cascade.levels[axis].ridge)
        rows, variance = leave_out_pairs(inverse, others, nodes, copies)
    rows[own] = 0.0
    return LeftOut(nodes, np.concatenate([np.eye(len(factor.vectors))[nodes], rows]), variance)


def _leave_out_of_spline(cascade: Cascade, axis: int, nodes: Indices) -> LeftOut:
    """Leave out slices of a spline, whose variance is that of the covariance of its errors."""
    kernel, coordinates = cascade.levels[axis].kernel, cascade.coordinates[axis]
    order = np.argsort(coordinates)
    rows = np.empty((coordinates.size, coordinates.size))
    rising = kernel.warped(coordinates[order])
    rows[np.ix_(order, order)] = piecewise_left_out(kernel.family, kernel.pieces, rising)
    other = cascade.covariance
    factor = other.factor(axis)
    if isinstance(factor, LongFactor):
        precision = factor.inverse_diagonal()
    else:
        precision = factor.inverse_diagonal(other.levels[axis].ridge)
    both = np.concatenate([np.eye(coordinates.size)[nodes], rows[nodes]])
    return LeftOut(nodes, both, 1.0 / precision[nodes])
