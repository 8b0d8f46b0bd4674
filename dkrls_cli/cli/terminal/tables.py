"""Tables and lists of facts: plain aligned text in a pipe, drawn by rich on a terminal."""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from dkrls_cli.cli.terminal.clean import clean, clean_lines

_PIPE_WIDTH = 100  # columns where there is no terminal: wide enough for the tables of most models
_MINUTE, _HOUR = 60, 3600  # seconds
_COMMAS_FROM = 10000  # numbers of four digits are read at a glance
_LEAST_WIDTH = 40  # columns below which a table is no longer made narrower


@dataclass(frozen=True)
class Columns:
    """Cells in aligned columns.

    Attributes
    ----------
    lines
        Texts of the cells, line by line, all lines of equal length.
    right
        Whether each column is aligned to the right.
    header
        Whether the first line has the headings; otherwise the first column has them.
    """

    lines: Sequence[Sequence[str]]
    right: Sequence[bool]
    header: bool

    def __str__(self) -> str:
        widths = [max(map(len, column)) for column in zip(*self.lines, strict=True)]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(line, widths, self.right, strict=True)
            ).rstrip()
            for line in self.lines
        )


@dataclass(frozen=True)
class Layout:
    """Blocks of columns, one below the other. As a string: plain text."""

    blocks: tuple[Columns, ...]

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.blocks))


def table(rows: Sequence[Mapping[str, Any]]) -> Layout:
    """Return rows with equal keys as a table.

    A table that is too wide is transposed; if that is too wide as well, every row becomes a list.
    """
    keys = list(rows[0])
    heads = [clean(key) for key in keys]
    cells = [[cell_text(row[key]) for key in keys] for row in rows]
    right = [all(_is_number(row[key]) for row in rows) for key in keys]
    across = Columns([heads, *cells], right, header=True)
    transposed = Columns(
        list(zip(heads, *cells, strict=True)), [False] * (len(rows) + 1), header=False
    )
    for columns in (across, transposed):
        if max(map(len, str(columns).splitlines())) <= available_width():
            return Layout((columns,))
    lists = [list(zip(heads, line, strict=True)) for line in cells]
    return Layout(tuple(Columns(lines, [False, False], header=False) for lines in lists))


def pairs(facts: Mapping[str, Any]) -> Layout:
    """Return facts as a list: one name and its value per line."""
    lines = [(clean(name), cell_text(value)) for name, value in facts.items()]
    return Layout((Columns(lines, [False, False], header=False),))


def available_width() -> int:
    """Return the columns a table may take: those of the terminal, or 100 without one."""
    return max(_LEAST_WIDTH, shutil.get_terminal_size((_PIPE_WIDTH, 0)).columns)


def bytes_text(size: float) -> str:
    """Return a number of bytes in the unit that suits it, to three digits."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def duration_text(seconds: float) -> str:
    """Return a time in the units that suit it.

    >>> duration_text(0.01234), duration_text(12.34), duration_text(200), duration_text(3900)
    ('0.0123 s', '12.3 s', '3 min 20 s', '1 h 5 min')
    """
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{seconds:.3g} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    minutes = round(seconds / _MINUTE)
    return f"{minutes // _MINUTE} h {minutes % _MINUTE} min"


def count_text(count: int) -> str:
    """Return a number of things; from ten thousand on with commas.

    >>> count_text(1406), count_text(1113600)
    ('1406', '1,113,600')
    """
    return str(count) if abs(count) < _COMMAS_FROM else f"{count:,}"


def cell_text(value: Any) -> str:
    """Return a value as the text of a cell: floats to four digits, a dash for None and NaN."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else clean(str(value))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def can_draw(stream: IO[str] | None) -> bool:
    """Return whether a stream is a terminal that can move its cursor; None is a closed stream."""
    if stream is None or not stream.isatty():
        return False
    return os.environ.get("TERM") not in ("dumb", "unknown")


def draw(parts: Sequence[str | Layout]) -> None:
    """Draw texts and tables on the terminal, an empty line between them."""
    from rich.console import Console

    console = Console(file=sys.stdout, highlight=False, markup=False)
    for place, part in enumerate(parts):
        if place:
            console.print()
        if isinstance(part, str):
            console.print(clean_lines(part), soft_wrap=True)
            continue
        for block_place, block in enumerate(part.blocks):
            if block_place:
                console.print()
            console.print(_drawn_table(block))


def _drawn_table(columns: Columns) -> Any:
    """Return columns as a table of rich, headings in bold; long values are folded."""
    from rich.table import Table
    from rich.text import Text

    heads, body = (
        (columns.lines[0], columns.lines[1:])
        if columns.header
        else ([""] * len(columns.right), columns.lines)
    )
    drawn = Table(box=None, show_header=columns.header, pad_edge=False, padding=(0, 2, 0, 0))
    for place, (head, right) in enumerate(zip(heads, columns.right, strict=True)):
        bold = "bold" if place == 0 and not columns.header else ""
        justify: Any = "right" if right else "left"
        drawn.add_column(Text(head), justify=justify, style=bold, overflow="fold")
    for line in body:
        drawn.add_row(*map(Text, line))
    return drawn
