"""Matern kernels on a line: exact solves in O(m), by a blockwise quasiseparable Cholesky factor.

Samples stand in blocks of 64. What earlier blocks say of a later one passes through the few states
of the kernel (:mod:`dkrls_cli.cascade.factors.markov`) at the edge where the block begins. With U,
V and Phi of one block, K its own Gram matrix and P the covariance of the states that earlier blocks
explain (0 at first), from the first block to the last

    L = chol(K + ridge - U P U'),  X = L^-1 (V - U P Phi'),  P <- Phi P Phi' + X'X,

which is the Cholesky factor of C with everything below the blocks written as U Phi ... Phi X'. In
covariance form nothing is inverted but L, so sigmas of a thousand steps and uneven steps lose about
as many digits as in a dense factor. Solves, answers and variances are products with the blocks,
all at once, and two recursions over the states at the edges.

Blocks of equal steps have the same matrices as soon as P has settled: one factor then serves all of
them, and the cost of the factor no longer depends on m.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.factors.blocks import BLOCK, Block, Shape, Stack, change_of, factor_block
from dkrls_cli.cascade.factors.factor import Cost
from dkrls_cli.cascade.factors.markov import STATES, before, behind, is_markov
from dkrls_cli.cascade.functionals.derivatives import derivative_pairs, derivative_variance
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.circle import is_even

LEAST_RIDGE = 1e-12
"""Ridge, as a share of the variance, below which a block can lose its positive eigenvalues.

