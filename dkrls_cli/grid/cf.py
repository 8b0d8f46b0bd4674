"""Meaning of dimensions: the one table of CF criteria, and what follows from it.

The CF conventions mark a coordinate by its units, standard name or ``axis`` attribute; files
without such marks are understood by the names in common use. The table works on names and
attributes, so that files and axes read it alike. CF's ``axis`` letters X and Y are not in it: they
also mark the axes of map projections, in metres. Nor is the vertical: heights, depths and pressures
go by different standard names and must not stand for one another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dkrls_cli.circle import spacing
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.grid.axes import Axis

Role = Literal["longitude", "latitude", "time"]


@dataclass(frozen=True)
class Criteria:
    """Marks of a coordinate of one role.

    Attributes
    ----------
    units
        Units that belong to this role alone, in lower case.
    letter
        Value of the ``axis`` attribute that marks this role.
    names
        Names that mark this role if the attributes say nothing else, in lower case.
    in_degrees
        Whether other units than degrees speak against this role.
    """

    units: frozenset[str] = frozenset()
    letter: str = ""
    names: frozenset[str] = frozenset()
    in_degrees: bool = False


def _spellings(side: str) -> frozenset[str]:
    """Return all CF spellings of degrees east or north: degrees_east, degree_E, degreesE, ..."""
    degrees = ("degree", "degrees")
    long = {f"{word}_{side}" for word in degrees}
    short = {f"{word}{mark}{side[0]}" for word in degrees for mark in ("_", "")}
    return frozenset(long | short)


_DEGREES = ("", "degrees", "degree", "deg")

CRITERIA: dict[Role, Criteria] = {
    "longitude": Criteria(
        units=_spellings("east"),
        names=frozenset(("lon", "longitude", "long", "lons", "longitudes")),
        in_degrees=True,
    ),
    "latitude": Criteria(
        units=_spellings("north"),
        names=frozenset(("lat", "latitude", "lats", "latitudes")),
        in_degrees=True,
    ),
    "time": Criteria(letter="T", names=frozenset(("time",))),
}
"""Marks by role. The role is also the CF standard name."""

# Names of two-dimensional latitudes and longitudes in the files of ocean and weather models:
# nav_lat (NEMO), XLONG_M (WRF), TLAT (POP), lat_rho (ROMS), geolon_t (MOM) is marked by its units.
_FIELD_NAME = re.compile(
    r"(nav_|[xtuvg])?(lat|long?)(itude)?s?(_(rho|psi|[a-z])|\d*)", re.IGNORECASE
)

# Length of the circle that a dimension of this name runs round, in its own units.
_CIRCLES = {
    **dict.fromkeys(("month", "months", "monthofyear"), 12.0),
    **dict.fromkeys(("hour", "hours", "hourofday"), 24.0),
    **dict.fromkeys(("doy", "dayofyear", "yearday"), 365.25),
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def marked_role(attrs: Mapping[str, Any]) -> Role | None:
    """Return the role of a coordinate by its attributes alone, or None.

    Longitude and latitude are those in degrees: in radians, the standard name does not count.

    >>> marked_role({"units": "degrees_N"})
    'latitude'
    """
    units, standard = _units(attrs), _text(attrs, "standard_name").lower()
    if counts_time(attrs):
        return "time"
    letter = _text(attrs, "axis").upper()
    fits_degrees = not units or units.startswith("deg")
    for role, marks in CRITERIA.items():
        named = standard == role and (fits_degrees or not marks.in_degrees)
        if units in marks.units or named or (letter and letter == marks.letter):
            return role
    return None


def role_of(name: str, attrs: Mapping[str, Any]) -> Role | None:
    """Return the role of a coordinate by its attributes, or else by its name, or None."""
    marked = marked_role(attrs)
    if marked is not None:
        return marked
    for role, marks in CRITERIA.items():
        fits = not marks.in_degrees or _units(attrs) in _DEGREES
        if name.lower() in marks.names and fits:
            return role
    return None


def is_place(name: str, attrs: Mapping[str, Any]) -> bool:
    """Return whether a variable is a latitude or longitude, on one dimension or on two."""
    if role_of(name, attrs) in ("longitude", "latitude"):
        return True
    units = _units(attrs)
    return _FIELD_NAME.fullmatch(name) is not None and (
        not units or units.startswith(("deg", "rad"))
    )


def counts_time(attrs: Mapping[str, Any]) -> bool:
    """Return whether the units count time from a date, as ``days since 2000-01-01`` do."""
    return " since " in _text(attrs, "units").lower()


def _units(attrs: Mapping[str, Any]) -> str:
    return _text(attrs, "units").lower().replace(" ", "_")


def _text(attrs: Mapping[str, Any], key: str) -> str:
    return str(attrs.get(key, "")).strip()


def is_time(axis: Axis) -> bool:
    """Return whether a dimension is time, by its dates, attributes or name."""
    return axis.time is not None or role_of(axis.name, axis.attrs) == "time"


def natural_period(axis: Axis) -> float | None:
    """Return the length of the circle that the coordinates close, or None.

    They close it if the way round from the last to the first is an ordinary step. Known circles
    are degrees of longitude and, by their names, months, hours of the day and days of the year;
    twelve names of months in order are months as well.
    """
    named = _CIRCLES.get(axis.name.lower().replace("_", "")) if axis.time is None else None
    if axis.labels is not None:
        named = 12.0 if tuple(label.lower()[:3] for label in axis.labels) == _MONTHS else None
    circle = axis.turn or named
    if circle is None or axis.size < 3:
        return None
    way_round = circle - float(np.ptp(axis.numbers))
    return circle if 0 < way_round <= 1.5 * spacing(axis.numbers) else None


def natural_cycles(axis: Axis) -> tuple[float, ...]:
    """Return those of the day and the year that the times resolve, in units of the time axis.

    A cycle is resolved if four steps fit into it and the times span it twice.
    """
    if axis.time is None:
        return ()
    longest = float(np.ptp(axis.numbers)) / 2
    return tuple(
        cycle
        for cycle in (axis.time.day, axis.time.year)
        if 4 * spacing(axis.numbers) <= cycle <= longest
    )


def hierarchy_of(axes: Sequence[Axis], levels: Sequence[str] | None) -> tuple[str, ...]:
    """Return the dimensions from level 0 to the last: as given, or else with time last.

    Raises
    ------
    SettingError
        If the given levels are not the dimensions, each once.
    """
    dims = [axis.name for axis in axes]
    if levels is None:
        return tuple(axis.name for axis in sorted(axes, key=is_time))
    names = tuple(levels)
    if sorted(names) != sorted(dims):
        raise SettingError(
            f"The levels {', '.join(names)} are not the dimensions of the data, {', '.join(dims)}. "
            "Name each of them once."
        )
    return names
