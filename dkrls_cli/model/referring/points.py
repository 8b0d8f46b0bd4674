"""Answers at scattered points of models that refer to their data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array, Indices, Slices
from dkrls_cli.cascade.streaming.windows import SMALL, SMALL_IN_SINGLE
from dkrls_cli.errors import InputError
from dkrls_cli.files.source import Source
from dkrls_cli.model.answering.answers import PointQuery
from dkrls_cli.model.chunked.ground import stored_chunks
from dkrls_cli.model.chunked.loading import room
from dkrls_cli.model.chunked.reference import open_reference
from dkrls_cli.model.lasting.choosing import known_land
from dkrls_cli.model.lasting.slices import LandSlices
from dkrls_cli.model.referring.answering import PointAnswers
from dkrls_cli.model.referring.finishing import (
    bounded_errors,
    bounded_values,
    cut_blocks,
    follow_data,
)
from dkrls_cli.model.referring.sums import ANSWER, CELL, PointSums, TileTask
from dkrls_cli.model.referring.tiles import tile_sizes
from dkrls_cli.model.streaming.boxes import boxes_of
from dkrls_cli.model.streaming.request import process_bytes
from dkrls_cli.model.streaming.running import Scheduler, local_threads

_TILE = 2**22
"""Cells of a tile at most: 32 MB in double precision, and as much again on the way."""


@dataclass(frozen=True, eq=False)
class ReferredPoints(PointQuery):
    """Points at which a model that refers to its data is asked.

    Attributes
    ----------
    limit
        Bytes that may be in use, the program included; 0: a share of what is free.
    scheduler
        Reads the tiles; None: threads of this process.
    """

    limit: float = 0.0
    scheduler: Scheduler | None = None

    @cached_property
    def _free(self) -> Array:
        """The answers, bounds aside."""
        return answer_at_points(self, *self._where)

    @cached_property
    def _errors(self) -> Array:
        """The standard errors that the data tells, bounds aside."""
        return np.sqrt(answer_at_points(self, *self._where, variance=True))

    @property
    def _where(self) -> tuple[float, Scheduler]:
        return self.limit or room(), self.scheduler or local_threads(None)

    def free(self) -> Array:
        """Return the answers before they are moved to the bounds."""
        return self._free

    def values(self) -> Array:
        """Return the answers, NaN where there is none."""
        return bounded_values(self)

    def std(self) -> Array:
        """Return the standard errors of the answers, NaN where there is none."""
        return bounded_errors(self, self._errors if follow_data(self) else None)

    def blocks(
        self, cells: int, *, std: bool = False
    ) -> Iterator[tuple[Slices, Array, Array | None]]:
        """Yield the answers in C order in blocks of about `cells` cells, with slices and errors."""
        return cut_blocks(self, cells, std)


def answer_at_points(
    query: PointQuery, limit: float, scheduler: Scheduler, *, variance: bool = False
) -> Array:
    """Return the answers of a model that refers to its data at points, bounds aside.

    Points are answered in as many passes over the data as memory needs, most often one.

    Parameters
    ----------
    query
        The points.
    limit
        Bytes that may be in use, the program included.
    scheduler
        Reads the tiles.
    variance
        Whether to return the variance of the answers that the data tells, instead of them.

    Raises
    ------
    InputError
        If the data has changed, a cell is missing, or not even one point fits into memory.
    """
    source = open_reference(query.model)
    kept, answers_of = _opened(query, source, variance)
    tile = min(_TILE, max(1.0, (limit - process_bytes()) / (2 * CELL * scheduler.workers)))
    left = limit - process_bytes() - scheduler.workers * CELL * tile
    found = np.empty(query.shape)
    start, size = 0, _first_points(query, left)
    while start < len(found):
        part = slice(start, min(start + size, len(found)))
        some = _some_points(query, part)
        answers = answers_of(some)
        sums = answers.sums
        size = max(1, int(left // sums.bytes_each))
        if sums.bytes_each > left:
            raise InputError(
                f"The answers at one point of '{query.model.name}' take about "
                f"{sums.bytes_each / 1e6:.0f} MB on the way, and {max(0.0, left) / 1e6:.0f} MB are "
                "left. Allow more memory, or ask for fewer coordinates of the other dimensions.",
                setting="max_memory",
            )
        found[part] = answers.finish(_add_tiles(sums, source, kept, tile, scheduler))
        start = part.stop
    return found


def _first_points(query: PointQuery, left: float) -> int:
    """Return how many points certainly fit into memory, before the width of rows is known."""
    shape = query.model.cascade.shape
    shared = math.prod(max(shape[axis], query.asked[axis].size) for axis in query.spread)
    rows = sum(size for axis, size in enumerate(shape) if axis not in query.spread)
    return max(1, int(left // (8 * rows + ANSWER * shared)))


def _some_points(query: PointQuery, part: slice) -> PointQuery:
    """Return some of the points."""
    places = [slice(None) if a in query.spread else part for a in range(len(query.asked))]
    linear = query.linear
    if linear is not None:
        linear = replace(
            linear,
            functionals=tuple(f[p] for f, p in zip(linear.functionals, places, strict=True)),
            factors=[f[p] for f, p in zip(linear.factors, places, strict=True)],
        )
    asked = tuple(numbers[p] for numbers, p in zip(query.asked, places, strict=True))
    return replace(query, asked=asked, linear=linear)


def _opened(
    query: PointQuery, source: Source, variance: bool = False
) -> tuple[tuple[Indices, ...], Callable[[PointQuery], PointAnswers]]:
    """Return the coordinates of the source that the model has, and what answers points."""
    if query.model.joint_ridge is None:
        single = source.dtype == "float32" and query.linear is None
        small = SMALL_IN_SINGLE if single else SMALL
        kept = tuple(axis.distinct for axis in source.axes)
        return kept, partial(PointAnswers.of, small=small)
    found = known_land(query.model, source)
    land = LandSlices.of(found, query.model).ready()
    return found.kept, partial(PointAnswers.of_land, land=land, variance=variance)


def _add_tiles(
    sums: PointSums,
    source: Source,
    kept: tuple[Indices, ...],
    cells: float,
    scheduler: Scheduler,
) -> Array:
    """Return the sums over all tiles of the data that points need."""
    shape = sums.model.shape
    sizes = tile_sizes(shape, stored_chunks(source), sums.whole, cells * CELL / sums.cell_bytes)
    result = np.zeros(sums.shape)
    tiles = list(sums.needs().tiles(shape, sizes)) if result.size else []
    for _, (points, part, added) in scheduler.run(TileTask(boxes_of(source, kept), sums), tiles):
        where: Any = (points, *part)
        result[where] += added
    return result
