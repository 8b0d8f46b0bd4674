"""Kernels and joint ridge of a grid with missing cells, chosen by cells held out like the gaps.

Leaving slices out in closed form (:mod:`dkrls_cli.tuning`) needs a complete grid, and on one that
was filled beforehand it finds the filling. So observed cells are hidden, in pieces of the shape the
gaps have, and what the model answers there is compared: an error that means what the user will see.
Kernel families, sigmas and ridge improve one after the other until none does. A large grid is seen
through a few windows of neighbouring cells, so that distances and gaps stay what they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from dkrls_cli.errors import InputError
from dkrls_cli.gaps import Mask, complete_in, empty_slices
from dkrls_cli.kernels import FAMILIES, Array, Kernel, gram
from dkrls_cli.spectral import Spectrum, decompose
from dkrls_cli.tensors import Slices

_WHOLE, _WINDOW, _WINDOWS = 40_000, 12_000, 3
_HELD_OUT = 0.15
_MOVES, _TILE = 20, 8
_SMOOTHEST, _ITERATIONS = 300, 300
_TRIALS = 90
_FACTORS = (3.0, 1.7, 1.3)
_BETTER = 0.998
_SCATTERED = 0.005
_RIDGES = (1e-13, 10.0)
_WIDTH = {"gaussian": 1.0, "matern52": 1.3, "matern32": 1.7, "matern12": 4.0}
"""Sigmas of the families, in that of the Gaussian, at which they reach about as far."""


@dataclass(frozen=True)
class Pattern:
    """What is missing of a grid.

    Attributes
    ----------
    missing
        Share of all cells.
    lost
        Per axis, the number of slices without an observed cell.
    fixed
        Share of the cells, lost slices aside, that are missing all along the last level's axis.
    scattered
        Share of the cells, lost slices aside, that are missing here and there.
    shape
        A typical gap, in cells along each axis; the size of an axis where gaps go all along it.
    """

    missing: float
    lost: tuple[int, ...]
    fixed: float
    scattered: float
    shape: tuple[int, ...]


def pattern(observed: Mask, last: int = -1) -> Pattern:
    """What is missing, `last` being the axis of the last level."""
    lost = empty_slices(observed)
    kept = [np.setdiff1d(np.arange(m), gone) for m, gone in zip(observed.shape, lost, strict=True)]
    present = observed[np.ix_(*kept)]
    if present.size == 0:
        raise InputError(f"All {observed.size} values are missing. Expected one at least.")
    gaps = _scattered(present)
    enough = np.count_nonzero(gaps) > _SCATTERED * np.count_nonzero(present)
    return Pattern(
        1.0 - float(observed.mean()),
        tuple(gone.size for gone in lost),
        float(np.mean(~present.any(axis=last))),
        float(gaps.mean()),
        _shape(gaps if enough else ~present),
    )


def _scattered(observed: Mask) -> Mask:
    """Cells that are missing, but not all along any axis."""
    gaps = ~observed
    if observed.ndim > 1:
        for axis in range(observed.ndim):
            gaps &= observed.any(axis=axis, keepdims=True)
    return gaps


def _shape(gaps: Mask) -> tuple[int, ...]:
    """Mean length of the runs of missing cells along each axis; all of it where it is over half."""
    lengths = []
    for axis, size in enumerate(gaps.shape):
        first = np.take(gaps, [0], axis)
        starts = np.concatenate([first, np.diff(gaps.view(np.int8), axis=axis) == 1], axis=axis)
        run = int(np.count_nonzero(gaps)) / max(1, int(np.count_nonzero(starts)))
        lengths.append(size if run > size / 2 and size > 1 else max(1, round(run)))
    return tuple(lengths)


@dataclass(frozen=True)
class Wanted:
    """What is given of one level; None is to be chosen, but for the period: no circle."""

    family: str | None = None
    sigma: float | None = None
    period: float | None = None


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
        """How well a solve must end to be far more exact than the model is."""
        relative = self.error / self.spread if self.spread > 0 else 0.0
        return float(np.clip(1e-3 * relative, 1e-10, 1e-6))


@dataclass(frozen=True, eq=False)
class Window:
    """A part of the grid with some of its observed cells hidden.

    Attributes
    ----------
    coordinates
        One vector per axis.
    values
        The data of the part, all of it that is observed.
    hidden
        Observed cells that are held out.
    answers
        The part completed without them.
    """

    coordinates: tuple[Array, ...]
    values: Array
    hidden: Mask
    answers: Array

    @property
    def seen(self) -> Array:
        """The data without what is hidden."""
        return np.where(self.hidden, np.nan, self.values)

    @property
    def residuals(self) -> Array:
        """What the answers miss on the hidden cells."""
        return np.asarray(self.answers[self.hidden] - self.values[self.hidden])


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

    No slice of the grid may be missing altogether, see :func:`dkrls_cli.gaps.empty_slices`.
    """
    windows = _windows(values, coordinates, np.random.default_rng(seed))
    search = _Search(windows, mean, float(np.nanstd(values)))
    bounds = tuple(_bounds(c, level.period) for c, level in zip(coordinates, wanted, strict=True))
    starts = _starts(coordinates, wanted, ridge)
    best = _descent(search, starts, [list(_moves(wanted, ridge, bounds, f)) for f in _FACTORS])
    return Chosen(best.setting, _error(best.windows), search.spread, search.tried, best.windows)


