"""Training of the cascade of a labelled grid, complete or with missing cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from dkrls_cli.arrays import (
    Array,
    Indices,
    Mask,
    checked_gaps,
    checked_values,
    fits_single,
    round_to_single,
)
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars.bars import Bars
from dkrls_cli.cascade.errorbars.calibrate import calibrate
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.poles.continuation import Continuation
from dkrls_cli.cascade.spectrum import Spectrum
from dkrls_cli.errors import ConvergenceError, InputError
from dkrls_cli.gaps.bars import GapBars, rescale
from dkrls_cli.gaps.field import make_field
from dkrls_cli.gaps.noisy.analysis import Observations, analyse, measure_spread
from dkrls_cli.gaps.pattern import Pattern, empty_slices, pattern
from dkrls_cli.gaps.solve import Completed, complete
from dkrls_cli.grid.axes import Axis, list_some
from dkrls_cli.grid.cf import place_of
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.choosing import ChoiceCallback, choose_levels, single_level, watch_joint
from dkrls_cli.model.planning.requests import FitPlan, LevelRequest
from dkrls_cli.model.poles.crossing import cross_poles, cross_with_gaps
from dkrls_cli.model.settings import Settings
from dkrls_cli.tuning.calibration.holes import gap_bars
from dkrls_cli.tuning.gaps import GapChoice, choose_with_gaps
from dkrls_cli.tuning.joint import JointSetting
from dkrls_cli.tuning.moves import LevelConstraint
from dkrls_cli.tuning.noisy.calibration import noisy_bars
from dkrls_cli.tuning.spectra import SpectrumCache

_CAP = 60.0
"""Latitude from which on data encloses the pole: a cap of 30 degrees is a hole like others."""

SOLVE_LIMIT = 1500
"""Iterations of the solve for missing cells: five times what holes in real grids took at most."""

_CALMER, _CALMEST = 100.0, 1e-3
"""Factor on a ridge with which missing cells could not be solved for, and the largest one then."""

_PATIENCE = 500
"""Iterations after which a ridge is raised: holes in real grids took 300 at most."""

_ANALYSIS = 1e-6
"""Largest change of a cell, as a share of the spread of the data, at the end of an analysis.

