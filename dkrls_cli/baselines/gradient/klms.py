"""KLMS: kernel least mean squares (Liu, Pokharel and Principe, 2008).

A step down the gradient of e^2 / 2 in the function space: every sample becomes a centre with the
weight eta e, where e is the error before the step. Among n samples of a block the errors are
e_i = r_i - sum_{j<i} k(x_i, x_j) eta e_j, r the error of what was learnt before the block, so a
block costs one kernel matrix.
"""

from __future__ import annotations

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.baselines.buffers import Centres
from dkrls_cli.baselines.contract import Blocked, above, count
from dkrls_cli.baselines.gaussian import expansion, gaussian


class KLMS(Blocked):
    """Kernel least mean squares.

    Parameters
    ----------
    sigma
        Length scale of the Gaussian kernel.
    step
        eta, the length of a step.
    budget
        Number of centres at which it stops to learn.
    """

    paper_name = "KLMS"
    summary = "Stochastic gradient steps, every sample a centre."

    def __init__(self, *, sigma: float = 1.0, step: float = 0.5, budget: int = 10_000) -> None:
        super().__init__(block=128)
        self._rows = gaussian(above("sigma", sigma))
        self._step = above("step", step)
        self._budget = count("budget", budget)

    def _start(self, features: int) -> None:
        super()._start(features)
        self._centres = Centres(features)

    @property
    def size(self) -> int:
        """Number of centres."""
        self._catch_up()
        return 0 if self._features is None else len(self._centres)

    def _absorb(self, points: Array, values: Array) -> None:
        room = min(self._budget - len(self._centres), len(points))
        if room:
            self._take(points[:room], values[:room])

    def _take(self, points: Array, values: Array) -> None:
        centres = self._centres
        errors = values - expansion(self._rows, points, centres.points, centres.weights)
        among = self._rows(points, points.T)
        weights = np.zeros(len(points))
        for i, error in enumerate(errors):
            weights[i] = self._weight(error - among[i, :i] @ weights[:i])
        centres.extend(points, weights)

    def _weight(self, error: float) -> float:
        """Weight of a new centre."""
        return self._step * error

    def _answer(self, points: Array) -> Array:
        self._catch_up()
        return expansion(self._rows, points, self._centres.points, self._centres.weights)
