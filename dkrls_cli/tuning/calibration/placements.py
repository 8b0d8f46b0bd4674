"""The gaps of a grid at other places: cells to hide where error bars in holes are calibrated.

Errors in the middle of a hole differ from place to place, so one place tells little. The widest
hole is put to several places, one at a time, such that it does not join other copies of itself. All
other gaps are shifted with it.
"""

from __future__ import annotations

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.gaps.holes import label_holes
from dkrls_cli.gaps.pattern import distance_to_data
from dkrls_cli.tuning.masks import cut_cells

_TRIES, _OBSERVED = 60, 0.7
"""Places that are tried, until so large a share of the hole is over observed cells."""

_MOST = 0.4
"""Share of the observed cells that is hidden at most: without more, answers are others."""

_DEEP = 0.5
"""Distance to data, as a share of the largest, from which cells are the core of a hole."""


def place_gaps(observed: Mask, targets: Mask, rng: np.random.Generator) -> Mask:
    """Return observed cells to hide: those under the widest hole and the other gaps, elsewhere.

    Parameters
    ----------
    observed
        True where a cell has a value.
    targets
        The missing cells that are to be filled, at least one.
    rng
        Random numbers that decide where.

    Returns
    -------
    Mask
        At most four tenths of the observed cells, and perhaps none.
    """
    axes = tuple(range(observed.ndim))
    flipped = tuple(axis for axis in axes if rng.random() < 0.5)
    hole = widest_hole(targets, distance_to_data(observed))
    under = np.zeros(observed.shape, bool)
    under[_find_place(observed, np.argwhere(np.flip(hole, flipped)), rng)] = True
    shifts = [int(rng.integers(size)) for size in observed.shape]
    others = np.roll(np.flip(targets & ~hole, flipped), shifts, axes)
    most = _MOST * np.count_nonzero(observed)
    both = (under | others) & observed
    if np.count_nonzero(both) <= most:
        return np.asarray(both)
    under &= observed
    return cut_cells(under, most, rng) if np.count_nonzero(under) > most else under


def widest_hole(targets: Mask, away: Array) -> Mask:
    """Return the cells to be filled around the one that is farthest from data.

    Its core are the cells at least half as far from data that are connected with it. Gaps that
    touch the hole, but reach far from its core, are no part of it.

    Parameters
    ----------
    targets
        The cells to be filled.
    away
        Distance of every cell to data, in cells.

    Examples
    --------
    >>> targets = np.array([0, 1, 0, 1, 1, 1, 1, 0], bool)
    >>> widest_hole(targets, distance_to_data(~targets)).astype(int).tolist()
    [0, 0, 0, 1, 1, 1, 1, 0]
    """
    far = np.where(targets, away, 0.0)
    cores, _ = _label_cores(far)
    reach = _DEEP * float(far.max())
    core = cores == cores[np.unravel_index(int(np.argmax(far)), far.shape)]
    return np.asarray(targets & (distance_to_data(core) <= reach))


def count_deep_holes(targets: Mask, away: Array) -> int:
    """Return the number of holes that are at least half as deep as the deepest.

    Parameters
    ----------
    targets
        The cells to be filled.
    away
        Distance of every cell to data, in cells.

    Examples
    --------
    >>> targets = np.array([0, 1, 1, 0, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1], bool)
    >>> count_deep_holes(targets, distance_to_data(~targets))
    2
    """
    return _label_cores(np.where(targets, away, 0.0))[1]


def _label_cores(far: Array) -> tuple[Indices, int]:
    """Return the numbers of the cores of holes, given distances to data, and how many there are."""
    return label_holes(far > _DEEP * float(far.max()))


def _find_place(observed: Mask, cells: Indices, rng: np.random.Generator) -> tuple[Indices, ...]:
    """Return cells (n, axes) shifted within the grid to where most of them are observed."""
    cells = cells - cells.min(axis=0)
    room = np.subtract(observed.shape, cells.max(axis=0))
    best, most = tuple(cells.T), -1.0
    for _ in range(_TRIES):
        place = tuple((cells + rng.integers(room)).T)
        share = float(observed[place].mean())
        if share > most:
            best, most = place, share
        if share >= _OBSERVED:
            break
    return best
