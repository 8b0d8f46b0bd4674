"""Error bars: the model's own covariance, scaled by its errors on slices left out.

A level that answers between its coordinates adds s_l^2 (k(q, q) + lambda_l - k' C_l^-1 k) to the
variance, its covariance at the queried coordinate. A level that is passed through adds nothing.

Scaling
-------
Row j of H_l predicts slice j of level l from all other slices: H_l = -C_l^-1 / diag(C_l^-1) off the
diagonal, 0 on it. Applied along several axes at once, these rows predict cells as if the slices of
all those levels had been left out, in closed form. For every set of levels that may be queried
between their coordinates at once (a *pattern*) some cells are predicted so, and the sum of the
levels' variances is multiplied by the factor that makes the 90 % band hold 90 % of them. Noise in a
cell is missed by every level but counts once: that is why a pattern has a factor of its own.

A spline has no covariance of its own. The shape of its error bars is that of a kernel whose errors
grow with the distance between samples as those of the spline do; the rows H_l and the scale are
those of the spline.

A level with enough slices has a scale of its own at every place, and one with few slices is less
certain (:mod:`dkrls_cli.cascade.calibration.local`).

Under a joint ridge the whole grid is one layer, and cells are left out one by one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import ClassVar, Protocol, Self

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask, Slices
from dkrls_cli.cascade.calibration.local import LocalScale, find_local_scale, student_factor
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.drawing.fields import Field
from dkrls_cli.cascade.ensembles import Draw, filled_draws, joint_draws, level_draws
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.panels import contract_points, sum_squares
from dkrls_cli.cascade.poles.continuation import Continuation
from dkrls_cli.cascade.poles.pairs import leave_out_pairs
from dkrls_cli.cascade.solvers import JointSolver
from dkrls_cli.cascade.splines.pieces import piecewise_left_out
from dkrls_cli.cascade.tensors import Rows, along, apply, contract, count_points, lay_out
from dkrls_cli.threads import one_blas_thread

# Half width of the band that holds 90 % of a normal distribution, in standard deviations.
Z90 = 1.6448536269514722

# Cells predicted for every pattern: a quantile to a percent, and 25 slices of three levels each.
_CELLS = 2**14

# Numbers of a long level that are computed at once: 32 MB.
_ROWS = 2**22


class Bars(Protocol):
    """The error bars of a model: variances of its answers, from errors on data left out."""

    @property
    def errors(self) -> Array:
        """Root mean square error on the data left out, one per level or one for all."""

    def variance_blocks(
        self, cascade: Cascade, queries: Sequence[Array], *, smooth: bool = False
    ) -> Callable[[Slices], Array]:
        """Return a function that computes the variance of one block of a product grid."""

    def variance_at_points(
        self,
        cascade: Cascade,
        points: Sequence[Array],
        *,
        spread: Collection[int] = (),
        smooth: bool = False,
    ) -> Array:
        """Return the variance of the answers at scattered points.

        Axes in `spread` are no part of the points: see :meth:`Cascade.predict_points`.
        """

    def deviations(
        self, cascade: Cascade, queries: Sequence[Array], *, smooth: bool = False, seed: int = 0
    ) -> Callable[[int], Array]:
        """Return a function that draws the deviation of member i from the answers, on a grid.

        On the product grid of the queries, its variance is that of :meth:`variance_blocks`. Member
        i depends on the seed and on i only, not on how many members are drawn.
        """

    def deviations_at_points(
        self,
        cascade: Cascade,
        points: Sequence[Array],
        *,
        spread: Collection[int] = (),
        smooth: bool = False,
        seed: int = 0,
    ) -> Callable[[int], Array]:
        """Return a function that draws the deviation of member i from the answers, at points.

        Its variance is that of :meth:`variance_at_points`.
        """

    @property
    def unobserved(self) -> Mask | None:
        """Which cells of the grid were missing; None if none was."""

    def with_unobserved(self, unobserved: Mask, axis: int) -> Bars:
        """Return error bars that know which cells of the grid were missing and are filled.

        `axis` is the one along which slices with missing cells were added.
        """

    def measured_in(self, cascade: Cascade) -> Bars:
        """Return error bars with all that is measured on the data of a cascade.

        It is for a model that is about to keep less of its data.
        """


def calibrate(
    cascade: Cascade, rows: Continuation | None = None, passed: Collection[int] = ()
) -> LevelBars | JointBars:
    """Return the error bars of a model of a complete grid.

    Rows that go on across the poles are copies: a slice is left out together with its copy, and
    copies count for nothing themselves. Cells of a joint ridge are left out of the data alone.
    Levels in `passed`, by axis, are never asked between their coordinates: their errors say nothing
    of where those of the other levels are larger.
    """
    if cascade.joint_ridge is not None and rows is not None:
        cascade = rows.bare(cascade)
    solver = cascade.solver
    if isinstance(solver, JointSolver):
        return _joint_bars(cascade, solver)
    return _level_bars(cascade, copies_of(cascade, rows), passed)


def copies_of(cascade: Cascade, rows: Continuation | None) -> dict[int, Indices]:
    """Return, by axis, the place of the slice that each slice copies, or -1: none on most axes."""
    if rows is None:
        return {}
    return {rows.latitude: rows.copies(cascade.shape[rows.latitude])}


def variance_on_grid(
    bars: Bars, cascade: Cascade, queries: Sequence[Array], *, smooth: bool = False
) -> Array:
    """Return the variance of the answers on a whole product grid."""
    whole = tuple(slice(0, query.size) for query in queries)
    return bars.variance_blocks(cascade, queries, smooth=smooth)(whole)


class _Drawn(ABC):
    """Draws of members on grids and at points, by what a kind of error bars draws at places."""

    def measured_in(self, cascade: Cascade) -> Self:
        """Return these error bars: all of them was measured when they were calibrated."""
        return self

    @abstractmethod
    def draws(self, field: Field, seed: int) -> Draw:
        """Return the draws of the members at the places of a field."""

    def deviations(
        self, cascade: Cascade, queries: Sequence[Array], *, smooth: bool = False, seed: int = 0
    ) -> Draw:
        """Return a function that draws the deviation of member i from the answers, on a grid."""
        return self._draw(Field.of(cascade.covariance, queries, smooth=smooth), seed)

    def deviations_at_points(
        self,
        cascade: Cascade,
        points: Sequence[Array],
        *,
        spread: Collection[int] = (),
        smooth: bool = False,
        seed: int = 0,
    ) -> Draw:
        """Return a function that draws the deviation of member i from the answers, at points."""
        return self._draw(Field.of(cascade.covariance, points, spread, smooth=smooth), seed)

    def _draw(self, field: Field, seed: int) -> Draw:
        """Return the draws of the members; there may be no place to draw at."""
        if 0 in field.shape:
            return lambda member: field.repeat(np.zeros(field.shape))
        return self.draws(field, seed)


@dataclass(frozen=True, eq=False)
class LevelBars(_Drawn):
    """Error bars of a model with a ridge per level.

    Attributes
    ----------
    errors
        Root mean square error on slices left out of every level (L,).
    scales
        s_l^2 of every level, wider where few slices tell it (L,).
    factors
        Factor of every pattern (2, ..., 2), an axis per level: index 1 where the level is queried
        between its coordinates.
    local
        The scale of every level by place, where it is queried between its coordinates; None of a
        level whose errors do not go by place. Empty: of none.
    """

    errors: Array
    scales: Array
    factors: Array
    local: tuple[LocalScale | None, ...] = ()

    def variance_blocks(
        self, cascade: Cascade, queries: Sequence[Array], *, smooth: bool = False
    ) -> Callable[[Slices], Array]:
        """Return a function that computes the variance of one block; 0 where all is passed."""
        nodes = [cascade.find_nodes(axis, query, smooth) for axis, query in enumerate(queries)]
        parts = self._level_variances(cascade, queries, nodes)
        between = [(n < 0).astype(np.intp) for n in nodes]
        scales = self._local_scales(cascade, queries, nodes)

        def variance(part: Slices) -> Array:
            here = np.ix_(*[b[p] for b, p in zip(between, part, strict=True)])
            together = _outer_sum([v[p] for v, p in zip(parts, part, strict=True)])
            result = np.asarray(self.factors[here] * together)
            for axis, scale in scales.items():
                result *= scale[part[axis]].reshape(-1, *[1] * (len(part) - axis - 1))
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
        between = lay_out([(n < 0).astype(np.intp) for n in nodes], spread)
        parts = lay_out(self._level_variances(cascade, points, nodes), spread)
        known = self._local_scales(cascade, points, nodes)
        scales = lay_out([known.get(a, np.ones(q.size)) for a, q in enumerate(points)], spread)
        total = np.asarray(self.factors[tuple(between)] * reduce(np.add, parts))
        return reduce(np.multiply, [scales[axis] for axis in known], total)

    def draws(self, field: Field, seed: int) -> Draw:
        """Return the draws of the members at the places of a field."""
        variances = self._level_variances(field.cascade, field.coordinates, field.nodes)
        between = field.lay_out([(nodes < 0).astype(np.intp) for nodes in field.nodes])
        factors = self.factors[tuple(between)]
        known = self._local_scales(field.cascade, field.coordinates, field.nodes)
        sizes = [query.size for query in field.coordinates]
        scales = field.lay_out([known.get(a, np.ones(size)) for a, size in enumerate(sizes)])
        factors = reduce(np.multiply, [scales[axis] for axis in known], factors)
        return level_draws(field, self.scales, variances, factors, seed)

    @property
    def unobserved(self) -> None:
        """None: these are error bars of complete grids."""

    def with_unobserved(self, unobserved: Mask, axis: int) -> Bars:
        """Return these error bars, wider at cells that were missing and are filled."""
        return FilledBars(self, unobserved, axis)

    def filled_variance(self, cascade: Cascade, axis: int) -> Array:
        """Return the variance of a filled cell by its place along an axis: as if left out there."""
        cascade = cascade.covariance
        factor, ridge = cascade.factor(axis), cascade.levels[axis].ridge
        if isinstance(factor, LongFactor):
            precision = factor.inverse_diagonal()
        else:
            precision = factor.inverse_diagonal(ridge)
        alone = tuple(np.eye(cascade.ndim, dtype=int)[axis])
        nodes = np.full(precision.size, -1)  # as if between its coordinates
        scale = self._local_scale(cascade, axis, cascade.coordinates[axis], nodes)
        return np.asarray(self.factors[alone] * self.scales[axis] * scale / precision)

    def _local_scales(
        self, cascade: Cascade, queries: Sequence[Array], nodes: Sequence[Indices]
    ) -> dict[int, Array]:
        """Return the local scales of the levels that have one, by axis; 1 at its coordinates."""
        return {
            axis: self._local_scale(cascade, axis, queries[axis], nodes[axis])
            for axis, scale in enumerate(self.local)
            if scale is not None
        }

    def _local_scale(self, cascade: Cascade, axis: int, query: Array, nodes: Indices) -> Array:
        """Return the local scale of a level at its own coordinates."""
        scale = self.local[axis] if self.local else None
        if scale is None:
            return np.ones(query.size)
        period = cascade.levels[axis].kernel.period
        return np.where(nodes < 0, scale.at(query, period), 1.0)

    def _level_variances(
        self, cascade: Cascade, queries: Sequence[Array], nodes: Sequence[Indices]
    ) -> list[Array]:
        """Return what each level adds at its own coordinates."""
        parts = []
        for axis, query in enumerate(queries):
            between = np.flatnonzero(nodes[axis] < 0)
            distinct, which = np.unique(query[between], return_inverse=True)
            left = _left_variance(cascade.covariance, axis, distinct)
            part = np.zeros(query.size)
            part[between] = self.scales[axis] * left[which]
            parts.append(part)
        return parts


@dataclass(frozen=True, eq=False)
class FilledBars(_Drawn):
    """Error bars of a model with a ridge per level, some cells of which are filled.

    Attributes
    ----------
    level_bars
        The error bars of the other cells.
    unobserved
        Which cells were missing and are filled, in the shape of the grid.
    axis
        The axis along which the slices with missing cells were added.
    """

    level_bars: LevelBars
    unobserved: Mask
    axis: int

    @property
    def errors(self) -> Array:
        """Root mean square error on slices left out of every level (L,)."""
        return self.level_bars.errors

    def variance_blocks(
        self, cascade: Cascade, queries: Sequence[Array], *, smooth: bool = False
    ) -> Callable[[Slices], Array]:
        """Return a function that computes the variance of one block of a product grid."""
        nodes = [cascade.find_nodes(axis, query, smooth) for axis, query in enumerate(queries)]
        observed_variance = self.level_bars.variance_blocks(cascade, queries, smooth=smooth)
        filled = self._filled_variance(cascade)

        def variance(part: Slices) -> Array:
            result, here = observed_variance(part), [n[p] for n, p in zip(nodes, part, strict=True)]
            known = np.ix_(*[np.flatnonzero(n >= 0) for n in here])
            result[known] += filled[np.ix_(*[n[n >= 0] for n in here])]
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
        result = self.level_bars.variance_at_points(cascade, points, spread=spread, smooth=smooth)
        found = [cascade.find_nodes(axis, query, smooth) for axis, query in enumerate(points)]
        nodes = np.broadcast_arrays(*lay_out(found, spread))
        known = np.all([n >= 0 for n in nodes], axis=0)
        result[known] += self._filled_variance(cascade)[tuple(n[known] for n in nodes)]
        return result

    def draws(self, field: Field, seed: int) -> Draw:
        """Return the draws of the members at the places of a field."""
        observed = self.level_bars.draws(field, seed)
        alone = self.level_bars.filled_variance(field.cascade, self.axis)
        filled = filled_draws(field, self.axis, self.unobserved, alone, seed)
        return lambda member: observed(member) + filled(member)

    def with_unobserved(self, unobserved: Mask, axis: int) -> Bars:
        """Return the error bars with other filled cells."""
        return FilledBars(self.level_bars, unobserved, axis)

    def _filled_variance(self, cascade: Cascade) -> Array:
        """Return the variance of filled cells, 0 in all others, in the shape of the grid."""
        alone = self.level_bars.filled_variance(cascade, self.axis)
        beside = [-1 if axis == self.axis else 1 for axis in range(cascade.ndim)]
        return np.asarray(self.unobserved * alone.reshape(beside))


@dataclass(frozen=True, eq=False)
class JointBars(_Drawn):
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
        return self.scale * _unexplained(prior, explained, _joint_solver(cascade).ridge)


def _left_variance(cascade: Cascade, axis: int, query: Array) -> Array:
    """Return the variance that a level has left at new coordinates, and its noise (q,)."""
    factor, level = cascade.factor(axis), cascade.levels[axis]
    if isinstance(factor, LongFactor):
        return factor.unexplained(query) + level.ridge
    curve = cascade.curve(axis, query, solved=True)
    explained = sum_squares(curve, 1.0 / (factor.values + level.ridge))
    return _unexplained(level.kernel.variance, explained, level.ridge)


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


def _joint_bars(cascade: Cascade, solver: JointSolver) -> JointBars:
    """Return error bars scaled by the residuals of cells left out one by one."""
    diagonal = solver.inverse_diagonal()
    missed = solver.weights(range(cascade.ndim))
    missed /= diagonal
    variance = np.reciprocal(diagonal, out=diagonal)
    return JointBars(_root_mean_square(missed), _band_factor(missed, variance))


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


def _level_bars(
    cascade: Cascade, copies: Mapping[int, Indices], passed: Collection[int]
) -> LevelBars:
    """Return error bars scaled by the errors on slices left out of every set of levels."""
    each = max(4, round(_CELLS ** (1 / cascade.ndim)))
    with one_blas_thread():
        levels = [leave_out(cascade, axis, each, copies.get(axis)) for axis in range(cascade.ndim)]
    missed = _missed(cascade, levels)
    errors, scales = np.ones(cascade.ndim), np.ones(cascade.ndim)
    for axis, alone in enumerate(np.eye(cascade.ndim, dtype=int)):
        spread = _outer_sum([v.variance * on for v, on in zip(levels, alone, strict=True)])
        errors[axis] = _root_mean_square(missed[tuple(alone)])
        scales[axis] = np.mean(missed[tuple(alone)] ** 2 / spread)
    asked = tuple(int(axis not in passed) for axis in range(cascade.ndim))
    local = _find_local_scales(cascade, levels, missed[asked], scales * asked)
    factors = np.ones((2,) * cascade.ndim)
    for pattern in list(np.ndindex(factors.shape))[1:]:
        parts = zip(scales, levels, pattern, strict=True)
        variance = _outer_sum([scale * v.variance * on for scale, v, on in parts])
        for axis, known in enumerate(local):
            if known is not None and pattern[axis]:
                variance *= known[1].reshape(-1, *[1] * (cascade.ndim - axis - 1))
        factors[pattern] = _band_factor(missed[pattern], variance)
    few = [student_factor(level.nodes.size) for level in levels]
    kept = tuple(None if known is None else known[0] for known in local)
    return LevelBars(errors, scales * few, factors, kept if any(kept) else ())


def _find_local_scales(
    cascade: Cascade, levels: Sequence[LeftOut], missed: Array, scales: Array
) -> list[tuple[LocalScale, Array] | None]:
    """Return the local scale of every level, from cells left out along all that have a scale."""
    variance = _outer_sum([s * v.variance for s, v in zip(scales, levels, strict=True)])
    squares = np.divide(missed**2, variance, out=np.zeros(missed.shape), where=variance > 0)
    found = []
    for axis, level in enumerate(levels):
        others = tuple(other for other in range(cascade.ndim) if other != axis)
        places = cascade.coordinates[axis][level.nodes]
        closed = cascade.levels[axis].kernel.period is not None
        found.append(find_local_scale(places, squares.mean(axis=others), closed=closed))
    return found


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


def _missed(cascade: Cascade, levels: Sequence[LeftOut]) -> Array:
    """Return predicted less true values of every pattern, (2, ..., 2, slices of every level).

    Every slice is there twice, as it is and left out, so that one pass serves all patterns.
    """
    twice = [level.twice for level in levels]
    framed = [
        both if frame is None else both @ frame
        for both, frame in zip(twice, cascade.frames, strict=True)
    ]
    sums = [(both @ np.ones((m, 1)))[:, 0] for m, both in zip(cascade.shape, twice, strict=True)]
    found = apply(cascade.core, framed)
    found -= cascade.mean * reduce(np.multiply.outer, sums)
    halves = found.reshape([size for v in levels for size in (2, v.nodes.size)])
    axes = range(cascade.ndim)
    patterns = halves.transpose([2 * a for a in axes] + [2 * a + 1 for a in axes])
    return np.asarray(patterns - patterns[(0,) * cascade.ndim])


def _root_mean_square(missed: Array) -> float:
    return float(np.sqrt(np.mean(missed**2)))


def _band_factor(missed: Array, variance: Array) -> float:
    """Return the factor of a variance with which the 90 % band holds 90 % of the errors."""
    known = variance > 0
    ratios = missed[known]  # in place from here on: the arrays of a joint ridge are whole grids
    np.abs(ratios, out=ratios)
    spread = variance[known]
    ratios /= np.sqrt(spread, out=spread)
    if not ratios.size:
        return 1.0
    return float((np.quantile(ratios, 0.9, overwrite_input=True) / Z90) ** 2)


def _outer_sum(parts: Sequence[Array]) -> Array:
    """Return the sum of what every level adds, on the product of their coordinates."""
    return reduce(np.add.outer, parts)


def _unexplained(prior: float, explained: Array, ridge: float) -> Array:
    """Return the prior variance that the data leaves, and the noise; never below the noise."""
    return np.asarray(np.maximum(prior - explained, 0.0) + ridge)
