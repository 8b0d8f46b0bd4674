"""Open NetCDF files and Zarr stores, few at a time: where stored numbers are read.

The libraries for NetCDF are not thread-safe, so that one lock (`NETCDF_LOCK`) is held around
everything they do. Files that are read part by part stay open, the last few of them in each
process. A file that has changed since is opened again, for whoever asks for what it has now, and
refused to those who have begun to read what it had before.
"""

from __future__ import annotations

import math
import os
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Indices
from dkrls_cli.errors import DkrlsError, InputError
from dkrls_cli.files.source import FileKind
from dkrls_cli.files.stored.decoding import Decoder
from dkrls_cli.files.stored.members import ChunkFiles, newest_member

State = tuple[int, ...]
"""Sizes of a file or of folders, and when they were changed; of a store also the newest member."""

NETCDF_LOCK = RLock()
"""Held while a library reads or writes a NetCDF file."""

# Files that stay open at most: a process may have 256 on some systems, and other uses for them.
_MOST_OPEN = 32
# Bytes of the cache of chunks of an open variable: netCDF takes 16 MB or more, for each file.
_CHUNK_CACHE = 2**20


@dataclass(frozen=True, eq=False)
class _Handle:
    """An open variable, how it is decoded, the state of its file then, and the file to close.

    Of a store there is no file to close, but those of its chunks.
    """

    variable: Any
    decoder: Decoder
    stamp: tuple[int, ...]
    file: Any = None
    chunks: ChunkFiles | None = None


_open: OrderedDict[tuple[str, str], _Handle] = OrderedDict()
_left: list[_Handle] = []  # of the process that this one was forked from: never closed here


def read_part(
    path: str,
    kind: FileKind,
    name: str,
    part: Sequence[slice | Indices],
    state: State | None = None,
) -> NDArray[Any]:
    """Read a part of a stored variable as floating numbers, NaN where a value is missing.

    Parameters
    ----------
    path, kind, name
        The file, its kind, and the variable.
    part
        A slice or ascending indices for each dimension of the variable; if there are more than it
        has, the first ones are of axes of one coordinate that it does not have.
    state
        The state of the file when it was opened first; None: any will do.

    Raises
    ------
    InputError
        If the file cannot be read, or is in another state.
    """
    with explain_reading(path):
        if state is not None and _outer_state(path, name) != state[: len(state) - (kind == "zarr")]:
            raise _rewritten(path)
        with NETCDF_LOCK:
            handle = _handle(path, kind, name)
            own = tuple(part[len(part) - len(handle.variable.shape) :])
            if kind == "netcdf":
                raw = handle.variable[own]
        if kind == "zarr":
            raw = handle.variable[own].values
            assert handle.chunks is not None
            if state is not None and handle.chunks.newest(own) > state[-1]:
                raise _rewritten(path)
        return handle.decoder.decode(raw)


def _rewritten(path: str) -> InputError:
    return InputError(
        f"'{path}' was written to after it was opened, and parts of it have been read. "
        "Start again when nothing writes to it."
    )


def file_state(path: str, kind: FileKind, name: str) -> State:
    """Return what differs once a file has been written to: its size and when it was changed.

    Of a store these are those of its folder and of the folder of a variable, and when a file of the
    variable was changed last, which takes a look at each of them.
    """
    if kind != "zarr":
        return _outer_state(path, name)
    return (*_outer_state(path, name), newest_member(os.path.join(path, name)))


def _outer_state(path: str, name: str) -> State:
    folder = os.path.join(path, name)
    found = [os.stat(each) for each in (path, folder) if each == path or os.path.isdir(each)]
    return tuple(number for each in found for number in (each.st_size, each.st_mtime_ns))


def close_files(paths: Collection[str]) -> None:
    """Close those of some files that are open."""
    with NETCDF_LOCK:
        for key in [key for key in _open if key[0] in paths]:
            _close(_open.pop(key))


def _handle(path: str, kind: FileKind, name: str) -> _Handle:
    """Return an open variable; one that was opened before if its file is still the same."""
    stamp, key = _stamp(path), (path, name)
    known = _open.get(key)
    if known is not None and known.stamp == stamp:
        _open.move_to_end(key)
        return known
    if known is not None:
        _close(_open.pop(key))
    opened = (_open_zarr if kind == "zarr" else _open_netcdf)(path, name, stamp)
    _open[key] = opened
    while len(_open) > _MOST_OPEN:
        _close(_open.popitem(last=False)[1])
    return opened


def _stamp(path: str) -> tuple[int, ...]:
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size, found.st_ino


def _open_netcdf(path: str, name: str, stamp: tuple[int, ...]) -> _Handle:
    file = open_netcdf(path)
    try:
        variable = file.variables[name]
        variable.set_auto_maskandscale(False)
        with suppress(RuntimeError):  # NetCDF 3 has no chunks
            variable.set_var_chunk_cache(size=_CHUNK_CACHE)
        attrs = {key: variable.getncattr(key) for key in variable.ncattrs()}
    except BaseException:
        file.close()
        raise
    return _Handle(variable, Decoder.of(variable.dtype, attrs), stamp, file)


def _open_zarr(path: str, name: str, stamp: tuple[int, ...]) -> _Handle:
    import xarray as xr

    file = xr.open_dataset(path, engine="zarr", consolidated=False, decode_cf=False, cache=False)
    variable = file[name].variable
    decoder = Decoder.of(variable.dtype, variable.attrs)
    return _Handle(variable, decoder, stamp, chunks=ChunkFiles.of(path, name))


def _close(handle: _Handle) -> None:
    """Close a file; a store has nothing to close, and may be in use by another thread."""
    if handle.file is not None:
        with suppress(RuntimeError, OSError):
            handle.file.close()


def _begin_anew() -> None:
    """Leave open files to the process that this one was forked from."""
    _left.extend(_open.values())
    _open.clear()
    NETCDF_LOCK.release()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=NETCDF_LOCK.acquire,
        after_in_parent=NETCDF_LOCK.release,
        after_in_child=_begin_anew,
    )


def open_netcdf(path: str) -> Any:
    """Return an open netCDF4.Dataset."""
    import netCDF4

    return netCDF4.Dataset(path)


def zarr_sizes(path: str) -> dict[str, int]:
    """Return the bytes that the metadata of a Zarr store declares for each array, by name."""
    import zarr

    group = zarr.open_group(path, mode="r", use_consolidated=False)
    return {
        name: math.prod(array.shape) * array.dtype.itemsize
        for name, array in group.members()
        if isinstance(array, zarr.Array)
    }


def declared_sizes(file: Any) -> dict[str, int]:
    """Return the bytes that an open NetCDF file says its variables have, by name."""
    return {
        name: math.prod(variable.shape) * variable.dtype.itemsize
        for name, variable in file.variables.items()
        if isinstance(variable.dtype, np.dtype)
    }


@contextmanager
def explain_reading(path: str) -> Iterator[None]:
    """Turn errors of reading into InputErrors of one line that say what to try."""
    try:
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
