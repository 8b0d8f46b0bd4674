"""How the missing cells of a grid lie: scattered gaps, empty slices, and masks that stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.errors import InputError

SCATTERED = 0.005
"""Scattered gaps, as a share of the observed cells, above which they count as a pattern.

Fewer than one in 200 are stray cells, too few to say how gaps usually lie.
"""

_REACH = 6.0
"""Standard deviations at which Gaussian weights end: a cell there counts for 1e-8."""


@dataclass(frozen=True)
class Pattern:
    """How much of a grid is missing, and in which way.

    Attributes
    ----------
    missing
        Share of all cells that are missing, 0 to 1.
    lost
        Number of slices without an observed cell, one number per axis.
    fixed
        Share of cells that are missing at every coordinate of the last level, such as land in a
        grid of sea temperatures; 0 if that has one coordinate. Empty slices are not counted.
    scattered
        Share of cells that are missing but not all along any axis. Empty slices are not counted.
    shape
        Size of a typical gap in cells along each axis. It is the size of the axis where gaps
        usually extend over more than half of it.
    """

    missing: float
    lost: tuple[int, ...]
    fixed: float
    scattered: float
    shape: tuple[int, ...]


def pattern(observed: Mask, last: int = -1) -> Pattern:
    """Return the pattern of missing cells of a mask of observed cells.

    Parameters
    ----------
    observed
        True where a cell has a value.
    last
        The axis of the last level.

    Raises
    ------
    InputError
        If no cell is observed.

    Examples
    --------
    >>> observed = np.ones((4, 50), bool)
    >>> observed[1, 10:13] = observed[3, 30:33] = False
    >>> pattern(observed).shape
    (1, 3)
    """
    lost = empty_slices(observed)
    kept = [np.setdiff1d(np.arange(m), gone) for m, gone in zip(observed.shape, lost, strict=True)]
    present = observed[np.ix_(*kept)]
    if present.size == 0:
        raise InputError(f"All {observed.size} values are missing. Expected at least one number.")
    gaps = scattered(present)
    enough = np.count_nonzero(gaps) > SCATTERED * np.count_nonzero(present)
    return Pattern(
        1.0 - float(observed.mean()),
        tuple(gone.size for gone in lost),
        float(np.mean(~present.any(axis=last))) if present.shape[last] > 1 else 0.0,
        float(gaps.mean()),
        _shape(gaps if enough else ~present),
    )


def scattered(observed: Mask) -> Mask:
    """Return the missing cells that have an observed cell on their line along every axis.

    An axis of one coordinate has no other cell on its lines, and does not count.
    """
    gaps = ~observed
    for axis, size in enumerate(observed.shape):
        if size > 1:
            gaps &= observed.any(axis=axis, keepdims=True)
    return gaps


def _shape(gaps: Mask) -> tuple[int, ...]:
    """Return the mean length of runs of missing cells along each axis, in cells.

    A mean above half of an axis is given as the size of the axis.
    """
    lengths = []
    for axis, size in enumerate(gaps.shape):
        first = np.take(gaps, [0], axis)
        starts = np.concatenate([first, np.diff(gaps.view(np.int8), axis=axis) == 1], axis=axis)
        run = int(np.count_nonzero(gaps)) / max(1, int(np.count_nonzero(starts)))
        lengths.append(size if run > size / 2 else max(1, round(run)))
    return tuple(lengths)


def empty_slices(observed: Mask) -> tuple[Indices, ...]:
    """Return, for each axis, the indices of coordinates at which no cell is observed."""
    axes = range(observed.ndim)
    return tuple(
        np.flatnonzero(~observed.any(axis=tuple(other for other in axes if other != axis)))
        for axis in axes
    )


def distance_to_data(observed: Mask, steps: Sequence[int] | None = None) -> Array:
    """Return the distance of every cell to the nearest observed one, in cells; 0 where observed.

    Neighbours along an axis are one cell apart, or as many as `steps` says.

    Examples
    --------
    >>> distance_to_data(np.array([[True, False, False], [False, False, False]])).round(1)
    array([[0. , 1. , 2. ],
           [1. , 1.4, 2.2]])
    """
    from scipy.ndimage import distance_transform_edt

    return np.asarray(distance_transform_edt(~observed, sampling=steps))


def local_mean(cells: Array, observed: Mask, width: int) -> Array:
    """Return the mean of the observed cells in a box around every observed cell; 0 at others.

    Parameters
    ----------
    cells
        Values, 0 where a cell is missing.
    observed
        True where a cell has a value.
    width
        Side of the box, in cells.

    Examples
    --------
    >>> local_mean(np.array([1.0, 3.0, 0.0, 6.0]), np.array([True, True, False, True]), 3)
    array([2., 2., 0., 6.])
    """
    from scipy.ndimage import uniform_filter

    parts = (cells, observed.astype(np.float64))
    around, share = (uniform_filter(part, width, mode="constant") for part in parts)
    return np.asarray(np.divide(around, share, out=np.zeros(share.shape), where=observed))


def gaussian_sum(cells: Array, widths: Sequence[float]) -> Array:
    """Return the sum of the cells around every cell, with weights that come to 1.

    Parameters
    ----------
    cells
        Values; beyond the grid they are 0.
    widths
        Standard deviations of the weights along each axis, in cells; 0: only the cell itself.

    Examples
    --------
    >>> gaussian_sum(np.array([0.0, 0.0, 1.0, 0.0, 0.0]), [0.5]).round(2).tolist()
    [0.0, 0.11, 0.79, 0.11, 0.0]
    """
    from scipy.ndimage import gaussian_filter

    return np.asarray(gaussian_filter(cells, widths, mode="constant", truncate=_REACH))


def spread_to_missing(cells: Array, observed: Mask) -> Array:
    """Return values of observed cells, and in missing cells that of the nearest observed one."""
    from scipy.ndimage import distance_transform_edt

    nearest = distance_transform_edt(~observed, return_distances=False, return_indices=True)
    return np.asarray(cells[tuple(nearest)])


def gap_lengths(missing: Mask, axis: int, coordinates: Array, period: float | None = None) -> Array:
    """Return the length of the gap that each missing cell lies in, along one axis.

    The length of a gap is the distance between the observed coordinates on either side of it. A
    gap at an end of the axis is measured to the outermost missing coordinate; on a circle there is
    no end. Where nothing is observed along the axis the length is infinite.

    Parameters
    ----------
    missing
        True where a cell has no value.
    axis
        The axis along which gaps are measured.
    coordinates
        The coordinates of that axis, in any order.
    period
        Length of the circle that they close; None: they lie on a line.

    Returns
    -------
    Array
        Lengths in the units of the coordinates, 0 in observed cells.

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
    if period is not None:
        first, last = high[:1], low[-1:]
        low, high = np.maximum(low, last - period), np.minimum(high, first + period)
    lengths = np.where(np.isinf(high), places[-1], high) - np.where(np.isinf(low), places[0], low)
    lengths[nowhere] = np.inf
    lengths[~gaps] = 0.0
    result = np.empty(lengths.shape)
    result[order] = lengths
    return np.moveaxis(result, 0, axis)


def always_missing(missing: Mask, axis: int) -> Mask:
    """Return which cells are missing all along an axis; it broadcasts to the shape of the grid."""
    return np.asarray(missing.all(axis=axis, keepdims=True))
