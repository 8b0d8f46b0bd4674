"""Lasting shifts of single series against all others.

At every place of a series two numbers tell of a jump: the step from one value to the next, and the
difference of the medians after and before it. The smaller of the two is the size of the jump, 0 if
their signs differ: a spike has no lasting difference, and a slow change has no large step.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.checking.scales import find_limits

# Values before and after a step whose medians are compared: this share of a series, from and to.
_SHARE, _FEWEST, _MOST = 4, 3, 8
# Usual sizes beyond which a change is a jump, at least.
_LIMIT = 12.0
# Usual sizes, and share of the spread of the data, beyond which a change is a jump whatever the
# tail of the others looks like: real sensors have some large ones, which would raise the limit.
_FAR, _CLEARLY = 20.0, 1.5
# Values of a part that is shifted, at least: fewer are spikes.
_SHORTEST = 4
# Jumps that may be found by chance.
_BY_CHANCE = 0.01
# Share of the largest jump of a series by which levels differ that are not the same.
_APART = 0.4
# Share of a jump by which most cells after it must be shifted, and how many are most: a few spikes
# are no jump.
_LASTING, _MOSTLY = 0.3, 0.8
_NORMAL = 1.4826  # standard deviation of normal numbers in median absolute deviations
# Series whose medians are computed at once.
_AT_ONCE = 2**21


@dataclass(frozen=True, eq=False)
class JumpLimits:
    """Sizes beyond which a change of a series is a jump (n,), and its usual size (n,)."""

    size: Array
    usual: Array

    def grown(self, factor: Array) -> JumpLimits:
        """Return limits that are a factor larger (n,)."""
        return JumpLimits(self.size * factor, self.usual * factor)


def jump_limits(series: Array, spread: float, floor: float = 0.0) -> JumpLimits:
    """Return the sizes beyond which changes of some series are jumps.

    Parameters
    ----------
    series
        One column for each series (m, n): what is left of it when the other series have said what
        they know, NaN where it is missing.
    spread
        Standard deviation of the data itself.
    floor
        Smallest usual size of a change: what rounding of the data does.
    """
    compact, _ = _without_gaps(series)
    changes = _smaller(_steps(compact), _differences(compact))
    known = ~np.isnan(changes)
    usual = np.full(series.shape[1], np.inf)
    if not known.any():
        return JumpLimits(usual, usual)
    sizes = np.abs(changes)
    overall = _NORMAL * float(np.median(sizes[known]))
    some = known.any(axis=0)
    usual[some] = _NORMAL * np.nanmedian(sizes[:, some], axis=0)
    least = max(overall / 2, _SMALLEST * spread, floor, 1e-300)
    usual[some] = np.maximum(usual[some], least)
    tail = find_limits((changes / usual)[known], _BY_CHANCE / int(known.sum()))
    limit = max(tail.low, tail.high, _LIMIT) * usual
    return JumpLimits(np.minimum(limit, np.maximum(_FAR * usual, _CLEARLY * spread)), usual)


# Smallest usual size of a change, in units of the spread of the data: below it there is round-off.
_SMALLEST = 1e-7


def find_jumps(series: Array, limits: JumpLimits) -> Array:
    """Return the sizes of the jumps of some series, 0 where there is none (m - 1, n).

    Parameters
    ----------
    series
        One column for each series (m, n): what is left of it when the other series have said what
        they know, NaN where it is missing.
    limits
        Sizes beyond which changes are jumps.

    Examples
    --------
    >>> series = np.random.default_rng(0).normal(size=(60, 6))
    >>> series[40:, 3] += 25
    >>> jumps = find_jumps(series, jump_limits(series, 5.0))
    >>> np.argwhere(jumps), jumps[39, 3].round()
    (array([[39,  3]]), np.float64(25.0))
    """
    jumps = np.zeros((len(series) - 1, series.shape[1]))
    compact, places = _without_gaps(series)
    steps = np.nan_to_num(_steps(compact))
    columns = np.flatnonzero((np.abs(steps) > limits.size).any(axis=0))
    lasting = np.nan_to_num(_differences(compact[:, columns]))
    alike = steps[:, columns] * lasting > 0
    sizes = np.where(alike, np.abs(_smaller(steps[:, columns], lasting)), 0.0)
    sizes = np.where(sizes > limits.size[columns], sizes, 0.0)
    for place, column in enumerate(columns.tolist()):
        at = _worst(sizes[:, place])
        jumps[places[at + 1, column] - 1, column] = lasting[at, place]
    return jumps


def find_levels(series: Array, jumps: Array) -> Array:
    """Return by how much the cells of some series are shifted against most of each (m, n).

    The level after each jump follows from those before. Where no level has most of a series, it
    changes by nature, and nothing is shifted.

    Parameters
    ----------
    series
        One column for each series (m, n), NaN where it is missing.
    jumps
        Sizes of their jumps (m - 1, n).
    """
    shifts = np.zeros(series.shape)
    for column in np.flatnonzero(jumps.any(axis=0)).tolist():
        places = np.flatnonzero(jumps[:, column])
        shifts[:, column] = _shifts(series[:, column], places + 1, jumps[places, column])
    return shifts


def _smaller(some: Array, others: Array) -> Array:
    """Return the number of the smaller size of each two; NaN where one is."""
    return np.where(np.abs(some) > np.abs(others), others, some) + 0.0 * (some + others)


def _without_gaps(series: Array) -> tuple[Array, Indices]:
    """Return series with their missing values behind all others, and the places of all (m, n)."""
    places = np.argsort(np.isnan(series), axis=0, kind="stable")
    return np.take_along_axis(series, places, axis=0), places


def _steps(series: Array) -> Array:
    """Return the step from every value to the next (m - 1, n)."""
    return np.diff(series, axis=0)


def _differences(series: Array) -> Array:
    """Return the median of some values after every step less that of as many before (m - 1, n).

    There are fewer values at the ends; the series have no gaps, but end early.
    """
    count, width = series.shape
    side = int(np.clip(count // _SHARE, _FEWEST, _MOST))
    result = np.empty((count - 1, width))
    step = max(1, _AT_ONCE // (count * side))
    for start in range(0, width, step):
        part = series[:, start : start + step]
        beyond = np.full((side - 1, part.shape[1]), np.nan)
        padded = np.concatenate([beyond, part, beyond])
        medians = _medians(np.lib.stride_tricks.sliding_window_view(padded, side, axis=0))
        result[:, start : start + step] = medians[side:] - medians[:-side]
    return result


def _medians(view: Array) -> Array:
    """Return the median of every window (last axis), the lower one of two; NaN without values."""
    ordered = np.sort(view, axis=-1)  # NaN last
    middle = np.maximum((~np.isnan(view)).sum(axis=-1) - 1, 0) // 2
    return np.asarray(np.take_along_axis(ordered, middle[..., None], axis=-1)[..., 0])


def _worst(sizes: Array) -> Indices:
    """Return the places of the largest changes, a few values apart."""
    found: list[int] = []
    left = sizes.copy()
    while left.max() > 0:
        place = int(np.argmax(left))
        found.append(place)
        left[max(0, place - _FEWEST + 1) : place + _FEWEST] = 0.0
    return np.sort(np.array(found, np.intp))


def _shifts(series: Array, places: Indices, changes: Array) -> Array:
    """Return by how much the cells of one series are shifted, from its jumps (m,).

    The level after each jump follows from those before. Most of the series has to have one level;
    where no level has most of it, it changes by nature.
    """
    edges = [0, *places.tolist(), series.size]
    levels = np.concatenate([[0.0], np.cumsum(changes)])
    parts = [slice(start, stop) for start, stop in pairwise(edges)]
    sizes = np.array([np.count_nonzero(~np.isnan(series[part])) for part in parts])
    near = np.abs(np.subtract.outer(levels, levels)) <= _APART * np.abs(changes).max()
    main = int(np.argmax(near @ sizes))
    shifts = np.zeros(series.size)
    if 2 * (near @ sizes)[main] < sizes.sum():
        return shifts
    usual = np.concatenate(
        [series[part] for part, same in zip(parts, near[main], strict=True) if same]
    )
    for part, size, level, same in zip(
        parts, sizes, levels - levels[main], near[main], strict=True
    ):
        if same or size < _SHORTEST:
            continue
        off = (series[part] - np.nanmedian(usual)) / level
        if np.mean(off[~np.isnan(off)] >= _LASTING) >= _MOSTLY:
            shifts[part] = level
    return shifts
