"""SW-KRLS: sliding-window kernel RLS (Van Vaerenbergh, Via and Santamaria, 2006).

Kernel ridge regression on the last samples: the inverse of K + c I is bordered with the new
sample and loses the oldest, which is one in-place update of O(window^2). The weights are
that inverse times the values, worked out when an answer is asked for.
"""

from __future__ import annotations

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.baselines.buffers import Symmetric
from dkrls_cli.baselines.contract import Baseline, above, count
from dkrls_cli.baselines.gaussian import expansion, gaussian


class SWKRLS(Baseline):
    """Sliding-window kernel recursive least squares.

    Parameters
    ----------
    sigma
        Length scale of the Gaussian kernel.
    window
        Number of samples remembered (the paper's D).
    ridge
        c, added to the diagonal of the Gram matrix.
    """

    paper_name = "SW-KRLS"
    summary = "Kernel ridge regression on the last samples."

    def __init__(self, *, sigma: float = 1.0, window: int = 250, ridge: float = 1e-2) -> None:
        super().__init__()
        self._rows = gaussian(above("sigma", sigma))
        self._window = count("window", window)
        self._ridge = above("ridge", ridge)
        self._inverse, self._learnt = Symmetric(), 0

    def _start(self, features: int) -> None:
        self._points = np.empty((features, self._window))
        self._values = np.empty(self._window)

    @property
    def size(self) -> int:
        """Number of samples in the window."""
        return self._inverse.size

    def _learn(self, x: Array, y: float) -> None:
        b = self._rows(x[None], self._points[:, : self.size])[0]
        v = self._inverse.times(b)
        s = 1.0 + self._ridge - float(b @ v)
        place = self._learnt % self._window  # of the oldest, once the window is full
        if self.size < self._window:
            self._inverse.extend_inverse(v, s)
        else:
            self._inverse.replace_in_inverse(place, v, s)
        self._points[:, place], self._values[place] = x, y
        self._learnt += 1

    def _answer(self, points: Array) -> Array:
        weights = self._inverse.times(self._values[: self.size])
        return expansion(self._rows, points, self._points[:, : self.size], weights)
