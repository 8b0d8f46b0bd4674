"""The amplitude of a quantity whose observations have errors, and the width of its error bars.

Settings are chosen with s^2 from the spread of the data (:func:`estimate_scale` of
:mod:`dkrls_cli.gaps.noisy.analysis`). The hidden cells of the setting that was chosen then tell
how large s^2 must be for errors of the size that they have: a hidden cell differs from its answer
by a variance of s^2 (v + lambda) + E^2. That is the second step, here.

Error bars have a factor on s^2 for each power of two of the distance to data, such that the bands
hold other hidden cells as they promise. Cells that are told from their answers by the errors of
their observations alone say nothing of it: the fewer others there are, the nearer is it to 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.gaps.field import make_field
from dkrls_cli.gaps.noisy.analysis import Observations
from dkrls_cli.gaps.noisy.bars import NoisyBars, noisy_field_variance
from dkrls_cli.tuning.gaps import GapChoice
from dkrls_cli.tuning.masks import HiddenWindow, hide_cells
from dkrls_cli.tuning.noisy.views import tell_by_errors
from dkrls_cli.tuning.trials.solved import solve_window

_DRAWS = 6
"""Draws for the variance of hidden cells: their mean over many cells is all that counts."""

_SEED = (2019, 2)
"""Seed of these draws."""

_OTHER_SEED = 1
"""Seed of the cells that are hidden to calibrate error bars."""

_ROUNDS, _SETTLED = 3, 0.1
"""Rounds in which s^2 is improved, and the change of its logarithm that ends them."""

_CHANGE, _WIDEST = 10.0, 1000.0
"""Largest factor on s^2 in a round, and on that of error bars."""

_AS_MANY = 30.0
"""Independent cells that count as much as what is known without them."""

_BANDS = ((0.9, 1.6448536269514722), (0.95, 1.959963984540054))
"""Bands, as the share that they hold and their half width in standard deviations."""


def _answered(window: HiddenWindow, chosen: GapChoice) -> HiddenWindow:
    """Return the whole grid with its hidden cells answered for."""
    setting = chosen.setting
    done = solve_window(
        make_field(window.coordinates, setting.kernels, setting.grouping, chosen.spectra),
        window,
        setting.ridge,
        chosen.mean,
        chosen.scale,
        tolerance=chosen.tolerance,
    )
    return replace(window, answers=done.values)


def noisy_bars(
    observations: Observations, coordinates: Sequence[Array], chosen: GapChoice
) -> NoisyBars:
    """Return the error bars of a model of observations, calibrated when they are first asked for.

    Parameters
    ----------
    observations
        The observations and their errors.
    coordinates
        One vector per axis.
    chosen
        The setting of the model.
    """
    factors = cache(partial(noisy_factors, observations, coordinates, chosen))
    return NoisyBars(observations, chosen.scale, chosen.error, chosen.setting.grouping, factors)


def noisy_factors(
    observations: Observations, coordinates: Sequence[Array], chosen: GapChoice
) -> tuple[float, ...]:
    """Return the factors on s^2 for each power of two of the distance to data.

    Other cells are hidden than those that the setting was chosen by, on the whole grid. The factor
    is the mean of what bands of 90 % and of 95 % ask for.
    """
    kernels, ridge = chosen.setting.kernels, chosen.setting.ridge
    values, errors = observations.values, observations.errors
    rng = np.random.default_rng(_OTHER_SEED)
    hidden = hide_cells(values, coordinates, rng, chosen.targets, whole=True, errors=errors)
    (window,) = tell_by_errors(hidden, values, errors, rng)
    assert window.seen_noise is not None
    answered = _answered(window, chosen)
    seen, noise = np.isfinite(window.seen), window.seen_noise / chosen.scale
    found = noisy_field_variance(coordinates, kernels, chosen.setting.grouping, seen, ridge, noise)
    promised = chosen.scale * (found[window.hidden] + ridge)
    own = errors[window.hidden] ** 2
    counted = window.shares > 0
    squares = answered.residuals**2
    return factors_by_power(
        squares[counted], promised[counted], own[counted], window.powers[counted]
    )


def factors_by_power(
    squares: Array, promised: Array, noise: Array, powers: Indices
) -> tuple[float, ...]:
    """Return a factor on promised variances for each power of two of the distance to data.

    Errors at a distance d from data depend on each other over d cells, so cells of the power p
    count for one in 4^p. The fewer they are the more the factor is that of all cells, and the fewer
    these are the more it is 1.
    """
    told = (promised / np.maximum(promised + noise, np.finfo(float).tiny)) ** 2
    count = float(told.sum())
    whole = _toward(0.0, _log_factor(squares, promised, noise, told), count)
    factors = []
    for power in range(int(powers.max(initial=0)) + 1):
        own = powers == power
        count = float(told[own].sum()) / 4.0**power
        log = _log_factor(squares[own], promised[own], noise[own], told[own])
        factors.append(math.exp(_toward(whole, log, count)))
    return tuple(factors)


def _toward(known: float, found: float, count: float) -> float:
    """Return the logarithm of a factor between one that is known and one found on so many cells.

    Of a lesser factor the variances are averaged, and of a larger one their logarithms. Where
    errors of observations are most of what hidden cells differ by, what is left of the difference
    is often nothing by chance, and the logarithm of that would count for any number of cells.
    """
    share = count / (count + _AS_MANY)
    if found > known:
        return share * found + (1.0 - share) * known
    return math.log(share * math.exp(found) + (1.0 - share) * math.exp(known))


def _log_factor(squares: Array, promised: Array, noise: Array, told: Array) -> float:
    """Return the logarithm of the factor with which bands hold what they promise; 0 of no cell.

    A band holds a cell from a factor of (r^2 / z^2 - E^2) / promised on.
    """
    if not told.sum() > 0:
        return 0.0
    bands = [_needed(squares / z**2, promised, noise, told, share) for share, z in _BANDS]
    return math.log(float(np.mean(bands)) ** 2)


def _needed(squares: Array, promised: Array, noise: Array, told: Array, share: float) -> float:
    """Return the root of the factor with which a band holds a share of the cells, by weight."""
    needed = (squares - noise) / np.maximum(promised, np.finfo(float).tiny)
    order = np.argsort(needed)
    reached = np.cumsum(told[order])
    place = min(int(np.searchsorted(reached, share * reached[-1])), order.size - 1)
    return math.sqrt(min(max(float(needed[order[place]]), 1.0 / _WIDEST), _WIDEST))
