"""``dkrls fit``: a grid to a model file."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkrls_cli import __version__
from dkrls_cli.cli import options as opt
from dkrls_cli.cli.describe import (
    cv_words,
    error_words,
    kernel_facts,
    level_rows,
    level_table,
    missing_words,
    model_rows,
    pole_facts,
    pole_words,
    robust_words,
    shape_text,
    tolerance_words,
)
from dkrls_cli.cli.output.chunks import fit_beyond_memory, refuse_several
from dkrls_cli.cli.output.chunks import plan_result as plan_result_beyond
from dkrls_cli.cli.output.pictures import check_picture
from dkrls_cli.cli.output.streams import SchedulerOptions, resume_key
from dkrls_cli.cli.output.target import check_file, refuse_other_ending
from dkrls_cli.cli.report import Report, Result, command_line, edge
from dkrls_cli.cli.terminal.tables import bytes_text, duration_text, pairs, table
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.files.source import Source
    from dkrls_cli.grid.axes import Axis
    from dkrls_cli.grid.grid import Grid
    from dkrls_cli.model.choosing import ChoiceCallback
    from dkrls_cli.model.model import Model
    from dkrls_cli.model.settings import Settings
    from dkrls_cli.tuning.candidates import LevelChoice
    from dkrls_cli.tuning.footprint import Footprint
    from dkrls_cli.tuning.spectra import SpectrumCache
    from dkrls_cli.tuning.trials.record import ChoiceRecord


@opt.expand
def fit(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT", help="NetCDF, Zarr or CSV; several are joined; - is stdin."
        ),
    ],
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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be done, and what it would take.")
    ] = False,
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
        inputs = opt.read_by(inputs, options.engine)
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


@dataclass(frozen=True, eq=False)
class FittedVariable:
    """The model of a variable, and what its fit took: cells, bytes of data, seconds.

    What was tried is None if it was not to be recorded.
    """

    model: Model
    cells: int
    data_bytes: int
    seconds: float
    tried: ChoiceRecord | None = None


def fit_sources(
    sources: Sequence[Source],
    settings: Settings,
    threads: int | None,
    limit: float,
    inputs: list[str],
    report: Report,
    *,
    history: bool = True,
    record: bool = False,
) -> list[FittedVariable]:
    """Fit a model of every variable; those on the same coordinates share their factors.

    `limit` is the memory that may be used. With `history`, that of the data begins with this
    command. With `record`, what was tried is kept.
    """
    from dkrls_cli.tuning.spectra import SpectrumCache
    from dkrls_cli.tuning.trials.record import ChoiceRecord

    shared = SpectrumCache() if sources[1:] else None
    fits = []
    for source in sources:
        grid = read_values(source, report)
        refuse_large_gaps(source, grid, settings, limit)
        grid = with_history(grid) if history else grid
        tried = ChoiceRecord() if record else None
        model, seconds = run_fit(
            grid, settings, threads, inputs, report, shared, source.errors_from, tried
        )
        fits.append(FittedVariable(model, grid.values.size, grid.values.nbytes, seconds, tried))
    return fits


def can_be_streamed(sources: Sequence[Source]) -> bool:
    """Return whether variables can be read part by part."""
    return all(source.reader is not None for source in sources)


def refuse_whole(sources: Sequence[Source], scheduling: SchedulerOptions) -> None:
    """Raise SettingError if work is to go part by part on what can only be read as a whole."""
    if scheduling.is_given and not can_be_streamed(sources):
        raise SettingError(
            f"'{sources[0].name}' can only be read as a whole: --scheduler and --resume are for "
            "NetCDF and Zarr. Leave them out."
        )


def refuse_idle(settings: Settings, scheduling: SchedulerOptions) -> None:
    """Raise SettingError if a fit would have nothing to distribute, and nothing to resume."""
    if scheduling.is_given and not (settings.compact or settings.tolerance is not None):
        raise SettingError(
            "A model that refers to its data reads few parts of it: --scheduler and --resume "
            "have nothing to do. Leave them out, or give --compact or --tolerance."
        )


def exceeds(sources: Sequence[Source], settings: Settings, limit: float, answers: int = 0) -> bool:
    """Return whether fits in memory would need more than is allowed."""
    return any(needs.memory > limit for needs in estimates(sources, settings, answers=answers))


def has_large_land(sources: Sequence[Source], settings: Settings, limit: float) -> bool:
    """Return whether a grid has land, and a fit through it would need more memory than allowed.

    One time of such a grid is looked at, and nothing of grids that are small enough.
    """
    from dkrls_cli.model.lasting.land import find_land

    if settings.missing == "error" or not can_be_streamed(sources):
        return False
    pairs = zip(sources, estimates(sources, settings, gaps=True), strict=True)
    return any(needs.memory > limit and find_land(source) is not None for source, needs in pairs)


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


def fit_origin(settings: Settings, inputs: Sequence[str]) -> dict[str, Any]:
    """Return where a model comes from: inputs, options and program."""
    return {
        "inputs": [Path(path).name for path in inputs],
        "options": asked_options(settings),
        "program": f"dkrls {__version__}",
    }


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


def fit_words(*inputs: str) -> list[str]:
    """Return the words of a command that fits files, to a model with the name of the first."""
    model = Path(inputs[0].replace("*", "").rstrip("/")).with_suffix(".npz")
    return ["fit", *inputs, "-o", model.name]


def last_slice(model: Model, path: Path) -> list[str]:
    """Return the words of a command that answers at the last coordinate of the last level."""
    axis = model.axes[model.grows]
    last = axis.take([axis.numbers.argmax()]).texts[0]
    return ["predict", str(path), "--at", f"{axis.name}={last}", "--std"]


def with_history(grid: Grid) -> Grid:
    """Return a grid whose history begins with this command."""
    from dkrls_cli.files.writing import history_line

    return replace(grid, style=grid.style.after(history_line(command_line())))


def fit_settings(options: opt.LevelOptions) -> Settings:
    """Return the settings that the options of a command give."""
    from dkrls_cli.model.settings import Settings

    whole = opt.FitOptions(**{**vars(opt.FitOptions()), **vars(options)})
    noise = whole.noise if isinstance(options, opt.FitOptions) else "joint"  # through gaps, always
    return Settings(
        **opt.level_settings(whole, noise),
        noise=whole.noise,
        missing=whole.missing,
        compact=whole.compact,
        dtype="float32" if whole.float32 else "float64",
        folds=whole.folds,
        bounds=whole.bounds,
        tolerance=whole.tolerance,
        group=whole.group,
        accept_inexact=whole.accept_inexact,
        poles=whole.poles,
        cell_means=whole.cell_means_along or whole.cell_means,
        robust=whole.robust,
    )


def open_inputs(
    inputs: list[str],
    var: Sequence[str] | None,
    levels: list[str] | None,
    report: Report,
    errors: Sequence[str] | None = None,
) -> list[Source]:
    """Open the files of variables; their values are not read yet.

    `errors` is what --obs-error was given; None for a command that has no such option.
    """
    from dkrls_cli.files.observed.errors import GivenErrors, open_with_errors
    from dkrls_cli.files.reading import open_variables

    given = GivenErrors.read(errors)
    with report.working("opening files"):
        if given:
            sources = open_with_errors(inputs, var or (), levels, given)
        else:
            sources = open_variables(inputs, var or (), levels)
    if errors is not None and not given:
        note_known_errors(inputs, sources, report)
    for source in sources:
        report.detail(f"{source.name}: {shape_text(source.axes)}, {source.dtype}")
    return sources


def note_known_errors(inputs: list[str], sources: Sequence[Source], report: Report) -> None:
    """Say that a file has standard errors of a variable, which are used on request only."""
    from dkrls_cli.files.observed.errors import known_errors

    for source in sources:
        name = known_errors(inputs, source)
        if name is not None:
            report.note(
                f"Note: '{name}' has standard errors of '{source.name}', which are not used. "
                f"--obs-error {name} uses them."
            )


def read_values(source: Source, report: Report) -> Grid:
    """Read the values of a variable, and report what was noticed on the way."""
    with report.working(f"reading {source.name}"):
        grid = source.grid().freeze()  # so that a model need not copy it
    report_notes(source, report)
    return grid


def report_notes(source: Source, report: Report) -> None:
    """Report what was decided or noticed while reading."""
    for note in source.notes:
        report.note(f"Note: {note}.")


def run_fit(
    grid: Grid,
    settings: Settings,
    threads: int | None,
    inputs: list[str],
    report: Report,
    shared: SpectrumCache | None = None,
    errors_from: float | str | None = None,
    record: ChoiceCallback | None = None,
) -> tuple[Model, float]:
    """Fit a model, and return it with the seconds that took; `record` is told what was tried."""
    from dkrls_cli.model.fit import error_origin, fit_grid
    from dkrls_cli.threads import blas_threads

    origin = {**fit_origin(settings, inputs), **error_origin(errors_from)}
    start = perf_counter()
    with report.working(f"fitting {shape_text(grid.axes)}") as done, blas_threads(threads):
        printed = both(choice_printer(report, grid.axes), record)
        watch = counting(printed, len(grid.axes), done)
        model = fit_grid(grid, settings, origin=origin, watch=watch, spectra=shared, tell=done)
    seconds = perf_counter() - start
    report_fit_notes(model, report)
    report_cell_means(model, report)
    if "land" in model.origin:
        report.note(f"Note: {model.origin['land']}. predict --mask none answers there.")
    return model, seconds


def asked_options(settings: Settings) -> dict[str, Any]:
    """Return the settings that were given, as a model file holds them: levels by their names."""
    names = {"levels": settings.level_names} if settings.levels is not None else {}
    return settings.given | names


def report_fit_notes(model: Model, report: Report) -> None:
    """Report the warnings of a fit, the coordinates it dropped, and its bounds."""
    for note in model.origin.get("notes", ()):
        report.note(f"Warning: {note}.")
    for note in model.origin.get("dropped_coordinates", ()):
        report.note(f"Note: {note}.")
    report_bounds(model, report)


def report_cell_means(model: Model, report: Report) -> None:
    """Report that the file tells of means or sums over cells, if they are taken for values."""
    from dkrls_cli.model.answering.cellmeans import told_means

    sums = told_means(model.axes, model.attrs, "sum")
    if sums:
        report.note(
            f"Note: cell_methods tells of sums over {' and '.join(sums)}: answers at new "
            "coordinates are sums over cells as wide as those of the data. For other cells, divide "
            "the data by the sizes of its cells first."
        )

    told = told_means(model.axes, model.attrs)
    if told and not model.cell_means:
        report.note(
            f"Note: cell_methods tells of means over {' and '.join(told)}, which are taken "
            "for values; --cell-means keeps them as means."
        )


def report_bounds(model: Model, report: Report) -> None:
    """Report the bounds that the file of a model tells, and how to turn them off."""
    if "bounds" in model.origin:
        off = " --bounds none turns that off." if model.bounds is not None else ""
        report.note(f"Note: {model.origin['bounds']}.{off}")


def counting(
    watch: ChoiceCallback | None, levels: int, done: Callable[[float], None]
) -> ChoiceCallback:
    """Return a callback that tells how many levels are chosen, the fit itself counting as one.

    Levels may be chosen twice, to see whether data goes on across the poles.
    """
    chosen = 0

    def count(dim: str, choice: LevelChoice) -> None:
        nonlocal chosen
        chosen += 1
        done(min(chosen, levels) / (levels + 1))
        if watch is not None:
            watch(dim, choice)

    return count


def both(one: ChoiceCallback | None, other: ChoiceCallback | None) -> ChoiceCallback | None:
    """Return a callback that calls two others; either may be None."""
    if one is None or other is None:
        return one or other

    def call(dim: str, choice: LevelChoice) -> None:
        one(dim, choice)
        other(dim, choice)

    return call


def choice_printer(report: Report, axes: Sequence[Axis]) -> ChoiceCallback | None:
    """Return a callback that prints the error of every kernel tried; None if not verbose."""
    if not report.verbose:
        return None
    from dkrls_cli.tuning.candidates import MEASURES

    by_name = {axis.name: axis for axis in axes}

    def print_choice(dim: str, choice: LevelChoice) -> None:
        best = min(trial.error for trial in choice.tried)
        known = [trial for trial in choice.curve if math.isfinite(trial.error)]
        rows = [
            {
                **kernel_facts(trial.kernel),
                "ridge": trial.ridge,
                "cv_error": trial.error,
                "": "#" * round(30 * best / trial.error) if trial.error else "#" * 30,
            }
            for trial in known
        ]
        units = by_name[dim].length_units
        scale = f"; sigma in {units}" if units else ""
        title = f"{dim}: error on {MEASURES[choice.measure]}, at the best ridge{scale}"
        report.detail("", title, table(rows) if rows else "every setting was given up")

    return print_choice


def estimates(
    sources: Sequence[Source],
    settings: Settings,
    *,
    gaps: bool = False,
    loaded: bool = False,
    saved: bool = False,
    besides: int = 0,
    answers: int = 0,
) -> list[Footprint]:
    """Estimate what fitting each of several variables takes, one after the other.

    With `gaps`, cells are missing; observations with errors take as much. With `loaded`, the data
    has been read, as that of tables always has. With `saved`, models are written. `besides` are
    bytes that are held during the fits, `answers` those of answers after them.
    """
    from dkrls_cli.memory import held_bytes, peak_bytes
    from dkrls_cli.model.settings import group_memory, pole_shape
    from dkrls_cli.tuning.footprint import Machine, footprint, kept_memory

    machine, kept, found = Machine(held_bytes(), peak_bytes()), besides, []
    for source in sources:
        in_holes = gaps or source.errors is not None
        whole = source.shape if source.errors is not None else pole_shape(source.axes, settings)
        needs = footprint(
            source.shape,
            source.dtype,
            storage=settings.dtype,
            compact=settings.compact,
            joint=settings.noise == "joint",
            gaps=in_holes,
            loaded=loaded or source.table is not None,
            saved=saved,
            others=kept,
            answers=answers,
            sphere=group_memory(source.axes, settings) if gaps else 0,
            added=math.prod(whole) - math.prod(source.shape),
            machine=machine,
        )
        found.append(needs)
        kept += kept_memory(whole, settings.dtype, "float64" if in_holes else source.dtype)
    return found


def refuse_too_large(
    sources: Sequence[Source],
    settings: Settings,
    limit: float,
    **held: Any,
) -> None:
    """Raise InputError if fits would need more memory than allowed, before any is used.

    Keywords are those of :func:`estimates`.
    """
    for source, needs in zip(sources, estimates(sources, settings, **held), strict=True):
        _refuse_above(limit, needs, f"Fitting {shape_text(source.axes)}", settings)
        if settings.robust:
            refuse_large_check(source, limit)


def refuse_large_check(source: Source, limit: float) -> None:
    """Raise InputError if checking a variable needs more memory than allowed."""
    from math import prod

    from dkrls_cli.errors import InputError
    from dkrls_cli.model.quality.check import check_memory

    needs = check_memory(prod(source.shape))
    if needs > limit:
        raise InputError(
            f"Checking {shape_text(source.axes)} needs about {bytes_text(needs)} of memory, more "
            f"than the {bytes_text(limit)} of --max-memory. Try a part of the grid, or a larger "
            "--max-memory."
        )


def refuse_large_gaps(
    source: Source, grid: Grid, settings: Settings, limit: float, *, loaded: bool = True
) -> None:
    """Raise InputError if cells are missing and fitting through them would need too much memory.

    Whether cells are missing is known only when the data has been read. It is then held by the
    process, which a part of it to be taken is not: that is not `loaded`.
    """
    if settings.missing == "error" or grid.is_complete:
        return
    (needs,) = estimates([source], settings, gaps=True, loaded=loaded)
    what = f"Fitting {shape_text(source.axes)} through its missing cells"
    _refuse_above(limit, needs, what, settings)


def _refuse_above(limit: float, needs: Footprint, what: str, settings: Settings) -> None:
    """Raise InputError if something needs more memory than the limit."""
    from dkrls_cli.errors import InputError

    if needs.memory > limit:
        other = ", --noise level (which needs less)" if settings.noise == "joint" else ""
        raise InputError(
            f"{what} needs about {bytes_text(needs.memory)} of memory, more than the "
            f"{bytes_text(limit)} of --max-memory. Try a part of the grid{other}, or a larger "
            "--max-memory."
        )


def check_output(
    output: Path | None, overwrite: bool, inputs: Sequence[str], report: Report
) -> Path:
    """Return where the model goes, or raise before any work if it cannot be written there."""
    if output is None:
        raise SettingError("Where should the model go? Give -o MODEL.npz, or --dry-run.")
    refuse_other_ending(output)
    check_file(output, overwrite, report, *inputs)
    return output


def plan_results(
    sources: Sequence[Source], settings: Settings, report: Report, *, answers: int | None = None
) -> list[Result]:
    """Check the settings as fits do, and return what these would do and take.

    Models are saved, or give `answers` of so many bytes instead.
    """
    held: dict[str, Any] = {"saved": True} if answers is None else {"answers": answers}
    complete = estimates(sources, settings, **held)
    with_gaps: Sequence[Footprint | None] = [None] * len(sources)
    if settings.missing == "model":
        with_gaps = estimates(sources, settings, gaps=True, **held)
    each = zip(sources, complete, with_gaps, strict=True)
    return [plan_result(*one, settings, report) for one in each]


def plan_result(
    source: Source, needs: Footprint, gaps: Footprint | None, settings: Settings, report: Report
) -> Result:
    """Check the settings as a fit does, and return what it would do and take.

    `gaps` is what it would take if cells are missing, which is known once the data is read.
    """
    from dkrls_cli.model.settings import plan_fit

    report_notes(source, report)
    if settings.allowed is not None:
        settings.allowed.check_units(source.name, source.attrs)
    plan = plan_fit(source.axes, settings, errors=source.errors is not None)
    for what, found in (("memory", needs), ("memory if cells are missing", gaps)):
        if found is not None:
            parts = {part: bytes_text(size) for part, size in found.parts.items()}
            report.detail("", f"{source.name}: {what}", pairs(parts))
    if_gaps = f", {bytes_text(gaps.memory)} if cells are missing" if gaps else ""
    rows = level_rows(source.axes, plan.hierarchy, plan.levels)
    facts: dict[str, Any] = {
        "variable": source.name,
        "cells": needs.cells,
        "memory_bytes": needs.memory,
        "memory_bytes_with_gaps": gaps.memory if gaps else None,
        "memory_parts": dict(needs.parts),
        "operations": needs.operations,
        "joint_ridge": plan.joint_ridge,
        "poles": plan.poles.kind if plan.poles else "none",
    }
    words = {
        "variable": source.name,
        "grid": shape_text(source.axes),
        "memory": f"about {bytes_text(needs.memory)}{if_gaps}",
        "work": f"about {needs.operations:.2g} operations",
        **({"joint ridge": plan.joint_ridge or "auto"} if plan.joint else {}),
        **({"poles": plan.poles.kind} if plan.poles else {}),
    }
    return {**facts, "levels": rows}, (pairs(words), level_table(rows))


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
