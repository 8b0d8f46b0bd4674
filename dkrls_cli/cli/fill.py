"""``dkrls fill``: the same grid without its gaps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.describe import missing_words, shape_text
from dkrls_cli.cli.fit import fit_settings, refuse_too_large, tell_notes, trained
from dkrls_cli.cli.report import Report, command_line, edge, pairs
from dkrls_cli.cli.target import Target, chosen_target
from dkrls_cli.cli.wanted import cells_to_fill, gap_limits, leave_beyond
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.arrays import Array, Mask
    from dkrls_cli.files.source import Source
    from dkrls_cli.grid.grid import Grid
    from dkrls_cli.model.model import Model


def fill(
    grid: Annotated[
        str, typer.Argument(metavar="GRID", help="NetCDF, Zarr or CSV with missing cells.")
    ],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILLED", help=".nc, .zarr, .csv or .jsonl."),
    ] = None,
    max_gap: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIM=VALUE",
            help="Fill only gaps up to this length along DIM (of time: 7D, 6H, 1M). Repeatable.",
        ),
    ] = None,
    mask: Annotated[
        str,
        typer.Option(
            metavar="always|first|none|FILE",
            help="What stays missing: cells missing in every slice of the last level (land), those "
            "missing in the first one, nothing, or where FILE has 0 or nothing.",
        ),
    ] = "always",
    std: Annotated[
        bool, typer.Option("--std", help="Add the standard error of every filled cell.")
    ] = False,
    allow_extrapolation: Annotated[
        bool,
        typer.Option(
            "--allow-extrapolation", help="Fill lost slices beyond the observed ones too."
        ),
    ] = False,
    var: opt.Var = None,
    levels: opt.Levels = None,
    kernel: opt.Kernel = None,
    sigma: opt.Sigma = None,
    ridge: opt.Ridge = None,
    period: opt.Period = None,
    max_memory: opt.MaxMemory = None,
    threads: opt.Threads = None,
    config: opt.Config = None,
    overwrite: opt.Overwrite = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
    debug: opt.Debug = False,
) -> None:
    """Fill the missing cells of a grid; all else stays as it is.

    A model is fitted through the gaps, as by fit, and answers in them.

    The file is copied and only missing cells change; in another format, the variable alone.

    Examples:
      dkrls fill sst.nc -o filled.nc

      dkrls fill sst.nc -o filled.nc --max-gap time=5D --std

      dkrls fill rain.csv -o filled.csv --mask none
    """
    from dkrls_cli.grid.cf import hierarchy_of

    with edge(debug):
        report = Report(json, quiet, verbose)
        target = file_target(output, overwrite)
        settings = fit_settings(
            levels, kernel, sigma, ridge, period, "auto", "model", None, False, False
        )
        source = opened_whole(grid, var, settings["levels"], report)
        refuse_too_large(source, None if max_memory is None else opt.byte_count(max_memory))
        with report.working(f"reading {source.name}"):
            whole = source.grid()
        tell_notes(source, report)
        last = hierarchy_of(whole.axes, settings["levels"])[-1]
        wanted, left = cells_to_fill(whole, last, mask, gap_limits(max_gap, whole.axes))
        model, seconds = None, 0.0
        if wanted.any():
            model, seconds = model_of(whole, source, settings, threads, grid, report)
            if not allow_extrapolation:
                left |= leave_beyond(whole, model, wanted)
        elif left:
            report.note("Note: nothing is left to fill; --mask none and --max-gap decide on that.")
        filled, errors = filled_grid(whole, model, wanted, std, report)
        write(grid, filled, wanted, errors, target)
        tell(whole, wanted, left, model, target, seconds, report)


def file_target(output: str | None, overwrite: bool) -> Target:
    """Where the filled grid goes, known to be free."""
    if output is None:
        raise SettingError("Where should the filled grid go? Give -o FILLED.nc.")
    target = chosen_target(output, None, False, overwrite)
    if target.path is None:
        raise SettingError("A filled grid goes to a file: give -o FILLED.nc.")
    target.refuse_unwritable()
    return target


def opened_whole(path: str, var: str | None, levels: list[str] | None, report: Report) -> Source:
    """The variable in its file, nothing of it left out."""
    from dkrls_cli.files.reading import open_file
    from dkrls_cli.files.source import expand

    paths = expand(path)
    if len(paths) > 1:
        raise SettingError(f"'{path}' is {len(paths)} files. Fill them one by one, or joined.")
    with report.working("opening files"):
        source = open_file(paths[0], var, levels)
    report.detail(f"{source.name}: {shape_text(source.axes)}, {source.dtype}")
    return source


def model_of(
    whole: Grid,
    source: Source,
    settings: dict[str, Any],
    threads: int | None,
    path: str,
    report: Report,
) -> tuple[Model, float]:
    """A model through the gaps, and the seconds it took."""
    from dkrls_cli.files.reading import without_repeats

    once = without_repeats(replace(source, load=lambda: whole.values, notes=[]))
    return trained(once.grid(), settings, threads, [path], report)


def filled_grid(
    whole: Grid, model: Model | None, wanted: Mask, std: bool, report: Report
) -> tuple[Grid, Array | None]:
    """The grid with the cells filled, and standard errors if they are wanted."""
    import numpy as np

    values = np.asarray(whole.values)
    errors = np.where(np.isnan(values), np.nan, 0.0) if std else None
    if model is not None and wanted.any():
        asked = {a.name: a.plain if a.labels is None else a.texts for a in whole.axes}
        queries = model.queries(model.axes_at(asked))
        with report.working("filling"):
            answers = model.cascade.predict(queries)
            values = np.where(wanted, answers, values).astype(values.dtype, copy=False)
            if errors is not None:
                errors[wanted] = np.sqrt(model.variance(queries))[wanted]
    return replace(whole, values=values), errors


def write(
    path: str,
    filled: Grid,
    wanted: Mask,
    errors: Array | None,
    target: Target,
) -> None:
    """The filled grid: a copy of the file that is changed in these cells, or the variable alone."""
    from dkrls_cli.files.source import kind_of
    from dkrls_cli.files.writing import history_line, write_grid
    from dkrls_cli.grid.grid import std_variable

    assert target.path is not None
    name, attrs = std_variable(filled.name, filled.attrs)
    kind = {"netcdf": "nc", "zarr": "zarr"}.get(kind_of(path))
    if kind == target.form:
        from dkrls_cli.files.patching import Patch, patched_copy

        added = None if errors is None else (name, errors.astype(filled.style.dtype), attrs)
        line = history_line(command_line())
        patch = Patch(filled.name, wanted, filled.values.astype("float64"), line, added)
        patched_copy(path.rstrip("/"), target.path, patch, overwrite=target.overwrite)
        return
    variables: dict[str, tuple[Any, Any]] = {filled.name: (filled.values, filled.attrs)}
    if errors is not None:
        linked = {**filled.attrs, "ancillary_variables": name}
        variables = {filled.name: (filled.values, linked), name: (errors, attrs)}
    if target.form in ("nc", "zarr"):
        command = command_line()
        write_grid(
            target.path, filled.axes, variables, filled.style, command, overwrite=target.overwrite
        )
        return
    from dkrls_cli.cli.predict import rows_output

    with rows_output(target, filled.name) as writer:
        cells = {key: values.astype(filled.style.dtype) for key, (values, _) in variables.items()}
        writer.write_cells(filled.dims, [axis.texts for axis in filled.axes], cells)


def tell(
    whole: Grid,
    wanted: Mask,
    left: dict[str, int],
    model: Model | None,
    target: Target,
    seconds: float,
    report: Report,
) -> None:
    """What was filled, what was left, and why."""
    import numpy as np

    count = int(np.isnan(whole.values).sum())
    facts: dict[str, Any] = {
        "output": target.path,
        "variable": whole.name,
        "cells": whole.values.size,
        "missing": count,
        "filled": int(wanted.sum()),
        "left": left,
        "cv_error": model.errors[0] if model else None,
        "seconds": seconds,
    }
    words = {
        "variable": whole.name,
        "grid": shape_text(whole.axes),
        **(missing_words(model) if model else {}),
        "filled": f"{facts['filled']} of {count} missing cells",
        **{reason: str(number) for reason, number in left.items()},
        **({"cv error": f"{facts['cv_error']:.4g}"} if model else {}),
        "output": str(target.path),
    }
    if not report.quiet or report.json:
        report.result(facts, pairs(words))
