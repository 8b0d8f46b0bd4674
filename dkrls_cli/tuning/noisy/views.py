"""Hidden cells of a grid whose observations have errors.

Hidden cells count by how accurate they are (:mod:`dkrls_cli.tuning.noisy.scores`). That leaves
little to say how good answers are where all data is poor, as where one of two instruments has seen
half of the grid: every hidden cell there is poor as well. So, as gaps are shifted to hide what is
known (:mod:`dkrls_cli.tuning.masks`), the errors of poor regions are shifted to accurate cells,
which are then seen with noise of that size. The hidden cells among them tell how good answers from
poor data are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.gaps.noisy.analysis import (
    good_precision,
    local_precision,
    measure_spread,
    poorness,
)
from dkrls_cli.gaps.pattern import spread_to_missing
from dkrls_cli.tuning.masks import HiddenWindow
from dkrls_cli.tuning.noisy.scores import weigh_by_errors

_POOR = 2.0
"""Errors around a cell, as a multiple of those of good data, from which data is poor."""

_REGION = 0.1
"""Share of the cells with poor data around them from which that is no chance."""

_SPOILT = 0.5
"""Share of the good cells that are seen with the errors of poor ones."""

_SHIFTS = 8
"""Shifts of the poor regions to choose from."""


def tell_by_errors(
    windows: Sequence[HiddenWindow], values: Array, errors: Array, rng: np.random.Generator
) -> list[HiddenWindow]:
    """Return windows whose hidden cells tell of good and of poor data, and count by accuracy.

    Parameters
    ----------
    windows
        Parts of the grid with hidden cells, and the errors of their observations.
    values, errors
        The whole grid.
    rng
        Random numbers for shifts and noise.
    """
    spread, observed = measure_spread(values, errors), np.isfinite(values)
    good = good_precision(local_precision(observed, errors, spread.signal), observed)
    known = [
        _with_poorness(_spoil(w, spread.signal, good, rng), spread.signal, good) for w in windows
    ]
    told = [(w.powers, w.shares, _noise(w)) for w in known]
    weights = weigh_by_errors(told, spread.variance)
    return [replace(w, weights=own) for w, own in zip(known, weights, strict=True)]


def _noise(window: HiddenWindow) -> Array:
    assert window.noise is not None
    return window.noise


def _with_poorness(window: HiddenWindow, signal: float, good: float) -> HiddenWindow:
    """Return a window that knows how poor the data around every cell is."""
    assert window.seen_noise is not None
    seen = np.isfinite(window.seen)
    return replace(window, poorness=poorness(seen, np.sqrt(window.seen_noise), signal, good))


def _spoil(
    window: HiddenWindow, signal: float, good: float, rng: np.random.Generator
) -> HiddenWindow:
    """Return a window in which about half of the good cells are seen with errors of poor ones.

    Regions of poor data are shifted and mirrored, with their errors. Of some shifts the one is
    taken that comes nearest to a half.
    """
    assert window.errors is not None
    observed = np.isfinite(window.values)
    poor = poorness(observed, window.errors, signal, good) >= _POOR
    accurate = observed & ~poor
    share = np.count_nonzero(poor & observed) / np.count_nonzero(observed)
    if share < _REGION or not accurate.any():
        return window
    errors = np.where(poor, spread_to_missing(window.errors, observed), 0.0)
    axes = tuple(range(errors.ndim))
    best, nearest = np.zeros(errors.shape), np.inf
    for _ in range(_SHIFTS):
        mirrored = np.flip(errors, tuple(axis for axis in axes if rng.random() < 0.5))
        shifted = np.roll(mirrored, [int(rng.integers(size)) for size in errors.shape], axes)
        away = abs(np.count_nonzero(accurate & (shifted > 0)) / accurate.sum() - _SPOILT)
        if away < nearest:
            best, nearest = shifted, away
    variance = np.where(observed, np.maximum(best**2 - window.errors**2, 0.0), 0.0)
    noise = np.sqrt(variance) * rng.standard_normal(variance.shape)
    return replace(window, added=noise, added_variance=variance)
