"""Scattered points and stations from a table, in blocks as they come."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.errors import DkrlsError, InputError, SettingError
from dkrls_cli.files.text.csv.cells import code_texts, find_bad_text, join_names, text_index
from dkrls_cli.files.text.csv.opening import open_text, source_name
from dkrls_cli.files.text.csv.reader import make_reader, read_batches, read_header
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.cf import Role, is_time, role_of

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
    axes
        Coordinates of the rows, on every axis on which the points lie.
    columns
        Column of each of these axes; None for an axis of one coordinate that has no column.
    """

    header: list[str]
    cells: list[list[str]]
    axes: list[Axis]
    columns: list[int | None] = field(default_factory=list)

    @property
    def coordinates(self) -> list[Array]:
        """Coordinates of the rows as numbers, in the order of the axes."""
        return [axis.numbers for axis in self.axes]

    def take(self, rows: slice) -> PointBlock:
        """Return some rows of the block."""
        axes = [axis.take(rows) for axis in self.axes]
        return PointBlock(self.header, self.cells[rows], axes, self.columns)


def point_blocks(
    path: str, axes: Sequence[Axis], rows: int = BLOCK_ROWS, spread: Collection[str] = ()
) -> Iterator[PointBlock]:
    """Yield points from a CSV table with a column for every axis, in blocks.

    A block is yielded as soon as it is full, so that a pipe is answered while it runs. A table
    without rows is one empty block. An axis of one coordinate needs no column.

    Parameters
    ----------
    path
        The file, or ``-`` for standard input.
    axes
        Axes of the model.
    rows
        Rows in a block.
    spread
        Names of axes whose coordinates are given for all points: they are no columns.

    Raises
    ------
    InputError
        If a column is missing or ambiguous, or a row cannot be read; the message names its line.
    SettingError
        If there is a column for an axis in `spread`.
    """
    source = source_name(path)
    with open_text(path) as stream:
        reader, _ = make_reader(stream)
        header = read_header(reader, source)
        found = _check_columns(header, axes, spread, source)
        own = [axis for axis in axes if axis.name not in spread]
        columns = [found.get(axis.name) for axis in own]
        empty = True
        for lines, cells in read_batches(reader, len(header), rows, source):
            here = [
                axis.take(np.zeros(len(cells), np.intp))
                if column is None
                else _encode(axis, [row[column].strip() for row in cells], lines, source)
                for axis, column in zip(own, columns, strict=True)
            ]
            yield PointBlock(header, cells, here, columns)
            empty = False
        if empty:
            none = [axis.take(np.empty(0, np.intp)) for axis in own]
            yield PointBlock(header, [], none, columns)


def join_blocks(blocks: Sequence[PointBlock]) -> PointBlock:
    """Return several blocks of one table as one."""
    first = blocks[0]
    axes = [
        replace(
            axis,
            numbers=np.concatenate([block.axes[i].numbers for block in blocks]),
            written=np.concatenate([block.axes[i].plain for block in blocks]),
        )
        for i, axis in enumerate(first.axes)
    ]
    cells = [row for block in blocks for row in block.cells]
    return PointBlock(first.header, cells, axes, first.columns)


def find_columns(names: Sequence[str], axes: Sequence[Axis], source: str) -> dict[str, int]:
    """Return which column belongs to which axis, by the name of the axis.

    A column belongs to the axis of its name, or else to the one of its role: `latitude` belongs to
    an axis `lat`, or to an axis `y` whose attributes say that it is a latitude.

    Parameters
    ----------
    names
        Names of the columns.
    axes
        Axes of the model.
    source
        Name of the table, for messages.

    Raises
    ------
    InputError
        If several columns may be meant, or a column may be meant for several axes.

    Examples
    --------
    >>> from dkrls_cli.grid.axes import axis_of
    >>> axes = [axis_of("lat", [1.0, 2.0]), axis_of("x", [1.0, 2.0])]
    >>> find_columns(["id", "x", "Latitude"], axes, "points.csv")
    {'x': 1, 'lat': 2}
    """
    found = {axis.name: names.index(axis.name) for axis in axes if axis.name in names}
    nameless = [axis for axis in axes if axis.name not in found]
    free = [place for place, name in enumerate(names) if name not in found]
    for axis in nameless:
        role = role_of_axis(axis)
        same = [place for place in free if role is not None and role_of(names[place], {}) == role]
        rivals = [other.name for other in nameless if role_of_axis(other) == role]
        if same and len(same) + len(rivals) > 2:
            meant = " or ".join(f"'{names[place]}'" for place in same)
            raise InputError(
                f"{source}: {meant} may be meant for {join_names(rivals)}. Name the column that "
                "is meant as its dimension."
            )
        if same:
            found[axis.name] = same[0]
    return found


def role_of_axis(axis: Axis) -> Role | None:
    """Return the role of an axis by its dates, attributes or name, or None."""
    return "time" if is_time(axis) else role_of(axis.name, axis.attrs)


def _check_columns(
    header: Sequence[str], axes: Sequence[Axis], spread: Collection[str], source: str
) -> dict[str, int]:
    """Return the column of each axis, or raise an error if one is missing or given twice."""
    found = find_columns(header, axes, source)
    for axis in axes:
        if axis.name in spread and axis.name in found:
            raise SettingError(
                f"{source} has a column '{header[found[axis.name]]}', and '{axis.name}' is given "
                "for all points as well. Leave one of them out.",
                setting="at",
            )
        if axis.name not in spread and axis.name not in found and axis.size > 1:
            raise InputError(
                f"{source} has no column '{axis.name}', a coordinate of every point. "
                f"It has {join_names(header)}. Add it, or give its coordinates for all points.",
                setting="at",
            )
    return found


def _encode(axis: Axis, texts: Sequence[str], lines: Sequence[int], source: str) -> Axis:
    """Return an axis at coordinates, each distinct text read once, or raise InputError."""
    index = text_index()
    codes = code_texts(index, texts)
    try:
        distinct = axis.at(list(index))
        is_bad = not np.isfinite(distinct.numbers).all()
    except DkrlsError:
        is_bad = True
    if is_bad:
        bad, reason = find_bad_text(axis.encode, index)
        raise InputError(f"Line {lines[texts.index(bad)]} of {source}: {reason}")
    return distinct.take(codes)
