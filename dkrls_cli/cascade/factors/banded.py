"""Kernels that end within few coordinates: K + ridge is a band, in blocks that touch neighbours.

With blocks at least as long as the band is wide, C = K + ridge is block-tridiagonal, of blocks D_i
on its diagonal and E_i below, and so is its Cholesky factor, of blocks L_i and X_i:

    L_i L_i' = D_i - X_(i-1) X_(i-1)',   X_i = E_i L_i'^-1

L_i is lower triangular, and X_i has nothing on or below its diagonal, because E_i is the corner of
a band: both fit in one square. The diagonal blocks of the inverse come from the last to the first
as sums of squares, P_i = L_i'^-1 (I + T_i) L_i^-1, T_i = X_i' P_(i+1) X_i (Takahashi's recursion).
No L_i is inverted where a triangular solve will do: with explicit inverses the error of answers
grows as ridge^-1.5 instead of 1 / ridge.

On a circle the coordinates are taken from both ends in turn, 0, m-1, 1, m-2 ..., which makes a band
of twice the width without corners.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.factors.factor import COLUMNS, Cost
from dkrls_cli.cascade.factors.reach import BLOCK, LEAST_BLOCK, product, runs, windows
from dkrls_cli.cascade.functionals.derivatives import derivative_gram, derivative_variance
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.circle import wrap

# Least eigenvalue of C that Cholesky is trusted with, in units of the kernel's variance. Answers
# for white noise differ from those in the eigenbasis by 1e-14 / ridge at a sigma of 10 steps, and
# by 3e-14 / ridge at 40: less than ten times the ridge changes them.
LEAST_EIGENVALUE = 1e-12

# Inverse iterations that tell the least eigenvalue to within a factor of 2 or so.
_ITERATIONS = 8


@dataclass(frozen=True, eq=False)
class Banded:
    """C = K + ridge of a kernel that reaches few coordinates.

    Attributes
    ----------
    ridge
        Ridge worked with: raised to LEAST_EIGENVALUE, or until Cholesky's method ends, where C
        would else be nearly singular.
    order
        Indices of the coordinates in the order of the blocks (m,).
    size
        Coordinates in a block; the last block may have fewer.
    blocks
        For each block i the square that has L_i on and below its diagonal and X_i above.
    """

    kernel: Kernel
    coordinates: Array
    ridge: float
    order: Indices
    size: int
    blocks: tuple[Array, ...]

    @classmethod
    def build(cls, kernel: Kernel, coordinates: Array, ridge: float) -> Self:
        """Return the factor of a kernel that ends within the coordinates' range.

        Examples
        --------
        >>> days = np.arange(1000.0)
        >>> factor = Banded.build(Kernel(sigma=3.0), days, 1e-5)
        >>> factor.answer(np.array([500.5]), factor.solve(np.sin(days)[:, None])).round(3)
        array([[-0.834]])
        >>> np.sin(500.5).round(3)
        np.float64(-0.834)
        """
        order, size = _order(kernel, coordinates), _block_size(kernel, coordinates)
        return cls(kernel, coordinates, ridge, order, size, ())._completed()

    def solve(self, right: Array) -> Array:
        """Return C^-1 right, (m, n) -> (m, n)."""
        ordered = right[self.order]
        parts = [ordered[rows] for rows in self._rows]
        for i, block in enumerate(self.blocks):
            if i:
                parts[i] = parts[i] - _beside(self.blocks[i - 1], len(block)) @ parts[i - 1]
            parts[i] = _forward(block, parts[i])
        for i, block in reversed(list(enumerate(self.blocks))):
            if i + 1 < len(parts):
                parts[i] = parts[i] - _beside(block, len(parts[i + 1])).T @ parts[i + 1]
            parts[i] = _backward(block, parts[i])
        ordered[self.order] = np.concatenate(parts)
        return ordered

    def answer(self, query: Array, weights: Array) -> Array:
        """Return k(query, coordinates) @ weights, (q,), (m, n) -> (q, n)."""
        return product(self.kernel, query, self.coordinates, weights)

    def prepare(self, weights: Array, order: int = 0) -> Callable[[Array], Array]:
        """Return a function that answers queries from the same weights (m, n) again and again.

        The answers are values, or derivatives of an `order`.
        """
        return lambda query: product(self.kernel, query, self.coordinates, weights, order)

    def unexplained(self, query: Array, order: int = 0) -> Array:
        """Return k(0) - k' C^-1 k at any coordinates, (q,) -> (q,), never negative.

        It is that of values, or of derivatives of an `order`.
        """
        last = np.minimum(self._first_block(query) + 2, len(self.blocks) - 1)
        by_block = np.argsort(last, kind="stable")
        explained = np.empty(query.size)
        for run in runs(last[by_block], max(1, BLOCK // (3 * self.size))):
            rows = by_block[run]
            explained[rows] = self._explained(query[rows], int(last[rows[0]]), order)
        return np.maximum(derivative_variance(self.kernel, order) - explained, 0.0)

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of C^-1, (m,)."""
        diagonal = np.empty(self.coordinates.size)
        for rows, block, tail in zip(self._rows, self.blocks, self._tails, strict=True):
            inverse = _forward(block, np.eye(len(block)))
            diagonal[self.order[rows]] = np.einsum("ji,ji->i", inverse, inverse + tail @ inverse)
        return diagonal

    def inverse_blocks(self, edges: Indices) -> list[Array]:
        """Return the diagonal blocks of C^-1 between consecutive edges, from 0 to m."""
        position = np.argsort(self.order)
        return [self._inverse(position[start:end]) for start, end in pairwise(edges)]

    def extend(self, coordinates: Array) -> Self:
        """Return the factor with further coordinates behind the last.

        On a line all blocks stay but the last two, unless the band has become wider.
        """
        longer = np.concatenate([self.coordinates, coordinates])
        size = _block_size(self.kernel, longer)
        if self.kernel.period is not None or size != self.size:
            return self.build(self.kernel, longer, self.ridge)
        order = np.arange(longer.size)
        known = replace(self, coordinates=longer, order=order, blocks=self.blocks[:-2])
        return known._completed()

    @cached_property
    def _rows(self) -> tuple[slice, ...]:
        """Positions of each block."""
        starts = range(0, self.coordinates.size, self.size)
        return tuple(slice(start, start + self.size) for start in starts)

    @cached_property
    def _tails(self) -> tuple[Array, ...]:
        """T_i of each block: what the blocks behind it add to its block of the inverse."""
        tails = [np.zeros_like(self.blocks[-1])]
        for i in reversed(range(len(self.blocks) - 1)):
            block = self.blocks[i + 1]
            beside = _forward(block, _beside(self.blocks[i], len(block)))
            tails.append(beside.T @ (beside + tails[-1] @ beside))
        return tuple(reversed(tails))

    def _places(self, i: int) -> Array:
        """Return the coordinates of a block."""
        return self.coordinates[self.order[self._rows[i]]]

    def _completed(self) -> Self:
        """Return the factor with all its blocks, and with a ridge that lets them be found."""
        try:
            factor = self._with_blocks()
        except np.linalg.LinAlgError:
            singular = True
        else:
            trusted = self.ridge >= LEAST_EIGENVALUE
            singular = not trusted and factor._least_eigenvalue() < LEAST_EIGENVALUE
        if not singular:
            return factor
        more = LEAST_EIGENVALUE if self.ridge < LEAST_EIGENVALUE else 10 * self.ridge
        return replace(self, ridge=more, blocks=())._completed()

    def _with_blocks(self) -> Self:
        """Return the factor with the blocks that it lacks."""
        blocks = list(self.blocks)
        for i in range(len(blocks), len(self._rows)):
            here = self._places(i)
            left = gram(self.kernel, here, here)
            left[np.diag_indices(here.size)] += self.ridge
            if i:
                beside = _beside(blocks[i - 1], here.size)
                left -= beside @ beside.T
            block = np.asarray(np.linalg.cholesky(left), np.float64)
            if i + 1 < len(self._rows):
                corner = np.triu(gram(self.kernel, self._places(i + 1), here), 1)
                block[: len(corner)] += np.triu(_forward(block, corner.T).T, 1)
            blocks.append(block)
        return replace(self, blocks=tuple(blocks))

    def _least_eigenvalue(self) -> float:
        """Return the least eigenvalue of C, or somewhat more, by inverse iteration."""
        vector = np.random.default_rng(0).standard_normal((self.coordinates.size, 1))
        for _ in range(_ITERATIONS):
            vector = self.solve(vector / np.linalg.norm(vector))
        return 1.0 / float(np.linalg.norm(vector))

    def _first_block(self, query: Array) -> Indices:
        """Return the first of the three blocks that hold all coordinates in reach of a query."""
        nodes = np.sort(wrap(self.coordinates, self.kernel.period))
        low, high = windows(self.kernel, wrap(query, self.kernel.period), nodes)
        position = np.argsort(_turns(self.kernel, nodes.size))
        # windows past an end of a circle hold node 0 or m - 1, which are in the first block
        ends = position[np.clip(np.stack([low, high - 1]), 0, nodes.size - 1)]
        return np.asarray(ends.min(axis=0) // self.size)

    def _explained(self, query: Array, last: int, order: int) -> Array:
        """Return k' C^-1 k = |L^-1 k|^2 of queries that see the block `last` and two before it."""
        explained, beside = np.zeros(query.size), np.zeros((1, query.size))
        for i in range(max(last - 2, 0), last + 1):
            rows = derivative_gram(self.kernel, query, self._places(i), order).T - beside
            rows = _forward(self.blocks[i], rows)
            explained += np.einsum("iq,iq->q", rows, rows)
            if i < last:
                beside = _beside(self.blocks[i], len(self.blocks[i + 1])) @ rows
        explained += np.einsum("iq,iq->q", rows, self._tails[last] @ rows)
        return explained

    def _inverse(self, positions: Indices) -> Array:
        """Return the rows and columns of C^-1 at some positions.

        From the last block of them to the first: (C^-1)_i,j = -L_i'^-1 X_i' (C^-1)_(i+1),j, j > i.
        """
        inverse = np.empty((positions.size, positions.size))
        known, across = np.empty(0, np.intp), np.empty((0, 0))  # columns, and their rows of block i
        for i in reversed(range(positions.min() // self.size, positions.max() // self.size + 1)):
            block = self.blocks[i]
            if known.size:
                across = -_backward(block, _beside(block, len(across)).T @ across)
            mine = np.flatnonzero(positions // self.size == i)
            within = positions[mine] - i * self.size
            own = _forward(block, np.eye(len(block))[:, within])
            own = _backward(block, own + self._tails[i] @ own)
            inverse[np.ix_(mine, mine)] = own[within]
            if known.size:
                inverse[np.ix_(mine, known)] = across[within]
                inverse[np.ix_(known, mine)] = across[within].T
                own = np.hstack([across, own])
            known, across = np.concatenate([known, mine]), own
        return inverse


def cost(kernel: Kernel, coordinates: Array) -> Cost | None:
    """Return what the factor takes, or None if the kernel reaches a third of the coordinates.

    Examples
    --------
    >>> cost(Kernel(sigma=1e3), np.arange(1000.0)) is None
    True
    """
    size, count = _block_size(kernel, coordinates), coordinates.size
    if 3 * size > count:
        return None
    return Cost(16 * size * count, count * (12.0 * size**2 + 8.0 * COLUMNS * size))


def _block_size(kernel: Kernel, coordinates: Array) -> int:
    """Return how many coordinates make a block: the band, and the places between two nodes."""
    nodes = np.sort(wrap(coordinates, kernel.period))
    neighbours = int(np.max(windows(kernel, nodes, nodes)[1] - np.arange(nodes.size))) - 1
    return max(LEAST_BLOCK, (1 if kernel.period is None else 2) * neighbours + 2)


def _order(kernel: Kernel, coordinates: Array) -> Indices:
    """Return the indices of the coordinates in the order of the blocks."""
    by_place = np.argsort(wrap(coordinates, kernel.period), kind="stable")
    return by_place[_turns(kernel, coordinates.size)]


def _turns(kernel: Kernel, size: int) -> Indices:
    """Return 0, 1, 2 ... on a line, and 0, m-1, 1, m-2 ... on a circle."""
    count = np.arange(size)
    if kernel.period is None:
        return count
    return np.where(count % 2, size - 1 - count // 2, count // 2)


def _beside(block: Array, rows: int) -> Array:
    """Return X_i: the first rows of a square, above its diagonal."""
    return np.triu(block[:rows], 1)


def _forward(block: Array, right: Array) -> Array:
    """Return L_i^-1 right: BLAS sees the transpose of arrays in C's order and solves X L' = B."""
    from scipy.linalg.blas import dtrsm

    return np.asarray(dtrsm(1.0, block.T, right.T, side=1).T)


def _backward(block: Array, right: Array) -> Array:
    """Return L_i'^-1 right."""
    from scipy.linalg.blas import dtrsm

    return np.asarray(dtrsm(1.0, block.T, right.T, side=1, trans_a=1).T)
