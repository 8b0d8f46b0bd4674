"""Grids with missing cells under a joint ridge: one kernel model through the observed cells only.

With M the mask of observed cells and V_l, w_l the spectra of the levels, the field f = V g that
answers (V = the product of the V_l, w = the products of the w_l) solves

    (V' M V + lambda / w) g = V' M y,

kernel ridge regression over the observed cells. Missing cells filled with f make a complete grid
whose ordinary joint-ridge solution has no weight on the filled cells, so it is the same model: what
is returned is that completed grid, and :func:`dkrls_cli.cascade.fit` does the rest.

How it is solved
----------------
By conjugate gradients. In g every direction of the data counts alike however small its w, and
w / (p w + lambda), p the observed share, is a preconditioner that deals with scattered cells and
with small holes. A mask that stays (land, dead sensors) is another matter: every smooth direction
that fits into it is as good as unobserved. There the mask is taken for a product s(x) r(t) of what
is observed along the other axes and along one, for which the system has an eigenbasis: that of
sqrt(w) V' s V sqrt(w), for the smoothest directions, times the same of the one axis.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.kernels import Array, Kernel, gram
from dkrls_cli.spectral import ROUND_OFF, Spectrum, decompose, one_blas_thread
from dkrls_cli.tensors import Indices, apply

Mask = NDArray[np.bool_]

_SLAB = 2**15
"""Cells that are worked on at once: they stay in the cache."""

_NEGLIGIBLE = 1e-11
"""Directions with w below this share of the ridge add less than it to any answer."""

_LASTS, _NEVER = 0.15, 0.01
"""A mask lasts: share of its variance that is between fibres, share of fibres never observed."""

SMOOTHEST = 1200
"""Directions across a lasting mask that are solved for exactly: they factorise in a moment."""


@dataclass(frozen=True, eq=False)
class Completed:
    """A grid without missing cells, and how well they are solved for.

    Attributes
    ----------
    values
        The data, missing cells filled with what the model answers there.
    iterations
        Steps of conjugate gradients.
    residual
        What is left of the equations, relative to the data: the model of the completed grid
        answers at the filled cells what they are filled with, to within this share.
    converged
        Whether the residual has come down to the tolerance.
    """

    values: Array
    iterations: int
    residual: float
    converged: bool


def complete(
    values: Array,
    coordinates: Sequence[Array],
    kernels: Sequence[Kernel],
    ridge: float,
    mean: float = 0.0,
    *,
    tolerance: float = 1e-9,
    limit: int = 500,
    start: Array | None = None,
) -> Completed:
    """Fill the missing cells (NaN) with the joint-ridge model of the observed ones.

    Parameters
    ----------
    values
        The data, one axis per level, NaN where it is missing.
    coordinates, kernels
        One per axis.
    ridge
        The joint ridge.
    mean
        Level to which the answers fall back far from data.
    tolerance, limit
        Where the solve stops: its relative residual, its iterations.
    start
        The same grid completed with similar settings.

    Examples
    --------
    >>> x = np.linspace(0.0, 6.0, 25)
    >>> values = np.sin(x)
    >>> values[[3, 11, 12]] = np.nan
    >>> completed = complete(values, [x], [Kernel("gaussian", 1.5)], ridge=1e-10)
    >>> bool(np.abs(completed.values - np.sin(x)).max() < 1e-6)
    True
    """
    if not (math.isfinite(ridge) and ridge >= 0):
        raise SettingError(f"Invalid joint ridge {ridge}. It must be finite, 0 or above.")
    spectra = [decompose(gram(k, c, c)) for k, c in zip(kernels, coordinates, strict=True)]
    return complete_in(spectra, values, ridge, mean, tolerance=tolerance, limit=limit, start=start)


def complete_in(
    spectra: Sequence[Spectrum],
    values: Array,
    ridge: float,
    mean: float,
    *,
    tolerance: float,
    limit: int,
    start: Array | None = None,
    smoothest: int = SMOOTHEST,
) -> Completed:
    """As :func:`complete`, the Gram matrices of the levels being decomposed already."""
    observed = np.isfinite(values)
    if not observed.any():
        raise InputError(f"All {values.size} values are missing. Expected one at least.")
    if observed.all():
        return Completed(values.copy(), 0, 0.0, converged=True)
    with one_blas_thread():
        system = _System(_useful(spectra, ridge), observed, ridge)
        lasting = _lasting(system, smoothest)
        left = system.projected(values, mean)
        g = np.zeros(left.shape) if start is None else system.smoothed(start, mean)
        iterations, residual = _descend(system, lasting, g, left, tolerance, limit)
        del left
        filled = apply(g, system.bases)
    filled += mean
    np.copyto(filled, values, where=observed)
    return Completed(filled, iterations, residual, residual <= tolerance)


def _descend(
    system: _System,
    lasting: _Lasting | None,
    g: Array,
    left: Array,
    tolerance: float,
    limit: int,
) -> tuple[int, float]:
    """Conjugate gradients on g, from where it is; the steps taken and the relative residual.

    `left` is the right-hand side, and becomes what is left of it.
    """
    whole = float(np.linalg.norm(left))
    if whole == 0:
        g[...] = 0.0
        return 0, 0.0
    if g.any():
        system.step(left, -1.0, system.normal(g))
    residual, energy, iterations = float(np.linalg.norm(left)) / whole, 1.0, 0
    direction = np.zeros(left.shape)
    while residual > tolerance and iterations < limit:
        downhill = _preconditioned(system, lasting, left)
        before, energy = energy, float(np.vdot(left, downhill))
        direction *= energy / before
        direction += downhill
        del downhill
        product = system.normal(direction)
        pace = energy / system.inner(direction, product)
        system.step(g, pace, direction)
        system.step(left, -pace, product)
        del product
        residual = float(np.linalg.norm(left)) / whole
        iterations += 1
    return iterations, residual


@dataclass(frozen=True, eq=False)
class _System:
    """V' M V + lambda / w, applied without ever being formed."""

    spectra: tuple[Spectrum, ...]
    observed: Mask
    ridge: float

    @property
    def bases(self) -> list[Array]:
        """V_l (m_l, r_l) of every axis."""
        return [spectrum.vectors for spectrum in self.spectra]

    @property
    def ranks(self) -> tuple[int, ...]:
        """The shape of g."""
        return tuple(spectrum.rank for spectrum in self.spectra)

    @cached_property
    def share(self) -> float:
        """Share of cells that are observed."""
        return float(self.observed.mean())

    @cached_property
    def _others(self) -> Array:
        """Products of the eigenvalues of all axes but the first."""
        return reduce(np.multiply.outer, [s.values for s in self.spectra[1:]], np.array(1.0))

    def slabs(self) -> Iterator[slice]:
        """Parts of the first axis of g that are small enough to stay in the cache."""
        rows = max(1, _SLAB // math.prod(self.observed.shape[1:]))
        for start in range(0, self.ranks[0], rows):
            yield slice(start, start + rows)

    def penalty(self, part: slice) -> Array:
        """The ridge over w, on a slab of g."""
        return np.asarray(
            self.ridge / np.multiply.outer(self.spectra[0].values[part], self._others)
        )

    def step(self, tensor: Array, pace: float, direction: Array) -> None:
        """Move a tensor of the shape of g along a direction, in place."""
        for part in self.slabs():
            tensor[part] += pace * direction[part]

    def inner(self, one: Array, other: Array) -> float:
        """Inner product of two tensors of the shape of g, which may be views."""
        return sum(float(np.vdot(one[part], other[part])) for part in self.slabs())

    def projected(self, values: Array, mean: float) -> Array:
        """V' M (y - mean)."""
        seen = np.where(self.observed, values, mean)
        seen -= mean
        return apply(seen, [basis.T for basis in self.bases])

    def smoothed(self, completed: Array, mean: float) -> Array:
        """The g of a completed grid: V' (y - mean) w / (w + lambda)."""
        g = apply(completed - mean, [basis.T for basis in self.bases])
        for part in self.slabs():
            g[part] /= 1.0 + self.penalty(part)
        return g

    def normal(self, g: Array) -> Array:
        """The system applied to g, in one array of the size of the grid; a view of it."""
        first, *others = self.bases
        cells = np.empty((self.ranks[0], *self.observed.shape[1:]))
        for part in self.slabs():
            cells[part] = apply(g[part], [None, *others])
        fibres, seen = cells.reshape(self.ranks[0], -1), self.observed.reshape(len(first), -1)
        width = max(1, _SLAB // len(first))
        for start in range(0, fibres.shape[1], width):
            columns = slice(start, start + width)
            field = first @ fibres[:, columns]
            field *= seen[:, columns]
            fibres[:, columns] = first.T @ field
        product = cells[tuple(slice(0, rank) for rank in self.ranks)]
        for part in self.slabs():
            back = apply(cells[part], [None, *(basis.T for basis in others)])
            product[part] = back + self.penalty(part) * g[part]
        return product


def _useful(spectra: Sequence[Spectrum], ridge: float) -> tuple[Spectrum, ...]:
    """Of every level the directions that are above round-off, and count beside the ridge."""
    largest = math.prod(spectrum.values[0] for spectrum in spectra)
    kept = []
    for spectrum in spectra:
        others = largest / spectrum.values[0]
        solvable = spectrum.solvable(ridge / others)
        useful = solvable.values * others > _NEGLIGIBLE * ridge
        rank = max(1, int(np.count_nonzero(useful)))
        kept.append(
            Spectrum(np.ascontiguousarray(solvable.vectors[:, :rank]), solvable.values[:rank])
        )
    return tuple(kept)


def _preconditioned(system: _System, lasting: _Lasting | None, left: Array) -> Array:
    """The residual, divided by what the system is nearly."""
    result = np.empty(left.shape)
    for part in system.slabs():
        np.divide(left[part], system.penalty(part) + system.share, out=result[part])
    if lasting is not None:
        result[lasting.box] = lasting.solved(left[lasting.box])
    return result


@dataclass(frozen=True, eq=False)
class _Lasting:
    """The inverse of the system for a mask s(x) r(t), on the smoothest directions across x.

    Attributes
    ----------
    axis
        That of t.
    box
        The directions of g it is made for.
    across, along
        sqrt(w) U of the axes of x together and of t.
    inverse
        1 / (mu nu + lambda), mu and nu the eigenvalues that belong to U.
    """

    axis: int
    box: tuple[slice, ...]
    across: Array
    along: Array
    inverse: Array

    def solved(self, left: Array) -> Array:
        """The inverse applied to the part of a residual that lies in the box."""
        turned = np.moveaxis(left, self.axis, -1)
        modes = self.across.T @ turned.reshape(len(self.across), -1) @ self.along
        modes *= self.inverse
        back = self.across @ modes @ self.along.T
        return np.moveaxis(back.reshape(turned.shape), -1, self.axis)


def _lasting(system: _System, smoothest: int) -> _Lasting | None:
    """A preconditioner for a mask that lasts along an axis, if there is one that does."""
    axis = lasting_axis(system.observed)
    largest = math.prod(spectrum.values[0] for spectrum in system.spectra)
    if axis is None or system.ridge < ROUND_OFF * largest:  # its eigenbasis would be round-off
        return None
    others = [spectrum for place, spectrum in enumerate(system.spectra) if place != axis]
    one = system.spectra[axis]
    ranks = _smoothest([s.values for s in others], smoothest, system.ridge / one.values[0])
    places = [slice(0, rank) for rank in ranks]
    density = system.observed.mean(axis=axis)
    shares = np.moveaxis(system.observed, axis, 0).reshape(len(one.vectors), -1).mean(axis=1)
    across, mu = _modes(
        density,
        [s.vectors[:, :r] for s, r in zip(others, ranks, strict=True)],
        [s.values[:r] for s, r in zip(others, ranks, strict=True)],
    )
    along, nu = _modes(shares / system.share, [one.vectors], [one.values])
    inverse = 1.0 / (np.multiply.outer(mu, nu) + system.ridge)
    return _Lasting(axis, (*places[:axis], slice(None), *places[axis:]), across, along, inverse)


def _modes(density: Array, bases: Sequence[Array], values: Sequence[Array]) -> tuple[Array, Array]:
    """sqrt(w) U and mu, of sqrt(w) V' s V sqrt(w) = U diag(mu) U'."""
    pairs = [(v[:, :, None] * v[:, None, :]).reshape(len(v), -1).T for v in bases]
    ranks = [basis.shape[1] for basis in bases]
    count = math.prod(ranks)
    both = apply(density, pairs).reshape([rank for rank in ranks for _ in "ab"])
    system = np.moveaxis(both, range(1, both.ndim, 2), range(len(ranks), both.ndim))
    root = np.sqrt(reduce(np.multiply.outer, values).reshape(count))
    mu, u = np.linalg.eigh(root[:, None] * system.reshape(count, count) * root)
    return root[:, None] * u, np.maximum(mu, 0.0)


def _smoothest(values: Sequence[Array], most: int, least: float) -> list[int]:
    """How many directions of each axis make the box of the largest products, so many at most.

    Products below a hundredth of `least` are no use.
    """
    ranks = [1] * len(values)
    largest = math.prod(w[0] for w in values)
    while True:
        sizes = [w[k] / w[0] if k < w.size else 0.0 for w, k in zip(values, ranks, strict=True)]
        room = [math.prod(ranks) // k * (k + 1) <= most for k in ranks]
        open_axes = [a for a, s in enumerate(sizes) if room[a] and s * largest > 0.01 * least]
        if not open_axes:
            return ranks
        ranks[max(open_axes, key=lambda a: sizes[a])] += 1


def lasting_axis(observed: Mask) -> int | None:
    """The axis along which the mask lasts most, if it does along any.

    It does where some cells are missing all along it, or where the observed share of its fibres
    varies more than that of cells missing at random.
    """
    share = float(observed.mean())
    spread = []
    for axis, size in enumerate(observed.shape):
        density = observed.mean(axis=axis)
        by_chance = 1.0 / size
        lasts = (float(density.var()) / (share * (1 - share)) - by_chance) / (1 - by_chance + 1e-9)
        never = float(np.mean(density == 0))
        spread.append(lasts if lasts > _LASTS or never > _NEVER else 0.0)
    best = int(np.argmax(spread))
    return best if observed.ndim > 1 and spread[best] > 0 else None


def empty_slices(observed: Mask) -> tuple[Indices, ...]:
    """Per axis, the places of coordinates without one observed cell."""
    axes = range(observed.ndim)
    return tuple(
        np.flatnonzero(~observed.any(axis=tuple(other for other in axes if other != axis)))
        for axis in axes
    )
