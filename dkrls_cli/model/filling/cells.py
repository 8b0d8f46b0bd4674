"""Choose the missing cells to fill, by mask, length of gap and distance from data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dkrls_cli.arrays import Indices, Mask
from dkrls_cli.circle import nearest
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.gaps.holes import within_reach
from dkrls_cli.gaps.pattern import gap_lengths
from dkrls_cli.grid.alignment import drop_other_single, rename_like
from dkrls_cli.grid.axes import Axis, convert_coordinates, list_some
from dkrls_cli.grid.cf import hierarchy_of, place_of
from dkrls_cli.grid.grid import Grid, GridLike, as_grid, is_labelled
from dkrls_cli.model.answering.masks import LastingMask, lasting_mask
from dkrls_cli.model.filling.lengths import (
    Distance,
    GapLimits,
    circle_of,
    distance_text,
    read_lengths,
    read_reaches,
)
from dkrls_cli.model.settings import Settings
from dkrls_cli.spelling import suggest

MaskLike: TypeAlias = GridLike
"""``always``, ``first``, ``none``, or an array: see :func:`dkrls_cli.fill`."""

# Relative rounding of coordinates: a gap of just the limit is filled, however it is computed.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class CellChoice:
    """Which missing cells to fill.

    Attributes
    ----------
    cells
        The cells to fill, in the shape of the grid.
    left
        Number of cells left, by reason.
    note
        What was decided about land and gaps, where the data does not show it.
    """

    cells: Mask
    left: Mapping[str, int]
    note: str = ""


def choose_cells(
    grid: Grid,
    settings: Settings,
    mask: MaskLike | None = None,
    max_gap: GapLimits | None = None,
    within: Distance | None = None,
) -> CellChoice:
    """Choose the missing cells to fill by mask, length of gap and distance from data.

    Parameters
    ----------
    grid
        Values on named axes, NaN where cells are missing.
    settings
        Of these, the levels: masks may look along the last one.
    mask, max_gap, within
        As for :func:`dkrls_cli.fill`.

    Returns
    -------
    CellChoice
        The cells to fill, and how many are left.

    Raises
    ------
    InputError
        If the mask does not fit the grid.
    SettingError
        If the mask, a dimension, a length or a distance is not a possible one.
    """
    hierarchy = hierarchy_of(grid.axes, settings.level_names)
    limits = read_lengths(max_gap or {}, grid.axes, "longest gap")
    reaches = {} if within is None else read_reaches(within, grid.axes, hierarchy)
    if mask is None:
        mask = "always" if within is None else "none"
    missing = np.isnan(grid.values)
    cells = missing.copy()
    masked = _masked(grid, mask, hierarchy)
    left = {"left as masked": leave_out(cells, masked.cells)}
    for place, limit in limits.items():
        axis = grid.axes[place]
        lengths = gap_lengths(missing, place, axis.numbers, circle_of(axis, grid.axes))
        too_long = lengths > limit * (1 + ROUNDING)
        left[f"left in gaps along {axis.name}"] = leave_out(cells, too_long)
    if within is not None:
        reason = f"left further than {distance_text(within)} from data"
        left[reason] = leave_out(cells, ~within_reach(missing, reaches))
    left = {reason: count for reason, count in left.items() if count}
    return CellChoice(cells, left, masked.note)


def leave_out(cells: Mask, left: Mask) -> int:
    """Take some cells out of those to fill, in place, and return how many that were."""
    before = int(np.count_nonzero(cells))
    cells &= ~left
    return before - int(np.count_nonzero(cells))


def _masked(grid: Grid, mask: MaskLike, hierarchy: Sequence[str]) -> LastingMask:
    """Return the cells that stay missing, in a shape that broadcasts to that of the grid."""
    if not isinstance(mask, str):
        return LastingMask(~open_cells(grid, mask))
    if mask == "none":
        return LastingMask(np.zeros((), bool))
    if mask == "always":
        return lasting_mask(grid, hierarchy)
    if mask == "first":
        return LastingMask(missing_at_first(grid, grid.dims.index(hierarchy[-1])))
    raise unknown_mask(mask)


def unknown_mask(mask: str) -> SettingError:
    """Return the error of a mask that has no such name."""
    return SettingError(
        f"Unknown mask '{mask}'. Choose from: always, first, none; or give an array."
        f"{suggest(mask, ('always', 'first', 'none'))}"
    )


def missing_at_first(grid: Grid, last: int) -> Mask:
    """Return what is missing in the first slice of the last level, if that can show a mask."""
    axis = grid.axes[last]
    why = "has one coordinate" if axis.size == 1 else "is a place" if place_of(axis) else ""
    if why:
        raise SettingError(
            f"The mask 'first' looks along the last level, and '{axis.name}' {why}: its first "
            "slice shows no mask. Choose another mask, or levels with time last.",
            setting="mask",
        )
    return np.asarray(np.isnan(np.take(grid.values, [0], axis=last)))


def open_cells(grid: Grid, mask: MaskLike) -> Mask:
    """Return the cells that an array lets be filled: those where it is neither 0 nor NaN."""
    if isinstance(mask, Grid) or is_labelled(mask):
        return _aligned(grid, drop_other_single(rename_like(as_grid(mask), grid.axes), grid.axes))
    chosen: Mask = np.asarray(np.nan_to_num(as_grid(mask).values) != 0)
    try:
        np.broadcast_to(chosen, grid.values.shape)
    except ValueError:
        raise InputError(
            f"The mask has shape {chosen.shape}, which does not fit a grid of shape "
            f"{grid.values.shape}."
        ) from None
    return chosen


def _aligned(grid: Grid, mask: Grid) -> Mask:
    """Return where a mask on some dimensions of the grid is neither 0 nor NaN.

    A mask of one time is that of all times.
    """
    own, values = dict(zip(grid.dims, grid.axes, strict=True)), mask.values
    for place, axis in enumerate(mask.axes):
        if axis.name not in own:
            raise InputError(
                f"The mask '{mask.name}' has a dimension '{axis.name}'. The grid has "
                f"{', '.join(grid.dims)}."
            )
        if axis.size > 1 or place_of(own[axis.name]) is not None:
            values = values.take(_places_in(axis, own[axis.name], mask.name), place)
    order = [mask.dims.index(dim) for dim in grid.dims if dim in mask.dims]
    sizes = dict(zip(mask.dims, values.shape, strict=True))
    shape = [sizes.get(dim, 1) for dim in grid.dims]
    return np.asarray(np.nan_to_num(values.transpose(order)).reshape(shape) != 0)


def _places_in(theirs: Axis, own: Axis, name: str) -> Indices:
    """Return where the coordinates of the grid are among those of a mask, or raise InputError."""
    if theirs.labels is not None and own.labels is not None:
        known = {text: place for place, text in enumerate(theirs.texts)}
        places = np.array([known.get(text, -1) for text in own.texts])
        lacking = np.flatnonzero(places < 0)
    else:
        numbers = own.encode(convert_coordinates(theirs, own), single=theirs.dtype == "float32")
        places, same = nearest(own.numbers, numbers, own.turn)
        lacking = np.flatnonzero(~same)
    if lacking.size == 0 and not theirs.has_coordinate and theirs.size != own.size:
        raise InputError(
            f"The mask '{name}' has {theirs.size} cells along '{own.name}', and no coordinates. "
            f"The grid has {own.size}."
        )
    if lacking.size:
        raise InputError(
            f"The mask '{name}' has other coordinates of '{own.name}' than the grid: it lacks "
            f"{list_some(own.take(lacking).texts)}."
        )
    return places