@dataclass(frozen=True, eq=False)
class _Trial:
    setting: Setting
    error: float
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
        """The error of a setting; the better the best, the more exactly it is found.

        One that takes too long to solve for is not for use, however good it may seem.
        """
        if setting not in self._known:
            known = best is not None and math.isfinite(best.error) and self.spread > 0
            relative = best.error / self.spread if best and known else 0.1
            tolerance = float(np.clip(0.01 * relative, 1e-9, 1e-5))
            answered = [
                self._answered(place, window, setting, tolerance)
                for place, window in enumerate(self.windows)
            ]
            windows = tuple(window for window, _ in answered)
            solved = all(converged for _, converged in answered)
            error = _error(windows) if solved else math.inf
            self._known[setting] = _Trial(setting, error, windows)
            self.tried += 1
        return self._known[setting]

    def _answered(
        self, place: int, window: Window, setting: Setting, tolerance: float
    ) -> tuple[Window, bool]:
        spectra = [
            self._spectrum(place, axis, kernel, window.coordinates[axis])
            for axis, kernel in enumerate(setting.kernels)
        ]
        completed = complete_in(
            spectra,
            window.seen,
            setting.ridge,
            self.mean,
            tolerance=tolerance,
            limit=_ITERATIONS,
            smoothest=_SMOOTHEST,
        )
        return replace(window, answers=completed.values), completed.converged

    def _spectrum(self, place: int, axis: int, kernel: Kernel, coordinates: Array) -> Spectrum:
        key = (place, axis, kernel)
        if key not in self._spectra:
            self._spectra[key] = decompose(gram(kernel, coordinates, coordinates))
        return self._spectra[key]


def _error(windows: Sequence[Window]) -> float:
    """Root mean square of what is missed; 0 where there was nothing to hold out."""
    missed = np.concatenate([window.residuals for window in windows])
    return math.sqrt(float(missed @ missed) / max(1, missed.size))


def _descent(
    search: _Search, starts: Sequence[Setting], rounds: Sequence[Sequence[_Move]]
) -> _Trial:
    """The best of the starts, improved one move at a time, the moves of each round smaller."""
    best = search.trial(starts[0], None)
    for start in starts[1:]:
        best = min(best, search.trial(start, best), key=lambda trial: trial.error)
    for moves in rounds:
        improved = True
        while improved and search.tried < _TRIALS:
            improved = False
            for move in moves:
                better = _follow(search, best, move)
                improved |= better is not best
                best = better
    return best


def _follow(search: _Search, best: _Trial, move: _Move) -> _Trial:
    """Go one way, or else the other, for as long as it gets better."""
    for sign in (1, -1):
        came_from = best
        while search.tried < _TRIALS:
            trial = search.trial(move.applied(best.setting, sign), best)
            if not trial.error < _BETTER * best.error:
                break
            best = trial
        if best is not came_from:
            break
    return best


@dataclass(frozen=True)
class _Move:
    """A step of the search: a factor on some sigmas and on the ridge, or a family up or down."""

    axes: tuple[int, ...]
    bounds: tuple[tuple[float, float], ...]
    factor: float = 1.0
    ridge_factor: float = 1.0
    families: bool = False
    rescaled: bool = False

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
        if not self.families:
            return replace(kernel, sigma=float(np.clip(kernel.sigma * self.factor**sign, *bounds)))
        names = list(FAMILIES)
        place = min(max(names.index(kernel.family) + sign, 0), len(names) - 1)
        width = _WIDTH[names[place]] / _WIDTH[kernel.family] if self.rescaled else 1.0
        return Kernel(names[place], kernel.sigma * width, kernel.period)


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
    for axis, level in enumerate(wanted):
        if level.sigma is None:
            yield _Move((axis,), bounds, factor)
        if level.family is None:
            yield _Move((axis,), bounds, families=True, rescaled=level.sigma is None)


def _bounds(coordinates: Array, period: float | None) -> tuple[float, float]:
    """The shortest and the longest sigma that make a difference."""
    steps = np.diff(np.sort(coordinates))
    extent = float(np.ptp(coordinates)) or 1.0
    longest = 4.0 * (extent if period is None else min(extent, period / math.pi))
    return 0.3 * (float(np.median(steps)) if steps.size else 1.0), longest


