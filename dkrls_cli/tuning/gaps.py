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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.cascade.factors import choice
from dkrls_cli.cascade.spectrum import Spectrum
from dkrls_cli.gaps.bars import GapBars, calibrated, distance
from dkrls_cli.gaps.solve import complete_with_spectra
from dkrls_cli.tuning.joint import JointSetting
from dkrls_cli.tuning.masks import HiddenWindow, hide_cells
from dkrls_cli.tuning.moves import LevelConstraint, Move, list_moves, list_starts, sigma_bounds
from dkrls_cli.tuning.spectra import SpectrumCache

_DIRECTIONS, _ITERATIONS = 400, 200
"""Directions of the preconditioner, fewer than in a fit, and iterations until a solve is given up.

A setting that takes more iterations on a window is not for use on the whole grid.
"""

_TRIALS = 80
"""Settings that one descent may try."""

_FACTORS = (3.0, 1.7, 1.3)
"""Factors on sigma in three rounds of moves; the ridge moves by their squares."""

_BETTER = 0.998
"""An error below this share of the best is an improvement."""

_HOPEFUL = 1.5
"""A start is improved if its error is at most this many times that of the best start."""

_MANY = 10
"""Iterations of a solve beyond which a larger ridge is tried."""

_CALMING, _AS_GOOD = 3.0, 1.03
"""Factor on the ridge that saves iterations, and factor on the error that this may cost."""

_EXACT, _TOLERANCES = 0.01, (1e-9, 1e-5)
"""Tolerance of solves in the search: this share of the best relative error, within bounds."""

_FINAL, _FINAL_TOLERANCES = 1e-3, (1e-9, 1e-6)
"""The same for the solve on the whole grid."""

_FIRST_ERROR = 0.1
"""Relative error that is assumed as long as none is known."""

_LOOKS = 8
"""Looks ahead: a solve goes on if at its present pace the error would be low enough by then."""


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
    """

    setting: JointSetting
    error: float
    spread: float
    tried: int
    windows: tuple[HiddenWindow, ...]
    spectra: tuple[Spectrum | None, ...]

    @property
    def tolerance(self) -> float:
        """Tolerance for the solve on the whole grid: far more exact than the model.

        Where nothing was chosen it is as small as can be: users who give a setting compare.
        """
        relative = self.error / self.spread if self.spread > 0 and self.tried > 1 else 0.0
        return float(np.clip(_FINAL * relative, *_FINAL_TOLERANCES))


def choose_with_gaps(
    values: Array,
    coordinates: Sequence[Array],
    constraints: Sequence[LevelConstraint],
    *,
    ridge: float | None = None,
    mean: float = 0.0,
    seed: int = 0,
    spectra: SpectrumCache | None = None,
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
    """
    spectra = spectra or SpectrumCache()
    windows = hide_cells(values, coordinates, np.random.default_rng(seed))
    kinds = list_starts(coordinates, constraints, ridge)
    limited = _limited_axes(coordinates, [start for kind in kinds for start in kind])
    search = _Search(windows, mean, float(np.nanstd(values)), spectra, limited)
    bounds = tuple(
        sigma_bounds(c, level.period) for c, level in zip(coordinates, constraints, strict=True)
    )
    rounds = [list(list_moves(constraints, ridge, bounds, factor)) for factor in _FACTORS]
    starts = [_best_start(search, kind) for kind in kinds]
    best = min(starts, key=lambda attempt: attempt.error)
    hopeful = [attempt for attempt in starts if attempt.error <= _HOPEFUL * best.error]
    for start in hopeful:
        best = min(best, _descend(search, start, rounds, best), key=lambda a: a.error)
    if ridge is None:
        best = _calm(search, best, Move((), bounds, ridge_factor=_CALMING))
    final = zip(best.setting.kernels, coordinates, strict=True)
    return GapChoice(
        best.setting,
        _rms_error(best.windows),
        search.spread,
        search.tried,
        best.windows,
        tuple(None if choice.is_long(kernel, c) else spectra.of(kernel, c) for kernel, c in final),
    )


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


@dataclass(frozen=True, eq=False)
class _Attempt:
    """A setting that was tried: its error, the most iterations of a solve, and its answers."""

    setting: JointSetting
    error: float
    iterations: int
    windows: tuple[HiddenWindow, ...]


