"""Refine filled cells until they stop changing.

A completed grid y is right if its joint-ridge model has no weight on the filled cells: with
C = K + lambda I over the whole grid, (C^-1 y)_m = 0 in the missing cells m. That is a symmetric
positive definite system in the missing cells alone,

    (C^-1)_mm y_m = -(C^-1)_mo y_o,

with o the observed cells. It is solved by conjugate gradients, preconditioned by the diagonal of
C^-1, from the cells as they are filled.

It is well conditioned where the system of :mod:`dkrls_cli.gaps.solve` is not: under a tiny ridge
and a kernel that is not smooth, a small residual there says nothing about the missing cells. The
two systems complement each other, so one follows the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.cascade.spectrum import ROUND_OFF
from dkrls_cli.cascade.tensors import along, apply
from dkrls_cli.gaps.field import Field
from dkrls_cli.gaps.steps.settling import still_due


@dataclass(frozen=True, eq=False)
class Refined:
    """A completed grid whose filled cells were refined.

    Attributes
    ----------
    values
        The grid; observed cells are as they were, to round-off.
    iterations
        Number of conjugate-gradient iterations; 0 if the cells were right already.
    change
        Largest change of a filled cell that is still due, as a share of the spread of the data.
    """

    values: Array
    iterations: int
    change: float


def refine(
    field: Field,
    completed: Array,
    observed: Mask,
    ridge: float,
    mean: float,
    *,
    tolerance: float,
    limit: int,
    calm: int = 1,
) -> Refined:
    """Refine the filled cells of a grid until none changes by more than a share of the spread.

    Parameters
    ----------
    field
        A product of kernels, with all directions: its basis is square.
    completed, observed
        The grid with its missing cells filled, which is overwritten, and which cells are observed.
    ridge, mean
        The joint ridge, and the value to which answers fall back far from data.
    tolerance, limit
        Refining stops at this share of the spread of the observed cells, or after this many
        iterations.
    calm
        Changes that tell at least what is still due, that which the cells need at first among them:
        if it is 1, cells may be right already.
    """
    precision = Precision.of(field, ridge)
    diagonal = precision.diagonal()[~observed]
    return settle(
        precision.apply,
        lambda residual: residual / diagonal,
        completed,
        observed,
        mean,
        tolerance=tolerance,
        limit=limit,
        calm=calm,
    )


def settle(
    precision: Callable[[Array], Array],
    near_inverse: Callable[[Array], Array],
    completed: Array,
    observed: Mask,
    mean: float,
    *,
    tolerance: float,
    limit: int,
    calm: int = 1,
) -> Refined:
    """Refine filled cells as :func:`refine` does, whatever the form of C^-1.

    Parameters
    ----------
    precision
        A function that returns C^-1 times a grid.
    near_inverse
        A function that solves for residuals of the missing cells, in their order in the grid, as
        nearly as it can: the preconditioner. It must be symmetric and positive definite.
    completed, observed, mean, tolerance, limit, calm
        As for :func:`refine`.
    """
    missing, values = ~observed, completed
    values -= mean
    spread = float(np.abs(values[observed]).max()) or 1.0
    values /= spread
    residual = -precision(values)[missing]
    due = near_inverse(residual)  # what each cell lacks of its prediction from others
    energy = float(residual @ due)
    iterations, changes = 0, [float(np.abs(due).max())]
    change = still_due(changes, calm)
    direction = np.zeros(values.shape) if change > tolerance else values[:0]
    while change > tolerance and iterations < limit:
        direction[missing] += due
        product = precision(direction)[missing]
        step = energy / float(direction[missing] @ product)
        values[missing] += step * direction[missing]
        residual -= step * product
        due = near_inverse(residual)
        moved = step * float(np.abs(direction).max())
        before, energy = energy, float(residual @ due)
        largest = max(float(np.abs(due).max()), moved) if energy > 0 else 0.0  # 0: solved exactly
        changes.append(largest)
        iterations += 1
        change = still_due(changes, calm) if largest > ROUND_OFF else largest
        direction *= energy / before
    values *= spread
    values += mean
    return Refined(values, iterations, change)


@dataclass(frozen=True, eq=False)
class Precision:
    """The matrix C^-1 = (K + lambda I)^-1 of the whole grid, never formed.

    Attributes
    ----------
    bases
        The eigenvectors of each axis (m_l, m_l).
    inverse
        1 / (product of the eigenvalues + lambda), in the shape of the grid.
    """

    bases: list[Array]
    inverse: Array

    @classmethod
    def of(cls, field: Field, ridge: float) -> Precision:
        """Return the precision matrix; directions at round-off count as far as float64 can tell."""
        values = field.variances + ridge
        np.maximum(values, ROUND_OFF * float(values.max()), out=values)
        return cls(list(field.bases), np.reciprocal(values, out=values))

    def apply(self, grid: Array) -> Array:
        """Return the matrix times a grid."""
        result = apply(grid, [basis.T for basis in self.bases])
        result *= self.inverse
        for axis, basis in enumerate(self.bases):  # one by one: no array is held any longer
            result = along(result, axis, basis)
        return result

    def diagonal(self) -> Array:
        """Return the diagonal of the matrix, in the shape of the grid."""
        return apply(self.inverse, [basis**2 for basis in self.bases])
