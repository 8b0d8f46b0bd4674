"""Rows that take samples as they are, rows that are an operator, and what all rows can do.

- :class:`Taken`: training coordinates that pass through, each of which is one sample.
- :class:`Mixed`: some rows pass through, the others do not.
- :class:`Whole`: rows that are an operator, as those of long levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from dkrls_cli.arrays import Indices, Tensor
from dkrls_cli.cascade.tensors import Rows, along

WIDEST = 2048
"""Samples at most that count as the width of a row of an operator."""


class AxisRows(Protocol):
    """Rows that answer along one axis."""

    @property
    def size(self) -> int:
        """Number of rows."""

    @property
    def samples(self) -> int:
        """Number of samples of the axis."""

    @property
    def operations(self) -> int:
        """Products of two numbers for every fibre, or what takes as long."""

    def window(self, part: slice) -> slice:
        """Return the samples that some of the rows are applied to."""

    def apply(self, tensor: Tensor, axis: int, part: slice) -> Tensor:
        """Return some of the rows applied to the samples of their window along an axis.

        The result is as precise as the tensor is stored.
        """


@dataclass(frozen=True, eq=False)
class Taken:
    """Samples that pass through.

    Attributes
    ----------
    indices
        The sample of every row.
    samples
        Number of samples of the axis.
    """

    indices: Indices
    samples: int

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.indices.size

    @property
    def operations(self) -> int:
        """Samples that are copied of every fibre."""
        return self.size

    def window(self, part: slice) -> slice:
        """Return the samples from the first to the last that is taken."""
        if self._takes_all:
            start, stop, _ = part.indices(self.size)
            return slice(start, stop)
        some = self.indices[part]
        return slice(int(some.min()), int(some.max()) + 1)

    @cached_property
    def _takes_all(self) -> bool:
        """Whether every sample is taken, in their order: plans ask for thousands of windows."""
        return np.array_equal(self.indices, np.arange(self.samples))

    def apply(self, tensor: Tensor, axis: int, part: slice) -> Tensor:
        """Return the samples that are taken."""
        some = self.indices[part] - self.window(part).start
        if np.array_equal(some, np.arange(tensor.shape[axis])):
            return tensor
        taken: Tensor = tensor.take(some, axis)
        return taken


@dataclass(frozen=True, eq=False)
class Mixed:
    """Rows some of which pass through.

    Attributes
    ----------
    nodes
        The sample of every row that passes through, -1 for the others.
    others
        The others, in their order.
    """

    nodes: Indices
    others: AxisRows

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.nodes.size

    @property
    def operations(self) -> int:
        """Products of two numbers for every fibre, and samples that are copied."""
        return self.others.operations + 2 * self.size

    @property
    def samples(self) -> int:
        """Number of samples of the axis."""
        return self.others.samples

    def window(self, part: slice) -> slice:
        """Return all samples."""
        return slice(0, self.samples)

    def apply(self, tensor: Tensor, axis: int, part: slice) -> Tensor:
        """Return some of the rows applied to all samples along an axis."""
        start, stop, _ = part.indices(self.size)
        between = self.nodes < 0
        here, first = between[start:stop], int(np.count_nonzero(between[:start]))
        shape = (*tensor.shape[:axis], stop - start, *tensor.shape[axis + 1 :])
        result: Tensor = np.empty(shape, tensor.dtype)
        before: list[Any] = [slice(None)] * axis
        result[(*before, ~here)] = tensor.take(self.nodes[start:stop][~here], axis)
        if here.any():
            some = slice(first, first + int(np.count_nonzero(here)))
            result[(*before, here)] = self.others.apply(tensor, axis, some)
        return result


@dataclass(frozen=True, eq=False)
class Whole:
    """Rows that are an operator.

    Attributes
    ----------
    rows
        The operator.
    samples
        Number of samples of the axis.
    """

    rows: Rows
    samples: int

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.rows)

    @property
    def operations(self) -> int:
        """Products of two numbers for every fibre, if the operator were a matrix of wide bands."""
        return self.size * min(self.samples, WIDEST)

    def window(self, part: slice) -> slice:
        """Return all samples."""
        return slice(0, self.samples)

    def apply(self, tensor: Tensor, axis: int, part: slice) -> Tensor:
        """Return some of the rows applied to all samples along an axis."""
        return along(tensor, axis, self.rows[part])
