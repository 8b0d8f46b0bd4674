"""``dkrls check``: cells that do not fit the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.describe import shape_text
from dkrls_cli.cli.expansion import expand
from dkrls_cli.cli.fitting.inputs import open_new, open_whole, read_values
from dkrls_cli.cli.fitting.memory import refuse_large_check
from dkrls_cli.cli.output.answers import write_fields
from dkrls_cli.cli.output.filled import write_filled
from dkrls_cli.cli.output.rows import refuse_different_grids, rows_output
from dkrls_cli.cli.output.target import Target, chosen_target
from dkrls_cli.cli.report import Report, Result, edge
from dkrls_cli.cli.terminal.tables import count_text, duration_text, pairs
from dkrls_cli.cli.texts import LEVEL_SETTINGS, read_by, read_level_settings
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.files.source import Source
    from dkrls_cli.files.text.copying import TableCopy
    from dkrls_cli.files.writing import Field
    from dkrls_cli.model.quality.checked import Checked
    from dkrls_cli.model.settings import Settings

# Exit code for a larger share of flagged cells than allowed: 1 and 2 are errors.
_ABOVE_LIMIT = 3

_MODEL_ENDING = ".npz"


@expand
def check(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="GRID|MODEL NEW",
            help="A grid (NetCDF, Zarr or CSV); or a model file and new slices for it.",
        ),
    ],
    *,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FLAGS",
            help=".nc or .zarr: flags of all cells and what was expected. .csv or .jsonl: the "
            "flagged cells.",
            show_default="flagged cells as CSV on stdout",
        ),
    ] = None,
    form: Annotated[
        opt.RowFormat | None, typer.Option("--format", help="Rows on stdout as csv or jsonl.")
    ] = None,
    mask_out: Annotated[
        str | None,
        typer.Option(
            metavar="OUT", help="Write the grid without the flagged cells: .nc, .zarr or .csv."
        ),
    ] = None,
    false_alarm: Annotated[
        float,
        typer.Option(metavar="SHARE", help="Share of good cells that may be flagged as spikes."),
    ] = 0.001,
    fail_above: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=1.0, metavar="SHARE", help="Exit with 3 if more of the cells are flagged."
        ),
    ] = None,
    options: opt.KernelOptions,
    machine: opt.RunOptions,
    outputs: opt.GridOutputOptions,
    report: Report,
) -> None:
    """Find cells that do not fit the others.

    Every cell is predicted from all others, and compared with that. Flagged are spikes, stuck and
    jumping sensors, slices out of line or repeated, and changed units.

    Exit code 0 whatever is found, unless --fail-above says otherwise.

    Examples:
      dkrls check sst.nc

      dkrls check sst.nc -o flags.nc --mask-out clean.nc

      dkrls check sensors.npz today.csv --format jsonl --fail-above 0.01
    """
    from dkrls_cli.threads import blas_threads

    with edge(report.debug):
        inputs = read_by(inputs, options.engine)
        target, masked = check_targets(output, form, mask_out, outputs, report, inputs)
        with blas_threads(machine.threads):
            if Path(inputs[0]).suffix.lower() == _MODEL_ENDING:
                found = check_against_model(inputs, options, masked, false_alarm, report)
            else:
                found = check_file(inputs, options, machine.memory_limit, false_alarm, report)
            refuse_taken_flags(found, target)
            notes = write_found(found, target, report)
            if masked is not None:
                with report.working(f"writing {masked.path}"):
                    notes += write_masked(inputs[-1], found, masked)
        for note in notes:
            report.note(f"Note: {note}.")
        report_found(found, target, masked, report)
        if fail_above is not None and any(one.checked.share > fail_above for one in found):
            raise typer.Exit(_ABOVE_LIMIT)


@dataclass(frozen=True, eq=False)
class CheckedVariable:
    """A variable that was checked, the seconds that took, and its table if it has one."""

    checked: Checked
    seconds: float
    table: TableCopy | None = None


def check_targets(
    output: str | None,
    form: str | None,
    mask_out: str | None,
    outputs: opt.GridOutputOptions,
    report: Report,
    inputs: Sequence[str],
) -> tuple[Target | None, Target | None]:
    """Return where flags and the masked grid go; None for flags that are only counted (--json)."""
    target: Target | None = None
    if not (report.json and output is None and form is None):
        target = chosen_target(output, form, report.json, outputs.overwrite, outputs.compress)
        target.refuse_unwritable(report, *inputs)
    masked = None
    if mask_out is not None:
        masked = chosen_target(mask_out, None, False, outputs.overwrite)
        if masked.path is None or masked.form in ("jsonl", "parquet"):
            raise SettingError(
                f"'{mask_out}' cannot be written as a grid. End it in .nc, .zarr or .csv."
            )
        masked.refuse_unwritable(report, *inputs, output)
    return target, masked


def check_file(
    inputs: list[str], options: opt.KernelOptions, limit: float, rate: float, report: Report
) -> list[CheckedVariable]:
    """Check the variables of a file."""
    from dkrls_cli.model.settings import Settings

    if inputs[1:]:
        raise SettingError(
            f"{len(inputs)} files were given, and the first is no model (.npz). Check one grid at "
            "a time, or MODEL.npz and new slices."
        )
    settings = Settings(**read_level_settings(options))
    sources = open_whole(inputs[0], options.var, settings.level_names, report, None)
    for source in sources:
        refuse_large_check(source, limit)
    return [check_source(source, settings, rate, report) for source in sources]


def check_source(
    source: Source, settings: Settings, rate: float, report: Report
) -> CheckedVariable:
    """Read a variable and check it."""
    from dkrls_cli.model.quality.check import check_grid

    grid = read_values(source, report)
    start = perf_counter()
    with report.working(f"checking {shape_text(grid.axes)}"):
        checked = check_grid(grid, settings, false_alarm=rate)
    return CheckedVariable(checked, perf_counter() - start, source.table)


def check_against_model(
    inputs: list[str],
    options: opt.KernelOptions,
    masked: Target | None,
    rate: float,
    report: Report,
) -> list[CheckedVariable]:
    """Check new slices against a model file."""
    from dkrls_cli.files.reading import read_tables
    from dkrls_cli.model.quality.check import check_slices
    from dkrls_cli.model.saving import load_models

    path, *new = inputs
    if not new:
        raise SettingError(f"'{path}' is a model. Give new slices to check: MODEL.npz NEW.nc.")
    refuse_kernel_options(options)
    if masked is not None:
        raise SettingError("--mask-out is for a grid. Check the new slices alone to mask them.")
    wanted = options.var
    with report.working(f"reading {path}"):
        models = [m for m in load_models(path).values() if not wanted or m.name in wanted]
    if not models:
        raise SettingError(f"'{path}' has no variable {', '.join(wanted or ())}.")
    raw, found = read_tables(new), []
    for model in models:
        name = model.name if models[1:] else None
        grid = read_values(open_new(model, new, name, raw, report), report)
        start = perf_counter()
        with report.working(f"checking {shape_text(grid.axes)}"):
            checked = check_slices(model, grid, false_alarm=rate)
        found.append(CheckedVariable(checked, perf_counter() - start))
    return found


def refuse_kernel_options(options: opt.KernelOptions) -> None:
    """Raise SettingError for settings beside a model."""
    for name in ("levels", *LEVEL_SETTINGS):
        if getattr(options, name) is not None:
            raise SettingError(f"--{name} is for a grid. With a model, leave it out.")


def refuse_taken_flags(found: Sequence[CheckedVariable], target: Target | None) -> None:
    """Raise SettingError if the flags of a variable would have the name of another one."""
    if target is None or target.form not in ("nc", "zarr"):
        return
    names = [name for one in found for name in added_names(one.checked)]
    names += [one.checked.grid.name for one in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SettingError(f"Two variables would be called '{twice}'. Choose by --var.")


def added_names(checked: Checked) -> list[str]:
    """Return the names of the variables beside a checked one."""
    from dkrls_cli.model.quality.checked import expected_variables, flag_variable

    grid = checked.grid
    flag = flag_variable(grid.name, grid.attrs)[0]
    return [flag, *(name for name, _ in expected_variables(grid.name, grid.attrs))]


def write_found(
    found: Sequence[CheckedVariable], target: Target | None, report: Report
) -> list[str]:
    """Write flags of all cells, or the flagged cells as rows; return notes for the user."""
    if target is None:
        return []
    if target.form in ("nc", "zarr"):
        fields = [field for one in found for field in check_fields(one.checked)]
        with report.working(f"writing {target.path or 'answers'}"):
            return write_fields(fields, target)
    write_rows(found, target)
    return []


def check_fields(checked: Checked) -> list[Field]:
    """Return a variable, its flags, and what was expected, to be written."""
    from dkrls_cli.files.writing import Field
    from dkrls_cli.grid.style import Packing
    from dkrls_cli.model.quality.checked import expected_variables, flag_variable

    grid = checked.grid
    flag, flag_attrs = flag_variable(grid.name, grid.attrs)
    (expected, about), (std, of_std) = expected_variables(grid.name, grid.attrs)
    bytes_style = replace(grid.style, packing=Packing("int8", {}), fill=None)
    linked = {**grid.attrs, "ancillary_variables": flag}
    errors = grid.style.of_errors
    return [
        Field(grid.name, grid.values, grid.axes, linked, grid.style),
        Field(flag, checked.flags.astype("float64"), grid.axes, flag_attrs, bytes_style),
        Field(expected, checked.expected, grid.axes, about, errors),
        Field(std, checked.std, grid.axes, of_std, errors),
    ]


def write_rows(found: Sequence[CheckedVariable], target: Target) -> None:
    """Write the flagged cells, a row for each; of several variables with a column of names."""
    first = found[0].checked.grid
    refuse_different_grids([(one.checked.grid.name, one.checked.grid.axes) for one in found])
    with rows_output(target, [one.checked.grid.name for one in found], first.axes) as writer:
        several = len(found) > 1
        for one in found:
            name = {"variable": one.checked.grid.name} if several else {}
            writer.write_records(
                [*name, *first.dims, *ROW_COLUMNS],
                ({**name, **row} for row in one.checked.rows()),
            )


ROW_COLUMNS = ("value", "expected", "std", "z", "kind", "hint")
"""Columns of a flagged cell behind its coordinates."""


def write_masked(path: str, found: Sequence[CheckedVariable], target: Target) -> list[str]:
    """Write the grid without flagged cells, as a copy of the file where the format is the same."""
    from dkrls_cli.model.fill import Filled

    filled = [Filled(one.checked.masked, one.checked.bad, None, {}, None) for one in found]
    return write_filled(path, filled, target, [one.table for one in found])


def report_found(
    found: Sequence[CheckedVariable], target: Target | None, masked: Target | None, report: Report
) -> None:
    """Report how many cells were flagged; beside rows on stdout, on stderr."""
    results = [check_result(one) for one in found]
    if target is not None and target.form == "json":
        return  # the rows are the JSON object of this command
    if target is not None and target.path is None:
        for facts, _ in results:
            report.note(summary(facts))
        return
    places = {"output": target.path if target else None, "masked": masked.path if masked else None}
    report.results(results, **places)


def summary(facts: Any) -> str:
    """Return the number of flagged cells as one line."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in facts["kinds"].items())
    hints = "".join(f"; {count} cells look like {words}" for words, count in facts["hints"].items())
    return (
        f"{facts['variable']}: {facts['flagged']} of {facts['observed']} cells flagged"
        + (f" ({kinds})" if kinds else "")
        + hints
    )