def _starts(
    coordinates: Sequence[Array], wanted: Sequence[Wanted], ridge: float | None
) -> list[Setting]:
    """Short, middling and long sigmas, with a large and a small ridge."""
    steps = [float(np.median(np.diff(np.sort(c)))) if c.size > 1 else 1.0 for c in coordinates]
    ridges = (0.1, 1e-3) if ridge is None else (ridge,)
    starts = []
    for reach, size in product((2.0, 6.0, 18.0), ridges):
        kernels = []
        for step, level in zip(steps, wanted, strict=True):
            family = level.family or "matern52"
            sigma = level.sigma or reach * step * _WIDTH[family]
            kernels.append(Kernel(family, sigma, level.period))
        starts.append(Setting(tuple(kernels), size))
    return list(dict.fromkeys(starts))


def _windows(values: Array, coordinates: Sequence[Array], rng: np.random.Generator) -> list[Window]:
    """The parts of the grid that are looked at, with cells hidden."""
    observed = np.isfinite(values)
    gaps, shape = _scattered(observed), pattern(observed).shape
    windows = []
    for part in _parts(observed):
        piece = np.array(values[part], np.float64)
        hidden = _hidden(np.isfinite(piece), gaps[part], shape, rng)
        axes = tuple(np.asarray(c[s]) for c, s in zip(coordinates, part, strict=True))
        windows.append(Window(axes, piece, hidden, piece))
    return windows


def _parts(observed: Mask) -> list[Slices]:
    """All of a small grid; of a large one windows spread over it where much is observed."""
    if observed.size <= _WHOLE:
        return [tuple(slice(0, size) for size in observed.shape)]
    sides = _sides(observed.shape, _WINDOW)
    choices = [
        sorted({0, (size - side) // 2, size - side})
        for size, side in zip(observed.shape, sides, strict=True)
    ]
    parts = [
        tuple(slice(start, start + side) for start, side in zip(corner, sides, strict=True))
        for corner in product(*choices)
    ]
    counts = [np.count_nonzero(observed[part]) for part in parts]
    good = [part for part, count in zip(parts, counts, strict=True) if 2 * count >= max(counts)]
    taken = np.unique(np.linspace(0, len(good) - 1, _WINDOWS).round().astype(int))
    return [good[place] for place in taken]


def _sides(shape: Sequence[int], cells: int) -> list[int]:
    """Sides of a window of so many cells, as equal as the grid allows."""
    sides = [0] * len(shape)
    left = float(cells)
    for done, axis in enumerate(np.argsort(shape)):
        sides[axis] = min(shape[axis], max(2, int(left ** (1 / (len(shape) - done)))))
        left /= sides[axis]
    return sides


def _hidden(observed: Mask, gaps: Mask, shape: Sequence[int], rng: np.random.Generator) -> Mask:
    """Observed cells to hold out: the gaps that are there, moved elsewhere.

    Where there are too few, pieces of the shape of a gap around cells drawn at random.
    """
    enough = np.count_nonzero(gaps) > _SCATTERED * np.count_nonzero(observed)
    hidden = _moved(observed, gaps, rng) if enough else _pieces(observed, shape, rng)
    return hidden if hidden.any() else _pieces(observed, [1] * observed.ndim, rng)


def _moved(observed: Mask, gaps: Mask, rng: np.random.Generator) -> Mask:
    """Observed cells under the gaps of another place, in as many tiles of the grid as it takes."""
    wanted = _HELD_OUT * int(np.count_nonzero(observed))
    axes = tuple(range(observed.ndim))
    hidden = np.zeros(observed.shape, bool)
    for _ in range(_MOVES):
        under = observed & np.roll(gaps, [int(rng.integers(size)) for size in gaps.shape], axes)
        share = (wanted - int(np.count_nonzero(hidden))) / max(1, int(np.count_nonzero(under)))
        hidden |= under & (_tiles(observed.shape, rng) < share)
        if share < 1:
            break
    return hidden


def _tiles(shape: Sequence[int], rng: np.random.Generator) -> Array:
    """A random number for every tile of the grid, on all its cells."""
    drawn = rng.random([-(-size // _TILE) for size in shape])
    return drawn[np.ix_(*[np.arange(size) // _TILE for size in shape])]


def _pieces(observed: Mask, shape: Sequence[int], rng: np.random.Generator) -> Mask:
    """Observed cells in pieces of a shape around cells drawn at random."""
    hidden = np.zeros(observed.shape, bool)
    places = np.argwhere(observed)
    wanted = max(1, int(_HELD_OUT * len(places)))
    sides = [
        size if side >= size else min(side, max(1, size // 3))
        for side, size in zip(shape, observed.shape, strict=True)
    ]
    for centre in places[rng.permutation(len(places))]:
        hidden[_around(centre, sides)] = True
        if np.count_nonzero(hidden & observed) >= wanted:
            break
    hidden &= observed
    return hidden if np.count_nonzero(hidden) < len(places) else np.zeros(observed.shape, bool)


def _around(centre: Array, sides: Sequence[int]) -> Slices:
    return tuple(
        slice(max(0, int(place) - side // 2), int(place) - side // 2 + side)
        for place, side in zip(centre, sides, strict=True)
    )
