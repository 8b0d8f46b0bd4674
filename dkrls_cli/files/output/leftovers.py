"""Outputs that are not whole, and who removes them.

A process removes its own when it is done, or is told to stop. What it leaves behind when it is
killed has a hidden name, which says which process made it: the next writer of the same target
removes it (`clear_stale`).
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import time

from dkrls_cli.files.output.names import ASIDE, PART, machine, short_name
from dkrls_cli.signals import call_when_stopped

# Seconds after which an unfinished output of another machine is stale: nobody writes for a day
# without touching the file.
_STALE_AFTER = 86400.0

# What this process has on disk and would have to remove if it were told to stop.
_unfinished: set[Path] = set()

# Folders that this process has moved aside, and where they belong until others have replaced them.
_moved: dict[Path, Path] = {}


@contextmanager
def removed_at_the_end(path: Path) -> Iterator[None]:
    """Remove a file or folder when the block ends, or if the process is told to stop meanwhile."""
    _unfinished.add(path)
    try:
        yield
    finally:
        remove(path)
        _unfinished.discard(path)


@contextmanager
def moved_aside(aside: Path, target: Path) -> Iterator[None]:
    """Keep in mind where a folder belongs that the block moves aside and replaces."""
    _moved[aside] = target
    try:
        yield
    finally:
        del _moved[aside]


@contextmanager
def private_folder(place: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """Yield a temporary folder that nobody else can read, and remove it when the block ends.

    It is made in the folder `place`; by default in that of the system.
    """
    hidden = "dkrls-" if place is None else ".dkrls-"
    folder = Path(tempfile.mkdtemp(prefix=hidden, dir=place))
    with removed_at_the_end(folder):
        yield folder


def clear_stale(target: Path, tell: Callable[[str], None] | None = None) -> None:
    """Remove what processes that were killed have left of a target.

    Parameters
    ----------
    target
        The file or folder.
    tell
        Called with a message for everything that is removed.
    """
    whole = target.resolve()
    with suppress(OSError):
        for found in list(whole.parent.iterdir()):
            if found.name.startswith(f".{short_name(whole)}.") and _is_stale(found):
                _clear(found, whole, tell or (lambda _: None))


def remove_unfinished() -> None:
    """Remove what this process has begun to write and not finished, and its lock files."""
    for aside, target in list(_moved.items()):
        _clear(aside, target, lambda _: None)
    for path in list(_unfinished):
        remove(path)


call_when_stopped(remove_unfinished)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there; what cannot be removed stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        path.unlink()


def _is_stale(path: Path) -> bool:
    """Return whether the process that made a temporary file has ended, by the name of the file."""
    ending = next((e for e in (PART, ASIDE) if path.name.endswith(e)), None)
    if ending is None:
        return False
    words = path.name.removesuffix(ending).rpartition(".")[2].split("-")
    if not words[0].isdecimal() or len(words) not in (1, 3):  # names of earlier versions have one
        return False
    if len(words) == 3 and words[1] != machine():
        return time() - path.lstat().st_mtime > _STALE_AFTER
    return not _runs(int(words[0]))


def _runs(process: int) -> bool:
    """Return whether a process of this machine runs; True where that is not known."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _clear(found: Path, target: Path, tell: Callable[[str], None]) -> None:
    """Remove a stale file or folder; a folder that was moved aside and not replaced comes back."""
    if found.name.endswith(ASIDE) and not target.exists():
        with suppress(OSError):
            found.rename(target)
        tell(f"Note: '{target.name}' is restored: a command ended before it had replaced it.")
        return
    remove(found)
    tell(f"Note: an unfinished '{target.name}', left by a command that was killed, is removed.")
