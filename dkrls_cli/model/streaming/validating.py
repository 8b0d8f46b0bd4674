"""Validation beyond memory: answers and truth block by block, and sums of what they differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array, Indices, Slices
from dkrls_cli.errors import ScatteredGapsError, SettingError
from dkrls_cli.files.source import Source, mask_unusable
from dkrls_cli.grid.alignment import check_units
from dkrls_cli.model.answering.answers import Query
from dkrls_cli.model.chunked.reference import open_reference
from dkrls_cli.model.model import Model
from dkrls_cli.model.settings import PerLevel, Settings
from dkrls_cli.model.streaming.boxes import read_columns, restrict
from dkrls_cli.model.streaming.request import Streamed, plan_stream, process_bytes, stream_regrid
from dkrls_cli.model.streaming.running import Scheduler
from dkrls_cli.model.streaming.stages import Answers, answer_in_blocks
from dkrls_cli.model.validation.calibration import Calibration
from dkrls_cli.model.validation.metrics import Tally
from dkrls_cli.model.validation.splits import Split
from dkrls_cli.model.validation.validate import (
    REPEATS,
    RunCallback,
    Validation,
    ask_truth,
    hold_out,
    match_axes,
    medians,
    read_fractions,
    refuse_impossible,
)

COMPARED = 64
"""Bytes for each answer that is compared: truth, errors, variances, and what is made of them."""

_CELL = 80
"""Bytes in use for each cell of a grid that a model is measured on at once: truth, answers, their
standard errors, and what is made of them."""

SHARE = 0.6
"""Share of the memory that is planned with: what is between training coordinates is read, too."""

AT_ONCE = 2**20
"""Answers at once from a model in memory: 8 MB, and some ten times that on the way."""

Progress = Callable[[float], None]
"""Called with the share that is done."""


@dataclass(frozen=True, eq=False)
class Compared:
    """Sums over cells that were compared, and counts of how good their error bars are."""

    tally: Tally
    calibration: Calibration

    @classmethod
    def of(cls, truth: Any, answers: Any, variance: Any) -> Compared:
        """Return the sums of some cells."""
        tally = Tally.of(truth, answers, variance)
        return cls(tally, Calibration.of(truth, answers, variance))

    def __add__(self, other: Compared) -> Compared:
        """Return the sums of the cells of both."""
        return Compared(self.tally + other.tally, self.calibration + other.calibration)

    @property
    def metrics(self) -> dict[str, float]:
        """Metrics, as those of a validation in memory."""
        return {**self.tally.scores, "coverage90": self.tally.coverage90}

    @property
    def spread(self) -> float:
        """Standard deviation of the truth; NaN if none is known."""
        return math.sqrt(self.tally.spread / self.tally.n) if self.tally.n else math.nan


def _nothing() -> Compared:
    """Return the sums of no cell."""
    return Compared.of(np.empty(0), np.empty(0), np.empty(0))


@dataclass(frozen=True, eq=False)
class Truth:
    """The truth at what is asked.

    Attributes
    ----------
    read
        Reads the values at places of every axis of the file, or of a grid in memory.
    places
        Where the coordinates that are asked lie along each axis of the file.
    order
        Axes of the file in the order of the answers; those without an answer's axis come last.
    noise
        Reads the standard errors of the values in the same way; None: they have none.
    """

    read: Callable[[Sequence[Indices]], Any]
    places: tuple[Indices, ...]
    order: tuple[int, ...]
    noise: Callable[[Sequence[Indices]], Any] | None = None

    @classmethod
    def of(cls, source: Source, dims: Sequence[str], places: tuple[Indices, ...]) -> Truth:
        """Return the truth in a source for answers along some dimensions.

        What can only be read as a whole, or has errors of its own, is held in memory.
        """
        names = [axis.name for axis in source.axes]
        own = [names.index(dim) for dim in dims if dim in names]
        order = (*own, *(place for place in range(len(names)) if place not in own))
        reader = source.reader
        if reader is not None and source.errors is None:
            return cls(lambda indices: read_columns(reader, indices), places, order)
        grid = source.grid()
        errors = grid.errors
        noise = None if errors is None else lambda indices: errors[np.ix_(*indices)]
        return cls(lambda indices: grid.values[np.ix_(*indices)], places, order, noise)

    def compare(self, part: Slices, answers: Answers, dims: Sequence[bool]) -> Compared:
        """Return what a block of answers differs from the truth, as sums.

        `dims` tells which axes of the answers the file has.
        """
        values, errors = answers
        assert errors is not None
        indices = list(self.places)
        along = [here for here, has in zip(part, dims, strict=True) if has]
        for place, here in zip(self.order, along, strict=False):
            indices[place] = indices[place][here]
        variance = np.asarray(errors, np.float64) ** 2
        if self.noise is not None:
            variance = variance + self._shaped(self.noise(indices), values.shape) ** 2
        truth = mask_unusable(self.read(indices))[0]
        return Compared.of(self._shaped(truth, values.shape), values, variance)

    def _shaped(self, values: Any, shape: tuple[int, ...]) -> Array:
        """Return values of the file in the shape of answers."""
        found: Array = values.transpose(self.order).reshape(shape)
        return found


def validation_bytes(source: Source) -> int:
    """Return the bytes in use when a model is measured on a grid at once, program included."""
    return process_bytes() + _CELL * math.prod(source.shape)


def validate_holdout_in_blocks(
    source: Source,
    settings: Settings,
    *,
    holdout: PerLevel[float | str],
    repeats: int = REPEATS,
    seed: int = 0,
    keep_edges: bool = False,
    smooth: bool = False,
    limit: float = math.inf,
    scheduler: Scheduler,
    on_run: RunCallback | None = None,
    progress: Progress = lambda share: None,
) -> Validation:
    """Measure the method on parts of a grid beyond memory that are held out at random.

    The parts are those that are held out in memory. Settings are chosen on a few chunks of what is
    left.

    Parameters
    ----------
    source
        The grid.
    settings, holdout, repeats, seed, keep_edges, smooth, on_run
        As for :func:`dkrls_cli.model.validation.validate.validate_holdout`.
    limit
        Bytes that may be in use, the program included.
    scheduler
        Runs the blocks, on threads of this process.
    progress
        Called with the share that is done.

    Raises
    ------
    InputError
        If cells are missing, the grid cannot be read part by part, or no blocks are small enough.
    SettingError
        If a setting is not possible, or not for a grid beyond memory.
    """
    refuse_in_blocks(settings, repeats, seed)
    whole = restrict(source, tuple(axis.distinct for axis in source.axes))
    fractions = read_fractions(holdout, whole.axes)
    start = perf_counter()
    runs: list[dict[str, float]] = []
    together = _nothing()
    for number in range(repeats):
        rng = np.random.default_rng(seed + number)
        splits = hold_out(whole.axes, fractions, rng, keep_edges)
        tell = partial(_tell_run, progress, number, repeats)
        model, compared, seconds = _run(whole, settings, splits, smooth, limit, scheduler, tell)
        runs.append({**compared.metrics, **seconds})
        together += compared
        if on_run is not None:
            on_run(number, runs[-1])
    total, good = perf_counter() - start, together.calibration
    return Validation(
        medians(runs), tuple(runs), fractions, model, whole.axes, total, good, together.spread
    )


def refuse_in_blocks(settings: Settings, repeats: int, seed: int) -> None:
    """Raise an error for hold-outs that are not possible, or in memory only."""
    refuse_impossible(repeats, seed)
    if settings.cell_means:
        raise SettingError(
            "Means over cells are held out in memory only. Take all of the grid into memory, or "
            "validate without means over cells.",
            setting="cell_means",
        )


def _tell_run(progress: Progress, number: int, repeats: int, share: float) -> None:
    """Tell the share of all runs that is done when a share of one is."""
    progress((number + share) / repeats)


def _run(
    source: Source,
    settings: Settings,
    splits: Sequence[Split],
    smooth: bool,
    limit: float,
    scheduler: Scheduler,
    progress: Progress,
) -> tuple[Model, Compared, dict[str, float]]:
    """Choose settings on what trains; return a stand-in, and how what was held out compares.

    The last are the seconds that both took.
    """
    start, process = perf_counter(), process_bytes()
    axes = [axis.take(own.held) for axis, own in zip(source.axes, splits, strict=True)]
    asked: list[Query] = []

    def ask_model(model: Model) -> Query:
        asked.append(ask_truth(model, axes, axes, source.style, smooth))
        return asked[-1]

    stream = partial(
        stream_regrid,
        restrict(source, tuple(own.train for own in splits)),
        settings,
        ask_model,
        range(len(axes)),
        std=True,
        limit=process + SHARE * (limit - process),
        workers=scheduler.workers,
        beside=COMPARED,
        land=True,
    )
    try:
        streamed = stream()
    except ScatteredGapsError:
        streamed = stream(scattered=True)
    fitted = perf_counter()
    truth = Truth.of(source, [axis.name for axis in axes], tuple(own.held for own in splits))
    compared = _compare_all(streamed, truth, [True] * len(axes), scheduler, progress)
    seconds = {"fit_seconds": fitted - start, "predict_seconds": perf_counter() - fitted}
    return asked[-1].model, compared, seconds


def validate_model_in_blocks(
    model: Model,
    source: Source,
    *,
    smooth: bool = False,
    limit: float = math.inf,
    scheduler: Scheduler,
    progress: Progress = lambda share: None,
) -> Validation:
    """Measure a model on the cells of a grid beyond memory.

    Parameters
    ----------
    model
        The model; it may refer to its data.
    source
        The truth, on dimensions of the model in any order.
    smooth, limit, scheduler, progress
        As for :func:`validate_holdout_in_blocks`.

    Raises
    ------
    InputError
        If the grid is in other units, lacks a dimension of the model, or has another one; or if the
        data that a model refers to has changed.
    """
    check_units(f"values of '{source.name}'", source.attrs, model.attrs)
    names = [axis.name for axis in source.axes]
    own = [axis for axis in source.axes if axis.size > 1 or axis.name in model.dims]
    axes = match_axes(model, own, source.scalars)
    has = [dim in names for dim in model.dims]
    start = perf_counter()
    truth = Truth.of(source, model.dims, tuple(np.arange(axis.size) for axis in source.axes))
    query = ask_truth(model, axes, source.axes, source.style, smooth)
    if model.reference is not None:
        data = open_reference(model)
        streamed = plan_stream(
            data,
            tuple(axis.distinct for axis in data.axes),
            query,
            True,
            limit,
            scheduler.workers,
            beside=COMPARED,
        )
        compared = _compare_all(streamed, truth, has, scheduler, progress)
    else:
        compared, cells = _nothing(), math.prod(axis.size for axis in axes)
        done = 0
        for part, values, errors in query.blocks(AT_ONCE, std=True):
            compared += truth.compare(part, (values, errors), has)
            done += values.size
            progress(done / cells)
    seconds, good = perf_counter() - start, compared.calibration
    return Validation(compared.metrics, (), {}, model, axes, seconds, good, compared.spread)


def _compare_all(
    streamed: Streamed,
    truth: Truth,
    has: Sequence[bool],
    scheduler: Scheduler,
    progress: Progress,
) -> Compared:
    """Return what all answers of a stream differ from the truth, as sums."""
    found: list[Compared] = []
    answer_in_blocks(
        streamed.boxes,
        streamed.answers,
        streamed.plan,
        scheduler,
        lambda part, answers: truth.compare(part, answers, has),
        collect=lambda place, compared: found.append(compared),
        progress=progress,
    )
    return sum(found, _nothing())
