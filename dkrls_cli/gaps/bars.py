"""Error bars of models of grids with missing cells.

The exact variance at a missing cell takes a solve per cell. An approximation is used instead: the
variance v given only the nearest observed cells before and after it along every axis
(:mod:`dkrls_cli.gaps.calibration.nearest`). The cells held out while the settings were chosen
relate it to real errors: the variance of an answer is s^2 (v + lambda)^gamma, with gamma such that
it grows with v as the squared errors do, and s such that the 90 % band holds 90 % of the cells held
out (:mod:`dkrls_cli.gaps.calibration.widths`).

In holes, where the nearest cells are far and others count as much, the variance comes from random
fields (:mod:`dkrls_cli.gaps.samples`), times a factor for every power of two of the distance to
data, such that the bands hold what they promise next to data and in the middle of a hole alike.

Everywhere the variance is larger where observed cells around are missed by more than usual
(:mod:`dkrls_cli.gaps.calibration.local`).

Between coordinates there are whole slices without data, which hidden cells say nothing of. What a
complete grid leaves open there is scaled by slices left out of the completed grid
(:mod:`dkrls_cli.cascade.calibration.folds`), and the variance of the cells around is added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any
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
from dkrls_cli.cascade.errorbars.bars import Bars
from dkrls_cli.cascade.errorbars.joint import JointBars
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.tensors import apply, count_points
from dkrls_cli.errors import SettingError
from dkrls_cli.gaps.calibration.local import left_out_errors, local_scale, usual_error
from dkrls_cli.gaps.calibration.nearest import distance
from dkrls_cli.gaps.calibration.widths import scale_by_distance
from dkrls_cli.gaps.field import NO_GROUPS, Field, Grouping, make_field
from dkrls_cli.gaps.pattern import distance_to_data
from dkrls_cli.gaps.preconditioner import lasting_axis
from dkrls_cli.gaps.samples import (
    DRAWS,
    count_draws,
    posterior_draws,
    posterior_variance,
    thinning,
)

# Groups of missing cells, by distance to data, in which the spread of members is measured.
_GROUPS = 5

# Draws, and cells in all of them, that the spread of members is measured by.
_FEWEST_DRAWS, _MEASURED = 4, 4000

# Cells of a grid of which draws cost so little that there are enough to tell its cells apart.
_FEW_CELLS = 20_000

# Cells of a group that the spread of members is measured in.
_IN_A_GROUP = 50

# Smallest variance, as a share: keeps divisions finite.
_LEAST = 1e-12

# Distance in cells below which a cell lies beside data.
_BESIDE = 2.0

# Coordinates of a dimension along which members are drawn: their matrix takes 32 MB.
_LONGEST = 2048

# Seed of the draws behind error bars: the same model has the same error bars.
_SEED = (2019,)

UNSCALED = JointBars(error=1.0, scale=1.0)
"""Error bars of a complete grid in units of the kernels."""


@dataclass(frozen=True, eq=False)
class GapBars:
    """Error bars of a model of a grid with missing cells.

    Attributes
    ----------
    unobserved
        Which cells are missing, in the shape of the grid.
    scale, power
        s^2 and gamma.
    error
        Root mean square error on the cells held out.
    grouping
        Axes that share one distance.
    factors
        Factor of the variance in holes, for every power of two of the distance to data in cells, or
        a function that returns them when they are first needed; None: there are no holes.
    between
        How large errors are between coordinates, if that was measured on data that the model no
        longer holds; None: it is measured when first asked for.
    is_local
        Whether the variance has a local scale.
    usual
        Error of cells left out that the local scale is relative to, if the grid is a part of
        another; None: the mean of its own cells.
    local
        The local scale of missing cells (n,), if it was measured on data that the model no longer
        holds; None: it is measured when first asked for.
    """

    unobserved: Mask
    scale: float
    power: float
    error: float
    grouping: Grouping = NO_GROUPS
    factors: tuple[float, ...] | Callable[[], tuple[float, ...]] | None = None
    between: BetweenScale | None = None
    is_local: bool = False
    usual: float | None = None
    local: Array | None = None
    _known: WeakKeyDictionary[Cascade, Array] = field(
        init=False, repr=False, default_factory=WeakKeyDictionary
    )
    _scales: WeakKeyDictionary[Cascade, Array] = field(
        init=False, repr=False, default_factory=WeakKeyDictionary
    )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what was calibrated: what follows from it is computed anew where it is needed."""
        given = {each.name: getattr(self, each.name) for each in fields(self) if each.init}
        return GapBars, tuple((given | {"factors": self.hole_factors or None}).values())

    @cached_property
    def hole_factors(self) -> tuple[float, ...]:
        """The factors in holes; none if there are no holes."""
        return self.factors() if callable(self.factors) else self.factors or ()

    @property
    def errors(self) -> Array:
        """Root mean square error on the cells held out (1,)."""
        return np.array([self.error])

    def expand(self, shape: Sequence[int], places: Sequence[int]) -> GapBars:
        """Return these error bars on a grid with more axes, of one coordinate each.

        `places` are those of the present axes in the new grid.
        """
        groups = tuple(tuple(places[axis] for axis in group) for group in self.grouping.axes)
        unobserved = self.unobserved.reshape(tuple(shape))
        return replace(self, unobserved=unobserved, grouping=replace(self.grouping, axes=groups))

    def distance_in(self, cascade: Cascade) -> Array:
        """Return how far every cell is from data, in the shape of the grid; 0 where observed.

        That is its variance given its neighbours, at most the prior variance (no neighbour near);
        in a grid with holes its variance from draws, scaled. It follows from the settings of the
        cascade, and is computed when first asked for.
        """
        if cascade not in self._known:
            kernels = [level.kernel for level in cascade.levels]
            observed, ridge = ~self.unobserved, cascade.joint_ridge or 0.0
            near = distance(cascade.coordinates, kernels, observed, ridge)
            if self.hole_factors:
                whole = field_variance(
                    cascade.coordinates,
                    kernels,
                    self.grouping,
                    observed,
                    ridge,
                    near,
                    watched=_beside_data(observed),
                )
                near = scale_by_distance(whole + ridge, observed, self.hole_factors)
            self._known[cascade] = near
        return self._known[cascade]

    @cached_property
    def slices(self) -> BetweenErrors:
        """Errors between coordinates."""
        return BetweenErrors(self.unobserved, self.between)

    def between_sizes(self, cascade: Cascade, left: Array, pattern: Sequence[Indices]) -> Array:
        """Return the factor from what a complete grid leaves open for values, `left`, to errors."""
        return self.slices.scale_in(cascade).sizes(left, pattern)

    def measured_in(self, cascade: Cascade) -> GapBars:
        """Return these error bars as they are measured on the data of a cascade."""
        local = self.local_scale_in(cascade)[self.unobserved] if self.is_local else None
        return replace(self, between=self.slices.scale_in(cascade), local=local)

    def with_local(self, local: Array | None) -> GapBars:
        """Return these error bars with a local scale of missing cells, or None, that was measured.

        What follows from the settings alone is shared.
        """
        other = replace(self, local=local)
        object.__setattr__(other, "_known", self._known)
        return other

    def usual_in(self, cascade: Cascade) -> float | None:
        """Return the error that the local scale is relative to; None if there is no such scale."""
        return usual_error(_errors_in(cascade), ~self.unobserved) if self.is_local else None

    def local_scale_in(self, cascade: Cascade) -> Array:
        """Return the factor of the variance of every cell, in the shape of the grid.

        It is 1 if there is no local scale, and in a model that has lost the data to measure it by.
        It is computed when first asked for.
        """
        if cascade not in self._scales:
            self._scales[cascade] = self._measure_scale(cascade)
        return self._scales[cascade]

    def _measure_scale(self, cascade: Cascade) -> Array:
        result = np.ones(self.unobserved.shape)
        if self.local is not None:
            result[self.unobserved] = self.local
            return result
        is_long = any(cascade.is_long(axis) for axis in range(cascade.ndim))
        if not self.is_local or is_long or cascade.compact or cascade.is_stand_in:
            return result
        return local_scale(_errors_in(cascade), ~self.unobserved, self.usual)

    def variance_blocks(
        self, cascade: Cascade, queries: Sequence[Array], *, smooth: bool = False
    ) -> Callable[[Slices], Array]:
        """Return a function that computes the variance of one block; 0 at observed cells."""
        hats = [hats_of(cascade, axis, query) for axis, query in enumerate(queries)]
        nodes = [cascade.find_nodes(axis, query, smooth) for axis, query in enumerate(queries)]
        cells = self._cell_variance(cascade)
        if all((found >= 0).all() for found in nodes):
            return lambda part: cells[np.ix_(*[n[p] for n, p in zip(nodes, part, strict=True)])]
        left = UNSCALED.variance_blocks(cascade, queries, smooth=True)

        def variance(part: Slices) -> Array:
            pattern = grid_pattern([n[p] for n, p in zip(nodes, part, strict=True)])
            answers = grid_answers(cascade, queries, smooth, part)
            result = self.slices.variance(cascade, left(part), pattern, answers)
            result += apply(cells, [hat[p] for hat, p in zip(hats, part, strict=True)])
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
        hats = [hats_of(cascade, axis, query) for axis, query in enumerate(points)]
        count = count_points(points, spread)
        result = interpolate_at_points(self._cell_variance(cascade), hats, count, spread)
        left = UNSCALED.variance_at_points(cascade, points, spread=spread, smooth=True)
        pattern = point_pattern(cascade, points, spread, smooth)
        answers = point_answers(cascade, points, spread, smooth)
        result += self.slices.variance(cascade, left, pattern, answers)
        return result

    def deviations(
        self, cascade: Cascade, queries: Sequence[Array], *, smooth: bool = False, seed: int = 0
    ) -> Callable[[int], Array]:
        """Return a function that draws the deviation of member i from the answers, on a grid.

        Missing cells are drawn from their posterior (:mod:`dkrls_cli.gaps.samples`), with noise,
        and interpolated between coordinates, where what a complete grid would leave open is added.
        """
        whole = tuple(slice(0, query.size) for query in queries)
        nodes = [cascade.find_nodes(axis, query, smooth) for axis, query in enumerate(queries)]
        draw = self._cell_draws(cascade, seed)
        if all((found >= 0).all() for found in nodes):
            return lambda number: draw(number)[np.ix_(*nodes)]
        hats = [hats_of(cascade, axis, query) for axis, query in enumerate(queries)]
        draw_between = UNSCALED.deviations(cascade, queries, smooth=True, seed=other_seed(seed))
        left = UNSCALED.variance_blocks(cascade, queries, smooth=True)(whole)
        answers = grid_answers(cascade, queries, smooth, whole)
        added = self.slices.variance(cascade, left, grid_pattern(nodes), answers)
        sizes = np.sqrt(added / np.maximum(left, _LEAST))
        spread = apply(np.sqrt(self._cell_variance(cascade)), hats)
        return mix_deviations(
            lambda number: apply(draw(number), hats),
            lambda number: sizes * draw_between(number),
            spread,
            added,
            self.variance_blocks(cascade, queries, smooth=smooth)(whole),
        )

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
        draw = self._cell_draws(cascade, seed)
        hats = [hats_of(cascade, axis, query) for axis, query in enumerate(points)]
        count = count_points(points, spread)
        draw_between = UNSCALED.deviations_at_points(
            cascade, points, spread=spread, smooth=True, seed=other_seed(seed)
        )
        left = UNSCALED.variance_at_points(cascade, points, spread=spread, smooth=True)
        pattern = point_pattern(cascade, points, spread, smooth)
        answers = point_answers(cascade, points, spread, smooth)
        added = self.slices.variance(cascade, left, pattern, answers)
        sizes = np.sqrt(added / np.maximum(left, _LEAST))
        wide = interpolate_at_points(np.sqrt(self._cell_variance(cascade)), hats, count, spread)
        return mix_deviations(
            lambda number: interpolate_at_points(draw(number), hats, count, spread),
            lambda number: sizes * draw_between(number),
            wide,
            added,
            self.variance_at_points(cascade, points, spread=spread, smooth=smooth),
        )

    def _cell_variance(self, cascade: Cascade) -> Array:
        """Return the variance of every cell of the grid; 0 where observed."""
        away = self.distance_in(cascade)
        if not self.hole_factors:
            away = self.scale * (away + (cascade.joint_ridge or 0.0)) ** self.power
        return np.where(self.unobserved, away * self.local_scale_in(cascade), 0.0)

    def _cell_draws(self, cascade: Cascade, seed: int) -> Callable[[int], Array]:
        """Return a function that draws the deviation of every cell, 0 where observed."""
        refuse_long([level.name for level in cascade.levels], cascade.shape)
        kernels, ridge = [level.kernel for level in cascade.levels], cascade.joint_ridge or 0.0
        observed = ~self.unobserved
        field = make_field(cascade.coordinates, kernels, self.grouping)
        draw = posterior_draws(field, observed, ridge, (seed,))
        wide = self._widths(cascade, field, ridge) * np.sqrt(self.local_scale_in(cascade))

        def deviation(number: int) -> Array:
            noise = np.random.default_rng([seed, number, 1]).standard_normal(observed.shape)
            return wide * (draw(number) + math.sqrt(ridge) * noise)

        return deviation

    def _widths(self, cascade: Cascade, field: Field, ridge: float) -> Array:
        """Return the factor from draws in units of the kernels to errors; 0 where observed."""
        observed = ~self.unobserved
        result = np.zeros(observed.shape)
        if self.hole_factors:
            result = scale_by_distance(result + 1.0, observed, self.hole_factors)
            if max(thinning(observed.shape)) == 1:  # the bars are from such draws themselves
                return np.sqrt(result)
        if observed.all():
            return result
        away = self.distance_in(cascade)[self.unobserved]
        if self.hole_factors:
            scale = result[self.unobserved]
            away = np.maximum(away / scale, _LEAST)
        else:
            away = np.maximum(away + ridge, _LEAST)
            scale = self.scale * away ** (self.power - 1.0)
        result[self.unobserved] = np.sqrt(scale / _drawn_shares(field, observed, ridge, away))
        return result

    def with_unobserved(self, unobserved: Mask, axis: int) -> Bars:
        """Return these error bars: they know every missing cell."""
        return self


