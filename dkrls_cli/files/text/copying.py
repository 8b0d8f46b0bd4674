"""Copies of text tables in which only missing cells change.

Lines without a filled cell are copied as they are, with their comments, quotes, spaces and ends. In
the others only the filled cells are new. Cells for which a long table has no row follow at its end.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

import numpy as np

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.text.csv.opening import read_bytes, text_of
from dkrls_cli.files.text.csv.reader import make_reader
from dkrls_cli.files.text.rows import number_text, quote_cell
from dkrls_cli.files.text.tables import PlacedTable, place_cells

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, eq=False)
class TableCopy:
    """A table that can be written again with missing cells filled.

    Attributes
    ----------
    path
        The file, or ``-`` for standard input.
    var, dims
        As the table was read: see :func:`dkrls_cli.files.text.tables.read_table`.
    is_wide
        Whether the header of the table holds coordinates.
    likely
        As the table was read.
    kept
        Bytes of standard input, which cannot be read again; None for a file.
    """

    path: str
    var: str | None
    dims: Sequence[str] | None
    is_wide: bool
    likely: str | None = None
    kept: bytes | None = None

    def refuse_std(self) -> None:
        """Raise SettingError if the copy has no room for standard errors, as a wide one has not."""
        if self.is_wide:
            raise SettingError(
                "A wide table has no room for standard errors: its header holds coordinates. "
                "Write to another format, such as .nc or .jsonl, or leave the standard errors out."
            )

    def write(
        self, stream: TextIO, cells: Mask, values: Array, std: tuple[str, Array] | None = None
    ) -> None:
        """Write the table with cells filled.

        Parameters
        ----------
        stream
            Where the text goes, opened without translation of line ends.
        cells
            Which cells of the grid were filled.
        values
            Values of the grid.
        std
            Name and values of a column of standard errors to add to a long table.

        Raises
        ------
        InputError
            If the file has changed since it was read, or has a column of the name of `std` already.
        SettingError
            If the table is wide and there are standard errors.
        """
        if std is not None:
            self.refuse_std()
        raw = read_bytes(self.path) if self.kept is None else self.kept
        placed = place_cells(raw, self.path, self.var, self.dims, likely=self.likely)
        if placed.grid.values.shape != values.shape:
            raise InputError(f"'{self.path}' has changed while it was filled. Fill it again.")
        if raw.startswith(_BYTE_ORDER_MARK):
            stream.write(_BYTE_ORDER_MARK.decode())
        stream.writelines(_copied_lines(raw, placed, cells, values, std))


def _copied_lines(
    raw: bytes, placed: PlacedTable, cells: Mask, values: Array, std: tuple[str, Array] | None
) -> Iterator[str]:
    """Yield the text of a table row by row, filled cells replaced, then rows that were absent."""
    filled, flat = cells.ravel(), values.ravel()
    absent = filled.copy()
    absent[placed.cells.ravel()] = False
    width, number, end, last = 0, 0, "\n", ""
    with text_of(io.BytesIO(raw)) as stream:
        reader, delimiter = make_reader(lines := _Recorded(stream))
        for row in reader:
            text = lines.take(reader.line_num)
            body = text.rstrip("\r\n")
            last = text[len(body) :]
            end = last or end
            if row and not width:
                width = len(row)
                body += _std_head(row, std, delimiter)
            elif row:
                here = placed.cells[number]
                new = {c: flat[i] for c, i in zip(placed.values, here, strict=True) if filled[i]}
                body = _replaced(body, row, new, delimiter) + _std_cell(std, here[0], delimiter)
                number += 1
            yield body + last
    if not last and absent.any():
        yield end
    for index in np.flatnonzero(absent):
        row_text = _new_row(placed, int(index), flat[index], width, delimiter)
        yield row_text + _std_cell(std, int(index), delimiter) + end


class _Recorded:
    """Lines of a stream, kept until they are taken."""

    def __init__(self, stream: Iterable[str]) -> None:
        self._stream = iter(stream)
        self._lines: list[str] = []
        self._taken = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._stream)
        self._lines.append(line)
        return line

    def take(self, number: int) -> str:
        """Return the lines that were not taken yet, up to and including a line by its number."""
        count = number - self._taken
        text = "".join(self._lines[:count])
        del self._lines[:count]
        self._taken = number
        return text


def _replaced(body: str, row: Sequence[str], new: Mapping[int, float], delimiter: str) -> str:
    """Return the text of a row with some of its cells replaced."""
    if not new:
        return body
    cells = body.split(delimiter)
    if '"' in body or len(cells) != len(row):
        cells = [quote_cell(cell) for cell in row]
    for place, value in new.items():
        cells[place] = number_text(value)
    return delimiter.join(cells)


def _new_row(placed: PlacedTable, index: int, value: float, width: int, delimiter: str) -> str:
    """Return the text of a row for a cell that a long table has no row for."""
    cells = [""] * width
    where = np.unravel_index(index, placed.grid.values.shape)
    for (column, texts), place in zip(placed.texts.items(), where, strict=True):
        cells[column] = quote_cell(texts[int(place)])
    cells[placed.values[0]] = number_text(value)
    return delimiter.join(cells)


def _std_head(row: Sequence[str], std: tuple[str, Array] | None, delimiter: str) -> str:
    """Return the name of the column of standard errors, to be put behind the header."""
    if std is None:
        return ""
    if std[0] in [name.strip() for name in row]:
        raise InputError(
            f"There is a column '{std[0]}' already, as the standard errors are named. Rename it."
        )
    return delimiter + quote_cell(std[0])


def _std_cell(std: tuple[str, Array] | None, index: int, delimiter: str) -> str:
    """Return the standard error of a cell, to be put behind its row; empty if it is missing."""
    return "" if std is None else delimiter + number_text(std[1].flat[index])
