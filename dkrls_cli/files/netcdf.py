"""Variables of NetCDF files and Zarr stores: which one to read, its axes, and how it is stored."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Indices
from dkrls_cli.errors import DkrlsError, InputError
from dkrls_cli.files.foreign.engines import engine_of, open_by_engine
from dkrls_cli.files.guards.classic import check_classic, is_classic
from dkrls_cli.files.packing import UNWRITTEN_INTEGERS
from dkrls_cli.files.patching import declared_sizes
from dkrls_cli.files.source import FileKind, Source, bytes_on_disk
from dkrls_cli.files.styles import (
    NO_LONGER_TRUE,
    attrs_of,
    coordinate_of,
    is_packed,
    marked_fills,
    style_of,
)
from dkrls_cli.grid.axes import Axis, index_axis, number_axis, text_axis
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.grid.cf import counts_time, is_place, is_time
from dkrls_cli.grid.grid import with_growing
from dkrls_cli.spelling import suggest

if TYPE_CHECKING:
    import xarray as xr

# Kinds of numpy types that can be modelled: floats, integers, unsigned integers, booleans.
_NUMBERS = "fiub"
# Attributes that name other variables.
_POINTERS = (*NO_LONGER_TRUE, "grid_mapping")
# Endings of the names of variables that hold the bounds of cells.
_BOUNDS = ("_bnds", "_bnd", "_bounds", "_vertices")
# Names of calendars that CF does not have, as IRI's data library gives them, and what they mean.
_CALENDAR_NAMES = {"360": "360_day"}
# Variables that a message lists at most.
_MOST_LISTED = 12
# What a compressed file may declare, in times its size, and bytes that are always allowed: deflate
# shrinks to a thousandth at most, and cells that were never written take no room.
_LARGEST_RATIO, _ALWAYS_HELD = 2000, 2**26


def open_dataset(
    path: str,
    kind: FileKind,
    var: str | None,
    grows: Callable[[Axis], bool],
    likely: str | None = None,
) -> Source:
    """Open a variable of a NetCDF file or Zarr store.

    The file is opened once. It is closed again when its values have been read, or when the source
    is no longer used.

    Parameters
    ----------
    path, kind
        The file and its kind.
    var
        Name of the variable; None to choose the only one that can be meant.
    grows
        Tells which scalar is an axis of one coordinate, if no dimension is.
    likely
        Variable to take if `var` is None and the file has it.

    Raises
    ------
    InputError
        If the file cannot be read, or has no such variable on a regular grid.
    """
    notes: list[str] = []
    with ExitStack() as stack:
        dataset = _open_xarray(path, kind)
        stack.callback(dataset.close)
        with _explain(path):
            array = dataset[_choose(dataset, var, likely, path, notes)]
            _refuse_shape(array, path)
            _refuse_curvilinear(dataset, array, path)
            axes, scalars = _axes(dataset, array, grows, notes)
            if not axes:
                raise InputError(
                    f"'{array.name}' in '{path}' has no dimension of more than one cell."
                )
            notes.extend(_fill_notes(array))
            name, attrs, style = str(array.name), attrs_of(array), style_of(dataset, array, axes)
        stack.pop_all()

    def load() -> NDArray[Any]:
        with _explain(path), dataset:
            return _load(array).reshape([axis.size for axis in axes])

    def read(indices: Sequence[Indices]) -> NDArray[Any]:
        places = dict(zip((axis.name for axis in axes), indices, strict=True))
        part = {dim: _span(places[str(dim)]) for dim in array.dims}
        with _explain(path):
            return _load(array.isel(part)).reshape([each.size for each in indices])

    dtype = style.dtype if array.dtype.kind == "f" else "float64"
    return Source(axes, name, attrs, style, dtype, load, scalars, notes, read=read)


def _span(indices: Indices) -> slice | Indices:
    """Return ascending indices as a slice if they have equal steps, which is read at once."""
    steps = np.unique(np.diff(indices))
    if steps.size > 1:
        return indices
    step = int(steps[0]) if steps.size else 1
    return slice(int(indices[0]), int(indices[-1]) + 1, step)


@contextmanager
def open_xarray(path: str, kind: FileKind) -> Iterator[xr.Dataset]:
    """Open a dataset, times not decoded, or raise InputError."""
    with _open_xarray(path, kind) as dataset, _explain(path):
        yield dataset


def _open_xarray(path: str, kind: FileKind) -> xr.Dataset:
    import xarray as xr

    zarr = {"engine": "zarr", "consolidated": False}
    options = zarr if kind == "zarr" else {"engine": "netcdf4"}
    with _explain(path):
        engine = engine_of(path)
        if engine is not None:
            return open_by_engine(path, engine)
        _refuse_declared(path, kind)
        return xr.open_dataset(
            path, decode_times=False, decode_coords="all", cache=False, **options
        )


def _refuse_declared(path: str, kind: FileKind) -> None:
    """Raise InputError if a file declares far more data than it can hold.

    NetCDF 3 stores every number, so that a file that is too short has lost some. Other files may
    be compressed, and the rest of their cells may never have been written.
    """
    if kind == "netcdf" and is_classic(path):
        check_classic(path)
        return
    sizes, held = declared_sizes(path, kind), bytes_on_disk(path)
    name = max(sizes, key=lambda one: sizes[one], default="")
    if name and sizes[name] > max(_ALWAYS_HELD, _LARGEST_RATIO * held):
        raise InputError(
            f"'{path}' has {held} bytes and declares {sizes[name]} bytes of '{name}': hardly any "
            "of it was written. Cut it to the part that has data."
        )


@contextmanager
def _explain(path: str) -> Iterator[None]:
    """Turn errors of reading into InputErrors of one line that say what to try.

    Warnings of the libraries are silenced: what matters of them is found out here.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (DkrlsError, MemoryError):
        raise
    except ModuleNotFoundError as error:
        package = "'dkrls-cli[zarr]'" if error.name == "zarr" else error.name
        raise InputError(
            f"'{path}' needs {error.name} to be read: pip install {package}."
        ) from None
    except Exception as error:  # the libraries raise anything on a damaged file
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


