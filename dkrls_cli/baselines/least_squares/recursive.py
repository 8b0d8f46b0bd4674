"""D-KRLS as the paper ran it: sample by sample, level by level (Algorithm 1).

The samples of a grid come with the first dimension fastest. Along each line of that dimension a
recursive least-squares model grows (Initial Modeling, (20)): each sample borders the inverse of the
level's Gram matrix. When the line ends, its weights are one sample of the next level, with a value
for each weight (Hierarchic Weight Modeling, (21)), and the next line starts from nothing. The last
level never ends. Answers before the grid is complete use the incomplete lines as they are.

The weights equal those of `dkrls_cli.cascade.cascade`, which solves for all lines at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.baselines.buffers import Symmetric
from dkrls_cli.baselines.checks import check_above
from dkrls_cli.baselines.contract import Baseline
from dkrls_cli.baselines.gaussian import apply_gaussian, gaussian
from dkrls_cli.errors import InputError, SettingError

# Cells of the largest intermediate array of an answer: 16 megabytes.
ANSWER_CELLS = 2**21


class LevelRecursion:
    """Recursive least squares along one dimension, for samples whose values are vectors."""

    def __init__(self, sigma: float, ridge: float) -> None:
        self._sigma, self._ridge = sigma, ridge
        self._coordinates, self._weights = np.empty(16), np.empty((16, 0))
        self._inverse = Symmetric()

    @property
    def size(self) -> int:
        """Number of samples so far."""
        return self._inverse.size

    @property
    def weights(self) -> Array:
        """Weights of the samples so far (m, values), as a view."""
        return self._weights[: self.size]

    def restart(self) -> None:
        """Forget all samples and keep the storage."""
        self._inverse.clear()

    def update(self, z: float, values: Array) -> None:
        """Learn one sample: border the inverse and update the weights."""
        m = self.size
        self._reserve(values.size)
        b = apply_gaussian((self._coordinates[:m] - z) ** 2, self._sigma)
        v = self._inverse.times(b)
        s = 1.0 + self._ridge - float(b @ v)
        step = (values - b @ self._weights[:m]) / s
        self._weights[:m] -= np.multiply.outer(v, step)
        self._weights[m], self._coordinates[m] = step, z
        self._inverse.extend_inverse(v, s)

    def _reserve(self, values: int) -> None:
        """Make room for one more sample with this number of values."""
        if self.size == 0 and values != self._weights.shape[1]:
            self._weights = np.empty((self._coordinates.size, values))
        if self.size == self._coordinates.size:
            self._coordinates = np.append(self._coordinates, np.empty_like(self._coordinates))
            self._weights = np.append(self._weights, np.empty_like(self._weights), axis=0)


class GridPosition:
    """The position of the latest sample in a grid that is read with the first dimension fastest."""

    def __init__(self, first: Array) -> None:
        self.axes = [[float(z)] for z in first]
        self.at = first.copy()
        self._places = [0] * first.size
        self._known = [False] * first.size  # axes whose first line has ended

    def advance(self, x: Array) -> int:
        """Move to the next sample and return how many dimensions ended a line before it.

        Raises InputError, and stays, if the sample does not continue the grid.
        """
        moved = np.flatnonzero(x[1:] != self.at[1:])
        ended = int(moved[-1]) + 1 if moved.size else 0
        places = [0] * ended + [self._places[ended] + 1]
        for axis, place in enumerate(places):
            cut_short = axis < ended and self._places[axis] + 1 < len(self.axes[axis])
            if cut_short or not self._fits(axis, place, float(x[axis])):
                raise self._error(axis, float(x[axis]))
        self._known[:ended] = [True] * ended
        self._places[: ended + 1] = places
        if places[ended] == len(self.axes[ended]):
            self.axes[ended].append(float(x[ended]))
        self.at = x.copy()
        return ended

    def _fits(self, axis: int, place: int, z: float) -> bool:
        """Return whether a coordinate is the known one at a place, or extends a first line."""
        known = self.axes[axis]
        return known[place] == z if place < len(known) else not self._known[axis]

    def _error(self, axis: int, z: float) -> InputError:
        """Return the error for a coordinate that does not continue the grid."""
        place, count = self._places[axis] + 1, len(self.axes[axis])
        return InputError(
            f"Coordinate {z} of dimension {axis} does not continue the grid ({place} of {count}). "
            "Samples must be a grid, the first dimension fastest, each line in the same order."
        )


class RecursiveDKRLS(Baseline):
    """Deep kernel recursive least squares by its recursion.

    Parameters
    ----------
    sigmas
        Length scale of the Gaussian kernel of each dimension: the paper's sigma_I, sigma_H1, ...
    ridge
        Added to the diagonal of every level's Gram matrix. The paper gives none; with a ridge below
        about 1e-8 the growing inverses are dominated by round-off on smooth data.
    """

    paper_name = "D-KRLS"
    summary = "The paper's algorithm, sample by sample and level by level."

    def __init__(self, *, sigmas: Sequence[float] = (1.0, 0.3), ridge: float = 1e-6) -> None:
        super().__init__()
        self._sigmas = [check_above("sigma", sigma) for sigma in sigmas]
        if not self._sigmas:
            raise SettingError("Invalid sigmas (). Give one for each dimension.")
        check_above("ridge", ridge)
        self._levels = [LevelRecursion(sigma, ridge) for sigma in self._sigmas]
        self._position: GridPosition | None = None
        self._finished: Array | None = None

    def _start(self, features: int) -> None:
        if features != len(self._sigmas):
            raise InputError(
                f"Samples have {features} features, the model {len(self._sigmas)} levels. "
                "Give a sigma for each feature."
            )

    @property
    def size(self) -> int:
        """Number of weights."""
        return self.weights.size

    @property
    def weights(self) -> Array:
        """Weights after all levels (m_0, m_1, ...): the record of Algorithm 1."""
        if self._position is None:
            return np.zeros((0,) * len(self._sigmas))
        if self._finished is None:
            levels = deepcopy(self._levels)
            self._close(levels, self._position.at, len(levels) - 1)
            shape = [len(axis) for axis in reversed(self._position.axes)]
            self._finished = levels[-1].weights.reshape(shape).transpose()
        return self._finished

    def _learn(self, x: Array, y: float) -> None:
        self._finished = None
        if self._position is None:
            self._position = GridPosition(x)
        else:
            before = self._position.at
            self._close(self._levels, before, self._position.advance(x))
        self._levels[0].update(float(x[0]), np.array([y]))

    def _close(self, levels: list[LevelRecursion], at: Array, count: int) -> None:
        """End the lines of the first `count` levels: each is a sample of the next level."""
        assert self._position is not None  # there was a sample
        for line, next_level, axis in zip(levels, levels[1:], range(count), strict=False):
            weights = np.zeros((len(self._position.axes[axis]), line.weights.shape[1]))
            weights[: line.size] = line.weights
            next_level.update(float(at[axis + 1]), weights.ravel())
            line.restart()

    def _answer(self, points: Array) -> Array:
        at_once = max(ANSWER_CELLS * self.weights.shape[-1] // self.size, 1)
        answers = [
            _contract(self.weights, self._kernel_rows(points[top : top + at_once]))
            for top in range(0, len(points), at_once)
        ]
        return np.concatenate(answers)

    def _kernel_rows(self, points: Array) -> list[Array]:
        """Return the kernel between points and each level's coordinates (n, m_l): (3), (6)."""
        assert self._position is not None  # there was a sample
        return [
            gaussian(sigma)(points[:, [axis]], np.array([self._position.axes[axis]]))
            for axis, sigma in enumerate(self._sigmas)
        ]


def _contract(weights: Array, rows: Sequence[Array]) -> Array:
    """Return weights (m_0, ..., m_n) contracted with rows (points, m_l) per level: (3) to (7)."""
    *inner, last = weights.shape
    result = rows[-1] @ weights.reshape(-1, last).T  # the last level first, as in (4)
    for row, size in zip(reversed(rows[:-1]), reversed(inner), strict=True):
        result = np.einsum("prm,pm->pr", result.reshape(len(row), -1, size), row)
    return np.asarray(result.reshape(len(rows[-1])))
