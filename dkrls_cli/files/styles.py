"""Styles of variables in NetCDF files and Zarr stores: types, packing, and what stands beside them.

Works on datasets that are opened without decoded times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.files.packing import is_unsigned, stored_mark
from dkrls_cli.files.stored.digits import cells_of_digits
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.cf import counts_time, is_place
from dkrls_cli.grid.style import Companion, Packing, Style, source_coordinates

if TYPE_CHECKING:
    import xarray as xr

# Kinds of numpy types that hold numbers: floats, integers, unsigned integers, booleans.
_NUMBERS = "fiub"
# Attributes that describe other variables of the file, which an answer does not have.
NO_LONGER_TRUE = (
    "bounds",
    "climatology",
    "cell_measures",
    "ancillary_variables",
    "coordinates",
    "formula_terms",
)
# Attributes in units of the packed numbers, which an answer is not.
_OF_PACKED_VALUES = ("valid_range", "valid_min", "valid_max")
# Attributes of a packed variable that belong to its integers.
_OF_PACKING = ("scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned")
# Attributes that name the bounds of cells.
_BOUNDS_ATTRS = ("bounds", "climatology")
# Attributes of a companion that name variables; they are written where those are.
_POINTERS = (*_BOUNDS_ATTRS, "formula_terms")
# Dimensions of a companion at most: fields of more are data, and as large as it.
_MOST_DIMS = 2


def style_of(dataset: xr.Dataset, array: xr.DataArray, axes: Sequence[Axis]) -> Style:
    """Return how the file keeps the variable and what stands beside it, to write answers alike."""
    fills = marked_fills(array)
    marks = [key for key in ("_FillValue", "missing_value") if key in array.encoding]
    mapping, mappings = _grid_mapping(dataset, array)
    bounds = _axis_bounds(dataset, array)
    auxiliary = _auxiliaries(dataset, array)
    names = [*auxiliary, *(name for _, name in bounds.values()), *_bounds_of(dataset, auxiliary)]
    companions = {name: _companion(dataset[name]) for name in dict.fromkeys(names)}
    for dim, (_, name) in bounds.items():
        companions[name] = _dated(dataset, dim, companions[name])
    found = {name: one for name, one in companions.items() if one is not None}
    others = {str(dim): np.arange(float(size)) for dim, size in array.sizes.items()}
    return Style(
        dtype=_float_type(array),
        fill=fills[0] if fills and not is_packed(array) else None,
        marks=tuple(marks) if len(fills) == 1 else ("_FillValue",),
        packing=_packing(array),
        global_attrs=dict(dataset.attrs),
        unlimited=_unlimited(dataset, array, axes),
        grid_mapping=mapping,
        companions={**found, **mappings},
        bounds={dim: (key, name) for dim, (key, name) in bounds.items() if name in found},
        coordinates={**others, **source_coordinates(axes)},
    )


def _unlimited(dataset: xr.Dataset, array: xr.DataArray, axes: Sequence[Axis]) -> tuple[str, ...]:
    """Return the dimensions of a variable that can grow.

    An axis that is a scalar of the file stands before all others, and grows instead of them: many
    programs read no file that grows along another dimension than the first.
    """
    growing = dataset.encoding.get("unlimited_dims", ())
    own = tuple(str(dim) for dim in array.dims if dim in growing)
    added = tuple(axis.name for axis in axes if axis.name not in array.dims)
    return added if own and added else own


def _float_type(array: xr.DataArray) -> str:
    """Return the floating type that holds the values of a variable: its own, where it has one."""
    stored = np.dtype(array.encoding.get("dtype", array.dtype))
    if stored.kind in "iub" and not is_packed(array):
        return str(np.result_type(stored, np.float32).name)
    floats = np.result_type(array.dtype, np.float32) if array.dtype.kind == "f" else np.float64
    return str(np.dtype(floats).newbyteorder("=").name)


def _packing(array: xr.DataArray) -> Packing | None:
    """Return how a variable is packed into integers, or None if it is not."""
    stored = np.dtype(array.encoding.get("dtype", array.dtype)).newbyteorder("=")
    if not is_packed(array) or stored.kind not in "iu":
        return None
    known = {**{k: array.attrs[k] for k in _OF_PACKED_VALUES if k in array.attrs}, **array.encoding}
    attrs = {key: known[key] for key in (*_OF_PACKING, *_OF_PACKED_VALUES) if key in known}
    if "_Unsigned" in attrs:
        attrs["_Unsigned"] = str(is_unsigned(attrs)).lower()  # many readers know no other word
    return Packing(stored.name, _with_integer_marks(attrs, stored))


def _with_integer_marks(attrs: dict[str, Any], stored: np.dtype[Any]) -> dict[str, Any]:
    """Return attributes of a packing whose marks of missing values are integers that it holds.

    Marks in units of the values are written as the integers that they mean, and those that mean
    none are left out.
    """
    found = dict(attrs)
    for key in ("_FillValue", "missing_value"):
        given = np.ravel(attrs.get(key, ())).tolist()
        marks = [stored_mark(mark, stored, attrs) for mark in given]
        if given != marks:
            whole = [mark for mark in marks if mark is not None]
            found[key] = np.array(whole).astype(stored)[:1] if whole else None
    return {key: value for key, value in found.items() if value is not None}


def _grid_mapping(
    dataset: xr.Dataset, array: xr.DataArray
) -> tuple[str | None, dict[str, Companion]]:
    """Return the attribute that names the map projection, and the variables it names."""
    text = str(_setting(array, "grid_mapping") or "")
    words = [word.rstrip(":") for word in text.split()]
    extended = ":" in text
    named = [w for w, raw in zip(words, text.split(), strict=True) if raw.endswith(":")]
    wanted = [name for name in (named if extended else words[:1]) if name in dataset.variables]
    mappings = {
        name: Companion((), _mapping_value(dataset[name]), dict(dataset[name].attrs))
        for name in wanted
    }
    whole = all(word in dataset.variables for word in words)
    return (text if whole else wanted[0]) if wanted else None, mappings


def _mapping_value(variable: xr.DataArray) -> NDArray[Any]:
    """Return the value of a grid mapping, which means nothing; 0 for a character."""
    numeric = variable.ndim == 0 and variable.dtype.kind in _NUMBERS
    return np.asarray(variable.values if numeric else np.int32(0))


def _axis_bounds(dataset: xr.Dataset, array: xr.DataArray) -> dict[str, tuple[str, str]]:
    """Return, by dimension, the attribute that names the bounds of its coordinate, and the name."""
    found = {}
    for dim in map(str, array.dims):
        name = coordinate_of(dataset, dim)
        for key in _BOUNDS_ATTRS if name is not None else ():
            bounds = str(_setting(dataset[name], key) or "")
            if bounds in dataset.variables and dataset[bounds].dims[:-1] == (dim,):
                found[dim] = (key, bounds)
    return found


def _dated(dataset: xr.Dataset, dim: str, bounds: Companion | None) -> Companion | None:
    """Return the bounds of an axis as its coordinates count: dates, where these are digits."""
    if bounds is None or bounds.values.dtype.kind not in "fiu":
        return bounds
    cells = _cells(dataset[coordinate_of(dataset, dim)], dim, bounds.values)
    if cells is bounds.values:
        return bounds
    return None if cells is None else Companion(bounds.dims, cells)


def _cells(coordinate: xr.DataArray, dim: str, bounds: NDArray[Any]) -> NDArray[Any] | None:
    """Return bounds of a coordinate, as dates if it has digits; None if they are not such dates."""
    values = np.atleast_1d(coordinate.values)
    if values.dtype.kind not in "fiu":
        return bounds
    return cells_of_digits(dim, attrs_of(coordinate), values, bounds)


def read_cells(dataset: xr.Dataset, names: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Return the bounds (m, 2) of coordinates of a dataset that have them, by name."""
    found = {}
    for name in names:
        bounds = str(_setting(dataset[name], "bounds") or "")
        if bounds in dataset.variables and dataset[bounds].dims[:-1] == (name,):
            values = np.asarray(dataset[bounds].values)
            if values.shape[-1] != 2 or values.dtype.kind not in "fiu":
                continue
            cells = _cells(dataset[name], name, values)
            if cells is not None:
                found[name] = cells.astype(np.float64)
    return found


