"""``dkrls fill``: the same grid without its gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.asking import read_mask_file
from dkrls_cli.cli.describe import cv_words, error_words, missing_words, robust_words, shape_text
from dkrls_cli.cli.expansion import expand
from dkrls_cli.cli.fitting.inputs import open_whole, read_values, report_marks
from dkrls_cli.cli.fitting.memory import estimates, refuse_too_large
from dkrls_cli.cli.fitting.running import fit_settings, report_fit_notes
from dkrls_cli.cli.fitting.suggestions import fit_words
from dkrls_cli.cli.fitting.watching import choice_printer, counting
from dkrls_cli.cli.output.ensembles import EnsembleOptions
from dkrls_cli.cli.output.filled import (
    NOTHING_LEFT,
    OTHER_MASKS,
    FillSettings,
    file_target,
    is_copy,
    refuse_additions,
    refuse_compressed_copy,
    write_all,
)
from dkrls_cli.cli.output.pictures import check_picture, draw_filled, draw_filled_files
from dkrls_cli.cli.output.target import Target
from dkrls_cli.cli.output.tiles import (
    can_be_tiled,
    fill_tiled,
    plan_all,
    plan_result,
    refuse_untiled,
)
from dkrls_cli.cli.report import Report, Result, edge
from dkrls_cli.cli.terminal.tables import count_text, pairs
from dkrls_cli.cli.texts import read_by, read_setting
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.files.source import Source
    from dkrls_cli.grid.grid import Grid
    from dkrls_cli.model.fill import Filled
    from dkrls_cli.model.tiling.planning import TilePlan
    from dkrls_cli.tuning.footprint import Footprint


@expand
def fill(
    grid: Annotated[
        str, typer.Argument(metavar="GRID", help="NetCDF, Zarr or CSV with missing cells.")
    ],
    *,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILLED", help=".nc, .zarr, .csv, .jsonl or .parquet."
        ),
    ] = None,
    max_gap: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIM=VALUE",
            help="Fill only gaps up to this length along DIM (of time: 7D, 6H, 1M). Repeatable.",
        ),
    ] = None,
    mask: Annotated[
        str | None,
        typer.Option(
            metavar="always|first|none|FILE",
            help="What stays missing: cells that never have data (land), those missing in the "
            "first slice of the last level, nothing, or cells where FILE has 0 or no value.",
            show_default="always; with --within none",
        ),
    ] = None,
    within: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[DIM=]DISTANCE",
            help="Fill only cells this near to data: a number of cells, or DIM=VALUE in units of "
            "the coordinates (of time: 5D), an ellipse of all given. Repeatable.",
        ),
    ] = None,
    max_std: Annotated[
        float | None,
        typer.Option(
            metavar="VALUE",
            help="Leave cells missing whose standard error is above this, in units of the data.",
        ),
    ] = None,
    std: Annotated[
        bool, typer.Option("--std", help="Add the standard error of every filled cell.")
    ] = False,
    allow_extrapolation: Annotated[
        bool,
        typer.Option(
            "--allow-extrapolation", help="Fill lost slices beyond the observed ones as well."
        ),
    ] = False,
    members: EnsembleOptions,
    options: opt.LevelOptions,
    machine: opt.RunOptions,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="PICTURE",
            help="Draw before, after and standard error where most is filled: .png, .svg or .pdf.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print what filling would take, and in how many tiles."),
    ] = False,
    outputs: opt.GridOutputOptions,
    report: Report,
) -> None:
    """Fill the missing cells of a grid; everything else stays as it is.

    A model is fitted through the gaps, as by fit, and its answers fill them.

    The file is copied and only missing cells change: a wide table stays wide, and rows that a long
    table lacks follow at its end. Another format gets the variable alone.

    A NetCDF file or Zarr store that needs more memory than --max-memory is filled in tiles.

    Examples:
      dkrls fill sst.nc -o filled.nc

      dkrls fill sst.nc -o filled.nc --max-gap time=5D --std

      dkrls fill rain.csv -o filled.csv --mask none

      dkrls fill sst.nc -o coasts.nc --within 2

      dkrls fill ocean.nc -o filled.nc --var all

      dkrls fill sst.nc -o filled.nc --max-std 0.5 --ensemble 20

      dkrls fill sst.nc -o filled.nc --std --plot filled.png
    """
    with edge(report.debug):
        (grid,) = read_by([grid], options.engine)
        members.refuse_impossible()
        target = None
        if output is not None or not dry_run:
            target = file_target(output, outputs, report, grid, mask)
            refuse_compressed_copy(grid, target)
        if plot is not None:
            check_picture(plot, outputs.overwrite, report, grid, mask)
        how = FillSettings(
            fit_settings(options),
            read_mask(mask),
            gap_limits(max_gap),
            read_setting(within, "--within") if within else None,
            max_std,
            std,
            members,
            allow_extrapolation,
        )
        errors = options.obs_error or ()
        sources = open_whole(grid, options.var, how.settings.level_names, report, errors)
        if target is not None:
            refuse_additions(grid, sources, how, target)
        limit = machine.memory_limit
        needs, plans = plan_sources(
            sources, how, limit, is_copy=target is None or is_copy(grid, target)
        )
        if dry_run or target is None:
            tiles: Sequence[TilePlan | None] = plans or [None] * len(sources)
            each = zip(sources, needs, tiles, strict=True)
            report.results([plan_result(*one) for one in each])
            return
        if plans:
            results = fill_tiled(grid, sources, plans, how, target, limit, machine.threads, report)
            if plot is not None:
                draw_filled_files(sources, target, std, plot, report)
        else:
            results = fill_whole(grid, sources, how, target, machine.threads, plot, report)
        drawn = {} if plot is None else {"plot": str(plot)}
        report.results(results, output=target.path, **members.facts, **drawn)
        report.next_step(*fit_words(str(target.path)))


def plan_sources(
    sources: Sequence[Source], how: FillSettings, limit: float, *, is_copy: bool
) -> tuple[list[Footprint], Sequence[TilePlan]]:
    """Return what filling takes in memory, and the tiles if that is too much.

    Raise InputError or SettingError if it is too much for tiles as well. Tiles need an output that
    `is_copy` of the input.
    """
    needs = estimates(sources, how.settings, gaps=True)
    if can_be_tiled(sources) and any(each.memory > limit for each in needs):
        refuse_untiled(sources, how, limit, is_copy=is_copy)
        return needs, plan_all(sources, how, limit)
    refuse_too_large(sources, how.settings, limit, gaps=True)
    return needs, []


def fill_whole(
    path: str,
    sources: Sequence[Source],
    how: FillSettings,
    target: Target,
    threads: int | None,
    plot: Path | None,
    report: Report,
) -> list[Result]:
    """Fill variables in memory, write and draw them, and return what was done."""
    from dkrls_cli.threads import blas_threads

    done = [fill_source(source, how, threads, report) for source in sources]
    filled, tables = [one.filled for one in done], [source.table for source in sources]
    with blas_threads(threads):
        for note in write_all(path, filled, target, tables, how.ensemble, report):
            report.note(f"Note: {note}.")
        if plot is not None:
            draw_filled(filled, plot, target.overwrite, report)
    return [fill_result(one, how.ensemble, target if one is done[-1] else None) for one in done]


@dataclass(frozen=True, eq=False)
class FilledVariable:
    """A filled variable, how many of its cells were missing, and the seconds that took."""

    filled: Filled
    missing: int
    seconds: float


def fill_source(
    source: Source, how: FillSettings, threads: int | None, report: Report
) -> FilledVariable:
    """Read a variable and fill its missing cells, and report what was decided about them."""
    import numpy as np

    from dkrls_cli.model.fill import fill_grid
    from dkrls_cli.threads import blas_threads

    whole = read_values(source, report)
    start = perf_counter()
    with report.working(f"filling {shape_text(whole.axes)}") as done, blas_threads(threads):
        filled = fill_grid(
            whole,
            how.settings,
            mask=how.mask,
            max_gap=how.max_gap,
            within=how.within,
            max_std=how.max_std,
            std=how.std,
            ensemble=how.ensemble.ensemble,
            seed=how.ensemble.seed or 0,
            extrapolate=how.extrapolate,
            watch=counting(choice_printer(report, whole.axes), len(whole.axes), done),
            tell=done,
        )
    seconds = perf_counter() - start
    if filled.note:
        report.note(f"Note: {filled.note}. {OTHER_MASKS}")
    if filled.model is not None:
        report_fit_notes(filled.model, report)
    else:
        _report_nothing(whole, filled, report)
    return FilledVariable(filled, int(np.isnan(whole.values).sum()), seconds)


def _report_nothing(whole: Grid, filled: Filled, report: Report) -> None:
    """Report why there was nothing to fill: a rule, or marks that the file does not declare."""
    report_marks(whole, report)
    if filled.left:
        report.note(NOTHING_LEFT)


def gap_limits(texts: list[str] | None) -> dict[str, str]:
    """Return the longest gaps to fill, by dimension, as they are written."""
    found = read_setting(texts, "--max-gap") if texts else {}
    if not isinstance(found, dict):
        raise SettingError(f"--max-gap {found} names no dimension. Give --max-gap DIM={found}.")
    return found


def read_mask(mask: str | None) -> str | Grid | None:
    """Return the name of a kind of mask, None for the default, or the mask in a file."""
    known = ("always", "first", "none")
    return mask if mask is None or mask in known else read_mask_file(mask, known)


def fill_result(done: FilledVariable, ensemble: EnsembleOptions, target: Target | None) -> Result:
    """Return what was filled, what was left, and why; `target` is said of the last variable."""
    filled, count = done.filled, done.missing
    model, grid = filled.model, filled.grid
    facts: dict[str, Any] = {
        "variable": grid.name,
        "cells": grid.values.size,
        "missing": count,
        "filled": int(filled.cells.sum()),
        "left": filled.left,
        "note": filled.note or None,
        "cv_error": model.errors[0] if model else None,
        "data_std": model.spread if model else None,
        "seconds": done.seconds if model else 0.0,
    }
    words = {
        "variable": grid.name,
        "grid": shape_text(grid.axes),
        **(missing_words(model) | robust_words(model) | error_words(model) if model else {}),
        "filled": f"{count_text(facts['filled'])} of {count_text(count)} missing cells",
        **{reason: count_text(number) for reason, number in filled.left.items()},
        **(cv_words(model) if model else {}),
        **({"ensemble": f"{ensemble.members} members"} if ensemble.members else {}),
        **({"output": str(target.path)} if target else {}),
    }
    return facts, (pairs(words),)
