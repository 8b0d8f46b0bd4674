"""Values as a file stores them: packed into integers or floating, missing ones marked.

Answers between two packed numbers are rounded to the nearer one, as the values of the source were.
Nothing else changes a number: what a packing cannot hold is written as floating numbers, with a
note.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.grid.style import Packing, Style

UNWRITTEN_INTEGERS = {
    "int16": -32767,
    "uint16": 65535,
    "int32": -2147483647,
    "uint32": 4294967295,
    "int64": -9223372036854775806,
    "uint64": 18446744073709551614,
}
"""Numbers that netCDF leaves in unwritten cells, by integer type; any byte may be a value."""

# Distance to an integer at which a mark divided by the scale is one: what single precision makes of
# 16 bits is below it.
_NEARLY_WHOLE = 0.01

# Attributes that state a range which has to hold all values.
_VALID = ("valid_range", "valid_min", "valid_max")
RANGES = (*_VALID, "actual_range")
"""Attributes that state a range of the values."""

# Why cells cannot be packed that are missing.
_UNMARKED = "cells are missing, and its integers have no mark for them"


@dataclass(frozen=True, eq=False)
class Encoded:
    """Values as they are stored, with attributes, and notes on what differs from the source."""

    values: NDArray[Any]
    attrs: dict[str, Any]
    notes: tuple[str, ...] = ()


def encode(name: str, values: NDArray[Any], attrs: Mapping[str, Any], style: Style) -> Encoded:
    """Return a variable as it is stored in its style: packed if that holds it, else floating.

    Parameters
    ----------
    name
        Name of the variable, for notes.
    values
        Values, NaN where missing.
    attrs
        Attributes of the values. Those that state a range are kept only if it holds.
    style
        Types, packing and marks of the source.

    Examples
    --------
    >>> style = Style(packing=Packing("int16", {"scale_factor": 0.1, "_FillValue": np.int16(-1)}))
    >>> encode("t", np.array([1.04, np.nan]), {}, style).values
    array([10, -1], dtype=int16)
    >>> encode("t", np.array([1e6, np.nan]), {}, style).notes[0]
    "'t' is written as float64 and not packed as int16: 1 cell beyond -3276.8 to 3276.7"
    """
    if style.packing is None:
        return _encode_floats(name, values, attrs, style)
    packed, reason = _encode_integers(values, attrs, style.packing)
    if packed is not None:
        return packed
    found = _encode_floats(name, values, attrs, style)
    note = unpacked_note(name, str(found.values.dtype), style.packing, reason)
    return replace(found, notes=(note, *found.notes))


def _encode_integers(
    values: NDArray[Any], attrs: Mapping[str, Any], packing: Packing
) -> tuple[Encoded | None, str]:
    """Return values as the integers of a packing, or why a packing cannot hold them."""
    there = ~np.isnan(values)
    stored, packed = store_integers(values, there, packing)
    if packed.beyond:
        low, high = packed_range(packing)
        return None, f"{_cells(packed.beyond)} beyond {low:g} to {high:g}"
    if packed.marked:
        return None, f"{_cells(packed.marked)} equal to a mark of missing values"
    if not there.all() and not packing.marks:
        return None, _UNMARKED
    own = true_ranges(packing.attrs, packed.stored)
    return Encoded(stored, {**true_ranges(attrs, values), **own}), ""


def store_integers(
    values: NDArray[Any], there: Mask, packing: Packing
) -> tuple[NDArray[Any], Packed]:
    """Return values as the integers of a packing, and what became of those that are there.

    Others are marked as missing, or 0 if the packing has no mark.
    """
    dtype = np.dtype(packing.dtype)
    numbers = (values[there].astype(np.float64) - packing.offset) / packing.scale
    packed = pack(numbers, dtype, packing.attrs)
    stored = np.full(values.shape, np.ravel(packing.marks[0])[0] if packing.marks else 0, dtype)
    stored[there] = packed.stored
    return stored, packed


def unpacked_note(name: str, dtype: str, packing: Packing, reason: str = _UNMARKED) -> str:
    """Return a note that a variable is written as floating numbers, and why."""
    return f"'{name}' is written as {dtype} and not packed as {packing.dtype}: {reason}"


def _cells(count: int) -> str:
    return f"{count} cell{'s' if count > 1 else ''}"


def packed_range(packing: Packing) -> tuple[float, float]:
    """Return the smallest and largest number that a packing holds, marks of missing ones aside."""
    dtype = np.dtype(packing.dtype)
    ends = pack(np.array([-np.inf, np.inf]), dtype, packing.attrs).stored
    whole = ends.view(f"u{dtype.itemsize}") if wraps(dtype, packing.attrs) else ends
    low, high = sorted((whole.astype(np.float64) * packing.scale + packing.offset).tolist())
    return low, high


def _encode_floats(
    name: str, values: NDArray[Any], attrs: Mapping[str, Any], style: Style
) -> Encoded:
    """Return values as floating numbers of the style, or wider ones where these do not hold them.

    A number that equals the mark of missing values would be read as missing: NaN marks them then.
    """
    notes: list[str] = []
    with np.errstate(over="ignore"):
        stored = values.astype(style.dtype, copy=False)
        if not np.array_equal(np.isinf(stored), np.isinf(values)):
            stored = values
            notes.append(f"'{name}' is written as {values.dtype}: {style.dtype} cannot hold it")
    kind, missing = stored.dtype.type, np.isnan(stored)
    marks = dict.fromkeys(style.marks, kind(np.nan if style.fill is None else style.fill))
    taken = style.fill is not None and bool(np.any(stored == kind(style.fill)))
    if taken:
        marks = {"_FillValue": kind(np.nan)}
        notes.append(
            f"'{name}' has cells equal to {style.fill:g}, which marks missing values in the "
            "source: NaN marks them here"
        )
    elif style.fill is not None and not np.isnan(style.fill) and missing.any():
        stored = np.where(missing, kind(style.fill), stored)
    elif style.fill is None:
        marks = {"_FillValue": kind(np.nan)} if missing.any() else {}
    ranges = true_ranges(attrs, values, stored.dtype)
    return Encoded(stored, {**ranges, **marks}, tuple(notes))


def true_ranges(
    attrs: Mapping[str, Any], values: NDArray[Any], dtype: np.dtype[Any] | None = None
) -> dict[str, Any]:
    """Return attributes without stated ranges of values that do not hold.

    Parameters
    ----------
    attrs
        Attributes, all others of which are kept.
    values
        The values, NaN where missing.
    dtype
        Type for the limits of valid values, which CF wants to be that of the values.
    """
    kept = {k: v for k, v in attrs.items() if k not in RANGES}
    stated = {k: np.ravel(attrs[k]) for k in RANGES if k in attrs}
    if not stated or values.dtype.kind not in "fiu" or np.isnan(values).all():
        return kept
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    for key, limits in stated.items():
        if limits.dtype.kind in "fiu" and _holds(key, limits.astype(np.float64), low, high):
            exact = dtype is not None and key != "actual_range"
            kept[key] = np.asarray(attrs[key]).astype(dtype) if exact else attrs[key]
    return kept


def _holds(key: str, limits: Array, low: float, high: float) -> bool:
    """Return whether values from low to high are as an attribute states."""
    if key == "actual_range":
        return limits.size == 2 and np.allclose(limits, (low, high), rtol=1e-6, atol=0)
    if key == "valid_range":
        return limits.size == 2 and bool(limits[0] <= low and high <= limits[1])
    return limits.size == 1 and bool(limits[0] <= low if key == "valid_min" else high <= limits[0])


@dataclass(frozen=True, eq=False)
class Packed:
    """Numbers in a stored type.

    Attributes
    ----------
    stored
        The numbers, rounded and kept within the range of the type. One that would mean a missing
        value is moved to the next one towards zero, which is always in the range.
    beyond
        How many did not fit the range.
    marked
        How many would have meant a missing value.
    """

    stored: NDArray[Any]
    beyond: int = 0
    marked: int = 0


def pack(numbers: Array, dtype: np.dtype[Any], attrs: Mapping[str, Any]) -> Packed:
    """Return numbers in the stored type of a variable.

    Parameters
    ----------
    numbers
        Finite numbers in units of the stored ones: offset and scale are taken off already.
    dtype
        The stored type; a floating one takes the numbers as they are.
    attrs
        Attributes of the variable, which name the marks of missing values.

    Examples
    --------
    >>> found = pack(np.array([2.4, 300.0, -1.0]), np.dtype("u1"), {})
    >>> found.stored.tolist(), found.beyond
    ([2, 255, 0], 2)
    """
    if dtype.kind == "f":
        return Packed(numbers.astype(dtype))
    unsigned = wraps(dtype, attrs)
    holder = np.dtype(f"u{dtype.itemsize}") if unsigned else dtype
    low, high = _limits(holder)
    whole = np.rint(numbers)
    beyond = np.count_nonzero((whole < low) | (whole > high))
    packed = np.clip(whole, low, high).astype(holder)
    marks = missing_marks(attrs, holder, wraps=unsigned)
    marked = 0
    for mark in marks:
        there = packed == mark
        marked += int(np.count_nonzero(there & (whole == mark)))
        packed[there] = _free_neighbour(mark, marks)
    return Packed(packed.view(dtype) if unsigned else packed, int(beyond), marked)


def wraps(dtype: np.dtype[Any], attrs: Mapping[str, Any]) -> bool:
    """Return whether signed integers stand for unsigned ones."""
    return dtype.kind == "i" and is_unsigned(attrs)


def is_unsigned(attrs: Mapping[str, Any]) -> bool:
    """Return whether a file says that its integers are unsigned: by the word, or by the number 1.

    >>> [is_unsigned({"_Unsigned": said}) for said in ("true", "True", 1, "false", 0)]
    [True, True, True, False, False]
    """
    said = np.ravel(attrs.get("_Unsigned", ""))
    return said.size == 1 and str(said[0]).strip().lower() in ("true", "1")


def _limits(holder: np.dtype[Any]) -> tuple[float, float]:
    """Return the smallest and largest integers of a type that are floating numbers as well."""
    limits = np.iinfo(holder)
    high = float(limits.max)
    return float(limits.min), high if int(high) <= limits.max else float(np.nextafter(high, 0))


def missing_marks(attrs: Mapping[str, Any], holder: np.dtype[Any], *, wraps: bool) -> set[int]:
    """Return the integers that mark missing values; `wraps` if signed ones stand for unsigned."""
    marks = set()
    for key in ("_FillValue", "missing_value"):
        for given in np.ravel(attrs.get(key, ())).tolist():
            if isinstance(given, int | float) and np.isfinite(given) and given == round(given):
                mark = int(np.array(int(given)).astype(holder))
                marks |= {mark} if wraps or mark == given else set()
    if "_FillValue" not in attrs and holder.name in UNWRITTEN_INTEGERS and not wraps:
        marks.add(UNWRITTEN_INTEGERS[holder.name])
    return marks


def stored_mark(mark: Any, dtype: np.dtype[Any], attrs: Mapping[str, Any]) -> int | None:
    """Return the stored integer that a mark of missing values means, or None if there is none.

    A whole number is that integer, as CF wants it. Any other is one in units of the values.

    >>> packing = {"scale_factor": 0.01}
    >>> [stored_mark(mark, np.dtype("i2"), packing) for mark in (-999, -9.99, -9.994, 1e20, "none")]
    [-999, -999, None, None, None]
    """
    try:
        number = float(mark)
    except (TypeError, ValueError):
        return None
    scale, offset = scale_and_offset(attrs)
    if not np.isfinite(number) or not scale:
        return None
    if number % 1:
        number = (number - offset) / scale
    whole, limits = round(number), np.iinfo(dtype)
    high = 2 ** (8 * dtype.itemsize) - 1 if wraps(dtype, attrs) else int(limits.max)
    fits = int(limits.min) <= whole <= high and abs(number - whole) < _NEARLY_WHOLE
    return whole if fits else None


def scale_and_offset(attrs: Mapping[str, Any]) -> tuple[float, float]:
    """Return the difference of two packed numbers, and what integer 0 stands for."""
    return float(attrs.get("scale_factor", 1.0)), float(attrs.get("add_offset", 0.0))


def _free_neighbour(mark: int, marks: set[int]) -> int:
    """Return the next integer towards zero (from zero: upwards) that marks no missing value."""
    step = 1 if mark <= 0 else -1
    while mark in marks:
        mark += step
    return mark
