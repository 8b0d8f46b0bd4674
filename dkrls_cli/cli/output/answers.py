"""Answers on product grids, of one variable or several: to rows of text, and to grids in files."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from dkrls_cli.cli import options as opt
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
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.spec import parse_at
from dkrls_cli.spelling import suggest

if TYPE_CHECKING:
    from dkrls_cli.arrays import Array
    from dkrls_cli.files.patching.members import Members
    from dkrls_cli.files.regions.slots import Blank
    from dkrls_cli.files.source import Source
    from dkrls_cli.files.writing import Field
    from dkrls_cli.grid.axes import Axis
    from dkrls_cli.grid.grid import Grid
    from dkrls_cli.grid.style import Style
    from dkrls_cli.model.answering.answers import Land, Outside, Query, Rules
    from dkrls_cli.model.model import Model

HELD_CELLS = 2**23
"""Cells of answers that are held until they are written, 64 MB: more are written in regions."""

_LAND = ("model", "none")
_REGION_CELLS = 2**21  # cells of a region that is written: 16 MB of answers


@dataclass(frozen=True)
class AnswerOptions:
    """Form of the answers, and where an answer is allowed."""

    std: Annotated[bool, typer.Option("--std", help="Add the standard error of every answer.")] = (
        False
    )
    smooth: opt.Smooth = False
    outside: Annotated[
        Literal["refuse", "missing", "nearest", "extrapolate"] | None,
        typer.Option(
            help="What to do outside the training range.",
            show_default="missing with --like and in regrid, else refuse",
        ),
    ] = None
    allow_extrapolation: Annotated[
        bool, typer.Option("--allow-extrapolation", help="The same as --outside extrapolate.")
    ] = False
    mask: Annotated[
        str,
        typer.Option(
            metavar="model|none|FILE",
            help="What stays missing: cells that never had data (land), nothing, or cells where "
            "FILE has 0 or no value; the nearest cell decides.",
        ),
    ] = "model"
    mean: Annotated[
        bool,
        typer.Option(
            "--mean",
            help="Means over the cells of all dimensions at new coordinates: their bounds, "
            "or half-way between coordinates.",
        ),
    ] = False
    mean_along: Annotated[
        str | None,
        typer.Option(metavar="DIM,...", help="Means over the cells of these dimensions only."),
    ] = None
    mean_over: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIM[=LOW:HIGH],...",
            help="One mean over ranges, or over whole dimensions, with its own standard error. "
            "Repeatable.",
        ),
    ] = None
    derivative: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIM", help="Derivative by a dimension; twice for the second. Repeatable."
        ),
    ] = None
    per_metre: Annotated[
        bool,
        typer.Option(
            "--per-metre", help="Derivatives by latitude and longitude in metres, not degrees."
        ),
    ] = False

    def rules(
        self,
        model: Model,
        usual: Outside = "refuse",
        asked: Mapping[str, Any] | None = None,
        cells: Mapping[str, Array] | None = None,
    ) -> Rules:
        """Return the rules of answering that these options give for a model.

        `usual` is what happens outside if no option says it, `asked` are the coordinates that are
        asked for by dimension, and `cells` the cells of these, where they are known.
        """
        from dkrls_cli.model.answering.questions import read_question

        mean = self.mean_dims or self.mean
        question = read_question(
            model, mean, self.derivative or (), self.per_metre, asked or {}, cells
        )
        return replace(self.plain_rules(model, usual), question=question)

    def plain_rules(self, model: Model, usual: Outside) -> Rules:
        """Return the rules of answering values that these options give for a model."""
        from dkrls_cli.model.answering.answers import Rules

        self.refuse_impossible()
        outside: Outside = "extrapolate" if self.allow_extrapolation else self.outside or usual
        return Rules(outside, read_land(self.mask, model), self.smooth)

    @property
    def mean_dims(self) -> list[str]:
        """The dimensions that --mean-along names."""
        return [dim.strip() for dim in (self.mean_along or "").split(",") if dim.strip()]

    @property
    def asks(self) -> bool:
        """Whether anything but values is asked for."""
        cells = self.mean or self.mean_along or self.mean_over
        return bool(cells or self.derivative or self.per_metre)

    def refuse_impossible(self) -> None:
        """Raise an error for options that exclude each other, or a mask that is not there."""
        if self.mean_over and (self.mean or self.mean_along):
            raise SettingError("--mean-over does not go with --mean or --mean-along.")
        if self.allow_extrapolation and self.outside not in (None, "extrapolate"):
            raise SettingError(
                f"--allow-extrapolation and --outside {self.outside} do not go together."
            )
        if self.mask not in _LAND:
            refuse_no_mask(self.mask, _LAND)


def read_land(mask: str, model: Model) -> Land:
    """Return which cells stay missing: the name of a rule, or the mask in a file."""
    if mask in _LAND:
        return cast(Literal["model", "none"], mask)
    from dkrls_cli.model.answering.coverage import coverage_of

    return coverage_of(read_mask_file(mask, _LAND), model.axes)


def read_mask_file(mask: str, known: Sequence[str]) -> Grid:
    """Return the mask in a file, or raise InputError with the names of known masks."""
    from dkrls_cli.files.reading import open_file

    refuse_no_mask(mask, known)
    return open_file(mask).grid()


def refuse_no_mask(mask: str, known: Sequence[str]) -> None:
    """Raise InputError if there is no file of a mask, with the names of known masks."""
    if not os.path.exists(mask):
        raise InputError(
            f"There is no mask '{mask}', and no file of that name. Choose from: "
            f"{', '.join(known)}; or give a file.{suggest(mask, known)}"
        )


def asked_cells(
    variables: Sequence[Sequence[Axis]],
    at: Sequence[str] | None,
    like: str | None,
    report: Report,
) -> tuple[list[dict[str, Any]], list[dict[str, Array]]]:
    """Return the coordinates to answer at, by dimension, for variables on these axes, and cells.

    They are those of a file, replaced by those of --at. What only some of the variables have is
    for these. Cells (m, 2) are those of the file, where it has bounds.
    """
    from dkrls_cli.files.reading import Targets, read_targets
    from dkrls_cli.grid.cf import is_called

    if like is None:
        targets = Targets([{} for _ in variables], [{} for _ in variables])
    else:
        targets = read_targets(like, variables)
    if targets.unused:
        report.note(
            f"Note: {', '.join(targets.unused)} of '{like}' are coordinates of no dimension here, "
            "and are not used."
        )
    asked, cells = targets.coordinates, targets.cells
    dims = [text.partition("=")[0].strip() for text in at or ()]
    known = [[any(is_called(axis, dim) for axis in axes) for dim in dims] for axes in variables]
    nobody = [not any(of_one) for of_one in zip(*known, strict=True)]
    for found, its, axes, own in zip(asked, cells, variables, known, strict=True):
        texts = zip(at or (), own, nobody, strict=True)
        replaced = parse_at([text for text, has, none in texts if has or none], axes)
        found.update(replaced)
        for dim in replaced:
            its.pop(dim, None)
    return asked, cells


def asked_grids(
    models: Sequence[Model],
    asked: Sequence[dict[str, Any]],
    answers: AnswerOptions,
    usual: Outside,
    cells: Sequence[Mapping[str, Array]],
) -> list[Query]:
    """Return where to answer for each of several variables.

    `asked` has their coordinates, `usual` is what happens outside if no option says it, and `cells`
    has the bounds of cells, where they are known.
    """
    from dkrls_cli.model.answering.answers import ask
    from dkrls_cli.model.answering.regions import ask_region

    if answers.mean_over:
        derive = answers.derivative or ()
        return [
            ask_region(
                model,
                answers.mean_over,
                at,
                answers.plain_rules(model, usual),
                derive,
                answers.per_metre,
            )
            for model, at in zip(models, asked, strict=True)
        ]
    return [
        ask(model, model.axes_at(at), answers.rules(model, usual, at, own), list(at))
        for model, at, own in zip(models, asked, cells, strict=True)
    ]


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
