"""The types of arrays that travel through this package, and how given values become them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dkrls_cli.errors import InputError

Array = NDArray[np.float64]
Tensor = NDArray[np.float64] | NDArray[np.float32]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
Slices = tuple[slice, ...]


def checked_values(values: ArrayLike) -> Array:
    """Values as float64, refused if they are no grid or not all finite."""
    data = as_numbers(values, "values")
    if data.ndim == 0 or data.size == 0:
        raise InputError(f"Values of shape {data.shape} hold no grid. Expected at least one cell.")
    if not (np.isfinite(data.min()) and np.isfinite(data.max())):  # NaN if any cell is
        missing = data.size - int(np.count_nonzero(np.isfinite(data)))
        raise InputError(f"{missing} of {data.size} values are missing or infinite.")
    return data


def checked_gaps(values: ArrayLike) -> Array:
    """Values as float64, NaN where missing; refused if all are, or one is infinite."""
    data = as_numbers(values, "values")
    infinite = int(np.count_nonzero(np.isinf(data)))
    if infinite:
        raise InputError(f"{infinite} of {data.size} values are infinite.")
    if np.isnan(data).all():
        raise InputError(f"All {data.size} values are missing. Expected one at least.")
    return data


def vector_of(values: ArrayLike, what: str, error: type[Exception] = InputError) -> Array:
    """Finite numbers as a vector."""
    vector = np.atleast_1d(as_numbers(values, what, error))
    if vector.ndim != 1:
        raise error(f"The {what} must be a vector, got shape {vector.shape}.")
    if not np.isfinite(vector).all():
        bad = vector[~np.isfinite(vector)]
        raise error(f"The {what} hold {bad.size} values that are not finite, the first {bad[0]}.")
    return vector


def as_numbers(values: ArrayLike, what: str, error: type[Exception] = InputError) -> Array:
    """Values as float64, NaN where they are masked; refused if they are no real numbers."""
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    given = np.asarray(values)
    try:
        if given.dtype.kind == "c":
            raise TypeError("they are complex")
        return given.astype(np.float64, copy=False)
    except (TypeError, ValueError) as cause:
        raise error(f"The {what} must be real numbers: {cause}.") from None
