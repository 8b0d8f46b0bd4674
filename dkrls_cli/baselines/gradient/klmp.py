"""KLMP: kernel least mean p-power (Gao and Chen, 2017).

KLMS with the gradient of |e|^p / p in place of that of e^2 / 2: a new centre has the weight
eta |e|^(p-1) sign(e). With p below 2, outliers have less influence; with p = 2 it is KLMS.
"""

from __future__ import annotations

import math

from dkrls_cli.baselines.checks import check_above
from dkrls_cli.baselines.gradient.klms import KLMS


class KLMP(KLMS):
    """Kernel least mean p-power.

    Parameters
    ----------
    sigma, budget
        As in KLMS.
    step
        eta, the step size. With p < 2 the error does not fall below (eta / 2)^(1 / (2 - p)), where
        a step overshoots by as much as it corrects.
    power
        p, above 1: at 1 the step would not depend on the size of the error.
    """

    paper_name = "KLMP"
    summary = "KLMS that minimises |e|^p: outliers have less influence."

    def __init__(
        self, *, sigma: float = 1.0, step: float = 0.2, power: float = 1.5, budget: int = 10_000
    ) -> None:
        super().__init__(sigma=sigma, step=step, budget=budget)
        self._power = check_above("power", power, 1.0)

    def _weight(self, error: float) -> float:
        return math.copysign(self._step * abs(error) ** (self._power - 1.0), error)
