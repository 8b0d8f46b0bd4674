"""QKLMS: quantized kernel least mean squares (Chen, Zhao, Zhu and Principe, 2012).

KLMS whose step goes to the weight of the nearest centre when that lies within a radius, and to a
new centre otherwise. Where samples go depends on the inputs only, so in a block that is settled
first; then the errors are e_i = r_i - sum_{j<i} k(x_i, q_j) eta e_j with q_j the centre of
sample j.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array
from dkrls_cli.baselines.buffers import Centres
from dkrls_cli.baselines.contract import Blocked, above, between
from dkrls_cli.baselines.gaussian import decayed, expansion, gaussian, squared_distances

_WIDE = 1024  # centres at a time


class QKLMS(Blocked):
    """Quantized kernel least mean squares.

    Parameters
    ----------
    sigma
        Length scale of the Gaussian kernel.
    step
        eta, the length of a step.
    radius
        Distance up to which a sample goes to its nearest centre, in units of the features.
    """

    paper_name = "QKLMS"
    summary = "KLMS with samples near a centre merged into it."

    def __init__(self, *, sigma: float = 1.0, step: float = 0.9, radius: float = 0.1) -> None:
        super().__init__(block=128)
        self._sigma = above("sigma", sigma)
        self._step = above("step", step)
        self._reach = between("radius", radius, 0.0, np.finfo(np.float64).max) ** 2

    def _start(self, features: int) -> None:
        super()._start(features)
        self._centres = Centres(features)

    @property
    def size(self) -> int:
        """Number of centres."""
        self._catch_up()
        return 0 if self._features is None else len(self._centres)

    def _absorb(self, points: Array, values: Array) -> None:
        centres, before = self._centres, len(self._centres)
        learnt, nearest, distance = self._look(points)
        places = self._places(points, nearest, distance)
        new = places >= before
        fresh = np.flatnonzero(new)[np.unique(places[new], return_index=True)[1]]
        centres.extend(points[fresh], 0.0)
        among = decayed(squared_distances(points, centres.points[:, places]), self._sigma)
        weights = np.zeros(len(points))
        for i, error in enumerate(values - learnt):
            weights[i] = self._step * (error - among[i, :i] @ weights[:i])
        np.add.at(centres.weights, places, weights)

    def _look(self, points: Array) -> tuple[Array, NDArray[np.intp], Array]:
        """Of each point: what was learnt there, the nearest centre, its squared distance."""
        everyone, centres = np.arange(len(points)), self._centres
        learnt, nearest = np.zeros(len(points)), np.full(len(points), -1)
        distance = np.full(len(points), np.inf)
        for left in range(0, len(centres), _WIDE):
            there = slice(left, left + _WIDE)
            squares = squared_distances(points, centres.points[:, there])
            closest = np.argmin(squares, axis=1)
            closer = squares[everyone, closest] < distance
            nearest[closer] = left + closest[closer]
            distance[closer] = squares[everyone, closest][closer]
            learnt += decayed(squares, self._sigma) @ centres.weights[there]
        return learnt, nearest, distance

    def _places(
        self, points: Array, nearest: NDArray[np.intp], distance: Array
    ) -> NDArray[np.intp]:
        """The centre of each sample; those from the present number on are new."""
        first_new = len(self._centres)
        squares = squared_distances(points, points.T)
        np.fill_diagonal(squares, np.inf)
        if not (squares <= self._reach).any():  # none of them can meet in a centre made here
            far = distance > self._reach
            return np.where(far, first_new + np.cumsum(far) - 1, nearest)
        places, made = np.empty(len(points), np.intp), list[int]()
        for i in range(len(points)):
            here = int(np.argmin(squares[i, made])) if made else -1
            closest, place = distance[i], nearest[i]
            if made and squares[i, made[here]] < closest:
                closest, place = squares[i, made[here]], first_new + here
            if closest > self._reach:
                place = first_new + len(made)
                made.append(i)
            places[i] = place
        return places

    def _answer(self, points: Array) -> Array:
        self._catch_up()
        centres = self._centres
        return expansion(gaussian(self._sigma), points, centres.points, centres.weights)
