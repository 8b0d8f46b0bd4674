"""The one pass of a compact fit: the core of a model as a sum over the chunks of its data.

The core of a compact model is the data with a frame U_l' applied along every axis. A frame has a
row for each coordinate, so that a part of the data enters with its own rows of all frames:

    core = sum over parts of (rows of U_1)' ... (rows of U_n)' part.

Parts are *pieces* of whole stored chunks. All pieces with some neighbouring coordinates of one
axis, the *outer* one, make a *slab*: they are added up along the other axes first, and the frame of
the outer axis, which mostly widens what is there, is applied once for a slab.

Rows across the poles are copies of others, so that they are one more such sum, with other matrices
along latitude and longitude.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices, Slices
from dkrls_cli.cascade.poles.continuation import Continuation
from dkrls_cli.cascade.tensors import along, apply
from dkrls_cli.files.source import UNWRITTEN, mask_unusable
from dkrls_cli.model.chunked.panels import Stored

Read: TypeAlias = Callable[[Sequence[Indices]], NDArray[Any]]
"""Reads the values at some coordinates of each axis."""

Matrices: TypeAlias = tuple[Array | None, ...]
"""A matrix (m, r) for every axis; None: the axis stays in samples."""

Slab: TypeAlias = tuple[Slices, ...]
"""All pieces with some neighbouring coordinates along the outer axis, in rising order."""

_PIECE = 2**21
"""Cells of a piece, where chunks permit: 16 MB of float64."""

_LAYER = 2**18
"""Cells of a piece that are worked on at once, if a coordinate has not more: 2 MB of float64."""

_SLABS = 16
"""Slabs at least, if pieces permit: so many steps of progress, and parts for several workers."""

CELL = 28
"""Bytes in use for each cell of a piece: as stored, as read, as float64, and a product of it."""


@dataclass(frozen=True, eq=False)
class Reduction:
    """How data is reduced to a core.

    Attributes
    ----------
    matrices
        Frames of the axes, without rows across the poles.
    outer
        The outer axis of slabs.
    columns
        Places of the coordinates of every axis in the file.
    mirrored
        The matrices of rows across the poles; empty if there are none.
    copies
        How many copies each latitude has there.
    latitude
        The axis of latitude, if there are.
    ones
        U_l' 1 of every frame, None of axes in samples; empty if frames do not hold a constant.
    """

    matrices: Matrices
    outer: int
    columns: tuple[Indices, ...]
    mirrored: Matrices = ()
    copies: Array | None = None
    latitude: int = 0
    ones: tuple[Array | None, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the core."""
        return tuple(
            own.size if matrix is None else matrix.shape[1]
            for own, matrix in zip(self.columns, self.matrices, strict=True)
        )


@dataclass(frozen=True, eq=False)
class Partial:
    """What a part of the data adds to a model.

    Attributes
    ----------
    core
        Its core, in the place `where` of the core of all.
    cells
        Number of its cells.
    total, own_squares
        Sum of its values, and of their squares.
    squares
        Sum of squares with those of rows across the poles.
    least, largest
        Of its values.
    missing
        Indices of its first missing cell; None if there is none. Then nothing else is known.
    """

    core: Array
    where: Slices
    cells: int = 0
    total: float = 0.0
    own_squares: float = 0.0
    squares: float = 0.0
    least: float = math.inf
    largest: float = -math.inf
    missing: tuple[int, ...] | None = None


@dataclass(eq=False)
class Sums:
    """Sums over all parts that have been added."""

    core: Array
    cells: int = 0
    total: list[float] = field(default_factory=list)
    own_squares: list[float] = field(default_factory=list)
    squares: list[float] = field(default_factory=list)
    least: float = math.inf
    largest: float = -math.inf

    def add(self, part: Partial) -> None:
        """Add a part."""
        self.core[part.where] += part.core
        self.cells += part.cells
        self.total.append(part.total)
        self.own_squares.append(part.own_squares)
        self.squares.append(part.squares)
        self.least, self.largest = min(self.least, part.least), max(self.largest, part.largest)

    @property
    def mean(self) -> float:
        """Mean of all values."""
        return math.fsum(self.total) / self.cells

    @property
    def spread(self) -> float:
        """Standard deviation of all values."""
        return math.sqrt(max(0.0, math.fsum(self.own_squares) / self.cells - self.mean**2))


