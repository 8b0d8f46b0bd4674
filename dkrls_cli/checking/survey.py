"""All checks of a grid, one after the other: what is found by one does not mislead the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.checking.cells import CellCheck, check_cells
from dkrls_cli.checking.choice import CheckAxis, Predictor, choose_predictor
from dkrls_cli.checking.runs import find_runs
from dkrls_cli.checking.scales import robust_spread
from dkrls_cli.checking.shifts import find_shifts
from dkrls_cli.checking.slices import find_duplicates, find_slices
from dkrls_cli.checking.units import (
    CONVERSIONS,
    find_unit_series,
    find_unit_slices,
    name_units,
)

Flags: TypeAlias = NDArray[np.int8]

GOOD, SPIKE, STUCK, JUMP, SLICE, UNIT, DUPLICATE, MISSING = 0, 1, 2, 3, 4, 5, 6, 9
"""Flags of a cell."""

KINDS: Mapping[int, str] = {
    GOOD: "good",
    SPIKE: "spike",
    STUCK: "stuck",
    JUMP: "jump",
    SLICE: "slice",
    UNIT: "unit",
    DUPLICATE: "duplicate",
    MISSING: "missing",
}
"""Words for the flags."""

FALSE_ALARM = 1e-3
"""Share of good cells that may be flagged as spikes, if nothing else is said."""

# Times that the predictor is chosen and cells are checked. The first time only near cells predict.
_PASSES = 2

# Share of the cells that are flagged from which on they may be good ones of a field without noise,
# whose residuals beside gaps are of other sizes than elsewhere, so that each that is left out makes
# its neighbours look bad. They are checked again with residuals of so much of the spread taken for
# chance, and are good if that leaves less than so many of them.
_MANY, _COARSE, _FEWER = 0.02, 1e-3, 0.5

# Steps of a series from which on its median is its usual value, and the fewest series: usual values
# of a dozen of them are no better known than what is unusual.
_SERIES, _PLACES = 16, 64
# Share of the residuals without usual values below which those with them are clearly smaller.
_BETTER = 0.8

# Rounding of stored values in units of the largest: that of float32.
_SINGLE = 6e-8
# Standard deviation of rounding, in units of the step; with neighbours rounded as well.
_ROUNDED = 0.5
# Share of distinct values, of all, below which the data is rounded to steps.
_DISTINCT = 0.5
# Distinct values up to which they are kinds, not measurements.
_KINDS = 3
# Distinct values from which on their smallest distance is the step.
_FEWEST_STEPS = 10


@dataclass(frozen=True, eq=False)
class Survey:
    """Findings in a grid.

    Attributes
    ----------
    flags
        Flag of every cell (int8), see :data:`KINDS`.
    expected
        What the other cells say of each, in the units of the grid; NaN where missing.
    std
        Usual size of the difference, as a standard deviation.
    units
        For cells in wrong units the place of the conversion in CONVERSIONS, else -1 (int8).
    predictor
        How cells were predicted.
    limits
        Standard deviations beyond which a cell is flagged, below and above what is expected.
    """

    flags: NDArray[np.int8]
    expected: Array
    std: Array
    units: NDArray[np.int8]
    predictor: Predictor
    limits: tuple[float, float]

    @property
    def bad(self) -> Mask:
        """Cells that are flagged, missing ones aside."""
        return np.asarray((self.flags != GOOD) & (self.flags != MISSING))

    def counts(self) -> dict[str, int]:
        """Return the number of cells of every kind that was found."""
        kinds, counts = np.unique(self.flags[self.bad], return_counts=True)
        return {KINDS[int(kind)]: int(count) for kind, count in zip(kinds, counts, strict=True)}


def survey(
    values: Array,
    axes: Sequence[CheckAxis],
    along: int | None = None,
    rate: float = FALSE_ALARM,
) -> Survey:
    """Check every cell of a grid against the others.

    Parameters
    ----------
    values
        The grid, NaN where it is missing.
    axes
        Its axes.
    along
        The axis along which it grows (time): slices and series are those of this axis. None: only
        single cells are checked.
    rate
        Share of good cells that may be flagged as spikes.

    Returns
    -------
    Survey
        Flags, and what was expected.
    """
    flags = np.where(np.isnan(values), MISSING, GOOD).astype(np.int8)
    units = np.full(values.shape, -1, np.int8)
    work = np.array(values, np.float64)
    if along is not None and values.shape[along] > 2 and not has_kinds(work):
        _check_units(work, flags, units, along)
        floor = _rounding(work)
        _check_slices(work, flags, axes, along, floor)
        _check_series(work, flags, axes, along, floor)
    used = flags == GOOD
    used |= flags == UNIT  # these are in the right units by now
    floor, telling = _rounding(work), telling_cells(work)
    first, usual = _choose_first(work, used, axes, along, telling=telling)
    predictor, found = _check_cells(work - usual, used, axes, first, rate, floor, telling)
    coarse = _COARSE * robust_spread((work - usual)[used & telling])
    if coarse > floor and np.count_nonzero(found.bad) > _MANY * np.count_nonzero(used):
        other = _check_cells(work - usual, used, axes, first, rate, coarse, telling)
        if np.count_nonzero(other[1].bad) < _FEWER * np.count_nonzero(found.bad):
            predictor, found = other
    flags[found.bad & (flags == GOOD)] = SPIKE
    expected = work - found.residual
    spikes = flags == SPIKE
    units[spikes] = name_units(values[spikes], expected[spikes], found.std[spikes])
    flags[spikes & (units >= 0)] = UNIT
    limits = (found.limits.low, found.limits.high)
    return Survey(flags, expected, found.std, units, predictor, limits)


def _check_cells(
    values: Array,
    used: Mask,
    axes: Sequence[CheckAxis],
    predictor: Predictor,
    rate: float,
    floor: float,
    telling: Mask,
) -> tuple[Predictor, CellCheck]:
    """Return the cells that the others speak against, and how they were predicted in the end."""
    found = check_cells(values, used, predictor, rate, floor, telling=telling)
    for _ in range(1, _PASSES):
        predictor = choose_predictor(values, used & ~found.bad, axes, telling=telling)
        found = check_cells(values, used, predictor, rate, floor, found.bad, telling)
    return predictor, found


def _choose_first(
    work: Array,
    used: Mask,
    axes: Sequence[CheckAxis],
    along: int | None,
    without: Sequence[int] = (),
    telling: Mask | None = None,
) -> tuple[Predictor, Array]:
    """Return the predictor from near cells, and the usual values of series to take off first.

    A place that differs from all around it does so at all times. Taken with its usual value, its
    cells look bad, or to jump, where neighbours are left out for a while; and the more of them are
    left out, the less is known of it. Usual values are 0 where cells are clearly predicted better
    with them, as of fields without noise, and where there are few series.
    """
    plain = choose_predictor(work, used, axes, without, near=True, telling=telling)
    if along is None or (steps := work.shape[along]) < _SERIES or work.size < _PLACES * steps:
        return plain, np.zeros(())
    usual = _usual_values(work, used, along)
    better = choose_predictor(work - usual, used, axes, without, near=True, telling=telling)
    if _BETTER * better.error < plain.error:
        return better, usual
    return plain, np.zeros(())


def _usual_values(work: Array, used: Mask, along: int) -> Array:
    """Return the median of every series, 0 of those without cells; of size 1 along their axis."""
    series = np.where(used, work, np.nan)
    some = ~np.isnan(series).all(axis=along, keepdims=True)
    return np.asarray(np.nanmedian(np.where(some, series, 0.0), axis=along, keepdims=True))


def _rows(values: NDArray[Any], along: int) -> NDArray[Any]:
    """Return the grid with one row for each slice along an axis (m, n), a copy."""
    return np.moveaxis(values, along, 0).reshape(values.shape[along], -1).copy()


def _unrow(rows: NDArray[Any], shape: Sequence[int], along: int) -> NDArray[Any]:
    """Return rows as the grid that they were."""
    moved = [shape[along], *(m for axis, m in enumerate(shape) if axis != along)]
    return np.moveaxis(rows.reshape(moved), 0, along)


def _check_units(work: Array, flags: Flags, units: Flags, along: int) -> None:
    """Flag slices and series in other units, and put them into those of the rest."""
    rows = _rows(work, along)
    told = telling_cells(rows)
    if not told.all() and np.median(told.sum(axis=1)) < _FEWEST_TELLING:
        return
    telling = np.where(told, rows, np.nan)
    found = np.broadcast_to(find_unit_slices(telling)[:, None], rows.shape).copy()
    rows = _converted(rows, found)
    if rows.shape[1] > 1:
        series = find_unit_series(rows)
        rows = _converted(rows, np.where(found < 0, series, -1))
        found = np.where(found < 0, series, found)
    placed = _unrow(found, work.shape, along)
    here = (placed >= 0) & (flags == GOOD)
    units[here], flags[here] = placed[here], UNIT
    work[...] = _unrow(rows, work.shape, along)


def _converted(rows: Array, kinds: Indices) -> Array:
    """Return values in the right units."""
    result = rows.copy()
    for kind in np.unique(kinds[kinds >= 0]).tolist():
        here = kinds == kind
        result[here] = CONVERSIONS[kind].undo(rows[here])
    return result


def _check_slices(
    work: Array, flags: Flags, axes: Sequence[CheckAxis], along: int, floor: float
) -> None:
    """Flag slices that repeat another, and those out of line."""
    if work[tuple(0 if axis == along else slice(None) for axis in range(work.ndim))].size < 2:
        return
    shape = [1] * work.ndim
    shape[along] = -1
    twice = find_duplicates(_rows(work, along)).reshape(shape)
    flags[(flags == GOOD) & twice] = DUPLICATE
    used = (flags == GOOD) | (flags == UNIT)
    out = find_slices(work, used, axes, along, floor).reshape(shape)
    flags[(flags == GOOD) & out] = SLICE


def _check_series(
    work: Array, flags: Flags, axes: Sequence[CheckAxis], along: int, floor: float
) -> None:
    """Flag sensors that are stuck, and those whose level changes."""
    used = (flags == GOOD) | (flags == UNIT)
    stuck = _unrow(find_runs(_rows(np.where(used, work, np.nan), along)), work.shape, along)
    flags[(flags == GOOD) & stuck] = STUCK
    used &= ~stuck.astype(bool)
    used &= telling_cells(work)
    predictor, usual = _choose_first(work, used, axes, along, [along])
    shifted = find_shifts(work - usual, used, predictor, along, floor) != 0
    flags[(flags == GOOD) & shifted] = JUMP


def has_kinds(values: Array) -> bool:
    """Return whether a grid has a few values only, such as yes and no, and each of them often."""
    numbers, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    return 1 < numbers.size <= _KINDS and bool(counts.max() <= _COMMON[1] * counts.sum())


def telling_cells(values: Array) -> Mask:
    """Return the cells that have not the one value that a large part of all has, such as no rain.

    Residuals of these are mostly 0, and do not tell how large others are by chance. All cells are
    telling if there is no such value, or hardly another one.

    Examples
    --------
    >>> telling_cells(np.array([0.0, 0.0, 3.0, 0.0, 2.0, np.nan])).astype(int)
    array([0, 0, 1, 0, 1, 1])
    """
    numbers, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    if not numbers.size or not _COMMON[0] <= counts.max() / counts.sum() <= _COMMON[1]:
        return np.ones(values.shape, bool)
    return np.asarray(values != numbers[np.argmax(counts)])


# Cells of a slice that tell its units, at least, where many cells have one value.
_FEWEST_TELLING = 30
# Share of the cells that have one value, from which on they are no measure of the others, and up to
# which: a few cells that differ from all others may well be bad.
_COMMON = (0.3, 0.97)


def _rounding(values: Array) -> float:
    """Return the standard deviation of a residual that rounding of the values alone makes."""
    known = values[~np.isnan(values)]
    if not known.size:
        return 0.0
    largest = float(np.abs(known).max())
    distinct = np.unique(known)
    if has_kinds(values):
        return float(distinct[-1] - distinct[0])  # none of them is out of line
    step = 0.0
    if _KINDS < distinct.size < _DISTINCT * known.size:
        gaps = np.diff(distinct)
        gaps = gaps[gaps > _SINGLE * largest]
        step = float(gaps.min(initial=np.inf))
        few = distinct.size <= _FEWEST_STEPS
        if not np.isfinite(step) or (few and not _are_steps(gaps / step)):
            step = 0.0
    return max(_ROUNDED * step, _SINGLE * largest, 1e-300)


def _are_steps(gaps: Array) -> bool:
    """Return whether gaps between values, in units of the smallest, are whole numbers of steps.

    Those of coarse values are, and most of them are one step; those of a constant and some bad
    values are not.
    """
    whole = np.round(gaps)
    return bool(np.all(np.abs(gaps - whole) < _OFF_STEP) and np.mean(whole == 1) > _NEXT)


# Share of a step by which stored values miss whole steps, and share of the values that have another
# one a step above.
_OFF_STEP, _NEXT = 1e-2, 0.5
