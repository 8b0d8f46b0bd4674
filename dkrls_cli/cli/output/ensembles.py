"""Ensembles of ``predict`` and ``fill``: members beside the answers in files, and as rows of text.

Members are drawn and written one by one, so that memory does not grow with their number. A file
holds the answers as without an ensemble, and the members in a variable of their own. Rows of text
are those of the members, with their number in a column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkrls_cli.cli.asking import AnswerOptions
from dkrls_cli.cli.output.answers import (
    answer_fields,
    refuse_taken_names,
    report_cells,
    report_missing,
    write_fields,
)
from dkrls_cli.cli.output.points import (
    Reading,
    Stations,
    Tally,
    asked_stations,
    refuse_several_grids,
    with_attrs,
    write_table,
)
from dkrls_cli.cli.output.rows import (
    BLOCK_CELLS,
    ROW_FORMATS,
    columns,
    refuse_different_grids,
    rows_output,
)
from dkrls_cli.cli.output.target import Target
from dkrls_cli.cli.report import Report
from dkrls_cli.errors import InputError, SettingError

if TYPE_CHECKING:
    from dkrls_cli.arrays import Array, Slices
    from dkrls_cli.files.patching.members import Members
    from dkrls_cli.files.source import Source
    from dkrls_cli.files.text.points import PointBlock
    from dkrls_cli.files.writing import Field
    from dkrls_cli.grid.axes import Axis
    from dkrls_cli.grid.grid import Grid
    from dkrls_cli.model.answering.answers import PointQuery, Query
    from dkrls_cli.model.model import Model


@dataclass(frozen=True)
class EnsembleOptions:
    """Whether to draw members of an ensemble, and how."""

    ensemble: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=10000,
            metavar="N",
            help="Add N members: the answers with errors drawn at random, which go together in "
            "space and time.",
        ),
    ] = None
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="S", show_default="0", help="Seed of the members.")
    ] = None

    def refuse_impossible(self) -> None:
        """Raise SettingError if there is a seed and nothing to draw."""
        if self.seed is not None and self.ensemble is None:
            raise SettingError(f"--seed {self.seed} is for the members of --ensemble N. Give both.")

    @property
    def members(self) -> int:
        """Number of members; 0 without an ensemble."""
        return self.ensemble or 0

    @property
    def facts(self) -> dict[str, int]:
        """Number of members and seed, for JSON; empty without an ensemble."""
        return {"members": self.members, "seed": self.seed or 0} if self.members else {}


def answer_ensembles(
    queries: Sequence[Query],
    target: Target,
    answers: AnswerOptions,
    options: EnsembleOptions,
    report: Report,
) -> int:
    """Write ensembles of variables on product grids, and return the number of cells."""
    models = [query.model for query in queries]
    refuse_names(models, answers.std)
    if target.form in ROW_FORMATS:
        refuse_different_grids([(query.model.name, query.axes) for query in queries])
    report_cells(queries, answers, report)
    with report.working("drawing members") as done:
        draws = open_draws(queries, options, done)
        if target.form in ROW_FORMATS:
            errors = [query.std() if answers.std else None for query in queries]
            parts = [
                partial(_columns_of_part, query.model, std)
                for query, std in zip(queries, errors, strict=True)
            ]
            write_member_cells(queries[0].axes, names_of(models), draws, parts, target)
        else:
            fields: list[Field] = []
            for query in queries:
                fields += answer_fields(query, answers.std)
            members = all_members(models, draws, options)
            for note in write_fields(fields, target, members):
                report.note(f"Note: {note}.")
    return sum(math.prod(query.shape) for query in queries)


def answer_point_ensembles(
    models: Sequence[Model],
    points: str,
    at: Sequence[str] | None,
    target: Target,
    answers: AnswerOptions,
    options: EnsembleOptions,
    report: Report,
    reading: Reading | None = None,
) -> int:
    """Write ensembles at points, or at every point for all of --at; return the number of cells.

    All points are read before the first is answered: their errors go together.
    """
    refuse_several_grids(models)
    stations = asked_stations(models[0], points, at, reading)
    table, queries = read_points(models, stations, answers)
    models = [query.model for query in queries]
    refuse_names(models, answers.std)
    for query in queries:
        tally = Tally(query.model, query.model, query.rules)
        tally.add(query)
        report_missing(query.model, tally.cells, tally.outside, tally.land, answers, report)
    with report.working("drawing members") as done:
        draws = open_draws(queries, options, done)
        if target.form in ROW_FORMATS:
            write_member_points(table, stations, queries, draws, target, answers.std)
        else:
            found: dict[str, Any] = {}
            for query in queries:
                found |= columns(query.model, query.values(), query.std() if answers.std else None)
            members = all_members(models, draws, options)
            write_table(table, stations, with_attrs(found, models), models[0], target, members)
    return sum(math.prod(query.shape) for query in queries)


def refuse_names(variables: Sequence[Model | Source], std: bool) -> None:
    """Raise SettingError if what is added to a variable has the name of another variable."""
    from dkrls_cli.grid.grid import ensemble_variable

    refuse_taken_names(variables, std)
    names = names_of(variables)
    for one in variables:
        added = ensemble_variable(one.name, one.attrs)[0]
        if added in names:
            raise SettingError(
                f"'{added}' is a variable of its own and the name of the ensemble of "
                f"'{one.name}'. Choose variables by --var, or leave --ensemble out."
            )


def names_of(variables: Sequence[Model | Source]) -> list[str]:
    """Return the names of variables."""
    return [one.name for one in variables]


def open_draws(
    queries: Sequence[Query | PointQuery], options: EnsembleOptions, done: Callable[[float], None]
) -> list[Iterator[Array]]:
    """Return the members of every variable; `done` is told the fraction that has been drawn."""
    from dkrls_cli.model.answering.ensembles import draw_members

    draws = [draw_members(query, options.members, options.seed or 0) for query in queries]
    return count_draws(draws, options.members, done)


def count_draws(
    draws: Sequence[Iterator[Array]], members: int, done: Callable[[float], None]
) -> list[Iterator[Array]]:
    """Return the same members; `done` is told the fraction that has been drawn."""
    total, drawn = members * len(draws), 0

    def count(members: Iterator[Array]) -> Iterator[Array]:
        nonlocal drawn
        for values in members:
            yield values
            drawn += 1
            done(drawn / total)

    return list(map(count, draws))


def all_members(
    variables: Sequence[Model | Grid], draws: Sequence[Iterator[Array]], options: EnsembleOptions
) -> list[Members]:
    """Return the members of every variable, to be written to a file."""
    from dkrls_cli.files.patching.members import Members
    from dkrls_cli.grid.grid import ensemble_variable

    result = []
    for one, drawn in zip(variables, draws, strict=True):
        name, attrs = ensemble_variable(one.name, one.attrs)
        dtype = one.style.of_errors.dtype  # how far members reach is not known before the draws
        result.append(Members(one.name, name, attrs, dtype, options.members, drawn))
    return result


def write_member_cells(
    axes: Sequence[Axis],
    names: Sequence[str],
    draws: Sequence[Iterator[Array]],
    parts: Sequence[Callable[[Slices, Array], dict[str, Any]]],
    target: Target,
) -> None:
    """Write a row for every member and cell of a grid, one member after the other.

    `parts` return, per variable, the columns of one part of the grid, given a member.
    """
    from dkrls_cli.arrays import blocks
    from dkrls_cli.grid.grid import REALIZATION, realization_axis

    dims, texts = [REALIZATION, *(axis.name for axis in axes)], [axis.texts for axis in axes]
    with rows_output(target, names, [realization_axis(1), *axes]) as writer:
        for number, together in enumerate(zip(*draws, strict=True)):
            for part in blocks([axis.size for axis in axes], BLOCK_CELLS):
                here = [words[p] for words, p in zip(texts, part, strict=True)]
                found: dict[str, Any] = {}
                for columns_of, values in zip(parts, together, strict=True):
                    found |= columns_of(part, values)
                writer.write_cells(dims, [[str(number)], *here], found)


def _columns_of_part(
    model: Model, std: Array | None, part: Slices, values: Array
) -> dict[str, Any]:
    """Return a member of a variable, and its standard errors if there are any, on a part."""
    return columns(model, values[part], None if std is None else std[part])


def read_points(
    models: Sequence[Model], stations: Stations, answers: AnswerOptions
) -> tuple[PointBlock, list[PointQuery]]:
    """Return the whole table of points, and what is asked of every model."""
    from dkrls_cli.files.text.points import join_blocks
    from dkrls_cli.grid.grid import REALIZATION

    table = join_blocks(list(stations.blocks(models[0])))
    if REALIZATION in table.header:
        raise InputError(
            f"There is a column '{REALIZATION}' already, as the number of a member is named. "
            "Rename it."
        )
    shared = [stations.axes[place] for place in stations.spread]
    axes = stations.merge(table.axes, shared)
    return table, [stations.ask(model, axes, answers.rules(model)) for model in models]


def write_member_points(
    table: PointBlock,
    stations: Stations,
    queries: Sequence[PointQuery],
    draws: Sequence[Iterator[Array]],
    target: Target,
    std: bool,
) -> None:
    """Write the rows of a table for every member, one member after the other."""
    from dkrls_cli.grid.grid import REALIZATION, realization_axis

    dims = [REALIZATION, *stations.dims]
    texts = [stations.axes[place].texts for place in stations.spread]
    errors = [query.std() if std else None for query in queries]
    axes = [realization_axis(1), *stations.axes]
    with rows_output(target, names_of([query.model for query in queries]), axes) as writer:
        for number, together in enumerate(zip(*draws, strict=True)):
            found: dict[str, Any] = {}
            for query, values, error in zip(queries, together, errors, strict=True):
                bars = None if error is None else error[:, None]
                found |= columns(query.model, values[:, None], bars)
            writer.write_points(table, found, dims, [[str(number)], *texts])
            writer.stream.flush()
