"""Grids with missing cells under a joint ridge: one kernel model through the observed cells only.

With M the mask of observed cells and V_l, w_l the spectra of the levels, the field f = V g that
answers (V = the product of the V_l, w = the products of the w_l) solves

    (V' M V + lambda / w) g = V' M y,

kernel ridge regression over the observed cells. Missing cells filled with f make a complete grid
whose ordinary joint-ridge solution has no weight on the filled cells, so it is the same model: what
is returned is that completed grid, and :func:`dkrls_cli.cascade.fit.fit_cascade` does the rest.

How it is solved
----------------
By conjugate gradients. In g every direction of the data counts alike however small its w, and
w / (p w + lambda), p the observed share, is a preconditioner that deals with scattered cells and
with small holes; for masks that stay there is another, see :mod:`dkrls_cli.gaps.preconditioner`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.spectrum import Spectrum, decompose
from dkrls_cli.cascade.tensors import apply
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.gaps.preconditioner import Lasting, lasting
from dkrls_cli.threads import one_blas_thread

_SLAB = 2**15
"""Cells that are worked on at once: they stay in the cache."""

_LOOK = 10
"""Iterations after which a solve that is watched is looked at."""

_NEGLIGIBLE = 1e-11
"""Directions with w below this share of the ridge add less than it to any answer."""


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
    spectra: Sequence[Spectrum] | None = None,
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
    spectra
        Decomposed Gram matrices of the levels, where the caller has them already.

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
    if spectra is None:
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
    smoothest: int | None = None,
    enough: Callable[[Array], bool] | None = None,
) -> Completed:
    """As :func:`complete`, the Gram matrices of the levels being decomposed already.

    `smoothest` is the number of directions that a lasting mask is solved for exactly. A solve may
    be watched: `enough` is shown the answers every ten iterations, and ends it with True.
    """
    observed = np.isfinite(values)
    if not observed.any():
        raise InputError(f"All {values.size} values are missing. Expected one at least.")
    if observed.all():
        return Completed(values.copy(), 0, 0.0, converged=True)
    with one_blas_thread():
        system = _System(_useful(spectra, ridge), observed, ridge)
        mask = lasting(system.spectra, observed, ridge, smoothest)
        left = system.projected(values, mean)
        g = np.zeros(left.shape) if start is None else system.smoothed(start, mean)

        def ends() -> bool:
            return enough is not None and enough(system.answers(g, mean))

        iterations, residual = _descend(system, mask, g, left, tolerance, limit, ends)
        del left
        filled = system.answers(g, mean)
    np.copyto(filled, values, where=observed)
    return Completed(filled, iterations, residual, residual <= tolerance)


def _descend(
    system: _System,
    mask: Lasting | None,
    g: Array,
    left: Array,
    tolerance: float,
    limit: int,
    ends: Callable[[], bool],
) -> tuple[int, float]:
    """Conjugate gradients on g, from where it is; the steps taken and the relative residual.

    `left` is the right-hand side, and becomes what is left of it. Now and then `ends` is asked
    whether that is enough.
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
        downhill = _preconditioned(system, mask, left)
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
        if iterations % _LOOK == 0 and ends():
            break
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

    def answers(self, g: Array, mean: float) -> Array:
        """The field V g + mean."""
        field = apply(g, self.bases)
        field += mean
        return field

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


def _preconditioned(system: _System, mask: Lasting | None, left: Array) -> Array:
    """The residual, divided by what the system is nearly."""
    result = np.empty(left.shape)
    for part in system.slabs():
        np.divide(left[part], system.penalty(part) + system.share, out=result[part])
    if mask is not None:
        mask.solve(left, result)
    return result