class _Search:
    """Tries settings on all windows, each setting once.

    Every solve starts from zero. If it started from the answers of another setting it would keep
    them where the observed cells decide little, and be credited with what the other has found.
    """

    def __init__(
        self,
        windows: Sequence[HiddenWindow],
        mean: float,
        spread: float,
        spectra: SpectrumCache,
        limited: Mapping[int, Array] = MappingProxyType({}),
    ) -> None:
        self.windows, self.mean, self.spread = tuple(windows), mean, spread
        self.limited = limited
        self.tried = 0
        self._known: dict[JointSetting, _Attempt] = {}
        self._spectra = spectra

    def attempt(self, setting: JointSetting, best: _Attempt | None) -> _Attempt:
        """Try a setting, or return what is known of it; `best` is the best so far.

        One that is out of reach on the whole grid is not tried: its error is infinite.
        """
        if setting not in self._known and not self._in_reach(setting):
            return _Attempt(setting, math.inf, 0, self.windows)
        if setting not in self._known:
            self._known[setting] = self.solve(setting, best, _BETTER)
        return self._known[setting]

    def _in_reach(self, setting: JointSetting) -> bool:
        """Return whether the kernels of all long axes have a factor that costs O(m)."""
        return all(
            choice.estimate(setting.kernels[axis], c) is not None
            for axis, c in self.limited.items()
        )

    def solve(self, setting: JointSetting, best: _Attempt | None, bar: float) -> _Attempt:
        """Try a setting; the smaller the error of the best, the smaller the tolerance.

        The error is infinite if a solve does not converge, or is given up because it will clearly
        not come below `bar` times the error of the best.
        """
        self.tried += 1
        known = best is not None and math.isfinite(best.error) and self.spread > 0
        relative = best.error / self.spread if best and known else _FIRST_ERROR
        windows = list(best.windows if best and known else self.windows)
        iterations = 0
        for place, window in enumerate(self.windows):
            pairs = zip(setting.kernels, window.coordinates, strict=True)
            completed = complete_with_spectra(
                [self._spectra.of(kernel, c) for kernel, c in pairs],
                window.seen,
                setting.ridge,
                self.mean,
                tolerance=float(np.clip(_EXACT * relative, *_TOLERANCES)),
                limit=_ITERATIONS,
                directions=_DIRECTIONS,
                give_up=_Hopeless(windows, place, bar * best.error) if best and known else None,
            )
            windows[place] = replace(window, answers=completed.values)
            iterations = max(iterations, completed.iterations)
            if not completed.converged:
                return _Attempt(setting, math.inf, iterations, tuple(windows))
        return _Attempt(setting, _rms_error(windows), iterations, tuple(windows))


class _Hopeless:
    """Tells whether a solve in one window may be given up: the error will not come below a bar.

    The windows that are still to be solved are assumed to be as good as those of the best.
    """

    def __init__(self, windows: Sequence[HiddenWindow], place: int, bar: float) -> None:
        others = [w.residuals for i, w in enumerate(windows) if i != place]
        self._others = float(sum(missed @ missed for missed in others))
        self._count = sum(np.count_nonzero(w.hidden) for w in windows)
        self._window, self._bar = windows[place], bar
        self._before = math.inf

    def __call__(self, answers: Array) -> bool:
        """Return whether the error, falling as fast as now, stays above the bar."""
        missed = (answers - self._window.values)[self._window.hidden]
        error = math.sqrt((self._others + float(missed @ missed)) / self._count)
        before, self._before = self._before, error
        return error - _LOOKS * max(0.0, before - error) > self._bar


def _rms_error(windows: Sequence[HiddenWindow]) -> float:
    """Return the root mean square error on hidden cells; 0 if none are hidden."""
    missed = np.concatenate([window.residuals for window in windows])
    return math.sqrt(float(missed @ missed) / max(1, missed.size))


def _best_start(search: _Search, starts: Sequence[JointSetting]) -> _Attempt:
    """Return the best of some settings to start from."""
    best = search.attempt(starts[0], None)
    for start in starts[1:]:
        best = min(best, search.attempt(start, best), key=lambda attempt: attempt.error)
    return best


def _descend(
    search: _Search, best: _Attempt, rounds: Sequence[Sequence[Move]], rival: _Attempt
) -> _Attempt:
    """Improve an attempt one move at a time, in rounds of smaller and smaller moves.

    Stop after the first round if a rival is still better.
    """
    last = search.tried + _TRIALS
    for moves in rounds:
        if moves is not rounds[0] and best.error > rival.error / _BETTER:
            break
        improved = True
        while improved and search.tried < last:
            improved = False
            for move in moves:
                better = _follow(search, best, move, last)
                improved |= better is not best
                best = better
    return best


def _follow(search: _Search, best: _Attempt, move: Move, last: int) -> _Attempt:
    """Repeat a move forward, or else backward, for as long as the error falls."""
    for sign in (1, -1):
        came_from = best
        while search.tried < last:
            attempt = search.attempt(move.apply(best.setting, sign), best)
            if not attempt.error < _BETTER * best.error:
                break
            best = attempt
        if best is not came_from:
            break
    return best


def _calm(search: _Search, best: _Attempt, larger: Move) -> _Attempt:
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


def gap_bars(observed: Mask, chosen: GapChoice) -> GapBars:
    """Return the error bars of a model with the chosen setting, calibrated on the hidden cells."""
    ridge = chosen.setting.ridge
    reached, missed = [], []
    for window in chosen.windows:
        seen = np.isfinite(window.seen)
        away = distance(window.coordinates, chosen.setting.kernels, seen, ridge)
        reached.append(away[window.hidden] + ridge)
        missed.append(window.residuals)
    scale, power = calibrated(np.concatenate(reached), np.concatenate(missed))
    return GapBars(~observed, scale, power, chosen.error)
