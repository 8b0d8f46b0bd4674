"""Answers of chunked arrays, which dask computes when they are asked for. A door to dask.

Settings are chosen on a few chunks. The answers are then a graph of tasks: one for every chunk of
the axes that pass through, with all samples of the axes that are asked between coordinates. Where
these together are too large for one chunk, the longest of them is answered in a second step, in
chunks of the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices, Slices, Tensor, as_numbers
from dkrls_cli.circle import nearest
from dkrls_cli.errors import ScatteredGapsError, SettingError
from dkrls_cli.files.stored.arrays import source_of
from dkrls_cli.grid.cf import period_beside
from dkrls_cli.model.answering.answers import Query
from dkrls_cli.model.chunked.loading import room
from dkrls_cli.model.chunked.survey import unsurveyed
from dkrls_cli.model.lasting.answering import LandAnswers
from dkrls_cli.model.lasting.choosing import LandSurvey, survey_land
from dkrls_cli.model.lasting.land import Land, find_land, scan_land
from dkrls_cli.model.model import Model
from dkrls_cli.model.settings import DEFAULTS, Settings
from dkrls_cli.model.streaming.answering import BlockAnswers
from dkrls_cli.model.streaming.request import survey_answers

if TYPE_CHECKING:
    import xarray as xr

_NUMBER = 8
"""Bytes of a number with which is computed."""


def lazy_regrid(
    array: xr.DataArray, settings: Settings, ask_model: Callable[[Model], Query], *, std: bool
) -> tuple[Query, Any, Any | None]:
    """Choose settings on a few chunks of an array, and return its answers as arrays of dask.

    Parameters
    ----------
    array
        A chunked DataArray.
    settings
        Settings of the fit.
    ask_model
        Asks a model what is asked.
    std
        Whether standard errors are asked for.

    Returns
    -------
    tuple
        What the stand-in is asked, the answers, and their standard errors or None.

    Raises
    ------
    InputError
        If the chunks on which settings are chosen have missing cells, and these are no places at
        times. Where only others have some, the answers raise it when they are computed.
    SettingError
        If a setting is not possible, or not part by part.
    """
    _refuse_storage(settings)
    source = source_of(array)
    wanted = _asked_between(ask_model(unsurveyed(source, settings)))
    try:
        answers, _ = survey_answers(source, settings, ask_model, wanted, std=std, limit=room())
        kept = tuple(axis.distinct for axis in source.axes)
        return answers.query, *lazy_answers(array, kept, answers)
    except ScatteredGapsError:
        land = find_land(source) or scan_land(source)
        if land is None:
            raise
    return _lazy_land(array, _survey_land(land, settings, std), settings, ask_model, std=std)


def _survey_land(land: Land, settings: Settings, std: bool) -> LandSurvey:
    """Choose the settings of an array with missing cells; all of it is computed if they vary."""
    try:
        return survey_land(land, settings, room(), bars=std)
    except ScatteredGapsError:
        every = None if land.varied else scan_land(land.source)
        if every is None:
            raise
    return survey_land(every, settings, room(), bars=std)


def _lazy_land(
    array: xr.DataArray,
    found: LandSurvey,
    settings: Settings,
    ask_model: Callable[[Model], Query],
    *,
    std: bool,
) -> tuple[Query, Any, Any | None]:
    """Return the same of an array with missing cells."""
    asked, inexact = ask_model(found.model), settings.accept_inexact
    answers = LandAnswers.of_land(asked, found, std=std, inexact=inexact)
    return answers.query, *lazy_answers(array, found.kept, answers)


def _refuse_storage(settings: Settings) -> None:
    """Raise SettingError for settings of a stored model: there is none."""
    for name in ("compact", "dtype", "tolerance"):
        if getattr(settings, name) != getattr(DEFAULTS, name):
            raise SettingError(
                f"A chunked array is answered from its data, and not from a smaller model. Leave "
                f"out {name}, or load the array first.",
                setting=name,
            )


def _asked_between(query: Query) -> list[int]:
    """Return the places of the axes that a query asks between their coordinates."""
    question = query.rules.question
    others = () if question is None else (*question.mean, *question.derivative)
    return [
        place
        for place, (asked, own) in enumerate(zip(query.asked, query.model.axes, strict=True))
        if query.rules.smooth
        or own.name in others
        or not nearest(asked.numbers, own.numbers, period_beside(own, query.model.axes))[1].all()
    ]


def lazy_answers(
    array: xr.DataArray, kept: Sequence[Indices], answers: BlockAnswers
) -> tuple[Any, Any | None]:
    """Return answers and their standard errors, or None, as arrays of dask.

    Parameters
    ----------
    array
        The data.
    kept
        Places of the coordinates of every axis that the stand-in has.
    answers
        What is asked of it.
    """
    data = _take_samples(array, kept, answers)
    most = _most_bytes()
    steps = _group_axes(answers, most)
    for axes in steps:
        whole = _gather(data, axes, answers, most)
        data = _add_step(whole, axes, answers, first=axes is steps[0], last=axes is steps[-1])
    return (data[0], data[1]) if answers.std else (data, None)


def _take_samples(array: xr.DataArray, kept: Sequence[Indices], answers: BlockAnswers) -> Any:
    """Return the data on all axes; of those that pass through, the samples that are asked for."""
    data = array.data[(np.newaxis,) * (len(kept) - array.ndim)]
    for place, own in enumerate(kept):
        samples = own[_samples(answers, place)]
        if not np.array_equal(samples, np.arange(data.shape[place])):
            data = data[(slice(None),) * place + (samples,)]
    return data


def _samples(answers: BlockAnswers, axis: int) -> Indices:
    """Return the samples of an axis that are asked for; all, if it does not pass through."""
    every = np.arange(answers.samples[axis])
    rows: Any = answers.rows[axis]
    taken: Indices = rows.indices if answers.passes(axis) else every
    return taken


def _most_bytes() -> int:
    """Return the bytes that chunks should have at most, as dask is configured."""
    import dask.config
    import dask.utils

    return int(dask.utils.parse_bytes(dask.config.get("array.chunk-size")))


def _group_axes(answers: BlockAnswers, most: int) -> list[tuple[int, ...]]:
    """Return the axes that are answered together, step by step.

    Latitude and longitude with rows across the poles belong together, and so do all axes of a slice
    with land.
    """
    between = [axis for axis in range(len(answers.rows)) if not answers.passes(axis)]
    if not answers.is_separable:
        return [tuple(between)]
    poles = answers.query.model.poles
    tied = () if poles is None else (poles.latitude, poles.longitude)
    alone = [axis for axis in between if axis not in tied]
    sides = [max(answers.samples[axis], answers.rows[axis].size) for axis in between]
    if len(between) < 2 or not alone or _NUMBER * math.prod(sides) <= most:
        return [tuple(between)]
    longest = max(alone, key=lambda axis: answers.samples[axis])
    return [tuple(axis for axis in between if axis != longest), (longest,)]


def _gather(data: Any, axes: Collection[int], answers: BlockAnswers, most: int) -> Any:
    """Return data with one chunk along some axes, and shorter ones along others if it is large."""
    sides = [
        max(size, answers.rows[axis].size) if axis in axes else max(data.chunks[axis])
        for axis, size in enumerate(data.shape)
    ]
    given = list(sides)
    free = [axis for axis in range(data.ndim) if axis not in axes]
    while _NUMBER * math.prod(sides) > most and any(sides[axis] > 1 for axis in free):
        longest = max(free, key=lambda axis: sides[axis])
        sides[longest] = -(-sides[longest] // 2)
    shorter = {axis: sides[axis] for axis in free if sides[axis] < given[axis]}
    return data.rechunk({**dict.fromkeys(axes, -1), **shorter})


def _add_step(
    data: Any, axes: tuple[int, ...], answers: BlockAnswers, *, first: bool, last: bool
) -> Any:
    """Return data with the rows of some axes applied; the last step gives answers and errors."""
    from dask.delayed import delayed

    chunks = [
        (answers.rows[axis].size,) if axis in axes else sizes
        for axis, sizes in enumerate(data.chunks)
    ]
    where = [
        [_samples(answers, axis)[part] for part in _parts(sizes)]
        for axis, sizes in enumerate(data.chunks)
    ]
    parts = [_parts(sizes) for sizes in chunks]
    step = LazyStep(answers, axes, where if first else None, parts if last else None)
    both = last and answers.std
    name = f"dkrls-{uuid4().hex}"
    return data.map_blocks(
        _run_step,
        step=delayed(step, name=f"{name}-rows", traverse=False),  # sent to a worker once
        name=name,
        new_axis=0 if both else None,
        chunks=((2,), *chunks) if both else tuple(chunks),
        dtype=np.float64,
        meta=np.empty((0,) * (data.ndim + both)),
    )


def _parts(sizes: Sequence[int]) -> list[slice]:
    """Return the slices of chunks of some sizes."""
    return [slice(start, stop) for start, stop in pairwise(accumulate(sizes, initial=0))]


@dataclass(frozen=True, eq=False)
class LazyStep:
    """A step from the chunks of an array to those of its answers.

    Attributes
    ----------
    answers
        What is asked.
    axes
        Axes along which all samples are at hand, and rows are applied.
    where
        In the first step, the samples of every chunk along every axis.
    parts
        In the last step, the places of every chunk of the answers along every axis.
    """

    answers: BlockAnswers
    axes: tuple[int, ...]
    where: Sequence[Sequence[Indices]] | None
    parts: Sequence[Sequence[slice]] | None

    def __call__(self, block: NDArray[Any], place: Sequence[int]) -> Tensor:
        """Return what a chunk becomes: answers, or with errors both in one array."""
        values: Tensor = block
        where: list[Indices] = []
        if self.where is not None:
            values = as_numbers(block, "values")
            where = [own[here] for own, here in zip(self.where, place, strict=True)]
        if isinstance(self.answers, LandAnswers):
            return _together(self.answers.answer_taken(values, where, self._part(place)))
        if self.where is not None:
            values = self.answers.centre(values, where)
        every = tuple(slice(0, rows.size) for rows in self.answers.rows)
        tensor = self.answers.apply(values, every, self.axes)
        if self.parts is None:
            return tensor
        return _together(self.answers.finish(tensor, self._part(place)))

    def _part(self, place: Sequence[int]) -> Slices:
        """Return the place of a chunk of the answers."""
        assert self.parts is not None
        return tuple(own[here] for own, here in zip(self.parts, place, strict=True))


def _together(answers: tuple[Tensor, Array | None]) -> Tensor:
    """Return answers, or with their errors both in one array."""
    values, errors = answers
    return values if errors is None else np.asarray(np.stack([values, errors]), np.float64)


def _run_step(block: NDArray[Any], step: LazyStep, block_id: tuple[int, ...] = ()) -> Tensor:
    """Run a step on a chunk; a new first axis for answers and errors has one chunk."""
    return step(block, block_id[-block.ndim :])
