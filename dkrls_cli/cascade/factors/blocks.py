"""Blocks of samples: the matrices of a quasiseparable factor, block by block.

The algebra and its notation are those of :mod:`dkrls_cli.cascade.factors.quasiseparable`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.factors.markov import before, behind, transition
from dkrls_cli.cascade.kernels import Kernel, gram

BLOCK = 64
"""Samples of a block: its products fill the arithmetic units, and cost little more than m."""


@dataclass(frozen=True, eq=False)
class Stack:
    """One matrix for every block: the first ones, one that all further share, and the last.

    Attributes
    ----------
    matrices
        (k + 1, rows, columns): those of the first k blocks, and that of the last block. Blocks
        between them have the k-th.
    count
        Number of blocks.
    """

    matrices: Array
    count: int

    def __matmul__(self, blocks: Array) -> Array:
        """Return the products with one matrix (columns, n) for every block."""
        first = len(self.matrices) - 1
        shared = slice(first, self.count - 1)
        result = np.empty((self.count, self.matrices.shape[1], blocks.shape[2]))
        np.matmul(self.matrices[:first], blocks[:first], out=result[:first])
        if first < self.count - 1:
            np.matmul(self.matrices[first - 1], blocks[shared], out=result[shared])
        np.matmul(self.matrices[-1], blocks[-1], out=result[-1])
        return result

    def __getitem__(self, block: int) -> Array:
        """Return the matrix of one block."""
        if block == self.count - 1:
            return np.asarray(self.matrices[-1])
        return np.asarray(self.matrices[min(block, len(self.matrices) - 2)])

    @property
    def turned(self) -> Stack:
        """The transposed matrices."""
        return Stack(self.matrices.swapaxes(1, 2), self.count)

    def take(self, blocks: Indices) -> Array:
        """Return the matrices of some blocks (blocks, rows, columns)."""
        places = np.minimum(blocks, max(0, len(self.matrices) - 2))
        return np.asarray(self.matrices[np.where(blocks == self.count - 1, -1, places)])


@dataclass(frozen=True, eq=False)
class Block:
    """The matrices of one block."""

    inverse: Array
    right: Array
    left: Array
    ahead: Array
    phi: Array
    explained: Array

    @property
    def matrices(self) -> tuple[Array, ...]:
        """All matrices, in the order of the attributes of the factor."""
        return self.inverse, self.right, self.left, self.ahead, self.phi, self.explained

    @property
    def passed(self) -> Array:
        """The P that the block passes on."""
        gained = self.right.T @ self.right
        return np.asarray(self.phi @ self.explained @ self.phi.T + gained)


@dataclass(frozen=True, eq=False)
class Shape:
    """The kernel of one block: its Gram matrix, U, V and Phi. Blocks of the same steps share it.

    Samples that a short block lacks are apart from the others.
    """

    gram: Array
    left: Array
    ahead: Array
    phi: Array
    size: int

    @classmethod
    def of(cls, kernel: Kernel, nodes: Array, edge: float) -> Self:
        """Return the shape of a block, up to the edge of the next."""
        own = np.eye(BLOCK)
        own[: nodes.size, : nodes.size] = gram(kernel, nodes, nodes)
        left, ahead = _fill(behind(kernel, nodes - nodes[0])), _fill(before(kernel, edge - nodes))
        phi = transition(kernel, np.asarray(edge - nodes[0]))
        return cls(own, left, ahead, phi, nodes.size)


def factor_block(shape: Shape, ridge: float, explained: Array) -> Block:
    """Return a block, given the P that earlier blocks explain; LinAlgError if it has none."""
    from scipy.linalg.lapack import dtrtri

    left, ahead, phi = shape.left, shape.ahead, shape.phi
    drawn = left @ explained  # U P
    own = shape.gram - drawn @ left.T
    own[np.arange(shape.size), np.arange(shape.size)] += ridge
    lower = np.linalg.cholesky(own)
    inverse = np.asarray(dtrtri(lower.T)[0].T, np.float64)
    right = inverse @ (ahead - drawn @ phi.T)
    return Block(inverse, right, left, ahead, phi, explained)


def _fill(states: Array) -> Array:
    """Return the states of a block with zeros for the samples that it lacks."""
    return np.pad(states, ((0, BLOCK - len(states)), (0, 0)))


def change_of(left: Array, one: Array, other: Array) -> float:
    """Return the largest change of the covariance U P U' of a block, from one P to another."""
    return float(np.abs(left @ (one - other) @ left.T).max())
