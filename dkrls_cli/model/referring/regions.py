"""Data that a model refers to, averaged over a region: what tells the errors of its means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.functionals.functional import Functional, Values
from dkrls_cli.grid.axes import Axis
from dkrls_cli.model.answering.answers import Query
from dkrls_cli.model.answering.linear import LinearAnswers
from dkrls_cli.model.answering.regions import RegionAnswers
from dkrls_cli.model.chunked.loading import room
from dkrls_cli.model.chunked.reference import open_reference
from dkrls_cli.model.streaming.known import gather
from dkrls_cli.model.streaming.request import plan_stream
from dkrls_cli.model.streaming.running import Scheduler, local_threads


@dataclass(frozen=True, eq=False)
class ReferredSeries:
    """Reads the data along one axis, averaged along the others, from where it is stored.

    Attributes
    ----------
    query
        The means that are asked for.
    limit
        Bytes that may be in use, the program included; 0: a share of what is free.
    scheduler
        Works on the parts; None: threads of this process.
    """

    query: Query
    limit: float = 0.0
    scheduler: Scheduler | None = None

    def __call__(self, axis: int, asked: Sequence[Functional]) -> Array:
        """Return the data less its mean along an axis (m, n), as `asked` tells along the others."""
        source = open_reference(self.query.model)
        kept = tuple(own.distinct for own in source.axes)
        limit, scheduler = self.limit or room(), self.scheduler or local_threads(None)
        streamed = plan_stream(
            source, kept, self._ask(axis, asked), False, limit, scheduler.workers
        )
        answers = replace(streamed.answers, bounded=False, offset=0.0)
        found = gather(replace(streamed, answers=answers), scheduler).values()
        return np.moveaxis(found, axis, 0).reshape(found.shape[axis], -1)

    def _ask(self, axis: int, asked: Sequence[Functional]) -> Query:
        """Return the question for the data at all coordinates of an axis."""
        linear = self.query.linear
        assert linear is not None
        nodes = Values(linear.cascade.coordinates[axis])
        every = tuple(nodes if place == axis else each for place, each in enumerate(asked))
        cells = {place: own for place, own in linear.cells.items() if place != axis}
        ones = [np.ones(len(each)) for each in every]
        smooth = linear.smooth
        own = LinearAnswers(linear.cascade, every, ones, smooth, None, linear.bars, cells=cells)
        axes = tuple(map(_of_size, self.query.axes, map(len, every)))
        beyond = tuple(np.zeros(len(each), bool) for each in every)
        return Query(
            self.query.model,
            self.query.rules,
            axes,
            axes,
            beyond,
            np.zeros((1,) * len(axes), bool),
            own,
        )


def _of_size(axis: Axis, size: int) -> Axis:
    """Return an axis of as many coordinates, whichever: they stand for questions."""
    return replace(axis, numbers=np.arange(float(size)), written=None)


def with_series(query: Query, limit: float, scheduler: Scheduler | None) -> LinearAnswers | None:
    """Return the answers to a query; those of a region read what tells their errors."""
    if not isinstance(query.linear, RegionAnswers):
        return query.linear
    return replace(query.linear, series=ReferredSeries(query, limit, scheduler))
