"""Text tables as rows and columns: opening, unpacking, splitting. The only door to CSV reading.

There are two ways to split a table. A reader of Python's csv module takes it row by row, as rows
come, and knows the line of each (`make_reader`, `read_header`, `read_batches`). A large table in
memory is split by pandas, many times faster, if it is regular (`split_columns`); whatever is odd
about a table is left to the reader, which says what and where.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import os
import re
import stat
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import IO, Any, TextIO, cast

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array
from dkrls_cli.errors import DkrlsError, InputError
from dkrls_cli.files.foreign.parquet import is_parquet, read_as_csv, text_size
from dkrls_cli.memory import available_bytes

# Rows that are split at a time: as many rows of text as stay in a processor's cache.
BATCH_ROWS = 256

# Bytes that are read at a time, and the share of the free memory that the bytes of a table may
# take: as columns they take several times as much.
_BLOCK, _MEMORY_SHARE = 2**22, 0.25
# What a compressed table may unfold to, in times its size, and bytes that are always allowed.
# Tables of numbers shrink to a third or a tenth; what shrinks to a hundredth is one number.
_LARGEST_RATIO, _LEAST_UNZIPPED = 100, 2**23
# Names that a message lists at most.
_MOST_LISTED = 12

_DELIMITERS = ",;\t"
_GZIP = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Rows that show what is in a column: enough to tell coordinates, which repeat, from values.
_SAMPLE_ROWS = 1000
_QUOTED = re.compile('"([^"]*)"')
_ABSENT = frozenset(("", "na", "n/a", "nan", "null", "none", "-", "."))
_MISSING = _ABSENT | {"inf", "+inf", "-inf"}
# What pandas takes for NaN; infinities stay, to be counted.
_SPELLINGS = sorted({f(text) for text in _ABSENT for f in (str, str.upper, str.title)} | {"NaN"})

Integers = NDArray[np.intp]
Texts = tuple[list[str], Integers]
"""Distinct texts in order of appearance, and which of them stands in each row."""


def is_missing(text: str) -> bool:
    """Return whether a cell says that there is no value."""
    return text.lower() in _MISSING


# --- Opening --------------------------------------------------------------------------------------


@contextmanager
def open_text(path: str) -> Iterator[TextIO]:
    """Open a file, or standard input (``-``), as text, unzipped if it is gzipped.

    Raises
    ------
    InputError
        If it cannot be read, while opening it or later in the block; the message says why.
    """
    with _open_raw(path) as raw, text_of(raw) as text:
        yield text


def read_bytes(path: str) -> bytes:
    """Return the bytes of a file or of standard input (``-``) as they are, or raise InputError."""
    most = _MEMORY_SHARE * available_bytes()
    with _open_raw(path) as raw:
        if os.path.isfile(path):
            _refuse_more(os.path.getsize(path), most, path)
            return raw.read()
        found, size = [], 0
        while block := raw.read(_BLOCK):  # a pipe may never end
            found.append(block)
            size += len(block)
            _refuse_more(size, most, path)
    return b"".join(found)


def _refuse_more(size: int, most: float, path: str) -> None:
    """Raise InputError if a table has more bytes than the memory has room for."""
    if size > most:
        raise InputError(
            f"{source_name(path)} has {size / 1e9:.3g} GB or more, too much for the memory of this "
            "machine. Give a part of it, or a NetCDF file."
        )


@contextmanager
def _open_raw(path: str) -> Iterator[IO[bytes]]:
    source = source_name(path)
    if path == "-" and sys.stdin is None:
        raise InputError(f"{source} is closed. Expected rows of values.")
    with explain_reading(source), ExitStack() as stack:
        if is_parquet(path):
            _refuse_more(text_size(path), _MEMORY_SHARE * available_bytes(), path)
            yield io.BytesIO(b"".join(read_as_csv(path)))
            return
        raw = sys.stdin.buffer if path == "-" else stack.enter_context(open(path, "rb"))
        _refuse_device(raw, source)
        yield raw


def _refuse_device(raw: IO[bytes], source: str) -> None:
    """Raise InputError if a stream is a device that never ends, such as /dev/zero."""
    try:
        number = raw.fileno()
        about = os.fstat(number)
    except (OSError, ValueError):  # of a stream in memory
        return
    endless = stat.S_ISCHR(about.st_mode) and not os.isatty(number)
    if endless and about.st_rdev != os.stat(os.devnull).st_rdev:
        raise InputError(f"{source} is a device. Expected a file or a pipe with rows of values.")


@contextmanager
def explain_reading(source: str) -> Iterator[None]:
    """Turn errors of reading into InputErrors of one line that name the source."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"There is no file {source}.") from None
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise InputError(
            f"{source} is not UTF-8 text (byte 0x{byte:02x}). Save it as UTF-8."
        ) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{source} is damaged ({error}). Compress it again.") from None
    except BrokenPipeError:  # of an output that is written meanwhile
        raise
    except OSError as error:
        raise InputError(f"{source} cannot be read ({error.strerror}).") from None


