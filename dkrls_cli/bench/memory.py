"""Memory of this process: bytes held now, and the peak.

Linux reports both, and can reset the peak. Elsewhere only the peak since the process began is
known, if there is a `resource` module; otherwise the answers are NaN.
"""

from __future__ import annotations

import math
import os
import sys
from contextlib import suppress
from pathlib import Path

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")

# Share of the machine's memory that a method may take: the rest is for the system and the parent.
_SHARE = 0.5


def reset_peak() -> None:
    """Set the peak to the memory held now, where the system can do so."""
    with suppress(OSError):
        _RESET.write_text("5")


def held_bytes() -> float:
    """Return the bytes held now, or the peak where only that is known."""
    return _read_status("VmRSS")


def peak_bytes() -> float:
    """Return the most bytes held since `reset_peak`."""
    return _read_status("VmHWM")


def allowed_bytes() -> float:
    """Return the bytes that a method may take: half of the machine's memory."""
    try:
        return _SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return math.inf


def _read_status(name: str) -> float:
    """Return a field of /proc/self/status in bytes, or the peak where there is no such file."""
    try:
        lines = _STATUS.read_text(encoding="ascii").splitlines()
        return 1024.0 * next(float(line.split()[1]) for line in lines if line.startswith(name))
    except (OSError, StopIteration):
        return _peak_since_start()


def _peak_since_start() -> float:
    """Return the most bytes held since the process began, or NaN if that is not known."""
    try:
        import resource
    except ImportError:
        return math.nan
    most = float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return most if sys.platform == "darwin" else 1024.0 * most  # elsewhere in kilobytes
