"""A grid that is learnt in part and predicted at the rest, as in the paper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.model.validation.splits import random_split

# Share of every dimension that the search holds out of its small grid: the paper's share.
_HELD_SHARE = 0.2

# Least samples of a dimension of the small grid that the search sees.
_LEAST_SAMPLES = 3


@dataclass(frozen=True, eq=False)
class PredictionTask:
    """A training grid, and a grid to predict with its true values.

    Samples are numbered with the first dimension fastest and the last, time, slowest: the order in
    which the paper's methods learn them.

    Attributes
    ----------
    coordinates, values
        The training grid.
    queries, truth
        The grid to predict.
    """

    coordinates: tuple[Array, ...]
    values: Array
    queries: tuple[Array, ...]
    truth: Array

    @property
    def size(self) -> int:
        """Number of training samples."""
        return self.values.size

    def samples(self, places: Indices) -> tuple[Array, Array]:
        """Return points (n, D) and values (n,) of some training samples, by number."""
        cells = np.unravel_index(places, self.values.shape, order="F")
        return _points(self.coordinates, cells), self.values[cells]

    def query_points(self) -> Array:
        """Return all points to predict (n, D), in the order of the raveled truth."""
        shape = self.truth.shape
        return _points(self.queries, np.unravel_index(np.arange(self.truth.size), shape))

    def as_grid(self, answers: Array) -> Array:
        """Return answers at the query points in the shape of the truth."""
        return answers.reshape(self.truth.shape)


def _points(coordinates: tuple[Array, ...], cells: tuple[Indices, ...]) -> Array:
    """Return the points (n, D) of cells, given as one index vector per dimension."""
    return np.stack([axis[cell] for axis, cell in zip(coordinates, cells, strict=True)], axis=1)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A grid, and how many coordinates of each dimension are held out at random.

    Attributes
    ----------
    name
        Its name in commands and rows.
    coordinates, values
        The whole grid.
    held
        Number of held-out coordinates per dimension. A dimension with 0 is kept: the training
        coordinates are also those to predict at.
    """

    name: str
    coordinates: tuple[Array, ...]
    values: Array
    held: tuple[int, ...]

    def make_task(self, seed: int) -> PredictionTask:
        """Return the task of one random split."""
        rng = np.random.default_rng(seed)
        splits = [
            random_split(axis.size, count / axis.size, rng)
            for axis, count in zip(self.coordinates, self.held, strict=True)
        ]
        train = [split.train for split in splits]
        asked = [split.held if split.held.size else split.train for split in splits]
        return PredictionTask(
            self._take(train),
            self.values[np.ix_(*train)],
            self._take(asked),
            self.values[np.ix_(*asked)],
        )

    def thin(self, cells: int, seed: int = 0) -> Dataset:
        """Return a small grid from the training part of the first split, a fifth of it held out.

        It has about `cells` cells at most. Dimensions with nothing held out are kept whole, the
        others have equally many coordinates, drawn at random.
        """
        task, rng = self.make_task(0), np.random.default_rng(seed)
        kept = [
            np.sort(rng.choice(size, min(size, wanted), replace=False))
            for size, wanted in zip(task.values.shape, self._thin_sizes(task, cells), strict=True)
        ]
        held = [
            round(_HELD_SHARE * k.size) if h else 0 for k, h in zip(kept, self.held, strict=True)
        ]
        axes = tuple(axis[k] for axis, k in zip(task.coordinates, kept, strict=True))
        return Dataset(self.name, axes, task.values[np.ix_(*kept)], tuple(held))

    def _take(self, places: list[Indices]) -> tuple[Array, ...]:
        """Return the coordinates at some places of every dimension."""
        return tuple(axis[place] for axis, place in zip(self.coordinates, places, strict=True))

    def _thin_sizes(self, task: PredictionTask, cells: int) -> list[int]:
        """Return the sizes of the small grid."""
        sizes = task.values.shape
        whole = int(np.prod([n for n, h in zip(sizes, self.held, strict=True) if not h]))
        others = sum(h > 0 for h in self.held)
        each = max(_LEAST_SAMPLES, int((cells / whole) ** (1 / others)))
        return [each if h else n for n, h in zip(sizes, self.held, strict=True)]
