"""From what the user said to the levels of a hierarchy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypeVar

import numpy as np

from dkrls_cli.axes import Axis
from dkrls_cli.errors import SettingError
from dkrls_cli.kernels import Kernel
from dkrls_cli.levels import Level

T = TypeVar("T")
Setting: TypeAlias = T | Mapping[str, T]
"""One value for all levels, or a value per dimension (``auto`` where one is not named)."""

_AUTO: float | str = "auto"
AUTO_KERNEL = "matern52"
AUTO_RIDGE = 1e-8
AUTO_SPACINGS = 5.0


def choose_levels(
    axes: Sequence[Axis],
    levels: Sequence[Level] | Sequence[str] | None = None,
    *,
    kernel: Setting[str] = "auto",
    sigma: Setting[float | str] = "auto",
    ridge: Setting[float | str] = "auto",
    period: Setting[float | None] = None,
    noise: str = "level",
) -> tuple[tuple[str, ...], tuple[Level, ...], float | None]:
    """The hierarchy (level 0 first), the levels in the order of the axes, and the joint ridge.

    ``auto`` is a plain rule: kernel Matern 5/2, sigma five times the median spacing of the
    coordinates, ridge 1e-8. Without `levels`, the dimensions stay in the order of the axes, a
    time-like one last.
    """
    dims = [axis.name for axis in axes]
    whole = {level.name: level for level in levels or () if isinstance(level, Level)}
    settings = {"kernel": kernel, "sigma": sigma, "ridge": ridge, "period": period}
    for name, setting in settings.items():
        _check_setting(name, setting, dims, whole)
    joint_ridge = _joint_ridge(ridge, noise)

    def level(axis: Axis) -> Level:
        family, circle = _pick(kernel, axis.name, "auto"), _pick(period, axis.name, None)
        width, own = _pick(sigma, axis.name, _AUTO), _pick(ridge, axis.name, _AUTO)
        shape = Kernel(
            AUTO_KERNEL if family == "auto" else family,
            _number(width, AUTO_SPACINGS * spacing(axis), "sigma"),
            circle,
        )
        return Level(
            axis.name, shape, _number(own, AUTO_RIDGE, "ridge") if joint_ridge is None else 0.0
        )

    chosen = tuple(whole[axis.name] if axis.name in whole else level(axis) for axis in axes)
    return _hierarchy(axes, levels), chosen, joint_ridge


def spacing(axis: Axis) -> float:
    """Median distance of neighbouring coordinates; 1 where there is but one."""
    gaps = np.diff(np.sort(axis.numbers))
    return float(np.median(gaps[gaps > 0])) if (gaps > 0).any() else 1.0


def is_time(axis: Axis) -> bool:
    """Whether a dimension is time, by its units, attributes or name."""
    marked = str(axis.attrs.get("axis", "")).upper() == "T"
    named = "time" in (axis.name.lower(), str(axis.attrs.get("standard_name", "")).lower())
    return axis.time is not None or marked or named


def _hierarchy(
    axes: Sequence[Axis], levels: Sequence[Level] | Sequence[str] | None
) -> tuple[str, ...]:
    """Names from level 0 to the last."""
    dims = [axis.name for axis in axes]
    if levels is None:
        return tuple(axis.name for axis in sorted(axes, key=is_time))
    names = [level.name if isinstance(level, Level) else level for level in levels]
    if sorted(names) != sorted(dims):
        raise SettingError(
            f"The levels {', '.join(names)} are not the dimensions of the data, {', '.join(dims)}. "
            "Name each of them once."
        )
    return tuple(names)


def _joint_ridge(ridge: Setting[float | str], noise: str) -> float | None:
    if noise == "level":
        return None
    if noise != "joint":
        raise SettingError(f"Unknown kind of noise '{noise}'. Choose level or joint.")
    if isinstance(ridge, Mapping):
        raise SettingError("A joint ridge is one number for the whole grid: give no dimension.")
    return _number(ridge, AUTO_RIDGE, "ridge")


def _check_setting(
    name: str, setting: object, dims: Sequence[str], whole: Mapping[str, Level]
) -> None:
    """Refuse a setting of a dimension that is not there, or of a level that was given whole."""
    if isinstance(setting, Mapping):
        unknown = [dim for dim in setting if dim not in dims]
        if unknown:
            raise SettingError(
                f"There is no dimension '{unknown[0]}' to set {name} of. "
                f"The data has {', '.join(dims)}."
            )
        twice = [dim for dim in setting if dim in whole]
    else:
        twice = list(whole) if setting not in ("auto", None) and len(whole) == len(dims) else []
    if twice:
        raise SettingError(f"Level '{twice[0]}' was given whole, and {name} beside it. Give one.")


def _pick(setting: Setting[T], dim: str, default: T) -> T:
    return setting.get(dim, default) if isinstance(setting, Mapping) else setting


def _number(value: float | str, automatic: float, what: str) -> float:
    if value == "auto":
        return automatic
    try:
        return float(value)
    except ValueError:
        raise SettingError(f"Invalid {what} '{value}'. Give a number, or auto.") from None
