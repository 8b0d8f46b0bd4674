"""Grids to files: NetCDF and Zarr, with the attributes and types of the file they came from."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli import __version__
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.output import atomic_write
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.grid import Style

if TYPE_CHECKING:
    import xarray as xr

Variables = Mapping[str, tuple[NDArray[Any], Mapping[str, Any]]]
"""Values and attributes by name."""


def write_grid(
    path: str,
    axes: Sequence[Axis],
    variables: Variables,
    style: Style,
    command: Sequence[str],
    *,
    overwrite: bool,
) -> None:
    """Write variables on common axes to a NetCDF file, or to a Zarr store if named ``.zarr``.

    Parameters
    ----------
    path
        The target, which is written whole or not at all.
    axes, variables
        Coordinates, and values with attributes by name.
    style
        How the file of the training data keeps its variable.
    command
        Words of the command line, for the history.
    overwrite
        Whether the target may exist.

    Raises
    ------
    OutputError
        If the target exists and may not be overwritten, or has no folder.
    InputError
        If the library for the format is not installed.
    """
    dataset = _dataset(axes, variables, style, command)
    encoding = {name: _encoding(style) for name in variables}
    encoding |= {axis.name: {"_FillValue": None} for axis in axes if _is_numeric(axis)}
    zarr = path.rstrip("/").endswith(".zarr")
    with atomic_write(path.rstrip("/"), overwrite=overwrite, folder=zarr) as temporary:
        try:
            if zarr:
                dataset.to_zarr(temporary, encoding=encoding, zarr_format=2, consolidated=True)
            else:
                dataset.to_netcdf(temporary, engine="netcdf4", encoding=encoding)
        except ModuleNotFoundError as error:
            raise InputError(
                f"'{path}' needs {error.name} to be written: pip install 'dkrls-cli[zarr]'."
            ) from None


def write_netcdf_to_stdout(
    axes: Sequence[Axis], variables: Variables, style: Style, command: Sequence[str], folder: Path
) -> None:
    """Write a NetCDF file to stdout, by way of a temporary file in a folder."""
    path = folder / "answers.nc"
    write_grid(str(path), axes, variables, style, command, overwrite=False)
    with open(path, "rb") as file:
        shutil.copyfileobj(file, sys.stdout.buffer)
    sys.stdout.buffer.flush()


def _dataset(
    axes: Sequence[Axis], variables: Variables, style: Style, command: Sequence[str]
) -> xr.Dataset:
    """Return variables on common axes as an xarray.Dataset with the attributes to write."""
    import xarray as xr

    dims = [axis.name for axis in axes]
    coords = {a.name: (a.name, _stored(a), _attrs(a)) for a in axes if a.has_coordinate}
    mapping = {"grid_mapping": style.grid_mapping} if style.grid_mapping else {}
    data: dict[str, Any] = {
        name: (dims, values.astype(style.dtype, copy=False), {**_writable(attrs), **mapping})
        for name, (values, attrs) in variables.items()
    }
    if style.grid_mapping:
        data[style.grid_mapping] = ((), np.int32(0), _writable(style.grid_mapping_attrs))
    lines = [history_line(command), str(style.global_attrs.get("history", ""))]
    history = {"history": "\n".join(filter(None, lines))}
    return xr.Dataset(data, coords, {**_writable(style.global_attrs), **history})


def history_line(command: Sequence[str]) -> str:
    """Return a line for the history of a file: date, command line without folders, version.

    The date is that of the environment variable SOURCE_DATE_EPOCH, if it is set.
    """
    words = shlex.join(_without_folders(word) for word in command)
    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(_epoch_seconds()))
    return f"{date}: {words} (dkrls {__version__})"


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


def _is_numeric(axis: Axis) -> bool:
    return axis.has_coordinate and axis.labels is None


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


def _encoding(style: Style) -> dict[str, Any]:
    fill = None if style.fill is None else np.dtype(style.dtype).type(style.fill)
    return {"_FillValue": fill}
