"""Error bars of models with a ridge per level, some cells of which may be filled."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask, Slices
from dkrls_cli.cascade.calibration.local import LocalScale
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.drawing.fields import Field
from dkrls_cli.cascade.ensembles import Draw, filled_draws, level_draws
from dkrls_cli.cascade.errorbars.bars import Bars, Drawn, outer_sum, unexplained
from dkrls_cli.cascade.errorbars.runs import variance_in_runs
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.panels import sum_squares
from dkrls_cli.cascade.tensors import lay_out


@dataclass(frozen=True, eq=False)
class LevelBars(Drawn):
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
    growth
        By place, the factor of what a level adds between its coordinates, where errors fall less
        with the gap than its kernel says; None of a level where they do not. Empty: of none.
    """

    errors: Array
    scales: Array
    factors: Array
    local: tuple[LocalScale | None, ...] = ()
    growth: tuple[LocalScale | None, ...] = ()

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
            together = outer_sum([v[p] for v, p in zip(parts, part, strict=True)])
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

    def variance_alone(self, others: Cascade, axis: int, query: Array) -> Array:
        """Return the variance of answers between the coordinates of one level alone (q,).

        `others` is a model of that level alone, of some of its slices.
        """
        left = left_variance(others.covariance, 0, query)
        return left * self.scale_alone(axis, query, others.levels[0].kernel.period)

    def scale_alone(self, axis: int, query: Array, period: float | None) -> Array:
        """Return what the variance of one level alone is, in that of its kernel (q,)."""
        scale = self.local[axis] if self.local else None
        there = np.ones(query.size) if scale is None else scale.at(query, period)
        alone = tuple(np.eye(self.scales.size, dtype=int)[axis])
        return np.asarray(self.factors[alone] * self.scales[axis] * there)

    def draws(self, field: Field, seed: int) -> Draw:
        """Return the draws of the members at the places of a field."""
        variances = self._level_variances(field.cascade, field.coordinates, field.nodes)
        between = field.lay_out([(nodes < 0).astype(np.intp) for nodes in field.nodes])
        factors = self.factors[tuple(between)]
        known = self._local_scales(field.cascade, field.coordinates, field.nodes)
        sizes = [query.size for query in field.coordinates]
        scales = field.lay_out([known.get(a, np.ones(size)) for a, size in enumerate(sizes)])
        factors = reduce(np.multiply, [scales[axis] for axis in known], factors)
        widening = [
            self.widening(axis, query, field.kernel(axis).period)
            for axis, query in enumerate(field.coordinates)
        ]
        return level_draws(field, self.scales, variances, factors, seed, widening)

    def widening(self, axis: int, query: Array, period: float | None) -> Array:
        """Return the factors by which errors of a level are larger than its kernel says."""
        known = self.growth[axis] if self.growth else None
        return np.ones(query.size) if known is None else known.at(query, period)

    @property
    def unobserved(self) -> None:
        """None: these are error bars of complete grids."""

    def with_unobserved(self, unobserved: Mask, axis: int) -> Bars:
        """Return these error bars, wider at cells that were missing and are filled."""
        return FilledBars(self, unobserved, axis)

    def filled_variance(self, cascade: Cascade, axis: int) -> Array:
        """Return the variance of a filled cell by its place along an axis: as if left out there."""
        cascade = cascade.covariance
        precision = precisions(cascade, axis)
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
            part = np.zeros(query.size)
            part[between] = self._level_variance(cascade, axis, distinct)[which]
            parts.append(part)
        return parts

    def _level_variance(self, cascade: Cascade, axis: int, query: Array) -> Array:
        """Return what a level adds between its coordinates, and beyond them.

        Slices left out say how large errors are at their distance. Far beyond the coordinates
        nothing is known but the spread of the data: the variance is at least on the way there, as a
        power of what the level leaves open.
        """
        left = left_variance(cascade.covariance, axis, query)
        period = cascade.levels[axis].kernel.period
        variance = np.asarray(self.scales[axis] * left * self.widening(axis, query, period))
        own, level = cascade.coordinates[axis], cascade.covariance.levels[axis]
        beyond = (query < own.min()) | (query > own.max())
        if period is not None or not beyond.any() or not _holds_data(cascade):
            return variance
        usual = float(np.max(1.0 / precisions(cascade.covariance, axis)))
        prior = level.kernel.variance - level.kernel.constant + level.ridge
        far = beyond & (left > usual)
        here = self.scales[axis] * usual
        if far.any() and 0.0 < usual < prior and here > 0.0:
            alone = tuple(np.eye(cascade.ndim, dtype=int)[axis])
            local = self._local_scale(cascade, axis, query[far], np.full(query[far].size, -1))
            climate = _spread_along(cascade, axis) / (self.factors[alone] * local)
            share = np.minimum(np.log(left[far] / usual) / np.log(prior / usual), 1.0)
            grown = here * (np.maximum(climate, here) / here) ** share
            variance[far] = np.maximum(variance[far], grown)
        return variance


