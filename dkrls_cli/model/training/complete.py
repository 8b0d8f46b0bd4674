"""Training of the cascade of a complete grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import checked_values
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars.calibrate import calibrate
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.poles.continuation import Continuation
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.choosing import ChoiceCallback, ChosenLevels, choose_levels
from dkrls_cli.model.planning.requests import FitPlan
from dkrls_cli.model.poles.crossing import cross_poles
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.training.result import TrainingResult
from dkrls_cli.tuning.spectra import SpectrumCache


@dataclass(frozen=True, eq=False)
class Settled:
    """A complete grid and the settings with which it is trained.

    Attributes
    ----------
    grid
        The data, with rows that go on across the poles if there are some.
    chosen
        The levels.
    mean
        Value to which answers fall back.
    poles
        The rows that go on across the poles, or None.
    """

    grid: Grid
    chosen: ChosenLevels
    mean: float
    poles: Continuation | None

    def fit(self, settings: Settings) -> Cascade:
        """Return the trained cascade; `settings` tell whether it is compact, and its type."""
        return fit_cascade(
            self.grid.values,
            [axis.numbers for axis in self.grid.axes],
            self.chosen.levels,
            joint_ridge=self.chosen.joint_ridge,
            spectra=self.chosen.spectra,
            mean=self.mean,
            compact=settings.compact,
            dtype=settings.dtype,
        )


def settle(
    grid: Grid,
    plan: FitPlan,
    settings: Settings,
    watch: ChoiceCallback | None = None,
    spectra: SpectrumCache | None = None,
) -> Settled:
    """Choose the settings of a complete grid. Parameters and errors are those of :func:`train`."""
    values = checked_values(grid.values)
    mean = float(np.mean(values, dtype=np.float64)) if settings.centre is None else settings.centre
    chosen = choose_levels(
        plan, grid.axes, values, mean, folds=settings.folds, watch=watch, spectra=spectra
    )
    found = cross_poles(
        grid, values, plan, chosen, mean, folds=settings.folds, watch=watch, spectra=spectra
    )
    if found is None:
        return Settled(grid, chosen, mean, None)
    return Settled(found.grid.freeze(), found.chosen, mean, found.rows)


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
    settled = settle(grid, plan, settings, watch, spectra)
    trained = settled.fit(settings)
    bars = calibrate(trained, settled.poles)
    facts = {"notes": list(settled.chosen.warnings)}
    return TrainingResult(trained, bars, facts, poles=settled.poles)
