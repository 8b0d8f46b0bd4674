"""``dkrls fill``: the same grid without its gaps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.describe import cv_words, error_words, missing_words, robust_words, shape_text
from dkrls_cli.cli.fitting.inputs import open_inputs, read_values, report_marks
from dkrls_cli.cli.fitting.memory import estimates, refuse_too_large
from dkrls_cli.cli.fitting.running import fit_settings, report_fit_notes
from dkrls_cli.cli.fitting.suggestions import fit_words
from dkrls_cli.cli.fitting.watching import choice_printer, counting
from dkrls_cli.cli.output.answers import read_mask_file, refuse_taken_names, write_fields
from dkrls_cli.cli.output.ensembles import (
    EnsembleOptions,
    all_members,
    count_draws,
    refuse_names,
    write_member_cells,
)
from dkrls_cli.cli.output.pictures import check_picture, draw_filled, draw_filled_files
from dkrls_cli.cli.output.rows import ROW_FORMATS, refuse_different_grids, rows_output
from dkrls_cli.cli.output.target import Target, chosen_target
from dkrls_cli.cli.output.tiles import (
    can_be_tiled,
    fill_tiled,
    plan_all,
    plan_result,
    refuse_untiled,
)
from dkrls_cli.cli.report import Report, Result, command_line, edge
from dkrls_cli.cli.terminal.tables import count_text, pairs
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.arrays import Array, Slices
    from dkrls_cli.files.patching.members import Members
    from dkrls_cli.files.source import Source
    from dkrls_cli.files.text.copying import TableCopy
    from dkrls_cli.files.writing import Field
    from dkrls_cli.grid.grid import Grid
    from dkrls_cli.model.fill import Filled
    from dkrls_cli.model.settings import Settings
    from dkrls_cli.model.tiling.planning import TilePlan


# How to change what was decided about land.
OTHER_MASKS = "--mask none fills all, --mask FILE knows land, --within DISTANCE fills near data."


@opt.expand
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
    from dkrls_cli.threads import blas_threads

    with edge(report.debug):
        (grid,) = opt.read_by([grid], options.engine)
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
            opt.setting(within, "--within") if within else None,
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
        needs = estimates(sources, how.settings, gaps=True)
        tiled = can_be_tiled(sources) and any(each.memory > limit for each in needs)
        plans: list[TilePlan] = []
        if tiled:
            refuse_untiled(sources, how, limit, is_copy=target is None or is_copy(grid, target))
            plans = plan_all(sources, how, limit)
        else:
            refuse_too_large(sources, how.settings, limit, gaps=True)
        if dry_run or target is None:
            tiles: list[TilePlan | None] = [*plans] or [None] * len(sources)
            each = zip(sources, needs, tiles, strict=True)
            report.results([plan_result(*one) for one in each])
            return
        drawn = {} if plot is None else {"plot": str(plot)}
        if tiled:
            results = fill_tiled(grid, sources, plans, how, target, limit, machine.threads, report)
            if plot is not None:
                draw_filled_files(sources, target, std, plot, report)
            report.results(results, output=target.path, **drawn)
            report.next_step(*fit_words(str(target.path)))
            return
        done = [fill_source(source, how, machine.threads, report) for source in sources]
        filled = [one.filled for one in done]
        tables = [source.table for source in sources]
        with blas_threads(machine.threads):
            for note in write_all(grid, filled, target, tables, members, report):
                report.note(f"Note: {note}.")
            if plot is not None:
                draw_filled(filled, plot, outputs.overwrite, report)
        results = [fill_result(one, members, target if one is done[-1] else None) for one in done]
        report.results(results, output=target.path, **members.facts, **drawn)
        report.next_step(*fit_words(str(target.path)))


@dataclass(frozen=True, eq=False)
class FillSettings:
    """How missing cells are filled: settings of the model, and which cells."""

    settings: Settings
    mask: str | Grid | None
    max_gap: dict[str, str]
    within: Any
    max_std: float | None
    std: bool
    ensemble: EnsembleOptions
    extrapolate: bool


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
        report.note("Note: nothing is left to fill; --mask, --max-gap and --within decide.")


def file_target(
    output: str | None, outputs: opt.GridOutputOptions, report: Report, *inputs: str | None
) -> Target:
    """Return where the filled grid goes, or raise if it cannot be written there."""
    if output is None:
        raise SettingError("Where should the filled grid go? Give -o FILLED.nc.")
    target = chosen_target(output, None, False, outputs.overwrite, outputs.compress)
    if target.path is None:
        raise SettingError("A filled grid goes to a file: give -o FILLED.nc.")
    target.refuse_unwritable(report, *inputs)
    return target


def refuse_compressed_copy(path: str, target: Target) -> None:
    """Raise SettingError if a level of compression is given for a copy, which keeps its own."""
    if target.compress is not None and is_copy(path, target):
        raise SettingError(
            f"--compress {target.compress} does not apply: '{target.path}' will be a copy of "
            f"'{path}' and keep its compression. Leave it out, and use nccopy -d LEVEL afterwards."
        )


def is_copy(path: str, target: Target) -> bool:
    """Return whether the output is of the kind of the input, which is then copied."""
    from dkrls_cli.files.source import kind_of

    return {"netcdf": "nc", "zarr": "zarr"}.get(kind_of(path)) == target.form


def refuse_additions(
    path: str, sources: Sequence[Source], how: FillSettings, target: Target
) -> None:
    """Raise an error, before any fit, if what is added to variables has no room or no free name."""
    from dkrls_cli.files.patching.beside import check_names
    from dkrls_cli.grid.grid import ensemble_variable, std_variable
    from dkrls_cli.model.answering.ensembles import check_ensemble

    ensemble, is_table = how.ensemble, all(source.table is not None for source in sources)
    if how.std and target.form == "csv":
        for source in sources:
            if source.table is not None:
                source.table.refuse_std()
    if ensemble.ensemble and target.form == "csv" and is_table:
        raise SettingError(
            f"'{target.path}' will be a copy of a table, which has no room for members. Write to a "
            "file that ends in .nc, .zarr or .jsonl, or leave --ensemble out."
        )
    (refuse_names if ensemble.ensemble else refuse_taken_names)(sources, how.std)
    drawn = sources if ensemble.ensemble else []
    for source in drawn:
        dims = [axis.name for axis in source.axes]
        check_ensemble(source.name, dims, ensemble.members, ensemble.seed or 0)
    if is_copy(path, target):
        errors = [std_variable(s.name, s.attrs)[0] for s in sources] if how.std else []
        check_names(path.rstrip("/"), errors, [ensemble_variable(s.name, {})[0] for s in drawn])


def gap_limits(texts: list[str] | None) -> dict[str, str]:
    """Return the longest gaps to fill, by dimension, as they are written."""
    setting = opt.setting(texts, "--max-gap") if texts else {}
    if not isinstance(setting, dict):
        raise SettingError(f"--max-gap {setting} names no dimension. Give --max-gap DIM={setting}.")
    return setting


def read_mask(mask: str | None) -> str | Grid | None:
    """Return the name of a kind of mask, None for the default, or the mask in a file."""
    known = ("always", "first", "none")
    return mask if mask is None or mask in known else read_mask_file(mask, known)


def open_whole(
    path: str,
    var: Sequence[str] | None,
    levels: list[str] | None,
    report: Report,
    errors: Sequence[str] | None,
) -> list[Source]:
    """Open variables of the one file; their values are not read yet."""
    from dkrls_cli.files.source import expand

    paths = expand(path)
    if len(paths) > 1:
        raise SettingError(f"'{path}' is {len(paths)} files. Fill them one by one, or joined.")
    return open_inputs(paths, var, levels, report, errors)


def write_all(
    path: str,
    filled: Sequence[Filled],
    target: Target,
    tables: Sequence[TableCopy | None],
    ensemble: EnsembleOptions,
    report: Report,
) -> list[str]:
    """Write the filled variables and the members of their ensembles, if there are any."""
    drawn = [one.members for one in filled if one.members is not None]
    if not drawn:
        with report.working(f"writing {target.path}"):
            return write_filled(path, filled, target, tables)
    with report.working("drawing members") as done:
        draws = count_draws(drawn, ensemble.members, done)
        if target.form in ROW_FORMATS:
            write_filled_members(filled, draws, target)
            return []
        members = all_members([one.grid for one in filled], draws, ensemble)
        return write_filled(path, filled, target, tables, members)


def write_filled(
    path: str,
    filled: Sequence[Filled],
    target: Target,
    tables: Sequence[TableCopy | None],
    members: Sequence[Members] = (),
) -> list[str]:
    """Write a copy of the file with the cells filled, or in another format the variables alone.

    Members are drawn and written one by one. Return notes for the user on what could not be written
    as in the file.
    """
    assert target.path is not None
    if is_copy(path, target):
        return write_patched(path, filled, target, members)
    copies = [table for table in tables if table is not None]
    if len(copies) == len(filled) and target.form == "csv":
        write_table(copies, filled, target)
        return []
    fields = [field for one in filled for field in filled_fields(one)]
    if target.form in ("nc", "zarr"):
        return write_fields(fields, target, members)
    first = filled[0].grid
    refuse_different_grids([(one.grid.name, one.grid.axes) for one in filled])
    with rows_output(target, [one.grid.name for one in filled], first.axes) as writer:
        cells = {field.name: field.values.astype(field.style.dtype) for field in fields}
        writer.write_cells(first.dims, [axis.texts for axis in first.axes], cells)
    return []


def write_filled_members(
    filled: Sequence[Filled], draws: Sequence[Iterator[Array]], target: Target
) -> None:
    """Write a row for every member and cell, one member after the other."""
    refuse_different_grids([(one.grid.name, one.grid.axes) for one in filled])
    names = [one.grid.name for one in filled]
    parts = [partial(_columns_of_part, filled_fields(one)) for one in filled]
    write_member_cells(filled[0].grid.axes, names, draws, parts, target)


def _columns_of_part(fields: Sequence[Field], part: Slices, values: Array) -> dict[str, Any]:
    """Return a member of a variable, and its standard errors if there are any, on a part."""
    first, *others = fields
    found = {first.name: values[part].astype(first.style.dtype)}
    return found | {one.name: one.values[part].astype(one.style.dtype) for one in others}


def filled_fields(filled: Filled) -> list[Field]:
    """Return a filled variable, and its standard errors if there are any, to be written."""
    from dkrls_cli.files.writing import Field
    from dkrls_cli.grid.grid import std_variable

    grid = filled.grid
    if filled.std is None:
        return [Field(grid.name, grid.values, grid.axes, grid.attrs, grid.style)]
    name, attrs = std_variable(grid.name, grid.attrs)
    linked = {**grid.attrs, "ancillary_variables": name}
    return [
        Field(grid.name, grid.values, grid.axes, linked, grid.style),
        Field(name, filled.std, grid.axes, attrs, grid.style.of_errors),
    ]


def write_table(tables: Sequence[TableCopy], filled: Sequence[Filled], target: Target) -> None:
    """Write a copy of a text table in which nothing but the filled cells is changed."""
    from io import StringIO

    from dkrls_cli.files.output.atomic import atomic_write
    from dkrls_cli.grid.grid import std_variable

    assert target.path is not None
    text = ""
    for table, one in zip(tables, filled, strict=True):
        std = None
        if one.std is not None:
            std = std_variable(one.grid.name, one.grid.attrs)[0], one.std
        copy = replace(table, kept=text.encode()) if text else table
        copy.write(stream := StringIO(newline=""), one.cells, one.grid.values, std)
        text = stream.getvalue()
    with (
        atomic_write(target.path, overwrite=target.overwrite) as temporary,
        open(temporary, "w", encoding="utf-8", newline="") as file,
    ):
        file.write(text)


def write_patched(
    path: str, filled: Sequence[Filled], target: Target, members: Sequence[Members] = ()
) -> list[str]:
    """Write a copy of the file in which nothing but the filled cells is changed; return notes."""
    from dkrls_cli.files.patching.whole import Patch, write_patched_copy
    from dkrls_cli.files.writing import compression, history_line
    from dkrls_cli.grid.grid import std_variable

    assert target.path is not None
    patches, line = [], history_line(command_line())
    for one in filled:
        grid, added = one.grid, None
        if one.std is not None:
            name, attrs = std_variable(grid.name, grid.attrs)
            added = name, one.std.astype(grid.style.of_errors.dtype), attrs
        patches.append(Patch(grid.name, one.cells, grid.values.astype("float64"), line, added))
        line = ""
    return write_patched_copy(
        path.rstrip("/"),
        target.path,
        patches,
        overwrite=target.overwrite,
        members=members,
        filters=partial(compression, level=None, zarr=target.form == "zarr"),
    )


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
