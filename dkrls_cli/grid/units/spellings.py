"""Spellings of one unit: K and kelvin, m s-1 and m/s and m s**-1."""

from __future__ import annotations

import re
from collections import Counter

# Names of units, in lower case, by the one that is meant. Symbols of one letter are not among them
# in either case: C and K are units, c and k are none.
_NAMES = {
    **dict.fromkeys(("kelvin", "kelvins", "degk", "deg_k", "degree_k", "degrees_k"), "K"),
    **dict.fromkeys(("celsius", "degc", "deg_c", "degree_c", "degrees_c", "degreec"), "degC"),
    **dict.fromkeys(("degreesc", "degree_celsius", "degrees_celsius", "°c"), "degC"),
    **dict.fromkeys(("metre", "metres", "meter", "meters"), "m"),
    **dict.fromkeys(("gram", "grams"), "g"),
    **dict.fromkeys(("kilogram", "kilograms"), "kg"),
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("day", "days"), "d"),
    **dict.fromkeys(("pascal", "pascals"), "Pa"),
    **dict.fromkeys(("hpa", "mb", "mbar", "millibar", "millibars"), "hPa"),
    **dict.fromkeys(("watt", "watts"), "W"),
    **dict.fromkeys(("joule", "joules"), "J"),
    **dict.fromkeys(("percent", "per_cent", "%"), "%"),
    **dict.fromkeys(("deg", "degree", "degrees", "°"), "degree"),
    **dict.fromkeys(("dimensionless", "unitless", "none", "-"), "1"),
}
# A unit and its power: s-1, s^-1, s**-1, m2.
_FACTOR = re.compile(r"([^\W\d]+|[%°]\w*)(?:(?:\^|\*\*)?([+-]?\d+))?")


def same_units(one: str, other: str) -> bool:
    """Return whether two texts are spellings of the same unit, as far as is known.

    >>> same_units("m/s", "m s**-1"), same_units("kelvin", "K"), same_units("K", "degC")
    (True, True, False)
    """
    powers = _powers(one), _powers(other)
    return one.split() == other.split() or (powers[0] is not None and powers[0] == powers[1])


def _powers(text: str) -> dict[str, int] | None:
    """Return the units that a unit is a product of, with their powers; None if it is not clear."""
    words = re.sub(r"(?<=[^*\s])[.*·](?=[^*\s])", " ", _named("_".join(text.split())) or text)
    found: Counter[str] = Counter()
    for place, part in enumerate(words.split("/")):
        sign = -1 if place else 1  # a bar divides by the unit right behind it
        for word in part.split():
            match = _FACTOR.fullmatch(word)
            if word != "1" and not match:
                return None
            if match:
                found[_named(match[1]) or match[1]] += sign * int(match[2] or 1)
            sign = 1
    return {unit: power for unit, power in found.items() if power and unit != "1"}


def _named(name: str) -> str | None:
    """Return the unit that a name means, or None if it is not known."""
    return _NAMES.get(name.lower())
