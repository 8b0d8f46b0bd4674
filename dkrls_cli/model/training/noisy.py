"""Training of the cascade of observations with errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkrls_cli.arrays import checked_gaps, fits_single, round_to_single
from dkrls_cli.errors import InputError
from dkrls_cli.gaps.field import make_field
from dkrls_cli.gaps.noisy.analysis import Observations, analyse, measure_spread
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.choosing import ChoiceCallback, watch_joint
from dkrls_cli.model.planning.requests import FitPlan
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.training.joint import SOLVE_LIMIT, JointAxes
from dkrls_cli.model.training.result import TrainingResult, solve_notes
from dkrls_cli.tuning.noisy.calibration import noisy_bars
from dkrls_cli.tuning.spectra import SpectrumCache

_ANALYSIS = 1e-6
"""Largest change of a cell, as a share of the spread of the data, at the end of an analysis.

Observations that tell of a cell may be far from it, and then cells change slowly.
"""


def train_with_errors(
    grid: Grid,
    plan: FitPlan,
    settings: Settings,
    missing: float,
    spectra: SpectrumCache | None = None,
    watch: ChoiceCallback | None = None,
) -> TrainingResult:
    """Train on observations with errors, cells missing or not, under one joint ridge.

    The cascade is that of the analysis: :mod:`dkrls_cli.gaps.noisy.analysis`.

    Parameters
    ----------
    grid
        The data and its errors; every coordinate has an observed cell.
    plan, settings, missing, spectra, watch
        As for :func:`train_through_gaps`.

    Returns
    -------
    TrainingResult
        The cascade of the analysis, and its error bars.

    Raises
    ------
    InputError
        If all cells are missing, or one is infinite.
    ConvergenceError
        If the analysis could not be solved for.
    """
    assert grid.errors is not None
    values = checked_gaps(grid.values)
    whole = Observations(values, np.asarray(grid.errors, np.float64))
    if not whole.observed.any():
        raise InputError(f"All {values.size} values are missing. Expected at least one number.")
    if values.size == 1:
        raise InputError(
            "Only one coordinate of every dimension has data, and nothing tells one observation "
            "from its error. Expected at least two, or leave the errors of the observations out."
        )
    spread = measure_spread(whole.values, whole.errors)
    mean = spread.mean if settings.centre is None else settings.centre
    thin = JointAxes.of(grid, plan)
    chosen = thin.choose(values, plan, mean, spectra, whole.errors)
    watch_joint(watch, thin.own_axes, chosen.trials, chosen.setting)
    seen, setting = whole.reshape(thin.shape), chosen.setting
    done = analyse(
        make_field(thin.coordinates, setting.kernels, setting.grouping, chosen.spectra),
        seen.values,
        setting.ridge,
        seen.errors**2 / chosen.scale,
        mean,
        tolerance=min(chosen.tolerance, _ANALYSIS),
        limit=SOLVE_LIMIT,
    )
    analysis = done.values.reshape(values.shape)
    if fits_single(values):
        analysis = round_to_single(analysis, np.ones(values.shape, bool))
    trained = thin.fit(analysis, done, chosen, plan, settings)
    facts: dict[str, Any] = {"notes": solve_notes(done)}
    if not whole.observed.all():
        found = thin.facts(whole.observed, plan, done, chosen)
        facts["missing"] = found | {"share": missing}
    bars = noisy_bars(seen, thin.coordinates, chosen).expand(values.shape, thin.places)
    return TrainingResult(trained, thin.measure(bars, analysis, trained), facts)
