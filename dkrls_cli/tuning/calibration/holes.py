"""Error bars of a grid with missing cells, calibrated on hidden cells.

Where all gaps are narrow, the cells that the setting was chosen by tell enough, few of them hidden
at a time (:mod:`dkrls_cli.tuning.calibration.sparing`). In holes others are hidden: the gaps are
put to other places, such that there are six deep holes or more, and bands hold what they promise
over all of them. Errors are relative to the local scale of
:mod:`dkrls_cli.gaps.calibration.local`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import cast

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.cascade.kernels import gram
from dkrls_cli.cascade.spectrum import Spectrum, decompose
from dkrls_cli.gaps.bars import GapBars, field_variance
from dkrls_cli.gaps.calibration.local import left_out_errors, local_scale, usual_error
from dkrls_cli.gaps.calibration.nearest import distance
from dkrls_cli.gaps.calibration.widths import calibrated
from dkrls_cli.gaps.field import make_field
from dkrls_cli.gaps.pattern import distance_to_data
from dkrls_cli.gaps.solve import complete_field
from dkrls_cli.tuning.calibration.placements import count_deep_holes, place_gaps
from dkrls_cli.tuning.calibration.sparing import hide_few
from dkrls_cli.tuning.gaps import GapChoice, has_holes
from dkrls_cli.tuning.masks import HiddenWindow, distance_powers, hide_cells

_NARROW = 2.0
"""Distance to data in cells from which error bars take draws."""

_PLACES, _FEWEST_PLACES, _DRAWS = 6, 2, 6
"""Places of a hole, least places of all gaps, and draws for the variance of the hidden cells.

