"""Errors of observations: the standard error of every cell of a grid, from a number or a table."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Mask, as_numbers
from dkrls_cli.circle import nearest
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.alignment import drop_other_single, rename_like
from dkrls_cli.grid.axes import Axis, convert_coordinates, list_some
from dkrls_cli.grid.cf import place_of
from dkrls_cli.grid.grid import ErrorLike, Grid, GridLike, from_data_array, is_labelled
from dkrls_cli.grid.units.spellings import same_units
from dkrls_cli.spelling import suggest


def with_errors(data: GridLike, grid: Grid, errors: ErrorLike | None) -> Grid:
    """Return a grid with the standard errors of its observations.

    Parameters
    ----------
    data
        The data as it was given: a DataArray may have the errors as a coordinate.
    grid
        The same as a grid.
    errors
        The standard errors; None: the grid is returned as it is.

    Raises
    ------
    InputError
        If errors do not fit the grid, or one is missing, negative or not finite where the data has
        a value.
    SettingError
        If there is no coordinate of that name.

    Examples
    --------
    >>> from dkrls_cli.grid.grid import as_grid
    >>> grid = as_grid([[1.0, 2.0], [3.0, float("nan")]])
    >>> with_errors([], grid, 0.5).errors.tolist()
    [[0.5, 0.5], [0.5, 0.0]]
    """
    if errors is None:
        return grid
    if isinstance(errors, str) and read_number(errors) is None:
        errors = _coordinate(data, errors)
    if is_labelled(errors):
        return attach_errors(grid, _on_dimensions(errors))
    if isinstance(errors, Grid):
        return attach_errors(grid, errors)
    number = read_number(errors)
    return attach_errors(grid, number if number is not None else _plain(grid, errors))


def read_number(errors: Any) -> float | None:
    """Return errors as a number if they are one, or the text of one; else None."""
    if np.ndim(errors) != 0:
        return None
    try:
        return float(errors)
    except (TypeError, ValueError):
        return None


def attach_errors(grid: Grid, errors: Grid | NDArray[Any] | float) -> Grid:
    """Return a grid with standard errors on some of its dimensions, aligned by coordinates.

    Parameters
    ----------
    grid
        The data.
    errors
        A number, numbers in the shape of the data, or a grid: it needs a value for each coordinate
        of the data, and may have others. Errors at one time are those of all times.

    Raises
    ------
    InputError
        As for :func:`with_errors`.
    """
    if isinstance(errors, Grid):
        _check_units(grid, errors)
        found = _aligned(grid, errors)
    else:
        found = np.asarray(errors, np.float64)
    _refuse_unusable(grid, np.broadcast_to(found, grid.values.shape))
    whole = np.where(np.isnan(grid.values), 0.0, found)
    return replace(grid, errors=np.asarray(whole, np.float64))


def _coordinate(data: GridLike, name: str) -> Any:
    """Return the coordinate of a DataArray that holds its errors."""
    if not is_labelled(data) or name not in data.coords:
        names = [str(other) for other in data.coords] if is_labelled(data) else []
        raise SettingError(
            f"The data has no coordinate '{name}' with its errors. Give a number, an array, or the "
            f"name of a coordinate.{suggest(name, names)}"
        )
    return data.coords[name]


def _on_dimensions(errors: Any) -> Grid | float:
    """Return errors as a grid on their dimensions; scalars beside these mean nothing."""
    if errors.ndim == 0:
        return float(errors)
    bare = errors.reset_coords(drop=True)
    grid = from_data_array(bare, keep="")
    return replace(grid, values=as_numbers(grid.values, "errors"))


def _plain(grid: Grid, errors: Any) -> NDArray[Any]:
    """Return an array of plain numbers in the shape of a grid."""
    numbers = as_numbers(errors, "errors")
    try:
        return np.broadcast_to(numbers, grid.values.shape)
    except ValueError:
        raise InputError(
            f"The errors have shape {numbers.shape}, which does not fit a grid of shape "
            f"{grid.values.shape}."
        ) from None


def _check_units(grid: Grid, errors: Grid) -> None:
    """Raise InputError if errors are in other units than the data."""
    own, theirs = (str(attrs.get("units", "")) for attrs in (grid.attrs, errors.attrs))
    if own and theirs and not same_units(own, theirs):
        raise InputError(
            f"The errors '{errors.name}' are in '{theirs}', the values of '{grid.name}' in "
            f"'{own}'. Convert them to the units of the data first."
        )


def _aligned(grid: Grid, errors: Grid) -> NDArray[Any]:
    """Return errors in the order and the coordinates of a grid, in a shape that broadcasts."""
    errors = drop_other_single(rename_like(errors, grid.axes), grid.axes)
    own = dict(zip(grid.dims, grid.axes, strict=True))
    values = errors.values
    for place, axis in enumerate(errors.axes):
        if axis.name not in own:
            raise InputError(
                f"The errors '{errors.name}' have a dimension '{axis.name}'. The data has "
                f"{', '.join(grid.dims)}."
            )
        if not (axis.size == 1 and place_of(own[axis.name]) is None):
            values = values.take(_places(own[axis.name], axis, errors.name), place)
    order = [errors.dims.index(dim) for dim in grid.dims if dim in errors.dims]
    sizes = dict(zip(errors.dims, values.shape, strict=True))
    return values.transpose(order).reshape([sizes.get(dim, 1) for dim in grid.dims])


def _places(own: Axis, theirs: Axis, name: str) -> NDArray[np.intp]:
    """Return where another axis has the coordinates of our own."""
    if not (own.has_coordinate or theirs.has_coordinate) and own.size != theirs.size:
        raise InputError(
            f"The errors '{name}' have {theirs.size} cells along '{own.name}', the data {own.size}."
        )
    if own.labels is not None and theirs.labels is not None:
        known = {text: place for place, text in enumerate(theirs.texts)}
        found = np.array([known.get(text, -1) for text in own.texts])
        same = found >= 0
    else:
        numbers = own.encode(convert_coordinates(theirs, own), single=theirs.dtype == "float32")
        found, same = nearest(own.numbers, numbers, own.turn)
    if not same.all():
        lacking = own.take(np.flatnonzero(~same)).texts
        raise InputError(
            f"The errors '{name}' lack coordinates of '{own.name}' that the data has: "
            f"{list_some(lacking)}."
        )
    return np.asarray(found, np.intp)


def _refuse_unusable(grid: Grid, errors: NDArray[Any]) -> None:
    """Raise InputError if an observed cell has no error of 0 or above; name the first such cell."""
    observed = grid.observed
    bad = observed & ~((errors >= 0) & np.isfinite(errors))
    if not bad.any():
        return
    first = np.unravel_index(int(np.argmax(bad)), bad.shape)
    value = float(errors[first])
    what = "missing" if math.isnan(value) else f"{value:g}"
    others = int(bad.sum()) - 1
    more = f", and {others} more such cells" if others else ""
    raise InputError(
        f"The error of '{grid.name}' is {what} at {_place_text(grid, first)}, where there is a "
        f"value{more}. Expected a finite number, 0 or above, for every value."
    )


def _place_text(grid: Grid, place: tuple[Any, ...]) -> str:
    return ", ".join(
        f"{axis.name}={axis.take([i]).texts[0]}" for axis, i in zip(grid.axes, place, strict=True)
    )


def describe_errors(errors: NDArray[Any], observed: Mask) -> dict[str, float]:
    """Return the least, the median and the largest error of observed cells."""
    seen = np.broadcast_to(errors, observed.shape)[observed]
    return {
        "least": float(seen.min()),
        "median": float(np.median(seen)),
        "most": float(seen.max()),
    }