@contextmanager
def text_of(raw: IO[bytes]) -> Iterator[TextIO]:
    """Read bytes, gzipped or not, as UTF-8 text; the stream of bytes stays open."""
    text = io.TextIOWrapper(_unzip(raw), encoding="utf-8-sig", newline="")
    try:
        yield text
    finally:
        text.detach()


def unzip_bytes(raw: bytes) -> bytes:
    """Return bytes without the compression and the byte order mark that they may have.

    Raise InputError if they are compressed so far that hardly a table can be in them.
    """
    if not raw.startswith(_GZIP):
        return raw.removeprefix(_BYTE_ORDER_MARK)
    most = max(_LEAST_UNZIPPED, _LARGEST_RATIO * len(raw))
    with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise InputError(
            f"{len(raw)} compressed bytes hold more than {most / 1e6:.3g} MB, which is rarely a "
            "table. Unzip the file first if it is right."
        )
    return data.removeprefix(_BYTE_ORDER_MARK)


def _unzip(raw: IO[bytes]) -> IO[bytes]:
    """Return a stream as it is, or what is in it if it is gzipped."""
    if isinstance(raw, io.BytesIO):
        return io.BytesIO(unzip_bytes(raw.read()))
    seen = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast(Any, raw))
    gzipped = seen.peek(2)[:2] == _GZIP
    return cast(IO[bytes], gzip.GzipFile(fileobj=seen)) if gzipped else seen


# --- Row by row -----------------------------------------------------------------------------------


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


# --- All at once ----------------------------------------------------------------------------------


class TextColumn:
    """A column of a table: its texts, and its numbers where they are known without the texts.

    Attributes
    ----------
    name
        Name of the column.
    numbers
        Values of the rows, NaN where missing; None if the texts have to be parsed.
    """

    def __init__(
        self,
        name: str,
        texts: Texts | Callable[[], Texts],
        numbers: Array | None = None,
        infinite: int = 0,
    ) -> None:
        self.name = name
        self.numbers = numbers
        self._texts = texts
        self._infinite = infinite

    @property
    def labels(self) -> list[str]:
        """Distinct texts in order of appearance."""
        return self._coded[0]

    @property
    def codes(self) -> Integers:
        """Which of the distinct texts stands in each row."""
        return self._coded[1]

    @property
    def size(self) -> int:
        """Number of rows."""
        return (self.codes if self.numbers is None else self.numbers).size

    @property
    def infinite(self) -> int:
        """Number of rows with an infinite number, which counts as missing."""
        if self.numbers is not None:
            return self._infinite
        odd = [place for place, text in enumerate(self.labels) if _is_infinite(text)]
        return int(np.isin(self.codes, odd).sum()) if odd else 0

    @property
    def _coded(self) -> Texts:
        if callable(self._texts):
            self._texts = self._texts()
        return self._texts


