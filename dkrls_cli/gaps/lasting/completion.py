"""Slices with the same missing cells, completed under a joint ridge, each on its own.

Every slice is a grid of its own whose missing cells m solve (C^-1)_mm x_m = -(C^-1)_mo y_o, with
C = K + lambda: the system of :mod:`dkrls_cli.gaps.refine`, with the preconditioner of
:mod:`dkrls_cli.gaps.lasting.sequential`, many slices at a time. The coefficients of a completed
slice, V' C^-1 y, then answer anywhere as :class:`dkrls_cli.cascade.solvers.JointSolver` does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.cascade.functionals.functional import Functional
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.spectrum import ROUND_OFF, Spectrum, decompose
from dkrls_cli.cascade.tensors import apply
from dkrls_cli.circle import spacing, wrap
from dkrls_cli.errors import InputError
from dkrls_cli.gaps.lasting.sequential import AT_ONCE, NEIGHBOURS, SequentialSolver, Side
from dkrls_cli.gaps.refine import Refined

LIMIT = 300
"""Iterations at most: 10 to 30 are usual, more of Gaussians with a ridge below 1e-4."""

_CELL = 8 * 10
"""Bytes in use for each cell of slices that are completed: ten arrays of float64."""

_NEIGHBOUR = 45
"""Bytes in use for each neighbour of a missing cell: weights, places, and a sparse factor twice."""


def completion_bytes(missing: Mask, cells: int) -> int:
    """Return the bytes in use while slices of so many cells, with missing ones, are completed."""
    square = sum(3 * 8 * size**2 for size in missing.shape)
    return int(_CELL * cells + mask_bytes(int(np.count_nonzero(missing))) + square)


def mask_bytes(missing: int) -> int:
    """Return the bytes in use for the preconditioner of so many missing cells.

    They are those of its sparse factor, or before that of predicting some cells at a time.
    """
    solved = 3 * min(NEIGHBOURS**2 * missing, AT_ONCE)
    return max(_NEIGHBOUR * NEIGHBOURS * missing, 8 * (2 * NEIGHBOURS * missing + solved))


@dataclass(frozen=True, eq=False)
class MaskedSlices:
    """Completes slices with the same missing cells.

    Attributes
    ----------
    kernels, coordinates
        One per axis of the slices.
    missing
        True where a cell is missing.
    spectra
        Full spectra of the kernels on the coordinates.
    inverse
        1 / (product of the eigenvalues + lambda), in the shape of a slice.
    near
        The preconditioner, None if no cell is missing.
    ridge
        lambda.
    """

    kernels: tuple[Kernel, ...]
    coordinates: tuple[Array, ...]
    missing: Mask
    spectra: tuple[Spectrum, ...]
    inverse: Array
    near: SequentialSolver | None
    ridge: float

    @classmethod
    def build(
        cls,
        missing: Mask,
        coordinates: Sequence[Array],
        kernels: Sequence[Kernel],
        ridge: float,
    ) -> MaskedSlices:
        """Prepare what all slices share.

        Parameters
        ----------
        missing
            True where a cell of the slices is missing.
        coordinates, kernels
            One per axis of the slices.
        ridge
            The joint ridge.

        Raises
        ------
        InputError
            If all cells are missing.

        Examples
        --------
        >>> x = np.linspace(0.0, 6.0, 25)
        >>> gone = (x > 2) & (x < 2.6)
        >>> slices = MaskedSlices.build(gone, [x], [Kernel("gaussian", 1.5)], 1e-10)
        >>> values = np.array([np.sin(x), np.cos(x)])
        >>> done = slices.complete(np.where(gone, np.nan, values), 0.0, tolerance=1e-9)
        >>> bool(np.abs(done.values - values).max() < 1e-5)
        True
        """
        if missing.all():
            raise InputError(f"All {missing.size} cells are missing at all slices.")
        grams = [gram(kernel, c, c) for kernel, c in zip(kernels, coordinates, strict=True)]
        spectra = tuple(decompose(own) for own in grams)
        values = np.asarray(reduce(np.multiply.outer, [own.values for own in spectra])) + ridge
        np.maximum(values, ROUND_OFF * float(values.max()), out=values)
        near = None
        if missing.any():
            near = _make_solver(missing, coordinates, kernels, grams, ridge)
        return cls(
            tuple(kernels),
            tuple(coordinates),
            missing,
            spectra,
            np.reciprocal(values, out=values),
            near,
            ridge,
        )

    def with_mask(self, missing: Mask, neighbours: int = NEIGHBOURS) -> MaskedSlices:
        """Return what completes slices with other missing cells, of which not all are.

        `neighbours` are those from which the preconditioner predicts a cell: with fewer it is made
        in less time, and takes more iterations.
        """
        near = None
        if missing.any():
            pairs = zip(self.kernels, self.coordinates, strict=True)
            grams = [gram(kernel, c, c) for kernel, c in pairs]
            near = _make_solver(
                missing, self.coordinates, self.kernels, grams, self.ridge, neighbours
            )
        return replace(self, missing=missing, near=near)

    def complete(
        self, values: Array, mean: float, *, tolerance: float, limit: int = LIMIT
    ) -> Refined:
        """Fill the missing cells of slices.

        Parameters
        ----------
        values
            The slices (slices, ...), which are overwritten; what missing cells hold is not looked
            at.
        mean
            Value to which answers fall back far from data.
        tolerance, limit
            The solve stops when no cell changes by more than this share of the largest deviation
            from the mean, or after this many iterations.

        Returns
        -------
        Refined
            The slices, the iterations, and the largest change that is still due.
        """
        if self.near is None:
            return Refined(values, 0, 0.0)
        seen = values[:, ~self.missing] - mean
        spread = float(np.abs(seen).max()) or 1.0
        turn = _components(seen)
        slices = np.zeros(values.shape)
        slices[:, ~self.missing] = turn.T @ seen
        unit = spread / math.sqrt(len(values))  # so that errors of all components add up to less
        cells, iterations, change = self._solve(slices, tolerance * unit, limit)
        values[:, self.missing] = mean + turn @ cells
        return Refined(values, iterations, change / unit)

    def _solve(self, slices: Array, due: float, limit: int) -> tuple[Array, int, float]:
        """Return the missing cells (slices, cells), the iterations, and the change still due.

        Missing cells of the slices are 0. Each slice has its own conjugate gradients, and leaves
        when its cells have stopped changing.
        """
        assert self.near is not None
        residual = -self.precision(slices)[:, self.missing]
        cells, changes = np.zeros(residual.shape), np.zeros(len(slices))
        place = np.arange(len(slices))  # of the slices that are still solved for
        direction = self.near(residual)
        energy = _inner(residual, direction)
        iterations, moved = 0, np.abs(direction).max(axis=1)
        changes[:] = moved
        while iterations < limit:
            going = (moved > due) & (energy > 0)
            place, residual, direction, energy = (
                own[going] for own in (place, residual, direction, energy)
            )
            if not place.size:
                break
            whole = np.zeros((place.size, *self.missing.shape))
            whole[:, self.missing] = direction
            product = self.precision(whole)[:, self.missing]
            pace = energy / _inner(direction, product)
            cells[place] += pace[:, None] * direction
            residual -= pace[:, None] * product
            next_one = self.near(residual)
            before, energy = energy, _inner(residual, next_one)
            moved = np.maximum(
                np.abs(next_one).max(axis=1), np.abs(pace) * np.abs(direction).max(axis=1)
            )
            changes[place] = np.where(energy > 0, moved, 0.0)  # 0: solved exactly
            direction *= (energy / before)[:, None]
            direction += next_one
            iterations += 1
        return cells, iterations, float(changes.max())

    def precision(self, slices: Array) -> Array:
        """Return C^-1 times slices."""
        return apply(self.coefficients(slices), [None, *(own.vectors for own in self.spectra)])

    def coefficients(self, slices: Array) -> Array:
        """Return V' C^-1 times slices: what kernels in eigenbases answer from."""
        result = apply(slices, [None, *(own.vectors.T for own in self.spectra)])
        result *= self.inverse
        return result

    def rows(self, axis: int, query: Array) -> Array:
        """Return the kernel between queries and an axis, in its eigenbasis (queries, m)."""
        own = gram(self.kernels[axis], query, self.coordinates[axis])
        return np.asarray(own @ self.spectra[axis].vectors)

    def functional_rows(self, axis: int, asked: Functional) -> Array:
        """Return functionals of the kernel and an axis, in its eigenbasis (questions, m)."""
        own = asked.rows(self.kernels[axis], self.coordinates[axis])
        return np.asarray(own @ self.spectra[axis].vectors)


