"""Kernel ridge regression on a limited number of samples, one of which a new sample can replace."""

from __future__ import annotations

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.baselines.buffers import Symmetric
from dkrls_cli.baselines.checks import check_above
from dkrls_cli.baselines.contract import Baseline
from dkrls_cli.baselines.gaussian import expand, gaussian


class FixedSizeRidge(Baseline):
    """Kernel ridge regression on at most `capacity` samples, in O(capacity^2) per sample.

    The inverse of K + ridge I is updated in place when a sample is put. The weights, that inverse
    times the values, are computed when an answer is needed.
    """

    def __init__(self, sigma: float, capacity: int, ridge: float) -> None:
        super().__init__()
        self._kernel = gaussian(check_above("sigma", sigma))
        self._capacity = capacity
        self._ridge = check_above("ridge", ridge)
        self._inverse = Symmetric()

    def _start(self, features: int) -> None:
        self._points = np.empty((features, self._capacity))
        self._values = np.empty(self._capacity)

    @property
    def size(self) -> int:
        """Number of samples kept."""
        return self._inverse.size

    def _kernel_to(self, x: Array) -> Array:
        """Return b (m,), the kernel between the kept samples and x."""
        return np.asarray(self._kernel(x[None], self._points[:, : self.size])[0])

    def _border(self, b: Array) -> tuple[Array, float]:
        """Return v = (K + ridge I)^-1 b and s = 1 + ridge - b'v, for `Symmetric.extend_inverse`."""
        v = self._inverse.times(b)
        return v, 1.0 + self._ridge - float(b @ v)

    def _put(self, place: int, x: Array, y: float, v: Array, s: float) -> None:
        """Append a sample if `place` is the size, else replace the sample there."""
        if place == self.size:
            self._inverse.extend_inverse(v, s)
        else:
            self._inverse.replace_in_inverse(place, v, s)
        self._points[:, place], self._values[place] = x, y

    def _answer(self, points: Array) -> Array:
        weights = self._inverse.times(self._values[: self.size])
        return expand(self._kernel, points, self._points[:, : self.size], weights)
