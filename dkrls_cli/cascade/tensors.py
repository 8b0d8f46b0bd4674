"""Tensors: products along their axes, contraction at points, and bases of their fibres.

A *fibre* of a tensor is the vector along one axis at fixed indices of all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices, Slices, Tensor
from dkrls_cli.threads import one_blas_thread

# What to do along one axis: apply a matrix (2-D), take indices (1-D), or nothing.
Operator = NDArray[Any] | None

# Numbers per block of points in `contract`: half a megabyte, which stays in the cache.
_BLOCK_NUMBERS = 2**16

# Points per block of `contract` that make its matrix products worth while.
_FEW_POINTS = 128

# Numbers per block of points in `contract` at most, unless one point has more: 64 MB.
_MOST_NUMBERS = 2**23

# Singular values below this share of the largest are round-off of the data.
_DATA_ROUND_OFF = 1e-14


def blocks(shape: Sequence[int], cells: int) -> Iterator[Slices]:
    """Yield the blocks of a grid in C order, each of at most `cells` cells (or one).

    A block is a part of one axis, whole along the axes after it, and one index of those before.
    """
    if math.prod(shape) == 0:
        return
    inner = len(shape)
    while inner > 0 and math.prod(shape[inner - 1 :]) <= cells:
        inner -= 1
    whole = tuple(slice(0, size) for size in shape[inner:])
    if inner == 0:
        yield whole
        return
    step = max(1, cells // math.prod(shape[inner:]))
    for outer in np.ndindex(*shape[: inner - 1]):
        for start in range(0, shape[inner - 1], step):
            part = slice(start, min(start + step, shape[inner - 1]))
            yield (*(slice(i, i + 1) for i in outer), part, *whole)


def along(tensor: Tensor, axis: int, matrix: Array) -> Array:
    """Return the tensor with a matrix (p, m) applied to every fibre along an axis of length m."""
    before, m, after = _fold(tensor.shape, axis)
    fibres = tensor.reshape(before, m, after)
    if after < 8:  # too narrow for one product per leading index: one product for all of them
        product = np.tensordot(fibres, matrix, (1, 1)).swapaxes(1, 2)
    else:
        product = np.matmul(matrix, fibres)
    return product.reshape(*tensor.shape[:axis], matrix.shape[0], *tensor.shape[axis + 1 :])


def apply(tensor: Tensor, operators: Sequence[Operator]) -> Array:
    """Apply one operator along each axis, those that shrink it most first; return a new array."""
    result = tensor
    active = {
        axis: operator
        for axis, operator in enumerate(operators)
        if operator is not None and not _takes_all(operator, tensor.shape[axis])
    }
    for axis in sorted(active, key=lambda axis: len(active[axis]) / tensor.shape[axis]):
        operator = active[axis]
        matrix = operator.ndim == 2
        result = along(result, axis, operator) if matrix else result.take(operator, axis)
    return np.array(result, np.float64, copy=True if result is tensor else None)


def contract(
    tensor: Tensor,
    count: int,
    rows: Callable[[int, slice], Array],
    looked_up: Mapping[int, Indices],
    widest: int,
    spread: Mapping[int, NDArray[Any]] = MappingProxyType({}),
) -> Array:
    """Return the tensor contracted, at each of `count` points, with one row per axis.

    Axes in `looked_up` need no row but an index per point; they go first, as one gather. For any
    other axis `rows(axis, part)` returns the rows (points, size) of some of the points. Without an
    axis to look up, the longest goes first, as one matrix product for a block of points. The rest
    per point is small, and blocks of points keep it in the cache: `widest` is the length of the
    longest row on the way.

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
    others = [axis for axis in single if axis not in first]
    sizes, ends = ([tensor.shape[axis] for axis in axes] for axes in (first, kept))
    unfolded = tensor.transpose(*first, *others, *kept).reshape(math.prod(sizes), -1)
    places = np.ravel_multi_index(list(looked_up.values()), sizes) if looked_up else None
    answers = np.empty((count, math.prod(ends)))
    block = _block_of_points(unfolded.shape[1], widest)
    for start in range(0, count, block):
        part = slice(start, start + block)
        partial = rows(first[0], part) @ unfolded if places is None else unfolded[places[part]]
        for axis in others:
            row = rows(axis, part)
            partial = np.matmul(row[:, None, :], partial.reshape(*row.shape, -1))[:, 0, :]
        answers[part] = partial
    result = answers.reshape(count, *ends)
    return apply(result, [None, *(late.get(axis) for axis in kept)]) if late else result


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


def span(tensor: Tensor, axis: int) -> Array | None:
    """Return an orthonormal basis (m, r) of all fibres along an axis, if r is below m / 4.

    Return None when they span more: the data has detail in more directions than is worth a change
    of basis. A few fibres decide most often. If they do not, all fibres are seen through randomly
    weighted sums of them (fixed seed), which span the same as long as there are more sums than
    directions. Directions below 1e-14 of the largest are round-off of the data.
    """
    before, m, after = _fold(tensor.shape, axis)
    widest = m // 4
    fibres = tensor.reshape(before, m, after)
    some = np.linspace(0, before * after - 1, widest + 8).astype(np.intp)
    if widest < 3:
        return None
    with one_blas_thread():
        sizes = np.linalg.svd(
            fibres[some // after, :, some % after].astype(np.float64), compute_uv=False
        )
    seen = _rank(sizes)
    if seen > widest - 2:
        return None
    for width in (min(seen + 7, widest), widest):
        basis = _range(_sums(fibres, width))
        if basis.shape[1] <= width - 2:
            return basis
    return None


def _sums(fibres: Tensor, width: int) -> Array:
    """Return randomly weighted sums (m, width) of all fibres (before, m, after)."""
    rng = np.random.default_rng(0)
    before, _, after = fibres.shape
    rows, columns = rng.random((before, width)) - 0.5, rng.random((after, width)) - 0.5
    if after == 1:
        return np.asarray(fibres[:, :, 0].T @ rows)
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


def _takes_all(operator: NDArray[Any], size: int) -> bool:
    return operator.ndim == 1 and np.array_equal(operator, np.arange(size))
