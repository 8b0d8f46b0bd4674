"""KRLS: kernel recursive least squares without sparsification (the paper's section 2.1).

Every sample is kept; the weights are those of kernel ridge regression on all samples so far,
which is what the recursion on the growing inverse of K + ridge I gives. Here a growing Cholesky
factor takes the place of the inverse, samples wait for a block of their kind, and the weights are
worked out when an answer is asked for: the same answers, for n^3 / 3 operations in all. Memory is
4 n^2 bytes.
"""

from __future__ import annotations

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.baselines.buffers import Centres
from dkrls_cli.baselines.cholesky import GrowingCholesky
from dkrls_cli.baselines.contract import Blocked, above
from dkrls_cli.baselines.gaussian import Rows, expansion, gaussian

_HEIGHT = 512


class LeastSquares(Blocked):
    """Regularised least squares on all samples, for any kernel with k(z, z) = 1."""

    def __init__(self, rows: Rows, ridge: float) -> None:
        super().__init__(block=_HEIGHT)
        self._rows = rows
        self._ridge = above("ridge", ridge)
        self._factor = GrowingCholesky(_HEIGHT)
        self._solved = True

    def _start(self, features: int) -> None:
        super()._start(features)
        self._centres = Centres(features)

    @property
    def size(self) -> int:
        """Number of samples."""
        self._catch_up()
        return self._factor.size

    def _absorb(self, points: Array, values: Array) -> None:
        first = self._factor.room or len(points)
        for part in (slice(0, first), slice(first, len(points))):
            if len(points[part]):
                self._take(points[part], values[part])

    def _take(self, points: Array, values: Array) -> None:
        before, new = len(self._centres), np.arange(len(points))
        rows = self._rows(points, np.concatenate([self._centres.points, points.T], axis=1))
        rows[new, before + new] += self._ridge
        self._factor.append(rows, values)
        self._centres.extend(points, 0.0)
        self._solved = False

    def _answer(self, points: Array) -> Array:
        self._catch_up()
        if not self._solved:
            self._centres.weights[:] = self._factor.solved()
            self._solved = True
        return expansion(self._rows, points, self._centres.points, self._centres.weights)


class KRLS(LeastSquares):
    """Kernel recursive least squares.

    Parameters
    ----------
    sigma
        Length scale of the Gaussian kernel.
    ridge
        Added to the diagonal of the Gram matrix. The loss (1) has none, but on smooth data no
        double can do without.
    """

    paper_name = "KRLS"
    summary = "Kernel ridge regression on all samples."

    def __init__(self, *, sigma: float = 1.0, ridge: float = 1e-6) -> None:
        super().__init__(gaussian(above("sigma", sigma)), ridge)
