"""Rows of one level as they are applied to part after part of a large grid.

Along an axis, an answer is a row times the samples of the data. Away from the queried coordinate
the entries of a row fall off, within a few steps for most kernels, so that groups of neighbouring
rows are applied to a *window* of the samples only. What does not fall off is the share of a
constant in the kernel. With C = A + c 1 1', where c is the variance of the constant,

    k' C^-1 = k0' A^-1 + s g',   g = C^-1 1,   s = c (1 - k' C^-1 1) / (1 - c 1' g),

and only the first term is cut to windows: the second is one product with g for all rows.

- :class:`Taken`: training coordinates that pass through, each of which is one sample.
- :class:`Banded`: rows as matrices that are cut to windows.
- :class:`Factored`: rows as the product of two matrices, where smooth kernels have few directions.
- :class:`Mixed`: some rows pass through, the others do not.
- :class:`Whole`: rows that are an operator, as those of long levels.

Of a matrix of rows, the form is taken that costs least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices, Tensor
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.tensors import Rows, along
from dkrls_cli.threads import one_blas_thread

NEGLIGIBLE = 1e-13
"""Sum of the entries of a row outside its window, beside the sum of all of them: less than the
round-off of a sum of many samples in double precision."""

NEGLIGIBLE_IN_SINGLE = 1e-9
"""The same for data in single precision, which is rounded by 6e-8 of itself."""

GROUPS = (16, 32, 64)
"""Rows that share one window in a matrix product, to choose from: more make the window wide."""

_THIN = 8.0
"""Extra cost of a product with a group of rows, in rows: thin products are slow."""

_MOST_ROWS = 2048
"""Rows at most whose directions are looked for: a singular value decomposition takes seconds."""

_DIRECTIONS = 10.0
"""Size of a direction that is negligible, beside that of entries: errors of directions have random
signs, and small ridges leave noise of 3e-9 in the rows."""

_MANY = 0.1
"""Share of rows that pass through from which they are worth telling from the others."""

_WORTH = 0.6
"""Operations of factored rows, beside those of others, from which two products are worth it."""


class AxisRows(Protocol):
    """Rows that answer along one axis."""

    @property
    def size(self) -> int:
        """Number of rows."""

    @property
    def samples(self) -> int:
        """Number of samples of the axis."""

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

    def window(self, part: slice) -> slice:
        """Return the samples from the first to the last that is taken."""
        some = self.indices[part]
        return slice(int(some.min()), int(some.max()) + 1)

    def apply(self, tensor: Tensor, axis: int, part: slice) -> Tensor:
        """Return the samples that are taken."""
        some = self.indices[part] - self.window(part).start
        if np.array_equal(some, np.arange(tensor.shape[axis])):
            return tensor
        taken: Tensor = tensor.take(some, axis)
        return taken


@dataclass(frozen=True, eq=False)
class Banded:
    """Rows as matrices, in groups of neighbours that share a window, and a constant's share.

    Attributes
    ----------
    samples
        Number of samples of the axis.
    windows
        The samples that each group is applied to.
    groups
        The rows of each group (rows, samples of its window), in double and in single precision.
    group
        Rows of every group but the last, which may have fewer.
    trend
        s of every row (size,) and g (samples,), in double and in single precision; or None.
    """

    samples: int
    windows: tuple[slice, ...]
    groups: tuple[Both, ...]
    group: int
    trend: tuple[Both, Both] | None = None

    @classmethod
    def build(
        cls,
        make_rows: Callable[[slice], Array],
        size: int,
        constant: Constant | None = None,
        negligible: float = NEGLIGIBLE,
    ) -> Banded:
        """Return rows of which `make_rows` returns some (rows, samples) at a time.

        Parameters
        ----------
        make_rows
            Returns the rows of a part.
        size
            Number of rows.
        constant
            The constant that the kernel has, if it has one.
        negligible
            Sum of the entries outside a window, beside the sum of all entries of a row.

        Examples
        --------
        >>> rows = np.array([[1.0, 0.5, 1e-15, 0.0], [0.5, 1.0, 0.0, 0.0]])
        >>> Banded.build(lambda part: rows[part], 2).windows
        (slice(0, 2, None),)
        """
        made = (cls._in_groups(make_rows, size, group, constant, negligible) for group in GROUPS)
        return min(made, key=lambda one: one.operations * (1.0 + _THIN / one.group))

    @classmethod
    def _in_groups(
        cls,
        make_rows: Callable[[slice], Array],
        size: int,
        group: int,
        constant: Constant | None,
        negligible: float,
    ) -> Banded:
        """Return rows in groups of a size."""
        windows, groups, shares = [], [], []
        samples = 0
        for start in range(0, size, group):
            rows = make_rows(slice(start, min(start + group, size)))
            samples = rows.shape[1]
            if constant is not None:
                shares.append(constant.shares(rows))
                rows = rows - np.outer(shares[-1], constant.weights)
            windows.append(_window(rows, negligible))
            groups.append(Both.of(rows[:, windows[-1]]))
        trend = None
        if constant is not None:
            trend = Both.of(np.concatenate(shares)), Both.of(constant.weights)
        return cls(samples, tuple(windows), tuple(groups), group, trend)

    @property
    def size(self) -> int:
        """Number of rows."""
        return sum(len(group.double) for group in self.groups)

    @property
    def operations(self) -> int:
        """Products of two numbers for every fibre."""
        return sum(group.double.size for group in self.groups)

    def window(self, part: slice) -> slice:
        """Return all samples: a constant has a share in every row."""
        return slice(0, self.samples)

    def apply(self, tensor: Tensor, axis: int, part: slice) -> Tensor:
        """Return some of the rows applied to all samples along an axis."""
        start, stop, _ = part.indices(self.size)
        shape = (*tensor.shape[:axis], stop - start, *tensor.shape[axis + 1 :])
        result: Tensor = np.empty(shape, tensor.dtype)
        before: list[slice] = [slice(None)] * axis
        shares, constant = self._constant_part(tensor, axis)
        for own, rows, window in self._pieces(start, stop, tensor.dtype):
            here = result[(*before, own)]
            _multiply(rows, tensor[(*before, window)], axis, here)
            if shares is not None:
                some = shares[own.start + start : own.stop + start]
                here += some.reshape(-1, *[1] * (tensor.ndim - axis - 1)) * constant
        return result

    def _constant_part(self, tensor: Tensor, axis: int) -> tuple[Tensor | None, Tensor]:
        """Return the share of a constant in every row, and its weights applied to the samples."""
        if self.trend is None:
            return None, tensor
        shares, weights = (both.as_type(tensor.dtype) for both in self.trend)
        shape = (*tensor.shape[:axis], 1, *tensor.shape[axis + 1 :])
        constant: Tensor = np.empty(shape, tensor.dtype)
        _multiply(weights[None], tensor, axis, constant)
        return shares, constant

    def _pieces(
        self, start: int, stop: int, dtype: np.dtype[Any]
    ) -> Iterator[tuple[slice, Tensor, slice]]:
        """Yield rows from `start` to `stop` group by group: their place, matrix and window."""
        for place in range(start // self.group, -(-stop // self.group)):
            origin = place * self.group
            first, end = max(start, origin), min(stop, origin + self.group)
            rows = self.groups[place].as_type(dtype)[first - origin : end - origin]
            yield slice(first - start, end - start), rows, self.windows[place]


@dataclass(frozen=True, eq=False)
class Factored:
    """Rows as the product of two matrices.

    Attributes
    ----------
    left, right
        The factors (size, directions) and (directions, samples).
    """

    left: Both
    right: Both

    @classmethod
    def build(cls, rows: Array, negligible: float) -> Factored:
        """Return rows in those of their principal directions that are not negligible."""
        with one_blas_thread():
            u, sizes, v = np.linalg.svd(rows, full_matrices=False)
        kept = max(1, int(np.count_nonzero(sizes > negligible * sizes[0])))
        return cls(Both.of(u[:, :kept] * sizes[:kept]), Both.of(v[:kept]))

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.left.double)

    @property
    def samples(self) -> int:
        """Number of samples of the axis."""
        return int(self.right.double.shape[1])

    @property
    def operations(self) -> int:
        """Products of two numbers for every fibre."""
        return self.left.double.size + self.right.double.size

    def window(self, part: slice) -> slice:
        """Return all samples."""
        return slice(0, self.samples)

    def apply(self, tensor: Tensor, axis: int, part: slice) -> Tensor:
        """Return some of the rows applied to all samples along an axis."""
        result = tensor
        for rows in (self.right.as_type(tensor.dtype), self.left.as_type(tensor.dtype)[part]):
            shape = (*tensor.shape[:axis], len(rows), *tensor.shape[axis + 1 :])
            product: Tensor = np.empty(shape, tensor.dtype)
            _multiply(rows, result, axis, product)
            result = product
        return result


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

    def window(self, part: slice) -> slice:
        """Return all samples."""
        return slice(0, self.samples)

    def apply(self, tensor: Tensor, axis: int, part: slice) -> Tensor:
        """Return some of the rows applied to all samples along an axis."""
        return along(tensor, axis, self.rows[part])


@dataclass(frozen=True, eq=False)
class Both:
    """Numbers in double precision, and the same in single precision."""

    double: Array
    single: NDArray[np.float32]

    @classmethod
    def of(cls, numbers: Array) -> Both:
        """Return numbers in both precisions."""
        double = np.ascontiguousarray(numbers)
        return cls(double, double.astype(np.float32))

    def as_type(self, dtype: np.dtype[Any]) -> Tensor:
        """Return the numbers in the precision of a type."""
        return self.single if dtype == np.float32 else self.double


@dataclass(frozen=True, eq=False)
class Constant:
    """The constant in a kernel.

    Attributes
    ----------
    variance
        c, its variance.
    weights
        g = C^-1 1 (samples,).
    """

    variance: float
    weights: Array

    def shares(self, rows: Array) -> Array:
        """Return s of rows k' C^-1: how much of each is the constant's."""
        left = 1.0 - self.variance * self.weights.sum()
        return np.asarray(self.variance * (1.0 - rows.sum(axis=1)) / left)


def cut_rows(
    cascade: Cascade, axis: int, rows: Array | Indices | Rows, negligible: float = NEGLIGIBLE
) -> AxisRows:
    """Return rows of an axis that is kept in samples as they are applied to parts of a grid.

    Parameters
    ----------
    cascade
        A cascade; its data is not looked at.
    axis
        The axis.
    rows
        What answers along the axis: indices, a matrix, or an operator.
    negligible
        Sum of the entries outside a window, beside the sum of all entries of a row.
    """
    samples = cascade.shape[axis]
    if not isinstance(rows, np.ndarray):
        return Whole(rows, samples)
    if rows.ndim == 1:
        return Taken(np.asarray(rows, np.intp), samples)
    matrix: Array = np.asarray(rows, np.float64)
    nodes = _unit_rows(matrix)
    if (nodes >= 0).mean() < _MANY or (nodes >= 0).all():
        return _cut_matrix(cascade, axis, matrix, negligible)
    return Mixed(nodes, _cut_matrix(cascade, axis, matrix[nodes < 0], negligible))


def _unit_rows(matrix: Array) -> Indices:
    """Return the place of the 1 in rows that have nothing else, -1 for other rows."""
    units = (np.count_nonzero(matrix, axis=1) == 1) & (matrix.max(axis=1) == 1.0)
    return np.where(units, matrix.argmax(axis=1), -1)


def _cut_matrix(cascade: Cascade, axis: int, matrix: Array, negligible: float) -> AxisRows:
    """Return rows in the form that costs least."""
    constant = _constant_of(cascade, axis)
    banded = Banded.build(lambda part: matrix[part], len(matrix), constant, negligible)
    if min(matrix.shape) > _MOST_ROWS:
        return banded
    factored = Factored.build(matrix, _DIRECTIONS * negligible)
    return factored if factored.operations < _WORTH * banded.operations else banded


def _constant_of(cascade: Cascade, axis: int) -> Constant | None:
    """Return the constant in the kernel of a level, if it has one."""
    level, ones = cascade.levels[axis], np.ones(cascade.shape[axis])
    if level.kernel.is_spline or not level.kernel.constant:
        return None
    factor = cascade.factor(axis)
    if isinstance(factor, LongFactor):
        weights = factor.solve(ones[:, None])[:, 0]
    else:
        weights = factor.inverse(level.ridge) @ ones
    return Constant(level.kernel.constant, np.asarray(weights))


def _window(rows: Array, negligible: float) -> slice:
    """Return the samples outside of which every row is negligible; at least one."""
    sizes = np.abs(rows)
    least = negligible * sizes.sum(axis=1, keepdims=True) / 2
    first = np.count_nonzero(np.cumsum(sizes, axis=1) <= least, axis=1).min()
    behind = np.count_nonzero(np.cumsum(sizes[:, ::-1], axis=1) <= least, axis=1).min()
    start = min(int(first), rows.shape[1] - 1)
    return slice(start, max(rows.shape[1] - int(behind), start + 1))


def _multiply(rows: Tensor, tensor: Tensor, axis: int, out: Tensor) -> None:
    """Put rows (p, m), applied to every fibre along an axis of length m, into `out`."""
    if axis == tensor.ndim - 1:
        np.matmul(tensor, rows.T, out=out)
    elif axis == tensor.ndim - 2:
        np.matmul(rows, tensor, out=out)
    else:
        folded = tensor.reshape(*tensor.shape[: axis + 1], -1)
        out[...] = np.matmul(rows, folded).reshape(out.shape)
