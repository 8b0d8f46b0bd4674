"""``dkrls regrid``: a grid on other coordinates, in one step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.commands.fit import fit_settings, fit_sources, open_inputs, refuse_too_large
from dkrls_cli.cli.describe import (
    error_words,
    missing_words,
    model_rows,
    robust_words,
    shape_text,
)
from dkrls_cli.cli.output.answers import (
    ROW_FORMATS,
    AnswerOptions,
    answer_grids,
    asked_cells,
    asked_grids,
)
from dkrls_cli.cli.output.target import Target, chosen_target
from dkrls_cli.cli.report import Report, Result, edge
from dkrls_cli.cli.terminal.tables import pairs
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.cli.commands.fit import FittedVariable
    from dkrls_cli.files.source import Source
    from dkrls_cli.model.answering.answers import Query


@opt.expand
def regrid(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT", help="NetCDF, Zarr or CSV; several are joined; - is stdin."
        ),
    ],
    *,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="OUT", help=".nc, .zarr, .csv, .jsonl, .parquet, or -."
        ),
    ] = None,
    form: Annotated[
        opt.AnyFormat | None, typer.Option("--format", help="Default: what OUT ends in, or csv.")
    ] = None,
    like: opt.Like = None,
    at: opt.At = None,
    answers: AnswerOptions,
    options: opt.FitOptions,
    machine: opt.RunOptions,
    config: opt.Config = None,
    outputs: opt.GridOutputOptions,
    report: Report,
) -> None:
    """Bring a grid onto another one: fit and predict in one step.

    Dimensions that neither --like nor --at names keep their coordinates. What lies outside the
    range of the data stays missing, and so does land.

    Examples:
      dkrls regrid sst.nc -o sst-1deg.nc --like r360x180

      dkrls regrid 'run-*.nc' --var all -o coarse.nc --like other.nc --std

      dkrls regrid sst.nc -o coarse.nc --like r90x45 --mean --std

      dkrls regrid sst.nc -o part.nc --at lat=10:20:0.25 --at lon=0:30:0.25 --outside nearest
    """
    from dkrls_cli.threads import blas_threads

    with edge(report.debug):
        inputs = opt.read_by(inputs, options.engine)
        target = regrid_target(output, form, outputs, report, *inputs, like)
        if like is None and not at and not answers.mean_over:
            raise SettingError("Where should the grid go? Give --like GRID or --at DIM=SPEC.")
        answers.refuse_impossible()
        settings = fit_settings(options)
        errors = options.obs_error or ()
        sources = open_inputs(inputs, options.var, settings.level_names, report, errors)
        asked, cells = asked_cells([source.axes for source in sources], at, like)
        held = held_answers(sources, asked, target, answers.std)
        refuse_too_large(sources, settings, limit := machine.memory_limit, answers=held)
        fits = fit_sources(sources, settings, machine.threads, limit, inputs, report, history=False)
        start = perf_counter()
        with blas_threads(machine.threads):
            queries = asked_grids([one.model for one in fits], asked, answers, "missing", cells)
            answer_grids(queries, target, answers, report)
        seconds = perf_counter() - start
        together = list(zip(fits, queries, strict=True))
        results = [regrid_result(*one, target if one is together[-1] else None) for one in together]
        if target.path is not None:
            report.results(results, output=target.path, predict_seconds=seconds)


def regrid_target(
    output: str | None,
    form: str | None,
    outputs: opt.GridOutputOptions,
    report: Report,
    *inputs: str | None,
) -> Target:
    """Return where the grid goes, or raise if it cannot be written there."""
    if output is None:
        raise SettingError("Where should the grid be written? Give -o OUT.nc, or - for stdout.")
    target = chosen_target(output, form, report.json, outputs.overwrite, outputs.compress)
    target.refuse_unwritable(report, *inputs)
    return target


def held_answers(
    sources: Sequence[Source], asked: Sequence[dict[str, Any]], target: Target, std: bool
) -> int:
    """Return the bytes of all answers at the coordinates asked for; rows are not held."""
    from numpy import size

    from dkrls_cli.tuning.footprint import answer_memory

    if target.form in ROW_FORMATS:
        return 0
    cells = [
        math.prod(size(at[a.name]) if a.name in at else a.size for a in source.axes)
        for source, at in zip(sources, asked, strict=True)
    ]
    return answer_memory(sum(cells), std=std)


def regrid_result(fitted: FittedVariable, query: Query, target: Target | None) -> Result:
    """Return what was regridded; `target` is said of the last variable."""
    model = fitted.model
    facts: dict[str, Any] = {
        "variable": model.name,
        "from": shape_text(model.coverage.axes),
        "to": shape_text(query.axes),
        "outside": query.outside_count,
        "land": query.land_count,
        "cv_error": list(model.errors),
        "fit_seconds": fitted.seconds,
        "levels": model_rows(model),
    }
    words = {
        "variable": model.name,
        "from": facts["from"],
        "to": facts["to"],
        **missing_words(model),
        **robust_words(model),
        **error_words(model),
        "cv error": ", ".join(f"{error:.4g}" for error in dict.fromkeys(model.errors)),
        "fitted in": f"{fitted.seconds:.3g} s",
        **({"output": str(target.path)} if target else {}),
    }
    return facts, (pairs(words),)
