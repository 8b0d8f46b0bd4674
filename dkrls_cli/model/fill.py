"""Missing cells of a grid, filled by a model of the observed ones.

A model is fitted through the gaps and answers in them. Some missing cells are left as they are:
those that a mask keeps missing (land), those in gaps longer than a limit, and those at coordinates
beyond the observed ones, where a model could only extrapolate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, overload

import numpy as np

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.cascade.level import Level
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.gaps.pattern import always_missing, gap_lengths
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.cf import hierarchy_of
from dkrls_cli.grid.grid import (
    Coordinates,
    Grid,
    GridLike,
    as_grid,
    is_labelled,
    std_variable,
    to_data_array,
)
from dkrls_cli.model.choosing import ChoiceCallback
from dkrls_cli.model.fit import fit_grid
from dkrls_cli.model.model import Model
from dkrls_cli.model.settings import DEFAULTS, PerLevel, Settings

if TYPE_CHECKING:
    import xarray as xr

MaskLike: TypeAlias = GridLike
"""``always``, ``first``, ``none``, or an array: see :func:`fill`."""

GapLimits: TypeAlias = Mapping[str, float | str]
"""The longest gaps to fill, by dimension: a number, or for time a duration like 5D."""

# Relative rounding of coordinates: a gap of just the limit is filled, however it is computed.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Filled:
    """A grid with missing cells filled, and what was done to it.

    Attributes
    ----------
    grid
        The grid, with the filled values.
    cells
        Which cells were filled, in the shape of the grid.
    std
        Standard errors: 0 at observed cells, NaN at cells that are still missing; None if they
        were not asked for.
    left
        Number of cells that are still missing, by reason.
    model
        The model that filled the cells, or None if there was nothing to fill.
    """

    grid: Grid
    cells: Mask
    std: Array | None
    left: Mapping[str, int]
    model: Model | None


@overload
def fill(
    data: GridLike,
    coordinates: Coordinates | None = ...,
    *,
    levels: Sequence[Level | str] | None = ...,
    kernel: PerLevel[str] = ...,
    sigma: PerLevel[float | str] = ...,
    ridge: PerLevel[float | str] = ...,
    period: PerLevel[float | str | None] = ...,
    mask: MaskLike = ...,
    max_gap: GapLimits | None = ...,
    std: Literal[False] = ...,
    extrapolate: bool = ...,
) -> xr.DataArray: ...


@overload
def fill(
    data: GridLike,
    coordinates: Coordinates | None = ...,
    *,
    levels: Sequence[Level | str] | None = ...,
    kernel: PerLevel[str] = ...,
    sigma: PerLevel[float | str] = ...,
    ridge: PerLevel[float | str] = ...,
    period: PerLevel[float | str | None] = ...,
    mask: MaskLike = ...,
    max_gap: GapLimits | None = ...,
    std: Literal[True],
    extrapolate: bool = ...,
) -> xr.Dataset: ...


def fill(
    data: GridLike,
    coordinates: Coordinates | None = None,
    *,
    levels: Sequence[Level | str] | None = DEFAULTS.levels,
    kernel: PerLevel[str] = DEFAULTS.kernel,
    sigma: PerLevel[float | str] = DEFAULTS.sigma,
    ridge: PerLevel[float | str] = DEFAULTS.ridge,
    period: PerLevel[float | str | None] = DEFAULTS.period,
    mask: MaskLike = "always",
    max_gap: GapLimits | None = None,
    std: bool = False,
    extrapolate: bool = False,
) -> xr.DataArray | xr.Dataset:
    """Fill the missing cells of a grid; all other cells stay as they are.

    Parameters
    ----------
    data
        An xarray.DataArray, a Grid or an array of numbers; NaN where cells are missing.
    coordinates
        For an array of numbers, a coordinate vector per axis, by name or in order. Without them,
        the positions 0, 1, 2, ...
    levels, kernel, sigma, ridge, period
        Settings of the model that fills the gaps, as for :func:`dkrls_cli.fit`.
    mask
        Which cells stay missing. ``always``: those missing in every slice of the last level, like
        land. ``first``: those missing in its first slice. ``none``: no cell. An array: those where
        it is 0, False or NaN; a DataArray or Grid on some dimensions of the grid with the same
        coordinates, or plain numbers of a shape that broadcasts to that of the grid.
    max_gap
        Fill only gaps up to this length, by dimension: a number in units of the coordinates, or
        for time a duration like ``5D``. The length of a gap is the distance from the last observed
        coordinate before it to the first one after.
    std
        Whether to return the standard errors of the filled cells as well.
    extrapolate
        Whether to fill cells at coordinates beyond the observed ones.

    Returns
    -------
    xarray.DataArray or xarray.Dataset
        The data with its gaps filled, attributes and coordinates kept. With `std`, a dataset of
        the data and its standard errors, named like the data with ``_std`` behind: 0 at observed
        cells, NaN at cells that are still missing.

    Raises
    ------
    InputError
        If the data cannot be used, or the mask does not fit it.
    SettingError
        If a setting is not possible, or not for this grid.

    Examples
    --------
    >>> x, t = np.linspace(0, 3, 16), np.arange(20.0)
    >>> values = np.outer(np.sin(x), np.cos(t / 4))
    >>> values[3:5, 7:9] = np.nan
    >>> filled = fill(values, {"x": x, "t": t})
    >>> bool(abs(filled.sel(x=x[3], t=7.0) - np.sin(x[3]) * np.cos(7 / 4)) < 0.01)
    True
    >>> list(fill(values, {"x": x, "t": t}, std=True))
    ['values', 'values_std']
    """
    grid = as_grid(data, coordinates)
    settings = Settings(levels, kernel, sigma, ridge, period)
    found = fill_grid(grid, settings, mask=mask, max_gap=max_gap, std=std, extrapolate=extrapolate)
    filled = _labelled(data, found.grid)
    if found.std is None:
        return filled
    name, attrs = std_variable(grid.name, grid.attrs)
    errors = filled.copy(data=found.std.reshape(filled.shape))
    errors.attrs = attrs
    filled.attrs["ancillary_variables"] = name
    return filled.to_dataset(name=grid.name).assign({name: errors})


def fill_grid(
    grid: Grid,
    settings: Settings = DEFAULTS,
    *,
    mask: MaskLike = "always",
    max_gap: GapLimits | None = None,
    std: bool = False,
    extrapolate: bool = False,
    watch: ChoiceCallback | None = None,
) -> Filled:
    """Fill the missing cells of a grid as :func:`fill` does, and say what was filled and left.

    Parameters
    ----------
    grid
        Values on named axes, NaN where cells are missing. A column that repeats a longitude one
        turn later is filled, but the model is fitted without it.
    settings
        Settings of the model that fills the gaps.
    mask, max_gap, std, extrapolate
        As for :func:`fill`.
    watch
        As for :func:`dkrls_cli.fit`.

    Returns
    -------
    Filled
        The filled grid, which cells were filled, and the counts of those left.

    Raises
    ------
    InputError, SettingError
        As for :func:`fill`.

    Examples
    --------
    >>> values = np.outer(np.ones(4), np.arange(6.0))
    >>> values[2, 3] = values[:, 5] = np.nan
    >>> found = fill_grid(as_grid(values), mask="none")
    >>> int(found.cells.sum()), found.left
    (1, {'left beyond the data along dim_1': 4})
    """
    cells, left = choose_cells(grid, settings, mask, max_gap)
    if not cells.any():
        return Filled(grid, cells, _no_errors(grid) if std else None, left, None)
    model = fit_grid(_drop_repeats(grid), settings, watch=watch)
    asked = {axis.name: axis.plain if axis.labels is None else axis.texts for axis in grid.axes}
    axes = model.axes_at(asked)
    if not extrapolate:
        left |= _leave_beyond(cells, grid, model.outside(axes))
    values = np.where(cells, model.values_on(axes), grid.values)
    errors = _no_errors(grid) if std else None
    if errors is not None:
        errors[cells] = model.std_on(axes)[cells]
    filled = replace(grid, values=values.astype(grid.values.dtype, copy=False))
    return Filled(filled, cells, errors, left, model)


def choose_cells(
    grid: Grid, settings: Settings, mask: MaskLike, max_gap: GapLimits | None
) -> tuple[Mask, dict[str, int]]:
    """Return which missing cells to fill, and how many are left by mask and length of gap.

    Parameters
    ----------
    grid
        Values on named axes, NaN where cells are missing.
    settings
        Of these, the levels: the last is the one along which a mask looks.
    mask, max_gap
        As for :func:`fill`.

    Returns
    -------
    Mask
        The cells to fill, in the shape of the grid.
    dict
        Number of cells left, by reason.

    Raises
    ------
    InputError
        If the mask does not fit the grid.
    SettingError
        If the mask, a dimension or a length is not a possible one.
    """
    last = grid.dims.index(hierarchy_of(grid.axes, settings.level_names)[-1])
    limits = _gap_limits(max_gap or {}, grid.axes)
    missing = np.isnan(grid.values)
    cells = missing.copy()
    left = {"left as masked": _leave(cells, _masked(grid, missing, mask, last))}
    for place, limit in limits.items():
        axis = grid.axes[place]
        too_long = gap_lengths(missing, place, axis.numbers) > limit * (1 + _ROUNDING)
        left[f"left in gaps along {axis.name}"] = _leave(cells, too_long)
    return cells, {reason: count for reason, count in left.items() if count}


def _leave(cells: Mask, left: Mask) -> int:
    """Take some cells out of those to fill, in place, and return how many that were."""
    before = int(np.count_nonzero(cells))
    cells &= ~left
    return before - int(np.count_nonzero(cells))


def _leave_beyond(cells: Mask, grid: Grid, outside: Sequence[Mask]) -> dict[str, int]:
    """Leave the cells at coordinates outside the data; return how many, by reason."""
    left = {}
    for place, (axis, beyond) in enumerate(zip(grid.axes, outside, strict=True)):
        beside = [-1 if other == place else 1 for other in range(cells.ndim)]
        count = _leave(cells, beyond.reshape(beside))
        if count:
            left[f"left beyond the data along {axis.name}"] = count
    return left


def _no_errors(grid: Grid) -> Array:
    """Return standard errors of an unchanged grid: 0 at observed cells, NaN at missing ones."""
    return np.where(np.isnan(grid.values), np.nan, 0.0)


def _gap_limits(max_gap: GapLimits, axes: Sequence[Axis]) -> dict[int, float]:
    """Return the longest gaps to fill in units of the coordinates, by place of the axis."""
    places = {axis.name: place for place, axis in enumerate(axes)}
    limits = {}
    for dim, given in max_gap.items():
        if dim not in places:
            raise SettingError(f"There is no dimension '{dim}'. The data has {', '.join(places)}.")
        limits[places[dim]] = _length(axes[places[dim]], given)
    return limits


def _length(axis: Axis, given: float | str) -> float:
    """Return the length of a gap in units of the coordinates."""
    try:
        length = float(given)
    except ValueError:
        if axis.time is None:
            raise SettingError(
                f"Invalid longest gap '{given}' along '{axis.name}': that is not a number."
            ) from None
        length = axis.time.length(str(given))
    if not length > 0:
        raise SettingError(f"Invalid longest gap {given} along '{axis.name}'. It must be above 0.")
    return length


def _masked(grid: Grid, missing: Mask, mask: MaskLike, last: int) -> Mask:
    """Return the cells that stay missing, in a shape that broadcasts to that of the grid."""
    if not isinstance(mask, str):
        return ~_open_cells(grid, mask)
    if mask == "none":
        return np.zeros((), bool)
    if mask == "always":
        return always_missing(missing, last)
    if mask == "first":
        return np.take(missing, [0], axis=last)
    raise SettingError(
        f"Unknown mask '{mask}'. Choose from: always, first, none; or give an array."
    )


def _open_cells(grid: Grid, mask: MaskLike) -> Mask:
    """Return the cells that an array lets be filled: those where it is neither 0 nor NaN."""
    if isinstance(mask, Grid) or is_labelled(mask):
        return _aligned(grid, as_grid(mask))
    chosen: Mask = np.asarray(np.nan_to_num(as_grid(mask).values) != 0)
    try:
        np.broadcast_to(chosen, grid.values.shape)
    except ValueError:
        raise InputError(
            f"The mask has shape {chosen.shape}, which does not fit a grid of shape "
            f"{grid.values.shape}."
        ) from None
    return chosen


def _aligned(grid: Grid, mask: Grid) -> Mask:
    """Return where a mask on some dimensions of the grid is neither 0 nor NaN."""
    own = dict(zip(grid.dims, grid.axes, strict=True))
    for axis in mask.axes:
        if axis.name not in own:
            raise InputError(
                f"The mask '{mask.name}' has a dimension '{axis.name}'. The grid has "
                f"{', '.join(grid.dims)}."
            )
        if axis.texts != own[axis.name].texts:
            raise InputError(
                f"The mask '{mask.name}' has other coordinates of '{axis.name}' than the grid."
            )
    order = [mask.dims.index(dim) for dim in grid.dims if dim in mask.dims]
    shape = [axis.size if axis.name in mask.dims else 1 for axis in grid.axes]
    return np.asarray(np.nan_to_num(mask.values.transpose(order)).reshape(shape) != 0)


def _drop_repeats(grid: Grid) -> Grid:
    """Return the grid without columns that repeat a longitude one turn later."""
    from dkrls_cli.files.reading import drop_repeats
    from dkrls_cli.files.source import Source

    dtype = str(grid.values.dtype)
    source = drop_repeats(
        Source(grid.axes, grid.name, grid.attrs, grid.style, dtype, lambda: grid.values)
    )
    return replace(grid, values=source.load(), axes=source.axes)


def _labelled(data: GridLike, filled: Grid) -> xr.DataArray:
    """Return a filled grid as a DataArray: a copy of the data, where that is one."""
    if is_labelled(data):
        return data.copy(data=filled.values.reshape(data.shape).astype(data.dtype))
    return to_data_array(filled.values, filled.axes, filled.name, filled.attrs)
