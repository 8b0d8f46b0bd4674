"""Kernels and joint ridge of a grid with missing cells, chosen by cells held out like the gaps.

Leaving slices out in closed form (:mod:`dkrls_cli.tuning.slices`) needs a complete grid, and on one
that was filled beforehand it finds the filling. So observed cells are hidden as the gaps are
(:mod:`dkrls_cli.tuning.masks`), and kernel families, sigmas and ridge improve one after the other,
each by what the model then answers there, until none does.

Kernels hold a constant as in :mod:`dkrls_cli.tuning.slices`: their product then has a part for
every dimension alone (a climatology, a mean over time), which reaches into the widest gap.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.cascade.kernels import FAMILIES, Kernel, gram
from dkrls_cli.cascade.spectrum import Spectrum, decompose
from dkrls_cli.circle import spacing
from dkrls_cli.gaps.bars import GapBars, calibrated, distance
from dkrls_cli.gaps.solve import complete_in
from dkrls_cli.tuning.masks import Window, windows_of
from dkrls_cli.tuning.slices import CONSTANT

_SMOOTHEST, _ITERATIONS, _MANY = 400, 200, 10
_TRIALS = 80
_FACTORS = (3.0, 1.7, 1.3)
_BETTER, _AS_GOOD, _HOPEFUL = 0.998, 1.03, 1.5
_EXACT, _TOLERANCES = 0.01, (1e-9, 1e-5)
"""Where solves end: at a share of the relative error of the best, within bounds."""

_LOOKS = 8
"""How far ahead is looked: a solve goes on if at its pace it would be there after so many."""

_RIDGES, _NOISELESS = (1e-13, 10.0), 1e-9
_WIDTH = {"gaussian": 1.0, "matern52": 1.3, "matern32": 1.7, "matern12": 4.0}
"""Sigmas of the families, in that of the Gaussian, at which they reach about as far."""


@dataclass(frozen=True)
class Wanted:
    """What is given of one level; None is to be chosen, but for the period: no circle.

    A kernel that is given whole may hold more than family, sigma and period.
    """

    family: str | None = None
    sigma: float | None = None
    period: float | None = None
    kernel: Kernel | None = None

    @property
    def constant(self) -> float:
        """That of a kernel to be chosen; one that is given is just that."""
        return CONSTANT if self.family is None or self.sigma is None else 0.0


@dataclass(frozen=True)
class Setting:
    """Kernels of all levels and their joint ridge."""

    kernels: tuple[Kernel, ...]
    ridge: float


@dataclass(frozen=True, eq=False)
class Chosen:
    """The setting taken, and what was seen of it on cells held out.

    Attributes
    ----------
    setting
        Kernels and joint ridge.
    error
        Root mean square error on the cells held out.
    spread
        Standard deviation of the observed cells.
    tried
        Number of settings tried.
    windows
        What was held out, and what the setting answers there.
    """

    setting: Setting
    error: float
    spread: float
    tried: int
    windows: tuple[Window, ...]

    @property
    def tolerance(self) -> float:
        """How well a solve must end: far more exact than the model, or as exact as it can be.

        The latter where nothing was chosen: whoever gives a setting compares.
        """
        relative = self.error / self.spread if self.spread > 0 and self.tried > 1 else 0.0
        return float(np.clip(1e-3 * relative, 1e-9, 1e-6))


def choose(
    values: Array,
    coordinates: Sequence[Array],
    wanted: Sequence[Wanted],
    *,
    ridge: float | None = None,
    mean: float = 0.0,
    seed: int = 0,
) -> Chosen:
    """The setting for a grid with missing cells (NaN); what is given is kept.

    No slice of the grid may be missing altogether, see :func:`dkrls_cli.gaps.pattern.empty_slices`.
    """
    windows = windows_of(values, coordinates, np.random.default_rng(seed))
    search = _Search(windows, mean, float(np.nanstd(values)))
    bounds = tuple(_bounds(c, level.period) for c, level in zip(coordinates, wanted, strict=True))
    rounds = [list(_moves(wanted, ridge, bounds, factor)) for factor in _FACTORS]
    firsts = [_first(search, starts) for starts in _starts(coordinates, wanted, ridge)]
    best = min(firsts, key=lambda trial: trial.error)
    close = [trial for trial in firsts if trial.error <= _HOPEFUL * best.error]
    for trial in close:
        best = min(best, _descent(search, trial, rounds, best), key=lambda t: t.error)
    if ridge is None:
        best = _calmed(search, best, _Move((), bounds, ridge_factor=3.0))
    return Chosen(best.setting, _error(best.windows), search.spread, search.tried, best.windows)


@dataclass(frozen=True, eq=False)
class _Trial:
    setting: Setting
    error: float
    iterations: int
    windows: tuple[Window, ...]


class _Search:
    """Tries settings, no factor made twice.

    Every solve starts from nothing. From the answers of another setting it would keep what the
    observed cells do not determine, and a setting be praised for what another has found.
    """

    def __init__(self, windows: Sequence[Window], mean: float, spread: float) -> None:
        self.windows, self.mean, self.spread = tuple(windows), mean, spread
        self.tried = 0
        self._known: dict[Setting, _Trial] = {}
        self._spectra: dict[tuple[int, int, Kernel], Spectrum] = {}

    def trial(self, setting: Setting, best: _Trial | None) -> _Trial:
        """What a setting is worth beside the best so far."""
        if setting not in self._known:
            self._known[setting] = self.solved(setting, best, _BETTER)
        return self._known[setting]

    def solved(self, setting: Setting, best: _Trial | None, bar: float) -> _Trial:
        """The error of a setting; the better the best, the more exactly it is found.

        It is endless for one that takes too long to solve for: that is not for use, however good
        it may seem. So it is for one that is given up, when it will clearly not come below the
        error of the best times the bar.
        """
        self.tried += 1
        known = best is not None and math.isfinite(best.error) and self.spread > 0
        relative = best.error / self.spread if best and known else 0.1
        windows = list(best.windows if best and known else self.windows)
        iterations = 0
        for place, window in enumerate(self.windows):
            completed = complete_in(
                [
                    self._spectrum(place, axis, kernel, window.coordinates[axis])
                    for axis, kernel in enumerate(setting.kernels)
                ],
                window.seen,
                setting.ridge,
                self.mean,
                tolerance=float(np.clip(_EXACT * relative, *_TOLERANCES)),
                limit=_ITERATIONS,
                smoothest=_SMOOTHEST,
                enough=_Watch(windows, place, bar * best.error) if best and known else None,
            )
            windows[place] = replace(window, answers=completed.values)
            iterations = max(iterations, completed.iterations)
            if not completed.converged:
                return _Trial(setting, math.inf, iterations, tuple(windows))
        return _Trial(setting, _error(windows), iterations, tuple(windows))

    def _spectrum(self, place: int, axis: int, kernel: Kernel, coordinates: Array) -> Spectrum:
        key = (place, axis, kernel)
        if key not in self._spectra:
            self._spectra[key] = decompose(gram(kernel, coordinates, coordinates))
        return self._spectra[key]


class _Watch:
    """Looks at a trial that is under way in one window, whether it may yet come below a bar.

    In the windows to come it is taken for as good as the best.
    """

    def __init__(self, windows: Sequence[Window], place: int, bar: float) -> None:
        others = [w.residuals for i, w in enumerate(windows) if i != place]
        self._others = float(sum(missed @ missed for missed in others))
        self._count = sum(np.count_nonzero(w.hidden) for w in windows)
        self._window, self._bar = windows[place], bar
        self._before = math.inf

    def __call__(self, answers: Array) -> bool:
        """Whether to give up: as fast as the error falls now, it will not be there in time."""
        missed = (answers - self._window.values)[self._window.hidden]
        error = math.sqrt((self._others + float(missed @ missed)) / self._count)
        before, self._before = self._before, error
        return error - _LOOKS * max(0.0, before - error) > self._bar


def _error(windows: Sequence[Window]) -> float:
    """Root mean square of what is missed; 0 where there was nothing to hold out."""
    missed = np.concatenate([window.residuals for window in windows])
    return math.sqrt(float(missed @ missed) / max(1, missed.size))


def _first(search: _Search, starts: Sequence[Setting]) -> _Trial:
    """The best of some settings to start from."""
    best = search.trial(starts[0], None)
    for start in starts[1:]:
        best = min(best, search.trial(start, best), key=lambda trial: trial.error)
    return best


def _descent(
    search: _Search, best: _Trial, rounds: Sequence[Sequence[_Move]], rival: _Trial
) -> _Trial:
    """A trial improved one move at a time, the moves of each round smaller.

    It is given up where large moves leave it behind a rival.
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


