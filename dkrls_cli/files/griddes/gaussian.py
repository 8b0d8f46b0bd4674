"""Latitudes of Gaussian grids: where a quadrature of Gauss and Legendre has its nodes."""

from __future__ import annotations

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.errors import InputError

# Latitudes of a Gaussian grid: more take minutes to compute, and no model has them.
_MOST_GAUSSIAN = 16000


def gaussian_latitudes(rows: int) -> Array:
    """Return the latitudes of a Gaussian grid in degrees, from north to south.

    Their sines are the roots of the Legendre polynomial of degree `rows`, by Newton's method from
    the asymptotic formula, which takes three or four steps.

    >>> gaussian_latitudes(2).round(6).tolist()
    [35.26439, -35.26439]
    """
    if rows > _MOST_GAUSSIAN:
        raise InputError(
            f"A Gaussian grid of {rows} latitudes is too large. At most {_MOST_GAUSSIAN} are known."
        )
    angle = np.pi * (np.arange(rows) + 0.75) / (rows + 0.5)
    for _ in range(8):
        sine, before, value = np.cos(angle), np.ones(rows), np.cos(angle)
        for degree in range(2, rows + 1):
            before, value = (
                value,
                ((2 * degree - 1) * sine * value - (degree - 1) * before) / degree,
            )
        # of P(cos angle) by the angle; the step is in angles, which are exact near the poles
        slope = rows * (sine * value - before) / np.sin(angle)
        step = value / slope
        angle = angle - step
        if np.abs(step).max() < 1e-15:
            break
    latitude = 90.0 - np.degrees(angle)
    return np.asarray((latitude - latitude[::-1]) / 2)  # symmetric to the last digit
