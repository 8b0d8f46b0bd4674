"""Which cells of a grid train and which are held out to be answered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array
from dkrls_cli.grid.axes import Axis, is_latitude, is_longitude
from dkrls_cli.grid.cf import is_time
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.splits import Split, alternate_split, random_split

SHARE = 0.2
KINDS = RANDOM, ALTERNATE = "20 %", "every second"


@dataclass(frozen=True, eq=False)
class Case:
    """A grid to learn from, and cells of it that were held out.

    Attributes
    ----------
    kind, seed
        How they were held out; no seed where nothing is random.
    train, truth
        What is known, and what is asked for with its true values.
    held
        Positions of the dimensions held out; along the others both have the same coordinates.
    """

    kind: str
    seed: int | None
    train: Grid
    truth: Grid
    held: tuple[int, ...]

    @property
    def samples(self) -> int:
        """Training samples of the held-out dimension that has fewest."""
        return min(self.train.axes[place].size for place in self.held)

    @property
    def shortest(self) -> str:
        """Name of that dimension."""
        return min((self.train.axes[place] for place in self.held), key=lambda a: a.size).name

    @property
    def facts(self) -> dict[str, Any]:
        """What rows say of the case."""
        return {"held_out": self.kind, "seed": self.seed, "samples": self.samples}

    @property
    def queries(self) -> list[Array]:
        """Coordinates asked for; where none is held out, the very ones that train."""
        both = zip(self.train.axes, self.truth.axes, strict=True)
        return [
            (asked if place in self.held else known).numbers
            for place, (known, asked) in enumerate(both)
        ]


def cases_of(grid: Grid, seeds: Sequence[int]) -> Iterator[Case]:
    """A fifth of every dimension held out at random, seed by seed, then every second place.

    A dimension of text labels has nothing between its coordinates, and one too short for any to be
    held out has none to spare: both are kept whole. Where that leaves no dimension there is no
    case.
    """
    field = in_order(grid)
    for seed in seeds:
        yield from _case(field, RANDOM, seed, _random_splits(field, seed))
    yield from _case(field, ALTERNATE, None, _alternate_splits(field))


def horizontal(axes: Sequence[Axis]) -> list[Axis]:
    """Latitude and longitude; without both the last two that are neither time nor labels."""
    places = [axis for axis in axes if is_latitude(axis) or is_longitude(axis)]
    others = [axis for axis in axes if not is_time(axis) and axis.labels is None]
    return places if len(places) == 2 else others[-2:]


def in_order(grid: Grid) -> Grid:
    """The grid with coordinates that rise or fall, so that its edges are those of its range."""
    bare = Grid(grid.values, tuple(_portable(axis) for axis in grid.axes), grid.name)
    return bare.take([_order(axis) for axis in grid.axes])


def _random_splits(grid: Grid, seed: int) -> list[Split]:
    rng = np.random.default_rng(seed)
    return [
        random_split(axis.size, SHARE if axis.labels is None else 0.0, rng, keep_edges=True)
        for axis in grid.axes
    ]


def _alternate_splits(grid: Grid) -> list[Split]:
    thinned = [axis.name for axis in horizontal(grid.axes)]
    return [
        alternate_split(axis.size) if axis.name in thinned else _whole(axis) for axis in grid.axes
    ]


def _whole(axis: Axis) -> Split:
    return Split(np.arange(axis.size), np.arange(0))


def _case(grid: Grid, kind: str, seed: int | None, splits: Sequence[Split]) -> Iterator[Case]:
    """The case of these splits, if anything is held out at all."""
    held = tuple(place for place, split in enumerate(splits) if split.held.size)
    if held:
        train = grid.take([split.train for split in splits])
        truth = grid.take([split.held if split.held.size else split.train for split in splits])
        yield Case(kind, seed, train, truth, held)


def _order(axis: Axis) -> NDArray[np.intp]:
    steps = np.sign(np.diff(axis.numbers))
    monotonic = np.unique(steps).size == 1
    return np.arange(axis.size) if monotonic else np.argsort(axis.numbers)


def _portable(axis: Axis) -> Axis:
    """An axis that can travel to another process: its attributes may be a view, which cannot."""
    return replace(axis, attrs=dict(axis.attrs))
