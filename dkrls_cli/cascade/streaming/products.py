"""Products of small matrices with many fibres of a tensor, in the precision of the tensor."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Tensor

_SMALL = 10**6
"""Products of two numbers in a matrix product at most: BLAS libraries do small ones without copying
their factors first, which for a few rows takes as long as the product."""

_FEW = 64
"""Fibres in a matrix product at least: with fewer, one that is not small is faster."""


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


def fold(tensor: Tensor, axis: int) -> Tensor:
    """Return a tensor with all axes before one as the first, and all behind it as the last."""
    before, behind = math.prod(tensor.shape[:axis]), math.prod(tensor.shape[axis + 1 :])
    if not tensor.flags.c_contiguous:
        tensor = tensor.copy()
    return tensor.reshape(before, tensor.shape[axis], behind)


def multiply(rows: Tensor, fibres: Tensor, out: Tensor) -> None:
    """Put rows (p, m), applied to fibres (any, m, any), into `out` (any, p, any)."""
    step = _SMALL // max(1, rows.size)
    if fibres.shape[2] == 1:
        columns, flat, found = np.ascontiguousarray(rows.T), fibres[:, :, 0], out[:, :, 0]
        for part in _parts(len(flat), step):
            np.matmul(flat[part], columns, out=found[part])
        return
    for part in _parts(fibres.shape[2], step):
        np.matmul(rows, fibres[:, :, part], out=out[:, :, part])


def multiply_all(rows: Tensor, fibres: Tensor, out: Tensor) -> None:
    """Put groups of rows, each applied to fibres of its own, into `out` (any, groups, p, any).

    The rows are (groups, p, m), and the fibres (any, groups, m, any).
    """
    if fibres.shape[3] == 1:
        columns = np.ascontiguousarray(rows.swapaxes(1, 2))
        flat, found = fibres[..., 0].swapaxes(0, 1), out[..., 0].swapaxes(0, 1)
        for part in _parts(flat.shape[1], _SMALL // max(1, rows[0].size)):
            np.matmul(flat[:, part], columns, out=found[:, part])
        return
    for part in _parts(fibres.shape[3], _SMALL // max(1, rows[0].size)):
        np.matmul(rows, fibres[..., part], out=out[..., part])


def size_of_noise(length: float, shape: tuple[int, ...]) -> float:
    """Return the largest singular value of a matrix (p, m) of noise, of a length in each row.

    >>> size_of_noise(0.1, (400, 100))
    0.30000000000000004
    """
    return length * (1.0 + math.sqrt(shape[0] / shape[1]))


def _parts(size: int, step: int) -> Iterator[slice]:
    """Yield parts of an axis of at most `step` each; all of it if these would be very small."""
    step = step if step >= _FEW else max(1, size)
    return (slice(start, min(start + step, size)) for start in range(0, size, step))
