"""Meaning of dimensions: the one table of CF criteria, and what follows from it.

The CF conventions mark a coordinate by its units, standard name or ``axis`` attribute; files
without such marks are understood by the names in common use. The table works on names and
attributes, so that files and axes read it alike. CF's ``axis`` letters X and Y are not in it: they
also mark the axes of map projections, in metres. Nor is the vertical: heights, depths and pressures
go by different standard names and must not stand for one another. :func:`place_of` knows all of
these, to tell places from times; it says nothing about which axes may stand for one another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.circle import spacing
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.units.spellings import same_units
from dkrls_cli.spelling import suggest

if TYPE_CHECKING:
    from dkrls_cli.grid.axes import Axis

Role = Literal["longitude", "latitude", "time"]
T = TypeVar("T")


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

Place = Literal["latitude", "longitude", "vertical", "projection"]
"""Kinds of coordinates that say where a cell is."""

# Standard names of the vertical: heights, depths and pressures, and coordinates of model levels
# such as atmosphere_hybrid_sigma_pressure_coordinate and ocean_s_coordinate_g1.
_VERTICAL_STANDARD = re.compile(
    r"(depth|height|altitude|geopotential_height|model_level_number)(_(below|above)_.+)?"
    r"|air_pressure|sea_water_pressure|air_potential_temperature"
    r"|(atmosphere|ocean)_.*coordinate(_g[12])?"
)
# Units of pressure in lower case, which CF takes for the vertical.
_PRESSURE = re.compile(r"[hk]?pa|pascals?|mb|m?bar|millibars?|dbar|decibars?|atm|atmosphere")
# Names of vertical dimensions without attributes; deptht to depthw and olevel are NEMO's.
_VERTICAL_NAME = re.compile(
    r"depth[tuvw]?|lev|levels?|plev|height|altitude|z|zlev|olevel|st_ocean|isobaricinhpa"
)
_ROTATED: dict[str, Place] = {"grid_latitude": "latitude", "grid_longitude": "longitude"}
# Units that convert into each other, by kind: their spellings in lower case, and their sizes in one
# that they are whole multiples of, so that 85000 Pa are 850 hPa to the bit.
_SIZES = {
    "length": {
        **dict.fromkeys(("mm", "millimetre", "millimetres", "millimeter", "millimeters"), 1.0),
        **dict.fromkeys(("cm", "centimetre", "centimetres", "centimeter", "centimeters"), 10.0),
        **dict.fromkeys(("m", "metre", "metres", "meter", "meters"), 1e3),
        **dict.fromkeys(("km", "kilometre", "kilometres", "kilometer", "kilometers"), 1e6),
    },
    "pressure": {
        **dict.fromkeys(("pa", "pascal", "pascals"), 1.0),
        **dict.fromkeys(("hpa", "hectopascal", "hectopascals"), 1e2),
        **dict.fromkeys(("mb", "mbar", "millibar", "millibars"), 1e2),
        **dict.fromkeys(("kpa",), 1e3),
        **dict.fromkeys(("dbar", "decibar", "decibars"), 1e4),
        **dict.fromkeys(("bar", "bars"), 1e5),
    },
    "angle": {
        **dict.fromkeys((*_spellings("south"), *_spellings("west")), -1.0),
        **dict.fromkeys(("degree", "degrees", "deg", "°"), 1.0),  # degrees is not degree + s
        **dict.fromkeys((*_spellings("north"), *_spellings("east")), 1.0),
        **dict.fromkeys(("arcmin", "arc_minute", "arc_minutes", "arcminute", "arcminutes"), 1 / 60),
        **dict.fromkeys(("radian", "radians", "rad"), 180 / np.pi),
    },
    "time": {
        **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0),
        **dict.fromkeys(("min", "minute", "minutes"), 60.0),
        **dict.fromkeys(("h", "hr", "hour", "hours"), 3600.0),
        **dict.fromkeys(("d", "day", "days"), 86400.0),
        **dict.fromkeys(("week", "weeks"), 7 * 86400.0),
    },
    "calendar": {
        **dict.fromkeys(("month", "months"), 1.0),
        **dict.fromkeys(("year", "years", "yr"), 12.0),
    },
}

# What stands for units where numbers have none.
_NO_UNITS = frozenset(("", "1", "none", "unknown", "dimensionless"))

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
# Names of dimensions that count years: the months or hours beside them follow one another.
_YEARS = ("year", "years", "yr")
# Widest gap, in degrees, of a ring of longitudes that closes: one month of the sun's way round.
_WIDEST_GAP = 30.0
# Way round, in degrees, from the last longitude to the first of a ring that closes, whatever gaps
# lie between them: longitudes that span 340 degrees are meant to go round.
_WIDEST_SEAM = 20.0
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
            return None if _is_colatitude(name, attrs) else role
    return None


def _is_colatitude(name: str, attrs: Mapping[str, Any]) -> bool:
    """Return whether a coordinate is the angle from the pole, by what it is called."""
    texts = (name, _text(attrs, "standard_name"), _text(attrs, "long_name"))
    return any(re.match(r"co-?latitude|colat\b", text, re.IGNORECASE) for text in texts)


def is_place(name: str, attrs: Mapping[str, Any]) -> bool:
    """Return whether a variable is a latitude or longitude, on one dimension or on two."""
    if role_of(name, attrs) in ("longitude", "latitude"):
        return True
    units = _units(attrs)
    return _FIELD_NAME.fullmatch(name) is not None and (
        not units or units.startswith(("deg", "rad"))
    )


def place_of(axis: Axis) -> Place | None:
    """Return what kind of place the coordinates of a dimension are, or None if they are none.

    Latitude and longitude, those of a rotated pole among them; the vertical (height, depth,
    pressure, model levels); and the axes of a map projection. Times and texts are no places.

    >>> from dkrls_cli.grid.axes import axis_of
    >>> place_of(axis_of("plev", [1000.0, 500.0], {"units": "hPa"}))
    'vertical'
    """
    if axis.time is not None or axis.labels is not None:
        return None
    role = role_of(axis.name, axis.attrs)
    if role is not None:
        return None if role == "time" else role
    standard = _text(axis.attrs, "standard_name").lower()
    if standard in _ROTATED:
        return _ROTATED[standard]
    letter = _text(axis.attrs, "axis").upper()
    projected = standard.startswith("projection_") and standard.endswith("_coordinate")
    if projected or (letter in ("X", "Y") and kilometres(axis) is not None):
        return "projection"
    return "vertical" if _is_vertical(axis, standard, letter) else None


def _is_vertical(axis: Axis, standard: str, letter: str) -> bool:
    """Return whether a dimension is vertical; its name counts if no axis letter speaks against."""
    marked = letter == "Z" or _text(axis.attrs, "positive").lower() in ("up", "down")
    named = letter == "" and _VERTICAL_NAME.fullmatch(axis.name.lower()) is not None
    known = _VERTICAL_STANDARD.fullmatch(standard) is not None
    return marked or named or known or _PRESSURE.fullmatch(_units(axis.attrs)) is not None


def kilometres(axis: Axis) -> float | None:
    """Return how many kilometres one unit of the coordinates is, or None if it is no length."""
    size = _SIZES["length"].get(_units(axis.attrs))
    return None if size is None else size / _SIZES["length"]["km"]


def in_units_of(own: Axis, theirs: Axis, numbers: Array) -> Array:
    """Return numbers in the units of another axis, `theirs`, in those of our own.

    Numbers of an axis without units are taken to be in those of the other. Lengths that are counted
    upwards in one and downwards in the other, as their attributes ``positive`` say, change sign.

    Raises
    ------
    InputError
        If the units do not convert into each other, as far as is known, or one axis counts from
        the pole and the other from the equator.
    """
    from_pole = [_is_colatitude(axis.name, axis.attrs) for axis in (own, theirs)]
    if from_pole[0] != from_pole[1]:
        words = [("latitudes", "colatitudes")[far] for far in from_pole]
        raise InputError(
            f"Coordinates of '{own.name}' are {words[0]} here and {words[1]} there. Convert them: "
            "a colatitude is 90 degrees less the latitude."
        )
    texts = [_units(axis.attrs) for axis in (own, theirs)]
    ours, other = map(_kind_and_size, texts)
    unknown = ours is None and other is None and same_units(own.units, theirs.units)
    if unknown or not _NO_UNITS.isdisjoint(texts):
        return numbers
    if ours is None or other is None or ours[0] != other[0]:
        raise InputError(
            f"Coordinates of '{own.name}' are in '{own.units}' here and in '{theirs.units}' there, "
            "which do not convert into each other."
        )
    ways = {_text(axis.attrs, "positive").lower() for axis in (own, theirs)}
    sign = -1.0 if ours[0] == "length" and ways == {"up", "down"} else 1.0
    if ours == other and sign > 0:
        return np.asarray(numbers)
    return np.asarray(sign * numbers * other[1] / ours[1] + 0.0)  # no -0.0


def _kind_and_size(units: str) -> tuple[str, float] | None:
    """Return of which kind units are, and their size; None if they are not known."""
    return next(((kind, sizes[units]) for kind, sizes in _SIZES.items() if units in sizes), None)


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


def meaning_of(axis: Axis) -> str:
    """Return what a dimension is, whatever its name: its role in CF, else its standard name.

    The standard name of a role that other attributes deny does not count: a latitude in radians is
    not comparable with one in degrees.
    """
    role = "time" if axis.time is not None else role_of(axis.name, axis.attrs)
    standard = _text(axis.attrs, "standard_name")
    return role or ("" if standard in CRITERIA else standard)


def is_called(axis: Axis, name: str) -> bool:
    """Return whether a name is that of a dimension, or of its role or standard name."""
    meaning = meaning_of(axis)
    return axis.name == name or (meaning != "" and meaning in (role_of(name, {}), name))


def find_axis(name: str, axes: Sequence[Axis], owner: str = "data", purpose: str = "") -> Axis:
    """Return the axis that a name means: the one of that name, else the one of that role.

    Parameters
    ----------
    name
        Name of a dimension as the user writes it: ``lat`` means ``latitude``, and ``time`` the
        dimension of dates, unless there is one of that very name.
    axes
        Axes to choose from.
    owner, purpose
        Words for the message: what has the axes, and what the name was given for.

    Raises
    ------
    SettingError
        If the name means no axis, or several.

    Examples
    --------
    >>> from dkrls_cli.grid.axes import axis_of
    >>> find_axis("lat", [axis_of("latitude", [0.0, 1.0]), axis_of("x", [0.0, 1.0])]).name
    'latitude'
    """
    exact = [axis for axis in axes if axis.name == name]
    found = exact or [axis for axis in axes if is_called(axis, name)]
    if len(found) == 1:
        return found[0]
    names = [axis.name for axis in axes]
    if found:
        several = " and ".join(axis.name for axis in found)
        raise SettingError(f"'{name}'{purpose} can mean {several} here. Give the exact name.")
    raise SettingError(
        f"There is no dimension '{name}'{purpose}. The {owner} has {', '.join(names)}."
        f"{suggest(name, names)}"
    )


def find_name(axis: Axis, names: Sequence[str]) -> str | None:
    """Return the name that means an axis: its own, else the only one of its role; None if none is.

    Examples
    --------
    >>> from dkrls_cli.grid.axes import axis_of
    >>> find_name(axis_of("latitude", [0.0, 1.0]), ["id", "lat", "lon"])
    'lat'
    """
    if axis.name in names:
        return axis.name
    found = [name for name in names if is_called(axis, name)]
    return found[0] if len(found) == 1 else None


def by_dimension(
    given: Mapping[str, T], axes: Sequence[Axis], owner: str = "data", purpose: str = ""
) -> dict[str, T]:
    """Return values given by dimension under the names that the axes have: see :func:`find_axis`.

    Raises
    ------
    SettingError
        If a name means no axis or several, or two names mean the same.

    Examples
    --------
    >>> from dkrls_cli.grid.axes import axis_of
    >>> by_dimension({"lat": 3.0}, [axis_of("latitude", [0.0, 1.0])])
    {'latitude': 3.0}
    """
    found: dict[str, T] = {}
    for name, value in given.items():
        own = find_axis(name, axes, owner, purpose).name
        if own in found:
            raise SettingError(f"Dimension '{own}'{purpose} was given twice. Name it once.")
        found[own] = value
    return found


def pair_axes(own: Sequence[Axis], theirs: Sequence[Axis]) -> list[tuple[Axis, Axis]]:
    """Return the axes that belong together: those of the same name, or else of the same meaning.

    Their units may differ: they convert into each other.

    Examples
    --------
    >>> from dkrls_cli.grid.axes import axis_of
    >>> own, other = axis_of("latitude", [0.0, 1.0]), axis_of("lat", [0.5])
    >>> [(a.name, b.name) for a, b in pair_axes([own, axis_of("x", [1.0])], [other])]
    [('latitude', 'lat')]
    """
    names = {axis.name: axis for axis in theirs}
    meanings = {meaning: axis for axis in theirs if (meaning := _meaning_in_any_units(axis))}
    pairs = [
        (axis, names.get(axis.name) or meanings.get(_meaning_in_any_units(axis))) for axis in own
    ]
    return [(axis, other) for axis, other in pairs if other is not None]


def _meaning_in_any_units(axis: Axis) -> str:
    """Return what a dimension is; latitudes and longitudes are such in radians as well."""
    meaning, kind = meaning_of(axis), _kind_and_size(_units(axis.attrs))
    if meaning or kind is None or kind[0] != "angle":
        return meaning
    return role_of(axis.name, {**axis.attrs, "units": "degrees"}) or ""


def is_time_itself(axis: Axis) -> bool:
    """Return whether an axis is marked as time, not as a time of something, such as a reference."""
    named = axis.name.lower() in CRITERIA["time"].names
    return named or _text(axis.attrs, "standard_name") == "time" or _text(axis.attrs, "axis") == "T"


def natural_period(axis: Axis) -> float | None:
    """Return the length of the circle that the coordinates close, or None.

    They close it if the way round from the last to the first is an ordinary step; longitudes also
    if they cover the circle, with no gap of 30 degrees or more or over 340 degrees in all. Known
    circles are degrees of longitude and, by their names, months, hours of the day and days of the
    year; twelve names of months in order are months as well.
    """
    named = _CIRCLES.get(axis.name.lower().replace("_", "")) if axis.time is None else None
    if axis.labels is not None:
        named = 12.0 if tuple(label.lower()[:3] for label in axis.labels) == _MONTHS else None
    circle = axis.turn or named
    if circle is None or axis.size < 3:
        return None
    way_round = circle - float(np.ptp(axis.numbers))
    if way_round <= 0:
        return None
    closes = way_round <= 1.5 * spacing(axis.numbers)
    return circle if closes or (axis.turn and _covers_circle(axis.numbers, way_round)) else None


def period_beside(axis: Axis, axes: Sequence[Axis]) -> float | None:
    """Return the length of the circle that coordinates close beside the other axes of their grid.

    Beside years, months do not close one: the month after December is January of the next year, and
    not of the same. The same holds for hours and days of the year beside years or dates. Longitudes
    close a circle beside any axis.

    Parameters
    ----------
    axis
        The axis in question.
    axes
        All axes of the grid.

    Returns
    -------
    float or None
        As :func:`natural_period`.

    Examples
    --------
    >>> from dkrls_cli.grid.axes import axis_of
    >>> month, year = axis_of("month", np.arange(1, 13)), axis_of("year", np.arange(1950, 1990))
    >>> period_beside(month, [month]), period_beside(month, [year, month])
    (12.0, None)
    """
    follows = axis.turn is None and any(_counts_on(o) for o in axes if o.name != axis.name)
    return None if follows else natural_period(axis)


def _counts_on(axis: Axis) -> bool:
    """Return whether an axis has several years or dates."""
    return axis.size > 1 and (is_time(axis) or axis.name.lower() in _YEARS)


def _covers_circle(degrees: Array, way_round: float) -> bool:
    """Return whether longitudes go round the circle, whatever some of them are left out."""
    widest = max(way_round, float(np.diff(np.sort(degrees)).max()))
    return widest < _WIDEST_GAP or way_round <= _WIDEST_SEAM


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

    Dimensions of one coordinate come first, unless they are time; the levels need not name them.

    Raises
    ------
    SettingError
        If the given levels are not the dimensions, each once.
    """
    dims = [axis.name for axis in axes]
    if levels is None:
        return tuple(axis.name for axis in sorted(axes, key=_usual_place))
    known = [(name, [axis.name for axis in axes if is_called(axis, name)]) for name in levels]
    given = [found[0] if name not in dims and len(found) == 1 else name for name, found in known]
    names = (*(a.name for a in axes if a.size == 1 and a.name not in given), *given)
    if sorted(names) != sorted(dims):
        raise SettingError(
            f"The levels {', '.join(levels)} are not the dimensions of the data, "
            f"{', '.join(dims)}. Name each of them once.{_suggest_unknown(given, dims)}"
        )
    return names


def _usual_place(axis: Axis) -> tuple[bool, bool]:
    """Return a key that sorts axes of one coordinate first and time last."""
    return is_time(axis), axis.size > 1


def _suggest_unknown(names: Sequence[str], dims: Sequence[str]) -> str:
    """Return a suggestion for the first name that is no dimension, or nothing."""
    unknown = [name for name in names if name not in dims]
    return suggest(unknown[0], dims) if unknown else ""
