"""Grids: labelled values in memory, from and to xarray."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dkrls_cli.arrays import Mask, as_numbers
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.axes import Attributes, Axis, axis_of, index_axis

if TYPE_CHECKING:
    import xarray as xr
    from typing_extensions import TypeIs


@dataclass(frozen=True)
class Style:
    """How a file keeps a variable, so that answers can be written alike.

    Attributes
    ----------
    dtype
        Floating type of the values.
    fill
        The number that marks a missing value, if there is one.
    global_attrs
        Attributes of the whole file.
    grid_mapping, grid_mapping_attrs
        Name and attributes of the variable that describes the map projection.
    """

    dtype: str = "float64"
    fill: float | None = None
    global_attrs: Attributes = field(default_factory=dict)
    grid_mapping: str | None = None
    grid_mapping_attrs: Attributes = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Grid:
    """Values on a grid, the product of named axes.

    Attributes
    ----------
    values
        One array axis per axis, NaN where missing.
    axes
        Coordinates, in the order of the array.
    name, attrs
        Name and attributes of the variable.
    style
        How its file keeps the variable.
    """

    values: NDArray[Any]
    axes: tuple[Axis, ...]
    name: str = "values"
    attrs: Attributes = field(default_factory=dict)
    style: Style = field(default_factory=Style)

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the dimensions."""
        return tuple(axis.name for axis in self.axes)

    def take(self, indices: Sequence[NDArray[np.intp]]) -> Grid:
        """Return the part of the grid at some coordinates of every axis."""
        axes = tuple(axis.take(i) for axis, i in zip(self.axes, indices, strict=True))
        return replace(self, values=self.values[np.ix_(*indices)], axes=axes)

    @property
    def observed(self) -> Mask:
        """Mask of the cells that are not missing, in the shape of the values."""
        return np.asarray(~np.isnan(self.values))

    @property
    def is_complete(self) -> bool:
        """Whether no cell is missing."""
        return self.values.size == 0 or not np.isnan(self.values.min())

    def refuse_missing(self) -> None:
        """Raise InputError if cells are missing, with their number and the place of the first."""
        missing = ~self.observed
        count = int(np.count_nonzero(missing))
        if count:
            first = np.unravel_index(int(np.argmax(missing)), missing.shape)
            place = ", ".join(
                f"{axis.name}={axis.take([i]).texts[0]}"
                for axis, i in zip(self.axes, first, strict=True)
            )
            raise InputError(
                f"{count} of {missing.size} cells of '{self.name}' are missing "
                f"({100 * count / missing.size:.3g} %), the first at {place}. "
                "They are not allowed here: fill them first, or select a complete part."
            )


GridLike: TypeAlias = "xr.DataArray | Grid | ArrayLike"
"""Data that functions of the Python interface take: a labelled array, a grid, or numbers."""

Coordinates: TypeAlias = Mapping[str, ArrayLike] | Sequence[ArrayLike]
"""One coordinate vector per axis of an array of plain numbers, by name or in order."""


