"""Error bars of models of observations that have errors: see :mod:`dkrls_cli.gaps.noisy.analysis`.

The variance of the field given all observations comes from random fields
(:mod:`dkrls_cli.gaps.samples`), whatever the errors and the gaps. That of the quantity follows in
closed form: at an observed cell it is at most that of its error, at a missing one it is larger.

Between coordinates the variance of the field is interpolated, and what a complete grid without
errors leaves open there, above what it leaves open at its coordinates, is added; or more, if slices
that are left out of the analysis are missed by more (:mod:`dkrls_cli.cascade.calibration.folds`).

As in :mod:`dkrls_cli.gaps.bars` a factor for every power of two of the distance to data makes bands
hold what they promise. It multiplies s^2. A cell counts as so many times farther from data as the
errors around it are larger: there too, an answer is made of many cells together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask, Slices
from dkrls_cli.cascade.calibration.between import (
    BetweenErrors,
    grid_answers,
    grid_pattern,
    point_answers,
    point_pattern,
)
from dkrls_cli.cascade.calibration.folds import BetweenScale
from dkrls_cli.cascade.calibration.hats import Hats, hats_of, interpolate_at_points
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars.bars import Bars, variance_on_grid
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.tensors import apply, count_points, lay_out
from dkrls_cli.gaps.bars import UNSCALED, mix_deviations, other_seed, refuse_long
from dkrls_cli.gaps.calibration.widths import distance_factors
from dkrls_cli.gaps.field import NO_GROUPS, Grouping, make_field
from dkrls_cli.gaps.noisy.analysis import (
    Observations,
    detail_share,
    measure_spread,
    poorness,
    quantity_variance,
    split_noise,
)
from dkrls_cli.gaps.pattern import distance_to_data
from dkrls_cli.gaps.samples import posterior_draws, posterior_variance, thinning

# Draws whose mean square is the variance of the field: the root of that errs by a tenth.
_DRAWS = 48

# Seed of the draws behind error bars: the same model has the same error bars.
_SEED = (2019, 1)

# Smallest variance, as a share of the prior: keeps divisions finite.
_LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class NoisyBars:
    """Error bars of a model of observations with errors.

    Attributes
    ----------
    observations
        The observations and their standard errors, in the shape of the grid.
    scale
        s^2, the variance of the quantity in units of the kernels.
    error
        Root mean square error of the quantity on the cells held out.
    grouping
        Axes that share one distance.
    factors
        Factor of s^2 for every power of two of the distance to data in cells, or a function that
        returns them when they are first needed.
    between
        How large errors are between coordinates, if that was measured on data that the model no
        longer holds; None: it is measured when first asked for.
    """

    observations: Observations
    scale: float
    error: float
    grouping: Grouping = NO_GROUPS
    factors: tuple[float, ...] | Callable[[], tuple[float, ...]] = (1.0,)
    between: BetweenScale | None = None
    _known: WeakKeyDictionary[Cascade, CellVariances] = field(
        init=False, repr=False, default_factory=WeakKeyDictionary
    )

    @cached_property
    def known_factors(self) -> tuple[float, ...]:
        """The factors of s^2."""
        return self.factors() if callable(self.factors) else self.factors

    @property
    def errors(self) -> Array:
        """Root mean square error on the cells held out (1,)."""
        return np.array([self.error])

    @cached_property
    def unobserved(self) -> Mask | None:
        """Which cells have no observation; None if all have one."""
        missing = ~self.observations.observed
        return missing if missing.any() else None

    @cached_property
    def slices(self) -> BetweenErrors:
        """Errors between coordinates."""
        return BetweenErrors(~self.observations.observed, self.between)

    def between_sizes(self, cascade: Cascade, left: Array, pattern: Sequence[Indices]) -> Array:
        """Return the factor from what a complete grid leaves open for values, `left`, to errors."""
        nearest = self.scale * self.known_factors[0]
        return np.maximum(self.slices.scale_in(cascade).sizes(left, pattern), nearest)

    def measured_in(self, cascade: Cascade) -> NoisyBars:
        """Return these error bars as they are measured on the data of a cascade."""
        return replace(self, between=self.slices.scale_in(cascade))

    @property
    def noise(self) -> Array:
        """Variance of the error of every observation, in units of the kernels."""
        return np.asarray(self.observations.errors**2 / self.scale)

    def with_unobserved(self, unobserved: Mask, axis: int) -> Bars:
        """Return these error bars: they know every missing cell."""
        return self

    def expand(self, shape: Sequence[int], places: Sequence[int]) -> NoisyBars:
        """Return these error bars on a grid with more axes, of one coordinate each.

        `places` are those of the present axes in the new grid.
        """
        groups = tuple(tuple(places[axis] for axis in group) for group in self.grouping.axes)
        grouping = replace(self.grouping, axes=groups)
        return replace(self, observations=self.observations.reshape(shape), grouping=grouping)

    def cells_in(self, cascade: Cascade) -> CellVariances:
        """Return the variances in the cells of the grid, computed when first asked for."""
        if cascade not in self._known:
            self._known[cascade] = self._make_cells(cascade)
        return self._known[cascade]

    def _make_cells(self, cascade: Cascade) -> CellVariances:
        observed, ridge = self.observations.observed, cascade.joint_ridge or 0.0
        kernels = [level.kernel for level in cascade.levels]
        found = noisy_field_variance(
            cascade.coordinates, kernels, self.grouping, observed, ridge, self.noise
        )
        signal = measure_spread(self.observations.values, self.observations.errors).signal
        away = np.maximum(distance_to_data(observed), 1.0)
        away *= poorness(observed, self.observations.errors, signal)
        factors = distance_factors(away, self.known_factors)
        own = self.scale * quantity_variance(found, observed, ridge, self.noise)
        spread = factors * (1.0 - self._gain(own)) + self._gain(own)
        sizes = self.scale * factors
        left = variance_on_grid(UNSCALED, cascade, cascade.coordinates, smooth=True)
        return CellVariances(
            sizes, sizes * (found + ridge), spread * own, self.scale * spread, left
        )

    def _gain(self, own: Array) -> Array:
        """Return the share that an observation has in the answer of its own cell; 0 of none.

        That is its variance given all observations, as a share of that of its error. If all other
        cells tell less or more of the quantity than the model says, by a factor on the variance,
        that of the answer changes by this factor on the rest of the share.
        """
        noise = self.observations.errors**2
        share = np.divide(own, noise, out=np.ones(own.shape), where=noise > 0)
        return np.where(self.observations.observed, np.minimum(share, 1.0), 0.0)

    def variance_blocks(
        self, cascade: Cascade, queries: Sequence[Array], *, smooth: bool = False
    ) -> Callable[[Slices], Array]:
        """Return a function that computes the variance of one block of a product grid."""
        left = UNSCALED.variance_blocks(cascade, queries, smooth=True)
        hats = [hats_of(cascade, axis, query) for axis, query in enumerate(queries)]
        nodes = [cascade.find_nodes(axis, query, smooth) for axis, query in enumerate(queries)]
        cells = self.cells_in(cascade)

        def variance(part: Slices) -> Array:
            here = [n[p] for n, p in zip(nodes, part, strict=True)]
            rows = [hat[p] for hat, p in zip(hats, part, strict=True)]
            beside = apply(cells.left, rows)
            answers = grid_answers(cascade, queries, smooth, part)
            pattern = grid_pattern(here)
            result = self._between_variance(cascade, left(part), beside, pattern, answers)
            result += apply(cells.field, rows)
            known = [np.flatnonzero(n >= 0) for n in here]
            places = np.ix_(*[n[k] for n, k in zip(here, known, strict=True)])
            result[np.ix_(*known)] = cells.own[places]
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
        left = UNSCALED.variance_at_points(cascade, points, spread=spread, smooth=True)
        hats = [hats_of(cascade, axis, query) for axis, query in enumerate(points)]
        cells, count = self.cells_in(cascade), count_points(points, spread)
        pattern = point_pattern(cascade, points, spread, smooth)
        beside = interpolate_at_points(cells.left, hats, count, spread)
        result = interpolate_at_points(cells.field, hats, count, spread)
        answers = point_answers(cascade, points, spread, smooth)
        result += self._between_variance(cascade, left, beside, pattern, answers)
        found = [cascade.find_nodes(axis, query, smooth) for axis, query in enumerate(points)]
        nodes = np.broadcast_arrays(*lay_out(found, spread))
        known = np.all([n >= 0 for n in nodes], axis=0)
        result[known] = cells.own[tuple(n[known] for n in nodes)]
        return result

    def deviations(
        self, cascade: Cascade, queries: Sequence[Array], *, smooth: bool = False, seed: int = 0
    ) -> Callable[[int], Array]:
        """Return a function that draws the deviation of member i from the answers, on a grid.

        The quantity is drawn from its posterior in all cells, observed ones as well. Between
        coordinates the draw of the field is interpolated, and detail of the right size is added.
        """
        nodes = [cascade.find_nodes(axis, query, smooth) for axis, query in enumerate(queries)]
        draws = self._draws(cascade, seed)
        if all((found >= 0).all() for found in nodes):
            return lambda number: draws.quantity(number)[np.ix_(*nodes)]
        whole = tuple(slice(0, query.size) for query in queries)
        hats = [hats_of(cascade, axis, query) for axis, query in enumerate(queries)]
        between = UNSCALED.deviations(cascade, queries, smooth=True, seed=other_seed(seed))
        left = UNSCALED.variance_blocks(cascade, queries, smooth=True)(whole)
        beside = apply(self.cells_in(cascade).left, hats)
        answers = grid_answers(cascade, queries, smooth, whole)
        added = self._between_variance(cascade, left, beside, grid_pattern(nodes), answers)
        sizes = np.sqrt(added / np.maximum(left, _LEAST))
        mixed = mix_deviations(
            lambda number: apply(draws.field(number), hats),
            lambda number: sizes * between(number),
            apply(np.sqrt(draws.field_variance), hats),
            added,
            self.variance_blocks(cascade, queries, smooth=smooth)(whole),
        )
        known = np.ix_(*[np.flatnonzero(found >= 0) for found in nodes])
        places = np.ix_(*[found[found >= 0] for found in nodes])
        return lambda number: _replace(mixed(number), known, draws.quantity(number)[places])

    def deviations_at_points(
        self,
        cascade: Cascade,
        points: Sequence[Array],
        *,
        spread: Collection[int] = (),
        smooth: bool = False,
        seed: int = 0,
    ) -> Callable[[int], Array]:
        """Return a function that draws the deviation of member i from the answers, at points."""
        draws, count = self._draws(cascade, seed), count_points(points, spread)
        hats = [hats_of(cascade, axis, query) for axis, query in enumerate(points)]
        between = UNSCALED.deviations_at_points(
            cascade, points, spread=spread, smooth=True, seed=other_seed(seed)
        )
        left = UNSCALED.variance_at_points(cascade, points, spread=spread, smooth=True)
        beside = interpolate_at_points(self.cells_in(cascade).left, hats, count, spread)
        pattern = point_pattern(cascade, points, spread, smooth)
        answers = point_answers(cascade, points, spread, smooth)
        added = self._between_variance(cascade, left, beside, pattern, answers)
        sizes = np.sqrt(added / np.maximum(left, _LEAST))
        mixed = mix_deviations(
            lambda number: interpolate_at_points(draws.field(number), hats, count, spread),
            lambda number: sizes * between(number),
            interpolate_at_points(np.sqrt(draws.field_variance), hats, count, spread),
            added,
            self.variance_at_points(cascade, points, spread=spread, smooth=smooth),
        )
        found = [cascade.find_nodes(axis, query, smooth) for axis, query in enumerate(points)]
        nodes = np.broadcast_arrays(*lay_out(found, spread))
        known = np.all([n >= 0 for n in nodes], axis=0)
        places = tuple(n[known] for n in nodes)
        return lambda number: _replace(mixed(number), known, draws.quantity(number)[places])

    def _between_variance(
        self,
        cascade: Cascade,
        left: Array,
        beside: Array,
        pattern: Sequence[Indices],
        answers: Callable[[], Array],
    ) -> Array:
        """Return what is added to the variance of the field between coordinates.

        `left` is what a complete grid leaves open, `beside` that at the coordinates around. Of what
        slices say the noise is taken off: the field has it.
        """
        nearest = self.scale * self.known_factors[0]
        told = self.slices.variance(cascade, left, pattern, answers)
        told -= nearest * (cascade.joint_ridge or 0.0)
        return np.maximum(np.maximum(nearest * (left - beside), 0.0), told)

    def _draws(self, cascade: Cascade, seed: int) -> _Draws:
        """Return draws of the deviation of every cell, in units of the data."""
        refuse_long([level.name for level in cascade.levels], cascade.shape)
        kernels, ridge = [level.kernel for level in cascade.levels], cascade.joint_ridge or 0.0
        observed, cells = self.observations.observed, self.cells_in(cascade)
        prior = make_field(cascade.coordinates, kernels, self.grouping)
        least, rest = split_noise(prior, observed, ridge, self.noise)
        draw = posterior_draws(prior, observed, least, (seed,), rest)
        return _Draws(draw, self.observations, cells, ridge, self.noise, seed)


@dataclass(frozen=True, eq=False)
class CellVariances:
    """Variances in the cells of a grid, in its shape.

    Attributes
    ----------
    sizes
        s^2 with the factor of the distance to data.
    field
        Variance of the field, with lambda: that of an answer between coordinates.
    own, own_sizes
        Variance of the quantity in the cell itself, and s^2 with its factor.
    left
        What a complete grid without errors leaves open at its coordinates, lambda included, in
        units of the kernels.
    """

    sizes: Array
    field: Array
    own: Array
    own_sizes: Array
    left: Array


@dataclass(frozen=True, eq=False)
class _Draws:
    """Draws of deviations from the answers in the cells of a grid.

    Attributes
    ----------
    draw
        Returns draw i of the field in units of the kernels.
    observations, cells, ridge, noise, seed
        What the draws are given, the variances, lambda, n, and the seed of the detail.
    """

    draw: Callable[[int], Array]
    observations: Observations
    cells: CellVariances
    ridge: float
    noise: Array
    seed: int

    @property
    def field_variance(self) -> Array:
        """Variance of the field."""
        return np.asarray(np.maximum(self.cells.field - self.cells.sizes * self.ridge, 0.0))

    def field(self, number: int) -> Array:
        """Return the deviation of the field."""
        return np.asarray(np.sqrt(self.cells.sizes) * self.draw(number))

    def quantity(self, number: int) -> Array:
        """Return the deviation of the quantity: of the field, and of the detail given the field."""
        observed = self.observations.observed
        share = np.where(observed, detail_share(self.ridge, self.noise), 0.0)
        spread = np.where(observed, self.noise * share, self.ridge)
        detail = np.random.default_rng([self.seed, number, 1]).standard_normal(spread.shape)
        drawn = (1.0 - share) * self.draw(number) + np.sqrt(spread) * detail
        return np.asarray(np.sqrt(self.cells.own_sizes) * drawn)


def _replace(values: Array, known: Mask | tuple[Indices, ...], cells: Array) -> Array:
    """Return values of which some are those of cells."""
    values[known] = cells
    return values


def noisy_field_variance(
    coordinates: Sequence[Array],
    kernels: Sequence[Kernel],
    grouping: Grouping,
    observed: Mask,
    ridge: float,
    noise: Array,
    draws: int = _DRAWS,
) -> Array:
    """Return the variance of the field in every cell given all observations, from draws.

    On a large grid blocks of neighbours are taken together, as one observation of the accuracy that
    they have together; the variance is interpolated between them. It is at most what the cell's
    own observation leaves.
    """
    strides = thinning(observed.shape)
    precision = np.zeros(observed.shape)
    np.divide(1.0, np.maximum(ridge + noise, _LEAST), out=precision, where=observed)
    axes = []
    for axis, (c, stride) in enumerate(zip(coordinates, strides, strict=True)):
        starts = np.arange(0, c.size, stride)
        precision = np.add.reduceat(precision, starts, axis)
        axes.append(c[np.minimum(starts + stride // 2, c.size - 1)])
    field, seen = make_field(axes, kernels, grouping), precision > 0
    together = np.zeros(seen.shape)
    np.divide(1.0, precision, out=together, where=seen)
    least, rest = split_noise(field, seen, 0.0, together)
    found = posterior_variance(field, seen, least, _SEED, rest, draws)
    if max(strides) > 1:
        rows = [
            None if stride == 1 else Hats.between(axis, c, kernel.period)
            for axis, c, kernel, stride in zip(axes, coordinates, kernels, strides, strict=True)
        ]
        found = apply(found, rows)
    prior = math.prod(kernel.variance for kernel in kernels)
    alone = prior * (ridge + noise) / (prior + ridge + noise)
    return np.asarray(np.where(observed, np.minimum(found, alone), found))
