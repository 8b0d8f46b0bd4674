"""The ridge of a model of observations with errors: as large as the errors on hidden cells say.

Given errors of the observations, the ridge changes predictions little: both are noise in the eyes
of the field. But the ridge is real detail of the quantity, and error bars grow with it. So of all
ridges that predict hidden cells as well, the one is taken with which they differ from their answers
by as much as they should.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.gaps.field import Field
from dkrls_cli.gaps.noisy.analysis import split_noise
from dkrls_cli.gaps.samples import posterior_variance
from dkrls_cli.tuning.masks import HiddenWindow

_DRAWS = 4
"""Draws for the variance of hidden cells: their mean over many cells is all that counts."""

_SEED = (2019, 2)
"""Seed of these draws."""

_LEAST = 0.1
"""Least ratio of squared errors to what is promised: below, noise is stated too large."""


def misfit(
    windows: Sequence[HiddenWindow], fields: Sequence[Field], ridge: float, scale: float
) -> float:
    """Return the logarithm of the squared errors on hidden cells as a multiple of those promised.

    It is the mean over the powers of two of their distance to data. Where a mean square is no more
    than the errors of the observations explain, by as much as chance would have it, it says little.

    Parameters
    ----------
    windows
        Parts of the grid, their hidden cells answered for.
    fields
        The prior in each of them.
    ridge, scale
        lambda and s^2.
    """
    each = [_compare(w, f, ridge, scale) for w, f in zip(windows, fields, strict=True)]
    squares, promised, noise, weights = np.concatenate(each, axis=1)
    powers = np.concatenate([window.powers for window in windows])
    total, log = 0.0, 0.0
    for power in np.unique(powers[weights > 0]):
        here = (powers == power) & (weights > 0)
        part = float(weights[here].sum())
        log += part * _log_ratio(squares[here], promised[here], noise[here], weights[here] / part)
        total += part
    return log / total if total > 0 else 0.0


def _compare(window: HiddenWindow, field: Field, ridge: float, scale: float) -> Array:
    """Return squared errors, promised variances, noise and weights of hidden cells (4, n)."""
    assert window.seen_noise is not None
    assert window.noise is not None
    seen = np.isfinite(window.seen)
    least, rest = split_noise(field, seen, ridge, window.seen_noise / scale)
    drawn = posterior_variance(field, seen, least, _SEED, rest, _DRAWS)[window.hidden]
    promised = scale * (drawn + ridge)
    return np.array([window.residuals**2, promised, window.noise, window.shares])


def _log_ratio(squares: Array, promised: Array, noise: Array, weights: Array) -> float:
    """Return the logarithm of squared errors, less the noise, per promised variance.

    Both are larger by one standard deviation of the mean square of the noise.
    """
    chance = math.sqrt(2.0 * float(np.sum((weights * noise) ** 2)))
    found, due = float(weights @ (squares - noise)), float(weights @ promised)
    if not due > 0:
        return 0.0
    return math.log(max(found + chance, _LEAST * due) / (due + chance))
