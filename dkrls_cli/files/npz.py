"""The model file: a header and named arrays in one ``.npz``. The only door to that format.

A file is a zip archive of ``.npy`` members, none compressed: ``header`` (JSON as bytes), the arrays
and ``digest``, the SHA-256 of all others. The header begins with ``format`` and ``version`` and
lists type and shape of every array, so that a file can be checked before anything is read into
memory. There is no pickle in it, and no date but that in the history that ``dkrls fit`` writes:
otherwise equal models are equal bytes.

Nothing of a file is believed: its members are stored and not compressed, do not overlap and have
the sizes that the file has room for; types are those of a short list; the header is bounded in size
and depth. The digest tells a file that was damaged or changed from one of another version. It is no
signature: whoever changes a file on purpose can compute a new one.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import struct
import zipfile
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import IO, Any, TypeVar

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dkrls_cli.arrays import are_finite
from dkrls_cli.errors import ModelFileError, OutputError
from dkrls_cli.files.output.atomic import atomic_write

T = TypeVar("T")

FORMAT = "dkrls-model"
VERSION = 3
"""Version of the files that this program writes.

Files of versions 1 (one variable) and 2 (several) held the factors of every level as well.
"""

NEWEST = 4
"""Newest version of the files that this program reads: one with models that refer to their data."""

OLDEST = 1
"""Oldest version of the files that this program reads."""

# Bytes of a header at most: Python needs forty times as many to hold the worst of them.
_LARGEST_HEADER = 2**24
# Objects and lists inside each other in a header, at most: ours have eight.
_DEEPEST = 64
# Bytes that a member has besides its numbers, at most: the header of the npy format.
_LARGEST_MEMBER_HEADER = 2**16
# Bytes of the list of members at the end of a file, at most: room for 50,000 of them.
_LARGEST_LIST = 2**22
# Types of arrays, as numpy writes them: truth values, numbers, and texts of some length.
_TYPES = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248]|[SU]\d{1,5})")
# Bytes that are read at a time.
_BLOCK = 2**20

_DIGEST, _HEADER = "digest", "header"

# Records at the end of a zip archive: their marks, sizes, and where the size of the list stands.
_END, _END_SIZE, _LONGEST_COMMENT = b"PK\x05\x06", 22, 2**16
_LARGE_END = b"PK\x06\x06"


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
    text = json.dumps({**header, _DIGEST: "sha256", "arrays": contents}).encode()
    if len(text) > _LARGEST_HEADER - _LARGEST_MEMBER_HEADER:
        raise OutputError(
            f"'{path}' cannot be written: the labels and attributes of the data take {len(text)} "
            f"bytes, and a model file has room for {_LARGEST_HEADER}."
        )
    members: dict[str, Any] = {_HEADER: np.frombuffer(text, np.uint8), **arrays}
    members[_DIGEST] = _digest(members)
    with atomic_write(path, overwrite=overwrite) as temporary, open(temporary, "wb") as file:
        np.savez(file, **members)


def _digest(members: Mapping[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """Return the digest of the names, types, shapes and bytes of all members, in their order."""
    found = sha256()
    for name, array in members.items():
        found.update(f"{name} {array.dtype.str} {list(array.shape)}\n".encode())
        flat = np.ascontiguousarray(array).reshape(-1)
        found.update(flat.view(np.uint8).data if flat.size else b"")
    return np.frombuffer(found.digest(), np.uint8)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return header and arrays of a model file, checked against each other while they are read.

    Raises
    ------
    ModelFileError
        If there is no such file, or it is no model file of this version, or it is damaged.
    """
    return _read_archive(path, _read_members)


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the header of a model file alone, whatever the size of its arrays.

    Raises
    ------
    ModelFileError
        As by :func:`read`, for what the header tells.
    """
    return _read_archive(path, lambda archive, _size, _path: _read_header(archive, path)[1])


def _read_archive(
    path: str | os.PathLike[str],
    reader: Callable[[zipfile.ZipFile, int, str | os.PathLike[str]], T],
) -> T:
    """Return what is read from a model file; raise ModelFileError if it cannot be."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ModelFileError(f"'{path}' is not a model file: it is no file at all.")
        with open(path, "rb") as file:
            size = _check_list(file)
            with zipfile.ZipFile(file) as archive:
                return reader(archive, size, path)
    except FileNotFoundError:
        raise ModelFileError(f"There is no model file '{path}'.") from None
    except RecursionError:
        raise ModelFileError(_damage(path, "its header is nested too deeply")) from None
    except (
        zipfile.BadZipFile,
        EOFError,
        KeyError,
        NotImplementedError,
        RuntimeError,
        TypeError,
        ValueError,
        OSError,
        struct.error,
    ) as error:
        raise ModelFileError(_damage(path, error)) from None


