"""Levels of a complete grid: the settings that were not given are chosen on the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from dkrls_cli.arrays import Array, Indices, Tensor
from dkrls_cli.cascade.factors.choice import LONG
from dkrls_cli.cascade.kernels import kernel_named
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.spectrum import Spectrum
from dkrls_cli.grid.axes import Axis
from dkrls_cli.model.planning.requests import FitPlan, LevelRequest
from dkrls_cli.tuning.candidates import LevelChoice
from dkrls_cli.tuning.joint import JointSetting, JointTrial, choose_joint
from dkrls_cli.tuning.slices.choice import TWO, choose_level
from dkrls_cli.tuning.slices.fibres import sample_fibres, see_through
from dkrls_cli.tuning.spectra import SpectrumCache
from dkrls_cli.tuning.tables.leftout import Slices
from dkrls_cli.tuning.tables.splines import spline_candidates, with_error_kernel
from dkrls_cli.tuning.tables.together import OwnLevel, choose_together
from dkrls_cli.tuning.trials.record import level_choices

ChoiceCallback = Callable[[str, LevelChoice], None]
"""Called with the name of a dimension and its choice, as soon as the choice is made.

A level is chosen again, and called with again, if it goes on across a pole or gets a joint ridge.
"""


@dataclass(frozen=True)
class ChosenLevels:
    """Levels of a model, all settings chosen.

    Attributes
    ----------
    levels
        In the order of the axes.
    joint_ridge
        The one ridge of the whole grid, or None.
    warnings
        Settings that lie at the end of the range that was tried, in words.
    spectra
        Decomposed Gram matrices of the levels; None where the choice did not need it.
    smoothers
        Levels that answer along their own axis: those with a ridge of their own, also where a joint
        ridge stands for these in `levels`.
    """

    levels: tuple[Level, ...]
    joint_ridge: float | None
    warnings: tuple[str, ...]
    spectra: tuple[Spectrum | None, ...]
    smoothers: tuple[Level, ...] = ()


def choose_levels(
    plan: FitPlan,
    axes: Sequence[Axis],
    values: Tensor,
    mean: float,
    *,
    folds: int | None = None,
    watch: ChoiceCallback | None = None,
    spectra: SpectrumCache | None = None,
    copies: Mapping[int, Indices] = MappingProxyType({}),
) -> ChosenLevels:
    """Choose what the plan leaves open, the shortest level first: :mod:`dkrls_cli.tuning.slices`.

    Each level is chosen on the data as the levels before it answer half-way between their
    coordinates, unless that cancels. There is nothing half-way between text labels, so levels of
    labels are left out of that.

    Parameters
    ----------
    plan
        Levels, given or to be chosen.
    axes, values
        The complete grid.
    mean
        Level to which the answers fall back far from data.
    folds
        Number of blocks of neighbours to leave out, instead of single slices.
    watch
        Called for every level that is chosen.
    spectra
        Spectra that are known from other variables on the same axes.
    copies
        By axis, which of its samples are copies: see
        :func:`dkrls_cli.tuning.slices.choice.choose_level`.

    Returns
    -------
    ChosenLevels
        Levels in the order of the axes.
    """
    levels: dict[int, Level] = {}
    smoothers: dict[int, Level] = {}
    choices: dict[int, LevelChoice] = {}
    taken: list[Spectrum | None] = [None] * values.ndim
    seen, centre = values, mean
    order = sorted(range(values.ndim), key=lambda place: values.shape[place])
    open_ones = [p for p in order if _closed(plan.levels[p], plan.joint, axes[p].size) is None]
    for place in order:
        axis, request = axes[place], plan.levels[place]
        smoother, spectrum = _closed(request, plan.joint, axis.size), None
        if smoother is not None:
            levels[place] = smoother
        else:
            assert isinstance(request, LevelRequest)
            fibres = sample_fibres(seen, place, centre)
            choice = _choose(request, axis, fibres, folds, plan.joint, spectra, copies.get(place))
            if watch is not None:
                watch(axis.name, choice)
            choices[place] = choice
            smoother = _level(request, choice, joint=False)
            spectrum = choice.spectra.get(smoother.kernel)
            levels[place] = _level(request, choice, plan.joint)
            taken[place] = choice.spectra.get(levels[place].kernel)
        smoothers[place] = smoother
        is_followed = any(order.index(other) > order.index(place) for other in open_ones)
        if is_followed and axis.size > 1 and axis.labels is None:
            kernel, ridge = smoother.kernel, smoother.ridge
            seen = see_through(seen, place, centre, axis.numbers, kernel, ridge, spectrum=spectrum)
            centre = 0.0
    in_order, alone = (
        tuple(found[place] for place in range(values.ndim)) for found in (levels, smoothers)
    )
    chosen = ChosenLevels(in_order, None, _warnings(axes, choices), tuple(taken), alone)
    if plan.joint:
        centred = np.subtract(values, mean, dtype=np.float64)
        return _choose_joint_ridge(plan, axes, centred, chosen, watch)
    if folds is None and not copies and all(map(_is_open, plan.levels, axes)):
        return _choose_together(axes, values, mean, chosen, choices, watch)
    return chosen


def _warnings(axes: Sequence[Axis], choices: Mapping[int, LevelChoice]) -> tuple[str, ...]:
    """Return the warnings of all choices, with the names of the dimensions."""
    return tuple(
        f"{axes[place].name}: {text}; a better value may lie beyond"
        for place, choice in choices.items()
        for text in choice.warnings
    )


def _is_open(request: Level | LevelRequest, axis: Axis) -> bool:
    """Return whether a level may have a spline on a line: nothing of it is given."""
    if axis.size == 1:
        return True
    if isinstance(request, Level) or axis.size > LONG:
        return False
    given = request.family, request.sigma, request.ridge, request.period, request.folds
    return all(value is None for value in given)


def _choose_together(
    axes: Sequence[Axis],
    values: Tensor,
    mean: float,
    chosen: ChosenLevels,
    choices: Mapping[int, LevelChoice],
    watch: ChoiceCallback | None,
) -> ChosenLevels:
    """Take one spline for all levels if it is as good: :mod:`dkrls_cli.tuning.tables.together`."""
    asked = {
        place: OwnLevel.of(axes[place].numbers, choice)
        for place, choice in choices.items()
        if axes[place].labels is None and axes[place].size > TWO
    }
    name = choose_together(values, mean, asked) if asked else None
    if name is None:
        return chosen
    levels = list(chosen.levels)
    for place, own in asked.items():
        slices = Slices.of(own.coordinates, sample_fibres(values, place, mean), None)
        (spline,) = spline_candidates(slices, name)
        taken = with_error_kernel(slices, spline)
        levels[place] = Level(axes[place].name, taken.kernel, taken.ridge)
        choice = LevelChoice(taken, (*choices[place].tried, taken))
        if watch is not None:
            watch(axes[place].name, choice)
    spectra = tuple(None if p in asked else known for p, known in enumerate(chosen.spectra))
    left = {place: choice for place, choice in choices.items() if place not in asked}
    return ChosenLevels(tuple(levels), None, _warnings(axes, left), spectra, tuple(levels))


def _choose_joint_ridge(
    plan: FitPlan,
    axes: Sequence[Axis],
    values: Array,
    chosen: ChosenLevels,
    watch: ChoiceCallback | None,
) -> ChosenLevels:
    """Choose one ridge for all levels, and with it the sigmas that are open."""
    movable = [
        isinstance(level, LevelRequest) and level.sigma is None and axis.size > 1
        for level, axis in zip(plan.levels, axes, strict=True)
    ]
    if plan.joint_ridge is not None and not any(movable):
        return replace(chosen, joint_ridge=plan.joint_ridge)
    choice = choose_joint(
        values,
        [axis.numbers for axis in axes],
        [level.kernel for level in chosen.levels],
        open_sigmas=movable,
        ridge=plan.joint_ridge,
        spectra=chosen.spectra,
    )
    watch_joint(watch, axes, choice.trials, choice.setting)
    kernels = zip(chosen.levels, choice.setting.kernels, strict=True)
    levels = tuple(replace(level, kernel=kernel) for level, kernel in kernels)
    return replace(chosen, levels=levels, joint_ridge=choice.setting.ridge, spectra=choice.spectra)


def watch_joint(
    watch: ChoiceCallback | None,
    axes: Sequence[Axis],
    trials: Sequence[JointTrial],
    setting: JointSetting,
) -> None:
    """Tell a callback what was tried for each level while all levels were chosen together.

    Parameters
    ----------
    watch
        The callback, or None.
    axes
        Axes of the levels, one for each kernel of a setting.
    trials
        What was tried. If that is a single setting it was given, and the callback is not called.
    setting
        The setting that was chosen.
    """
    if watch is None or len(trials) < 2:
        return
    for place, axis in enumerate(axes):
        if axis.size > 1:
            for choice in level_choices(trials, setting, place):
                watch(axis.name, choice)


def _closed(request: Level | LevelRequest, joint: bool, size: int) -> Level | None:
    """Return the level if nothing of it is left open, or nothing can be chosen, else None."""
    if isinstance(request, Level):
        return request
    if size == 1:
        return single_level(request)
    ridge = 0.0 if joint else request.ridge
    if request.family is None or request.sigma is None or ridge is None:
        return None
    kernel = kernel_named(request.family, request.sigma, request.period)
    return Level(request.name, kernel, ridge)


def single_level(request: Level | LevelRequest) -> Level:
    """Return the level of one coordinate: there is nothing to choose by, and nothing to smooth."""
    if isinstance(request, Level):
        return request
    sigma = 1.0 if request.sigma is None else request.sigma
    kernel = kernel_named(request.family or "gaussian", sigma, request.period)
    return Level(request.name, kernel, request.ridge or 0.0)


def _choose(
    request: LevelRequest,
    axis: Axis,
    data: Array,
    folds: int | None,
    joint: bool,
    spectra: SpectrumCache | None,
    copies: Indices | None,
) -> LevelChoice:
    return choose_level(
        axis.numbers,
        data,
        family=request.family,
        sigma=request.sigma,
        ridge=request.ridge,
        period=request.period,
        cycles=request.cycles,
        folds=request.folds or folds,
        joint=joint,
        spectra=spectra,
        copies=copies,
    )


def _level(request: LevelRequest, choice: LevelChoice, joint: bool) -> Level:
    """Return the level that was chosen, without a ridge of its own under a joint one."""
    trial = choice.under_joint_ridge if joint else choice.taken
    return Level(request.name, trial.kernel, 0.0 if joint else trial.ridge)
