"""``dkrls fit``: a grid to a model file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.describe import (
    cv_words,
    error_words,
    level_table,
    missing_words,
    model_rows,
    pole_facts,
    pole_words,
    robust_words,
    shape_text,
    tolerance_words,
)
from dkrls_cli.cli.expansion import expand
from dkrls_cli.cli.fitting.inputs import open_inputs, report_notes
from dkrls_cli.cli.fitting.memory import (
    can_be_streamed,
    exceeds,
    has_large_land,
    refuse_too_large,
    refuse_whole,
)
from dkrls_cli.cli.fitting.plans import plan_results
from dkrls_cli.cli.fitting.running import (
    FittedVariable,
    fit_origin,
    fit_settings,
    fit_sources,
    report_fit_notes,
)
from dkrls_cli.cli.fitting.suggestions import last_slice
from dkrls_cli.cli.output.chunks import fit_beyond_memory, refuse_several
from dkrls_cli.cli.output.chunks import plan_result as plan_result_beyond
from dkrls_cli.cli.output.pictures import check_picture
from dkrls_cli.cli.output.streams import SchedulerOptions, resume_key
from dkrls_cli.cli.output.target import check_file, refuse_other_ending
from dkrls_cli.cli.report import Report, Result, edge
from dkrls_cli.cli.terminal.tables import bytes_text, duration_text, pairs
from dkrls_cli.cli.texts import read_by
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.files.source import Source
    from dkrls_cli.model.settings import Settings


@expand
def fit(
    inputs: opt.Inputs,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="MODEL.npz", help="Where to write it.")
    ] = None,
    options: opt.FitOptions,
    machine: opt.RunOptions,
    scheduling: SchedulerOptions,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="PICTURE",
            help="Draw what was tried for every level: ends in .png, .svg or .pdf.",
        ),
    ] = None,
    dry_run: opt.DryRun = False,
    outputs: opt.OutputOptions,
    report: Report,
) -> None:
    """Turn a grid into a model.

    Settings that are not given are chosen by leaving out slices, dimension by dimension.

    Examples:
      dkrls fit sst.nc -o sst.npz

      dkrls fit 'run-*.nc' --var tas --sigma time=30 --sigma lat=5 -o tas.npz

      dkrls fit ocean.nc --var all -o ocean.npz --plot tried.png

      dkrls fit sensors.csv --levels sensor,time --kernel time=matern12 -o sensors.npz
    """
    with edge(report.debug):
        scheduling.begin()
        inputs = read_by(inputs, options.engine)
        settings = fit_settings(options)
        target = None if dry_run else check_output(output, outputs.overwrite, inputs, report)
        if plot is not None:
            check_plot(plot, dry_run, outputs.overwrite, report, *inputs, output)
        errors = options.obs_error or ()
        sources = open_inputs(inputs, options.var, settings.level_names, report, errors)
        limit = machine.memory_limit
        refuse_whole(sources, scheduling)
        refuse_idle(settings, scheduling)
        is_large = scheduling.is_given or exceeds(sources, settings, limit)
        is_large = is_large or has_large_land(sources, settings, limit)
        if is_large and can_be_streamed(sources):
            if plot is not None:
                raise SettingError(
                    "--plot is for fits in memory. Leave it out, or allow more memory."
                )
            if target is None:
                report.results([plan_result_beyond(one, settings, limit) for one in sources])
                return
            if scheduling.resume:
                refuse_several(sources)
            fits = fit_large(
                sources, settings, limit, scheduling, machine.threads, inputs, target, report
            )
            save_fits(fits, target, outputs.overwrite, report)
            report_fits(fits, target, None, report)
            return
        refuse_too_large(sources, settings, limit, saved=True)
        if target is None:
            report.results(plan_results(sources, settings, report))
            return
        threads, record = machine.threads, plot is not None
        fits = fit_sources(sources, settings, threads, limit, inputs, report, record=record)
        save_fits(fits, target, outputs.overwrite, report)
        if plot is not None:
            draw_trials(fits, plot, outputs.overwrite)
        report_fits(fits, target, plot, report)
        report.next_step(*last_slice(fits[0].model, target))


def check_plot(
    path: Path, dry_run: bool, overwrite: bool, report: Report, *others: str | Path | None
) -> None:
    """Raise an error if the picture of a fit cannot be written, or there will be no fit."""
    if dry_run:
        raise SettingError("--plot draws what a fit has tried, and --dry-run fits nothing.")
    check_picture(path, overwrite, report, *others)


def refuse_idle(settings: Settings, scheduling: SchedulerOptions) -> None:
    """Raise SettingError if a fit would have nothing to distribute, and nothing to resume."""
    if scheduling.is_given and not (settings.compact or settings.tolerance is not None):
        raise SettingError(
            "A model that refers to its data reads few parts of it: --scheduler and --resume "
            "have nothing to do. Leave them out, or give --compact or --tolerance."
        )


def fit_large(
    sources: Sequence[Source],
    settings: Settings,
    limit: float,
    scheduling: SchedulerOptions,
    threads: int | None,
    inputs: list[str],
    target: Path,
    report: Report,
) -> list[FittedVariable]:
    """Fit models of grids beyond memory."""
    from math import prod

    from dkrls_cli.model.streaming.request import source_bytes

    resumed = (target, resume_key()) if scheduling.resume else None
    fits = []
    with scheduling.open(threads) as scheduler:
        for source in sources:
            model, seconds = fit_beyond_memory(source, settings, limit, scheduler, report, resumed)
            report_notes(source, report)
            report_fit_notes(model, report)
            origin = {**fit_origin(settings, inputs), **model.origin}
            model = replace(model, origin=origin)
            fits.append(FittedVariable(model, prod(source.shape), source_bytes(source), seconds))
    return fits


def draw_trials(fits: Sequence[FittedVariable], path: Path, overwrite: bool) -> None:
    """Draw what was tried for every variable, in rows."""
    from dkrls_cli.plots.reports.panels import rows_figure
    from dkrls_cli.plots.reports.trials import trial_row
    from dkrls_cli.plots.style import write_figure

    rows = [
        trial_row(fitted.model, fitted.tried, fitted.model.name if fits[1:] else "")
        for fitted in fits
        if fitted.tried is not None
    ]
    write_figure(lambda: rows_figure(rows), path, overwrite=overwrite)


def save_fits(
    fits: Sequence[FittedVariable], target: Path, overwrite: bool, report: Report
) -> None:
    """Write the models of all variables to one file."""
    from dkrls_cli.model.saving import save_models

    with report.working(f"writing {target}"):
        save_models([fitted.model for fitted in fits], target, overwrite=overwrite)


def check_output(
    output: Path | None, overwrite: bool, inputs: Sequence[str], report: Report
) -> Path:
    """Return where the model goes, or raise before any work if it cannot be written there."""
    if output is None:
        raise SettingError("Where should the model go? Give -o MODEL.npz, or --dry-run.")
    refuse_other_ending(output)
    check_file(output, overwrite, report, *inputs)
    return output


def report_fits(
    fits: Sequence[FittedVariable], target: Path, plot: Path | None, report: Report
) -> None:
    """Report what was fitted, and where it was written and drawn."""
    size = target.stat().st_size
    data = sum(fitted.data_bytes for fitted in fits)
    place = f"{target}, {bytes_text(size)} for {bytes_text(data)} of data"
    found = [fit_result(fitted, place if fitted is fits[-1] else None) for fitted in fits]
    drawn = {} if plot is None else {"plot": str(plot)}
    report.results(found, model=str(target), file_bytes=size, **drawn)


def fit_result(fitted: FittedVariable, place: str | None) -> Result:
    """Return what was fitted; `place` is the file, said of the last variable in it."""
    model, rows = fitted.model, model_rows(fitted.model)
    facts: dict[str, Any] = {
        "variable": model.name,
        "cells": fitted.cells,
        "data_bytes": fitted.data_bytes,
        "seconds": fitted.seconds,
        "joint_ridge": model.joint_ridge,
        "dropped": model.dropped,
        "data_std": model.spread,
        "tolerance": model.origin.get("tolerance"),
        "missing": model.origin.get("missing"),
        "observation_errors": model.origin.get("observation_errors"),
        "poles": pole_facts(model),
    }
    words = {
        "variable": model.name,
        "grid": shape_text(model.axes),
        **missing_words(model),
        **robust_words(model),
        **error_words(model),
        **pole_words(model),
        **cv_words(model),
        **({"model": place} if place else {}),
        "fitted in": duration_text(fitted.seconds),
    }
    if model.joint_ridge is not None:
        words["joint ridge"] = f"{model.joint_ridge:g}"
    if model.dropped:
        words["dropped"] = f"{model.dropped:.3g} of the energy"
    words |= tolerance_words(model)
    return {**facts, "levels": rows}, (pairs(words), level_table(rows))