def _calmed(search: _Search, best: _Trial, larger: _Move) -> _Trial:
    """A larger ridge that is as good within a few percent, where solves take many steps."""
    calm = best
    while calm.iterations > _MANY:
        setting = larger.applied(calm.setting, 1)
        trial = search.solved(setting, best, _AS_GOOD)
        if setting == calm.setting or trial.error > _AS_GOOD * best.error:
            break
        calm = trial
    return calm


def _follow(search: _Search, best: _Trial, move: _Move, last: int) -> _Trial:
    """Go one way, or else the other, for as long as it gets better."""
    for sign in (1, -1):
        came_from = best
        while search.tried < last:
            trial = search.trial(move.applied(best.setting, sign), best)
            if not trial.error < _BETTER * best.error:
                break
            best = trial
        if best is not came_from:
            break
    return best


@dataclass(frozen=True)
class _Move:
    """A step of the search: a factor on sigmas or the ridge, another family, a constant or none."""

    axes: tuple[int, ...]
    bounds: tuple[tuple[float, float], ...]
    factor: float = 1.0
    ridge_factor: float = 1.0
    families: bool = False
    rescaled: bool = False
    constants: bool = False

    def applied(self, setting: Setting, sign: int) -> Setting:
        """The setting a step further, or a step back."""
        kernels = list(setting.kernels)
        for axis in self.axes:
            kernels[axis] = self._moved(kernels[axis], self.bounds[axis], sign)
        ridge = setting.ridge * self.ridge_factor**sign
        if self.ridge_factor != 1:
            ridge = float(np.clip(ridge, *_RIDGES))
        return Setting(tuple(kernels), ridge)

    def _moved(self, kernel: Kernel, bounds: tuple[float, float], sign: int) -> Kernel:
        if self.constants:
            return replace(kernel, constant=CONSTANT if sign > 0 else 0.0)
        if not self.families:
            return replace(kernel, sigma=float(np.clip(kernel.sigma * self.factor**sign, *bounds)))
        names = list(FAMILIES)
        place = min(max(names.index(kernel.family) + sign, 0), len(names) - 1)
        width = _WIDTH[names[place]] / _WIDTH[kernel.family] if self.rescaled else 1.0
        return replace(kernel, family=names[place], sigma=kernel.sigma * width)


