"""Words of pictures: what variables, axes and coordinates are called, with their units."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dkrls_cli.grid.axes import Axis, is_latitude
from dkrls_cli.grid.cf import is_time, place_of
from dkrls_cli.plots.ticks import latitude_text, longitude_text

# Units as they are printed, by their spellings in lower case.
_UNITS = {
    "1": "",
    **dict.fromkeys(
        ("degree_celsius", "degrees_celsius", "degc", "deg_c", "degree_c", "degrees_c", "celsius"),
        "°C",
    ),
    **dict.fromkeys(("kelvin", "degk", "deg_k"), "K"),
    **dict.fromkeys(("degree", "degrees"), "°"),
    **dict.fromkeys(("percent",), "%"),
}
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

# A power of a unit: m-2 and s**-1, or m^2; a number alone is a factor.
_POWER = re.compile(r"(?<=[A-Za-z])(?<!\d[eE])(?:\^|\*\*)?(-?\d+)(?![\w.])")

# Units of pressure, which decreases upward, in lower case.
_PRESSURE = re.compile(r"[hk]?pa|pascals?|mb|m?bar|millibars?|dbar|decibars?")


# Decimals of degrees in a title: a hundred metres.
_DECIMALS = 3


def units_text(attrs: Mapping[str, Any]) -> str:
    """Return units as they are printed, empty if there are none.

    >>> units_text({"units": "kg m-2 s-1"}), units_text({"units": "degree_Celsius"})
    ('kg m⁻² s⁻¹', '°C')
    """
    units = str(attrs.get("units", "")).strip()
    known = _UNITS.get(units.lower())
    return _POWER.sub(lambda m: m[1].translate(_RAISED), units) if known is None else known


def variable_text(name: str, attrs: Mapping[str, Any]) -> str:
    """Return what a variable is called: its long name, else its standard name, else its name.

    >>> variable_text("t", {"standard_name": "air_temperature"})
    'air temperature'
    """
    standard = str(attrs.get("standard_name", "")).replace("_", " ")
    words = str(attrs.get("long_name", "")).split()
    if len(words) == 1:
        words = words[0].split("_")
    return " ".join(words) or standard or name


def with_units(text: str, units: str) -> str:
    """Return a text with units in brackets, if there are any."""
    return f"{text} [{units}]" if units else text


def axis_text(axis: Axis) -> str:
    """Return the label of an axis; empty where the ticks say it: dates, degrees north and east."""
    if axis.time is not None or axis.turn is not None or is_latitude(axis):
        return ""
    units = "" if axis.labels is not None else units_text(axis.attrs)
    return with_units(variable_text(axis.name, axis.attrs), units)


def coordinate_text(axis: Axis) -> str:
    """Return the one coordinate of an axis in words: 2003-12-16, 30°N, depth 5 m.

    >>> from dkrls_cli.grid.axes import axis_of
    >>> coordinate_text(axis_of("depth", [5.0], {"units": "m"}))
    'depth 5 m'
    """
    text = axis.texts[0]
    if axis.time is not None:
        return text.replace("T", " ")
    if axis.labels is not None or not axis.has_coordinate:
        return f"{axis.name} {text}"
    number = float(axis.plain[0])
    decimals = len(f"{round(number, _DECIMALS)}".removesuffix(".0").partition(".")[2])
    if axis.turn is not None:
        return longitude_text(number, decimals)
    if is_latitude(axis):
        return latitude_text(number, decimals)
    units = units_text(axis.attrs)
    return f"{axis.name} {number:.6g} {units}".rstrip()


def title_text(name: str, attrs: Mapping[str, Any], fixed: Sequence[Axis]) -> str:
    """Return what is shown and where: the variable, and the coordinates that are fixed."""
    first = sorted(fixed, key=lambda axis: not is_time(axis))
    known = [axis for axis in first if axis.has_coordinate or axis.numbers[0] != 0]
    return ", ".join([variable_text(name, attrs), *map(coordinate_text, known)])


def points_down(axis: Axis) -> bool:
    """Return whether an axis is drawn downward: depths and pressures, or what CF says.

    >>> from dkrls_cli.grid.axes import axis_of
    >>> points_down(axis_of("plev", [1000.0, 500.0], {"units": "hPa"}))
    True
    """
    positive = str(axis.attrs.get("positive", "")).strip().lower()
    if positive in ("up", "down"):
        return positive == "down"
    if place_of(axis) != "vertical":
        return False
    named = f"{axis.name} {axis.attrs.get('standard_name', '')}".lower()
    units = str(axis.attrs.get("units", "")).strip().lower()
    deep = "depth" in named and float(axis.numbers.max()) > 0
    return deep or _PRESSURE.fullmatch(units) is not None
