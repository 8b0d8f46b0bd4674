"""Checks of a target before any work is done: whether it may be written."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from dkrls_cli.errors import OutputError

# Files one of which every Zarr store has, of formats 2 and 3.
_ZARR_FILES = ("zarr.json", ".zgroup", ".zarray", ".zmetadata")


def check_writable(
    target: Path,
    *,
    overwrite: bool,
    folder: bool = False,
    inputs: Iterable[str | os.PathLike[str]] = (),
) -> None:
    """Raise OutputError if a target cannot be written, before any work is done.

    Parameters
    ----------
    target
        The file or folder to write. A device or a FIFO may always be written to.
    overwrite
        Whether it may exist.
    folder
        Whether it is to be a folder: then only a Zarr store is replaced, and no other folder.
    inputs
        Files that are read, none of which may be the target.
    """
    if any(is_same(target, given) for given in inputs):
        raise OutputError(f"'{target}' is one of the inputs. Choose another name for the output.")
    if is_special(target):
        if folder:
            raise OutputError(f"'{target}' is a device or a pipe, and a Zarr store is a folder.")
        return
    if target.exists() and not overwrite:
        raise OutputError(
            f"'{target}' exists already. Choose another name, or allow it to be replaced.",
            setting="overwrite",
        )
    if not target.parent.is_dir():
        raise OutputError(f"There is no folder '{target.parent}' to write '{target.name}' into.")
    if target.exists() and folder != target.is_dir():
        kinds = ("folder", "file") if target.is_dir() else ("file", "folder")
        raise OutputError(
            f"'{target}' is a {kinds[0]} and cannot be replaced by a {kinds[1]}. Choose another "
            "name."
        )
    if target.is_dir() and not any((target / name).exists() for name in _ZARR_FILES):
        raise OutputError(
            f"'{target}' is a folder and no Zarr store: it is not replaced. Choose another name."
        )
    if not os.access(target.resolve().parent, os.W_OK | os.X_OK):
        raise OutputError(f"'{target}' cannot be written (no permission for its folder).")


def is_same(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Return whether two paths are one file or folder that exists, whatever their names."""
    with suppress(OSError, ValueError):
        return not is_special(Path(one)) and os.path.samefile(one, other)
    return False


def is_special(path: Path) -> bool:
    """Return whether a path is a device, a FIFO or a socket, or stands for an open file."""
    if path.is_absolute() and path.parts[1:2] in (("dev",), ("proc",)) and path.exists():
        return not path.is_dir() and not path.is_relative_to("/dev/shm")
    return path.exists() and not (path.is_file() or path.is_dir())