def _choose(
    dataset: xr.Dataset, var: str | None, likely: str | None, path: str, notes: list[str]
) -> str:
    """Return the variable asked for, the likely one, the only one, or the one of most dimensions.

    Raises
    ------
    InputError
        If there is no such variable, or a choice between several.
    """
    variables = {str(name): array for name, array in dataset.data_vars.items()}
    if var is None and likely in variables:
        return likely
    if var is not None:
        if var in dataset.variables:
            return var
        raise InputError(
            f"'{path}' has no variable '{var}'. It has {_list_variables(variables)}."
            f"{suggest(var, variables)}"
        )
    candidates = {name: variables[name] for name in fields_of(dataset, path)}
    depth = {n: (sum(size > 1 for size in a.shape), a.ndim) for n, a in candidates.items()}
    deepest = [name for name in candidates if depth[name] == max(depth.values())]
    if len(deepest) > 1:
        raise InputError(
            f"'{path}' has {len(deepest)} variables to choose from: "
            f"{_list_variables({name: candidates[name] for name in deepest})}. "
            "Choose one by its name.",
            setting="var",
        )
    if len(candidates) > 1:
        others = ", ".join(name for name in candidates if name not in deepest)
        notes.append(f"variable {deepest[0]} taken, the only one of most dimensions (not {others})")
    return deepest[0]


def fields_of(dataset: xr.Dataset, path: str) -> list[str]:
    """Return the variables that may be modelled: numbers on a grid that describe no other variable.

    Raises
    ------
    InputError
        If there is none.
    """
    variables = {str(name): array for name, array in dataset.data_vars.items()}
    named = {word for v in dataset.variables.values() for word in _references(v.attrs)}
    found = [n for n, array in variables.items() if n not in named and _is_field(n, array)]
    if not found:
        raise InputError(
            f"'{path}' has no variable of numbers on a grid. It has {_list_variables(variables)}."
        )
    return found


