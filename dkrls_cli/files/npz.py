"""The model file: a header and named arrays in one ``.npz``. The only door to that format.

A file is a zip archive of ``.npy`` members, none compressed: ``header`` (JSON as bytes) and the
arrays. The header begins with ``format`` and ``version`` and lists type and shape of every array,
so that a file can be checked before anything is read into memory. There is no pickle in it, and no
date but that in the history that ``dkrls fit`` writes: otherwise equal models are equal bytes.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dkrls_cli.errors import ModelFileError, OutputError
from dkrls_cli.files.output import atomic_write

FORMAT = "dkrls-model"
VERSION = 3
"""Version of the files that this program writes.

Files of versions 1 (one variable) and 2 (several) held the factors of every level as well.
"""

OLDEST = 1
"""Oldest version of the files that this program reads."""

# Bytes of a header at most, so that a damaged file does not fill the memory.
_LARGEST_HEADER = 2**28
# Bytes that a member has besides its numbers, at most: the header of the npy format.
_LARGEST_MEMBER_HEADER = 2**16


def write(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    *,
    overwrite: bool = True,
) -> None:
    """Write a model file, whole or not at all.

    Parameters
    ----------
    path
        Where to write it.
    header
        Facts that JSON can hold.
    arrays
        Arrays by name.
    overwrite
        Whether the file may exist.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    try:
        _write(path, {"format": FORMAT, "version": VERSION, **header}, arrays, overwrite)
    except OSError as error:
        raise OutputError(f"'{path}' cannot be written ({error.strerror or error}).") from None


def _write(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    overwrite: bool,
) -> None:
    objects = [name for name, array in arrays.items() if array.dtype.hasobject]
    if objects:
        raise ValueError(f"array '{objects[0]}' holds objects, which would need pickle")
    contents = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
    text = json.dumps({**header, "arrays": contents})
    with atomic_write(path, overwrite=overwrite) as temporary:
        members: dict[str, Any] = {"header": np.frombuffer(text.encode(), np.uint8), **arrays}
        with open(temporary, "wb") as file:
            np.savez(file, **members)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return header and arrays of a model file, checked against each other while they are read.

    Raises
    ------
    ModelFileError
        If there is no such file, or it is no model file of this version, or it is damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            header = _read_header(archive, path)
            return header, {
                name: _read_array(archive, name, *header["arrays"][name])
                for name in header["arrays"]
            }
    except FileNotFoundError:
        raise ModelFileError(f"There is no model file '{path}'.") from None
    except (zipfile.BadZipFile, EOFError, KeyError, TypeError, ValueError, OSError) as error:
        raise ModelFileError(
            f"'{path}' is not a model file, or it is damaged ({error}). Fit the model again."
        ) from None


def _read_header(archive: zipfile.ZipFile, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the header of an archive, or raise an error if it is none of this version."""
    if "header.npy" not in archive.namelist():
        raise ValueError("it has no header")
    info = archive.getinfo("header.npy")
    if info.file_size > _LARGEST_HEADER:
        raise ValueError("its header is too large")
    with archive.open(info) as member:
        raw = npy.read_array(member, allow_pickle=False)
    header = json.loads(raw.tobytes())
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError("its header is of another format")
    if header["version"] not in range(OLDEST, VERSION + 1):
        raise ModelFileError(
            f"'{path}' is a model file of version {header['version']}; this program reads versions "
            f"{OLDEST} to {VERSION}. Use the program that wrote it "
            f"({header.get('program', 'unknown')}), or fit the model again."
        )
    return header


def _read_array(archive: zipfile.ZipFile, name: str, dtype: str, shape: list[int]) -> NDArray[Any]:
    """Return one array, or raise ValueError if it is not what the header says."""
    info = archive.getinfo(f"{name}.npy")
    size = np.dtype(dtype).itemsize * int(np.prod(shape, dtype=object))
    stored = info.compress_type == zipfile.ZIP_STORED and info.compress_size == info.file_size
    if not stored or not 0 < info.file_size - size < _LARGEST_MEMBER_HEADER:
        raise ValueError(f"array '{name}' is not of the size its header says")
    with archive.open(info) as member:
        array = npy.read_array(member, allow_pickle=False)
    if array.dtype != np.dtype(dtype) or list(array.shape) != shape:
        raise ValueError(f"array '{name}' is not what the header says")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"array '{name}' holds numbers that are not finite")
    array = np.asarray(array, order="C")
    array.setflags(write=False)
    return array
