"""Tensors: products along their axes, contraction at points, and bases of their fibres.

A *fibre* of a tensor is the vector along one axis at fixed indices of all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import AT_ONCE, Array, Indices, Slices, Tensor, blocks
from dkrls_cli.threads import one_blas_thread


class Rows(Protocol):
    """Rows (p, m) that can be applied and cut like a matrix, but are not stored as one."""

    @property
    def ndim(self) -> int:
        """2, as of a matrix."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def __getitem__(self, part: slice) -> Rows:
        """Return some of the rows."""

    def __matmul__(self, fibres: Array) -> Array:
        """Return the products (p, n) with fibres (m, n)."""


# What to do along one axis: apply a matrix or rows (2-D), take indices (1-D), or nothing.
Operator = NDArray[Any] | Rows | None

# Numbers per block of points in `contract`: half a megabyte, which stays in the cache.
_BLOCK_NUMBERS = 2**16

# Points per block of `contract` that make its matrix products worth while.
_FEW_POINTS = 128

# Numbers per block of points in `contract` at most, unless one point has more: 64 MB.
_MOST_NUMBERS = 2**23

# Singular values below this share of the largest are round-off of the data.
_DATA_ROUND_OFF = 1e-14


# Samples of an axis at most that count for the width of its basis: longer ones are kept in samples
# unless they span as little as these would, so that looking for a basis costs O(m).
_WIDEST = 2048


def along(tensor: Tensor, axis: int, matrix: Tensor | Rows, less: float = 0.0) -> Array:
    """Return the tensor with a matrix (p, m) applied to every fibre along an axis of length m.

    Both may be stored in single precision; the product is not. `less` is taken off every number of
    the tensor first. Neither makes a copy of a large tensor.
    """
    if not isinstance(matrix, np.ndarray):
        return along_map(tensor, axis, matrix.__matmul__, less)
    matrix = np.asarray(matrix, np.float64)
    before, m, after = _fold(tensor.shape, axis)
    fibres = tensor.reshape(before, m, after)
    if less == 0 and fibres.dtype == np.float64:
        product = cast(Array, multiply_fibres(fibres, matrix))
    else:
        product = np.empty((before, matrix.shape[0], after))
        for outer, inner in _columns(before, m, after):
            part = np.subtract(fibres[outer, :, inner], less, dtype=np.float64)
            product[outer, :, inner] = multiply_fibres(part, matrix)
    return product.reshape(*tensor.shape[:axis], matrix.shape[0], *tensor.shape[axis + 1 :])


def multiply_fibres(fibres: Tensor, matrix: Tensor) -> NDArray[Any]:
    """Return a matrix (p, m) applied along the middle axis of fibres (before, m, after).

    The product has the precision of both.
    """
    after = fibres.shape[2]
    if after == 1:
        return np.asarray((fibres[:, :, 0] @ matrix.T)[:, :, None])
    if after < 8:  # too narrow for one product per leading index: one product for all of them
        return np.tensordot(fibres, matrix, (1, 1)).swapaxes(1, 2)
    return np.asarray(np.matmul(matrix, fibres))


