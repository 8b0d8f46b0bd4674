"""New slices in the terms of a model: its dimensions, units, calendar and coordinates."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array, checked_gaps
from dkrls_cli.circle import nearest
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.axes import Attributes, Axis, calendar_of, like, text_axis
from dkrls_cli.grid.grid import Grid


def aligned(grid: Grid, axes: Sequence[Axis], grows: int, attrs: Attributes) -> tuple[Array, Axis]:
    """Values of new slices with the axes of a model, and their coordinates in its terms.

    Whatever differs from the model is refused by name; the order of dimensions and of coordinates
    may differ.
    """
    dims = [axis.name for axis in axes]
    if sorted(grid.dims) != sorted(dims):
        raise InputError(
            f"The new slices have dimensions {', '.join(grid.dims)}, the model {', '.join(dims)}."
        )
    _check_units(f"values of '{grid.name}'", grid.attrs, attrs)
    order = [grid.dims.index(dim) for dim in dims]
    values = checked_gaps(grid.values).transpose(order)
    theirs = [grid.axes[place] for place in order]
    for place, (own, its) in enumerate(zip(axes, theirs, strict=True)):
        _check_meaning(own, its)
        if place != grows:
            values = _in_order_of(own, its, values, place)
    return values, _finite(axes[grows].continued(theirs[grows]))


def plain_slices(
    values: Array, coordinates: Any, axes: Sequence[Axis], grows: int
) -> tuple[Array, Axis]:
    """An array of numbers as slices at coordinates along one axis; a scalar is for one slice."""
    if coordinates is None:
        raise SettingError(f"Coordinates of the new slices along '{axes[grows].name}' are needed.")
    new = coordinates_on(axes[grows], coordinates)
    if np.ndim(coordinates) == 0 and values.ndim < len(axes):
        values = np.expand_dims(values, grows)
    expected = [axis.size for axis in axes]
    expected[grows] = new.size
    if values.shape != tuple(expected):
        raise InputError(f"Slices of shape {values.shape} do not fit the model's, {expected}.")
    return checked_gaps(values), new


def coordinates_on(axis: Axis, values: Any) -> Axis:
    """New coordinates as the user writes them, in the terms of an axis; labels are numbered on."""
    if np.ndim(values) > 1:
        raise InputError(f"Coordinates of '{axis.name}' must be a vector, got {np.shape(values)}.")
    if axis.labels is None:
        return _finite(axis.at(values))
    return axis.continued(text_axis(axis.name, [str(value) for value in np.atleast_1d(values)]))


def _finite(new: Axis) -> Axis:
    """Coordinates, refused where one is none."""
    bad = new.numbers[~np.isfinite(new.numbers)]
    if bad.size:
        raise InputError(f"A coordinate of '{new.name}' is {bad[0]}. Expected a finite one.")
    return new


def _check_units(what: str, theirs: Attributes, own: Attributes) -> None:
    found = [str(attrs.get("units", "")) for attrs in (theirs, own)]
    if all(found) and found[0] != found[1]:
        raise InputError(f"The {what} are in '{found[0]}', those of the model in '{found[1]}'.")


def _check_meaning(own: Axis, its: Axis) -> None:
    if own.has_coordinate and not its.has_coordinate:
        raise InputError(f"The new slices have no coordinates of '{own.name}', the model has.")
    calendars = [calendar_of(axis) for axis in (its, own)]
    if its.time and own.time and calendars[0] != calendars[1]:
        raise InputError(
            f"The new slices count '{own.name}' by the calendar {calendars[0]}, the model by "
            f"{calendars[1]}."
        )
    if own.time is None and own.turn is None:
        _check_units(f"coordinates of '{own.name}'", its.attrs, own.attrs)


def _in_order_of(own: Axis, its: Axis, values: Array, place: int) -> Array:
    """Values with the coordinates of one axis in the order of the model's."""
    if its.labels is not None and own.labels is not None:
        _refuse_others(own.name, set(own.texts) - set(its.texts), set(its.texts) - set(own.texts))
    single = its.dtype == "float32"  # and need not agree in more digits than that
    numbers = (replace(own, dtype="float32") if single else own).encode(like(its, own))
    if np.array_equal(numbers, own.numbers):
        return values
    near, same = nearest(own.numbers, numbers, own.turn)
    _, known = nearest(numbers, own.numbers, own.turn)
    lacking = own.take(np.flatnonzero(~same)).texts
    _refuse_others(own.name, lacking, its.take(np.flatnonzero(~known)).texts)
    if its.size != own.size:
        raise InputError(f"The new slices have some coordinate of '{own.name}' twice.")
    return values.take(near, place)


def _refuse_others(dim: str, lacking: Collection[str], extra: Collection[str]) -> None:
    told = [
        f"{verb} {_some(sorted(which))}"
        for verb, which in (("lack", lacking), ("have beyond the model's", extra))
        if which
    ]
    if told:
        raise InputError(f"Coordinates of '{dim}' differ: the new slices {' and '.join(told)}.")


def _some(texts: Sequence[str]) -> str:
    return ", ".join(texts) if len(texts) <= 3 else f"{texts[0]} and {len(texts) - 1} more"
