"""Missing cells of a grid, filled by a model of the observed ones.

A model is fitted through the gaps and answers in them. Some missing cells are left as they are:
those that a mask keeps missing (land), those in gaps longer than a limit or farther from data, and
those at coordinates beyond the observed ones, where a model could only extrapolate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.cascade.level import Level
from dkrls_cli.errors import SettingError
from dkrls_cli.gaps.bars import refuse_long
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.cf import hierarchy_of
from dkrls_cli.grid.grid import (
    REALIZATION,
    Coordinates,
    ErrorLike,
    Grid,
    GridLike,
    as_grid,
    ensemble_variable,
    is_labelled,
    realization_axis,
    std_variable,
    to_data_array,
)
from dkrls_cli.grid.observations import with_errors
from dkrls_cli.model.answering.answers import Rules, ask
from dkrls_cli.model.answering.bounds import BoundsLike
from dkrls_cli.model.answering.ensembles import check_ensemble, draw_members
from dkrls_cli.model.choosing import ChoiceCallback
from dkrls_cli.model.chunked.loading import refuse_large
from dkrls_cli.model.filling.cells import MaskLike, choose_cells, leave_out
from dkrls_cli.model.filling.lengths import Distance, GapLimits
from dkrls_cli.model.fit import fit_grid
from dkrls_cli.model.model import Model
from dkrls_cli.model.planning.refusals import refuse_with_gaps
from dkrls_cli.model.poles.planning import Poles
from dkrls_cli.model.settings import DEFAULTS, PerLevel, Settings
from dkrls_cli.model.training.lost import drop_lost_slices
from dkrls_cli.model.training.result import Tell

if TYPE_CHECKING:
    import xarray as xr


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
        Standard errors: at observed cells those given or 0, NaN at cells that are still missing;
        None if they were not asked for.
    left
        Number of cells that are still missing, by reason.
    model
        The model that filled the cells, or None if there was nothing to fill.
    note
        What was decided about land and gaps, without a full stop, where the data does not show it.
    members
        The members of an ensemble, each the whole grid, drawn one at a time; None if none was asked
        for.
    """

    grid: Grid
    cells: Mask
    std: Array | None
    left: Mapping[str, int]
    model: Model | None
    note: str = ""
    members: Iterator[Array] | None = None


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
    bounds: BoundsLike = ...,
    mask: MaskLike | None = ...,
    max_gap: GapLimits | None = ...,
    within: Distance | None = ...,
    group: str | Sequence[str] = ...,
    accept_inexact: bool = ...,
    poles: Poles = ...,
    robust: bool = ...,
    obs_error: ErrorLike | None = ...,
    max_std: float | None = ...,
    std: Literal[False] = ...,
    ensemble: None = ...,
    seed: int = ...,
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
    bounds: BoundsLike = ...,
    mask: MaskLike | None = ...,
    max_gap: GapLimits | None = ...,
    within: Distance | None = ...,
    group: str | Sequence[str] = ...,
    accept_inexact: bool = ...,
    poles: Poles = ...,
    robust: bool = ...,
    obs_error: ErrorLike | None = ...,
    max_std: float | None = ...,
    std: Literal[True],
    ensemble: int | None = ...,
    seed: int = ...,
    extrapolate: bool = ...,
) -> xr.Dataset: ...


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
    bounds: BoundsLike = ...,
    mask: MaskLike | None = ...,
    max_gap: GapLimits | None = ...,
    within: Distance | None = ...,
    group: str | Sequence[str] = ...,
    accept_inexact: bool = ...,
    poles: Poles = ...,
    robust: bool = ...,
    obs_error: ErrorLike | None = ...,
    max_std: float | None = ...,
    std: bool = ...,
    ensemble: int,
    seed: int = ...,
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
    bounds: BoundsLike = DEFAULTS.bounds,
    mask: MaskLike | None = None,
    max_gap: GapLimits | None = None,
    within: Distance | None = None,
    group: str | Sequence[str] = DEFAULTS.group,
    accept_inexact: bool = DEFAULTS.accept_inexact,
    poles: Poles = DEFAULTS.poles,
    robust: bool = DEFAULTS.robust,
    obs_error: ErrorLike | None = None,
    max_std: float | None = None,
    std: bool = False,
    ensemble: int | None = None,
    seed: int = 0,
    extrapolate: bool = False,
) -> xr.DataArray | xr.Dataset:
    """Fill the missing cells of a grid; all other cells stay as they are.

    Parameters
    ----------
    data
        An xarray.DataArray, a Grid or an array of numbers; NaN where cells are missing. A chunked
        DataArray is loaded, and refused if it does not fit into memory.
    coordinates
        For an array of numbers, a coordinate vector per axis, by name or in order. Without them,
        the positions 0, 1, 2, ...
    levels, kernel, sigma, ridge, period, bounds
        Settings of the model that fills the gaps, as for :func:`dkrls_cli.fit`.
    mask
        Which cells stay missing. ``always``: those that never have data, like land: see
        :func:`dkrls_cli.model.answering.masks.lasting_mask`. ``first``: those missing in the first
        slice of the last level. ``none``: no cell. An array: those where it is 0, False or NaN; a
        DataArray or Grid on some dimensions of the grid with the same coordinates, or plain
        numbers of a shape that broadcasts to that of the grid. The default is ``always``, with
        `within` ``none``.
    max_gap
        Fill only gaps up to this length, by dimension: a number in units of the coordinates, or
        for time a duration like ``5D``. The length of a gap is the distance from the last observed
        coordinate before it to the first one after.
    within
        Fill only cells at most this far from the nearest observed cell. A number counts cells,
        along the dimensions that are places (latitude, longitude, vertical, map projection), or
        without any along all but the last level. A mapping from dimension to distance, as
        for `max_gap`, is in units of the coordinates: the observed cell lies in the ellipse with
        these half axes, at the same coordinates of all other dimensions.
    group, accept_inexact, poles
        As for :func:`dkrls_cli.fit`.
    robust
        The same: cells that the others speak against do not tell what is missing. They stay as they
        are.
    obs_error
        Standard errors of the data, as for :func:`dkrls_cli.fit`. The filled cells are then those
        of the quantity itself. Observed cells stay as they are, and their standard error is the
        one that is given.
    max_std
        Leave cells missing whose standard error is above this number, in units of the data.
    std
        Whether to return the standard errors of the filled cells as well.
    ensemble
        Number of members of an ensemble to return as well; None for none. In each, the errors of
        the filled cells are drawn at random, and go together in space and time.
    seed
        Seed of the random numbers of the members.
    extrapolate
        Whether to fill cells at coordinates beyond the observed ones.

    Returns
    -------
    xarray.DataArray or xarray.Dataset
        The data with its gaps filled, attributes and coordinates kept. With `std`, a dataset of
        the data and its standard errors, named like the data with ``_std`` behind: 0 at observed
        cells, or what `obs_error` says, NaN at cells that are still missing. With `ensemble`, a
        dataset that also has the members, named like the data with ``_ensemble`` behind, first
        dimension ``realization``: observed cells are the data in all of them.

    Raises
    ------
    InputError
        If the data cannot be used, or the mask does not fit it.
    SettingError
        If a setting is not possible, or not for this grid.
    ConvergenceError
        If missing cells could not be solved for.

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
    >>> dict(fill(values, {"x": x, "t": t}, ensemble=5).values_ensemble.sizes)
    {'realization': 5, 'x': 16, 't': 20}
    """
    refuse_large(data, gaps=True)
    grid = with_errors(data, as_grid(data, coordinates), obs_error)
    if ensemble is not None and is_labelled(data):  # a scalar may have the name as well
        check_ensemble(grid.name, {str(name) for name in data.coords}, ensemble, seed)
    settings = Settings(
        levels,
        kernel,
        sigma,
        ridge,
        period,
        bounds=bounds,
        group=group,
        accept_inexact=accept_inexact,
        poles=poles,
        robust=robust,
    )
    found = fill_grid(
        grid,
        settings,
        mask=mask,
        max_gap=max_gap,
        within=within,
        max_std=max_std,
        std=std,
        ensemble=ensemble,
        seed=seed,
        extrapolate=extrapolate,
    )
    filled = _labelled(data, found.grid)
    beside: dict[str, xr.DataArray] = {}
    if found.members is not None and ensemble is not None:
        name, attrs = ensemble_variable(grid.name, grid.attrs)
        beside[name] = _stacked(filled, found.members, ensemble, attrs)
    if found.std is not None:
        name, attrs = std_variable(grid.name, grid.attrs)
        errors = filled.copy(data=found.std.reshape(filled.shape))
        errors.attrs = attrs
        filled.attrs["ancillary_variables"] = name
        beside = {name: errors, **beside}
    return filled.to_dataset(name=grid.name).assign(beside) if beside else filled


