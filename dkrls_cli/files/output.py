"""One writer at a time: a lock beside a file that is read, changed and replaced.

The lock is the system's own, so it ends with its holder, however that ends. The file that carries
it is taken away with it; who waited for one that is gone begins anew.
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

_PAUSE = 0.05


@contextmanager
def locked(
    path: str | os.PathLike[str], wait: float, tell: Callable[[str], None]
) -> Iterator[None]:
    """Hold a file for oneself; if another holds it, say so and wait some seconds for its end."""
    target = Path(path).resolve()
    lock = target.with_name(f".{target.name}.lock")
    handle = _acquired(lock, f"'{path}'", wait, tell)
    try:
        yield
    finally:
        with suppress(OSError):  # some systems do not take away what is open
            lock.unlink()
        os.close(handle)


def _acquired(lock: Path, name: str, wait: float, tell: Callable[[str], None]) -> int:
    started = monotonic()
    told = False
    while True:
        handle = _opened(lock, name)
        if _is_ours(handle) and _is_there(handle, lock):
            return handle
        os.close(handle)
        if monotonic() - started >= wait:
            raise OutputError(
                f"{name} is being changed by another command. Try again when that has ended, or "
                "wait longer with --wait."
            )
        if not told:
            tell(f"{name} is being changed by another command: waiting for its end.")
            told = True
        sleep(_PAUSE)


def _opened(lock: Path, name: str) -> int:
    try:
        return os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    except FileNotFoundError:
        raise OutputError(f"There is no folder '{lock.parent}' for {name}.") from None
    except OSError as error:
        raise OutputError(f"{name} cannot be locked ({error.strerror}).") from None


def _is_ours(handle: int) -> bool:
    """Whether the lock could be taken now."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_there(handle: int, lock: Path) -> bool:
    """Whether the file that was locked is still the one that others will find."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(handle), lock.stat())
    return False


@contextmanager
def replacing(
    path: str | os.PathLike[str], *, overwrite: bool, folder: bool = False
) -> Iterator[Path]:
    """A temporary path beside the target that takes its place if all goes well.

    A link stays one, and so do the permissions of what is replaced.
    """
    refuse_unwritable(Path(path), overwrite=overwrite)
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


def refuse_unwritable(target: Path, *, overwrite: bool) -> None:
    """Say no to an output that is there and may not be overwritten, or that has no folder."""
    if target.exists() and not overwrite:
        raise OutputError(f"'{target}' exists already. Choose another name, or give --overwrite.")
    if not target.parent.is_dir():
        raise OutputError(f"There is no folder '{target.parent}' to write '{target.name}' into.")
