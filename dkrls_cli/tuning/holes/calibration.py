"""Error bars of the model of a grid with missing cells, calibrated on hidden cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, partial

import numpy as np

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.gaps.bars import GapBars, HoleFactors, calibrated, distance, field_variance
from dkrls_cli.gaps.field import make_field
from dkrls_cli.gaps.pattern import distance_to_data
from dkrls_cli.gaps.samples import DRAWS, thinning
from dkrls_cli.gaps.solve import complete_field
from dkrls_cli.tuning.gaps import ITERATIONS, GapChoice, has_holes
from dkrls_cli.tuning.holes.factors import (
    Misses,
    factors_by_power,
    find_power,
    group_cells,
    student_factor,
)
from dkrls_cli.tuning.masks import HiddenWindow, distance_powers, hide_cells

_NARROW = 2.0
"""Distance in cells from which error bars take draws."""

_OTHER_SEED = 1
"""Seed of the cells that are hidden to calibrate error bars in holes."""

_TINY = 1e-30
"""Least variance: keeps divisions finite."""

_TIMES = 3
"""Times that cells are hidden: large holes have few places at a time."""


def gap_bars(values: Array, coordinates: Sequence[Array], chosen: GapChoice) -> GapBars:
    """Return the error bars of a model with the chosen setting, calibrated on hidden cells.

    In a grid with holes that takes draws, which are made when error bars are first asked for. A
    long level, which has no spectrum, has no draws.
    """
    ridge = chosen.setting.ridge
    reached, missed = [], []
    for window in chosen.windows:
        seen = np.isfinite(window.seen)
        away = distance(window.coordinates, chosen.setting.kernels, seen, ridge)
        reached.append(away[window.hidden] + ridge)
        missed.append(window.residuals)
    scale, power = calibrated(np.concatenate(reached), np.concatenate(missed))
    holes = None
    if has_holes(chosen.windows, _NARROW) and None not in chosen.spectra:
        holes = cache(partial(hole_factors, values, coordinates, chosen))
    return GapBars(np.isnan(values), scale, power, chosen.error, chosen.setting.grouping, holes)


def hole_factors(values: Array, coordinates: Sequence[Array], chosen: GapChoice) -> HoleFactors:
    """Return the factors of the variance from draws, for each power of two of the distance to data.

    With them the bands hold as many hidden cells as they promise. Other cells are hidden than those
    that the setting was chosen by, on the whole grid, several times.
    """
    rng = np.random.default_rng(_OTHER_SEED)
    windows = hide_cells(values, coordinates, rng, chosen.targets, whole=True, again=_TIMES)
    misses = _measure(windows, coordinates, chosen)
    _, degrees = factors_by_power(misses)
    power = find_power(misses, degrees)
    factors, degrees = factors_by_power(misses, power)
    wide = student_factor(np.maximum(1.0, degrees))
    prior = math.prod(kernel.variance for kernel in chosen.setting.kernels)
    climate = chosen.spread**2 / prior**power
    return HoleFactors(extend_factors(factors, wide, _farthest(values, chosen), climate), power)


def extend_factors(factors: Array, wider: Array, count: int, climate: float) -> tuple[float, ...]:
    """Return cautious factors for so many powers of two, or for all that are known.

    Powers beyond the known ones have the factor of the last, and nothing is known of it.

    Parameters
    ----------
    factors
        Factors of the powers that are known.
    wider
        By how much each is to be wider.
    count
        Number of powers among the cells to be filled.
    climate
        Factor with which a cell far from all data has the variance of the data: caution goes no
        further than that.
    """
    beyond = max(0, count - len(factors))
    known = np.append(factors, [factors[-1]] * beyond)
    wide = known * np.append(wider, [float(student_factor(1.0))] * beyond)
    return tuple(np.maximum(known, np.minimum(wide, climate)).tolist())


def _targets(values: Array, chosen: GapChoice) -> Mask:
    """Return the cells to be filled."""
    return np.isnan(values) if chosen.targets is None else chosen.targets


def _farthest(values: Array, chosen: GapChoice) -> int:
    """Return the number of powers of two of the distances to data of cells to be filled."""
    far = distance_to_data(np.isfinite(values))[_targets(values, chosen)]
    return int(distance_powers(far).max(initial=0)) + 1


def _measure(
    windows: Sequence[HiddenWindow], coordinates: Sequence[Array], chosen: GapChoice
) -> Misses:
    """Return the errors of the hidden cells that count, and the variances they should have.

    The draws are those of the error bars themselves, some in each window.
    """
    few = DRAWS // len(windows)
    parts = [
        _measure_one(window, coordinates, chosen, range(few * place, few * (place + 1)))
        for place, window in enumerate(windows)
    ]
    count = max(int(part.powers.max(initial=0)) for part in parts) + 1
    groups, number = [], 0
    for part in parts:
        more = np.pad(part.groups, ((0, count - len(part.groups)), (0, 0)), constant_values=-1)
        groups.append(np.where(more < 0, -1, more + number))
        number = max(number, int(groups[-1].max(initial=-1)) + 1)
    return Misses(
        np.concatenate([part.errors for part in parts]),
        np.concatenate([part.variances for part in parts]),
        np.concatenate([part.powers for part in parts]),
        np.concatenate(groups, axis=1),
    )


def fewer_draws(variances: Array, ridge: float, draws: int) -> Array:
    """Return by how much errors seem too large beside variances from fewer draws than bars have.

    The variance of a normal distribution from so many draws makes errors those of Student's t. The
    ridge is no part of it that varies.
    """
    known = ((variances + ridge) / np.maximum(variances, _TINY)) ** 2
    return np.sqrt(student_factor(DRAWS * known) / student_factor(draws * known))


def _measure_one(
    window: HiddenWindow, coordinates: Sequence[Array], chosen: GapChoice, draws: range
) -> Misses:
    """Return the errors of the hidden cells of the whole grid, in one hiding."""
    kernels, ridge = chosen.setting.kernels, chosen.setting.ridge
    grouping, seen = chosen.setting.grouping, np.isfinite(window.seen)
    done = complete_field(
        make_field(coordinates, kernels, grouping, chosen.spectra),
        window.seen,
        ridge,
        chosen.mean,
        tolerance=chosen.tolerance,
        limit=ITERATIONS,
        watched=window.hidden,
    )
    near = distance(coordinates, kernels, seen, ridge)
    drawn = field_variance(coordinates, kernels, grouping, seen, ridge, near, draws)
    counted, powers = window.shares > 0, window.powers
    errors = (done.values - window.values)[window.hidden]
    variances = drawn[window.hidden]
    if max(thinning(seen.shape)) == 1:
        errors = errors * fewer_draws(variances, ridge, len(draws))
    every = [
        group_cells(window.hidden, powers, power)
        for power in range(int(powers[counted].max(initial=0)) + 1)
    ]
    return Misses(
        errors[counted],
        variances[counted] + ridge,
        powers[counted],
        np.array(every)[:, counted],
    )
