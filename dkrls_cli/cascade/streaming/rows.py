"""Rows of one level as they are applied to part after part of a large grid.

Along an axis, an answer is a row times the samples of the data. Away from the queried coordinate
the entries of a row fall off, within a few steps for most kernels, so that groups of neighbouring
rows are applied to a *window* of the samples only; on a circle it may begin near the last sample
and end near the first. What does not fall off is the share of a constant in the kernel. With
C = A + c 1 1', where c is the variance of the constant,

    k' C^-1 = k0' A^-1 + s g',   g = C^-1 1,   s = c (1 - k' C^-1 1) / (1 - c 1' g),

and only the first term is cut to windows: the second is one product with g for all rows.

- :class:`Taken`: training coordinates that pass through, each of which is one sample.
- :class:`Banded`: rows as matrices that are cut to windows.
- :class:`Factored`: rows as the product of two matrices, where smooth kernels have few directions.
- :class:`.split.Split`: wide rows, of which few sums tell all but what is near them.
- :class:`Mixed`: some rows pass through, the others do not.
- :class:`Whole`: rows that are an operator, as those of long levels.

Of a matrix of rows, the form is taken that costs least.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from dkrls_cli.arrays import Array, Indices, Slices, Tensor
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.streaming.products import Both, fold, multiply
from dkrls_cli.cascade.streaming.split import WIDTHS, Split
from dkrls_cli.cascade.tensors import Rows, along
from dkrls_cli.threads import one_blas_thread

NEGLIGIBLE = 1e-13
"""Length of the entries of a row outside its window, as a vector, beside that of all of them: less
than the round-off of a sum of many samples in double precision. What is left far away is mostly
noise of solving, of random signs, which a sum of sizes would count as much more than it is."""

NEGLIGIBLE_IN_SINGLE = 1e-8
"""The same for data in single precision, which is rounded by 6e-8 of itself."""

_MOST_NEGLIGIBLE = 1e-5
"""The same, at most, where rows are solved for with small ridges and have such noise themselves:
without it they are no farther from the rows of an exact solve."""

GROUPS = (16, 32, 64)
"""Rows that share one window in a matrix product, to choose from: more make the window wide."""

_THIN = 2.0
"""Extra cost of a product with a group of rows, in rows: thin products are slow."""

_ALONG_LAST = 1.2
"""Cost of products along the last axis, beside that of others: their results are thin."""

_MOST_ROWS = 2048
"""Rows at most whose directions are looked for: a singular value decomposition takes seconds."""

_MANY = 0.1
"""Share of rows that pass through from which they are worth telling from the others."""

_WORTH = 0.6
"""Operations of rows in several products, beside those of others, from which they are worth it."""


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
class Banded:
    """Rows as matrices, in groups of neighbours that share a window, and a constant's share.

    Attributes
    ----------
    samples
        Number of samples of the axis.
    windows
        The samples that each group is applied to: one part of the axis, or two, at its ends.
    groups
        The rows of each group (rows, samples of its window), in double and in single precision.
    group
        Rows of every group but the last, which may have fewer.
    trend
        s of every row (size,) and g (samples,), in double and in single precision; or None.
    """

    samples: int
    windows: tuple[Window, ...]
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
            Length of the entries outside a window, as a vector, beside that of all entries.

        Examples
        --------
        >>> rows = np.array([[1.0, 0.5, 1e-15, 0.0], [0.5, 1.0, 0.0, 0.0]])
        >>> Banded.build(lambda part: rows[part], 2).windows
        ((slice(0, 2, None),),)
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
            groups.append(Both.of(np.asarray(_pick(rows, windows[-1]), np.float64)))
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
        fibres = fold(tensor, axis)
        result: Tensor = np.empty((len(fibres), stop - start, fibres.shape[2]), tensor.dtype)
        shares, constant = self._constant_part(fibres)
        for own, rows, window in self._pieces(start, stop, tensor.dtype):
            here = result[:, own]
            multiply(rows, _pick(fibres, window), here)
            if shares is not None:
                here += shares[own.start + start : own.stop + start, None] * constant
        return result.reshape(*tensor.shape[:axis], stop - start, *tensor.shape[axis + 1 :])

    def _constant_part(self, fibres: Tensor) -> tuple[Tensor | None, Tensor]:
        """Return the share of a constant in every row, and its weights applied to the samples."""
        if self.trend is None:
            return None, fibres
        shares, weights = (both.as_type(fibres.dtype) for both in self.trend)
        constant: Tensor = np.empty((len(fibres), 1, fibres.shape[2]), fibres.dtype)
        multiply(weights[None], fibres, constant)
        return shares, constant

    def _pieces(
        self, start: int, stop: int, dtype: np.dtype[Any]
    ) -> Iterator[tuple[slice, Tensor, Window]]:
        """Yield rows from `start` to `stop` group by group: their place, matrix and window."""
        for place in range(start // self.group, -(-stop // self.group)):
            origin = place * self.group
            first, end = max(start, origin), min(stop, origin + self.group)
            rows = self.groups[place].as_type(dtype)[first - origin : end - origin]
            yield slice(first - start, end - start), rows, self.windows[place]


@dataclass(frozen=True, eq=False)
class Dense:
    """Rows as one matrix.

    Attributes
    ----------
    matrix
        The rows (size, samples).
    """

    matrix: Both

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.matrix.double)

    @property
    def samples(self) -> int:
        """Number of samples of the axis."""
        return int(self.matrix.double.shape[1])

    @property
    def operations(self) -> int:
        """Products of two numbers for every fibre."""
        return self.matrix.double.size

    def window(self, part: slice) -> slice:
        """Return all samples."""
        return slice(0, self.samples)

    def apply(self, tensor: Tensor, axis: int, part: slice) -> Tensor:
        """Return some of the rows applied to all samples along an axis."""
        fibres, rows = fold(tensor, axis), self.matrix.as_type(tensor.dtype)[part]
        result: Tensor = np.empty((len(fibres), len(rows), fibres.shape[2]), tensor.dtype)
        multiply(rows, fibres, result)
        return result.reshape(*tensor.shape[:axis], len(rows), *tensor.shape[axis + 1 :])


@dataclass(frozen=True, eq=False)
class Factored:
    """Rows as the product of two matrices.

    Attributes
    ----------
    left, right
        The factors (size, directions) and (directions, samples).
    """

    left: Dense
    right: Dense

    @classmethod
    def build(cls, rows: Array, negligible: float) -> Factored:
        """Return rows in those of their principal directions that are not negligible."""
        with one_blas_thread():
            u, sizes, v = np.linalg.svd(rows, full_matrices=False)
        kept = max(1, int(np.count_nonzero(sizes > negligible * sizes[0])))
        return cls(Dense(Both.of(u[:, :kept] * sizes[:kept])), Dense(Both.of(v[:kept])))

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.left.size

    @property
    def samples(self) -> int:
        """Number of samples of the axis."""
        return self.right.samples

    @property
    def operations(self) -> int:
        """Products of two numbers for every fibre."""
        return self.left.operations + self.right.operations

    def window(self, part: slice) -> slice:
        """Return all samples."""
        return slice(0, self.samples)

    def apply(self, tensor: Tensor, axis: int, part: slice) -> Tensor:
        """Return some of the rows applied to all samples along an axis."""
        directions = self.right.apply(tensor, axis, slice(None))
        return self.left.apply(directions, axis, part)


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
        return self.size * min(self.samples, _MOST_ROWS)

    def window(self, part: slice) -> slice:
        """Return all samples."""
        return slice(0, self.samples)

    def apply(self, tensor: Tensor, axis: int, part: slice) -> Tensor:
        """Return some of the rows applied to all samples along an axis."""
        return along(tensor, axis, self.rows[part])


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
        Length of the entries outside a window, as a vector, beside that of all entries.
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


def negligible_in(cascade: Cascade, axis: int, *, single: bool) -> float:
    """Return what is negligible in the rows of an axis, for data in single or double precision.

    Solving with a small ridge leaves noise of random signs in the rows. Data in single precision
    does not tell it from nothing, while a product with it would take most of the time.
    """
    ridge, samples = cascade.levels[axis].ridge, cascade.shape[axis]
    if not single:
        return NEGLIGIBLE
    noise = 2.0 * np.finfo(float).eps * math.sqrt(samples) / ridge if ridge else 0.0
    return min(max(NEGLIGIBLE_IN_SINGLE, noise), _MOST_NEGLIGIBLE)


def _unit_rows(matrix: Array) -> Indices:
    """Return the place of the 1 in rows that have nothing else, -1 for other rows."""
    units = (np.count_nonzero(matrix, axis=1) == 1) & (matrix.max(axis=1) == 1.0)
    return np.where(units, matrix.argmax(axis=1), -1)


def _cut_matrix(cascade: Cascade, axis: int, matrix: Array, negligible: float) -> AxisRows:
    """Return rows in the form that costs least."""
    constant = _constant_of(cascade, axis)
    best: AxisRows = Banded.build(lambda part: matrix[part], len(matrix), constant, negligible)
    if min(matrix.shape) > _MOST_ROWS:
        return best
    for width in WIDTHS:
        if 2 * width <= matrix.shape[1] and len(matrix) * width < _WORTH * best.operations:
            split = Split.build(matrix, width, negligible)
            best = split if _is_worth(split, best) else best
    if _least_directions(matrix) * sum(matrix.shape) < best.operations:
        factored = Factored.build(matrix, negligible)
        best = factored if _is_worth(factored, best) else best
    return best


def _is_worth(several: Split | Factored, other: AxisRows) -> bool:
    """Return whether rows in several products take less time than others."""
    share = 1.0 if isinstance(other, Split | Factored) else _WORTH
    in_few_parts = not isinstance(several, Split) or len(several.near) <= 2 * len(several.blocks)
    return in_few_parts and several.operations < share * other.operations


def _least_directions(matrix: Array) -> float:
    """Return a number of principal directions that a matrix is sure to have, without finding them.

    It is the sum of their squared sizes, beside a bound on the largest of these.
    """
    sizes = np.abs(matrix)
    largest = sizes.sum(axis=0).max() * sizes.sum(axis=1).max()
    return float((sizes**2).sum() / largest) if largest else 0.0


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


Window = tuple[slice, ...]
"""Samples that rows are applied to: one part of an axis, or two, the first and the last of it."""


def _window(rows: Array, negligible: float) -> Window:
    """Return the samples outside of which every row is negligible; at least one.

    These are all but the samples around the ends of the axis; or around the place where the rows
    are smallest, if so few are left that it pays to put the parts before and behind it together.
    """
    sizes, samples = rows**2, rows.shape[1]
    least = negligible**2 * sizes.sum(axis=1, keepdims=True) / 2
    place, (before, after) = 0, _negligible_around(sizes, least, 0)
    inner = int(sizes.max(axis=0).argmin())
    around = _negligible_around(sizes, least, inner)
    if 2 * (samples - sum(around)) <= samples - before - after:
        place, (before, after) = inner, around
    start = (place + min(after, samples - 1)) % samples
    stop = start + max(1, samples - before - after)
    if stop <= samples:
        return (slice(start, stop),)
    return slice(0, stop - samples), slice(start, samples)


def _negligible_around(sizes: Array, least: Array, place: int) -> tuple[int, int]:
    """Return how many samples before a place on a circle, and from it on, are negligible."""
    turned = np.roll(sizes, -place, axis=1)
    before, after = (
        int(np.count_nonzero(np.cumsum(part, axis=1) <= least, axis=1).min())
        for part in (turned[:, ::-1], turned)
    )
    return before, after


def _pick(values: Tensor, window: Window) -> Tensor:
    """Return the samples of a window along the second axis."""
    if len(window) == 1:
        return values[:, window[0]]
    return np.concatenate([values[:, part] for part in window], axis=1)


def cheapest_order(rows: Sequence[AxisRows], box: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Return axes in the order in which their rows cost least, applied one after the other.

    With r, the share of cells that are left after an axis, and c, its cost for each cell, axis i
    goes before axis j if c_i + r_i c_j < c_j + r_j c_i: they are sorted by (r - 1) / c.

    Parameters
    ----------
    rows
        Rows of all axes.
    box, sizes
        Sizes of the data and of the answers along all axes.
    """
    steps = [Step(axis, own, slice(0, sizes[axis])) for axis, own in enumerate(rows)]
    return [step.axis for step in sorted(steps, key=lambda step: step.gain(box, len(rows)))]


