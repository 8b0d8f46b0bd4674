"""Gaussian fields on a grid, in a basis where their covariance is diagonal.

A field is f = V g: V is a product of one basis per axis, and the coefficients g are independent
with prior variances w. Three kinds of fields have this form.

- A product of kernels: V_l and w_l are eigenvectors and eigenvalues of each axis's Gram matrix, and
  w is the product of the w_l.
- A *group* of axes with one distance. A kernel of the distance alone, such as
  exp(-sqrt(dx^2 + dy^2) / sigma), is no product: contours of a product of exponentials are
  diamonds. But in waves every stationary kernel is diagonal, and its variances are its spectral
  density at the wave's frequency (Wiener and Khinchin): for a Matern kernel of smoothness nu in n
  dimensions

      w ~ (2 nu + sum_l (sigma_l omega_l)^2)^-(nu + n/2),

  for a Gaussian exp(-sum_l (sigma_l omega_l)^2 / 2). The waves are those of a line or a circle:
  :mod:`dkrls_cli.gaps.bases.waves`.
- Latitude and longitude with the distance on the sphere, which have one basis together:
  :mod:`dkrls_cli.gaps.bases.sphere`. Cells are *folded*: the two are one axis, which goes first.

Groups take products with the kernels of all other axes, as kernels do among each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.cascade.kernels import FAMILIES, Kernel, gram
from dkrls_cli.cascade.spectrum import ROUND_OFF, Spectrum, decompose
from dkrls_cli.cascade.tensors import apply
from dkrls_cli.gaps.bases.sphere import SphereBasis, sphere_basis
from dkrls_cli.gaps.bases.waves import Waves, waves_of

Grid = TypeVar("Grid", bound=NDArray[Any])
"""Values of all cells, or a mask of them."""

NEGLIGIBLE = 1e-11
"""Directions with w below this share of the ridge change no answer by more than this share."""

_SMOOTHNESS = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}
"""nu of the Matern families."""


@dataclass(frozen=True)
class Grouping:
    """Which axes share one distance, and whether the field there has a second length scale.

    Attributes
    ----------
    axes
        Groups of axes; none: the field is a product of kernels.
    share
        Share of a group's variance that lies in its second scale, 0 to 1.
    factor
        Length of the second scale, in units of the first.
    sphere
        Whether the group is latitude and longitude, and the distance that on the sphere.
    """

    axes: tuple[tuple[int, ...], ...] = ()
    share: float = 0.0
    factor: float = 1.0
    sphere: bool = False


NO_GROUPS = Grouping()
"""A product of kernels."""


@dataclass(frozen=True, eq=False)
class Field:
    """A Gaussian field f = V g with independent coefficients.

    Attributes
    ----------
    bases
        V_l (m_l, r_l), one per axis.
    variances
        w, the prior variance of every coefficient (r_0, r_1, ...).
    grouped
        The axes of the grid that belong to a group. Along all others the variances are a factor,
        and V_l are eigenvectors.
    """

    bases: tuple[Array, ...]
    variances: Array
    grouped: frozenset[int] = frozenset()

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the grid."""
        return tuple(len(basis) for basis in self.bases)

    @property
    def operators(self) -> tuple[Array | SphereBasis, ...]:
        """The matrices that V is a product of: one per axis of the coefficients."""
        return self.bases

    @property
    def bases_behind(self) -> tuple[Array, ...]:
        """The matrices of all axes of the coefficients but the first."""
        return self.bases[1:]

    @property
    def operations(self) -> float:
        """Operations of a product with V' M V."""
        return 4.0 * math.prod(self.shape) * sum(self.variances.shape)

    @property
    def variance(self) -> float:
        """Mean variance of a cell."""
        shares = [(basis**2).mean(axis=0) for basis in self.bases]
        return float(apply(self.variances, [share[None] for share in shares]).item())

    def fold(self, grid: Grid) -> Grid:
        """Return a grid with one axis per basis: as it is."""
        return grid

    def unfold(self, cells: Grid) -> Grid:
        """Return the grid that was folded."""
        return cells

    def synthesis(self, coefficients: Array) -> Array:
        """Return V g, folded."""
        return apply(coefficients, self.bases)

    def analysis(self, cells: Array) -> Array:
        """Return V' times a folded grid."""
        return apply(cells, [basis.T for basis in self.bases])

    def mean_share(self, weights: Array) -> float:
        """Return the mean of the diagonal of V' M V, given the weights of folded cells, M."""
        squares = [(basis**2).mean(axis=1) for basis in self.bases]
        return float(apply(weights, [square[None] for square in squares]).item())

    def axis_of(self, axis: int) -> int:
        """Return the axis of the coefficients of an axis of the grid that is in no group."""
        return axis

    def factors(self, places: tuple[Indices, ...]) -> tuple[list[Array], list[Indices]]:
        """Return some directions as products of one matrix per axis of the grid.

        Parameters
        ----------
        places
            Indices of the directions, one vector per axis of the coefficients.

        Returns
        -------
        list
            The matrices (m_l, r_l).
        list
            The column in each of them of every direction.
        """
        return list(self.bases), list(places)

    def draw(self, rng: np.random.Generator) -> Array:
        """Return a random field of this prior, on the grid."""
        numbers = rng.standard_normal(self.variances.shape)
        numbers *= np.sqrt(self.variances)
        return self.unfold(self.synthesis(numbers))

    def useful(self, ridge: float, negligible: float = NEGLIGIBLE) -> Field:
        """Drop directions that are round-off, or change no answer at this ridge.

        `negligible` is the largest w of a direction to drop, as a share of the ridge.
        """
        bases, kept = list(self.bases), self.variances
        for axis, basis in enumerate(self.bases):
            matters = _matters(kept, axis, ridge, negligible)
            if not matters.all():
                bases[axis] = np.ascontiguousarray(basis[:, matters])
                kept = np.compress(matters, kept, axis)
        if kept is self.variances:
            return self
        return Field(tuple(bases), kept, self.grouped)


