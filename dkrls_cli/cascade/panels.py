"""Many points at once: rows of an axis as short series on panels, contracted cell by cell.

The row k(q, c) C^-1 that answers along an axis is a smooth function of the coordinate q: everywhere
for a Gaussian kernel, between neighbouring coordinates for the others. It is not sparse: with the
small ridge of a model that follows its data, nearly all entries are above round-off. But on a short
interval, a *panel*, it is row(q) = basis(q) @ matrix to round-off, with few functions in the basis.

The matrices of a panel of every axis turn the tensor into one of a few numbers per axis, for all
points of that *cell* of panels; what is left per point is small. How many panels an axis has, if
any, is chosen by the operations counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, reduce
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices, Tensor
from dkrls_cli.cascade.chebyshev import resolve
from dkrls_cli.cascade.tensors import Rows, along, apply, contract
from dkrls_cli.circle import wrap

_EPS = float(np.finfo(np.float64).eps)

# Terms that the series of a panel may have, at most: rows of longer ones are less exact.
_MOST_TERMS = 40

# Terms more than the series was found to need: its first term left out is then far below round-off.
_SPARE_TERMS = 2

# Rows per panel below which more panels would save nothing.
_FEW_ROWS = 10

# Panels reach beyond the coordinates by at most this part of their range. Points farther away have
# rows of their own, so that a single one cannot stretch all panels.
_BEYOND = 0.25

# Multiplications in the time of one visit of a cell: about 50 microseconds.
_VISIT = 1e6

# Multiplications in the time to make the piece of one panel: about 300 microseconds.
_PIECE = 6e6

# Multiplications in the time of one number of a kernel, most of which is its exponential.
_KERNEL = 200

# Multiplications in the time of one number that is gathered from memory.
_GATHER = 16

# Multiplications below which choosing panels takes longer than they may save: about 20 ms.
_WORTH_PANELS = 4e8

# Numbers of rows computed at once: 32 MB.
_ROWS = 2**22

# Numbers of a tensor on the way, at most: 64 MB.
_MOST_NUMBERS = 2**23


@dataclass(frozen=True, eq=False)
class Curve:
    """The rows of one axis as a function of the coordinate, and the coordinates of some points.

    Attributes
    ----------
    function
        From coordinates (n,) to rows (n, m) of the kernel, which are resolved to their round-off.
    matrices
        What is applied to these rows, one after the other, the last one (..., size).
    nodes
        Coordinates of the axis.
    kinks
        Whether the function has kinks at the coordinates.
    period
        Length of the circle, or None on a line.
    points
        Coordinates of the points (n,).
    noise
        Round-off of the function relative to that of one number: long axes have more.
    squared
        Take the rows' entries squared.
    """

    function: Callable[[Array], Array]
    matrices: tuple[Array, ...]
    nodes: Array
    kinks: bool
    period: float | None
    points: Array
    noise: float = 1.0
    squared: bool = False

    @cached_property
    def breaks(self) -> Array:
        """The coordinates in order; on a circle, the first again after one turn."""
        around = np.sort(wrap(self.nodes, self.period))
        return around if self.period is None else np.append(around, around[0] + self.period)

    @cached_property
    def unrolled(self) -> Array:
        """The points; on a circle, within the turn that begins at the first coordinate."""
        if self.period is None:
            return self.points
        turned = wrap(self.points, self.period)
        return np.where(turned < self.breaks[0], turned + self.period, turned)

    def edges(self, panels: int) -> Array:
        """Return the edges of so many even panels, or of the cells of an axis with kinks."""
        first, last = self.breaks[[0, -1]]
        ends = np.array([self.unrolled.min(), self.unrolled.max()])
        with np.errstate(over="ignore", invalid="ignore"):
            reach = _BEYOND * (last - first)
            low, high = np.clip(ends, first - reach, last + reach)
            if not self.kinks:
                return np.linspace(low, high, panels + 1)
        inner = self.breaks[(self.breaks > low) & (self.breaks < high)]
        return np.concatenate([[low], inner, [high]])

    def rows(self, coordinates: Array) -> Array:
        """Return exact rows (n, size), not squared."""
        return reduce(np.matmul, self.matrices, self.function(coordinates))

    def pieces(self, panels: Sequence[tuple[float, float]]) -> list[Piece | None]:
        """Return the rows on each panel, or None if they have too much detail.

        The matrices are applied to all pieces at once: one by one, reading them would take longer.
        """
        made = [make_piece(self.function, *ends, self.breaks, self.noise) for ends in panels]
        found = [piece for piece in made if piece is not None]
        if not found:
            return made
        stacked = reduce(np.matmul, self.matrices, np.concatenate([p.matrix for p in found]))
        ends = np.cumsum([len(p.matrix) for p in found])
        applied = (
            replace(piece, matrix=matrix)
            for piece, matrix in zip(found, np.split(stacked, ends[:-1]), strict=True)
        )
        rows = (piece.squared() if self.squared else piece for piece in applied)
        return [None if piece is None else next(rows) for piece in made]


@dataclass(frozen=True, eq=False)
class Piece:
    """Rows on one panel: row(q) = basis(q) @ matrix.

    Attributes
    ----------
    low, half
        Lower end and half length of the panel.
    mixture
        From the polynomials that are 1 at one Chebyshev point each to the basis (points, r).
    matrix
        From the basis to rows (r, size).
    """

    low: float
    half: float
    mixture: Array
    matrix: Array

    def basis(self, coordinates: Array) -> Array:
        """Return the basis (n, r) at coordinates of the panel, by the barycentric formula."""
        points, weights = _chebyshev_points(len(self.mixture))
        away = ((coordinates - self.low) / self.half - 1.0)[:, None] - points
        away[away == 0.0] = 1e-290  # at a point its own polynomial outweighs all others
        shares = weights / away
        shares /= shares.sum(axis=1, keepdims=True)
        return np.asarray(shares @ self.mixture)

    def __call__(self, coordinates: Array) -> Array:
        """Return the rows (n, size) at coordinates of the panel."""
        return self.basis(coordinates) @ self.matrix

    def __matmul__(self, matrix: Array) -> Piece:
        """Return the rows times a matrix."""
        return replace(self, matrix=self.matrix @ matrix)

    def squared(self) -> Piece:
        """Return the squares of all entries: polynomials of twice the degree."""
        points, _ = _chebyshev_points(2 * len(self.mixture) - 1)
        return _shortened(self.low, self.half, self(self.low + self.half * (1.0 + points)) ** 2)

    def rotated(self) -> Piece:
        """Return rows of the same lengths that have no more numbers than the basis."""
        return replace(self, matrix=np.asarray(np.linalg.qr(self.matrix.T, mode="r")).T)


def make_piece(
    function: Callable[[Array], Array], low: float, high: float, peaks: Array, noise: float = 1.0
) -> Piece | None:
    """Return the rows of a function on a panel, or None if they have too much detail.

    The basis is shorter than the series: rows of a kernel span few directions on a panel, those of
    a Matern kernel between two coordinates no more than six.
    """
    if low == high:
        return Piece(low, 1.0, np.ones((1, 1)), function(np.array([low])))
    series = resolve(function, low, high, _MOST_TERMS, peaks, noise)
    if series is None:
        return None
    points, _ = _chebyshev_points(len(series.terms) + _SPARE_TERMS)
    return _shortened(low, series.half, function(low + series.half * (1.0 + points)), noise)


def _shortened(low: float, half: float, values: Array, noise: float = 1.0) -> Piece:
    """Return the rows that have these values at Chebyshev points, in the directions they span."""
    left, sizes, right = np.linalg.svd(values, full_matrices=False)
    rank = max(1, int(np.count_nonzero(sizes > noise * _EPS * sizes[0])))
    return Piece(low, half, left[:, :rank], sizes[:rank, None] * right[:rank])


@cache
def _chebyshev_points(count: int) -> tuple[Array, Array]:
    """Return the Chebyshev points in (-1, 1) and their barycentric weights."""
    angles = np.pi * (np.arange(count) + 0.5) / count
    return np.cos(angles), np.where(np.arange(count) % 2, -1.0, 1.0) * np.sin(angles)


@dataclass(frozen=True, eq=False)
class Panels:
    """The panels of one axis, and the panel of every point.

    Points outside of all panels, or in one without a piece, have rows of their own.
    """

    points: Array
    which: Indices
    pieces: tuple[Piece | None, ...]

    def groups(self, here: Indices) -> Iterator[tuple[Indices, Piece | None]]:
        """Yield the points of each panel, of points in the order of their panels, and its piece.

        None for a piece that has no fewer rows than there are points.
        """
        which = self.which[here]
        starts = np.flatnonzero(np.diff(which, prepend=-1))
        for start, stop in pairwise([*starts.tolist(), here.size]):
            piece = self.pieces[which[start]]
            worth = piece is not None and len(piece.matrix) < stop - start
            yield here[start:stop], piece if worth else None


def cut(curve: Curve, panels: int) -> Panels:
    """Return the panels of an axis, with the pieces of those that hold points."""
    edges, points = curve.edges(panels), curve.unrolled
    last = edges.size - 2
    which = np.searchsorted(edges, points, side="right") - 1
    which[points == edges[-1]] = last
    outside = (which < 0) | (which > last)
    which[outside] = last + 1
    held = np.bincount(which, minlength=last + 2)
    busy = np.flatnonzero(held[:-1] > 1)
    made = dict(
        zip(busy.tolist(), curve.pieces([(edges[i], edges[i + 1]) for i in busy]), strict=True)
    )
    return Panels(points, which, tuple(made.get(i) for i in range(last + 2)))


@dataclass(frozen=True)
class _Cut:
    """An axis in so many panels, with so many rows each."""

    panels: int
    rows: int


def choose_panels(
    shape: Sequence[int],
    curves: Mapping[int, Curve],
    count: int,
    looked_up: Collection[int] = (),
) -> dict[int, Panels]:
    """Return the axes that are worth panels, and their panels; none for few points.

    A tensor of this shape is contracted at `count` points. Axes in `curves` may have panels, those
    in `looked_up` need no row.
    """
    price = _Price(shape, curves, count, looked_up)
    if price({}) < _WORTH_PANELS:
        return {}
    cuts = {axis: list(_cuts(curve)) for axis, curve in curves.items()}
    chosen = {axis: some[len(some) // 2] for axis, some in cuts.items() if some}
    for _ in range(3):  # axis by axis: what is best for one depends on the others
        for axis, some in cuts.items():
            others = {a: c for a, c in chosen.items() if a != axis}
            chosen = min([others, *({**others, axis: c} for c in some)], key=price)
    best = min({}, chosen, key=price)
    return {axis: cut(curves[axis], best[axis].panels) for axis in price.order(best)}


def _cuts(curve: Curve) -> Iterator[_Cut]:
    """Yield the ways to cut an axis, with the rows of the panel in the middle."""
    panels, most = 1, 1 if curve.kinks else 4 * curve.nodes.size
    while panels <= most:
        edges = curve.edges(panels)
        low, high = edges[(edges.size - 1) // 2 :][:2]
        piece = curve.pieces([(low, high)])[0] if np.isfinite(edges).all() else None
        if piece is not None:
            one = _Cut(panels=edges.size - 1, rows=len(piece.matrix))
            if one.panels * one.rows * curve.nodes.size <= _MOST_NUMBERS:
                yield one
            if one.rows < _FEW_ROWS:
                return
        panels *= 2


@dataclass(frozen=True)
class _Price:
    """The multiplications of a contraction at points, given the axes that are cut."""

    shape: Sequence[int]
    curves: Mapping[int, Curve]
    count: int
    looked_up: Collection[int]

    def order(self, cuts: Mapping[int, _Cut]) -> list[int]:
        """Return the axes in the order in which to apply panels: those that grow least first."""
        return sorted(cuts, key=lambda axis: cuts[axis].panels * cuts[axis].rows / self.shape[axis])

    def __call__(self, cuts: Mapping[int, _Cut]) -> float:
        """Return the multiplications; infinite if a tensor on the way is too large."""
        sizes, total, cells = list(self.shape), 0.0, 1
        for axis in self.order(cuts):
            cells = min(cells * cuts[axis].panels, self.count)
            sizes[axis] = cuts[axis].rows
            numbers = math.prod(sizes)
            total += math.inf if numbers > _MOST_NUMBERS else cells * numbers * self.shape[axis]
            total += cells * _VISIT + cuts[axis].panels * (
                _PIECE + cuts[axis].rows * self._row(axis)
            )
        rows = sum(self._row(axis) for axis in self.curves if axis not in cuts)
        numbers = math.prod(size for axis, size in enumerate(sizes) if axis not in self.looked_up)
        return total + self.count * (rows + numbers * (_GATHER if self.looked_up else 1))

    def _row(self, axis: int) -> float:
        """Return the multiplications of an exact row: the kernel, its eigenbasis and the solve."""
        m = self.curves[axis].nodes.size
        return m * (_KERNEL + m + self.shape[axis])


def contract_points(
    tensor: Tensor,
    count: int,
    rows: Callable[[int, slice | Indices], Array],
    looked_up: Mapping[int, Indices],
    widest: int,
    spread: Mapping[int, NDArray[Any] | Rows],
    curves: Mapping[int, Curve],
) -> Array:
    """Return the result of :func:`contract`, in panels of the axes in `curves` where that pays.

    `rows(axis, points)` returns the exact rows of some points, given as a slice or by index.
    """
    early = {axis: op for axis, op in spread.items() if len(op) <= tensor.shape[axis]}
    late: dict[int, NDArray[Any] | Rows] = {
        axis: np.arange(len(op)) if axis in early else op for axis, op in spread.items()
    }
    shape = [len(early.get(axis, range(size))) for axis, size in enumerate(tensor.shape)]
    panels = choose_panels(shape, curves, count, looked_up)
    if not panels:
        return contract(tensor, count, rows, looked_up, widest, spread)
    if early:
        tensor = apply(tensor, [early.get(axis) for axis in range(tensor.ndim)])
    answers = np.empty((count, *(len(spread[axis]) for axis in sorted(spread))))
    for cell in _cells(tensor, panels, _sorted_points(panels.values()), {}):
        here = {axis: nodes[cell.points] for axis, nodes in looked_up.items()}

        def cell_rows(axis: int, part: slice, cell: _Cell = cell) -> Array:
            some, piece = cell.points[part], cell.pieces.get(axis)
            return rows(axis, some) if piece is None else piece.basis(panels[axis].points[some])

        answers[cell.points] = contract(
            cell.tensor, cell.points.size, cell_rows, here, widest, late
        )
    return answers


def sum_squares(curve: Curve, weights: Array) -> Array:
    """Return the sum over j of weights[j] row[j]^2 at every point (n,)."""
    count, root = curve.points.size, np.sqrt(weights)
    found = choose_panels([root.size], {0: curve}, count)
    panels = found.get(0, Panels(curve.points, np.zeros(count, np.intp), (None,)))
    at_once, result = max(1, _ROWS // root.size), np.empty(count)
    for group, piece in panels.groups(_sorted_points([panels])):
        rows = curve.rows if piece is None else (piece @ np.diag(root)).rotated()
        scale = root if piece is None else 1.0
        for some in np.split(group, range(at_once, group.size, at_once)):
            scaled = rows(panels.points[some]) * scale
            result[some] = np.einsum("ij,ij->i", scaled, scaled)
    return result


@dataclass(frozen=True, eq=False)
class _Cell:
    """Points in one panel of every axis, and the tensor with the matrices of these applied."""

    tensor: Tensor
    points: Indices
    pieces: Mapping[int, Piece]


def _cells(
    tensor: Tensor, panels: Mapping[int, Panels], points: Indices, pieces: Mapping[int, Piece]
) -> Iterator[_Cell]:
    """Yield the cells of points that are in the order of their panels."""
    if not panels:
        yield _Cell(tensor, points, pieces)
        return
    axis, *others = panels
    rest = {a: panels[a] for a in others}
    for some, piece in panels[axis].groups(points):
        if piece is None:
            yield from _cells(tensor, rest, some, pieces)
        else:
            yield from _cells(
                along(tensor, axis, piece.matrix), rest, some, {**pieces, axis: piece}
            )


def _sorted_points(panels: Collection[Panels]) -> Indices:
    """Return the points in the order of their panels, those of the first axis first."""
    sizes = [len(p.pieces) for p in panels]
    cells = np.ravel_multi_index([p.which for p in panels], sizes)
    small = math.prod(sizes) <= 2**16  # then numpy sorts in linear time
    return np.argsort(cells.astype(np.uint16) if small else cells, kind="stable")
