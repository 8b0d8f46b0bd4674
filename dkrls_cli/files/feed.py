"""Slices from a stream of rows, each as soon as it is whole: long CSV, or JSON lines.

The rows of a slice follow one another. A slice is handed on when its last cell has come, or when
the next one begins: cells without a row are missing then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.circle import nearest
from dkrls_cli.errors import DkrlsError, InputError
from dkrls_cli.files.csv import header_of, listed, reader_of, rows_of
from dkrls_cli.files.source import UNWRITTEN
from dkrls_cli.files.tables import is_missing
from dkrls_cli.grid.alignment import coordinates_on
from dkrls_cli.grid.axes import Axis

Row = tuple[int, Any, tuple[Any, ...], Any]
"""Line, coordinate along the axis that grows, those along all others, and value."""


@dataclass(frozen=True, eq=False)
class NewSlice:
    """A slice of a stream.

    Attributes
    ----------
    axis
        Its one coordinate, in the terms of the model.
    values
        With the axes of the model, NaN where missing.
    """

    axis: Axis
    values: Array


@dataclass
class Feed:
    """A stream of text as slices with the dimensions of a model.

    Attributes
    ----------
    text
        Where lines come from.
    axes, grows
        Those of the model, and the place of the one along which slices come.
    name
        The column of values, if it is there.
    source
        What to call the stream in messages.
    form
        What the lines turn out to be, csv or jsonl, once a slice has come.
    """

    text: Iterable[str]
    axes: list[Axis]
    grows: int
    name: str
    source: str
    form: str = "csv"

    def slices(self) -> Iterator[NewSlice]:
        """The slices as they come."""
        lines, head = iter(self.text), []
        for line in lines:
            head.append(line)
            if not _says_nothing(line):
                break
        self.form = "jsonl" if head and head[-1].lstrip().startswith("{") else "csv"
        read = _json_rows if self.form == "jsonl" else _csv_rows
        dims = [axis.name for axis in self.axes]
        rows = read(chain(head, lines), dims, self.grows, self.name, self.source)
        yield from _Gatherer(self.axes, self.grows, self.source).slices(rows)


def _csv_rows(
    lines: Iterator[str], dims: list[str], grows: int, name: str, source: str
) -> Iterator[Row]:
    reader, _ = reader_of(lines)
    header = header_of(reader, source)
    columns = _columns(header, dims, name, source)
    *places, value = columns
    first, others = places[grows], [p for i, p in enumerate(places) if i != grows]
    for row in rows_of(reader, source):
        if len(row) != len(header):
            raise InputError(
                f"Line {reader.line_num} of {source} has {len(row)} cells, the header "
                f"{len(header)}. Expected as many."
            )
        yield reader.line_num, row[first], tuple([row[p] for p in others]), row[value]


def _columns(names: Sequence[str], dims: Sequence[str], value: str, source: str) -> list[int]:
    """Places of the dimensions and of the values."""
    lacking = [dim for dim in dims if dim not in names]
    if lacking:
        raise InputError(f"{source} has no column '{lacking[0]}'. It has {listed(names)}.")
    rest = [name for name in names if name not in dims]
    if value not in rest:
        if len(rest) != 1:
            raise InputError(
                f"{source} has no column '{value}' of values. Besides {listed(dims)} it has "
                f"{listed(rest) or 'none'}."
            )
        value = rest[0]
    return [list(names).index(name) for name in (*dims, value)]


def _json_rows(
    lines: Iterator[str], dims: list[str], grows: int, name: str, source: str
) -> Iterator[Row]:
    others = [dim for i, dim in enumerate(dims) if i != grows]
    value = None
    for number, line in enumerate(lines, start=1):
        if _says_nothing(line):
            continue
        cell = _object(line, f"Line {number} of {source}")
        if value is None:
            value = list(cell)[_columns(list(cell), dims, name, source)[-1]]
        lacking = [key for key in (*dims, value) if key not in cell]
        if lacking:
            raise InputError(f"Line {number} of {source} has no '{lacking[0]}'.")
        odd = [dim for dim in dims if type(cell[dim]) not in (str, int, float)]
        if odd:
            raise InputError(
                f"Line {number} of {source} has {json.dumps(cell[odd[0]])} for a coordinate of "
                f"'{odd[0]}'. Expected a number or a text."
            )
        yield number, cell[dims[grows]], tuple([cell[dim] for dim in others]), cell[value]


def _says_nothing(line: str) -> bool:
    """Whether a line is blank, or a comment."""
    return line.startswith("#") or not line.strip()


def _object(line: str, where: str) -> Mapping[str, Any]:
    try:
        cell = json.loads(line)
    except ValueError as error:
        raise InputError(f"{where} is not JSON ({error}).") from None
    if not isinstance(cell, dict):
        raise InputError(f"{where} is no object. Expected one with a key per dimension.")
    return cell


@dataclass
class _Gatherer:
    """Puts rows together to slices."""

    axes: list[Axis]
    grows: int
    source: str
    places: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def slices(self, rows: Iterator[Row]) -> Iterator[NewSlice]:
        """Slices, each as soon as it is whole."""
        count = int(np.prod([axis.size for i, axis in enumerate(self.axes) if i != self.grows]))
        cells: dict[int, float] = {}
        current, begun = None, 0
        for line, coordinate, others, value in rows:
            if cells and coordinate != current:
                yield self._slice(current, begun, cells, count)
                cells = {}
            if not cells:
                current, begun = coordinate, line
            place = self.places.get(others)
            if place is None:
                place = self.places[others] = self._place(others, line)
            if place in cells:
                raise InputError(f"Line {line} of {self.source} gives a cell of its slice again.")
            cells[place] = self._number(value, line)
            if len(cells) == count:
                yield self._slice(current, begun, cells, count)
                cells = {}
        if cells:
            yield self._slice(current, begun, cells, count)

    def _slice(self, text: Any, line: int, cells: Mapping[int, float], count: int) -> NewSlice:
        values = np.full(count, np.nan)
        values[list(cells)] = list(cells.values())
        shape = [1 if i == self.grows else axis.size for i, axis in enumerate(self.axes)]
        grows = self.axes[self.grows]
        axis = self._explained(lambda: coordinates_on(grows, [_coordinate(grows, text)]), line)
        if axis.labels is not None:
            self.axes[self.grows] = axis  # labels are numbered on
        return NewSlice(axis, values.reshape(shape))

    def _place(self, others: tuple[Any, ...], line: int) -> int:
        """Which cell of a slice stands at these coordinates."""
        axes = [axis for i, axis in enumerate(self.axes) if i != self.grows]
        pairs = zip(axes, others, strict=True)
        nodes = self._explained(
            lambda: [_node(axis, _coordinate(axis, text)) for axis, text in pairs], line
        )
        shape = [axis.size for axis in axes]
        return int(np.ravel_multi_index(nodes, shape)) if nodes else 0

    def _number(self, value: Any, line: int) -> float:
        if value is None or (isinstance(value, str) and is_missing(value.strip())):
            return float("nan")
        try:
            if isinstance(value, bool) or (isinstance(value, str) and "_" in value):
                raise ValueError
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise InputError(
                f"Line {line} of {self.source} has '{value}' for a value. Expected a number, or NA."
            ) from None
        return number if abs(number) < UNWRITTEN else float("nan")

    def _explained(self, encode: Callable[[], Any], line: int) -> Any:
        try:
            return encode()
        except DkrlsError as error:
            raise InputError(f"Line {line} of {self.source}: {error}") from None


def _coordinate(axis: Axis, value: Any) -> Any:
    """A coordinate without blanks around it. Python would take 1_2 for 12: not here."""
    if not isinstance(value, str):
        return value
    if "_" in value and axis.labels is None:
        raise InputError(f"'{value}' is no coordinate of '{axis.name}'.")
    return value.strip()


def _node(axis: Axis, value: Any) -> int:
    """Place of a coordinate on an axis."""
    text = str(value) if axis.labels is not None else value
    near, same = nearest(axis.encode([text]), axis.numbers, axis.turn)
    if not same[0]:
        raise InputError(f"the model has no {axis.name} {value}.")
    return int(near[0])
