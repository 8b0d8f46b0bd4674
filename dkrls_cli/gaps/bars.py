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
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Self
from weakref import WeakKeyDictionary

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask, Slices
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars import Z90, Bars, JointBars
from dkrls_cli.cascade.kernels import Kernel, pairs
from dkrls_cli.cascade.tensors import apply, contract, count_points, lay_out
from dkrls_cli.circle import wrap

# Smallest and largest gamma: beyond them few held-out cells decide alone.
_POWERS = (0.2, 1.5)

# Groups of held-out cells, by distance to data, on which gamma is fitted.
_GROUPS = 5

# Smallest variance of a missing cell and smallest determinant, as shares: keeps divisions finite.
_LEAST = 1e-12

# Cells worked on at once: they stay in the cache.
_AT_ONCE = 2**16

_UNSCALED = JointBars(error=1.0, scale=1.0)


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
    """

    unobserved: Mask
    scale: float
    power: float
    error: float
    _known: WeakKeyDictionary[Cascade, Array] = field(
        init=False, repr=False, default_factory=WeakKeyDictionary
    )

    @property
    def errors(self) -> Array:
        """Root mean square error on the cells held out (1,)."""
        return np.array([self.error])

    def distance_in(self, cascade: Cascade) -> Array:
        """Return how far every cell is from data, in the shape of the grid; 0 where observed.

        That is its variance given its neighbours, at most the prior variance (no neighbour near).
        It follows from the settings of the cascade, and is computed when first asked for.
        """
        if cascade not in self._known:
            kernels = [level.kernel for level in cascade.levels]
            ridge = cascade.joint_ridge or 0.0
            self._known[cascade] = distance(cascade.coordinates, kernels, ~self.unobserved, ridge)
        return self._known[cascade]

    def variance_blocks(
        self, cascade: Cascade, queries: Sequence[Array], *, smooth: bool = False
    ) -> Callable[[Slices], Array]:
        """Return a function that computes the variance of one block; 0 at observed cells."""
        between = _UNSCALED.variance_blocks(cascade, queries, smooth=True)
        hats = [_hats(cascade, axis, query) for axis, query in enumerate(queries)]
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
        between = _UNSCALED.variance_at_points(cascade, points, spread=spread, smooth=True)

        hats = [_hats(cascade, axis, query) for axis, query in enumerate(points)]
        single = [axis for axis in range(cascade.ndim) if axis not in spread]
        longest = max(single, key=lambda axis: cascade.shape[axis])

        def rows(axis: int, part: slice) -> Array:
            return hats[axis][part].dense(cascade.shape[axis])

        def lead(fibres: Array) -> Callable[[slice], Array]:
            return lambda part: hats[longest][part] @ fibres

        away = contract(
            self.distance_in(cascade),
            count_points(points, spread),
            rows,
            {},
            max(cascade.shape),
            {axis: hats[axis] for axis in spread},
            leading=(longest, lead),
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
        """Raise NotImplementedError: there are no draws for grids with missing cells."""
        raise NotImplementedError

    def with_unobserved(self, unobserved: Mask, axis: int) -> Bars:
        """Return these error bars: they know every missing cell."""
        return self

    def _scaled(self, cascade: Cascade, between: Array, away: Array) -> Array:
        """Return the variance of answers.

        `between` is the variance that a complete grid would leave there, ridge included, and
        `away` the distance to the observed cells.
        """
        ridge = cascade.joint_ridge or 0.0
        return np.asarray(self.scale * np.maximum(between, away + ridge) ** self.power)


def rescale(bars: Bars, unobserved: Mask) -> GapBars:
    """Return error bars of a joint ridge as wide as before, with other missing cells."""
    assert isinstance(bars, JointBars | GapBars)
    return GapBars(unobserved, bars.scale, bars.power, bars.error)


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


def _hats(cascade: Cascade, axis: int, query: Array) -> Hats:
    """Return rows of linear interpolation between the coordinates of a level."""
    return Hats.between(cascade.coordinates[axis], query, cascade.levels[axis].kernel.period)
