"""Fields: the places that are asked for along every axis, and how errors go together among them.

On a product grid every axis of the answers belongs to one level. Scattered points are an axis as
well, which belongs to all of their levels: covariances along it are products of those of the levels
and a root is one of the whole product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.drawing.roots import (
    FEW,
    LARGEST,
    Root,
    correlate,
    correlation_root,
    markov_root,
)
from dkrls_cli.cascade.factors.markov import is_markov
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.circle import wrap
from dkrls_cli.errors import SettingError

# Decimals of a turn to which places on a circle are compared: far more than rounding leaves.
_DIGITS = 12


@dataclass(frozen=True, eq=False)
class Places:
    """The distinct places along one axis of the answers.

    Attributes
    ----------
    levels
        The level of the axis; of scattered points, all of their levels.
    coordinates
        Coordinates of the places in each of these levels (n,).
    copies
        Place of every query (q,): queries at one place get one answer.
    """

    levels: tuple[int, ...]
    coordinates: tuple[Array, ...]
    copies: Indices

    @classmethod
    def of(cls, cascade: Cascade, queries: Sequence[Array], levels: tuple[int, ...]) -> Places:
        """Return the places of queries (q,), one vector of which there is for every level."""
        own = [queries[level] for level in levels]
        keys = np.stack([_key(queries[n], cascade.levels[n].kernel.period) for n in levels])
        _, first, copies = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        return cls(levels, tuple(query[first] for query in own), copies.reshape(-1))

    def __len__(self) -> int:
        """Return the number of places."""
        return self.coordinates[0].size


def _key(query: Array, period: float | None) -> Array:
    """Return numbers that are equal for queries at one place; on a circle, but for rounding."""
    return query if period is None else np.round(wrap(query, period) / period, _DIGITS) % 1.0


@dataclass(frozen=True, eq=False)
class Field:
    """The places along every axis of the answers.

    Attributes
    ----------
    cascade
        The model.
    axes
        The places along every axis.
    nodes
        By level, the training coordinate at each place, or -1.
    """

    cascade: Cascade
    axes: tuple[Places, ...]
    nodes: tuple[Indices, ...]

    @classmethod
    def of(
        cls,
        cascade: Cascade,
        queries: Sequence[Array],
        spread: Collection[int] | None = None,
        *,
        smooth: bool = False,
    ) -> Field:
        """Return the field of a product grid, or of points that share the axes in `spread`.

        None as `spread` means a product grid. With `smooth` no place is a training coordinate.
        """
        groups: list[tuple[int, ...]] = [(level,) for level in range(cascade.ndim)]
        if spread is not None:
            own = tuple(level for level in range(cascade.ndim) if level not in spread)
            groups = [own, *((level,) for level in sorted(spread))]
        axes = tuple(Places.of(cascade, queries, levels) for levels in groups)
        nodes = {
            level: cascade.find_nodes(level, coordinates, smooth)
            for places in axes
            for level, coordinates in zip(places.levels, places.coordinates, strict=True)
        }
        return cls(cascade, axes, tuple(nodes[level] for level in range(cascade.ndim)))

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of places along every axis."""
        return tuple(len(places) for places in self.axes)

    @property
    def is_grid(self) -> bool:
        """Whether the axes are those of a product grid, in the order of the levels."""
        return [places.levels for places in self.axes] == [(n,) for n in range(self.cascade.ndim)]

    @cached_property
    def axis_of(self) -> dict[int, int]:
        """The axis of every level."""
        return {level: axis for axis, places in enumerate(self.axes) for level in places.levels}

    @cached_property
    def coordinates(self) -> tuple[Array, ...]:
        """Coordinates of the places, by level."""
        known = {
            level: coordinates
            for places in self.axes
            for level, coordinates in zip(places.levels, places.coordinates, strict=True)
        }
        return tuple(known[level] for level in range(self.cascade.ndim))

    def lay_out(self, vectors: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return one vector per level in shapes that broadcast to that of the field."""
        shapes = np.ones((len(vectors), len(self.axes)), int)
        for level, axis in self.axis_of.items():
            shapes[level, axis] = -1
        return [vector.reshape(shape) for vector, shape in zip(vectors, shapes, strict=True)]

    def repeat(self, values: Array) -> Array:
        """Return values of all places at all queries."""
        copies = [places.copies for places in self.axes]
        if all(np.array_equal(c, np.arange(n)) for c, n in zip(copies, self.shape, strict=True)):
            return values
        return values[np.ix_(*copies)]

    def kernel(self, level: int) -> Kernel:
        """Return the kernel of a level."""
        return self.cascade.levels[level].kernel

    def variance(self, levels: Collection[int]) -> float:
        """Return the product of the variances of the kernels of some levels."""
        return math.prod(self.kernel(level).variance for level in levels)

    def similarity(self, levels: Collection[int], here: Indices) -> Array:
        """Return the product of the kernels of levels of one axis, among places (n, n)."""
        grams = (
            gram(self.kernel(level), self.coordinates[level][here], self.coordinates[level][here])
            for level in levels
        )
        return reduce(np.multiply, grams, np.ones((here.size, here.size)))

    def is_same(self, level: int, here: Indices) -> Mask:
        """Return which of some places of an axis have the same coordinate of a level (n, n)."""
        keys = _key(self.coordinates[level][here], self.kernel(level).period)
        return np.equal.outer(keys, keys)

    def correlation(self, axis: int) -> Root:
        """Return a root of the correlation of the data along an axis, computed once."""
        if axis not in self._correlations:
            self._correlations[axis] = self._correlation(axis)
        return self._correlations[axis]

    @cached_property
    def _correlations(self) -> dict[int, Root]:
        """The roots of correlations that have been computed so far, by axis."""
        return {}

    def _correlation(self, axis: int) -> Root:
        places, size = self.axes[axis], self.shape[axis]
        variance = self.variance(places.levels)
        if not self.is_drawn_along(axis, size):
            return correlation_root(self.similarity(places.levels, np.arange(size)) / variance)
        root = markov_root(self.kernel(places.levels[0]), places.coordinates[0])
        return root.times(np.full(size, 1.0 / math.sqrt(variance)))

    def is_drawn_along(self, axis: int, count: int) -> bool:
        """Return whether so many places along an axis are drawn in O(m), and not by a matrix.

        Raises
        ------
        SettingError
            If there are too many for a matrix, and there is no other way.
        """
        levels = self.axes[axis].levels
        level = self.cascade.levels[levels[0]]
        if len(levels) == 1 and is_markov(level.kernel):
            return count > FEW
        if count <= LARGEST:
            return False
        if len(levels) > 1:
            raise SettingError(
                f"An ensemble at {count} scattered points is too large: their errors are "
                f"correlated, each with each. Ask for {LARGEST} points at most, or for a grid."
            )
        circle = "" if level.kernel.period is None else " on a circle"
        raise SettingError(
            f"An ensemble at {count} coordinates of '{level.name}' is too large for its "
            f"{level.kernel.family} kernel{circle}. Ask for {LARGEST} of them at most, or fit "
            "with a Matern kernel on a line."
        )

    def terms(
        self,
        variances: Mapping[int, Array],
        covariance: Callable[[int, Indices], Array],
        beyond: Callable[[int, Indices], Root] | None = None,
    ) -> list[list[Root]]:
        """Return the roots along all axes of what levels add, a list for every axis that varies.

        Along its own axis a level has its covariance, along all others the data's correlation.

        Parameters
        ----------
        variances
            What each level adds to the variance at the places of its axis, by level.
        covariance
            Returns the covariance of a level among some places of its axis. The variances take
            the place of its diagonal, which they equal but for rounding.
        beyond
            Returns a root at some places of the axis of a single level in O(m). None: it has none.
        """
        found = []
        for axis, places in enumerate(self.axes):
            added = {level: variances[level] for level in places.levels if level in variances}
            own = self._own_root(axis, added, covariance, beyond) if added else None
            if own is not None:
                others = range(len(self.axes))
                found.append(
                    [own if other == axis else self.correlation(other) for other in others]
                )
        return found

    def _own_root(
        self,
        axis: int,
        variances: Mapping[int, Array],
        covariance: Callable[[int, Indices], Array],
        beyond: Callable[[int, Indices], Root] | None,
    ) -> Root | None:
        """Return a root of what the levels of an axis add along it; None if that is nothing."""
        total, levels = reduce(np.add, variances.values()), self.axes[axis].levels
        here = np.flatnonzero(total > 0)
        if not here.size:
            return None
        if self.is_drawn_along(axis, here.size) and beyond is not None:
            return beyond(levels[0], here).within(here, total.size)
        matrix = np.zeros((here.size, here.size))
        for level, variance in variances.items():
            others = [other for other in levels if other != level]
            width = np.sqrt(variance[here])
            part = correlate(covariance(level, here), variance[here])
            part *= self.similarity(others, here) / self.variance(others)
            matrix += np.outer(width, width) * part
        root = correlation_root(correlate(matrix, total[here]))
        return root.times(np.sqrt(total[here])).within(here, total.size)