def _is_field(name: str, array: xr.DataArray) -> bool:
    """Return whether a variable may be the one to model, and does not describe a grid itself."""
    on_grid = max(array.shape, default=0) > 1 and len(set(array.dims)) == array.ndim
    describes = is_place(name, array.attrs) or name.lower().endswith(_BOUNDS)
    return array.dtype.kind in _NUMBERS and on_grid and not describes


def _references(attrs: Mapping[str, Any]) -> list[str]:
    """Return the names of other variables that attributes point at."""
    return [word for key in _POINTERS for word in str(attrs.get(key, "")).split()]


def _list_variables(variables: Mapping[str, xr.DataArray]) -> str:
    """Return the names and shapes of variables as a list for a message."""

    def shape(array: xr.DataArray) -> str:
        sizes = zip(array.dims, array.shape, strict=True)
        return " x ".join(f"{dim} {size}" for dim, size in sizes) or "scalar"

    shown = [f"{name} ({shape(array)})" for name, array in list(variables.items())[:_MOST_LISTED]]
    more = len(variables) - len(shown)
    text = ", ".join(shown) + (f" and {more} more" if more > 0 else "")
    return text or "no variable at all outside of groups"


def _refuse_shape(array: xr.DataArray, path: str) -> None:
    """Raise InputError if a variable is no grid of numbers."""
    what = f"'{array.name}' in '{path}'"
    if array.dtype.kind not in _NUMBERS:
        raise InputError(f"{what} holds {array.dtype}. Expected numbers.")
    if len(set(array.dims)) < array.ndim:
        raise InputError(f"{what} has a dimension twice: {', '.join(map(str, array.dims))}.")
    empty = [str(dim) for dim, size in array.sizes.items() if size == 0]
    if empty:
        raise InputError(f"{what} has no cells: {', '.join(empty)} is empty.")


def _refuse_curvilinear(dataset: xr.Dataset, array: xr.DataArray, path: str) -> None:
    """Raise InputError if the place of a cell depends on two dimensions that only count cells."""
    counting = [dim for dim in array.dims if array.sizes[dim] > 1 and _only_counts(dataset, dim)]
    for name, variable in dataset.variables.items():
        shared = [str(dim) for dim in variable.dims if dim in counting]
        if len(shared) > 1 and name != array.name and is_place(str(name), variable.attrs):
            raise InputError(
                f"'{array.name}' in '{path}' is on a curvilinear grid: '{name}' varies along "
                f"{' and '.join(shared)}, so no dimension has coordinates of its own. "
                "Regrid it to a regular grid first (for example with cdo remapbil)."
            )


def _only_counts(dataset: xr.Dataset, dim: Any) -> bool:
    """Return whether a dimension has no coordinate, or one that is 0, 1, 2, ... or 1, 2, 3, ..."""
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
    """Return the axes of a variable, and axes of one coordinate that it does not have.

    An axis that grows counts even if the variable has it as a scalar only.
    """
    own = tuple(read_axis(dataset, str(dim), notes) for dim in array.dims)
    scalars = [axis for axis in read_scalars(dataset) if axis.name in array.coords or is_time(axis)]
    axes = with_growing(own, scalars, grows)
    for axis in axes:
        _refuse_coordinates(axis)
    names = [axis.name for axis in axes]
    return axes, tuple(axis for axis in scalars if axis.name not in names)


def read_scalars(dataset: xr.Dataset) -> list[Axis]:
    """Return the single numbers in a file as axes of one coordinate."""
    return [
        read_axis(dataset, str(name), [])
        for name, variable in dataset.variables.items()
        if variable.ndim == 0 and variable.dtype.kind in "fiu"
    ]


