"""Slices that are out of line as a whole, and slices that repeat another one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.checking.cells import worst_of_neighbours
from dkrls_cli.checking.choice import CheckAxis, choose_predictor
from dkrls_cli.checking.scales import find_limits, robust_spread

# Cells of a slice, and slices, from which on a slice can be told from the others.
_FEWEST_CELLS, _FEWEST_SLICES = 8, 8
# Cells from which on the width of a slice is known: of fewer, one bad cell may change it.
_FEWEST_FOR_WIDTH = 30
# Robust standard deviations over all slices beyond which the median residual, or the logarithm of
# the width, of one is out of line: slices of smooth real grids come to 5, in one case to 9.
_OUT = 8.0
# Times the limit for slices at the ends or next to some that are out of line, which are predicted
# from one side or from afar, and the ratio of standard errors by which they are told.
_AT_ENDS, _APART = 3.0, 1.15
# Times the usual difference of two slices, or of their widths, up to which one at the end differs
# from the one beside it as others do.
_USUAL = 4.0
# The largest limit if slices are fewer than this: their tail is not known, and a few bad ones would
# raise it further.
_MOST_OUT, _MANY = 24.0, 300
# Share of the spread of the data by which a slice beyond that limit is shifted, at least, if slices
# are many: real slices of restless data have some large shifts, which would raise the limit.
_CLEARLY = 1.0
# Median residual of such a slice, in units of that of a usual cell, at least.
_SHIFTED = 5.0
# The same in units of what rounding does: values of all cells may step up or down together.
_ROUNDINGS = 4.0
# Change of the width of a slice at least: a quarter.
_WIDER = 0.22
# Share of the slices that may be out of line: more than that are another kind of data.
_MOST = 0.25
# Slices that may be out of line by chance, and rounds in which they are taken out.
_BY_CHANCE, _ROUNDS = 0.01, 20
_NORMAL = 1.4826  # standard deviation of normal numbers in median absolute deviations


def find_slices(
    values: Array, used: Mask, axes: Sequence[CheckAxis], along: int, floor: float = 0.0
) -> Mask:
    """Return which slices are shifted or scaled against their neighbours along an axis (m,).

    Every slice is predicted from the others along that axis alone. A shift shows in the median of
    its residuals, a scale in its width compared with that of what is expected. The worst slice is
    taken out, the others are predicted again, and so on.

    Parameters
    ----------
    values, used
        The grid, and the cells that count.
    axes
        Its axes.
    along
        The axis.
    floor
        Standard deviation of a residual that rounding of the data alone makes.
    """
    count = values.shape[along]
    bad = np.zeros(count, bool)
    others = [axis for axis in range(values.ndim) if axis != along]
    cells = np.moveaxis(used & ~np.isnan(values), along, 0).reshape(count, -1)
    enough = cells.sum(axis=1) >= _FEWEST_CELLS
    if enough.sum() < _FEWEST_SLICES:
        return bad
    predictor = choose_predictor(values, used, axes, others, near=True)
    if not predictor.steps:
        return bad
    for _ in range(_ROUNDS):
        good = used & ~_broadcast(bad, along, values.ndim)
        left, spread = predictor.residuals(values, good)
        score, size = _scores(values, left, spread, cells, along, enough & ~bad, floor)
        worst = worst_of_neighbours(score, size, [0])
        lasting = _last(values, left, worst, bad, along)
        enough &= ~lasting
        if not worst.any() or bad.mean() > _MOST:
            break
        bad |= worst & ~lasting
    left, spread = predictor.residuals(values, used & ~_broadcast(bad, along, values.ndim))
    score, _ = _scores(values, left, spread, cells, along, enough, floor)
    bad &= score > 1.0  # good ones beside bad ones are back
    return bad if bad.mean() <= _MOST else np.zeros(count, bool)


def _last(values: Array, left: Array, worst: Mask, bad: Mask, along: int) -> Mask:
    """Return which of the worst slices begin or end a change that lasts: that is no bad slice."""
    rows, rest = (np.moveaxis(array, along, 0).reshape(len(bad), -1) for array in (values, left))
    found = np.zeros(len(bad), bool)
    good = np.flatnonzero(~(bad | worst))
    for place in np.flatnonzero(worst):
        at = int(np.searchsorted(good, place))
        if 0 < at < good.size:
            last, *before = good[:at][: -_AROUND - 1 : -1]
            first, *after = good[at : at + _AROUND]
            pairs = [
                (first, last),
                *((one, last) for one in after),
                *((first, one) for one in before),
            ]
            sizes = [np.abs(rows[one] - rows[other]) for one, other in pairs]
            *changes, off = row_quantile(np.stack([*sizes, np.abs(rest[place])]), 0.5)
            found[place] = min(changes) > _LASTING * off
    return found


# Change from the slice before to the one after, in units of what a slice seems to be off, from
# which on the field itself has changed.
_LASTING = 0.7
# Slices on each side that tell whether it has: two, so that a second bad one does not.
_AROUND = 2


def _broadcast(slices: Mask, along: int, ndim: int) -> Mask:
    shape = [1] * ndim
    shape[along] = -1
    return slices.reshape(shape)


def _scores(
    values: Array,
    left: Array,
    spread: Array,
    cells: Mask,
    along: int,
    counts: Mask,
    floor: float,
) -> tuple[Array, Array]:
    """Return how far each slice is out of line, in units of its limit, and of that of all others.

    Both are 0 for those out already.
    """
    rows, expected, left = (
        np.moveaxis(array, along, 0).reshape(cells.shape)
        for array in (values, values - left, left / spread)
    )
    rows, expected, left = (np.where(cells, array, np.nan) for array in (rows, expected, left))
    score, size = np.zeros(len(rows)), np.zeros(len(rows))
    picked = np.flatnonzero(counts)
    shift = row_quantile(left[picked], 0.5)
    usual = float(np.nanmedian(np.abs(left[picked])))
    wide = np.log(_width(rows[picked], floor) / _width(expected[picked], floor))
    apart = row_quantile(np.moveaxis(spread, along, 0).reshape(cells.shape)[picked], 0.5)
    times = np.where(apart > _APART * np.nanmedian(apart), _AT_ENDS, 1.0)
    off = np.abs(row_quantile((rows - expected)[picked], 0.5))
    clearly = off > _CLEARLY * robust_spread(rows - column_medians(rows))
    told = (np.abs(shift) > times * _SHIFTED * usual) & (off > _ROUNDINGS * floor)
    by_shift = np.where(told, _outlying(shift, clearly), 0.0)
    enough = cells[picked].sum(axis=1) >= _FEWEST_FOR_WIDTH
    by_width = np.where(
        enough & (np.abs(wide) > _WIDER), _outlying(wide, np.zeros(wide.size, bool)), 0.0
    )
    ordinary = _ordinary_ends(rows[picked], floor)
    size[picked] = np.where(ordinary, 0.0, np.maximum(by_shift, by_width))
    score[picked] = size[picked] / times
    return score, size


def _ordinary_ends(rows: Array, floor: float) -> Mask:
    """Return which slices at the ends differ from the one beside them as others do.

    They are predicted from one side, and much worse than all others if the data is smooth.
    """
    ordinary = np.zeros(len(rows), bool)
    steps = np.abs(row_quantile(rows[1:] - rows[:-1], 0.5))
    widths = np.abs(np.diff(np.log(_width(rows, floor))))
    for end in (0, -1):
        ordinary[end] = all(one[end] <= _USUAL * np.median(one) for one in (steps, widths))
    return ordinary


def _width(rows: Array, floor: float) -> Array:
    """Return the distance between the quartiles of every slice, no less than rounding makes it."""
    ordered = np.sort(rows, axis=1)
    return np.asarray(
        np.maximum(_pick(ordered, 0.75) - _pick(ordered, 0.25), max(2.0 * floor, 1e-300))
    )


def row_quantile(rows: Array, share: float) -> Array:
    """Return a quantile of every row, NaN aside: the value next below it (m,)."""
    return _pick(np.sort(rows, axis=1), share)


def _pick(ordered: Array, share: float) -> Array:
    """Return a quantile of rows that are in order, NaN last."""
    count = (~np.isnan(ordered)).sum(axis=1)
    place = (share * np.maximum(count - 1, 0)).astype(int)
    return np.asarray(ordered[np.arange(len(ordered)), place])


def _outlying(numbers: Array, clearly: Mask) -> Array:
    """Return how far each number lies from all, in units of the limit.

    Of few numbers, and of those that are clearly large, the limit is not raised by the others.
    """
    centred = numbers - np.median(numbers)
    usual = max(_NORMAL * float(np.median(np.abs(centred))), 1e-300)
    limits = find_limits(centred / usual, _BY_CHANCE / numbers.size).at_least(_OUT)
    capped = limits.capped(_MOST_OUT)
    few = numbers.size < _MANY
    return np.where(clearly | few, *(one.excess(centred / usual) for one in (capped, limits)))


def column_medians(rows: Array) -> Array:
    """Return the median of every column, NaN aside; 0 of those without values (n,)."""
    some = ~np.isnan(rows).all(axis=0)
    return np.asarray(np.nanmedian(np.where(some, rows, 0.0), axis=0))


def find_duplicates(slices: Array) -> Mask:
    """Return which slices repeat an earlier one, cell for cell (m,).

    Slices of one value, or with few cells, may be equal by chance. Where many slices are repeated,
    or nearly so, as coarse values are by chance, that is the kind of data: none is told then.

    Examples
    --------
    >>> maps = np.random.default_rng(0).normal(size=(9, 20))
    >>> maps[6] = maps[2]
    >>> find_duplicates(maps).nonzero()[0]
    array([6])
    """
    seen: set[bytes] = set()
    found = np.zeros(len(slices), bool)
    for place, row in enumerate(slices):
        known = row[~np.isnan(row)]
        if known.size < _FEWEST_CELLS or np.unique(known).size < _FEWEST_CELLS // 2:
            continue
        key = np.nan_to_num(row + 0.0, nan=np.inf).tobytes()
        found[place] = key in seen
        seen.add(key)
    usual = found.mean() > _MOST or _are_nearly_repeated(slices, np.flatnonzero(found)[:_LOOKED_AT])
    return np.zeros(len(slices), bool) if usual else found


def _are_nearly_repeated(slices: Array, places: Indices) -> bool:
    """Return whether most of some slices differ from another one in a few cells only."""
    few = max(1, slices.shape[1] // _FEW)
    nearly = 0
    for place in places:
        here, others = slices[place], slices
        differs = ((others != here) & ~(np.isnan(others) & np.isnan(here))).sum(axis=1)
        nearly += bool(((differs > 0) & (differs <= few)).any())
    return 2 * nearly > places.size


# Part of the cells in which slices differ that are nearly the same, and repeated slices that are
# compared with all others.
_FEW, _LOOKED_AT = 10, 32
