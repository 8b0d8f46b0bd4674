"""Stored numbers to floating ones: fill values become NaN, packed integers are scaled.

What the numbers mean is decided by xarray. Its own decoding copies a whole part several times; here
the common cases are done block by block: floating numbers in place, and integers of 8 or 16 bits by
a table of what xarray makes of each of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.files.packing import (
    UNWRITTEN_INTEGERS,
    is_unsigned,
    scale_and_offset,
    stored_mark,
    wraps,
)
from dkrls_cli.files.styles import marked_fills

if TYPE_CHECKING:
    import xarray as xr

# Cells that are decoded at a time: 1 MB of float32, which stays in the cache of a processor.
_BLOCK = 2**18
# Bytes of integers that are decoded by a table of all of them: 65536 of 16 bits.
_IN_TABLE = 2
# Attributes by which a number is not the value, but has to be computed.
_COMPUTED = {"scale_factor", "add_offset", "_Unsigned"}

# Attributes that decide what a number means.
_MEANING = (*sorted(_COMPUTED), "_FillValue", "missing_value", "dtype")
# Decoders that are kept: files that are read one after the other mostly have the same.
_MOST_KEPT = 64

_kept: dict[Hashable, Decoder] = {}
_warning_filters = Lock()  # they belong to the whole process, not to a thread


@dataclass(frozen=True, eq=False)
class Decoder:
    """How the stored numbers of a variable are turned into floating ones.

    Attributes
    ----------
    stored
        Type of the stored numbers.
    attrs
        Attributes of the variable that decide what a number means, as the file has them.
    dtype
        Floating type of the result.
    marks
        Numbers that mark missing values, if all others are values as they are; else None.
    extra
        Marks of missing values that xarray does not know, as decoded values.
    table
        The decoded value of each integer, if they have 8 or 16 bits.
    """

    stored: np.dtype[Any]
    attrs: Mapping[str, Any]
    dtype: np.dtype[Any]
    marks: tuple[Any, ...] | None
    extra: tuple[float, ...]
    table: NDArray[Any] | None

    @classmethod
    def of(cls, stored: np.dtype[Any], attrs: Mapping[str, Any]) -> Decoder:
        """Return how numbers of a type with some attributes are decoded."""
        own = _marks_of_type(stored, {key: attrs[key] for key in _MEANING if key in attrs})
        key = (stored.str, *((name, *_identity(value)) for name, value in own.items()))
        if key not in _kept:
            if len(_kept) >= _MOST_KEPT:
                _kept.clear()
            _kept[key] = cls._of(stored, own)
        return _kept[key]

    @classmethod
    def _of(cls, stored: np.dtype[Any], attrs: Mapping[str, Any]) -> Decoder:
        sample = _decode(np.empty(0, stored), attrs)
        dtype, extra = float_type(sample.dtype), tuple(unmasked_fills(sample))
        marks = _plain_marks(np.dtype(stored), dtype, attrs)
        table = None
        if stored.kind in "iu" and stored.itemsize <= _IN_TABLE:
            counted = np.arange(2 ** (8 * stored.itemsize)).astype(f"u{stored.itemsize}")
            numbers = counted.view(stored.newbyteorder("="))
            table = _mask(_decode(numbers, attrs).values.astype(dtype, copy=False), extra)
        return cls(np.dtype(stored), attrs, dtype, marks, extra, table)

    def decode(self, raw: NDArray[Any]) -> NDArray[Any]:
        """Return stored numbers as values, NaN where missing; `raw` may be changed and returned."""
        raw = raw.astype(self.stored, copy=False)  # an error for rows of any length
        if self.marks is not None:
            native = np.require(raw, raw.dtype.newbyteorder("="), ["C", "W"])
            for block in _blocks(native):
                self._mask_marks(block)
            return native
        result = np.empty(raw.shape, self.dtype)
        for stored, block in zip(_blocks(np.ascontiguousarray(raw)), _blocks(result), strict=True):
            block[...] = self._decode_block(stored)
        return result

    def _mask_marks(self, block: NDArray[Any]) -> None:
        """Make floating numbers missing that mark it."""
        for mark in self.marks or ():
            there = block == mark
            if there.any():
                block[there] = np.nan
        if self.extra:
            block[...] = _mask(block, self.extra)

    def _decode_block(self, stored: NDArray[Any]) -> NDArray[Any]:
        if self.table is not None:
            native = stored.astype(stored.dtype.newbyteorder("="), copy=False)
            return np.take(self.table, native.view(f"u{native.itemsize}"))
        return _mask(_decode(stored, self.attrs).values.astype(self.dtype, copy=False), self.extra)


def _marks_of_type(stored: np.dtype[Any], attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes whose marks of missing values are of the type of the floating numbers.

    A ``missing_value`` may be a text, or have more digits than the numbers, of which none equals
    it then: -999.9 in double precision means the nearest number in single precision. Where it has
    fewer digits than the numbers, it also stands for the number that is written as it is.
    """
    given = attrs.get("missing_value")
    if stored.kind != "f" or given is None:
        return dict(attrs)
    marks = []
    for mark in np.ravel(given):
        with suppress(ValueError), np.errstate(over="ignore"):
            marks += [stored.type(mark), stored.type(str(mark))]
    return {**attrs, "missing_value": np.unique(np.array(marks, stored.newbyteorder("=")))}


