"""Lengths of time as texts: a number and a unit, like 7D, 1M and PT6H."""

from __future__ import annotations

import re

from dkrls_cli.errors import SettingError

SECONDS = {"W": 7 * 86400, "D": 86400, "H": 3600, "MIN": 60, "S": 1}
"""Seconds in the units of fixed length. The others are Y and M, years and months of a calendar."""

# A step of time: 7D, 1M, or an ISO 8601 duration of one part such as P1M and PT6H.
_STEP = re.compile(r"^\s*P?T?(\d+(?:\.\d+)?)\s*(Y|M|W|D|H|MIN|S)\s*$", re.IGNORECASE)


def is_duration(text: str) -> bool:
    """Return whether a text is a length of time: a number above 0 and a unit, like 7D or 1M."""
    match = _STEP.match(text)
    return match is not None and float(match[1]) > 0


def read_duration(step: str) -> tuple[str, str]:
    """Return the number of a length of time, as a text, and its unit.

    Raises
    ------
    SettingError
        If the text is no length of time, or ``10m``: for many that is ten minutes, not months.

    Examples
    --------
    >>> read_duration("7d"), read_duration("1M"), read_duration("PT1.5M")
    (('7', 'D'), ('1', 'M'), ('1.5', 'MIN'))
    """
    match = _STEP.match(step)
    if not match or not is_duration(step):
        raise SettingError(
            f"'{step}' is not a time step. Expected a number above 0 and a unit (Y, M, W, D, H, "
            "MIN or S), like 7D."
        )
    if match[2] == "m" and step.strip()[0].isdigit():
        raise SettingError(
            f"'{step}' may be months or minutes. Write {match[1]}M or {match[1]}MIN."
        )
    minutes = re.match(r"P?T.*\dM$", step, re.IGNORECASE)
    return match[1], "MIN" if minutes else match[2].upper()
