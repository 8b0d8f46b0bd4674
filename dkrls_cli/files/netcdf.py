"""Variables of NetCDF files and Zarr stores: which one, on which axes, kept how."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.errors import DkrlsError, InputError
from dkrls_cli.files.source import Source, kind_of
from dkrls_cli.grid.axes import Axis, index_axis, number_axis, text_axis
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.grid.cf import is_time
from dkrls_cli.grid.grid import Style

if TYPE_CHECKING:
    import xarray as xr

_NUMBERS = "fiub"
_NO_LONGER_TRUE = ("bounds", "climatology", "cell_measures", "ancillary_variables", "coordinates")
_OF_PACKED_VALUES = ("valid_range", "valid_min", "valid_max")
_POINTERS = (*_NO_LONGER_TRUE, "grid_mapping", "formula_terms")
_BOUNDS = ("_bnds", "_bnd", "_bounds", "_vertices")
_DEGREES = ("degrees_north", "degree_north", "degrees_east", "degree_east")
_PLACE = re.compile(r"(nav_|[xtuvg])?(lat|long?)(itude)?s?(_(rho|psi|[a-z])|\d*)", re.IGNORECASE)
_UNWRITTEN_FLOAT = 9.9e36
_UNWRITTEN = {  # what netCDF leaves in cells of integers that nobody wrote; any byte may be a value
    "int16": -32767,
    "uint16": 65535,
    "int32": -2147483647,
    "uint32": 4294967295,
    "int64": -9223372036854775806,
    "uint64": 18446744073709551614,
}


def open_dataset(path: str, var: str | None, grows: Callable[[Axis], bool]) -> Source:
    """A variable of a NetCDF file or Zarr store."""
    notes: list[str] = []
    with dataset_at(path) as dataset:
        array = dataset[_choose(dataset, var, path, notes)]
        _refuse_shape(array, path)
        _refuse_curvilinear(dataset, array, path)
        axes, scalars = _axes(dataset, array, grows, notes)
        if not axes:
            raise InputError(f"'{array.name}' in '{path}' has no dimension of more than one cell.")
        notes.extend(_fill_notes(array))
        name, attrs, style = str(array.name), _attrs_of(array), _style(dataset, array)

    def load() -> NDArray[Any]:
        with dataset_at(path) as again:
            return _loaded(again[name]).reshape([axis.size for axis in axes])

    dtype = style.dtype if array.dtype.kind == "f" else "float64"
    return Source(axes, name, attrs, style, dtype, load, scalars, notes)


@contextmanager
def dataset_at(path: str) -> Iterator[xr.Dataset]:
    """An open dataset, times not decoded; what goes wrong in it is said in one line."""
    import xarray as xr

    zarr = {"engine": "zarr", "consolidated": False}
    options = zarr if kind_of(path) == "zarr" else {"engine": "netcdf4"}
    with _explained(path), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what matters of them is found out and said by ourselves
        with xr.open_dataset(
            path, decode_times=False, decode_coords="all", cache=False, **options
        ) as dataset:
            yield dataset


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """What goes wrong while a file is read, in one line and with what to try."""
    try:
        yield
    except (DkrlsError, MemoryError):
        raise
    except ModuleNotFoundError as error:
        raise InputError(
            f"'{path}' needs {error.name} to be read: pip install 'dkrls-cli[zarr]'."
        ) from None
    except Exception as error:  # whatever the libraries make of a damaged file
        raise InputError(f"'{path}' {_reason(error)}") from None


def _reason(error: Exception) -> str:
    text = " ".join(str(getattr(error, "strerror", None) or error).split()).rstrip(".")
    if "Unknown file format" in text:
        return "is not a NetCDF file, whatever its name, or it is damaged."
    locked = "temporarily unavailable" in text or "HDF error" in text or "lock" in text.lower()
    hint = (
        " If the file is whole, another program or the file system may hold a lock on it: try "
        "again with HDF5_USE_FILE_LOCKING=FALSE in the environment."
    )
    return f"cannot be read: {text or type(error).__name__}.{hint if locked else ''}"


def _choose(dataset: xr.Dataset, var: str | None, path: str, notes: list[str]) -> str:
    """The variable asked for, or the one there is, or the only one of most dimensions."""
    variables = {str(name): array for name, array in dataset.data_vars.items()}
    if var is not None:
        if var in dataset.variables:
            return var
        raise InputError(f"'{path}' has no variable '{var}'. It has {_listed(variables)}.")
    named = {word for v in dataset.variables.values() for word in _references(v.attrs)}
    candidates = {
        name: array
        for name, array in variables.items()
        if name not in named and _is_field(name, array)
    }
    if not candidates:
        raise InputError(
            f"'{path}' has no variable of numbers on a grid. It has {_listed(variables)}."
        )
    depth = {n: (sum(size > 1 for size in a.shape), a.ndim) for n, a in candidates.items()}
    deepest = [name for name in candidates if depth[name] == max(depth.values())]
    if len(deepest) > 1:
        raise InputError(
            f"'{path}' has {len(deepest)} variables to choose from: "
            f"{_listed({name: candidates[name] for name in deepest})}. Name one with --var."
        )
    if len(candidates) > 1:
        others = ", ".join(name for name in candidates if name not in deepest)
        notes.append(f"variable {deepest[0]} taken, the only one of most dimensions (not {others})")
    return deepest[0]


def _is_field(name: str, array: xr.DataArray) -> bool:
    """Whether a variable may be the one to model, and does not describe the grid of another."""
    on_grid = max(array.shape, default=0) > 1 and len(set(array.dims)) == array.ndim
    describes = _is_place(name, array.attrs) or name.lower().endswith(_BOUNDS)
    return array.dtype.kind in _NUMBERS and on_grid and not describes


def _is_place(name: str, attrs: Mapping[str, Any]) -> bool:
    """Whether a variable is a latitude or longitude, by its units or else its name."""
    units = str(attrs.get("units", "")).lower()
    named = _PLACE.fullmatch(name) is not None
    return units in _DEGREES or (named and (not units or units.startswith(("deg", "rad"))))


def _references(attrs: Mapping[str, Any]) -> list[str]:
    """Names of other variables that attributes point at."""
    return [word for key in _POINTERS for word in str(attrs.get(key, "")).split()]


def _listed(variables: Mapping[str, xr.DataArray]) -> str:
    def shape(array: xr.DataArray) -> str:
        sizes = zip(array.dims, array.shape, strict=True)
        return " x ".join(f"{dim} {size}" for dim, size in sizes) or "scalar"

    shown = [f"{name} ({shape(array)})" for name, array in list(variables.items())[:12]]
    more = len(variables) - len(shown)
    listed = ", ".join(shown) + (f" and {more} more" if more > 0 else "")
    return listed or "no variable at all outside of groups"


def _refuse_shape(array: xr.DataArray, path: str) -> None:
    """Refuse what is no grid of numbers at all."""
    what = f"'{array.name}' in '{path}'"
    if array.dtype.kind not in _NUMBERS:
        raise InputError(f"{what} holds {array.dtype}. Expected numbers.")
    if len(set(array.dims)) < array.ndim:
        raise InputError(f"{what} has a dimension twice: {', '.join(map(str, array.dims))}.")
    empty = [str(dim) for dim, size in array.sizes.items() if size == 0]
    if empty:
        raise InputError(f"{what} has no cells: {', '.join(empty)} is empty.")


def _refuse_curvilinear(dataset: xr.Dataset, array: xr.DataArray, path: str) -> None:
    """Refuse dimensions that only count cells, and share a 2-D latitude or longitude."""
    counting = [dim for dim in array.dims if array.sizes[dim] > 1 and _only_counts(dataset, dim)]
    for name, variable in dataset.variables.items():
        shared = [str(dim) for dim in variable.dims if dim in counting]
        if len(shared) > 1 and name != array.name and _is_place(str(name), variable.attrs):
            raise InputError(
                f"'{array.name}' in '{path}' is on a curvilinear grid: '{name}' varies along "
                f"{' and '.join(shared)}, so no dimension has coordinates of its own. "
                "Regrid it to a regular grid first (for example with cdo remapbil)."
            )


def _only_counts(dataset: xr.Dataset, dim: Any) -> bool:
    """Whether a dimension has no coordinate, or one that says 0, 1, 2, ... and no more."""
    if dim not in dataset.variables:
        return True
    coordinate = dataset[dim]
    units = str(coordinate.attrs.get("units", "1"))
    if units not in ("", "1") or coordinate.dtype.kind not in "fiu":
        return False
    steps = np.arange(coordinate.size)
    return any(np.array_equal(coordinate.values, steps + start) for start in (0, 1))


def _axes(
    dataset: xr.Dataset, array: xr.DataArray, grows: Callable[[Axis], bool], notes: list[str]
) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
    """The axes of a variable, and the coordinates that it has but one of.

    Where files are joined, an axis that grows counts even if the variable has it as a scalar.
    """
    every = [axis_in(dataset, str(dim), notes) for dim in array.dims]
    kept = [axis for axis in every if axis.size > 1 or grows(axis)]
    dropped = [axis for axis in every if axis not in kept]
    scalars = [axis for axis in scalars_in(dataset) if axis.name in array.coords or is_time(axis)]
    if not any(map(grows, kept)):
        kept = [axis for axis in scalars if grows(axis)][:1] + kept
    for axis in kept:
        _refuse_coordinates(axis)
    if dropped and kept:
        notes.append(f"dimensions of size 1 dropped: {', '.join(axis.name for axis in dropped)}")
    return tuple(kept), tuple(a for a in (*dropped, *scalars) if a.has_coordinate)


def scalars_in(dataset: xr.Dataset) -> list[Axis]:
    """The numbers in a file that stand alone, as axes of one coordinate."""
    return [
        axis_in(dataset, str(name), [])
        for name, variable in dataset.variables.items()
        if variable.ndim == 0 and variable.dtype.kind in "fiu"
    ]


def _refuse_coordinates(axis: Axis) -> None:
    missing = int(np.count_nonzero(~np.isfinite(axis.numbers)))
    if missing:
        raise InputError(
            f"Coordinates of '{axis.name}' have missing values, {missing} of {axis.size}. "
            "Every one needs a number."
        )
    counts = Counter(axis.plain.tolist() if axis.labels is None else axis.labels)
    value, times = counts.most_common(1)[0]
    if times > 1:
        text = str(value) if axis.labels is not None else axis.at(value).texts[0]
        raise InputError(f"'{axis.name}' has {text} {times} times. Keep one, or their mean.")


def axis_in(dataset: xr.Dataset, dim: str, notes: list[str]) -> Axis:
    """The axis of a dimension, or of a scalar."""
    name = _coordinate_of(dataset, dim)
    if name != dim and dataset.sizes[dim] > 1:
        used = f"those of {name}" if name else f"its positions 0 to {dataset.sizes[dim] - 1}"
        notes.append(f"dimension {dim} has no coordinate: {used} are used")
    if name is None:
        return index_axis(dim, dataset.sizes[dim])
    variable = dataset[name]
    attrs, values = _attrs_of(variable), np.atleast_1d(variable.values)
    if values.dtype.kind not in _NUMBERS:
        return text_axis(dim, [_decoded(v) for v in values.tolist()], attrs)
    axis = number_axis(dim, values, attrs)
    if " since " in axis.units.lower() and np.isfinite(axis.numbers).all():
        try:
            axis = _time_axis(axis)
        except (InputError, ValueError, OverflowError) as error:
            reason = str(error).rstrip(".")
            notes.append(f"{dim}: {reason}; its numbers are used as they are, not as dates")
    stored = np.dtype(variable.encoding.get("dtype", values.dtype))
    as_stored = stored.kind in "fiu" and not _is_packed(variable)
    return replace(axis, dtype=stored.newbyteorder("=").name) if as_stored else axis


def _coordinate_of(dataset: xr.Dataset, dim: str) -> str | None:
    """The coordinate of a dimension: its own, or the one latitude, longitude or time along it."""
    if dim in dataset.variables and dataset[dim].ndim < 2:
        return dim
    along = [
        str(name)
        for name, variable in dataset.variables.items()
        if variable.dims == (dim,)
        and variable.dtype.kind in "fiu"
        and (_is_place(str(name), variable.attrs) or " since " in str(variable.attrs.get("units")))
    ]
    return along[0] if len(along) == 1 else None


def _time_axis(axis: Axis) -> Axis:
    """An axis of numbers as dates, if its calendar holds them all."""
    attrs = dict(axis.attrs)
    units, calendar = str(attrs.pop("units")), str(attrs.pop("calendar", "standard")).lower()
    scale = TimeScale(units, calendar)
    if axis.size:
        scale.texts(np.array([axis.numbers.min(), axis.numbers.max()]))
    return replace(axis, time=scale, attrs=attrs)


def _decoded(value: Any) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return text.strip().strip("\x00")


def _attrs_of(array: xr.DataArray) -> dict[str, Any]:
    """Attributes that will hold for answers too."""
    gone = (*_NO_LONGER_TRUE, *(_OF_PACKED_VALUES if _is_packed(array) else ()))
    return {str(key): value for key, value in array.attrs.items() if key not in gone}


def _is_packed(array: xr.DataArray) -> bool:
    return "scale_factor" in array.encoding or "add_offset" in array.encoding


def _style(dataset: xr.Dataset, array: xr.DataArray) -> Style:
    """How the file keeps the variable, to write answers alike."""
    fills = _marked_fills(array)
    pointer = array.encoding.get("grid_mapping", array.attrs.get("grid_mapping", ""))
    mapping = str(pointer).split(":")[0]
    known = mapping in dataset.variables
    floats = np.result_type(array.dtype, np.float32) if array.dtype.kind == "f" else np.float64
    return Style(
        dtype=np.dtype(floats).newbyteorder("=").name,
        fill=fills[0] if fills and not _is_packed(array) else None,
        global_attrs=dict(dataset.attrs),
        grid_mapping=mapping if known else None,
        grid_mapping_attrs=dict(dataset[mapping].attrs) if known else {},
    )


def _marked_fills(array: xr.DataArray) -> list[float]:
    """The fill values that a variable is marked with, those in texts included."""
    fills = []
    for key in ("_FillValue", "missing_value"):
        for fill in np.ravel(array.encoding.get(key, ())).tolist():
            try:
                fills.append(float(fill))
            except (TypeError, ValueError):
                continue
    return list(dict.fromkeys(fills))


def _fill_notes(array: xr.DataArray) -> list[str]:
    fills = _marked_fills(array)
    listed = ", ".join(f"{fill:g}" for fill in fills)
    return [f"several fill values are marked, all taken as missing: {listed}"] if fills[1:] else []


def _loaded(array: xr.DataArray) -> NDArray[Any]:
    """Values as floats of the machine, NaN where a fill value stands that xarray leaves."""
    floats = array.dtype.newbyteorder("=") if array.dtype.kind == "f" else np.dtype(np.float64)
    values = array.values.astype(floats, copy=False)
    for fill in _unmasked_fills(array):
        there = np.isclose(values, fill, rtol=4 * np.finfo(floats).eps, atol=0)
        values = np.where(there, np.nan, values) if there.any() else values
    return values


def _unmasked_fills(array: xr.DataArray) -> list[float]:
    """Fill values marked as text, and the one of integers that were never written."""
    text = isinstance(array.encoding.get("missing_value"), str)
    fills = [f for f in _marked_fills(array) if np.isfinite(f)] if text else []
    unwritten = _UNWRITTEN.get(str(np.dtype(array.encoding.get("dtype", "f8"))))
    if unwritten is not None and "_FillValue" not in array.encoding:
        scale = float(array.encoding.get("scale_factor", 1.0))
        fills.append(unwritten * scale + float(array.encoding.get("add_offset", 0.0)))
    return fills