# First bytes of a model file: the header is its first member and begins with the format.
_START = 512


def is_model_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a file ends in .npz and begins as a model file does; nothing else is read."""
    if os.path.splitext(path)[1].lower() != ".npz" or not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            start = file.read(_START)
    except OSError:
        return False
    marks = (f"{_HEADER}.npy".encode(), f'"format": "{FORMAT}"'.encode())
    return start.startswith(b"PK\x03\x04") and all(mark in start for mark in marks)


def _damage(path: str | os.PathLike[str], reason: object) -> str:
    text = " ".join(str(reason).split())
    return f"'{path}' is not a model file, or it is damaged ({text}). Fit the model again."


def _check_list(file: IO[bytes]) -> int:
    """Return the size of a file, or raise ValueError if its list of members is too large.

    The whole list is read as soon as an archive is opened.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _LONGEST_COMMENT - _END_SIZE))
    tail = file.read()
    end, large = tail.rfind(_END), tail.rfind(_LARGE_END)
    listed = [struct.unpack_from("<L", tail, end + 12)[0]] if end >= 0 else []
    if large >= 0:
        listed.append(struct.unpack_from("<Q", tail, large + 40)[0])
    if max(listed, default=0) > _LARGEST_LIST:
        raise ValueError("it has too many members")
    file.seek(0)
    return size


