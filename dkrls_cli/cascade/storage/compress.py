"""Compression with a promise: the smallest model whose answers are within a tolerance.

The data of a cascade enters its answers through core and frames only. Its truncated higher-order
singular value decomposition (De Lathauwer, De Moor and Vandewalle, SIAM J. Matrix Anal. Appl. 21,
2000) keeps, per axis, the directions in which the data is largest. How many are kept is found by
measuring: the answers of the small model are compared with those of the full one at the training
coordinates and half-way between them along every axis, in all combinations.

What a small model is made of:

- An axis is either kept as the full model has it, or truncated to r directions, a frame (m, r).
- Directions go one by one, each time the one that costs the least squared error per number that
  need not be stored. The order is fixed beforehand, and a bisection finds how far it can be gone.
- Core and frames are stored in single precision where that is within the tolerance as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import DTypeLike

from dkrls_cli.arrays import Array, Tensor
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.fit import lost_energy
from dkrls_cli.cascade.tensors import along, apply
from dkrls_cli.circle import wrap
from dkrls_cli.errors import SettingError
from dkrls_cli.threads import one_blas_thread

# An axis with more coordinates than this, and more fibres, is not truncated: its basis would take
# a square matrix of that size.
_LONG = 2000

# Singular values below this share of the largest are round-off of the data.
_ROUND_OFF = 1e-14

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

# Largest over root mean square error of a truncation, roughly: of some 1e5 normal errors.
_PEAK = 4.0

# Rounding to single precision that takes more than this share of the tolerance may cost more
# numbers than it saves: then double precision is tried as well.
_SMALL_SHARE = 0.1

# Data above this, with room for sums of it, has no place in single precision.
_LARGEST_SINGLE = 1e30

Ranks = tuple[int, ...]
"""Directions that are stored per axis."""


@dataclass(frozen=True)
class Difference:
    """How far the answers of two models differ: root mean square and maximum."""

    rms: float
    largest: float


@dataclass(frozen=True, eq=False)
class Compressed:
    """A compressed cascade, and how far its answers are from those of the full one.

    Attributes
    ----------
    cascade
        The smallest cascade found; the full one itself if none is smaller.
    difference
        As measured at the training coordinates and half-way between them.
    bytes, full_bytes
        Size of core and frames, after and before.
    """

    cascade: Cascade
    difference: Difference
    bytes: int
    full_bytes: int


def compress(full: Cascade, tolerance: float, between: Sequence[bool] | None = None) -> Compressed:
    """Return the smallest cascade whose answers are within a tolerance of those of the full one.

    The promise is for answers at the training coordinates and half-way between neighbours, in all
    combinations over the axes, and for the largest difference of all of them.

    Parameters
    ----------
    full
        A trained cascade.
    tolerance
        Largest difference allowed, in units of the data.
    between
        Per axis, whether answers half-way between coordinates count; all do by default. Between
        labels there is nothing to ask for.

    Returns
    -------
    Compressed
        The cascade and the difference that was measured.

    Raises
    ------
    SettingError
        If the tolerance is not a number above 0.

    Examples
    --------
    >>> from dkrls_cli.cascade.fit import fit_cascade
    >>> from dkrls_cli.cascade.kernels import Kernel
    >>> from dkrls_cli.cascade.level import Level
    >>> x, d = np.linspace(0, 3, 30), np.linspace(0, 5, 40)
    >>> values = np.sin(x)[:, None] * np.cos(d) + 1e-4 * np.cos(9 * x[:, None] * d)
    >>> levels = [Level("x", Kernel(sigma=0.5), 1e-6), Level("d", Kernel(sigma=0.5), 1e-6)]
    >>> small = compress(fit_cascade(values, [x, d], levels), 1e-3)
    >>> small.bytes, small.full_bytes, small.difference.largest < 1e-3
    (280, 9600, True)
    """
    if not (tolerance > 0 and math.isfinite(tolerance)):
        raise SettingError(f"Invalid tolerance {tolerance}. It must be a number above 0.")
    queries = [
        np.concatenate([c, half_way(c, level.kernel.period)]) if yes else c
        for c, level, yes in zip(
            full.coordinates, full.levels, between or [True] * full.ndim, strict=True
        )
    ]
    cells = _Comparison(full, queries, float(tolerance))
    lean = _unframe(full)
    whole, bases = _turn(lean, [None] * full.ndim), _principal(lean)
    small, difference = full, Difference(0.0, 0.0)
    for dtype in _types(whole, cells):
        for found in _truncations(lean, bases, cells, dtype):
            small, difference = min((small, difference), found, key=lambda f: stored_bytes(f[0]))
        same = whole.truncate(whole.sizes, dtype)
        if stored_bytes(same) < stored_bytes(small):
            measured = cells.measure(same)
            small, difference = (small, difference) if measured is None else (same, measured)
    return Compressed(small, difference, stored_bytes(small), stored_bytes(full))


def _types(whole: _Layout, cells: _Comparison) -> list[DTypeLike]:
    """Return the types of storage to try: double precision only where single loses too much."""
    if float(np.abs(whole.turned.core).max()) > _LARGEST_SINGLE:
        return [np.float64]
    rounding = cells.sampled(whole.truncate(whole.sizes, np.float32))
    return [np.float32] if rounding <= _SMALL_SHARE * cells.tolerance else [np.float32, np.float64]


def _unframe(full: Cascade) -> Cascade:
    """Return the cascade with those axes in samples that take fewer numbers so."""
    for axis, frame in enumerate(full.frames):
        if frame is not None:
            frames = (*full.frames[:axis], None, *full.frames[axis + 1 :])
            core = along(full.core, axis, frame)
            plain = replace(full, core=core, frames=frames, exact=False)
            full = min(full, plain, key=stored_bytes)
    return full


def _truncations(
    full: Cascade, bases: Sequence[Array | None], cells: _Comparison, dtype: DTypeLike
) -> Iterator[tuple[Cascade, Difference]]:
    """Yield the smallest truncations within the tolerance that are stored in a type.

    Which axes are worth truncating depends on how much may be left out, which is known better once
    a truncation has been found: then others may be.
    """
    path = _turn(full, bases).path(cells.tolerance)
    left_out, tried = cells.tolerance / _PEAK, {(True,) * full.ndim}
    while True:
        ranks = [ranks for ranks, rms in path if rms <= left_out][-1]
        chosen = _choose_axes(full, bases, ranks)
        kept = tuple(basis is None for basis in chosen)
        if kept in tried:
            return
        tried.add(kept)
        search = _Search(_turn(full, chosen), cells, dtype)
        found = search.run()
        if found is None:
            return
        ranks, difference = found
        dropped = search.layout.dropped(ranks)
        yield replace(search.truncate(ranks), dropped=dropped), difference
        left_out = difference.rms


def stored_bytes(cascade: Cascade) -> int:
    """Return the size of the core and the frames of a cascade."""
    frames = (frame.nbytes for frame in cascade.frames if frame is not None)
    return cascade.core.nbytes + sum(frames)


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


# --- truncations ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Layout:
    """The data of a cascade with some axes turned to their principal directions.

    Attributes
    ----------
    turned
        The full cascade with other frames. Along a turned axis the directions go from the strongest
        to the weakest, and before them the constant if a mean is taken out later.
    kept
        Per axis, whether it is as the full cascade has it, and not to be truncated.
    """

    turned: Cascade
    kept: tuple[bool, ...]

    @property
    def sizes(self) -> Ranks:
        """Directions per axis, before any is dropped."""
        return self.turned.core.shape

    def truncate(self, ranks: Ranks, dtype: DTypeLike) -> Cascade:
        """Return the cascade with the first directions per axis, stored in a type."""
        turned = self.turned
        core = turned.core[tuple(slice(rank) for rank in ranks)]
        stored: Tensor = np.ascontiguousarray(core, dtype)
        stored.setflags(write=False)
        frames = tuple(
            None if frame is None else np.ascontiguousarray(frame[:, :rank], dtype)
            for frame, rank in zip(turned.frames, ranks, strict=True)
        )
        return replace(turned, core=stored, frames=frames)

    def dropped(self, ranks: Ranks) -> float:
        """Return the share of the energy that a truncation leaves out."""
        core = self.turned.core
        return lost_energy(core, core[tuple(slice(rank) for rank in ranks)])

    def path(self, most: float) -> list[tuple[Ranks, float]]:
        """Return ranks that fall one by one, each with the root mean square of what is left out.

        The direction that goes is the one with the least energy per number that need not be stored
        without it. The path ends before more than `most` is left out.
        """
        shape, sizes = self.turned.shape, list(self.sizes)
        centred = self.turned.centred_core()
        scale = float(np.abs(centred).max()) or 1.0
        energy = np.square(centred / scale)
        steps: list[tuple[Ranks, float]] = []
        left_out = 0.0
        while (rms := scale * math.sqrt(left_out / math.prod(shape))) <= most:
            steps.append((tuple(sizes), rms))
            costs = {axis: _last_energy(energy, sizes, axis) for axis in self.shrinkable(sizes)}
            if not costs:
                break
            goes = min(costs, key=lambda axis: costs[axis] / _saved(shape, sizes, axis))
            left_out += costs[goes]
            sizes[goes] -= 1
        return steps

    def shrinkable(self, ranks: Sequence[int]) -> list[int]:
        """Return the axes that can lose a direction, the one that saves most numbers first."""
        axes = [a for a, rank in enumerate(ranks) if rank > 1 and not self.kept[a]]
        return sorted(axes, key=lambda axis: -_saved(self.turned.shape, ranks, axis))


def _saved(shape: Sequence[int], ranks: Sequence[int], axis: int) -> int:
    """Return how many numbers the last direction of an axis takes in its frame and the core."""
    return shape[axis] + math.prod(ranks) // ranks[axis]


def _last_energy(energy: Array, ranks: Sequence[int], axis: int) -> float:
    """Return the energy of the last direction of an axis among those that are left."""
    part = [slice(rank) for rank in ranks]
    part[axis] = slice(ranks[axis] - 1, ranks[axis])
    return float(energy[tuple(part)].sum())


def _choose_axes(
    full: Cascade, bases: Sequence[Array | None], ranks: Ranks
) -> tuple[Array | None, ...]:
    """Return the bases of the axes that are worth truncating to these ranks, None for the others.

    Of all choices it is the one that stores least.
    """

    def count(chosen: Sequence[Array | None]) -> int:
        kept = [basis is None for basis in chosen]
        sizes = [s if k else r for s, r, k in zip(full.core.shape, ranks, kept, strict=True)]
        framed = [
            m * size
            for m, size, frame, k in zip(full.shape, sizes, full.frames, kept, strict=True)
            if frame is not None or not k
        ]
        return math.prod(sizes) + sum(framed)

    return min(product(*[[None] if b is None else [None, b] for b in bases]), key=count)


def _turn(full: Cascade, bases: Sequence[Array | None]) -> _Layout:
    """Return the data of a cascade with the axes that have a basis turned to it."""
    core = apply(full.core, [None if basis is None else basis.T for basis in bases])
    frames = tuple(
        frame if basis is None else basis if frame is None else frame @ basis
        for frame, basis in zip(full.frames, bases, strict=True)
    )
    kept = tuple(basis is None for basis in bases)
    return _Layout(replace(full, core=core, frames=frames, exact=False), kept)


def _principal(full: Cascade) -> list[Array | None]:
    """Return the principal directions of every axis of a core; None for an axis too long."""
    core: Array = np.asarray(full.centred_core(), np.float64)
    bases: list[Array | None] = [None] * core.ndim
    for axis in sorted(range(core.ndim), key=lambda axis: full.core.shape[axis]):
        bases[axis] = basis = _basis(core, axis, _constant(full, axis))
        if basis is not None:
            core = along(core, axis, basis.T)
    return bases


def _constant(full: Cascade, axis: int) -> Array | None:
    """Return the direction of a constant in the core; None where no mean is taken out later."""
    if full.mean == 0:
        return None
    frame = full.frames[axis]
    ones = np.ones(full.shape[axis]) if frame is None else frame.sum(axis=0)
    return np.asarray(ones / np.linalg.norm(ones))


def _basis(core: Array, axis: int, constant: Array | None) -> Array | None:
    """Return an orthonormal basis (size, k) of the fibres along an axis, the strongest first.

    A constant goes before them, and they hold what is left beside it. The singular values come
    from a triangle and not from squares of the data, which would lose what is below 1e-8 of the
    largest. Return None for an axis that is too long.
    """
    size = core.shape[axis]
    if min(size, core.size // size) > _LONG:
        return None
    with one_blas_thread():
        triangle = _triangle(np.moveaxis(core, axis, -1).reshape(-1, size))
        if constant is not None:
            triangle = triangle - np.outer(triangle @ constant, constant)
        _, values, rows = np.linalg.svd(triangle, full_matrices=False)
        strong = rows[: max(1, int(np.count_nonzero(values > _ROUND_OFF * values[0])))].T
        if constant is None:
            return np.ascontiguousarray(strong)
        return np.linalg.qr(np.column_stack([constant, strong])[:, :size])[0]


def _triangle(rows: Array) -> Array:
    """Return R of the QR decomposition of a tall matrix (n, size), a block of rows at a time."""
    size = rows.shape[1]
    triangle = np.empty((0, size))
    for start in range(0, len(rows), 4 * size):
        block = np.concatenate([triangle, rows[start : start + 4 * size]])
        triangle = np.asarray(np.linalg.qr(block, mode="r"))
    return triangle


# --- differences of answers ----------------------------------------------------------------------


@dataclass(eq=False)
class _Comparison:
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


# --- search --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Search:
    """The search for the smallest truncation of a layout within the tolerance, stored in a type.

    Cheap tests at few cells tell where to look, and what is found there is measured at all cells.
    If it fails, its worst cells are tested from then on.
    """

    layout: _Layout
    cells: _Comparison
    dtype: DTypeLike
    measured: dict[Ranks, Difference | None] = field(default_factory=dict)

    def run(self) -> tuple[Ranks, Difference] | None:
        """Return the smallest truncation that was found, None if there is none."""
        path = [ranks for ranks, _ in self.layout.path(self.cells.tolerance)]
        guess = _last(lambda at: self._is_likely(path[at]), len(path) - 1)
        place = None if guess is None else _last(lambda at: self._holds(path[at]), guess)
        return None if place is None else self._shave(path[place])

    def _shave(self, ranks: Ranks) -> tuple[Ranks, Difference]:
        """Drop directions until one less along any axis is not within the tolerance."""
        step = 1
        while True:
            fewer = next(filter(self._holds, self._fewer(ranks, step)), None)
            if fewer is not None:
                ranks, step = fewer, 2 * step
            elif step > 1:
                step = 1
            else:
                break
        difference = self.measured[ranks]
        assert difference is not None  # these ranks hold
        return ranks, difference

    def _fewer(self, ranks: Ranks, step: int) -> Iterator[Ranks]:
        """Yield ranks with some directions less along one axis, those that save most first."""
        for axis in self.layout.shrinkable(ranks):
            yield (*ranks[:axis], max(1, ranks[axis] - step), *ranks[axis + 1 :])

    def _is_likely(self, ranks: Ranks) -> bool:
        """Return whether a truncation is within the tolerance, as far as cheap tests can tell."""
        if ranks in self.measured:
            return self.measured[ranks] is not None
        return self.cells.is_likely(self.truncate(ranks))

    def _holds(self, ranks: Ranks) -> bool:
        """Return whether a truncation is within the tolerance at all cells."""
        if ranks not in self.measured and self._is_likely(ranks):
            self.measured[ranks] = self.cells.measure(self.truncate(ranks))
        return self.measured.get(ranks) is not None

    def truncate(self, ranks: Ranks) -> Cascade:
        """Return a truncation."""
        return self.layout.truncate(ranks, self.dtype)


def _last(test: Callable[[int], bool], guess: int) -> int | None:
    """Return the last place from 0 to a guess that passes a test, None if 0 does not.

    Places pass up to some place and fail from there on.
    """
    low, high, step = guess, guess + 1, 1
    while not test(low):
        if low == 0:
            return None
        low, high, step = max(0, low - step), low, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if test(middle) else (low, middle)
    return low
