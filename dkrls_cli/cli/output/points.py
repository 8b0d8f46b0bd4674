"""Answers of ``dkrls predict`` at scattered points, and at stations times times."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from dkrls_cli.cli.asking import AnswerOptions
from dkrls_cli.cli.output.answers import refuse_taken_names, report_missing
from dkrls_cli.cli.output.rows import ROW_FORMATS, columns, rows_output, rows_progress
from dkrls_cli.cli.output.target import Target
from dkrls_cli.cli.report import Report, command_line
from dkrls_cli.errors import SettingError
from dkrls_cli.grid.spec import parse_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dkrls_cli.arrays import Slices
    from dkrls_cli.files.patching.members import Members
    from dkrls_cli.files.text.points import PointBlock
    from dkrls_cli.grid.axes import Axis
    from dkrls_cli.model.answering.answers import PointQuery, Query, Rules
    from dkrls_cli.model.model import Model
    from dkrls_cli.model.streaming.running import Scheduler

Asked = TypeVar("Asked", "Query", "PointQuery")

# Share of the memory for the answers that are held, and bytes of each: answers, errors, their sums.
_HELD = 0.25
_ANSWER_BYTES = 64

# Cells answered at a time: 8 MB, and enough stations to be worth the solve that precedes them.
_BLOCK_CELLS = 2**20


@dataclass(frozen=True)
class Reading:
    """How data that models refer to is read for points.

    Attributes
    ----------
    limit
        Bytes that may be in use, the program included.
    scheduler
        Reads the data.
    """

    limit: float
    scheduler: Scheduler

    @property
    def cells(self) -> int:
        """Answers of the points that are read from a table at a time.

        Each of such blocks is a pass over the data, so they are as large as memory allows.
        """
        from dkrls_cli.model.streaming.request import process_bytes

        return int(max(_BLOCK_CELLS, _HELD * (self.limit - process_bytes()) / _ANSWER_BYTES))

    def refer(self, query: Asked) -> Asked:
        """Return a query that reads the data when its answers are asked for."""
        from dkrls_cli.model.referring.grids import refer

        return query if query.model.reference is None else refer(query, self.limit, self.scheduler)


@dataclass(frozen=True, eq=False)
class Stations:
    """Where to answer: a table of points, and axes that are the same for all of them.

    Attributes
    ----------
    path
        Table of the points; ``-`` is standard input.
    axes
        Axes of the model, those that --at names at the coordinates asked for.
    spread
        Indices of the axes that --at names.
    reading
        How data that models refer to is read; None if they hold it.
    """

    path: str
    axes: Sequence[Axis]
    spread: Sequence[int]
    reading: Reading | None = None

    @property
    def dims(self) -> list[str]:
        """Names of the axes that are the same for all points."""
        return [self.axes[place].name for place in self.spread]

    @property
    def asked(self) -> dict[str, Any]:
        """Coordinates of the axes that are the same for all points, as the user writes them."""
        return {self.axes[place].name: self.axes[place].values for place in self.spread}

    @property
    def cells(self) -> int:
        """Number of answers for each point."""
        return math.prod(self.axes[place].size for place in self.spread)

    def blocks(self, model: Model) -> Iterator[PointBlock]:
        """Yield the points in blocks that have about as many answers as are computed at a time."""
        from dkrls_cli.files.text.points import BLOCK_ROWS, point_blocks

        cells = _BLOCK_CELLS if self.reading is None else self.reading.cells
        rows = max(1, min(BLOCK_ROWS, cells // max(1, self.cells)))
        yield from point_blocks(self.path, model.axes, rows, self.dims)

    def ask(self, model: Model, axes: Sequence[Axis], rules: Rules) -> PointQuery:
        """Return what a model is asked at points; their axes are in the order of the model's."""
        from dkrls_cli.model.answering.answers import ask_points

        query = ask_points(model, axes, rules, self.spread)
        return query if self.reading is None else self.reading.refer(query)

    def merge(self, own: Sequence[Any], shared: Sequence[Any]) -> list[Any]:
        """Return items of the points' axes and of the others, in the order of the model's axes."""
        mine, theirs = iter(own), iter(shared)
        places = range(len(self.axes))
        return [next(theirs) if place in self.spread else next(mine) for place in places]