def fill_grid(
    grid: Grid,
    settings: Settings = DEFAULTS,
    *,
    mask: MaskLike | None = None,
    max_gap: GapLimits | None = None,
    within: Distance | None = None,
    max_std: float | None = None,
    std: bool = False,
    ensemble: int | None = None,
    seed: int = 0,
    extrapolate: bool = False,
    watch: ChoiceCallback | None = None,
    tell: Tell = lambda share: None,
) -> Filled:
    """Fill the missing cells of a grid as :func:`fill` does, and say what was filled and left.

    Parameters
    ----------
    grid
        Values on named axes, NaN where cells are missing. A column that repeats a longitude one
        turn later is filled, but the model is fitted without it.
    settings
        Settings of the model that fills the gaps.
    mask, max_gap, within, max_std, std, ensemble, seed, extrapolate
        As for :func:`fill`.
    watch
        As for :func:`dkrls_cli.fit`.
    tell
        Called with the share that is done, 0 to 1, roughly.

    Returns
    -------
    Filled
        The filled grid, which cells were filled, and the counts of those left.

    Raises
    ------
    InputError, SettingError, ConvergenceError
        As for :func:`fill`.

    Examples
    --------
    >>> values = np.outer(np.ones(4), np.arange(6.0))
    >>> values[2, 3] = values[:, 5] = np.nan
    >>> found = fill_grid(as_grid(values), mask="none")
    >>> int(found.cells.sum()), found.left
    (1, {'left beyond the data along dim_1': 4})
    """
    if max_std is not None and not max_std > 0:
        raise SettingError(f"Invalid largest standard error {max_std}. It must be above 0.")
    if ensemble is not None:
        check_ensemble(grid.name, grid.dims, ensemble, seed)
    chosen = choose_cells(grid, settings, mask, max_gap, within)
    cells, left = chosen.cells, dict(chosen.left)
    members: Iterator[Array] | None = None
    if not cells.any():
        members = None if ensemble is None else repeat(grid.values, ensemble)
        errors = _no_errors(grid) if std else None
        return Filled(grid, cells, errors, left, None, chosen.note, members)
    refuse_with_gaps(settings)
    if ensemble is not None:
        _refuse_long(grid)
    land = _fills_land(grid, settings, cells)
    model = fit_grid(grid, settings, watch=watch, land=land, outages=True, tell=tell)
    asked = {axis.name: axis.plain if axis.labels is None else axis.texts for axis in grid.axes}
    axes = model.axes_at(asked)
    if not extrapolate:
        left |= _leave_beyond(cells, grid, model.outside(axes))
    errors = None
    if std or max_std is not None:
        found = model.std_on(axes)
        left |= _leave_uncertain(cells, found, max_std)
        errors = np.where(cells, found, _no_errors(grid)) if std else None
    values = np.where(cells, model.values_on(axes), grid.values)
    filled = replace(grid, values=values.astype(grid.values.dtype, copy=False))
    if ensemble is not None:
        members = _members(filled, cells, model, axes, ensemble, seed)
    return Filled(filled, cells, errors, left, model, chosen.note, members)


