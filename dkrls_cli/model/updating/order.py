"""The order of slices along the level that grows, and which of them stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.circle import nearest, repeated
from dkrls_cli.errors import InputError
from dkrls_cli.grid.axes import Axis

if TYPE_CHECKING:
    pass


def observed_slices(values: Array, grows: int) -> Indices:
    """Return the places of the slices with at least one observed cell."""
    others = tuple(axis for axis in range(values.ndim) if axis != grows)
    return np.flatnonzero(~np.isnan(values).all(axis=others))


def refuse_repeated(kernel: Kernel, new: Axis) -> None:
    """Raise InputError if two of the new slices have the same coordinate."""
    same = repeated(new.numbers, kernel.period)
    if same:
        text = new.take([same[0]]).texts[0]
        raise InputError(f"Coordinate {text} of '{new.name}' is twice in the new slices.")


def kept_slices(kernel: Kernel, old: Axis, new: Axis, replace: bool) -> Indices:
    """Return the places of old slices that no new one replaces.

    Raises InputError if a new slice has the coordinate of an old one and may not replace it.
    """
    near, same = nearest(new.numbers, old.numbers, kernel.period)
    if same.any() and not replace:
        text = new.take(np.flatnonzero(same)[:1]).texts[0]
        raise InputError(
            f"Coordinate {text} of '{new.name}' is in the model already. Leave the slice out, or "
            "replace the old one.",
            setting="replace",
        )
    return np.setdiff1d(np.arange(old.size), near[same])


def order_slices(numbers: Array, old: Array, window: int | None) -> Indices:
    """Return the places of the slices that stay, in the order that the old ones had, if any."""
    steps = np.diff(old)
    order = np.arange(numbers.size)
    if (steps > 0).all():
        order = np.argsort(numbers, kind="stable")
    elif (steps < 0).all():
        order = np.argsort(-numbers, kind="stable")
    if window is None or window >= numbers.size:
        return order
    last = np.sort(np.argsort(numbers, kind="stable")[-window:])
    return order[np.isin(order, last)]
