"""Files and folders that are whole take the place of their target, and are on disk then."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from dkrls_cli.errors import OutputError
from dkrls_cli.files.output.checks import check_writable
from dkrls_cli.files.output.leftovers import moved_aside, remove
from dkrls_cli.files.output.names import ASIDE, temporary_name

# Flags of the system call renameat2, and the folder that relative paths begin in.
_NO_REPLACE, _EXCHANGE, _HERE = 1, 2, -100

# Errors by which a system says that it cannot rename in that way, or not flush a file.
_UNABLE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)

# Files of a folder that are brought onto the disk at a time. Each waits for the disk to empty its
# cache, a millisecond or more even if the file is there already, and one time does for all of them.
_TOGETHER = 8


def place(made: Path, target: Path, overwrite: bool, folder: bool) -> None:
    """Let a file or folder that is whole take the place of its target, and wait for the disk."""
    _take_mode(made, target, folder)
    _flush_tree(made)
    _put_in_place(made, target, overwrite, folder)
    flush(target.parent)


def _take_mode(temporary: Path, target: Path, folder: bool) -> None:
    """Give a temporary file the permissions of its target, or those of any new file."""
    try:
        known = target.stat()
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod((0o777 if folder else 0o666) & ~mask)
        return
    made = temporary.stat()
    if (made.st_uid, made.st_gid) != (known.st_uid, known.st_gid) and hasattr(os, "chown"):
        with suppress(OSError):
            os.chown(temporary, known.st_uid, known.st_gid)
    temporary.chmod(stat.S_IMODE(known.st_mode))


def _flush_tree(path: Path) -> None:
    """Wait until a file, or a folder and everything in it, is on disk."""
    if not path.is_dir():
        flush(path)
        return
    folders = {Path(folder): files for folder, _, files in os.walk(path)}
    flush_several(Path(folder, name) for folder, files in folders.items() for name in files)
    flush_several(folders)


def flush_several(paths: Iterable[Path], by: Callable[[Path], None] | None = None) -> None:
    """Wait until several files or lists of folders are on disk, each `by` a function or `flush`."""
    with ThreadPoolExecutor(_TOGETHER) as pool:
        for _ in pool.map(by or flush, paths):
            pass  # the first error is raised


def flush(path: Path) -> None:
    """Wait until a file or the list of a folder is on disk, where the system can do that."""
    if sys.platform == "win32" and path.is_dir():
        return
    handle = os.open(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _UNABLE:
            raise
    finally:
        os.close(handle)


def _put_in_place(temporary: Path, target: Path, overwrite: bool, folder: bool) -> None:
    """Rename a temporary file or folder to its target; an old folder gets the temporary name."""
    if not overwrite:
        _rename_new(temporary, target)
    elif folder and target.exists():
        check_writable(target, overwrite=True, folder=True)
        _exchange(temporary, target)
    else:
        temporary.replace(target)


def _rename_new(temporary: Path, target: Path) -> None:
    """Rename a file or folder to a name that must not exist, or raise OutputError if it does."""
    try:
        if _rename(temporary, target, _NO_REPLACE):
            return
        if temporary.is_dir() or not hasattr(os, "link"):
            if target.exists():
                raise FileExistsError
            temporary.rename(target)
            return
        os.link(temporary, target)
    except FileExistsError:
        raise OutputError(
            f"'{target}' exists already: another command has written it meanwhile. Choose another "
            "name, or allow it to be replaced.",
            setting="overwrite",
        ) from None


def _exchange(temporary: Path, target: Path) -> None:
    """Let two folders take each other's name, at once where the system can do that.

    Elsewhere the old folder is moved aside first, and comes back if the process is killed before
    the new one is there: see :func:`dkrls_cli.files.output.leftovers.clear_stale`.
    """
    if _rename(temporary, target, _EXCHANGE):
        return
    aside = temporary_name(target, ASIDE)
    with moved_aside(aside, target):
        target.rename(aside)
        try:
            temporary.rename(target)
        except OSError:
            aside.rename(target)
            raise
    flush(target.parent)
    remove(aside)


def _rename(one: Path, other: Path, flag: int) -> bool:
    """Rename by Linux' renameat2, and return whether the system has it and can do it here."""
    if not sys.platform.startswith("linux"):
        return False
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), flag) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNABLE:
        return False
    raise OSError(code, os.strerror(code), str(other))
