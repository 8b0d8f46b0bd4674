"""Grids: labelled values in memory, from and to xarray."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dkrls_cli.arrays import Array, Mask, as_numbers, as_tensor, freeze
from dkrls_cli.circle import nearest
from dkrls_cli.errors import DkrlsError, InputError, SettingError
from dkrls_cli.grid.axes import Attributes, Axis, axis_of, index_axis, number_axis
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.grid.cf import is_time, is_time_itself
from dkrls_cli.grid.quantities import refuse_no_averages
from dkrls_cli.grid.style import Style

if TYPE_CHECKING:
    import xarray as xr
    from typing_extensions import TypeIs


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
    errors
        Standard error of every observed cell, in the shape of the values, 0 where missing; None:
        they have none that are known. See :mod:`dkrls_cli.grid.observations`.
    """

    values: NDArray[Any]
    axes: tuple[Axis, ...]
    name: str = "values"
    attrs: Attributes = field(default_factory=dict)
    style: Style = field(default_factory=Style)
    errors: NDArray[Any] | None = None

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the dimensions."""
        return tuple(axis.name for axis in self.axes)

    def take(self, indices: Sequence[NDArray[np.intp]]) -> Grid:
        """Return the part of the grid at some coordinates of every axis."""
        axes = tuple(axis.take(i) for axis, i in zip(self.axes, indices, strict=True))
        part = np.ix_(*indices)
        errors = None if self.errors is None else self.errors[part]
        return replace(self, values=self.values[part], axes=axes, errors=errors)

    @property
    def observed(self) -> Mask:
        """Mask of the cells that are not missing, in the shape of the values."""
        return np.asarray(~np.isnan(self.values))

    @property
    def is_complete(self) -> bool:
        """Whether no cell is missing."""
        return self.values.size == 0 or not np.isnan(self.values.min())

    def freeze(self) -> Grid:
        """Make the values read-only, so that a model may share them, and return the grid.

        Nobody else may have them.
        """
        freeze(self.values)
        return self

    def refuse_unsuitable(self) -> None:
        """Raise InputError if a model of the values would mean nothing.

        That is so for directions and codes (:mod:`dkrls_cli.grid.quantities`), and for numbers so
        large or so small that their squares are none: errors are squared, and squares of numbers
        beyond 1e-154 and 1e154 are 0 or infinite. There is room for the digits of errors, which
        are smaller than the values.
        """
        ends = self._ends
        refuse_no_averages(self.name, self.attrs, *ends, self.style.packing)
        largest = _size(ends)
        if 0 < largest < np.inf and not _SMALLEST <= largest <= _LARGEST:
            raise InputError(
                f"The largest value of '{self.name}' is {largest:.3g} in size. Expected "
                f"{_SMALLEST:g} to {_LARGEST:g}: count in other units."
            )
        for axis in self.axes:
            numbers = axis.numbers
            finite = bool(np.isfinite(numbers).all()) and numbers.size > 0
            if finite and numbers.max() / 2 - numbers.min() / 2 > _WIDEST / 2:
                raise InputError(
                    f"Coordinates of '{axis.name}' reach from {numbers.min():.3g} to "
                    f"{numbers.max():.3g}. Expected a width of at most {_WIDEST:g}: count in other "
                    "units."
                )

    @property
    def _ends(self) -> tuple[float, float]:
        """The least and the largest value, NaN if there is none; a large grid is not copied."""
        least = np.fmin.reduce(self.values, axis=None, initial=np.nan)
        return float(least), float(np.fmax.reduce(self.values, axis=None, initial=np.nan))

    @property
    def single_note(self) -> str:
        """Warning that float32 does not hold the values to its usual precision; empty if it does.

        Numbers below 1e-38 lose digits in it, and those below 1e-45 become 0.
        """
        largest, lost = _size(self._ends), 0.0
        flat = self.values.reshape(-1)
        for start in range(0, flat.size, _AT_ONCE):
            part = flat[start : start + _AT_ONCE]
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                errors = np.abs(part.astype(np.float32) - part)
            lost = max(lost, float(np.fmax.reduce(errors, initial=0.0)))
        if lost <= _SINGLE_ERROR * largest:
            return ""
        return (
            f"the values, at most {largest:.3g} in size, lose digits in float32, which holds "
            "1e-38 to 3e38: count in other units, or store float64"
        )

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


def _size(ends: tuple[float, float]) -> float:
    """Return the size of the larger of two ends, 0 if they are not known."""
    return max(0.0, -ends[0], ends[1])


# Sizes that the largest value of a grid may have: the squares of its errors are numbers too.
_SMALLEST, _LARGEST = 1e-100, 1e100
# Width that the coordinates of an axis may have: room for distances in length scales.
_WIDEST = 1e300
# Error of float32, in parts of the largest value, above which digits are lost: 6e-8 is rounding.
_SINGLE_ERROR = 1e-7
# Values that are looked at together: they stay in the cache.
_AT_ONCE = 2**16

COORDINATE_KINDS = "fiubMUSO"
"""Kinds of numpy types that coordinates may have: numbers, dates, texts and objects."""

STATION = "station"
"""Name of the dimension along which stations are counted."""

POINT = "point"
"""Name of the dimension along which scattered points are counted."""

REALIZATION = "realization"
"""Name of the dimension along which the members of an ensemble are counted."""

REALIZATION_ATTRS: Attributes = {
    "standard_name": "realization",
    "long_name": "member of the ensemble",
}
"""Attributes of its coordinate, as CF has them."""

GridLike: TypeAlias = "xr.DataArray | Grid | ArrayLike"
"""Data that functions of the Python interface take: a labelled array, a grid, or numbers."""

ErrorLike: TypeAlias = "float | str | xr.DataArray | Grid | ArrayLike"
"""Standard errors: a number, the name of a coordinate of the data, or an array on its dimensions.