@dataclass(frozen=True, eq=False)
class FilledBars(Drawn):
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
        if any((found < 0).all() for found in nodes):
            return observed_variance
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
        if known.any():
            result[known] += self._filled_variance(cascade)[tuple(n[known] for n in nodes)]
        return result

    def draws(self, field: Field, seed: int) -> Draw:
        """Return the draws of the members at the places of a field."""
        observed = self.level_bars.draws(field, seed)
        alone = self.level_bars.filled_variance(field.cascade, self.axis)
        filled = filled_draws(field, self.axis, self.unobserved, alone, seed)
        nodes = np.broadcast_arrays(*field.lay_out(field.nodes))
        known = np.all([n >= 0 for n in nodes], axis=0)
        wider = np.ones(known.shape)
        if known.any():
            least = self._as_if_left_out(field.cascade)
            ratio = np.divide(
                self._filled_variance(field.cascade),
                least,
                out=np.ones(least.shape),
                where=least > 0,
            )
            wider[known] = np.sqrt(ratio)[tuple(n[known] for n in nodes)]
        return lambda member: observed(member) + field.repeat(wider) * filled(member)

    def with_unobserved(self, unobserved: Mask, axis: int) -> Bars:
        """Return the error bars with other filled cells."""
        return FilledBars(self.level_bars, unobserved, axis)

    def _filled_variance(self, cascade: Cascade) -> Array:
        """Return the variance of filled cells, 0 in all others, in the shape of the grid.

        In a run of missing cells it is that of the level which tells most of them from outside, at
        most that of the data.
        """
        least = self._as_if_left_out(cascade)
        found = variance_in_runs(cascade, self.unobserved, self.level_bars.variance_alone)
        most = _spread_along(cascade, self.axis) if _holds_data(cascade) else math.inf
        found = np.minimum(found, most)
        return np.maximum(least, np.where(np.isfinite(found), found, 0.0))

    def _as_if_left_out(self, cascade: Cascade) -> Array:
        """Return the variance of filled cells if each was a slice that is left out; 0 of others."""
        alone = self.level_bars.filled_variance(cascade, self.axis)
        beside = [-1 if axis == self.axis else 1 for axis in range(cascade.ndim)]
        return np.asarray(self.unobserved * alone.reshape(beside))


def precisions(cascade: Cascade, axis: int) -> Array:
    """Return one over what a level leaves open at each of its coordinates, if left out (m,)."""
    factor = cascade.factor(axis)
    if isinstance(factor, LongFactor):
        return factor.inverse_diagonal()
    return np.asarray(factor.inverse_diagonal(cascade.levels[axis].ridge))


def _holds_data(cascade: Cascade) -> bool:
    """Return whether a cascade has its data, and does not stand for one answered in parts."""
    sizes = zip(cascade.shape, cascade.frames, strict=True)
    ranks = tuple(m if frame is None else frame.shape[1] for m, frame in sizes)
    return cascade.core.shape == ranks and not cascade.is_stand_in


def _spread_along(cascade: Cascade, axis: int) -> float:
    """Return the variance of the data about that to which answers tend far along an axis.

    It is the mean along the axis, or of a kernel without a constant the mean of all data.
    """
    core, size = np.asarray(cascade.centred_core(), np.float64), cascade.shape[axis]
    slices = float(np.vdot(core, core)) / size
    if cascade.covariance.levels[axis].kernel.constant:
        frame = cascade.frames[axis]
        sums = np.ones(size) if frame is None else frame.sum(axis=0)
        means = np.tensordot(sums / size, core, (0, axis))
        slices = max(slices - float(np.vdot(means, means)), 0.0)
    return slices * size / math.prod(cascade.shape)


def left_variance(cascade: Cascade, axis: int, query: Array) -> Array:
    """Return the variance that a level has left at new coordinates, and its noise (q,)."""
    factor, level = cascade.factor(axis), cascade.levels[axis]
    if isinstance(factor, LongFactor):
        return factor.unexplained(query) + level.ridge
    curve = cascade.curve(axis, query, solved=True)
    explained = sum_squares(curve, 1.0 / (factor.values + level.ridge))
    return unexplained(level.kernel.variance, explained, level.ridge)
