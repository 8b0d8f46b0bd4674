"""Gaussian fields on a grid, in a basis where their covariance is diagonal.

A field is f = V g: V is a product of one basis per axis, and the coefficients g are independent
with prior variances w. Two kinds of fields have this form.

- A product of kernels: V_l and w_l are eigenvectors and eigenvalues of each axis's Gram matrix, and
  w is the product of the w_l.
- A *group* of axes with one distance. A kernel of the distance alone, such as
  exp(-sqrt(dx^2 + dy^2) / sigma), is no product: contours of a product of exponentials are
  diamonds. But in waves every stationary kernel is diagonal, and its variances are its spectral
  density at the wave's frequency (Wiener and Khinchin): for a Matern kernel of smoothness nu in n
  dimensions

      w ~ (2 nu + sum_l (sigma_l omega_l)^2)^-(nu + n/2),

  for a Gaussian exp(-sum_l (sigma_l omega_l)^2 / 2). On a line the waves are the cosines of an
  interval that reaches beyond the data (a *margin*), on a circle its sines and cosines. They are
  functions of the coordinate, so steps need not be even. Cosines reflect the field at the ends of
  their interval; the margin keeps that away from the data.

Groups take products with the kernels of all other axes, as kernels do among each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.spectrum import ROUND_OFF, Spectrum, decompose
from dkrls_cli.cascade.tensors import apply
from dkrls_cli.circle import spacing, wrap

Grid = TypeVar("Grid", bound=NDArray[Any])
"""Values of all cells, or a mask of them."""

_MARGIN, _LEAST_MARGIN = 0.1, 2
"""Margin at each end of a line: a share of its coordinates, and at least this many steps."""

_MOST_WAVES = 2
"""Waves on an axis per coordinate, at most: enough for steps that differ by a factor of two."""

_NEGLIGIBLE = 1e-11
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
    """

    axes: tuple[tuple[int, ...], ...] = ()
    share: float = 0.0
    factor: float = 1.0


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

    def useful(self, ridge: float) -> Field:
        """Drop directions that are round-off, or change no answer at this ridge."""
        bases, kept = list(self.bases), self.variances
        for axis, basis in enumerate(self.bases):
            others = tuple(other for other in range(kept.ndim) if other != axis)
            largest = kept.max(axis=others)
            matters = (largest + ridge > ROUND_OFF * largest.max()) & (
                largest > _NEGLIGIBLE * ridge
            )
            matters[np.argmax(largest)] = True
            if not matters.all():
                bases[axis] = np.ascontiguousarray(basis[:, matters])
                kept = np.compress(matters, kept, axis)
        if kept is self.variances:
            return self
        return Field(tuple(bases), kept, self.grouped)


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


@dataclass(frozen=True, eq=False)
class Waves:
    """Waves along an axis.

    Attributes
    ----------
    values
        Every wave at every coordinate (m, r). Squares of a wave have the mean 1 / r.
    frequencies
        In radians per unit of the coordinate (r,), ascending from 0.
    circle
        Whether they are the waves of a circle.
    """

    values: Array
    frequencies: Array
    circle: bool


def waves_of(coordinates: Array, period: float | None) -> Waves:
    """Return the waves of an axis: on a circle of its period, else on a line with margins.

    The last ones are kept: a search asks for the same waves again and again.
    """
    return _make_waves(coordinates.tobytes(), period)


@lru_cache(maxsize=16)
def _make_waves(coordinates: bytes, period: float | None) -> Waves:
    numbers = np.frombuffer(coordinates)
    return _line_waves(numbers) if period is None else _circle_waves(numbers, period)


def _line_waves(coordinates: Array) -> Waves:
    step, count = spacing(coordinates), coordinates.size
    margin = max(_LEAST_MARGIN, round(_MARGIN * count)) * step
    start = float(coordinates.min()) - margin - step / 2
    length = float(np.ptp(coordinates)) + 2 * margin + step
    number = _wave_number(coordinates, length)
    frequencies = np.arange(float(number)) * (math.pi / length)
    values = np.cos(np.multiply.outer(coordinates - start, frequencies))
    values *= math.sqrt(2.0 / number)
    values[:, 0] = math.sqrt(1.0 / number)
    return Waves(values, frequencies, circle=False)


def _circle_waves(coordinates: Array, period: float) -> Waves:
    number = _wave_number(_unroll(coordinates, period), period)
    turns = np.arange(1, number // 2 + 1)
    places = coordinates - coordinates[0]  # where the shortest wave has a crest, not a node
    angles = np.multiply.outer(places, turns * (2.0 * math.pi / period))
    values = np.empty((coordinates.size, 2 * turns.size + 1))
    values[:, 0] = math.sqrt(0.5)
    values[:, 1::2], values[:, 2::2] = np.cos(angles), np.sin(angles)
    values, frequencies = values[:, :number], np.repeat(turns, 2)[: number - 1].astype(float)
    if number % 2 == 0:  # the shortest wave has a cosine only
        values[:, -1] *= math.sqrt(0.5)
    values = values * math.sqrt(2.0 / number)
    frequencies = np.concatenate([[0.0], frequencies * (2.0 * math.pi / period)])
    return Waves(values, frequencies, circle=True)


def _unroll(coordinates: Array, period: float) -> Array:
    """Return coordinates on a circle as an ascending arc that starts after their widest gap."""
    turn = np.sort(wrap(coordinates, period))
    start = (int(np.argmax(np.diff(turn, append=turn[0] + period))) + 1) % turn.size
    return np.concatenate([turn[start:], turn[:start] + period])


def _wave_number(coordinates: Array, length: float) -> int:
    """Return how many waves tell the coordinates apart: one per step, within a limit."""
    steps = np.diff(np.sort(coordinates))
    shortest = float(steps.min()) if steps.size else length
    extra = length / (float(np.ptp(coordinates)) + spacing(coordinates))
    most = math.ceil(_MOST_WAVES * extra * coordinates.size)
    even = round(length / spacing(coordinates))
    is_even = steps.size and float(steps.max()) < 1.01 * shortest
    wanted = even if is_even else math.ceil(length / max(shortest, length / most))
    return max(2, min(wanted, most))


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
