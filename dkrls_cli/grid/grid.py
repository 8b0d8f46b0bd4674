"""Grids: labelled values in memory. The only door to xarray."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.errors import InputError
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
        What stands for a missing value, if anything does.
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
    """Values on the product of named axes.

    Attributes
    ----------
    values
        One array axis per axis, NaN where missing.
    axes
        Coordinates, in the order of the array.
    name, attrs
        Of the variable.
    style
        How its file keeps it.
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
        """Some coordinates of every axis."""
        axes = tuple(axis.take(i) for axis, i in zip(self.axes, indices, strict=True))
        return replace(self, values=self.values[np.ix_(*indices)], axes=axes)

    @property
    def is_complete(self) -> bool:
        """Whether no cell is missing."""
        return self.values.size == 0 or not np.isnan(self.values.min())

    def refuse_missing(self) -> None:
        """Refuse a grid with missing cells, saying how many and where the first one is."""
        missing = np.isnan(self.values)
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


def is_labelled(data: object) -> TypeIs[xr.DataArray]:
    """Whether this is xarray's, without importing xarray to find out."""
    return type(data).__module__.partition(".")[0] == "xarray"


def from_data_array(array: xr.DataArray, keep: str | None = None) -> Grid:
    """An xarray.DataArray as a grid, size-1 dimensions dropped but for one to keep."""
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


def _axis_from(array: xr.DataArray, dim: str) -> Axis:
    if dim not in array.coords:
        return index_axis(dim, array.sizes[dim])
    coordinate = array.coords[dim]
    return axis_of(dim, coordinate.values, dict(coordinate.attrs))


def std_variable(name: str, attrs: Attributes) -> tuple[str, dict[str, Any]]:
    """Name and attributes of the standard error of a variable, after the CF conventions."""
    about = {"long_name": f"standard error of {attrs.get('long_name', name)}"}
    if "standard_name" in attrs:
        about["standard_name"] = f"{attrs['standard_name']} standard_error"
    if "units" in attrs:
        about["units"] = attrs["units"]
    return f"{name}_std", about


def to_data_array(
    values: NDArray[Any], axes: Sequence[Axis], name: str, attrs: Attributes
) -> xr.DataArray:
    """Values on axes as an xarray.DataArray, coordinates in the user's terms."""
    import xarray as xr

    coords = {
        axis.name: (axis.name, axis.values, dict(axis.attrs))
        for axis in axes
        if axis.has_coordinate
    }
    dims = [axis.name for axis in axes]
    return xr.DataArray(values, coords, dims, name, dict(attrs))
