"""Values in other units than the rest: from some slice on, in one series, or in single cells."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dkrls_cli.arrays import Array, Indices

# Steps from one slice to the next, in units of a typical one: a break is larger than the first
# number says, and with the right conversion smaller than the second.
_BREAK, _SMOOTH = 3.0, 3.0
# The same of a single series, where steps are not medians of many.
_SERIES_BREAK = 40.0
# Share of their distance to the usual slices at which those of a kind are, converted, at most.
_NEARER = 0.7
# A conversion must bring a break down to this share of itself.
_GAIN = 0.2
# The same where the spread of the values agrees with the conversion as well.
_WIDE_GAIN = 0.4
# Values before and after a break of a series that are looked at.
_SIDE = 5
# Size of a residual, in standard deviations, from which on a single cell can tell its units, and
# the deviations by which it may then miss them.
_CELL, _CELL_MISS = 60.0, 3.0


@dataclass(frozen=True)
class Conversion:
    """How values look in wrong units: ``wrong = slope * right + offset``."""

    slope: float
    offset: float
    words: str

    def undo(self, wrong: Array) -> Array:
        """Return the values in the right units."""
        return (wrong - self.offset) / self.slope


CONVERSIONS = (
    Conversion(1.0, 273.15, "K instead of degC"),
    Conversion(1.0, -273.15, "degC instead of K"),
    Conversion(1.8, 32.0, "degF instead of degC"),
    Conversion(1 / 1.8, -32.0 / 1.8, "degC instead of degF"),
    Conversion(1.8, -459.67, "degF instead of K"),
    Conversion(1 / 1.8, 459.67 / 1.8, "K instead of degF"),
    Conversion(1000.0, 0.0, "1000 times too large"),
    Conversion(0.001, 0.0, "1000 times too small"),
    Conversion(100.0, 0.0, "100 times too large"),
    Conversion(0.01, 0.0, "100 times too small"),
    Conversion(10.0, 0.0, "10 times too large"),
    Conversion(0.1, 0.0, "10 times too small"),
    Conversion(86400.0, 0.0, "per day instead of per second"),
    Conversion(1 / 86400.0, 0.0, "per second instead of per day"),
    Conversion(3.6, 0.0, "km/h instead of m/s"),
    Conversion(1 / 3.6, 0.0, "m/s instead of km/h"),
    Conversion(-1.0, 0.0, "sign changed"),
)
"""Mistakes that are looked for."""


def find_unit_slices(slices: Array) -> Indices:
    """Return the conversion of every slice, -1 for those in the units of most slices.

    Parameters
    ----------
    slices
        The grid, one row for each slice (m, n), NaN where it is missing.

    Examples
    --------
    >>> celsius = np.add.outer(np.sin(np.arange(8.0)), np.linspace(10, 14, 9))
    >>> celsius[5:] += 273.15
    >>> find_unit_slices(celsius)
    array([-1, -1, -1, -1, -1,  0,  0,  0])
    """
    count = len(slices)
    kinds = np.full(count, -1)
    full = np.flatnonzero(~np.isnan(slices).all(axis=1))
    if full.size < 3:
        return kinds
    rows = slices[full]
    steps = _distances(rows[1:], rows[:-1])
    known = steps[~np.isnan(steps)]
    typical = float(np.median(known)) if known.size else 0.0
    limit = _BREAK if rows.shape[1] >= _FEWEST else _SERIES_BREAK
    breaks: dict[int, Conversion] = {}
    for place in np.flatnonzero(steps > limit * typical) + 1:
        before, after = rows[place - 1 : place], rows[place : place + 1]
        found = _explain(before, after, float(steps[place - 1]), typical)
        if found is not None:
            breaks[int(place)] = found
    kinds[full] = _confirmed_slices(rows, _states(full.size, breaks))
    return kinds


def _confirmed_slices(rows: Array, kinds: Indices) -> Indices:
    """Return the conversions of slices (m, n), without those that one step alone speaks for.

    The slices of a kind are spread as much wider than those in the usual units as the conversion
    tells, or they are nearer to these when converted, and about as wide. A field that varies
    about 0, such as one of anomalies, may well turn its sign, or grow tenfold, between two slices.
    """
    usual = kinds < 0
    if usual.all() or not usual.any():
        return kinds
    some = ~np.isnan(rows[usual]).all(axis=0)
    profile = np.full(rows.shape[1], np.nan)
    profile[some] = np.nanmedian(rows[usual][:, some], axis=0)
    result = kinds.copy()
    for kind in np.unique(kinds[~usual]).tolist():
        here, one = rows[kinds == kind], CONVERSIONS[kind]
        about = np.broadcast_to(profile, here.shape)
        before, after = (_distances(w, about) for w in (here, one.undo(here)))
        before = before / max(1.0, abs(one.slope))  # what is divided is nearer to 0 anyway
        widths = [_median_width(some) for some in (here, rows[usual])]
        ratio = widths[0] / widths[1] if min(widths) > 0 else np.nan
        wider = ratio / abs(one.slope)  # spreads of day and night differ, but not tenfold
        is_possible = np.isnan(ratio) or 1 / _FAR_ALIKE < wider < _FAR_ALIKE
        is_wider = _is_scale(one) and 1 / _ALIKE < wider < _ALIKE
        is_nearer = is_possible and np.nanmean(after) <= _NEARER * np.nanmean(before)
        scaled = _widths(here) / (widths[1] if widths[1] > 0 else np.nan)
        if not ((is_wider or is_nearer) and _most_agree(one, scaled, before, after)):
            result[kinds == kind] = -1
    return result


def _most_agree(one: Conversion, ratios: Array, before: Array, after: Array) -> bool:
    """Return whether a conversion suits most slices of a kind, each by itself.

    They are nearer to the usual ones when it is undone, or as wide, in units of the usual width, as
    a mere factor tells. Without that, one bad slice would speak for all that follow it.
    """
    is_factor = _is_scale(one) and one.offset == 0
    as_wide = [is_factor and not np.isnan(ratio) and _agree(one, ratio) for ratio in ratios]
    return bool(np.mean(as_wide | (after < before)) > _MOSTLY)


def _is_scale(one: Conversion) -> bool:
    """Return whether a conversion changes how widely values are spread."""
    return bool(abs(np.log(abs(one.slope))) > np.log(_ALIKE))


def _median_width(rows: Array) -> float:
    """Return how widely slices are spread as a rule; NaN if all have few values."""
    widths = _widths(rows)
    return float(np.median(widths[~np.isnan(widths)])) if not np.isnan(widths).all() else np.nan


def _widths(rows: Array) -> Array:
    """Return how widely the values of slices are spread (m,); NaN for those with few values."""
    found = np.full(len(rows), np.nan)
    enough = (~np.isnan(rows)).sum(axis=1) >= _FEWEST
    if enough.any():
        low, high = np.nanquantile(rows[enough], [0.25, 0.75], axis=1)
        found[enough] = high - low
    return found


def _distances(some: Array, others: Array) -> Array:
    """Return the median difference of slices that belong together (m,)."""
    both = ~(np.isnan(some) | np.isnan(others))
    result = np.full(len(some), np.nan)
    enough = both.any(axis=1)
    if enough.any():
        sizes = np.where(both, np.abs(some - others), np.nan)[enough]
        result[enough] = np.nanmedian(sizes, axis=1)
    return result


def _explain(before: Array, after: Array, step: float, typical: float) -> Conversion | None:
    """Return the conversion that explains a step from one slice to the next, or None."""
    ratio = _width_ratio(before, after)
    missed = [
        float(_distances(one.undo(after), before)[0]) if _agree(one, ratio) else np.inf
        for one in CONVERSIONS
    ]
    best = int(np.argmin(missed))
    gain = _GAIN if np.isnan(ratio) else _WIDE_GAIN
    allowed = min(max(_SMOOTH * typical, _ROUNDING * step), gain * step)
    return CONVERSIONS[best] if missed[best] <= allowed else None


def _width_ratio(before: Array, after: Array) -> float:
    """Return how many times wider the values of a slice are spread than those of the one before.

    NaN if there are too few to tell, or one slice is flat.
    """
    both = ~(np.isnan(before) | np.isnan(after))
    if both.sum() < _FEWEST:
        return np.nan
    widths = [
        float(np.subtract(*np.quantile(rows[both], [0.75, 0.25]))) for rows in (before, after)
    ]
    return widths[1] / widths[0] if min(widths) > 0 else np.nan


def _agree(one: Conversion, ratio: float) -> bool:
    """Return whether a conversion spreads values as much as they are spread."""
    alike = _FAR_ALIKE if abs(np.log(abs(one.slope))) > np.log(_FAR) else _ALIKE
    return bool(np.isnan(ratio) or 1 / alike < ratio / abs(one.slope) < alike)


# Cells of a slice whose spread is known, and the factor by which spreads of neighbours may differ.
_FEWEST, _ALIKE = 8, 1.5
# The same for conversions by this factor or more, which nothing else looks like.
_FAR_ALIKE, _FAR = 4.0, 9.0
# Share of a step that rounding of the values may leave where slices are equal otherwise.
_ROUNDING = 1e-3


def _states(count: int, breaks: dict[int, Conversion]) -> Indices:
    """Return the conversion of every slice relative to most of them, -1 for the same units."""
    slope, offset = np.ones(count), np.zeros(count)
    for place, one in sorted(breaks.items()):
        slope[place:] = slope[place - 1] * one.slope
        offset[place:] = one.slope * offset[place - 1] + one.offset
    states = np.round(np.stack([np.log(np.abs(slope)), np.sign(slope), offset], 1), 6)
    kinds, inverse, counts = np.unique(states, axis=0, return_inverse=True, return_counts=True)
    inverse = inverse.reshape(-1)
    first = np.array([np.argmax(inverse == kind) for kind in range(len(kinds))])
    most = min(range(len(kinds)), key=lambda kind: (-counts[kind], first[kind]))
    main = first[most]
    result = np.full(count, -1)
    for kind in range(len(kinds)):
        if kind != most:
            here = first[kind]
            relative = slope[here] / slope[main]
            shift = offset[here] - relative * offset[main]
            result[inverse == kind] = _named(relative, shift)
    return result


def _named(slope: float, offset: float) -> int:
    """Return the conversion with a slope and an offset, -1 if there is none."""
    for place, one in enumerate(CONVERSIONS):
        near = abs(one.offset - offset) <= 1e-3 * (1.0 + abs(one.offset))
        if abs(one.slope / slope - 1.0) < 1e-3 and near:
            return place
    return -1


def find_unit_series(series: Array) -> Indices:
    """Return the conversion of every cell of some series, -1 for those in the usual units.

    Parameters
    ----------
    series
        One column for each series (m, n), NaN where it is missing.

    Returns
    -------
    Indices
        Places in :data:`CONVERSIONS` (m, n).
    """
    kinds = np.full(series.shape, -1)
    if len(series) < 2 * _SIDE:
        return kinds
    steps = np.abs(np.diff(series, axis=0))
    usual = _usual(steps)
    for column in np.flatnonzero((steps > _SERIES_BREAK * usual).any(axis=0)):
        breaks: dict[int, Conversion] = {}
        for place in np.flatnonzero(steps[:, column] > _SERIES_BREAK * usual[column]) + 1:
            before = series[max(0, place - _SIDE) : place, column]
            after = series[place : place + _SIDE, column]
            found = _explain_series(before, after, float(usual[column]))
            if found is not None:
                breaks[int(place)] = found
        if breaks:
            kinds[:, column] = _confirmed(series[:, column], _states(len(series), breaks))
    return kinds


def _confirmed(series: Array, kinds: Indices) -> Indices:
    """Return the conversions of one series, without those that do not last or do not fit."""
    level = np.nanmedian(series[kinds < 0]) if (kinds < 0).any() else np.nan
    result = kinds.copy()
    edges = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), kinds.size]
    for start, stop in pairwise(edges):
        part = series[start:stop]
        part = part[~np.isnan(part)]
        if kinds[start] < 0:
            continue
        fits = np.abs(CONVERSIONS[kinds[start]].undo(part) - level) < _GAIN * np.abs(part - level)
        if part.size < _SIDE or not np.mean(fits) > _MOSTLY:
            result[start:stop] = -1
    return result


# Share of the cells of a part in other units, or of such slices, that speak for the conversion.
_MOSTLY = 0.8


def _usual(steps: Array) -> Array:
    """Return a typical step of every series: three quarters of its steps are smaller."""
    known = ~np.isnan(steps)
    result = np.full(steps.shape[1], np.inf)
    some = known.any(axis=0)
    if some.any():
        result[some] = np.nanquantile(steps[:, some], 0.75, axis=0)
    positive = result[np.isfinite(result) & (result > 0)]
    floor = float(np.median(positive)) if positive.size else np.inf
    return np.asarray(np.maximum(result, 0.1 * floor))


def _explain_series(before: Array, after: Array, usual: float) -> Conversion | None:
    """Return the conversion that explains a lasting step of a series, or None."""
    before, after = before[~np.isnan(before)], after[~np.isnan(after)]
    if before.size < 2 or after.size < 2:
        return None
    step = abs(after[0] - before[-1])
    missed = [abs(float(one.undo(after[:1])[0]) - before[-1]) for one in CONVERSIONS]
    best = int(np.argmin(missed))
    one = CONVERSIONS[best]
    middle = abs(float(np.median(one.undo(after))) - float(np.median(before)))
    fits = missed[best] <= _SMOOTH * usual and middle <= 2 * _SIDE * usual
    lasts = abs(float(np.median(after)) - float(np.median(before))) > step / 2
    return one if fits and lasts and missed[best] <= _GAIN * step else None


def name_units(values: Array, expected: Array, std: Array) -> Indices:
    """Return the conversion that explains each of some single cells (n,), -1 if there is none."""
    result = np.full(values.shape, -1)
    for place, one in enumerate(CONVERSIONS):
        size = np.abs(values - expected)
        missed = np.abs(one.undo(values) - expected)
        fits = (size > _CELL * std) & (missed <= _CELL_MISS * std) & (result < 0)
        result[fits] = place
    return result