def _errors_in(cascade: Cascade) -> Array:
    """Return by how much every cell of a model differs from what all others say of it."""
    rows = [cascade.data_rows(axis, np.arange(size)) for axis, size in enumerate(cascade.shape)]
    values = apply(np.asarray(cascade.core, np.float64), rows) - cascade.mean
    return left_out_errors(values, cascade.spectra, cascade.joint_ridge or 0.0)


def refuse_long(names: Sequence[str], sizes: Sequence[int], *, linear: bool = False) -> None:
    """Raise SettingError if members cannot be drawn along dimensions of these sizes.

    Standard errors of means and derivatives (`linear`) are drawn as well; those of values are not.
    """
    for name, size in zip(names, sizes, strict=True):
        if size > _LONGEST and linear:
            raise SettingError(
                f"'{name}' has {size} coordinates, and standard errors and members of means and "
                f"derivatives of a grid with missing cells are drawn along {_LONGEST} at most. Fit "
                "a part of it, ask for the answers alone, or fill the grid first, land as well."
            )
        if size > _LONGEST:
            raise SettingError(
                f"'{name}' has {size} coordinates, and members of a grid with missing cells are "
                f"drawn along {_LONGEST} at most. Fit a part of it, or ask for standard errors.",
                setting="std",
            )


