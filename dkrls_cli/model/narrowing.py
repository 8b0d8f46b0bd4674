"""Arrays as a model file stores them: in fewer bytes, and the same to the last bit when read.

- Values that float32 holds exactly are stored in it, and texts as UTF-8. The bytes of sign and
  exponent are much alike in all values: those of a large array are deflated, apart from the others.
- Coordinates are often whole numbers of some part of a unit: hours, or hundredths of a degree. Then
  the steps between them are stored, in the smallest type of integer, and equal steps only once.
- Masks are one bit per cell, deflated where that is smaller.

A form is taken only if it gives the very same array back.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import AT_ONCE, Mask, are_finite, blocks, fits_single
from dkrls_cli.memory import available_bytes

Form = dict[str, Any]
"""How an array is stored, as JSON can hold it; an empty one: as it is."""

Numbers = NDArray[Any]
Narrowed = tuple[Form, Numbers | None]
"""The form of an array and the array to store; None if the form says it all."""

# Parts of a unit of which coordinates may be whole numbers: decimals, hours to microseconds of a
# day, minutes and seconds of a degree.
_PARTS = (1, 10, 100, 1000, 10**4, 10**5, 10**6, 24, 1440, 86400, 86400000, 86400 * 10**6, 60, 3600)

# Whole numbers below this one are exact in float64.
_LARGEST_WHOLE = 2.0**53

# Types to store steps in, smallest first.
_STEPS = tuple(np.dtype(name) for name in ("u1", "i1", "<u2", "<i2", "<u4", "<i4"))

# Numbers in an array of equal steps at most (128 MB): a damaged file must not fill the memory.
_MOST_EVEN = 2**24

# Numbers in a row of an array of steps at most: those of the bounds of a cell and of its corners.
_WIDEST = 8

# Bytes of an array from which on the bytes of its exponents are worth being deflated.
_LARGE = 2**12

# Share of the free memory that a mask may take, a byte per cell: a few deflated bytes may claim any
# number of cells.
_MASK_SHARE = 0.25

# Rows of an array that show most often that it has no whole numbers.
_FIRST = 64


def narrow_values(values: Numbers, dtype: np.dtype[Any] | None = None) -> tuple[Form, Numbers]:
    """Return how to store data: in float32 if that holds all of it, exponents deflated.

    `dtype` is the type of the numbers, if `values` hold them in a smaller one.

    Examples
    --------
    >>> narrow_values(np.array([0.5, 2.0]))
    ({'dtype': '<f8'}, array([0.5, 2. ], dtype=float32))
    """
    if values.dtype.kind != "f":
        return {}, np.asarray(values, order="C")
    own = values.dtype if dtype is None else dtype
    single = values.dtype == np.float64 and fits_single(values)
    held = np.asarray(values, np.float32 if single else values.dtype, order="C")
    if held.nbytes >= _LARGE:
        octets = _octets(held)
        top = _deflate(octets[:, -1])
        if top.size < len(octets):
            form = {"held": held.dtype.str, "shape": list(held.shape), "deflated": top.size}
            return {"dtype": own.str, **form}, _lay_out(top, octets)
    return ({"dtype": own.str} if held.dtype != own else {}), held


def narrow_coordinates(values: Numbers) -> Narrowed:
    """Return how to store coordinates, or what stands beside them.

    Examples
    --------
    >>> narrow_coordinates(np.array([0.25, 0.5, 1.0, 1.75]))[1]
    array([1, 2, 3], dtype=uint8)
    """
    if values.dtype.kind == "U":
        return _narrow_texts(values)
    form, plain = narrow_values(values)
    if _may_step(values):
        for shorter, steps in chain(_even_floats(values), _whole_steps(values)):
            smaller = steps is None or steps.nbytes < plain.nbytes
            if smaller and _gives_back(shorter, steps, values):
                return shorter, steps
    return form, plain


def _may_step(values: Numbers) -> bool:
    """Return whether an array has steps that are worth a look: the header holds its first row."""
    if values.ndim == 0 or values.dtype.kind not in "fiu":
        return False
    return len(values) > 1 and 0 < values[0].size <= _WIDEST and values.size <= _MOST_EVEN


def widen(form: Mapping[str, Any], stored: Numbers | None, *, held: bool = False) -> Numbers:
    """Return the array that was narrowed, read only.

    If `held`, data of float64 that float32 holds exactly stays in it.

    Raises
    ------
    KeyError, TypeError, ValueError
        If the form is not one, or not of the array that is stored.
    """
    dtype = np.dtype(form["dtype"])
    if dtype.kind not in "fiuU":
        raise ValueError(f"an array of type {dtype} has no form")
    if "start" in form:
        start, step, parts = np.asarray(form["start"]), np.asarray(form["step"]), form["parts"]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            numbers = start + step * _places(form, start, stored)
            array = np.asarray(numbers / parts if parts != 1 else numbers).astype(dtype)
    elif "held" in form and stored is not None:
        array = _join(form, stored)
        array = array if held and _is_wider(dtype, array) else array.astype(dtype, copy=False)
    elif stored is None or dtype.itemsize > 4 * stored.itemsize:
        raise ValueError(f"an array of type {dtype} is stored in another form")
    elif held and _is_wider(dtype, stored):
        array = stored
    else:
        array = (np.char.decode(stored, "utf-8") if dtype.kind == "U" else stored).astype(dtype)
    if dtype.kind == "f" and not are_finite(array):
        raise ValueError("an array holds numbers that are not finite")
    array.setflags(write=False)
    return array


def _is_wider(dtype: np.dtype[Any], held: Numbers) -> bool:
    """Return whether float64 is held in float32."""
    return dtype == np.float64 and held.dtype == np.float32


def _octets(held: Numbers) -> NDArray[np.uint8]:
    """Return the bytes of values (values, bytes), those of sign and exponent last."""
    little = held.astype(held.dtype.newbyteorder("<"), copy=False)
    return little.reshape(-1).view(np.uint8).reshape(-1, held.itemsize)


def _deflate(octets: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return bytes deflated, in parts: no copy is made of all of them."""
    deflater = zlib.compressobj(1)
    parts = [deflater.compress(octets[part].tobytes()) for part in blocks(octets.shape, AT_ONCE)]
    return np.frombuffer(b"".join([*parts, deflater.flush()]), np.uint8)


