"""Rows of text: to stdout, or to a file that appears when it is complete."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from io import StringIO
from json import dumps
from typing import TYPE_CHECKING, Any

import typer

from dkrls_cli.cli.output.target import Target
from dkrls_cli.cli.report import Report
from dkrls_cli.cli.terminal.clean import clean
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.arrays import Array
    from dkrls_cli.files.text.rows import RowWriter
    from dkrls_cli.grid.axes import Axis
    from dkrls_cli.model.model import Model

ROW_FORMATS = ("csv", "jsonl", "json", "parquet")
"""Formats that are written row by row."""

BLOCK_CELLS = 2**15
"""Cells written at a time: a few MB of text, whatever the size of the grid."""


def refuse_different_grids(variables: Sequence[tuple[str, Sequence[Axis]]]) -> None:
    """Raise SettingError if variables are on different grids, which rows cannot hold together."""
    (first, axes), *others = variables
    for name, own in others:
        if [(axis.name, axis.texts) for axis in own] != [(axis.name, axis.texts) for axis in axes]:
            raise SettingError(
                f"Variables '{first}' and '{name}' are on different grids, and rows have one. "
                "Write to a file that ends in .nc or .zarr, or choose by --var."
            )


def columns(model: Model, values: Array, std: Array | None) -> dict[str, Any]:
    """Return the answers, and their standard errors if there are any, in the stored type."""
    found = {model.name: values}
    if std is not None:
        found[model.std_variable()[0]] = std
    return {name: array.astype(model.style.dtype, copy=False) for name, array in found.items()}


def rows_progress(
    target: Target, report: Report
) -> AbstractContextManager[Callable[[float], None]]:
    """Return a context that shows the progress of rows, unless these are seen on the terminal."""
    if target.path is None and sys.stdout.isatty():
        return nullcontext(lambda fraction: None)
    return report.working("predicting")


def stdout_writer(form: str) -> RowWriter:
    """Return a writer of rows to stdout; names and labels are made safe for a terminal."""
    from dkrls_cli.files.text.rows import RowWriter

    return RowWriter(sys.stdout, form, clean if sys.stdout.isatty() else None)


@contextmanager
def rows_output(target: Target, names: Sequence[str], axes: Sequence[Axis]) -> Iterator[RowWriter]:
    """Yield a writer of rows to stdout, or to a file that appears when it is complete.

    The names are those of the variables, for an object of JSON. The axes say what the columns of
    coordinates hold, for Parquet, which is made of the rows when all are there.
    """
    from dkrls_cli.files.output.atomic import atomic_write
    from dkrls_cli.files.text.rows import RowWriter

    if target.form == "json":
        rows = StringIO()
        yield RowWriter(rows, "jsonl")
        answers = rows.getvalue().rstrip("\n").replace("\n", ", ")
        known = {"variables": list(names)} if names[1:] else {"variable": names[0]}
        typer.echo(f'{dumps(known)[:-1]}, "answers": [{answers}]}}')
    elif target.path is None:
        yield stdout_writer(target.form)
    elif target.form == "parquet":
        with parquet_output(target.path, target.overwrite, axes) as writer:
            yield writer
    else:
        with (
            atomic_write(target.path, overwrite=target.overwrite) as temporary,
            open(temporary, "w", encoding="utf-8", newline="") as stream,
        ):
            yield RowWriter(stream, target.form)


@contextmanager
def parquet_output(path: str, overwrite: bool, axes: Sequence[Axis]) -> Iterator[RowWriter]:
    """Yield a writer of rows of which a Parquet table is made when all are there."""
    from dkrls_cli.files.foreign.parquet import write_from_csv
    from dkrls_cli.files.output.atomic import atomic_write
    from dkrls_cli.files.output.leftovers import private_folder
    from dkrls_cli.files.text.rows import RowWriter

    with private_folder() as folder, atomic_write(path, overwrite=overwrite) as temporary:
        rows = folder / "rows.csv"
        with open(rows, "w", encoding="utf-8", newline="") as stream:
            yield (writer := RowWriter(stream))
        coordinates = {axis.name: axis for axis in axes} | writer.coordinates
        write_from_csv(rows, temporary, coordinates, writer.numbers)
