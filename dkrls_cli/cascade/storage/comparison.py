"""How far the answers of a smaller cascade are from those of the full one.

They are compared at the training coordinates and half-way between them along every axis, in all
combinations. Cheap tests at few cells come first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.tensors import apply
from dkrls_cli.circle import wrap

# Cells that are compared at once: their answers and partial sums take some tens of megabytes.
_CELLS_AT_ONCE = 2**20

# Cells up to which the answers of the full model are kept for all comparisons: 64 MB.
_CELLS_KEPT = 2**23

# Coordinates of an axis that are compared at once: their kernel rows take 8 MB per 1000 nodes.
_COORDINATES_AT_ONCE = 1024

# Cells of the sample on which the search begins: answered in a few milliseconds.
_SAMPLE_CELLS = 2**16

# Worst cells of a truncation that failed, at which others are tested first.
_WITNESSES = 256


@dataclass(frozen=True)
class Difference:
    """How far the answers of two models differ: root mean square and maximum."""

    rms: float
    largest: float


@dataclass(eq=False)
class Comparison:
    """The cells at which the answers of a smaller cascade are compared with those of the full one.

    Attributes
    ----------
    full
        The full cascade.
    queries
        Coordinates per axis: all their combinations are compared.
    tolerance
        Largest difference allowed.
    witnesses
        Points (axes, cells) at which some cascade was not within the tolerance, and the answers of
        the full one there. Most others that are as small fail there as well, and are told at once.
    """

    full: Cascade
    queries: Sequence[Array]
    tolerance: float
    witnesses: list[tuple[list[Array], Array]] = field(default_factory=list)

    def measure(self, small: Cascade) -> Difference | None:
        """Return the difference at all cells; None if it is too large, with witnesses of that."""
        squares, largest = 0.0, 0.0
        for coordinates, difference in self._differences(small):
            sizes = np.abs(difference)
            largest = max(largest, float(sizes.max()))
            if not largest <= self.tolerance:
                points = _worst_points(sizes, coordinates)
                self.witnesses.append((points, self.full.predict_points(points)))
                return None
            squares += float(np.square(sizes / self.tolerance).sum())
        largest = max(largest, float(np.abs(_data(small) - self._data).max()))
        rms = self.tolerance * math.sqrt(squares / self._count)
        return Difference(rms, largest) if largest <= self.tolerance else None

    def _differences(self, small: Cascade) -> Iterator[tuple[list[Array], Array]]:
        """Yield blocks of the cells: their coordinates per axis, and the differences."""
        full = self._kept if self._count <= _CELLS_KEPT else self._blocks(self.full)
        for (coordinates, answers), (_, other) in zip(full, self._blocks(small), strict=True):
            yield coordinates, answers - other

    def _blocks(self, cascade: Cascade) -> Iterator[tuple[list[Array], Array]]:
        """Yield blocks of the cells: their coordinates per axis, and the answers of a cascade."""
        step = _COORDINATES_AT_ONCE
        parts = [[q[i : i + step] for i in range(0, q.size, step)] for q in self.queries]
        for some in product(*parts):
            for part, answers in cascade.predict_blocks(some, _CELLS_AT_ONCE):
                yield [query[at] for query, at in zip(some, part, strict=True)], answers

    @cached_property
    def _kept(self) -> list[tuple[list[Array], Array]]:
        """All blocks of the full cascade, kept where they take little memory."""
        return list(self._blocks(self.full))

    @property
    def _count(self) -> int:
        """Number of cells."""
        return math.prod(query.size for query in self.queries)

    def is_likely(self, small: Cascade) -> bool:
        """Return whether the difference is within the tolerance at a sample and all witnesses."""
        return self.sampled(small) <= self.tolerance and all(
            np.abs(small.predict_points(points) - answers).max() <= self.tolerance
            for points, answers in self.witnesses
        )

    def sampled(self, small: Cascade) -> float:
        """Return the largest difference on a sample of the cells."""
        queries, answers = self._sample
        return float(np.abs(small.predict(queries) - answers).max())

    @cached_property
    def _data(self) -> Array:
        """The data of the full cascade."""
        return _data(self.full)

    @cached_property
    def _sample(self) -> tuple[list[Array], Array]:
        """Some coordinates per axis, and the answers of the full cascade to their combinations."""
        rng = np.random.default_rng(0)
        part = min(1.0, _SAMPLE_CELLS / self._count) ** (1 / len(self.queries))
        some = [rng.permutation(q)[: math.ceil(part * q.size)] for q in self.queries]
        return some, self.full.predict(some)


def _worst_points(sizes: Array, coordinates: Sequence[Array]) -> list[Array]:
    """Return the coordinates, per axis, of the cells of a block where differences are largest."""
    rest = max(0, sizes.size - _WITNESSES)
    at = np.unravel_index(np.argpartition(sizes, rest, axis=None)[rest:], sizes.shape)
    return [numbers[places] for numbers, places in zip(coordinates, at, strict=True)]


def _data(cascade: Cascade) -> Array:
    """Return the data as core and frames store it.

    That is the answer at training cells, but for the rounding of single precision: a grid of
    answers is computed from the data less its mean.
    """
    return apply(cascade.core, cascade.frames)


def half_way(coordinates: Array, period: float | None) -> Array:
    """Return the coordinates half-way between neighbours; on a circle the ends are neighbours.

    Examples
    --------
    >>> half_way(np.array([4.0, 0.0, 1.0]), None), half_way(np.array([0.0, 90.0]), 360.0)
    (array([0.5, 2.5]), array([ 45., 225.]))
    """
    ordered = np.sort(wrap(coordinates, period))
    if period is not None:
        ordered = np.append(ordered, ordered[0] + period)
    return ordered[:-1] + np.diff(ordered) / 2
