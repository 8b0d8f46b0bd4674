"""``dkrls predict``: answers from a model file."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
    from dkrls_cli.files.rows import RowWriter
    from dkrls_cli.grid.axes import Axis
    from dkrls_cli.model.model import Model

_ROWS = ("csv", "jsonl", "json")
_BLOCK_CELLS = 2**15


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file.")],
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
        str | None, typer.Option("--format", metavar="csv|jsonl|nc", help="Default: by the ending.")
    ] = None,
    std: Annotated[
        bool, typer.Option("--std", help="Add the standard error of every answer.")
    ] = False,
    smooth: opt.Smooth = False,
    allow_extrapolation: Annotated[
        bool, typer.Option("--allow-extrapolation", help="Answer outside the training range too.")
    ] = False,
    threads: opt.Threads = None,
    overwrite: opt.Overwrite = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
    debug: opt.Debug = False,
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

    with edge(debug):
        report = Report(json, quiet, verbose)
        target = chosen_target(output, form, json, overwrite)
        refuse_together(at=at, like=like, points=points)
        target.refuse_unwritable()
        loaded = load_model(model)
        with blas_threads(threads):
            if points is not None:
                cells = at_points(loaded, points, target, std, smooth, allow_extrapolation)
            else:
                axes = asked_axes(loaded, at, like)
                refuse_outside(axes, loaded, allow_extrapolation)
                cells = on_grid(loaded, axes, target, std, smooth, report)
        if target.path is not None:
            report.detail(f"{cells} cells written to {output}")
            if json:
                report.result({"output": output, "variable": loaded.name, "cells": cells}, "")


def refuse_together(**given: object) -> None:
    """Ways to say where, of which one is enough."""
    named = [f"--{name}" for name, value in given.items() if value]
    if len(named) > 1 and named != ["--at", "--like"]:
        raise SettingError(f"{' and '.join(named)} do not go together. Give one of them.")


def asked_axes(model: Model, at: Sequence[str] | None, like: str | None) -> list[Axis]:
    """Where to answer: the coordinates of a file, over them those of --at."""
    asked: dict[str, Any] = {}
    if like is not None:
        from dkrls_cli.files.reading import read_coordinates

        asked = read_coordinates(like, model.axes)
    return model.axes_at({**asked, **parse_at(at, model.axes)})


def refuse_outside(axes: Sequence[Axis], model: Model, allowed: bool) -> None:
    """Refuse coordinates outside the training range of a dimension that is no circle."""
    import numpy as np

    from dkrls_cli.circle import outside

    if allowed:
        return
    for axis, own, level in zip(axes, model.axes, model.cascade.levels, strict=True):
        beyond = outside(axis.numbers, own.numbers, level.kernel.period)
        if beyond.any():
            ends = own.take([own.numbers.argmin(), own.numbers.argmax()]).texts
            first = axis.take(np.flatnonzero(beyond)[:1]).texts[0]
            raise SettingError(
                f"{int(beyond.sum())} of {axis.size} coordinates of '{axis.name}' are outside the "
                f"training range {ends[0]} to {ends[1]}, the first {first}. "
                "--allow-extrapolation answers there all the same."
            )


def on_grid(
    model: Model, axes: Sequence[Axis], target: Target, std: bool, smooth: bool, report: Report
) -> int:
    """Answers on a product grid; the number of cells."""
    queries = model.queries(axes)
    if target.form not in _ROWS:
        with report.working("predicting"):
            values = model.cascade.predict(queries, smooth=smooth)
            spread = model.variance(queries, smooth=smooth) if std else None
        write_answers(model, axes, values, spread, target)
        return values.size
    texts, cells = [axis.texts for axis in axes], 0
    with rows_output(target, model.name) as writer:
        for part, values, errors in model.blocks_on(axes, _BLOCK_CELLS, std=std, smooth=smooth):
            here = [words[p] for words, p in zip(texts, part, strict=True)]
            writer.write_cells(model.dims, here, columns(model, values, errors))
            cells += values.size
    return cells


def at_points(
    model: Model,
    points: str,
    target: Target,
    std: bool,
    smooth: bool,
    allow_extrapolation: bool,
) -> int:
    """Answers at scattered points, as they come; the number of points."""
    from dataclasses import replace

    from dkrls_cli.files.points import point_blocks

    if target.form not in _ROWS:
        raise SettingError("Scattered points are written as csv or jsonl, not as a grid.")
    count = 0
    with rows_output(target, model.name) as writer:
        for block in point_blocks(points, model.axes):
            axes = [
                replace(axis, numbers=numbers, written=None)
                for axis, numbers in zip(model.axes, block.coordinates, strict=True)
            ]
            refuse_outside(axes, model, allow_extrapolation)
            where = block.coordinates
            answers = model.values_at(where, smooth=smooth)
            errors = model.std_at(where, smooth=smooth) if std else None
            writer.write_points(block, columns(model, answers, errors))
            writer.stream.flush()
            count += answers.size
    return count


def columns(model: Model, values: Array, errors: Array | None) -> dict[str, Any]:
    """Answers, and their standard errors if they were asked for, in the stored type."""
    found = {model.name: values}
    if errors is not None:
        found[model.std_variable()[0]] = errors
    return {name: array.astype(model.style.dtype, copy=False) for name, array in found.items()}


@contextmanager
def rows_output(target: Target, name: str) -> Iterator[RowWriter]:
    """A writer of rows to stdout, or to a file that appears when it is whole."""
    from dkrls_cli.files.output import atomic_write
    from dkrls_cli.files.rows import RowWriter

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
    model: Model, axes: Sequence[Axis], values: Array, spread: Array | None, target: Target
) -> None:
    """A grid of answers to a file, or to stdout by way of one."""
    from tempfile import TemporaryDirectory

    from dkrls_cli.files.writing import write_grid, write_netcdf_to_stdout

    variables: dict[str, tuple[Array, Mapping[str, Any]]] = {model.name: (values, model.attrs)}
    if spread is not None:
        name, attrs = model.std_variable()
        linked = {**model.attrs, "ancillary_variables": name}
        variables = {model.name: (values, linked), name: (spread**0.5, attrs)}
    command = command_line()
    if target.path is not None:
        write_grid(target.path, axes, variables, model.style, command, overwrite=target.overwrite)
        return
    with TemporaryDirectory() as folder:
        write_netcdf_to_stdout(axes, variables, model.style, command, Path(folder))
