"""Answers on grids of models that refer to their data, held in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, TypeVar

from dkrls_cli.arrays import Array, Slices
from dkrls_cli.errors import InputError
from dkrls_cli.model.answering.answers import PointQuery, Query
from dkrls_cli.model.chunked.loading import room
from dkrls_cli.model.chunked.reference import open_reference
from dkrls_cli.model.referring.finishing import (
    bounded_errors,
    bounded_values,
    cut_blocks,
    follow_data,
)
from dkrls_cli.model.referring.points import ReferredPoints
from dkrls_cli.model.referring.regions import with_series
from dkrls_cli.model.streaming.known import KnownAnswers, gather
from dkrls_cli.model.streaming.request import plan_stream, process_bytes
from dkrls_cli.model.streaming.running import Scheduler, local_threads

Asked = TypeVar("Asked", Query, PointQuery)

_ANSWER = 8 * 6
"""Bytes in use for each answer that is held: answers, errors, and what members are drawn from."""


@dataclass(frozen=True, eq=False)
class ReferredGrid(Query):
    """A product grid on which a model that refers to its data is asked.

    Attributes
    ----------
    limit
        Bytes that may be in use, the program included; 0: a share of what is free.
    scheduler
        Works on the parts; None: threads of this process.
    """

    limit: float = 0.0
    scheduler: Scheduler | None = None

    @cached_property
    def _free(self) -> Array:
        """The answers, bounds aside, NaN where there is none."""
        return self._gather(std=False).values()

    @cached_property
    def _errors(self) -> Array:
        """The standard errors that the data tells, bounds aside, NaN where there is none."""
        found = self._gather(std=True)
        self.__dict__.setdefault("_free", found.values())
        return found.std()

    def _gather(self, *, std: bool) -> KnownAnswers:
        """Return the answers, bounds aside."""
        limit, scheduler = self.limit or room(), self.scheduler or local_threads(None)
        held = _ANSWER * math.prod(self.shape)
        if process_bytes() + held > limit:
            raise InputError(
                f"{math.prod(self.shape)} answers take about {held / 1e6:.0f} MB, and "
                f"{limit / 1e6:.0f} MB are allowed. Allow more memory, or ask for fewer "
                "coordinates.",
                setting="max_memory",
            )
        source = open_reference(self.model)
        kept = tuple(axis.distinct for axis in source.axes)
        asked = Query(**{each.name: getattr(self, each.name) for each in fields(Query)})
        if asked.linear is not None:  # what reads series is not sent to other processes
            asked = replace(asked, linear=replace(asked.linear, series=None))
        left = limit - held
        streamed = plan_stream(source, kept, asked, std, left, scheduler.workers)
        answers = replace(streamed.answers, bounded=False)
        return gather(replace(streamed, answers=answers), scheduler)

    def free(self) -> Array:
        """Return the answers before they are moved to the bounds, NaN where there is none."""
        return self._free

    def values(self) -> Array:
        """Return the answers, NaN where there is none."""
        return bounded_values(self)

    def std(self) -> Array:
        """Return the standard errors of the answers, NaN where there is none."""
        return bounded_errors(self, self._errors if follow_data(self) else None)

    def blocks(
        self, cells: int, *, std: bool = False
    ) -> Iterator[tuple[Slices, Array, Array | None]]:
        """Yield the answers in C order in blocks of about `cells` cells, with slices and errors."""
        return cut_blocks(self, cells, std)


def refer(query: Asked, limit: float = 0.0, scheduler: Scheduler | None = None) -> Asked:
    """Return a query of a model that refers to its data, which is read when answers are asked for.

    Parameters
    ----------
    query
        What is asked.
    limit
        Bytes that may be in use, the program included; 0: a share of what is free.
    scheduler
        Works on the parts; None: threads of this process.
    """
    plain = PointQuery if isinstance(query, PointQuery) else Query
    kind = ReferredPoints if isinstance(query, PointQuery) else ReferredGrid
    known: dict[str, Any] = {each.name: getattr(query, each.name) for each in fields(plain)}
    if isinstance(query, Query):
        known["linear"] = with_series(query, limit, scheduler)
    return kind(**known, limit=limit, scheduler=scheduler)