def check_result(one: CheckedVariable) -> Result:
    """Return what was found in a variable."""
    from dkrls_cli.checking.survey import MISSING

    checked = one.checked
    observed = int((checked.flags != MISSING).sum())
    facts: dict[str, Any] = {
        "variable": checked.grid.name,
        "cells": checked.flags.size,
        "observed": observed,
        "flagged": int(checked.bad.sum()),
        "share": checked.share,
        "kinds": checked.counts,
        "hints": checked.hints,
        "limits": list(checked.limits),
        "predictor": dict(checked.predictor),
        "seconds": one.seconds,
    }
    words = {
        "variable": checked.grid.name,
        "grid": shape_text(checked.grid.axes),
        "flagged": f"{count_text(facts['flagged'])} of {count_text(observed)} cells, "
        f"{100 * checked.share:.3g} %",
        **{kind: count_text(count) for kind, count in checked.counts.items()},
        **{
            f"{count_text(count)} cells": f"look like {hint}"
            for hint, count in checked.hints.items()
        },
        "limits": f"{checked.limits[0]:.3g} and {checked.limits[1]:.3g} standard deviations",
        "predicted": "; ".join(f"{dim}: {how}" for dim, how in checked.predictor.items()) or "no",
        "checked in": duration_text(one.seconds),
    }
    return facts, (pairs(words),)