def _identity(value: Any) -> tuple[Hashable, ...]:
    """Return what tells an attribute from others: its type, numbers and shape."""
    array = np.asarray(value)
    return type(value).__name__, array.dtype.str, array.shape, array.tobytes()


def float_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the floating type, of this machine, in which values of a decoded type are read."""
    return dtype.newbyteorder("=") if dtype.kind == "f" else np.dtype(np.float64)


def unmasked_fills(array: xr.DataArray | xr.Variable) -> list[float]:
    """Return fill values of a decoded variable that are still there.

    These are marks of integers that are written as text or in units of the values, missing values
    that are signed where the integers stand for unsigned ones, and what netCDF leaves in integers
    that nobody wrote.
    """
    stored = np.dtype(array.encoding.get("dtype", "f8"))
    if stored.kind not in "iu":
        return []
    text = isinstance(array.encoding.get("missing_value"), str)
    given = [fill for fill in marked_fills(array) if np.isfinite(fill) and (text or fill % 1)]
    marks = [stored_mark(fill, stored, array.encoding) for fill in given]
    fills = [_unpacked(mark, array.encoding) for mark in marks if mark is not None]
    fills += _wrapped_fills(array, stored)
    unwritten = UNWRITTEN_INTEGERS.get(str(stored))
    if unwritten is not None and "_FillValue" not in array.encoding:
        fills.append(_unpacked(unwritten, array.encoding))
    return fills


def _wrapped_fills(array: xr.DataArray | xr.Variable, stored: np.dtype[Any]) -> list[float]:
    """Return decoded missing values that are written as the signed integers of a type.

    Bytes with ``_Unsigned`` are read as 0 to 255, where a ``missing_value`` of -1 means 255.
    """
    given = np.ravel(array.encoding.get("missing_value", ()))
    if not wraps(stored, array.encoding) or given.dtype.kind != "i":
        return []
    return [
        _unpacked(int(mark) % 2 ** (8 * stored.itemsize), array.encoding)
        for mark in given[given < 0]
    ]


def _unpacked(number: int, packing: Mapping[Any, Any]) -> float:
    """Return a stored integer as the value that its packing makes of it."""
    scale, offset = scale_and_offset(packing)
    return number * scale + offset


def _plain_marks(
    stored: np.dtype[Any], dtype: np.dtype[Any], attrs: Mapping[str, Any]
) -> tuple[Any, ...] | None:
    """Return the marks of missing values among floating numbers that are values as they are."""
    given = [np.ravel(attrs[key]) for key in ("_FillValue", "missing_value") if key in attrs]
    if stored.newbyteorder("=") != dtype or _COMPUTED & attrs.keys():
        return None
    if any(marks.dtype.kind not in "fiu" for marks in given):
        return None
    return tuple(mark for marks in given for mark in marks if not np.isnan(mark))


def _decode(stored: NDArray[Any], attrs: Mapping[str, Any]) -> xr.Variable:
    """Return numbers as xarray decodes those of a variable with these attributes."""
    import xarray as xr

    attrs = dict(attrs)
    if "_Unsigned" in attrs:
        attrs["_Unsigned"] = str(is_unsigned(attrs)).lower()  # xarray reads no "True" and no 1
    dims = [str(place) for place in range(stored.ndim)]
    with _warning_filters, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = xr.conventions.decode_cf_variable(
            "stored", xr.Variable(dims, stored, attrs), decode_times=False
        )
        return found.load()


def _mask(values: NDArray[Any], fills: tuple[float, ...]) -> NDArray[Any]:
    """Return values with NaN where they are a fill value, to rounding."""
    for fill in fills:
        there = np.isclose(values, fill, rtol=4 * np.finfo(values.dtype).eps, atol=0)
        values = np.where(there, np.nan, values) if there.any() else values
    return values


def _blocks(values: NDArray[Any]) -> list[NDArray[Any]]:
    """Return views of contiguous values, a few at a time."""
    flat = values.reshape(-1)
    return [flat[start : start + _BLOCK] for start in range(0, flat.size, _BLOCK)]
