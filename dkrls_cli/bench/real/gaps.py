"""The default fit against the ways to fill gaps of today, on cells hidden besides those missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from dkrls_cli.arrays import Mask
from dkrls_cli.bench.real.cases import horizontal, in_order
from dkrls_cli.bench.real.fillers import FILLERS, Holes
from dkrls_cli.bench.real.race import NONE, OURS, Outcome, Race, scored, share
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.cf import hierarchy_of
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model import fit as fitting
from dkrls_cli.model.metrics import coverage90

HIDDEN = 0.1
"""Share of the observed cells."""

KINDS = CELLS, BLOCKS = "cells", "blocks"
_ACROSS, _ELSE = 5, 3
"""Sides of a block: along the horizontal dimensions, and along time and others."""


@dataclass(frozen=True, eq=False)
class Gappy:
    """A grid of which some observed cells were hidden.

    Attributes
    ----------
    kind, seed
        How they were hidden.
    truth
        The grid with all that is observed.
    hidden
        Which cells are asked for.
    """

    kind: str
    seed: int
    truth: Grid
    hidden: Mask

    @property
    def seen(self) -> Grid:
        """What is left of the grid."""
        return replace(self.truth, values=np.where(self.hidden, np.nan, self.truth.values))

    @property
    def facts(self) -> dict[str, Any]:
        """What rows say of the case."""
        return {"hidden": self.kind, "seed": self.seed}


def cases_of(grid: Grid, seeds: Sequence[int]) -> Iterator[Gappy]:
    """A tenth of the observed cells hidden, seed by seed: single cells, then blocks.

    There is no case where less than ten cells are observed. There are no blocks where they would
    be single cells, or cover all that is observed.
    """
    field = in_order(replace(grid, values=np.asarray(grid.values, np.float64)))
    observed, sides = np.isfinite(field.values), block_of(field.axes)
    if HIDDEN * np.count_nonzero(observed) < 1:
        return
    for seed in seeds:
        yield Gappy(CELLS, seed, field, hide(observed, [1] * observed.ndim, seed))
        hidden = hide(observed, sides, seed)
        if max(sides) > 1 and not np.array_equal(hidden, observed):
            yield Gappy(BLOCKS, seed, field, hidden)


def block_of(axes: Sequence[Axis]) -> list[int]:
    """Sides of a block: 5 x 5 across, 3 along the rest, but a third of a dimension at most."""
    across = [axis.name for axis in horizontal(axes)]
    sides = [_ACROSS if axis.name in across else _ELSE for axis in axes]
    return [
        max(1, min(side, axis.size // 3)) if axis.labels is None else 1
        for side, axis in zip(sides, axes, strict=True)
    ]


def hide(observed: Mask, sides: Sequence[int], seed: int) -> Mask:
    """A tenth of the observed cells, in blocks around cells drawn at random."""
    places = np.argwhere(observed)
    wanted = int(HIDDEN * len(places))
    room = np.subtract(observed.shape, sides)
    hidden, count = np.zeros(observed.shape, bool), 0
    for place in np.random.default_rng(seed).permutation(places):
        corner = np.clip(place - np.floor_divide(sides, 2), 0, room)
        block = tuple(slice(c, c + side) for c, side in zip(corner, sides, strict=True))
        count += int(np.count_nonzero(observed[block] & ~hidden[block]))
        hidden[block] = observed[block]
        if count >= wanted:
            break
    return hidden


def attempt(method: str, case: Gappy) -> Outcome:
    """Run a method on a case, here and to the end."""
    return _ours(case) if method == OURS else _rival(method, case)


def _ours(case: Gappy) -> Outcome:
    seen, truth = case.seen, case.truth.values[case.hidden]
    start = perf_counter()
    trained = fitting.fit(seen)
    queries = [axis.numbers for axis in seen.axes]
    answers = trained.cascade.predict(queries)[case.hidden]
    seconds = perf_counter() - start
    spread = trained.variance(queries)[case.hidden]
    return scored(truth, answers, seconds, coverage90(truth, answers, spread))


def _rival(method: str, case: Gappy) -> Outcome:
    holes = holes_of(case)
    start = perf_counter()
    answers = FILLERS[method](holes)
    seconds = perf_counter() - start
    return scored(case.truth.values[case.hidden], answers, seconds)


def holes_of(case: Gappy) -> Holes:
    """A case as those see it who fill by the index."""
    time = case.truth.dims.index(hierarchy_of(case.truth.axes, None)[-1])
    return Holes(case.seen.values, case.hidden, time)


def summarise(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """How often the default fit is better than all others, and what its error bars cover."""
    covered = [row["coverage90"] for row in rows]
    return {
        "beats_all": share([row["ratio"] < 1 for row in rows]),
        "least_coverage90": min(covered, default=NONE),
        "most_coverage90": max(covered, default=NONE),
    }


GAPS = Race(
    taken="hidden",
    kinds=KINDS,
    needs="ten observed cells at least",
    gaps=True,
    rivals=tuple(FILLERS),
    references=tuple(FILLERS),
    cases=cases_of,
    attempt=attempt,
    summarise=summarise,
)
