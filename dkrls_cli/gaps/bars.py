"""Error bars of models of grids with missing cells.

The exact variance at a missing cell takes a solve per cell. An approximation is used instead: the
variance given only the nearest observed cells before and after it along every axis. Under a product
of kernels it has a closed form: with v_l the variance given the neighbours along axis l alone, as a
share of the prior variance, the variance given all neighbours is

    1 / (1 + sum_l (1 / v_l - 1))

of the prior variance. It grows with the distance to data in every direction, and less where one
direction helps. The cells held out while the settings were chosen relate it to real errors: the
variance of an answer is s^2 (v + lambda)^gamma, with gamma such that it grows with v as the squared
errors do, and s such that the 90 % band holds 90 % of the cells held out.

In holes, where the nearest cells are far and others count as much, the variance comes from random
fields (:mod:`dkrls_cli.gaps.samples`), times a factor for every power of two of the distance to
data, such that the bands hold what they promise next to data and in the middle of a hole alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import ClassVar, Self
from weakref import WeakKeyDictionary

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask, Slices
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars import Z90, Bars, JointBars
from dkrls_cli.cascade.kernels import Kernel, pairs
from dkrls_cli.cascade.tensors import apply, contract, count_points, lay_out
from dkrls_cli.circle import wrap
from dkrls_cli.errors import SettingError
from dkrls_cli.gaps.field import NO_GROUPS, Field, Grouping, make_field
from dkrls_cli.gaps.pattern import distance_to_data
from dkrls_cli.gaps.samples import DRAWS, posterior_draws, posterior_variance, thinning

# Smallest and largest gamma: beyond them few held-out cells decide alone.
_POWERS = (0.2, 1.5)

# Groups of held-out cells, by distance to data, on which gamma is fitted.
_GROUPS = 5

# Draws, and cells in all of them, that the spread of members is measured by.
_FEWEST_DRAWS, _MEASURED = 4, 4000

# Cells of a group that the spread of members is measured in.
_IN_A_GROUP = 50

# Smallest variance of a missing cell and smallest determinant, as shares: keeps divisions finite.
_LEAST = 1e-12

# Distance in cells below which a cell lies beside data.
_BESIDE = 2.0

# Cells worked on at once: they stay in the cache.
_AT_ONCE = 2**16

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
    """

    unobserved: Mask
    scale: float
    power: float
    error: float
    grouping: Grouping = NO_GROUPS
    factors: tuple[float, ...] | Callable[[], tuple[float, ...]] | None = None
    _known: WeakKeyDictionary[Cascade, Array] = field(
        init=False, repr=False, default_factory=WeakKeyDictionary
    )

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
                    cascade.coordinates, kernels, self.grouping, observed, ridge, near
                )
                near = scale_by_distance(whole + ridge, observed, self.hole_factors)
            self._known[cascade] = near
        return self._known[cascade]

    def variance_blocks(
        self, cascade: Cascade, queries: Sequence[Array], *, smooth: bool = False
    ) -> Callable[[Slices], Array]:
        """Return a function that computes the variance of one block; 0 at observed cells."""
        between = UNSCALED.variance_blocks(cascade, queries, smooth=True)
        hats = [hats_of(cascade, axis, query) for axis, query in enumerate(queries)]
        nodes = [cascade.find_nodes(axis, query, smooth) for axis, query in enumerate(queries)]
        distances = self.distance_in(cascade)

        def variance(part: Slices) -> Array:
            away = apply(distances, [hat[p] for hat, p in zip(hats, part, strict=True)])
            result = self._scaled(cascade, between(part), away)
            here = [n[p] for n, p in zip(nodes, part, strict=True)]
            known = [np.flatnonzero(n >= 0) for n in here]
            cells = np.ix_(*[n[k] for n, k in zip(here, known, strict=True)])
            result[np.ix_(*known)] *= self.unobserved[cells]
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
        between = UNSCALED.variance_at_points(cascade, points, spread=spread, smooth=True)

        hats = [hats_of(cascade, axis, query) for axis, query in enumerate(points)]
        away = interpolate_at_points(
            self.distance_in(cascade), hats, count_points(points, spread), spread
        )
        result = self._scaled(cascade, between, away)
        found = [cascade.find_nodes(axis, query, smooth) for axis, query in enumerate(points)]
        nodes = np.broadcast_arrays(*lay_out(found, spread))
        known = np.all([n >= 0 for n in nodes], axis=0)
        result[known] *= self.unobserved[tuple(n[known] for n in nodes)]
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
        between = UNSCALED.deviations(cascade, queries, smooth=True, seed=other_seed(seed))
        left = UNSCALED.variance_blocks(cascade, queries, smooth=True)(whole)
        variance = self.variance_blocks(cascade, queries, smooth=smooth)(whole)
        sizes = self._between_sizes(cascade, left)
        sizes[np.ix_(*[found >= 0 for found in nodes])] = 0.0
        spread = apply(np.sqrt(self._cell_variance(cascade)), hats)
        return mix_deviations(
            lambda number: apply(draw(number), hats),
            lambda number: sizes * between(number),
            spread,
            sizes**2 * left,
            variance,
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
        between = UNSCALED.deviations_at_points(
            cascade, points, spread=spread, smooth=True, seed=other_seed(seed)
        )
        left = UNSCALED.variance_at_points(cascade, points, spread=spread, smooth=True)
        found = [cascade.find_nodes(axis, query, smooth) for axis, query in enumerate(points)]
        known = np.broadcast_arrays(*lay_out([nodes >= 0 for nodes in found], spread))
        sizes = self._between_sizes(cascade, left)
        sizes[np.all(known, axis=0)] = 0.0
        variance = self.variance_at_points(cascade, points, spread=spread, smooth=smooth)
        wide = interpolate_at_points(np.sqrt(self._cell_variance(cascade)), hats, count, spread)
        return mix_deviations(
            lambda number: interpolate_at_points(draw(number), hats, count, spread),
            lambda number: sizes * between(number),
            wide,
            sizes**2 * left,
            variance,
        )

    def _between_sizes(self, cascade: Cascade, left: Array) -> Array:
        """Return the factor from draws of a complete grid, of the variance `left`, to errors."""
        scaled = self._scaled(cascade, left, np.zeros(()))
        return np.sqrt(scaled / np.maximum(left, _LEAST))

    def _cell_variance(self, cascade: Cascade) -> Array:
        """Return the variance of every cell of the grid; 0 where observed."""
        away = self.distance_in(cascade)
        found = self._scaled(cascade, np.zeros(()), away)
        return np.where(self.unobserved, found, 0.0)

    def _cell_draws(self, cascade: Cascade, seed: int) -> Callable[[int], Array]:
        """Return a function that draws the deviation of every cell, 0 where observed."""
        refuse_long([level.name for level in cascade.levels], cascade.shape)
        kernels, ridge = [level.kernel for level in cascade.levels], cascade.joint_ridge or 0.0
        observed = ~self.unobserved
        field = make_field(cascade.coordinates, kernels, self.grouping)
        draw = posterior_draws(field, observed, ridge, (seed,))
        wide = self._widths(cascade, field, ridge)

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

    def _scaled(self, cascade: Cascade, between: Array, away: Array) -> Array:
        """Return the variance of answers.

        `between` is the variance that a complete grid would leave there, ridge included, and
        `away` the distance to the observed cells.
        """
        if self.hole_factors:
            return np.maximum(self.hole_factors[0] * between, away)
        ridge = cascade.joint_ridge or 0.0
        return np.asarray(self.scale * np.maximum(between, away + ridge) ** self.power)


def refuse_long(names: Sequence[str], sizes: Sequence[int]) -> None:
    """Raise SettingError if members cannot be drawn along dimensions of these sizes."""
    for name, size in zip(names, sizes, strict=True):
        if size > _LONGEST:
            raise SettingError(
                f"'{name}' has {size} coordinates, and members of a grid with missing cells are "
                f"drawn along {_LONGEST} at most. Fit a part of it, or ask for standard errors.",
                setting="std",
            )


def rescale(bars: Bars, unobserved: Mask) -> GapBars:
    """Return error bars of a joint ridge as wide as before, with other missing cells."""
    if isinstance(bars, GapBars):
        return replace(bars, unobserved=unobserved)
    assert isinstance(bars, JointBars)
    return GapBars(unobserved, bars.scale, bars.power, bars.error)


def scale_by_distance(variance: Array, observed: Mask, factors: Sequence[float]) -> Array:
    """Return the variance of missing cells times the factor of their distance; 0 where observed."""
    away = distance_to_data(observed)
    return np.asarray(np.where(observed, 0.0, distance_factors(away, factors) * variance))


def distance_factors(away: Array, factors: Sequence[float]) -> Array:
    """Return the factor of every cell by its distance to data in cells.

    Between two powers of two the logarithm of the factor is interpolated.
    """
    powers = np.log2(np.maximum(away, 1.0))
    return np.asarray(np.exp(np.interp(powers, np.arange(len(factors)) + 0.5, np.log(factors))))


def field_variance(
    coordinates: Sequence[Array],
    kernels: Sequence[Kernel],
    grouping: Grouping,
    observed: Mask,
    ridge: float,
    near: Array,
) -> Array:
    """Return the variance of every cell given all observed ones, from draws.

    On a large grid the draws have fewer cells, and the variance is at most `near`, that given the
    nearest cells along each axis, which is taken as it is beside data: between two observed cells
    the draws have no variance.
    """
    strides = thinning(observed.shape)
    thin = tuple(slice(None, None, stride) for stride in strides)
    axes = [c[part] for c, part in zip(coordinates, thin, strict=True)]
    drawn = posterior_variance(make_field(axes, kernels, grouping), observed[thin], ridge, _SEED)
    if max(strides) == 1:
        return drawn
    filled = np.where(observed[thin], near.min(initial=0.0), drawn)
    rows = [
        None if stride == 1 else Hats.between(axis, c, kernel.period)
        for axis, c, kernel, stride in zip(axes, coordinates, kernels, strides, strict=True)
    ]
    beside = distance_to_data(observed) < _BESIDE
    return np.where(beside, near, np.minimum(near, apply(filled, rows)))


def _drawn_shares(field: Field, observed: Mask, ridge: float, away: Array) -> Array:
    """Return the variance of draws at missing cells (n,), ridge included, as a share of `away`.

    `away` is the variance given the nearest cells only, ridge included. All observed cells tell
    more than these. Some draws are compared with it, in groups of cells equally far from data.
    """
    count = min(DRAWS, max(_FEWEST_DRAWS, -(-_MEASURED // away.size)))
    drawn = posterior_variance(field, observed, ridge, _SEED, draws=count)[~observed]
    order = np.argsort(away, kind="stable")
    groups = np.array_split(order, min(_GROUPS, -(-away.size // _IN_A_GROUP)))
    far = np.array([np.log(away[group]).mean() for group in groups])
    shares = [((drawn[group] + ridge) / away[group]).mean() for group in groups]
    logs = np.log(np.maximum(shares, _LEAST))
    return np.asarray(np.exp(np.interp(np.log(away), far, logs)))


def distance(
    coordinates: Sequence[Array], kernels: Sequence[Kernel], observed: Mask, ridge: float
) -> Array:
    """Return the variance of every missing cell given its neighbours; 0 where observed."""
    precision = np.zeros(observed.shape)
    prior = math.prod(kernel.variance for kernel in kernels)
    for axis, (kernel, nodes) in enumerate(zip(kernels, coordinates, strict=True)):
        order = np.argsort(wrap(nodes, kernel.period))
        similar = partial(_similarity, kernel, nodes[order])
        for part in _beside(observed.shape, axis):
            seen = np.moveaxis(observed[part], axis, 0)[order]
            gaps = np.nonzero(~seen)
            before, after = (n[gaps] for n in _neighbours(seen, circle=kernel.period is not None))
            found = _precision(similar, gaps[0], before, after, ridge / prior)
            np.moveaxis(precision[part], axis, 0)[(order[gaps[0]], *gaps[1:])] += found
    precision += 1.0
    result = np.divide(prior, precision, out=precision)
    np.maximum(result, _LEAST * prior, out=result)
    result[observed] = 0.0
    return result


def _similarity(kernel: Kernel, nodes: Array, one: Indices, other: Indices) -> Array:
    """Return the kernel between nodes, as a share of its variance; 0 for a node that there is not.

    An index equal to the number of nodes means that there is none.
    """
    result = np.zeros(one.shape)
    both = np.flatnonzero((one < nodes.size) & (other < nodes.size))
    result[both] = pairs(kernel, nodes[one[both]], nodes[other[both]]) / kernel.variance
    return result


def _beside(shape: Sequence[int], axis: int) -> Iterator[Slices]:
    """Yield parts of a grid that are whole along one axis and small enough for the cache."""
    whole = [slice(None)] * len(shape)
    others = [other for other in range(len(shape)) if other != axis]
    if not others:
        yield tuple(whole)
        return
    cut = max(others, key=lambda other: shape[other])
    step = max(1, _AT_ONCE * shape[cut] // math.prod(shape))
    for start in range(0, shape[cut], step):
        yield (*whole[:cut], slice(start, start + step), *whole[cut + 1 :])


def _precision(
    similar: Callable[[Indices, Indices], Array],
    here: Indices,
    before: Indices,
    after: Indices,
    ridge: float,
) -> Array:
    """Return the precision that two neighbours along an axis add to a cell.

    That is k' D^-1 k, with D the covariance of the neighbours given the cell. `similar` returns the
    similarity of pairs of places along the axis, 0 where there is no neighbour on that side.
    """
    one, other, both = similar(here, before), similar(here, after), similar(before, after)
    lone = before == after
    other[lone] = both[lone] = 0.0
    left, right, shared = 1.0 + ridge - one**2, 1.0 + ridge - other**2, both - one * other
    spread = np.maximum(left * right - shared**2, _LEAST * (ridge + _LEAST))
    found = (one**2 * right - 2 * one * other * shared + other**2 * left) / spread
    return np.asarray(np.maximum(found, 0.0))


def _neighbours(observed: Mask, *, circle: bool) -> tuple[Indices, Indices]:
    """Return indices along the first axis of the nearest observed cells before and after.

    Where there is none the index is the size of the axis.
    """
    size = len(observed)
    turns = np.concatenate([observed] * 3) if circle else observed
    places = np.arange(len(turns)).reshape(-1, *[1] * (observed.ndim - 1))
    before = np.maximum.accumulate(np.where(turns, places, -1), axis=0)
    after = np.minimum.accumulate(np.where(turns, places, len(turns))[::-1], axis=0)[::-1]
    if circle:  # a turn before and a turn after
        before, after = before[size : 2 * size], after[size : 2 * size]
        never = ~observed.any(axis=0)
        return np.where(never, size, before % size), np.where(never, size, after % size)
    return np.where(before < 0, size, before), after


def calibrated(reached: Array, missed: Array) -> tuple[float, float]:
    """Return s^2 and gamma, from the distances to data of cells held out and their errors.

    Gamma is such that the width of the band fits near the data and far from it alike.
    """
    squares = missed**2
    if not squares.any():
        return 0.0, 1.0
    groups = np.array_split(np.argsort(reached, kind="stable"), min(_GROUPS, squares.size))
    far = np.array([np.log(reached[group]).mean() for group in groups])
    wide = np.log([_upper_tenth(squares[group]) + _LEAST * squares.max() for group in groups])
    far -= far.mean()
    slope = float(far @ wide / (far @ far)) if np.ptp(far) > 0.1 else 1.0
    power = min(max(slope, _POWERS[0]), _POWERS[1])
    return _upper_tenth(squares / reached**power) / Z90**2, power


def _upper_tenth(squares: Array) -> float:
    """Return the value that nine of ten further squares would stay below."""
    return float(np.quantile(squares, min(1.0, 0.9 * (1.0 + 1.0 / squares.size))))


@dataclass(frozen=True, eq=False)
class Hats:
    """Rows (q, m) of linear interpolation: each has two numbers, so no matrix is stored.

    Attributes
    ----------
    left, right
        Places between which each query lies (q,).
    share
        Share of the right one, 0 to 1 (q,).
    """

    left: Indices
    right: Indices
    share: Array
    ndim: ClassVar[int] = 2

    @classmethod
    def between(cls, coordinates: Array, query: Array, period: float | None) -> Self:
        """Return the rows of queries; beyond the coordinates, the value of the last."""
        there, here = (wrap(c, period) for c in (coordinates, query))
        order = np.argsort(there)
        places = there[order]
        if period is not None:
            order = np.concatenate([order[-1:], order, order[:1]])
            places = np.concatenate([places[-1:] - period, places, places[:1] + period])
        if places.size == 1:
            none = np.zeros(query.size, np.intp)
            return cls(none, none, np.zeros(query.size))
        right = np.clip(np.searchsorted(places, here), 1, places.size - 1)
        share = (here - places[right - 1]) / (places[right] - places[right - 1])
        return cls(order[right - 1], order[right], np.clip(share, 0.0, 1.0))

    def __len__(self) -> int:
        """Return the number of queries."""
        return self.share.size

    def __getitem__(self, part: slice) -> Hats:
        """Return some of the rows."""
        return Hats(self.left[part], self.right[part], self.share[part])

    def __matmul__(self, fibres: Array) -> Array:
        """Return fibres (m, n) interpolated (q, n)."""
        share = self.share[:, None]
        return np.asarray((1.0 - share) * fibres[self.left] + share * fibres[self.right])

    def dense(self, size: int) -> Array:
        """Return the rows as a matrix (q, m)."""
        rows, each = np.zeros((len(self), size)), np.arange(len(self))
        np.add.at(rows, (each, self.left), 1.0 - self.share)
        np.add.at(rows, (each, self.right), self.share)
        return rows


def interpolate_at_points(
    cells: Array, hats: Sequence[Hats], count: int, spread: Collection[int]
) -> Array:
    """Return values of cells interpolated at points; axes in `spread` are no part of these."""
    single = [axis for axis in range(cells.ndim) if axis not in spread]
    longest = max(single, key=lambda axis: cells.shape[axis])

    def rows(axis: int, part: slice) -> Array:
        return hats[axis][part].dense(cells.shape[axis])

    def lead(fibres: Array) -> Callable[[slice], Array]:
        return lambda part: hats[longest][part] @ fibres

    return contract(
        cells,
        count,
        rows,
        {},
        max(cells.shape),
        {axis: hats[axis] for axis in spread},
        leading=(longest, lead),
    )


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
    wide = np.where(left > 0, np.sqrt(variance / whole), 1.0)
    return lambda number: wide * (of_cells(number) + between(number))


def other_seed(seed: int) -> int:
    """Return the seed of what is independent of the draws with a seed."""
    return int(np.random.SeedSequence([seed, 2]).generate_state(1, np.uint64)[0])


def hats_of(cascade: Cascade, axis: int, query: Array) -> Hats:
    """Return rows of linear interpolation between the coordinates of a level."""
    return Hats.between(cascade.coordinates[axis], query, cascade.levels[axis].kernel.period)
