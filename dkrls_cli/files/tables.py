"""Tables to grids.

A table is long (a column per dimension and one of values) or wide (the first column one dimension,
the header the other). A column is kept as its distinct texts and which of them stands in each row,
so that only distinct texts are ever parsed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.csv import (
    BATCH_ROWS,
    Integers,
    batches,
    called,
    coded,
    first_trouble,
    header_of,
    listed,
    numbers_of,
    opened,
    reader_of,
    text_index,
)
from dkrls_cli.grid.axes import Axis, axis_of, text_axis
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.grid.grid import Grid

NAMELESS = ("row", "row_number")
"""What the first column is called if its header is empty; the second if the first is taken."""
PLAUSIBLE_SHARE = 0.05
"""Of the cells of a grid, the least that must be there to guess that a table is long."""
LEAST_SHARE = 0.01
"""The least when the dimensions are named: below it are scattered points, and too much memory."""

_MISSING = frozenset(("", "na", "n/a", "nan", "null", "none", "-", ".", "inf", "+inf", "-inf"))
_DAYS = TimeScale("days since 1970-01-01", "proleptic_gregorian")
_DATE = re.compile(r"\d{4}-(0?[1-9]|1[0-2])(-\d{1,2}([T\s].*)?)?$")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+$")


@dataclass(frozen=True, eq=False)
class _Column:
    """A column of text: distinct texts in order of appearance, and which stands in each row."""

    name: str
    labels: list[str]
    codes: Integers


@dataclass(frozen=True, eq=False)
class _Table:
    """A whole file of text, with the line of every row."""

    path: str
    columns: list[_Column]
    lines: Integers

    @property
    def source(self) -> str:
        return called(self.path)

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def column(self, name: str) -> _Column:
        if name not in self.names:
            raise self.lack(name)
        return self.columns[self.names.index(name)]

    def lack(self, name: str, also: str = "") -> InputError:
        names = listed(self.names)
        return InputError(f"{self.source} has no column '{name}'{also}. It has {names}.")


@dataclass(frozen=True, eq=False)
class _Layout:
    """How a table is read: where its cells are, their values, and the line of each."""

    source: str
    dims: list[_Column]
    value: _Column
    lines: Integers
    notes: list[str]

    def line(self, column: _Column, label: int) -> str:
        """Where a text of a column stands first."""
        return f"Line {self.lines[np.argmax(column.codes == label)]} of {self.source}"


def read_table(
    path: str,
    var: str | None = None,
    dims: Sequence[str] | None = None,
    *,
    likely: str | None = None,
) -> tuple[Grid, list[str]]:
    """A grid from a CSV file (``-``: standard input), gzipped or not; and what was decided.

    Parameters
    ----------
    path
        The file. Commas, semicolons or tabs stand between the cells, whichever the header has
        most of; blank lines and lines that begin with ``#`` are skipped.
    var
        The column of values of a long table, or a name for the values of a wide one.
    dims
        The dimensions, in the order wanted: columns of a long table; or the first column of a
        wide table and a name for what its header holds.
    likely
        Besides known dimensions: the column of values, if it is there and `var` names none.

    Returns
    -------
    The grid, NaN where a row or a value is missing, and notes to the user, a sentence each.
    Coordinates that are all numbers or all ISO dates are sorted, texts stay in order of appearance.
    """
    table = _read(path)
    if var is None and likely in table.names:
        var = likely
    layout = _layout(table, var, dims)
    grid = _grid(layout)
    return grid, layout.notes + [note for axis in grid.axes for note in _mixed_labels(axis)]


def _layout(table: _Table, var: str | None, dims: Sequence[str] | None) -> _Layout:
    if dims is not None:
        return _named(table, var, list(dims))
    if var is not None and var in table.names:
        return _all_around(table, var)
    return _guessed(table, var)


def _named(table: _Table, var: str | None, dims: list[str]) -> _Layout:
    """The layout when the dimensions are known."""
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
            f"Besides {listed(dims)}, {table.source} has {listed(rest) or 'no column'}. Expected "
            "one column of values: choose it with --var."
        )
    value = table.column(var or rest[0])
    if len({*dims, value.name}) <= len(dims):
        raise InputError(f"Columns {listed(dims)}, and '{value.name}' for values: one is twice.")
    return _long(table, columns, value)


def _all_around(table: _Table, var: str) -> _Layout:
    """The layout when the column of values is known: all others are dimensions."""
    dims = _without_row_numbers([column for column in table.columns if column.name != var])
    if not _is_dense(dims):
        raise InputError(
            f"{_sizes(table, dims)}: too few to be all dimensions of '{var}'. Name the dimensions "
            "with --levels."
        )
    return _long(table, dims, table.column(var))


def _guessed(table: _Table, var: str | None) -> _Layout:
    """Wide if its header holds coordinates, else long if that makes a grid, else wide."""
    *dims, value = table.columns
    if all(map(_is_coordinate, table.names[1:])):
        return _wide(table, "column", var)
    trouble = _wide_trouble(table)
    if var and trouble:
        raise table.lack(var, f", and is no wide table, as {trouble}")
    for columns in (_without_row_numbers(dims), dims):
        wide = trouble is None and (var or _looks_wide(columns) or len(columns) < len(dims) == 2)
        if _is_dense(columns) and not wide:
            return _long(table, columns, value)
    if trouble is None:
        return _wide(table, "column", var)
    raise InputError(
        f"{_sizes(table, dims)}: too few for a long table, and it is no wide one, as {trouble}. "
        "Name the column of values with --var and the dimensions with --levels."
    )


def _is_dense(dims: Sequence[_Column]) -> bool:
    """Whether enough cells of a grid are there."""
    return dims[0].codes.size >= PLAUSIBLE_SHARE * _cells(dims)


def _looks_wide(dims: Sequence[_Column]) -> bool:
    """Whether every row has a new first cell, and the others hardly repeat."""
    first, *others = dims
    rows = first.codes.size
    return bool(others) and len(first.labels) == rows and 2 * _cells(others) > rows


def _cells(dims: Sequence[_Column]) -> int:
    return math.prod(len(column.labels) for column in dims)


def _without_row_numbers(columns: list[_Column]) -> list[_Column]:
    """Columns but for a nameless first one that other programs write to count the rows."""
    (first, *others), rows = columns, columns[0].codes.size
    counts = ([str(i + start) for i in range(rows)] for start in (0, 1))
    counted = first.name in NAMELESS and any(first.labels == count for count in counts)
    return others if counted and others and 2 * _cells(others) >= rows else columns


def _wide_trouble(table: _Table) -> str | None:
    """Why a table cannot be wide, or None."""
    first, *others = table.columns
    if len(first.labels) < first.codes.size:
        again = first.labels[int(np.argmax(np.bincount(first.codes) > 1))]
        return f"'{again}' stands in its first column more than once"
    for column in others:
        if _values(column) is None:
            odd = _odd(column)
            line = table.lines[np.argmax(column.codes == odd)]
            return f"column '{column.name}' holds '{column.labels[odd]}' on line {line}"
    return None


def _long(table: _Table, dims: Sequence[_Column], value: _Column) -> _Layout:
    left_out = [c.name for c in table.columns if c is not value and c not in dims]
    notes = [f"Read as a long table: '{value.name}' by {listed(c.name for c in dims)}."]
    if left_out:
        notes.append(f"Columns left out: {listed(left_out)}.")
    return _Layout(table.source, list(dims), value, table.lines, notes)


def _wide(table: _Table, across: str, var: str | None, *, swapped: bool = False) -> _Layout:
    """A wide table as the long one that it stands for, row by row."""
    first, *others = table.columns
    width, rows = len(others), table.lines.size
    starts = np.cumsum([0, *(len(column.labels) for column in others[:-1])])
    dims = [
        _Column(first.name, first.labels, np.repeat(first.codes, width)),
        _Column(across, [column.name for column in others], np.tile(np.arange(width), rows)),
    ]
    value = _Column(
        var or _stem(table.path),
        [label for column in others for label in column.labels],
        (np.stack([column.codes for column in others], axis=1) + starts).ravel(),
    )
    note = f"Read as a wide table: rows '{dims[0].name}', header '{across}'."
    lines = np.repeat(table.lines, width)
    return _Layout(table.source, dims[::-1] if swapped else dims, value, lines, [note])


def _grid(layout: _Layout) -> Grid:
    """Values in their cells, NaN in all others."""
    if _cells(layout.dims) * LEAST_SHARE > layout.lines.size:
        raise InputError(f"{_sizes(layout, layout.dims)}: scattered points. Expected a grid.")
    values = _values(layout.value)
    if values is None:
        odd = _odd(layout.value)
        raise InputError(
            f"{layout.line(layout.value, odd)} has '{layout.value.labels[odd]}' for a value. "
            "Expected a number with a decimal point, or NA; --var names the column of values."
        )
    axes, places = zip(*(_axis(layout, column) for column in layout.dims), strict=True)
    shape = tuple(axis.size for axis in axes)
    cells = np.ravel_multi_index(places, shape)
    _refuse_repeats(layout, cells)
    filled = np.full(math.prod(shape), np.nan)
    filled[cells] = values
    return Grid(values=filled.reshape(shape), axes=axes, name=layout.value.name)


def _refuse_repeats(layout: _Layout, cells: Integers) -> None:
    order = np.argsort(cells, kind="stable")
    repeats = np.flatnonzero(np.diff(cells[order]) == 0)
    if not repeats.size:
        return
    first = repeats[np.argmin(order[repeats + 1])]
    one, other = order[first], order[first + 1]
    where = ", ".join(f"{c.name}={c.labels[c.codes[one]]}" for c in layout.dims)
    raise InputError(
        f"{layout.source} has two values for {where}, on lines {layout.lines[one]} and "
        f"{layout.lines[other]}. Expected one: take one out, or name all dimensions with --levels."
    )


def _values(column: _Column) -> Array | None:
    """The numbers of a column, NaN where missing; or None if a text is neither."""
    numbers = numbers_of(column.labels)
    if numbers is None:
        numbers = numbers_of(["nan" if is_missing(text) else text for text in column.labels])
    if numbers is None:
        return None
    numbers[~np.isfinite(numbers)] = np.nan
    return numbers[column.codes]


def _odd(column: _Column) -> int:
    """Which text of a column is the first that is neither a number nor missing."""
    return next(
        i
        for i, text in enumerate(column.labels)
        if not is_missing(text) and numbers_of([text]) is None
    )


def _axis(layout: _Layout, column: _Column) -> tuple[Axis, Integers]:
    """The axis of a column's texts, and the place on it of every row."""
    name, labels = column.name, column.labels
    present = [text for text in labels if not is_missing(text)]
    found = _number_axis(name, present) or _time_axis(layout, column, present)
    if "" in labels or (found and len(present) < len(labels)):
        missing = next(i for i, text in enumerate(labels) if is_missing(text))
        raise InputError(
            f"{layout.line(column, missing)} has '{labels[missing]}' for a coordinate of '{name}'. "
            "Expected one in every row."
        )
    if found is None:
        index = text_index()
        places = coded(index, labels)
        return text_axis(name, list(index)), places[column.codes]
    axis, places = found
    return axis, places[column.codes]


