"""Planning of tiles: what is asked for, which axes are cut, and what that takes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Indices
from dkrls_cli.errors import InputError
from dkrls_cli.files.source import Source
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.cf import period_beside
from dkrls_cli.memory import held_bytes, peak_bytes
from dkrls_cli.model.filling.cells import MaskLike
from dkrls_cli.model.filling.lengths import Distance, GapLimits
from dkrls_cli.model.planning.plan import group_memory
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.tiling.layout import (
    CONTEXTS,
    USUAL,
    Layout,
    Span,
    TilesTooLargeError,
    lay_tiles,
    worth,
)
from dkrls_cli.model.tiling.scan import is_rising
from dkrls_cli.tuning.footprint import Machine, solve_memory

_ROW_ARRAYS = 34
"""Bytes a cell of a core along the outer axis: masks, distances, answers and standard errors."""


@dataclass(frozen=True, eq=False)
class FillRequest:
    """Which cells to fill, and what to add: see :func:`dkrls_cli.model.fill.fill`."""

    mask: MaskLike | None = None
    max_gap: GapLimits | None = None
    within: Distance | None = None
    max_std: float | None = None
    std: bool = False
    extrapolate: bool = False


@dataclass(frozen=True)
class TilePlan:
    """Plan of filling a grid in tiles, as far as that is known before it is read.

    Attributes
    ----------
    layout
        The tiles.
    memory
        Bytes in use at most, the program included.
    bytes_read, bytes_written
        Bytes of values.
    passes
        How many times the grid is read.
    """

    layout: Layout
    memory: int
    bytes_read: int
    bytes_written: int
    passes: float


def plan_tiles(source: Source, settings: Settings, request: FillRequest, limit: float) -> TilePlan:
    """Plan the tiles of a grid before it is read.

    Parameters
    ----------
    source
        The grid.
    settings
        Settings of the model that fills the gaps.
    request
        What is asked for.
    limit
        Bytes that may be in use, the program included.

    Raises
    ------
    InputError
        If it cannot be read part by part, or no tiles are small enough.
    """
    process = besides(source, settings)
    spans = find_spans(source.axes, [np.arange(axis.size) for axis in source.axes])
    layout = _choose_layout(source, request, spans, limit - process)
    outer = spans[layout.outer.axis]
    rows = sum(
        outer.see(layout.outer, place, layout.context).size
        for place in range(len(layout.outer.cores))
    )
    cells, item = math.prod(source.shape), np.dtype(source.dtype).itemsize
    a_row = cells // source.shape[layout.outer.axis] * item
    read = 2 * cells * item + rows * a_row  # the scan, the masks of cores, and tiles
    written = cells * item * (2 if request.std else 1)
    return TilePlan(layout, layout.memory + process, read, written, read / (cells * item))


def besides(source: Source, settings: Settings) -> int:
    """Return the bytes that are held beside tiles: the program, and matrices of the sphere."""
    return process_bytes() + group_memory(source.axes, settings)


def process_bytes() -> int:
    """Return the bytes that the program takes by itself."""
    return Machine(held_bytes(), peak_bytes()).process


def find_spans(axes: Sequence[Axis], known: Sequence[Indices]) -> dict[int, Span]:
    """Return the axes that may be cut: numbers that rise or fall, none of them twice.

    They are answered at from the first to the last of the coordinates that are known, or all round
    a circle.
    """
    result = {}
    for place, axis in enumerate(axes):
        single = axis.labels is None and axis.size > 1 and axis.distinct.size == axis.size
        if single and is_rising(axis):
            ring = period_beside(axis, axes) is not None
            own = known[place]
            low, high = (0, axis.size) if ring else (int(own[0]), int(own[-1]) + 1)
            result[place] = Span(place, low, high, own, ring)
    return result


def _choose_layout(
    source: Source, request: FillRequest, spans: Mapping[int, Span], limit: float
) -> Layout:
    """Return the tiles that see the fewest cells besides their cores, whichever axes are cut.

    They have the usual context, or less if memory does not allow that.
    """
    refusals = []
    for context in range(USUAL, -1, -1):
        layouts = []
        for axes in _pairs(spans):
            try:
                layouts.append(lay_along(source, request, spans, axes, limit, context))
            except TilesTooLargeError as error:
                refusals.append(error)
        best = min(
            layouts,  # of those that are as good, one that is read tile by tile
            key=lambda layout: (relative_work(layout, source.shape), -len(layout.outer.cores)),
            default=None,
        )
        if best is not None and relative_work(best, source.shape) <= worth(context, CONTEXTS):
            return best
    if refusals:
        raise min(refusals, key=lambda refusal: refusal.least)
    raise InputError(
        "No dimension of the grid can be cut into tiles: that takes numbers or dates in rising or "
        "falling order. Allow more memory.",
        setting="max_memory",
    )


def _pairs(spans: Mapping[int, Span]) -> list[tuple[int, int | None]]:
    """Return the axes to cut: one that is no circle, and another one if there is any."""
    outer = [place for place, span in spans.items() if not span.ring]
    pairs = [(one, other) for one in outer for other in spans if other != one]
    return [*pairs] or [(one, None) for one in outer]


def relative_work(layout: Layout, shape: Sequence[int]) -> float:
    """Return the cells that all tiles see, as a share of those of the grid."""
    return layout.work / math.prod(shape[axis] for axis in layout.tried)


def lay_along(
    source: Source,
    request: FillRequest,
    spans: Mapping[int, Span],
    axes: tuple[int, int | None],
    limit: float,
    context: int,
) -> Layout:
    """Return tiles along one or two axes that fit into a limit."""
    outer, inner = axes
    shape, item = list(source.shape), np.dtype(source.dtype).itemsize
    std = request.std or request.max_std is not None

    def memory(core: int, width: int, inner_width: int) -> int:
        rest = math.prod(shape) // shape[outer]
        sides = [*shape]
        sides[outer] = width
        if inner is not None:
            sides[inner] = inner_width
        solve = solve_memory([side for side in sides if side > 1] or [1], std=std)
        return solve + _panel_bytes(item, width, core, rest)

    second = None if inner is None else spans[inner]
    return lay_tiles(spans[outer], second, CONTEXTS[context], memory, limit)


def _panel_bytes(item: int, width: int, core: int, rest: int) -> int:
    """Return the bytes of what all tiles of one core along the outer axis share."""
    return (item * width + _ROW_ARRAYS * core) * rest
