"""Answers on product grids, of one variable or several: to rows of text, and to grids in files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dkrls_cli.cli.asking import AnswerOptions
from dkrls_cli.cli.output.rows import (
    BLOCK_CELLS,
    ROW_FORMATS,
    columns,
    refuse_different_grids,
    rows_output,
    rows_progress,
)
from dkrls_cli.cli.output.target import Target
from dkrls_cli.cli.report import Report, command_line
from dkrls_cli.cli.terminal.tables import count_text
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.arrays import Array
    from dkrls_cli.files.patching.members import Members
    from dkrls_cli.files.regions.slots import Blank
    from dkrls_cli.files.source import Source
    from dkrls_cli.files.writing import Field
    from dkrls_cli.grid.axes import Axis
    from dkrls_cli.grid.grid import Grid
    from dkrls_cli.grid.style import Style
    from dkrls_cli.model.answering.answers import Query
    from dkrls_cli.model.model import Model

HELD_CELLS = 2**23
"""Cells of answers that are held until they are written, 64 MB: more are written in regions."""

_REGION_CELLS = 2**21  # cells of a region that is written: 16 MB of answers


def answer_grids(
    queries: Sequence[Query], target: Target, answers: AnswerOptions, report: Report
) -> int:
    """Write the answers of variables on product grids, and return the number of cells."""
    refuse_taken_names([query.model for query in queries], answers.std)
    report_cells(queries, answers, report)
    if target.form not in ROW_FORMATS:
        cells = sum(math.prod(query.shape) for query in queries)
        write = write_at_once if math.isinf(made_at_once(queries, target)) else write_in_regions
        for note in write(queries, target, answers.std, report):
            report.note(f"Note: {note}.")
        return cells
    refuse_different_grids([(query.model.name, query.axes) for query in queries])
    texts, cells = [axis.texts for axis in queries[0].axes], 0
    parts = zip(*(query.blocks(BLOCK_CELLS, std=answers.std) for query in queries), strict=True)
    total = sum(math.prod(query.shape) for query in queries)
    names, axes = [query.model.name for query in queries], queries[0].axes
    with rows_progress(target, report) as done, rows_output(target, names, axes) as writer:
        for together in parts:
            here = [words[p] for words, p in zip(texts, together[0][0], strict=True)]
            found: dict[str, Any] = {}
            for query, (_, values, std) in zip(queries, together, strict=True):
                found |= columns(query.model, values, std)
                cells += values.size
            writer.write_cells(queries[0].model.dims, here, found)
            done(cells / total)
    return cells


def made_at_once(queries: Sequence[Query], target: Target) -> float:
    """Return the answers of a variable that are made at a time; infinity: all of them."""
    if target.form in ROW_FORMATS:
        return BLOCK_CELLS
    cells = sum(math.prod(query.shape) for query in queries)
    return _REGION_CELLS if cells > HELD_CELLS else math.inf


def write_at_once(queries: Sequence[Query], target: Target, std: bool, report: Report) -> list[str]:
    """Write answers that are held in memory until then; return notes."""
    fields: list[Field] = []
    with report.working("predicting") as done:
        for number, query in enumerate(queries):
            fields += answer_fields(query, std)
            done((number + 1) / len(queries))
    with report.working(f"writing {target.path or 'answers'}"):
        return write_fields(fields, target)


def write_in_regions(
    queries: Sequence[Query], target: Target, std: bool, report: Report
) -> list[str]:
    """Write answers block by block, so that few of them are in memory; return notes."""
    from dkrls_cli.arrays import blocks
    from dkrls_cli.files.output.atomic import copy_to_stdout
    from dkrls_cli.files.output.leftovers import private_folder
    from dkrls_cli.files.regions.creating import common_regions
    from dkrls_cli.files.regions.writer import grid_writer

    with ExitStack() as stack:
        path = target.path or str(stack.enter_context(private_folder()) / "answers.nc")
        blanks = [blank for query in queries for blank in answer_blanks(query, std)]
        firsts = [(query.axes, next(blocks(query.shape, _REGION_CELLS))) for query in queries]
        how: dict[str, Any] = {
            "overwrite": target.overwrite,
            "compress": target.compress,
            "regions": common_regions((axes, [p.stop for p in first]) for axes, first in firsts),
        }
        with grid_writer(path, blanks, command_line(), **how) as writer:
            for query in queries:
                names = [blank.name for blank in answer_blanks(query, std)]
                cells, done = 0, math.prod(query.shape)
                with report.working(f"predicting {query.model.name}") as progress:
                    for part, values, errors in query.blocks(_REGION_CELLS, std=std):
                        writer.write(names[0], part, values)
                        if errors is not None:
                            writer.write(names[1], part, errors)
                        cells += math.prod(p.stop - p.start for p in part)
                        progress(cells / done)
            notes = writer.notes
        if target.path is None:
            copy_to_stdout(Path(path))
    return notes


def refuse_large_answers(queries: Sequence[Query], std: bool) -> None:
    """Raise SettingError if answers that are to be held at once do not fit the memory."""
    from dkrls_cli.memory import available_bytes
    from dkrls_cli.tuning.footprint import answer_memory

    cells = sum(math.prod(query.shape) for query in queries)
    if answer_memory(cells, std=std) > available_bytes():
        raise SettingError(
            f"Answers in {count_text(cells)} cells do not fit the memory. Ask for parts."
        )


def report_noise(query: Query, report: Report) -> None:
    """Report dimensions whose slopes, or values of means over cells, may be those of noise."""
    from dkrls_cli.model.answering.slopes import noisy_slopes, noisy_values

    rules = query.rules
    noisy = noisy_values(query.model, rules.question, smooth=rules.smooth)
    if noisy:
        report.note(
            "Note: values follow the means over their cells, of which a share of "
            f"{max(noisy.values()):.2g} may be noise; --smooth gives those of the smooth field."
        )
    for dim, ridge in noisy_slopes(query.model, rules.question, smooth=rules.smooth).items():
        report.note(
            f"Note: slopes along {dim} follow the data, of which a share of {ridge:.2g} may be "
            "noise; --smooth gives those of the smooth field."
        )


def report_cells(queries: Sequence[Query], answers: AnswerOptions, report: Report) -> None:
    """Report how many cells stay missing, and how many are extrapolated."""
    for query in queries:
        cells = math.prod(query.shape)
        if "comment" in query.model.attrs and (answers.mean_over or answers.derivative):
            report.note(f"Note: {query.model.name}: {query.model.attrs['comment']}.")
        report_noise(query, report)
        report_missing(query.model, cells, query.outside_count, query.land_count, answers, report)
        asked = query.rules.question
        if asked is not None and asked.mean and not asked.region and query.model.coverage.has_land:
            report.note(
                f"Note: {query.model.name} has cells that never had a value. Means over cells that "
                "cover some of them are of the field continued there; --mean-over leaves them out."
            )
        far = query.extrapolated_count if query.rules.outside == "refuse" else 0
        if far:
            report.note(
                f"Note: {count_text(far)} of {count_text(cells)} cells of {query.model.name} are "
                "extrapolated, where the file has coordinates beyond its data; --outside missing "
                "leaves them out."
            )


def refuse_taken_names(variables: Sequence[Model | Source], std: bool) -> None:
    """Raise SettingError if the standard error of a variable has the name of another variable."""
    from dkrls_cli.grid.grid import std_variable

    names = [one.name for one in variables]
    for one in variables if std else ():
        error = std_variable(one.name, one.attrs)[0]
        if error in names:
            raise SettingError(
                f"'{error}' is a variable of its own and the name of the standard errors of "
                f"'{one.name}'. Choose variables by --var, or leave --std out."
            )


def answer_fields(query: Query, std: bool) -> list[Field]:
    """Return the answers of a variable, and their standard errors if asked for, to be written."""
    return value_fields(query.model, query.axes, query.values(), query.std() if std else None)


def value_fields(
    variable: Model | Grid, axes: Sequence[Axis], values: Array, std: Array | None
) -> list[Field]:
    """Return values of a variable, and their standard errors if there are any, to be written."""
    from dkrls_cli.files.writing import Field

    arrays = [values] if std is None else [values, std]
    each = zip(described(variable, std is not None), arrays, strict=True)
    return [Field(name, array, axes, attrs, style) for (name, attrs, style), array in each]


def answer_blanks(query: Query, std: bool) -> list[Blank]:
    """Return the variables of answers, and of their errors if asked for, without values."""
    from dkrls_cli.files.regions.slots import Blank

    missing = query.outside_count + query.land_count > 0
    return [
        Blank(name, query.axes, attrs, style, missing)
        for name, attrs, style in described(query.model, std)
    ]


def described(variable: Model | Grid, std: bool) -> list[tuple[str, Mapping[str, Any], Style]]:
    """Return name, attributes and style of a variable, and of its standard errors if asked for."""
    from dkrls_cli.grid.grid import std_variable

    if not std:
        return [(variable.name, variable.attrs, variable.style)]
    name, attrs = std_variable(variable.name, variable.attrs)
    linked = {**variable.attrs, "ancillary_variables": name}
    return [(variable.name, linked, variable.style), (name, attrs, variable.style.of_errors)]


def report_missing(
    model: Model, cells: int, beyond: int, land: int, answers: AnswerOptions, report: Report
) -> None:
    """Report how many cells stay missing, why, and how to change that."""
    of = f"{count_text(cells)} cells of {model.name} stay missing"
    if land:
        why = "where the data never had a value" if answers.mask == "model" else "by the mask"
        report.note(f"Note: {count_text(land)} of {of}, {why}; --mask none answers there.")
    if beyond:
        ways = "extrapolate" if answers.asks else "nearest or extrapolate"
        report.note(
            f"Note: {count_text(beyond)} of {of}, outside the training range; --outside {ways} "
            "answers there."
        )


def write_fields(
    fields: Sequence[Field], target: Target, members: Sequence[Members] = ()
) -> list[str]:
    """Write grids of answers to a file, or to stdout through a temporary file; return notes.

    The members of ensembles are written one by one.
    """
    from dkrls_cli.files.writing import write_grid, write_netcdf_to_stdout

    command, compress = command_line(), target.compress
    if target.path is not None:
        return write_grid(
            target.path,
            fields,
            command,
            overwrite=target.overwrite,
            compress=compress,
            members=members,
        )
    return write_netcdf_to_stdout(fields, command, compress=compress, members=members)
