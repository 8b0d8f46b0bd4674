"""Updates of models with more slices than fit into memory: block by block."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dkrls_cli.errors import InputError
from dkrls_cli.files.source import Source, mask_unusable
from dkrls_cli.grid.cf import find_axis
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.chunked.ground import stored_chunks
from dkrls_cli.model.model import Model
from dkrls_cli.model.tiling.planning import process_bytes
from dkrls_cli.model.updating.alignment import align
from dkrls_cli.model.updating.surprise import Surprise, measure_surprise
from dkrls_cli.model.updating.update import Update, update_model

_CELL = 40
"""Bytes in use for each cell of a block: as stored, as read, and four arrays of float64."""


def plan_blocks(
    model: Model, source: Source, limit: float, window: int | None = None
) -> list[slice]:
    """Return the slices of each block along the last level of a model, in whole chunks if it can.

    With a `window`, the model keeps that many slices.

    Raises
    ------
    InputError
        If not even one slice, or the model with all of them, fits into memory.
    """
    place = _place(model, source)
    size, chunk = source.shape[place], stored_chunks(source)[place]
    a_slice = math.prod(source.shape) // size
    kept = math.prod(model.cascade.core.shape) // model.cascade.core.shape[model.grows]
    more = size if window is None else min(size, window)
    room = limit - process_bytes() - 2 * 8 * kept * more
    most = int(room // (_CELL * a_slice)) if room < math.inf else size
    if most < 1:
        least = limit - room + _CELL * a_slice
        raise InputError(
            f"The model with {more} more slices takes about {least / 1e6:.0f} MB, and "
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
    accept_inexact: bool = False,
    tell: Callable[[float], None] = lambda share: None,
) -> Update:
    """Return a model with new slices, which are read a few at a time.

    It is the model that one update with all slices makes, and all slices are compared with the
    predictions of the model that there is.

    Parameters
    ----------
    model
        A model that holds its data, compact or not.
    source
        The new slices.
    limit
        Bytes that may be in use, the program included.
    replace, window, accept_inexact
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
    place, before = _place(model, source), model
    source = _number_on(model, source, place)
    if source.read is None or source.errors is not None:
        raise InputError(
            f"'{source.name}' can only be read as a whole, not part by part. Write it to NetCDF or "
            "Zarr, without errors of the observations, or allow more memory.",
            setting="max_memory",
        )
    added, empty, surprise = 0, 0, _Surprises()
    for block in plan_blocks(model, source, limit, window):
        indices = [np.arange(axis.size) for axis in source.axes]
        indices[place] = indices[place][block]
        axes = tuple(axis.take(own) for axis, own in zip(source.axes, indices, strict=True))
        values = mask_unusable(source.read(indices))[0]
        if np.isnan(values).all():
            empty += block.stop - block.start
            continue
        grid = Grid(values, axes, source.name, source.attrs, source.style)
        own, new = align(before, grid, None)
        surprise = surprise.add(measure_surprise(before, own, new, None))
        done = update_model(
            model, grid, replace=replace, window=window, accept_inexact=accept_inexact
        )
        model, added, empty = done.model, added + done.added, empty + done.empty
        tell(block.stop / source.shape[place])
    if not added:
        cells = math.prod(source.shape)
        raise InputError(f"All {cells} values are missing. Expected at least one number.")
    return Update(model, surprise.result, added, empty)


def _number_on(model: Model, source: Source, place: int) -> Source:
    """Return new slices whose positions, if they have no coordinates, are behind the model's.

    Block by block they would be counted on from the block before.
    """
    own, new = model.axes[model.grows], source.axes[place]
    if own.has_coordinate or new.has_coordinate:
        return source
    numbers = own.continue_with(new).numbers
    axes = list(source.axes)
    axes[place] = dataclasses.replace(new, numbers=numbers, has_coordinate=True)
    return dataclasses.replace(source, axes=tuple(axes))


@dataclass(frozen=True)
class _Surprises:
    """Sums of squares over several comparisons with predictions."""

    cells: int = 0
    errors: float = 0.0
    promised: float = 0.0

    def add(self, one: Surprise) -> _Surprises:
        """Return the sums with those of another comparison."""
        if not one.cells:
            return self
        errors, promised = (one.cells * x**2 for x in (one.rmse, one.promised))
        return _Surprises(self.cells + one.cells, self.errors + errors, self.promised + promised)

    @property
    def result(self) -> Surprise:
        """The surprise of all."""
        if not self.cells:
            return Surprise(0, math.nan, math.nan)
        rmse, promised = (math.sqrt(x / self.cells) for x in (self.errors, self.promised))
        return Surprise(self.cells, rmse, promised)
