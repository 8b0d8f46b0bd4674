"""Parquet tables, by pyarrow. The only door to that library.

A Parquet table is read as the CSV table of the same rows, and written from one, so that everything
that is done with tables is done with Parquet as well.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from dkrls_cli.errors import DkrlsError, InputError, OutputError
from dkrls_cli.grid.axes import Axis

ENDINGS = (".parquet", ".pq")
"""Endings of the names of Parquet tables."""

# First bytes of a Parquet table.
_MAGIC = b"PAR1"
# Columns in which pandas keeps the index of its rows: they are no data.
_INDEX = re.compile(r"__index_level_\d+__")
# Rows that are converted at a time: some MB of text.
_ROWS = 2**16
# Bytes of the text of one cell, to estimate the size of a table before it is read.
_BYTES_PER_CELL = 16
_INSTALL = "pip install 'dkrls-cli[parquet]'"


def is_parquet(path: str) -> bool:
    """Return whether a file is a Parquet table, by its name or else by its first bytes."""
    if not os.path.isfile(path):
        return False
    if path.lower().endswith(ENDINGS):
        return True
    with open(path, "rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def require_pyarrow(path: str, what: str) -> None:
    """Raise InputError if pyarrow is not installed; `what` is what it is needed for."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise InputError(f"'{path}' needs pyarrow to be {what}: {_INSTALL}.") from None


def text_size(path: str) -> int:
    """Return about how many bytes the rows of a Parquet table have as text."""
    with _opened(path) as file:
        return int(file.metadata.num_rows) * int(file.metadata.num_columns) * _BYTES_PER_CELL


def read_as_csv(path: str) -> Iterator[bytes]:
    """Yield a Parquet table as text in CSV, a header first, in parts.

    Dates are written as ISO 8601 has them, times of a zone as UTC; truth values are 0 and 1.

    Raises
    ------
    InputError
        If the table cannot be read, or a column holds neither numbers nor dates nor texts.
    """
    from pyarrow import csv

    with _opened(path) as file:
        names = [name for name in file.schema_arrow.names if not _INDEX.fullmatch(name)]
        yield _header(names)
        for part in file.iter_batches(_ROWS, columns=names):
            columns = [_plain(part.column(i), names[i], path) for i in range(part.num_columns)]
            stream = io.BytesIO()
            csv.write_csv(_table(columns, names), stream, csv.WriteOptions(include_header=False))
            yield stream.getvalue()


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    """Open a Parquet table; errors of pyarrow become InputErrors of one line."""
    require_pyarrow(path, "read")
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except DkrlsError:
        raise
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise InputError(f"'{path}' is not a Parquet table, or it is damaged ({reason}).") from None


def _header(names: Sequence[str]) -> bytes:
    quoted = (name.replace('"', '""') for name in names)
    return (",".join(f'"{name}"' for name in quoted) + "\n").encode()


def _table(columns: Sequence[Any], names: Sequence[str]) -> Any:
    import pyarrow as pa

    return pa.table(list(columns), names=list(names))


def _plain(column: Any, name: str, path: str) -> Any:
    """Return a column as numbers, dates or texts, or raise InputError if it holds others."""
    import pyarrow as pa
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        return _plain(column.cast(kind.value_type), name, path)
    if types.is_boolean(kind):
        return column.cast(pa.int8())
    if types.is_decimal(kind):
        return column.cast(pa.float64())
    if types.is_timestamp(kind):
        return _dates(column)
    if types.is_floating(kind) or types.is_integer(kind) or types.is_null(kind):
        return column
    if types.is_date(kind) or types.is_string(kind) or types.is_large_string(kind):
        return column
    raise InputError(
        f"Column '{name}' of '{path}' is of type {kind}. Expected numbers, dates or texts: leave "
        "it out of the table."
    )


def _dates(column: Any) -> Any:
    """Return times of UTC as text, to the second, or to the microsecond where they have them."""
    import pyarrow as pa
    from pyarrow import compute

    plain = column.cast(pa.timestamp(column.type.unit))
    try:
        return compute.strftime(plain.cast(pa.timestamp("s")), "%Y-%m-%dT%H:%M:%S")
    except pa.ArrowInvalid:  # casts refuse to lose digits
        return compute.strftime(plain.cast(pa.timestamp("us")), "%Y-%m-%dT%H:%M:%S")


def write_from_csv(
    source: str | os.PathLike[str],
    path: str | os.PathLike[str],
    coordinates: Mapping[str, Axis],
    numbers: Collection[str],
) -> None:
    """Write a table of text in CSV, with a header, as a Parquet table.

    Parameters
    ----------
    source
        The text. An empty cell of numbers is no value.
    path
        The Parquet table.
    coordinates
        Axes by the names of their columns, which hold numbers, dates or texts as the axes do.
    numbers
        Names of other columns of numbers. All others are texts, as they stand.

    Raises
    ------
    OutputError
        If the table cannot be written.
    """
    import pyarrow as pa

    kinds = {name: _kind(axis) for name, axis in coordinates.items()}
    kinds |= dict.fromkeys(numbers, pa.float64())
    try:
        try:
            _convert(source, path, kinds)
        except pa.ArrowInvalid:  # coordinates of points that are written in another way
            _convert(source, path, dict.fromkeys(numbers, pa.float64()))
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise OutputError(f"'{path}' cannot be written ({reason}).") from None


def _kind(axis: Axis) -> Any:
    """Return the type of the column of an axis: dates of other calendars are texts."""
    import pyarrow as pa

    if axis.labels is not None:
        return pa.string()
    if axis.time is not None:
        return pa.timestamp("us") if axis.values.dtype.kind == "M" else pa.string()
    return pa.int64() if axis.stored.dtype.kind in "iu" else pa.float64()


def _convert(source: Any, path: Any, kinds: dict[str, Any]) -> None:
    """Write the rows of a text as Parquet, part by part; columns of no known kind are texts."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    with open(source, "rb") as text:
        first = csv.read_csv(io.BytesIO(text.readline())).column_names
    types = {name: kinds.get(name, pa.string()) for name in first}
    reading = csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=False)
    parsing = csv.ParseOptions(newlines_in_values=True)
    schema = pa.schema(list(types.items()))
    with (
        parquet.ParquetWriter(path, schema) as writer,
        csv.open_csv(source, parse_options=parsing, convert_options=reading) as rows,
    ):
        for batch in rows:
            writer.write_batch(batch)
