"""KLMP: kernel least mean p-power (Gao and Chen, 2017).

KLMS with the gradient of |e|^p / p in the place of that of e^2 / 2: a new centre weighs
eta |e|^(p-1) sign(e). With p below 2 outliers pull less; with p = 2 it is KLMS.
"""

from __future__ import annotations

import math

from dkrls_cli.baselines.contract import above
from dkrls_cli.baselines.gradient.klms import KLMS


class KLMP(KLMS):
    """Kernel least mean p-power.

    Parameters
    ----------
    sigma, budget
        As of KLMS.
    step
        eta, the length of a step. Below p = 2 errors settle no further than where a step overshoots
        them as far, (eta / 2)^(1 / (2 - p)).
    power
        p, above 1: at 1 every step would be as long as the others.
    """

    paper_name = "KLMP"
    summary = "KLMS that minimises |e|^p: less drawn to outliers."

    def __init__(
        self, *, sigma: float = 1.0, step: float = 0.2, power: float = 1.5, budget: int = 10_000
    ) -> None:
        super().__init__(sigma=sigma, step=step, budget=budget)
        self._power = above("power", power, 1.0)

    def _weight(self, error: float) -> float:
        return math.copysign(self._step * abs(error) ** (self._power - 1.0), error)
