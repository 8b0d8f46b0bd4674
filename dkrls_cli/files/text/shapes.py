"""Shapes of tables: wide, scattered points, or columns of different quantities.

A wide table holds one quantity: its header has the coordinates or labels of one dimension, which
are of one kind (months, sensor1, sensor2, ...), and its columns hold values of like size. A table
of scattered points has a column per coordinate, of different ranges, under names that are names of
dimensions. Where neither can be told, the table is not read as a wide one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.grid.cf import CRITERIA

# Names of coordinates, besides those of longitude, latitude and time.
_COORDINATES = re.compile(
    "[xyzt]|date|datetime|timestamp|year|month|day|hour|minute|second|doy|depth|height|altitude|"
    "alt|elevation|elev|level|lev|plev|easting|northing|row|col|station|station_id"
)
# Names of coordinates that are never those of values, besides longitude, latitude and time: a depth
# or a level may be what was measured.
_NEVER_VALUES = re.compile("[xy]|date|datetime|timestamp|year|month|doy")
# Names of values and of quantities; a header of coordinates has none of them.
_QUANTITIES = re.compile(
    "[uvw]|val|values?|obs|data|temp|temperature|tas|sst|ssh|pressure|press|slp|humidity|rh|wind|"
    "windspeed|wind_speed|wspd|speed|rain|rainfall|precip|precipitation|prcp|snow|radiation|"
    "salinity|sal|oxygen|voltage|light|co2|discharge|flow|flag|quality|qc|std|error|uncertainty|"
    "count"
)
# Last words of names of quantities: temp_mean and temp_std, wind_dir.
_MEASURES = re.compile(
    r".+[_\s.](mean|avg|median|min|max|std|sd|err|error|uncertainty|flag|qc|quality|count|speed|dir|"
    "direction)"
)
# Names of one kind, by their beginnings: months, days of the week, seasons.
_KINDS = (
    re.compile("(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"),
    re.compile("(mon|tue|wed|thu|fri|sat|sun)[a-z]*"),
    re.compile("djf|mam|jja|son|winter|spring|summer|autumn|fall"),
)
_UNITS = re.compile(r"\s*[\[(].*[\])]\s*$")
# Names that can be a series: one alone may be anything.
_FEWEST = 2
# Ranges of values this many times as large as those of another column are of another quantity:
# sensors of one kind differ by less, a dry and a wet place by as much as fifty.
_SPREAD_RATIO = 100.0
# Medians this many ranges apart, and this many times as large, are of another quantity: pressure
# in hPa and temperature in degrees are 25 ranges and 40 times apart.
_MEDIAN_DISTANCE, _SIZE_RATIO = 10.0, 10.0


def wide_doubt(
    first: Array | None, names: Sequence[str], columns: Sequence[Array]
) -> tuple[str, bool] | None:
    """Return why a table should not be read as a wide one, or None if nothing speaks against it.

    Parameters
    ----------
    first
        Numbers of the first column, or None if it has dates or labels.
    names, columns
        Names and values of the other columns, NaN where missing.

    Returns
    -------
    The reason, and whether it makes the table one of scattered points; else its columns hold
    different quantities, or it cannot be told.

    Examples
    --------
    >>> numbers = [np.array([1.0, 2.0]), np.array([1.5, 2.5])]
    >>> wide_doubt(None, ["north", "south"], numbers)
    >>> wide_doubt(None, ["lon", "temp"], numbers)
    ("'lon' in its header is the name of a coordinate", True)
    """
    plain = [_plain(name) for name in names]
    known = [name for name, word in zip(names, plain, strict=True) if is_coordinate_name(word)]
    if known:
        return f"'{known[0]}' in its header is the name of a coordinate", True
    if is_series(names):
        return None
    named = [name for name, word in zip(names, plain, strict=True) if _is_quantity(word)]
    ordered = first is None or _is_ordered(first)
    if named:
        return f"'{named[0]}' in its header is the name of a quantity", not ordered
    if not ordered:
        return "its first column is in no order", True
    unlike = _unlike_columns(names, columns)
    return (unlike, False) if unlike else None


def find_values(names: Sequence[str]) -> int:
    """Return the place of the column of values by the names of all: mostly the last.

    If the last one has the name of a coordinate, it is the only one that has not.

    >>> find_values(["time", "lat", "temp"]), find_values(["time", "temp [K]", "lat [deg]"])
    (2, 1)
    """
    plain, last = [_plain(name) for name in names], len(names) - 1
    others = [place for place, word in enumerate(plain) if not is_coordinate_name(word)]
    certain = _has_role(plain[last]) or _NEVER_VALUES.fullmatch(plain[last])
    return others[0] if certain and len(others) == 1 else last


def _plain(name: str) -> str:
    """Return a name in lower case, without units in brackets behind it."""
    return _UNITS.sub("", name).strip().lower()


def is_coordinate_name(name: str) -> bool:
    """Return whether a column of this name holds coordinates, not values at one of them."""
    word = name.lower()
    known = _COORDINATES.fullmatch(word) is not None
    return known or _has_role(word)


def _has_role(word: str) -> bool:
    """Return whether a name in lower case is one of longitude, latitude or time."""
    return any(word in marks.names for marks in CRITERIA.values())


def _is_quantity(word: str) -> bool:
    """Return whether a name in lower case is that of a quantity, not of a place or a time."""
    return any(pattern.fullmatch(word) for pattern in (_QUANTITIES, _MEASURES))


def is_series(header: Sequence[str]) -> bool:
    """Return whether two names or more are a series: months, days, seasons, or numbered.

    >>> is_series(["Jan", "Feb"]), is_series(["s1", "s2"]), is_series(["t", "v"])
    (True, True, False)
    """
    names = [_plain(name) for name in header]
    if len(names) < _FEWEST:
        return False
    stems = {re.sub(r"\d+([.,]\d+)?", "#", name) for name in names}
    numbered = len(stems) == 1 and "#" in next(iter(stems))
    return numbered or any(all(map(kind.fullmatch, names)) for kind in _KINDS)


def _is_ordered(numbers: Array) -> bool:
    steps = np.diff(numbers)
    return bool((steps > 0).all() or (steps < 0).all())


def _unlike_columns(names: Sequence[str], columns: Sequence[Array]) -> str:
    """Return which two columns hold values too different for one quantity; empty if none do."""
    known = [(name, c[~np.isnan(c)]) for name, c in zip(names, columns, strict=True)]
    ranges = [
        (name, float(c.min()), float(c.max()), float(np.median(c))) for name, c in known if c.size
    ]
    if not ranges:
        return ""
    ordered = sorted(ranges, key=lambda one: (max(abs(one[1]), abs(one[2])), one[0]))
    by_spread = sorted(ranges, key=lambda one: (one[2] - one[1], one[0]))
    for small, large in ((ordered[0], ordered[-1]), (by_spread[0], by_spread[-1])):
        if _are_unlike(small, large):
            return (
                f"its columns hold values of different size ('{small[0]}' {small[1]:g} to "
                f"{small[2]:g}, '{large[0]}' {large[1]:g} to {large[2]:g})"
            )
    return ""


def _are_unlike(
    small: tuple[str, float, float, float], large: tuple[str, float, float, float]
) -> bool:
    """Return whether two ranges of values can hardly be of one quantity."""
    spreads = sorted(high - low for _, low, high, _ in (small, large))
    if spreads[0] > 0 and spreads[1] > _SPREAD_RATIO * spreads[0]:
        return True
    sizes = sorted(max(abs(low), abs(high)) for _, low, high, _ in (small, large))
    far = abs(small[3] - large[3]) > _MEDIAN_DISTANCE * spreads[1]
    return far and sizes[1] > _SIZE_RATIO * sizes[0]
