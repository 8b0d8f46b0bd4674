"""Choose one ridge for a whole grid, and sigmas to go with it, by generalised cross-validation.

With p the products of the levels' eigenvalues and z the data in their eigenbases, the score

    mean((lambda z / (p + lambda))^2) / mean(lambda / (p + lambda))^2

is the mean square error of leaving cells out, but for the variation of leverage between cells.

A long dimension has no spectrum. It is seen through windows of 512 neighbours, and both means are
taken over the cells of all windows: the noise that a joint ridge stands for is that of every cell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from dkrls_cli.arrays import Array, Tensor, blocks
from dkrls_cli.cascade.factors.choice import LONG
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.spectrum import ROUND_OFF, Spectrum, decompose
from dkrls_cli.cascade.tensors import along, apply
from dkrls_cli.circle import is_even
from dkrls_cli.gaps.field import NO_GROUPS, Grouping
from dkrls_cli.tuning.candidates import Measure

_RIDGES = np.geomspace(1e-14, 1e3, 171)
"""Ridges that are tried, ten to each power of ten."""

_MOVING_CELLS = 2**21
"""Cells up to which sigmas are changed: beyond, every step would cost as much as a fit."""

_FACTOR, _MOVES = 1.4, 4
"""Factor of one step of sigma, and the most steps in one direction."""

_BINS, _SMALLEST = 400, math.log(1e-20)
"""Bins of log p, and the lower edge of the first, which holds all that is smaller."""

_SLAB = 2**16
"""Cells that are counted at a time: half a megabyte of numbers stays in the cache of a core."""

_WINDOW, _WINDOWS = 512, 3
"""Samples of a long dimension that a window has, and windows: at its ends and in its middle."""

_TINY = float(np.finfo(np.float64).tiny)

_NOISY = 100 * ROUND_OFF
"""Share of the largest eigenvalue below which eigenvalues are noise of round-off."""

_CLEARLY = 0.25
"""Share of the score above round-off that a ridge below it must reach to be taken.

