"""Hidden names beside a target: of locks, and of outputs that are not whole.

A temporary name says which process made it, so that others can tell when nobody is writing to it
any more.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

# Bytes of a name that a temporary one repeats: names may have 255, and more is added to it.
_LONGEST_NAME = 150

# Endings of temporary names: of an output that is not whole, and of a folder that is being replaced
# where the system cannot exchange two folders at once.
PART, ASIDE = ".part", ".old"


def hidden_beside(target: Path, ending: str) -> Path:
    """Return a hidden name beside a target, which stands for it."""
    return target.with_name(f".{short_name(target)}{ending}")


def temporary_name(target: Path, ending: str) -> Path:
    """Return a new hidden name beside a target, which tells the process and cannot be guessed."""
    words = f"{os.getpid()}-{machine()}-{secrets.token_hex(8)}"
    return target.with_name(f".{short_name(target)}.{words}{ending}")


def short_name(target: Path) -> str:
    """Return the name of a target, or what stands for it where it is long."""
    name = os.fsencode(target.name)
    return target.name if len(name) <= _LONGEST_NAME else sha256(name).hexdigest()


@cache
def machine() -> str:
    """Return a short text that differs between machines, and between containers on one."""
    import platform

    space = ""
    with suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")
    return sha256(f"{platform.node()} {space}".encode()).hexdigest()[:8]