def _number_axis(name: str, texts: Sequence[str]) -> tuple[Axis, Integers] | None:
    """Numbers in ascending order and the place of each; or None if the texts are something else."""
    numbers = numbers_of(texts)
    if numbers is None or not numbers.size or not np.isfinite(numbers).all():
        return None
    distinct, places = np.unique(numbers, return_inverse=True)
    whole = all(text.lstrip("+-").isdigit() for text in texts) and np.abs(distinct).max() < 2**53
    return axis_of(name, distinct.astype(np.int64) if whole else distinct), places


def _time_axis(
    layout: _Layout, column: _Column, texts: Sequence[str]
) -> tuple[Axis, Integers] | None:
    """ISO dates in order of time and the place of each; or None if the texts are something else."""
    if not texts or not all(map(_DATE.match, texts)):
        return None
    try:
        distinct, places = np.unique(_DAYS.numbers(texts), return_inverse=True)
    except SettingError:
        bad, reason = first_trouble(_DAYS.numbers, texts)
        where = layout.line(column, column.labels.index(bad))
        raise InputError(f"{where}, column '{column.name}': {reason}") from None
    return Axis(name=column.name, numbers=distinct, time=_DAYS), places


def _mixed_labels(axis: Axis) -> list[str]:
    """What to say of text labels some of which are numbers or dates."""
    odd = [text for text in axis.labels or () if not _is_coordinate(text)]
    if not odd or len(odd) == axis.size:
        return []
    return [f"The coordinates of '{axis.name}' are taken as texts, because of '{odd[0]}'."]


