"""The levels of a grid that are chosen, solved for and fitted under one joint ridge."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars.bars import Bars
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.spectrum import Spectrum
from dkrls_cli.errors import SettingError
from dkrls_cli.gaps.field import make_field
from dkrls_cli.gaps.solve import LEAST_RIDGE, Completed, complete
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.choosing import single_level
from dkrls_cli.model.planning.requests import FitPlan, LevelRequest
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.training.result import Tell, group_facts, inexact_error, missing_facts
from dkrls_cli.tuning.gaps import GapChoice, choose_with_gaps
from dkrls_cli.tuning.joint import JointSetting
from dkrls_cli.tuning.moves import LevelConstraint
from dkrls_cli.tuning.spectra import SpectrumCache

SOLVE_LIMIT = 1500
"""Iterations of the solve for missing cells: five times what holes in real grids took at most."""


_CALMER, _CALMEST = 100.0, 1e-3
"""Factor on a ridge with which missing cells could not be solved for, and the largest one then."""


_PATIENCE = 500
"""Iterations after which a ridge is raised: holes in real grids took 300 at most."""


@dataclass(frozen=True, eq=False)
class JointAxes:
    """The axes of a grid that have more than one coordinate: the others have no part in a choice.

    Attributes
    ----------
    axes
        All axes of the grid.
    places
        Places of those that have more than one coordinate.
    last
        Place of the last level.
    """

    axes: tuple[Axis, ...]
    places: tuple[int, ...]
    last: int

    @classmethod
    def of(cls, grid: Grid, plan: FitPlan) -> JointAxes:
        """Return the axes of a grid."""
        places = tuple(place for place, axis in enumerate(grid.axes) if axis.size > 1)
        return cls(grid.axes, places, grid.dims.index(plan.hierarchy[-1]))

    @property
    def own_axes(self) -> list[Axis]:
        """The axes that are left."""
        return [self.axes[place] for place in self.places]

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes that are left."""
        return tuple(axis.size for axis in self.own_axes)

    @property
    def coordinates(self) -> list[Array]:
        """Coordinates of the axes that are left."""
        return [axis.numbers for axis in self.own_axes]

    def targets(self, observed: Mask) -> Mask:
        """Return the missing cells that settings are chosen for, along the axes that are left."""
        return _targets(observed, self.last).reshape(self.shape)

    def choose(
        self,
        values: Array,
        plan: FitPlan,
        mean: float,
        spectra: SpectrumCache | None,
        errors: Array | None = None,
        tell: Tell = lambda share: None,
    ) -> GapChoice:
        """Choose what the plan leaves open."""
        observed = ~np.isnan(values)
        targets = self.targets(observed)
        if errors is not None and self.axes[self.last].size > 1:  # land is not answered for
            known = observed.any(axis=self.last, keepdims=True)
            targets &= np.broadcast_to(known, observed.shape).reshape(self.shape)
        group = tuple(self.places.index(place) for place in plan.group)
        return choose_with_gaps(
            values.reshape(self.shape),
            self.coordinates,
            [_constraint(plan.levels[place]) for place in self.places],
            ridge=plan.joint_ridge,
            mean=mean,
            spectra=spectra,
            targets=targets,
            groups=(group,) if group else (),
            sphere=plan.sphere,
            force=plan.group_given,
            errors=None if errors is None else errors.reshape(self.shape),
            tell=tell,
        )

    def solve(
        self, values: Array, chosen: GapChoice, *, is_open: bool, watched: Mask | None, tell: Tell
    ) -> Completed:
        """Solve for the missing cells, with less patience if an open ridge can be raised."""
        setting = chosen.setting
        return complete(
            values.reshape(self.shape),
            self.coordinates,
            setting.kernels,
            setting.ridge,
            chosen.mean,
            grouping=setting.grouping,
            tolerance=chosen.tolerance,
            limit=min(SOLVE_LIMIT, _PATIENCE) if is_open and can_calm(setting) else SOLVE_LIMIT,
            spectra=chosen.spectra,
            watched=watched,
            tell=tell,
        )

    def refuse_tiny_ridge(self, chosen: GapChoice) -> None:
        """Raise SettingError if a group has a ridge so small that round-off decides its answers.

        A solve would take a larger one: its answers are not those of the ridge that is given.
        """
        setting = chosen.setting
        if not setting.grouping.axes:
            return
        field = make_field(self.coordinates, setting.kernels, setting.grouping)
        least = LEAST_RIDGE * float(field.variances.max())
        if setting.ridge < least:
            raise SettingError(
                f"Invalid joint ridge {setting.ridge:.3g} for dimensions that share one distance. "
                f"With these kernels it must be at least {least:.2g}: below, round-off decides "
                "about the missing cells. Give a larger ridge, or no group."
            )

    def calm(self, values: Array, chosen: GapChoice) -> GapChoice:
        """Choose a hundred times the ridge and the same kernels: hidden cells tell the error."""
        again = choose_with_gaps(
            values.reshape(self.shape),
            self.coordinates,
            [LevelConstraint(k.family, k.sigma, k.period, k) for k in chosen.setting.kernels],
            ridge=_CALMER * chosen.setting.ridge,
            mean=chosen.mean,
            targets=chosen.targets,
        )
        trials = (*chosen.trials, *again.trials)
        return replace(again, tried=chosen.tried + again.tried, trials=trials)

    def fit(
        self,
        completed: Array,
        done: Completed,
        chosen: GapChoice,
        plan: FitPlan,
        settings: Settings,
    ) -> Cascade:
        """Return the cascade of a completed grid, if that was solved for exactly enough."""
        if not (done.converged or settings.accept_inexact):
            raise inexact_error(done)
        known: list[Spectrum | None] = [None] * len(self.axes)
        for place, spectrum in zip(self.places, chosen.spectra, strict=True):
            known[place] = spectrum
        return fit_cascade(
            completed,
            [axis.numbers for axis in self.axes],
            self.levels(plan, chosen),
            joint_ridge=chosen.setting.ridge,
            mean=chosen.mean,
            compact=settings.compact,
            dtype=settings.dtype,
            spectra=known,
        )

    def measure(self, bars: Bars, completed: Array, trained: Cascade) -> Bars:
        """Return error bars that are measured on the whole data, if the model keeps less of it."""
        if not trained.compact:
            return bars
        full = fit_cascade(
            completed,
            trained.coordinates,
            trained.levels,
            joint_ridge=trained.joint_ridge,
            mean=trained.mean,
        )
        return bars.measured_in(full)

    def levels(self, plan: FitPlan, chosen: GapChoice) -> list[Level]:
        """Return the levels of all axes."""
        levels = [single_level(level) for level in plan.levels]
        for place, kernel in zip(self.places, chosen.setting.kernels, strict=True):
            levels[place] = Level(self.axes[place].name, kernel)
        return levels

    def facts(
        self, observed: Mask, plan: FitPlan, done: Completed, chosen: GapChoice
    ) -> dict[str, Any]:
        """Return what is missing, and how it was solved for."""
        facts = missing_facts(observed, self.axes, self.last, done)
        facts |= {"settings_tried": chosen.tried}
        return facts | group_facts(chosen.setting, self.own_axes)


def _targets(observed: Mask, last: int) -> Mask:
    """Return the missing cells that are not missing all along the last level, as land is.

    If that has one coordinate, or there is no other missing cell, they are all missing cells.
    """
    missing = ~observed
    targets = missing & observed.any(axis=last, keepdims=True)
    return targets if targets.any() else missing


def can_calm(setting: JointSetting) -> bool:
    """Return whether a ridge is small enough to be raised, and no group of axes has it."""
    return setting.ridge * _CALMER <= _CALMEST and not setting.grouping.axes


def _constraint(level: Level | LevelRequest) -> LevelConstraint:
    """Return the settings given for a level as the search through gaps takes them."""
    if isinstance(level, Level):
        kernel = level.kernel
        return LevelConstraint(kernel.family, kernel.sigma, kernel.period, kernel)
    return LevelConstraint(level.family, level.sigma, level.period)
