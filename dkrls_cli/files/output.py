"""Writing files: the one way by which this package puts anything on disk.

A file or folder is written under a temporary name beside its target and takes the target's place
when it is whole and on disk, so that nobody ever sees half of it and a failure leaves the old one
as it was (`atomic_write`). The temporary name cannot be guessed, is created anew and is private
until the rename. A device or a FIFO is written to and not replaced. Before long work begins,
`check_writable` refuses a target that exists already or cannot be written. A command that reads a
file, changes it and writes it again holds a lock meanwhile (`lock_file`), so that two of them do
not undo each other.

What a process leaves behind when it is killed has a hidden name, which says which process made it:
the next writer of the same target removes it (`clear_stale`). A process that is told to stop
removes its own (`remove_unfinished`).

The lock is one of the operating system, on a file beside the target: it ends with the process that
holds it, however that ends. Its holder removes the lock file; a process that waited for it may then
have locked a file that no longer exists, and has to begin again with a new one.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from time import monotonic, sleep, time

from dkrls_cli.errors import DkrlsError, OutputError
from dkrls_cli.signals import call_when_stopped

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

# Seconds between two attempts at a lock: short beside an update, long beside an attempt.
_PAUSE = 0.05

# Seconds after which an unfinished output of another machine is stale: nobody writes for a day
# without touching the file.
_STALE_AFTER = 86400.0

# Bytes of a name that a temporary one repeats: names may have 255, and more is added to it.
_LONGEST_NAME = 150

# Endings of temporary names: of an output that is not whole, and of a folder that is being replaced
# where the system cannot exchange two folders at once.
_PART, _ASIDE = ".part", ".old"

# Files one of which every Zarr store has, of formats 2 and 3.
_ZARR_FILES = ("zarr.json", ".zgroup", ".zarray", ".zmetadata")

# Flags of the system call renameat2, and the folder that relative paths begin in.
_NO_REPLACE, _EXCHANGE, _HERE = 1, 2, -100

# Errors by which a system says that it cannot rename in that way, or not flush a file.
_UNABLE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)

# What this process has on disk and would have to remove if it were told to stop.
_unfinished: set[Path] = set()

# Folders that this process has moved aside, and where they belong until others have replaced them.
_moved: dict[Path, Path] = {}


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
    if _is_special(Path(path)):
        with _explain(path), _copied_to(Path(path)) as temporary:
            yield temporary
        return
    target = Path(path).resolve()
    clear_stale(target)
    temporary = _temporary_name(target, _PART)
    _unfinished.add(temporary)
    try:
        with _explain(path):
            _create(temporary, folder)
            yield temporary
            _finish(temporary, target, overwrite, folder)
    finally:
        _remove(temporary)
        _unfinished.discard(temporary)


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
    with _explain(path):
        _finish(made, Path(path).resolve(), overwrite, folder)


def _finish(made: Path, target: Path, overwrite: bool, folder: bool) -> None:
    """Let a file or folder that is whole take the place of its target, and wait for the disk."""
    _take_mode(made, target, folder)
    _flush_tree(made)
    _put_in_place(made, target, overwrite, folder)
    _flush(target.parent)


def flush_file(path: Path) -> None:
    """Wait until what was written to a file is on disk, where the system can do that."""
    _flush(path)


def hidden_beside(target: Path, ending: str) -> Path:
    """Return a hidden name beside a target, which stands for it."""
    return target.with_name(f".{_short_name(target)}{ending}")


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
    if _is_special(target):
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
        return not _is_special(Path(one)) and os.path.samefile(one, other)
    return False


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
            if found.name.startswith(f".{_short_name(whole)}.") and _is_stale(found):
                _clear(found, whole, tell or (lambda _: None))


def remove_unfinished() -> None:
    """Remove what this process has begun to write and not finished, and its lock files."""
    for aside, target in list(_moved.items()):
        _clear(aside, target, lambda _: None)
    for path in list(_unfinished):
        _remove(path)


call_when_stopped(remove_unfinished)


@contextmanager
def private_folder(place: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """Yield a temporary folder that nobody else can read, and remove it when the block ends.

    It is made in the folder `place`; by default in that of the system.
    """
    hidden = "dkrls-" if place is None else ".dkrls-"
    folder = Path(tempfile.mkdtemp(prefix=hidden, dir=place))
    _unfinished.add(folder)
    try:
        yield folder
    finally:
        _remove(folder)
        _unfinished.discard(folder)


def copy_to_stdout(path: Path) -> None:
    """Write the bytes of a file to standard output, or raise OutputError if it is closed."""
    if sys.stdout is None:
        raise OutputError("Standard output is closed. Give a file to write to.")
    with open(path, "rb") as file:
        shutil.copyfileobj(file, sys.stdout.buffer)
    sys.stdout.buffer.flush()


# Writing ------------------------------------------------------------------------------------------


@contextmanager
def _explain(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors of the system and of libraries into an OutputError that names the target."""
    try:
        yield
    except (BrokenPipeError, DkrlsError, RecursionError, NotImplementedError):
        raise
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise OutputError(f"'{path}' cannot be written ({_with_space(reason, path)}).") from None
    except RuntimeError as error:  # of netCDF4, which says "NetCDF: HDF error" of a full disk
        raise OutputError(f"'{path}' cannot be written ({_with_space(error, path)}).") from None


