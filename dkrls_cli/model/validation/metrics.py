"""Metrics of answers against the truth, and limits on them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.errorbars.bars import Z90
from dkrls_cli.errors import SettingError
from dkrls_cli.spelling import suggest

NAMES = ("n", "rmse", "mae", "max_error", "normalized_max_error", "bias", "r2")
"""Metrics that :func:`scores` returns."""

ERRORS = ("rmse", "mae", "max_error", "normalized_max_error", "bias")
"""Metrics of which less is better (bias by its magnitude), so that they can have a limit."""


def scores(truth: ArrayLike, answers: ArrayLike) -> dict[str, float]:
    """Return the metrics of answers, over all cells whose truth is known.

    Parameters
    ----------
    truth
        True values, NaN where they are not known.
    answers
        Answers for the same cells.

    Returns
    -------
    dict
        By name, in the order of :data:`NAMES`. ``normalized_max_error`` is the largest error over
        the largest magnitude of the truth, as in the paper; ``bias`` is the mean of answer minus
        truth. A metric that has no value (no cell is known; ``r2`` of a constant truth) is NaN.

    Examples
    --------
    >>> found = scores([1.0, 2.0, float("nan")], [1.0, 4.0, 5.0])
    >>> found["n"], found["mae"], found["bias"]
    (2, 1.0, 1.0)
    """
    return Tally.of(truth, answers).scores


@dataclass(frozen=True)
class Tally:
    """Sums over some cells from which metrics follow; those of several blocks are added.

    Attributes
    ----------
    n
        Cells whose truth is known.
    error, magnitude, squares, worst
        Sum of the errors, of their magnitudes and of their squares, and the largest magnitude.
    low, high, mean, spread
        Least and largest truth, its mean, and the sum of the squares of its deviations from that.
    banded, inside
        Cells that have a 90 % band, and those whose truth lies in it.

    Examples
    --------
    >>> both = Tally.of([1.0], [1.0]) + Tally.of([2.0], [4.0])
    >>> both.scores == scores([1.0, 2.0], [1.0, 4.0])
    True
    """

    n: int = 0
    error: float = 0.0
    magnitude: float = 0.0
    squares: float = 0.0
    worst: float = 0.0
    low: float = math.inf
    high: float = -math.inf
    mean: float = 0.0
    spread: float = 0.0
    banded: int = 0
    inside: int = 0

    @classmethod
    def of(cls, truth: ArrayLike, answers: ArrayLike, variance: ArrayLike | None = None) -> Self:
        """Return the sums of some cells; without a variance, none has a band."""
        t, a = np.asarray(truth, np.float64), np.asarray(answers, np.float64)
        known = np.isfinite(t)
        banded, inside = (0, 0) if variance is None else _count_within(Z90, t, a, variance)
        t, error = t[known], a[known] - t[known]
        if not t.size:
            return cls()
        size, mean = np.abs(error), t.mean()
        return cls(
            t.size,
            float(error.sum()),
            float(size.sum()),
            float(np.sum(error**2)),
            float(size.max()),
            float(t.min()),
            float(t.max()),
            float(mean),
            float(np.sum((t - mean) ** 2)),
            banded,
            inside,
        )

    def __add__(self, other: Self) -> Self:
        """Return the sums of the cells of both."""
        n = self.n + other.n
        if not n:
            return self
        apart = other.mean - self.mean
        return type(self)(
            n,
            self.error + other.error,
            self.magnitude + other.magnitude,
            self.squares + other.squares,
            float(np.maximum(self.worst, other.worst)),  # NaN stays NaN
            min(self.low, other.low),
            max(self.high, other.high),
            self.mean + apart * other.n / n,
            self.spread + other.spread + apart**2 * self.n * other.n / n,
            self.banded + other.banded,
            self.inside + other.inside,
        )

    @property
    def scores(self) -> dict[str, float]:
        """Metrics, as :func:`scores` returns them."""
        n = self.n
        if n == 0:
            return dict.fromkeys(NAMES, float("nan")) | {"n": 0}
        largest = max(abs(self.low), abs(self.high))
        varies = self.low < self.high and self.spread > 0
        return {
            "n": n,
            "rmse": math.sqrt(self.squares / n),
            "mae": self.magnitude / n,
            "max_error": self.worst,
            "normalized_max_error": self.worst / largest if largest > 0 else float("nan"),
            "bias": self.error / n,
            "r2": 1.0 - self.squares / self.spread if varies else float("nan"),
        }

    @property
    def coverage90(self) -> float:
        """Share of cells whose truth lies in the 90 % band, as :func:`coverage90` returns it."""
        return self.inside / self.banded if self.banded else float("nan")


def coverage90(truth: ArrayLike, answers: ArrayLike, variance: ArrayLike) -> float:
    """Return the share of cells whose truth lies in the 90 % band of their answer.

    Parameters
    ----------
    truth
        True values, NaN where they are not known.
    answers, variance
        Answers for the same cells, and their variances. Cells of variance 0, which are passed
        through, have no band and do not count.

    Returns
    -------
    float
        From 0 to 1; NaN if no cell counts.

    Examples
    --------
    >>> coverage90([0.0, 0.0], [1.0, 2.0], [1.0, 1.0])
    0.5
    """
    return _share_within(Z90, truth, answers, variance)


def coverage(truth: ArrayLike, answers: ArrayLike, variance: ArrayLike, level: float) -> float:
    """Return the share of cells whose truth lies in the central interval of their answer.

    Parameters
    ----------
    truth, answers, variance
        As for :func:`coverage90`.
    level
        Probability of the interval of a normal distribution, between 0 and 1.

    Returns
    -------
    float
        From 0 to 1; NaN if no cell counts.

    Raises
    ------
    SettingError
        If the level is not between 0 and 1.

    Examples
    --------
    >>> coverage([0.0, 0.0], [1.9, 2.0], [1.0, 1.0], 0.95)
    0.5
    """
    return _share_within(_half_width(level), truth, answers, variance)


def _share_within(width: float, truth: ArrayLike, answers: ArrayLike, variance: ArrayLike) -> float:
    """Return the share of cells with an error of at most so many standard deviations."""
    cells, inside = _count_within(width, truth, answers, variance)
    return inside / cells if cells else float("nan")


def _count_within(
    width: float, truth: ArrayLike, answers: ArrayLike, variance: ArrayLike
) -> tuple[int, int]:
    """Count the cells with a band, and those with an error of at most so many deviations."""
    t, a = np.asarray(truth, np.float64), np.asarray(answers, np.float64)
    v = np.asarray(variance, np.float64)
    known = np.isfinite(t) & (v > 0)
    inside = np.abs(a[known] - t[known]) <= width * np.sqrt(v[known])
    return inside.size, int(np.count_nonzero(inside))


def _half_width(level: float) -> float:
    """Return the half width of the central interval of a normal distribution, in deviations."""
    from scipy.special import ndtri

    if not 0 < level < 1:
        raise SettingError(f"Invalid level {level:g} of an interval. Give one between 0 and 1.")
    return float(ndtri((1 + level) / 2))


def interval_score(
    truth: ArrayLike, answers: ArrayLike, variance: ArrayLike, level: float
) -> float:
    """Return the mean interval score of the central interval of the answers.

    The score of a cell is the width of its interval plus, if the truth lies outside, the distance
    to the interval times ``2 / (1 - level)``. It rewards intervals that are narrow and hold the
    truth as often as they should (Gneiting and Raftery 2007).

    Parameters
    ----------
    truth
        True values, NaN where they are not known.
    answers, variance
        Answers for the same cells, and their variances.
    level
        Probability of the interval of a normal distribution, between 0 and 1.

    Returns
    -------
    float
        In the units of the data, less is better; NaN if no truth is known, or an answer or its
        variance is missing.

    Raises
    ------
    SettingError
        If the level is not between 0 and 1.

    Examples
    --------
    >>> round(interval_score([0.0, 3.0], [0.0, 0.0], [1.0, 1.0], 0.95), 2)
    24.72
    """
    error, deviation = _errors_and_deviations(truth, answers, variance)
    half = _half_width(level) * deviation
    outside = np.maximum(np.abs(error) - half, 0.0)
    return _mean(2 * half + 2 / (1 - level) * outside)


def crps(truth: ArrayLike, answers: ArrayLike, variance: ArrayLike) -> float:
    """Return the mean continuous ranked probability score of normal distributions.

    The score of a cell is the integral over x of the squared difference between the distribution
    function of the answer and the step from 0 to 1 at the truth, in closed form (Gneiting and
    Raftery 2007). Where the variance is 0 it is the absolute error.

    Parameters
    ----------
    truth
        True values, NaN where they are not known.
    answers, variance
        Means of the distributions for the same cells, and their variances.

    Returns
    -------
    float
        In the units of the data, less is better; NaN if no truth is known, or an answer or its
        variance is missing.

    Examples
    --------
    >>> round(crps([0.0], [0.0], [1.0]), 4)
    0.2337
    >>> crps([1.0, 0.0], [3.0, 0.0], [0.0, 0.0])
    1.0
    """
    from scipy.special import ndtr

    error, s = _errors_and_deviations(truth, answers, variance)
    z = np.divide(error, s, out=np.zeros_like(error), where=s != 0)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    normal = error * (2 * ndtr(z) - 1) + s * (2 * density - 1 / np.sqrt(np.pi))
    return _mean(np.where(s == 0, np.abs(error), normal))


def _errors_and_deviations(
    truth: ArrayLike, answers: ArrayLike, variance: ArrayLike
) -> tuple[Array, Array]:
    """Return the errors of the cells whose truth is known, and their standard deviations."""
    t, a = np.asarray(truth, np.float64), np.asarray(answers, np.float64)
    known = np.isfinite(t)
    return a[known] - t[known], np.sqrt(np.asarray(variance, np.float64)[known])


def _mean(values: Array) -> float:
    """Return the mean, or NaN of no values."""
    return float(values.mean()) if values.size else float("nan")


def exceeded(metrics: Mapping[str, float], limits: Mapping[str, float]) -> list[str]:
    """Return the names of the metrics whose magnitude is above its limit.

    Parameters
    ----------
    metrics
        Metrics by name, as :func:`scores` returns them.
    limits
        Largest magnitudes allowed, by name of a metric in :data:`ERRORS`.

    Returns
    -------
    list of str
        In the order of the limits. A metric that is NaN is above any limit.

    Raises
    ------
    SettingError
        If a limit is on anything but a metric of which less is better.

    Examples
    --------
    >>> exceeded({"rmse": 0.5, "bias": -0.2}, {"rmse": 0.5, "bias": 0.1})
    ['bias']
    """
    unknown = [name for name in limits if name not in ERRORS]
    if unknown:
        raise SettingError(
            f"'{unknown[0]}' is not a metric that can have a limit. Choose from: "
            f"{', '.join(ERRORS)}.{suggest(unknown[0], ERRORS)}"
        )
    return [name for name, limit in limits.items() if not abs(metrics[name]) <= limit]
