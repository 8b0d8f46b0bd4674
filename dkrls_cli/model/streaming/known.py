"""Answers that were made part by part, in the form in which others are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from dkrls_cli.arrays import Array, Slices, blocks
from dkrls_cli.model.answering.answers import Query
from dkrls_cli.model.streaming.request import Streamed
from dkrls_cli.model.streaming.running import Scheduler
from dkrls_cli.model.streaming.stages import Answers, answer_in_blocks


@dataclass(frozen=True, eq=False)
class KnownAnswers(Query):
    """A query whose answers are known.

    Attributes
    ----------
    found
        The answers, NaN where there is none.
    errors
        Their standard errors, or None if they were not asked for.
    """

    found: Array | None = None
    errors: Array | None = None

    def values(self) -> Array:
        """Return the answers, NaN where there is none."""
        assert self.found is not None
        return self.found

    def std(self) -> Array:
        """Return the standard errors of the answers, NaN where there is none."""
        assert self.errors is not None
        return self.errors

    def blocks(
        self, cells: int, *, std: bool = False
    ) -> Iterator[tuple[Slices, Array, Array | None]]:
        """Yield the answers in C order in blocks of about `cells` cells, with slices and errors."""
        for part in blocks(self.shape, cells):
            yield part, self.values()[part], self.std()[part] if std else None


def gather(streamed: Streamed, scheduler: Scheduler) -> KnownAnswers:
    """Make all answers of a stream, and hold them."""
    query, std = streamed.query, streamed.answers.std
    values = np.empty(query.shape)
    errors = np.empty(query.shape) if std else None
    parts = list(streamed.plan.blocks)

    def collect(place: int, found: Answers) -> None:
        values[parts[place]] = found[0]
        if errors is not None and found[1] is not None:
            errors[parts[place]] = found[1]

    answer_in_blocks(
        streamed.boxes, streamed.answers, streamed.plan, scheduler, None, collect=collect
    )
    known = {each.name: getattr(query, each.name) for each in fields(Query)}
    return KnownAnswers(**known, found=values, errors=errors)
