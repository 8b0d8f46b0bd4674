"""NORMA with the squared loss (Kivinen, Smola and Williamson, 2004).

Each sample: the error e of the present function, all weights times 1 - lambda eta, a new centre
with eta e, and the oldest centre dropped when there are more than the window holds. Some
implementations shrink the weights before they take the error (order "shrink-first"). In a block
the i-th sample sees the earlier weights i shrinkings later and i places further along the window.
"""

from __future__ import annotations

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.baselines.buffers import Centres
from dkrls_cli.baselines.contract import Blocked, above, between, count
from dkrls_cli.baselines.gaussian import expansion, gaussian
from dkrls_cli.errors import SettingError

ORDERS = ("original", "shrink-first")


class NORMA(Blocked):
    """Naive online regularised risk minimisation.

    Parameters
    ----------
    sigma
        Length scale of the Gaussian kernel.
    step
        eta, the length of a step.
    regularization
        lambda, the weight of the norm: weights shrink by 1 - lambda eta a sample.
    window
        Number of centres kept (the paper's D).
    order
        "original": the error, then the shrinking; "shrink-first": the other way round.
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
        super().__init__(block=min(count("window", window), 128))
        self._rows = gaussian(above("sigma", sigma))
        self._step = above("step", step)
        self._keep = 1.0 - between("step times regularization", step * regularization, 0.0, 1.0)
        self._window = window
        if order not in ORDERS:
            raise SettingError(f"Unknown order '{order}'. Choose one of {', '.join(ORDERS)}.")
        self._early = ORDERS.index(order)

    def _start(self, features: int) -> None:
        super()._start(features)
        self._centres = Centres(features)

    @property
    def size(self) -> int:
        """Number of centres."""
        self._catch_up()
        return 0 if self._features is None else len(self._centres)

    def _absorb(self, points: Array, values: Array) -> None:
        n, keep, early = len(points), self._keep, self._early
        errors = values - keep ** (np.arange(n) + early) * self._seen(points)
        among = self._rows(points, points.T)
        weights, shrunk = np.empty(n), np.zeros(n)  # those as of now
        for i, error in enumerate(errors):
            now = keep if early else 1.0
            weights[i] = self._step * (error - now * (among[i, :i] @ shrunk[:i]))
            shrunk[:i] *= keep
            shrunk[i] = weights[i]
        self._centres.weights[:] *= keep**n
        self._centres.extend(points, shrunk)
        self._centres.forget(max(len(self._centres) - self._window, 0))

    def _seen(self, points: Array) -> Array:
        """What the earlier centres give, each sample without those that its elders drove out."""
        centres, weights = self._centres.points, self._centres.weights
        leaving = max(weights.size + len(points) - 1 - self._window, 0)
        staying = expansion(self._rows, points, centres[:, leaving:], weights[leaving:])
        first = np.arange(len(points)) + weights.size - self._window  # oldest that i sees
        seen = np.arange(leaving) >= first[:, None]
        going: Array = (self._rows(points, centres[:, :leaving]) * seen) @ weights[:leaving]
        return staying + going

    def _answer(self, points: Array) -> Array:
        self._catch_up()
        return expansion(self._rows, points, self._centres.points, self._centres.weights)
