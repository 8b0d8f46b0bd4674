"""Writing files: the one way by which this package puts anything on disk.

A file or folder is written under a temporary name beside its target and takes the target's place
when it is whole, so that nobody ever sees half of it and a failure leaves the old one as it was
(`atomic_write`). Before long work begins, `check_writable` refuses a target that exists already or
has no folder. A command that reads a file, changes it and writes it again holds a lock meanwhile
(`lock_file`), so that two of them do not undo each other.

The lock is one of the operating system, on a file beside the target: it ends with the process that
holds it, however that ends. Its holder removes the lock file; a process that waited for it may then
have locked a file that no longer exists, and has to begin again with a new one.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

from dkrls_cli.errors import OutputError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

# Seconds between two attempts at a lock: short beside an update, long beside an attempt.
_PAUSE = 0.05


@contextmanager
def atomic_write(
    path: str | os.PathLike[str], *, overwrite: bool, folder: bool = False
) -> Iterator[Path]:
    """Yield a temporary path that replaces the target when the block ends without an error.

    After an error the temporary file is removed and the target stays as it was. A symbolic link
    stays a link, and the permissions of a target that is replaced are kept.

    Parameters
    ----------
    path
        The target.
    overwrite
        Whether the target may exist.
    folder
        Whether a folder is written, as a Zarr store is.

    Raises
    ------
    OutputError
        If the target exists and may not be overwritten, or its folder does not exist.
    """
    check_writable(Path(path), overwrite=overwrite)
    target = Path(path).resolve()
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield temporary
        if target.exists():
            shutil.copymode(target, temporary)
        if folder and target.exists():
            shutil.rmtree(target)
        temporary.replace(target)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary)
        with suppress(FileNotFoundError):
            temporary.unlink()


def check_writable(target: Path, *, overwrite: bool) -> None:
    """Raise OutputError if a target exists and may not be overwritten, or has no folder."""
    if target.exists() and not overwrite:
        raise OutputError(
            f"'{target}' exists already. Choose another name, or allow it to be replaced.",
            setting="overwrite",
        )
    if not target.parent.is_dir():
        raise OutputError(f"There is no folder '{target.parent}' to write '{target.name}' into.")


@contextmanager
def lock_file(
    path: str | os.PathLike[str], wait: float, tell: Callable[[str], None]
) -> Iterator[None]:
    """Keep other commands from changing a file while the block runs.

    Parameters
    ----------
    path
        The file. It need not exist, but its folder must.
    wait
        Seconds to wait if another command holds the lock.
    tell
        Called once with a message if there is waiting to be done.

    Raises
    ------
    OutputError
        If the lock was not free in time, or the folder does not exist or may not be written to.
    """
    target = Path(path).resolve()
    lock = target.with_name(f".{target.name}.lock")
    handle = _acquire(lock, f"'{path}'", wait, tell)
    try:
        yield
    finally:
        with suppress(OSError):  # Windows does not remove a file that is open
            lock.unlink()
        os.close(handle)


def _acquire(lock: Path, name: str, wait: float, tell: Callable[[str], None]) -> int:
    """Return a handle of the lock file, which is locked and still the one others will find."""
    started = monotonic()
    told = False
    while True:
        handle = _open_lock(lock, name)
        if _try_lock(handle) and _is_there(handle, lock):
            return handle
        os.close(handle)
        if monotonic() - started >= wait:
            raise OutputError(
                f"{name} is being changed by another command. Try again when that has ended, or "
                "allow a longer wait.",
                setting="wait",
            )
        if not told:
            tell(f"{name} is being changed by another command: waiting for it to end.")
            told = True
        sleep(_PAUSE)


def _open_lock(lock: Path, name: str) -> int:
    try:
        return os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    except FileNotFoundError:
        raise OutputError(f"There is no folder '{lock.parent}' for {name}.") from None
    except OSError as error:
        raise OutputError(f"{name} cannot be locked ({error.strerror}).") from None


def _try_lock(handle: int) -> bool:
    """Lock an open file without waiting, and return whether that succeeded."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_there(handle: int, lock: Path) -> bool:
    """Return whether the locked file is still the one that other commands will open."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(handle), lock.stat())
    return False
