"""``dkrls predict``: answers from a model file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.output.answers import (
    AnswerOptions,
    answer_grids,
    asked_cells,
    asked_grids,
)
from dkrls_cli.cli.output.ensembles import (
    EnsembleOptions,
    answer_ensembles,
    answer_point_ensembles,
)
from dkrls_cli.cli.output.points import answer_points
from dkrls_cli.cli.output.target import chosen_target
from dkrls_cli.cli.report import Report, edge
from dkrls_cli.errors import SettingError
from dkrls_cli.spelling import suggest

if TYPE_CHECKING:
    from dkrls_cli.model.answering.answers import Outside
    from dkrls_cli.model.model import Model


@opt.expand
def predict(
    model: opt.ModelFile,
    *,
    at: opt.At = None,
    like: opt.Like = None,
    points: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="Points, a column per dimension; --at for the others."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="OUT", help=".nc, .zarr, .csv, .jsonl, .parquet, or -."
        ),
    ] = None,
    form: Annotated[
        opt.AnyFormat | None, typer.Option("--format", help="Default: what OUT ends in, or csv.")
    ] = None,
    var: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Variable of the model.  [all]  Repeatable."),
    ] = None,
    answers: AnswerOptions,
    members: EnsembleOptions,
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

      dkrls predict sst.npz --like other.nc --ensemble 50 -o members.nc

      dkrls predict sst.npz --derivative time --std -o trends.nc

      dkrls predict sst.npz --mean-over lat=20:60,lon=-60:0 --std
    """
    from dkrls_cli.threads import blas_threads

    with edge(report.debug):
        target = chosen_target(output, form, report.json, outputs.overwrite, outputs.compress)
        refuse_together(at=at, like=like, points=points)
        members.refuse_impossible()
        if answers.mean_over and points is not None:
            raise SettingError("--mean-over is of a grid: it does not go with --points.")
        if members.ensemble and answers.asks:
            raise SettingError(
                "--ensemble draws values: it does not go with means and derivatives."
            )
        target.refuse_unwritable(report, model, like, points)
        models = chosen_models(model, var)
        with blas_threads(threads):
            if points is not None:
                cells = (
                    answer_point_ensembles(models, points, at, target, answers, members, report)
                    if members.ensemble
                    else answer_points(models, points, at, target, answers, report)
                )
            else:
                asked, bounded = asked_cells([one.coverage.axes for one in models], at, like)
                usual: Outside = "refuse" if like is None else "missing"
                queries = asked_grids(models, asked, answers, usual, bounded)
                cells = (
                    answer_ensembles(queries, target, answers, members, report)
                    if members.ensemble
                    else answer_grids(queries, target, answers, report)
                )
        if target.path is not None:
            report.detail(f"{cells} cells written to {output}")
            if report.json:
                names = [one.name for one in models]
                known = {"variables": names} if names[1:] else {"variable": names[0]}
                report.result({"output": output, **known, "cells": cells, **members.facts})


def chosen_models(path: Path, var: Sequence[str] | None) -> list[Model]:
    """Return the models of a file that are named, or all without a name."""
    from dkrls_cli.model.saving import load_models

    models = load_models(path)
    if not var or list(var) == ["all"]:
        return list(models.values())
    for name in var:
        if name not in models:
            raise SettingError(
                f"'{path}' has no variable '{name}'. It has {', '.join(models)}."
                f"{suggest(name, models)}"
            )
    if len(set(var)) < len(var):
        raise SettingError(f"--var names a variable twice: {', '.join(var)}.")
    return [models[name] for name in var]


def refuse_together(**given: object) -> None:
    """Raise SettingError if options exclude each other; --at goes with --like and --points."""
    named = [f"--{name}" for name, value in given.items() if value]
    if len(named) > 1 and named not in (["--at", "--like"], ["--at", "--points"]):
        raise SettingError(f"{' and '.join(named)} do not go together. Give one of them.")