Observations that tell of a cell may be far from it, and then cells change slowly.
"""

_SEARCH = 0.7
"""Share of a fit through gaps that the choice of settings takes, roughly."""

Tell = Callable[[float], None]
"""Called with the share that is done, 0 to 1."""

CHOSEN_ON = "last_level_chosen_on"
"""Key of the origin of a model fitted to one slice: slices when its settings were last chosen."""


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """A trained cascade.

    Attributes
    ----------
    cascade
        The numbers of the model.
    bars
        What its error bars are computed from.
    facts
        What the model keeps about its training: ``notes`` to warn of, and ``missing``, the share
        and pattern of the missing cells and how well they are solved for.
    enclosing
        The grid that the model holds, and notes on its coordinates that are left out, if these are
        others than in the grid that was given.
    poles
        Rows of the cascade that go on across the poles, or None.
    """

    cascade: Cascade
    bars: Bars
    facts: dict[str, Any]
    enclosing: tuple[Grid, list[str]] | None = None
    poles: Continuation | None = None


def drop_lost_slices(
    grid: Grid, enclosed: Mapping[int, Indices] = MappingProxyType({})
) -> tuple[Grid, list[str]]:
    """Return the grid without coordinates at which no cell is observed, and a note per axis.

    A grid without any observed cell is returned as it is. Coordinates in `enclosed`, by axis, stay.
    """
    observed = grid.observed
    if not observed.any():
        return grid, []
    lost = [
        np.setdiff1d(gone, enclosed.get(place, ()))
        for place, gone in enumerate(empty_slices(observed))
    ]
    notes = lost_notes(grid.axes, lost)
    kept = [np.setdiff1d(np.arange(a.size), gone) for a, gone in zip(grid.axes, lost, strict=True)]
    return (grid.take(kept) if notes else grid), notes


def lost_notes(axes: Sequence[Axis], lost: Sequence[Indices]) -> list[str]:
    """Return a note on every axis some of whose coordinates are left out, as they have no data."""
    return [
        f"{axis.name}: {gone.size} of {axis.size} coordinates have no observed cell and are left "
        f"out, {list_some(axis.take(gone).texts)}"
        for axis, gone in zip(axes, lost, strict=True)
        if gone.size
    ]


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
    """
    values = checked_gaps(grid.values)
    observed = ~np.isnan(values)
    mean = float(values[observed].mean()) if settings.centre is None else settings.centre
    thin = _Thin.of(grid, plan)
    chosen = thin.choose(values, plan, mean, spectra, tell=lambda share: tell(_SEARCH * share))
    tell(_SEARCH)
    watch_joint(watch, thin.own_axes, chosen.trials, chosen.setting)
    enclosing = None
    if chosen.setting.grouping.sphere and whole is not None:
        enclosing = drop_lost_slices(whole, enclosed_coordinates(whole, plan.group))
        values = checked_gaps(enclosing[0].values)
        observed = ~np.isnan(values)
        thin = _Thin.of(enclosing[0], plan)
        chosen = chosen.move_to(thin.coordinates, thin.targets(observed))
    bars = gap_bars(values.reshape(thin.shape), thin.coordinates, chosen)
    own, found = thin, None
    if not chosen.setting.grouping.axes:
        found = cross_with_gaps(grid, plan, thin.levels(plan, chosen), chosen.setting.ridge, mean)
    if found is not None:
        values = checked_gaps(found.grid.values)
        thin = _Thin.of(found.grid, plan)
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
    while is_open and not done.converged and _can_calm(chosen.setting):
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
    spread = measure_spread(whole.values, whole.errors)
    mean = spread.mean if settings.centre is None else settings.centre
    thin = _Thin.of(grid, plan)
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


def choose_through_gaps(grid: Grid, plan: FitPlan, mean: float) -> tuple[GapChoice, GapBars]:
    """Choose what a plan leaves open on a grid with missing cells, and calibrate error bars there.

    Every coordinate has an observed cell. Axes of one coordinate have no part in the choice, nor
    in the error bars.
    """
    chosen, thin = choose_kernels(grid, plan, mean), _Thin.of(grid, plan)
    values = checked_gaps(grid.values).reshape(thin.shape)
    return chosen, gap_bars(values, thin.coordinates, chosen)


def choose_kernels(grid: Grid, plan: FitPlan, mean: float) -> GapChoice:
    """Choose what a plan leaves open on a grid with missing cells, without error bars."""
    return _Thin.of(grid, plan).choose(checked_gaps(grid.values), plan, mean, None)


@dataclass(frozen=True, eq=False)
class _Thin:
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
    def of(cls, grid: Grid, plan: FitPlan) -> _Thin:
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
            limit=min(SOLVE_LIMIT, _PATIENCE) if is_open and _can_calm(setting) else SOLVE_LIMIT,
            spectra=chosen.spectra,
            watched=watched,
            tell=tell,
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
        return facts | _group_facts(chosen.setting, self.own_axes)


def enclosed_coordinates(grid: Grid, group: Sequence[int]) -> dict[int, Indices]:
    """Return the coordinates without data that data encloses on the sphere, by axis."""
    return enclosed_among(grid.axes, empty_slices(grid.observed), group)


def enclosed_among(
    axes: Sequence[Axis], empty: Sequence[Indices], group: Sequence[int]
) -> dict[int, Indices]:
    """Return those of the coordinates without data that data encloses on the sphere, by axis.

    They are all longitudes, the latitudes between those with data, and those towards a pole if the
    last one with data is less than 30 degrees from it.
    """
    result = {}
    for place in group:
        numbers, gone = axes[place].numbers, empty[place]
        if place_of(axes[place]) == "latitude":
            known = np.delete(numbers, gone)
            south = -math.inf if known.min() <= -_CAP else known.min()
            north = math.inf if known.max() >= _CAP else known.max()
            gone = gone[(numbers[gone] > south) & (numbers[gone] < north)]
        result[place] = gone
    return result


