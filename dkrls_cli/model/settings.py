"""From what the user said to the levels of a hierarchy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from dkrls_cli.cascade.kernels import FAMILIES
from dkrls_cli.cascade.level import Level
from dkrls_cli.errors import SettingError
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.cf import hierarchy_of, natural_cycles, natural_period

T = TypeVar("T")
Setting: TypeAlias = T | Mapping[str, T]
"""One value for all levels, or a value per dimension (``auto`` where one is not named)."""

_AUTO: float | str = "auto"
_AUTO_PERIOD: float | str | None = "auto"


@dataclass(frozen=True)
class Wish:
    """What the user said about one level; None is to be chosen, but for the period: no circle.

    The cycles are those that the data may repeat with, and that may be chosen.
    """

    name: str
    family: str | None = None
    sigma: float | None = None
    ridge: float | None = None
    period: float | None = None
    cycles: tuple[float, ...] = ()


@dataclass(frozen=True)
class Wishes:
    """What the user said about a model.

    Attributes
    ----------
    hierarchy
        Names of the dimensions from level 0 to the last.
    levels
        Per axis of the data: a level that was given whole, or what is wished of it.
    joint
        Whether one ridge is to serve the whole grid.
    joint_ridge
        That ridge, or None if it is to be chosen.
    """

    hierarchy: tuple[str, ...]
    levels: tuple[Level | Wish, ...]
    joint: bool = False
    joint_ridge: float | None = None


def read_wishes(
    axes: Sequence[Axis],
    levels: Sequence[Level | str] | None = None,
    *,
    kernel: Setting[str] = "auto",
    sigma: Setting[float | str] = "auto",
    ridge: Setting[float | str] = "auto",
    period: Setting[float | str | None] = "auto",
    noise: str = "auto",
    complete: bool = True,
) -> Wishes:
    """Check what the user said against the axes of the data.

    Without `levels`, the dimensions stay in the order of the axes, a time-like one last. A period
    that is not given is that of the circle the coordinates close, if they do. Complete grids have
    a ridge per level unless told otherwise; with missing cells there is one for the whole grid.
    """
    dims = [axis.name for axis in axes]
    whole = {level.name: level for level in levels or () if isinstance(level, Level)}
    joint = noise == "joint" or not complete
    settings = {"kernel": kernel, "sigma": sigma, "ridge": ridge, "period": period}
    for name, setting in settings.items():
        _check_setting(name, setting, dims, {} if name == "ridge" and joint else whole)
    if noise not in ("auto", "level", "joint"):
        raise SettingError(f"Unknown kind of noise '{noise}'. Choose level, joint or auto.")
    if noise == "level" and not complete:
        raise SettingError(
            "Cells are missing, and through gaps there is one joint ridge only: leave noise auto, "
            "or fill the gaps first."
        )
    if joint and isinstance(ridge, Mapping):
        raise SettingError("A joint ridge is one number for the whole grid: give no dimension.")

    def wish(axis: Axis) -> Wish:
        circle = _pick(period, axis.name, _AUTO_PERIOD)
        return Wish(
            axis.name,
            _family(_pick(kernel, axis.name, "auto")),
            _number(_pick(sigma, axis.name, _AUTO), "sigma"),
            None if joint else _number(_pick(ridge, axis.name, _AUTO), "ridge"),
            natural_period(axis) if circle == "auto" else _period(circle),
            natural_cycles(axis) if circle == "auto" else (),
        )

    chosen = tuple(whole.get(axis.name) or wish(axis) for axis in axes)
    joint_ridge = None if isinstance(ridge, Mapping) else _number(ridge, "ridge")
    names = None if levels is None else [lv if isinstance(lv, str) else lv.name for lv in levels]
    return Wishes(hierarchy_of(axes, names), chosen, joint, joint_ridge if joint else None)


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


def _family(name: str) -> str | None:
    if name != "auto" and name not in FAMILIES:
        raise SettingError(
            f"Unknown kernel '{name}'. Choose one of {', '.join(FAMILIES)}, or auto."
        )
    return None if name == "auto" else name


def _period(value: float | str | None) -> float | None:
    return None if value is None or value == "none" else _number(value, "period")


def _number(value: float | str, what: str) -> float | None:
    if value == "auto":
        return None
    try:
        return float(value)
    except ValueError:
        raise SettingError(f"Invalid {what} '{value}'. Give a number, or auto.") from None
