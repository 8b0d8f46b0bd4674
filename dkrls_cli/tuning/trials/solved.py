"""Judge settings by solves: hidden cells of all windows are answered for from all observed ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.factors import choice
from dkrls_cli.gaps.coarse import CoarseMaker
from dkrls_cli.gaps.field import Field, make_field
from dkrls_cli.gaps.noisy.analysis import estimate_scale, measure_spread, solve_noisy
from dkrls_cli.gaps.solve import Completed, complete_field
from dkrls_cli.tuning.candidates import Measure
from dkrls_cli.tuning.joint import JointSetting, JointTrial
from dkrls_cli.tuning.masks import POWERS, HiddenWindow
from dkrls_cli.tuning.noisy.balance import misfit
from dkrls_cli.tuning.noisy.scores import PowerShares, share_powers
from dkrls_cli.tuning.spectra import SpectrumCache
from dkrls_cli.tuning.trials.descent import Attempt
from dkrls_cli.tuning.trials.reach import WholeGrid

_ITERATIONS = 300
"""Iterations until a solve is given up.

A setting that takes more iterations on a window is not for use on the whole grid.
"""

_BETTER = 0.98
"""An error below this share of the best is an improvement.

Hidden cells tell smaller differences by chance only: others would order the settings differently.
"""

_EXACT, _TOLERANCES = 0.02, (1e-9, 1e-2)
"""Largest change of a hidden cell at the end of a solve: this share of the best relative error."""

_FIRST_ERROR = 0.05
"""Relative error that is assumed as long as none is known."""

_MARGIN = 1.1
"""An error beyond this many times the bar is not made up for by windows still to be solved."""

_LOOKS = 5
"""Looks ahead: a solve goes on if at its present pace the error would be low enough by then."""


class SolvedTrials:
    """Tries settings on all windows, each setting once.

    Every solve starts from zero. If it started from the answers of another setting it would keep
    them where the observed cells decide little, and be credited with what the other has found.

    Preconditioners of a search through many settings are made in little time. The last ones that
    are solved for have those of the solve on the whole grid (`is_last`): with others a setting that
    converges there may seem not to. What is known of the whole grid beforehand is in `whole`, if
    the windows are parts of it and the ridge may be changed. `widest` is the largest sigma of a
    Gaussian that windows can tell from wider ones, by axis.
    """

    better = _BETTER

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
        whole: WholeGrid | None = None,
        widest: Mapping[int, float] = MappingProxyType({}),
    ) -> None:
        self.trials: list[JointTrial] = []
        self._measure = measure
        self.windows, self.mean, self.spread = tuple(windows), mean, spread
        self.limited, self._whole, self._widest = limited, whole, widest
        self.tried = 0
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

        One that is out of reach on the whole grid is not tried: its error is infinite. If it is in
        reach with a larger ridge, it is tried with that.
        """
        setting = self._within_reach(setting)
        if setting not in self._known and not self._in_reach(setting):
            return Attempt(setting, math.inf, 0, self.windows)
        if setting not in self._known:
            self._known[setting] = self.solve(setting, best, self.better)
        return self._known[setting]

    def _within_reach(self, setting: JointSetting) -> JointSetting:
        """Return a setting with at least the ridge that the whole grid can be solved for with."""
        if self._whole is None:
            return setting
        return replace(setting, ridge=max(setting.ridge, self._whole.least_ridge(setting)))

    def _in_reach(self, setting: JointSetting) -> bool:
        """Return whether the kernels of all long axes have a factor that costs O(m).

        Gaussians that are wider than windows can tell are out of reach as well.
        """
        wide = (
            setting.kernels[axis].family == "gaussian" and setting.kernels[axis].sigma > widest
            for axis, widest in self._widest.items()
        )
        return not any(wide) and all(
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
            windows[place] = window.with_answers(completed.values)
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
        return window_field(setting, window, self._spectra)


def window_field(setting: JointSetting, window: HiddenWindow, spectra: SpectrumCache) -> Field:
    """Return the field of a setting in a window."""
    grouped = {axis for group in setting.grouping.axes for axis in group}
    known = [
        None if axis in grouped else spectra.of(kernel, c)
        for axis, (kernel, c) in enumerate(zip(setting.kernels, window.coordinates, strict=True))
    ]
    return make_field(window.coordinates, setting.kernels, setting.grouping, known)


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


def rms_error(windows: Sequence[HiddenWindow]) -> float:
    """Return the root mean square error on hidden cells, by weight; 0 if none are hidden."""
    shares = _power_shares(windows)
    squares = np.sum([window.squares(window.residuals) for window in windows], axis=0)
    known = shares.weights > 0
    return math.sqrt(float(shares.weights[known] @ shares.mean_squares(squares)))
