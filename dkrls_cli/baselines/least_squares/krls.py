"""KRLS: kernel recursive least squares without sparsification (the paper's section 2.1).

Every sample is kept; the weights are those of kernel ridge regression on all samples so far, which
is what the recursion on the growing inverse of K + ridge I gives. Here a growing Cholesky factor
takes the place of the inverse, samples wait until a block is full, and the weights are computed
when an answer is needed: the same answers, for n^3 / 3 operations in all. Memory is 4 n^2 bytes.
"""

from __future__ import annotations

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.baselines.checks import check_above
from dkrls_cli.baselines.cholesky import GrowingCholesky
from dkrls_cli.baselines.expansion import BlockExpansion
from dkrls_cli.baselines.gaussian import KernelFunction, gaussian

# Samples of a block: large enough for matrix products to run at their full rate.
BLOCK = 512


class LeastSquares(BlockExpansion):
    """Regularised least squares on all samples, for any kernel with k(z, z) = 1."""

    def __init__(self, kernel: KernelFunction, ridge: float) -> None:
        super().__init__(kernel, BLOCK)
        self._ridge = check_above("ridge", ridge)
        self._factor = GrowingCholesky(BLOCK)
        self._solved = True

    def _learn_block(self, points: Array, values: Array) -> None:
        first = self._factor.room or len(points)
        for part in (slice(0, first), slice(first, len(points))):
            if len(points[part]):
                self._append(points[part], values[part])

    def _append(self, points: Array, values: Array) -> None:
        """Add samples that fit in one block of the factor."""
        before, new = len(self._centres), np.arange(len(points))
        rows = self._kernel(points, np.concatenate([self._centres.points, points.T], axis=1))
        rows[new, before + new] += self._ridge
        self._factor.append(rows, values)
        self._centres.extend(points, 0.0)
        self._solved = False

    def _answer(self, points: Array) -> Array:
        self._learn_waiting()
        if not self._solved:
            self._centres.weights[:] = self._factor.solve()
            self._solved = True
        return self._expand(points)


class KRLS(LeastSquares):
    """Kernel recursive least squares.

    Parameters
    ----------
    sigma
        Length scale of the Gaussian kernel.
    ridge
        Added to the diagonal of the Gram matrix. The loss (1) has none, but without one the matrix
        is singular in double precision on smooth data.
    """

    paper_name = "KRLS"
    summary = "Kernel ridge regression on all samples."

    def __init__(self, *, sigma: float = 1.0, ridge: float = 1e-6) -> None:
        super().__init__(gaussian(check_above("sigma", sigma)), ridge)
