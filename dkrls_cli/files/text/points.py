"""Scattered points from a table, in blocks as they come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.errors import DkrlsError, InputError
from dkrls_cli.files.text.csv import (
    code_texts,
    find_bad_text,
    join_names,
    make_reader,
    open_text,
    read_batches,
    read_header,
    source_name,
    text_index,
)
from dkrls_cli.grid.axes import Axis

# Rows in a block: enough to answer them together, few enough for memory and for a slow pipe.
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
        Coordinates of the rows on every axis as numbers, in the order of the axes.
    """

    header: list[str]
    cells: list[list[str]]
    coordinates: list[Array]


def point_blocks(path: str, axes: Sequence[Axis], rows: int = BLOCK_ROWS) -> Iterator[PointBlock]:
    """Yield points from a CSV table with a column for every axis, in blocks.

    A block is yielded as soon as it is full, so that a pipe is answered while it runs. A table
    without rows is one empty block.

    Parameters
    ----------
    path
        The file, or ``-`` for standard input.
    axes
        Axes on which the points lie.
    rows
        Rows in a block.

    Raises
    ------
    InputError
        If a column is missing, or a row cannot be read; the message names its line.
    """
    source = source_name(path)
    with open_text(path) as stream:
        reader, _ = make_reader(stream)
        header = read_header(reader, source)
        for axis in axes:
            if axis.name not in header:
                raise InputError(
                    f"{source} has no column '{axis.name}', a coordinate of every point. "
                    f"It has {join_names(header)}."
                )
        columns = [header.index(axis.name) for axis in axes]
        empty = True
        for lines, cells in read_batches(reader, len(header), rows, source):
            coordinates = [
                _encode(axis, [row[column].strip() for row in cells], lines, source)
                for axis, column in zip(axes, columns, strict=True)
            ]
            yield PointBlock(header, cells, coordinates)
            empty = False
        if empty:
            yield PointBlock(header, [], [np.empty(0) for _ in axes])


def _encode(axis: Axis, texts: Sequence[str], lines: Sequence[int], source: str) -> Array:
    """Return coordinates as numbers, each distinct text read once, or raise InputError."""
    index = text_index()
    codes = code_texts(index, texts)
    try:
        numbers = axis.encode(list(index))
    except DkrlsError:
        numbers = np.array([np.nan])
    if not np.isfinite(numbers).all():
        bad, reason = find_bad_text(axis.encode, index)
        raise InputError(f"Line {lines[texts.index(bad)]} of {source}: {reason}")
    return numbers[codes]
