"""Rows of scattered points along one axis, each cut to a window of the samples.

The answer at a point is the product of one row per axis with the data. Away from the coordinate of
the point the entries of a row fall off, so that a point needs a small box of a large grid. All
windows of an axis are equally wide, and on a circle they may go on from its end at its start:
points whose windows begin near each other share a product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices

SMALL = 1e-13
"""Entries of a row that are left out, beside the largest: less than what rounding leaves there."""

SMALL_IN_SINGLE = 1e-9
"""The same for data in single precision, which is rounded by 6e-8 of itself."""

_AT_ONCE = 2**21
"""Entries of rows that are made at a time: 16 MB."""

_BETWEEN = 2**22
"""Numbers at most that the points of one product have on the way: 32 MB."""


@dataclass(frozen=True, eq=False)
class PointRows:
    """Rows of points along one axis.

    Attributes
    ----------
    starts
        First sample of the window of every point (n,).
    weights
        Entries of the rows in their windows (n, width); a window that reaches beyond the last
        sample goes on at the first.
    samples
        Number of samples of the axis.
    """

    starts: Indices
    weights: Array
    samples: int

    @classmethod
    def at_samples(cls, places: Indices, samples: int) -> PointRows:
        """Return rows that take one sample each."""
        return cls(np.asarray(places, np.intp), np.ones((places.size, 1)), samples)

    @classmethod
    def build(
        cls,
        make_rows: Callable[[slice], Array],
        size: int,
        samples: int,
        *,
        circle: bool = False,
        small: float = SMALL,
    ) -> PointRows:
        """Return rows of which `make_rows` returns some (rows, samples) at a time.

        Parameters
        ----------
        make_rows
            Returns the rows of a part.
        size, samples
            Number of rows, and of samples.
        circle
            Whether the first sample is a neighbour of the last.
        small
            Entries outside a window at most, beside the largest entry of a row.

        Examples
        --------
        >>> rows = np.array([[0.0, 0.5, 1.0, 1e-15, 0.0], [0.5, 0.0, 0.0, 0.0, 1.0]])
        >>> found = PointRows.build(lambda part: rows[part], 2, 5, circle=True)
        >>> found.starts.tolist(), found.weights.tolist()
        ([1, 4], [[0.5, 1.0], [1.0, 0.5]])
        """
        step = max(1, _AT_ONCE // samples)
        parts = [slice(start, min(start + step, size)) for start in range(0, size, step)]
        cut = [_cut(make_rows(part), circle, small) for part in parts]
        width = max((own.shape[1] for _, own in cut), default=1)
        starts, weights = np.empty(size, np.intp), np.zeros((size, width))
        for part, (first, own) in zip(parts, cut, strict=True):
            starts[part] = first
            weights[part, : own.shape[1]] = own
        return cls(starts, weights, samples)

    @property
    def width(self) -> int:
        """Samples of every window."""
        return int(self.weights.shape[1])

    def take(self, places: Any) -> PointRows:
        """Return the rows of some points."""
        return PointRows(self.starts[places], self.weights[places], self.samples)

    def windows(self, groups: Sequence[Indices]) -> Indices:
        """Return the first sample and the one behind the last that each group needs (groups, 2).

        On a circle the last may lie behind the end.
        """
        bounds = [(self.starts[own].min(), self.starts[own].max() + self.width) for own in groups]
        return np.array(bounds, np.intp).reshape(-1, 2)

    def pieces(self, here: slice) -> list[slice]:
        """Return the samples of a part of the axis that the points need, in one or two pieces."""
        first, last = int(self.starts.min()), int(self.starts.max()) + self.width
        whole = [(first, min(last, self.samples)), (0, min(last - self.samples, first))]
        cut = [(max(start, here.start), min(stop, here.stop)) for start, stop in whole]
        return [slice(start, stop) for start, stop in cut if start < stop]

    def matrix(self, window: slice) -> Array:
        """Return the rows at the samples of a window (n, samples of it)."""
        size = window.stop - window.start
        columns = (self.starts[:, None] + np.arange(self.width)) % self.samples - window.start
        inside = (columns >= 0) & (columns < size)
        result = np.zeros((self.starts.size, size))
        rows = np.nonzero(inside)[0]
        result[rows, columns[inside]] = self.weights[inside]
        return result


def _cut(rows: Array, circle: bool, small: float) -> tuple[Indices, Array]:
    """Return the first sample of every window, and the entries in it; all are equally wide."""
    count, samples = rows.shape
    sizes = np.abs(rows)
    turn = np.zeros((count, 1), np.intp)
    if circle:  # begin as far as possible from the largest entry
        turn = sizes.argmax(axis=1)[:, None] - samples // 2
    columns = (np.arange(samples) + turn) % samples
    large = np.take_along_axis(sizes > small * sizes.max(axis=1, keepdims=True), columns, axis=1)
    first = large.argmax(axis=1)
    last = samples - 1 - large[:, ::-1].argmax(axis=1)
    width = int((last - first).max(initial=0)) + 1
    first = np.minimum(first, samples - width)
    columns = (first[:, None] + turn + np.arange(width)) % samples
    return columns[:, 0].astype(np.intp), np.take_along_axis(rows, columns, axis=1)


def group_points(axes: Sequence[PointRows]) -> list[Indices]:
    """Return points in groups whose windows begin near each other along every axis.

    No window of a group, from its first sample to its last, is twice as wide as that of a point.

    Examples
    --------
    >>> rows = PointRows(np.array([0, 7, 1]), np.ones((3, 4)), 12)
    >>> [group.tolist() for group in group_points([rows])]
    [[0, 2], [1]]
    """
    places = [rows.starts // rows.width for rows in axes]
    order = np.lexsort(places[::-1])
    changes = np.zeros(max(0, order.size - 1), bool)
    for own in places:
        changes |= np.diff(own[order]) != 0
    return [group for group in np.split(order, np.flatnonzero(changes) + 1) if group.size]


def add_products(
    out: Array,
    group: Indices,
    axes: Sequence[PointRows],
    box: NDArray[Any],
    where: Sequence[slice],
) -> None:
    """Add the products of points with a box of the data to their answers.

    Parameters
    ----------
    out
        Answers (points, ...), which are added to.
    group
        The points whose windows meet the box.
    axes
        Rows of all points, one per axis of points.
    box
        Data with the axes of the points first, and then those of the answers.
    where
        Samples that the box has along the axes of the points.
    """
    own = [rows.take(group) for rows in axes]
    pieces = [rows.pieces(here) for rows, here in zip(own, where, strict=True)]
    for windows in product(*pieces):
        pairs = zip(windows, where, strict=True)
        cells = box[tuple(slice(w.start - here.start, w.stop - here.start) for w, here in pairs)]
        order = sorted(range(len(axes)), key=lambda axis: -cells.shape[axis])
        turned = cells.transpose([*order, *range(len(axes), cells.ndim)])
        for part in _portions(group.size, turned[0].size):
            matrices = [own[axis].take(part).matrix(windows[axis]) for axis in order]
            out[group[part]] += _product(matrices, turned)


def _portions(count: int, each: int) -> Iterator[slice]:
    """Yield parts of so many points that what each has on the way fits into memory."""
    step = max(1, _BETWEEN // max(1, each))
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


def _product(matrices: Sequence[Array], cells: NDArray[Any]) -> Array:
    """Return the rows of points, a matrix per axis, applied to the leading axes of a box.

    The first axis takes one product of matrices, and so should be the longest: what it leaves is
    multiplied point by point.
    """
    first, *others = matrices
    result = (first @ cells.reshape(len(cells), -1)).reshape(len(first), *cells.shape[1:])
    for matrix in others:
        flat = result.reshape(*result.shape[:2], -1)
        result = np.matmul(matrix[:, None], flat)[:, 0].reshape(len(matrix), *result.shape[2:])
    return np.asarray(result, np.float64)
