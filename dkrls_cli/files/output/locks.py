"""Locks: a command that reads a file, changes it and writes it again keeps others from it.

The lock is one of the operating system, on a file beside the target: it ends with the process that
holds it, however that ends. Its holder removes the lock file; a process that waited for it may then
have locked a file that no longer exists, and has to begin again with a new one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

from dkrls_cli.errors import OutputError
from dkrls_cli.files.output.checks import is_special
from dkrls_cli.files.output.leftovers import removed_at_the_end
from dkrls_cli.files.output.names import hidden_beside

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

# Seconds between two attempts at a lock: short beside an update, long beside an attempt.
_PAUSE = 0.05


@contextmanager
def lock_file(
    path: str | os.PathLike[str], wait: float, tell: Callable[[str], None]
) -> Iterator[None]:
    """Keep other commands from changing a file while the block runs.

    Parameters
    ----------
    path
        The file. It need not exist, but its folder must. A device needs no lock.
    wait
        Seconds to wait if another command holds the lock.
    tell
        Called once with a message if there is waiting to be done.

    Raises
    ------
    OutputError
        If the lock was not free in time, or the folder does not exist or may not be written to.
    """
    if is_special(Path(path)):
        yield
        return
    target = Path(path).resolve()
    lock = hidden_beside(target, ".lock")
    handle = _acquire(lock, f"'{path}'", wait, tell)
    try:
        with removed_at_the_end(lock):  # but by Windows, which does not remove a file that is open
            yield
    finally:
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
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        return os.open(lock, flags, 0o666)
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
