"""Fill missing cells under a joint ridge: one kernel model through the observed cells only.

With M the mask of observed cells, V the product of the levels' eigenvectors V_l and w the products
of their eigenvalues w_l, the field f = V g of kernel ridge regression over the observed cells
solves

    (V' M V + lambda / w) g = V' M y.

Missing cells filled with f make a complete grid whose ordinary joint-ridge solution has no weight
on the filled cells, so it is the same model. The result is that completed grid, and
:func:`dkrls_cli.cascade.fit.fit_cascade` does the rest.

Solver
------
The system is solved by conjugate gradients. In g, all directions of the data have a similar size
however small their w. The preconditioner w / (p w + lambda), with p the observed share, deals with
scattered cells and with small holes. Masks that stay the same along an axis have one of their own,
see :mod:`dkrls_cli.gaps.preconditioner`. A grid with a long axis is solved for in its missing cells
alone: :mod:`dkrls_cli.gaps.long`.
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
from dkrls_cli.gaps.long import complete_long, find_long_axis
from dkrls_cli.gaps.preconditioner import ProductPreconditioner, build_preconditioner
from dkrls_cli.gaps.refine import refine
from dkrls_cli.threads import one_blas_thread

_SLAB = 2**15
"""Cells of one slab: 256 kB of numbers stay in the cache of a core."""

_LOOK = 10
"""Iterations between two calls of `give_up`, each of which costs about half an iteration."""

_SETTLED = 1e-7
"""Change of a filled cell, as a share of the spread of the data, below which it is settled."""

_NEGLIGIBLE = 1e-11
"""Directions with w below this share of the ridge change no answer by more than this share."""


@dataclass(frozen=True, eq=False)
class Completed:
    """A grid whose missing cells are filled, and how accurately they were solved for.

    Attributes
    ----------
    values
        The data, with missing cells filled by the model's predictions.
    iterations
        Number of conjugate gradient steps.
    residual
        Largest change of a filled cell that is still due, as a share of the spread of the data; of
        an unrefined solve, the norm of its residual divided by that of the right-hand side.
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
    spectra: Sequence[Spectrum | None] | None = None,
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
        Value to which the answers fall back far from data.
    tolerance, limit
        The solve stops at this relative residual, or after this many iterations; its answers are
        then refined for at most as many. With a long axis there is nothing but the refinement.
    start
        The same grid completed with similar settings, to start the solve from.
    spectra
        The full spectrum of each axis, ``decompose(gram(kernel, c, c))``, where it is known
        already; None where it is not. A long axis needs none.

    Returns
    -------
    Completed
        The filled grid, and how accurately it was solved for.

    Raises
    ------
    InputError
        If no cell is observed.
    SettingError
        If the ridge is negative or not finite.

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
        raise SettingError(f"Invalid joint ridge {ridge}. It must be a finite number, 0 or above.")
    known = spectra or [None] * values.ndim
    long = find_long_axis(coordinates, kernels)
    if long is not None:
        return _complete_long(
            values, coordinates, kernels, long, ridge, mean, limit=limit, start=start, spectra=known
        )
    whole = [
        spectrum or decompose(gram(kernel, c, c))
        for spectrum, kernel, c in zip(known, kernels, coordinates, strict=True)
    ]
    done = complete_with_spectra(
        whole, values, ridge, mean, tolerance=tolerance, limit=limit, start=start
    )
    return refine_cells(done, whole, values, ridge, mean, limit=limit)


def _complete_long(
    values: Array,
    coordinates: Sequence[Array],
    kernels: Sequence[Kernel],
    long: int,
    ridge: float,
    mean: float,
    *,
    limit: int,
    start: Array | None,
    spectra: Sequence[Spectrum | None],
) -> Completed:
    """Fill the missing cells of a grid with a long axis: :mod:`dkrls_cli.gaps.long`."""
    observed = np.isfinite(values)
    _refuse_empty(observed)
    if observed.all():
        return Completed(values.copy(), 0, 0.0, converged=True)
    done = complete_long(
        values,
        coordinates,
        kernels,
        long,
        ridge,
        mean,
        tolerance=_SETTLED,
        limit=limit,
        start=start,
        spectra=spectra,
    )
    return Completed(done.values, done.iterations, done.change, done.change <= _SETTLED)


def _refuse_empty(observed: Mask) -> None:
    """Raise InputError if no cell is observed."""
    if not observed.any():
        raise InputError(f"All {observed.size} values are missing. Expected at least one number.")


def refine_cells(
    done: Completed,
    spectra: Sequence[Spectrum],
    values: Array,
    ridge: float,
    mean: float,
    *,
    limit: int,
) -> Completed:
    """Refine the filled cells of a solve until they stop changing: :mod:`dkrls_cli.gaps.refine`.

    The residual of the solve may be small while missing cells are far from their answers. The
    result has converged if no filled cell would change any more.
    """
    observed = np.isfinite(values)
    if observed.all():
        return done
    with one_blas_thread():
        refined = refine(
            spectra, done.values, observed, ridge, mean, tolerance=_SETTLED, limit=limit
        )
    np.copyto(refined.values, values, where=observed)
    iterations = done.iterations + refined.iterations
    return Completed(refined.values, iterations, refined.change, refined.change <= _SETTLED)


