"""Warps as candidates: the logarithm or the square root of a coordinate in its place."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.kernels import WARPS
from dkrls_cli.tuning.tables.leftout import Ratio

TAKEN = 0.8
"""Errors of left-out slices, as a share of those without a warp, from which on one is taken."""

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


def pick_warp(errors: Mapping[str | None, Array]) -> str | None:
    """Return the warp of least errors if it is clearly better than none.

    Errors are mean squares on inner slices that are left out. The first are those without a warp.
    """
    none, *warps = errors
    ratios = {warp: Ratio.of(errors[warp], errors[none]) for warp in warps}
    best = min(warps, key=lambda warp: ratios[warp].mean)
    return best if ratios[best].mean < TAKEN else none


def _unevenness(coordinates: Array) -> float:
    """Return the standard deviation of the steps as a share of their mean."""
    steps = np.diff(np.sort(coordinates))
    return float(steps.std() / steps.mean())