def _columns(before: int, m: int, after: int) -> Iterator[Slices]:
    """Yield parts of the outer axes of fibres (before, m, after), each of a few million numbers."""
    return blocks((before, after), max(1, AT_ONCE // max(m, 1)))


def along_map(
    tensor: Tensor, axis: int, function: Callable[[Array], Array], less: float = 0.0
) -> Array:
    """Return the tensor with a function (m, n) -> (p, n) applied to its fibres along an axis.

    `less` is taken off every number of the tensor first.
    """
    first = np.moveaxis(tensor, axis, 0)
    fibres = np.asarray(first.reshape(first.shape[0], -1), np.float64)
    result = function(fibres - less if less else fibres)
    return np.moveaxis(result.reshape(-1, *first.shape[1:]), 0, axis)


def apply(tensor: Tensor, operators: Sequence[Operator], less: float = 0.0) -> Array:
    """Apply one operator along each axis, those that shrink it most first; return a new array.

    `less` is taken off every number of the tensor first.
    """
    result = tensor
    active = {
        axis: operator
        for axis, operator in enumerate(operators)
        if operator is not None and not _takes_all(operator, tensor.shape[axis])
    }
    for axis in sorted(active, key=lambda axis: len(active[axis]) / tensor.shape[axis]):
        operator = active[axis]
        if isinstance(operator, np.ndarray) and operator.ndim == 1:
            result = result.take(operator, axis)
        else:
            result, less = along(result, axis, operator, less), 0.0
    if less:
        return np.subtract(result, less, dtype=np.float64)
    return np.array(result, np.float64, copy=True if result is tensor else None)


def contract(
    tensor: Tensor,
    count: int,
    rows: Callable[[int, slice], Tensor],
    looked_up: Mapping[int, Indices],
    widest: int,
    spread: Mapping[int, NDArray[Any] | Rows] = MappingProxyType({}),
    leading: tuple[int, Callable[[Array], Callable[[slice], Array]]] | None = None,
) -> Array:
    """Return the tensor contracted, at each of `count` points, with one row per axis.

    Axes in `looked_up` need no row but an index per point; they go first, as one gather. For any
    other axis `rows(axis, part)` returns the rows (points, size) of some of the points. Without an
    axis to look up, the longest goes first, as one matrix product for a block of points. The rest
    per point is small, and blocks of points keep it in the cache: `widest` is the length of the
    longest row on the way.

    A long axis is `leading`: it goes before all others, and comes with a function that is given its
    fibres (size, n), and returns a function from some of the points to their products (points, n).

    Axes in `spread` are not contracted: their operator is applied, the same at every point, before
    the points if that makes the tensor shorter, and after them otherwise. The result has shape
    (count,) and then one axis for each of them, in their order in the tensor.
    """
    kept = sorted(spread)
    shape = (count, *(len(spread[axis]) for axis in kept))
    if 0 in shape:
        return np.empty(shape)
    active = {a: op for a, op in spread.items() if not _takes_all(op, tensor.shape[a])}
    early = {axis: op for axis, op in active.items() if len(op) <= tensor.shape[axis]}
    late = {axis: op for axis, op in active.items() if axis not in early}
    if early:
        tensor = apply(tensor, [early.get(axis) for axis in range(tensor.ndim)])
    single = [axis for axis in range(tensor.ndim) if axis not in spread]
    first = list(looked_up) or [max(single, key=lambda axis: tensor.shape[axis])]
    if leading is not None:
        first = [leading[0]]
    others = [axis for axis in single if axis not in first]
    sizes, ends = ([tensor.shape[axis] for axis in axes] for axes in (first, kept))
    unfolded = tensor.transpose(*first, *others, *kept).reshape(math.prod(sizes), -1)
    answers = np.empty((count, math.prod(ends)))
    if leading is not None:
        begin = leading[1](np.asarray(unfolded, np.float64))
        block = max(1, _MOST_NUMBERS // unfolded.shape[1])
    else:
        begin = _begin(unfolded, sizes, partial(rows, first[0]), looked_up)
        block = _block_of_points(unfolded.shape[1], widest)
    for start in range(0, count, block):
        part = slice(start, start + block)
        left = begin(part)
        for axis in others:
            left = left.reshape(len(left), tensor.shape[axis], -1)
            if axis in looked_up:
                left = left[np.arange(len(left)), looked_up[axis][part]]
            else:
                left = np.matmul(rows(axis, part)[:, None, :], left)[:, 0, :]
        answers[part] = left
    result = answers.reshape(count, *ends)
    return apply(result, [None, *(late.get(axis) for axis in kept)]) if late else result


def _begin(
    unfolded: Tensor,
    sizes: Sequence[int],
    rows: Callable[[slice], Tensor],
    looked_up: Mapping[int, Indices],
) -> Callable[[slice], Array]:
    """Return a function that contracts the first axes at some points: a gather, or one product."""
    if not looked_up:
        return lambda part: rows(part).astype(np.float64, copy=False) @ unfolded
    places = np.ravel_multi_index(list(looked_up.values()), sizes)
    return lambda part: unfolded[places[part]].astype(np.float64, copy=False)


def _block_of_points(numbers: int, widest: int) -> int:
    """Return how many points to contract at once, each with so many numbers on the way."""
    enough = min(_FEW_POINTS, max(1, _MOST_NUMBERS // numbers))
    return max(enough, _BLOCK_NUMBERS // max(numbers, widest))


def count_points(vectors: Sequence[NDArray[Any]], spread: Collection[int]) -> int:
    """Return the number of points: the length of the vectors of axes that are not in `spread`."""
    return next(vector.size for axis, vector in enumerate(vectors) if axis not in spread)


def lay_out(vectors: Sequence[NDArray[Any]], spread: Collection[int]) -> list[NDArray[Any]]:
    """Return one vector per axis such that they broadcast to the result of `contract`.

    Those of the axes in `spread` get an axis each, all others share the first.

    >>> [v.shape for v in lay_out([np.zeros(5), np.zeros(3), np.zeros(5)], spread=[1])]
    [(5, 1), (1, 3), (5, 1)]
    """
    places = {axis: place for place, axis in enumerate(sorted(spread), 1)}
    shapes = np.ones((len(vectors), 1 + len(places)), int)
    shapes[range(len(vectors)), [places.get(axis, 0) for axis in range(len(vectors))]] = -1
    return [vector.reshape(shape) for vector, shape in zip(vectors, shapes, strict=True)]


def span(tensor: Tensor, axis: int, fibres: int | None = None) -> Array | None:
    """Return an orthonormal basis (m, r) of all fibres along an axis, if that is much smaller.

    Return None when r is above a quarter of the samples, or near the number of fibres if that is
    given: then the basis and the data in it would not be worth the change. A few fibres decide most
    often. If they do not, all fibres are seen through randomly weighted sums of them (fixed seed),
    which span the same as long as there are more sums than directions. Directions below 1e-14 of
    the largest are round-off of the data.
    """
    before, m, after = _fold(tensor.shape, axis)
    widest = min(min(m, _WIDEST) // 4, fibres or m)
    unfolded = tensor.reshape(before, m, after)
    some = np.unique(np.linspace(0, before * after - 1, widest + 8).astype(np.intp))
    if widest < 3:
        return None
    places = slice(None, None, -(-m // _WIDEST))  # some of their samples span no more than all
    few = unfolded[some // after, places, some % after].astype(np.float64)
    with one_blas_thread():
        sizes = np.asarray(np.linalg.svd(few, compute_uv=False), np.float64)
    seen = _rank(sizes)
    if seen > widest - 2:
        return None
    for width in (min(seen + 7, widest), widest):
        basis = _range(_sums(unfolded, width))
        if basis.shape[1] <= width - 2:
            return basis
    return None


def _sums(fibres: Tensor, width: int) -> Array:
    """Return randomly weighted sums (m, width) of all fibres (before, m, after)."""
    rng = np.random.default_rng(0)
    before, m, after = fibres.shape
    rows, columns = rng.random((before, width)) - 0.5, rng.random((after, width)) - 0.5
    columns = np.ones((1, width)) if after == 1 else columns
    if fibres.dtype == np.float64:
        return _weighted(cast(Array, fibres), rows, columns)
    sums = np.zeros((m, width))
    for outer, inner in _columns(before, m, after):
        part = np.asarray(fibres[outer, :, inner], np.float64)
        sums += _weighted(part, rows[outer], columns[inner])
    return sums


def _weighted(fibres: Array, rows: Array, columns: Array) -> Array:
    """Return sums (m, width) of fibres (before, m, after) with weights of the outer axes."""
    if fibres.shape[2] == 1:
        return np.asarray(fibres[:, :, 0].T @ (rows * columns))
    return np.asarray(np.einsum("ams,as->ms", np.matmul(fibres, columns), rows))


def _range(matrix: Tensor) -> Array:
    """Return an orthonormal basis of the columns without round-off; at least one direction."""
    with one_blas_thread():
        vectors, sizes, _ = np.linalg.svd(matrix.astype(np.float64), full_matrices=False)
    return np.ascontiguousarray(vectors[:, : _rank(sizes)])


def _rank(sizes: Array) -> int:
    """Return how many singular values are above round-off of the data; at least 1."""
    return max(1, int(np.count_nonzero(sizes > _DATA_ROUND_OFF * sizes[0])))


def _fold(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """Return the sizes before, along and after an axis."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def _takes_all(operator: NDArray[Any] | Rows, size: int) -> bool:
    indices = isinstance(operator, np.ndarray) and operator.ndim == 1
    return indices and np.array_equal(np.asarray(operator), np.arange(size))
