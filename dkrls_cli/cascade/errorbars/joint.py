"""Error bars of complete grids under one joint ridge."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import ClassVar

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask, Slices
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.drawing.fields import Field
from dkrls_cli.cascade.ensembles import Draw, joint_draws
from dkrls_cli.cascade.errorbars.bars import Bars, Drawn, unexplained
from dkrls_cli.cascade.panels import contract_points
from dkrls_cli.cascade.solvers import JointSolver
from dkrls_cli.cascade.tensors import along, contract, count_points, lay_out

# Numbers of a long level that are computed at once: 32 MB.
_ROWS = 2**22


@dataclass(frozen=True, eq=False)
class JointBars(Drawn):
    """Error bars of a model of a complete grid with one joint ridge.

    Attributes
    ----------
    error
        Root mean square error on cells left out one by one.
    scale
        s^2, the factor of the covariance.
    power
        Exponent of the covariance: 1, as there are no gaps that would ask for another.
    """

    error: float
    scale: float
    power: ClassVar[float] = 1.0

    @property
    def errors(self) -> Array:
        """Root mean square error on cells left out (1,)."""
        return np.array([self.error])

    def variance_blocks(
        self, cascade: Cascade, queries: Sequence[Array], *, smooth: bool = False
    ) -> Callable[[Slices], Array]:
        """Return a function that computes the variance of one block; 0 at training cells."""
        nodes = [cascade.find_nodes(axis, query, smooth) for axis, query in enumerate(queries)]
        left = _joint_solver(cascade).left(queries)

        def variance(part: Slices) -> Array:
            result = self.scale * left(part)
            cells = [np.flatnonzero(n[p] >= 0) for n, p in zip(nodes, part, strict=True)]
            result[np.ix_(*cells)] = 0.0
            return result

        return variance

    def variance_at_points(
        self,
        cascade: Cascade,
        points: Sequence[Array],
        *,
        spread: Collection[int] = (),
        smooth: bool = False,
    ) -> Array:
        """Return the variance of the answers at scattered points."""
        nodes = [cascade.find_nodes(axis, query, smooth) for axis, query in enumerate(points)]
        explained = _explained_at_points(cascade, points, spread)
        at_node = reduce(np.logical_and, lay_out([n >= 0 for n in nodes], spread))
        return np.where(at_node, 0.0, self._scaled(cascade, explained))

    def draws(self, field: Field, seed: int) -> Draw:
        """Return the draws of the members at the places of a field."""
        return joint_draws(field, _joint_solver(field.cascade), self.scale, seed)

    @property
    def unobserved(self) -> None:
        """None: these are error bars of complete grids."""

    def with_unobserved(self, unobserved: Mask, axis: int) -> Bars:
        """Return these error bars: under a joint ridge, gaps have error bars of their own."""
        return self

    def _scaled(self, cascade: Cascade, explained: Array) -> Array:
        """Return the variance left by the data, times the scale."""
        prior = math.prod(level.kernel.variance for level in cascade.levels)
        return self.scale * unexplained(prior, explained, _joint_solver(cascade).ridge)


def _joint_solver(cascade: Cascade) -> JointSolver:
    solver = cascade.solver
    assert isinstance(solver, JointSolver)
    return solver


def _explained_at_points(
    cascade: Cascade, points: Sequence[Array], spread: Collection[int]
) -> Array:
    """Return the variance that the data explains at points, under a joint ridge."""
    solver, count = _joint_solver(cascade), count_points(points, spread)
    if solver.long is not None:
        return _explained_beside_long(cascade, points, spread)
    shares = [1.0 / np.sqrt(values) for values in solver.shared_eigenvalues()]
    plain = {a: cascade.curve(a, q, True) for a, q in enumerate(points) if a not in spread}
    curves = {
        axis: replace(curve, matrices=(*curve.matrices, np.diag(shares[axis])), squared=True)
        for axis, curve in plain.items()
    }

    def rows(axis: int, part: slice | Indices) -> Array:
        return np.asarray((cascade.kernel_rows(axis, points[axis][part]) * shares[axis]) ** 2)

    squares = {axis: rows(axis, slice(None)) for axis in spread}
    tensor = reduce(np.multiply.outer, solver.shared_eigenvalues()) / solver.eigenvalues()
    return contract_points(tensor, count, rows, {}, max(cascade.shape), squares, curves)


def _explained_beside_long(
    cascade: Cascade, points: Sequence[Array], spread: Collection[int]
) -> Array:
    """Return the variance that the data explains at points, one of whose coordinates is long.

    The part of the long level is known at every point in every direction of the other levels, so
    these alone are contracted.
    """
    solver = _joint_solver(cascade)
    long = solver.long
    assert long is not None

    def rows(axis: int, part: slice) -> Array:
        return np.asarray(cascade.kernel_rows(axis, points[axis][part]) ** 2)

    if long in spread:
        squares = {axis: rows(axis, slice(None)) for axis in spread if axis != long}
        everywhere = {**squares, long: np.arange(points[long].size)}
        known, count = solver.long_explained(points[long]), count_points(points, spread)
        return contract(known, count, rows, {}, max(cascade.shape), everywhere)
    explained = np.empty((points[long].size, *(points[axis].size for axis in sorted(spread))))
    step = max(1, _ROWS // math.prod(cascade.spectrum(axis).rank for axis in solver.short))
    for start in range(0, len(explained), step):
        part = slice(start, start + step)
        left = np.moveaxis(solver.long_explained(points[long][part]), long, 0)
        for place, axis in reversed(list(enumerate(solver.short, 1))):
            if axis in spread:
                left = along(left, place, rows(axis, slice(None)))
            else:
                turned = np.moveaxis(left, place, 1)
                left = np.einsum("pr...,pr->p...", turned, rows(axis, part))
        explained[part] = left
    return explained
