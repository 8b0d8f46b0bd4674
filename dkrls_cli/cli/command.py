"""The command line that is running, for the history of what it writes."""

from __future__ import annotations

import sys


def command_line() -> list[str]:
    """The words of the command, the program by its name."""
    return ["dkrls", *sys.argv[1:]]
