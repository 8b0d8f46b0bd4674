"""Filled grids: written into a copy of their file, or in another format as variables alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.output.answers import refuse_taken_names, value_fields, write_fields
from dkrls_cli.cli.output.ensembles import (
    EnsembleOptions,
    all_members,
    count_draws,
    refuse_names,
    write_member_cells,
)
from dkrls_cli.cli.output.rows import ROW_FORMATS, refuse_different_grids, rows_output
from dkrls_cli.cli.output.target import Target, chosen_target
from dkrls_cli.cli.report import Report, command_line
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

OTHER_MASKS = "--mask none fills all, --mask FILE knows land, --within DISTANCE fills near data."
"""How to change what was decided about land."""

NOTHING_LEFT = "Note: nothing is left to fill; --mask, --max-gap and --within decide."
"""Reported where a rule leaves every missing cell missing."""


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
    if target.form in ROW_FORMATS and not (target.form == "csv" and is_table):
        refuse_different_grids([(source.name, source.axes) for source in sources])
    (refuse_names if ensemble.ensemble else refuse_taken_names)(sources, how.std)
    drawn = sources if ensemble.ensemble else []
    for source in drawn:
        dims = [axis.name for axis in source.axes]
        check_ensemble(source.name, dims, ensemble.members, ensemble.seed or 0)
    if is_copy(path, target):
        errors = [std_variable(s.name, s.attrs)[0] for s in sources] if how.std else []
        check_names(path.rstrip("/"), errors, [ensemble_variable(s.name, {})[0] for s in drawn])


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
    fields = [field for one in filled for field in fields_of(one)]
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
    parts = [partial(_columns_of_part, fields_of(one)) for one in filled]
    write_member_cells(filled[0].grid.axes, names, draws, parts, target)


def _columns_of_part(fields: Sequence[Field], part: Slices, values: Array) -> dict[str, Any]:
    """Return a member of a variable, and its standard errors if there are any, on a part."""
    first, *others = fields
    found = {first.name: values[part].astype(first.style.dtype)}
    return found | {one.name: one.values[part].astype(one.style.dtype) for one in others}


def fields_of(filled: Filled) -> list[Field]:
    """Return a filled variable, and its standard errors if there are any, to be written."""
    return value_fields(filled.grid, filled.grid.axes, filled.grid.values, filled.std)


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
    path: str, filled: Sequence[Filled], target: Target, members: Sequence[Members]
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