def as_grid(data: GridLike, coordinates: Coordinates | None = None) -> Grid:
    """Return the data as a grid of real numbers, NaN where cells are missing.

    Parameters
    ----------
    data
        An xarray.DataArray, a Grid (returned as it is), or an array of numbers.
    coordinates
        One coordinate vector per axis of an array of numbers, by name or in order. Without them,
        the coordinates are the positions 0, 1, 2, ... and the dimensions dim_0, dim_1, ...

    Returns
    -------
    Grid
        The values with their axes. Dimensions of size 1 of a DataArray are dropped.

    Raises
    ------
    InputError
        If the values are not real numbers, or do not fit the coordinates.
    SettingError
        If coordinates are given for data that has its own.

    Examples
    --------
    >>> as_grid([[1.0, 2.0, 3.0]], {"x": [0.5], "t": [0, 1, 2]}).dims
    ('x', 't')
    """
    if is_labelled(data):
        labelled = from_data_array(data)
        data = replace(labelled, values=as_numbers(labelled.values, "values"))
    if isinstance(data, Grid):
        if coordinates is not None:
            raise SettingError("Coordinates were given for data that has its own.")
        return data
    values = as_numbers(data, "values")
    if coordinates is None:
        return Grid(values, tuple(index_axis(f"dim_{i}", n) for i, n in enumerate(values.shape)))
    if not isinstance(coordinates, Mapping):
        coordinates = {f"dim_{i}": c for i, c in enumerate(coordinates)}
    axes = tuple(axis_of(name, c) for name, c in coordinates.items())
    if values.shape != tuple(axis.size for axis in axes):
        sizes = " x ".join(f"{axis.name} {axis.size}" for axis in axes)
        raise InputError(f"Values of shape {values.shape} do not fit coordinates {sizes}.")
    return Grid(values, axes)


def is_labelled(data: object) -> TypeIs[xr.DataArray]:
    """Return whether data is an object of xarray's, without importing xarray to find out."""
    return type(data).__module__.partition(".")[0] == "xarray"


def from_data_array(array: xr.DataArray, keep: str | None = None) -> Grid:
    """Return an xarray.DataArray as a grid, without dimensions of size 1.

    Parameters
    ----------
    array
        The labelled values.
    keep
        Name of a dimension that stays even if it has size 1 or is a scalar coordinate.

    Raises
    ------
    InputError
        If the data is a Dataset, or has no dimension of more than one coordinate.
    """
    if not hasattr(array, "name"):
        raise InputError("Expected one variable, got a Dataset. Pick one: dataset['name'].")
    if keep in array.coords and keep not in array.dims:
        array = array.expand_dims(keep)
    single = [dim for dim, size in array.sizes.items() if size == 1 and dim != keep]
    squeezed = array.squeeze(single, drop=True)
    if squeezed.ndim == 0:
        raise InputError(f"'{array.name}' has no dimension of more than one coordinate.")
    axes = tuple(_axis_from(squeezed, str(dim)) for dim in squeezed.dims)
    return Grid(squeezed.values, axes, str(array.name or "values"), dict(array.attrs))


def scalar_axes(array: xr.DataArray, dims: Sequence[str]) -> tuple[Axis, ...]:
    """Return the axes of those `dims` of which the array has one coordinate only."""
    coords = {dim: array.coords[dim] for dim in dims if dim in array.coords}
    return tuple(
        axis_of(dim, np.atleast_1d(coordinate.values), dict(coordinate.attrs))
        for dim, coordinate in coords.items()
        if coordinate.size == 1
    )


def _axis_from(array: xr.DataArray, dim: str) -> Axis:
    if dim not in array.coords:
        return index_axis(dim, array.sizes[dim])
    coordinate = array.coords[dim]
    return axis_of(dim, coordinate.values, dict(coordinate.attrs))


def std_variable(name: str, attrs: Attributes) -> tuple[str, dict[str, Any]]:
    """Return name and attributes of the standard error of a variable, as CF has them."""
    about = {"long_name": f"standard error of {attrs.get('long_name', name)}"}
    if "standard_name" in attrs:
        about["standard_name"] = f"{attrs['standard_name']} standard_error"
    if "units" in attrs:
        about["units"] = attrs["units"]
    return f"{name}_std", about


def to_data_array(
    values: NDArray[Any], axes: Sequence[Axis], name: str, attrs: Attributes
) -> xr.DataArray:
    """Return values on axes as an xarray.DataArray with coordinates in the user's terms."""
    import xarray as xr

    coords = {
        axis.name: (axis.name, axis.values, dict(axis.attrs))
        for axis in axes
        if axis.has_coordinate
    }
    dims = [axis.name for axis in axes]
    return xr.DataArray(values, coords, dims, name, dict(attrs))
