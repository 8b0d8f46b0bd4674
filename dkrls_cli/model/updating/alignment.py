"""New slices, and the standard errors of observations, in the terms of a model."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dkrls_cli.arrays import Array, as_numbers
from dkrls_cli.circle import nearest
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.alignment import align_slices, plain_slices
from dkrls_cli.grid.axes import Axis, convert_coordinates, index_axis, list_some
from dkrls_cli.grid.grid import ErrorLike, Grid, drop_repeats, from_data_array, is_labelled
from dkrls_cli.grid.observations import with_errors
from dkrls_cli.model.model import OBS_ERRORS, Model
from dkrls_cli.model.updating.order import observed_slices

if TYPE_CHECKING:
    import xarray as xr


def align(
    model: Model, data: xr.DataArray | Grid | ArrayLike, coordinates: Any = None
) -> tuple[Array, Axis]:
    """Return new values with the axes of the model, and the axis of the slices."""
    if is_labelled(data):
        labelled = from_data_array(data, keep=model.hierarchy[-1])
        data = dataclasses.replace(labelled, values=as_numbers(labelled.values, "values"))
    if not isinstance(data, Grid):
        return plain_slices(as_numbers(data, "values"), coordinates, model.axes, model.grows)
    if coordinates is not None:
        raise SettingError("Coordinates were given for data that has its own.")
    trained = drop_untrained(model, drop_repeats(data)[0])
    return align_slices(trained, model.axes, model.grows, model.attrs)


def slice_errors(
    model: Model,
    data: xr.DataArray | Grid | ArrayLike,
    values: Array,
    obs_error: ErrorLike | None,
) -> Array | None:
    """Return the standard errors of new slices with the axes of the model; None if it has none.

    Parameters
    ----------
    model
        The model.
    data
        The new slices as they were given.
    values
        The same as :func:`align` returns them.
    obs_error
        Their errors. None: those of the grid, or from where the model had its own.

    Raises
    ------
    InputError
        If just one of model and slices has errors, or errors do not fit the slices.
    """
    theirs = data.errors if isinstance(data, Grid) else None
    if model.observations is None:
        if obs_error is not None or theirs is not None:
            raise InputError(
                "The new slices have errors of the observations, and the model was fitted without. "
                "Leave the errors out, or fit all slices again with them."
            )
        return None
    if theirs is None:
        obs_error = usual_error(model) if obs_error is None else obs_error
        if obs_error is None:
            raise no_errors()
        if not (isinstance(data, Grid) or is_labelled(data)):
            return _plain_errors(values, obs_error)
        grid = data if isinstance(data, Grid) else from_data_array(data, model.hierarchy[-1])
        data = with_errors(data, grid, obs_error)
    assert isinstance(data, Grid)
    assert data.errors is not None
    known = np.where(np.isnan(data.values), np.nan, data.errors)
    return align(model, dataclasses.replace(data, values=known, errors=None))[0]


def usual_error(model: Model) -> float | str | None:
    """Return the number or the name from which a model had the errors of its observations."""
    found: float | str | None = model.origin.get(OBS_ERRORS, {}).get("source")
    return found


def no_errors() -> InputError:
    """Return the error of new slices without the standard errors that the model needs."""
    return InputError(
        "The model has errors of its observations, and the new slices have none. Give theirs.",
        setting="obs_error",
    )


def _plain_errors(values: Array, obs_error: ErrorLike) -> Array:
    """Return errors of slices that are plain numbers."""
    axes = tuple(index_axis(f"dim_{place}", size) for place, size in enumerate(values.shape))
    errors = with_errors(values, Grid(values, axes), obs_error).errors
    assert errors is not None
    return errors


def drop_untrained(model: Model, grid: Grid) -> Grid:
    """Return new slices without the coordinates at which the model has never had data.

    Raises
    ------
    InputError
        If the slices have data there.
    """
    for place, its in enumerate(grid.axes):
        if its.name not in model.dims or its.name == model.hierarchy[-1]:
            continue
        at = model.dims.index(its.name)
        own, whole = model.axes[at], model.coverage.axes[at]
        lost = whole.take(~nearest(whole.numbers, own.numbers, own.turn)[1])
        if not lost.size:
            continue
        numbers = own.encode(convert_coordinates(its, own))
        gone = nearest(numbers, lost.numbers, own.turn)[1]
        seen = np.flatnonzero(gone)[observed_slices(grid.values.compress(gone, place), place)]
        if seen.size:
            raise InputError(
                f"The new slices have data at '{its.name}' {list_some(its.take(seen).texts)}, "
                "where the model has never had any. Fit all slices again."
            )
        kept = [np.arange(axis.size) for axis in grid.axes]
        kept[place] = np.flatnonzero(~gone)
        grid = grid.take(kept)
    return grid