def split_columns(
    data: bytes, head: int, names: Sequence[str], delimiter: str
) -> list[TextColumn] | None:
    """Split a table in memory by pandas, if that gives the same cells as the reader would.

    It does if every line below the header has as many delimiters as the header, none is a comment,
    and quotes stand around whole cells only.

    Parameters
    ----------
    data
        The table as UTF-8, not compressed.
    head
        Number of lines up to and including the header.
    names, delimiter
        Names of the columns, and what stands between them.

    Returns
    -------
    The columns, or None if the table has to be read row by row.
    """
    body = _regular_body(data, head, len(names), delimiter)
    if body is None:
        return None
    try:
        kinds = _column_kinds(body, delimiter)
        frame = _parse(body, delimiter, kinds)
        columns = [
            _number_column(name, frame[place].to_numpy(), body, delimiter, place)
            if kinds[place] == "float64"
            else TextColumn(name, _code_cells(frame[place]))
            for place, name in enumerate(names)
        ]
    except (ValueError, OverflowError):  # of pandas, or of a quote inside a cell
        return None
    return columns if len(frame) == body.count(b"\n") else None


def _regular_body(data: bytes, head: int, width: int, delimiter: str) -> bytes | None:
    """Return the lines below the header if each of them has the same number of cells, else None."""
    start = 0
    for _ in range(head):
        start = data.find(b"\n", start) + 1
        if not start:
            return None
    returns = data.count(b"\r", 0, start) - data.count(b"\r\n", 0, start)
    body = data[start:].rstrip(b"\r\n") + b"\n"
    comments = body.startswith(b"#") or b"\n#" in body
    if returns or comments or b"\0" in body or (delimiter != "\t" and b"\t" in body):
        return None
    marks = np.frombuffer(body, np.uint8)
    ends = marks[(marks == ord(delimiter)) | (marks == ord("\n"))] == ord("\n")
    if ends.size % width:
        return None
    ends = ends.reshape(-1, width)
    return body if ends[:, -1].all() and not ends[:, :-1].any() else None