def _refuse_long(grid: Grid) -> None:
    """Raise SettingError before a fit if no members could be drawn after it."""
    kept, _ = drop_lost_slices(grid)
    if not kept.is_complete:
        refuse_long(kept.dims, kept.values.shape)


def _members(
    filled: Grid, cells: Mask, model: Model, axes: Sequence[Axis], ensemble: int, seed: int
) -> Iterator[Array]:
    """Return an iterator over grids whose filled cells have errors drawn at random."""
    drawn = draw_members(ask(model, axes, Rules("extrapolate", "none")), ensemble, seed)
    return (np.where(cells, member, filled.values) for member in drawn)


def _fills_land(grid: Grid, settings: Settings, cells: Mask) -> bool:
    """Return whether cells are to be filled that are missing all along the last level."""
    last = hierarchy_of(grid.axes, settings.level_names)[-1]
    never = np.isnan(grid.values).all(axis=grid.dims.index(last), keepdims=True)
    return bool((cells & never).any())


def _leave_beyond(cells: Mask, grid: Grid, outside: Sequence[Mask]) -> dict[str, int]:
    """Leave the cells at coordinates outside the data; return how many, by reason."""
    left = {}
    for place, (axis, beyond) in enumerate(zip(grid.axes, outside, strict=True)):
        beside = [-1 if other == place else 1 for other in range(cells.ndim)]
        count = leave_out(cells, beyond.reshape(beside))
        if count:
            left[f"left beyond the data along {axis.name}"] = count
    return left


def _leave_uncertain(cells: Mask, std: Array, most: float | None) -> dict[str, int]:
    """Leave the cells with a larger standard error than `most`; return how many, by reason."""
    if most is None:
        return {}
    count = leave_out(cells, std > most)
    return {f"left with a standard error above {most:g}": count} if count else {}


def _no_errors(grid: Grid) -> Array:
    """Return standard errors of an unchanged grid: those given or 0, NaN at missing cells."""
    return np.where(np.isnan(grid.values), np.nan, 0.0 if grid.errors is None else grid.errors)


def _labelled(data: GridLike, filled: Grid) -> xr.DataArray:
    """Return a filled grid as a DataArray: a copy of the data, where that is one."""
    if is_labelled(data):
        return data.copy(data=filled.values.reshape(data.shape).astype(data.dtype))
    return to_data_array(filled.values, filled.axes, filled.name, filled.attrs)


def _stacked(
    filled: xr.DataArray, members: Iterator[Array], count: int, attrs: Mapping[str, Any]
) -> xr.DataArray:
    """Return the members of an ensemble as one array on the coordinates of the filled data."""
    values = np.empty((count, *filled.shape))
    for number, member in enumerate(members):
        values[number] = member.reshape(filled.shape)
    axis = realization_axis(count)
    array = filled.expand_dims({REALIZATION: axis.stored}).copy(data=values)
    array.coords[REALIZATION].attrs.update(axis.attrs)
    array.attrs = dict(attrs)
    return array
