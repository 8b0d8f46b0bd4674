"""Which cells of a grid are missing: gaps, lost slices, and masks that stay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.errors import InputError

SCATTERED = 0.005
"""Gaps make a pattern if they are more than this share of the observed cells."""


@dataclass(frozen=True)
class Pattern:
    """What is missing of a grid.

    Attributes
    ----------
    missing
        Share of all cells.
    lost
        Per axis, the number of slices without an observed cell.
    fixed
        Share of the cells, lost slices aside, that are missing all along the last level's axis.
    scattered
        Share of the cells, lost slices aside, that are missing here and there.
    shape
        A typical gap, in cells along each axis; the size of an axis where gaps go all along it.
    """

    missing: float
    lost: tuple[int, ...]
    fixed: float
    scattered: float
    shape: tuple[int, ...]


def pattern(observed: Mask, last: int = -1) -> Pattern:
    """What is missing, `last` being the axis of the last level."""
    lost = empty_slices(observed)
    kept = [np.setdiff1d(np.arange(m), gone) for m, gone in zip(observed.shape, lost, strict=True)]
    present = observed[np.ix_(*kept)]
    if present.size == 0:
        raise InputError(f"All {observed.size} values are missing. Expected one at least.")
    gaps = scattered(present)
    enough = np.count_nonzero(gaps) > SCATTERED * np.count_nonzero(present)
    return Pattern(
        1.0 - float(observed.mean()),
        tuple(gone.size for gone in lost),
        float(np.mean(~present.any(axis=last))),
        float(gaps.mean()),
        _shape(gaps if enough else ~present),
    )


def scattered(observed: Mask) -> Mask:
    """Cells that are missing, but not all along any axis."""
    gaps = ~observed
    if observed.ndim > 1:
        for axis in range(observed.ndim):
            gaps &= observed.any(axis=axis, keepdims=True)
    return gaps


def _shape(gaps: Mask) -> tuple[int, ...]:
    """Mean length of the runs of missing cells along each axis; all of it where it is over half."""
    lengths = []
    for axis, size in enumerate(gaps.shape):
        first = np.take(gaps, [0], axis)
        starts = np.concatenate([first, np.diff(gaps.view(np.int8), axis=axis) == 1], axis=axis)
        run = int(np.count_nonzero(gaps)) / max(1, int(np.count_nonzero(starts)))
        lengths.append(size if run > size / 2 and size > 1 else max(1, round(run)))
    return tuple(lengths)


def empty_slices(observed: Mask) -> tuple[Indices, ...]:
    """Per axis, the places of coordinates without one observed cell."""
    axes = range(observed.ndim)
    return tuple(
        np.flatnonzero(~observed.any(axis=tuple(other for other in axes if other != axis)))
        for axis in axes
    )


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
