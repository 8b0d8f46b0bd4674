"""The model file: a header and named arrays in one ``.npz``. The only door to that format.

A file is a zip archive of ``.npy`` members, none compressed: ``header`` (JSON as bytes) and the
arrays. The header opens with ``format`` and ``version`` and lists type and shape of every array,
so that a file can be checked before anything is read into memory. No pickle, no dates: equal
models are equal bytes.
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
from dkrls_cli.files.output import replacing

FORMAT = "dkrls-model"
VERSION = 1
_LARGEST_HEADER = 2**28


def write(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    *,
    overwrite: bool = True,
) -> None:
    """Write a model file beside its target, then move it over: there is never half a file."""
    try:
        _write(path, header, arrays, overwrite)
    except OSError as error:
        raise OutputError(f"'{path}' cannot be written ({error.strerror or error}).") from None


def _write(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    overwrite: bool,
) -> None:
    listed = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
    text = json.dumps({"format": FORMAT, "version": VERSION, **header, "arrays": listed})
    with replacing(path, overwrite=overwrite) as temporary:
        members = {"header": np.frombuffer(text.encode(), np.uint8), **arrays}
        with open(temporary, "wb") as file:
            np.savez(file, allow_pickle=False, **members)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays of a model file, checked against each other before they are loaded."""
    try:
        with zipfile.ZipFile(path) as archive:
            header = _header(archive, path)
            return header, {
                name: _array(archive, name, *header["arrays"][name]) for name in header["arrays"]
            }
    except FileNotFoundError:
        raise ModelFileError(f"There is no model file '{path}'.") from None
    except (zipfile.BadZipFile, EOFError, KeyError, TypeError, ValueError, OSError) as error:
        raise ModelFileError(
            f"'{path}' is not a model file, or it is damaged ({error}). Fit the model again."
        ) from None


def _header(archive: zipfile.ZipFile, path: str | os.PathLike[str]) -> dict[str, Any]:
    if "header.npy" not in archive.namelist():
        raise ValueError("it has no header")
    info = archive.getinfo("header.npy")
    if info.file_size > _LARGEST_HEADER:
        raise ValueError("its header is too large")
    with archive.open(info) as member:
        raw = npy.read_array(member, allow_pickle=False)
    header = json.loads(raw.tobytes())
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError("its header is of something else")
    if header["version"] != VERSION:
        raise ModelFileError(
            f"'{path}' is a model file of version {header['version']}; this program reads version "
            f"{VERSION}. Use the program that wrote it ({header.get('program', 'unknown')}), "
            "or fit the model again."
        )
    return header


def _array(archive: zipfile.ZipFile, name: str, dtype: str, shape: list[int]) -> NDArray[Any]:
    """One array, if the archive really holds what the header promises."""
    info = archive.getinfo(f"{name}.npy")
    size = np.dtype(dtype).itemsize * int(np.prod(shape, dtype=object))
    stored = info.compress_type == zipfile.ZIP_STORED and info.compress_size == info.file_size
    if not stored or not 0 < info.file_size - size < 2**16:
        raise ValueError(f"array '{name}' is not of the size its header says")
    with archive.open(info) as member:
        array = npy.read_array(member, allow_pickle=False)
    if array.dtype != np.dtype(dtype) or list(array.shape) != shape:
        raise ValueError(f"array '{name}' is not what the header says")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"array '{name}' holds numbers that are not finite")
    array.setflags(write=False)
    return np.ascontiguousarray(array)