def _moves(
    wanted: Sequence[Wanted],
    ridge: float | None,
    bounds: tuple[tuple[float, float], ...],
    factor: float,
) -> Iterator[_Move]:
    wide = tuple(axis for axis, level in enumerate(wanted) if level.sigma is None)
    if ridge is None:
        yield _Move((), bounds, ridge_factor=factor**2)
    if len(wide) > 1:
        yield _Move(wide, bounds, factor)
    free = tuple(axis for axis in wide if wanted[axis].family is None)
    if len(free) > 1:
        yield _Move(free, bounds, families=True, rescaled=True)
    for axis, level in enumerate(wanted):
        if level.sigma is None:
            yield _Move((axis,), bounds, factor)
        if level.family is None:
            yield _Move((axis,), bounds, families=True, rescaled=level.sigma is None)
        if level.constant:
            yield _Move((axis,), bounds, constants=True)


def _bounds(coordinates: Array, period: float | None) -> tuple[float, float]:
    """The shortest and the longest sigma that make a difference."""
    extent = float(np.ptp(coordinates)) or 1.0
    longest = 4.0 * (extent if period is None else min(extent, period / math.pi))
    return 0.3 * spacing(coordinates), longest


def _starts(
    coordinates: Sequence[Array], wanted: Sequence[Wanted], ridge: float | None
) -> list[list[Setting]]:
    """Rough, of short to long sigmas, with a large and a small ridge; and smooth without noise."""
    steps = [spacing(c) for c in coordinates]
    ridges = (0.1, 1e-3) if ridge is None else (ridge,)
    rough = [("matern52", reach, size) for reach, size in product((2.0, 6.0, 18.0), ridges)]
    smooth = [("gaussian", reach, ridge or _NOISELESS) for reach in (6.0, 18.0)]

    def setting(usual: str, reach: float, size: float) -> Setting:
        kernels = []
        for step, level in zip(steps, wanted, strict=True):
            family = level.family or usual
            sigma = level.sigma or reach * step * _WIDTH[family]
            own = Kernel(family, sigma, level.period, level.constant)
            kernels.append(level.kernel or own)
        return Setting(tuple(kernels), size)

    one, other = ([setting(*start) for start in kind] for kind in (rough, smooth))
    new = [start for start in other if start not in one]
    return [list(dict.fromkeys(one)), *([new] if new else [])]


def gap_bars(
    coordinates: Sequence[Array], kernels: Sequence[Kernel], observed: Mask, chosen: Chosen
) -> GapBars:
    """The error bars of a model with these kernels, as wide as the cells held out ask for."""
    ridge = chosen.setting.ridge
    reached, missed = [], []
    for window in chosen.windows:
        seen = np.isfinite(window.seen)
        away = distance(window.coordinates, chosen.setting.kernels, seen, ridge)
        reached.append(away[window.hidden] + ridge)
        missed.append(window.residuals)
    scale, power = calibrated(np.concatenate(reached), np.concatenate(missed))
    away = distance(coordinates, kernels, observed, ridge)
    return GapBars(away, scale, power, chosen.error)