def make_reduction(
    frames: Matrices,
    outer: int,
    columns: tuple[Indices, ...],
    rows: Continuation | None,
    *,
    constant: bool = True,
) -> Reduction:
    """Return how data is reduced to frames.

    Parameters
    ----------
    frames
        Of all axes, with rows across the poles if there are some.
    outer, columns
        As :class:`Reduction` has them.
    rows
        Rows across the poles, or None.
    constant
        Whether all frames hold a constant.
    """
    ones = [None if frame is None else frame.sum(axis=0) for frame in frames]
    if rows is None:
        return Reduction(frames, outer, columns, ones=tuple(ones) if constant else ())
    own, mirrored = list(frames), list(frames)
    size = columns[rows.latitude].size
    latitude = _matrix(frames[rows.latitude], size + rows.rows)
    longitude = _matrix(frames[rows.longitude], columns[rows.longitude].size)
    inner = rows.inner(len(latitude))
    copied, copies = np.zeros((size, latitude.shape[1])), np.zeros(size)
    for place, source in enumerate(rows.copies(len(latitude))):
        if source >= 0:
            copied[source - inner.start] += latitude[place]
            copies[source - inner.start] += 1
    own[rows.latitude], mirrored[rows.latitude] = latitude[inner], rows.sign * copied
    own[rows.longitude], mirrored[rows.longitude] = longitude, _turned(rows, longitude)
    ones[rows.latitude], ones[rows.longitude] = latitude.sum(axis=0), longitude.sum(axis=0)
    return Reduction(
        tuple(own),
        outer,
        columns,
        tuple(mirrored),
        copies,
        rows.latitude,
        tuple(ones) if constant else (),
    )


def _matrix(frame: Array | None, size: int) -> Array:
    return np.eye(size) if frame is None else frame


def _turned(rows: Continuation, longitude: Array) -> Array:
    """Return T' U: what a ring adds to a frame U when it is seen from the other side of a pole."""
    turn = rows.turn
    if isinstance(turn, np.ndarray) and turn.ndim == 1:
        result = np.zeros_like(longitude)
        np.add.at(result, turn, longitude)
        return result
    assert turn is not None
    return np.asarray((turn @ np.eye(len(longitude))).T @ longitude)


def mirrored_constant(
    rows: Continuation, frames: Matrices, shape: Sequence[int], mean: float
) -> Array | None:
    """Return what the mean adds to the core through rows across the poles; None if nothing.

    Where the model of a ring is asked half a turn away, it is asked about the data less its mean.
    `shape` is that of the data with these rows.
    """
    turn = rows.turn
    if turn is None or (isinstance(turn, np.ndarray) and turn.ndim == 1):
        return None
    ones = [np.ones(size) for size in shape]
    ring = ones[rows.longitude][:, None]
    ones[rows.longitude] = rows.sign * mean * (ring - turn @ ring)[:, 0]
    ones[rows.latitude] = np.asarray(rows.copies(ones[rows.latitude].size) >= 0, np.float64)
    parts = [
        vector if frame is None else vector @ frame
        for vector, frame in zip(ones, frames, strict=True)
    ]
    return reduce(np.multiply.outer, parts)


def reduce_slab(read: Read, reduction: Reduction, slab: Slab) -> Partial:
    """Read the pieces of a slab and return what they add to a model.

    A pure function of values that can be pickled: it may run on any machine that has the files.
    """
    outer, columns = reduction.outer, reduction.columns
    terms = [m for m in (reduction.matrices, reduction.mirrored) if m]
    sums: list[Array | None] = [None] * len(terms)
    own = slice(slab[0][outer].start, slab[-1][outer].stop)
    where = tuple(
        own if axis == outer and reduction.matrices[axis] is None else slice(None)
        for axis in range(len(columns))
    )
    numbers = []
    for whole in slab:
        indices = [all_[part] for all_, part in zip(columns, whole, strict=True)]
        values = read(indices)
        least, largest = float(values.min()), float(values.max())
        if not (least > -UNWRITTEN and largest < UNWRITTEN):  # NaN if any is NaN
            return Partial(np.zeros(0), where, missing=_first_missing(values, whole))
        for piece, data in _in_layers(values, whole, outer):
            own_squares = float(np.vdot(data, data))
            copied = _copied_squares(data, reduction, piece)
            total = 0.0 if reduction.ones else float(data.sum())
            numbers.append((total, own_squares, own_squares + (copied or 0.0), least, largest))
            for place, matrices in enumerate(terms):
                if place == 0 or copied is not None:
                    some, rows = _copied_rows(data, reduction, piece) if place else (data, None)
                    part = _reduce_piece(some, matrices, piece, reduction, rows)
                    sums[place] = _add_piece(sums[place], part, piece, own, matrices, reduction)
    core = np.zeros(0)
    for reduced, matrices in zip(sums, terms, strict=True):
        if reduced is not None:
            frame = matrices[outer]
            part = reduced if frame is None else along(reduced, outer, frame[own].T)
            core = part if not core.size else core + part
    *added, leasts, largests = zip(*numbers, strict=True)
    total, own_squares, squares = map(math.fsum, added)
    return Partial(
        core,
        where,
        sum(math.prod(p.stop - p.start for p in piece) for piece in slab),
        _total(sums[0], reduction) if reduction.ones else total,
        own_squares,
        squares,
        min(leasts),
        max(largests),
    )


