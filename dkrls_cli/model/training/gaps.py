"""Training of the cascade of a grid with missing cells."""

from __future__ import annotations

from functools import partial

import numpy as np

from dkrls_cli.arrays import checked_gaps, fits_single, round_to_single
from dkrls_cli.gaps.bars import GapBars, rescale
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.choosing import ChoiceCallback, watch_joint
from dkrls_cli.model.planning.requests import FitPlan
from dkrls_cli.model.poles.crossing import cross_with_gaps
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.training.joint import JointAxes, can_calm
from dkrls_cli.model.training.lost import drop_lost_slices, enclosed_coordinates
from dkrls_cli.model.training.result import Tell, TrainingResult, calm_notes, solve_notes
from dkrls_cli.tuning.calibration.holes import gap_bars
from dkrls_cli.tuning.gaps import GapChoice
from dkrls_cli.tuning.spectra import SpectrumCache

_SEARCH = 0.7
"""Share of a fit through gaps that the choice of settings takes, roughly."""


def train_through_gaps(
    grid: Grid,
    plan: FitPlan,
    settings: Settings,
    missing: float,
    spectra: SpectrumCache | None = None,
    land: bool = True,
    whole: Grid | None = None,
    watch: ChoiceCallback | None = None,
    tell: Tell = lambda share: None,
) -> TrainingResult:
    """Train on the observed cells of a grid, under one joint ridge: :mod:`dkrls_cli.gaps.solve`.

    Parameters
    ----------
    grid
        The data, NaN where cells are missing; every coordinate has an observed cell.
    plan
        Levels, given or to be chosen, for the axes of the grid.
    settings
        Of these, the mean, compact and dtype.
    missing
        Share of missing cells to report, those of dropped coordinates among them.
    spectra
        Spectra that are known from other variables on the same axes.
    land
        Whether cells that are missing all along the last level are solved for as exactly as others.
    whole
        The grid with the coordinates at which no cell is observed. On the sphere, those that data
        encloses are solved for as all others are: a polar cap is a hole.
    watch
        Called with what was tried for every level.
    tell
        Called with the share that is done, 0 to 1, roughly.

    Returns
    -------
    TrainingResult
        The cascade of the completed grid, and its error bars.

    Raises
    ------
    InputError
        If all cells are missing, or one is infinite.
    SettingError
        If the ridge that is given for a group is so small that round-off would decide its answers.
    ConvergenceError
        If the missing cells could not be solved for.
    """
    values = checked_gaps(grid.values)
    observed = ~np.isnan(values)
    mean = float(values[observed].mean()) if settings.centre is None else settings.centre
    thin = JointAxes.of(grid, plan)
    chosen = thin.choose(values, plan, mean, spectra, tell=lambda share: tell(_SEARCH * share))
    tell(_SEARCH)
    watch_joint(watch, thin.own_axes, chosen.trials, chosen.setting)
    enclosing = None
    if chosen.setting.grouping.sphere and whole is not None:
        enclosing = drop_lost_slices(whole, enclosed_coordinates(whole, plan.group))
        values = checked_gaps(enclosing[0].values)
        observed = ~np.isnan(values)
        thin = JointAxes.of(enclosing[0], plan)
        chosen = chosen.move_to(thin.coordinates, thin.targets(observed))
    if plan.joint_ridge is not None:
        thin.refuse_tiny_ridge(chosen)
    bars = gap_bars(values.reshape(thin.shape), thin.coordinates, chosen)
    own, found = thin, None
    if not chosen.setting.grouping.axes:
        found = cross_with_gaps(grid, plan, thin.levels(plan, chosen), chosen.setting.ridge, mean)
    if found is not None:
        values = checked_gaps(found.grid.values)
        thin = JointAxes.of(found.grid, plan)
        chosen = chosen.move_to(thin.coordinates, thin.targets(~np.isnan(values)))
        bars = rescale(bars, np.isnan(values).reshape(thin.shape))
    missing_cells = np.isnan(values)
    solve = partial(
        thin.solve,
        values,
        watched=None if land or chosen.tried == 1 else chosen.targets,
        tell=lambda share: tell(_SEARCH + (1.0 - _SEARCH) * share),
    )
    first = chosen.setting.ridge
    is_open = found is None and plan.joint_ridge is None
    done = solve(chosen, is_open=is_open)
    while is_open and not done.converged and can_calm(chosen.setting):
        chosen = thin.calm(values, chosen)
        bars = gap_bars(values.reshape(thin.shape), thin.coordinates, chosen)
        done = solve(chosen, is_open=is_open)
    filled = done.values.reshape(values.shape)
    if fits_single(values):  # then a model file holds the filled cells in float32 as well
        filled = round_to_single(filled, missing_cells)
    trained = thin.fit(filled, done, chosen, plan, settings)
    facts = own.facts(observed, plan, done, chosen) | {"share": missing}
    expanded = thin.measure(bars.expand(values.shape, thin.places), filled, trained)
    notes = [*calm_notes(first, chosen.setting.ridge), *solve_notes(done)]
    told = {"missing": facts, "notes": notes}
    rows = None if found is None else found.rows
    return TrainingResult(trained, expanded, told, enclosing, rows)


def choose_through_gaps(grid: Grid, plan: FitPlan, mean: float) -> tuple[GapChoice, GapBars]:
    """Choose what a plan leaves open on a grid with missing cells, and calibrate error bars there.

    Every coordinate has an observed cell. Axes of one coordinate have no part in the choice, nor
    in the error bars.
    """
    chosen, thin = choose_kernels(grid, plan, mean), JointAxes.of(grid, plan)
    values = checked_gaps(grid.values).reshape(thin.shape)
    return chosen, gap_bars(values, thin.coordinates, chosen)


def choose_kernels(grid: Grid, plan: FitPlan, mean: float) -> GapChoice:
    """Choose what a plan leaves open on a grid with missing cells, without error bars."""
    return JointAxes.of(grid, plan).choose(checked_gaps(grid.values), plan, mean, None)
