"""Which missing cells are to be filled, as the options of fill say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dkrls_cli.cli import options as opt
from dkrls_cli.errors import InputError, SettingError

if TYPE_CHECKING:
    from dkrls_cli.arrays import Mask
    from dkrls_cli.grid.axes import Axis
    from dkrls_cli.grid.grid import Grid
    from dkrls_cli.model.model import Model


def gap_limits(texts: list[str] | None, axes: tuple[Axis, ...]) -> dict[int, float]:
    """The longest gaps to fill, by place of the dimension."""
    setting = opt.setting(texts, "--max-gap") if texts else {}
    if not isinstance(setting, dict):
        raise SettingError(f"--max-gap {setting} names no dimension: --max-gap DIM={setting}.")
    names = [axis.name for axis in axes]
    limits = {}
    for dim, text in setting.items():
        if dim not in names:
            raise SettingError(f"There is no dimension '{dim}'. The data has {', '.join(names)}.")
        limits[names.index(dim)] = _length(axes[names.index(dim)], text)
    return limits


def _length(axis: Axis, text: str) -> float:
    try:
        length = float(text)
    except ValueError:
        if axis.time is None:
            raise SettingError(f"--max-gap {axis.name}={text}: that is not a number.") from None
        length = axis.time.length(text)
    if not length > 0:
        raise SettingError(f"--max-gap {axis.name}={text}: a length is above 0.")
    return length


def cells_to_fill(
    whole: Grid, last: str, mask: str, limits: dict[int, float]
) -> tuple[Mask, dict[str, int]]:
    """The missing cells to fill, and how many are left for which reason."""
    import numpy as np

    from dkrls_cli.gaps.pattern import gap_lengths

    missing = np.isnan(whole.values)
    wanted = missing.copy()
    left = {"left as masked": leave(wanted, masked(whole, missing, mask, last))}
    for place, limit in limits.items():
        axis = whole.axes[place]
        lengths = gap_lengths(missing, place, axis.numbers)
        left[f"left in gaps along {axis.name}"] = leave(wanted, lengths > limit * (1 + 1e-9))
    return wanted, {reason: count for reason, count in left.items() if count}


def leave(wanted: Mask, cells: Any) -> int:
    """Take cells out of those wanted; how many went."""
    before = int(wanted.sum())
    wanted &= ~cells
    return before - int(wanted.sum())


def leave_beyond(whole: Grid, model: Model, wanted: Mask) -> dict[str, int]:
    """Leave cells at coordinates where the model could only extrapolate; how many, by reason."""
    from dkrls_cli.circle import outside

    left = {}
    for place, (axis, known) in enumerate(zip(whole.axes, model.axes, strict=True)):
        beyond = outside(axis.numbers, known.numbers, model.cascade.levels[place].kernel.period)
        count = leave(wanted, _along(beyond, place, wanted.ndim))
        if count:
            left[f"left beyond the data along {axis.name}"] = count
    return left


def _along(cells: Any, place: int, ndim: int) -> Any:
    return cells.reshape([-1 if axis == place else 1 for axis in range(ndim)])


def masked(whole: Grid, missing: Mask, mask: str, last: str) -> Any:
    """Cells that are to stay missing."""
    import numpy as np

    from dkrls_cli.gaps.pattern import always_missing

    place = whole.dims.index(last)
    if mask == "none":
        return np.zeros((), bool)
    if mask == "always":
        return always_missing(missing, place)
    if mask == "first":
        return np.take(missing, [0], axis=place)
    return mask_in_file(whole, mask)


def mask_in_file(whole: Grid, path: str) -> Any:
    """Cells for which a file has 0 or nothing, on some dimensions of the grid."""
    import numpy as np

    from dkrls_cli.files.reading import open_file

    grid = open_file(path).grid()
    unknown = [dim for dim in grid.dims if dim not in whole.dims]
    if unknown:
        raise InputError(
            f"The mask '{path}' has a dimension '{unknown[0]}'. The grid has "
            f"{', '.join(whole.dims)}."
        )
    for axis in grid.axes:
        own = whole.axes[whole.dims.index(axis.name)]
        if axis.texts != own.texts:
            raise InputError(f"The mask '{path}' has other coordinates of '{axis.name}'.")
    order = sorted(range(len(grid.dims)), key=lambda place: whole.dims.index(grid.dims[place]))
    shape = [a.size if a.name in grid.dims else 1 for a in whole.axes]
    return ~(np.nan_to_num(grid.values.transpose(order)) != 0).reshape(shape)
