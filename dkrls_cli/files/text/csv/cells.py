"""Cells of a table: missing ones, numbers, and texts that repeat, which are numbered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array
from dkrls_cli.errors import DkrlsError

# Names that a message lists at most.
_MOST_LISTED = 12

_ABSENT = frozenset(("", "na", "n/a", "nan", "null", "none", "-", "."))
_MISSING = _ABSENT | {"inf", "+inf", "-inf"}
# What pandas takes for NaN; infinities stay, to be counted.
NAN_SPELLINGS = sorted({f(text) for text in _ABSENT for f in (str, str.upper, str.title)} | {"NaN"})

Integers = NDArray[np.intp]
Texts = tuple[list[str], Integers]
"""Distinct texts in order of appearance, and which of them stands in each row."""


def is_missing(text: str) -> bool:
    """Return whether a cell says that there is no value."""
    return text.lower() in _MISSING


def is_infinite(text: str) -> bool:
    """Return whether a cell is an infinite number."""
    numbers = parse_numbers([text])
    return numbers is not None and bool(np.isinf(numbers[0]))


def text_index() -> defaultdict[str, int]:
    """Return a dictionary that numbers the texts it is asked for in order of appearance."""
    index: defaultdict[str, int] = defaultdict()
    index.default_factory = index.__len__
    return index


def code_texts(index: defaultdict[str, int], texts: Sequence[str]) -> Integers:
    """Return the number of each text in the index; new texts get the next numbers."""
    return np.fromiter(map(index.__getitem__, texts), np.intp, len(texts))


def parse_numbers(texts: Sequence[str]) -> Array | None:
    """Return texts as numbers, or None if one of them is none.

    Underscores are refused: Python would read 1_2 as 12.
    """
    if "_" in "".join(texts):
        return None
    try:
        return np.fromiter(map(float, texts), np.float64, len(texts))
    except ValueError:
        return None


def parse_values(texts: Sequence[str]) -> Array | None:
    """Return texts as numbers, NaN where missing or not finite; None if one is neither."""
    numbers = parse_numbers(texts)
    if numbers is None:
        numbers = parse_numbers(["nan" if is_missing(text) else text for text in texts])
    if numbers is not None:
        numbers[~np.isfinite(numbers)] = np.nan
    return numbers


def find_bad_text(encode: Callable[[list[str]], Array], texts: Iterable[str]) -> tuple[str, str]:
    """Return the first text that is no coordinate, and why."""
    for text in texts:
        try:
            if not np.isfinite(encode([text])).all():
                return text, f"'{text}' is not a finite number."
        except DkrlsError as error:
            return text, str(error)
    raise AssertionError("every text is a coordinate by itself, but not all of them together")


def join_names(names: Iterable[str]) -> str:
    """Return the names of columns as a list for a message, the first ones if they are many."""
    listed = list(names)
    more = len(listed) - _MOST_LISTED
    shown = ", ".join(name or "(nameless)" for name in listed[:_MOST_LISTED])
    return f"{shown} and {more} more" if more > 0 else shown