def _lay_out(top: NDArray[np.uint8], octets: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the deflated bytes of sign and exponent, and the other bytes of values behind them.

    Of these, the first bytes of all values come first, then the second ones, and so on.
    """
    count, size = octets.shape
    stored = np.empty(top.size + count * (size - 1), np.uint8)
    stored[: top.size] = top
    stored[top.size :].reshape(size - 1, count)[:] = octets.T[:-1]
    return stored


def _join(form: Mapping[str, Any], stored: Numbers) -> Numbers:
    """Return the values that were split, or raise ValueError if their bytes are not as many."""
    held, shape = np.dtype(form["held"]).newbyteorder("<"), tuple(form["shape"])
    top, rest = np.split(stored, [form["deflated"]])
    count = math.prod(shape)
    if held.kind != "f" or rest.size != count * (held.itemsize - 1):
        raise ValueError(f"the bytes of an array are not those of shape {shape}")
    octets = np.empty((count, held.itemsize), np.uint8)
    for place, each in enumerate([*rest.reshape(-1, count), _inflate(top, count)]):
        octets[:, place] = each
    return np.asarray(octets.view(held).reshape(shape))


def _places(form: Mapping[str, Any], start: Numbers, stored: Numbers | None) -> Numbers:
    """Return how many steps every number is from the first one."""
    if stored is not None:
        first = np.zeros((1, *start.shape), np.int64)
        return np.concatenate([first, np.cumsum(stored, axis=0, dtype=np.int64)])
    count = form["count"]
    if not 0 < count * start.size <= _MOST_EVEN:
        raise ValueError(f"{count} equal steps are none, or too many")
    return np.arange(count).reshape(-1, *[1] * start.ndim)


def _even_floats(values: Numbers) -> Iterator[Narrowed]:
    """Yield forms of equal steps of any size, as ``arange`` and ``linspace`` compute them."""
    if values.dtype == np.float64:
        with np.errstate(over="ignore"):
            first, mean = values[1] - values[0], (values[-1] - values[0]) / (len(values) - 1)
        for step in (first, mean):
            yield _form(values, values[0], step, 1) | {"count": len(values)}, None


def _whole_steps(values: Numbers) -> Iterator[Narrowed]:
    """Yield the form of whole numbers of parts: equal steps, or steps in a small type."""
    parts = next((parts for parts in _PARTS if _are_whole(values, parts)), None)
    if parts is None:
        return
    whole = _whole(values, parts).astype(np.int64)
    steps = np.diff(whole, axis=0)
    if (steps == steps[:1]).all():
        yield _form(values, whole[0], steps[0], parts) | {"count": len(values)}, None
        return
    unit = np.gcd.reduce(steps, axis=None)
    small = _smallest(steps // unit)
    if small is not None:
        yield _form(values, whole[0], unit, parts), small


def _whole(values: Numbers, parts: int) -> Numbers:
    """Return the nearest whole numbers of parts."""
    if values.dtype.kind in "iu":
        return values
    with np.errstate(over="ignore"):
        return np.asarray(np.rint(values.astype(np.float64) * parts))


def _are_whole(values: Numbers, parts: int) -> bool:
    """Return whether all values are whole numbers of parts; the first ones tell most often."""
    if values.dtype.kind in "iu":
        return True
    return all(
        np.array_equal((_whole(some, parts) / parts).astype(some.dtype), some)
        and bool((np.abs(_whole(some, parts)) < _LARGEST_WHOLE).all())
        for some in (values[:_FIRST], values)
    )


def _smallest(steps: Numbers) -> Numbers | None:
    """Return whole numbers in the smallest type that holds them, or None if none does."""
    low, high = int(steps.min()), int(steps.max())
    for dtype in _STEPS:
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return steps.astype(dtype)
    return None


def _form(values: Numbers, start: Any, step: Any, parts: int) -> Form:
    """Return the form of numbers from a first one on, counted in steps of parts of a unit."""
    return {
        "dtype": values.dtype.str,
        "start": start.tolist(),
        "step": step.tolist(),
        "parts": parts,
    }


def _narrow_texts(values: Numbers) -> Narrowed:
    """Return texts as UTF-8."""
    stored = np.char.encode(values, "utf-8")
    form = {"dtype": values.dtype.str}
    return (form, stored) if _gives_back(form, stored, values) else ({}, values)


def _gives_back(form: Form, stored: Numbers | None, values: Numbers) -> bool:
    """Return whether a form gives an array back, the same to the last bit."""
    try:
        found = widen(form, stored)
    except ValueError:
        return False
    alike = (found.dtype, found.shape) == (values.dtype, values.shape)
    return alike and found.tobytes() == values.tobytes()


def pack_mask(mask: Mask) -> NDArray[np.uint8]:
    """Return a mask in bits, deflated if that is smaller.

    Examples
    --------
    >>> pack_mask(np.zeros(8000, bool)).size < 20
    True
    """
    bits = np.packbits(mask)
    deflated = zlib.compress(bits.tobytes(), 9)
    return np.frombuffer(deflated, np.uint8) if len(deflated) < bits.size else bits


def unpack_mask(packed: Numbers, shape: tuple[int, ...], what: str) -> Mask:
    """Return a mask of this shape, or raise ValueError if what was packed is not one."""
    count = math.prod(shape)
    if count > _MASK_SHARE * available_bytes():
        raise ValueError(f"{what} do not fit the memory: they are {count}")
    size = (count + 7) // 8
    try:
        bits = packed if packed.shape == (size,) else _inflate(packed, size)
    except ValueError:
        raise ValueError(f"{what} do not fit the grid") from None
    return np.unpackbits(bits, count=count).astype(bool).reshape(shape)


def _inflate(deflated: Numbers, size: int) -> NDArray[np.uint8]:
    """Return deflated bytes, or raise ValueError if they are not as many as they should be."""
    try:
        found = zlib.decompressobj().decompress(deflated.tobytes(), size + 1)
    except zlib.error as error:
        raise ValueError(f"deflated bytes are damaged: {error}") from None
    if len(found) != size:
        raise ValueError(f"{size} bytes were deflated, but not these")
    return np.frombuffer(found, np.uint8)
