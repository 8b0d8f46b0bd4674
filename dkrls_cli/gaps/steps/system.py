"""The system of equations of a grid with missing cells, applied without ever being formed.

It is V' M V + lambda / w, see :mod:`dkrls_cli.gaps.solve`. A product with it is a product of a
tensor with one matrix per axis, the weights of the cells, and the same back. All axes but the first
are worked on in slabs that stay in the cache, and the first one in blocks of its fibres.

Precision
---------
Products in single precision take half the time. Their round-off is a ten-millionth of the largest
cell, which is far less than the changes that a solve with an ordinary tolerance ends at, except in
the middle of holes: smooth directions that are hardly observed multiply it. Vectors and their sums
stay in double precision, and so does :meth:`System.residual`, by which a solve is put right if
round-off has added up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Mask, Slices, Tensor
from dkrls_cli.cascade.tensors import multiply_fibres
from dkrls_cli.gaps.field import Field

SLAB = 2**15
"""Cells of one slab: 256 kB of numbers stay in the cache of a core."""

_LEAST_WIDTH = 16
"""Fibres of one product at least: fewer would not be worth reading a matrix for."""

_FEW = 2**16
"""Coefficients up to which lambda / w is held: of more it is faster computed than read."""


@dataclass(frozen=True, eq=False)
class System:
    """The matrix V' M V + lambda / w.

    Attributes
    ----------
    field
        V and w.
    weights
        M: the weight of every cell, 1 where it is observed, 0 where it is missing; folded, as the
        field has it. Products are computed in their precision.
    ridge
        lambda.
    watched
        The cells whose changes are measured; folded.
    """

    field: Field
    weights: Tensor
    ridge: float
    watched: Mask

    @property
    def ranks(self) -> tuple[int, ...]:
        """The shape of g."""
        return self.field.variances.shape

    @property
    def is_single(self) -> bool:
        """Whether products are computed in single precision."""
        return self.weights.dtype == np.float32

    @property
    def cell_weights(self) -> Array:
        """M in double precision, in the shape of the grid."""
        return self.field.unfold(np.asarray(self.weights, np.float64))

    def in_single(self) -> System:
        """Return the same system with products in single precision."""
        return replace(self, weights=self.weights.astype(np.float32))

    @cached_property
    def share(self) -> float:
        """The mean of the diagonal of V' M V, p."""
        return self.field.mean_share(np.asarray(self.weights, np.float64))

    @cached_property
    def slabs(self) -> list[slice]:
        """Parts of the first axis of g that are small enough to stay in the cache."""
        rows = max(1, SLAB // math.prod(self.weights.shape[1:]))
        return [slice(start, start + rows) for start in range(0, self.ranks[0], rows)]

    def divide(self, left: Array) -> Array:
        """Return a residual divided by p + lambda / w: the solution if M were p everywhere."""
        result = np.empty(left.shape)
        for part in self.slabs:
            np.divide(left[part], self.penalty(part) + self.share, out=result[part])
        return result

    def penalty(self, part: slice) -> Array:
        """Return lambda / w on a slab of g."""
        held = self._penalties
        return np.asarray(self.ridge / self.field.variances[part]) if held is None else held[part]

    @cached_property
    def _penalties(self) -> Array | None:
        few = self.field.variances.size <= _FEW
        return np.asarray(self.ridge / self.field.variances) if few else None

    def step(self, tensor: Array, pace: float, direction: Array) -> None:
        """Add `pace` times a direction to a tensor of the shape of g, in place."""
        for part in self.slabs:
            tensor[part] += pace * direction[part]

    def inner(self, one: Array, other: Array) -> float:
        """Return the inner product of two tensors of the shape of g, which may be views."""
        return sum(float(np.vdot(one[part], other[part])) for part in self.slabs)

    def residual(self, g: Array, values: Array, mean: float) -> Array:
        """Return V' M (y - mean) less the system times g, in double precision."""
        lack = self.field.synthesis(g)
        lack += mean
        np.subtract(self.field.fold(values), lack, out=lack, where=self.weights > 0)
        lack *= self.weights  # 0 in all other cells
        left = np.ascontiguousarray(self.field.analysis(lack))
        for part in self.slabs:
            left[part] -= self.penalty(part) * g[part]
        return left

    def smoothed(self, completed: Array, mean: float) -> Array:
        """Return the g of a completed grid, V' (y - mean) w / (w + lambda)."""
        g = self.field.analysis(self.field.fold(completed - mean))
        for part in self.slabs:
            g[part] /= 1.0 + self.penalty(part)
        return g

    def answers(self, g: Array, mean: float) -> Array:
        """Return the field V g + mean."""
        field = self.field.unfold(self.field.synthesis(g))
        field += mean
        return field

    def multiply(self, g: Array) -> tuple[Array, float]:
        """Return (V' M V + lambda / w) g, and the largest |V g| of a watched cell."""
        forth, back = self._others
        cells = np.empty((self.ranks[0], *self.weights.shape[1:]), self.weights.dtype)
        for part in self.slabs:
            cells[part] = _along_each(g[part].astype(cells.dtype, copy=False), forth)
        largest = self._weigh(cells.reshape(self.ranks[0], -1))
        product = self._room(cells)
        for part in self.slabs:
            product[part] = _along_each(cells[part], back) + self.penalty(part) * g[part]
        return product, largest

    def _weigh(self, fibres: Tensor) -> float:
        """Turn V_0 h into V_0' M V_0 h for all fibres, in place; return the largest watched cell.

        V_0 is the matrix of the first axis.
        """
        first, largest = self._first, 0.0
        weights = self.weights.reshape(len(first), -1)
        for columns, watched in self._spots:
            cells = first @ fibres[:, columns]
            if watched.size:
                moved = cells.take(watched)
                largest = max(largest, float(moved.max()), -float(moved.min()))
            cells *= weights[:, columns]
            fibres[:, columns] = first.T @ cells
        return largest

    @cached_property
    def _spots(self) -> list[tuple[slice, NDArray[np.int32]]]:
        """Blocks of fibres along the first axis, with the places of their watched cells."""
        watched = self.watched.reshape(len(self.watched), -1)
        width = max(_LEAST_WIDTH, SLAB // len(watched))
        parts = [slice(start, start + width) for start in range(0, watched.shape[1], width)]
        return [(part, np.flatnonzero(watched[:, part]).astype(np.int32)) for part in parts]

    @cached_property
    def _first(self) -> Any:
        """The matrix of the first axis, in the precision of the products."""
        first = self.field.operators[0]
        return self._cast(first) if isinstance(first, np.ndarray) else first

    @cached_property
    def _others(self) -> tuple[list[tuple[int, Tensor]], list[tuple[int, Tensor]]]:
        """All other matrices with their axes, in the order of least work, for V and for V'."""
        matrices = [(axis, self._cast(m)) for axis, m in enumerate(self.field.bases_behind, 1)]
        matrices.sort(key=lambda pair: pair[1].shape[0] / pair[1].shape[1])
        return matrices, [(axis, matrix.T) for axis, matrix in reversed(matrices)]

    def _cast(self, matrix: Array) -> Tensor:
        return cast(Tensor, np.ascontiguousarray(matrix, self.weights.dtype))

    def _room(self, cells: Tensor) -> Array:
        """Return an array of the shape of g: a view of the cells where they have room for it."""
        if self.is_single or self._corner is None:
            return np.empty(self.ranks)
        return cast(Array, cells[self._corner])

    @cached_property
    def _corner(self) -> Slices | None:
        """The part of the cells that has the shape of g, if they have room for it."""
        pairs = zip(self.ranks[1:], self.weights.shape[1:], strict=True)
        fits = all(rank <= size for rank, size in pairs)
        return tuple(slice(0, rank) for rank in self.ranks) if fits else None


def _along_each(tensor: Tensor, matrices: list[tuple[int, Tensor]]) -> Tensor:
    """Return a tensor with matrices applied to its fibres along some axes, one after the other."""
    for axis, matrix in matrices:
        shape = tensor.shape
        fibres = tensor.reshape(math.prod(shape[:axis]), shape[axis], -1)
        product = multiply_fibres(fibres, matrix)
        tensor = product.reshape(*shape[:axis], len(matrix), *shape[axis + 1 :])
    return tensor
