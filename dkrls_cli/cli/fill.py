"""``dkrls fill``: the same grid without its gaps."""

from __future__ import annotations

import os
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.describe import missing_words, shape_text
from dkrls_cli.cli.fit import (
    choice_printer,
    fit_settings,
    read_values,
    refuse_too_large,
    report_fit_notes,
)
from dkrls_cli.cli.report import Report, command_line, edge
from dkrls_cli.cli.target import Target, chosen_target
from dkrls_cli.cli.terminal.tables import pairs
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.spelling import suggest

if TYPE_CHECKING:
    from dkrls_cli.files.source import Source
    from dkrls_cli.files.text.copying import TableCopy
    from dkrls_cli.grid.grid import Grid
    from dkrls_cli.model.fill import Filled


# How to change what was decided about land.
_OTHER_MASKS = "--mask none fills all, --mask FILE knows land, --within DISTANCE fills near data."


@opt.expand
def fill(
    grid: Annotated[
        str, typer.Argument(metavar="GRID", help="NetCDF, Zarr or CSV with missing cells.")
    ],
    *,
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
        str | None,
        typer.Option(
            metavar="always|first|none|FILE",
            help="What stays missing: cells that never have data (land), those missing in the "
            "first slice of the last level, nothing, or cells where FILE has 0 or no value.  "
            "[always; with --within none]",
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
    std: Annotated[
        bool, typer.Option("--std", help="Add the standard error of every filled cell.")
    ] = False,
    allow_extrapolation: Annotated[
        bool,
        typer.Option(
            "--allow-extrapolation", help="Fill lost slices beyond the observed ones as well."
        ),
    ] = False,
    options: opt.LevelOptions,
    machine: opt.RunOptions,
    config: opt.Config = None,
    outputs: opt.GridOutputOptions,
    report: Report,
) -> None:
    """Fill the missing cells of a grid; everything else stays as it is.

    A model is fitted through the gaps, as by fit, and its answers fill them.

    The file is copied and only missing cells change: a wide table stays wide, and rows that a long
    table lacks follow at its end. Another format gets the variable alone.

    Examples:
      dkrls fill sst.nc -o filled.nc

      dkrls fill sst.nc -o filled.nc --max-gap time=5D --std

      dkrls fill rain.csv -o filled.csv --mask none

      dkrls fill sst.nc -o coasts.nc --within 2
    """
    from dkrls_cli.model.fill import fill_grid
    from dkrls_cli.threads import blas_threads

    with edge(report.debug):
        target = file_target(output, outputs)
        refuse_compressed_copy(grid, target)
        settings = fit_settings(options)
        limits = gap_limits(max_gap)
        source = open_whole(grid, options.var, settings.level_names, report)
        if std and source.table is not None and target.form == "csv":
            source.table.refuse_std()
        refuse_too_large(source, machine.memory_limit)
        whole = read_values(source, report)
        start = perf_counter()
        with report.working(f"filling {shape_text(whole.axes)}"), blas_threads(machine.threads):
            filled = fill_grid(
                whole,
                settings,
                mask=read_mask(mask),
                max_gap=limits,
                within=opt.setting(within, "--within") if within else None,
                std=std,
                extrapolate=allow_extrapolation,
                watch=choice_printer(report, whole.axes),
            )
        seconds = perf_counter() - start
        if filled.note:
            report.note(f"Note: {filled.note}. {_OTHER_MASKS}")
        if filled.model is not None:
            report_fit_notes(filled.model, report)
        elif filled.left:
            report.note("Note: nothing is left to fill; --mask, --max-gap and --within decide.")
        for note in write_filled(grid, filled, target, source.table):
            report.note(f"Note: {note}.")
        report_filled(whole, filled, target, seconds, report)


def file_target(output: str | None, outputs: opt.GridOutputOptions) -> Target:
    """Return where the filled grid goes, or raise if it cannot be written there."""
    if output is None:
        raise SettingError("Where should the filled grid go? Give -o FILLED.nc.")
    target = chosen_target(output, None, False, outputs.overwrite, outputs.compress)
    if target.path is None:
        raise SettingError("A filled grid goes to a file: give -o FILLED.nc.")
    target.refuse_unwritable()
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


def gap_limits(texts: list[str] | None) -> dict[str, str]:
    """Return the longest gaps to fill, by dimension, as they are written."""
    setting = opt.setting(texts, "--max-gap") if texts else {}
    if not isinstance(setting, dict):
        raise SettingError(f"--max-gap {setting} names no dimension. Give --max-gap DIM={setting}.")
    return setting


def read_mask(mask: str | None) -> str | Grid | None:
    """Return the name of a kind of mask, None for the default, or the mask in a file."""
    from dkrls_cli.files.reading import open_file

    known = ("always", "first", "none")
    if mask is None or mask in known:
        return mask
    if not os.path.exists(mask):
        raise InputError(
            f"There is no mask '{mask}', and no file of that name. Choose from: "
            f"{', '.join(known)}; or give a file.{suggest(mask, known)}"
        )
    return open_file(mask).grid()


def open_whole(path: str, var: str | None, levels: list[str] | None, report: Report) -> Source:
    """Open the one file of a variable, nothing of it left out; its values are not read yet."""
    from dkrls_cli.files.reading import open_file
    from dkrls_cli.files.source import expand

    paths = expand(path)
    if len(paths) > 1:
        raise SettingError(f"'{path}' is {len(paths)} files. Fill them one by one, or joined.")
    with report.working("opening files"):
        source = open_file(paths[0], var, levels)
    report.detail(f"{source.name}: {shape_text(source.axes)}, {source.dtype}")
    return source


def write_filled(
    path: str, filled: Filled, target: Target, table: TableCopy | None = None
) -> list[str]:
    """Write a copy of the file with the cells filled, or in another format the variable alone.

    Return notes for the user on what could not be written as in the file.
    """
    from dkrls_cli.files.writing import Field, write_grid
    from dkrls_cli.grid.grid import std_variable

    assert target.path is not None
    if is_copy(path, target):
        return write_patched(path, filled, target)
    if table is not None and target.form == "csv":
        write_table(table, filled, target)
        return []
    grid, errors = filled.grid, filled.std
    fields = [Field(grid.name, grid.values, grid.axes, grid.attrs, grid.style)]
    if errors is not None:
        name, attrs = std_variable(grid.name, grid.attrs)
        linked = {**grid.attrs, "ancillary_variables": name}
        fields = [
            Field(grid.name, grid.values, grid.axes, linked, grid.style),
            Field(name, errors, grid.axes, attrs, grid.style.of_errors),
        ]
    if target.form in ("nc", "zarr"):
        overwrite, compress = target.overwrite, target.compress
        return write_grid(
            target.path, fields, command_line(), overwrite=overwrite, compress=compress
        )
    from dkrls_cli.cli.predict import rows_output

    with rows_output(target, grid.name) as writer:
        cells = {field.name: field.values.astype(grid.style.dtype) for field in fields}
        writer.write_cells(grid.dims, [axis.texts for axis in grid.axes], cells)
    return []


def write_table(table: TableCopy, filled: Filled, target: Target) -> None:
    """Write a copy of a text table in which nothing but the filled cells is changed."""
    from dkrls_cli.files.output import atomic_write
    from dkrls_cli.grid.grid import std_variable

    assert target.path is not None
    grid, std = filled.grid, None
    if filled.std is not None:
        std = std_variable(grid.name, grid.attrs)[0], filled.std
    with (
        atomic_write(target.path, overwrite=target.overwrite) as temporary,
        open(temporary, "w", encoding="utf-8", newline="") as stream,
    ):
        table.write(stream, filled.cells, grid.values, std)


def write_patched(path: str, filled: Filled, target: Target) -> list[str]:
    """Write a copy of the file in which nothing but the filled cells is changed; return notes."""
    from dkrls_cli.files.patching import Patch, write_patched_copy
    from dkrls_cli.files.writing import history_line
    from dkrls_cli.grid.grid import std_variable

    assert target.path is not None
    grid, added = filled.grid, None
    if filled.std is not None:
        name, attrs = std_variable(grid.name, grid.attrs)
        added = name, filled.std.astype(grid.style.of_errors.dtype), attrs
    line = history_line(command_line())
    patch = Patch(grid.name, filled.cells, grid.values.astype("float64"), line, added)
    return write_patched_copy(path.rstrip("/"), target.path, patch, overwrite=target.overwrite)


def report_filled(
    whole: Grid, filled: Filled, target: Target, seconds: float, report: Report
) -> None:
    """Report what was filled, what was left, and why."""
    import numpy as np

    count, model = int(np.isnan(whole.values).sum()), filled.model
    facts: dict[str, Any] = {
        "output": target.path,
        "variable": whole.name,
        "cells": whole.values.size,
        "missing": count,
        "filled": int(filled.cells.sum()),
        "left": filled.left,
        "note": filled.note or None,
        "cv_error": model.errors[0] if model else None,
        "seconds": seconds if model else 0.0,
    }
    words = {
        "variable": whole.name,
        "grid": shape_text(whole.axes),
        **(missing_words(model) if model else {}),
        "filled": f"{facts['filled']} of {count} missing cells",
        **{reason: str(number) for reason, number in filled.left.items()},
        **({"cv error": f"{facts['cv_error']:.4g}"} if model else {}),
        "output": str(target.path),
    }
    report.result(facts, pairs(words))
