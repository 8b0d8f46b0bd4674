"""Stand-ins: models of stored grids in everything but their values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars.bars import Bars
from dkrls_cli.cascade.errorbars.levels import LevelBars
from dkrls_cli.cascade.kernels import kernel_named
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.poles.continuation import Continuation
from dkrls_cli.circle import spacing
from dkrls_cli.grid.axes import Axis
from dkrls_cli.model.answering.bounds import Bounds
from dkrls_cli.model.answering.coverage import Coverage
from dkrls_cli.model.chunked.ground import Ground
from dkrls_cli.model.model import Model
from dkrls_cli.model.planning.requests import LevelRequest
from dkrls_cli.model.poles.planning import extend_axes


def make_stand_in(
    ground: Ground,
    levels: Sequence[Level],
    mean: float,
    *,
    bars: Bars,
    bounds: tuple[Bounds | None, str],
    facts: dict[str, Any],
    rows: Continuation | None = None,
) -> Model:
    """Return a model of a whole stored grid whose core is one number, and takes no memory.

    Parameters
    ----------
    ground
        The grid.
    levels, mean
        Of its cascade.
    bars, rows
        Error bars, and rows across the poles.
    bounds
        Bounds of its answers, and a note on them.
    facts
        What its origin tells besides.
    """
    axes = ground.axes if rows is None else extend_axes(ground.axes, rows)
    shape = tuple(axis.size for axis in axes)
    count = len(axes)
    cascade = Cascade(
        tuple(levels),
        tuple(axis.numbers for axis in axes),
        (None,) * count,
        (None,) * count,
        np.broadcast_to(np.float32(mean), shape),
        mean=mean,
    )
    source = ground.source
    told = {"dropped_coordinates": list(ground.notes), "bounds": bounds[1], **facts}
    return Model(
        cascade,
        ground.axes,
        ground.plan.hierarchy,
        bars,
        source.name,
        source.attrs,
        source.style,
        {key: found for key, found in told.items() if found},
        known_coverage=Coverage(source.axes, np.zeros((1,) * count, bool)),
        bounds=bounds[0],
        poles=rows,
        cell_means=ground.averaged,
    )


def no_bars(levels: int) -> LevelBars:
    """Return error bars that are not known: every standard error is NaN."""
    unknown = np.full(levels, math.nan)
    return LevelBars(unknown, unknown, np.ones((2,) * levels))


def any_level(planned: Level | LevelRequest, axis: Axis) -> Level:
    """Return a level with the settings that are given, and arbitrary ones for the others."""
    if isinstance(planned, Level):
        return planned
    sigma = spacing(axis.numbers) if planned.sigma is None else planned.sigma
    kernel = kernel_named(planned.family or "gaussian", sigma, planned.period)
    return Level(planned.name, kernel, planned.ridge or 0.0)
