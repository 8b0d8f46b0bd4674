"""SW-KRLS: sliding-window kernel RLS (Van Vaerenbergh, Via and Santamaria, 2006).

Kernel ridge regression on the last samples: a new sample borders the inverse of K + c I, and the
oldest sample is removed from it, in one in-place update of O(window^2).
"""

from __future__ import annotations

from dkrls_cli.arrays import Array
from dkrls_cli.baselines.checks import check_count
from dkrls_cli.baselines.least_squares.fixed_size import FixedSizeRidge


class SWKRLS(FixedSizeRidge):
    """Sliding-window kernel recursive least squares.

    Parameters
    ----------
    sigma
        Length scale of the Gaussian kernel.
    window
        Number of samples kept (the paper's D).
    ridge
        c, added to the diagonal of the Gram matrix.
    """

    paper_name = "SW-KRLS"
    summary = "Kernel ridge regression on the last samples."

    def __init__(self, *, sigma: float = 1.0, window: int = 250, ridge: float = 1e-2) -> None:
        super().__init__(sigma, check_count("window", window), ridge)
        self._learnt = 0

    def _learn(self, x: Array, y: float) -> None:
        oldest = self._learnt % self._capacity  # its place once the window is full
        self._put(oldest, x, y, *self._border(self._kernel_to(x)))
        self._learnt += 1
