"""Texts that come from files, made safe to be printed.

Names, units, attributes and labels are whatever a file says. Printed as they are, a control
character in them could move the cursor, change colours or the title of a terminal, and a line feed
could add a line that looks like one of the program's own.
"""

from __future__ import annotations

import re

# Control characters of ASCII and of Latin-1, line separators, marks that turn the direction of
# writing, the byte order mark, and halves of characters, which no terminal can print.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def clean(text: str) -> str:
    r"""Return a text as one line without control characters: they are shown by their numbers.

    >>> print(clean("sst\x1b[2J\nError: none"))
    sst\x1b[2J\nError: none
    """
    return _UNSAFE.sub(_spell, text)


def clean_lines(text: str) -> str:
    """Return a text of several lines, each of them clean."""
    return "\n".join(map(clean, text.split("\n")))


def _spell(match: re.Match[str]) -> str:
    """Return a character as Python writes it between quotes."""
    letter = match[0]
    number = ord(letter)
    return _SHORT.get(letter) or (f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}")
