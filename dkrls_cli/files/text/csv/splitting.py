"""Tables in memory split all at once by pandas, many times faster than row by row.

Only regular tables are: whatever is odd about one is left to the reader of rows
(:mod:`dkrls_cli.files.text.csv.reader`), which says what and where.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.files.text.csv.cells import (
    NAN_SPELLINGS,
    Integers,
    Texts,
    code_texts,
    is_infinite,
    parse_values,
    text_index,
)

# Rows that show what is in a column: enough to tell coordinates, which repeat, from values.
_SAMPLE_ROWS = 1000

_QUOTED = re.compile('"([^"]*)"')


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
        odd = [place for place, text in enumerate(self.labels) if is_infinite(text)]
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
        na_values={place: NAN_SPELLINGS for place, kind in kinds.items() if kind == "float64"},
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