def _matters(variances: Array, axis: int, ridge: float, negligible: float) -> Mask:
    """Return which directions along an axis are above round-off and change an answer."""
    others = tuple(other for other in range(variances.ndim) if other != axis)
    largest = variances.max(axis=others)
    matters = (largest + ridge > ROUND_OFF * largest.max()) & (largest > negligible * ridge)
    matters[np.argmax(largest)] = True
    return np.asarray(matters)


@dataclass(frozen=True, eq=False)
class SphereField(Field):
    """A field on a sphere, or a product of one with the kernels of other axes.

    Folded, cells have one axis for latitude and longitude together, which goes first, and so have
    the coefficients.

    Attributes
    ----------
    bases
        V_l of the other axes.
    sphere
        V of latitude and longitude together.
    places
        The axes of latitude and longitude in the grid.
    """

    sphere: SphereBasis = field(kw_only=True)
    places: tuple[int, int] = field(kw_only=True)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the grid."""
        sides = [len(basis) for basis in self.bases]
        for place, side in sorted(zip(self.places, self.sphere.sides, strict=True)):
            sides.insert(place, side)
        return tuple(sides)

    @property
    def operators(self) -> tuple[Array | SphereBasis, ...]:
        """The matrices that V is a product of: one per axis of the coefficients."""
        return self.sphere, *self.bases

    @property
    def bases_behind(self) -> tuple[Array, ...]:
        """The matrices of all axes of the coefficients but the first."""
        return self.bases

    @property
    def operations(self) -> float:
        """Operations of a product with V' M V."""
        beside = math.prod(self.variances.shape[1:])
        others = 4.0 * math.prod(self.shape) * sum(self.variances.shape[1:])
        return 2.0 * self.sphere.operations * beside + others

    @property
    def variance(self) -> float:
        """Mean variance of a cell."""
        shares = [self.sphere.mean_squares(), *((b**2).mean(axis=0) for b in self.bases)]
        return float(apply(self.variances, [share[None] for share in shares]).item())

    def fold(self, grid: Grid) -> Grid:
        """Return a grid with latitude and longitude as one axis, which goes first."""
        turned = np.moveaxis(grid, self.places, (0, 1))
        return cast(Grid, turned.reshape(len(self.sphere), *turned.shape[2:]))

    def unfold(self, cells: Grid) -> Grid:
        """Return the grid that was folded."""
        grid = cells.reshape(*self.sphere.sides, *cells.shape[1:])
        return cast(Grid, np.ascontiguousarray(np.moveaxis(grid, (0, 1), self.places)))

    def synthesis(self, coefficients: Array) -> Array:
        """Return V g, folded."""
        return apply(coefficients, self.operators)

    def analysis(self, cells: Array) -> Array:
        """Return V' times a folded grid."""
        return apply(cells, [self.sphere.T, *(basis.T for basis in self.bases)])

    def mean_share(self, weights: Array) -> float:
        """Return the mean of the diagonal of V' M V, given the weights of folded cells, M."""
        own = self.sphere.cell_squares() / self.sphere.shape[1]
        squares = [own, *((basis**2).mean(axis=1) for basis in self.bases)]
        return float(apply(weights, [square[None] for square in squares]).item())

    def axis_of(self, axis: int) -> int:
        """Return the axis of the coefficients of an axis of the grid that is in no group."""
        return 1 + axis - sum(place < axis for place in self.places)

    def factors(self, places: tuple[Indices, ...]) -> tuple[list[Array], list[Indices]]:
        """Return some directions as products of one matrix per axis of the grid."""
        own, *others = places
        bases, columns = list(self.bases), list(others)
        parts = [
            (self.places[0], self.sphere.meridional(own), np.arange(own.size)),
            (self.places[1], self.sphere.zonal, self.sphere.waves[own]),
        ]
        for place, matrix, column in sorted(parts, key=lambda part: part[0]):
            bases.insert(place, matrix)
            columns.insert(place, column)
        return bases, columns

    def useful(self, ridge: float, negligible: float = NEGLIGIBLE) -> Field:
        """Drop directions that are round-off, or change no answer at this ridge.

        `negligible` is the largest w of a direction to drop, as a share of the ridge.
        """
        bases, kept, sphere = list(self.bases), self.variances, self.sphere
        for axis, basis in enumerate(self.bases):
            matters = _matters(kept, 1 + axis, ridge, negligible)
            if not matters.all():
                bases[axis] = np.ascontiguousarray(basis[:, matters])
                kept = np.compress(matters, kept, 1 + axis)
        matters = _matters(kept, 0, ridge, negligible)
        if not matters.all():
            sphere, kept = sphere.keep(matters), kept[matters]
        if kept is self.variances:
            return self
        return replace(self, bases=tuple(bases), variances=kept, sphere=sphere)


