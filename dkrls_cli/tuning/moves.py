"""The settings that a search on a grid with missing cells starts from, and its steps.

A step multiplies sigmas or the ridge by a factor, goes on to the next kernel family, or adds or
removes the constant of a kernel. Levels of a group have one family and constant, and may get a
second length scale. Settings that the user has given never change.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.kernels import FAMILIES, Kernel
from dkrls_cli.circle import spacing
from dkrls_cli.gaps.field import Grouping
from dkrls_cli.tuning.candidates import CONSTANT
from dkrls_cli.tuning.joint import JointSetting

Bounds = tuple[tuple[float, float], ...]
"""Shortest and longest sigma of each level."""

_RIDGES = (1e-13, 10.0)
"""Least and largest ridge: below, solves do not converge; above, a model is but its mean."""

_REACHES, _START_RIDGES = (2.0, 6.0, 18.0), (0.1, 1e-3)
"""Sigmas in steps of the data, and ridges, of the rough settings to start from."""

_SMOOTH_REACHES, _NOISELESS = (6.0, 18.0), 1e-9
"""Sigmas in steps of the data, and the ridge, of the smooth settings to start from."""

_GROUP_REACHES, _GROUP_RIDGES = (6.0, 24.0, 96.0), (0.1, 0.1 / 9)
"""Sigmas in steps of the data, and ridges, of the settings that a group starts from.

