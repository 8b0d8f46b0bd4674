"""FB-KRLS: fixed-budget kernel RLS (Van Vaerenbergh, Santamaria, Liu and Principe, 2010).

Kernel ridge regression on a fixed number of samples. A new sample comes in, then the one that the
others answer best without (the smallest leave-one-out error |alpha_j| / [K^-1]_jj) goes, which may
be the new one. The label update moves the kept values towards the new one, each as near as
its sample: y_j += mu k(x_j, x) (y - y_j); it follows change and spoils what does not change.
"""

from __future__ import annotations

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.baselines.buffers import Symmetric
from dkrls_cli.baselines.contract import Baseline, above, between, count
from dkrls_cli.baselines.gaussian import expansion, gaussian


class FBKRLS(Baseline):
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
        mu, how far kept values move towards a new one; 0 leaves them alone.
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
        super().__init__()
        self._rows = gaussian(above("sigma", sigma))
        self._budget = count("budget", budget)
        self._ridge = above("ridge", ridge)
        self._label_step = between("label_step", label_step, 0.0, 1.0)
        self._inverse = Symmetric()

    def _start(self, features: int) -> None:
        self._points = np.empty((features, self._budget))
        self._values = np.empty(self._budget)

    @property
    def size(self) -> int:
        """Number of samples kept."""
        return self._inverse.size

    def _learn(self, x: Array, y: float) -> None:
        size, inverse = self.size, self._inverse
        b = self._rows(x[None], self._points[:, :size])[0]
        if self._label_step:
            self._values[:size] += self._label_step * b * (y - self._values[:size])
        v = inverse.times(b)
        s = 1.0 + self._ridge - float(b @ v)
        place = size if size < self._budget else self._least(b, v, s, y)
        if place == size == self._budget:
            return  # the new one goes again
        if place == size:
            inverse.extend_inverse(v, s)
        else:
            inverse.replace_in_inverse(place, v, s)
        self._points[:, place], self._values[place] = x, y

    def _least(self, b: Array, v: Array, s: float, y: float) -> int:
        """Which of the kept samples and the new one, the last, has the least error left out."""
        weights = self._inverse.times(self._values)
        error = y - float(b @ weights)
        weights = np.append(weights - v * (error / s), error / s)
        corners = np.append(self._inverse.diagonal() + v**2 / s, 1.0 / s)
        return int(np.argmin(np.abs(weights) / corners))

    def _answer(self, points: Array) -> Array:
        weights = self._inverse.times(self._values[: self.size])
        return expansion(self._rows, points, self._points[:, : self.size], weights)