def _bounds_of(dataset: xr.Dataset, names: Sequence[str]) -> list[str]:
    """Return the bounds of auxiliary coordinates."""
    texts = [str(_setting(dataset[name], key) or "") for name in names for key in _BOUNDS_ATTRS]
    return [text for text in texts if text in dataset.variables]


def _auxiliaries(dataset: xr.Dataset, array: xr.DataArray) -> list[str]:
    """Return the coordinates beside the axes: those a variable names, and fields of places."""
    named = str(_setting(array, "coordinates") or "").split()
    places = [
        str(name)
        for name, variable in dataset.variables.items()
        if variable.ndim == _MOST_DIMS and is_place(str(name), variable.attrs)
    ]
    axes = {coordinate_of(dataset, str(dim)) for dim in array.dims}
    return [
        name
        for name in dict.fromkeys([*named, *places])
        if name in dataset.variables
        and name not in axes
        and name != array.name
        and set(dataset[name].dims) <= set(array.dims)
        and dataset[name].ndim <= _MOST_DIMS
    ]


def _setting(array: xr.DataArray, key: str) -> Any:
    """Return an attribute, which xarray may have moved to the encoding; None if there is none."""
    return array.encoding.get(key, array.attrs.get(key))


def _companion(array: xr.DataArray) -> Companion | None:
    """Return a variable to be written beside answers, or None if its values cannot be kept."""
    values = np.asarray(array.values)
    if values.dtype.kind == "O":
        values = np.array([str(v) for v in values.ravel()]).reshape(values.shape)
    if values.dtype.kind not in (*_NUMBERS, *"US"):
        return None
    stored = np.dtype(array.encoding.get("dtype", values.dtype))
    if stored.kind in "fiu" and not is_packed(array) and values.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            exact = values.astype(stored.newbyteorder("="))
        values = exact if np.array_equal(exact, values) else values
    attrs = {str(key): value for key, value in array.attrs.items() if key not in NO_LONGER_TRUE}
    pointers = {key: _setting(array, key) for key in _POINTERS if _setting(array, key)}
    native = values.astype(values.dtype.newbyteorder("="), copy=False)
    return Companion(tuple(map(str, array.dims)), native, {**attrs, **pointers})


