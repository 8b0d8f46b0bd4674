"""``dkrls predict``: answers from a model file."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import StringIO
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.report import Report, command_line, edge
from dkrls_cli.cli.target import Target, chosen_target
from dkrls_cli.errors import SettingError
from dkrls_cli.grid.spec import parse_at

if TYPE_CHECKING:
    from dkrls_cli.arrays import Array
    from dkrls_cli.files.text.rows import RowWriter
    from dkrls_cli.grid.axes import Axis
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
    allow_extrapolation: Annotated[
        bool,
        typer.Option("--allow-extrapolation", help="Answer outside the training range as well."),
    ] = False


@opt.expand
def predict(
    model: opt.ModelFile,
    *,
    at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIM=SPEC",
            help="A value, 1,2,3, start:stop:step (of dates: step 7D, 6H, 1M) or all. Repeatable.",
        ),
    ] = None,
    like: Annotated[
        str | None, typer.Option(metavar="GRID", help="Take the coordinates of this file.")
    ] = None,
    points: Annotated[
        str | None,
        typer.Option(metavar="CSV", help="Scattered points, a column per dimension; - is stdin."),
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
    outputs: opt.OutputOptions,
    report: Report,
) -> None:
    """Answer from a model: on a grid, like another file, or at scattered points.

    Without --at, --like or --points, at the training coordinates. Without -o, CSV on stdout.

    Examples:
      dkrls predict sst.npz --at lat=10:20:0.25 --at time=2020-03-01 -o out.nc

      dkrls predict sst.npz --at time=2020-01-01:2020-12-31:7D | head

      dkrls predict sst.npz --like other.nc -o regridded.nc

      dkrls predict sst.npz --points stations.csv > stations-sst.csv
    """
    from dkrls_cli.model.model import load_model
    from dkrls_cli.threads import blas_threads

    with edge(report.debug):
        target = chosen_target(output, form, report.json, outputs.overwrite)
        refuse_together(at=at, like=like, points=points)
        target.refuse_unwritable()
        loaded = load_model(model)
        with blas_threads(threads):
            if points is not None:
                cells = answer_points(loaded, points, target, answers)
            else:
                axes = asked_axes(loaded, at, like)
                if not answers.allow_extrapolation:
                    loaded.refuse_outside(axes)
                cells = answer_grid(loaded, axes, target, answers, report)
        if target.path is not None:
            report.detail(f"{cells} cells written to {output}")
            if report.json:
                report.result({"output": output, "variable": loaded.name, "cells": cells})


def refuse_together(**given: object) -> None:
    """Raise SettingError if more than one option says where to answer; --at may refine --like."""
    named = [f"--{name}" for name, value in given.items() if value]
    if len(named) > 1 and named != ["--at", "--like"]:
        raise SettingError(f"{' and '.join(named)} do not go together. Give one of them.")


def asked_axes(model: Model, at: Sequence[str] | None, like: str | None) -> list[Axis]:
    """Return where to answer: the coordinates of a file, replaced by those of --at."""
    asked: dict[str, Any] = {}
    if like is not None:
        from dkrls_cli.files.reading import read_coordinates

        asked = read_coordinates(like, model.axes)
    return model.axes_at({**asked, **parse_at(at, model.axes)})


def answer_grid(
    model: Model, axes: Sequence[Axis], target: Target, answers: AnswerOptions, report: Report
) -> int:
    """Write the answers on a product grid, and return the number of cells."""
    smooth = answers.smooth
    if target.form not in _ROW_FORMATS:
        with report.working("predicting"):
            values = model.values_on(axes, smooth=smooth)
            std = model.std_on(axes, smooth=smooth) if answers.std else None
        write_answers(model, axes, values, std, target)
        return values.size
    texts, cells = [axis.texts for axis in axes], 0
    with rows_output(target, model.name) as writer:
        for part, values, std in model.blocks_on(
            axes, _BLOCK_CELLS, std=answers.std, smooth=smooth
        ):
            here = [words[p] for words, p in zip(texts, part, strict=True)]
            writer.write_cells(model.dims, here, columns(model, values, std))
            cells += values.size
    return cells


def answer_points(model: Model, points: str, target: Target, answers: AnswerOptions) -> int:
    """Write the answers at scattered points as they come, and return the number of points."""
    from dkrls_cli.files.text.points import point_blocks

    if target.form not in _ROW_FORMATS:
        raise SettingError("Scattered points are written as csv or jsonl, not as a grid.")
    count = 0
    with rows_output(target, model.name) as writer:
        for block in point_blocks(points, model.axes):
            where = block.coordinates
            if not answers.allow_extrapolation:
                model.refuse_outside(
                    [
                        replace(axis, numbers=numbers, written=None)
                        for axis, numbers in zip(model.axes, where, strict=True)
                    ]
                )
            values = model.values_at(where, smooth=answers.smooth)
            std = model.std_at(where, smooth=answers.smooth) if answers.std else None
            writer.write_points(block, columns(model, values, std))
            writer.stream.flush()
            count += values.size
    return count


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
) -> None:
    """Write a grid of answers to a file, or to stdout through a temporary file."""
    from tempfile import TemporaryDirectory

    from dkrls_cli.files.writing import write_grid, write_netcdf_to_stdout

    variables: dict[str, tuple[Array, Mapping[str, Any]]] = {model.name: (values, model.attrs)}
    if std is not None:
        name, attrs = model.std_variable()
        linked = {**model.attrs, "ancillary_variables": name}
        variables = {model.name: (values, linked), name: (std, attrs)}
    command = command_line()
    if target.path is not None:
        write_grid(target.path, axes, variables, model.style, command, overwrite=target.overwrite)
        return
    with TemporaryDirectory() as folder:
        write_netcdf_to_stdout(axes, variables, model.style, command, Path(folder))
