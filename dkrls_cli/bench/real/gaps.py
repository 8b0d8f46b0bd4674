"""The race of the default fit against other ways to fill gaps, on hidden cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from dkrls_cli.arrays import Indices, Mask
from dkrls_cli.bench.methods import DKRLS
from dkrls_cli.bench.real.cases import horizontal_axes, sort_axes
from dkrls_cli.bench.real.race import CaseResult, GridRace, score_answers, share_true
from dkrls_cli.bench.rivals.fillers import FILLERS, FillingProblem
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.cf import hierarchy_of
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model import fit as fitting
from dkrls_cli.model.validation.metrics import coverage90

# Share of the observed cells that is hidden.
HIDDEN = 0.1

KINDS = CELLS, BLOCKS, HOLE = "cells", "blocks", "hole"

# Cells along a side of a block: horizontal dimensions, and others. A block is at most a third of a
# dimension.
_HORIZONTAL_SIDE, _OTHER_SIDE, _PARTS = 5, 3, 3

# Sides of the hole, as a part of each dimension: its middle is many cells away from data, and there
# is data on both sides of it in most places.
_HOLE_PARTS = 4

# Share of the cells of the hole that should be observed, so that there is enough to score.
_HOLE_OBSERVED = 0.5


@dataclass(frozen=True, eq=False)
class HiddenCase:
    """A grid in which some observed cells are hidden.

    Attributes
    ----------
    kind, seed
        How the cells were hidden.
    truth
        The grid with all observed cells.
    hidden
        Which cells are hidden and to be predicted.
    """

    kind: str
    seed: int
    truth: Grid
    hidden: Mask

    @property
    def seen(self) -> Grid:
        """The grid without the hidden cells."""
        return replace(self.truth, values=np.where(self.hidden, np.nan, self.truth.values))

    @property
    def columns(self) -> dict[str, Any]:
        """Columns of the rows that describe the case."""
        return {"hidden": self.kind, "seed": self.seed}


def make_hidden_cases(grid: Grid, seeds: Sequence[int]) -> Iterator[HiddenCase]:
    """Yield three cases per seed: single cells hidden, blocks, and one hole.

    Cells and blocks hide a tenth of the observed cells, the hole all in a quarter of every
    dimension. There is no case if fewer than ten cells are observed, and no blocks or hole if they
    would be single cells or hide all observed cells.
    """
    ordered = sort_axes(replace(grid, values=np.asarray(grid.values, np.float64)))
    observed, sides = np.isfinite(ordered.values), block_sides(ordered.axes)
    if HIDDEN * np.count_nonzero(observed) < 1:
        return
    large = hole_sides(ordered.axes)
    for seed in seeds:
        yield HiddenCase(CELLS, seed, ordered, hide_blocks(observed, [1] * observed.ndim, seed))
        hidden = hide_blocks(observed, sides, seed)
        if max(sides) > 1 and not np.array_equal(hidden, observed):
            yield HiddenCase(BLOCKS, seed, ordered, hidden)
        hidden = hide_hole(observed, large, seed)
        if max(large) > 1 and not np.array_equal(hidden, observed):
            yield HiddenCase(HOLE, seed, ordered, hidden)


def block_sides(axes: Sequence[Axis]) -> list[int]:
    """Return the sides of a block: 5 x 5 horizontally, 3 along others, at most a third of each."""
    horizontal = [axis.name for axis in horizontal_axes(axes)]
    sides = [_HORIZONTAL_SIDE if axis.name in horizontal else _OTHER_SIDE for axis in axes]
    return [
        max(1, min(side, axis.size // _PARTS)) if axis.labels is None else 1
        for side, axis in zip(sides, axes, strict=True)
    ]


def hole_sides(axes: Sequence[Axis]) -> list[int]:
    """Return the sides of the hole: a quarter of every dimension, and one text label."""
    return [max(1, axis.size // _HOLE_PARTS) if axis.labels is None else 1 for axis in axes]


def hide_blocks(observed: Mask, sides: Sequence[int], seed: int) -> Mask:
    """Return which cells to hide: a tenth of those observed, in blocks around random cells."""
    places = np.argwhere(observed)
    wanted = int(HIDDEN * len(places))
    last_corner = np.subtract(observed.shape, sides)
    hidden, count = np.zeros(observed.shape, bool), 0
    for place in np.random.default_rng(seed).permutation(places):
        corner = np.clip(place - np.floor_divide(sides, 2), 0, last_corner)
        block = _block_at(corner, sides)
        count += int(np.count_nonzero(observed[block] & ~hidden[block]))
        hidden[block] = observed[block]
        if count >= wanted:
            break
    return hidden


def hide_hole(observed: Mask, sides: Sequence[int], seed: int) -> Mask:
    """Return which cells to hide: those observed in one block at a random place.

    At least half of the cells of the block are observed. If there is no such place, the block is
    where most are.
    """
    counts = _count_in_blocks(observed, sides)
    enough = min(_HOLE_OBSERVED * math.prod(sides), counts.max())
    corner = np.random.default_rng(seed).choice(np.flatnonzero(counts >= enough))
    block = _block_at(np.unravel_index(corner, counts.shape), sides)
    hidden = np.zeros(observed.shape, bool)
    hidden[block] = observed[block]
    return hidden


def _count_in_blocks(observed: Mask, sides: Sequence[int]) -> Indices:
    """Return the number of observed cells in the block at every corner it fits at."""
    counts = observed.astype(np.intp)
    for axis, side in enumerate(sides):
        corners = np.arange(counts.shape[axis] - side + 1)
        sums = np.cumsum(np.insert(counts, 0, 0, axis), axis)
        counts = sums.take(corners + side, axis) - sums.take(corners, axis)
    return counts


def _block_at(corner: Iterable[Any], sides: Sequence[int]) -> tuple[slice, ...]:
    """Return the cells of a block as slices along every dimension."""
    return tuple(slice(c, c + side) for c, side in zip(corner, sides, strict=True))


def run_filling(method: str, case: HiddenCase) -> CaseResult:
    """Run a method on a case in this process, without a time limit."""
    return _run_default_fit(case) if method == DKRLS else _run_filler(method, case)


def _run_default_fit(case: HiddenCase) -> CaseResult:
    seen, truth = case.seen, case.truth.values[case.hidden]
    start = perf_counter()
    trained = fitting.fit(seen)
    answers = trained.values_on(seen.axes)[case.hidden]
    seconds = perf_counter() - start
    variance = trained.std_on(seen.axes)[case.hidden] ** 2
    return score_answers(truth, answers, seconds, coverage90(truth, answers, variance))


def _run_filler(method: str, case: HiddenCase) -> CaseResult:
    problem = make_filling_problem(case)
    start = perf_counter()
    answers = FILLERS[method](problem)
    seconds = perf_counter() - start
    return score_answers(case.truth.values[case.hidden], answers, seconds)


def make_filling_problem(case: HiddenCase) -> FillingProblem:
    """Return a case as a problem for methods that fill by index."""
    time = case.truth.dims.index(hierarchy_of(case.truth.axes, None)[-1])
    return FillingProblem(case.seen.values, case.hidden, time)


def summarise_filling(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return how often the default fit is better than all others, and its range of coverage."""
    covered = [row["coverage90"] for row in rows]
    return {
        "beats_all": share_true([row["ratio"] < 1 for row in rows]),
        "least_coverage90": min(covered, default=math.nan),
        "most_coverage90": max(covered, default=math.nan),
    }


GAP_RACE = GridRace(
    taken="hidden",
    kinds=KINDS,
    needs="at least ten observed cells",
    gaps=True,
    rivals=tuple(FILLERS),
    references=tuple(FILLERS),
    make_cases=make_hidden_cases,
    run=run_filling,
    summarise=summarise_filling,
)
