"""What a fit and a query must be, checked before any work."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.kernels import Array
from dkrls_cli.levels import Level

UNWRITTEN = 9.9e36
"""A value of this size is what netCDF leaves in cells of floats that nobody wrote."""


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


def checked_coordinates(
    coordinates: Sequence[ArrayLike], levels: Sequence[Level], shape: tuple[int, ...]
) -> tuple[Array, ...]:
    """One read-only vector of distinct coordinates per axis of the data."""
    if not len(coordinates) == len(levels) == len(shape):
        raise SettingError(
            f"Values with {len(shape)} axes need as many coordinates and levels, "
            f"got {len(coordinates)} and {len(levels)}."
        )
    axes = []
    for size, given, level in zip(shape, coordinates, levels, strict=True):
        axis = vector_of(given, f"coordinates of level '{level.name}'").copy()
        if axis.size != size:
            raise InputError(
                f"Level '{level.name}' has {axis.size} coordinates for {size} samples."
            )
        check_axis(axis, level)
        axis.setflags(write=False)
        axes.append(axis)
    return tuple(axes)


def check_axis(axis: Array, level: Level) -> None:
    """Refuse coordinates of which two are the same place."""
    repeated = level.kernel.repeated(axis)
    if repeated:
        one, other = repeated
        what = "the same" if level.kernel.period is None else "the same place on the circle"
        raise InputError(
            f"Coordinates {one} and {other} of level '{level.name}' are {what}: "
            f"{axis[one]:g} and {axis[other]:g}. Keep one of them, or their mean."
        )


def check_ridges(levels: Sequence[Level], joint_ridge: float | None) -> None:
    """Refuse a joint ridge that is none, or that stands beside a ridge of a level."""
    if joint_ridge is None:
        return
    if not (math.isfinite(joint_ridge) and joint_ridge >= 0):
        raise SettingError(f"Invalid joint ridge {joint_ridge}. It must be finite, 0 or above.")
    for level in levels:
        if level.ridge:
            raise SettingError(
                f"Level '{level.name}' has ridge {level.ridge} beside a joint ridge. Give one kind."
            )


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
