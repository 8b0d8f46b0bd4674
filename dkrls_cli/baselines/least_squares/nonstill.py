"""NONSTILL-KRLS: KRLS with a space-time covariance for a kernel (the paper's section 3.4).

The paper takes "C as the input to KRLS", inspired by NOSTILL-GP (Garg, Singh and Ramos, 2012),
and gives no code. Its equation (25) is read here as the kernel between two samples:

    C(u, h) = (a^2 u^2 + 1)^(-s/2) exp(-b^2 h^2 / (a^2 u^2 + 1)),    s = 1 in the paper,

with u the distance in time, h the distance in space, a' = a and b' = b; every sample is kept, as in
KRLS. It is the first family of Cressie and Huang (1999), where s is the number of spatial
dimensions, which makes the kernel positive definite for any number of them. So s is taken from the
samples; it equals the paper's 1 if space has one dimension. A ridge is added as in KRLS.
"""

from __future__ import annotations

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.baselines.checks import check_above
from dkrls_cli.baselines.gaussian import KernelFunction, squared_distances
from dkrls_cli.baselines.least_squares.krls import LeastSquares
from dkrls_cli.errors import InputError


class NonstillKRLS(LeastSquares):
    """Kernel recursive least squares with a covariance of space and time.

    Parameters
    ----------
    time_rate
        a', inverse scale of time.
    space_rate
        b', inverse scale of space.
    ridge
        Added to the diagonal of the covariance matrix.
    time
        Index of the time feature; all others are space. The paper's x is space and its d time.
    """

    paper_name = "NONSTILL-KRLS"
    summary = "KRLS with a covariance that couples space and time."

    def __init__(
        self,
        *,
        time_rate: float = 1.0,
        space_rate: float = 1.0,
        ridge: float = 1e-6,
        time: int = -1,
    ) -> None:
        rates = check_above("time_rate", time_rate), check_above("space_rate", space_rate)
        super().__init__(covariance(*rates, time), ridge)
        self._time = time

    def _start(self, features: int) -> None:
        if not -features <= self._time < features:
            raise InputError(
                f"Invalid time feature {self._time}. Samples have {features} features."
            )
        super()._start(features)


def covariance(time_rate: float, space_rate: float, time: int) -> KernelFunction:
    """Return the space-time covariance (25) as a kernel."""

    def kernel(points: Array, centres: Array) -> Array:
        space = np.arange(len(centres)) != time % len(centres)
        spread = squared_distances(points[:, [time]], centres[[time]])
        spread *= time_rate**2
        spread += 1.0  # a'^2 u^2 + 1
        height: Array = spread ** (-0.5 * max(int(space.sum()), 1))
        if not space.any():
            return height
        decay = squared_distances(points[:, space], centres[space])
        decay *= -(space_rate**2)
        decay /= spread
        np.exp(decay, out=decay)
        decay *= height
        return decay

    return kernel