def _targets(observed: Mask, last: int) -> Mask:
    """Return the missing cells that are not missing all along the last level, as land is.

    If that has one coordinate, or there is no other missing cell, they are all missing cells.
    """
    missing = ~observed
    targets = missing & observed.any(axis=last, keepdims=True)
    return targets if targets.any() else missing


def _group_facts(setting: JointSetting, axes: Sequence[Axis]) -> dict[str, Any]:
    """Return which dimensions share one distance, if some do, and their second scale."""
    grouping = setting.grouping
    if not grouping.axes:
        return {}
    names = [axes[place].name for place in grouping.axes[0]]
    second = {"share": grouping.share, "factor": grouping.factor} if grouping.share else None
    return {"group": names, "sphere": grouping.sphere, "second_scale": second}


def _can_calm(setting: JointSetting) -> bool:
    """Return whether a ridge is small enough to be raised, and no group of axes has it."""
    return setting.ridge * _CALMER <= _CALMEST and not setting.grouping.axes


def calm_notes(chosen: float, taken: float) -> list[str]:
    """Return a note if the ridge is a larger one than hidden cells have chosen."""
    if taken <= chosen:
        return []
    return [
        f"the ridge is {taken:.2g}, not {chosen:.2g} as hidden cells would have it: with that, the "
        "missing cells could not be solved for"
    ]


def inexact_error(done: Completed) -> ConvergenceError:
    """Return the error of missing cells that were not solved for."""
    return ConvergenceError(
        f"The missing cells are solved for to {done.residual:.2g} of the spread of the data only, "
        f"after {done.iterations} steps. Give a larger ridge or a shorter sigma, or accept inexact "
        "answers.",
        setting="accept_inexact",
    )


def _constraint(level: Level | LevelRequest) -> LevelConstraint:
    """Return the settings given for a level as the search through gaps takes them."""
    if isinstance(level, Level):
        kernel = level.kernel
        return LevelConstraint(kernel.family, kernel.sigma, kernel.period, kernel)
    return LevelConstraint(level.family, level.sigma, level.period)


def missing_facts(
    observed: Mask, axes: Sequence[Axis], last: int, done: Completed
) -> dict[str, Any]:
    """Return what is missing of a grid, and how well the missing cells are solved for.

    Parameters
    ----------
    observed
        Which cells are observed.
    axes
        Axes of the grid.
    last
        Place among the axes of the last level.
    done
        The completed grid.

    Returns
    -------
    dict
        ``share`` of the cells, ``pattern`` and ``typical_gap`` in words, and ``iterations`` and
        relative ``residual`` of the solve.
    """
    return {
        "share": 1.0 - float(observed.mean()),
        **_describe(pattern(observed, last), axes, last),
        "iterations": done.iterations,
        "residual": done.residual,
    }


def _describe(found: Pattern, axes: Sequence[Axis], last: int) -> dict[str, str]:
    """Return the pattern of missing cells, and the size of a typical gap, in words."""
    shares = {f"at all {axes[last].name}": found.fixed, "here and there": found.scattered}
    words = [f"{100 * share:.3g} % {where}" for where, share in shares.items() if share > 0]
    sides = zip(axes, found.shape, strict=True)
    typical = " x ".join(f"{axis.name} {side}" for axis, side in sides)
    return {"pattern": ", ".join(words), "typical_gap": typical}


def solve_notes(done: Completed) -> list[str]:
    """Return a warning if the solve for the missing cells ended above its tolerance."""
    if done.converged:
        return []
    return [
        f"the missing cells are solved for to {done.residual:.2g} only, in {done.iterations} "
        "steps; a larger ridge or a shorter sigma solves better"
    ]