The ridges are one step of the first round apart: both searches often meet, and go on as one.
"""

_LEAST_GROUP_RIDGE = 1e-5
"""Least ridge of a group: waves know a field no better than that near the ends of a line."""

_SECOND_SHARES, _SECOND_FACTOR = (0.0, 0.15, 0.4, 0.7), 0.2
"""Shares of the variance in a second scale, and the length of that in units of the first."""

_WIDTH = {"gaussian": 1.0, "matern52": 1.3, "matern32": 1.7, "matern12": 4.0}
"""Sigma at which each family reaches about as far as a Gaussian of sigma 1."""


@dataclass(frozen=True)
class LevelConstraint:
    """What the user has given of one level; None: to be chosen.

    Attributes
    ----------
    family, sigma
        Of the kernel.
    period
        Length of the circle that the coordinates lie on. None means a line.
    kernel
        A kernel that is given whole. It may have parts besides family, sigma and period.
    """

    family: str | None = None
    sigma: float | None = None
    period: float | None = None
    kernel: Kernel | None = None

    @property
    def constant(self) -> float:
        """Variance of the constant to start with; a kernel that is given has none added."""
        return CONSTANT if self.family is None or self.sigma is None else 0.0


@dataclass(frozen=True)
class Move:
    """A step of the search.

    Attributes
    ----------
    axes
        Levels whose kernels change.
    bounds
        Shortest and longest sigma of every level.
    factor, ridge_factor
        Factors on the sigmas and on the ridge.
    families
        Go to the next family instead of changing sigma.
    rescaled
        Change sigma with the family such that the kernel reaches about as far.
    constants
        Add or remove the constant instead of changing sigma.
    second
        Give a second scale of groups more or less of the variance.
    """

    axes: tuple[int, ...]
    bounds: Bounds
    factor: float = 1.0
    ridge_factor: float = 1.0
    families: bool = False
    rescaled: bool = False
    constants: bool = False
    second: bool = False

    def apply(self, setting: JointSetting, sign: int) -> JointSetting:
        """Return the setting one step forward (1) or back (-1), within bounds."""
        kernels = list(setting.kernels)
        for axis in self.axes:
            kernels[axis] = self._change(kernels[axis], self.bounds[axis], sign)
        ridge, grouping = setting.ridge * self.ridge_factor**sign, setting.grouping
        if self.ridge_factor != 1:
            least = _LEAST_GROUP_RIDGE if grouping.axes else _RIDGES[0]
            ridge = float(np.clip(ridge, least, _RIDGES[1]))
        if self.second:
            place = _SECOND_SHARES.index(grouping.share) + sign
            share = _SECOND_SHARES[min(max(place, 0), len(_SECOND_SHARES) - 1)]
            factor = _SECOND_FACTOR if share else 1.0
            grouping = replace(grouping, share=share, factor=factor)
        return JointSetting(tuple(kernels), ridge, grouping)

    def _change(self, kernel: Kernel, bounds: tuple[float, float], sign: int) -> Kernel:
        if self.second:
            return kernel
        if self.constants:
            return replace(kernel, constant=CONSTANT if sign > 0 else 0.0)
        if not self.families:
            return replace(kernel, sigma=float(np.clip(kernel.sigma * self.factor**sign, *bounds)))
        names = list(FAMILIES)
        place = min(max(names.index(kernel.family) + sign, 0), len(names) - 1)
        width = _WIDTH[names[place]] / _WIDTH[kernel.family] if self.rescaled else 1.0
        return replace(kernel, family=names[place], sigma=kernel.sigma * width)


def list_moves(
    constraints: Sequence[LevelConstraint],
    ridge: float | None,
    bounds: Bounds,
    factor: float,
    groups: Sequence[tuple[int, ...]] = (),
    sphere: bool = False,
) -> Iterator[Move]:
    """Yield the moves of one round: those of all levels together first, then one by one.

    The levels of a group move together before their sigmas do so alone. On the sphere they have one
    sigma, and move together only.
    """
    if sphere:
        bounds = _shared_bounds(bounds, groups)
    wide = tuple(axis for axis, level in enumerate(constraints) if level.sigma is None)
    if ridge is None:
        yield Move((), bounds, ridge_factor=factor**2)
    if len(wide) > 1:
        yield Move(wide, bounds, factor)
    free = tuple(axis for axis in wide if constraints[axis].family is None)
    if len(free) > 1 and not groups:
        yield Move(free, bounds, families=True, rescaled=True)
    for group in groups:
        yield from _group_moves(group, constraints, bounds, factor)
    grouped = {axis for group in groups for axis in group}
    for axis, level in enumerate(constraints):
        if level.sigma is None and not (sphere and axis in grouped):
            yield Move((axis,), bounds, factor)
        if level.family is None and axis not in grouped:
            yield Move((axis,), bounds, families=True, rescaled=level.sigma is None)
        if level.constant and axis not in grouped:
            yield Move((axis,), bounds, constants=True)


def _shared_bounds(bounds: Bounds, groups: Sequence[tuple[int, ...]]) -> Bounds:
    """Return bounds of sigma that are the same for all levels of a group."""
    result = list(bounds)
    for group in groups:
        low, high = zip(*[bounds[axis] for axis in group], strict=True)
        for axis in group:
            result[axis] = min(low), max(high)
    return tuple(result)


def _group_moves(
    group: tuple[int, ...],
    constraints: Sequence[LevelConstraint],
    bounds: Bounds,
    factor: float,
) -> Iterator[Move]:
    """Yield the moves that all levels of a group make together."""
    own = [constraints[axis] for axis in group]
    if all(level.sigma is None for level in own) and len(constraints) > len(group):
        yield Move(group, bounds, factor)
    if all(level.family is None for level in own):
        yield Move(group, bounds, families=True, rescaled=all(o.sigma is None for o in own))
    if any(level.sigma is None for level in own):
        yield Move((), bounds, second=True)
    if all(level.constant for level in own):
        yield Move(group, bounds, constants=True)


def sigma_bounds(coordinates: Array, period: float | None) -> tuple[float, float]:
    """Return the shortest and the longest sigma that still make a difference.

    That is 0.3 steps, and 4 times the extent of the coordinates or the diameter of their circle.
    """
    extent = float(np.ptp(coordinates)) or 1.0
    longest = 4.0 * (extent if period is None else min(extent, period / math.pi))
    return 0.3 * spacing(coordinates), longest


def list_starts(
    coordinates: Sequence[Array], constraints: Sequence[LevelConstraint], ridge: float | None
) -> list[list[JointSetting]]:
    """Return settings to start from: a list of rough ones, and one of smooth ones without noise.

    The rough ones have short to long sigmas, each with a large and a small ridge.
    """
    ridges = _START_RIDGES if ridge is None else (ridge,)
    rough = [("matern52", reach, size) for reach, size in product(_REACHES, ridges)]
    smooth = [("gaussian", reach, ridge or _NOISELESS) for reach in _SMOOTH_REACHES]
    one, other = (
        [
            JointSetting(_start_kernels(coordinates, constraints, usual, reach), size)
            for usual, reach, size in kind
        ]
        for kind in (rough, smooth)
    )
    new = [start for start in other if start not in one]
    return [list(dict.fromkeys(one)), *([new] if new else [])]


def list_group_starts(
    coordinates: Sequence[Array],
    constraints: Sequence[LevelConstraint],
    ridge: float | None,
    groups: tuple[tuple[int, ...], ...],
    sphere: bool = False,
) -> list[list[JointSetting]]:
    """Return settings with groups to start from: a list of short to long sigmas for each ridge."""
    grouping = Grouping(groups, sphere=sphere)
    ridges = _GROUP_RIDGES if ridge is None else (ridge,)
    kernels = [
        _in_groups(_start_kernels(coordinates, constraints, "matern12", reach / 4), grouping)
        for reach in _GROUP_REACHES
    ]
    return [
        list(dict.fromkeys(JointSetting(own, size, grouping) for own in kernels)) for size in ridges
    ]


def _in_groups(kernels: tuple[Kernel, ...], grouping: Grouping) -> tuple[Kernel, ...]:
    """Return kernels of which those of a group have the family and constant of its first.

    On the sphere they have one sigma as well.
    """
    result = list(kernels)
    for first, *others in grouping.axes:
        for axis in others:
            family, constant = result[first].family, result[first].constant
            sigma = result[first].sigma if grouping.sphere else result[axis].sigma
            result[axis] = replace(result[axis], family=family, constant=constant, sigma=sigma)
    return tuple(result)


def _start_kernels(
    coordinates: Sequence[Array], constraints: Sequence[LevelConstraint], usual: str, reach: float
) -> tuple[Kernel, ...]:
    """Return the kernels of all levels with sigmas of so many steps, but for what is given."""
    kernels = []
    for c, level in zip(coordinates, constraints, strict=True):
        family = level.family or usual
        sigma = level.sigma or reach * spacing(c) * _WIDTH[family]
        own = Kernel(family, sigma, level.period, level.constant)
        kernels.append(level.kernel or own)
    return tuple(kernels)
