"""Scattered points from a table, in blocks as they come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.errors import DkrlsError, InputError
from dkrls_cli.files.csv import (
    batches,
    called,
    coded,
    first_trouble,
    header_of,
    listed,
    opened,
    reader_of,
    text_index,
)
from dkrls_cli.grid.axes import Axis

BLOCK_ROWS = 65536


@dataclass(frozen=True, eq=False)
class PointBlock:
    """Some rows of a table of points.

    Attributes
    ----------
    header
        Names of the columns.
    cells
        The rows as they were read.
    coordinates
        Numbers of the rows on every axis, in the order of the axes.
    """

    header: list[str]
    cells: list[list[str]]
    coordinates: list[Array]


def point_blocks(path: str, axes: Sequence[Axis], rows: int = BLOCK_ROWS) -> Iterator[PointBlock]:
    """Points from a CSV file (``-``: standard input) with a column for every axis, in blocks.

    A block is handed on as soon as it is full, so that a pipe is answered while it runs. A table
    without rows is one empty block.
    """
    source = called(path)
    with opened(path) as stream:
        reader, _ = reader_of(stream)
        header = header_of(reader, source)
        for axis in axes:
            if axis.name not in header:
                raise InputError(
                    f"{source} has no column '{axis.name}', a coordinate of every point. "
                    f"It has {listed(header)}."
                )
        columns = [header.index(axis.name) for axis in axes]
        empty = True
        for lines, cells in batches(reader, len(header), rows, source):
            coordinates = [
                _encoded(axis, [row[column].strip() for row in cells], lines, source)
                for axis, column in zip(axes, columns, strict=True)
            ]
            yield PointBlock(header, cells, coordinates)
            empty = False
        if empty:
            yield PointBlock(header, [], [np.empty(0) for _ in axes])


def _encoded(axis: Axis, texts: Sequence[str], lines: Sequence[int], source: str) -> Array:
    """Coordinates as numbers, each distinct text read once."""
    index = text_index()
    codes = coded(index, texts)
    try:
        numbers = axis.encode(list(index))
    except DkrlsError:
        numbers = np.array([np.nan])
    if not np.isfinite(numbers).all():
        bad, reason = first_trouble(axis.encode, index)
        raise InputError(f"Line {lines[texts.index(bad)]} of {source}: {reason}")
    return numbers[codes]
