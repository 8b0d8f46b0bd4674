"""A whole table of text as its columns.

A column is kept as its distinct texts and which of them stands in each row, so that only distinct
texts are ever parsed. A table is split row by row, which knows the line of each row, or at once by
pandas, which is faster; the columns are the same.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.errors import InputError
from dkrls_cli.files.text.coordinates import is_coordinate
from dkrls_cli.files.text.csv.cells import (
    Integers,
    code_texts,
    is_missing,
    join_names,
    parse_numbers,
    parse_values,
    text_index,
)
from dkrls_cli.files.text.csv.opening import explain_reading, source_name, text_of, unzip_bytes
from dkrls_cli.files.text.csv.reader import BATCH_ROWS, make_reader, read_batches, read_header
from dkrls_cli.files.text.csv.splitting import TextColumn, split_columns
from dkrls_cli.spelling import suggest

# Names of a first column without one; the second if the first is taken.
NAMELESS = ("row", "row_number")

_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+$")


@dataclass(frozen=True, eq=False)
class Table:
    """A whole file of text.

    Attributes
    ----------
    path
        The file, or ``-`` for standard input.
    columns
        Its columns.
    rows
        Number of rows below the header.
    lines
        Line of each row; None if pandas has split the table.
    """

    path: str
    columns: list[TextColumn]
    rows: int
    lines: Integers | None

    @property
    def source(self) -> str:
        """Name of the table in messages."""
        return source_name(self.path)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.columns]

    def line(self, row: int) -> int:
        """Return the line of a row; 0 if it is not known."""
        return 0 if self.lines is None else int(self.lines[row])

    def column(self, name: str) -> TextColumn:
        """Return a column by its name, or raise InputError if there is none."""
        if name not in self.names:
            raise self.lack(name)
        return self.columns[self.names.index(name)]

    def lack(self, name: str, also: str = "") -> InputError:
        """Return the error for a column that is not there; `also` is what else is wrong."""
        names = join_names(self.names)
        hint = suggest(name, self.names)
        return InputError(f"{self.source} has no column '{name}'{also}. It has {names}.{hint}")


def split_by_row(raw: bytes, path: str) -> Table:
    r"""Split a table row by row.

    Parameters
    ----------
    raw, path
        Bytes of the file, gzipped or not, and the file for messages.

    Raises
    ------
    InputError
        If the table cannot be split. The message names the line, where there is one.

    Examples
    --------
    >>> table = split_by_row(b"x,v\n1,10\n# a comment\n2,20\n", "t.csv")
    >>> table.names, table.column("v").labels, table.line(1)
    (['x', 'v'], ['10', '20'], 4)
    """
    source = source_name(path)
    with explain_reading(source), text_of(io.BytesIO(raw)) as stream:
        reader, delimiter = make_reader(stream)
        names = grid_header(reader, source)
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
        raise InputError(
            f"{source} has '{found}' in it. Expected decimal points, not commas: write "
            f"{found.replace(',', '.')}, as 'tr , . < OLD > NEW' does in all of a file."
        )
    return Table(path, columns, len(lines), np.array(lines))


def split_at_once(raw: bytes, path: str) -> Table | None:
    """Split a table by pandas, or return None if it has to be read row by row."""
    source = source_name(path)
    try:
        with explain_reading(source):
            data = unzip_bytes(raw)
            with text_of(io.BytesIO(data)) as stream:
                reader, delimiter = make_reader(stream)
                names = grid_header(reader, source)
                columns = split_columns(data, reader.line_num, names, delimiter)
    except InputError:
        return None
    if columns is None or (delimiter != "," and _decimal_comma(columns)):
        return None
    return Table(path, columns, columns[0].size, None)


def grid_header(reader: Any, source: str) -> list[str]:
    """Return the names of two columns or more; the first gets a name if it has none."""
    names = read_header(reader, source)
    if len(names) < 2:
        raise InputError(
            f"{source} has one column, '{names[0]}'. Expected a column per dimension and one of "
            "values, with ',', ';' or tab between them."
        )
    if is_coordinate(names[0]):
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


def column_values(column: TextColumn) -> Array | None:
    """Return the numbers of a column, NaN where missing; None if a text is neither."""
    if column.numbers is not None:
        return column.numbers
    numbers = parse_values(column.labels)
    return None if numbers is None else numbers[column.codes]


def find_odd_label(column: TextColumn) -> int:
    """Return the position of the first label that is neither a number nor missing."""
    return next(
        i
        for i, text in enumerate(column.labels)
        if not is_missing(text) and parse_numbers([text]) is None
    )
