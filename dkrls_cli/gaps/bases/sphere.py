"""A basis on the sphere in which the covariance of a kernel of the distance is diagonal.

The kernel between two places is a function of their chord, whatever way it points. Along longitude
it depends on the difference alone, so waves diagonalise it: for each frequency the covariance is a
matrix between latitudes,

    C_m(latitude, latitude') = sum over differences d of k(chord(latitude, latitude', d)) cos(m d),

and its eigenvectors are the basis along latitude for that frequency, its eigenvalues the variances.
So a field is made from its coefficients by one small product along latitude for each frequency, and
one along longitude for all of them. Poles need no care: near them only the lowest frequencies have
any variance, as all longitudes are near each other there.

Longitudes that go round have the waves of the circle, and the covariance is exact if their steps
are even. A part of the circle has the waves of a shorter period, twice as long as that part; what
the kernel then has of negative variances is left out. Latitudes that lie alike
north and south of the equator have eigenvectors that are even or odd, which halves all matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.cascade.tensors import along
from dkrls_cli.gaps.bases.waves import unroll, waves_of
from dkrls_cli.threads import one_blas_thread

TURN = 360.0
"""Degrees of longitude round the sphere."""

_SYMMETRIC = 1e-6
"""Degrees by which latitudes may differ from their mirror images at the equator."""

_LEAST = 1e-13
"""Least variance of a direction, as a share of the largest: below is round-off."""

_AT_ONCE = 2**21
"""Numbers of a kernel that are computed at a time: 16 MB."""


@dataclass(frozen=True, eq=False)
class Run:
    """The directions along latitude of some neighbouring frequencies, which are alike in number.

    Attributes
    ----------
    even, odd
        The even and the odd directions (frequencies, rows, n) along latitude.
    kinds
        Waves of each frequency: a cosine, or a cosine and a sine.
    """

    even: Array
    odd: Array
    kinds: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of frequencies, of directions along latitude for each, and of waves for each."""
        return len(self.even), self.even.shape[2] + self.odd.shape[2], self.kinds

    @property
    def size(self) -> int:
        """Number of directions on the sphere."""
        return math.prod(self.shape)

    def keep(self, number: int, kept: Mask) -> Run:
        """Return some of the directions (n,) along latitude of one frequency."""
        first, own = self.even.shape[2], slice(number, number + 1)
        even, odd = self.even[own][:, :, kept[:first]], self.odd[own][:, :, kept[first:]]
        return Run(np.ascontiguousarray(even), np.ascontiguousarray(odd), self.kinds)


