"""How much memory this process holds, and the most it has held.

Linux tells both of a process, and forgets the most when asked to. Elsewhere the most since the
process began is known, where there is a `resource` module; NaN where nothing is.
"""

from __future__ import annotations

import math
import os
import sys
from contextlib import suppress
from pathlib import Path

_STATUS = Path("/proc/self/status")
_FORGET = Path("/proc/self/clear_refs")
_SHARE = 0.5
"""Of the memory of the machine: what a method may take."""


def forget_peak() -> None:
    """Let the most held so far be what is held now, where the system can."""
    with suppress(OSError):
        _FORGET.write_text("5")


def held() -> float:
    """Bytes held now, or the most so far where only that is known."""
    return _told("VmRSS")


def peak() -> float:
    """The most bytes held since `forget_peak`."""
    return _told("VmHWM")


def allowed() -> float:
    """Bytes that a method may take here: half of what the machine has."""
    try:
        return _SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return math.inf


def _told(name: str) -> float:
    try:
        lines = _STATUS.read_text(encoding="ascii").splitlines()
        return 1024.0 * next(float(line.split()[1]) for line in lines if line.startswith(name))
    except (OSError, StopIteration):
        return _most_since_the_start()


def _most_since_the_start() -> float:
    try:
        import resource
    except ImportError:
        return math.nan
    most = float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return most if sys.platform == "darwin" else 1024.0 * most
