"""KNLMS: kernel normalised LMS with the coherence criterion (Richard, Bermudez and Honeine, 2009).

A sample joins the dictionary if its kernel with every kept sample is at most the coherence. Then
all weights take a normalised step: alpha += eta e k / (eps + k'k).
"""

from __future__ import annotations

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.baselines.buffers import Centres
from dkrls_cli.baselines.checks import check_above, check_between
from dkrls_cli.baselines.contract import Baseline
from dkrls_cli.baselines.gaussian import expand, gaussian


class KNLMS(Baseline):
    """Kernel normalised least mean squares.

    Parameters
    ----------
    sigma
        Length scale of the Gaussian kernel.
    step
        eta, the step size.
    coherence
        mu_0, the largest kernel between two samples of the dictionary.
    damping
        eps, added to the denominator of the step, which keeps it finite.
    """

    paper_name = "KNLMS"
    summary = "Normalised gradient steps on a dictionary of incoherent samples."

    def __init__(
        self,
        *,
        sigma: float = 1.0,
        step: float = 0.5,
        coherence: float = 0.95,
        damping: float = 1e-2,
    ) -> None:
        super().__init__()
        self._kernel = gaussian(check_above("sigma", sigma))
        self._step = check_above("step", step)
        self._coherence = check_between("coherence", coherence, 0.0, 1.0)
        self._damping = check_above("damping", damping)

    def _start(self, features: int) -> None:
        self._centres = Centres(features)

    @property
    def size(self) -> int:
        """Size of the dictionary."""
        return 0 if self._features is None else len(self._centres)

    def _learn(self, x: Array, y: float) -> None:
        centres = self._centres
        k = self._kernel(x[None], centres.points)[0]
        if k.max(initial=0.0) <= self._coherence:
            centres.extend(x[None], 0.0)
            k = np.append(k, 1.0)
        error = y - float(k @ centres.weights)
        centres.weights[:] += self._step * error / (self._damping + float(k @ k)) * k

    def _answer(self, points: Array) -> Array:
        return expand(self._kernel, points, self._centres.points, self._centres.weights)