def rescale(bars: Bars, unobserved: Mask) -> GapBars:
    """Return error bars of a joint ridge as wide as before, with other missing cells."""
    if isinstance(bars, GapBars):
        return replace(bars, unobserved=unobserved, local=None)
    assert isinstance(bars, JointBars)
    return GapBars(unobserved, bars.scale, bars.power, bars.error)


def field_variance(
    coordinates: Sequence[Array],
    kernels: Sequence[Kernel],
    grouping: Grouping,
    observed: Mask,
    ridge: float,
    near: Array,
    draws: int | None = None,
    watched: Mask | None = None,
) -> Array:
    """Return the variance of every cell given all observed ones, from draws.

    On a large grid the draws have fewer cells, and the variance is at most `near`, that given the
    nearest cells along each axis, which is taken as it is beside data: between two observed cells
    the draws have no variance. `watched` are the cells that are asked for, if not all.
    """
    strides = thinning(observed.shape)
    thin = tuple(slice(None, None, stride) for stride in strides)
    axes = [c[part] for c, part in zip(coordinates, thin, strict=True)]
    prior = make_field(axes, kernels, grouping)
    asked = None if watched is None or not watched[thin].any() else watched[thin]
    count = draws or count_draws(observed[thin].size)
    drawn = posterior_variance(prior, observed[thin], ridge, _SEED, draws=count, watched=asked)
    if max(strides) == 1:
        return drawn
    filled = np.where(observed[thin], near.min(initial=0.0), drawn)
    rows = [
        None if stride == 1 else Hats.between(axis, c, kernel.period)
        for axis, c, kernel, stride in zip(axes, coordinates, kernels, strides, strict=True)
    ]
    beside = distance_to_data(observed) < _BESIDE
    return np.where(beside, near, np.minimum(near, apply(filled, rows)))