A ridge that small tells eigenvalues apart that are noise of round-off: scores fall by some percent
for nothing. Where data is smooth and without noise they fall by far more.
"""


@dataclass(frozen=True)
class JointSetting:
    """The kernels of all levels, their joint ridge, and which levels share one distance."""

    kernels: tuple[Kernel, ...]
    ridge: float
    grouping: Grouping = NO_GROUPS


@dataclass(frozen=True)
class JointTrial:
    """A setting of all levels that was tried, its error, and what that is an error of.

    The error is infinite if the setting was given up, at the error that it had `reached` by then.
    """

    setting: JointSetting
    error: float
    measure: Measure
    reached: float | None = None


@dataclass(frozen=True, eq=False)
class JointChoice:
    """The setting chosen for a grid.

    Attributes
    ----------
    setting
        Kernels and joint ridge.
    spectra
        Full spectra of the kernels on the coordinates. A long level, which is seen through windows,
        has none.
    trials
        Kernels that were tried, each with its best ridge.
    """

    setting: JointSetting
    spectra: tuple[Spectrum | None, ...]
    trials: tuple[JointTrial, ...] = ()


def choose_joint(
    values: Tensor,
    coordinates: Sequence[Array],
    kernels: Sequence[Kernel],
    *,
    open_sigmas: Sequence[bool],
    ridge: float | None = None,
    spectra: Sequence[Spectrum | None] | None = None,
) -> JointChoice:
    """Choose the joint ridge of a complete grid, and the sigmas that are open.

    Open sigmas move by factors of 1.4 as long as the score falls. On a grid of more than two
    million cells they stay. Levels of more than 1024 coordinates are seen through three windows.

    Parameters
    ----------
    values
        The data less its mean, one axis per level.
    coordinates, kernels
        One per axis.
    open_sigmas
        Whether the sigma of each kernel may change.
    ridge
        The joint ridge if it is given; None: to be chosen.
    spectra
        The full spectrum of each kernel on its coordinates, None where it is not known.
    """
    ridges = _RIDGES if ridge is None else np.array([ridge])
    chosen = list(kernels)
    windows = _windows(values, coordinates)
    cells = sum(window.values.size for window in windows)
    made = [
        _decompose(windows, axis, kernel, known)
        for axis, (kernel, known) in enumerate(
            zip(chosen, spectra or [None] * len(chosen), strict=True)
        )
    ]
    found = list(zip(*made, strict=True))  # spectra of all axes, for every window
    projected = [window.project(own) for window, own in zip(windows, found, strict=True)]
    least, taken = _least_score(projected, found, ridges)
    tried = [(JointSetting(tuple(chosen), taken), least)]
    moving = [axis for axis, may in enumerate(open_sigmas) if may and cells <= _MOVING_CELLS]
    for axis in moving:
        pairs = zip(windows, found, strict=True)
        projected = [window.project(own, but=axis) for window, own in pairs]
        start = chosen[axis]
        for factor in (_FACTOR, 1 / _FACTOR):
            for _ in range(_MOVES):
                kernel = replace(chosen[axis], sigma=chosen[axis].sigma * factor)
                new = _decompose(windows, axis, kernel)
                trial = [(*f[:axis], n, *f[axis + 1 :]) for f, n in zip(found, new, strict=True)]
                turned = [along(p, axis, n.vectors.T) for p, n in zip(projected, new, strict=True)]
                score, at = _least_score(turned, trial, ridges)
                moved = (*chosen[:axis], kernel, *chosen[axis + 1 :])
                tried.append((JointSetting(moved, at), score))
                if score >= least:
                    break
                least, taken, chosen[axis], found = score, at, kernel, trial
            if chosen[axis] is not start:  # a step back leads where the score was larger
                break
    whole = [c.size <= LONG for c in coordinates]
    full = tuple(s if seen else None for s, seen in zip(found[0], whole, strict=True))
    trials = (JointTrial(own, math.sqrt(cells * score), "joint") for own, score in tried)
    return JointChoice(JointSetting(tuple(chosen), taken), full, tuple(trials))


@dataclass(frozen=True, eq=False)
class _Window:
    """A part of the grid that has spectra: all of it, but for long axes."""

    values: Tensor
    coordinates: tuple[Array, ...]

    def project(self, spectra: Sequence[Spectrum], but: int | None = None) -> Array:
        """Return the data in the eigenbases of all axes but one."""
        bases = [None if axis == but else s.vectors.T for axis, s in enumerate(spectra)]
        return apply(self.values, bases)


def _windows(values: Tensor, coordinates: Sequence[Array]) -> list[_Window]:
    """Return the grid, or windows of it if an axis is long.

    Windows of even steps have the same coordinates: kernels depend on distances only.
    """
    long = {axis for axis, c in enumerate(coordinates) if c.size > LONG}
    windows = []
    for place in np.linspace(0, 1, _WINDOWS) if long else (0.0,):
        seen, part = list(coordinates), values
        for axis in long:
            order = np.argsort(coordinates[axis])
            start = int(place * (order.size - _WINDOW))
            inside = order[start : start + _WINDOW]
            even = is_even(coordinates[axis][order])
            seen[axis] = coordinates[axis][order[:_WINDOW] if even else inside]
            part = part.take(inside, axis)
        windows.append(_Window(part, tuple(seen)))
    return windows


def _decompose(
    windows: Sequence[_Window], axis: int, kernel: Kernel, known: Spectrum | None = None
) -> list[Spectrum]:
    """Return the spectra of a kernel on one axis of all windows; `known` is that of a whole axis.

    Windows with the same coordinates have the same spectrum, which is made once.
    """
    made: dict[bytes, Spectrum] = {}
    for window in windows:
        here = window.coordinates[axis]
        if here.tobytes() not in made:
            whole = known if known is not None and len(known.vectors) == here.size else None
            made[here.tobytes()] = whole or decompose(gram(kernel, here, here))
    return [made[window.coordinates[axis].tobytes()] for window in windows]


def _least_score(
    data: Sequence[Array], spectra: Sequence[Sequence[Spectrum]], ridges: Array
) -> tuple[float, float]:
    """Return the least score of windows in their eigenbases, and the ridge that has it.

    Directions are counted in bins of log p: the score is then a sum over bins, not cells.
    """
    logs = [[np.log(np.maximum(s.values, _TINY)) for s in own] for own in spectra]
    largest = max(sum(float(each.max()) for each in own) for own in logs)
    edges = np.linspace(_SMALLEST, largest, _BINS + 1)
    counts, sums = np.zeros(_BINS), np.zeros(_BINS)
    for window, own in zip(data, logs, strict=True):
        for part in blocks(window.shape, _SLAB):
            here = reduce(np.add.outer, [each[p] for each, p in zip(own, part, strict=True)])
            bins = ((here.ravel() - edges[0]) * (_BINS / (edges[-1] - edges[0]))).astype(np.intp)
            bins = np.clip(bins, 0, _BINS - 1, out=bins)
            counts += np.bincount(bins, minlength=_BINS)
            sums += np.bincount(bins, window[part].ravel() ** 2, minlength=_BINS)
    middles = np.exp((edges[:-1] + edges[1:]) / 2)
    filters = ridges[:, None] / (middles + ridges[:, None])
    scores = (filters**2 @ sums) / (filters @ counts) ** 2
    best = _best_ridge(scores, ridges, _NOISY * math.exp(largest))
    return float(scores[best]), float(ridges[best])


def _best_ridge(scores: Array, ridges: Array, round_off: float) -> int:
    """Return the place of the ridge with the least score, below round-off only if clearly less."""
    best, above = int(np.argmin(scores)), np.flatnonzero(ridges >= round_off)
    if ridges[best] >= round_off or not above.size:
        return best
    reliable = int(above[np.argmin(scores[above])])
    return best if scores[best] < _CLEARLY * scores[reliable] else reliable
