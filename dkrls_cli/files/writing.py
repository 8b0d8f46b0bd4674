"""Grids to files: NetCDF and Zarr, with the attributes and types of the file they came from."""

from __future__ import annotations

import json
import math
import os
import shlex
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli import __version__
from dkrls_cli.errors import InputError, OutputError, SettingError
from dkrls_cli.files.output.atomic import atomic_write, copy_to_stdout
from dkrls_cli.files.output.leftovers import private_folder
from dkrls_cli.files.packing import Encoded, encode, true_ranges
from dkrls_cli.files.patching.members import Members, append_members
from dkrls_cli.files.styles import NO_LONGER_TRUE
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.grid import REALIZATION
from dkrls_cli.grid.inherit import (
    BOUNDS,
    bounds_on,
    companions_on,
    true_attrs,
    true_file_attrs,
)
from dkrls_cli.grid.style import Companion, Style, same_values

if TYPE_CHECKING:
    import xarray as xr

# Bytes above which a variable is compressed by default: below, files open faster without.
_COMPRESSED_FROM = 10**6
# Level of compression by default: higher ones take longer and gain a few percent.
_LEVEL = 1
# Bytes of a chunk along a dimension that can grow: few enough to read one, many enough to be quick.
_CHUNK = 2**20


@dataclass(frozen=True, eq=False)
class Field:
    """A variable to write.

    Attributes
    ----------
    name
        Name of the variable.
    values
        Values, NaN where missing.
    axes
        Coordinates, in the order of the values.
    attrs
        Attributes of the variable.
    style
        How the file of the training data keeps the variable.
    """

    name: str
    values: NDArray[Any]
    axes: Sequence[Axis]
    attrs: Mapping[str, Any] = dataclass_field(default_factory=dict)
    style: Style = dataclass_field(default_factory=Style)

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the dimensions."""
        return tuple(axis.name for axis in self.axes)


def write_grid(
    path: str,
    fields: Sequence[Field],
    command: Sequence[str],
    *,
    overwrite: bool,
    compress: int | None = None,
    members: Sequence[Members] = (),
) -> list[str]:
    """Write variables to a NetCDF file, or to a Zarr store if named ``.zarr``.

    Packed variables are packed again, and dimensions that could grow can grow. What described the
    source is written as far as it holds at these coordinates, see :mod:`dkrls_cli.grid.inherit`.

    Parameters
    ----------
    path
        The target, which is written whole or not at all.
    fields
        The variables. Dimensions of the same name have the same coordinates. Attributes of the
        whole file are those of the first one.
    command
        Words of the command line, for the history.
    overwrite
        Whether the target may exist.
    compress
        Level of compression, 0 (none) to 9. None: 1 for variables above 1 MB, and what Zarr does.
    members
        Ensembles of these variables, whose members are drawn and written one by one.

    Returns
    -------
    list of str
        What could not be written as in the source, a sentence each, for the user.

    Raises
    ------
    OutputError
        If the target exists and may not be overwritten, or has no folder.
    InputError
        If the library for the format is not installed, or two fields have different coordinates
        along the same dimension.
    """
    dataset, notes = dataset_of(fields, command, reserved_names(members))
    zarr = path.rstrip("/").endswith(".zarr")
    with atomic_write(path.rstrip("/"), overwrite=overwrite, folder=zarr) as temporary:
        with explain_writing(path):
            encoding = encodings(dataset, fields, compress, zarr)
            write_dataset(dataset, temporary, encoding, growing_dims(fields), zarr=zarr)
        write_members(temporary, members, compress, zarr=zarr)
    return notes


def write_dataset(
    dataset: xr.Dataset,
    path: Path,
    encoding: Mapping[str, Mapping[str, Any]],
    grows: Sequence[str],
    *,
    zarr: bool,
) -> None:
    """Write a dataset of stored values to a file or store that is empty."""
    if zarr:
        dataset.to_zarr(path, encoding=encoding, zarr_format=2, consolidated=True)
    else:
        dataset.to_netcdf(path, engine="netcdf4", encoding=encoding, unlimited_dims=grows)


@contextmanager
def explain_writing(path: str) -> Iterator[None]:
    """Turn errors of libraries on names, attributes and themselves into errors of one line."""
    try:
        yield
    except ImportError as error:
        raise InputError(
            f"'{path}' needs {error.name or 'zarr'} to be written: pip install 'dkrls-cli[zarr]'."
        ) from None
    except (AttributeError, TypeError, ValueError) as error:  # of names and attributes
        reason = " ".join(str(error).split()).rstrip(".")
        raise OutputError(f"'{path}' cannot be written ({reason}).") from None


def write_members(
    path: Path, members: Sequence[Members], compress: int | None, *, zarr: bool
) -> None:
    """Add ensembles to a file that has the variables they belong to."""
    filters = partial(compression, level=compress, zarr=zarr)
    for each in members:
        append_members(str(path), each, filters, zarr=zarr)


def reserved_names(members: Sequence[Members]) -> set[str]:
    """Return the names of variables that ensembles take."""
    return {each.name for each in members} | ({REALIZATION} if members else set())


def write_netcdf_to_stdout(
    fields: Sequence[Field],
    command: Sequence[str],
    *,
    compress: int | None = None,
    members: Sequence[Members] = (),
) -> list[str]:
    """Write a NetCDF file to stdout, by way of a temporary file; return the notes."""
    with private_folder() as folder:
        path = folder / "answers.nc"
        notes = write_grid(
            str(path), fields, command, overwrite=False, compress=compress, members=members
        )
        copy_to_stdout(path)
    return notes


# What goes into the file --------------------------------------------------------------------------


def dataset_of(
    fields: Sequence[Field],
    command: Sequence[str],
    reserved: Collection[str] = (),
    store: Callable[[Field, dict[str, Any]], Encoded] | None = None,
) -> tuple[xr.Dataset, list[str]]:
    """Return fields as an xarray.Dataset of stored values and attributes, and notes on them.

    What stands beside them under a reserved name is left out. `store` encodes a field with the
    attributes that hold for it; by default it looks at the values for what holds them.
    """
    import xarray as xr

    coords, beside = _coordinates(fields)
    clash = [field.name for field in fields if field.name in coords]
    if clash:
        raise OutputError(
            f"'{clash[0]}' is the name of a variable and of a dimension: one file cannot hold both."
        )
    taken = {field.name for field in fields} | coords.keys() | set(reserved)
    data: dict[str, Any] = {}
    notes: list[str] = []
    for field in fields:
        kept = companions_on(field.style, field.axes)
        kept = {name: one for name, one in kept.items() if name not in taken}
        for name, one in kept.items():
            _refuse_difference(name, beside.setdefault(name, one), one)
        encoded = (store or _encode)(field, _true_attrs(field))
        notes.extend(encoded.notes)
        attrs = {**encoded.attrs, **_pointers(field.style, kept, coords)}
        data[field.name] = (field.dims, encoded.values, attrs)
    others = {n: _stored_companion(one) for n, one in beside.items() if n not in taken}
    return xr.Dataset({**data, **others}, coords, _file_attrs(fields[0], command)), notes


def _coordinates(fields: Sequence[Field]) -> tuple[dict[str, Any], dict[str, Companion]]:
    """Return the coordinates of all axes as they are stored, and the bounds of their cells."""
    coords, bounds = dict[str, Any](), dict[str, Companion]()
    for name, (axis, style) in _common_axes(fields).items():
        if not axis.has_coordinate:
            continue
        values, attrs = _stored(axis), _attrs(axis)
        cells = bounds_on(style, axis)
        if cells is not None:
            attribute, called, bounds[called] = cells
            attrs[attribute] = called
        coords[name] = (name, values, true_ranges(attrs, values))
    return coords, bounds


def _file_attrs(first: Field, command: Sequence[str]) -> dict[str, Any]:
    """Return the attributes of the whole file: those of the source that hold, and the history."""
    style = replace(first.style, global_attrs=true_file_attrs(first.style, first.axes))
    return _writable(style.after(history_line(command)).global_attrs)


def _common_axes(fields: Sequence[Field]) -> dict[str, tuple[Axis, Style]]:
    """Return the axes of all fields by name, each with the style of its field.

    Raises
    ------
    InputError
        If two fields have different coordinates along a dimension.
    """
    found: dict[str, tuple[Axis, Style]] = {}
    owner: dict[str, str] = {}
    for field in fields:
        for axis in field.axes:
            known, _ = found.setdefault(axis.name, (axis, field.style))
            first = owner.setdefault(axis.name, field.name)
            if known.units != axis.units or not same_values(_stored(known), _stored(axis)):
                raise InputError(
                    f"'{first}' and '{field.name}' have different coordinates of '{axis.name}': "
                    "they do not go into one file. Write each to its own."
                )
    return found


def _refuse_difference(name: str, known: Companion, companion: Companion) -> None:
    """Raise InputError if a companion of another field has this name and other values."""
    if known.dims != companion.dims or not same_values(known.values, companion.values):
        raise InputError(
            f"The variables have different '{name}' beside them: they do not go into one file. "
            "Write each to its own."
        )


def _stored_companion(companion: Companion) -> tuple[tuple[str, ...], NDArray[Any], dict[str, Any]]:
    values = companion.values
    missing = values.dtype.kind == "f" and np.isnan(values).any()
    mark = {"_FillValue": values.dtype.type(np.nan)} if missing else {}
    attrs = true_ranges(_writable(companion.attrs), values)
    return companion.dims, values, {**attrs, **mark}


def _pointers(
    style: Style, companions: Mapping[str, Companion], coords: Mapping[str, Any]
) -> dict[str, str]:
    """Return the attributes of a variable that name its coordinates and its map projection."""
    bounds = {str(one.attrs[k]) for one in companions.values() for k in BOUNDS if k in one.attrs}
    beside = [n for n in companions if n not in bounds and n not in style.mappings]
    found = {"coordinates": " ".join(beside)} if beside else {}
    mappings = [name for name in style.mappings if name in companions]
    if mappings and style.grid_mapping is not None:
        words = {word.rstrip(":") for word in style.grid_mapping.split()}
        whole = words <= {*companions, *coords}
        found["grid_mapping"] = style.grid_mapping if whole else mappings[0]
    return found


def _true_attrs(field: Field) -> dict[str, Any]:
    """Return the attributes of a field that hold on its axes, as a file can have them."""
    attrs = true_attrs(field.attrs, field.style, field.axes)
    gone = [key for key in NO_LONGER_TRUE if key != "ancillary_variables"]
    return {key: value for key, value in _writable(attrs).items() if key not in gone}


def _encode(field: Field, attrs: dict[str, Any]) -> Encoded:
    return encode(field.name, field.values, attrs, field.style)


# Filters and chunks -------------------------------------------------------------------------------


def encodings(
    dataset: xr.Dataset, fields: Sequence[Field], compress: int | None, zarr: bool
) -> dict[str, dict[str, Any]]:
    """Return how each variable is compressed and cut into chunks, by name."""
    names = {field.name for field in fields}
    grows = growing_dims(fields)
    found = {}
    for name, variable in dataset.variables.items():
        encoding: dict[str, Any] = {}
        if variable.dtype.kind in "fiu":
            if "_FillValue" not in variable.attrs:
                encoding["_FillValue"] = None
            level = compress if name in names else None
            encoding |= compression(variable.nbytes, level, zarr) if variable.ndim else {}
            if not zarr:
                encoding |= _chunks(variable.sizes, variable.dtype.itemsize, grows)
        found[str(name)] = encoding
    return found


def growing_dims(fields: Sequence[Field]) -> list[str]:
    """Return the dimensions along which the file can grow, as its source can."""
    return list(dict.fromkeys(d for f in fields for d in f.style.unlimited if d in f.dims))


def compression(size: int, level: int | None, zarr: bool) -> dict[str, Any]:
    """Return how a variable of some bytes is compressed: as asked for, or else if it is large."""
    if level is None and size <= _COMPRESSED_FROM:
        return {}
    return _zarr_filters(level) if zarr else _netcdf_filters(level)


def _netcdf_filters(level: int | None) -> dict[str, Any]:
    chosen = _LEVEL if level is None else level
    return {"zlib": True, "complevel": chosen, "shuffle": True} if chosen else {"zlib": False}


def _zarr_filters(level: int | None) -> dict[str, Any]:
    """Return the compressor of a level; none for 0, and without a level that of the library."""
    if level is None:
        return {}
    if level == 0:
        return {"compressors": None}
    import numcodecs

    return {"compressors": numcodecs.Blosc(cname="zlib", clevel=level, shuffle=1)}


def _chunks(sizes: Mapping[Any, int], itemsize: int, grows: Sequence[str]) -> dict[str, Any]:
    """Return chunks of many records where one record is small: netCDF makes a chunk of each."""
    growing = [dim for dim in sizes if dim in grows]
    record = itemsize * math.prod(size for dim, size in sizes.items() if dim not in grows)
    if len(growing) != 1 or record >= _CHUNK:
        return {}
    many = max(1, min(sizes[growing[0]], _CHUNK // record))
    return {"chunksizes": [many if dim in grows else size for dim, size in sizes.items()]}


# History and attributes ---------------------------------------------------------------------------


def history_line(command: Sequence[str]) -> str:
    """Return a line for the history of a file: date, command line without folders, version.

    The date is that of the environment variable SOURCE_DATE_EPOCH, if it is set.
    """
    return f"{date_text()}: {command_text(command)} (dkrls {__version__})"


def date_text() -> str:
    """Return the date and time of now, or of the environment variable SOURCE_DATE_EPOCH."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(_epoch_seconds()))


