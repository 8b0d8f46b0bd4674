"""Type aliases for arrays, and functions that turn the arrays a user gives into float64."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dkrls_cli.errors import InputError

Array = NDArray[np.float64]
Tensor = NDArray[np.float64] | NDArray[np.float32]  # a core may be stored in single precision
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
Slices = tuple[slice, ...]  # one slice object per axis: a block of a grid


AT_ONCE = 2**20
"""Cells of a large array that are worked on at once: what is made on the way takes 8 MB."""


def blocks(shape: Sequence[int], cells: int) -> Iterator[Slices]:
    """Yield the blocks of a grid in C order, each of at most `cells` cells (or one).

    A block is a part of one axis, whole along the axes after it, and one index of those before.
    """
    if math.prod(shape) == 0:
        return
    inner = len(shape)
    while inner > 0 and math.prod(shape[inner - 1 :]) <= cells:
        inner -= 1
    whole = tuple(slice(0, size) for size in shape[inner:])
    if inner == 0:
        yield whole
        return
    step = max(1, cells // math.prod(shape[inner:]))
    for outer in np.ndindex(*shape[: inner - 1]):
        for start in range(0, shape[inner - 1], step):
            part = slice(start, min(start + step, shape[inner - 1]))
            yield (*(slice(i, i + 1) for i in outer), part, *whole)


def checked_values(values: ArrayLike) -> Tensor:
    """Return a grid, or raise InputError if it is empty or has a cell without a number.

    Single precision stays: a grid is large, and a copy of it in double precision twice as large.

    Examples
    --------
    >>> checked_values([[1, 2], [3, 4]])
    array([[1., 2.],
           [3., 4.]])
    """
    data = as_tensor(values, "values")
    if data.ndim == 0 or data.size == 0:
        raise InputError(f"Values of shape {data.shape} hold no grid. Expected at least one cell.")
    if not are_finite(data):
        bad = data.size - int(np.count_nonzero(np.isfinite(data)))
        raise InputError(
            f"{bad} of {data.size} values are missing or infinite. Expected finite numbers."
        )
    return data


def checked_gaps(values: ArrayLike) -> Array:
    """Return a grid as float64 with NaN in missing cells.

    Raise InputError if all cells are missing or one is infinite.

    Examples
    --------
    >>> checked_gaps(np.ma.masked_equal([1, -9, 3], -9))
    array([ 1., nan,  3.])
    """
    data = as_numbers(values, "values")
    infinite = int(np.count_nonzero(np.isinf(data)))
    if infinite:
        raise InputError(
            f"{infinite} of {data.size} values are infinite. Expected finite numbers, or NaN for "
            "missing cells."
        )
    if np.isnan(data).all():
        raise InputError(f"All {data.size} values are missing. Expected at least one number.")
    return data


def vector_of(values: ArrayLike, what: str, error: type[Exception] = InputError) -> Array:
    """Return finite numbers as a vector; a single number becomes a vector of one.

    Raise `error` if the values are not real numbers, have two axes or more, or are not all
    finite. `what` names the values in the message.

    Examples
    --------
    >>> vector_of(3, "coordinates")
    array([3.])
    """
    vector = np.atleast_1d(as_numbers(values, what, error))
    if vector.ndim != 1:
        raise error(f"The {what} must be a vector, got shape {vector.shape}.")
    if not np.isfinite(vector).all():
        bad = vector[~np.isfinite(vector)]
        raise error(
            f"The {what} hold {bad.size} values that are not finite, the first {bad[0]}. "
            "Expected finite numbers."
        )
    return vector


def are_finite(values: NDArray[Any]) -> bool:
    """Return whether all numbers are finite; no mask is made of a large array."""
    # the least and the largest are both NaN if any number is
    return values.size == 0 or bool(np.isfinite(values.min()) and np.isfinite(values.max()))


def fits_single(values: Tensor) -> bool:
    """Return whether float32 holds all values exactly; missing ones (NaN) are no matter.

    Examples
    --------
    >>> fits_single(np.array([0.5, np.nan, -0.0])), fits_single(np.array([0.1]))
    (True, False)
    """
    return values.dtype == np.float32 or all(
        _part_fits_single(values[part]) for part in blocks(values.shape, AT_ONCE)
    )


def _part_fits_single(values: Tensor) -> bool:
    with np.errstate(over="ignore"):
        same = values.astype(np.float32) == values
    return bool(same.all()) or bool((same | np.isnan(values)).all())


def round_to_single(values: Array, cells: Mask) -> Array:
    """Return the values, some cells rounded to numbers that float32 holds; none becomes infinite.

    Examples
    --------
    >>> round_to_single(np.array([0.1, 0.1]), np.array([True, False])).tolist()
    [0.10000000149011612, 0.1]
    """
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32)
    return np.where(cells & np.isfinite(rounded), rounded, values)


def is_frozen(values: NDArray[Any]) -> bool:
    """Return whether an array is read-only, and so is every array that it is a view of.

    Such an array may be shared instead of copied.

    Examples
    --------
    >>> values = np.zeros(3)
    >>> view = values[:]
    >>> view.setflags(write=False)
    >>> is_frozen(view)
    False
    >>> values.setflags(write=False)
    >>> is_frozen(view)
    True
    """
    owner: object = values
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        owner = owner.base
    return owner is None


def freeze(values: NDArray[Any]) -> None:
    """Make an array read-only, and every array that it is a view of: nobody else may have them."""
    owner: object = values
    while isinstance(owner, np.ndarray):
        owner.setflags(write=False)
        owner = owner.base


# Why some are no real numbers, and what to do about it, by the kinds of numpy types.
_NO_NUMBERS = {
    "c": "they are complex",
    "M": "they are dates",
    "m": "they are durations. Divide them by one, such as np.timedelta64(1, 'D'), or open the file "
    "with decode_timedelta=False",
}


def as_tensor(values: ArrayLike, what: str) -> Tensor:
    """Return values as :func:`as_numbers` does, but those of single precision as they are."""
    single = type(values) is np.ndarray and values.dtype == np.float32
    return cast(Tensor, values) if single else as_numbers(values, what)


def as_numbers(values: ArrayLike, what: str, error: type[Exception] = InputError) -> Array:
    """Return values as float64, with NaN where they are masked.

    Raise `error` if they are not real numbers, such as dates and durations, which would become
    counts of whatever unit they are held in. `what` names the values in the message.

    Examples
    --------
    >>> as_numbers(["1.5", "2"], "values")
    array([1.5, 2. ])
    """
    try:
        given = np.asarray(values)
        if given.dtype.kind in _NO_NUMBERS:
            raise TypeError(_NO_NUMBERS[given.dtype.kind])
        if isinstance(values, np.ma.MaskedArray):
            given = np.ma.filled(values.astype(np.float64), np.nan)
        return given.astype(np.float64, copy=False)
    except (TypeError, ValueError) as cause:
        raise error(f"The {what} must be real numbers: {cause}.") from None