@dataclass(frozen=True, eq=False)
class Step:
    """Rows that are applied along an axis.

    Attributes
    ----------
    axis, rows
        The axis, and its rows or a factor of these.
    part
        Some of the rows.
    """

    axis: int
    rows: AxisRows
    part: slice

    def gain(self, box: Sequence[int], count: int) -> float:
        """Return (r - 1) / c for a tensor of `count` axes: the least goes first.

        `box` has the sizes of the data, of which some rows take a part only.
        """
        kept = len(range(*self.part.indices(self.rows.size)))
        before = self.rows.samples if isinstance(self.rows, Dense) else box[self.axis]
        each = max(1, self.rows.operations) / self.rows.samples
        return (kept / before - 1.0) / (each * (_ALONG_LAST if self.axis == count - 1 else 1.0))


def plan_steps(
    rows: Sequence[AxisRows], box: Sequence[int], parts: Slices, axes: Sequence[int]
) -> list[Step]:
    """Return the steps in which rows of some axes cost least, applied one after the other.

    Of factored rows the first factor leaves few directions and the second makes many answers of
    them: all that lies between them is done in these directions.

    Parameters
    ----------
    rows
        Rows of all axes.
    box
        Sizes of the data along all axes.
    parts
        Some of the rows of every axis.
    axes
        The axes.
    """
    steps = []
    for axis in axes:
        own = rows[axis]
        whole = Step(axis, own, parts[axis])
        if not isinstance(own, Factored):
            steps.append(whole)
            continue
        right, left = Step(axis, own.right, slice(None)), Step(axis, own.left, parts[axis])
        in_order = right.gain(box, len(rows)) < left.gain(box, len(rows))
        steps += [right, left] if in_order else [whole]
    return sorted(steps, key=lambda step: step.gain(box, len(rows)))
