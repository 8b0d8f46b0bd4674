"""``dkrls fit``: a grid to a model file."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkrls_cli import __version__
from dkrls_cli.cli import options as opt
from dkrls_cli.cli.describe import kernel_facts, level_rows, missing_words, model_rows, shape_text
from dkrls_cli.cli.report import Report, bytes_text, edge, pairs, table
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.files.source import Source
    from dkrls_cli.grid.grid import Grid
    from dkrls_cli.model.choosing import Watch
    from dkrls_cli.model.model import Model
    from dkrls_cli.tuning.slices import Choice


def fit(
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="INPUT", help="NetCDF, Zarr or CSV; several join; - is stdin."),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="MODEL.npz", help="Where to write it.")
    ] = None,
    var: opt.Var = None,
    levels: opt.Levels = None,
    kernel: opt.Kernel = None,
    sigma: opt.Sigma = None,
    ridge: opt.Ridge = None,
    period: opt.Period = None,
    noise: opt.Noise = "auto",
    missing: opt.Missing = "model",
    folds: opt.Folds = None,
    compact: opt.Compact = False,
    float32: opt.Float32 = False,
    max_memory: opt.MaxMemory = None,
    threads: opt.Threads = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and what it would take.")
    ] = False,
    config: opt.Config = None,
    overwrite: opt.Overwrite = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
    debug: opt.Debug = False,
) -> None:
    """Turn a grid into a model.

    What is not given is chosen by leaving slices of the data out, dimension by dimension.

    Examples:
      dkrls fit sst.nc -o sst.npz

      dkrls fit 'run-*.nc' --var tas --sigma time=30 --sigma lat=5 -o tas.npz

      dkrls fit sensors.csv --levels sensor,time --kernel time=matern12 -o sensors.npz
    """
    with edge(debug):
        report = Report(json, quiet, verbose)
        settings = fit_settings(
            levels, kernel, sigma, ridge, period, noise, missing, folds, compact, float32
        )
        limit = None if max_memory is None else opt.byte_count(max_memory)
        target = None if dry_run else checked_output(output, overwrite)
        source = opened(inputs, var, settings["levels"], report)
        refuse_too_large(source, limit)
        if target is None:
            tell_plan(source, settings, report)
            return
        grid = loaded(source, report)
        model, seconds = trained(grid, settings, threads, inputs, report)
        model.save(target, overwrite=overwrite)
        tell_model(model, grid, target, seconds, report)


def fit_settings(
    levels: str | None,
    kernel: list[str] | None,
    sigma: list[str] | None,
    ridge: list[str] | None,
    period: list[str] | None,
    noise: str,
    missing: str,
    folds: int | None,
    compact: bool,
    float32: bool,
) -> dict[str, Any]:
    """The options of a fit as the arguments of :func:`dkrls_cli.model.fit.fit`."""
    return {
        "levels": opt.names(levels),
        "kernel": opt.setting(kernel, "--kernel"),
        "sigma": opt.setting(sigma, "--sigma"),
        "ridge": opt.setting(ridge, "--ridge"),
        "period": opt.setting(period, "--period"),
        "noise": noise,
        "missing": missing,
        "folds": folds,
        "compact": compact,
        "dtype": "float32" if float32 else "float64",
    }


def opened(inputs: list[str], var: str | None, levels: list[str] | None, report: Report) -> Source:
    """The variable in its files, values not yet read."""
    from dkrls_cli.files.reading import open_source

    with report.working("opening files"):
        source = open_source(inputs, var, levels)
    report.detail(f"{source.name}: {shape_text(source.axes)}, {source.dtype}")
    return source


def loaded(source: Source, report: Report) -> Grid:
    """The values; what was noticed on the way is said."""
    with report.working(f"reading {source.name}"):
        grid = source.grid()
    tell_notes(source, report)
    return grid


def tell_notes(source: Source, report: Report) -> None:
    """Say what was decided or noticed on the way."""
    for note in source.notes:
        report.note(f"Note: {note}.")


def trained(
    grid: Grid, settings: dict[str, Any], threads: int | None, inputs: list[str], report: Report
) -> tuple[Model, float]:
    """The model, and the seconds it took."""
    from dkrls_cli.model.fit import fit as fit_model
    from dkrls_cli.threads import blas_threads

    defaults = fit_settings(None, None, None, None, None, "auto", "model", None, False, False)
    origin = {
        "inputs": [Path(path).name for path in inputs],
        "options": {k: v for k, v in settings.items() if v != defaults[k]},
        "program": f"dkrls {__version__}",
    }
    start = perf_counter()
    with report.working(f"fitting {shape_text(grid.axes)}"), blas_threads(threads):
        model = fit_model(grid, origin=origin, watch=curves(report), **settings)
    for note in model.origin.get("notes", ()):
        report.note(f"Warning: {note}.")
    for note in model.origin.get("dropped_coordinates", ()):
        report.note(f"Note: {note}.")
    return model, perf_counter() - start


def curves(report: Report) -> Watch | None:
    """What shows, to those who asked for more, how every kernel did."""
    if not report.verbose:
        return None

    def tell(dim: str, choice: Choice) -> None:
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
        report.detail(f"\n{dim}: error on slices left out, by kernel at its best ridge")
        report.detail(table(rows))

    return tell


def refuse_too_large(source: Source, limit: int | None) -> None:
    """Refuse a fit that would need more memory than allowed, before any is used."""
    from dkrls_cli.cascade.fit import footprint
    from dkrls_cli.errors import InputError

    needed = footprint(source.shape, source.dtype).memory
    if limit is not None and needed > limit:
        raise InputError(
            f"Fitting {shape_text(source.axes)} needs about {bytes_text(needed)} of memory, more "
            f"than --max-memory {bytes_text(limit)}. Raise it, or fit a part of the grid."
        )


def checked_output(output: Path | None, overwrite: bool) -> Path:
    """Where the model goes, known to be free before the work begins."""
    from dkrls_cli.files.output import refuse_unwritable

    if output is None:
        raise SettingError("Where should the model go? Give -o MODEL.npz, or --dry-run.")
    refuse_unwritable(output, overwrite=overwrite)
    return output


def tell_plan(source: Source, settings: dict[str, Any], report: Report) -> None:
    """What a fit would do."""
    from dkrls_cli.cascade.fit import footprint
    from dkrls_cli.model.settings import read_wishes

    tell_notes(source, report)
    wanted = {
        k: v for k, v in settings.items() if k not in ("missing", "folds", "compact", "dtype")
    }
    wishes = read_wishes(source.axes, **wanted)
    needs = footprint(source.shape, source.dtype)
    rows = level_rows(source.axes, wishes.hierarchy, wishes.levels)
    facts: dict[str, Any] = {
        "variable": source.name,
        "cells": needs.cells,
        "memory_bytes": needs.memory,
        "operations": needs.operations,
        "joint_ridge": wishes.joint_ridge,
    }
    words = {
        "variable": source.name,
        "grid": shape_text(source.axes),
        "memory": f"about {bytes_text(needs.memory)}",
        "work": f"about {needs.operations:.2g} operations",
        **({"joint ridge": wishes.joint_ridge or "auto"} if wishes.joint else {}),
    }
    report.result({**facts, "levels": rows}, f"{pairs(words)}\n\n{table(rows)}")


def tell_model(model: Model, grid: Grid, target: Path, seconds: float, report: Report) -> None:
    """What was fitted, and where it is."""
    rows, size = model_rows(model), target.stat().st_size
    facts: dict[str, Any] = {
        "model": str(target),
        "variable": model.name,
        "cells": grid.values.size,
        "file_bytes": size,
        "data_bytes": grid.values.nbytes,
        "seconds": seconds,
        "joint_ridge": model.cascade.joint_ridge,
        "dropped": model.cascade.dropped,
        "missing": model.origin.get("missing"),
    }
    words = {
        "variable": model.name,
        "grid": shape_text(model.axes),
        **missing_words(model),
        "model": f"{target}, {bytes_text(size)} for {bytes_text(grid.values.nbytes)} of data",
        "fitted in": f"{seconds:.3g} s",
    }
    if model.cascade.joint_ridge is not None:
        words["joint ridge"] = f"{model.cascade.joint_ridge:g}"
    if model.cascade.dropped:
        words["dropped"] = f"{model.cascade.dropped:.3g} of the energy"
    if not report.quiet or report.json:
        report.result({**facts, "levels": rows}, f"{pairs(words)}\n\n{table(rows)}")
