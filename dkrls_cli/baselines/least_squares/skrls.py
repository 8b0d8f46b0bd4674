"""S-KRLS: kernel RLS with approximate linear dependency (Engel, Mannor and Meir, 2004).

Also known as ALD-KRLS. A sample joins the dictionary if its features are further than a tolerance
from the span of those kept: delta = k(x, x) - k' K^-1 k. Every other sample updates the weights by
a recursive least-squares step in that span. There is no ridge and no forgetting.

The state holds K times the weights, which are the answers at the dictionary: for a new member that
is its value, and a step changes them without K^-1. The weights are computed when an answer is
needed.
"""

from __future__ import annotations

from dkrls_cli.arrays import Array
from dkrls_cli.baselines.buffers import Centres, Symmetric
from dkrls_cli.baselines.checks import check_above, check_count
from dkrls_cli.baselines.contract import Baseline
from dkrls_cli.baselines.gaussian import expand, gaussian


class SKRLS(Baseline):
    """Sparsified kernel recursive least squares.

    Parameters
    ----------
    sigma
        Length scale of the Gaussian kernel.
    tolerance
        nu (the paper's delta), the squared distance to the span above which a sample is kept.
    budget
        Size at which the dictionary stops growing.
    """

    paper_name = "S-KRLS"
    summary = "Recursive least squares on a dictionary of nearly independent samples."

    def __init__(self, *, sigma: float = 1.0, tolerance: float = 1e-4, budget: int = 1_000) -> None:
        super().__init__()
        self._kernel = gaussian(check_above("sigma", sigma))
        self._tolerance = check_above("tolerance", tolerance)
        self._budget = check_count("budget", budget)
        self._inverse, self._p = Symmetric(), Symmetric()

    def _start(self, features: int) -> None:
        self._centres = Centres(features)

    @property
    def size(self) -> int:
        """Size of the dictionary."""
        return self._inverse.size

    def _learn(self, x: Array, y: float) -> None:
        b = self._kernel(x[None], self._centres.points)[0]
        a = self._inverse.times(b)
        delta = 1.0 - float(b @ a)
        if delta > self._tolerance and self.size < self._budget:
            self._inverse.extend_inverse(a, delta)
            self._p.append(corner=1.0)
            self._centres.extend(x[None], y)
            return
        values = self._centres.weights
        pa = self._p.times(a)
        spread = 1.0 + float(a @ pa)
        self._p.add_outer(-1.0 / spread, pa)
        values += pa * ((y - float(a @ values)) / spread)

    def _answer(self, points: Array) -> Array:
        weights = self._inverse.times(self._centres.weights)
        return expand(self._kernel, points, self._centres.points, weights)
