"""Which columns of a table are dimensions, and which hold the values.

A table is long (a column per dimension and one of values) or wide (the first column one dimension,
the header the other). What the user names decides; else the layout is guessed, and a table that is
no grid, or of which that is not clear, is refused with what it looks like.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dkrls_cli.errors import InputError
from dkrls_cli.files.text.columns import NAMELESS, Table, column_values, find_odd_label
from dkrls_cli.files.text.coordinates import is_coordinate
from dkrls_cli.files.text.csv.cells import Texts, is_missing, join_names
from dkrls_cli.files.text.csv.splitting import TextColumn
from dkrls_cli.files.text.shapes import find_values, is_series, wide_doubt
from dkrls_cli.grid.cf import role_of

# Share of the cells of a grid that a table needs to be taken for a long one without being told.
PLAUSIBLE_SHARE = 0.05
# Share of the cells of a grid below which rows that hardly ever share a coordinate are scattered.
_SCATTERED_SHARE = 0.25


@dataclass(frozen=True, eq=False)
class Layout:
    """How a table is read as a grid: coordinates and value of each cell that it has.

    Attributes
    ----------
    table
        The table.
    dims, value
        Columns of the coordinates and of the values, with as many rows as there are cells.
    width
        Cells in a row of the table: 1 in a long one, more in a wide one.
    notes
        How the table was understood, for the user.
    header
        That of `dims` whose texts stand in the header of a wide table; None in a long one.
    """

    table: Table
    dims: list[TextColumn]
    value: TextColumn
    width: int
    notes: list[str]
    header: TextColumn | None = None

    @property
    def source(self) -> str:
        """Name of the table in messages."""
        return self.table.source

    @property
    def rows(self) -> int:
        """Number of cells that the table has."""
        return self.table.rows * self.width

    def line(self, cell: int) -> int:
        """Return the line on which a cell stands."""
        return self.table.line(cell // self.width)

    def where(self, column: TextColumn, label: int) -> str:
        """Return where a text of a column stands first."""
        if column is self.header:
            return f"The header of {self.source}"
        return f"Line {self.line(int(np.argmax(column.codes == label)))} of {self.source}"


def choose_layout(table: Table, var: str | None, dims: Sequence[str] | None) -> Layout:
    r"""Choose which columns are dimensions and which holds the values.

    Parameters
    ----------
    table
        The table.
    var, dims
        The values and the dimensions, as for :func:`dkrls_cli.files.text.tables.read_table`.

    Raises
    ------
    InputError
        If there is no column of a name, or the table is no grid or not clearly one.

    Examples
    --------
    >>> from dkrls_cli.files.text.columns import split_by_row
    >>> table = split_by_row(b"year,Jan,Feb\n1950,1,2\n1951,3,4\n", "sst.csv")
    >>> layout = choose_layout(table, None, ["year", "month"])
    >>> layout.value.name, [column.name for column in layout.dims], layout.width
    ('sst', ['year', 'month'], 2)
    """
    if dims is not None:
        return _layout_of_dims(table, var, list(dims))
    if var is not None and var in table.names:
        return _layout_of_value(table, var)
    return _guess_layout(table, var)


def _layout_of_dims(table: Table, var: str | None, dims: list[str]) -> Layout:
    """Return the layout of a table whose dimensions are known."""
    dims = [_named(table, dim, dims) for dim in dims]
    new = [dim for dim in dims if dim not in table.names]
    if len(new) == 1 and sorted(dims) == sorted([table.names[0], *new]) and var not in table.names:
        trouble = _wide_trouble(table)
        if trouble:
            raise table.lack(new[0], f", and is no wide table, as {trouble}")
        return _wide(table, new[0], var, swapped=dims[0] in new)
    columns = [table.column(dim) for dim in dims]
    rest = [name for name in table.names if name not in dims]
    if var is None and len(rest) != 1:
        raise InputError(
            f"Besides {join_names(dims)}, {table.source} has {join_names(rest) or 'no column'}. "
            "Expected one column of values: choose it by its name.",
            setting="var",
        )
    value = table.column(var or rest[0])
    if len({*dims, value.name}) <= len(dims):
        raise InputError(
            f"The dimensions {join_names(dims)} and the values '{value.name}' name one column "
            "twice. Name each once."
        )
    return _long(table, columns, value)


def _named(table: Table, dim: str, dims: Sequence[str]) -> str:
    """Return the column that a dimension means: that of its name, else the only one of its role."""
    role = role_of(dim, {})
    if dim in table.names or role is None:
        return dim
    alike = [name for name in table.names if name not in dims and role_of(name, {}) == role]
    return alike[0] if len(alike) == 1 else dim


def _layout_of_value(table: Table, var: str) -> Layout:
    """Return the layout of a table whose column of values is known: all others are dimensions."""
    dims = _without_row_numbers([column for column in table.columns if column.name != var])
    if not _is_dense(dims):
        raise InputError(
            f"{sizes_text(table, dims)}: too few for all of them to be dimensions of '{var}'. "
            "Name the dimensions.",
            setting="levels",
        )
    if _are_scattered(dims):
        raise _scattered_error(table, dims, var)
    return _long(table, dims, table.column(var))


def _guess_layout(table: Table, var: str | None) -> Layout:
    """Return the likely layout of a table, or raise InputError if it is no grid or not clear.

    It is wide if its header holds coordinates or a series of names, else long if that makes a
    grid, else wide if nothing speaks against that.
    """
    value = table.columns[find_values(table.names)]
    dims = [column for column in table.columns if column is not value]
    if all(map(is_coordinate, table.names[1:])):
        return _wide(table, "column", var)
    trouble = _wide_trouble(table)
    if var and trouble:
        raise table.lack(var, f", and is no wide table, as {trouble}")
    if trouble is None and is_series(table.names[1:]):
        return _wide(table, "column", var)
    doubt = _wide_doubt(table) if trouble is None else None
    may_be_wide = trouble is None and doubt is None
    for columns in (_without_row_numbers(dims), dims):
        alone = len(columns) < len(dims) == 2
        wide = may_be_wide and (var or _looks_wide(columns) or alone)
        points = _are_scattered(columns) or (doubt is not None and _looks_wide(columns))
        if _is_dense(columns) and not wide and not points:
            return _long(table, columns, value)
    if may_be_wide:
        return _wide(table, "column", var)
    if doubt is not None:
        raise _doubt_error(table, var, *doubt)
    if _are_scattered(dims):
        raise _scattered_error(table, dims, value.name, f"it is no wide table, as {trouble}")
    raise InputError(
        f"{sizes_text(table, dims)}: too few for a long table, and it is no wide one, as "
        f"{trouble}. Name the column of values and the dimensions.",
        setting="var levels",
    )


def _wide_doubt(table: Table) -> tuple[str, bool] | None:
    """Return why a table should not be read as a wide one, though it could be: `wide_doubt`."""
    first, *others = table.columns
    values = [column for column in map(column_values, others) if column is not None]
    numbers = column_values(first)
    has_numbers = numbers is not None and not np.isnan(numbers).any()
    return wide_doubt(numbers if has_numbers else None, [c.name for c in others], values)


def _doubt_error(table: Table, var: str | None, reason: str, scattered: bool) -> InputError:
    """Return the error for a table that could be a wide one but does not look like it."""
    *dims, value = _without_row_numbers(table.columns)
    if var is not None:
        return table.lack(var, f", and does not look like a wide table: {reason}")
    if scattered:
        return _scattered_error(table, dims, value.name, reason)
    return InputError(
        f"{table.source} looks like columns of different quantities by '{table.names[0]}', not "
        f"like a grid: {reason}. Choose one column of values and name its dimensions; of a wide "
        "table of one quantity, name the first column and what its header holds.",
        setting="var levels",
    )


def _scattered_error(
    table: Table, dims: Sequence[TextColumn], value: str, reason: str = ""
) -> InputError:
    """Return the error for a table of scattered points."""
    names = " and ".join([join_names(c.name for c in dims[:-1]), dims[-1].name])
    counts = ", ".join(f"{len(c.labels)} different {c.name}" for c in dims)
    return InputError(
        f"{table.source} looks like {table.rows} scattered points in {names} with values {value}, "
        f"not a grid: its rows have {counts}{', and ' * bool(reason)}{reason}. Put the points on a "
        "grid first, or name the column of values and the dimensions; of a wide table, name the "
        "first column and what its header holds.",
        setting="var levels",
    )


def _are_scattered(dims: Sequence[TextColumn]) -> bool:
    """Return whether rows are points in numbers or dates that hardly ever share a coordinate."""
    rows = dims[0].size
    sparse = len(dims) > 1 and rows < _SCATTERED_SHARE * count_cells(dims)
    return sparse and all(2 * len(c.labels) > rows and _has_numbers(c) for c in dims)


def _has_numbers(column: TextColumn) -> bool:
    """Return whether the texts of a column are numbers or dates, by those that are not missing."""
    return all(is_coordinate(text) for text in column.labels if not is_missing(text))


def _is_dense(dims: Sequence[TextColumn]) -> bool:
    """Return whether there are enough rows for the grid of these dimensions."""
    return dims[0].size >= PLAUSIBLE_SHARE * count_cells(dims)


def _looks_wide(dims: Sequence[TextColumn]) -> bool:
    """Return whether every row has a new first cell, and the others hardly repeat."""
    first, *others = dims
    rows = first.size
    return bool(others) and len(first.labels) == rows and 2 * count_cells(others) > rows


def count_cells(dims: Sequence[TextColumn]) -> int:
    """Return the number of cells of the grid of these dimensions."""
    return math.prod(len(column.labels) for column in dims)


def _without_row_numbers(columns: list[TextColumn]) -> list[TextColumn]:
    """Return columns without a nameless first one that only counts the rows."""
    (first, *others), rows = columns, columns[0].size
    counts = ([str(i + start) for i in range(rows)] for start in (0, 1))
    counted = first.name in NAMELESS and any(first.labels == count for count in counts)
    return others if counted and others and 2 * count_cells(others) >= rows else columns


def _wide_trouble(table: Table) -> str | None:
    """Return why a table cannot be wide, or None."""
    first, *others = table.columns
    if len(first.labels) < first.size:
        again = first.labels[int(np.argmax(np.bincount(first.codes) > 1))]
        return f"'{again}' stands in its first column more than once"
    for column in others:
        if column_values(column) is None:
            odd = find_odd_label(column)
            line = table.line(int(np.argmax(column.codes == odd)))
            return f"column '{column.name}' holds '{column.labels[odd]}' on line {line}"
    return None


def _long(table: Table, dims: Sequence[TextColumn], value: TextColumn) -> Layout:
    """Return the layout of a long table with these columns."""
    left_out = [c.name for c in table.columns if c is not value and c not in dims]
    notes = [f"Read as a long table: '{value.name}' by {join_names(c.name for c in dims)}."]
    if left_out:
        notes.append(f"Columns left out: {join_names(left_out)}.")
    return Layout(table, list(dims), value, 1, notes)


def _wide(table: Table, across: str, var: str | None, *, swapped: bool = False) -> Layout:
    """Return the layout of a wide table, as the long one that it stands for, row by row."""
    first, *others = table.columns
    width = len(others)
    header = [column.name for column in others], np.tile(np.arange(width), table.rows)
    dims = [
        TextColumn(first.name, (first.labels, np.repeat(first.codes, width))),
        TextColumn(across, header),
    ]
    value = _join_columns(var or _stem(table.path), others)
    note = f"Read as a wide table: rows '{dims[0].name}', header '{across}'."
    return Layout(table, dims[::-1] if swapped else dims, value, width, [note], dims[1])


def _join_columns(name: str, columns: Sequence[TextColumn]) -> TextColumn:
    """Return the cells of several columns, row by row, as one column."""

    def texts() -> Texts:
        starts = np.cumsum([0, *(len(column.labels) for column in columns[:-1])])
        codes = np.stack([column.codes for column in columns], axis=1) + starts
        return [label for column in columns for label in column.labels], codes.ravel()

    numbers = [column.numbers for column in columns if column.numbers is not None]
    known = len(numbers) == len(columns)
    together = np.stack(numbers, axis=1).ravel() if known else None
    return TextColumn(name, texts, together, sum(column.infinite for column in columns))


def _stem(path: str) -> str:
    """Return the name of a file without its endings."""
    if path == "-":
        return "values"
    return re.sub(r"\.(csv|tsv|txt|parquet|pq)?(\.gz)?$", "", Path(path).name)


def sizes_text(table: Table | Layout, dims: Sequence[TextColumn]) -> str:
    """Return how many rows there are for how many cells, as the beginning of a message."""
    sizes = " x ".join(f"{column.name} {len(column.labels)}" for column in dims[:4])
    more = " x ..." if len(dims) > 4 else ""
    return f"{table.source} has {table.rows} rows for the cells of {sizes}{more}"