def complete_with_spectra(
    spectra: Sequence[Spectrum],
    values: Array,
    ridge: float,
    mean: float,
    *,
    tolerance: float,
    limit: int,
    start: Array | None = None,
    directions: int | None = None,
    give_up: Callable[[Array], bool] | None = None,
) -> Completed:
    """Fill missing cells as :func:`complete` does, from the spectra of the levels alone.

    `directions` is the number of directions in which the preconditioner of a lasting mask is
    exact. `give_up` is called with the answers every ten iterations, and stops the solve by
    returning True.
    """
    observed = np.isfinite(values)
    _refuse_empty(observed)
    if observed.all():
        return Completed(values.copy(), 0, 0.0, converged=True)
    with one_blas_thread():
        system = _System(_useful(spectra, ridge), observed, ridge)
        near = build_preconditioner(system.spectra, observed, ridge, directions)
        left = system.projected(values, mean)
        g = np.zeros(left.shape) if start is None else system.smoothed(start, mean)

        def stop() -> bool:
            return give_up is not None and give_up(system.answers(g, mean))

        iterations, residual = _descend(system, near, g, left, tolerance, limit, stop)
        del left
        filled = system.answers(g, mean)
    np.copyto(filled, values, where=observed)
    return Completed(filled, iterations, residual, residual <= tolerance)


def _descend(
    system: _System,
    near: ProductPreconditioner | None,
    g: Array,
    left: Array,
    tolerance: float,
    limit: int,
    stop: Callable[[], bool],
) -> tuple[int, float]:
    """Solve for g in place by conjugate gradients; return the iterations and relative residual.

    `g` holds the starting point. `left` holds the right-hand side, and is overwritten with the
    residual. Every ten iterations `stop` is asked whether to end.
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
        downhill = _precondition(system, near, left)
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
        if iterations % _LOOK == 0 and stop():
            break
    return iterations, residual


@dataclass(frozen=True, eq=False)
class _System:
    """The matrix V' M V + lambda / w, applied without ever being formed."""

    spectra: tuple[Spectrum, ...]
    observed: Mask
    ridge: float

    @property
    def bases(self) -> list[Array]:
        """The eigenvectors V_l (m_l, r_l) of each axis."""
        return [spectrum.vectors for spectrum in self.spectra]

    @property
    def ranks(self) -> tuple[int, ...]:
        """The shape of g."""
        return tuple(spectrum.rank for spectrum in self.spectra)

    @cached_property
    def share(self) -> float:
        """The share of cells that are observed, p."""
        return float(self.observed.mean())

    @cached_property
    def _others(self) -> Array:
        """The products of the eigenvalues of all axes but the first."""
        return reduce(np.multiply.outer, [s.values for s in self.spectra[1:]], np.array(1.0))

    def slabs(self) -> Iterator[slice]:
        """Yield parts of the first axis of g that are small enough to stay in the cache."""
        rows = max(1, _SLAB // math.prod(self.observed.shape[1:]))
        for start in range(0, self.ranks[0], rows):
            yield slice(start, start + rows)

    def penalty(self, part: slice) -> Array:
        """Return lambda / w on a slab of g."""
        return np.asarray(
            self.ridge / np.multiply.outer(self.spectra[0].values[part], self._others)
        )

    def step(self, tensor: Array, pace: float, direction: Array) -> None:
        """Add `pace` times a direction to a tensor of the shape of g, in place."""
        for part in self.slabs():
            tensor[part] += pace * direction[part]

    def inner(self, one: Array, other: Array) -> float:
        """Return the inner product of two tensors of the shape of g, which may be views."""
        return sum(float(np.vdot(one[part], other[part])) for part in self.slabs())

    def projected(self, values: Array, mean: float) -> Array:
        """Return the right-hand side V' M (y - mean)."""
        seen = np.where(self.observed, values, mean)
        seen -= mean
        return apply(seen, [basis.T for basis in self.bases])

    def smoothed(self, completed: Array, mean: float) -> Array:
        """Return the g of a completed grid, V' (y - mean) w / (w + lambda)."""
        g = apply(completed - mean, [basis.T for basis in self.bases])
        for part in self.slabs():
            g[part] /= 1.0 + self.penalty(part)
        return g

    def answers(self, g: Array, mean: float) -> Array:
        """Return the field V g + mean."""
        field = apply(g, self.bases)
        field += mean
        return field

    def normal(self, g: Array) -> Array:
        """Return (V' M V + lambda / w) g, a view of one working array of the size of the grid."""
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
    """Return, for each level, the directions that are above round-off and matter to the ridge."""
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


def _precondition(system: _System, near: ProductPreconditioner | None, left: Array) -> Array:
    """Return an approximate solution of the system for a residual."""
    result = np.empty(left.shape)
    for part in system.slabs():
        np.divide(left[part], system.penalty(part) + system.share, out=result[part])
    if near is not None:
        near.solve(left, result)
    return result
