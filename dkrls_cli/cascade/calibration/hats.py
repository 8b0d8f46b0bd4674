"""Linear interpolation between the cells of a grid: what variances do between coordinates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.tensors import contract
from dkrls_cli.circle import wrap


@dataclass(frozen=True, eq=False)
class Hats:
    """Rows (q, m) of linear interpolation: each has two numbers, so no matrix is stored.

    Attributes
    ----------
    left, right
        Places between which each query lies (q,).
    share
        Share of the right one, 0 to 1 (q,).
    """

    left: Indices
    right: Indices
    share: Array
    ndim: ClassVar[int] = 2

    @classmethod
    def between(cls, coordinates: Array, query: Array, period: float | None) -> Self:
        """Return the rows of queries; beyond the coordinates, the value of the last."""
        there, here = (wrap(c, period) for c in (coordinates, query))
        order = np.argsort(there)
        places = there[order]
        if period is not None:
            order = np.concatenate([order[-1:], order, order[:1]])
            places = np.concatenate([places[-1:] - period, places, places[:1] + period])
        if places.size == 1:
            none = np.zeros(query.size, np.intp)
            return cls(none, none, np.zeros(query.size))
        right = np.clip(np.searchsorted(places, here), 1, places.size - 1)
        share = (here - places[right - 1]) / (places[right] - places[right - 1])
        return cls(order[right - 1], order[right], np.clip(share, 0.0, 1.0))

    def __len__(self) -> int:
        """Return the number of queries."""
        return self.share.size

    def __getitem__(self, part: slice) -> Hats:
        """Return some of the rows."""
        return Hats(self.left[part], self.right[part], self.share[part])

    def __matmul__(self, fibres: Array) -> Array:
        """Return fibres (m, n) interpolated (q, n)."""
        share = self.share[:, None]
        return np.asarray((1.0 - share) * fibres[self.left] + share * fibres[self.right])

    def dense(self, size: int) -> Array:
        """Return the rows as a matrix (q, m)."""
        rows, each = np.zeros((len(self), size)), np.arange(len(self))
        np.add.at(rows, (each, self.left), 1.0 - self.share)
        np.add.at(rows, (each, self.right), self.share)
        return rows


def interpolate_at_points(
    cells: Array, hats: Sequence[Hats], count: int, spread: Collection[int]
) -> Array:
    """Return values of cells interpolated at points; axes in `spread` are no part of these."""
    single = [axis for axis in range(cells.ndim) if axis not in spread]
    longest = max(single, key=lambda axis: cells.shape[axis])

    def rows(axis: int, part: slice) -> Array:
        return hats[axis][part].dense(cells.shape[axis])

    def lead(fibres: Array) -> Callable[[slice], Array]:
        return lambda part: hats[longest][part] @ fibres

    return contract(
        cells,
        count,
        rows,
        {},
        max(cells.shape),
        {axis: hats[axis] for axis in spread},
        leading=(longest, lead),
    )


def hats_of(cascade: Cascade, axis: int, query: Array) -> Hats:
    """Return rows of linear interpolation between the coordinates of a level."""
    return Hats.between(cascade.coordinates[axis], query, cascade.levels[axis].kernel.period)
