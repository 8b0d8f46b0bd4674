"""Grids: labelled values in memory. The only door to xarray."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from dkrls_cli.axes import Attributes, Axis, axis_of, index_axis
from dkrls_cli.errors import InputError

if TYPE_CHECKING:
    import xarray as xr
    from typing_extensions import TypeIs


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
    """

    values: NDArray[Any]
    axes: tuple[Axis, ...]
    name: str = "values"
    attrs: Attributes = field(default_factory=dict)

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the dimensions."""
        return tuple(axis.name for axis in self.axes)


def is_labelled(data: object) -> TypeIs[xr.DataArray]:
    """Whether this is xarray's, without importing xarray to find out."""
    return type(data).__module__.partition(".")[0] == "xarray"


def from_data_array(array: xr.DataArray) -> Grid:
    """An xarray.DataArray as a grid, size-1 dimensions dropped."""
    if not hasattr(array, "name"):
        raise InputError("Expected one variable, got a Dataset. Pick one: dataset['name'].")
    squeezed = array.squeeze(drop=True)
    if squeezed.ndim == 0:
        raise InputError(f"'{array.name}' has no dimension of more than one coordinate.")
    axes = tuple(_axis_from(squeezed, str(dim)) for dim in squeezed.dims)
    return Grid(squeezed.values, axes, str(array.name or "values"), dict(array.attrs))


def _axis_from(array: xr.DataArray, dim: str) -> Axis:
    if dim not in array.coords:
        return index_axis(dim, array.sizes[dim])
    coordinate = array.coords[dim]
    return axis_of(dim, coordinate.values, dict(coordinate.attrs))


def to_data_array(
    values: NDArray[Any], axes: Sequence[Axis], name: str, attrs: Attributes
) -> xr.DataArray:
    """Values on axes as an xarray.DataArray, coordinates in the user's terms."""
    import xarray as xr  # noqa: PLC0415

    coords = {
        axis.name: (axis.name, axis.decode(axis.numbers), dict(axis.attrs))
        for axis in axes
        if axis.has_coordinate
    }
    dims = [axis.name for axis in axes]
    return xr.DataArray(values, coords, dims, name, dict(attrs))
