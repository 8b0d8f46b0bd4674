"""What every baseline is: it learns one sample at a time and answers at any number of points."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dkrls_cli.arrays import Array
from dkrls_cli.errors import InputError, SettingError

_AT_ONCE = 4096


class Baseline(ABC):
    """An online learner of a function of several features.

    No bias, no centring, no scaling: callers centre. Before the first sample every answer is 0.

    Attributes
    ----------
    paper_name
        What the D-KRLS paper calls it.
    summary
        What it does, in a line.
    """

    paper_name: ClassVar[str]
    summary: ClassVar[str]

    def __init__(self) -> None:
        self._features: int | None = None

    def update(self, x: ArrayLike, y: float) -> None:
        """Learn one sample: x (D,) and its value."""
        point, value = np.asarray(x, np.float64), float(y)
        self._check(point, value)
        if self._features is None:
            self._start(point.size)
            self._features = point.size
        self._learn(point, value)

    def _check(self, point: Array, value: float) -> None:
        """Refuse what is no sample, or none of this model's."""
        if point.ndim != 1 or point.size != (self._features or max(point.size, 1)):
            expected = f"({self._features or 'features'},)"
            raise InputError(f"Invalid sample of shape {point.shape}. It must be {expected}.")
        if not (math.isfinite(value) and np.isfinite(point).all()):
            raise InputError(f"Invalid sample {point} -> {value}. It must be finite: leave it out.")

    def predict(self, X: ArrayLike) -> Array:  # noqa: N803 (a matrix)
        """Answers at points X (n, D), as (n,)."""
        points = np.asarray(X, np.float64)
        if points.ndim != 2 or (self._features is not None and points.shape[1] != self._features):
            expected = f"(points, {self._features or 'features'})"
            raise InputError(f"Invalid points of shape {points.shape}. They must be {expected}.")
        if self._features is None or len(points) == 0:
            return np.zeros(len(points))
        return np.concatenate([self._answer(part) for part in parts(points)])

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of samples kept: what an answer costs."""

    @abstractmethod
    def _start(self, features: int) -> None:
        """Make room for samples of so many features."""

    @abstractmethod
    def _learn(self, x: Array, y: float) -> None:
        """Learn one checked sample."""

    @abstractmethod
    def _answer(self, points: Array) -> Array:
        """Answers at a part of the checked points, after at least one sample."""


class Blocked(Baseline):
    """A baseline that learns samples in blocks, with the results of learning them one by one.

    Samples wait until a block of them is full or an answer is asked for.
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
            self._catch_up()

    def _catch_up(self) -> None:
        """Learn what waits."""
        if self._features is not None and self._count:
            count, self._count = self._count, 0
            self._absorb(self._waiting[:count], self._values[:count])

    @abstractmethod
    def _absorb(self, points: Array, values: Array) -> None:
        """Learn a block of samples (n, D) as if they came one after another."""


def parts(points: Array) -> list[Array]:
    """Points (n, D) in parts, so that memory does not grow with n."""
    return [points[top : top + _AT_ONCE] for top in range(0, len(points), _AT_ONCE)]


def above(name: str, value: float, least: float = 0.0) -> float:
    """A finite setting above a bound."""
    if not (math.isfinite(value) and value > least):
        raise SettingError(f"Invalid {name} {value}. It must be a finite number above {least:g}.")
    return float(value)


def between(name: str, value: float, low: float, high: float) -> float:
    """A setting within bounds, both of which it may take."""
    if not low <= value <= high:
        raise SettingError(f"Invalid {name} {value}. It must be from {low:g} to {high:g}.")
    return float(value)


def count(name: str, value: int) -> int:
    """A number of samples, at least one."""
    if value != int(value) or value < 1:
        raise SettingError(f"Invalid {name} {value}. It must be a whole number above 0.")
    return int(value)
