"""Tables split row by row, as rows come: a reader of Python's csv module knows the line of each."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from dkrls_cli.errors import InputError

# Rows that are split at a time: as many rows of text as stay in a processor's cache.
BATCH_ROWS = 256

_DELIMITERS = ",;\t"


def make_reader(stream: Iterable[str]) -> tuple[Any, str]:
    """Return a csv.reader of a stream, and the delimiter, which its header has most of."""
    lines = _blank_comments(stream)
    head: list[str] = []
    for line in lines:
        head.append(line)
        if line != "\n":
            break
    unquoted = re.sub('"[^"]*("|$)', "", "".join(head))
    delimiter = max(_DELIMITERS, key=unquoted.count)
    options: dict[str, Any] = {"delimiter": delimiter, "skipinitialspace": True, "strict": True}
    return csv.reader(chain(head, lines), **options), delimiter


def _blank_comments(stream: Iterable[str]) -> Iterator[str]:
    """Yield lines, comments and blank ones emptied but not left out: the reader counts lines."""
    quoted = False
    for line in stream:
        if not quoted and (line.startswith("#") or line.isspace()):
            yield "\n"
        else:
            quoted ^= line.count('"') % 2 == 1
            yield line


def read_header(reader: Any, source: str) -> list[str]:
    """Return the names of the columns, or raise InputError if there are none or one is twice."""
    names = [name.strip() for name in next(read_rows(reader, source), [])]
    if not names:
        raise InputError(f"{source} is empty. Expected a header and rows of values below it.")
    counts = Counter(names)
    if len(counts) < len(names):
        twice = next(name for name in names if counts[name] > 1)
        raise InputError(f"{source} has two columns '{twice}'. Rename one in the header.")
    return names


def read_batches(
    reader: Any, width: int, rows: int, source: str
) -> Iterator[tuple[list[int], list[list[str]]]]:
    """Yield rows in batches, with the line of each, or raise InputError if a row is ragged."""
    lines: list[int] = []
    cells: list[list[str]] = []
    for row in read_rows(reader, source):
        if len(row) != width:
            raise InputError(
                f"Line {reader.line_num} of {source} has {len(row)} cells, the header {width}. "
                "Expected as many; put cells that hold the delimiter in quotes."
            )
        lines.append(reader.line_num)
        cells.append(row)
        if len(cells) == rows:
            yield lines, cells
            lines, cells = [], []
    if cells:
        yield lines, cells


def read_rows(reader: Any, source: str) -> Iterator[list[str]]:
    """Yield the rows that are not blank, or raise InputError if one cannot be split."""
    try:
        yield from filter(None, reader)
    except csv.Error as error:
        where = f"Line {reader.line_num} of {source}"
        raise InputError(f"{where} cannot be read ({error}). Is a quote left open?") from None
