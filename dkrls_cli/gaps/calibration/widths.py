"""How wide error bars are by the distance to data, from the errors of cells held out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.cascade.errorbars.bars import Z90
from dkrls_cli.gaps.pattern import distance_to_data

# Smallest and largest gamma: beyond them few held-out cells decide alone.
_POWERS = (0.2, 1.5)

# Groups of held-out cells, by distance to data, on which gamma is fitted.
_GROUPS = 5

# Smallest squared error of a group, as a share of the largest: keeps logarithms finite.
_LEAST = 1e-12


def calibrated(reached: Array, missed: Array) -> tuple[float, float]:
    """Return s^2 and gamma, from the distances to data of cells held out and their errors.

    Gamma is such that the width of the band fits near the data and far from it alike.
    """
    squares = missed**2
    if not squares.any():
        return 0.0, 1.0
    groups = np.array_split(np.argsort(reached, kind="stable"), min(_GROUPS, squares.size))
    far = np.array([np.log(reached[group]).mean() for group in groups])
    wide = np.log([_upper_tenth(squares[group]) + _LEAST * squares.max() for group in groups])
    far -= far.mean()
    slope = float(far @ wide / (far @ far)) if np.ptp(far) > 0.1 else 1.0
    power = min(max(slope, _POWERS[0]), _POWERS[1])
    return _upper_tenth(squares / reached**power) / Z90**2, power


def _upper_tenth(squares: Array) -> float:
    """Return the value that nine of ten further squares would stay below."""
    return float(np.quantile(squares, min(1.0, 0.9 * (1.0 + 1.0 / squares.size))))


def scale_by_distance(variance: Array, observed: Mask, factors: Sequence[float]) -> Array:
    """Return the variance of missing cells times the factor of their distance; 0 where observed."""
    away = distance_to_data(observed)
    return np.asarray(np.where(observed, 0.0, distance_factors(away, factors) * variance))


def distance_factors(away: Array, factors: Sequence[float]) -> Array:
    """Return the factor of every cell by its distance to data in cells.

    Between two powers of two the logarithm of the factor is interpolated.
    """
    powers = np.log2(np.maximum(away, 1.0))
    return np.asarray(np.exp(np.interp(powers, np.arange(len(factors)) + 0.5, np.log(factors))))
