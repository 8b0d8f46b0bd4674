"""The factor of a long level: any kernel in an O(m) form, with its constant and its cycle.

The samples stand in rising order here, whatever their order in the data. A kernel is a base of
unit variance plus a *trend*, F F' with few columns: a constant, and the harmonics of a cycle. With
B the base and the ridge, C = B + F F'. Trends enter by generalised least squares, which cancels
nothing: the trend of data y is F b with b = (I + F'B^-1 F)^-1 F'B^-1 y, and the weights are
B^-1 (y - F b).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import ClassVar, Self

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.factors.choice import build_base
from dkrls_cli.cascade.factors.factor import Factor
from dkrls_cli.cascade.kernels import CYCLE_SIGMA, Kernel
from dkrls_cli.circle import wrap

# Harmonics of a cycle: the next has a variance below 1e-16.
_HARMONICS = 11


@dataclass(frozen=True, eq=False)
class LongFactor:
    """The factor of a long level.

    Attributes
    ----------
    kernel
        The kernel, whole.
    coordinates
        Coordinates in the order of the data.
    base
        The factor of the kernel without its trend, on rising coordinates.
    """

    kernel: Kernel
    coordinates: Array
    base: Factor

    @classmethod
    def build(
        cls, kernel: Kernel, coordinates: Array, ridge: float, *, rough: bool = False
    ) -> Self:
        """Return the factor of a kernel on distinct coordinates in any order.

        A `rough` one is good enough for a score, where that saves time.
        """
        plain = replace(kernel, constant=0.0, cycle=None, warp=None)
        places = _places(kernel, coordinates)
        rising = places if _rises(places) else np.sort(places)
        return cls(kernel, coordinates, build_base(plain, rising, ridge, rough=rough))

    @property
    def ridge(self) -> float:
        """The number on the diagonal."""
        return self.base.ridge

    @property
    def rank(self) -> int:
        """Number of directions: all of them."""
        return self.coordinates.size

    def solve(self, right: Array) -> Array:
        """Return the weights C^-1 right (m, n) of data (m, n)."""
        weights = self.base.solve(right if self._order is None else right[self._order])
        if self._trend.size:
            weights -= self._solved_trend @ self._bound(self._trend.T @ weights)
        if self._order is None:
            return weights
        result = np.empty_like(weights)
        result[self._order] = weights
        return result

    def answer(self, query: Array, weights: Array) -> Array:
        """Return k(q, c) weights (q, n)."""
        return self.prepare(weights)(query)

    def prepare(self, weights: Array, order: int = 0) -> Callable[[Array], Array]:
        """Return a function that answers queries from the same weights (m, n) again and again.

        The answers are values, or derivatives of an `order` that the kernel has.
        """
        inside = weights if self._order is None else weights[self._order]
        base, trend = self.base.prepare(inside, order), self._trend.T @ inside

        def answer(query: Array) -> Array:
            result = base(_places(self.kernel, query))
            if trend.size:
                result += trend_columns(self.kernel, query, order) @ trend
            return result

        return answer

    def unexplained(self, query: Array, order: int = 0) -> Array:
        """Return k(q, q) - k' C^-1 k (q,), the variance that the samples leave, without noise.

        It is that of values, or of derivatives of an `order` that the kernel has.
        """
        places = _places(self.kernel, query)
        result = self.base.unexplained(places, order)
        if self._trend.size:
            told = self.base.prepare(self._solved_trend, order)(places)
            left = trend_columns(self.kernel, query, order) - told
            result += np.einsum("qp,pq->q", left, self._bound(left.T))
        return result

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of C^-1 (m,)."""
        diagonal = self.base.inverse_diagonal()
        if self._trend.size:
            seen = self._solved_trend
            diagonal = diagonal - np.einsum("mp,pm->m", seen, self._bound(seen.T))
        if self._order is None:
            return diagonal
        result = np.empty_like(diagonal)
        result[self._order] = diagonal
        return result

    def inverse_blocks(self, edges: Indices) -> list[Array]:
        """Return the blocks of C^-1 of neighbours, between consecutive edges from 0 to m.

        Edges count the samples in rising order.
        """
        blocks = self.base.inverse_blocks(edges)
        if not self._trend.size:
            return blocks
        parts = [self._solved_trend[slice(*ends)] for ends in pairwise(edges.tolist())]
        return [b - seen @ self._bound(seen.T) for b, seen in zip(blocks, parts, strict=True)]

    def rows(self, query: Array) -> LongRows:
        """Return k(q, c) (q, m) as an operator on weights."""
        return LongRows(self, query)

    def with_ridge(self, ridge: float) -> Self:
        """Return the factor of the same kernel with another ridge."""
        return type(self).build(self.kernel, self.coordinates, ridge)

    def extend(self, coordinates: Array) -> Self:
        """Return the factor with further samples behind its last."""
        together = np.concatenate([self.coordinates, coordinates])
        behind = together[self.coordinates.size - 1 :]
        if self.kernel.period is None and self._order is None and _rises(behind):
            longer = self.base.extend(self.kernel.warped(coordinates))
            return type(self)(self.kernel, together, longer)
        return type(self).build(self.kernel, together, self.ridge)

    @cached_property
    def _order(self) -> Indices | None:
        """Places of the samples in rising order; None if they rise."""
        places = _places(self.kernel, self.coordinates)
        return None if _rises(places) else np.argsort(places)

    @cached_property
    def _trend(self) -> Array:
        """F at the samples in rising order (m, p)."""
        return trend_columns(self.kernel, self.base.coordinates)

    @cached_property
    def _solved_trend(self) -> Array:
        """B^-1 F (m, p)."""
        return self.base.solve(self._trend)

    @cached_property
    def _root(self) -> Array:
        """The inverse of the Cholesky factor of I + F'B^-1 F."""
        among = np.eye(self._trend.shape[1]) + self._trend.T @ self._solved_trend
        return np.asarray(np.linalg.inv(np.linalg.cholesky((among + among.T) / 2)))

    def _bound(self, right: Array) -> Array:
        """Return (I + F'B^-1 F)^-1 right."""
        return np.asarray(self._root.T @ (self._root @ right))


