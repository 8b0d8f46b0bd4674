"""Solvers of a cascade: a ridge per level, or one joint ridge for the whole grid.

Both have the interface :class:`Solver`; a cascade asks its solver wherever the two differ.

- :class:`LevelSolver`, the paper's: 1 / (w_l + lambda_l) along every axis on its own, (20), (21).
- :class:`JointSolver`: 1 / (prod w_l + lambda) over all axes at once, which is kernel ridge
  regression (one-layer KRLS) over all samples of the grid, exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Protocol

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask, Slices
from dkrls_cli.cascade.spectrum import Spectrum
from dkrls_cli.cascade.tensors import apply
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.cascade.cascade import Cascade


class Solver(Protocol):
    """How a ridge enters the answers of a cascade."""

    def answer_blocks(self, queries: Sequence[Array], smooth: bool) -> Callable[[Slices], Array]:
        """Return a function that answers one block of a product grid."""

    def pass_through(self, at_node: Mask) -> Mask:
        """Return where axes pass through (axes, points), given where a query is a coordinate."""

    def spread_rows(self, axis: int, query: Array, smooth: bool) -> Array | Indices:
        """Return the rows that answer along an axis which is no part of points, for all points."""

    def solves_tensor(self, axis: int) -> bool:
        """Return whether points are answered faster with this axis solved for in the tensor."""

    def coefficients(self, solved: Sequence[bool]) -> Array:
        """Return the core less its mean, the given axes solved for in their eigenbases."""

    def weights(self, axes: Sequence[int]) -> Array:
        """Return the paper's weights after the levels of these axes, in samples."""

    def factors_after(self, axis: int, factor: Spectrum | None) -> tuple[Spectrum | None, ...]:
        """Return the spectra that stay valid when coordinates of one axis change.

        `factor` is what is known of the changed axis.
        """


@dataclass(frozen=True, eq=False)
class LevelSolver:
    """A ridge per level: every axis is solved for on its own."""

    cascade: Cascade

    def answer_blocks(self, queries: Sequence[Array], smooth: bool) -> Callable[[Slices], Array]:
        """Return a function that answers one block of a product grid."""
        cascade = self.cascade
        rows = [cascade.answer_rows(axis, query, smooth) for axis, query in enumerate(queries)]
        passed = all(row.ndim == 1 for row in rows)
        tensor, mean = (cascade.core, 0.0) if passed else (cascade.centred_core(), cascade.mean)

        def answer(part: Slices) -> Array:
            result = apply(tensor, [row[p] for row, p in zip(rows, part, strict=True)])
            result += mean
            return result

        return answer

    def pass_through(self, at_node: Mask) -> Mask:
        """Return where axes pass through: each axis on its own."""
        return at_node

    def spread_rows(self, axis: int, query: Array, smooth: bool) -> Array | Indices:
        """Return the rows that answer from the core, data at training coordinates."""
        return self.cascade.answer_rows(axis, query, smooth)

    def solves_tensor(self, axis: int) -> bool:
        """Return whether solving makes the tensor shorter along this axis."""
        return bool(self.cascade.spectra[axis].rank < self.cascade.core.shape[axis])

    def coefficients(self, solved: Sequence[bool]) -> Array:
        """Return the core less its mean, the given axes solved for in their eigenbases."""
        cascade = self.cascade
        solves = [cascade.solve_rows(axis) if yes else None for axis, yes in enumerate(solved)]
        return apply(cascade.centred_core(), solves)

    def weights(self, axes: Sequence[int]) -> Array:
        """Return alpha^1 of (20) for one axis, alpha^2 of (21) for two, and so on."""
        cascade = self.cascade
        inverses = [
            spectrum.inverse(level.ridge) if axis in axes else None
            for axis, (spectrum, level) in enumerate(
                zip(cascade.spectra, cascade.levels, strict=True)
            )
        ]
        return apply(cascade.predict() - cascade.mean, inverses)

    def factors_after(self, axis: int, factor: Spectrum | None) -> tuple[Spectrum | None, ...]:
        """Return the spectra of all other axes, and what is known of the changed one."""
        factors = list(self.cascade.factors)
        factors[axis] = factor
        return tuple(factors)


@dataclass(frozen=True, eq=False)
class JointSolver:
    """One ridge for the whole grid: all axes are solved for at once."""

    cascade: Cascade
    ridge: float

    def answer_blocks(self, queries: Sequence[Array], smooth: bool) -> Callable[[Slices], Array]:
        """Return a function that answers one block of a product grid."""
        cascade = self.cascade
        nodes = [cascade.find_nodes(axis, query, smooth) for axis, query in enumerate(queries)]
        kernel_rows = [cascade.kernel_rows(axis, query) for axis, query in enumerate(queries)]
        coefficients = self.coefficients([True] * cascade.ndim)

        def answer(part: Slices) -> Array:
            result = apply(coefficients, [row[p] for row, p in zip(kernel_rows, part, strict=True)])
            result += cascade.mean
            here = [n[p] for n, p in zip(nodes, part, strict=True)]
            known = np.ix_(*[np.flatnonzero(n >= 0) for n in here])
            data = [cascade.data_rows(axis, n[n >= 0]) for axis, n in enumerate(here)]
            result[known] = apply(cascade.core, data)
            return result

        return answer

    def pass_through(self, at_node: Mask) -> Mask:
        """Return where axes pass through: all of them, at training cells only."""
        return np.broadcast_to(at_node.all(axis=0), at_node.shape)

    def spread_rows(self, axis: int, query: Array, smooth: bool) -> Array:
        """Return the rows of the kernel, for the coefficients of all axes."""
        return self.cascade.kernel_rows(axis, query)

    def solves_tensor(self, axis: int) -> bool:
        """Return True: there is one solve, for all axes."""
        return True

    def coefficients(self, solved: Sequence[bool]) -> Array:
        """Return the core less its mean, all axes solved for in their eigenbases."""
        cascade = self.cascade
        bases = [cascade.to_eigenbasis(axis) for axis in range(cascade.ndim)]
        coefficients = apply(cascade.centred_core(), bases)
        coefficients /= self.eigenvalues()
        return coefficients

    def eigenvalues(self) -> Array:
        """Return p + ridge over the products p of the levels' eigenvalues."""
        products = reduce(np.multiply.outer, [s.values for s in self.cascade.spectra])
        return np.asarray(products + self.ridge)

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of the inverse of the whole system, in the shape of the grid."""
        squares = [spectrum.vectors**2 for spectrum in self.cascade.spectra]
        return apply(1.0 / self.eigenvalues(), squares)

    def weights(self, axes: Sequence[int]) -> Array:
        """Return the weights of the one layer; all axes must be asked for."""
        cascade = self.cascade
        if list(axes) != list(range(cascade.ndim)):
            raise SettingError("A joint ridge has one layer of weights only: ask for all axes.")
        coefficients = self.coefficients([True] * cascade.ndim)
        return apply(coefficients, [spectrum.vectors for spectrum in cascade.spectra])

    def factors_after(self, axis: int, factor: Spectrum | None) -> tuple[Spectrum | None, ...]:
        """Return no spectra: each holds the directions that the ridge solves beside the others."""
        return (None,) * self.cascade.ndim
