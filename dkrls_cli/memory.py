"""Memory: what this process holds, and what the machine has room for.

Linux reports what a process holds and its peak, and can reset the peak. Elsewhere only the peak
since the process began is known, if there is a `resource` module; otherwise the answers are NaN.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_RESET = Path("/proc/self/clear_refs")
_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of options in malloc.h of the GNU C library."""

_KEPT_ARRAY, _KEPT_IN_ALL = 2**25, 2**28
"""Bytes of the largest array whose memory is kept, 32 MB is the most that the library allows; and
of free memory that is kept at the end of a heap."""

_UNLIMITED = 2**60
"""Bytes from which a limit is none: version 1 of cgroups writes the largest number it knows."""


def reset_peak() -> None:
    """Set the peak to the memory held now, where the system can do so."""
    with suppress(OSError):
        _RESET.write_text("5")


def held_bytes() -> float:
    """Return the bytes held now, or the peak where only that is known."""
    return _process_bytes("VmRSS")


def peak_bytes() -> float:
    """Return the most bytes held since `reset_peak`."""
    return _process_bytes("VmHWM")


def reuse_freed() -> bool:
    """Let arrays take the memory that others have left, and return whether the system can do so.

    The GNU C library returns memory of large arrays to the system at once, and every new array is
    then given pages that are cleared first: about half the time of a pass over much data, where
    arrays of the same sizes come and go. This is for the whole process, and stays so.
    """
    try:
        tune = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return False
    return bool(tune(_MMAP_THRESHOLD, _KEPT_ARRAY) and tune(_TRIM_THRESHOLD, _KEPT_IN_ALL))


def machine_bytes() -> float:
    """Return the physical memory of the machine, or infinity if it is not known."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return math.inf


def available_bytes(proc: Path = _PROC, cgroups: Path = _CGROUPS) -> float:
    """Return the bytes that this process may hold in all, or infinity if nothing tells.

    That is the least of the memory of the machine, of what it has free beside what the process
    holds already, of the limits of its control groups, and of its own limits (``ulimit``).

    Parameters
    ----------
    proc, cgroups
        Where the system describes processes and control groups.

    Examples
    --------
    >>> available_bytes() > 0
    True
    """
    status = proc / "self" / "status"
    free = _kilobytes(proc / "meminfo", "MemAvailable")
    held = _kilobytes(status, "VmRSS")
    own = [limit - _unheld(status, field) for field, limit in _own_limits().items()]
    groups = [_group_room(group, held) for group in _groups(proc / "self" / "cgroup", cgroups)]
    return max(0.0, min(machine_bytes(), _known(free + held), *own, *groups))


def _known(size: float) -> float:
    """Return a size, or infinity if it is not known."""
    return math.inf if math.isnan(size) else size


def _unheld(status: Path, field: str) -> float:
    """Return the bytes that a process has reserved and does not hold, which a limit counts too."""
    reserved = _kilobytes(status, field) - _kilobytes(status, "VmRSS")
    return 0.0 if math.isnan(reserved) else max(0.0, reserved)


def _own_limits() -> dict[str, float]:
    """Return the limits of this process, by the field of its status that they limit."""
    try:
        import resource
    except ImportError:
        return {}
    limits = {"VmSize": "RLIMIT_AS", "VmData": "RLIMIT_DATA"}
    found = {f: getattr(resource, name) for f, name in limits.items() if hasattr(resource, name)}
    soft = {field: resource.getrlimit(which)[0] for field, which in found.items()}
    return {f: float(size) for f, size in soft.items() if size != resource.RLIM_INFINITY}


def _groups(membership: Path, root: Path) -> Iterator[Path]:
    """Yield the folders of the control groups of a process that may limit it, parents included.

    A line is ``0::/path`` in version 2, ``number:controllers:/path`` in version 1, which has a
    folder for each controller. Inside a container the path may be that of the host: then only
    the top of it exists.
    """
    for line in _read(membership).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        top = root / "memory" if controllers else root
        group = top / path.lstrip("/")
        yield from (folder for folder in (group, *group.parents) if folder.is_relative_to(top))


def _group_room(group: Path, held: float) -> float:
    """Return the bytes that a process may hold under the limit of its control group.

    What other processes of the group hold is taken off, but for cached files, which are dropped
    when memory is needed.
    """
    for limit, usage, cached in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        most = _number(_read(group / limit))
        if most < _UNLIMITED:
            used = _number(_read(group / usage)) - _number(_field(group / "memory.stat", cached))
            others = used - held
            return most if math.isnan(others) else most - max(0.0, others)
    return math.inf


def _process_bytes(name: str) -> float:
    """Return a field of the status of this process, or the peak where there is no such file."""
    found = _kilobytes(_PROC / "self" / "status", name)
    return _peak_since_start() if math.isnan(found) else found


def _peak_since_start() -> float:
    """Return the most bytes held since the process began, or NaN if that is not known."""
    try:
        import resource
    except ImportError:
        return math.nan
    most = float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return most if sys.platform == "darwin" else 1024.0 * most  # elsewhere in kilobytes


def _kilobytes(path: Path, name: str) -> float:
    """Return a field of a file of the system, which is in kilobytes, as bytes; NaN without it."""
    return 1024.0 * _number(_field(path, f"{name}:"))


def _field(path: Path, name: str) -> str:
    """Return the word after a name at the beginning of a line; empty without it."""
    words = (line.split() for line in _read(path).splitlines())
    return next((line[1] for line in words if line[1:] and line[0] == name), "")


def _number(text: str) -> float:
    """Return a number, or NaN for any other text, such as the word for no limit."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _read(path: Path) -> str:
    """Return the text of a file of the system; empty if there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
