"""Files and folders that are written whole or not at all.

A file or folder is written under a temporary name beside its target and takes the target's place
when it is whole and on disk, so that nobody ever sees half of it and a failure leaves the old one
as it was (`atomic_write`). The temporary name cannot be guessed, is created anew and is private
until the rename. A device or a FIFO is written to and not replaced.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dkrls_cli.errors import DkrlsError, OutputError
from dkrls_cli.files.output.checks import check_writable, is_special
from dkrls_cli.files.output.leftovers import clear_stale, private_folder, removed_at_the_end
from dkrls_cli.files.output.names import PART, temporary_name
from dkrls_cli.files.output.placing import place


@contextmanager
def atomic_write(
    path: str | os.PathLike[str], *, overwrite: bool, folder: bool = False
) -> Iterator[Path]:
    """Yield a temporary path that replaces the target when the block ends without an error.

    The temporary file or folder exists and is empty. After an error it is removed and the target
    stays as it was. A symbolic link stays a link, and the permissions of a target that is replaced
    are kept.

    Parameters
    ----------
    path
        The target.
    overwrite
        Whether the target may exist. If not, and it appears meanwhile, it is not replaced either.
    folder
        Whether a folder is written, as a Zarr store is.

    Raises
    ------
    OutputError
        If the target exists and may not be overwritten, its folder does not exist, or it cannot be
        written, because the disk is full for example.
    """
    check_writable(Path(path), overwrite=overwrite, folder=folder)
    if is_special(Path(path)):
        with explain_failure(path), _copied_to(Path(path)) as temporary:
            yield temporary
        return
    target = Path(path).resolve()
    clear_stale(target)
    temporary = temporary_name(target, PART)
    with removed_at_the_end(temporary), explain_failure(path):
        _create(temporary, folder)
        yield temporary
        place(temporary, target, overwrite, folder)


def move_into_place(
    made: Path, path: str | os.PathLike[str], *, overwrite: bool, folder: bool = False
) -> None:
    """Give a file or folder that is whole the name of its target, on the same file system.

    Parameters
    ----------
    made
        The file or folder. After an error it is still there.
    path, overwrite, folder
        As for :func:`atomic_write`.

    Raises
    ------
    OutputError
        As for :func:`atomic_write`.
    """
    check_writable(Path(path), overwrite=overwrite, folder=folder)
    with explain_failure(path):
        place(made, Path(path).resolve(), overwrite, folder)


def copy_to_stdout(path: Path) -> None:
    """Write the bytes of a file to standard output, or raise OutputError if it is closed."""
    if sys.stdout is None:
        raise OutputError("Standard output is closed. Give a file to write to.")
    with open(path, "rb") as file:
        shutil.copyfileobj(file, sys.stdout.buffer)
    sys.stdout.buffer.flush()


@contextmanager
def explain_failure(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors of the system and of libraries into an OutputError that names the target."""
    try:
        yield
    except (BrokenPipeError, DkrlsError, RecursionError, NotImplementedError):
        raise
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        is_told = error.errno is not None and error.errno > 0  # libraries count theirs below 0
        text = reason if is_told else _with_space(reason, path)
        raise OutputError(f"'{path}' cannot be written ({text}).") from None
    except RuntimeError as error:  # of netCDF4, which says "NetCDF: HDF error" of a full disk
        raise OutputError(f"'{path}' cannot be written ({_with_space(error, path)}).") from None


def _with_space(reason: object, path: str | os.PathLike[str]) -> str:
    """Return a reason, and that the disk is full if it is and the reason does not say so."""
    full = False
    with suppress(OSError):
        room = shutil.disk_usage(Path(path).resolve().parent)
        full = room.free < 2**20 <= room.total  # what the system makes up, as /proc, has no room
    text = " ".join(str(reason).split())
    return f"{text}; the disk is full" if full and "space" not in text else text


@contextmanager
def _copied_to(path: Path) -> Iterator[Path]:
    """Yield a temporary file whose bytes are written to a device or a FIFO at the end."""
    with private_folder() as folder:
        temporary = folder / "output"
        _create(temporary, folder=False)
        yield temporary
        with open(temporary, "rb") as source, open(path, "wb") as sink:
            shutil.copyfileobj(source, sink)


def _create(temporary: Path, folder: bool) -> None:
    """Create a file or folder that only its owner can use, or raise an error if it exists."""
    if folder:
        temporary.mkdir(mode=0o700)
        return
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0)
    os.close(os.open(temporary, flags, 0o600))
