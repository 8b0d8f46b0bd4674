"""Settings of a fit: everything that no grid allows is refused when they are made."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import numpy as np

from dkrls_cli.cascade.kernels import KERNELS, unknown_kernel
from dkrls_cli.cascade.level import (
    Level,
)
from dkrls_cli.errors import SettingError
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.iso.durations import is_duration
from dkrls_cli.model.answering.bounds import BoundsLike, read_bounds
from dkrls_cli.model.answering.tolerance import Tolerance, ToleranceLike, read_tolerance
from dkrls_cli.model.poles.planning import Poles
from dkrls_cli.spelling import suggest

T = TypeVar("T")
PerLevel: TypeAlias = T | Mapping[str, T]
"""One value for all levels, or a value per dimension (``auto`` where one is not named)."""

Noise = Literal["auto", "level", "joint"]
Missing = Literal["model", "error"]
Storage = Literal["float64", "float32"]

# Fewer blocks would leave all slices out at once.
_FEWEST_FOLDS = 2

# Fewer dimensions have no common distance.
FEWEST_IN_GROUP = 2


def _values(setting: PerLevel[T]) -> Iterator[T]:
    """Yield the one value of a setting, or that of every dimension named."""
    if isinstance(setting, Mapping):
        yield from setting.values()
    else:
        yield setting


def pick(setting: PerLevel[Any], dim: str) -> Any:
    """Return the value of a setting for one dimension."""
    return setting.get(dim, "auto") if isinstance(setting, Mapping) else setting


def _check_choice(what: str, value: object, choices: Sequence[str]) -> None:
    if value not in choices:
        raise SettingError(
            f"Unknown {what} '{value}'. Choose from: {', '.join(choices)}."
            f"{suggest(str(value), choices)}"
        )


def read_family(name: str) -> str | None:
    """Return the name of a kernel, or None for ``auto``."""
    if name == "auto":
        return None
    if name not in KERNELS:
        raise unknown_kernel(str(name), "auto")
    return name


def _check_length(value: float | str, what: str) -> None:
    """Raise SettingError if a length is no number, no duration and not ``auto``."""
    if not (isinstance(value, str) and is_duration(value)):
        read_number(value, what, or_else="a duration such as 30D, or auto")


def read_length(axis: Axis, value: float | str, what: str) -> float | None:
    """Return a length in units of an axis, or None for ``auto``; a duration needs dates."""
    if not (isinstance(value, str) and is_duration(value)):
        return read_number(value, what)
    if axis.time is None:
        raise SettingError(
            f"Invalid {what} '{value}' of '{axis.name}', which has no dates. Give a number"
            + (f" of {axis.length_units}." if axis.length_units else ".")
        )
    return axis.time.length(value)


def read_number(value: float | str, what: str, or_else: str = "or auto") -> float | None:
    """Return a number that may be given as text, or None for ``auto``."""
    if value == "auto":
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        raise SettingError(f"Invalid {what} '{value}'. Give a number, {or_else}.") from None


@dataclass(frozen=True)
class Settings:
    """Settings of a fit. What is ``auto`` is chosen on the data.

    Attributes
    ----------
    levels
        The hierarchy from level 0 to the last: names of dimensions, or whole levels. None: the
        dimensions in the order of the data, a time-like one last.
    kernel, sigma, ridge, period
        Settings of the levels: one value for all, or a mapping from dimension to value. Numbers
        may be given as text; a sigma or period of dates also as a duration such as ``30D`` or
        ``1Y``. A dimension ``latitude`` may be named ``lat``. A period of None or ``none`` is a
        line; ``auto`` is the circle that the coordinates close, if they do.
    noise
        ``level``: a ridge per level, the paper's. ``joint``: one ridge over the whole grid.
        ``auto``: level on complete grids, joint where cells are missing.
    missing
        ``model``: fit through missing cells. ``error``: refuse them.
    mean
        The number that answers fall back to far from data; ``auto`` is the mean of the data.
    compact, dtype
        See :func:`dkrls_cli.cascade.fit.fit_cascade`.
    folds
        Number of blocks of neighbours to leave out when choosing, instead of single slices.
    bounds
        The least and the largest value of an answer: a pair with None for an open end, or a text
        such as ``0,1`` or ``0,``. None or ``none``: no bounds. ``auto``: those that the attributes
        of the variable tell, see :func:`dkrls_cli.model.answering.bounds.choose_bounds`.
    tolerance
        How far the answers of the smallest model may be from those of the full one: a share of the
        standard deviation, or a text with the units of the data such as ``0.05 K``. It takes the
        place of ``compact`` and ``dtype``. See :mod:`dkrls_cli.cascade.storage.compress`.
    group
        Dimensions with one distance where cells are missing, see :mod:`dkrls_cli.gaps.field`: names
        of two or more, or a text such as ``lat,lon``. ``none``: no such dimensions. ``auto``:
        latitude and longitude, or the axes of a map projection, where hidden cells are predicted
        clearly better with them.
    accept_inexact
        Whether to take missing cells that could not be solved for exactly, with a warning.
    poles
        Whether a field on latitudes that reach a pole, and longitudes all round, goes on behind it
        on the other side of the globe: as a ``scalar``, with the same sign; as a component of a
        ``vector``, with the opposite one; or not (``none``). ``auto``: as latitudes next to the
        poles are predicted best; with a joint ridge and missing cells not. See
        :mod:`dkrls_cli.cascade.poles.continuation`.
    cell_means
        Dimensions along which the data are means over cells: names, or a text such as ``lat,lon``.
        True: those that ``cell_methods`` tells, or else latitude and longitude, or else all.
    robust
        Whether cells that the others speak against are not shown to the fit, see
        :mod:`dkrls_cli.model.quality.robust`.

    Raises
    ------
    SettingError
        If a value is not one that its setting can have.

    Examples
    --------
    >>> Settings(sigma={"time": 30.0}, noise="joint").given
    {'sigma': {'time': 30.0}, 'noise': 'joint'}
    """

    levels: Sequence[Level | str] | None = None
    kernel: PerLevel[str] = "auto"
    sigma: PerLevel[float | str] = "auto"
    ridge: PerLevel[float | str] = "auto"
    period: PerLevel[float | str | None] = "auto"
    noise: Noise = "auto"
    missing: Missing = "model"
    mean: float | str = "auto"
    compact: bool = False
    dtype: Storage = "float64"
    folds: int | None = None
    bounds: BoundsLike = "auto"
    tolerance: ToleranceLike = None
    group: str | Sequence[str] = "auto"
    accept_inexact: bool = False
    poles: Poles = "auto"
    cell_means: bool | str | Sequence[str] = False
    robust: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.cell_means, bool | str):
            object.__setattr__(self, "cell_means", tuple(self.cell_means))
        _check_choice("kind of noise", self.noise, get_args(Noise))
        _check_choice("way with missing cells", self.missing, get_args(Missing))
        _check_choice("storage type", self.dtype, get_args(Storage))
        _check_choice("way across the poles", self.poles, get_args(Poles))
        for family in _values(self.kernel):
            read_family(family)
        for name, check in (("sigma", _check_length), ("ridge", read_number)):
            for value in _values(getattr(self, name)):
                check(value, name)
        for length in _values(self.period):
            if length is not None and length != "none":
                _check_length(length, "period")
        mean = read_number(self.mean, "mean")
        if mean is not None and not math.isfinite(mean):
            raise SettingError(f"Invalid mean {self.mean}. It must be a finite number, or auto.")
        if self.folds is not None and self.folds < _FEWEST_FOLDS:
            raise SettingError(f"Invalid number of folds {self.folds}. It must be 2 or above.")
        if isinstance(self.bounds, list | np.ndarray):
            object.__setattr__(self, "bounds", tuple(self.bounds))
        if self.bounds != "auto":
            read_bounds(self.bounds)
        _ = self.allowed
        if not isinstance(self.group, str):
            object.__setattr__(self, "group", tuple(self.group))
        if self.group_names is not None and len(set(self.group_names)) < FEWEST_IN_GROUP:
            raise SettingError(
                f"Invalid group '{','.join(self.group_names)}'. Name two or more dimensions, such "
                "as lat,lon; or give none or auto."
            )

    @property
    def group_names(self) -> tuple[str, ...] | None:
        """Names of the dimensions of the group, or None if none are given."""
        if self.group in ("auto", "none"):
            return None
        names = self.group.split(",") if isinstance(self.group, str) else self.group
        return tuple(name.strip() for name in names)

    @property
    def given(self) -> dict[str, Any]:
        """The settings that differ from the defaults, by name."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }

    @property
    def level_names(self) -> list[str] | None:
        """Names of the dimensions from level 0 to the last, or None if they are not given."""
        if self.levels is None:
            return None
        return [level.name if isinstance(level, Level) else level for level in self.levels]

    @property
    def allowed(self) -> Tolerance | None:
        """The tolerance as a value, or None if the model is stored as it is."""
        return None if self.tolerance is None else read_tolerance(self.tolerance)

    @property
    def centre(self) -> float | None:
        """The mean as a number, or None if it is that of the data."""
        return read_number(self.mean, "mean")


DEFAULTS = Settings()
"""The settings of a fit to which none is given."""
