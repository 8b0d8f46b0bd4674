"""Dimensions that share one distance where cells are missing: on a plane, or on the sphere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dkrls_cli.cascade.factors.choice import LONG
from dkrls_cli.cascade.level import (
    Level,
)
from dkrls_cli.errors import SettingError
from dkrls_cli.gaps.bases.sphere import sphere_memory
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.cf import (
    find_axis,
    place_of,
)
from dkrls_cli.model.planning.requests import LevelRequest
from dkrls_cli.model.poles.planning import SIGNS
from dkrls_cli.model.settings import FEWEST_IN_GROUP, Settings

# Coordinates of each dimension of a group that is chosen by itself: fewer have no shape to see, and
# more would need a matrix of their square.
GROUP_SIZES = (8, 2048)

# Degrees that latitudes span, or reach from the equator, from which a plane is no good map of the
# sphere: at 60 degrees a step of longitude is half of one at the equator.
_SPHERE_SPAN, _SPHERE_REACH = 60.0, 60.0

# Latitude of a pole, with what single precision may add.
_POLE = 90.0001

# Bytes of the matrices of a sphere at most. Those of steps of half a degree take 190 MB, or 370 MB
# if latitudes are not the same north and south.
_SPHERE_MEMORY = 2**29


def find_group(
    axes: Sequence[Axis], settings: Settings, levels: Sequence[Level | LevelRequest]
) -> tuple[int, ...]:
    """Return the places of the axes that may share one distance; none if there are none."""
    if settings.group == "none" or (settings.poles in SIGNS and settings.group == "auto"):
        return ()
    names = settings.group_names
    if names is None:
        return _natural_group(axes, levels)
    found = [find_axis(name, axes, purpose=" to group") for name in names]
    for axis in found:
        if axis.labels is not None or not 1 < axis.size <= GROUP_SIZES[1]:
            raise SettingError(
                f"'{axis.name}' cannot be in a group: it has {axis.size} coordinates"
                f"{' of text' if axis.labels is not None else ''}. Expected 2 to "
                f"{GROUP_SIZES[1]} numbers."
            )
    longest = max(axes, key=lambda axis: axis.size)
    if longest.size > GROUP_SIZES[1]:
        raise SettingError(
            f"'{longest.name}' has {longest.size} coordinates. Beside a group every dimension has "
            f"{GROUP_SIZES[1]} at most. Leave the group out, or fit a part."
        )
    places = tuple(sorted({list(axes).index(axis) for axis in found}))
    if len(places) < len(names):
        raise SettingError(f"The group '{','.join(names)}' names a dimension twice. Name it once.")
    _check_group(places, levels)
    return places


def _check_group(places: Sequence[int], levels: Sequence[Level | LevelRequest]) -> None:
    """Raise SettingError if levels of a group are given different kernels, or cycles."""
    own = [level for level in (levels[p] for p in places) if isinstance(level, LevelRequest)]
    if len(own) < len(places) or len({level.family for level in own}) > 1:
        raise SettingError(
            "The dimensions of a group have one kernel. Give none, or the same for all of them."
        )


def _natural_group(axes: Sequence[Axis], levels: Sequence[Level | LevelRequest]) -> tuple[int, ...]:
    """Return the places of latitude and longitude, or of the axes of a map; none without both.

    Beside a group, every other dimension has a matrix of its square as well.
    """
    if any(axis.size > GROUP_SIZES[1] for axis in axes):
        return ()
    kinds = [place_of(axis) for axis in axes]
    for wanted in (("latitude", "longitude"), ("projection", "projection")):
        found = [place for place, kind in enumerate(kinds) if kind in wanted]
        fits = all(GROUP_SIZES[0] <= axes[p].size <= GROUP_SIZES[1] for p in found)
        open_ones = all(_is_open(levels[place]) for place in found)
        if sorted(str(kinds[p]) for p in found) == sorted(wanted) and fits and open_ones:
            return tuple(found)
    return ()


def is_sphere(
    axes: Sequence[Axis], group: Sequence[int], levels: Sequence[Level | LevelRequest]
) -> bool:
    """Return whether a group has distances on the sphere.

    Its axes are then latitude and longitude, which goes round. Where latitudes are few and near the
    equator a plane serves as well, and so it does for a grid that is too fine for the matrices of a
    sphere, or where the user has given two sigmas.
    """
    by_kind = {place_of(axes[place]): (axes[place], levels[place]) for place in group}
    if len(group) != FEWEST_IN_GROUP or by_kind.keys() != {"latitude", "longitude"}:
        return False
    (latitude, own), (longitude, other) = by_kind["latitude"], by_kind["longitude"]
    if not (isinstance(own, LevelRequest) and isinstance(other, LevelRequest)):
        return False
    farthest = float(np.abs(latitude.numbers).max())
    wide = np.ptp(latitude.numbers) >= _SPHERE_SPAN or farthest >= _SPHERE_REACH
    return bool(
        own.period is None
        and other.period is not None
        and other.period == longitude.turn
        and own.sigma == other.sigma
        and farthest <= _POLE
        and wide
        and latitude.size <= LONG  # a search sees longer ones through windows that it moves
        and sphere_memory(latitude.numbers, longitude.numbers) <= _SPHERE_MEMORY
    )


def _is_open(level: Level | LevelRequest) -> bool:
    """Return whether kernel and sigma of a level are to be chosen."""
    return isinstance(level, LevelRequest) and level.family is None and level.sigma is None
