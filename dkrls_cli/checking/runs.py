"""Runs of one value: sensors that are stuck."""

from __future__ import annotations

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask

# Steps of a run that is told at least: four equal values.
_FEWEST = 3
# Runs of that length or more that all series together may have by chance.
_BY_CHANCE = 0.01
# Steps of less than this part of a typical one are none.
_NEARLY = 0.02
# Share of the series that have long runs from which on runs are natural: the data is coarse.
_COMMON = 0.3
# Share of all cells that have the least or the largest value from which on this is a bound, as 0 is
# of rain: runs at bounds are natural. Several series have it then.
_AT_BOUND = 0.01
# Share of a series from which on a run is all that there is, and nothing shows that it is stuck.
_ALWAYS = 0.9
# Share of the other series that stand still during a run, from which on that is natural.
_TOGETHER = 0.5


def find_runs(series: Array) -> Mask:
    """Return the cells in runs of one value, or nearly one, longer than chance allows.

    Parameters
    ----------
    series
        One column for each series (m, n), NaN where it is missing.

    Returns
    -------
    Mask
        All cells of such runs but the first, which was a reading (m, n).

    Examples
    --------
    >>> series = np.random.default_rng(0).normal(size=(40, 5))
    >>> series[10:18, 2] = series[10, 2]
    >>> np.argwhere(find_runs(series))[:, 0]
    array([11, 12, 13, 14, 15, 16, 17])
    """
    stuck = np.zeros(series.shape, bool)
    if len(series) < _FEWEST + 2:
        return stuck
    steps = np.abs(np.diff(series, axis=0))
    still = steps <= _tolerance(steps)
    columns, starts, lengths = _runs(still)
    limit = _limit(still, ~np.isnan(steps), columns, lengths)
    bounds, finest = _bounds(series), _finest(steps)
    together = still.sum(axis=1) / np.maximum((~np.isnan(steps)).sum(axis=1), 1)
    natural = max(_TOGETHER, (2.0 + float(np.median(together))) / 3)
    for column, start, length in zip(columns, starts, lengths, strict=True):
        slow = _is_slow(steps[:, column], start, length, finest)
        always = length >= _ALWAYS * np.count_nonzero(~np.isnan(steps[:, column]))
        natural_value = always or series[start, column] in bounds
        if length < limit * (_SLOW_TIMES if slow else 1) or natural_value:
            continue
        alone = series.shape[1] == 1
        if alone or np.median(together[start : start + length]) < natural:
            stuck[start + 1 : start + length + 1, column] = True
    return stuck


def _finest(steps: Array) -> float:
    """Return the smallest step that is one: the resolution of the values."""
    return float(np.min(steps[steps > 0], initial=np.inf))


def _is_slow(steps: Array, start: int, length: int, finest: float) -> bool:
    """Return whether a series moves by a few of the finest steps only before and after a run."""
    around = np.concatenate(
        [steps[max(0, start - length) : start], steps[start + length :][:length]]
    )
    around = around[~np.isnan(around)]
    return bool(around.size) and bool(np.median(around) < _SLOW * finest)


# Steps around a run, in units of the finest, below which values may well stay the same for a while;
# such a run is told if it is this many times as long.
_SLOW, _SLOW_TIMES = 4.0, 2


def _tolerance(steps: Array) -> Array:
    """Return the largest step of each series that is none."""
    moving = np.where(steps > 0, steps, np.nan)
    some = ~np.isnan(moving).all(axis=0)
    typical = np.zeros(steps.shape[1])
    if some.any():
        typical[some] = np.nanmedian(moving[:, some], axis=0)
        typical = np.minimum(typical, float(np.median(typical[some])))
    return _NEARLY * typical


def _runs(still: Mask) -> tuple[Indices, Indices, Indices]:
    """Return columns, first steps and lengths of all runs of steps that are none."""
    padded = np.zeros((still.shape[1], len(still) + 2), np.int8)
    padded[:, 1:-1] = still.T
    change = np.diff(padded, axis=1)
    columns, starts = np.nonzero(change == 1)
    _, ends = np.nonzero(change == -1)
    return columns, starts, ends - starts


def _limit(still: Mask, known: Mask, columns: Indices, lengths: Indices) -> float:
    """Return the length of a run, in steps, that chance does not give."""
    total = int(known.sum())
    if not total:
        return np.inf
    share = still.sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    usual = float(np.median(share[known.any(axis=0)]))
    limit = float(_FEWEST)
    if usual >= 1.0:
        return np.inf
    if usual > 0:
        limit = max(limit, np.log(_BY_CHANCE / total) / np.log(usual))
    long = lengths >= _FEWEST
    if np.unique(columns[long]).size > max(1.0, _COMMON * still.shape[1]):
        limit = max(limit, _tail(lengths[lengths >= np.quantile(lengths, 0.9)]))
    return limit


def _tail(longest: Indices) -> float:
    """Return the length that runs do not reach by chance, from the tail of their lengths."""
    start = float(longest.min())
    excess = max(float(np.mean(np.sort(longest)[: max(1, int(0.95 * longest.size))] - start)), 0.5)
    return start + excess * float(np.log(longest.size / _BY_CHANCE))


def _bounds(series: Array) -> set[float]:
    """Return the least and the largest value, where many cells have it."""
    known = series[~np.isnan(series)]
    if not known.size:
        return set()
    ends = (float(known.min()), float(known.max()))
    return {
        end
        for end in ends
        if np.mean(known == end) > _AT_BOUND
        and np.mean((series == end).any(axis=0)) > (_COMMON if series.shape[1] > 1 else 0.0)
    }
