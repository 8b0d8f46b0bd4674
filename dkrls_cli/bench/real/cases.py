"""Held-out cases of a grid: which cells train, and which are to be predicted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dkrls_cli.arrays import Indices
from dkrls_cli.grid.axes import Axis, is_latitude, is_longitude
from dkrls_cli.grid.cf import is_time
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.validation.splits import Split, alternate_split, random_split

# Share of every dimension that is held out at random: the paper's share.
SHARE = 0.2

KINDS = RANDOM, ALTERNATE = "20 %", "every second"


@dataclass(frozen=True, eq=False)
class HeldOutCase:
    """A grid to learn from, and cells that were held out of it.

    Attributes
    ----------
    kind, seed
        How the cells were held out; the seed is None if nothing is random.
    train, truth
        The training grid, and the grid to predict with its true values.
    held
        Positions of the dimensions held out; along the others both grids have the same coordinates.
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
        """Name of the held-out dimension that has fewest training samples."""
        return min((self.train.axes[place] for place in self.held), key=lambda a: a.size).name

    @property
    def columns(self) -> dict[str, Any]:
        """Columns of the rows that describe the case."""
        return {"held_out": self.kind, "seed": self.seed, "samples": self.samples}

    @property
    def query_axes(self) -> list[Axis]:
        """Axes to predict on; where nothing is held out, the training axis itself."""
        both = zip(self.train.axes, self.truth.axes, strict=True)
        return [asked if place in self.held else known for place, (known, asked) in enumerate(both)]


def make_held_out_cases(grid: Grid, seeds: Sequence[int]) -> Iterator[HeldOutCase]:
    """Yield a case per seed with a fifth of every dimension held out, then one with every second.

    Every second place is held out along the horizontal dimensions only. A dimension of text labels
    has nothing between its coordinates and is kept whole, as is one that is too short. There is no
    case if that leaves no dimension.
    """
    ordered = sort_axes(grid)
    for seed in seeds:
        yield from _make_case(ordered, RANDOM, seed, _random_splits(ordered, seed))
    yield from _make_case(ordered, ALTERNATE, None, _alternate_splits(ordered))


def horizontal_axes(axes: Sequence[Axis]) -> list[Axis]:
    """Return latitude and longitude; without both, the last two that are not time or labels."""
    places = [axis for axis in axes if is_latitude(axis) or is_longitude(axis)]
    others = [axis for axis in axes if not is_time(axis) and axis.labels is None]
    return places if len(places) == 2 else others[-2:]


def sort_axes(grid: Grid) -> Grid:
    """Return the grid with every axis ascending or descending, so that its ends are its range."""
    bare = Grid(grid.values, tuple(_picklable(axis) for axis in grid.axes), grid.name)
    return bare.take([_monotonic_order(axis) for axis in grid.axes])


def _random_splits(grid: Grid, seed: int) -> list[Split]:
    rng = np.random.default_rng(seed)
    return [
        random_split(axis.size, SHARE if axis.labels is None else 0.0, rng, keep_edges=True)
        for axis in grid.axes
    ]


def _alternate_splits(grid: Grid) -> list[Split]:
    thinned = [axis.name for axis in horizontal_axes(grid.axes)]
    return [
        alternate_split(axis.size) if axis.name in thinned else _keep_whole(axis)
        for axis in grid.axes
    ]


def _keep_whole(axis: Axis) -> Split:
    return Split(np.arange(axis.size), np.arange(0))


def _make_case(
    grid: Grid, kind: str, seed: int | None, splits: Sequence[Split]
) -> Iterator[HeldOutCase]:
    """Yield the case of these splits, if anything is held out."""
    held = tuple(place for place, split in enumerate(splits) if split.held.size)
    if held:
        train = grid.take([split.train for split in splits])
        truth = grid.take([split.held if split.held.size else split.train for split in splits])
        yield HeldOutCase(kind, seed, train, truth, held)


def _monotonic_order(axis: Axis) -> Indices:
    """Return the order that sorts an axis; the present one if it ascends or descends already."""
    steps = np.sign(np.diff(axis.numbers))
    monotonic = np.unique(steps).size == 1
    return np.arange(axis.size) if monotonic else np.argsort(axis.numbers)


def _picklable(axis: Axis) -> Axis:
    """Return an axis whose attributes are a plain dict: a view cannot go to another process."""
    return replace(axis, attrs=dict(axis.attrs))