An array of plain numbers has a shape that broadcasts to that of the data.
"""

Coordinates: TypeAlias = Mapping[str, ArrayLike] | Sequence[ArrayLike]
"""One coordinate vector per axis of an array of plain numbers, by name or in order."""


def as_grid(
    data: GridLike, coordinates: Coordinates | None = None, *, keep_single: bool = False
) -> Grid:
    """Return the data as a grid of real numbers, NaN where cells are missing.

    Parameters
    ----------
    data
        An xarray.DataArray, a Grid (returned as it is), or an array of numbers.
    coordinates
        One coordinate vector per axis of an array of numbers, by name or in order. Without them,
        the coordinates are the positions 0, 1, 2, ... and the dimensions dim_0, dim_1, ...
    keep_single
        Whether numbers of single precision stay so; all others become float64.

    Returns
    -------
    Grid
        The values with their axes. A scalar time of a DataArray is a dimension of one coordinate.

    Raises
    ------
    InputError
        If the values are not real numbers, do not fit the coordinates, or are a table of pandas.
    SettingError
        If coordinates are given for data that has its own.

    Examples
    --------
    >>> as_grid([[1.0, 2.0, 3.0]], {"x": [0.5], "t": [0, 1, 2]}).dims
    ('x', 't')
    """
    convert = as_tensor if keep_single else as_numbers
    if is_labelled(data):
        labelled = from_data_array(data)
        data = replace(labelled, values=convert(labelled.values, "values"))
    if isinstance(data, Grid):
        refuse_coordinates(coordinates)
        return data
    refuse_frame(data)
    values = convert(data, "values")
    if coordinates is None:
        return Grid(values, tuple(index_axis(f"dim_{i}", n) for i, n in enumerate(values.shape)))
    if not isinstance(coordinates, Mapping):
        coordinates = {f"dim_{i}": c for i, c in enumerate(coordinates)}
    axes = tuple(axis_of(name, c) for name, c in coordinates.items())
    if values.shape != tuple(axis.size for axis in axes):
        sizes = " x ".join(f"{axis.name} {axis.size}" for axis in axes)
        raise InputError(f"Values of shape {values.shape} do not fit coordinates {sizes}.")
    return Grid(values, axes)


def refuse_frame(data: object) -> None:
    """Raise InputError for data of pandas, whose index and columns an array of numbers has not."""
    if type(data).__module__.partition(".")[0] == "pandas":
        raise InputError(
            f"The data are a {type(data).__name__} of pandas, whose index and columns would be "
            "lost. Give xarray.DataArray(data), or data.to_numpy() if they do not matter."
        )


def refuse_coordinates(coordinates: Coordinates | None) -> None:
    """Raise SettingError if coordinates are given for data that has its own."""
    if coordinates is not None:
        raise SettingError("Coordinates were given for data that has its own.")


def is_labelled(data: object) -> TypeIs[xr.DataArray]:
    """Return whether data is an object of xarray's, without importing xarray to find out."""
    return type(data).__module__.partition(".")[0] == "xarray"


