"""Text tables as streams of rows: opening, unpacking, splitting. The only door to CSV reading."""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
import sys
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import IO, Any, TextIO, cast

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array
from dkrls_cli.errors import DkrlsError, InputError

_DELIMITERS = ",;\t"
BATCH_ROWS = 256  # as many rows of text as stay in a processor's cache

Integers = NDArray[np.intp]


@contextmanager
def opened(path: str) -> Iterator[TextIO]:
    """A file or standard input as text, unzipped; what goes wrong in reading it, in one line."""
    source = called(path)
    if path == "-" and sys.stdin is None:
        raise InputError(f"{source} is closed. Expected rows of values.")
    try:
        with ExitStack() as stack:
            raw = sys.stdin.buffer if path == "-" else stack.enter_context(open(path, "rb"))
            text = io.TextIOWrapper(_unzipped(raw), encoding="utf-8-sig", newline="")
            stack.callback(text.detach)
            yield text
    except FileNotFoundError:
        raise InputError(f"There is no file {source}.") from None
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise InputError(
            f"{source} is not UTF-8 text (byte 0x{byte:02x}). Save it as UTF-8."
        ) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{source} is damaged ({error}). Compress it again.") from None
    except BrokenPipeError:  # of what is written meanwhile
        raise
    except OSError as error:
        raise InputError(f"{source} cannot be read ({error.strerror}).") from None


def _unzipped(raw: IO[bytes]) -> IO[bytes]:
    """A stream as it is, or what is in it if it is gzipped."""
    seen = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast(Any, raw))
    gzipped = seen.peek(2)[:2] == b"\x1f\x8b"
    return cast(IO[bytes], gzip.GzipFile(fileobj=seen)) if gzipped else seen


def reader_of(stream: Iterable[str]) -> tuple[Any, str]:
    """A csv.reader of a stream, and the delimiter that its header has most of."""
    lines = _lines(stream)
    head: list[str] = []
    for line in lines:
        head.append(line)
        if line != "\n":
            break
    unquoted = re.sub('"[^"]*("|$)', "", "".join(head))
    delimiter = max(_DELIMITERS, key=unquoted.count)
    options: dict[str, Any] = {"delimiter": delimiter, "skipinitialspace": True, "strict": True}
    return csv.reader(chain(head, lines), **options), delimiter


def _lines(stream: Iterable[str]) -> Iterator[str]:
    """Lines; comments and blank ones emptied, not left out, so that a reader counts aright."""
    quoted = False
    for line in stream:
        if not quoted and (line.startswith("#") or line.isspace()):
            yield "\n"
        else:
            quoted ^= line.count('"') % 2 == 1
            yield line


def header_of(reader: Any, source: str) -> list[str]:
    """The names of the columns."""
    names = [name.strip() for name in next(rows_of(reader, source), [])]
    if not names:
        raise InputError(f"{source} is empty. Expected a header and rows of values below it.")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"{source} has two columns '{twice[0]}'. Rename one in the header.")
    return names


def batches(
    reader: Any, width: int, rows: int, source: str
) -> Iterator[tuple[list[int], list[list[str]]]]:
    """Rows in batches, with the line of each."""
    lines: list[int] = []
    cells: list[list[str]] = []
    for row in rows_of(reader, source):
        if len(row) != width:
            raise InputError(
                f"Line {reader.line_num} of {source} has {len(row)} cells, the header {width}. "
                "Expected as many; cells that hold the delimiter want quotes."
            )
        lines.append(reader.line_num)
        cells.append(row)
        if len(cells) == rows:
            yield lines, cells
            lines, cells = [], []
    if cells:
        yield lines, cells


def rows_of(reader: Any, source: str) -> Iterator[list[str]]:
    """Rows that are not blank."""
    try:
        yield from filter(None, reader)
    except csv.Error as error:
        where = f"Line {reader.line_num} of {source}"
        raise InputError(f"{where} cannot be read ({error}). Is a quote left open?") from None


def text_index() -> defaultdict[str, int]:
    """A dictionary that numbers what it is asked for in order of appearance."""
    index: defaultdict[str, int] = defaultdict()
    index.default_factory = index.__len__
    return index


def coded(index: defaultdict[str, int], texts: Sequence[str]) -> Integers:
    """The number of each text, new texts numbered as they come."""
    return np.fromiter(map(index.__getitem__, texts), np.intp, len(texts))


def called(path: str) -> str:
    """What to call a file in a message."""
    return "standard input" if path == "-" else f"'{path}'"


def listed(names: Iterable[str]) -> str:
    """Names of columns for a message."""
    return ", ".join(name or "(nameless)" for name in names)


def numbers_of(texts: Sequence[str]) -> Array | None:
    """Texts as numbers, or None if one of them is none. Python would take 1_2 for 12: not here."""
    if "_" in "".join(texts):
        return None
    try:
        return np.fromiter(map(float, texts), np.float64, len(texts))
    except ValueError:
        return None


def first_trouble(encode: Callable[[list[str]], Array], texts: Iterable[str]) -> tuple[str, str]:
    """The first text that is no coordinate, and why."""
    for text in texts:
        try:
            if not np.isfinite(encode([text])).all():
                return text, f"'{text}' is not a finite number."
        except DkrlsError as error:
            return text, str(error)
    raise AssertionError("every text is a coordinate, but all together they are none")


def csv_text(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows of equal keys as a CSV table; a cell without a value (None or NaN) is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: "" if _is_nan(value) else value for key, value in row.items()})
    return text.getvalue()


def csv_rows(text: str) -> list[dict[str, str]]:
    """The cells of a CSV table as `csv_text` writes it, row by row."""
    return list(csv.DictReader(io.StringIO(text)))


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
