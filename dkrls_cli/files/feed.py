"""Slices from a stream of rows, long CSV or JSON lines, each as soon as it is complete.

The rows of a slice follow one another. A slice is complete when its last cell has come, or when
the next slice begins; cells without a row are missing then.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.circle import nearest
from dkrls_cli.errors import DkrlsError, InputError
from dkrls_cli.files.source import UNWRITTEN
from dkrls_cli.files.text.csv.cells import is_missing, join_names
from dkrls_cli.files.text.csv.reader import make_reader, read_header, read_rows
from dkrls_cli.grid.alignment import coordinates_on
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.quantities import SeenValues
from dkrls_cli.spelling import suggest

_Cell = tuple[int, Any, tuple[Any, ...], Any]
"""Line, coordinate along the growing axis, coordinates along all others, and value."""


# Letters of a line: a row of ten thousand cells has fewer, and an endless one fills the memory.
_LONGEST_LINE = 2**22


@dataclass(frozen=True, eq=False)
class NewSlice:
    """A slice of a stream.

    Attributes
    ----------
    axis
        The growing axis at the one coordinate of the slice, in the terms of the model.
    values
        Values with the axes of the model, NaN where missing.
    """

    axis: Axis
    values: Array


@dataclass
class Feed:
    """A stream of text, read as slices with the dimensions of a model.

    Attributes
    ----------
    text
        Lines of text.
    axes, grows
        Axes of the model, and the place of the one along which slices come.
    name
        Name of the column of values; the stream may have another if it is the only one.
    source
        What to call the stream in messages.
    form
        Format of the lines, csv or jsonl, known once a slice has come.
    unusable
        Values so far that were infinite or beyond 9.9e36, and are taken as missing.
    suspect
        Warning of the first values that seem to mark missing ones; empty before.
    """

    text: Iterable[str]
    axes: list[Axis]
    grows: int
    name: str
    source: str
    form: str = "csv"
    unusable: int = 0
    suspect: str = ""

    def slices(self) -> Iterator[NewSlice]:
        """Yield the slices as they come, or raise InputError with the line of what is wrong."""
        lines, head = _bounded_lines(self.text, self.source), []
        for line in lines:
            head.append(line)
            if not _is_blank(line):
                break
        self.form = "jsonl" if head and head[-1].lstrip().startswith("{") else "csv"
        read = _json_rows if self.form == "jsonl" else _csv_rows
        dims = [axis.name for axis in self.axes]
        rows = read(chain(head, lines), dims, self.grows, self.name, self.source)
        gatherer, seen = _Gatherer(self.axes, self.grows, self.source), SeenValues()
        for found in gatherer.slices(rows):
            self.unusable = gatherer.unusable
            self.suspect = self.suspect or seen.mark_note(self.name, found.values)
            yield found


def _bounded_lines(text: Iterable[str], source: str) -> Iterator[str]:
    """Yield lines, or raise InputError if one is so long that it can be no row."""
    if not hasattr(text, "readline"):
        yield from text
        return
    while line := text.readline(_LONGEST_LINE):
        if len(line) >= _LONGEST_LINE:
            raise InputError(f"{source} has a line of more than {_LONGEST_LINE} letters.")
        yield line


def _csv_rows(
    lines: Iterator[str], dims: list[str], grows: int, name: str, source: str
) -> Iterator[_Cell]:
    reader, _ = make_reader(lines)
    header = read_header(reader, source)
    columns = _columns(header, dims, name, source)
    *places, value = columns
    first, others = places[grows], [p for i, p in enumerate(places) if i != grows]
    for row in read_rows(reader, source):
        if len(row) != len(header):
            raise InputError(
                f"Line {reader.line_num} of {source} has {len(row)} cells, the header "
                f"{len(header)}. Expected as many."
            )
        yield reader.line_num, row[first], tuple([row[p] for p in others]), row[value]


def _columns(names: Sequence[str], dims: Sequence[str], value: str, source: str) -> list[int]:
    """Return the places of the dimensions and of the values among the names."""
    lacking = [dim for dim in dims if dim not in names]
    if lacking:
        raise InputError(
            f"{source} has no column '{lacking[0]}'. It has {join_names(names)}."
            f"{suggest(lacking[0], names)}"
        )
    rest = [name for name in names if name not in dims]
    if value not in rest:
        if len(rest) != 1:
            raise InputError(
                f"{source} has no column '{value}' of values. Besides {join_names(dims)} it has "
                f"{join_names(rest) or 'none'}."
            )
        value = rest[0]
    return [list(names).index(name) for name in (*dims, value)]


def _json_rows(
    lines: Iterator[str], dims: list[str], grows: int, name: str, source: str
) -> Iterator[_Cell]:
    others = [dim for i, dim in enumerate(dims) if i != grows]
    value = None
    for number, line in enumerate(lines, start=1):
        if _is_blank(line):
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


def _is_blank(line: str) -> bool:
    """Return whether a line is blank, or a comment."""
    return line.startswith("#") or not line.strip()


def _object(line: str, where: str) -> Mapping[str, Any]:
    try:
        cell = json.loads(line)
    except RecursionError:
        raise InputError(f"{where} is nested too deeply. Expected a key per dimension.") from None
    except ValueError as error:
        raise InputError(f"{where} is not JSON ({error}).") from None
    if not isinstance(cell, dict):
        raise InputError(f"{where} is no object. Expected one with a key per dimension.")
    return cell


@dataclass
class _Gatherer:
    """Collects cells into slices."""

    axes: list[Axis]
    grows: int
    source: str
    places: dict[tuple[Any, ...], int] = field(default_factory=dict)
    unusable: int = 0

    def slices(self, rows: Iterator[_Cell]) -> Iterator[NewSlice]:
        """Yield slices, each as soon as it is complete."""
        count = int(np.prod([axis.size for i, axis in enumerate(self.axes) if i != self.grows]))
        cells: dict[int, float] = {}
        current, begun = None, 0
        for line, coordinate, others, value in rows:
            if cells and not self._is_same(coordinate, current):
                yield self._slice(current, begun, cells, count)
                cells = {}
            if not cells:
                current, begun = coordinate, line
            place = self.places.get(others)
            if place is None:
                place = self.places[others] = self._place(others, line)
            if place in cells:
                raise InputError(
                    f"Line {line} of {self.source} gives a cell of its slice again. Expected each "
                    "cell once."
                )
            cells[place] = self._number(value, line)
            if len(cells) == count:
                yield self._slice(current, begun, cells, count)
                cells = {}
        if cells:
            yield self._slice(current, begun, cells, count)

    def _is_same(self, text: Any, current: Any) -> bool:
        """Return whether two texts are one coordinate, as 12:00 and 12:00Z are.

        One that cannot be read is another: it is refused when its own slice ends.
        """
        grows = self.axes[self.grows]
        if text == current or grows.labels is not None:
            return str(text).strip() == str(current).strip()
        try:
            one, other = (grows.encode([_coordinate(grows, given)]) for given in (text, current))
        except (DkrlsError, OverflowError):
            return False
        return bool(one[0] == other[0])

    def _slice(self, text: Any, line: int, cells: Mapping[int, float], count: int) -> NewSlice:
        values = np.full(count, np.nan)
        values[list(cells)] = list(cells.values())
        shape = [1 if i == self.grows else axis.size for i, axis in enumerate(self.axes)]
        grows = self.axes[self.grows]
        axis = self._explain(lambda: coordinates_on(grows, [_coordinate(grows, text)]), line)
        if axis.labels is not None:
            self.axes[self.grows] = axis  # the next new label gets the next position
        return NewSlice(axis, values.reshape(shape))

    def _place(self, others: tuple[Any, ...], line: int) -> int:
        """Return the position in a slice of the cell at these coordinates."""
        axes = [axis for i, axis in enumerate(self.axes) if i != self.grows]
        pairs = zip(axes, others, strict=True)
        nodes = self._explain(
            lambda: [_node(axis, _coordinate(axis, text)) for axis, text in pairs], line
        )
        shape = [axis.size for axis in axes]
        return int(np.ravel_multi_index(nodes, shape)) if nodes else 0

    def _number(self, value: Any, line: int) -> float:
        """Return a value as a number, NaN if it is missing, or raise InputError."""
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
        if abs(number) < UNWRITTEN or math.isnan(number):
            return number
        self.unusable += 1
        return float("nan")

    def _explain(self, encode: Callable[[], Any], line: int) -> Any:
        """Call a function; errors that it raises get the line."""
        try:
            return encode()
        except DkrlsError as error:
            raise InputError(f"Line {line} of {self.source}: {error}") from None
        except OverflowError as error:
            raise InputError(
                f"Line {line} of {self.source}: a coordinate is too large ({error})."
            ) from None


def _coordinate(axis: Axis, value: Any) -> Any:
    """Return a coordinate without blanks around it; 1_2 is refused, which Python reads as 12."""
    if not isinstance(value, str):
        return value
    if "_" in value and axis.labels is None:
        raise InputError(f"'{value}' is not a number or date, as '{axis.name}' needs.")
    return value.strip()


def _node(axis: Axis, value: Any) -> int:
    """Return the place of a coordinate on an axis, or raise InputError if it is not on it."""
    near, same = nearest(axis.encode([value]), axis.numbers, axis.turn)
    if not same[0]:
        raise InputError(f"the model has no {axis.name} {value}.")
    return int(near[0])
