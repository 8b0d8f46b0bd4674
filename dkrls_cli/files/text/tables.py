"""Tables to grids: reading a table, and where each cell of the grid stands in it.

A table is split into columns (`columns`), which are found to be dimensions and values (`layouts`);
the texts of a dimension become an axis (`coordinates`), and every value gets its cell here.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain

import numpy as np

from dkrls_cli.errors import InputError
from dkrls_cli.files.text.columns import (
    Table,
    column_values,
    find_odd_label,
    grid_header,
    split_at_once,
    split_by_row,
)
from dkrls_cli.files.text.coordinates import mixed_label_notes, read_axis
from dkrls_cli.files.text.csv.cells import Integers, join_names
from dkrls_cli.files.text.csv.opening import (
    explain_reading,
    read_bytes,
    source_name,
    text_of,
    unzip_bytes,
)
from dkrls_cli.files.text.csv.reader import make_reader
from dkrls_cli.files.text.csv.splitting import TextColumn
from dkrls_cli.files.text.layouts import Layout, choose_layout, count_cells, sizes_text
from dkrls_cli.grid.axes import refuse_places
from dkrls_cli.grid.grid import Grid
from dkrls_cli.spelling import suggest

# Share of the cells of a grid that a table needs if its dimensions are named: fewer are scattered
# points, and waste memory.
LEAST_SHARE = 0.01
# Bytes from which on pandas saves more time than it takes to import, about 0.3 s.
LARGE = 4_000_000


def read_table(
    path: str,
    var: str | None = None,
    dims: Sequence[str] | None = None,
    *,
    likely: str | None = None,
) -> tuple[Grid, list[str]]:
    """Read a grid from a table in CSV, gzipped or not.

    Parameters
    ----------
    path
        The file, or ``-`` for standard input. Cells are separated by commas, semicolons or tabs,
        whichever the header has most of; blank lines and lines that begin with ``#`` are skipped.
    var
        The column of values of a long table, or a name for the values of a wide one.
    dims
        The dimensions, in the order wanted: columns of a long table; or the first column of a
        wide table and a name for what its header holds.
    likely
        A column to take for the values if `var` is not given and the table has it.

    Returns
    -------
    The grid, NaN where a row or a value is missing, and notes to the user, a sentence each.
    Coordinates that are all numbers or all dates are sorted, texts stay in order of appearance.

    Raises
    ------
    InputError
        If the table cannot be read as a grid. The message names the line, where there is one.
    """
    placed = place_cells(read_bytes(path), path, var, dims, likely=likely)
    return placed.grid, placed.notes


@dataclass(frozen=True, eq=False)
class PlacedTable:
    """A table read as a grid, and where each cell of the grid stands in the table.

    Attributes
    ----------
    grid
        The grid.
    notes
        How the table was understood, a sentence each.
    cells
        Flat index in the grid of every value of the table, (rows, values in a row).
    values
        Columns of the table that hold values: one of a long table, all but the first of a wide one.
    texts
        By column of a coordinate in a long table, the texts of the coordinates as they stand there,
        in the order of the axis. Empty for a wide table.
    """

    grid: Grid
    notes: list[str]
    cells: Integers
    values: list[int]
    texts: dict[int, list[str]]

    @property
    def is_wide(self) -> bool:
        """Whether the header of the table holds coordinates."""
        return not self.texts


def value_columns(
    raw: bytes, path: str, names: Sequence[str], dims: Sequence[str] | None
) -> tuple[list[str], list[str]]:
    """Return the columns of values of a long table, and those of its dimensions.

    Parameters
    ----------
    raw, path
        Bytes of the file, and the file for messages.
    names
        Columns of values, or ``all``: every column that is no dimension.
    dims
        The dimensions, or None: every column that is not named.

    Raises
    ------
    InputError
        If there is no such column, or no column is left for one of them.
    """
    source = source_name(path)
    with explain_reading(source), text_of(io.BytesIO(unzip_bytes(raw))) as stream:
        header = grid_header(make_reader(stream)[0], source)
    if list(names) == ["all"]:
        if dims is None:
            raise InputError(
                f"{source} has columns {join_names(header)}. Name the dimensions, so that the "
                "others are the variables.",
                setting="levels",
            )
        names = [name for name in header if name not in dims]
    missing = [name for name in (*names, *(dims or ())) if name not in header]
    if missing:
        raise InputError(
            f"{source} has no column '{missing[0]}'. It has {join_names(header)}."
            f"{suggest(missing[0], header)}"
        )
    rest = list(dims) if dims is not None else [name for name in header if name not in names]
    if not rest or not names:
        raise InputError(f"{source} has no column left for its {'values' if rest else 'axes'}.")
    return list(names), rest


def place_cells(
    raw: bytes,
    path: str,
    var: str | None = None,
    dims: Sequence[str] | None = None,
    *,
    likely: str | None = None,
) -> PlacedTable:
    """Read a grid from the bytes of a table, and return where each of its cells stands.

    Parameters
    ----------
    raw
        Bytes of the file, gzipped or not.
    path
        The file, for messages, or ``-`` for standard input.
    var, dims, likely
        As for :func:`read_table`.

    Raises
    ------
    InputError
        As for :func:`read_table`.
    """
    if len(raw) >= LARGE:
        table = split_at_once(raw, path)
        if table is not None:
            with suppress(InputError):  # to be raised again below, with the number of the line
                return _placed(table, var, dims, likely)
    return _placed(split_by_row(raw, path), var, dims, likely)


def _placed(
    table: Table, var: str | None, dims: Sequence[str] | None, likely: str | None
) -> PlacedTable:
    """Return the grid of a table that is split, and where its cells stand."""
    if var is None and likely in table.names:
        var = likely
    layout = choose_layout(table, var, dims)
    grid, cells, dated = _grid(layout)
    notes = layout.notes + dated + [note for axis in grid.axes for note in mixed_label_notes(axis)]
    if layout.value.infinite:
        notes.append(f"Values taken as missing: {layout.value.infinite} infinite.")
    cells = cells.reshape(-1, layout.width)
    if layout.header is not None:
        return PlacedTable(grid, notes, cells, list(range(1, len(table.columns))), {})
    places = [table.names.index(column.name) for column in layout.dims]
    coordinates = np.unravel_index(cells[:, 0], grid.values.shape)
    texts = {
        place: _first_texts(column, where, axis.size)
        for place, column, where, axis in zip(
            places, layout.dims, coordinates, grid.axes, strict=True
        )
    }
    return PlacedTable(grid, notes, cells, [table.names.index(layout.value.name)], texts)


def _first_texts(column: TextColumn, where: Integers, size: int) -> list[str]:
    """Return the first text that stands for each place on an axis."""
    _, rows = np.unique(where, return_index=True)
    assert rows.size == size  # every coordinate of a long table stands in one of its rows
    return [column.labels[code] for code in column.codes[rows]]


def _grid(layout: Layout) -> tuple[Grid, Integers, list[str]]:
    """Return the grid of a layout, NaN where it has no value, its cells, and notes on dates."""
    if count_cells(layout.dims) * LEAST_SHARE > layout.rows:
        raise InputError(f"{sizes_text(layout, layout.dims)}: scattered points. Expected a grid.")
    values = column_values(layout.value)
    if values is None:
        odd = find_odd_label(layout.value)
        raise InputError(
            f"{layout.where(layout.value, odd)} has '{layout.value.labels[odd]}' for a value. "
            "Expected a number with a decimal point, or NA; or choose another column of values.",
            setting="var",
        )
    found = [read_axis(column, layout.where) for column in layout.dims]
    axes, places, dated = zip(*found, strict=True)
    for axis in axes:
        refuse_places(axis)
    shape = tuple(axis.size for axis in axes)
    cells = np.ravel_multi_index(places, shape)
    _refuse_repeats(layout, cells)
    filled = np.full(math.prod(shape), np.nan)
    filled[cells] = values
    grid = Grid(values=filled.reshape(shape), axes=axes, name=layout.value.name)
    return grid, cells, list(chain(*dated))


def _refuse_repeats(layout: Layout, cells: Integers) -> None:
    """Raise InputError if two rows are for the same cell of the grid."""
    if np.bincount(cells).max() == 1:
        return
    order = np.argsort(cells, kind="stable")
    repeats = np.flatnonzero(np.diff(cells[order]) == 0)
    first = repeats[np.argmin(order[repeats + 1])]
    one, other = order[first], order[first + 1]
    where = ", ".join(f"{c.name}={c.labels[c.codes[one]]}" for c in layout.dims)
    raise InputError(
        f"{layout.source} has two values for {where}, on lines {layout.line(one)} and "
        f"{layout.line(other)}. Expected one: take one out, or name all dimensions.",
        setting="levels",
    )
