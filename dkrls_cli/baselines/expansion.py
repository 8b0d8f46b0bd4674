"""Block baselines whose answers are a weighted sum of kernels at centres."""

from __future__ import annotations

from dkrls_cli.arrays import Array
from dkrls_cli.baselines.buffers import Centres
from dkrls_cli.baselines.contract import BlockBaseline
from dkrls_cli.baselines.gaussian import KernelFunction, expand


class BlockExpansion(BlockBaseline):
    """A block baseline with centres and weights: f(z) = sum_j w_j k(c_j, z).

    Subclasses append centres and change weights in `_learn_block`.
    """

    def __init__(self, kernel: KernelFunction, block: int) -> None:
        super().__init__(block)
        self._kernel = kernel

    def _start(self, features: int) -> None:
        super()._start(features)
        self._centres = Centres(features)

    @property
    def size(self) -> int:
        """Number of centres."""
        self._learn_waiting()
        return 0 if self._features is None else len(self._centres)

    def _answer(self, points: Array) -> Array:
        self._learn_waiting()
        return self._expand(points)

    def _expand(self, points: Array) -> Array:
        """Return the weighted sum of kernels at points (n, D)."""
        return expand(self._kernel, points, self._centres.points, self._centres.weights)
