"""Warps as candidates: the logarithm or the square root of a coordinate in its place."""

from __future__ import annotations

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.kernels import WARPS

_RANGE = 4.0
"""Largest coordinate, as a multiple of the least, from which on a warp changes anything."""

_MORE_EVEN = 0.8
"""Unevenness of the warped steps, as a share of that of the steps, from which on it is tried."""

_LEAST = 4
"""Coordinates from which a warp can be told by leaving slices out."""


def warps_worth_trying(coordinates: Array) -> list[str]:
    """Return the warps that make the steps of an axis above 0 clearly more even.

    >>> warps_worth_trying(np.geomspace(1.0, 1000.0, 20)), warps_worth_trying(np.arange(1.0, 20.0))
    (['log', 'sqrt'], [])
    """
    if coordinates.size < _LEAST or not coordinates.min() > 0:
        return []
    if coordinates.max() < _RANGE * coordinates.min():
        return []
    own = _unevenness(coordinates)
    return [
        name for name, warp in WARPS.items() if _unevenness(warp(coordinates)) < _MORE_EVEN * own
    ]


def _unevenness(coordinates: Array) -> float:
    """Return the standard deviation of the steps as a share of their mean."""
    steps = np.diff(np.sort(coordinates))
    with np.errstate(over="ignore", invalid="ignore"):  # then no warp is found to be more even
        return float((steps / steps.max()).std() / (steps / steps.max()).mean())