def command_text(command: Sequence[str]) -> str:
    """Return a command as a shell reads it, without the folders of its files."""
    return shlex.join(_without_folders(word) for word in command)


def _epoch_seconds() -> int:
    """Return the seconds since 1970, or those that SOURCE_DATE_EPOCH gives."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    if given and not given.isdecimal():
        raise SettingError(f"SOURCE_DATE_EPOCH is '{given}'. Expected whole seconds since 1970.")
    return int(given or time.time())


def _without_folders(word: str) -> str:
    """Return a word of a command line with paths cut to their last part."""
    option, equals, value = word.partition("=")
    if equals and os.sep in value:
        return f"{option}={os.path.basename(value.rstrip(os.sep))}"
    return os.path.basename(word.rstrip(os.sep)) if os.sep in word else word


def _stored(axis: Axis) -> NDArray[Any]:
    """Return coordinates as the file keeps them: times as numbers, labels as texts."""
    return axis.values if axis.labels is not None else axis.stored


def _attrs(axis: Axis) -> dict[str, Any]:
    time = {"units": axis.time.units, "calendar": axis.time.calendar} if axis.time else {}
    return {**_writable(axis.attrs), **time}


def _writable(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes as NetCDF can hold them: numbers, vectors of numbers, and texts."""
    return {name: _attribute(value) for name, value in attrs.items()}


def _attribute(value: Any) -> Any:
    if isinstance(value, str | bytes):
        return value
    if isinstance(value, Mapping) or value is None:
        return json.dumps(value, default=str)
    array = np.asarray(value)
    if array.dtype.kind == "b":
        return array.astype(np.int8)[()]
    return value if array.size and array.ndim < 2 and array.dtype.kind in "fiuU" else str(value)
