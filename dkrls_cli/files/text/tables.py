"""Tables to grids.

A table is long (a column per dimension and one of values) or wide (the first column one dimension,
the header the other). A column is kept as its distinct texts and which of them stands in each row,
so that only distinct texts are ever parsed.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.text.csv import (
    BATCH_ROWS,
    Integers,
    TextColumn,
    Texts,
    code_texts,
    explain_reading,
    find_bad_text,
    is_missing,
    join_names,
    make_reader,
    parse_numbers,
    parse_values,
    read_batches,
    read_bytes,
    read_header,
    source_name,
    split_columns,
    text_index,
    text_of,
    unzip_bytes,
)
from dkrls_cli.files.text.dates import looks_like_date, read_dates
from dkrls_cli.files.text.shapes import is_series, wide_doubt
from dkrls_cli.grid.axes import Axis, axis_of, text_axis
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.grid.cf import role_of
from dkrls_cli.grid.grid import Grid
from dkrls_cli.spelling import suggest

# Names of a first column without one; the second if the first is taken.
NAMELESS = ("row", "row_number")
# Share of the cells of a grid that a table needs to be taken for a long one without being told.
PLAUSIBLE_SHARE = 0.05
# Share that it needs if the dimensions are named: fewer are scattered points, and waste memory.
LEAST_SHARE = 0.01
# Share of the cells of a grid below which rows that hardly ever share a coordinate are scattered.
_SCATTERED_SHARE = 0.25
# Bytes from which on pandas saves more time than it takes to import, about 0.3 s.
LARGE = 4_000_000

_DAYS = TimeScale("days since 1970-01-01", "proleptic_gregorian")
_DATE = re.compile(r"\d{4}-(0?[1-9]|1[0-2])(-\d{1,2}([T\s].*)?)?$")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+$")


@dataclass(frozen=True, eq=False)
class _Table:
    """A whole file of text. Lines of the rows are None if pandas has split it."""

    path: str
    columns: list[TextColumn]
    rows: int
    lines: Integers | None

    @property
    def source(self) -> str:
        return source_name(self.path)

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def line(self, row: int) -> int:
        """Return the line of a row; 0 if it is not known."""
        return 0 if self.lines is None else int(self.lines[row])

    def column(self, name: str) -> TextColumn:
        if name not in self.names:
            raise self.lack(name)
        return self.columns[self.names.index(name)]

    def lack(self, name: str, also: str = "") -> InputError:
        names = join_names(self.names)
        hint = suggest(name, self.names)
        return InputError(f"{self.source} has no column '{name}'{also}. It has {names}.{hint}")


@dataclass(frozen=True, eq=False)
class _Layout:
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

    table: _Table
    dims: list[TextColumn]
    value: TextColumn
    width: int
    notes: list[str]
    header: TextColumn | None = None

    @property
    def source(self) -> str:
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
        header = _grid_header(make_reader(stream)[0], source)
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
        table = _split_at_once(raw, path)
        if table is not None:
            with suppress(InputError):  # to be raised again below, with the number of the line
                return _placed(table, var, dims, likely)
    return _placed(_split_by_row(raw, path), var, dims, likely)


def _placed(
    table: _Table, var: str | None, dims: Sequence[str] | None, likely: str | None
) -> PlacedTable:
    if var is None and likely in table.names:
        var = likely
    layout = _layout(table, var, dims)
    grid, cells, dated = _grid(layout)
    notes = layout.notes + dated + [note for axis in grid.axes for note in _mixed_labels(axis)]
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


def _layout(table: _Table, var: str | None, dims: Sequence[str] | None) -> _Layout:
    """Choose which columns are dimensions and which holds the values."""
    if dims is not None:
        return _layout_of_dims(table, var, list(dims))
    if var is not None and var in table.names:
        return _layout_of_value(table, var)
    return _guess_layout(table, var)


def _layout_of_dims(table: _Table, var: str | None, dims: list[str]) -> _Layout:
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


def _named(table: _Table, dim: str, dims: Sequence[str]) -> str:
    """Return the column that a dimension means: that of its name, else the only one of its role."""
    role = role_of(dim, {})
    if dim in table.names or role is None:
        return dim
    alike = [name for name in table.names if name not in dims and role_of(name, {}) == role]
    return alike[0] if len(alike) == 1 else dim


def _layout_of_value(table: _Table, var: str) -> _Layout:
    """Return the layout of a table whose column of values is known: all others are dimensions."""
    dims = _without_row_numbers([column for column in table.columns if column.name != var])
    if not _is_dense(dims):
        raise InputError(
            f"{_sizes(table, dims)}: too few for all of them to be dimensions of '{var}'. Name the "
            "dimensions.",
            setting="levels",
        )
    if _are_scattered(dims):
        raise _scattered_error(table, dims, var)
    return _long(table, dims, table.column(var))


def _guess_layout(table: _Table, var: str | None) -> _Layout:
    """Return the likely layout of a table, or raise InputError if it is no grid or not clear.

    It is wide if its header holds coordinates or a series of names, else long if that makes a
    grid, else wide if nothing speaks against that.
    """
    *dims, value = table.columns
    if all(map(_is_coordinate, table.names[1:])):
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
        f"{_sizes(table, dims)}: too few for a long table, and it is no wide one, as {trouble}. "
        "Name the column of values and the dimensions.",
        setting="var levels",
    )


def _wide_doubt(table: _Table) -> tuple[str, bool] | None:
    """Return why a table should not be read as a wide one, though it could be: `wide_doubt`."""
    first, *others = table.columns
    values = [column for column in map(_values, others) if column is not None]
    numbers = _values(first)
    has_numbers = numbers is not None and not np.isnan(numbers).any()
    return wide_doubt(numbers if has_numbers else None, [c.name for c in others], values)


def _doubt_error(table: _Table, var: str | None, reason: str, scattered: bool) -> InputError:
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
    table: _Table, dims: Sequence[TextColumn], value: str, reason: str = ""
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
    sparse = len(dims) > 1 and rows < _SCATTERED_SHARE * _cells(dims)
    return sparse and all(2 * len(c.labels) > rows and _has_numbers(c) for c in dims)


def _has_numbers(column: TextColumn) -> bool:
    """Return whether the texts of a column are numbers or dates, by those that are not missing."""
    return all(_is_coordinate(text) for text in column.labels if not is_missing(text))


def _is_dense(dims: Sequence[TextColumn]) -> bool:
    """Return whether there are enough rows for the grid of these dimensions."""
    return dims[0].size >= PLAUSIBLE_SHARE * _cells(dims)


def _looks_wide(dims: Sequence[TextColumn]) -> bool:
    """Return whether every row has a new first cell, and the others hardly repeat."""
    first, *others = dims
    rows = first.size
    return bool(others) and len(first.labels) == rows and 2 * _cells(others) > rows


def _cells(dims: Sequence[TextColumn]) -> int:
    """Return the number of cells of the grid of these dimensions."""
    return math.prod(len(column.labels) for column in dims)


def _without_row_numbers(columns: list[TextColumn]) -> list[TextColumn]:
    """Return columns without a nameless first one that only counts the rows."""
    (first, *others), rows = columns, columns[0].size
    counts = ([str(i + start) for i in range(rows)] for start in (0, 1))
    counted = first.name in NAMELESS and any(first.labels == count for count in counts)
    return others if counted and others and 2 * _cells(others) >= rows else columns


def _wide_trouble(table: _Table) -> str | None:
    """Return why a table cannot be wide, or None."""
    first, *others = table.columns
    if len(first.labels) < first.size:
        again = first.labels[int(np.argmax(np.bincount(first.codes) > 1))]
        return f"'{again}' stands in its first column more than once"
    for column in others:
        if _values(column) is None:
            odd = _odd(column)
            line = table.line(int(np.argmax(column.codes == odd)))
            return f"column '{column.name}' holds '{column.labels[odd]}' on line {line}"
    return None


def _long(table: _Table, dims: Sequence[TextColumn], value: TextColumn) -> _Layout:
    """Return the layout of a long table with these columns."""
    left_out = [c.name for c in table.columns if c is not value and c not in dims]
    notes = [f"Read as a long table: '{value.name}' by {join_names(c.name for c in dims)}."]
    if left_out:
        notes.append(f"Columns left out: {join_names(left_out)}.")
    return _Layout(table, list(dims), value, 1, notes)


def _wide(table: _Table, across: str, var: str | None, *, swapped: bool = False) -> _Layout:
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
    return _Layout(table, dims[::-1] if swapped else dims, value, width, [note], dims[1])


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


def _grid(layout: _Layout) -> tuple[Grid, Integers, list[str]]:
    """Return the grid of a layout, NaN where it has no value, its cells, and notes on dates."""
    if _cells(layout.dims) * LEAST_SHARE > layout.rows:
        raise InputError(f"{_sizes(layout, layout.dims)}: scattered points. Expected a grid.")
    values = _values(layout.value)
    if values is None:
        odd = _odd(layout.value)
        raise InputError(
            f"{layout.where(layout.value, odd)} has '{layout.value.labels[odd]}' for a value. "
            "Expected a number with a decimal point, or NA; or choose another column of values.",
            setting="var",
        )
    dated: list[str] = []
    axes, places = zip(*(_axis(layout, column, dated) for column in layout.dims), strict=True)
    shape = tuple(axis.size for axis in axes)
    cells = np.ravel_multi_index(places, shape)
    _refuse_repeats(layout, cells)
    filled = np.full(math.prod(shape), np.nan)
    filled[cells] = values
    grid = Grid(values=filled.reshape(shape), axes=axes, name=layout.value.name)
    return grid, cells, dated


def _refuse_repeats(layout: _Layout, cells: Integers) -> None:
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


def _values(column: TextColumn) -> Array | None:
    """Return the numbers of a column, NaN where missing; None if a text is neither."""
    if column.numbers is not None:
        return column.numbers
    numbers = parse_values(column.labels)
    return None if numbers is None else numbers[column.codes]


def _odd(column: TextColumn) -> int:
    """Return the position of the first label that is neither a number nor missing."""
    return next(
        i
        for i, text in enumerate(column.labels)
        if not is_missing(text) and parse_numbers([text]) is None
    )


def _axis(layout: _Layout, column: TextColumn, dated: list[str]) -> tuple[Axis, Integers]:
    """Return the axis of a column's texts, and the place on it of every row.

    A note on dates that are not written as ISO 8601 is added to `dated`.
    """
    name, labels = column.name, column.labels
    present = [text for text in labels if not is_missing(text)]
    found = (
        _other_time_axis(layout, column, present, dated)
        or _number_axis(name, present)
        or _time_axis(layout, column, present, present)
    )
    if "" in labels or (found and len(present) < len(labels)):
        missing = next(i for i, text in enumerate(labels) if is_missing(text))
        raise InputError(
            f"{layout.where(column, missing)} has '{labels[missing]}' for a coordinate of "
            f"'{name}'. Expected one in every row."
        )
    if found is None:
        index = text_index()
        places = code_texts(index, labels)
        return text_axis(name, list(index)), places[column.codes]
    axis, places = found
    return axis, places[column.codes]


def _number_axis(name: str, texts: Sequence[str]) -> tuple[Axis, Integers] | None:
    """Return an axis of numbers and the place of each text; None if the texts are no numbers."""
    numbers = parse_numbers(texts)
    if numbers is None or not numbers.size or not np.isfinite(numbers).all():
        return None
    distinct, places = np.unique(numbers, return_inverse=True)
    whole = all(text.lstrip("+-").isdigit() for text in texts) and np.abs(distinct).max() < 2**53
    return axis_of(name, distinct.astype(np.int64) if whole else distinct), places


def _time_axis(
    layout: _Layout, column: TextColumn, texts: Sequence[str], dates: Sequence[str]
) -> tuple[Axis, Integers] | None:
    """Return an axis of dates and the place of each text; None if the dates are not ISO 8601.

    Dates are the texts of the column, or what these mean.
    """
    if not texts or not all(map(_DATE.match, dates)):
        return None
    try:
        distinct, places = np.unique(_DAYS.numbers(dates), return_inverse=True)
    except SettingError:
        bad, reason = find_bad_text(_DAYS.numbers, dates)
        text = texts[list(dates).index(bad)]
        where = layout.where(column, column.labels.index(text))
        raise InputError(f"{where}, column '{column.name}': {reason}") from None
    return Axis(name=column.name, numbers=distinct, time=_DAYS), places


def _other_time_axis(
    layout: _Layout, column: TextColumn, texts: Sequence[str], dated: list[str]
) -> tuple[Axis, Integers] | None:
    """Return an axis of dates in another form than ISO 8601, or None if the texts are no such.

    Raises
    ------
    InputError
        If a date can be read in two ways.
    """
    reading = read_dates(column.name, texts)
    if reading is None:
        return None
    if reading.doubt is not None:
        text, why = reading.doubt
        raise InputError(
            f"{layout.where(column, column.labels.index(text))}, column '{column.name}': the date "
            f"'{text}' {why}. Write dates as ISO 8601, like 2020-01-31."
        )
    dated.append(
        f"Dates of '{column.name}' are read as {reading.form}: '{texts[0]}' is {reading.texts[0]}."
    )
    return _time_axis(layout, column, texts, reading.texts)


def _mixed_labels(axis: Axis) -> list[str]:
    """Return a note on text labels some of which are numbers or dates."""
    odd = [text for text in axis.labels or () if not _is_coordinate(text)]
    if not odd or len(odd) == axis.size:
        return []
    return [f"The coordinates of '{axis.name}' are taken as texts, because of '{odd[0]}'."]


def _is_coordinate(text: str) -> bool:
    """Return whether a text is a number or a date, as ISO 8601 has it or not."""
    is_iso = _DATE.match(text) is not None
    return is_iso or parse_numbers([text]) is not None or looks_like_date(text)


def _split_by_row(raw: bytes, path: str) -> _Table:
    """Split a table row by row, or raise InputError with the line of what is wrong."""
    source = source_name(path)
    with explain_reading(source), text_of(io.BytesIO(raw)) as stream:
        reader, delimiter = make_reader(stream)
        names = _grid_header(reader, source)
        indexes = [text_index() for _ in names]
        codes: list[list[Integers]] = [[] for _ in names]
        lines: list[int] = []
        for numbers, rows in read_batches(reader, len(names), BATCH_ROWS, source):
            lines += numbers
            for index, parts, cells in zip(indexes, codes, zip(*rows, strict=True), strict=True):
                parts.append(code_texts(index, cells))
    if not lines:
        raise InputError(f"{source} has a header and no rows. Expected values below it.")
    columns = [
        TextColumn(name, ([text.strip() for text in index], np.concatenate(parts)))
        for name, index, parts in zip(names, indexes, codes, strict=True)
    ]
    found = _decimal_comma(columns) if delimiter != "," else None
    if found:
        raise InputError(f"{source} has '{found}' in it. Expected decimal points, not commas.")
    return _Table(path, columns, len(lines), np.array(lines))


def _split_at_once(raw: bytes, path: str) -> _Table | None:
    """Split a table by pandas, or return None if it has to be read row by row."""
    source = source_name(path)
    try:
        with explain_reading(source):
            data = unzip_bytes(raw)
            with text_of(io.BytesIO(data)) as stream:
                reader, delimiter = make_reader(stream)
                names = _grid_header(reader, source)
                columns = split_columns(data, reader.line_num, names, delimiter)
    except InputError:
        return None
    if columns is None or (delimiter != "," and _decimal_comma(columns)):
        return None
    return _Table(path, columns, columns[0].size, None)


def _grid_header(reader: Any, source: str) -> list[str]:
    """Return the names of two columns or more; the first gets a name if it has none."""
    names = read_header(reader, source)
    if len(names) < 2:
        raise InputError(
            f"{source} has one column, '{names[0]}'. Expected a column per dimension and one of "
            "values, with ',', ';' or tab between them."
        )
    if _is_coordinate(names[0]):
        raise InputError(
            f"The first line of {source} begins with '{names[0]}', which is no name. Expected a "
            "header; its first cell may be empty."
        )
    if "" in names[1:]:
        raise InputError(f"Column {names.index('', 1) + 1} of {source} has no name. Give it one.")
    first = names[0] or (NAMELESS[1] if NAMELESS[0] in names else NAMELESS[0])
    return [first, *names[1:]]


def _decimal_comma(columns: Sequence[TextColumn]) -> str | None:
    """Return the first text that is a number with a decimal comma, or None."""
    unread = (column for column in columns if column.numbers is None)
    texts = (text for column in unread for text in column.labels)
    return next(filter(_DECIMAL_COMMA.match, texts), None)


def _stem(path: str) -> str:
    """Return the name of a file without its endings."""
    return "values" if path == "-" else re.sub(r"\.(csv|tsv|txt)?(\.gz)?$", "", Path(path).name)


def _sizes(table: _Table | _Layout, dims: Sequence[TextColumn]) -> str:
    """Return how many rows there are for how many cells, as the beginning of a message."""
    sizes = " x ".join(f"{column.name} {len(column.labels)}" for column in dims[:4])
    more = " x ..." if len(dims) > 4 else ""
    return f"{table.source} has {table.rows} rows for the cells of {sizes}{more}"