def _is_coordinate(text: str) -> bool:
    """Whether a text is a number or a date."""
    return numbers_of([text]) is not None or _DATE.match(text) is not None


def is_missing(text: str) -> bool:
    """Whether a cell says that there is no value."""
    return text.lower() in _MISSING


def _read(path: str) -> _Table:
    source = called(path)
    with opened(path) as stream:
        reader, delimiter = reader_of(stream)
        names = _grid_header(reader, source)
        indexes = [text_index() for _ in names]
        codes: list[list[Integers]] = [[] for _ in names]
        lines: list[int] = []
        for numbers, rows in batches(reader, len(names), BATCH_ROWS, source):
            lines += numbers
            for index, parts, cells in zip(indexes, codes, zip(*rows, strict=True), strict=True):
                parts.append(coded(index, cells))
    if not lines:
        raise InputError(f"{source} has a header and no rows. Expected values below it.")
    columns = [
        _Column(name, [text.strip() for text in index], np.concatenate(parts))
        for name, index, parts in zip(names, indexes, codes, strict=True)
    ]
    if delimiter != ",":
        _refuse_decimal_commas(columns, source)
    return _Table(path, columns, np.array(lines))


def _grid_header(reader: Any, source: str) -> list[str]:
    """Two names or more; the first may be left out."""
    names = header_of(reader, source)
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


def _refuse_decimal_commas(columns: Sequence[_Column], source: str) -> None:
    commas = (text for column in columns for text in column.labels if _DECIMAL_COMMA.match(text))
    found = next(commas, None)
    if found:
        raise InputError(f"{source} has '{found}' in it. Expected decimal points, not commas.")


def _stem(path: str) -> str:
    """Name of a file without its endings."""
    return "values" if path == "-" else re.sub(r"\.(csv|tsv|txt)?(\.gz)?$", "", Path(path).name)


def _sizes(table: _Table | _Layout, dims: Sequence[_Column]) -> str:
    sizes = " x ".join(f"{column.name} {len(column.labels)}" for column in dims[:4])
    more = " x ..." if len(dims) > 4 else ""
    return f"{table.source} has {table.lines.size} rows for the cells of {sizes}{more}"