def answer_points(
    models: Sequence[Model],
    points: str,
    at: Sequence[str] | None,
    target: Target,
    answers: AnswerOptions,
    report: Report,
    reading: Reading | None = None,
) -> int:
    """Write the answers at points, or at every point for all of --at; return their number.

    Rows of text are written as the points come; a file of another format when all are there.
    """
    refuse_several_grids(models)
    stations = asked_stations(models[0], points, at, reading)
    rules = [answers.rules(model, asked=stations.asked) for model in models]
    named = [named_answers(model, rule) for model, rule in zip(models, rules, strict=True)]
    refuse_taken_names(named, answers.std)
    tally = {
        name.name: Tally(name, model, rule)
        for name, model, rule in zip(named, models, rules, strict=True)
    }
    if target.form not in ROW_FORMATS:
        with report.working("predicting"):
            count = write_file(tally, stations, target, answers)
    else:
        with rows_progress(target, report):
            count = write_rows(tally, stations, target, answers)
    for one in tally.values():
        report_missing(one.model, one.cells, one.outside, one.land, answers, report)
    return count


def named_answers(model: Model, rules: Rules) -> Model:
    """Return the model with the name and attributes of its answers."""
    from dkrls_cli.model.answering.questions import question_view

    return model if rules.question is None else question_view(model, rules.question)


def refuse_several_grids(models: Sequence[Model]) -> None:
    """Raise SettingError if variables are on different grids: points are read for one."""
    first = models[0]
    for model in models[1:]:
        if model.dims != first.dims or [a.texts for a in model.axes] != [
            a.texts for a in first.axes
        ]:
            raise SettingError(
                f"Variables '{first.name}' and '{model.name}' are on different grids. Choose those "
                "on one grid by --var."
            )


@dataclass
class Tally:
    """A model, and how many of its answers there were, outside the training range and on land.

    `model` has the name and attributes of the answers; `asked` is the model that is asked by the
    `rules`.
    """

    model: Model
    asked: Model
    rules: Rules
    cells: int = 0
    outside: int = 0
    land: int = 0

    def add(self, query: PointQuery) -> None:
        """Count the answers of a query."""
        self.cells += math.prod(query.shape)
        self.outside += query.outside_count
        self.land += query.land_count


def asked_stations(
    model: Model, points: str, at: Sequence[str] | None, reading: Reading | None = None
) -> Stations:
    """Return where to answer, or raise SettingError if --at leaves no dimension to the points."""
    from dkrls_cli.files.text.points import find_columns

    asked = parse_at(at, model.coverage.axes)
    words = [[word.strip() for word in text.split("=", 1)] for text in at or ()]
    whole = [dim for dim, spec in words if spec == "all"]
    named = {*asked, *find_columns(whole, model.axes, "--at")}
    spread = [place for place, dim in enumerate(model.dims) if dim in named]
    if len(spread) == len(model.dims):
        raise SettingError(
            "--at gives the coordinates of every dimension, and --points has none to give. Leave "
            "one of them out."
        )
    return Stations(points, model.axes_at(asked), spread, reading)


def answer_blocks(
    tally: Mapping[str, Tally], stations: Stations, answers: AnswerOptions
) -> Iterator[tuple[PointBlock, Slices, dict[str, Any]]]:
    """Yield a block of points, a part of it, and the answers there by name.

    The part is a slice of the rows of the block, and one of every axis that all points share.
    """
    shared = [stations.axes[place] for place in stations.spread]
    models = [one.model for one in tally.values()]
    for block in stations.blocks(models[0]):
        axes = stations.merge(block.axes, shared)
        queries = [stations.ask(one.asked, axes, one.rules) for one in tally.values()]
        for query in queries:
            tally[query.model.name].add(query)
        parts = (query.blocks(_BLOCK_CELLS, std=answers.std) for query in queries)
        for together in zip(*parts, strict=True):
            found: dict[str, Any] = {}
            for model, (_, values, std) in zip(models, together, strict=True):
                found |= columns(model, values, std)
            yield block, together[0][0], found


