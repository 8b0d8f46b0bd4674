"""``dkrls predict``: answers from a model file."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.points import answer_points
from dkrls_cli.cli.report import Report, command_line, edge
from dkrls_cli.cli.target import Target, chosen_target
from dkrls_cli.errors import SettingError
from dkrls_cli.grid.spec import parse_at

if TYPE_CHECKING:
    from dkrls_cli.arrays import Array
    from dkrls_cli.files.text.rows import RowWriter
    from dkrls_cli.grid.axes import Axis
    from dkrls_cli.model.answering.answers import Land, Query, Rules
    from dkrls_cli.model.model import Model

_ROW_FORMATS = ("csv", "jsonl", "json")
_BLOCK_CELLS = 2**15  # cells written at a time: a few MB of text, whatever the size of the grid


@dataclass(frozen=True)
class AnswerOptions:
    """Form of the answers, and where an answer is allowed."""

    std: Annotated[bool, typer.Option("--std", help="Add the standard error of every answer.")] = (
        False
    )
    smooth: opt.Smooth = False
    outside: Annotated[
        Literal["refuse", "missing", "nearest", "extrapolate"] | None,
        typer.Option(
            help="What to do outside the training range.  [missing with --like, else refuse]"
        ),
    ] = None
    allow_extrapolation: Annotated[
        bool, typer.Option("--allow-extrapolation", help="The same as --outside extrapolate.")
    ] = False
    mask: Annotated[
        str,
        typer.Option(
            metavar="model|none|FILE",
            help="What stays missing: cells that never had data (land), nothing, or cells where "
            "FILE has 0 or no value; the nearest cell decides.",
        ),
    ] = "model"

    def rules(self, model: Model, like: str | None = None) -> Rules:
        """Return the rules of answering that these options give for a model."""
        from dkrls_cli.model.answering.answers import Rules

        if self.allow_extrapolation and self.outside not in (None, "extrapolate"):
            raise SettingError(
                f"--allow-extrapolation and --outside {self.outside} do not go together."
            )
        usual = "refuse" if like is None else "missing"
        outside = "extrapolate" if self.allow_extrapolation else self.outside or usual
        return Rules(outside, read_land(self.mask, model), self.smooth)  # type: ignore[arg-type]


def read_land(mask: str, model: Model) -> Land:
    """Return which cells stay missing: the name of a rule, or the mask in a file."""
    if mask in ("model", "none"):
        return cast(Literal["model", "none"], mask)
    from dkrls_cli.files.reading import open_file
    from dkrls_cli.model.answering.coverage import coverage_of

    return coverage_of(open_file(mask).grid(), model.axes)


@opt.expand
def predict(
    model: opt.ModelFile,
    *,
    at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIM=SPEC",
            help="A value, 1,2,3, start:stop:step (of dates: step 7D, 6H, 1M), start:stop (the "
            "training coordinates in that range) or all. Repeatable.",
        ),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(metavar="GRID", help="Take the coordinates of a file, or a name: r360x180."),
    ] = None,
    points: Annotated[
        str | None,
        typer.Option(metavar="CSV", help="Points, a column per dimension; --at for the others."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="OUT", help=".nc, .zarr, .csv, .jsonl, or -."),
    ] = None,
    form: Annotated[
        opt.AnyFormat | None, typer.Option("--format", help="Default: what OUT ends in, or csv.")
    ] = None,
    answers: AnswerOptions,
    threads: opt.Threads = None,
    outputs: opt.GridOutputOptions,
    report: Report,
) -> None:
    """Answer from a model: on a grid, like another file, or at scattered points.

    Without --at, --like or --points, on the grid of the data. Without -o, CSV on stdout.

    Examples:
      dkrls predict sst.npz --at lat=10:20:0.25 --at time=2020-03-01 -o out.nc

      dkrls predict sst.npz --at time=2020-01-01:2020-12-31:7D --at lat=20:40 | head

      dkrls predict sst.npz --like other.nc -o regridded.nc

      dkrls predict sst.npz --points stations.csv --at time=all -o stations.nc
    """
    from dkrls_cli.model.model import load_model
    from dkrls_cli.threads import blas_threads

    with edge(report.debug):
        target = chosen_target(output, form, report.json, outputs.overwrite, outputs.compress)
        refuse_together(at=at, like=like, points=points)
        target.refuse_unwritable()
        loaded = load_model(model)
        with blas_threads(threads):
            if points is not None:
                cells = answer_points(loaded, points, at, target, answers, report)
            else:
                query = asked_grid(loaded, at, like, answers)
                cells = answer_grid(query, target, answers, report)
        if target.path is not None:
            report.detail(f"{cells} cells written to {output}")
            if report.json:
                report.result({"output": output, "variable": loaded.name, "cells": cells})


def refuse_together(**given: object) -> None:
    """Raise SettingError if options exclude each other; --at goes with --like and --points."""
    named = [f"--{name}" for name, value in given.items() if value]
    if len(named) > 1 and named not in (["--at", "--like"], ["--at", "--points"]):
        raise SettingError(f"{' and '.join(named)} do not go together. Give one of them.")


def asked_grid(
    model: Model, at: Sequence[str] | None, like: str | None, answers: AnswerOptions
) -> Query:
    """Return where to answer: the coordinates of a file, replaced by those of --at."""
    from dkrls_cli.model.answering.answers import ask

    asked: dict[str, Any] = {}
    if like is not None:
        from dkrls_cli.files.reading import read_coordinates

        asked = read_coordinates(like, model.axes)
    asked |= parse_at(at, model.axes)
    return ask(model, model.axes_at(asked), answers.rules(model, like), list(asked))


def answer_grid(query: Query, target: Target, answers: AnswerOptions, report: Report) -> int:
    """Write the answers on a product grid, and return the number of cells."""
    model = query.model
    report_missing(query, report)
    if target.form not in _ROW_FORMATS:
        with report.working("predicting"):
            values = query.values()
            std = query.std() if answers.std else None
        for note in write_answers(model, query.axes, values, std, target):
            report.note(f"Note: {note}.")
        return values.size
    texts, cells = [axis.texts for axis in query.axes], 0
    with rows_output(target, model.name) as writer:
        for part, values, std in query.blocks(_BLOCK_CELLS, std=answers.std):
            here = [words[p] for words, p in zip(texts, part, strict=True)]
            writer.write_cells(model.dims, here, columns(model, values, std))
            cells += values.size
    return cells


def report_missing(query: Query, report: Report) -> None:
    """Report how many cells stay missing, why, and how to change that."""
    cells = math.prod(query.shape)
    beyond, land = query.outside_count, query.land_count
    if land:
        report.note(
            f"Note: {land} of {cells} cells stay missing, where the data never had a value; "
            "--mask none answers there."
        )
    if beyond:
        report.note(
            f"Note: {beyond} of {cells} cells stay missing, outside the training range; "
            "--outside nearest or extrapolate answers there."
        )


def columns(model: Model, values: Array, std: Array | None) -> dict[str, Any]:
    """Return the answers, and their standard errors if there are any, in the stored type."""
    found = {model.name: values}
    if std is not None:
        found[model.std_variable()[0]] = std
    return {name: array.astype(model.style.dtype, copy=False) for name, array in found.items()}


@contextmanager
def rows_output(target: Target, name: str) -> Iterator[RowWriter]:
    """Yield a writer of rows to stdout, or to a file that appears when it is complete."""
    from dkrls_cli.files.output import atomic_write
    from dkrls_cli.files.text.rows import RowWriter

    if target.form == "json":
        rows = StringIO()
        yield RowWriter(rows, "jsonl")
        answers = rows.getvalue().rstrip("\n").replace("\n", ", ")
        typer.echo(f'{{"variable": {dumps(name)}, "answers": [{answers}]}}')
    elif target.path is None:
        yield RowWriter(sys.stdout, target.form)
    else:
        with (
            atomic_write(target.path, overwrite=target.overwrite) as temporary,
            open(temporary, "w", encoding="utf-8", newline="") as stream,
        ):
            yield RowWriter(stream, target.form)


def write_answers(
    model: Model, axes: Sequence[Axis], values: Array, std: Array | None, target: Target
) -> list[str]:
    """Write a grid of answers to a file, or to stdout through a temporary file; return notes."""
    from tempfile import TemporaryDirectory

    from dkrls_cli.files.writing import Field, write_grid, write_netcdf_to_stdout

    fields = [Field(model.name, values, axes, model.attrs, model.style)]
    if std is not None:
        name, attrs = model.std_variable()
        linked = {**model.attrs, "ancillary_variables": name}
        fields = [
            Field(model.name, values, axes, linked, model.style),
            Field(name, std, axes, attrs, model.style.of_errors),
        ]
    command, compress = command_line(), target.compress
    if target.path is not None:
        return write_grid(
            target.path, fields, command, overwrite=target.overwrite, compress=compress
        )
    with TemporaryDirectory() as folder:
        return write_netcdf_to_stdout(fields, command, Path(folder), compress=compress)