def is_chunked(data: object) -> TypeIs[xr.DataArray]:
    """Return whether data is a DataArray of dask's, without importing dask to find out."""
    if not is_labelled(data) or not hasattr(data, "name") or data.chunks is None:
        return False
    return type(data.data).__module__.partition(".")[0] == "dask"


def from_data_array(array: xr.DataArray, keep: str | None = None) -> Grid:
    """Return an xarray.DataArray as a grid; a scalar time becomes a dimension of one coordinate.

    Parameters
    ----------
    array
        The labelled values.
    keep
        Name of a dimension that may be a scalar coordinate instead. None: time, if the array has
        no dimension of time.

    Raises
    ------
    InputError
        If the data is a Dataset, or has no dimension of more than one coordinate.
    """
    axes = axes_of(array, keep)
    values = array.values.reshape([axis.size for axis in axes])
    return Grid(values, axes, *name_and_attrs(array))


def axes_of(array: xr.DataArray, keep: str | None = None) -> tuple[Axis, ...]:
    """Return the axes of an xarray.DataArray, without reading its values.

    Parameters and errors are those of :func:`from_data_array`.
    """
    if not hasattr(array, "name"):
        raise InputError("Expected one variable, got a Dataset. Pick one: dataset['name'].")
    if max(array.shape, default=1) < 2 and keep is None:
        raise InputError(f"'{array.name}' has no dimension of more than one coordinate.")
    axes = tuple(_axis_from(array, str(dim)) for dim in array.dims)
    grows = is_time if keep is None else lambda axis: axis.name == keep
    scalars = scalar_axes(array, [str(name) for name in array.coords if name not in array.dims])
    return with_growing(axes, scalars, grows)


def with_growing(
    axes: tuple[Axis, ...], scalars: Sequence[Axis], grows: Callable[[Axis], bool]
) -> tuple[Axis, ...]:
    """Return axes with the one that grows first among them, if it is only a scalar.

    Of several scalars that count time, the one marked as time itself is taken: a time of reference
    may stand beside it.
    """
    found = sorted(filter(grows, scalars), key=lambda axis: not is_time_itself(axis))
    return axes if not found or any(map(grows, axes)) else (found[0], *axes)


def drop_repeats(grid: Grid) -> tuple[Grid, list[str]]:
    """Return the grid without columns that repeat a longitude one turn later, and a note per axis.

    The note says if their values differ. A cell that is missing in the first column is that of a
    later one.

    Examples
    --------
    >>> east = {"units": "degrees_east"}
    >>> axes = (axis_of("lon", [0.0, 120.0, 240.0, 360.0], east),)
    >>> fewer, notes = drop_repeats(Grid(np.array([4.0, 5.0, 6.0, 4.0]), axes))
    >>> fewer.values, notes
    (array([4., 5., 6.]), ['lon 360.0 repeats an earlier one and is dropped'])
    """
    notes = []
    for place, axis in enumerate(grid.axes):
        kept = axis.distinct
        if kept.size == axis.size:
            continue
        gone = axis.take(np.setdiff1d(np.arange(axis.size), kept)).texts
        verb = "repeat earlier ones and are" if len(gone) > 1 else "repeats an earlier one and is"
        values, errors, apart = _merge_repeats(grid, place, kept)
        told = f", though values differ by up to {apart:.3g}" if apart else ""
        notes.append(f"{axis.name} {', '.join(gone)} {verb} dropped{told}")
        fresh = number_axis(axis.name, axis.stored[kept], axis.attrs)
        axes = (*grid.axes[:place], fresh, *grid.axes[place + 1 :])
        grid = replace(grid, values=values, axes=axes, errors=errors)
    return grid, notes