def _beside_data(observed: Mask) -> Mask:
    """Return the missing cells that are not missing all along the axis that the mask lasts along.

    Those that are, such as land, need not decide when a draw has been solved for. It is then off by
    a few percent of its spread there, far less than the mean of the draws errs by.
    """
    axis = lasting_axis(observed)
    missing = ~observed
    if axis is None:
        return missing
    beside = missing & observed.any(axis=axis, keepdims=True)
    return beside if beside.any() else missing


def _drawn_shares(field: Field, observed: Mask, ridge: float, away: Array) -> Array:
    """Return the variance of draws at missing cells (n,), ridge included, as a share of `away`.

    `away` is the variance given the nearest cells only, ridge included. All observed cells tell
    more than these. Some draws are compared with it, in groups of cells equally far from data. What
    a cell differs from its group by counts for as much as it is more than chance.
    """
    count = min(DRAWS, max(_FEWEST_DRAWS, -(-_MEASURED // away.size)))
    if observed.size <= _FEW_CELLS:
        count = max(count, count_draws(observed.size))
    drawn = posterior_variance(field, observed, ridge, _SEED, draws=count)[~observed]
    order = np.argsort(away, kind="stable")
    groups = np.array_split(order, min(_GROUPS, -(-away.size // _IN_A_GROUP)))
    far = np.array([np.log(away[group]).mean() for group in groups])
    own = (drawn + ridge) / away
    shares = [own[group].mean() for group in groups]
    logs = np.interp(np.log(away), far, np.log(np.maximum(shares, _LEAST)))
    apart = np.log(np.maximum(own, _LEAST)) - logs
    by_chance = 2.0 / count  # variance of the logarithm of a mean of so many squares
    real = max(0.0, float(np.mean(apart**2)) - by_chance)
    return np.asarray(np.exp(logs + real / (real + by_chance) * apart))


def mix_deviations(
    of_cells: Callable[[int], Array],
    between: Callable[[int], Array],
    spread: Array,
    left: Array,
    variance: Array,
) -> Callable[[int], Array]:
    """Return a function that draws sums of two deviations, scaled to a variance.

    `spread` is the standard deviation of the first, `left` the variance of the second: 0 at cells,
    which have the first alone, as it is.
    """
    whole = np.maximum(spread**2 + left, np.finfo(float).tiny)
    wide = np.sqrt(variance / whole)
    return lambda number: wide * (of_cells(number) + between(number))


def other_seed(seed: int) -> int:
    """Return the seed of what is independent of the draws with a seed."""
    return int(np.random.SeedSequence([seed, 2]).generate_state(1, np.uint64)[0])