def _read_members(
    archive: zipfile.ZipFile, size: int, path: str | os.PathLike[str]
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return header and arrays of an archive of some bytes."""
    _check_members(archive, size)
    raw, header = _read_header(archive, path)
    listed = header["arrays"]
    if not isinstance(listed, dict) or {_HEADER, _DIGEST} & listed.keys():
        raise ValueError("arrays is no object of names, types and shapes")
    arrays = {name: _read_array(archive, name, *_type_and_shape(name, listed)) for name in listed}
    if _DIGEST in header:
        found = _read_array(archive, _DIGEST, np.dtype(np.uint8), (sha256().digest_size,))
        if found.tobytes() != _digest({_HEADER: raw, **arrays}).tobytes():
            raise ModelFileError(
                f"'{path}' is damaged, or was changed after it was written: its digest is that of "
                "other contents. Fit the model again."
            )
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not are_finite(array):
            raise ValueError(f"array '{name}' holds numbers that are not finite")
    return header, arrays


def _check_members(archive: zipfile.ZipFile, size: int) -> None:
    """Raise ValueError if members are compressed, named twice, or larger than their file."""
    members = archive.infolist()
    if len({member.filename for member in members}) < len(members):
        raise ValueError("it has a member twice")
    if sum(member.file_size for member in members) > size:
        raise ValueError("its members are larger than the file")
    for member in members:
        stored = member.compress_type == zipfile.ZIP_STORED and not member.flag_bits & 1
        if not stored or member.compress_size != member.file_size:
            raise ValueError(f"member '{member.filename}' is compressed")


def _read_header(
    archive: zipfile.ZipFile, path: str | os.PathLike[str]
) -> tuple[NDArray[Any], dict[str, Any]]:
    """Return the header of an archive, as bytes and as it reads.

    Raise an error if it is none of this version.
    """
    if f"{_HEADER}.npy" not in archive.namelist():
        raise ValueError("it has no header")
    size = archive.getinfo(f"{_HEADER}.npy").file_size
    if size > _LARGEST_HEADER:
        raise ValueError("its header is too large")
    with archive.open(f"{_HEADER}.npy") as member:
        shape, _, dtype = _npy_header(member)
        if dtype != np.uint8 or len(shape) != 1 or not 0 <= shape[0] <= size:
            raise ValueError("its header is no text")
        raw = np.frombuffer(_read_bytes(member, shape[0]), np.uint8)
    header = json.loads(raw.tobytes())
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError("its header is of another format")
    version = header.get("version")
    if type(version) is not int or version not in range(OLDEST, NEWEST + 1):
        raise ModelFileError(
            f"'{path}' is a model file of version {str(version)[:20]}; this program reads versions "
            f"{OLDEST} to {NEWEST}. Use the program that wrote it "
            f"({str(header.get('program', 'unknown'))[:40]}), or fit the model again."
        )
    if _is_deep(header):
        raise ValueError(f"its header is nested more than {_DEEPEST} deep")
    return raw, header


def _is_deep(value: Any) -> bool:
    """Return whether objects and lists are nested too deeply."""
    layer = [value]
    for _ in range(_DEEPEST):
        inner = [one.values() if isinstance(one, dict) else one for one in layer]
        layer = [each for one in inner for each in one if isinstance(each, dict | list)]
        if not layer:
            return False
    return True


def _type_and_shape(name: str, listed: Mapping[str, Any]) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return type and shape of an array as the header has them, or raise ValueError."""
    given = listed[name]
    if not isinstance(given, list) or len(given) != 2 or not isinstance(given[1], list):
        raise ValueError(f"arrays.{name} is no type and shape")
    dtype, shape = given
    if not isinstance(dtype, str) or not _TYPES.fullmatch(dtype):
        raise ValueError(f"arrays.{name} is of a type that no model has, {str(dtype)[:20]}")
    if not all(type(size) is int and 0 <= size < 2**63 for size in shape) or len(shape) > 32:
        raise ValueError(f"arrays.{name} has no such shape as {str(shape)[:40]}")
    return np.dtype(dtype), tuple(shape)


def _read_array(
    archive: zipfile.ZipFile, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> NDArray[Any]:
    """Return one array, or raise ValueError if it is not what the header says."""
    info = archive.getinfo(f"{name}.npy")
    size = dtype.itemsize * math.prod(shape)
    if not 0 < info.file_size - size < _LARGEST_MEMBER_HEADER:
        raise ValueError(f"array '{name}' is not of the size its header says")
    with archive.open(info) as member:
        stored, fortran, kind = _npy_header(member)
        if kind != dtype or stored != shape:
            raise ValueError(f"array '{name}' is not what the header says")
        flat = np.frombuffer(_read_bytes(member, size), dtype)
        if member.read(1):
            raise ValueError(f"array '{name}' is not of the size its header says")
    array = np.asarray(flat.reshape(shape, order="F" if fortran else "C"), order="C")
    array.setflags(write=False)
    return array


def _npy_header(member: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, order and type that a member says it has."""
    version = npy.read_magic(member)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"a member is of version {version} of the npy format")
    read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read_header(member)
    return tuple(shape), bool(fortran), dtype


def _read_bytes(member: IO[bytes], size: int) -> bytearray:
    """Return exactly so many bytes of a member, or raise EOFError if there are fewer."""
    found = bytearray()
    while len(found) < size and (block := member.read(min(_BLOCK, size - len(found)))):
        found += block
    if len(found) < size:
        raise EOFError("a member ends too early")
    return found
