"""Cells of a variable replaced among its stored numbers, packed as the others are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.errors import InputError
from dkrls_cli.files.packing import pack, packed_range, stored_mark
from dkrls_cli.grid.style import Packing


def put_cells(
    name: str, stored: NDArray[Any], cells: Mask, values: Array, attrs: Mapping[str, Any]
) -> tuple[int, int]:
    """Replace some cells of stored numbers, in place; return how many are not as they should be.

    The type of the numbers stays, so that a value it cannot hold becomes the nearest it can.

    Parameters
    ----------
    name
        Name of the variable.
    stored
        Numbers as the file has them.
    cells
        Mask of the cells to replace; as many cells as there are numbers, in their order.
    values
        New values, in the shape of the mask; NaN makes a cell missing.
    attrs
        Attributes of the variable.

    Returns
    -------
    beyond, marked
        Cells beyond what the type holds, and cells equal to a mark of missing values.

    Raises
    ------
    InputError
        If a cell becomes missing, and the variable has no mark of missing values.
    """
    scale, offset = float(attrs.get("scale_factor", 1)), float(attrs.get("add_offset", 0))
    new = values[cells]
    gone = np.isnan(new)
    packed = pack((new[~gone] - offset) / scale, stored.dtype, attrs)
    numbers = np.empty(new.shape, stored.dtype)
    numbers[~gone] = packed.stored
    if gone.any():
        numbers[gone] = _missing_mark(name, stored.dtype, attrs)
    stored.reshape(cells.shape)[cells] = numbers
    return packed.beyond, packed.marked


def _missing_mark(name: str, dtype: np.dtype[Any], attrs: Mapping[str, Any]) -> Any:
    """Return the number that marks a missing cell of a variable, or raise InputError."""
    for key in ("_FillValue", "missing_value"):
        mark = np.ravel(attrs.get(key, ()))[:1]
        if dtype.kind in "iu":
            meant = [stored_mark(one, dtype, attrs) for one in mark.tolist()]
            mark = np.array([one for one in meant if one is not None]).astype(dtype)
        if mark.size and mark.dtype.kind in "fiu":
            return mark[0]
    if dtype.kind == "f":
        return np.nan
    raise InputError(
        f"'{name}' is stored as {dtype} without a _FillValue: its cells cannot be missing. Write "
        "to another format."
    )


def packing_notes(
    name: str, dtype: np.dtype[Any], attrs: Mapping[str, Any], beyond: int, marked: int
) -> list[str]:
    """Return a note for the user on cells beyond the type, and on cells equal to a mark, if any."""
    notes = []
    if beyond:
        low, high = packed_range(Packing(dtype.name, attrs))
        notes.append(
            f"{beyond} filled cells of '{name}' lie beyond {low:g} to {high:g}, which "
            f"its {dtype.name} can hold, and are stored as the nearer of the two"
        )
    if marked:
        scale = abs(float(attrs.get("scale_factor", 1)))
        notes.append(
            f"{marked} filled cells of '{name}' equal a mark of missing values, and "
            f"are stored {scale:g} beside it"
        )
    return notes


def is_outgrown(attrs: Mapping[str, Any], low: float, high: float) -> bool:
    """Return whether new values from `low` to `high` are outside of the range that is stated."""
    stated = np.ravel(attrs.get("actual_range", ()))
    if stated.size != 2 or stated.dtype.kind not in "fiu":
        return False
    return bool(low < stated.min() or high > stated.max())
