"""The interface of every baseline: learn one sample at a time, answer at any number of points."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dkrls_cli.arrays import Array
from dkrls_cli.errors import InputError

# Points answered in one call: bounds the memory of a prediction, whatever the number of points.
POINTS_AT_ONCE = 4096


class Baseline(ABC):
    """An online learner of a function of several features.

    There is no bias, centring or scaling: callers centre the data. Before the first sample every
    answer is 0.

    Attributes
    ----------
    paper_name
        The name of the method in the D-KRLS paper.
    summary
        What the method does, in one line.
    """

    paper_name: ClassVar[str]
    summary: ClassVar[str]

    def __init__(self) -> None:
        self._features: int | None = None

    def update(self, x: ArrayLike, y: float) -> None:
        """Learn one sample.

        Parameters
        ----------
        x
            Features (D,), finite. The first sample sets D.
        y
            The value there, finite.

        Raises
        ------
        InputError
            If the sample has another shape than the first, or is not finite. Nothing is learnt.
        """
        point, value = np.asarray(x, np.float64), float(y)
        self._check_sample(point, value)
        if self._features is None:
            self._start(point.size)
            self._features = point.size
        self._learn(point, value)

    def _check_sample(self, point: Array, value: float) -> None:
        """Raise InputError if a sample has the wrong shape or is not finite."""
        if point.ndim != 1 or point.size != (self._features or max(point.size, 1)):
            expected = f"({self._features or 'features'},)"
            raise InputError(f"Invalid sample of shape {point.shape}. It must be {expected}.")
        if not (math.isfinite(value) and np.isfinite(point).all()):
            raise InputError(f"Invalid sample {point} -> {value}. It must be finite: leave it out.")

    def predict(self, X: ArrayLike) -> Array:  # noqa: N803 (a matrix)
        """Return the answers at points.

        Parameters
        ----------
        X
            Points (n, D).

        Returns
        -------
        Array
            Answers (n,); zeros before the first sample.

        Raises
        ------
        InputError
            If the points do not have the features of the samples.
        """
        points = np.asarray(X, np.float64)
        if points.ndim != 2 or (self._features is not None and points.shape[1] != self._features):
            expected = f"(points, {self._features or 'features'})"
            raise InputError(f"Invalid points of shape {points.shape}. They must be {expected}.")
        if self._features is None or len(points) == 0:
            return np.zeros(len(points))
        return np.concatenate([self._answer(part) for part in split_points(points)])

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of samples that an answer is computed from."""

    @abstractmethod
    def _start(self, features: int) -> None:
        """Allocate storage for samples with this number of features."""

    @abstractmethod
    def _learn(self, x: Array, y: float) -> None:
        """Learn one checked sample."""

    @abstractmethod
    def _answer(self, points: Array) -> Array:
        """Return the answers at checked points, after at least one sample."""


class BlockBaseline(Baseline):
    """A baseline that learns samples in blocks, with the results of learning them one by one.

    Samples wait until a block is full or an answer is needed.
    """

    def __init__(self, block: int) -> None:
        super().__init__()
        self._block = block

    def _start(self, features: int) -> None:
        self._waiting = np.empty((self._block, features))
        self._values = np.empty(self._block)
        self._count = 0

    def _learn(self, x: Array, y: float) -> None:
        self._waiting[self._count] = x
        self._values[self._count] = y
        self._count += 1
        if self._count == self._block:
            self._learn_waiting()

    def _learn_waiting(self) -> None:
        """Learn the samples that wait."""
        if self._features is not None and self._count:
            count, self._count = self._count, 0
            self._learn_block(self._waiting[:count], self._values[:count])

    @abstractmethod
    def _learn_block(self, points: Array, values: Array) -> None:
        """Learn a block of samples (n, D), as if they came one after another."""


def split_points(points: Array) -> list[Array]:
    """Return points (n, D) in parts of at most `POINTS_AT_ONCE`."""
    return [points[top : top + POINTS_AT_ONCE] for top in range(0, len(points), POINTS_AT_ONCE)]
