"""Variables of NetCDF files and Zarr stores: which one to read, its axes, and how it is stored."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.errors import InputError
from dkrls_cli.files.foreign.engines import engine_of, open_by_engine
from dkrls_cli.files.guards.classic import check_classic, is_classic
from dkrls_cli.files.packing import UNWRITTEN_INTEGERS
from dkrls_cli.files.source import UNWRITTEN, FileKind, Source, bytes_on_disk
from dkrls_cli.files.stored.decoding import float_type
from dkrls_cli.files.stored.digits import dates_of_digits
from dkrls_cli.files.stored.handles import (
    NETCDF_LOCK,
    declared_sizes,
    explain_reading,
    file_state,
    open_netcdf,
    zarr_sizes,
)
from dkrls_cli.files.stored.reader import Reader, StoredVariable
from dkrls_cli.files.styles import (
    NO_LONGER_TRUE,
    attrs_of,
    coordinate_of,
    is_packed,
    marked_fills,
    style_of,
)
from dkrls_cli.grid.axes import Axis, index_axis, number_axis, refuse_places, stored_type, text_axis
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
# How xarray opens a file: times stay numbers, and values are not kept.
_AS_STORED: dict[str, Any] = {"decode_times": False, "decode_coords": "all", "cache": False}


def open_dataset(
    path: str,
    kind: FileKind,
    var: str | None,
    grows: Callable[[Axis], bool],
    likely: str | None = None,
) -> Source:
    """Open a variable of a NetCDF file or Zarr store.

    The file is opened once and closed again: its values are read by the reader of the source.

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
    with open_xarray(path, kind) as dataset:
        array = dataset[_choose(dataset, var, likely, path, notes)]
        _refuse_shape(array, path)
        _refuse_curvilinear(dataset, array, path)
        axes, scalars = _axes(dataset, array, grows, notes)
        if not axes:
            raise InputError(f"'{array.name}' in '{path}' has no dimension of more than one cell.")
        notes.extend(_fill_notes(array, kind))
        name, attrs, style = str(array.name), attrs_of(array), style_of(dataset, array, axes)
        shape = tuple(axis.size for axis in axes)
        stored = StoredVariable(path, kind, name, shape, float_type(array.dtype).name)
        if engine_of(path) is not None:
            load = partial(_load_by_engine, stored)
            return Source(axes, name, attrs, style, stored.dtype, load, scalars, notes)
        reader = Reader((replace(stored, state=file_state(path, kind, name)),))
        chunks = _chunks_of(array, len(axes))
    return Source(
        axes,
        name,
        attrs,
        style,
        stored.dtype,
        reader.read_all,
        scalars,
        notes,
        read=reader.read,
        reader=reader,
        chunks=chunks,
        compressed=_is_compressed(array),
        paths=(path,),
    )


def _load_by_engine(stored: StoredVariable) -> NDArray[Any]:
    """Return the values of a variable that an engine of xarray reads, which it does as a whole."""
    with open_xarray(stored.path, stored.kind) as dataset:
        values = dataset[stored.name].values
    return np.asarray(values, stored.dtype).reshape(stored.shape)


def _is_compressed(array: xr.DataArray) -> bool:
    """Return whether a variable is stored in fewer bytes than its numbers have."""
    names = ("zlib", "szip", "zstd", "bzip2", "blosc", "compression", "compressor", "compressors")
    return any(bool(array.encoding.get(name)) for name in names)


def _chunks_of(array: xr.DataArray, axes: int) -> tuple[int, ...] | None:
    """Return the sizes of the stored chunks along so many axes, or None if there are none."""
    own = array.encoding.get("chunksizes") or array.encoding.get("chunks")
    return None if own is None else (*(1,) * (axes - array.ndim), *map(int, own))


@contextmanager
def open_xarray(path: str, kind: FileKind) -> Iterator[xr.Dataset]:
    """Open a dataset, times not decoded, or raise InputError.

    Warnings of the libraries are silenced: what matters of them is found out here.
    """
    with explain_reading(path), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with NETCDF_LOCK, _opened(path, kind) as dataset:
            yield dataset


def _opened(path: str, kind: FileKind) -> xr.Dataset:
    """Open a dataset by the engine that its path asks for, or else by its kind."""
    engine = engine_of(path)
    if engine is not None:
        return open_by_engine(path, engine)
    return _open_zarr(path) if kind == "zarr" else _open_netcdf(path)


def _open_zarr(path: str) -> xr.Dataset:
    import xarray as xr

    _refuse_declared(path, zarr_sizes(path))
    return xr.open_dataset(path, engine="zarr", consolidated=False, **_AS_STORED)


def _open_netcdf(path: str) -> xr.Dataset:
    """Open a file once, first to see what it declares.

    NetCDF 3 stores every number, so that a file that is too short has lost some. Other files may be
    compressed, and the rest of their cells may never have been written.
    """
    import xarray as xr

    classic = is_classic(path)
    if classic:
        check_classic(path)
    file = open_netcdf(path)
    try:
        if not classic:
            _refuse_declared(path, declared_sizes(file))
        store: Any = xr.backends.NetCDF4DataStore
        return xr.open_dataset(store(file), **_AS_STORED)  # closes the file when it is closed
    except BaseException:
        file.close()
        raise


def _refuse_declared(path: str, sizes: Mapping[str, int]) -> None:
    """Raise InputError if a file declares far more data than it can hold."""
    held = bytes_on_disk(path)
    name = max(sizes, key=lambda one: sizes[one], default="")
    if name and sizes[name] > max(_ALWAYS_HELD, _LARGEST_RATIO * held):
        raise InputError(
            f"'{path}' has {held} bytes and declares {sizes[name]} bytes of '{name}': hardly any "
            "of it was written. Cut it to the part that has data."
        )


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
    """Raise InputError if a coordinate is missing, was never written, is none, or there twice."""
    usable = np.abs(axis.plain) < UNWRITTEN
    if axis.dtype in ("int16", "int32", "int64"):  # the largest of unsigned ones may be meant
        usable &= axis.plain != UNWRITTEN_INTEGERS[axis.dtype]
    missing = int(np.count_nonzero(~usable))
    if missing:
        raise InputError(
            f"Coordinates of '{axis.name}' have missing values, {missing} of {axis.size}. "
            "Expected a finite number for each."
        )
    refuse_places(axis)
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
    written = dates_of_digits(axis)
    if written is not None:
        axis, note = written
        notes.append(note)
        if axis.time is not None:
            return axis
    stored = np.dtype(variable.encoding.get("dtype", values.dtype))
    as_stored = stored.kind in "fiu" and not is_packed(variable)
    return replace(axis, dtype=stored_type(stored)) if as_stored else axis


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


def _fill_notes(array: xr.DataArray, kind: FileKind) -> list[str]:
    """Return notes on what marks missing cells, if it is more than one value, or 0 in a Zarr store.

    Stores that nobody told otherwise have a fill value of 0, which readers take for missing.
    """
    fills = marked_fills(array)
    notes = []
    if kind == "zarr" and 0.0 in fills and not is_packed(array):
        notes.append(
            f"cells of '{array.name}' that hold 0, its fill value in the store, are taken as "
            "missing: if zeros are data, take that mark out (fill_value null in .zarray)"
        )
    if fills[1:]:
        texts = ", ".join(f"{fill:g}" for fill in fills)
        notes.append(f"several fill values are marked, all taken as missing: {texts}")
    return notes
