"""FB-KRLS: fixed-budget kernel RLS (Van Vaerenbergh, Santamaria, Liu and Principe, 2010).

Kernel ridge regression on a fixed number of samples. A new sample is added, then the sample with
the smallest leave-one-out error |alpha_j| / [K^-1]_jj is dropped, which may be the new one. The
label update moves the kept values towards the new value, in proportion to the kernel:
y_j += mu k(x_j, x) (y - y_j). It tracks a changing function, and harms a constant one.
"""

from __future__ import annotations

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.baselines.checks import check_between, check_count
from dkrls_cli.baselines.least_squares.fixed_size import FixedSizeRidge


class FBKRLS(FixedSizeRidge):
    """Fixed-budget kernel recursive least squares.

    Parameters
    ----------
    sigma
        Length scale of the Gaussian kernel.
    budget
        Number of samples kept (the paper's D).
    ridge
        lambda, added to the diagonal of the Gram matrix.
    label_step
        mu, how far kept values move towards a new one; 0 leaves them as they are.
    """

    paper_name = "FB-KRLS"
    summary = "Kernel ridge regression on the samples that matter most."

    def __init__(
        self,
        *,
        sigma: float = 1.0,
        budget: int = 100,
        ridge: float = 1e-2,
        label_step: float = 0.0,
    ) -> None:
        super().__init__(sigma, check_count("budget", budget), ridge)
        self._label_step = check_between("label_step", label_step, 0.0, 1.0)

    def _learn(self, x: Array, y: float) -> None:
        size, b = self.size, self._kernel_to(x)
        if self._label_step:
            self._values[:size] += self._label_step * b * (y - self._values[:size])
        v, s = self._border(b)
        place = size if size < self._capacity else self._least_needed(b, v, s, y)
        if place < self._capacity:  # else the new sample itself is dropped
            self._put(place, x, y, v, s)

    def _least_needed(self, b: Array, v: Array, s: float, y: float) -> int:
        """Return the place of the smallest leave-one-out error; the new sample is the last."""
        weights = self._inverse.times(self._values)
        error = y - float(b @ weights)
        weights = np.append(weights - v * (error / s), error / s)
        corners = np.append(self._inverse.diagonal() + v**2 / s, 1.0 / s)
        return int(np.argmin(np.abs(weights) / corners))
