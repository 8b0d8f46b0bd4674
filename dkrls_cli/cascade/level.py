"""Levels: one dimension's place in the hierarchy, and checks of levels against data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from numpy.typing import ArrayLike

from dkrls_cli.arrays import Array, vector_of
from dkrls_cli.cascade.kernels import FAMILIES, Kernel
from dkrls_cli.circle import repeated
from dkrls_cli.errors import InputError, SettingError


@dataclass(frozen=True)
class Level:
    """One dimension of the grid as the model sees it.

    Level 0 of a hierarchy is the paper's Initial Modeling, the others its Hierarchic Weight
    Modeling.

    Parameters
    ----------
    name
        Name of the dimension.
    kernel
        Kernel along the dimension.
    ridge
        Number added to the diagonal of the level's Gram matrix; with a joint ridge it stays 0. A
        spline has none.

    Raises
    ------
    SettingError
        If the ridge is not a finite number, 0 or above, or that of a spline is not 0.

    Examples
    --------
    >>> Level("time", Kernel("matern32", sigma=5.0), ridge=1e-6).kernel.sigma
    5.0
    """

    name: str
    kernel: Kernel = field(default_factory=Kernel)
    ridge: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.ridge) and self.ridge >= 0):
            raise SettingError(
                f"Invalid ridge {self.ridge} of level '{self.name}'. "
                "It must be a finite number, 0 or above."
            )
        if self.kernel.is_spline and self.ridge:
            raise SettingError(
                f"Invalid ridge {self.ridge} of level '{self.name}'. A {self.kernel.family} spline "
                "passes through all samples and has no ridge: give none, or another kernel.",
                setting="kernel",
            )


def checked_coordinates(
    coordinates: Sequence[ArrayLike], levels: Sequence[Level], shape: tuple[int, ...]
) -> tuple[Array, ...]:
    """Return one read-only vector per axis of the data, or raise if they do not fit the data."""
    if not len(coordinates) == len(levels) == len(shape):
        raise SettingError(
            f"Values with {len(shape)} axes need as many coordinates and levels, "
            f"got {len(coordinates)} and {len(levels)}."
        )
    axes = []
    for size, given, level in zip(shape, coordinates, levels, strict=True):
        axis = vector_of(given, f"coordinates of level '{level.name}'").copy()
        if axis.size != size:
            raise InputError(
                f"Level '{level.name}' has {axis.size} coordinates for {size} samples."
            )
        check_axis(axis, level)
        axis.setflags(write=False)
        axes.append(axis)
    return tuple(axes)


def check_axis(axis: Array, level: Level) -> None:
    """Raise InputError if two coordinates are the same place, or one has no logarithm or root."""
    level.kernel.warped(axis)
    same = repeated(axis, level.kernel.period)
    if same:
        one, other = same
        what = "the same" if level.kernel.period is None else "the same place on the circle"
        raise InputError(
            f"Coordinates {one} and {other} of level '{level.name}' are {what}: "
            f"{axis[one]:g} and {axis[other]:g}. Keep one of them, or their mean."
        )


def check_ridges(levels: Sequence[Level], joint_ridge: float | None) -> None:
    """Raise SettingError if a joint ridge is no ridge, or stands beside the ridge of a level."""
    if joint_ridge is None:
        return
    if not (math.isfinite(joint_ridge) and joint_ridge >= 0):
        raise SettingError(f"Invalid joint ridge {joint_ridge}. It must be finite, 0 or above.")
    for level in levels:
        if level.ridge:
            raise SettingError(
                f"Level '{level.name}' has ridge {level.ridge} beside a joint ridge. Give one kind."
            )
        check_joint_kernel(level.name, level.kernel)


def check_joint_kernel(name: str, kernel: Kernel) -> None:
    """Raise SettingError if a kernel cannot stand under a joint ridge."""
    if kernel.is_spline or kernel.warp is not None:
        raise SettingError(
            f"The kernel '{kernel.name}' of level '{name}' needs a complete grid with a ridge per "
            f"level, and one joint ridge is asked for or needed here: for noise, missing cells or "
            f"errors of observations. Choose from: {', '.join(FAMILIES)}.",
            setting="kernel",
        )
