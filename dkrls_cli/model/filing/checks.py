"""Checks of values that JSON can hold, to be put together to a schema.

A check is a function of a value and of its key, and raises ValueError with a message that names
both: ``levels[0].sigma is -1, expected a number above 0``. Larger checks are made of smaller ones.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[Any, str], None]
"""Raises ValueError if a value, whose key is given as well, is not as expected."""

# Types of numbers that a file may name, as numpy writes them: truth values, integers and floats.
_NUMBERS = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248])")

# Whole numbers from this one on are no numbers of numpy's.
_LARGEST_WHOLE = 2**64

# Characters of a value that a message shows.
_SHOWN = 60


def number(
    low: float = -math.inf,
    high: float = math.inf,
    *,
    above: float = -math.inf,
    finite: bool = True,
) -> Check:
    """Return a check of a number from `low` to `high` and above `above`; NaN if not `finite`."""
    ends = [f" above {above:g}"] if math.isfinite(above) else []
    ends += [f" of {low:g} or more"] if math.isfinite(low) else []
    ends += [f" of at most {high:g}"] if math.isfinite(high) else []
    expected = f"a {'finite ' if finite and not ends else ''}number{','.join(ends)}"

    def check(value: Any, key: str) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _error(key, value, expected)
        if isinstance(value, int) and abs(value) >= _LARGEST_WHOLE:
            raise _error(key, value, expected)
        if not finite and math.isnan(value):
            return
        if (finite and not math.isfinite(value)) or not (low <= value <= high and value > above):
            raise _error(key, value, expected)

    return check


def whole(low: int = 0, high: int = 2**53) -> Check:
    """Return a check of a whole number from `low` to `high`."""

    def check(value: Any, key: str) -> None:
        if type(value) is not int or not low <= value <= high:
            raise _error(key, value, f"a whole number from {low} to {high}")

    return check


def text(value: Any, key: str) -> None:
    """Check that a value is a text."""
    if not isinstance(value, str):
        raise _error(key, value, "a text")


def flag(value: Any, key: str) -> None:
    """Check that a value is true or false."""
    if not isinstance(value, bool):
        raise _error(key, value, "true or false")


def one_of(*allowed: str) -> Check:
    """Return a check of a text that is one of a few."""

    def check(value: Any, key: str) -> None:
        if not isinstance(value, str) or value not in allowed:
            raise _error(key, value, f"one of {', '.join(allowed)}")

    return check


def number_type(value: Any, key: str) -> None:
    """Check that a value names a type of numbers, as numpy writes it: ``<f8``."""
    if not isinstance(value, str) or not _NUMBERS.fullmatch(value):
        raise _error(key, value, "a type of numbers such as <f8")


def optional(check_value: Check) -> Check:
    """Return a check of a value that may be null instead."""

    def check(value: Any, key: str) -> None:
        if value is not None:
            check_value(value, key)

    return check


def list_of(check_item: Check, least: int = 0, most: int | None = None) -> Check:
    """Return a check of a list whose items pass a check."""

    def check(value: Any, key: str) -> None:
        if not isinstance(value, list) or not least <= len(value) <= (most or len(value)):
            count = f"{least}" if least == most else f"{least} or more" if least else "some"
            raise _error(key, value, f"a list of {count} items")
        for place, item in enumerate(value):
            check_item(item, f"{key}[{place}]")

    return check


def table_of(check_item: Check) -> Check:
    """Return a check of an object whose values pass a check, whatever their keys."""

    def check(value: Any, key: str) -> None:
        for name, item in _object(value, key).items():
            check_item(item, _inner(key, name))

    return check


def record(
    needed: Mapping[str, Check],
    also: Mapping[str, Check] | None = None,
    others: Check | None = None,
) -> Check:
    """Return a check of an object by its keys.

    Parameters
    ----------
    needed
        Keys that it must have, and the checks of their values.
    also
        Keys that it may have.
    others
        Check of the values of all other keys; None: it may have no others.
    """
    known = {**needed, **(also or {})}

    def check(value: Any, key: str) -> None:
        for name in needed.keys() - _object(value, key).keys():
            raise ValueError(f"{_inner(key, name)} is missing")
        for name, item in value.items():
            check_item = known.get(name, others)
            if check_item is None:
                raise ValueError(
                    f"{_inner(key, name)} is a key that this program does not know; a newer one "
                    "may have written the file"
                )
            check_item(item, _inner(key, name))

    return check


def attribute(value: Any, key: str) -> None:
    """Check an attribute as it is stored: texts, numbers, and lists and objects of them.

    A number of numpy's is an object of its type and its values.
    """
    if isinstance(value, dict) and value.keys() == {"dtype", "values"}:
        typed_numbers(value, key)
    elif isinstance(value, dict):
        table_of(attribute)(value, key)
    elif isinstance(value, list):
        list_of(attribute)(value, key)


def typed_numbers(value: Any, key: str) -> None:
    """Check numbers that are stored with their type."""
    import numpy as np

    record({"dtype": number_type, "values": _plain_numbers})(value, key)
    try:
        np.array(value["values"], value["dtype"])
    except (TypeError, ValueError, OverflowError):
        raise _error(
            f"{key}.values", value["values"], f"numbers of type {value['dtype']}"
        ) from None


def _plain_numbers(value: Any, key: str) -> None:
    """Check a number, a truth value, or lists of them inside each other."""
    if isinstance(value, list):
        list_of(_plain_numbers)(value, key)
    elif not isinstance(value, bool | int | float):
        raise _error(key, value, "a number")


def _object(value: Any, key: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _error(key, value, "an object")
    return value


def _inner(key: str, name: str) -> str:
    """Return the key of a value inside another one."""
    return f"{key}.{name}" if key else name


def _error(key: str, value: Any, expected: str) -> ValueError:
    """Return the error for a value that is not as expected."""
    shown = json.dumps(value, default=str)
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
    return ValueError(f"{key or 'the header'} is {shown}, expected {expected}")
