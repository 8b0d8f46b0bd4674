"""New slices in the terms of a model: its dimensions, units, calendar and coordinates."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array, checked_gaps
from dkrls_cli.circle import nearest
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.axes import (
    Attributes,
    Axis,
    calendar_of,
    convert_coordinates,
    list_some,
    text_axis,
)
from dkrls_cli.grid.cf import pair_axes
from dkrls_cli.grid.grid import Grid
from dkrls_cli.grid.units.spellings import same_units


def align_slices(
    grid: Grid, axes: Sequence[Axis], grows: int, attrs: Attributes
) -> tuple[Array, Axis]:
    """Bring new slices into the order and the terms of a model.

    The order of dimensions, and of coordinates along all but the growing one, may differ from the
    model's, and so may units of coordinates that convert into each other; nothing else may.

    Parameters
    ----------
    grid
        The new slices.
    axes, grows
        Axes of the model, and the place of the one along which it grows.
    attrs
        Attributes of the model's variable.

    Returns
    -------
    The values with the axes of the model, and the new coordinates along the growing one.

    Raises
    ------
    InputError
        If dimensions, units, calendars or coordinates differ; the message names them.
    """
    dims = [axis.name for axis in axes]
    grid = _add_single(drop_other_single(grid, axes), axes, grows)
    if sorted(grid.dims) != sorted(dims):
        raise InputError(
            f"The new slices have dimensions {', '.join(grid.dims)}, the model {', '.join(dims)}."
        )
    check_units(f"values of '{grid.name}'", grid.attrs, attrs)
    order = [grid.dims.index(dim) for dim in dims]
    values = checked_gaps(grid.values).transpose(order)
    theirs = [grid.axes[place] for place in order]
    for place, (own, its) in enumerate(zip(axes, theirs, strict=True)):
        _check_meaning(own, its)
        if place != grows:
            values = _sort_like(own, its, values, place)
    return values, _check_finite(axes[grows].continue_with(theirs[grows]))


def drop_other_single(grid: Grid, axes: Sequence[Axis]) -> Grid:
    """Return a grid without those dimensions of one coordinate that the axes do not have."""
    names = [axis.name for axis in axes]
    kept = tuple(axis for axis in grid.axes if axis.size > 1 or axis.name in names)
    return _reshaped(grid, kept)


def rename_like(grid: Grid, axes: Sequence[Axis]) -> Grid:
    """Return a grid whose dimensions have the names of the axes that mean the same.

    Examples
    --------
    >>> from dkrls_cli.grid.axes import axis_of
    >>> grid = Grid(np.ones(2), (axis_of("lat", [0.0, 1.0]),))
    >>> rename_like(grid, [axis_of("latitude", [5.0])]).dims
    ('latitude',)
    """
    pairs = pair_axes(axes, grid.axes)
    names = {its.name: own.name for own, its in pairs}
    renamed = tuple(replace(axis, name=names.get(axis.name, axis.name)) for axis in grid.axes)
    return replace(grid, axes=renamed)


def plain_slices(
    values: Array, coordinates: Any, axes: Sequence[Axis], grows: int
) -> tuple[Array, Axis]:
    """Check an array of plain numbers as slices at coordinates along the growing axis.

    A scalar coordinate is that of one slice, whose growing dimension may be left out.

    Raises
    ------
    SettingError
        If no coordinates are given.
    InputError
        If the array is not of the model's shape.
    """
    if coordinates is None:
        raise SettingError(f"Coordinates of the new slices along '{axes[grows].name}' are needed.")
    new = coordinates_on(axes[grows], coordinates)
    if np.ndim(coordinates) == 0 and values.ndim < len(axes):
        values = np.expand_dims(values, grows)
    expected = [axis.size for axis in axes]
    expected[grows] = new.size
    if values.shape != tuple(expected):
        raise InputError(
            f"The new slices have shape {values.shape}. Expected {tuple(expected)}, as the model's "
            f"with {new.size} along '{new.name}'."
        )
    return checked_gaps(values), new


def coordinates_on(axis: Axis, values: Any) -> Axis:
    """Return new coordinates in the terms of an axis; new labels get the next positions."""
    if np.ndim(values) > 1:
        raise InputError(
            f"Coordinates of '{axis.name}' must be a vector, got shape {np.shape(values)}."
        )
    if axis.labels is None:
        return _check_finite(axis.at(values))
    return axis.continue_with(text_axis(axis.name, [str(value) for value in np.atleast_1d(values)]))


def _add_single(grid: Grid, axes: Sequence[Axis], grows: int) -> Grid:
    """Return slices with the dimensions of one coordinate that the model has and they have not."""
    lacking = tuple(
        axis
        for place, axis in enumerate(axes)
        if axis.size == 1 and place != grows and axis.name not in grid.dims
    )
    whole = (*lacking, *grid.axes)
    return _reshaped(grid, whole)


def _reshaped(grid: Grid, axes: tuple[Axis, ...]) -> Grid:
    """Return a grid with other axes, of which those that are new or gone have one coordinate."""
    shape = [axis.size for axis in axes]
    errors = None if grid.errors is None else grid.errors.reshape(shape)
    return replace(grid, values=grid.values.reshape(shape), axes=axes, errors=errors)


def _check_finite(new: Axis) -> Axis:
    """Return the coordinates, or raise InputError if one is not finite, or a date that is none."""
    bad = new.numbers[~np.isfinite(new.numbers)]
    if bad.size:
        raise InputError(f"A coordinate of '{new.name}' is {bad[0]}. Expected a finite number.")
    try:
        if new.time is not None and new.size:
            new.time.texts(np.array([new.numbers.min(), new.numbers.max()]))
    except (OverflowError, ValueError):
        raise InputError(
            f"A coordinate of '{new.name}' is too far away to be counted in '{new.units}'."
        ) from None
    return new


def check_units(what: str, theirs: Attributes, own: Attributes, owner: str = "model") -> None:
    """Raise InputError if numbers are in other units than those of the owner, if both have some."""
    found = [str(attrs.get("units", "")) for attrs in (theirs, own)]
    if all(found) and not same_units(*found):
        raise InputError(f"The {what} are in '{found[0]}', those of the {owner} in '{found[1]}'.")


def _check_meaning(own: Axis, its: Axis) -> None:
    """Raise InputError if two axes lack coordinates, or count in other calendars."""
    if own.has_coordinate and not its.has_coordinate:
        raise InputError(f"The new slices have no coordinates of '{own.name}', the model has.")
    calendars = [calendar_of(axis) for axis in (its, own)]
    if "none" not in calendars and calendars[0] != calendars[1]:
        raise InputError(
            f"The new slices count '{own.name}' by the calendar {calendars[0]}, the model by "
            f"{calendars[1]}."
        )


def _sort_like(own: Axis, its: Axis, values: Array, place: int) -> Array:
    """Return values with the coordinates of one axis in the order of the model's."""
    if its.labels is not None and own.labels is not None:
        _refuse_others(own.name, set(own.texts) - set(its.texts), set(its.texts) - set(own.texts))
    numbers = own.encode(convert_coordinates(its, own), single=its.dtype == "float32")
    if np.array_equal(numbers, own.numbers):
        return values
    near, same = nearest(own.numbers, numbers, own.turn)
    _, known = nearest(numbers, own.numbers, own.turn)
    lacking = own.take(np.flatnonzero(~same)).texts
    extra = its.take(np.flatnonzero(~known)).texts
    if own.time is None and own.units and its.units and own.units != its.units:
        lacking = [f"{text} {own.units}" for text in lacking]
        extra = [f"{text} {its.units}" for text in extra]
    _refuse_others(own.name, lacking, extra)
    if its.size != own.size:
        raise InputError(f"The new slices have some coordinate of '{own.name}' twice.")
    return values.take(near, place)


def _refuse_others(dim: str, lacking: Collection[str], extra: Collection[str]) -> None:
    differences = [
        f"{verb} {list_some(sorted(which))}"
        for verb, which in (("lack", lacking), ("have beyond the model's", extra))
        if which
    ]
    if differences:
        raise InputError(
            f"Coordinates of '{dim}' differ: the new slices {' and '.join(differences)}."
        )