# Parts of values, and of their spread, by which those of one place may differ: four units in the
# last place of single precision, and what nobody sees.
_ROUNDING, _SAME = 4 * float(np.finfo(np.float32).eps), 1e-6


def _merge_repeats(
    grid: Grid, place: int, kept: NDArray[np.intp]
) -> tuple[NDArray[Any], Array | None, float]:
    """Return values and errors of the kept coordinates, and how far those that go differ."""
    axis, apart = grid.axes[place], 0.0
    values = np.take(grid.values, kept, axis=place)
    errors = None if grid.errors is None else np.take(grid.errors, kept, axis=place)
    for gone in np.setdiff1d(np.arange(axis.size), kept):
        first = int(nearest(axis.plain[[gone]], axis.plain[kept], axis.turn)[0][0])
        own = (slice(None),) * place + (first,)
        others = np.take(grid.values, gone, axis=place)
        differ = np.abs(others - values[own])
        apart = max(apart, float(np.fmax.reduce(differ, axis=None, initial=0.0)))
        lacking = np.isnan(values[own]) & ~np.isnan(others)
        values[own] = np.where(lacking, others, values[own])
        if errors is not None and grid.errors is not None:
            errors[own] = np.where(lacking, np.take(grid.errors, gone, axis=place), errors[own])
    low, high = (end.reduce(values, axis=None) for end in (np.fmin, np.fmax))
    rounding = _ROUNDING * max(abs(low), abs(high)) + _SAME * (high - low)
    return values, errors, apart if apart > rounding else 0.0


# Attributes in units of the packed numbers, which xarray leaves as they are when it unpacks.
_OF_PACKED_VALUES = ("valid_range", "valid_min", "valid_max")


def name_and_attrs(array: xr.DataArray) -> tuple[str, dict[str, Any]]:
    """Return the name of an array, and the attributes that hold for its values."""
    packed = "scale_factor" in array.encoding or "add_offset" in array.encoding
    gone = _OF_PACKED_VALUES if packed else ()
    attrs = {str(key): value for key, value in array.attrs.items() if key not in gone}
    return str(array.name or "values"), attrs


def scalar_axes(array: xr.DataArray, dims: Sequence[str]) -> tuple[Axis, ...]:
    """Return the axes of those `dims` of which the array has one coordinate only."""
    coords = {dim: array.coords[dim] for dim in dims if dim in array.coords}
    return tuple(
        axis_of(dim, np.atleast_1d(coordinate.values), dict(coordinate.attrs))
        for dim, coordinate in coords.items()
        if coordinate.size == 1 and coordinate.dtype.kind in COORDINATE_KINDS
    )


def coordinate_axes(data: xr.DataArray | xr.Dataset) -> list[Axis]:
    """Return every coordinate of an object of xarray that is a vector or a scalar, as an axis."""
    return [
        labelled_axis(str(name), coordinate)
        for name, coordinate in data.coords.items()
        if coordinate.dims in ((), (name,)) and coordinate.dtype.kind in COORDINATE_KINDS
    ]


def labelled_axis(name: str, coordinate: xr.DataArray) -> Axis:
    """Return a vector or a scalar of xarray as an axis.

    Dates that a file stores in single precision are the numbers that it has for them.
    """
    axis = axis_of(name, np.atleast_1d(coordinate.values), dict(coordinate.attrs))
    stored = coordinate.encoding
    if axis.time is None or stored.get("dtype") != np.float32 or "units" not in stored:
        return axis
    try:
        scale = TimeScale(str(stored["units"]), str(stored.get("calendar", axis.time.calendar)))
        numbers = scale.numbers(axis.time.texts(axis.numbers))
    except DkrlsError:  # units that only xarray understands
        return axis
    numbers = numbers.astype(np.float32).astype(np.float64)
    return replace(axis, numbers=numbers, dtype="float32", time=scale)


