"""KLMS: kernel least mean squares (Liu, Pokharel and Principe, 2008).

A gradient step on e^2 / 2 in the function space: every sample becomes a centre with the weight
eta e, where e is the error before the step. In a block of n samples the errors are
e_i = r_i - sum_{j<i} k(x_i, x_j) eta e_j, with r the errors of the model before the block, so a
block costs one kernel matrix.
"""

from __future__ import annotations

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.baselines.checks import check_above, check_count
from dkrls_cli.baselines.expansion import BlockExpansion
from dkrls_cli.baselines.gaussian import gaussian

# Samples of a block of the gradient methods: its own kernel matrix stays in the cache.
BLOCK = 128


class KLMS(BlockExpansion):
    """Kernel least mean squares.

    Parameters
    ----------
    sigma
        Length scale of the Gaussian kernel.
    step
        eta, the step size.
    budget
        Number of centres after which no further sample is learnt.
    """

    paper_name = "KLMS"
    summary = "Stochastic gradient steps, every sample a centre."

    def __init__(self, *, sigma: float = 1.0, step: float = 0.5, budget: int = 10_000) -> None:
        super().__init__(gaussian(check_above("sigma", sigma)), BLOCK)
        self._step = check_above("step", step)
        self._budget = check_count("budget", budget)

    def _learn_block(self, points: Array, values: Array) -> None:
        room = min(self._budget - len(self._centres), len(points))
        if room:
            self._add_centres(points[:room], values[:room])

    def _add_centres(self, points: Array, values: Array) -> None:
        """Append samples (n, D) as centres, with the weights of one step each."""
        errors = values - self._expand(points)
        among = self._kernel(points, points.T)
        weights = np.zeros(len(points))
        for i, error in enumerate(errors):
            weights[i] = self._weight(error - among[i, :i] @ weights[:i])
        self._centres.extend(points, weights)

    def _weight(self, error: float) -> float:
        """Return the weight of a new centre, given the error before the step."""
        return self._step * error