def attrs_of(array: xr.DataArray) -> dict[str, Any]:
    """Return the attributes that will hold for answers too."""
    gone = (*NO_LONGER_TRUE, *(_OF_PACKED_VALUES if is_packed(array) else ()))
    return {str(key): value for key, value in array.attrs.items() if key not in gone}


def is_packed(array: xr.DataArray) -> bool:
    """Return whether a variable is stored with a scale or an offset."""
    return "scale_factor" in array.encoding or "add_offset" in array.encoding


def marked_fills(array: xr.DataArray | xr.Variable) -> list[float]:
    """Return the fill values that a variable is marked with, those written as text included."""
    fills = []
    for key in ("_FillValue", "missing_value"):
        for fill in np.ravel(array.encoding.get(key, ())).tolist():
            try:
                fills.append(float(fill))
            except (TypeError, ValueError):
                continue
    return list(dict.fromkeys(fills))


def coordinate_of(dataset: xr.Dataset, dim: str) -> str | None:
    """Return the coordinate of a dimension: its own, or the only place or time along it."""
    if dim in dataset.variables and dataset[dim].ndim < 2:
        return dim
    along = [
        str(name)
        for name, variable in dataset.variables.items()
        if variable.dims == (dim,)
        and variable.dtype.kind in "fiu"
        and (is_place(str(name), variable.attrs) or counts_time(variable.attrs))
    ]
    return along[0] if len(along) == 1 else None
