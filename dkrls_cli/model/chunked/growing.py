"""Updates of models with more slices than fit into memory: block by block."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dkrls_cli.errors import InputError
from dkrls_cli.files.source import Source, mask_unusable
from dkrls_cli.grid.cf import find_axis
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.chunked.ground import stored_chunks
from dkrls_cli.model.model import Model
from dkrls_cli.model.tiling.planning import process_bytes

_CELL = 40
"""Bytes in use for each cell of a block: as stored, as read, and four arrays of float64."""


def plan_blocks(model: Model, source: Source, limit: float) -> list[slice]:
    """Return the slices of each block along the last level of a model, in whole chunks if it can.

    Raises
    ------
    InputError
        If not even one slice, or the model with all of them, fits into memory.
    """
    place = _place(model, source)
    size, chunk = source.shape[place], stored_chunks(source)[place]
    a_slice = math.prod(source.shape) // size
    kept = math.prod(model.cascade.core.shape) // model.cascade.core.shape[model.grows]
    room = limit - process_bytes() - 2 * 8 * kept * size
    most = int(room // (_CELL * a_slice)) if room < math.inf else size
    if most < 1:
        least = limit - room + _CELL * a_slice
        raise InputError(
            f"The model with {size} more slices takes about {least / 1e6:.0f} MB, and "
            f"{limit / 1e6:.0f} MB are allowed. Allow more memory, add fewer slices, or keep the "
            "last slices only.",
            setting="max_memory",
        )
    step = size if most >= size else most // chunk * chunk or most
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]


def _place(model: Model, source: Source) -> int:
    """Return the place of the last level of a model among the axes of a source."""
    axis = find_axis(model.hierarchy[-1], source.axes, purpose=" to add slices along")
    return list(source.axes).index(axis)


def update_in_blocks(
    model: Model,
    source: Source,
    limit: float = math.inf,
    *,
    replace: bool = False,
    window: int | None = None,
    tell: Callable[[float], None] = lambda share: None,
) -> Model:
    """Return a model with new slices, which are read a few at a time.

    It is the model that one update with all slices makes.

    Parameters
    ----------
    model
        A model that holds its data, compact or not.
    source
        The new slices.
    limit
        Bytes that may be in use, the program included.
    replace, window
        As for :meth:`Model.update`.
    tell
        Called with the share that is done.

    Raises
    ------
    InputError
        If the slices do not fit the model, or cannot be read part by part; or if a slice is larger
        than memory allows.
    """
    model.cascade.refuse_stand_in()
    if source.read is None or source.errors is not None:
        raise InputError(
            f"'{source.name}' can only be read as a whole, not part by part. Write it to NetCDF or "
            "Zarr, without errors of the observations, or allow more memory.",
            setting="max_memory",
        )
    place = _place(model, source)
    for block in plan_blocks(model, source, limit):
        indices = [np.arange(axis.size) for axis in source.axes]
        indices[place] = indices[place][block]
        axes = tuple(axis.take(own) for axis, own in zip(source.axes, indices, strict=True))
        values = mask_unusable(source.read(indices))[0]
        grid = Grid(values, axes, source.name, source.attrs, source.style)
        model = model.update(grid, replace=replace, window=window)
        tell(block.stop / source.shape[place])
    return model
