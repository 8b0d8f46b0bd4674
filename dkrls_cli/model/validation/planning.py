"""Plans of measuring a model, or the method, made before any value is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dkrls_cli.files.source import Source
from dkrls_cli.grid.alignment import check_units
from dkrls_cli.model.answering.answers import Query
from dkrls_cli.model.chunked.ground import stored_chunks
from dkrls_cli.model.chunked.panels import Stored
from dkrls_cli.model.chunked.reference import open_reference
from dkrls_cli.model.model import Model
from dkrls_cli.model.settings import PerLevel, Settings
from dkrls_cli.model.streaming.boxes import restrict
from dkrls_cli.model.streaming.request import (
    plan_regrid,
    plan_stream,
    process_bytes,
    source_bytes,
)
from dkrls_cli.model.streaming.validating import (
    AT_ONCE,
    COMPARED,
    SHARE,
    refuse_in_blocks,
    validation_bytes,
)
from dkrls_cli.model.validation.splits import Split
from dkrls_cli.model.validation.validate import (
    ask_truth,
    hold_out,
    match_axes,
    read_fractions,
)

_ON_THE_WAY = 12 * 8 * AT_ONCE
"""Bytes of the answers that a model in memory gives at a time, and of what is made of them."""


@dataclass(frozen=True, eq=False)
class ValidationPlan:
    """Plan of measuring.

    Attributes
    ----------
    query
        What a model, or that of the first hold-out, is asked.
    in_memory
        Whether the grid is taken into memory as a whole.
    parts
        Parts that are read and compared.
    memory
        Bytes in use at most, the program included.
    bytes_stored
        Bytes of the values of all grids that are read.
    bytes_read, bytes_spooled
        Bytes that are read of them, and kept on disk meanwhile.
    """

    query: Query
    in_memory: bool
    parts: int
    memory: int
    bytes_stored: int
    bytes_read: int
    bytes_spooled: int


def plan_model(
    model: Model, source: Source, *, smooth: bool, limit: float, workers: int
) -> ValidationPlan:
    """Plan how a model is measured on a grid.

    Parameters
    ----------
    model, source, smooth, limit
        As for :func:`dkrls_cli.model.streaming.validating.validate_model_in_blocks`.
    workers
        Blocks under way at the same time.
    """
    check_units(f"values of '{source.name}'", source.attrs, model.attrs)
    own = [axis for axis in source.axes if axis.size > 1 or axis.name in model.dims]
    axes = match_axes(model, own, source.scalars)
    query, size = ask_truth(model, axes, source.axes, source.style, smooth), source_bytes(source)
    if model.reference is not None:
        data = open_reference(model)
        kept = tuple(axis.distinct for axis in data.axes)
        found = plan_stream(data, kept, query, True, limit, workers, beside=COMPARED)
        plan, stored = found.plan, source_bytes(data) + size
        read = plan.bytes_read + size
        return ValidationPlan(
            query, False, plan.tasks, found.memory, stored, read, plan.bytes_spooled
        )
    needs = validation_bytes(source)
    if needs <= limit:
        return ValidationPlan(query, True, 1, needs, size, size, 0)
    parts = -(-math.prod(query.shape) // AT_ONCE)
    return ValidationPlan(query, False, parts, process_bytes() + _ON_THE_WAY, size, size, 0)


def plan_holdouts(
    source: Source,
    settings: Settings,
    *,
    holdout: PerLevel[float | str],
    repeats: int,
    seed: int,
    keep_edges: bool,
    smooth: bool,
    limit: float,
    workers: int,
) -> ValidationPlan:
    """Plan how the method is measured on parts of a grid beyond memory: the first, times all.

    Parameters are those of
    :func:`dkrls_cli.model.streaming.validating.validate_holdout_in_blocks`, and `workers`, blocks
    under way at the same time.
    """
    refuse_in_blocks(settings, repeats, seed)
    whole = restrict(source, tuple(axis.distinct for axis in source.axes))
    rng = np.random.default_rng(seed)
    splits = hold_out(whole.axes, read_fractions(holdout, whole.axes), rng, keep_edges)
    axes = [axis.take(own.held) for axis, own in zip(whole.axes, splits, strict=True)]
    process = process_bytes()
    found = plan_regrid(
        restrict(whole, tuple(own.train for own in splits)),
        settings,
        lambda model: ask_truth(model, axes, axes, whole.style, smooth),
        range(len(axes)),
        std=True,
        limit=process + SHARE * (limit - process),
        workers=workers,
        beside=COMPARED,
    )
    plan, choosing = found.plan, found.choosing
    assert choosing is not None
    read = plan.bytes_read + choosing.bytes_read + _held_bytes(whole, splits)
    return ValidationPlan(
        found.query,
        False,
        repeats * plan.tasks,
        max(found.memory, choosing.memory),
        source_bytes(whole),
        repeats * read,
        plan.bytes_spooled,
    )


def _held_bytes(source: Source, splits: Sequence[Split]) -> int:
    """Return the bytes of the chunks in which what is held out lies."""
    stored = Stored(source.shape, stored_chunks(source), np.dtype(source.dtype).itemsize)
    return stored.touched([own.held for own in splits])[1]
