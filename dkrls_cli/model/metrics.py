"""How far answers are from the truth, under the names used everywhere."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dkrls_cli.cascade.errorbars import Z90

NAMES = ("n", "rmse", "mae", "max_error", "normalized_max_error", "bias", "r2")


ERRORS = ("rmse", "mae", "max_error", "normalized_max_error", "bias")
"""Those of which less is better; bias by its size."""


def coverage90(truth: ArrayLike, answers: ArrayLike, variance: ArrayLike) -> float:
    """Share of the cells whose truth lies in the 90 % band of their answer.

    Cells that are passed through have no band and do not count.
    """
    t, a = np.asarray(truth, np.float64), np.asarray(answers, np.float64)
    v = np.asarray(variance, np.float64)
    known = np.isfinite(t) & (v > 0)
    band = Z90 * np.sqrt(v[known])
    inside = np.abs(a[known] - t[known]) <= band
    return float(inside.mean()) if inside.size else float("nan")


def scores(truth: ArrayLike, answers: ArrayLike) -> dict[str, float]:
    """Metrics over all cells whose truth is known (NaN: not known).

    ``normalized_max_error`` is the largest error over the largest magnitude of the truth, as in
    the paper. ``bias`` is the mean of answer minus truth. What has no value (no cell; ``r2`` of a
    constant truth) is NaN.
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