@dataclass(frozen=True, eq=False)
class SphereBasis:
    """Directions on a grid of latitudes and longitudes, applied without being formed.

    It acts as a matrix (cells, directions) on fibres. Cells are in the order latitude, longitude.
    Directions are in the order of their frequency along longitude; within that, even ones go before
    odd ones; within that, they follow the eigenvectors; and the cosine goes before the sine.

    Attributes
    ----------
    zonal
        The waves along longitude (longitudes, waves), by their frequency.
    runs
        The directions along latitude of all frequencies.
    rows, signs
        The row of every latitude in the runs, and its sign in odd directions.
    """

    zonal: Array
    runs: tuple[Run, ...]
    rows: Indices
    signs: Array
    ndim: ClassVar[int] = 2

    @property
    def sides(self) -> tuple[int, int]:
        """Number of latitudes and of longitudes."""
        return self.rows.size, len(self.zonal)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of cells and of directions."""
        return len(self), sum(run.size for run in self.runs)

    def __len__(self) -> int:
        """Return the number of cells."""
        return math.prod(self.sides)

    @property
    def operations(self) -> float:
        """Operations of a product with one field."""
        sizes = [run.kinds * (run.even.size + run.odd.size) for run in self.runs]
        return 2.0 * sum(sizes, len(self) * self.zonal.shape[1])

    def __getitem__(self, part: slice) -> Array:
        """Return the rows of some cells as a matrix."""
        return self.columns(np.arange(self.shape[1]))[part]

    @property
    def T(self) -> _Transposed:  # noqa: N802 (as numpy has it)
        """The transposed matrix."""
        return _Transposed(self)

    def parts(self) -> Iterator[tuple[Run, slice, slice]]:
        """Yield the runs, with the places of their directions and of their waves among all."""
        start, first = 0, 0
        for run in self.runs:
            waves = len(run.even) * run.kinds
            yield run, slice(start, start + run.size), slice(first, first + waves)
            start, first = start + run.size, first + waves

    @cached_property
    def waves(self) -> Indices:
        """The wave along longitude of every direction."""
        found = []
        for run, _, waves in self.parts():
            own = np.arange(waves.start, waves.stop).reshape(-1, 1, run.kinds)
            found.append(np.broadcast_to(own, run.shape).ravel())
        return np.concatenate(found)

    def meridional(self, places: Indices) -> Array:
        """Return some directions along latitude (latitudes, n), by their places among all."""
        result = np.empty((self.rows.size, places.size))
        for run, own, _ in self.parts():
            here = np.flatnonzero((places >= own.start) & (places < own.stop))
            number, column, _ = np.unravel_index(places[here] - own.start, run.shape)
            first = run.even.shape[2]
            for table, is_odd in ((run.even, False), (run.odd, True)):
                some = np.flatnonzero((column >= first) == is_odd)
                found = table[number[some], :, column[some] - first * is_odd].T[self.rows]
                result[:, here[some]] = found * self.signs[:, None] if is_odd else found
        return result

    def columns(self, places: Indices) -> Array:
        """Return some directions at all cells (cells, n), by their places among all."""
        values = self.meridional(places)[:, None] * self.zonal[:, self.waves[places]]
        return np.asarray(values.reshape(len(self), places.size))

    def keep(self, kept: Mask) -> SphereBasis:
        """Return the basis of some directions; a cosine and its sine are kept together."""
        runs = [
            run.keep(number, own)
            for run, part, _ in self.parts()
            for number, own in enumerate(kept[part].reshape(run.shape)[:, :, 0])
        ]
        return replace(self, runs=tuple(runs))

    def mean_squares(self) -> Array:
        """Return the mean square of every direction over all cells."""
        counts, along_longitude = np.bincount(self.rows), (self.zonal**2).mean(axis=0)
        found = []
        for run, _, own in self.parts():
            sums = [np.einsum("r,frn,frn->fn", counts, t, t) for t in (run.even, run.odd)]
            means = np.concatenate(sums, axis=1) / self.rows.size
            waves = along_longitude[own].reshape(-1, 1, run.kinds)
            found.append((means[:, :, None] * waves).ravel())
        return np.concatenate(found)

    def cell_squares(self) -> Array:
        """Return the sum of the squares of all directions at every cell."""
        total = np.zeros(self.sides)
        for run, _, own in self.parts():
            sums = sum(np.einsum("frn,frn->fr", t, t) for t in (run.even, run.odd))
            each = np.repeat(sums, run.kinds, axis=0)[:, self.rows]
            total += each.T @ (self.zonal[:, own] ** 2).T
        return total.ravel()

    def __matmul__(self, fibres: Array) -> Array:
        """Return the fields (cells, n) of coefficients (directions, n)."""
        count, width = self.rows.size, fibres.shape[1]
        waves = np.empty((count, self.zonal.shape[1], width))
        for run, part, own in self.parts():
            first, (number, each, kinds) = run.even.shape[2], run.shape
            block = fibres[part].reshape(number, each, kinds * width)
            found = np.matmul(run.even, block[:, :first])
            if self.is_mirrored:
                found = found[:, self.rows]
                found += self.signs[:, None] * np.matmul(run.odd, block[:, first:])[:, self.rows]
            turned = np.moveaxis(found.reshape(number, count, kinds, width), 0, 1)
            waves[:, own] = turned.reshape(count, number * kinds, width)
        return along(waves, 1, self.zonal).reshape(len(self), width)

    @property
    def is_mirrored(self) -> bool:
        """Whether latitudes north and south of the equator share their rows."""
        return bool(self.runs[0].even.shape[1] < self.rows.size)


@dataclass(frozen=True, eq=False)
class _Transposed:
    """The transposed matrix (directions, cells) of a basis."""

    of: SphereBasis
    ndim: ClassVar[int] = 2

    def __len__(self) -> int:
        """Return the number of directions."""
        return self.of.shape[1]

    def __getitem__(self, part: slice) -> Array:
        """Return the rows of some directions as a matrix."""
        return self.of.columns(np.arange(len(self))[part]).T

    def __matmul__(self, fibres: Array) -> Array:
        """Return the sums (directions, n) over the cells of fibres (cells, n)."""
        basis, width = self.of, fibres.shape[1]
        waves = along(fibres.reshape(*basis.sides, width), 1, basis.zonal.T)
        same, other = self._by_row(waves) if basis.is_mirrored else (waves, waves[:0])
        result = np.empty((len(self), width))
        for run, part, own in basis.parts():
            number, each, kinds = run.shape
            block, first = result[part].reshape(number, each, kinds * width), run.even.shape[2]
            for table, sums, place in (
                (run.even, same, slice(first)),
                (run.odd, other, slice(first, each)),
            ):
                if table.size:
                    some = sums[:, own].reshape(len(sums), number, kinds * width)
                    block[:, place] = np.matmul(table.swapaxes(1, 2), np.moveaxis(some, 0, 1))
        return result

    def _by_row(self, waves: Array) -> tuple[Array, Array]:
        """Return the sums of latitudes with the same row, without and with their signs."""
        rows, signs = self.of.rows, self.of.signs
        shape = (self.of.runs[0].even.shape[1], *waves.shape[1:])
        same, other = np.zeros(shape), np.zeros(shape)
        for sign in (1.0, -1.0):  # no hemisphere has two latitudes with one row
            half = np.flatnonzero(signs == sign)
            same[rows[half]] += waves[half]
            other[rows[half]] += sign * waves[half]
        return same, other


def sphere_basis(
    latitudes: Array, longitudes: Array, kernel: Callable[[Array], Array]
) -> tuple[SphereBasis, Array]:
    """Return the basis of a kernel on a grid, and the variances of its directions.

    Parameters
    ----------
    latitudes, longitudes
        Of the grid, in degrees.
    kernel
        The kernel as a function of squared chords, in units of the radius, which it may overwrite.
    """
    places, period = unroll(longitudes, TURN)
    waves = waves_of(places, period)
    numbers = np.unique(waves.frequencies, return_inverse=True)[1]
    covariances = _Covariances(latitudes, *_cosines(period, numbers.size), kernel)
    north, south = _mirrored(latitudes)
    with one_blas_thread():
        if north is south:
            even = _Directions.of(covariances.between(north, north), np.ones(north.size))
            odd = _Directions(even.vectors[:, :, :0], even.values[:, :0])
        else:
            even, odd = _even_and_odd(covariances, north, south)
    rows, signs = np.empty(latitudes.size, np.intp), np.ones(latitudes.size)
    rows[north] = rows[south] = np.arange(north.size)
    signs[south[south != north]] = -1.0
    kinds = np.bincount(numbers)
    bounds = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), kinds.size]
    parts = [slice(*ends) for ends in pairwise(bounds)]
    runs = [Run(even.vectors[p], odd.vectors[p], int(kinds[p.start])) for p in parts]
    values = np.concatenate([even.values, odd.values], axis=1)
    flat = np.concatenate([np.repeat(own, n) for own, n in zip(values, kinds, strict=True)])
    least = _LEAST * float(flat.max())
    return SphereBasis(waves.values, tuple(runs), rows, signs), np.maximum(flat, least)


@dataclass(frozen=True, eq=False)
class _Directions:
    """Eigenvectors (frequencies, rows, n) and eigenvalues (frequencies, n) of some covariances."""

    vectors: Array
    values: Array

    @classmethod
    def of(cls, covariances: Array, scales: Array) -> _Directions:
        """Return those of covariances (frequencies, n, n), which are overwritten.

        The rows of the eigenvectors are multiplied by some scales.
        """
        values = np.empty(covariances.shape[:2])
        for number, matrix in enumerate(covariances):
            values[number], vectors = np.linalg.eigh(matrix)
            np.multiply(vectors, scales[:, None], out=matrix)
        return cls(covariances, values)


def _even_and_odd(
    covariances: _Covariances, north: Indices, south: Indices
) -> tuple[_Directions, _Directions]:
    """Return the directions that are even and odd in latitude, in rows of pairs of latitudes.

    The equator, which is its own mirror image, is in no odd one.
    """
    same, other = covariances.between(north, north), covariances.between(north, south)
    same += other
    other *= -2.0
    other += same  # their sum and their difference
    paired = north != south
    weights = np.where(paired, 1.0, math.sqrt(0.5))
    same *= np.multiply.outer(weights, weights)
    even = _Directions.of(same, np.where(paired, math.sqrt(0.5), 1.0))
    scales = np.full(north.size, math.sqrt(0.5))
    if paired.all():
        return even, _Directions.of(other, scales)
    some = _Directions.of(np.ascontiguousarray(other[:, paired][:, :, paired]), scales[paired])
    vectors = np.zeros((len(other), north.size, int(paired.sum())))
    vectors[:, paired] = some.vectors
    return even, _Directions(vectors, some.values)


@dataclass(frozen=True, eq=False)
class _Covariances:
    """The covariances between latitudes of a kernel on the sphere, for every frequency.

    Attributes
    ----------
    latitudes
        In degrees.
    differences, transform
        Differences of longitude, and what takes a kernel there to variances of waves.
    kernel
        A function of squared chords.
    """

    latitudes: Array
    differences: Array
    transform: Array
    kernel: Callable[[Array], Array]

    def between(self, ones: Indices, others: Indices) -> Array:
        """Return the covariances (frequencies, ones, others) of some latitudes with others."""
        one, other = (np.deg2rad(self.latitudes[places]) for places in (ones, others))
        apart = 4.0 * np.sin(np.subtract.outer(one, other) / 2.0) ** 2
        circles = np.multiply.outer(np.cos(one), np.cos(other))
        turns = 4.0 * np.sin(np.deg2rad(self.differences) / 2.0) ** 2
        result = np.empty((self.transform.shape[1], ones.size, others.size))
        step = max(1, _AT_ONCE // (others.size * turns.size))
        for start in range(0, ones.size, step):
            part = slice(start, start + step)
            squares = apart[part, :, None] + circles[part, :, None] * turns
            result[:, part] = np.moveaxis(self.kernel(squares) @ self.transform, -1, 0)
        return result


def sphere_memory(latitudes: Array, longitudes: Array) -> int:
    """Return the bytes of the matrices of a grid whose longitudes go round in even steps."""
    rows = _mirrored(latitudes)[0].size
    kinds = 1 if rows == latitudes.size else 2
    return 8 * kinds * rows**2 * (longitudes.size // 2 + 1)


def _cosines(period: float, number: int) -> tuple[Array, Array]:
    """Return differences of longitude, and the cosine transform (differences, frequencies).

    The transform takes a kernel at the differences to the variances of so many waves, by frequency.
    The differences are those of one period, of which half is enough.
    """
    places = np.arange(number // 2 + 1)
    weights = np.where((places == 0) | (2 * places == number), 1.0, 2.0)
    angles = 2.0 * math.pi / number * np.multiply.outer(places, places)
    return np.asarray(period / number * places, np.float64), weights[:, None] * np.cos(angles)


def _mirrored(latitudes: Array) -> tuple[Indices, Indices]:
    """Return the places of latitudes and of their mirror images; of all alone if some lack one."""
    order = np.argsort(latitudes)
    mirror = order[::-1]
    if np.abs(latitudes[order] + latitudes[mirror]).max() > _SYMMETRIC:
        alone = np.arange(latitudes.size)
        return alone, alone
    half = latitudes.size // 2
    return order[half:], mirror[half:]
