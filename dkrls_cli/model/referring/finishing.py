"""Bounds, errors and blocks of the answers of models that refer to their data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dkrls_cli.arrays import Array, Slices, blocks
from dkrls_cli.gaps.lasting.bars import LandBars
from dkrls_cli.model.answering.answers import PointQuery, Query
from dkrls_cli.model.answering.bounds import Bounds
from dkrls_cli.model.answering.ensembles import refuse_unknown_errors


def bounded_values(query: Query | PointQuery) -> Array:
    """Return the answers to a query within its bounds, NaN where there is none."""
    bounds = _bounds(query)
    return query.blank(query.free() if bounds is None else bounds.clip(query.free()))


def follow_data(query: Query | PointQuery) -> bool:
    """Return whether standard errors where cells are missing depend on the data of every slice."""
    bars, linear = query.model.known_bars, query.linear
    is_region = linear is not None and linear.region
    return isinstance(bars, LandBars) and (bars.most > 0 or is_region)


def bounded_errors(query: Query | PointQuery, told: Array | None = None) -> Array:
    """Return the standard errors of the answers to a query, NaN where there is none.

    The answers themselves, for which the data is read, are needed only if they are bounded. The
    errors are those that the data tells, if they are `told`.

    Raises
    ------
    SettingError
        If the errors of the model are not known.
    """
    refuse_unknown_errors(query.model)
    model, bounds, smooth = replace(query.model, bounds=None), _bounds(query), query.rules.smooth
    if told is not None:
        std = told
    elif query.linear is not None:
        std = replace(query.linear, bounds=None).std()
    elif isinstance(query, PointQuery):
        std = model.std_at(query.asked, spread=query.spread, smooth=smooth)
    else:
        std = model.std_on(query.asked, smooth=smooth)
    return query.blank(std if bounds is None else bounds.spread(query.free(), std))


def cut_blocks(
    query: Query | PointQuery, cells: int, std: bool
) -> Iterator[tuple[Slices, Array, Array | None]]:
    """Yield answers in C order in blocks of about `cells` cells, with slices and errors.

    No answers are one block.
    """
    values, errors = query.values(), query.std() if std else None
    whole = tuple(slice(0, size) for size in query.shape)
    for part in blocks(query.shape, cells) if values.size else [whole]:
        yield part, values[part], None if errors is None else errors[part]


def _bounds(query: Query | PointQuery) -> Bounds | None:
    """Return the bounds of what is asked: those of the model hold for its values."""
    return query.model.bounds if query.linear is None else query.linear.bounds
