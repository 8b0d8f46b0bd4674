"""A grid that is learnt in part and asked for the rest, as the paper does it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array
from dkrls_cli.model.splits import random_split

Places = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Task:
    """What is known of a grid, and what is asked for with its true values.

    Single samples are numbered with the first dimension fastest and the last, time, slowest: the
    order in which the paper's methods meet them.

    Attributes
    ----------
    coordinates, values
        The training grid.
    queries, truth
        The grid asked for.
    """

    coordinates: tuple[Array, ...]
    values: Array
    queries: tuple[Array, ...]
    truth: Array

    @property
    def size(self) -> int:
        """Number of training samples."""
        return self.values.size

    def samples(self, places: Places) -> tuple[Array, Array]:
        """Points (n, D) and values (n,) of some samples by number."""
        cells = np.unravel_index(places, self.values.shape, order="F")
        return _points(self.coordinates, cells), self.values[cells]

    def asked(self) -> Array:
        """All points that are asked for (n, D), in the order of the truth."""
        shape = self.truth.shape
        return _points(self.queries, np.unravel_index(np.arange(self.truth.size), shape))

    def laid_out(self, answers: Array) -> Array:
        """Answers at the points asked for, in the shape of the truth."""
        return answers.reshape(self.truth.shape)


def _points(coordinates: tuple[Array, ...], cells: tuple[Places, ...]) -> Array:
    return np.stack([axis[cell] for axis, cell in zip(coordinates, cells, strict=True)], axis=1)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A grid, and how many coordinates of each dimension are held out at random.

    Attributes
    ----------
    name
        What commands and rows call it.
    coordinates, values
        The whole grid.
    held
        Coordinates of each dimension that are held out; of one without any all are asked for.
    """

    name: str
    coordinates: tuple[Array, ...]
    values: Array
    held: tuple[int, ...]

    def task(self, seed: int) -> Task:
        """The task of one random split."""
        rng = np.random.default_rng(seed)
        splits = [
            random_split(axis.size, count / axis.size, rng)
            for axis, count in zip(self.coordinates, self.held, strict=True)
        ]
        train = [split.train for split in splits]
        asked = [split.held if split.held.size else split.train for split in splits]
        return Task(
            self._along(train),
            self.values[np.ix_(*train)],
            self._along(asked),
            self.values[np.ix_(*asked)],
        )

    def thinned(self, cells: int, seed: int = 0) -> Dataset:
        """A small grid from the training part of the first split alone, a fifth held out of it."""
        task, rng = self.task(0), np.random.default_rng(seed)
        kept = [
            np.sort(rng.choice(size, min(size, room), replace=False))
            for size, room in zip(task.values.shape, self._rooms(task, cells), strict=True)
        ]
        held = [round(0.2 * k.size) if h else 0 for k, h in zip(kept, self.held, strict=True)]
        axes = tuple(axis[k] for axis, k in zip(task.coordinates, kept, strict=True))
        return Dataset(self.name, axes, task.values[np.ix_(*kept)], tuple(held))

    def _along(self, places: list[Places]) -> tuple[Array, ...]:
        return tuple(axis[place] for axis, place in zip(self.coordinates, places, strict=True))

    def _rooms(self, task: Task, cells: int) -> list[int]:
        """Sizes of a small grid: dimensions of which none is held out whole, the others alike."""
        sizes = task.values.shape
        whole = int(np.prod([n for n, h in zip(sizes, self.held, strict=True) if not h]))
        others = sum(h > 0 for h in self.held)
        each = max(3, int((cells / whole) ** (1 / others)))
        return [each if h else n for n, h in zip(sizes, self.held, strict=True)]
