"""Missing cells of a grid, filled by a model of the observed ones.

A model is fitted through the gaps and answers in them. Some missing cells are left as they are:
those that a mask keeps missing (land), those in gaps longer than a limit or farther from data, and
those at coordinates beyond the observed ones, where a model could only extrapolate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import numpy as np

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.cascade.level import Level
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.gaps.bars import refuse_long
from dkrls_cli.gaps.holes import Reach, within_reach
from dkrls_cli.gaps.pattern import gap_lengths
from dkrls_cli.grid.alignment import drop_other_single, rename_like
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.cf import by_dimension, hierarchy_of, natural_period, place_of
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
from dkrls_cli.model.answering.masks import LastingMask, lasting_mask, steps_round
from dkrls_cli.model.choosing import ChoiceCallback
from dkrls_cli.model.chunked.loading import refuse_large
from dkrls_cli.model.fit import fit_grid
from dkrls_cli.model.model import Model
from dkrls_cli.model.poles.planning import Poles
from dkrls_cli.model.settings import DEFAULTS, PerLevel, Settings
from dkrls_cli.model.training import Tell, drop_lost_slices
from dkrls_cli.spelling import suggest

if TYPE_CHECKING:
    import xarray as xr

MaskLike: TypeAlias = GridLike
"""``always``, ``first``, ``none``, or an array: see :func:`fill`."""

GapLimits: TypeAlias = Mapping[str, float | str]
"""The longest gaps to fill, by dimension: a number, or for time a duration like 5D."""

Distance: TypeAlias = float | str | Mapping[str, float | str]
"""The largest distance from data: a number of cells, or lengths by dimension as in gap limits."""

# Relative rounding of coordinates: a gap of just the limit is filled, however it is computed.
ROUNDING = 1e-9


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
    if ensemble is not None:
        _refuse_long(grid)
    land = _fills_land(grid, settings, cells)
    model = fit_grid(grid, settings, watch=watch, land=land, tell=tell)
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


@dataclass(frozen=True, eq=False)
class CellChoice:
    """Which missing cells to fill.

    Attributes
    ----------
    cells
        The cells to fill, in the shape of the grid.
    left
        Number of cells left, by reason.
    note
        What was decided about land and gaps, where the data does not show it.
    """

    cells: Mask
    left: Mapping[str, int]
    note: str = ""


def choose_cells(
    grid: Grid,
    settings: Settings,
    mask: MaskLike | None = None,
    max_gap: GapLimits | None = None,
    within: Distance | None = None,
) -> CellChoice:
    """Choose the missing cells to fill by mask, length of gap and distance from data.

    Parameters
    ----------
    grid
        Values on named axes, NaN where cells are missing.
    settings
        Of these, the levels: masks may look along the last one.
    mask, max_gap, within
        As for :func:`fill`.

    Returns
    -------
    CellChoice
        The cells to fill, and how many are left.

    Raises
    ------
    InputError
        If the mask does not fit the grid.
    SettingError
        If the mask, a dimension, a length or a distance is not a possible one.
    """
    hierarchy = hierarchy_of(grid.axes, settings.level_names)
    limits = read_lengths(max_gap or {}, grid.axes, "longest gap")
    reaches = {} if within is None else read_reaches(within, grid.axes, hierarchy)
    if mask is None:
        mask = "always" if within is None else "none"
    missing = np.isnan(grid.values)
    cells = missing.copy()
    masked = _masked(grid, mask, hierarchy)
    left = {"left as masked": leave_out(cells, masked.cells)}
    for place, limit in limits.items():
        axis = grid.axes[place]
        too_long = gap_lengths(missing, place, axis.numbers) > limit * (1 + ROUNDING)
        left[f"left in gaps along {axis.name}"] = leave_out(cells, too_long)
    if within is not None:
        reason = f"left further than {distance_text(within)} from data"
        left[reason] = leave_out(cells, ~within_reach(missing, reaches))
    left = {reason: count for reason, count in left.items() if count}
    return CellChoice(cells, left, masked.note)


def _fills_land(grid: Grid, settings: Settings, cells: Mask) -> bool:
    """Return whether cells are to be filled that are missing all along the last level."""
    last = hierarchy_of(grid.axes, settings.level_names)[-1]
    never = np.isnan(grid.values).all(axis=grid.dims.index(last), keepdims=True)
    return bool((cells & never).any())


def leave_out(cells: Mask, left: Mask) -> int:
    """Take some cells out of those to fill, in place, and return how many that were."""
    before = int(np.count_nonzero(cells))
    cells &= ~left
    return before - int(np.count_nonzero(cells))


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


def read_lengths(
    given: Mapping[str, float | str], axes: Sequence[Axis], what: str
) -> dict[int, float]:
    """Return lengths by dimension in units of the coordinates, by place of the axis."""
    places = {axis.name: place for place, axis in enumerate(axes)}
    return {
        places[dim]: _length(axes[places[dim]], length, what)
        for dim, length in by_dimension(given, axes).items()
    }


def _length(axis: Axis, given: float | str, what: str) -> float:
    """Return a length along an axis in units of its coordinates."""
    try:
        length = float(given)
    except ValueError:
        if axis.time is None:
            raise SettingError(
                f"Invalid {what} '{given}' along '{axis.name}': that is not a number."
            ) from None
        length = axis.time.length(str(given))
    if not length > 0:
        raise SettingError(f"Invalid {what} {given} along '{axis.name}'. It must be above 0.")
    return length


def read_reaches(
    within: Distance, axes: Sequence[Axis], hierarchy: Sequence[str]
) -> dict[int, Reach]:
    """Return how far from data cells are filled along each axis, by place of the axis."""
    if not isinstance(within, Mapping):
        return _cell_reaches(within, axes, hierarchy)
    lengths = read_lengths(within, axes, "distance")
    for place, length in lengths.items():
        axis = axes[place]
        if axis.labels is not None:
            raise SettingError(f"'{axis.name}' holds text labels, which have no distance.")
        if length == np.inf:
            raise SettingError(f"Invalid distance {length} along '{axis.name}'. It must be finite.")
    if not lengths:
        raise SettingError("The distance from data names no dimension. Give a number, or one each.")
    return {
        place: Reach(axes[place].numbers, length, axes[place].turn or natural_period(axes[place]))
        for place, length in lengths.items()
    }


def _cell_reaches(
    within: float | str, axes: Sequence[Axis], hierarchy: Sequence[str]
) -> dict[int, Reach]:
    """Return how far from data cells are filled, for a distance in cells."""
    try:
        count = float(within)
    except ValueError:
        count = np.nan
    if not 0 < count < np.inf:
        raise SettingError(
            f"Invalid distance '{within}' from data. Give a number of cells above 0, or a distance "
            "for each of some dimensions."
        )
    ordered = [place for place, axis in enumerate(axes) if axis.labels is None]
    places = [place for place in ordered if place_of(axes[place]) is not None]
    others = [place for place in ordered if axes[place].name != hierarchy[-1]]
    chosen = places or others or ordered
    if not chosen:
        raise SettingError("All dimensions hold text labels, which have no distance.")
    return {place: _steps(axes[place], count) for place in chosen}


def _steps(axis: Axis, count: float) -> Reach:
    """Return a reach in steps from coordinate to coordinate, round a circle that they close."""
    ranks = np.argsort(np.argsort(axis.numbers, kind="stable"), kind="stable").astype(np.float64)
    return Reach(ranks, count, steps_round(axis))


def distance_text(within: Distance) -> str:
    """Return a distance from data in words."""
    if isinstance(within, Mapping):
        return ", ".join(f"{dim} {length}" for dim, length in within.items())
    return "1 cell" if float(within) == 1 else f"{float(within):g} cells"


def _masked(grid: Grid, mask: MaskLike, hierarchy: Sequence[str]) -> LastingMask:
    """Return the cells that stay missing, in a shape that broadcasts to that of the grid."""
    if not isinstance(mask, str):
        return LastingMask(~open_cells(grid, mask))
    if mask == "none":
        return LastingMask(np.zeros((), bool))
    if mask == "always":
        return lasting_mask(grid, hierarchy)
    if mask == "first":
        return LastingMask(missing_at_first(grid, grid.dims.index(hierarchy[-1])))
    raise unknown_mask(mask)


def unknown_mask(mask: str) -> SettingError:
    """Return the error of a mask that has no such name."""
    return SettingError(
        f"Unknown mask '{mask}'. Choose from: always, first, none; or give an array."
        f"{suggest(mask, ('always', 'first', 'none'))}"
    )


def missing_at_first(grid: Grid, last: int) -> Mask:
    """Return what is missing in the first slice of the last level, if that can show a mask."""
    axis = grid.axes[last]
    why = "has one coordinate" if axis.size == 1 else "is a place" if place_of(axis) else ""
    if why:
        raise SettingError(
            f"The mask 'first' looks along the last level, and '{axis.name}' {why}: its first "
            "slice shows no mask. Choose another mask, or levels with time last.",
            setting="mask",
        )
    return np.asarray(np.isnan(np.take(grid.values, [0], axis=last)))


def open_cells(grid: Grid, mask: MaskLike) -> Mask:
    """Return the cells that an array lets be filled: those where it is neither 0 nor NaN."""
    if isinstance(mask, Grid) or is_labelled(mask):
        return _aligned(grid, drop_other_single(rename_like(as_grid(mask), grid.axes), grid.axes))
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
    """Return where a mask on some dimensions of the grid is neither 0 nor NaN.

    A mask of one time is that of all times.
    """
    own = dict(zip(grid.dims, grid.axes, strict=True))
    for axis in mask.axes:
        if axis.name not in own:
            raise InputError(
                f"The mask '{mask.name}' has a dimension '{axis.name}'. The grid has "
                f"{', '.join(grid.dims)}."
            )
        lasts = axis.size == 1 and place_of(own[axis.name]) is None
        if not lasts and axis.texts != own[axis.name].texts:
            raise InputError(
                f"The mask '{mask.name}' has other coordinates of '{axis.name}' than the grid."
            )
    order = [mask.dims.index(dim) for dim in grid.dims if dim in mask.dims]
    sizes = dict(zip(mask.dims, mask.values.shape, strict=True))
    shape = [sizes.get(dim, 1) for dim in grid.dims]
    return np.asarray(np.nan_to_num(mask.values.transpose(order)).reshape(shape) != 0)


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
