"""Roots of covariances along one axis: S of independent numbers is a draw with the covariance S S'.

A root is a matrix, from an eigendecomposition: it exists for any covariance, also a singular one,
and unlike eigenvectors it depends on no signs. It is made for 4,096 places at most. Many places
along a Matern level on a line are drawn in O(m), by the Cholesky factor of
:mod:`dkrls_cli.cascade.factors.quasiseparable`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.factors.levels import AnyFactor
from dkrls_cli.cascade.factors.long import LongFactor, trend_columns
from dkrls_cli.cascade.factors.markov import is_markov
from dkrls_cli.cascade.factors.quasiseparable import Quasiseparable
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.tensors import apply
from dkrls_cli.threads import one_blas_thread

FEW = 1024
"""Places with a dense root where there is a choice: 8 MB, and less than a second."""

LARGEST = 4096
"""Places with a dense root where there is none: 134 MB, and up to a minute of one core."""

# Up to this size one thread decomposes fastest, and is not slowed down by other processes.
_SMALL = 1024

# Numbers that are worked on at once: 32 MB.
_AT_ONCE = 2**22


@dataclass(frozen=True, eq=False)
class MappedRows:
    """Rows (n, width) that are known as a function of what they are applied to.

    Attributes
    ----------
    size
        Number of rows.
    function
        Returns the products (n, columns) with fibres (width, columns).
    """

    size: int
    function: Callable[[Array], Array]
    ndim: ClassVar[int] = 2

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.size

    def __getitem__(self, part: slice) -> MappedRows:
        """Return some of the rows."""
        size = len(range(*part.indices(self.size)))
        return MappedRows(size, lambda fibres: self.function(fibres)[part])

    def __matmul__(self, fibres: Array) -> Array:
        """Return the products (n, columns) with fibres (width, columns)."""
        return self.function(fibres)


@dataclass(frozen=True, eq=False)
class Root:
    """A root S (n, width) of the covariance S S' of n places.

    Attributes
    ----------
    rows
        S, as a matrix or as what acts like one.
    width
        How many independent numbers make a draw.
    excess
        White noise in the covariance that a factor cannot do without: round-off of the variance.
    """

    rows: Array | MappedRows
    width: int
    excess: float = 0.0

    def __len__(self) -> int:
        """Return the number of places."""
        return len(self.rows)

    def times(self, sizes: Array) -> Root:
        """Return the root with every place (n,) multiplied by its size."""
        rows, column = self.rows, sizes[:, None]
        if isinstance(rows, np.ndarray):
            return Root(column * rows, self.width)
        return Root(MappedRows(len(rows), lambda white: column * (rows @ white)), self.width)

    def with_noise(self, variance: float) -> Root:
        """Return the root with independent noise of this variance at every place."""
        if not variance:
            return self
        own, size = self.width, math.sqrt(variance)

        def draw(white: Array) -> Array:
            return np.asarray(self.rows @ white[:own] + size * white[own:])

        return Root(MappedRows(len(self), draw), own + len(self))

    def within(self, here: Indices, size: int) -> Root:
        """Return the root of `size` places, of which only these vary."""
        if here.size == size:
            return self

        def draw(white: Array) -> Array:
            result = np.zeros((size, white.shape[1]))
            result[here] = self.rows @ white
            return result

        return Root(MappedRows(size, draw), self.width)


def draw_field(rng: np.random.Generator, roots: Sequence[Root]) -> Array:
    """Return a draw whose covariance is the product of those of the roots, one along each axis."""
    white = rng.standard_normal([root.width for root in roots])
    return apply(white, [root.rows for root in roots])


def correlation_root(matrix: Array) -> Root:
    """Return the symmetric root of a correlation matrix, its rows scaled to a variance of 1.

    Directions that round-off makes negative are left out, which makes no row shorter than 1.

    Examples
    --------
    >>> root = correlation_root(np.array([[1.0, 0.6], [0.6, 1.0]])).rows
    >>> (root @ root.T).round(12).tolist()
    [[1.0, 0.6], [0.6, 1.0]]
    """
    with one_blas_thread() if len(matrix) <= _SMALL else nullcontext():
        values, vectors = np.linalg.eigh(matrix)
    live = values > 0
    kept = vectors[:, live]
    rows = (kept * np.sqrt(values[live])) @ kept.T
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    return Root(rows, len(rows))


def correlate(covariance: Array, variance: Array) -> Array:
    """Return the correlation of a covariance matrix, these variances taken for its diagonal.

    Places without variance correlate with none. The matrix is overwritten.
    """
    known = variance > 0
    width = np.where(known, np.sqrt(variance), 1.0)
    covariance /= width[:, None]
    covariance /= width
    covariance[~known] = 0.0
    covariance[:, ~known] = 0.0
    np.fill_diagonal(covariance, known)
    return np.clip(covariance, -1.0, 1.0, out=covariance)  # of tiny variances only rounding is left


def markov_root(kernel: Kernel, coordinates: Array) -> Root:
    """Return a root of a Matern kernel on a line, at distinct coordinates, in O(m)."""
    order = np.argsort(coordinates)
    plain = replace(kernel, constant=0.0, cycle=None, warp=None)
    factor = Quasiseparable.build(plain, kernel.warped(coordinates[order]), 0.0)
    trend, size = trend_columns(kernel, coordinates), coordinates.size

    def draw(white: Array) -> Array:
        result = trend @ white[size:]
        result[order] += factor.colour(white[:size])
        return result

    return Root(MappedRows(size, draw), size + trend.shape[1], factor.ridge)


def kernel_root(kernel: Kernel, coordinates: Array) -> Root:
    """Return a root of a kernel at distinct coordinates, in O(m) if it is Markov."""
    if coordinates.size > FEW and is_markov(kernel):
        return markov_root(kernel, coordinates)
    root = correlation_root(gram(kernel, coordinates, coordinates) / kernel.variance)
    return root.times(np.full(coordinates.size, math.sqrt(kernel.variance)))


@dataclass(frozen=True, eq=False)
class Samples:
    """The samples of one level, and what they leave open at other coordinates.

    Attributes
    ----------
    kernel, ridge
        Kernel and ridge of the level.
    coordinates
        Coordinates of the samples (m,).
    factor
        Factor of the level; None if there are no samples.
    """

    kernel: Kernel
    ridge: float
    coordinates: Array
    factor: AnyFactor | None

    def open_covariance(self, query: Array) -> Array:
        """Return K(q, q) - k C^-1 k' (q, q)."""
        result = gram(self.kernel, query, query)
        if self.factor is None:
            return result
        if isinstance(self.factor, LongFactor):
            step = max(8, _AT_ONCE // self.coordinates.size)
            for start in range(0, query.size, step):
                part = slice(start, start + step)
                cross = gram(self.kernel, self.coordinates, query[part])
                result[:, part] -= self.explain(query, cross)
            return (result + result.T) / 2
        rows = gram(self.kernel, query, self.coordinates) @ self.factor.vectors
        result -= (rows / (self.factor.values + self.ridge)) @ rows.T
        return result

    def open_root(self, query: Array, variance: Array) -> Root:
        """Return a root of K(q, q) - k C^-1 k' for a kernel that is Markov, in O(m).

        It is a draw of the prior less what noisy samples of that draw predict (Matheron's rule).
        The excess of the prior is a part of their noise, and adds to the open variance (q,), which
        is known: its rows are scaled to that.
        """
        count = self.coordinates.size
        union, where = np.unique(np.append(self.coordinates, query), return_inverse=True)
        prior = markov_root(self.kernel, union)
        noise = math.sqrt(max(self.ridge - prior.excess, 0.0))

        def draw(white: Array) -> Array:
            drawn = prior.rows @ white[: prior.width]
            data = drawn[where[:count]] + noise * white[prior.width :]
            return drawn[where[count:]] - self.explain(query, data)

        root = Root(MappedRows(query.size, draw), prior.width + count)
        return root.times(np.sqrt(variance / (variance + prior.excess)))

    def explain(self, query: Array, data: Array) -> Array:
        """Return k(q, c) C^-1 data (q, n) of data (m, n)."""
        assert self.factor is not None
        if isinstance(self.factor, LongFactor):
            return self.factor.answer(query, self.factor.solve(data))
        solved = self.factor.solve(self.ridge, data)
        result = np.empty((query.size, data.shape[1]))
        step = max(1, _AT_ONCE // self.coordinates.size)
        for start in range(0, query.size, step):
            part = slice(start, start + step)
            rows = gram(self.kernel, query[part], self.coordinates) @ self.factor.vectors
            result[part] = rows @ solved
        return result
