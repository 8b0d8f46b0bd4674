"""NORMA with the squared loss (Kivinen, Smola and Williamson, 2004).

For each sample: compute the error e of the present function, multiply all weights by
1 - lambda eta, append a centre with the weight eta e, and drop the oldest centre if there are more
than the window holds. Some implementations shrink the weights before they compute the error (order
"shrink-first"). In a block, sample i uses the earlier weights after i more shrinkings, without the
centres that the samples before it have pushed out of the window.
"""

from __future__ import annotations

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.baselines.checks import check_above, check_between, check_count
from dkrls_cli.baselines.expansion import BlockExpansion
from dkrls_cli.baselines.gaussian import expand, gaussian
from dkrls_cli.baselines.gradient.klms import BLOCK
from dkrls_cli.errors import SettingError

ORDERS = ("original", "shrink-first")


class NORMA(BlockExpansion):
    """Naive online regularised risk minimisation.

    Parameters
    ----------
    sigma
        Length scale of the Gaussian kernel.
    step
        eta, the step size.
    regularization
        lambda, the weight of the norm: weights shrink by 1 - lambda eta per sample.
    window
        Number of centres kept (the paper's D).
    order
        "original": compute the error, then shrink. "shrink-first": shrink, then compute the error.
    """

    paper_name = "NORMA"
    summary = "Gradient steps with shrinking weights in a sliding window."

    def __init__(
        self,
        *,
        sigma: float = 1.0,
        step: float = 0.5,
        regularization: float = 1e-2,
        window: int = 500,
        order: str = "original",
    ) -> None:
        self._window = check_count("window", window)
        super().__init__(gaussian(check_above("sigma", sigma)), min(self._window, BLOCK))
        self._step = check_above("step", step)
        shrinking = check_between("step times regularization", step * regularization, 0.0, 1.0)
        self._keep = 1.0 - shrinking
        if order not in ORDERS:
            raise SettingError(f"Unknown order '{order}'. Choose from: {', '.join(ORDERS)}.")
        self._shrinks_first = ORDERS.index(order)

    def _learn_block(self, points: Array, values: Array) -> None:
        n, keep, early = len(points), self._keep, self._shrinks_first
        errors = values - keep ** (np.arange(n) + early) * self._expand_window(points)
        among = self._kernel(points, points.T)
        weights, shrunk = np.empty(n), np.zeros(n)  # shrunk: the weights as of sample i
        for i, error in enumerate(errors):
            now = keep if early else 1.0
            weights[i] = self._step * (error - now * (among[i, :i] @ shrunk[:i]))
            shrunk[:i] *= keep
            shrunk[i] = weights[i]
        self._centres.weights[:] *= keep**n
        self._centres.extend(points, shrunk)
        self._centres.drop_oldest(max(len(self._centres) - self._window, 0))

    def _expand_window(self, points: Array) -> Array:
        """Return the sum over the earlier centres that are in the window when each point comes."""
        centres, weights = self._centres.points, self._centres.weights
        leaving = max(weights.size + len(points) - 1 - self._window, 0)
        staying = expand(self._kernel, points, centres[:, leaving:], weights[leaving:])
        oldest = np.arange(len(points)) + weights.size - self._window  # that point i still sees
        seen = np.arange(leaving) >= oldest[:, None]
        going: Array = (self._kernel(points, centres[:, :leaving]) * seen) @ weights[:leaving]
        return staying + going