def _with_space(reason: object, path: str | os.PathLike[str]) -> str:
    """Return a reason, and that the disk is full if it is and the reason does not say so."""
    full = False
    with suppress(OSError):
        full = shutil.disk_usage(Path(path).resolve().parent).free < 2**20
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


def _is_special(path: Path) -> bool:
    """Return whether a path is a device, a FIFO or a socket, or stands for an open file."""
    if path.is_absolute() and path.parts[1:2] in (("dev",), ("proc",)) and path.exists():
        return not path.is_dir() and not path.is_relative_to("/dev/shm")
    return path.exists() and not (path.is_file() or path.is_dir())


def _temporary_name(target: Path, ending: str) -> Path:
    """Return a new hidden name beside a target, which tells the process and cannot be guessed."""
    words = f"{os.getpid()}-{_machine()}-{secrets.token_hex(8)}"
    return target.with_name(f".{_short_name(target)}.{words}{ending}")


def _short_name(target: Path) -> str:
    """Return the name of a target, or what stands for it where it is long."""
    name = os.fsencode(target.name)
    return target.name if len(name) <= _LONGEST_NAME else sha256(name).hexdigest()


@cache
def _machine() -> str:
    """Return a short text that differs between machines, and between containers on one."""
    import platform

    space = ""
    with suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")
    return sha256(f"{platform.node()} {space}".encode()).hexdigest()[:8]


def _create(temporary: Path, folder: bool) -> None:
    """Create a file or folder that only its owner can use, or raise an error if it exists."""
    if folder:
        temporary.mkdir(mode=0o700)
        return
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0)
    os.close(os.open(temporary, flags, 0o600))


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
    for folder, _, files in os.walk(path):
        for name in files:
            _flush(Path(folder, name))
        _flush(Path(folder))
    if not path.is_dir():
        _flush(path)


def _flush(path: Path) -> None:
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

    Elsewhere the old folder is moved aside first; :func:`clear_stale` moves it back if the process
    is killed before the new one is there.
    """
    if _rename(temporary, target, _EXCHANGE):
        return
    aside = _temporary_name(target, _ASIDE)
    _moved[aside] = target
    target.rename(aside)
    try:
        temporary.rename(target)
    except OSError:
        aside.rename(target)
        raise
    finally:
        del _moved[aside]
    _flush(target.parent)
    _remove(aside)


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


def _remove(path: Path) -> None:
    """Remove a file or a folder, if it is there; what cannot be removed stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        path.unlink()


# What killed processes leave ----------------------------------------------------------------------


def _is_stale(path: Path) -> bool:
    """Return whether the process that made a temporary file has ended, by the name of the file."""
    ending = next((e for e in (_PART, _ASIDE) if path.name.endswith(e)), None)
    if ending is None:
        return False
    words = path.name.removesuffix(ending).rpartition(".")[2].split("-")
    if not words[0].isdecimal() or len(words) not in (1, 3):  # names of earlier versions have one
        return False
    if len(words) == 3 and words[1] != _machine():
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
    if found.name.endswith(_ASIDE) and not target.exists():
        with suppress(OSError):
            found.rename(target)
        tell(f"Note: '{target.name}' is restored: a command ended before it had replaced it.")
        return
    _remove(found)
    tell(f"Note: an unfinished '{target.name}', left by a command that was killed, is removed.")


# Locks --------------------------------------------------------------------------------------------


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
    if _is_special(Path(path)):
        yield
        return
    target = Path(path).resolve()
    lock = hidden_beside(target, ".lock")
    handle = _acquire(lock, f"'{path}'", wait, tell)
    _unfinished.add(lock)
    try:
        yield
    finally:
        with suppress(OSError):  # Windows does not remove a file that is open
            lock.unlink()
        _unfinished.discard(lock)
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
