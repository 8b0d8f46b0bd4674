"""Slices with the same missing cells, completed under a joint ridge, each on its own.

Every slice is a grid of its own whose missing cells m solve (C^-1)_mm x_m = -(C^-1)_mo y_o, with
C = K + lambda: the system of :mod:`dkrls_cli.gaps.refine`, with the preconditioner of
:mod:`dkrls_cli.gaps.lasting.sequential`, many slices at a time. The coefficients of a completed
slice, V' C^-1 y, then answer anywhere as :class:`dkrls_cli.cascade.solvers.JointSolver` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.spectrum import ROUND_OFF, Spectrum, decompose
from dkrls_cli.cascade.tensors import apply
from dkrls_cli.circle import spacing, wrap
from dkrls_cli.errors import InputError
from dkrls_cli.gaps.lasting.sequential import NEIGHBOURS, SequentialSolver, Side
from dkrls_cli.gaps.refine import Refined, settle

LIMIT = 300
"""Iterations at most: 10 to 30 are usual, more of Gaussians with a ridge below 1e-4."""

_CELL = 8 * 10
"""Bytes in use for each cell of slices that are completed: ten arrays of float64."""

_NEIGHBOUR = 45
"""Bytes in use for each neighbour of a missing cell: weights, places, and a sparse factor twice."""


def completion_bytes(missing: Mask, cells: int) -> int:
    """Return the bytes in use while slices of so many cells, with missing ones, are completed."""
    square = sum(3 * 8 * size**2 for size in missing.shape)
    return int(_CELL * cells + _NEIGHBOUR * NEIGHBOURS * np.count_nonzero(missing) + square)


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
    """

    kernels: tuple[Kernel, ...]
    coordinates: tuple[Array, ...]
    missing: Mask
    spectra: tuple[Spectrum, ...]
    inverse: Array
    near: SequentialSolver | None

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
        )

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
        """
        near = self.near
        if near is None:
            return Refined(values, 0, 0.0)
        gone = np.broadcast_to(self.missing, values.shape)
        values[gone] = mean
        return settle(
            self.precision,
            lambda residual: near(residual.reshape(len(values), -1)).ravel(),
            values,
            ~gone,
            mean,
            tolerance=tolerance,
            limit=limit,
        )

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


def _make_solver(
    missing: Mask,
    coordinates: Sequence[Array],
    kernels: Sequence[Kernel],
    grams: Sequence[Array],
    ridge: float,
) -> SequentialSolver:
    """Return the preconditioner of a mask, whose axes are in any order."""
    orders = [np.argsort(wrap(c, k.period)) for k, c in zip(kernels, coordinates, strict=True)]
    sides = [
        Side(own[np.ix_(order, order)], _step(kernel, c), kernel.period is not None)
        for own, order, kernel, c in zip(grams, orders, kernels, coordinates, strict=True)
    ]
    turned = missing[np.ix_(*orders)]
    solver = SequentialSolver.build(turned, sides, ridge)
    numbers = np.empty(missing.shape, np.intp)  # places among the missing cells as they are given
    numbers[missing] = np.arange(np.count_nonzero(missing))
    given = numbers[np.ix_(*orders)][turned]
    return SequentialSolver(given[solver.order], solver.variances, solver.solve)


def _step(kernel: Kernel, coordinates: Array) -> float:
    """Return the usual step from coordinate to coordinate in units of the kernel's sigma."""
    return spacing(coordinates) / kernel.sigma if coordinates.size > 1 else 1.0
