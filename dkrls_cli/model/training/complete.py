"""Training of the cascade of a complete grid."""

from __future__ import annotations

import numpy as np

from dkrls_cli.arrays import checked_values
from dkrls_cli.cascade.errorbars.calibrate import calibrate
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.choosing import ChoiceCallback, choose_levels
from dkrls_cli.model.planning.requests import FitPlan
from dkrls_cli.model.poles.crossing import cross_poles
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.training.result import TrainingResult
from dkrls_cli.tuning.spectra import SpectrumCache


def train(
    grid: Grid,
    plan: FitPlan,
    settings: Settings,
    watch: ChoiceCallback | None = None,
    spectra: SpectrumCache | None = None,
) -> TrainingResult:
    """Train on a complete grid.

    Parameters
    ----------
    grid
        The data.
    plan
        Levels, given or to be chosen, for the axes of the grid.
    settings
        Of these, the mean, compact, dtype and folds.
    watch
        Called for every level that is chosen.
    spectra
        Spectra that are known from other variables on the same axes.

    Returns
    -------
    TrainingResult
        The cascade and its error bars.

    Raises
    ------
    InputError
        If the grid has no cell, or one that is not finite.
    """
    values = checked_values(grid.values)
    mean = float(np.mean(values, dtype=np.float64)) if settings.centre is None else settings.centre
    chosen = choose_levels(
        plan, grid.axes, values, mean, folds=settings.folds, watch=watch, spectra=spectra
    )
    found = cross_poles(
        grid, values, plan, chosen, mean, folds=settings.folds, watch=watch, spectra=spectra
    )
    del values  # if this is a copy of the data as float64, the fit makes its core of another one
    data, axes, rows = grid.values, grid.axes, None
    if found is not None:
        chosen, axes, rows = found.chosen, found.grid.axes, found.rows
        data = found.grid.freeze().values
    trained = fit_cascade(
        data,
        [axis.numbers for axis in axes],
        chosen.levels,
        joint_ridge=chosen.joint_ridge,
        spectra=chosen.spectra,
        mean=mean,
        compact=settings.compact,
        dtype=settings.dtype,
    )
    bars = calibrate(trained, rows)
    return TrainingResult(trained, bars, {"notes": list(chosen.warnings)}, poles=rows)