def product_field(spectra: Sequence[Spectrum]) -> Field:
    """Return the field whose covariance is the product of the kernels with these spectra."""
    variances = reduce(np.multiply.outer, [spectrum.values for spectrum in spectra])
    return Field(tuple(s.vectors for s in spectra), np.asarray(variances))


def make_field(
    coordinates: Sequence[Array],
    kernels: Sequence[Kernel],
    grouping: Grouping = NO_GROUPS,
    spectra: Sequence[Spectrum | None] | None = None,
) -> Field:
    """Return the field of some kernels, and of a grouping of its axes.

    Parameters
    ----------
    coordinates, kernels
        One per axis. Of a group, the kernels have one family and constant; their sigmas are the
        scale along each axis.
    grouping
        The groups.
    spectra
        The full spectrum of each axis where it is known already; None where it is not.

    Examples
    --------
    >>> axes = [np.arange(60.0), np.arange(80.0)]
    >>> kernels = [Kernel("matern12", 3.0), Kernel("matern12", 3.0)]
    >>> field = make_field(axes, kernels, Grouping(((0, 1),)))
    >>> round(field.variance, 1)
    1.0
    """
    grouped = {axis for group in grouping.axes for axis in group}
    known = spectra or [None] * len(kernels)
    singles = {
        axis: known[axis] or decompose(gram(kernels[axis], c, c))
        for axis, c in enumerate(coordinates)
        if axis not in grouped
    }
    if not grouped:
        return product_field([singles[axis] for axis in range(len(kernels))])
    if grouping.sphere:
        return _sphere_field(coordinates, kernels, grouping, list(singles.values()))
    bases: dict[int, Array] = {axis: found.vectors for axis, found in singles.items()}
    parts: list[tuple[tuple[int, ...], Array]] = [((a,), s.values) for a, s in singles.items()]
    for group in grouping.axes:
        waves = [waves_of(coordinates[axis], kernels[axis].period) for axis in group]
        bases |= {axis: wave.values for axis, wave in zip(group, waves, strict=True)}
        own = [kernels[axis] for axis in group]
        parts.append((group, _densities(waves, own, grouping)))
    order = [axis for axes, _ in parts for axis in axes]
    variances = reduce(np.multiply.outer, [part for _, part in parts])
    variances = np.ascontiguousarray(variances.transpose(np.argsort(order)))
    return Field(tuple(bases[axis] for axis in range(len(kernels))), variances, frozenset(grouped))


