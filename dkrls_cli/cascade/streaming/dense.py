"""Rows as one matrix, or as the product of two where smooth kernels have few directions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Array, Tensor
from dkrls_cli.cascade.streaming.products import Both, fold, multiply, size_of_noise
from dkrls_cli.threads import one_blas_thread


@dataclass(frozen=True, eq=False)
class Dense:
    """Rows as one matrix.

    Attributes
    ----------
    matrix
        The rows (size, samples).
    """

    matrix: Both

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.matrix.double)

    @property
    def samples(self) -> int:
        """Number of samples of the axis."""
        return int(self.matrix.double.shape[1])

    @property
    def operations(self) -> int:
        """Products of two numbers for every fibre."""
        return self.matrix.double.size

    def window(self, part: slice) -> slice:
        """Return all samples."""
        return slice(0, self.samples)

    def apply(self, tensor: Tensor, axis: int, part: slice) -> Tensor:
        """Return some of the rows applied to all samples along an axis."""
        fibres, rows = fold(tensor, axis), self.matrix.as_type(tensor.dtype)[part]
        result: Tensor = np.empty((len(fibres), len(rows), fibres.shape[2]), tensor.dtype)
        multiply(rows, fibres, result)
        return result.reshape(*tensor.shape[:axis], len(rows), *tensor.shape[axis + 1 :])


@dataclass(frozen=True, eq=False)
class Factored:
    """Rows as the product of two matrices.

    Attributes
    ----------
    left, right
        The factors (size, directions) and (directions, samples).
    """

    left: Dense
    right: Dense

    @classmethod
    def build(cls, rows: Array, negligible: float, noise: float = 0.0) -> Factored:
        """Return rows in those of their principal directions that are not negligible, nor noise.

        `noise` is its length in each row: see :func:`.products.size_of_noise`.
        """
        with one_blas_thread():
            u, sizes, v = np.linalg.svd(rows, full_matrices=False)
        least = max(negligible * sizes[0], size_of_noise(noise, rows.shape))
        kept = max(1, int(np.count_nonzero(sizes > least)))
        return cls(Dense(Both.of(u[:, :kept] * sizes[:kept])), Dense(Both.of(v[:kept])))

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.left.size

    @property
    def samples(self) -> int:
        """Number of samples of the axis."""
        return self.right.samples

    @property
    def operations(self) -> int:
        """Products of two numbers for every fibre."""
        return self.left.operations + self.right.operations

    def window(self, part: slice) -> slice:
        """Return all samples."""
        return slice(0, self.samples)

    def apply(self, tensor: Tensor, axis: int, part: slice) -> Tensor:
        """Return some of the rows applied to all samples along an axis."""
        directions = self.right.apply(tensor, axis, slice(None))
        return self.left.apply(directions, axis, part)
