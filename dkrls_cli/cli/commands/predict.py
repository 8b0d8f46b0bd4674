"""``dkrls predict``: answers from a model file."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.asking import AnswerOptions, asked_cells, asked_grids
from dkrls_cli.cli.expansion import expand
from dkrls_cli.cli.fitting.inputs import chosen_models
from dkrls_cli.cli.output.answers import HELD_CELLS, answer_grids, report_cells
from dkrls_cli.cli.output.ensembles import (
    EnsembleOptions,
    answer_ensembles,
    answer_point_ensembles,
)
from dkrls_cli.cli.output.plans import plan_answers, plan_parts, refuse_unplanned
from dkrls_cli.cli.output.points import Reading, answer_points
from dkrls_cli.cli.output.streams import (
    SchedulerOptions,
    refuse_rows,
    resume_key,
    write_streams,
)
from dkrls_cli.cli.output.target import Target, chosen_target
from dkrls_cli.cli.report import Report, Result, edge
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.model.answering.answers import Outside, Query
    from dkrls_cli.model.streaming.request import Streamed


@expand
def predict(
    model: opt.ModelFile,
    *,
    at: opt.At = None,
    like: opt.Like = None,
    points: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="Points, a column per dimension; --at for the others."),
    ] = None,
    output: opt.AnswerFile = None,
    form: opt.AnswerFormat = None,
    var: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", show_default="all", help="Variable of the model. Repeatable."),
    ] = None,
    answers: AnswerOptions,
    members: EnsembleOptions,
    machine: opt.RunOptions,
    scheduling: SchedulerOptions,
    dry_run: opt.DryRun = False,
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
        scheduling.begin()
        target = chosen_target(output, form, report.json, outputs.overwrite, outputs.compress)
        refuse_together(at=at, like=like, points=points)
        members.refuse_impossible()
        if points is not None:
            refuse_point_means(answers, at)
        if dry_run:
            refuse_unplanned(points=points, ensemble=members.ensemble)
        target.refuse_unwritable(report, model, like, points)
        with report.working(f"reading {model}"):
            models = chosen_models(model, var)
        refers = any(one.reference is not None for one in models)
        held = points is not None or members.ensemble or (answers.mean_over and answers.std)
        refuse_scheduling(model, scheduling, refers=refers, held=bool(held))
        if dry_run and refers and held:
            refuse_unplanned(std=True, mean_over=True)
        with ExitStack() as stack:
            stack.enter_context(blas_threads(machine.threads))
            reading = None
            if refers:
                scheduler = stack.enter_context(scheduling.open(machine.threads))
                reading = Reading(machine.memory_limit, scheduler)
            if points is not None:
                given = models, points, at, target, answers
                cells = (
                    answer_point_ensembles(*given, members, report, reading)
                    if members.ensemble
                    else answer_points(*given, report, reading)
                )
            else:
                asked, bounded = asked_cells(
                    [one.coverage.axes for one in models], at, like, report
                )
                usual: Outside = "refuse" if like is None else "missing"
                queries = asked_grids(models, asked, answers, usual, bounded)
                if dry_run:
                    results = plan_grids(queries, target, answers, reading, scheduling)
                    report.results(results, output=None)
                    return
                cells = answer_queries(
                    queries, target, answers, members, reading, scheduling, report
                )
        if target.path is not None:
            report.detail(f"{cells} cells written to {output}")
            if report.json:
                names = [one.name for one in models]
                known = {"variables": names} if names[1:] else {"variable": names[0]}
                report.result({"output": output, **known, "cells": cells, **members.facts})


def refuse_point_means(answers: AnswerOptions, at: Sequence[str] | None) -> None:
    """Raise SettingError if means are asked for at points, which have no cells."""
    if not (answers.mean_over or (answers.mean and not at)):
        return
    word = "--mean-over" if answers.mean_over else "--mean"
    raise SettingError(
        f"Points have no cells: {word} does not go with --points. Ask for a grid, or, for means "
        "over a dimension that the points do not have, give --mean-along DIM and --at DIM=SPEC."
    )


def refuse_scheduling(
    path: Path, scheduling: SchedulerOptions, *, refers: bool, held: bool
) -> None:
    """Raise SettingError for options of work part by part on answers that are not made so."""
    if refers and scheduling.resume and held:
        raise SettingError(
            "--resume is for answers on grids, without --ensemble and without --std of --mean-over."
        )
    if scheduling.is_given and not refers:
        raise SettingError(
            f"'{path}' holds its data: --scheduler and --resume are for models that refer to "
            "theirs."
        )


def answer_queries(
    queries: Sequence[Query],
    target: Target,
    answers: AnswerOptions,
    members: EnsembleOptions,
    reading: Reading | None,
    scheduling: SchedulerOptions,
    report: Report,
) -> int:
    """Write answers on grids, and return the number of cells.

    `reading` is None if models hold their data.
    """
    if reading is not None and not (members.ensemble or (answers.mean_over and answers.std)):
        return answer_references(queries, target, answers, reading, scheduling, report)
    if reading is not None:
        queries = [reading.refer(query) for query in queries]
    if members.ensemble:
        return answer_ensembles(queries, target, answers, members, report)
    return answer_grids(queries, target, answers, report)


def answer_references(
    queries: Sequence[Query],
    target: Target,
    answers: AnswerOptions,
    reading: Reading,
    scheduling: SchedulerOptions,
    report: Report,
) -> int:
    """Answer from the data that models refer to, part by part; return the number of cells."""
    from dkrls_cli.model.streaming.known import gather

    streams, scheduler = plan_references(queries, answers, reading), reading.scheduler
    if goes_in_parts(queries, target, scheduling):
        report_cells(queries, answers, report)
        key = resume_key() if scheduling.resume else None
        return write_streams(streams, scheduler, target, report, key=key)
    refuse_many(queries, target)
    with report.working("predicting"):
        known = [gather(one, scheduler) for one in streams]
    return answer_grids(known, target, answers, report)


def goes_in_parts(queries: Sequence[Query], target: Target, scheduling: SchedulerOptions) -> bool:
    """Return whether answers are written part by part, and not held until all are there."""
    is_large = sum(prod(query.shape) for query in queries) > HELD_CELLS
    if target.form in ("nc", "zarr") and target.path is not None:
        return is_large or scheduling.is_given
    return False


def plan_references(
    queries: Sequence[Query], answers: AnswerOptions, reading: Reading
) -> list[Streamed]:
    """Plan the parts in which models that refer to their data answer; no values are read."""
    from dkrls_cli.model.chunked.reference import open_reference
    from dkrls_cli.model.streaming.request import plan_stream

    streams = []
    for query in queries:
        source = open_reference(query.model)
        kept = tuple(axis.distinct for axis in source.axes)
        limit, workers = reading.limit, reading.scheduler.workers
        streams.append(plan_stream(source, kept, query, answers.std, limit, workers))
    return streams


def plan_grids(
    queries: Sequence[Query],
    target: Target,
    answers: AnswerOptions,
    reading: Reading | None,
    scheduling: SchedulerOptions,
) -> list[Result]:
    """Return what answers on grids would take; `reading` is None if models hold their data."""
    if reading is None:
        return plan_answers(queries, target, answers.std)
    held = not goes_in_parts(queries, target, scheduling)
    if held:
        refuse_many(queries, target)
    return plan_parts(plan_references(queries, answers, reading), target, held=held)


def refuse_many(queries: Sequence[Query], target: Target) -> None:
    """Raise SettingError if answers of models that refer to their data are too many to be held."""
    cells = sum(prod(query.shape) for query in queries)
    if cells > HELD_CELLS:
        refuse_rows(
            target, f"{cells} answers from data that the model refers to are too many to be held"
        )


def refuse_together(**given: object) -> None:
    """Raise SettingError if options exclude each other; --at goes with --like and --points."""
    named = [f"--{name}" for name, value in given.items() if value]
    if len(named) > 1 and named not in (["--at", "--like"], ["--at", "--points"]):
        raise SettingError(f"{' and '.join(named)} do not go together. Give one of them.")
