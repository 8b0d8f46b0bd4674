"""Which missing cells of a grid to fill. Plain arrays only."""

from __future__ import annotations

import numpy as np

from dkrls_cli.kernels import Array
from dkrls_cli.tensors import Mask


def gap_lengths(missing: Mask, axis: int, coordinates: Array) -> Array:
    """How long the gap along one axis is that each missing cell lies in; 0 where none is.

    That is the distance from the last observed coordinate before the gap to the first one after.
    At an end of the axis it is the distance to the outermost missing one, and it has no end where
    nothing is observed along the axis.

    Examples
    --------
    >>> gap_lengths(np.array([True, False, True, True, False]), 0, np.array([0, 1, 2, 5, 6.0]))
    array([1., 0., 5., 5., 0.])
    """
    order = np.argsort(coordinates)
    places = coordinates[order].reshape(-1, *[1] * (missing.ndim - 1))
    gaps = np.moveaxis(missing, axis, 0)[order]
    low = np.maximum.accumulate(np.where(gaps, -np.inf, places), axis=0)
    high = np.minimum.accumulate(np.where(gaps, np.inf, places)[::-1], axis=0)[::-1]
    nowhere = np.isinf(low) & np.isinf(high)
    lengths = np.where(np.isinf(high), places[-1], high) - np.where(np.isinf(low), places[0], low)
    lengths[nowhere] = np.inf
    lengths[~gaps] = 0.0
    result = np.empty(lengths.shape)
    result[order] = lengths
    return np.moveaxis(result, 0, axis)


def always_missing(missing: Mask, axis: int) -> Mask:
    """Cells that are missing all along an axis, in a shape that broadcasts to the grid's."""
    return np.asarray(missing.all(axis=axis, keepdims=True))


def outside(coordinates: Array, known: Array, period: float | None) -> Mask:
    """Coordinates beyond those of a model, where it could only extrapolate."""
    if period is not None:
        return np.zeros(coordinates.shape, bool)
    low, high = known.min(), known.max()
    slack = 1e-9 * max(high - low, abs(low), abs(high))
    return np.asarray((coordinates < low - slack) | (coordinates > high + slack))
