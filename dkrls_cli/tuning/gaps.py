"""Choose kernels and joint ridge of a grid with missing cells, by hiding cells like the gaps.

Leaving slices out in closed form (:mod:`dkrls_cli.tuning.slices`) needs a complete grid, and on a
grid that was filled beforehand it would learn from the filling. So observed cells are hidden the
way the gaps lie (:mod:`dkrls_cli.tuning.masks`). Kernel families, sigmas and ridge are then
improved in turn (:mod:`dkrls_cli.tuning.moves`), as long as the hidden cells are predicted better.
Where stray cells are missing, and nothing else, cells are left out one at a time after all.

Kernels include a constant as in :mod:`dkrls_cli.tuning.slices`. Their product then has a part for
every dimension alone (a climatology, a mean over time), which reaches into the widest gap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.cascade.factors import choice
from dkrls_cli.cascade.kernels import gram
from dkrls_cli.cascade.spectrum import Spectrum, decompose
from dkrls_cli.gaps.noisy.analysis import measure_spread
from dkrls_cli.tuning.joint import JointSetting, JointTrial
from dkrls_cli.tuning.masks import (
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
from dkrls_cli.tuning.noisy.views import tell_by_errors
from dkrls_cli.tuning.spectra import SpectrumCache
from dkrls_cli.tuning.trials.alone import LoneTrials, has_stray_gaps
from dkrls_cli.tuning.trials.descent import Attempt, Trials, descend, improve
from dkrls_cli.tuning.trials.nearby import NearbyTrials
from dkrls_cli.tuning.trials.reach import WholeGrid
from dkrls_cli.tuning.trials.ridges import CALMING, balance, calm, confirm, runner_up
from dkrls_cli.tuning.trials.solved import SolvedTrials, rms_error

_BETTER_WITH_ERRORS = 0.995
"""An error below this share of the best is an improvement where observations have errors.

Scores are flat there, and improvements are small.
"""

_FACTORS = (3.0, 1.6)
"""Factors on sigma in two rounds of moves; the ridge moves by their squares."""

_FINAL, _FINAL_TOLERANCES = 3e-3, (1e-9, 1e-3)
"""Largest change of a missing cell at the end of the last solve: this share of the error."""

_WIDE, _IN_HOLES = 4.0, 0.05
"""Distance in cells from which groups are tried, and share of such cells in holes."""

_AGAIN = 3
"""Times that other cells are hidden in every view where the nearest cells are asked."""

_WIDEST = 1.5
"""Largest sigma of a Gaussian, in extents of the largest window.

Wider ones are as good as polynomials there, and too smooth for the whole grid.
"""

_CLEARLY = 0.98
"""A group is taken if its error is below this share of that of a product of kernels."""


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
    alone = errors is None and not (groups and force) and has_stray_gaps(np.isfinite(values))
    room = view_room(values.ndim)
    again = count_repeats(values.size) if errors is None and not alone else 1
    windows = hide_cells(
        values, coordinates, rng, targets, errors=errors, room=room, again=again, alone=alone
    )
    if errors is not None:
        windows = tell_by_errors(windows, values, errors, rng)
    bounds = tuple(
        sigma_bounds(c, level.period) for c, level in zip(coordinates, constraints, strict=True)
    )
    kinds = list_starts(coordinates, constraints, ridge)
    product = _Ways(kinds, [list(list_moves(constraints, ridge, bounds, f)) for f in _FACTORS])
    limited = _limited_axes(coordinates, [start for kind in kinds for start in kind])
    spread = np.nanstd(values) if errors is None else measure_spread(values, errors).signal ** 0.5
    whole = None
    if ridge is None and errors is None and values.size > room * WHOLE:
        observed = np.isfinite(values)
        whole = WholeGrid(observed, ~observed if targets is None else targets, coordinates)
    widest = {} if whole is None else _widest_gaussians(windows, coordinates, constraints)
    kind = LoneTrials if alone else SolvedTrials
    search = kind(windows, mean, float(spread), spectra, limited, whole=whole, widest=widest)
    if errors is not None:
        search.better = _BETTER_WITH_ERRORS
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
        near: SolvedTrials | NearbyTrials = search
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
        best = calm(search, best, Move((), bounds, ridge_factor=CALMING))
    is_part = room < WIDE_ROOM and values.size > WHOLE
    if ridge is None and errors is None and is_part and not alone:
        views = hide_cells(values, coordinates, rng, targets, room=WIDE_ROOM)
        wide = SolvedTrials(views, mean, float(spread), spectra, limited, "views", is_last=True)
        other = runner_up(search.trials, best.setting)
        best = confirm(wide, best, Move((), bounds, ridge_factor=CALMING), other)
        search.tried += wide.tried - 1
        search.trials += wide.trials
    if ridge is None and errors is not None:
        best = balance(search, best)
    final = zip(best.setting.kernels, coordinates, strict=True)
    return GapChoice(
        best.setting,
        rms_error(best.windows),
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
    search: SolvedTrials, near: Trials, groups: Sequence[_Ways], product: _Ways, force: bool
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


def _widest_gaussians(
    windows: Sequence[HiddenWindow],
    coordinates: Sequence[Array],
    constraints: Sequence[LevelConstraint],
) -> dict[int, float]:
    """Return the largest sigma of a Gaussian along the axes that windows are a part of.

    A sigma that is given stays as it is.
    """
    extents = {
        axis: max(float(np.ptp(window.coordinates[axis])) for window in windows)
        for axis, level in enumerate(constraints)
        if level.sigma is None and level.kernel is None
    }
    return {
        axis: _WIDEST * extent
        for axis, extent in extents.items()
        if extent < float(np.ptp(coordinates[axis]))
    }


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