def _in_layers(
    values: NDArray[Any], piece: Slices, outer: int
) -> Iterator[tuple[Slices, NDArray[np.float64]]]:
    """Yield layers of a piece along the outer axis, with their values in double precision.

    What is made of a thin layer stays in the cache of a processor from step to step.
    """
    size = values.shape[outer]
    step = max(1, -(-_LAYER * size // max(1, values.size)))
    for start in range(0, size, step):
        here = slice(start, min(start + step, size))
        layer, before = list(piece), (slice(None),) * outer
        layer[outer] = slice(piece[outer].start + here.start, piece[outer].start + here.stop)
        yield tuple(layer), np.ascontiguousarray(values[(*before, here)], np.float64)


def _first_missing(values: NDArray[Any], piece: Slices) -> tuple[int, ...]:
    """Return the indices of the first cell of a piece that is missing."""
    missing = np.isnan(mask_unusable(values)[0])
    first = np.unravel_index(int(np.argmax(missing)), values.shape)
    return tuple(own.start + int(i) for own, i in zip(piece, first, strict=True))


def _total(reduced: Array | None, reduction: Reduction) -> float:
    """Return the sum of all values of a slab, from their sums in frames that hold a constant."""
    assert reduced is not None
    for axis in reversed(range(reduced.ndim)):
        ones = None if axis == reduction.outer else reduction.ones[axis]
        reduced = reduced.sum(axis=axis) if ones is None else np.tensordot(reduced, ones, (axis, 0))
    return float(reduced)


def _copied_squares(data: Array, reduction: Reduction, piece: Slices) -> float | None:
    """Return the sum of squares of the copies of a piece across the poles; None if it has none.

    A copy on a ring whose longitudes are no half turn apart has nearly the squares of the ring.
    """
    if reduction.copies is None:
        return None
    weights = reduction.copies[piece[reduction.latitude]]
    rows = [(weights[i], np.take(data, i, reduction.latitude)) for i in np.flatnonzero(weights)]
    return math.fsum(weight * float(np.vdot(row, row)) for weight, row in rows) if rows else None


def _copied_rows(data: Array, reduction: Reduction, piece: Slices) -> tuple[Array, Indices | None]:
    """Return the latitudes of a piece that have copies across the poles, and their places.

    Along the outer axis, all latitudes stay: None.
    """
    assert reduction.copies is not None
    if reduction.latitude == reduction.outer:
        return data, None
    rows = np.flatnonzero(reduction.copies[piece[reduction.latitude]])
    return data.take(rows, reduction.latitude), rows


def _reduce_piece(
    data: Array, matrices: Matrices, piece: Slices, reduction: Reduction, rows: Indices | None
) -> Array:
    """Return a piece with all axes but the outer one in their frames.

    `rows` are the latitudes of the piece that the data has; None: all.
    """
    operators = [
        None if axis == reduction.outer or matrix is None else matrix[part].T
        for axis, (matrix, part) in enumerate(zip(matrices, piece, strict=True))
    ]
    latitude = operators[reduction.latitude]
    if rows is not None and latitude is not None:
        operators[reduction.latitude] = latitude[:, rows]
    return apply(data, operators)


def _add_piece(
    total: Array | None,
    part: Array,
    piece: Slices,
    own: slice,
    matrices: Matrices,
    reduction: Reduction,
) -> Array:
    """Return the sum of a slab, which has `own` of the outer axis, with one more piece."""
    outer = reduction.outer
    shape, where = list(part.shape), [slice(None)] * part.ndim
    shape[outer] = own.stop - own.start
    where[outer] = slice(piece[outer].start - own.start, piece[outer].stop - own.start)
    for axis, matrix in enumerate(matrices):
        if axis != outer and matrix is None:
            shape[axis], where[axis] = reduction.columns[axis].size, piece[axis]
    if total is None and tuple(shape) == part.shape:
        return part
    total = np.zeros(shape) if total is None else total
    total[tuple(where)] += part
    return total


@dataclass(frozen=True, eq=False)
class SlabPlan:
    """How a grid is cut into slabs.

    Attributes
    ----------
    outer
        The outer axis.
    thickness
        Coordinates of a slab along it.
    sides
        Sizes of a piece.
    memory
        Bytes in use for a slab.
    result
        Bytes of what it adds to the core.
    operations
        Arithmetic operations of the pass.
    """

    outer: int
    thickness: int
    sides: tuple[int, ...]
    memory: int
    result: int
    operations: float

    def slabs(self, shape: Sequence[int]) -> Iterator[Slab]:
        """Yield the slabs of a grid."""
        cuts = [
            [slice(start, min(start + side, size)) for start in range(0, size, side)]
            for side, size in zip(self.sides, shape, strict=True)
        ]
        outer, step = cuts[self.outer], max(1, self.thickness // self.sides[self.outer])
        for start in range(0, len(outer), step):
            own = outer[start : start + step]
            yield tuple(product(*(own if a == self.outer else c for a, c in enumerate(cuts))))


def plan_slabs(stored: Stored, ranks: Sequence[int], room: float) -> SlabPlan:
    """Return the slabs with which a pass takes the fewest operations and fits into memory.

    Parameters
    ----------
    stored
        The grid.
    ranks
        Sizes of the core.
    room
        Bytes that a slab may take. If no slabs are that small, the smallest are returned.
    """
    plans = [_plan_outer(stored, ranks, room, outer) for outer in range(len(ranks))]
    fitting = [plan for plan in plans if plan.memory <= room]
    if fitting:
        return min(fitting, key=lambda plan: plan.operations)
    return min(plans, key=lambda plan: plan.memory)


def _plan_outer(stored: Stored, ranks: Sequence[int], room: float, outer: int) -> SlabPlan:
    """Return the slabs along one axis: pieces of whole chunks, as large as is useful and fits."""
    sides, most = list(stored.chunks), max(1.0, min(_PIECE, room / (2 * CELL)))
    while math.prod(sides) > most and max(sides) > 1:  # a chunk that is read in parts
        longest = max(range(len(sides)), key=lambda axis: sides[axis])
        sides[longest] = -(-sides[longest] // 2)
    others = math.prod(rank for axis, rank in enumerate(ranks) if axis != outer)
    order = [axis for axis in reversed(range(len(sides))) if axis != outer]
    for axis in (*order, outer):
        times = most / math.prod(sides)
        if axis == outer:  # the sum of a slab takes memory as well
            times = min(times, room / (2 * 2 * 8 * others * sides[outer]))
        sides[axis] = min(stored.shape[axis], sides[axis] * max(1, int(times)))
    framed, thickness = ranks[outer] != stored.shape[outer], sides[outer]
    result = 8 * others * (ranks[outer] if framed else thickness)
    if framed:  # a slab makes all of a core, however thin it is
        room -= CELL * math.prod(sides) + result
        wanted = min(ranks[outer], -(-stored.shape[outer] // _SLABS), room // (2 * 8 * others))
        thickness *= max(1, int(wanted // thickness))
    memory = CELL * math.prod(sides) + 2 * 8 * others * thickness + result
    operations = _operations(stored.shape, sides, ranks, outer)
    return SlabPlan(outer, thickness, tuple(sides), memory, result, operations)


def _operations(
    shape: Sequence[int], sides: Sequence[int], ranks: Sequence[int], outer: int
) -> float:
    """Return the operations of a pass: products along all axes of all pieces, then of slabs."""
    pieces = math.prod(-(-size // side) for size, side in zip(shape, sides, strict=True))
    left, each = [float(side) for side in sides], 0.0
    others = [axis for axis in range(len(sides)) if axis != outer and ranks[axis] < shape[axis]]
    for axis in sorted(others, key=lambda axis: ranks[axis] / sides[axis]):
        each += math.prod(left) * ranks[axis]
        left[axis] = ranks[axis]
    last = math.prod(ranks) * shape[outer] if ranks[outer] < shape[outer] else 0
    return pieces * each + last