def _column_kinds(body: bytes, delimiter: str) -> dict[int, str]:
    """Return how pandas should read each column, by a sample of its cells.

    Distinct numbers are parsed at once. Texts that repeat become categories, which is fast while
    they are few; all other cells stay texts.
    """
    ends = np.flatnonzero(np.frombuffer(body, np.uint8) == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])

    def sample(rows: Iterable[int]) -> list[tuple[str, ...]]:
        lines = (body[starts[row] : ends[row]].decode() for row in rows)
        cells = [[cell.strip() for cell in line.split(delimiter)] for line in lines]
        return list(zip(*cells, strict=True))

    middle = max(0, ends.size // 2 - _SAMPLE_ROWS // 2)
    together = sample(range(middle, min(ends.size, middle + _SAMPLE_ROWS)))
    apart = sample(range(0, ends.size, ends.size // _SAMPLE_ROWS + 1))
    pairs = enumerate(zip(together, apart, strict=True))
    return {place: _cell_kind(near, far) for place, (near, far) in pairs}


def _cell_kind(near: Sequence[str], far: Sequence[str]) -> str:
    """Return the kind of a column by cells of neighbouring rows and of rows far apart."""
    if _repeats(far):
        return "category"
    if not _repeats(near) and parse_values([*near, *far]) is not None:
        return "float64"
    return "object"


def _repeats(texts: Sequence[str]) -> bool:
    return 2 * len(set(texts)) <= len(texts)


def _parse(body: bytes, delimiter: str, kinds: Mapping[int, str], only: int | None = None) -> Any:
    """Return lines as a pandas DataFrame, or raise ValueError."""
    import pandas as pd

    version = tuple(int(part) for part in pd.__version__.split(".")[:2])
    # Before 3.1 the default is not exact to the last digit; since then the option is deprecated.
    exact: dict[str, Any] = {"float_precision": "round_trip"} if version < (3, 1) else {}
    return pd.read_csv(
        io.BytesIO(body),
        sep=delimiter,
        header=None,
        names=list(kinds),
        usecols=None if only is None else [only],
        index_col=False,
        dtype=cast(Any, kinds),
        quoting=csv.QUOTE_NONE,
        skipinitialspace=True,
        skip_blank_lines=False,
        keep_default_na=False,
        na_values={place: _SPELLINGS for place, kind in kinds.items() if kind == "float64"},
        engine="c",
        **exact,
    )


def _number_column(
    name: str, numbers: Array, body: bytes, delimiter: str, place: int
) -> TextColumn:
    """Return a column of numbers, whose texts are split off only if somebody asks for them."""

    def texts() -> Texts:
        width = body.count(delimiter.encode(), 0, body.index(b"\n")) + 1
        kinds = dict.fromkeys(range(width), "object")
        return _code_cells(_parse(body, delimiter, kinds, only=place)[place])

    infinite = int(np.count_nonzero(np.isinf(numbers)))
    return TextColumn(name, texts, np.where(np.isfinite(numbers), numbers, np.nan), infinite)


def _code_cells(cells: Any) -> Texts:
    """Return the distinct texts of a pandas column, or raise ValueError if a quote is odd."""
    import pandas as pd

    if cells.dtype == "category":
        codes = cells.cat.codes.to_numpy()
        order = pd.unique(codes)
        rank = np.empty(len(cells.cat.categories), np.intp)
        rank[order] = np.arange(order.size)
        found, codes = cells.cat.categories.to_numpy()[order], rank[codes]
    else:
        codes, found = pd.factorize(cells.to_numpy())
    texts = [str(text) for text in found]
    if any('"' in text for text in texts):
        index = text_index()
        codes = code_texts(index, [_unquote(text) for text in texts])[codes]
        texts = list(index)
    return [text.strip() for text in texts], codes.astype(np.intp, copy=False)


def _unquote(text: str) -> str:
    match = _QUOTED.fullmatch(text)
    if match is None and '"' in text:
        raise ValueError("a quote stands inside a cell, or a cell holds a delimiter or line end")
    return match[1] if match else text


# --- Cells ----------------------------------------------------------------------------------------


def text_index() -> defaultdict[str, int]:
    """Return a dictionary that numbers the texts it is asked for in order of appearance."""
    index: defaultdict[str, int] = defaultdict()
    index.default_factory = index.__len__
    return index


def code_texts(index: defaultdict[str, int], texts: Sequence[str]) -> Integers:
    """Return the number of each text in the index; new texts get the next numbers."""
    return np.fromiter(map(index.__getitem__, texts), np.intp, len(texts))


def source_name(path: str) -> str:
    """Return what to call a file in a message."""
    return "standard input" if path == "-" else f"'{path}'"


def join_names(names: Iterable[str]) -> str:
    """Return the names of columns as a list for a message, the first ones if they are many."""
    listed = list(names)
    more = len(listed) - _MOST_LISTED
    shown = ", ".join(name or "(nameless)" for name in listed[:_MOST_LISTED])
    return f"{shown} and {more} more" if more > 0 else shown


def parse_numbers(texts: Sequence[str]) -> Array | None:
    """Return texts as numbers, or None if one of them is none.

    Underscores are refused: Python would read 1_2 as 12.
    """
    if "_" in "".join(texts):
        return None
    try:
        return np.fromiter(map(float, texts), np.float64, len(texts))
    except ValueError:
        return None


def parse_values(texts: Sequence[str]) -> Array | None:
    """Return texts as numbers, NaN where missing or not finite; None if one is neither."""
    numbers = parse_numbers(texts)
    if numbers is None:
        numbers = parse_numbers(["nan" if is_missing(text) else text for text in texts])
    if numbers is not None:
        numbers[~np.isfinite(numbers)] = np.nan
    return numbers


def _is_infinite(text: str) -> bool:
    numbers = parse_numbers([text])
    return numbers is not None and bool(np.isinf(numbers[0]))


def find_bad_text(encode: Callable[[list[str]], Array], texts: Iterable[str]) -> tuple[str, str]:
    """Return the first text that is no coordinate, and why."""
    for text in texts:
        try:
            if not np.isfinite(encode([text])).all():
                return text, f"'{text}' is not a finite number."
        except DkrlsError as error:
            return text, str(error)
    raise AssertionError("every text is a coordinate by itself, but not all of them together")


# --- Small tables as text -------------------------------------------------------------------------


def csv_text(rows: Sequence[Mapping[str, object]]) -> str:
    """Return rows of equal keys as a CSV table; a cell without a value (None or NaN) is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: "" if _is_nan(value) else value for key, value in row.items()})
    return text.getvalue()


def csv_rows(text: str) -> list[dict[str, str]]:
    """Return the cells of a CSV table as `csv_text` writes it, row by row."""
    return list(csv.DictReader(io.StringIO(text)))


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