That is round-off of 64 samples, and some; Matern 5/2 on uneven steps may need ten times that.
"""

AT_ONCE = 2**22
"""Numbers that are worked on at once: 32 MB."""

# P is settled when the covariance that it explains changes by less than this share of the variance,
# far less than the ridge, and no longer falls: then it is round-off, which every block has.
_SETTLED, _ROUGHLY_SETTLED = 1e-13, 1e-8


def cost(kernel: Kernel, coordinates: Array) -> Cost | None:
    """Return what the factor costs, None if the kernel has no states."""
    if not is_markov(kernel):
        return None
    distinct = BLOCK * BLOCK if is_even(coordinates) else coordinates.size * BLOCK
    numbers = distinct + coordinates.size * 3 * STATES[kernel.family]
    return Cost(8 * numbers, 4.0 * numbers * BLOCK)


@dataclass(frozen=True, eq=False)
class Quasiseparable:
    """The factor of a Matern kernel on coordinates that rise.

    Attributes
    ----------
    kernel, coordinates, ridge
        The level; a ridge below 1e-12 is raised to that, and further until all blocks can be
        factorised.
    inverse
        L^-1 of every block.
    right
        X of every block.
    left, ahead
        U and V of every block.
    phi
        Phi of every block.
    explained
        P at the beginning of every block.
    """

    kernel: Kernel
    coordinates: Array
    ridge: float
    inverse: Stack
    right: Stack
    left: Stack
    ahead: Stack
    phi: Stack
    explained: Stack

    @classmethod
    def build(
        cls, kernel: Kernel, coordinates: Array, ridge: float, *, rough: bool = False
    ) -> Self:
        """Return the factor of a kernel on rising coordinates.

        A `rough` one has even blocks share their matrices earlier: good enough for a score.
        """
        start = np.zeros((STATES[kernel.family],) * 2)
        settled = _ROUGHLY_SETTLED if rough else _SETTLED
        try:
            return cls._assemble(kernel, coordinates, ridge, [], start, settled=settled)
        except np.linalg.LinAlgError:  # a block has lost its positive eigenvalues to round-off
            more = 10 * max(ridge, LEAST_RIDGE)
            return cls.build(kernel, coordinates, more, rough=rough)

    @classmethod
    def _assemble(
        cls,
        kernel: Kernel,
        coordinates: Array,
        ridge: float,
        known: list[Block],
        explained: Array,
        *,
        shared: bool = False,
        settled: float = _SETTLED,
    ) -> Self:
        """Return the factor, of which the first blocks are known, and P behind them.

        If they are `shared`, all further blocks but the last are as the last known one.
        """
        ridge = max(ridge, LEAST_RIDGE)
        count = -(-coordinates.size // BLOCK)
        even = is_even(coordinates)
        blocks, change = list(known), np.inf
        shape: Shape | None = None
        for block in range(len(known), count - 1):
            if shared:
                break
            if shape is None or not even:
                part = coordinates[block * BLOCK : (block + 1) * BLOCK + 1]
                shape = Shape.of(kernel, part[:-1], float(part[-1]))
            blocks.append(factor_block(shape, ridge, explained))
            last, before_it, explained = change, explained, blocks[-1].passed
            change = change_of(shape.left, before_it, explained)
            shared = even and min(settled, 1e-3 * ridge) >= change >= 0.1 * last
        part = coordinates[(count - 1) * BLOCK :]
        blocks.append(factor_block(Shape.of(kernel, part, float(part[-1])), ridge, explained))
        stacks = (
            Stack(np.stack(matrices), count)
            for matrices in zip(*(block.matrices for block in blocks), strict=True)
        )
        return cls(kernel, coordinates, ridge, *stacks)

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return self.inverse.count

    def solve(self, right: Array) -> Array:
        """Return C^-1 right (m, n)."""
        result = np.empty((self.coordinates.size, right.shape[1]))
        for columns in _columns(*right.shape):
            result[:, columns] = self._solve(right[:, columns])
        return result

    def whiten(self, right: Array) -> tuple[Array, Array]:
        """Return L^-1 right (m, n), L being the whole factor, and the states g at the last sample.

        They are all that a forecast needs: see :mod:`dkrls_cli.cascade.factors.filter`.
        """
        whitened, states = self._whiten(right)
        whole = whitened.reshape(self.blocks * BLOCK, right.shape[1])
        return whole[: self.coordinates.size], states

    def colour(self, white: Array) -> Array:
        """Return L white (m, n), the inverse of :meth:`whiten`.

        Of independent standard normal numbers it makes draws with the covariance C.
        """
        blocks = self._fold(white)
        states = self._forward(self.right.turned @ blocks, self.phi)
        drawn = self._lower @ blocks + self.left @ states
        return drawn.reshape(-1, white.shape[1])[: self.coordinates.size]

    @cached_property
    def _lower(self) -> Stack:
        """L of every block."""
        return Stack(np.asarray(np.linalg.inv(self.inverse.matrices)), self.blocks)

    @property
    def explained_at_end(self) -> Array:
        """P at the last sample, with that sample."""
        stacks = (self.phi, self.explained, self.right)
        phi, explained, right = (stack[self.blocks - 1] for stack in stacks)
        return np.asarray(phi @ explained @ phi.T + right.T @ right)

    def _whiten(self, right: Array) -> tuple[Array, Array]:
        """Return L^-1 right by blocks, and the states at the last sample."""
        whitened = self.inverse @ self._fold(right)  # L^-1 y
        gained = self.right.turned @ whitened
        states = self._forward(gained)
        whitened -= self._whitened_left @ states  # L^-1 (y - U g)
        return whitened, self._closed[self.blocks - 1] @ states[-1] + gained[-1]

    def _solve(self, right: Array) -> Array:
        whitened, _ = self._whiten(right)
        behind_it = self._backward(self._whitened_left.turned @ whitened)
        whitened -= self.right @ behind_it
        solved = self.inverse.turned @ whitened
        return solved.reshape(-1, right.shape[1])[: self.coordinates.size]

    @cached_property
    def _whitened_left(self) -> Stack:
        """L^-1 U."""
        return Stack(self.inverse.matrices @ self.left.matrices, self.blocks)

    @cached_property
    def _closed(self) -> Stack:
        """T = Phi - X' L^-1 U, which leads the states through a block that has been observed."""
        observed = self.right.matrices.swapaxes(1, 2) @ self._whitened_left.matrices
        return Stack(self.phi.matrices - observed, self.blocks)

    def _forward(self, gained: Array, stack: Stack | None = None) -> Array:
        """Return the states g at the beginning of every block: g <- T g + what a block adds."""
        stack = stack or self._closed
        states = np.zeros_like(gained)
        for block in range(self.blocks - 1):
            states[block + 1] = stack[block] @ states[block] + gained[block]
        return states

    def _backward(self, gained: Array, stack: Stack | None = None) -> Array:
        """Return the states h at the end of every block: h <- T' h + what a block adds."""
        stack = stack or self._closed
        states = np.zeros_like(gained)
        for block in range(self.blocks - 1, 0, -1):
            states[block - 1] = stack[block].T @ states[block] + gained[block]
        return states

    def _fold(self, values: Array) -> Array:
        """Return values (m, n) by blocks (blocks, 64, n), zeros behind the last."""
        short = self.blocks * BLOCK - len(values)
        padded = np.pad(values, ((0, short), (0, 0))) if short else np.ascontiguousarray(values)
        return padded.reshape(self.blocks, BLOCK, -1)

    def answer(self, query: Array, weights: Array) -> Array:
        """Return k(q, c) weights (q, n)."""
        return self.prepare(weights)(query)

    def prepare(self, weights: Array, order: int = 0) -> Callable[[Array], Array]:
        """Return a function that answers queries from the same weights (m, n) again and again.

        The answers are values, or derivatives of an `order` that the kernel has. What all blocks
        before a block and all behind it add to its answers is summed up once.
        """
        blocks = self._fold(weights)
        left = self._forward(self.ahead.turned @ blocks, self.phi)
        right = self._backward(self.left.turned @ blocks, self.phi)

        def answer(query: Array) -> Array:
            result = np.empty((query.size, weights.shape[1]))
            for group in self._groups(query, weights.shape[1], order):
                here = group.blocks
                answers = np.matmul(group.kernel, blocks[here])
                answers += np.matmul(group.behind, left[here])
                answers += np.matmul(group.before, right[here])
                result[group.queries[group.real]] = answers[group.real]
            return result

        return answer

    def unexplained(self, query: Array, order: int = 0) -> Array:
        """Return the variance k(q, q) - k' C^-1 k that the samples leave (q,).

        It is that of values, or of derivatives of an `order` that the kernel has.
        """
        result = np.empty(query.size)
        later = self._later
        for group in self._groups(query, BLOCK, order):
            known, inverse, right, left, phi = (
                stack.take(group.blocks)
                for stack in (self.explained, self.inverse, self.right, self.left, self.phi)
            )
            drawn = group.behind @ known  # u P
            seen = (group.kernel - drawn @ left.swapaxes(1, 2)) @ inverse.swapaxes(1, 2)
            beyond = group.before - drawn @ phi.swapaxes(1, 2) - seen @ right
            explained = (drawn * group.behind).sum(-1) + (seen * seen).sum(-1)
            explained += ((beyond @ later[group.blocks]) * beyond).sum(-1)
            result[group.queries[group.real]] = explained[group.real]
        return np.maximum(derivative_variance(self.kernel, order) - result, 0.0)

    @cached_property
    def _later(self) -> Array:
        """Omega at the end of every block: what later blocks know of the states there."""
        seen = self._whitened_left.matrices
        gained = Stack(seen.swapaxes(1, 2) @ seen, self.blocks)
        states = np.zeros((self.blocks, *gained.matrices.shape[1:]))
        for block in range(self.blocks - 1, 0, -1):
            closed = self._closed[block]
            states[block - 1] = gained[block] + closed.T @ states[block] @ closed
        return states

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of C^-1 (m,)."""
        inverse = self.inverse.matrices
        alone = Stack((inverse * inverse).sum(axis=1)[:, :, None], self.blocks)
        drawn = self.right.matrices.swapaxes(1, 2) @ inverse  # A = X' L^-1
        pairs = drawn[:, :, None] * drawn[:, None]  # the diagonal of A' Omega A is their sum
        count = len(drawn[0]) ** 2
        among = Stack(pairs.reshape(-1, count, BLOCK).swapaxes(1, 2), self.blocks)
        result = alone @ np.ones((self.blocks, 1, 1))
        result += among @ self._later.reshape(self.blocks, count, 1)
        return np.asarray(result.ravel()[: self.coordinates.size])

    def inverse_blocks(self, edges: Indices) -> list[Array]:
        """Return the diagonal blocks of C^-1 between consecutive edges, from 0 to m."""
        return [self._inverse_block(*ends) for ends in pairwise(edges.tolist())]

    def _inverse_block(self, start: int, stop: int) -> Array:
        """Return C^-1 among the samples from `start` to `stop`.

        Between two blocks i < j it is -A_i' (T_j-1 ... T_i+1)' (W_j' L_j^-1 - T_j' Omega_j A_j),
        with A = X' L^-1 and W = L^-1 U.
        """
        first, last = start // BLOCK, -(-stop // BLOCK)
        whole = np.empty(((last - first) * BLOCK,) * 2)
        for column in range(first, last):
            inverse, closed = self.inverse[column], self._closed[column]
            drawn = self.right[column].T @ inverse
            seen = self._later[column] @ drawn
            at = slice((column - first) * BLOCK, (column - first + 1) * BLOCK)
            whole[at, at] = inverse.T @ inverse + drawn.T @ seen
            states = self._whitened_left[column].T @ inverse - closed.T @ seen
            for row in range(column - 1, first - 1, -1):
                above = slice((row - first) * BLOCK, (row - first + 1) * BLOCK)
                whole[above, at] = -(self.right[row].T @ self.inverse[row]).T @ states
                whole[at, above] = whole[above, at].T
                states = self._closed[row].T @ states
        own = slice(start - first * BLOCK, stop - first * BLOCK)
        return np.ascontiguousarray(whole[own, own])

    def extend(self, coordinates: Array) -> Self:
        """Return the factor with further samples: the last block is made again, others stay."""
        together = np.concatenate([self.coordinates, coordinates])
        if is_even(together) != is_even(self.coordinates):
            return type(self).build(self.kernel, together, self.ridge)
        kept = len(self.inverse.matrices) - 1
        stacks = (self.inverse, self.right, self.left, self.ahead, self.phi, self.explained)
        known = [Block(*(stack.matrices[block] for stack in stacks)) for block in range(kept)]
        shared = kept < self.blocks - 1
        last = self.explained.matrices[-1]
        try:
            return self._assemble(self.kernel, together, self.ridge, known, last, shared=shared)
        except np.linalg.LinAlgError:
            return self.build(self.kernel, together, 10 * self.ridge)

    def _groups(self, query: Array, columns: int, order: int) -> Iterator[_Group]:
        """Yield the queries by the blocks that they lie in, some groups at a time."""
        rising = np.argsort(query, kind="stable")
        edges = self.coordinates[::BLOCK]
        inside = np.clip(np.searchsorted(edges, query[rising], "right") - 1, 0, None)
        starts = np.flatnonzero(np.diff(inside, prepend=-1))
        counts = np.diff(np.append(starts, query.size))
        shares = -(-counts // BLOCK)
        first = np.arange(shares.sum()) - np.repeat(np.cumsum(shares) - shares, shares)
        heads = np.repeat(starts, shares) + first * BLOCK
        ends = np.minimum(heads + BLOCK, np.repeat(starts + counts, shares))
        at_once = max(1, AT_ONCE // (BLOCK * (BLOCK + columns)))
        for start in range(0, heads.size, at_once):
            part = slice(start, start + at_once)
            places = heads[part, None] + np.arange(int((ends - heads)[part].max()))
            real = places < ends[part, None]
            yield self._group(query, rising[np.where(real, places, heads[part, None])], real, order)

    def _group(self, query: Array, queries: Indices, real: Indices, order: int) -> _Group:
        """Return groups of queries (groups, at most 64), each within one block."""
        asked = query[queries]
        edges = np.append(self.coordinates[::BLOCK], self.coordinates[-1])
        here = np.clip(np.searchsorted(edges[:-1], asked[:, 0], "right") - 1, 0, None)
        nodes = self.coordinates[np.minimum(np.arange(BLOCK) + here[:, None] * BLOCK, self._end)]
        kernel = derivative_pairs(self.kernel, asked[:, :, None], nodes[:, None, :], order)
        kernel[here == self.blocks - 1, :, self._end % BLOCK + 1 :] = 0.0
        passed = np.maximum(asked - edges[here][:, None], 0.0)
        left = np.maximum(edges[here + 1][:, None] - asked, 0.0)
        ahead = behind(self.kernel, passed, order)
        return _Group(queries, real, here, kernel, ahead, before(self.kernel, left, order))

    @property
    def _end(self) -> int:
        """Place of the last sample."""
        return self.coordinates.size - 1


@dataclass(frozen=True, eq=False)
class _Group:
    """Queries in groups that lie within one block each, and their kernel (groups, queries, ...)."""

    queries: Indices
    real: Indices
    blocks: Indices
    kernel: Array
    behind: Array
    before: Array


def _columns(size: int, count: int) -> Iterator[slice]:
    """Yield parts of the columns of an array, small enough to be worked on at once, and alike."""
    parts = -(-count // max(8, AT_ONCE // size))
    for part in range(parts):
        yield slice(part * count // parts, (part + 1) * count // parts)
