"""QKLMS: quantized kernel least mean squares (Chen, Zhao, Zhu and Principe, 2012).

KLMS in which a sample within a radius of its nearest centre changes the weight of that centre, and
any other sample becomes a new centre. Which centre a sample belongs to depends on the inputs only,
so a block first assigns its samples to centres; then the errors are
e_i = r_i - sum_{j<i} k(x_i, q_j) eta e_j, with q_j the centre of sample j.
"""

from __future__ import annotations

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.baselines.checks import check_above, check_between
from dkrls_cli.baselines.expansion import BlockExpansion
from dkrls_cli.baselines.gaussian import apply_gaussian, gaussian, squared_distances
from dkrls_cli.baselines.gradient.klms import BLOCK

# Centres compared with a block at a time: a kernel matrix of one megabyte.
CENTRES_AT_ONCE = 1024


class QKLMS(BlockExpansion):
    """Quantized kernel least mean squares.

    Parameters
    ----------
    sigma
        Length scale of the Gaussian kernel.
    step
        eta, the step size.
    radius
        Largest distance at which a sample is merged into its nearest centre, in units of the
        features.
    """

    paper_name = "QKLMS"
    summary = "KLMS with samples near a centre merged into it."

    def __init__(self, *, sigma: float = 1.0, step: float = 0.9, radius: float = 0.1) -> None:
        self._sigma = check_above("sigma", sigma)
        super().__init__(gaussian(self._sigma), BLOCK)
        self._step = check_above("step", step)
        self._radius2 = check_between("radius", radius, 0.0, np.finfo(np.float64).max) ** 2

    def _learn_block(self, points: Array, values: Array) -> None:
        centres, before = self._centres, len(self._centres)
        learnt, nearest, distance = self._compare_with_centres(points)
        assigned = self._assign(points, nearest, distance)
        new = assigned >= before
        fresh = np.flatnonzero(new)[np.unique(assigned[new], return_index=True)[1]]
        centres.extend(points[fresh], 0.0)
        among = apply_gaussian(squared_distances(points, centres.points[:, assigned]), self._sigma)
        weights = np.zeros(len(points))
        for i, error in enumerate(values - learnt):
            weights[i] = self._step * (error - among[i, :i] @ weights[:i])
        np.add.at(centres.weights, assigned, weights)

    def _compare_with_centres(self, points: Array) -> tuple[Array, Indices, Array]:
        """Return for each point the present answer, the nearest centre, its squared distance."""
        every, centres = np.arange(len(points)), self._centres
        learnt, nearest = np.zeros(len(points)), np.full(len(points), -1)
        distance = np.full(len(points), np.inf)
        for left in range(0, len(centres), CENTRES_AT_ONCE):
            there = slice(left, left + CENTRES_AT_ONCE)
            squares = squared_distances(points, centres.points[:, there])
            closest = np.argmin(squares, axis=1)
            closer = squares[every, closest] < distance
            nearest[closer] = left + closest[closer]
            distance[closer] = squares[every, closest][closer]
            learnt += apply_gaussian(squares, self._sigma) @ centres.weights[there]
        return learnt, nearest, distance

    def _assign(self, points: Array, nearest: Indices, distance: Array) -> Indices:
        """Return the centre of each sample; numbers from the present size on are new centres."""
        first_new = len(self._centres)
        squares = squared_distances(points, points.T)
        np.fill_diagonal(squares, np.inf)
        if not (squares <= self._radius2).any():  # no sample can join a centre made in this block
            far = distance > self._radius2
            return np.where(far, first_new + np.cumsum(far) - 1, nearest)
        assigned, made = np.empty(len(points), np.intp), list[int]()
        for i in range(len(points)):
            here = int(np.argmin(squares[i, made])) if made else -1
            closest, place = distance[i], nearest[i]
            if made and squares[i, made[here]] < closest:
                closest, place = squares[i, made[here]], first_new + here
            if closest > self._radius2:
                place = first_new + len(made)
                made.append(i)
            assigned[i] = place
        return assigned