def _components(slices: Array) -> Array:
    """Return the directions (n, n) of slices (n, cells) in which these are uncorrelated.

    Slices of neighbouring times have much in common. Their principal components do not: all but a
    few are small, and small ones are solved for to the same accuracy in fewer iterations.
    """
    return np.asarray(np.linalg.eigh(slices @ slices.T)[1])


def _inner(one: Array, other: Array) -> Array:
    """Return the inner product of every row with the same one of another array."""
    return np.asarray(np.einsum("ij,ij->i", one, other))


def _make_solver(
    missing: Mask,
    coordinates: Sequence[Array],
    kernels: Sequence[Kernel],
    grams: Sequence[Array],
    ridge: float,
    neighbours: int = NEIGHBOURS,
) -> SequentialSolver:
    """Return the preconditioner of a mask, whose axes are in any order."""
    orders = [np.argsort(wrap(c, k.period)) for k, c in zip(kernels, coordinates, strict=True)]
    sides = [
        Side(own[np.ix_(order, order)], _step(kernel, c), kernel.period is not None)
        for own, order, kernel, c in zip(grams, orders, kernels, coordinates, strict=True)
    ]
    turned = missing[np.ix_(*orders)]
    solver = SequentialSolver.build(turned, sides, ridge, neighbours)
    numbers = np.empty(missing.shape, np.intp)  # places among the missing cells as they are given
    numbers[missing] = np.arange(np.count_nonzero(missing))
    given = numbers[np.ix_(*orders)][turned]
    return SequentialSolver(given[solver.order], solver.variances, solver.solve)


def _step(kernel: Kernel, coordinates: Array) -> float:
    """Return the usual step from coordinate to coordinate in units of the kernel's sigma."""
    return spacing(coordinates) / kernel.sigma if coordinates.size > 1 else 1.0
