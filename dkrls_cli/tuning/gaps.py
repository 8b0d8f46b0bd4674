"""Choose kernels and joint ridge of a grid with missing cells, by hiding cells like the gaps.

Leaving slices out in closed form (:mod:`dkrls_cli.tuning.slices`) needs a complete grid, and on a
grid that was filled beforehand it would learn from the filling. So observed cells are hidden the
way the gaps lie (:mod:`dkrls_cli.tuning.masks`). Kernel families, sigmas and ridge are then
improved in turn (:mod:`dkrls_cli.tuning.moves`), as long as the hidden cells are predicted better.

Kernels include a constant as in :mod:`dkrls_cli.tuning.slices`. Their product then has a part for
every dimension alone (a climatology, a mean over time), which reaches into the widest gap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.cascade.factors import choice
from dkrls_cli.cascade.kernels import gram
from dkrls_cli.cascade.spectrum import Spectrum, decompose
from dkrls_cli.gaps.coarse import CoarseMaker
from dkrls_cli.gaps.field import Field, make_field
from dkrls_cli.gaps.noisy.analysis import estimate_scale, measure_spread, solve_noisy
from dkrls_cli.gaps.solve import Completed, complete_field
from dkrls_cli.tuning.candidates import Measure
from dkrls_cli.tuning.joint import JointSetting, JointTrial
from dkrls_cli.tuning.masks import (
    POWERS,
    WHOLE,
    WIDE_ROOM,
    HiddenWindow,
    count_repeats,
    hide_cells,
    view_room,
)
from dkrls_cli.tuning.moves import (
    LevelConstraint,
    Move,
    list_group_starts,
    list_moves,
    list_starts,
    sigma_bounds,
)
from dkrls_cli.tuning.noisy.balance import misfit
from dkrls_cli.tuning.noisy.scores import PowerShares, share_powers
from dkrls_cli.tuning.noisy.views import tell_by_errors
from dkrls_cli.tuning.spectra import SpectrumCache
from dkrls_cli.tuning.trials.descent import Attempt, Trials, descend, improve
from dkrls_cli.tuning.trials.nearby import NearbyTrials

_ITERATIONS = 300
"""Iterations until a solve is given up.

A setting that takes more iterations on a window is not for use on the whole grid.
"""

_BETTER = 0.98
"""An error below this share of the best is an improvement.

