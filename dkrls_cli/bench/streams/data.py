"""A grid as a stream: slices along one dimension, in the order of their coordinates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.bench.streams.online import SampleUnits
from dkrls_cli.circle import spacing
from dkrls_cli.errors import InputError
from dkrls_cli.grid.cf import hierarchy_of
from dkrls_cli.grid.grid import Grid

# Most steps and series that a search of settings sees: keeps it within minutes.
SEARCH_STEPS, SEARCH_SERIES = 1000, 16

# Largest share of a stream that a search sees, so that most of a short one is left to score.
_SEARCH_SHARE = 0.25

# Least slices of a stream: one to start from and two to forecast.
LEAST_STEPS = 3


@dataclass(frozen=True, eq=False)
class StreamData:
    """Slices in the order of their coordinates.

    Attributes
    ----------
    coordinates
        Coordinates of the slices (steps,).
    values
        The slices (steps, series); NaN where a cell is missing.
    places
        Positions of the series (series, dimensions), in steps of each dimension; the first
        dimension runs fastest.
    few
        Indices of a few series, spread over all of them as a grid, for a search.
    """

    coordinates: Array
    values: Array
    places: Array
    few: Indices

    @property
    def steps(self) -> int:
        """Number of slices."""
        return len(self.values)

    @property
    def search_steps(self) -> int:
        """Number of first steps that a search may see."""
        return min(SEARCH_STEPS, int(_SEARCH_SHARE * self.steps))

    def first(self, steps: int) -> StreamData:
        """Return the first steps."""
        return replace(self, coordinates=self.coordinates[:steps], values=self.values[:steps])

    def thin(self) -> StreamData:
        """Return the stream of the few series for a search."""
        few = np.arange(self.few.size)
        return replace(self, values=self.values[:, self.few], places=self.places[self.few], few=few)

    def units(self) -> SampleUnits:
        """Return the units of samples, from the steps that a search may see."""
        changes = np.diff(self.values[: max(self.search_steps, 2)], axis=0)
        squares = changes[np.isfinite(changes)] ** 2
        usual = float(np.sqrt(squares.mean())) if squares.size else 0.0
        step = float(np.median(np.diff(self.coordinates)))
        return SampleUnits(usual or 1.0, step, self.places)


def make_stream(grid: Grid, levels: Sequence[str] | None = None) -> StreamData:
    """Return a grid as a stream along its last level.

    Raises
    ------
    InputError
        If the last level has fewer than `LEAST_STEPS` coordinates.
    """
    last = hierarchy_of(grid.axes, levels)[-1]
    place = grid.dims.index(last)
    axis = grid.axes[place]
    if axis.size < LEAST_STEPS:
        raise InputError(
            f"'{grid.name}' has {axis.size} coordinates of {last}, its last level. "
            f"A stream needs at least {LEAST_STEPS}."
        )
    order = np.argsort(axis.numbers, kind="stable")
    slices = np.moveaxis(np.asarray(grid.values, np.float64), place, 0)[order]
    others = [other.numbers / spacing(other.numbers) for other in grid.axes if other.name != last]
    mesh = np.meshgrid(*others, indexing="ij")[::-1] or [np.zeros(1)]
    places = np.stack([numbers.ravel() for numbers in mesh], axis=1)
    few = _spread_cells([other.size for other in others])
    return StreamData(axis.numbers[order], slices.reshape(axis.size, -1), places, few)


def _spread_cells(sizes: Sequence[int]) -> Indices:
    """Return the flat indices of a grid's cells that form a grid of at most `SEARCH_SERIES`."""
    if not sizes:
        return np.zeros(1, np.intp)
    side = int(SEARCH_SERIES ** (1 / len(sizes)))
    taken = [np.linspace(0, n - 1, min(side, n)).astype(np.intp) for n in sizes]
    return np.arange(math.prod(sizes)).reshape(sizes)[np.ix_(*taken)].ravel()
