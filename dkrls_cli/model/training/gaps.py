"""Training of the cascade of a grid with missing cells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dkrls_cli.arrays import Array, checked_gaps, fits_single, round_to_single
from dkrls_cli.gaps.bars import GapBars, rescale
from dkrls_cli.gaps.solve import Completed
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
    ready = _Ready.choose(grid, plan, settings, spectra, lambda share: tell(_SEARCH * share))
    tell(_SEARCH)
    setting = ready.chosen.setting
    watch_joint(watch, ready.axes.own_axes, ready.chosen.trials, setting)
    enclosing = None
    if setting.grouping.sphere and whole is not None:
        enclosing = drop_lost_slices(whole, enclosed_coordinates(whole, plan.group))
        ready = ready.move_to(enclosing[0], plan)
    if plan.joint_ridge is not None:
        ready.axes.refuse_tiny_ridge(ready.chosen)
    own, observed = ready.axes, ~np.isnan(ready.values)
    bars, found = ready.bars(), None
    if not setting.grouping.axes:
        levels = ready.axes.levels(plan, ready.chosen)
        found = cross_with_gaps(grid, plan, levels, setting.ridge, ready.chosen.mean)
    if found is not None:
        ready = ready.move_to(found.grid, plan)
        bars = rescale(bars, np.isnan(ready.values).reshape(ready.axes.shape))
    rest = partial(_tell_rest, tell)
    is_open = found is None and plan.joint_ridge is None
    done = ready.solve(is_open, land, rest)
    while is_open and not done.converged and can_calm(ready.chosen.setting):
        ready = ready.calm()
        bars, done = ready.bars(), ready.solve(is_open, land, rest)
    filled = ready.fill(done)
    trained = ready.axes.fit(filled, done, ready.chosen, plan, settings)
    facts = own.facts(observed, plan, done, ready.chosen) | {"share": missing}
    notes = [*calm_notes(setting.ridge, ready.chosen.setting.ridge), *solve_notes(done)]
    return TrainingResult(
        trained,
        ready.axes.measure(bars.expand(filled.shape, ready.axes.places), filled, trained),
        {"missing": facts, "notes": notes},
        enclosing,
        None if found is None else found.rows,
    )


def _tell_rest(tell: Tell, share: float) -> None:
    """Tell the share of a fit that is done, from that of the solve after the choice."""
    tell(_SEARCH + (1.0 - _SEARCH) * share)


@dataclass(frozen=True, eq=False)
class _Ready:
    """A grid with missing cells and the setting chosen for it, ready to be solved for.

    Attributes
    ----------
    axes
        Axes of the grid.
    values
        Its values, NaN where cells are missing.
    chosen
        The setting.
    """

    axes: JointAxes
    values: Array
    chosen: GapChoice

    @classmethod
    def choose(
        cls,
        grid: Grid,
        plan: FitPlan,
        settings: Settings,
        spectra: SpectrumCache | None,
        tell: Tell,
    ) -> _Ready:
        """Choose the setting of a grid."""
        values, axes = checked_gaps(grid.values), JointAxes.of(grid, plan)
        mean = settings.centre
        if mean is None:
            mean = float(values[~np.isnan(values)].mean())
        return cls(axes, values, axes.choose(values, plan, mean, spectra, tell=tell))

    def move_to(self, grid: Grid, plan: FitPlan) -> _Ready:
        """Return the same setting for a grid with further coordinates without data."""
        values, axes = checked_gaps(grid.values), JointAxes.of(grid, plan)
        moved = self.chosen.move_to(axes.coordinates, axes.targets(~np.isnan(values)))
        return _Ready(axes, values, moved)

    def bars(self) -> GapBars:
        """Return the error bars, calibrated on hidden cells."""
        return gap_bars(self.values.reshape(self.axes.shape), self.axes.coordinates, self.chosen)

    def solve(self, is_open: bool, land: bool, tell: Tell) -> Completed:
        """Solve for the missing cells, and for land less exactly than for others if not `land`."""
        watched = None if land or self.chosen.tried == 1 else self.chosen.targets
        return self.axes.solve(
            self.values, self.chosen, is_open=is_open, watched=watched, tell=tell
        )

    def calm(self) -> _Ready:
        """Return the grid with a larger ridge."""
        return replace(self, chosen=self.axes.calm(self.values, self.chosen))

    def fill(self, done: Completed) -> Array:
        """Return the completed grid; filled cells are single precision if all data is."""
        filled = done.values.reshape(self.values.shape)
        if fits_single(self.values):
            filled = round_to_single(filled, np.isnan(self.values))
        return filled


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