def coordinate_cells(data: xr.DataArray | xr.Dataset, axes: Sequence[Axis]) -> dict[str, Array]:
    """Return the cells (m, 2) of coordinates that have bounds among the variables, by name."""
    found = {}
    for axis in axes:
        if axis.name not in data.coords or axis.labels is not None:
            continue
        named = data[axis.name].attrs.get("bounds", data[axis.name].encoding.get("bounds"))
        if named not in {*data.coords, *getattr(data, "data_vars", ())}:
            continue
        bounds = data[named]
        if bounds.shape == (axis.size, 2):
            ends = axis_of(axis.name, bounds.values.ravel()).plain
            found[axis.name] = ends.reshape(-1, 2)
    return found


def _axis_from(array: xr.DataArray, dim: str) -> Axis:
    if dim not in array.coords:
        return index_axis(dim, array.sizes[dim])
    return labelled_axis(dim, array.coords[dim])


def std_variable(name: str, attrs: Attributes) -> tuple[str, dict[str, Any]]:
    """Return name and attributes of the standard error of a variable, as CF has them."""
    about = {"long_name": f"standard error of {attrs.get('long_name', name)}"}
    if "standard_name" in attrs and not str(attrs["standard_name"]).split()[1:]:
        about["standard_name"] = f"{attrs['standard_name']} standard_error"
    if "units" in attrs:
        about["units"] = attrs["units"]
    return f"{name}_std", about


def ensemble_variable(name: str, attrs: Attributes) -> tuple[str, dict[str, Any]]:
    """Return name and attributes of the members of an ensemble of a variable.

    Examples
    --------
    >>> ensemble_variable("sst", {"units": "K", "valid_min": 0})
    ('sst_ensemble', {'long_name': 'sst, ensemble members', 'units': 'K'})
    """
    about = {"long_name": f"{attrs.get('long_name', name)}, ensemble members"}
    return f"{name}_ensemble", about | {
        key: attrs[key] for key in ("standard_name", "units") if key in attrs
    }


def realization_axis(count: int) -> Axis:
    """Return the axis along which the members of an ensemble are counted, from 0."""
    return number_axis(REALIZATION, np.arange(count, dtype=np.int32), REALIZATION_ATTRS)


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


def station_array(
    values: NDArray[Any],
    axes: Sequence[Axis],
    spread: Collection[int],
    at: Mapping[str, Any],
    name: str,
    attrs: Attributes,
    members: int | None = None,
    along: str = STATION,
) -> xr.DataArray:
    """Return values of stations as an xarray.DataArray, first dimension ``station``.

    Parameters
    ----------
    values
        Values (stations, coordinates of the first axis in `spread`, ...).
    axes, spread
        Coordinates of every axis, and the indices of those that are no part of the stations.
    at
        Coordinates as they were given, by dimension: a scalar drops its dimension.
    name, attrs
        Name and attributes of the variable.
    members
        Number of members of an ensemble, which are the first dimension of the values; or None.
    along
        Name of the dimension of the stations.
    """
    import xarray as xr

    order = sorted(spread)
    dims = [along, *(axes[place].name for place in order)]
    coords = {
        axis.name: (axis.name if place in spread else along, axis.values, dict(axis.attrs))
        for place, axis in enumerate(axes)
        if axis.has_coordinate or place not in spread
    }
    if members is not None:
        dims = [REALIZATION, *dims]
        numbers = realization_axis(members).values
        coords[REALIZATION] = (REALIZATION, numbers, dict(REALIZATION_ATTRS))
    array = xr.DataArray(values, coords, dims, name, dict(attrs))
    return array.isel({dim: 0 for dim, value in at.items() if np.ndim(value) == 0})
