"""Grids by name or description, as CDO (Climate Data Operators) writes them.

A grid of the whole globe has a short name such as ``r360x180``; any grid of longitudes and
latitudes can be described in a text file of lines ``key = value``, as ``cdo griddes`` prints it.
Either becomes two axes, longitude and latitude in degrees.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.errors import InputError
from dkrls_cli.files.source import TABLES
from dkrls_cli.files.text.csv import explain_reading, source_name, unzip_bytes
from dkrls_cli.grid.axes import Axis, number_axis

GRID_NAMES = "r360x180, global_0.5, n80, F80, t63grid, tl127grid, lon=10/lat=50"
"""An example of every form of name, for messages."""

# Coordinates of an axis: more are a slip of the pen, and would fill the memory.
_MOST = 10**6
# Latitudes of a Gaussian grid: more take minutes to compute, and no model has them.
_MOST_GAUSSIAN = 16000
# Bytes that show whether a file is a description: comments may stand before the first key.
_HEAD = 2**16
# Difference, in degrees, between two ways to give the same coordinate: more than CDO's rounding.
_SLACK = 1e-4
# The same for latitudes of a Gaussian grid, which some files give with two decimals.
_GAUSSIAN_SLACK = 1e-2

_COUNT, _NUMBER = r"(\d+)", r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)"
_REGULAR = re.compile(rf"r{_COUNT}x{_COUNT}", re.IGNORECASE)
_GLOBAL = re.compile(rf"global_{_NUMBER}", re.IGNORECASE)
_GAUSSIAN = re.compile(rf"[nf]{_COUNT}", re.IGNORECASE)
_TRUNCATION = re.compile(rf"t(l?){_COUNT}grid", re.IGNORECASE)
_POINT = re.compile(rf"lon={_NUMBER}[/_]lat={_NUMBER}", re.IGNORECASE)

_LINE = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(.*)", re.DOTALL)
_TYPES = ("lonlat", "gaussian")
_HALVES = ("numlpe", "np")  # two names of the number of Gaussian rows of one hemisphere
_SIZES = ("gridsize", "xsize", "ysize", *_HALVES)
_TEXTS = ("gridtype", *(side + key for side in "xy" for key in ("name", "units")))
_NUMBERS = tuple(side + key for side in "xy" for key in ("first", "inc", "vals"))
# Keys that say nothing about where the cells' centres are.
_IGNORED = ("area", "mask", "nvertex", "scanningmode", "datatype", "prec", "uuid")
_NAMING = tuple(side + key for side in "xy" for key in ("longname", "stdname", "dimname"))
_BOUNDS = ("xbounds", "ybounds")
_KEYS = (*_SIZES, *_TEXTS, *_NUMBERS, *_BOUNDS, *_IGNORED, *_NAMING)


def describe_grid(given: str) -> list[Axis] | None:
    """Return the axes of a grid that is named or described in a text file.

    A file of that name is looked for first. Names are CDO's: ``r<NX>x<NY>`` and ``global_<STEP>``
    for regular grids of the globe, ``n<N>`` and ``F<N>`` for Gaussian grids with N latitudes
    between a pole and the equator, ``t<T>grid`` and ``tl<T>grid`` for the Gaussian grid of a
    spectral truncation, and ``lon=<LON>/lat=<LAT>`` for one point.

    Parameters
    ----------
    given
        The name, or the path of a description; ``-`` is standard input.

    Returns
    -------
    list of Axis, or None
        Longitude and latitude; None if there is no such name and the file is no description.

    Raises
    ------
    InputError
        If a description leaves something out, contradicts itself, or is of another kind of grid.

    Examples
    --------
    >>> lon, lat = describe_grid("r4x2")
    >>> lon.texts, lat.texts
    (['0.0', '90.0', '180.0', '270.0'], ['-45.0', '45.0'])
    """
    found = describe_cells(given)
    return None if found is None else found[0]


def describe_cells(given: str) -> tuple[list[Axis], dict[str, Array]] | None:
    """Return the axes of :func:`describe_grid`, and the cells (m, 2) of those with bounds."""
    if given == "-" or os.path.exists(given):
        text = _description(given)
        return None if text is None else _parse_description(text, source_name(given))
    named = _named_grid(given)
    return None if named is None else (named, {})


# --- Names ----------------------------------------------------------------------------------------


def _named_grid(name: str) -> list[Axis] | None:
    """Return the axes of a grid by its name, or None if the name has no known form."""
    if match := _REGULAR.fullmatch(name):
        return _regular(name, *(int(word) for word in match.groups()))
    if match := _GLOBAL.fullmatch(name):
        return _global(name, float(match[1]))
    if match := _GAUSSIAN.fullmatch(name):
        return _gaussian(name, 2 * int(match[1]))
    if match := _TRUNCATION.fullmatch(name):
        return _gaussian(name, _rows_of_truncation(int(match[2]), linear=bool(match[1])))
    if match := _POINT.fullmatch(name):
        lon, lat = (np.array([float(word)]) for word in match.groups())
        return _checked_axes(f"Grid '{name}'", lon, lat)
    return None


def _regular(name: str, columns: int, rows: int) -> list[Axis]:
    """Return longitudes from 0, and cell centres of latitude; an odd number of rows has the poles.

    An odd number of rows is CDO's way to have a row at the equator and at both poles.
    """
    _refuse_sizes(name, columns, rows)
    if rows == 1:
        lat = np.zeros(1)
    elif rows % 2:
        lat = np.linspace(-90.0, 90.0, rows)
    else:
        lat = (np.arange(rows) + 0.5) * 180.0 / rows - 90.0
    return _axes(_circle(columns), lat)


def _global(name: str, step: float) -> list[Axis]:
    """Return the centres of cells of `step` degrees, from 180 W and from the south pole."""
    if not 0 < step <= 180:
        raise InputError(f"Grid '{name}' has steps of {step:g} degrees. Expected 0 to 180.")
    columns, rows = int(360.0 / step + 0.5), int(180.0 / step + 0.5)
    _refuse_sizes(name, columns, rows)
    lon, lat = ((np.arange(n) + 0.5) * step - half for n, half in ((columns, 180), (rows, 90)))
    return _checked_axes(f"Grid '{name}'", np.asarray(lon), np.asarray(lat))


def _gaussian(name: str, rows: int) -> list[Axis]:
    """Return the full Gaussian grid of so many latitudes, and twice as many longitudes."""
    _refuse_sizes(name, 2 * rows, rows)
    return _axes(_circle(2 * rows), gaussian_latitudes(rows))


def _rows_of_truncation(truncation: int, linear: bool) -> int:
    """Return the latitudes of the Gaussian grid of a truncation: an even number.

    A quadratic grid has (3 T + 1) / 2 or more latitudes, a linear grid (2 T + 1) / 2 or more.
    """
    rows = truncation + 1 if linear else (3 * truncation + 2) // 2
    return rows + rows % 2


def _refuse_sizes(name: str, columns: int, rows: int) -> None:
    if min(columns, rows) < 1:
        raise InputError(f"Grid '{name}' has {columns} longitudes and {rows} latitudes.")
    if max(columns, rows) > _MOST:
        raise InputError(f"Grid '{name}' has more than {_MOST} coordinates on an axis.")


def _circle(columns: int) -> Array:
    return np.asarray(np.arange(columns) * 360.0 / columns)


def gaussian_latitudes(rows: int) -> Array:
    """Return the latitudes of a Gaussian grid in degrees, from north to south.

    Their sines are the roots of the Legendre polynomial of degree `rows`, by Newton's method from
    the asymptotic formula, which takes three or four steps.

    >>> gaussian_latitudes(2).round(6).tolist()
    [35.26439, -35.26439]
    """
    if rows > _MOST_GAUSSIAN:
        raise InputError(
            f"A Gaussian grid of {rows} latitudes is too large. At most {_MOST_GAUSSIAN} are known."
        )
    angle = np.pi * (np.arange(rows) + 0.75) / (rows + 0.5)
    for _ in range(8):
        sine, before, value = np.cos(angle), np.ones(rows), np.cos(angle)
        for degree in range(2, rows + 1):
            before, value = (
                value,
                ((2 * degree - 1) * sine * value - (degree - 1) * before) / degree,
            )
        # of P(cos angle) by the angle; the step is in angles, which are exact near the poles
        slope = rows * (sine * value - before) / np.sin(angle)
        step = value / slope
        angle = angle - step
        if np.abs(step).max() < 1e-15:
            break
    latitude = 90.0 - np.degrees(angle)
    return np.asarray((latitude - latitude[::-1]) / 2)  # symmetric to the last digit


# --- Descriptions ---------------------------------------------------------------------------------


def _description(path: str) -> str | None:
    """Return the text of a file if it begins like a description of a grid, else None.

    A pipe is read whole, as it cannot be read again; standard input is only looked at.
    """
    source, is_pipe = source_name(path), path != "-" and not os.path.isfile(path)
    if os.path.isdir(path) or (is_pipe and path.lower().endswith(TABLES)):
        return None
    with explain_reading(source):
        if path == "-":
            return _stdin_description()
        with open(path, "rb") as file:
            head = file.read(_HEAD)
            if is_pipe and not _begins_description(head):
                raise InputError(f"{source} is a pipe. Expected the description of a grid in it.")
            if not _begins_description(head):
                return None
            return (head + file.read()).decode("utf-8-sig")


def _stdin_description() -> str | None:
    """Return standard input if it begins like a description; otherwise nothing of it is taken."""
    if sys.stdin is None:
        return None
    raw: Any = sys.stdin.buffer
    if hasattr(raw, "peek"):
        head = raw.peek(_HEAD)
    elif raw.seekable():
        place = raw.tell()
        head = raw.read(_HEAD)
        raw.seek(place)
    else:
        return None
    return unzip_bytes(raw.read()).decode("utf-8") if _begins_description(head) else None


def _begins_description(head: bytes) -> bool:
    """Return whether the first line that is no comment gives a key of a description."""
    for line in head.removeprefix(b"\xef\xbb\xbf").splitlines():
        text = line.partition(b"#")[0].strip()
        if text:
            key, equals, _ = text.partition(b"=")
            return bool(equals) and key.strip().lower().decode("ascii", "replace") in _KEYS
    return False


def _parse_description(text: str, source: str) -> tuple[list[Axis], dict[str, Array]]:
    """Return the axes of a description and its cells; InputError if it does not describe a grid."""
    entries = _entries(text, source)
    kind = _unquoted(entries.get("gridtype", ""))
    if kind not in _TYPES:
        found = f"of gridtype '{kind}'" if kind else "without gridtype"
        raise InputError(
            f"{source} describes a grid {found}. Expected {' or '.join(_TYPES)}: rows and columns "
            "of latitudes and longitudes."
        )
    unknown = [key for key in entries if key not in _KEYS]
    if unknown:
        raise InputError(f"{source} has the key '{unknown[0]}', which is not known for {kind}.")
    sizes = {key: _size(entries[key], key, source) for key in _SIZES if key in entries}
    lon = _coordinates(entries, sizes, "x", kind, source)
    lat = _coordinates(entries, sizes, "y", kind, source)
    if sizes.get("gridsize", lon.size * lat.size) != lon.size * lat.size:
        raise InputError(
            f"{source}: gridsize is {sizes['gridsize']}, but xsize and ysize are "
            f"{lon.size} and {lat.size}."
        )
    if kind == "gaussian" and _gaussian_rows(sizes):
        _check_gaussian(_gaussian_rows(sizes), lat, source)
    names = [_unquoted(entries.get(side + "name", "")) for side in "xy"]
    for side, default in (("x", "degrees_east"), ("y", "degrees_north")):
        units = _unquoted(entries.get(side + "units", default))
        if not units.lower().startswith("deg"):
            raise InputError(f"{source}: {side}units are '{units}'. Expected degrees.")
    axes = _checked_axes(source, lon, lat, names[0] or "lon", names[1] or "lat")
    bounded = [
        (axis, side) for axis, side in zip(axes, "xy", strict=True) if side + "bounds" in entries
    ]
    return axes, {axis.name: _bounds(entries, axis, side, source) for axis, side in bounded}


def _bounds(entries: Mapping[str, str], axis: Axis, side: str, source: str) -> Array:
    """Return the cells (m, 2) of an axis."""
    numbers = _numbers(entries[side + "bounds"], side + "bounds", source)
    if numbers.size != 2 * axis.size:
        raise InputError(
            f"{source}: {side}bounds has {numbers.size} numbers for {axis.size} cells. Expected "
            "two for each."
        )
    return numbers.reshape(-1, 2)


def _entries(text: str, source: str) -> dict[str, str]:
    """Return what a description says by key in lower case; values may go on for several lines."""
    entries: dict[str, str] = {}
    key = ""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].strip()
        if match := _LINE.fullmatch(words):
            key, words = match[1].lower(), match[2].strip()
            if key in entries:
                raise InputError(
                    f"Line {number} of {source} gives {match[1]} again. Expected the description "
                    "of one grid."
                )
            entries[key] = words
        elif words:
            if not key:
                raise InputError(f"Line {number} of {source} is not key = value: '{words}'.")
            entries[key] += f" {words}"
    return entries


def _unquoted(text: str) -> str:
    return text.strip().strip("\"'").strip()


def _size(text: str, key: str, source: str) -> int:
    least = 0 if key in _HALVES else 1  # CDO writes numLPE = 0 where it is not known
    if not text.isdecimal() or not least <= int(text) <= _MOST**2:
        raise InputError(f"{source}: {key} is '{text}'. Expected a number of cells.")
    return int(text)


def _coordinates(
    entries: Mapping[str, str], sizes: Mapping[str, int], side: str, kind: str, source: str
) -> Array:
    """Return the coordinates of one side: its values, or first and increment, or Gaussian rows."""
    size = sizes.get(f"{side}size")
    if size is None:
        raise InputError(f"{source} leaves out {side}size, the number of coordinates.")
    if size > _MOST:
        raise InputError(f"{source}: {side}size is {size}. At most {_MOST} are possible.")
    given = {
        key: _numbers(entries[side + key], side + key, source)
        for key in ("vals", "first", "inc")
        if side + key in entries
    }
    found = [given["vals"]] if "vals" in given else []
    if "first" in given and ("inc" in given or size == 1):
        first, step = _only(given["first"], f"{side}first", source), 0.0
        if size > 1:
            step = _only(given["inc"], f"{side}inc", source)
        found.append(np.asarray(first + step * np.arange(size)))
    elif not given and side == "y" and kind == "gaussian" and _gaussian_rows(sizes) in (0, size):
        found.append(gaussian_latitudes(size))
    if not found:
        absent = [f"{side}{key}" for key in ("first", "inc") if key not in given]
        raise InputError(
            f"{source} leaves out {' and '.join(absent)}. Expected {side}first and {side}inc, or "
            f"{side}vals."
        )
    if found[0].size != size:
        raise InputError(
            f"{source}: {side}size is {size}, but {side}vals has {found[0].size} values."
        )
    if np.abs(found[-1] - found[0]).max() > _SLACK:
        raise InputError(
            f"{source}: {side}vals are not what {side}first and {side}inc give. Leave one out."
        )
    return found[0]


def _gaussian_rows(sizes: Mapping[str, int]) -> int:
    """Return the number of rows of the whole Gaussian grid, or 0 if it is not given."""
    return 2 * max(sizes.get(key, 0) for key in _HALVES)


def _numbers(text: str, key: str, source: str) -> Array:
    """Return the numbers of a value, or raise InputError if a word is none."""
    numbers = []
    for word in text.replace(",", " ").split():
        try:
            numbers.append(float(word))
        except ValueError:
            raise InputError(f"{source}: '{word}' in {key} is not a number.") from None
    if not numbers or not np.isfinite(numbers).all():
        raise InputError(f"{source}: {key} is '{text}'. Expected finite numbers.")
    return np.array(numbers)


def _only(numbers: Array, key: str, source: str) -> float:
    if numbers.size != 1:
        raise InputError(f"{source}: {key} has {numbers.size} numbers. Expected one.")
    return float(numbers[0])


def _check_gaussian(rows: int, lat: Array, source: str) -> None:
    """Raise InputError if latitudes are not among those of a Gaussian grid of so many rows.

    A description of a part of a Gaussian grid has some of them only.
    """
    known = gaussian_latitudes(rows)
    away = np.abs(lat[:, None] - known).min(axis=1)
    if lat.size > rows or away.max() > _GAUSSIAN_SLACK:
        raise InputError(
            f"{source}: the {lat.size} latitudes are not those of a Gaussian grid with numLPE "
            f"{rows // 2}, which has {rows} in all, the first {known[0]:g}. Is lonlat meant?"
        )


# --- Axes -----------------------------------------------------------------------------------------


def _checked_axes(
    source: str, lon: Array, lat: Array, xname: str = "lon", yname: str = "lat"
) -> list[Axis]:
    """Return the axes, or raise InputError if the coordinates cannot be places on the globe."""
    if xname == yname:
        raise InputError(f"{source}: xname and yname are both '{xname}'. Rename one.")
    if np.abs(lat).max() > 90.0 + 1e-9:
        worst = lat[np.argmax(np.abs(lat))]
        raise InputError(f"{source} has the latitude {worst:g}. Expected -90 to 90.")
    for name, numbers in ((xname, lon), (yname, lat)):
        if np.unique(numbers).size < numbers.size:
            raise InputError(f"{source} has a coordinate of '{name}' twice.")
    if np.ptp(lon) > 360.0:
        raise InputError(f"{source} has longitudes over {np.ptp(lon):g} degrees. Expected 360.")
    return _axes(lon, lat, xname, yname)


def _axes(lon: Array, lat: Array, xname: str = "lon", yname: str = "lat") -> list[Axis]:
    """Return longitude and latitude with their CF attributes."""
    return [
        number_axis(name, numbers, {"standard_name": what, "units": units, "axis": letter})
        for name, numbers, what, units, letter in (
            (xname, lon, "longitude", "degrees_east", "X"),
            (yname, lat, "latitude", "degrees_north", "Y"),
        )
    ]
