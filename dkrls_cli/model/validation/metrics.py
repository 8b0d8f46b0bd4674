"""Metrics of answers against the truth, and limits on them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from dkrls_cli.cascade.errorbars import Z90
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
    t, a = np.asarray(truth, np.float64), np.asarray(answers, np.float64)
    known = np.isfinite(t)
    t, error = t[known], a[known] - t[known]
    if t.size == 0:
        return dict.fromkeys(NAMES, float("nan")) | {"n": 0}
    largest, spread = np.abs(t).max(), np.sum((t - t.mean()) ** 2)
    worst = float(np.abs(error).max())
    return {
        "n": int(t.size),
        "rmse": float(np.sqrt(np.mean(error**2))),
        "mae": float(np.abs(error).mean()),
        "max_error": worst,
        "normalized_max_error": worst / float(largest) if largest > 0 else float("nan"),
        "bias": float(error.mean()),
        "r2": 1.0 - float(np.sum(error**2) / spread) if spread > 0 else float("nan"),
    }


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
    t, a = np.asarray(truth, np.float64), np.asarray(answers, np.float64)
    v = np.asarray(variance, np.float64)
    known = np.isfinite(t) & (v > 0)
    inside = np.abs(a[known] - t[known]) <= Z90 * np.sqrt(v[known])
    return float(inside.mean()) if inside.size else float("nan")


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
