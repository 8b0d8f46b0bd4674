"""Settings that do not go together, or not with the data, refused before a value is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dkrls_cli.cascade.level import (
    Level,
)
from dkrls_cli.errors import SettingError
from dkrls_cli.grid.axes import Axis
from dkrls_cli.model.planning.groups import GROUP_SIZES
from dkrls_cli.model.poles.planning import SIGNS
from dkrls_cli.model.settings import Settings


def refuse_with_gaps(settings: Settings) -> None:
    """Raise SettingError for a setting that a grid with missing cells does not allow."""
    if settings.folds is not None:
        raise SettingError(
            "Folds are for complete grids, and cells are missing here: settings are then chosen "
            "by hiding cells as the gaps do. Leave the folds out, or fill the gaps first."
        )
    if settings.noise == "level":
        raise SettingError(
            "Missing cells are solved for under one joint ridge only here, and a ridge per level "
            "is asked for. Leave the noise auto."
        )


def refuse_poles_of_means(settings: Settings) -> None:
    """Raise SettingError if means over cells are to go on across the poles."""
    if settings.poles in SIGNS:
        raise SettingError(
            "Data that are means over cells end at the poles: rows behind them have no cells. Take "
            "the data as values at coordinates, or leave the way across the poles open.",
            setting="poles",
        )


def refuse_poles(settings: Settings) -> None:
    """Raise SettingError if data with errors or a group is to go on across the poles."""
    if settings.poles in SIGNS:
        raise SettingError(
            f"The data cannot go on across the poles as a {settings.poles}: observations with "
            "errors end there, and a group has distances of its own. Leave one of them out.",
            setting="poles",
        )


def refuse_with_errors(settings: Settings, axes: Sequence[Axis]) -> None:
    """Raise SettingError for what observations with errors do not allow."""
    if settings.noise == "level" or isinstance(settings.ridge, Mapping):
        raise SettingError(
            "Errors of the observations need one joint ridge, and ridges per level are asked for. "
            "Leave the noise auto and give one ridge or none, or leave the errors out."
        )
    if settings.folds is not None:
        raise SettingError(
            "Folds do not go with errors of the observations: settings are then chosen by hiding "
            "single cells. Leave the folds out."
        )
    longest = max(axes, key=lambda axis: axis.size)
    if longest.size > GROUP_SIZES[1]:
        raise SettingError(
            f"'{longest.name}' has {longest.size} coordinates. With errors of the observations "
            f"every dimension has {GROUP_SIZES[1]} at most. Leave the errors out, or fit a part."
        )


def check_levels(
    settings: Settings, dims: Sequence[str], whole: Mapping[str, Level], joint: bool
) -> None:
    """Raise SettingError if a setting is given beside a level that was given whole."""
    for name in ("kernel", "sigma", "ridge", "period"):
        value = getattr(settings, name)
        if isinstance(value, Mapping):
            twice = [dim for dim in value if dim in whole]
        else:
            none_open = len(whole) == len(dims) and value not in ("auto", None)
            twice = list(whole) if none_open and not (name == "ridge" and joint) else []
        if twice:
            raise SettingError(
                f"Level '{twice[0]}' was given whole, and {name} beside it. Give one of them."
            )
