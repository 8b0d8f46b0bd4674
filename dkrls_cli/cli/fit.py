"""``dkrls fit``: a grid to a model file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkrls_cli import __version__
from dkrls_cli.cli import options as opt
from dkrls_cli.cli.describe import (
    kernel_facts,
    level_rows,
    level_table,
    missing_words,
    model_rows,
    shape_text,
)
from dkrls_cli.cli.output.target import refuse_other_ending
from dkrls_cli.cli.report import Report, Result, command_line, edge
from dkrls_cli.cli.terminal.tables import bytes_text, pairs, table
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.files.source import Source
    from dkrls_cli.grid.axes import Axis
    from dkrls_cli.grid.grid import Grid
    from dkrls_cli.model.choosing import ChoiceCallback
    from dkrls_cli.model.model import Model
    from dkrls_cli.model.settings import Settings
    from dkrls_cli.tuning.slices import LevelChoice
    from dkrls_cli.tuning.spectra import SpectrumCache


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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be done, and what it would take.")
    ] = False,
    config: opt.Config = None,
    outputs: opt.OutputOptions,
    report: Report,
) -> None:
    """Turn a grid into a model.

    Settings that are not given are chosen by leaving out slices, dimension by dimension.

    Examples:
      dkrls fit sst.nc -o sst.npz

      dkrls fit 'run-*.nc' --var tas --sigma time=30 --sigma lat=5 -o tas.npz

      dkrls fit ocean.nc --var all -o ocean.npz

      dkrls fit sensors.csv --levels sensor,time --kernel time=matern12 -o sensors.npz
    """
    with edge(report.debug):
        settings = fit_settings(options)
        target = None if dry_run else check_output(output, outputs.overwrite)
        sources = open_inputs(inputs, options.var, settings.level_names, report)
        for source in sources:
            refuse_too_large(source, machine.memory_limit)
        if target is None:
            report.results([plan_result(source, settings, report) for source in sources])
            return
        fits = fit_sources(sources, settings, machine.threads, inputs, report)
        save_fits(fits, target, outputs.overwrite)
        report_fits(fits, target, report)


@dataclass(frozen=True, eq=False)
class FittedVariable:
    """The model of a variable, and what its fit took: cells, bytes of data, seconds."""

    model: Model
    cells: int
    data_bytes: int
    seconds: float


def fit_sources(
    sources: Sequence[Source],
    settings: Settings,
    threads: int | None,
    inputs: list[str],
    report: Report,
    *,
    history: bool = True,
) -> list[FittedVariable]:
    """Fit a model of every variable; those on the same coordinates share their factors.

    With `history`, that of the data begins with this command.
    """
    from dkrls_cli.tuning.spectra import SpectrumCache

    shared = SpectrumCache() if sources[1:] else None
    fits = []
    for source in sources:
        grid = read_values(source, report)
        grid = with_history(grid) if history else grid
        model, seconds = run_fit(grid, settings, threads, inputs, report, shared)
        fits.append(FittedVariable(model, grid.values.size, grid.values.nbytes, seconds))
    return fits


def save_fits(fits: Sequence[FittedVariable], target: Path, overwrite: bool) -> None:
    """Write the models of all variables to one file."""
    from dkrls_cli.model.saving import save_models

    save_models([fitted.model for fitted in fits], target, overwrite=overwrite)


def with_history(grid: Grid) -> Grid:
    """Return a grid whose history begins with this command."""
    from dkrls_cli.files.writing import history_line

    return replace(grid, style=grid.style.after(history_line(command_line())))


def fit_settings(options: opt.LevelOptions) -> Settings:
    """Return the settings that the options of a command give."""
    from dkrls_cli.model.settings import Settings

    whole = opt.FitOptions(**{**vars(opt.FitOptions()), **vars(options)})
    return Settings(
        opt.names(whole.levels),
        opt.setting(whole.kernel, "--kernel"),
        opt.setting(whole.sigma, "--sigma"),
        opt.setting(whole.ridge, "--ridge"),
        opt.setting(whole.period, "--period"),
        whole.noise,
        whole.missing,
        compact=whole.compact,
        dtype="float32" if whole.float32 else "float64",
        folds=whole.folds,
        bounds=whole.bounds,
    )


def open_inputs(
    inputs: list[str], var: Sequence[str] | None, levels: list[str] | None, report: Report
) -> list[Source]:
    """Open the files of variables; their values are not read yet."""
    from dkrls_cli.files.reading import open_variables

    with report.working("opening files"):
        sources = open_variables(inputs, var or (), levels)
    for source in sources:
        report.detail(f"{source.name}: {shape_text(source.axes)}, {source.dtype}")
    return sources


def read_values(source: Source, report: Report) -> Grid:
    """Read the values of a variable, and report what was noticed on the way."""
    with report.working(f"reading {source.name}"):
        grid = source.grid()
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
) -> tuple[Model, float]:
    """Fit a model, and return it with the seconds that took."""
    from dkrls_cli.model.fit import fit_grid
    from dkrls_cli.threads import blas_threads

    origin = {
        "inputs": [Path(path).name for path in inputs],
        "options": settings.given,
        "program": f"dkrls {__version__}",
    }
    start = perf_counter()
    with report.working(f"fitting {shape_text(grid.axes)}"), blas_threads(threads):
        watch = choice_printer(report, grid.axes)
        model = fit_grid(grid, settings, origin=origin, watch=watch, spectra=shared)
    seconds = perf_counter() - start
    report_fit_notes(model, report)
    if "land" in model.origin:
        report.note(f"Note: {model.origin['land']}. predict --mask none answers there.")
    return model, seconds


def report_fit_notes(model: Model, report: Report) -> None:
    """Report the warnings of a fit, the coordinates it dropped, and its bounds."""
    for note in model.origin.get("notes", ()):
        report.note(f"Warning: {note}.")
    for note in model.origin.get("dropped_coordinates", ()):
        report.note(f"Note: {note}.")
    report_bounds(model, report)


def report_bounds(model: Model, report: Report) -> None:
    """Report the bounds that the file of a model tells, and how to turn them off."""
    if "bounds" in model.origin:
        off = " --bounds none turns that off." if model.bounds is not None else ""
        report.note(f"Note: {model.origin['bounds']}.{off}")


def choice_printer(report: Report, axes: Sequence[Axis]) -> ChoiceCallback | None:
    """Return a callback that prints the error of every kernel tried; None if not verbose."""
    if not report.verbose:
        return None
    by_name = {axis.name: axis for axis in axes}

    def print_choice(dim: str, choice: LevelChoice) -> None:
        best = min(trial.error for trial in choice.tried)
        rows = [
            {
                **kernel_facts(trial.kernel),
                "ridge": trial.ridge,
                "cv_error": trial.error,
                "": "#" * round(30 * best / trial.error) if trial.error else "#" * 30,
            }
            for trial in choice.curve
        ]
        units = by_name[dim].length_units
        scale = f"; sigma in {units}" if units else ""
        report.detail(f"\n{dim}: error on slices left out, at the best ridge{scale}")
        report.detail(table(rows))

    return print_choice


def refuse_too_large(source: Source, limit: int | None) -> None:
    """Raise InputError if a fit would need more memory than allowed, before any is used."""
    from dkrls_cli.cascade.fit import footprint
    from dkrls_cli.errors import InputError

    needed = footprint(source.shape, source.dtype).memory
    if limit is not None and needed > limit:
        raise InputError(
            f"Fitting {shape_text(source.axes)} needs about {bytes_text(needed)} of memory, more "
            f"than --max-memory {bytes_text(limit)}. Raise it, or fit a part of the grid."
        )


def check_output(output: Path | None, overwrite: bool) -> Path:
    """Return where the model goes, or raise before any work if it cannot be written there."""
    from dkrls_cli.files.output import check_writable

    if output is None:
        raise SettingError("Where should the model go? Give -o MODEL.npz, or --dry-run.")
    refuse_other_ending(output)
    check_writable(output, overwrite=overwrite)
    return output


def plan_result(source: Source, settings: Settings, report: Report) -> Result:
    """Check the settings as a fit does, and return what it would do and take."""
    from dkrls_cli.cascade.fit import footprint
    from dkrls_cli.model.settings import plan_fit

    report_notes(source, report)
    plan = plan_fit(source.axes, settings)
    needs = footprint(source.shape, source.dtype)
    rows = level_rows(source.axes, plan.hierarchy, plan.levels)
    facts: dict[str, Any] = {
        "variable": source.name,
        "cells": needs.cells,
        "memory_bytes": needs.memory,
        "operations": needs.operations,
        "joint_ridge": plan.joint_ridge,
    }
    words = {
        "variable": source.name,
        "grid": shape_text(source.axes),
        "memory": f"about {bytes_text(needs.memory)}",
        "work": f"about {needs.operations:.2g} operations",
        **({"joint ridge": plan.joint_ridge or "auto"} if plan.joint else {}),
    }
    return {**facts, "levels": rows}, (pairs(words), level_table(rows))


def report_fits(fits: Sequence[FittedVariable], target: Path, report: Report) -> None:
    """Report what was fitted, and where it was written."""
    size = target.stat().st_size
    data = sum(fitted.data_bytes for fitted in fits)
    place = f"{target}, {bytes_text(size)} for {bytes_text(data)} of data"
    found = [fit_result(fitted, place if fitted is fits[-1] else None) for fitted in fits]
    report.results(found, model=str(target), file_bytes=size)


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
        "missing": model.origin.get("missing"),
    }
    words = {
        "variable": model.name,
        "grid": shape_text(model.axes),
        **missing_words(model),
        **({"model": place} if place else {}),
        "fitted in": f"{fitted.seconds:.3g} s",
    }
    if model.joint_ridge is not None:
        words["joint ridge"] = f"{model.joint_ridge:g}"
    if model.dropped:
        words["dropped"] = f"{model.dropped:.3g} of the energy"
    return {**facts, "levels": rows}, (pairs(words), level_table(rows))
