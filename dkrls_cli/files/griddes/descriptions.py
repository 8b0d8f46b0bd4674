"""Descriptions of grids: lines ``key = value`` that say where longitudes and latitudes are."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.errors import InputError
from dkrls_cli.files.griddes.gaussian import gaussian_latitudes
from dkrls_cli.files.griddes.globe import MOST, checked_axes
from dkrls_cli.grid.axes import Axis

# Difference, in degrees, between two ways to give the same coordinate: more than CDO's rounding.
_SLACK = 1e-4
# The same for latitudes of a Gaussian grid, which some files give with two decimals.
_GAUSSIAN_SLACK = 1e-2

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


def begins_description(head: bytes) -> bool:
    """Return whether the first line that is no comment gives a key of a description."""
    for line in head.removeprefix(b"\xef\xbb\xbf").splitlines():
        text = line.partition(b"#")[0].strip()
        if text:
            key, equals, _ = text.partition(b"=")
            return bool(equals) and key.strip().lower().decode("ascii", "replace") in _KEYS
    return False


def parse_description(text: str, source: str) -> tuple[list[Axis], dict[str, Array]]:
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
    axes = checked_axes(source, lon, lat, names[0] or "lon", names[1] or "lat")
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
    if not text.isdecimal() or not least <= int(text) <= MOST**2:
        raise InputError(f"{source}: {key} is '{text}'. Expected a number of cells.")
    return int(text)


def _coordinates(
    entries: Mapping[str, str], sizes: Mapping[str, int], side: str, kind: str, source: str
) -> Array:
    """Return the coordinates of one side: its values, or first and increment, or Gaussian rows."""
    size = sizes.get(f"{side}size")
    if size is None:
        raise InputError(f"{source} leaves out {side}size, the number of coordinates.")
    if size > MOST:
        raise InputError(f"{source}: {side}size is {size}. At most {MOST} are possible.")
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
