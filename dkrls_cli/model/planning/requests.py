"""Settings of one level as they were given, and the plan of a fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dkrls_cli.cascade.kernels import kernel_named
from dkrls_cli.cascade.level import (
    Level,
)
from dkrls_cli.errors import SettingError
from dkrls_cli.model.poles.planning import PolePlan


@dataclass(frozen=True)
class LevelRequest:
    """The settings that were given for one level; None is to be chosen.

    Attributes
    ----------
    name
        Name of the dimension.
    family, sigma, ridge
        Of the kernel and the level; the family with the warp of the coordinate, such as
        ``log-cubic``.
    period
        Length of the circle that the coordinates lie on. Here None is not to be chosen: it is a
        line.
    cycles
        Lengths of the cycles that the data may repeat with, and that may be chosen.
    folds
        Number of blocks of neighbours to leave out; None: as for all levels.

    Raises
    ------
    SettingError
        If a level cannot have one of these settings.
    """

    name: str
    family: str | None = None
    sigma: float | None = None
    ridge: float | None = None
    period: float | None = None
    cycles: tuple[float, ...] = ()
    folds: int | None = None

    def __post_init__(self) -> None:
        kernel = self.example.kernel
        if kernel.is_spline and self.sigma is not None:
            raise SettingError(
                f"Invalid sigma {self.sigma:g} of '{self.name}'. A {kernel.family} spline has no "
                "length scale: give none, or another kernel.",
                setting="sigma",
            )

    @property
    def example(self) -> Level:
        """A level with these settings, and arbitrary ones in place of those to be chosen."""
        sigma = 1.0 if self.sigma is None else self.sigma
        kernel = kernel_named(self.family or "gaussian", sigma, self.period)
        return Level(self.name, kernel, self.ridge or 0.0)


@dataclass(frozen=True)
class FitPlan:
    """The plan of a fit: its settings, resolved for the axes of a grid.

    Attributes
    ----------
    hierarchy
        Names of the dimensions from level 0 to the last.
    levels
        Per axis of the data, a level that was given whole or the settings given for it.
    joint
        Whether one ridge serves the whole grid.
    joint_ridge
        That ridge, or None if it is to be chosen.
    group
        Axes that may share one distance where cells are missing, by their places in the data.
    group_given
        Whether they are to share it whatever the data says.
    sphere
        Whether these axes are latitude and longitude, and the distance that on the sphere.
    poles
        The latitude and longitude that may go on across the poles, or None if none do.
    """

    hierarchy: tuple[str, ...]
    levels: tuple[Level | LevelRequest, ...]
    joint: bool = False
    joint_ridge: float | None = None
    group: tuple[int, ...] = ()
    group_given: bool = False
    sphere: bool = False
    poles: PolePlan | None = None

    def leaving_out(self, folds: Mapping[int, int]) -> FitPlan:
        """Return the plan with blocks of slices to leave out of the levels of some axes."""
        return replace(
            self,
            levels=tuple(
                replace(level, folds=folds[axis])
                if axis in folds and isinstance(level, LevelRequest)
                else level
                for axis, level in enumerate(self.levels)
            ),
        )
