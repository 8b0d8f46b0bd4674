"""Lasting shifts of single series against all others."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.checking.scales import find_limits

# Values before and after a step whose medians are compared.
_SIDE = 8
# Robust standard deviations beyond which the difference of these medians is a jump.
_LIMIT = 12.0
# The largest limit if changes are fewer than this: their tail is not known, and a few jumps would
# raise it further.
_MOST, _MANY = 24.0, 50_000
# Share of the jump that must happen in one step, and that must last.
_SHARP, _LASTING = 0.6, 0.6
# Jumps that may be found by chance.
_BY_CHANCE = 0.01
_NORMAL = 1.4826  # standard deviation of normal numbers in median absolute deviations
# Series whose medians are computed at once.
_AT_ONCE = 2**21


def find_jumps(series: Array) -> tuple[Mask, Array]:
    """Find the cells of series that are shifted: the shorter part on one side of a jump.

    Parameters
    ----------
    series
        One column for each series (m, n): what is left of it when the other series have said what
        they know, NaN where it is missing.

    Returns
    -------
    tuple
        The cells (m, n), and the size of the largest jump of each series that has one, else 0 (n,).

    Examples
    --------
    >>> series = np.random.default_rng(0).normal(size=(60, 6))
    >>> series[40:, 3] += 25
    >>> found, sizes = find_jumps(series)
    >>> int(found.sum()), bool(found[40:, 3].all())
    (20, True)
    """
    shifted, largest = np.zeros(series.shape, bool), np.zeros(series.shape[1])
    if len(series) < 2 * _SIDE + 1:
        return shifted, largest
    change = _changes(series)
    known = ~np.isnan(change)
    if not known.any():
        return shifted, largest
    sizes = np.abs(change)
    overall = _NORMAL * float(np.median(sizes[known]))
    own = np.full(series.shape[1], overall)
    some = known.any(axis=0)
    own[some] = _NORMAL * np.nanmedian(sizes[:, some], axis=0)
    usual = np.maximum(own, overall / 2)
    step = np.abs(np.diff(_filled(series), axis=0))[_SIDE - 1 : len(series) - _SIDE]
    limits = find_limits((change / usual)[known], _BY_CHANCE / int(known.sum()))
    limits = limits.at_least(_LIMIT)
    limits = limits if known.sum() >= _MANY else limits.capped(_MOST)
    sharp = (step >= _SHARP * sizes) & (limits.excess(change / usual) > 1.0)
    for column in np.flatnonzero(sharp.any(axis=0)):
        places = _worst(np.where(sharp[:, column], sizes[:, column], 0.0))
        shifted[:, column] = _shifted(series[:, column], places + _SIDE, limits.low * usual[column])
        largest[column] = sizes[places, column].max() if shifted[:, column].any() else 0.0
    return shifted, largest


def _changes(series: Array) -> Array:
    """Return the median after minus that before every place from _SIDE on (m - 2 _SIDE + 1, n)."""
    count, width = series.shape
    result = np.empty((count - 2 * _SIDE + 1, width))
    step = max(1, _AT_ONCE // (count * _SIDE))
    for start in range(0, width, step):
        part = slice(start, start + step)
        view = np.lib.stride_tricks.sliding_window_view(series[:, part], _SIDE, axis=0)
        medians = _medians(view)
        result[:, part] = medians[_SIDE:] - medians[:-_SIDE]
    return result


def _filled(series: Array) -> Array:
    """Return series whose missing cells have the last value before them."""
    last = np.where(np.isnan(series), 0, np.arange(len(series))[:, None])
    return np.take_along_axis(series, np.maximum.accumulate(last, axis=0), axis=0)


def _medians(view: Array) -> Array:
    """Return the median of every window (last axis), NaN where fewer than half are known."""
    ordered = np.sort(view, axis=-1)  # NaN last
    count = (~np.isnan(view)).sum(axis=-1)
    middle = np.maximum(count - 1, 0) // 2
    found = np.take_along_axis(ordered, middle[..., None], axis=-1)[..., 0]
    return np.where(2 * count >= view.shape[-1], found, np.nan)


def _worst(sizes: Array) -> Array:
    """Return the places of the largest changes, at least half a window apart."""
    found: list[int] = []
    left = sizes.copy()
    while left.max() > 0:
        place = int(np.argmax(left))
        found.append(place)
        left[max(0, place - _SIDE) : place + _SIDE + 1] = 0.0
    return np.sort(np.array(found))


def _shifted(series: Array, places: Array, limit: float) -> Mask:
    """Return the cells of one series between jumps whose level is not that of most of them."""
    edges = [0, *places.tolist(), series.size]
    parts = [slice(a, b) for a, b in pairwise(edges)]
    levels = np.array([np.nanmedian(series[part]) for part in parts])
    sizes = np.array([part.stop - part.start for part in parts])
    main = levels[int(np.argmax(sizes))]
    alike = np.abs(levels - main) <= _LASTING * limit
    if sizes[alike].sum() * 2 < series.size:
        return np.zeros(series.size, bool)
    found = np.zeros(series.size, bool)
    for part, same in zip(parts, alike, strict=True):
        found[part] = not same
    return found
