"""Rows of answers as text: CSV and JSON lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.text.csv.cells import parse_numbers
from dkrls_cli.files.text.points import PointBlock
from dkrls_cli.grid.axes import Axis

# Cells whose texts are in memory at once: a few MB.
_CELLS_AT_ONCE = 2**15

_UNSAFE_IN_CSV = re.compile(r'[,;\t"\r\n]|^[\s#]|\s$')
_ZERO_PADDED = re.compile(r"[+-]?0\d")
_JSON_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True)
class _Form:
    """How a row is written: what stands around its cells, and how a cell is spelt."""

    start: str
    between: str
    end: str
    missing: str
    has_header: bool
    key: Callable[[str], str]
    texts: Callable[[Sequence[str]], Sequence[str]]

    def pieces(self, name: str, texts: Sequence[str]) -> list[str]:
        """Return the cells of a column, each with what stands before and after it."""
        key, between = self.key(name), self.between
        return [f"{key}{text}{between}" for text in self.texts(texts)]


def _csv_texts(texts: Sequence[str]) -> Sequence[str]:
    """Return cells, in quotes where they need them; one look at all of them often finds none."""
    together = "".join(texts)
    if together.isascii() and not any(mark in together for mark in ',;\t"\r\n# '):
        return texts
    return [quote_cell(text) for text in texts]


def quote_cell(text: str) -> str:
    """Return the text of a CSV cell, in quotes where it needs them."""
    return '"' + text.replace('"', '""') + '"' if _UNSAFE_IN_CSV.search(text) else text


def _json_texts(texts: Sequence[str]) -> Sequence[str]:
    distinct = {text: _json_text(text) for text in set(texts)}
    return [distinct[text] for text in texts]


def _json_text(text: str) -> str:
    """Return a number if the text is one (007 is a name), null if it is empty or not finite."""
    if _JSON_NUMBER.fullmatch(text):
        return text
    numbers = None if _ZERO_PADDED.match(text) else parse_numbers([text or "nan"])
    if numbers is None:
        return json.dumps(text, ensure_ascii=False)
    return repr(float(numbers[0])) if np.isfinite(numbers[0]) else "null"


def _json_key(name: str) -> str:
    return f"{json.dumps(name, ensure_ascii=False)}: "


_FORMS = {
    "csv": _Form("", ",", "\n", "", True, lambda _: "", _csv_texts),
    "jsonl": _Form("{", ", ", "}\n", "null", False, _json_key, _json_texts),
}


@dataclass
class RowWriter:
    """A writer of rows to a text stream, as CSV with a header or as JSON lines.

    Floats are written with the shortest text that reads back as the same number, those that are
    not finite as an empty cell or null.

    Attributes
    ----------
    stream
        Where the rows go. Opened and closed by the caller.
    form
        ``csv`` or ``jsonl``.
    clean
        Makes names and labels safe to be shown, for a terminal; None to write them as they are.
    numbers
        Names of the columns of numbers that have been written: all but coordinates and texts.
    coordinates
        Axes of points by the names of their columns, as they have been written.

    Raises
    ------
    SettingError
        If the form is another.
    InputError
        On the first row, if an answer has the name of another column.

    Examples
    --------
    >>> import sys
    >>> writer = RowWriter(sys.stdout)
    >>> answers = {"sst": np.array([[20.5, np.nan], [0.1, 3.0]], np.float32)}
    >>> writer.write_cells(["time", "x"], [["2020-01-01", "2020-01-02"], ["a", "b"]], answers)
    time,x,sst
    2020-01-01,a,20.5
    2020-01-01,b,
    2020-01-02,a,0.1
    2020-01-02,b,3.0
    """

    stream: TextIO
    form: str = "csv"
    clean: Callable[[str], str] | None = None
    numbers: set[str] = field(default_factory=set, init=False)
    coordinates: dict[str, Axis] = field(default_factory=dict, init=False)
    _begun: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if self.form not in _FORMS:
            raise SettingError(f"Unknown format '{self.form}'. Choose from: {', '.join(_FORMS)}.")

    def write_points(
        self,
        block: PointBlock,
        answers: Mapping[str, NDArray[Any]],
        dims: Sequence[str] = (),
        texts: Sequence[Sequence[str]] = (),
    ) -> None:
        """Write the rows of a block as they were read, with a column per answer.

        With `dims`, every row is repeated for each cell of their product, in C order, and has a
        column per dimension before those of the answers. `texts` are the coordinates there, and the
        answers have one axis for the rows and one per dimension.
        """
        self.coordinates = {
            block.header[column]: replace(axis, dtype="float64")  # also where others are integers
            for axis, column in zip(block.axes, block.columns, strict=False)
            if column is not None
        }
        columns = zip(dims, texts, strict=True)
        inner = [
            "".join(cell) for cell in product(*(self._pieces(d, words) for d, words in columns))
        ]
        step = max(1, _CELLS_AT_ONCE // max(1, len(inner)))
        for start in range(0, max(1, len(block.cells)), step):
            cells = block.cells[start : start + step]
            pieces = [
                self._pieces(name, column)
                for name, column in zip(block.header, zip(*cells, strict=True), strict=False)
            ]
            outer = map("".join, zip(*pieces, strict=True))
            starts = (row + cell for row in outer for cell in inner)
            here = {name: values[start : start + step] for name, values in answers.items()}
            self._write([*block.header, *dims], starts, here)

    def write_cells(
        self,
        dims: Sequence[str],
        texts: Sequence[Sequence[str]],
        answers: Mapping[str, NDArray[Any]],
    ) -> None:
        """Write the cells of a grid in C order: a column per dimension, then one per answer."""
        columns = zip(dims, texts, strict=True)
        pieces = [self._pieces(dim, coordinates) for dim, coordinates in columns]
        self._write(dims, map("".join, product(*pieces)), answers)

    def write_records(self, names: Sequence[str], records: Iterable[Mapping[str, Any]]) -> None:
        """Write rows of texts and numbers, each with a value for every name.

        Texts are written as they are, also in JSON where they look like numbers of a label.
        """
        form = _FORMS[self.form]
        if not self._begun:
            if form.has_header:
                self.stream.write(form.between.join(form.texts(self._shown(names))) + form.end)
            self._begun = True
        keys = [form.key(name) for name in self._shown(names)]
        for record in records:
            self.numbers.update(name for name in names if not isinstance(record[name], str))
            cells = [self._cell(form, record[name]) for name in names]
            pairs = [key + cell for key, cell in zip(keys, cells, strict=True)]
            self.stream.write(form.start + form.between.join(pairs) + form.end)

    def _cell(self, form: _Form, value: Any) -> str:
        """Return one value as it is written."""
        if isinstance(value, str):
            (shown,) = self._shown([value])
            return form.texts([shown])[0] if shown or form.has_header else '""'
        return repr(float(value)) if np.isfinite(value) else form.missing

    def _write(
        self, names: Sequence[str], starts: Iterable[str], answers: Mapping[str, NDArray[Any]]
    ) -> None:
        form = _FORMS[self.form]
        if not self._begun:
            self._begin(names, answers)
        shown = zip(self._shown(list(answers)), answers.values(), strict=True)
        columns = [_answer_texts(form, name, values) for name, values in shown]
        ends = map(form.between.join, zip(*columns, strict=True)) if columns[1:] else columns[0]
        opening, closing = form.start, form.end
        self.stream.writelines(
            f"{opening}{start}{end}{closing}" for start, end in zip(starts, ends, strict=True)
        )

    def _begin(self, names: Sequence[str], answers: Iterable[str]) -> None:
        form = _FORMS[self.form]
        taken = [name for name in answers if name in names]
        if taken:
            raise InputError(
                f"There is a column '{taken[0]}' already, as the answers are named. Rename it."
            )
        if form.has_header:
            heads = self._shown([*names, *answers])
            self.stream.write(form.between.join(form.texts(heads)) + form.end)
        self.numbers.update(answers)
        self._begun = True

    def _pieces(self, name: str, texts: Sequence[str]) -> list[str]:
        """Return the cells of a column, each with what stands before and after it."""
        (shown,) = self._shown([name])
        return _FORMS[self.form].pieces(shown, self._shown(texts))

    def _shown(self, texts: Sequence[str]) -> Sequence[str]:
        """Return texts as they are written."""
        return texts if self.clean is None else [self.clean(text) for text in texts]


def _answer_texts(form: _Form, name: str, values: NDArray[Any]) -> list[str]:
    """Return numbers in C order as texts, with their key."""
    flat, key = values.ravel(), form.key(name)
    is_short = flat.dtype.kind == "f" and flat.dtype != np.float64
    texts = _short_texts(flat) if is_short else list(map(repr, flat.tolist()))
    for hole in np.flatnonzero(~np.isfinite(flat)).tolist():
        texts[hole] = form.missing
    return [key + text for text in texts] if key else texts


def number_text(value: float) -> str:
    """Return a number as the shortest text that reads back as it; nothing if it is not finite."""
    return repr(float(value)) if np.isfinite(value) else ""


def _short_texts(numbers: NDArray[Any]) -> list[str]:
    """Return single-precision floats as texts, as few digits as needed, exponents as Python has."""
    return [repr(float(text)) if "e" in text else text for text in map(str, numbers)]