@dataclass(frozen=True, eq=False)
class LongRows:
    """Kernel rows k(q, c) of a long level (q, m): an operator, as a matrix would be too large."""

    factor: LongFactor
    query: Array
    ndim: ClassVar[int] = 2

    def __len__(self) -> int:
        """Return the number of queries."""
        return self.query.size

    def __getitem__(self, part: slice) -> LongRows:
        """Return some of the rows."""
        return LongRows(self.factor, self.query[part])

    def __matmul__(self, weights: Array) -> Array:
        """Return the answers (q, n) of weights (m, n)."""
        return self.factor.answer(self.query, weights)


@dataclass(frozen=True, eq=False)
class LongAxis:
    """A tensor that is asked along one long axis: the data at its coordinates, else the model.

    The axis is solved for when a place between its coordinates is first asked for.
    """

    factor: LongFactor
    tensor: Array
    axis: int

    def at(self, query: Array, nodes: Indices) -> Array:
        """Return the tensor at queries along the axis; `nodes` are their coordinates, or -1."""
        result = np.empty((query.size, self._fibres.shape[1]))
        between = nodes < 0
        if between.any():
            result[between] = self._ask(query[between])
        result[~between] = self._fibres[nodes[~between]]
        others = np.moveaxis(self.tensor, self.axis, 0).shape[1:]
        return np.moveaxis(result.reshape(-1, *others), 0, self.axis)

    @cached_property
    def _fibres(self) -> Array:
        first = np.moveaxis(self.tensor, self.axis, 0)
        return first.reshape(len(first), -1)

    @cached_property
    def _ask(self) -> Callable[[Array], Array]:
        return self.factor.prepare(self.factor.solve(self._fibres))


@dataclass(frozen=True, eq=False)
class LongSmoother:
    """Rows (q, m) that answer along a long axis: units at its coordinates, else k(q, c) C^-1."""

    factor: LongFactor
    query: Array
    nodes: Indices
    ndim: ClassVar[int] = 2

    def __len__(self) -> int:
        """Return the number of queries."""
        return self.query.size

    def __getitem__(self, part: slice) -> LongSmoother:
        """Return some of the rows."""
        return LongSmoother(self.factor, self.query[part], self.nodes[part])

    def __matmul__(self, fibres: Array) -> Array:
        """Return the answers (q, n) from data (m, n)."""
        return LongAxis(self.factor, fibres, 0).at(self.query, self.nodes)


def _places(kernel: Kernel, coordinates: Array) -> Array:
    """Return the coordinates that distances are measured in, within one turn of a circle."""
    return wrap(kernel.warped(coordinates), kernel.period)


def _rises(coordinates: Array) -> bool:
    return bool((coordinates[1:] > coordinates[:-1]).all())


def trend_columns(kernel: Kernel, coordinates: Array, order: int = 0) -> Array:
    """Return F (n, p) of constant and cycle, columns scaled by the root of their variance.

    With an `order` the columns are derivatives by the coordinate.
    """
    columns = []
    if kernel.cycle is not None:
        # exp(-c (1 - cos a)) = e^-c (I_0(c) + 2 sum of I_k(c) cos(k a)), c of a chord's Gaussian.
        from scipy.special import ive

        sharpness = 1.0 / (2 * math.pi * CYCLE_SIGMA) ** 2
        angles = 2 * math.pi * (coordinates / kernel.cycle % 1.0)
        for harmonic in range(_HARMONICS + 1):
            size = math.sqrt((1 + (harmonic > 0)) * kernel.swing * float(ive(harmonic, sharpness)))
            size *= (2 * math.pi * harmonic / kernel.cycle) ** order
            turned = harmonic * angles + order * (math.pi / 2)
            columns.append(size * np.cos(turned))
            if harmonic:
                columns.append(size * np.sin(turned))
    if kernel.constant:
        columns.append(np.full(coordinates.size, 0.0 if order else math.sqrt(kernel.constant)))
    return np.stack(columns, axis=1) if columns else np.empty((coordinates.size, 0))
