"""Fill missing cells of a grid with a long axis, in O(m) memory and time along it.

Under the joint ridge lambda, P = (K + lambda)^-1 of the whole grid is applied without any matrix of
the long axis: the other axes are diagonalised, and in each of their directions, of eigenvalue p,
the long axis is solved for with the factor of K + lambda / p
(:mod:`dkrls_cli.cascade.factors`). Three steps lead to the missing cells x_m:

1. Steps of the long axis without an observed cell, and columns without one, take no part: with the
   rest solved for they are predicted, which is exact. In a series of one dimension that is all.
2. The other missing cells solve P_mm x_m = -P_mo (y_o - mean), by conjugate gradients
   (:mod:`dkrls_cli.gaps.refine`) preconditioned by sweeps (:mod:`dkrls_cli.gaps.sweep`).
3. The completed grid has no weight on these cells, and its weights predict what was left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.cascade.factors.choice import LONG, estimate
from dkrls_cli.cascade.factors.levels import long_axis
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.spectrum import ROUND_OFF, Spectrum, decompose
from dkrls_cli.cascade.tensors import apply
from dkrls_cli.circle import wrap
from dkrls_cli.gaps.refine import Refined, settle
from dkrls_cli.gaps.sweep import build_sweep
from dkrls_cli.threads import one_blas_thread

_KEPT = 2**29
"""Bytes of factors that are kept, 512 MB; beyond, the factors are made again for every solve."""


def find_long_axis(coordinates: Sequence[Array], kernels: Sequence[Kernel]) -> int | None:
    """Return the axis that is solved for as a long level; None if none is.

    Raises
    ------
    SettingError
        If another axis is too long for a spectrum.
    """
    levels = [Level(f"axis {place}", kernel) for place, kernel in enumerate(kernels)]
    return long_axis(coordinates, levels)


def complete_long(
    values: Array,
    coordinates: Sequence[Array],
    kernels: Sequence[Kernel],
    long: int,
    ridge: float,
    mean: float,
    *,
    tolerance: float,
    limit: int,
    start: Array | None = None,
    spectra: Sequence[Spectrum | None] | None = None,
) -> Refined:
    """Fill the missing cells (NaN) of a grid, one axis of which is long.

    Parameters
    ----------
    values, coordinates, kernels
        The data, NaN where it is missing, at least one number; one of the others per axis.
    long
        The axis that is long.
    ridge, mean
        The joint ridge, and the value to which answers fall back far from data.
    tolerance, limit
        The solve stops when no cell changes by more than this share of the spread of the data, or
        after this many iterations.
    start
        The same grid completed with similar settings, to start the solve from.
    spectra
        Full spectra of the axes that are known already; that of the long one is not used.

    Returns
    -------
    Refined
        The filled grid, in the order of its axes.

    Examples
    --------
    >>> t = np.arange(2000.0)
    >>> values = np.sin(t / 20)
    >>> values[[70, 500, 501, 502]] = np.nan
    >>> kernel = Kernel("matern52", 30.0)
    >>> filled = complete_long(values, [t], [kernel], 0, 1e-9, 0.0, tolerance=1e-7, limit=99)
    >>> bool(np.abs(filled.values - np.sin(t / 20)).max() < 1e-4)
    True
    """
    order = np.argsort(wrap(coordinates[long], kernels[long].period))
    turned = np.moveaxis(values, long, 0)[order]
    begun = None if start is None else np.moveaxis(start, long, 0)[order]
    others = [axis for axis in range(values.ndim) if axis != long]
    known = spectra or [None] * values.ndim
    beside = [_Side(kernels[a], coordinates[a], known[a]) for a in others]
    with one_blas_thread():
        done = _complete(
            turned,
            _Side(kernels[long], coordinates[long][order]),
            beside,
            ridge,
            mean,
            begun,
            tolerance=tolerance,
            limit=limit,
        )
    filled = np.empty(turned.shape)
    filled[order] = done.values
    return Refined(np.moveaxis(filled, 0, long), done.iterations, done.change)


@dataclass(frozen=True, eq=False)
class _Side:
    """One axis of the grid: its kernel, coordinates, and spectrum if that is known."""

    kernel: Kernel
    coordinates: Array
    known: Spectrum | None = None

    @cached_property
    def gram(self) -> Array:
        return gram(self.kernel, self.coordinates, self.coordinates)

    @cached_property
    def spectrum(self) -> Spectrum:
        return self.known or decompose(self.gram)


def _complete(
    values: Array,
    long: _Side,
    beside: Sequence[_Side],
    ridge: float,
    mean: float,
    start: Array | None,
    *,
    tolerance: float,
    limit: int,
) -> Refined:
    """Fill the missing cells of a grid whose first axis is long and rises."""
    observed = np.isfinite(values)
    steps = _choose_steps(np.asarray(observed.reshape(len(observed), -1).any(axis=1)), long)
    columns = _choose_columns(np.asarray(observed.any(axis=0)), beside)
    grid = LongGrid(long.kernel, long.coordinates[steps], columns.spectra, ridge)
    data, seen = columns.take(values[steps]), columns.take(observed[steps])
    begun = np.full(data.shape, mean) if start is None else columns.take(start[steps])
    filled = np.where(seen, data, begun)
    missing = ~seen
    if missing.any():
        near = build_sweep(grid.kernel, grid.coordinates, grid.spectra, ridge, missing)
        done = settle(
            grid.precision, near.solve, filled, seen, mean, tolerance=tolerance, limit=limit
        )
    else:
        done = Refined(filled, 0, 0.0)
    result = np.where(observed, values, mean)
    if filled.size < values.size:
        weights = grid.precision(np.where(seen, data, done.values) - mean)
        answers = grid.answer(long.coordinates, weights)
        result = np.where(observed, values, columns.answer(answers) + mean)
    inside = result[steps]
    columns.put(inside, np.where(seen, data, done.values))
    result[steps] = inside
    return Refined(result, done.iterations, done.change)


class _Columns(Protocol):
    """The columns of a grid that are solved for: places of all axes but the first."""

    @property
    def spectra(self) -> tuple[Spectrum, ...]:
        """Spectra of the axes of the columns."""

    def take(self, grid: NDArray[Any]) -> NDArray[Any]:
        """Return a grid with these columns only."""

    def put(self, grid: Array, columns: Array) -> None:
        """Write columns to their places in a grid."""

    def answer(self, fibres: Array) -> Array:
        """Return the kernel between all columns and these, times fibres along these."""


@dataclass(frozen=True, eq=False)
class _AllColumns:
    """All columns of a grid, the axes of which stay apart."""

    sides: Sequence[_Side]

    @property
    def spectra(self) -> tuple[Spectrum, ...]:
        return tuple(side.spectrum for side in self.sides)

    def take(self, grid: NDArray[Any]) -> NDArray[Any]:
        return grid

    def put(self, grid: Array, columns: Array) -> None:
        grid[...] = columns

    def answer(self, fibres: Array) -> Array:
        return apply(fibres, [None, *(side.gram for side in self.sides)])


@dataclass(frozen=True, eq=False)
class _SomeColumns:
    """Some columns of a grid, as one axis."""

    sides: Sequence[_Side]
    seen: Mask

    @cached_property
    def places(self) -> tuple[Indices, ...]:
        """Places of the columns, one vector per axis."""
        return np.nonzero(self.seen)

    @cached_property
    def cross(self) -> Array:
        """The kernel between all columns and these (all, these)."""
        rows = [side.gram[:, place] for side, place in zip(self.sides, self.places, strict=True)]
        return reduce(lambda a, b: (a[:, None] * b).reshape(-1, a.shape[1]), rows)

    @cached_property
    def spectra(self) -> tuple[Spectrum, ...]:
        return (decompose(self.cross[self.seen.ravel()]),)

    def take(self, grid: NDArray[Any]) -> NDArray[Any]:
        return grid[:, self.seen]

    def put(self, grid: Array, columns: Array) -> None:
        grid[:, self.seen] = columns

    def answer(self, fibres: Array) -> Array:
        return (fibres @ self.cross.T).reshape(-1, *self.seen.shape)


def _choose_columns(seen: Mask, sides: Sequence[_Side]) -> _Columns:
    """Return the columns to solve for: those with an observed cell, unless they are too many."""
    count = int(np.count_nonzero(seen))
    return _AllColumns(sides) if count == seen.size or count > LONG else _SomeColumns(sides, seen)


def _choose_steps(seen: Mask, long: _Side) -> Indices:
    """Return the steps to solve for: those with an observed cell, if their kernel has a form."""
    steps = np.flatnonzero(seen)
    possible = estimate(long.kernel, long.coordinates[steps]) is not None
    return steps if possible else np.arange(seen.size)


@dataclass(frozen=True, eq=False)
class LongGrid:
    """C = K + ridge of a grid whose first axis is long, never formed.

    Attributes
    ----------
    kernel, coordinates
        Of the long axis; the coordinates rise.
    spectra
        Full spectra of the other axes.
    ridge
        The joint ridge.
    """

    kernel: Kernel
    coordinates: Array
    spectra: tuple[Spectrum, ...]
    ridge: float

    def precision(self, grid: Array) -> Array:
        """Return C^-1 times a grid."""
        bases = [spectrum.vectors for spectrum in self.spectra]
        modes = apply(grid, [None, *(basis.T for basis in bases)])
        fibres = modes.reshape(len(modes), -1)
        solved = np.empty(fibres.shape)
        for place, product in enumerate(self._products):
            own = slice(place, place + 1)
            solved[:, own] = self._factor(place).solve(fibres[:, own]) / product
        return apply(solved.reshape(modes.shape), [None, *bases])

    def answer(self, query: Array, weights: Array) -> Array:
        """Return the kernel of the long axis between queries and samples, times weights."""
        fibres = weights.reshape(len(weights), -1)
        return self._factor(0).answer(query, fibres).reshape(-1, *weights.shape[1:])

    @cached_property
    def _products(self) -> list[float]:
        """Eigenvalues of all directions of the other axes, none below round-off."""
        values = [spectrum.values for spectrum in self.spectra]
        products = reduce(np.multiply.outer, values, np.array(1.0)).ravel()
        floor = ROUND_OFF * float(products.max())
        return [float(p) for p in np.maximum(products, floor)]

    @cached_property
    def _known(self) -> dict[int, LongFactor]:
        return {}

    @cached_property
    def _keeps(self) -> bool:
        """Whether all factors together are small enough to be kept."""
        cost = estimate(self.kernel, self.coordinates)
        return cost is not None and cost.memory * len(self._products) <= _KEPT

    def _factor(self, place: int) -> LongFactor:
        """Return the factor of one direction of the other axes."""
        if place in self._known:
            return self._known[place]
        ridge = self.ridge / self._products[place]
        factor = LongFactor.build(self.kernel, self.coordinates, ridge)
        if self._keeps:
            self._known[place] = factor
        return factor