def write_rows(
    tally: Mapping[str, Tally], stations: Stations, target: Target, answers: AnswerOptions
) -> int:
    """Write the answers as rows of text as they come, and return their number."""
    texts, count = [stations.axes[place].texts for place in stations.spread], 0
    names = list(tally)
    with rows_output(target, names, stations.axes) as writer:
        for block, (rows, *parts), found in answer_blocks(tally, stations, answers):
            here = [words[part] for words, part in zip(texts, parts, strict=True)]
            writer.write_points(block.take(rows), found, stations.dims, here)
            writer.stream.flush()
            count += sum(found[name].size for name in names)
    return count


def write_file(
    tally: Mapping[str, Tally], stations: Stations, target: Target, answers: AnswerOptions
) -> int:
    """Write the answers as one NetCDF file or Zarr store, and return their number."""
    table, variables = gather(tally, stations, answers)
    first = next(iter(tally.values())).model
    write_table(table, stations, variables, first, target)
    return sum(variables[name][0].size for name in tally)


def write_table(
    table: PointBlock,
    stations: Stations,
    variables: Mapping[str, tuple[NDArray[Any], Mapping[str, Any]]],
    first: Model,
    target: Target,
    members: Sequence[Members] = (),
) -> None:
    """Write a table of points with answers, and ensembles of them, as a NetCDF file or Zarr store.

    The style of the file is that of the first model.
    """
    from dkrls_cli.files.output.atomic import copy_to_stdout
    from dkrls_cli.files.output.leftovers import private_folder
    from dkrls_cli.files.stations import write_stations

    write = partial(
        write_stations,
        table=table,
        spread=[stations.axes[place] for place in stations.spread],
        variables=variables,
        style=first.style,
        command=command_line(),
        compress=target.compress,
        members=members,
    )
    if target.path is not None:
        write(target.path, overwrite=target.overwrite)
        return
    with private_folder() as folder:
        path = folder / "answers.nc"
        write(str(path), overwrite=False)
        copy_to_stdout(path)


def gather(
    tally: Mapping[str, Tally], stations: Stations, answers: AnswerOptions
) -> tuple[PointBlock, dict[str, tuple[NDArray[Any], Mapping[str, Any]]]]:
    """Return the whole table of points, and the answers with their attributes by name."""
    import numpy as np

    from dkrls_cli.files.text.points import join_blocks

    shape = [stations.axes[place].size for place in stations.spread]
    blocks: list[PointBlock] = []
    parts: list[dict[str, NDArray[Any]]] = []
    for block, part, found in answer_blocks(tally, stations, answers):
        if not blocks or blocks[-1] is not block:
            blocks.append(block)
            sizes = (len(block.cells), *shape)
            parts.append({name: np.empty(sizes, array.dtype) for name, array in found.items()})
        for name, array in found.items():
            parts[-1][name][part] = array
    whole = {name: np.concatenate([some[name] for some in parts]) for name in parts[0]}
    return join_blocks(blocks), with_attrs(whole, [one.model for one in tally.values()])


def with_attrs(
    found: Mapping[str, NDArray[Any]], models: Sequence[Model]
) -> dict[str, tuple[NDArray[Any], Mapping[str, Any]]]:
    """Return answers and standard errors with their attributes, by name."""
    attrs: dict[str, Mapping[str, Any]] = {}
    for model in models:
        attrs |= dict([(model.name, model.attrs), model.std_variable()])
    return {name: (array, attrs[name]) for name, array in found.items()}