Hidden cells tell smaller differences by chance only: others would order the settings differently.
"""

_BETTER_WITH_ERRORS = 0.995
"""The same where observations have errors: scores are flat there, and improvements are small."""

_FACTORS = (3.0, 1.6)
"""Factors on sigma in two rounds of moves; the ridge moves by their squares."""

_MANY = 10
"""Iterations of a solve beyond which a larger ridge is tried."""

_CALMING, _AS_GOOD = 3.0, 1.03
"""Factor on the ridge that saves iterations, and factor on the error that this may cost."""

_BALANCING, _BALANCED = 6.0, (1e-6, 1.0)
"""Factor on the ridge that fits error bars, and the least and the largest such ridge."""

_EXACT, _TOLERANCES = 0.02, (1e-9, 1e-3)
"""Largest change of a hidden cell at the end of a solve: this share of the best relative error."""

_FINAL, _FINAL_TOLERANCES = 3e-3, (1e-9, 1e-3)
"""The same for the solve on the whole grid."""

_FIRST_ERROR = 0.1
"""Relative error that is assumed as long as none is known."""

_WIDE, _IN_HOLES = 4.0, 0.05
"""Distance in cells from which groups are tried, and share of such cells in holes."""

_AGAIN = 3
"""Times that other cells are hidden in every view where the nearest cells are asked."""

_CLEARLY = 0.98
"""A group is taken if its error is below this share of that of a product of kernels."""

_MARGIN = 1.1
"""An error beyond this many times the bar is not made up for by windows still to be solved."""

_LOOKS = 5
"""Looks ahead: a solve goes on if at its present pace the error would be low enough by then."""


def final_tolerance(error: float, spread: float) -> float:
    """Return the tolerance of a solve on the whole grid for a model with such an error.

    Parameters
    ----------
    error
        Root mean square error of the model.
    spread
        Standard deviation of the data.

    Returns
    -------
    float
        Largest change of a missing cell that is still due, as a share of the spread.
    """
    relative = error / spread if spread > 0 else 0.0
    return float(np.clip(_FINAL * relative, *_FINAL_TOLERANCES))


@dataclass(frozen=True, eq=False)
class GapChoice:
    """The setting chosen for a grid with missing cells, and its errors on hidden cells.

    Attributes
    ----------
    setting
        Kernels and joint ridge.
    error
        Root mean square error on the hidden cells.
    spread
        Standard deviation of the observed cells.
    tried
        Number of settings tried.
    windows
        The parts of the grid with hidden cells, filled under the setting.
    spectra
        The full spectrum of each kernel on the coordinates of the whole grid; None of a long level,
        whose factor takes its place.
    mean, targets
        Value to which answers fall back, and the cells to be filled.
    scale
        s^2, if observations have errors: see :mod:`dkrls_cli.gaps.noisy.analysis`.
    trials
        The settings that were tried and the errors that they were compared by, which are means over
        distances to data (:class:`dkrls_cli.tuning.noisy.scores.PowerShares`).
    """

    setting: JointSetting
    error: float
    spread: float
    tried: int
    windows: tuple[HiddenWindow, ...]
    spectra: tuple[Spectrum | None, ...]
    mean: float = 0.0
    targets: Mask | None = None
    scale: float = 1.0
    trials: tuple[JointTrial, ...] = ()

    @property
    def tolerance(self) -> float:
        """Tolerance for the solve on the whole grid: far more exact than the model.

        Where nothing was chosen it is as small as can be: users who give a setting compare.
        """
        return final_tolerance(self.error if self.tried > 1 else 0.0, self.spread)

    def move_to(self, coordinates: Sequence[Array], targets: Mask) -> GapChoice:
        """Return the choice for a grid with further coordinates, at which no cell is observed."""
        spectra = list(self.spectra)
        for axis, (kernel, c) in enumerate(zip(self.setting.kernels, coordinates, strict=True)):
            known = spectra[axis]
            if known is not None and len(known.vectors) != c.size:
                is_long = choice.is_long(kernel, c)
                spectra[axis] = None if is_long else decompose(gram(kernel, c, c))
        return replace(self, spectra=tuple(spectra), targets=targets)


def choose_with_gaps(
    values: Array,
    coordinates: Sequence[Array],
    constraints: Sequence[LevelConstraint],
    *,
    ridge: float | None = None,
    mean: float = 0.0,
    seed: int = 0,
    spectra: SpectrumCache | None = None,
    targets: Mask | None = None,
    groups: tuple[tuple[int, ...], ...] = (),
    sphere: bool = False,
    force: bool = False,
    errors: Array | None = None,
    tell: Callable[[float], None] = lambda share: None,
) -> GapChoice:
    """Choose the setting for a grid with missing cells.

    Parameters
    ----------
    values
        The data, NaN where it is missing. Every slice must have an observed cell, see
        :func:`dkrls_cli.gaps.pattern.empty_slices`.
    coordinates, constraints
        One per axis. Settings that a constraint gives are kept.
    ridge
        The joint ridge if it is given; None: to be chosen.
    mean
        Value to which the answers fall back far from data.
    seed
        Of the random numbers that decide which cells are hidden.
    spectra
        Spectra that are known from other variables on the same coordinates.
    targets
        The missing cells that are to be filled; all of them by default.
    groups
        Axes that may share one distance. A group is taken where hidden cells are predicted clearly
        better with it; it is not tried where all cells to be filled lie next to data.
    sphere
        Whether the group is latitude and longitude, in degrees, and may have distances on the
        sphere. A plane has a sigma for each of them, which fields that are longer along a parallel
        need: the better of the two is taken. With `force` it is the sphere.
    force
        Whether to take the groups whatever the hidden cells say.
    errors
        Standard error of every observation, if they have errors. The error of the choice is then
        that of the quantity itself.
    tell
        Called with the share that is done, 0 to 1, roughly: how long a search takes is not known.
    """
    spectra = spectra or SpectrumCache()
    rng = np.random.default_rng(seed)
    room, again = view_room(values.ndim), count_repeats(values.size) if errors is None else 1
    windows = hide_cells(values, coordinates, rng, targets, errors=errors, room=room, again=again)
    if errors is not None:
        windows = tell_by_errors(windows, values, errors, rng)
    bounds = tuple(
        sigma_bounds(c, level.period) for c, level in zip(coordinates, constraints, strict=True)
    )
    kinds = list_starts(coordinates, constraints, ridge)
    product = _Ways(kinds, [list(list_moves(constraints, ridge, bounds, f)) for f in _FACTORS])
    limited = _limited_axes(coordinates, [start for kind in kinds for start in kind])
    spread = np.nanstd(values) if errors is None else measure_spread(values, errors).signal ** 0.5
    search = _Search(windows, mean, float(spread), spectra, limited)
    search.better = _BETTER if errors is None else _BETTER_WITH_ERRORS
    if groups and (force or has_holes(windows, _WIDE)):
        ways = [
            _Ways(
                list_group_starts(coordinates, constraints, ridge, groups, on_sphere),
                [
                    list(list_moves(constraints, ridge, bounds, f, groups, on_sphere))
                    for f in _FACTORS
                ],
            )
            for on_sphere in ((False, True) if sphere and not force else (sphere,))
        ]
        near: _Search | NearbyTrials = search
        if errors is None:
            views = hide_cells(values, coordinates, rng, targets, room=WIDE_ROOM, again=_AGAIN)
            near = NearbyTrials(views, mean, rng)
        best = _try_groups(search, near, ways, product, force)
        if near is not search:
            search.tried += near.tried - 1  # one was tried both ways
            search.trials += near.trials
    else:
        best = improve(search, product.starts, product.rounds, tell=tell)
    if ridge is None and not best.setting.grouping.axes:
        best = _calm(search, best, Move((), bounds, ridge_factor=_CALMING))
    if ridge is None and errors is None and room < WIDE_ROOM and values.size > WHOLE:
        views = hide_cells(values, coordinates, rng, targets, room=WIDE_ROOM)
        wide = _Search(views, mean, float(spread), spectra, limited, "views", is_last=True)
        best = _confirm(wide, best, Move((), bounds, ridge_factor=_CALMING))
        search.tried += wide.tried - 1
        search.trials += wide.trials
    if ridge is None and errors is not None:
        best = _balance(search, best)
    final = zip(best.setting.kernels, coordinates, strict=True)
    return GapChoice(
        best.setting,
        _rms_error(best.windows),
        search.spread,
        search.tried,
        best.windows,
        tuple(None if choice.is_long(kernel, c) else spectra.of(kernel, c) for kernel, c in final),
        mean,
        targets,
        best.scale,
        tuple(search.trials),
    )


@dataclass(frozen=True, eq=False)
class _Ways:
    """Settings of one kind: lists of those to start from, and rounds of smaller and smaller moves.

    Attributes
    ----------
    starts, rounds
        As for :func:`dkrls_cli.tuning.trials.descent.improve`.
    """

    starts: Sequence[Sequence[JointSetting]]
    rounds: Sequence[Sequence[Move]]


def _try_groups(
    search: _Search, near: Trials, groups: Sequence[_Ways], product: _Ways, force: bool
) -> Attempt:
    """Return the best setting with a group, or without if that is not clearly worse.

    Groups are improved by the nearest cells alone. Where they have all axes of the grid that tells
    enough, also whether a product of kernels can be as good. Beside other axes, whose means the
    nearest cells do not know, they are improved once more by solves.
    """
    found = [improve(near, way.starts, way.rounds) for way in groups]
    grouped, way = min(zip(found, groups, strict=True), key=lambda pair: pair[0].error)
    best = search.attempt(grouped.setting, None)
    has_others = len(grouped.setting.kernels) > len(grouped.setting.grouping.axes[0])
    if has_others and math.isfinite(best.error):
        best = descend(search, best, way.rounds[1:], best)
    if force:  # what the nearest cells ask for may not be solved for, and then has no answers
        return best if math.isfinite(best.error) else improve(search, way.starts, way.rounds)
    if not has_others and math.isfinite(best.error):
        alone = improve(near, product.starts, product.rounds, grouped)
        if grouped.error < _CLEARLY * alone.error:
            return best
    return _product_or(best, improve(search, product.starts, product.rounds, best))


def has_holes(windows: Sequence[HiddenWindow], least: float) -> bool:
    """Return whether cells that are at least so far from data have a part in the error."""
    return float(sum(w.shares @ (w.distances >= least) for w in windows)) > _IN_HOLES


def _product_or(grouped: Attempt, product: Attempt) -> Attempt:
    """Return the product of kernels, unless groups are clearly better."""
    return grouped if grouped.error < _CLEARLY * product.error else product


def _limited_axes(coordinates: Sequence[Array], starts: Sequence[JointSetting]) -> dict[int, Array]:
    """Return the long axes, on which only kernels with a factor that costs O(m) are tried.

    Axes where no start has one are not among them: what is given may rule out all such kernels.
    """
    return {
        axis: c
        for axis, c in enumerate(coordinates)
        if c.size > choice.LONG
        and any(choice.estimate(start.kernels[axis], c) is not None for start in starts)
    }


class _Search:
    """Tries settings on all windows, each setting once.

    Every solve starts from zero. If it started from the answers of another setting it would keep
    them where the observed cells decide little, and be credited with what the other has found.

    Preconditioners of a search through many settings are made in little time. The last ones that
    are solved for have those of the solve on the whole grid (`is_last`): with others a setting that
    converges there may seem not to.
    """

    def __init__(
        self,
        windows: Sequence[HiddenWindow],
        mean: float,
        spread: float,
        spectra: SpectrumCache,
        limited: Mapping[int, Array] = MappingProxyType({}),
        measure: Measure = "cells",
        *,
        is_last: bool = False,
    ) -> None:
        self.trials: list[JointTrial] = []
        self._measure = measure
        self.windows, self.mean, self.spread = tuple(windows), mean, spread
        self.limited = limited
        self.tried, self.better = 0, _BETTER
        self._known: dict[JointSetting, Attempt] = {}
        self._spectra = spectra
        self._coarse = [
            None if is_last else CoarseMaker(np.isfinite(window.seen) * 1.0, is_trial=True)
            for window in windows
        ]
        self._spreads = [
            measure_spread(window.values, window.errors)
            for window in windows
            if window.errors is not None
        ]

    def attempt(self, setting: JointSetting, best: Attempt | None) -> Attempt:
        """Try a setting, or return what is known of it; `best` is the best so far.

        One that is out of reach on the whole grid is not tried: its error is infinite.
        """
        if setting not in self._known and not self._in_reach(setting):
            return Attempt(setting, math.inf, 0, self.windows)
        if setting not in self._known:
            self._known[setting] = self.solve(setting, best, self.better)
        return self._known[setting]

    def _in_reach(self, setting: JointSetting) -> bool:
        """Return whether the kernels of all long axes have a factor that costs O(m)."""
        return all(
            choice.estimate(setting.kernels[axis], c) is not None
            for axis, c in self.limited.items()
        )

    def solve(self, setting: JointSetting, best: Attempt | None, bar: float) -> Attempt:
        """Try a setting; the smaller the error of the best, the smaller the tolerance.

        The error is infinite if a solve does not converge, or is given up because it will clearly
        not come below `bar` times the error of the best.
        """
        self.tried += 1
        found, reached = self._solve(setting, best, bar)
        self.trials.append(JointTrial(setting, found.error, self._measure, reached))
        return found

    def _solve(
        self, setting: JointSetting, best: Attempt | None, bar: float
    ) -> tuple[Attempt, float | None]:
        """Solve for the hidden cells of all windows, or give up at an error that is returned."""
        known = best is not None and math.isfinite(best.error) and self.spread > 0
        relative = best.error / self.spread if best and known else _FIRST_ERROR
        windows = list(best.windows if best and known else self.windows)
        iterations, bar = 0, bar * best.error if best and known else math.inf
        scale = self._scale(setting)
        for place, window in enumerate(self.windows):
            is_last = place == len(self.windows) - 1
            watch = _Watch(windows, place, bar if is_last else _MARGIN * bar)
            completed = solve_window(
                self._field(setting, window),
                window,
                setting.ridge,
                self.mean,
                scale,
                tolerance=float(np.clip(_EXACT * relative, *_TOLERANCES)),
                coarse=self._coarse[place],
                give_up=watch,
            )
            windows[place] = replace(window, answers=completed.values)
            iterations = max(iterations, completed.iterations)
            if not completed.converged or watch.is_worse(completed.values):
                given_up = Attempt(setting, math.inf, iterations, tuple(windows))
                return given_up, watch.error(completed.values)
        squares = np.sum([window.squares(window.residuals) for window in windows], axis=0)
        error = _power_shares(windows).score(squares)
        return Attempt(setting, error, iterations, tuple(windows), scale), None

    def _scale(self, setting: JointSetting) -> float:
        """Return s^2 of a setting; 1 if observations have no errors."""
        if not self._spreads:
            return 1.0
        fields = [self._field(setting, window) for window in self.windows]
        return estimate_scale(list(zip(fields, self._spreads, strict=True)), setting.ridge)

    def misfit(self, attempt: Attempt) -> float:
        """Return the logarithm of the squared errors on hidden cells per promised variance."""
        fields = [self._field(attempt.setting, window) for window in self.windows]
        return misfit(attempt.windows, fields, attempt.setting.ridge, attempt.scale)

    def _field(self, setting: JointSetting, window: HiddenWindow) -> Field:
        """Return the field of a setting in a window."""
        grouped = {axis for group in setting.grouping.axes for axis in group}
        spectra = [
            None if axis in grouped else self._spectra.of(kernel, c)
            for axis, (kernel, c) in enumerate(
                zip(setting.kernels, window.coordinates, strict=True)
            )
        ]
        return make_field(window.coordinates, setting.kernels, setting.grouping, spectra)


def solve_window(
    field: Field,
    window: HiddenWindow,
    ridge: float,
    mean: float,
    scale: float,
    *,
    tolerance: float,
    coarse: CoarseMaker | None = None,
    give_up: Callable[[Array], bool] | None = None,
) -> Completed:
    """Answer for the hidden cells of a window; `scale` is s^2, if observations have errors.

    `coarse` makes the coarse space of a mask. With errors it depends on the setting as well.
    """
    if window.seen_noise is not None:
        return solve_noisy(
            field,
            window.seen,
            ridge,
            window.seen_noise / scale,
            mean,
            tolerance=tolerance,
            limit=_ITERATIONS,
            watched=window.hidden,
            give_up=give_up,
        )
    return complete_field(
        field,
        window.seen,
        ridge,
        mean,
        tolerance=tolerance,
        limit=_ITERATIONS,
        watched=window.hidden,
        coarse=coarse,
        give_up=give_up,
    )


class _Watch:
    """Tells whether a solve in one window may be given up: the error will not come below a bar.

    The windows that are still to be solved are assumed to be as good as those of the best.
    """

    def __init__(self, windows: Sequence[HiddenWindow], place: int, bar: float) -> None:
        others = [w.squares(w.residuals) for i, w in enumerate(windows) if i != place]
        self._others = np.sum(others, axis=0) if others else np.zeros(POWERS)
        self._shares = _power_shares(windows)
        self._window, self._bar = windows[place], bar
        self._before = math.inf

    def is_worse(self, answers: Array) -> bool:
        """Return whether the error with these answers is above the bar."""
        return self.error(answers) > self._bar

    def error(self, answers: Array) -> float:
        """Return the error of all windows, with these answers in the one."""
        missed = (answers - self._window.values)[self._window.hidden]
        return self._shares.score(self._others + self._window.squares(missed))

    def __call__(self, answers: Array) -> bool:
        """Return whether the error, falling as fast as now, stays above the bar."""
        error = self.error(answers)
        before, self._before = self._before, error
        return error - _LOOKS * max(0.0, before - error) > self._bar


def _power_shares(windows: Sequence[HiddenWindow]) -> PowerShares:
    """Return the weight of hidden cells for each power of two of their distance to data."""
    return share_powers([(w.powers, w.shares, w.noise) for w in windows], POWERS)


def _rms_error(windows: Sequence[HiddenWindow]) -> float:
    """Return the root mean square error on hidden cells, by weight; 0 if none are hidden."""
    shares = _power_shares(windows)
    squares = np.sum([window.squares(window.residuals) for window in windows], axis=0)
    known = shares.weights > 0
    return math.sqrt(float(shares.weights[known] @ shares.mean_squares(squares)))


def _calm(search: _Search, best: Attempt, larger: Move) -> Attempt:
    """Raise the ridge while solves take many iterations and the error stays within a few percent.

    A solve that takes many iterations on a window may not converge on the whole grid.
    """
    calm = best
    while calm.iterations > _MANY:
        setting = larger.apply(calm.setting, 1)
        attempt = search.solve(setting, best, _AS_GOOD)
        if setting == calm.setting or attempt.error > _AS_GOOD * best.error:
            break
        calm = attempt
    return calm


def _confirm(wide: _Search, best: Attempt, larger: Move) -> Attempt:
    """Return a setting that converges in larger views of the grid too, with its answers there.

    A smooth field with a tiny ridge is solved for easily in a small part of the grid alone. The
    ridge is raised until the solve ends; at the largest ridge the setting is taken as it is.
    """
    setting = best.setting
    while True:
        found = wide.solve(setting, None, 1.0)
        calmer = larger.apply(setting, 1)
        if math.isfinite(found.error):
            return found
        if calmer == setting:
            return best
        setting = calmer


def _balance(search: _Search, best: Attempt) -> Attempt:
    """Change the ridge such that error bars fit, as long as the error stays within a few percent.

    That is for observations with errors: see :mod:`dkrls_cli.tuning.noisy.balance`.
    """
    balanced, least = best, abs(search.misfit(best))
    for factor in (1 / _BALANCING, _BALANCING):
        ridge = best.setting.ridge * factor
        while _BALANCED[0] <= ridge <= _BALANCED[1]:
            attempt = search.solve(replace(best.setting, ridge=ridge), best, _AS_GOOD)
            if not attempt.error <= _AS_GOOD * best.error:
                break
            found = abs(search.misfit(attempt))
            if found >= least:
                break
            balanced, least = attempt, found
            ridge *= factor
    return balanced