Twice as many places or draws changed no coverage; four draws made bands too wide. If there are
several deep holes, each time that the gaps are placed puts all of them to other places.
"""

_SEED = 1
"""Seed of the cells that are hidden: others than those that the setting was chosen by."""

_LOOSER = 5.0
"""Tolerance of solves for hidden cells, in that of the last solve: a hundredth of their error."""

_ITERATIONS = 300
"""Iterations until a solve is given up."""

_AS_MANY = 30.0
"""Independent cells at some distance from data that count as much as all others do."""

_BANDS = ((0.9, 1.6448536269514722), (0.95, 1.959963984540054))
"""Bands, as the share that they hold and their half width in standard deviations."""

_TINY = 1e-30
"""Least factor: keeps logarithms finite where all hidden cells are predicted exactly."""


def gap_bars(values: Array, coordinates: Sequence[Array], chosen: GapChoice) -> GapBars:
    """Return the error bars of a model with the chosen setting, calibrated on hidden cells.

    In a grid with holes that takes draws, which are made when error bars are first asked for. A
    long level, which has no spectrum, has neither draws nor a local scale.
    """
    ridge, is_local = chosen.setting.ridge, None not in chosen.spectra
    has_wide_gaps = has_holes(chosen.windows, _NARROW)
    told_by = chosen if has_wide_gaps else hide_few(chosen)
    reached, missed = [], []
    for window, size in zip(told_by.windows, _window_scales(told_by, is_local), strict=True):
        seen = np.isfinite(window.seen)
        away = distance(window.coordinates, chosen.setting.kernels, seen, ridge)
        reached.append(away[window.hidden] + ridge)
        missed.append(window.residuals / np.sqrt(size))
    scale, power = calibrated(np.concatenate(reached), np.concatenate(missed))
    holes = None
    if is_local and has_wide_gaps:
        holes = cache(partial(hole_factors, values, coordinates, chosen))
    missing, grouping = np.isnan(values), chosen.setting.grouping
    return GapBars(missing, scale, power, chosen.error, grouping, holes, is_local=is_local)


def usual_grid_error(values: Array, coordinates: Sequence[Array], chosen: GapChoice) -> float:
    """Return the usual error of cells left out of a grid that is completed by a setting.

    The setting has a spectrum for every axis.
    """
    done = _complete(values, coordinates, chosen, None, chosen.tolerance)
    spectra = cast(Sequence[Spectrum], chosen.spectra)
    errors = left_out_errors(done - chosen.mean, spectra, chosen.setting.ridge)
    return usual_error(errors, np.isfinite(values))


def _complete(
    values: Array,
    coordinates: Sequence[Array],
    chosen: GapChoice,
    watched: Mask | None,
    tolerance: float,
) -> Array:
    """Return a grid whose missing cells are solved for."""
    setting = chosen.setting
    prior = make_field(coordinates, setting.kernels, setting.grouping, chosen.spectra)
    return complete_field(
        prior,
        values,
        setting.ridge,
        chosen.mean,
        tolerance=tolerance,
        limit=_ITERATIONS,
        watched=watched,
    ).values


def _usual_window_error(chosen: GapChoice) -> float:
    """Return the usual error of cells left out, over the windows that a setting was chosen by.

    Views with fewer cells count only if there are no others: neighbours are farther away there.
    """
    windows = [w for w in chosen.windows if w.is_dense] or chosen.windows
    return float(
        np.mean([usual_error(_window_errors(w, chosen), np.isfinite(w.seen)) for w in windows])
    )


def _window_scales(chosen: GapChoice, is_local: bool) -> list[Array]:
    """Return the local scale of hidden cells, by window; 1 if it is not local.

    Windows share a usual error, but views with fewer cells have one of their own.
    """
    if not is_local:
        return [np.ones(window.residuals.size) for window in chosen.windows]
    usual, scales = _usual_window_error(chosen), []
    for window in chosen.windows:
        errors, seen = _window_errors(window, chosen), np.isfinite(window.seen)
        scale = local_scale(errors, seen, usual if window.is_dense else None)
        scales.append(scale[window.hidden])
    return scales


def _window_errors(window: HiddenWindow, chosen: GapChoice) -> Array:
    """Return the errors of the cells of a window that are left out one by one."""
    known = zip(chosen.setting.kernels, window.coordinates, chosen.spectra, strict=True)
    spectra = [
        whole
        if window.is_dense and whole is not None and len(whole.vectors) == c.size
        else decompose(gram(kernel, c, c))
        for kernel, c, whole in known
    ]
    return left_out_errors(window.answers - chosen.mean, spectra, chosen.setting.ridge)


def hole_factors(
    values: Array, coordinates: Sequence[Array], chosen: GapChoice
) -> tuple[float, ...]:
    """Return the factors of the variance from draws, for each power of two of the distance to data.

    With them the bands hold as many hidden cells as they promise: the mean of what the bands of
    90 % and of 95 % ask for, over all places.

    Parameters
    ----------
    values, coordinates
        The grid, NaN where cells are missing.
    chosen
        The setting, and the cells to be filled.
    """
    targets = np.isnan(values)
    if chosen.targets is not None and chosen.targets.any():
        targets = chosen.targets
    found = [
        _miss_cells(values, coordinates, chosen, hidden)
        for hidden in _hide_in_turn(values, coordinates, targets)
    ]
    ratios, powers = (np.concatenate(parts) for parts in zip(*found, strict=True))
    farthest = distance_powers(distance_to_data(np.isfinite(values))[targets]).max()
    counted = powers <= farthest
    return factors_by_power(ratios[counted], powers[counted])


def _hide_in_turn(values: Array, coordinates: Sequence[Array], targets: Mask) -> Iterator[Mask]:
    """Yield cells to hide: the gaps at other places, or single cells if they hide none there."""
    rng, some = np.random.default_rng(_SEED), False
    deep = count_deep_holes(targets, distance_to_data(np.isfinite(values)))
    for _ in range(max(_FEWEST_PLACES, math.ceil(_PLACES / max(1, deep)))):
        hidden = place_gaps(np.isfinite(values), targets, rng)
        if hidden.any():
            some = True
            yield hidden
    if not some:
        (window,) = hide_cells(values, coordinates, rng, targets, whole=True)
        yield window.hidden


def _miss_cells(
    values: Array,
    coordinates: Sequence[Array],
    chosen: GapChoice,
    hidden: Mask,
) -> tuple[Array, Indices]:
    """Return errors of hidden cells in units of their spread, and powers of their distances."""
    kernels, ridge = chosen.setting.kernels, chosen.setting.ridge
    seen = np.isfinite(values) & ~hidden
    shown = np.where(seen, values, np.nan)
    done = _complete(shown, coordinates, chosen, hidden, _LOOSER * chosen.tolerance)
    near = distance(coordinates, kernels, seen, ridge)
    grouping = chosen.setting.grouping
    drawn = field_variance(
        coordinates, kernels, grouping, seen, ridge, near, draws=_DRAWS, watched=hidden
    )
    spectra = cast(Sequence[Spectrum], chosen.spectra)
    size = local_scale(left_out_errors(done - chosen.mean, spectra, ridge), seen)
    missed = np.abs(done - values)[hidden]
    ratios = missed / np.sqrt((drawn + ridge) * size)[hidden]
    return ratios, distance_powers(distance_to_data(seen)[hidden])


def factors_by_power(ratios: Array, powers: Indices) -> tuple[float, ...]:
    """Return a factor of the variance for each power, from errors in units of their spread.

    Errors at a distance d from data depend on each other over d cells, so cells of the power p
    count for one in 4^p. The fewer they are the more the factor is that of all cells.
    """
    whole = math.log(_factor(ratios))
    factors = []
    for power in range(int(powers.max(initial=0)) + 1):
        own = ratios[powers == power]
        count = own.size / 4.0**power
        log = math.log(_factor(own)) if own.size else whole
        factors.append(math.exp((count * log + _AS_MANY * whole) / (count + _AS_MANY)))
    return tuple(factors)


def _factor(ratios: Array) -> float:
    """Return the factor with which bands hold what they promise."""
    bands = [float(np.quantile(ratios, share)) / z for share, z in _BANDS]
    return max(float(np.mean(bands)) ** 2, _TINY)
