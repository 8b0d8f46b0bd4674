"""Fingerprints of input files: whether they are still those that a run has begun with.

Size and time of change tell almost all changes. A file may be restored with its old time, or
changed by a program that keeps it: so a few blocks of the contents, spread over all of the file,
are part of a fingerprint as well. Whoever changes less than lies between two of them, and keeps
size and time, is found out only by the hash of all contents.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import zip_longest
from typing import Any

from dkrls_cli.errors import InputError

# Bytes that are hashed at a time.
_BLOCK = 2**20
# Blocks of a file that stand for its contents, and bytes of each: 256 kB, which takes milliseconds
# from a file that was read before, and a fraction of a second from a disk.
_SAMPLES, _SAMPLE = 64, 2**12


def fingerprint(paths: Sequence[str], *, contents: bool = False) -> list[dict[str, Any]]:
    """Return what tells whether files have changed: name, size, time and a sample of each.

    Parameters
    ----------
    paths
        Files and Zarr stores, in their order.
    contents
        Whether to add the SHA-256 of the contents, which takes as long as reading the files.

    Raises
    ------
    InputError
        If one of them is standard input, or cannot be read.
    """
    return [_of_file(path, contents) for path in paths]


def changes(old: Sequence[Mapping[str, Any]], paths: Sequence[str]) -> list[str]:
    """Return how files differ from those of an old fingerprint, a phrase each; none if they do not.

    A file of the same size and time is the same if a sample of its contents is, where the old
    fingerprint has one. A file of the same size that was changed at another time is the same if the
    old fingerprint has the SHA-256 of its contents, and that is the same.
    """
    found = []
    for known, path in zip_longest(old, paths):
        if known is None:
            found.append(f"{_name(path)} is new")
        elif path is None:
            found.append(f"{known['name']} is no longer there")
        elif known["name"] != _name(path):
            found.append(f"{_name(path)} is in the place of {known['name']}")
        elif not _is_same(known, path):
            found.append(f"{known['name']} has other contents, or was written again")
    return found


def content_hash(path: str) -> str:
    """Return the SHA-256 of a file, or of the names and contents of all members of a store."""
    digest = sha256()
    if not os.path.isdir(path):
        _add_file(digest, path)
        return digest.hexdigest()
    for name in sorted(_members(path)):
        whole = os.path.join(path, name)
        digest.update(f"{name}\0{os.stat(whole).st_size}\0".encode("utf-8", "surrogateescape"))
        _add_file(digest, whole)
    return digest.hexdigest()


def content_sample(path: str) -> str:
    """Return a hash of some blocks of a file, the first and the last among them.

    Of a store these are blocks of some of its members, and the names of all.
    """
    digest = sha256()
    if not os.path.isdir(path):
        _add_blocks(digest, path, _SAMPLES)
        return digest.hexdigest()
    names = sorted(_members(path))
    digest.update("\0".join(names).encode("utf-8", "surrogateescape"))
    for place in _spread(len(names), _SAMPLES):
        _add_blocks(digest, os.path.join(path, names[place]), 2)
    return digest.hexdigest()


def _add_blocks(digest: Any, path: str, count: int) -> None:
    """Add blocks of a file, spread over all of it, to a hash; all of a small file."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size <= count * _SAMPLE:
            digest.update(file.read())
            return
        for start in _spread(size - _SAMPLE + 1, count):
            file.seek(start)
            digest.update(file.read(_SAMPLE))


def _spread(size: int, count: int) -> list[int]:
    """Return places from the first to the last of a row, in equal steps; all if there are few.

    >>> _spread(11, 3), _spread(2, 3)
    ([0, 5, 10], [0, 1])
    """
    if size <= count:
        return list(range(size))
    return [(size - 1) * place // (count - 1) for place in range(count)]


def _of_file(path: str, contents: bool) -> dict[str, Any]:
    if path == "-":
        raise InputError("Standard input can be read once only: give a file.")
    try:
        found = {"name": _name(path), **_state(path), "sample": content_sample(path)}
        return {**found, "sha256": content_hash(path)} if contents else found
    except OSError as error:
        raise InputError(f"'{path}' cannot be read ({error.strerror}).") from None


def _is_same(known: Mapping[str, Any], path: str) -> bool:
    now = _of_file(path, contents=False)
    if (now["size"], now["mtime_ns"]) == (known["size"], known["mtime_ns"]):
        return bool(known.get("sample", now["sample"]) == now["sample"])
    return now["size"] == known["size"] and known.get("sha256") == content_hash(path)


def _state(path: str) -> dict[str, int]:
    """Return the size of a file and when it was changed; of a store, all sizes and the last."""
    if not os.path.isdir(path):
        found = os.stat(path)
        return {"size": found.st_size, "mtime_ns": found.st_mtime_ns}
    states = [os.stat(os.path.join(path, name)) for name in _members(path)]
    return {
        "size": sum(each.st_size for each in states),
        "mtime_ns": max((each.st_mtime_ns for each in states), default=0),
    }


def _members(folder: str) -> Iterator[str]:
    for parent, _, names in os.walk(folder):
        for name in names:
            yield os.path.relpath(os.path.join(parent, name), folder)


def _name(path: str) -> str:
    return os.path.basename(path.rstrip(os.sep))


def _add_file(digest: Any, path: str) -> None:
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