def _sphere_field(
    coordinates: Sequence[Array],
    kernels: Sequence[Kernel],
    grouping: Grouping,
    spectra: Sequence[Spectrum],
) -> SphereField:
    """Return the field of a group on the sphere; `spectra` are those of all other axes."""
    (group,) = grouping.axes
    latitude, longitude = sorted(group, key=lambda axis: kernels[axis].period is not None)
    sphere, own = _make_sphere(
        coordinates[latitude].tobytes(),
        coordinates[longitude].tobytes(),
        replace(kernels[latitude], sigma=sphere_sigma([kernels[axis] for axis in group])),
        grouping.share,
        grouping.factor,
    )
    parts = [own, *(spectrum.values for spectrum in spectra)]
    return SphereField(
        tuple(spectrum.vectors for spectrum in spectra),
        np.asarray(reduce(np.multiply.outer, parts)),
        frozenset(group),
        sphere=sphere,
        places=(latitude, longitude),
    )


def sphere_sigma(kernels: Sequence[Kernel]) -> float:
    """Return the one sigma of a group on the sphere, in degrees: the geometric mean of all."""
    sigmas = {kernel.sigma for kernel in kernels}
    return sigmas.pop() if len(sigmas) == 1 else math.sqrt(math.prod(sigmas))


@lru_cache(maxsize=4)
def _make_sphere(
    latitudes: bytes, longitudes: bytes, kernel: Kernel, share: float, factor: float
) -> tuple[SphereBasis, Array]:
    """Return the basis of the sphere and its variances; those of the last settings are kept."""
    sigma = math.radians(kernel.sigma)

    def covariance(squares: Array) -> Array:
        chords = np.sqrt(squares, out=squares)
        chords /= sigma
        longer = chords * (1.0 / factor) if share else chords[:0]
        result = FAMILIES[kernel.family](chords)
        if share:
            result = (1.0 - share) * result + share * FAMILIES[kernel.family](longer)
        return result + kernel.constant

    return sphere_basis(np.frombuffer(latitudes), np.frombuffer(longitudes), covariance)


def _densities(waves: Sequence[Waves], kernels: Sequence[Kernel], grouping: Grouping) -> Array:
    """Return the variances of the waves of a group (r_0, r_1, ...): its spectral density.

    The variance of a cell far from the ends is 1, and that of the constant besides.
    """
    scaled = [(k.sigma * wave.frequencies) ** 2 for k, wave in zip(kernels, waves, strict=True)]
    squares = np.asarray(reduce(np.add.outer, scaled))
    ends = [1.0 if wave.circle else 0.5 for wave in waves]
    result = (1.0 - grouping.share) * _density(squares, kernels[0].family, ends)
    if grouping.share:
        longer = squares * grouping.factor**2
        result += grouping.share * _density(longer, kernels[0].family, ends)
    result[(0,) * len(kernels)] += kernels[0].constant * squares.size
    return result


def _density(squares: Array, family: str, ends: Sequence[float]) -> Array:
    """Return a spectral density at (sigma omega)^2, scaled to a variance of 1.

    The variance is the integral of the density by the trapezoidal rule, in which the frequency 0 of
    a line counts half (`ends`): so much of its wave is the reflection at the ends.
    """
    if family == "gaussian":
        density = np.exp(-0.5 * squares)
    else:
        nu = _SMOOTHNESS[family]
        density = (2.0 * nu + squares) ** -(nu + squares.ndim / 2)
    sizes = zip(ends, squares.shape, strict=True)
    weights = [np.concatenate([[end], np.ones(size - 1)]) for end, size in sizes]
    total = float(apply(density, [weight[None] for weight in weights]).item())
    return np.asarray(density * (squares.size / total))