def _refuse_coordinates(axis: Axis) -> None:
    """Raise InputError if a coordinate is missing, or there twice."""
    missing = int(np.count_nonzero(~np.isfinite(axis.numbers)))
    if missing:
        raise InputError(
            f"Coordinates of '{axis.name}' have missing values, {missing} of {axis.size}. "
            "Expected a finite number for each."
        )
    counts = Counter(axis.plain.tolist() if axis.labels is None else axis.labels)
    value, times = counts.most_common(1)[0]
    if times > 1:
        text = str(value) if axis.labels is not None else axis.at(value).texts[0]
        raise InputError(f"'{axis.name}' has {text} {times} times. Keep one, or their mean.")


def read_axis(dataset: xr.Dataset, dim: str, notes: list[str]) -> Axis:
    """Return the axis of a dimension, or of a scalar, and note what was decided about it."""
    name = coordinate_of(dataset, dim)
    if name != dim and dataset.sizes[dim] > 1:
        used = f"those of {name}" if name else f"its positions 0 to {dataset.sizes[dim] - 1}"
        notes.append(f"dimension {dim} has no coordinate: {used} are used")
    if name is None:
        return index_axis(dim, dataset.sizes[dim])
    variable = dataset[name]
    attrs, values = attrs_of(variable), np.atleast_1d(variable.values)
    if values.dtype.kind not in _NUMBERS:
        return text_axis(dim, [_decode(v) for v in values.tolist()], attrs)
    axis = number_axis(dim, values, attrs)
    if counts_time(attrs) and np.isfinite(axis.numbers).all():
        try:
            axis = _time_axis(axis, notes)
        except (InputError, ValueError, OverflowError) as error:
            reason = str(error).rstrip(".")
            notes.append(f"{dim}: {reason}; its numbers are used as they are, not as dates")
    stored = np.dtype(variable.encoding.get("dtype", values.dtype))
    as_stored = stored.kind in "fiu" and not is_packed(variable)
    return replace(axis, dtype=stored.newbyteorder("=").name) if as_stored else axis


def _time_axis(axis: Axis, notes: list[str]) -> Axis:
    """Return an axis of numbers as dates, or raise an error if its calendar has no such dates."""
    attrs = dict(axis.attrs)
    units, named = str(attrs.pop("units")), str(attrs.pop("calendar", "standard")).lower()
    calendar = _CALENDAR_NAMES.get(named, named)
    scale = TimeScale(units, calendar)
    if axis.size:
        scale.texts(np.array([axis.numbers.min(), axis.numbers.max()]))
    if calendar != named:
        notes.append(f"{axis.name}: calendar '{named}' is taken as {calendar}")
    if scale.counts_months:
        notes.append(f"{axis.name}: '{units}' are taken as calendar months and years")
    return replace(axis, time=scale, attrs=attrs)


def _decode(value: Any) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return text.strip().strip("\x00")


def _fill_notes(array: xr.DataArray) -> list[str]:
    """Return a note if a variable is marked with more than one fill value."""
    fills = marked_fills(array)
    texts = ", ".join(f"{fill:g}" for fill in fills)
    return [f"several fill values are marked, all taken as missing: {texts}"] if fills[1:] else []


def _load(array: xr.DataArray) -> NDArray[Any]:
    """Return values as floats of the machine, NaN also for fill values that xarray leaves."""
    floats = array.dtype.newbyteorder("=") if array.dtype.kind == "f" else np.dtype(np.float64)
    values = array.values.astype(floats, copy=False)
    for fill in _unmasked_fills(array):
        there = np.isclose(values, fill, rtol=4 * np.finfo(floats).eps, atol=0)
        values = np.where(there, np.nan, values) if there.any() else values
    return values


def _unmasked_fills(array: xr.DataArray) -> list[float]:
    """Return fill values marked as text, and the one of integers that were never written."""
    text = isinstance(array.encoding.get("missing_value"), str)
    fills = [f for f in marked_fills(array) if np.isfinite(f)] if text else []
    unwritten = UNWRITTEN_INTEGERS.get(str(np.dtype(array.encoding.get("dtype", "f8"))))
    if unwritten is not None and "_FillValue" not in array.encoding:
        scale = float(array.encoding.get("scale_factor", 1.0))
        fills.append(unwritten * scale + float(array.encoding.get("add_offset", 0.0)))
    return fills
