"""Requests beyond memory: what is asked of a stored grid, how it is surveyed, and the plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dkrls_cli.cascade.streaming.forms import Taken
from dkrls_cli.circle import nearest
from dkrls_cli.files.source import Source
from dkrls_cli.gaps.lasting.completion import completion_bytes
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.cf import period_beside
from dkrls_cli.memory import held_bytes, peak_bytes
from dkrls_cli.model.answering.answers import Query
from dkrls_cli.model.chunked.ground import stored_chunks
from dkrls_cli.model.chunked.survey import (
    Surveyed,
    SurveyPlan,
    plan_survey,
    survey,
    unsurveyed,
)
from dkrls_cli.model.lasting.answering import LandAnswers
from dkrls_cli.model.lasting.choosing import known_land, plan_land, survey_land
from dkrls_cli.model.lasting.land import Land, find_land, scan_land
from dkrls_cli.model.model import Model
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.streaming.answering import BlockAnswers
from dkrls_cli.model.streaming.boxes import Boxes, boxes_of
from dkrls_cli.model.streaming.planning import BlockPlan, Work, plan_blocks
from dkrls_cli.tuning.footprint import Machine

_EACH = 4
"""Blocks for every worker at least, so that none waits long for the last one."""

_ROUNDED = 2**25
"""Bytes to which the size of the program is rounded up: it differs by less from run to run."""

_SURVEY_SHARE = 0.9
"""Share of the memory that choosing settings may take: what is read stays in caches for a while."""


@dataclass(frozen=True, eq=False)
class Streamed:
    """Answers of a stored grid that are made block by block.

    Attributes
    ----------
    source
        The grid.
    boxes
        Its data, without coordinates that are left out.
    answers
        What is asked.
    plan
        The blocks.
    memory
        Bytes in use at most, the program included.
    note
        What the settings were chosen on, for the user; empty if nothing was chosen.
    choosing
        What choosing the settings reads; None if they are known.
    """

    source: Source
    boxes: Boxes
    answers: BlockAnswers
    plan: BlockPlan
    memory: int
    note: str = ""
    choosing: SurveyPlan | None = None

    @property
    def query(self) -> Query:
        """What the stand-in is asked."""
        return self.answers.query

    @property
    def identity(self) -> dict[str, str]:
        """What tells whether the blocks of two runs belong to the same answers."""
        model = self.query.model
        return {
            "settings": repr((model.cascade.levels, model.cascade.mean, model.bounds)),
            "blocks": repr(self.plan.blocks.cuts),
        }


def stream_regrid(
    source: Source,
    settings: Settings,
    ask_model: Callable[[Model], Query],
    wanted: Collection[int],
    *,
    std: bool,
    limit: float,
    workers: int,
    beside: int = 0,
    land: bool = False,
    scattered: bool = False,
) -> Streamed:
    """Choose settings on a part of a stored grid, and plan its answers on another grid.

    Parameters
    ----------
    source
        The grid.
    settings
        Settings of the fit.
    ask_model
        Asks a model what is asked.
    wanted
        Places of the axes that are asked between their coordinates.
    std
        Whether standard errors are asked for.
    limit
        Bytes that may be in use, the program included.
    workers
        Blocks under way at the same time.
    beside
        Bytes that whoever takes the answers needs for each of them.
    land
        Whether the same cells may be missing at all times: see :mod:`dkrls_cli.model.lasting`.
    scattered
        Whether others are missing at some times. The grid is then read once more, to find out which
        are missing at all.

    Raises
    ------
    ScatteredGapsError
        If cells are missing, in the parts on which settings are chosen, that should not be.
    InputError
        If the grid cannot be read part by part, or no blocks are small enough.
    SettingError
        If a setting is not possible, or not for a grid beyond memory.
    """
    seen = None
    if land:
        seen = scan_land(source) if scattered else find_land(source)
    if seen is not None:
        return _stream_land(seen, settings, ask_model, std, limit, workers, beside)
    answers, found = survey_answers(source, settings, ask_model, wanted, std=std, limit=limit)
    kept = tuple(axis.distinct for axis in source.axes)
    planned = _plan_answers(source, kept, answers, limit, workers, found.note, beside)
    return replace(planned, choosing=found.plan)


def _stream_land(
    land: Land,
    settings: Settings,
    ask_model: Callable[[Model], Query],
    std: bool,
    limit: float,
    workers: int,
    beside: int,
) -> Streamed:
    """Choose settings of a stored grid with land, and plan its answers on another grid."""
    found = survey_land(land, settings, limit, bars=std)
    answers = LandAnswers.of_land(
        ask_model(found.model), found, std=std, inexact=settings.accept_inexact
    )
    ready = answers.ready()
    planned = _plan_answers(land.source, found.kept, ready, limit, workers, found.note, beside)
    return replace(planned, choosing=found.choosing)


def survey_answers(
    source: Source,
    settings: Settings,
    ask_model: Callable[[Model], Query],
    wanted: Collection[int],
    *,
    std: bool,
    limit: float,
) -> tuple[BlockAnswers, Surveyed]:
    """Choose settings on a part of a grid, and return its answers and these settings.

    Parameters and errors are those of :func:`stream_regrid`.
    """
    found = survey(source, settings, wanted, _SURVEY_SHARE * limit, bars=std)
    answers = _answers_of(source, ask_model(found.model), std)
    rows = answers.rows
    others = [a for a, row in enumerate(rows) if not isinstance(row, Taken) and a not in wanted]
    if others and len(wanted) < len(rows):  # levels of axes that were not wanted are arbitrary
        more = {*wanted, *others}
        return survey_answers(source, settings, ask_model, more, std=std, limit=limit)
    return answers, found


def plan_regrid(
    source: Source,
    settings: Settings,
    ask_model: Callable[[Model], Query],
    wanted: Collection[int],
    *,
    std: bool,
    limit: float,
    workers: int,
    beside: int = 0,
    land: bool = False,
) -> Streamed:
    """Plan the answers of a stored grid on another grid, and the choice of settings.

    Nothing of the grid is read, but one time if the same cells may be missing at all: settings
    that are not given are arbitrary, and answers are not to be made. Parameters and errors are
    those of :func:`stream_regrid`.
    """
    seen = find_land(source) if land else None
    if seen is not None:
        return _plan_land(seen, settings, ask_model, std, limit, workers)
    choosing = plan_survey(source, settings, wanted, _SURVEY_SHARE * limit, bars=std)
    model = unsurveyed(source, settings, wanted)
    kept = tuple(axis.distinct for axis in source.axes)
    query = ask_model(model)
    planned = plan_stream(source, kept, query, std, limit, workers, beside=beside)
    return replace(planned, choosing=choosing)


def _plan_land(
    land: Land,
    settings: Settings,
    ask_model: Callable[[Model], Query],
    std: bool,
    limit: float,
    workers: int,
) -> Streamed:
    """Plan the answers of a stored grid with land on another grid, and the choice of settings."""
    found, choosing = plan_land(land, settings, limit, bars=std)
    answers = LandAnswers.of_land(ask_model(found.model), found, std=std)
    solver = completion_bytes(land.missing, 0) + _ROUNDED  # and what is loaded to make it
    planned = _plan_answers(land.source, found.kept, answers, limit - solver, workers, "", 0)
    return replace(planned, memory=planned.memory + solver, choosing=choosing)


def plan_stream(
    source: Source,
    kept: tuple[Any, ...],
    query: Query,
    std: bool,
    limit: float,
    workers: int,
    note: str = "",
    beside: int = 0,
) -> Streamed:
    """Plan the answers to a query of a stand-in from the source of its data.

    `kept` are the places of the coordinates of the source that the stand-in has, `beside` the bytes
    that whoever takes the answers needs for each of them.
    """
    if query.model.joint_ridge is not None:  # of a grid with land: no other stand-in has one
        found = known_land(query.model, source)
        own = LandAnswers.of_land(query, found, std=std)
        return _plan_answers(source, found.kept, own.ready(), limit, workers, note, beside)
    answers = _answers_of(source, query, std)
    return _plan_answers(source, kept, answers, limit, workers, note, beside)


def _answers_of(source: Source, query: Query, std: bool) -> BlockAnswers:
    """Return the answers to a query, in single precision if the data is stored so."""
    single = source.dtype == "float32" and query.model.style.dtype == "float32"
    return BlockAnswers.of(query, std=std, single=single)


def _plan_answers(
    source: Source,
    kept: tuple[Any, ...],
    answers: BlockAnswers,
    limit: float,
    workers: int,
    note: str,
    beside: int,
) -> Streamed:
    """Plan the blocks in which answers are made."""
    process = process_bytes()
    work = work_of(source, limit - process, workers)
    stored = work.stored + beside // (1 + answers.std)  # which counts for errors as well
    plan = plan_blocks(answers, replace(work, stored=stored))
    return Streamed(source, boxes_of(source, kept), answers, plan, int(process + plan.memory), note)


def process_bytes() -> int:
    """Return the bytes that the program takes by itself, rounded so that plans are repeatable."""
    return -(-Machine(held_bytes(), peak_bytes()).process // _ROUNDED) * _ROUNDED


def work_of(source: Source, limit: float, workers: int) -> Work:
    """Return the size of the data of a source, and of the machine."""
    item = np.dtype(source.dtype).itemsize
    stored = np.dtype(source.style.dtype).itemsize
    return Work(stored_chunks(source), item, stored, limit, workers, _EACH * workers)


def source_bytes(source: Source) -> int:
    """Return the bytes of the values of a source, as they are read."""
    return math.prod(source.shape) * np.dtype(source.dtype).itemsize


def asked_between(
    axes: Sequence[Axis], asked: Mapping[str, Any], others: Collection[str] = ()
) -> list[int]:
    """Return the places of the axes that are asked between their coordinates.

    Parameters
    ----------
    axes
        Axes of a grid.
    asked
        Coordinates that are asked for, by name of the dimension.
    others
        Names of dimensions that count in any case.
    """
    found = []
    for place, axis in enumerate(axes):
        between = axis.name in others
        if axis.name in asked and not between:
            numbers = axis.at(asked[axis.name]).numbers
            period = period_beside(axis, axes)
            between = not bool(nearest(numbers, axis.numbers, period)[1].all())
        if between:
            found.append(place)
    return found
