"""Rows of one level, split into what is near them and what few sums tell of everything else.

Rows that smooth noise away are wide: their entries fall off slowly, and no window is narrow. But
what lies far from a row has a part in it through few numbers only. A Matern kernel with n
derivatives is a Markov process of n + 1 states, so that all samples on one side of a coordinate
enter through these states; Gaussians come close to that. So the samples are cut into *blocks*, and

    rows x = near x + far (sums x),

where `near` has the entries of every row in the block that it lies in, `sums` a few sums of the
samples of every block, and `far` how much each row has of every sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array, Indices, Tensor
from dkrls_cli.cascade.streaming.products import Both, fold, multiply, size_of_noise
from dkrls_cli.threads import one_blas_thread

WIDTHS = (64, 128, 256)
"""Samples of a block, to choose from: narrow ones have fewer entries near, and more sums."""


@dataclass(frozen=True, eq=False)
class Near:
    """Rows that lie in one block.

    Attributes
    ----------
    start
        The first of them; the others follow it.
    block
        The samples of the block.
    rows
        Their entries there (rows, samples of the block).
    """

    start: int
    block: slice
    rows: Both


@dataclass(frozen=True, eq=False)
class Split:
    """Rows as what is near them, and few sums of every block.

    Attributes
    ----------
    blocks
        The samples of every block.
    sums
        The weights of the sums of every block (sums, samples of the block).
    far
        How much each row has of all sums (size, all sums).
    near
        The rows by the blocks in which they lie, in the order of the rows.
    """

    blocks: tuple[slice, ...]
    sums: tuple[Both, ...]
    far: Both
    near: tuple[Near, ...]

    @classmethod
    def build(cls, rows: Array, width: int, negligible: float, noise: float = 0.0) -> Split:
        """Return rows (size, samples) with sums of blocks.

        Parameters
        ----------
        rows
            The rows.
        width
            Samples of a block.
        negligible
            Length of what is left out of a row, as a vector, beside that of the row.
        noise
            Length of the noise in every row; if it is more than what is negligible, it is left out
            as well.
        """
        samples = rows.shape[1]
        starts = range(0, samples, width)
        blocks = tuple(slice(start, min(start + width, samples)) for start in starts)
        own = _own_blocks(rows, blocks)
        sizes = _lengths(rows) if noise <= negligible else np.ones((len(rows), 1))
        sums, far = [], []
        for place, block in enumerate(blocks):
            away = own != place
            entries = rows[:, block]
            least = negligible
            if noise > negligible:
                least = size_of_noise(noise, entries[away].shape)
            weights = _directions(entries[away] / sizes[away], least / math.sqrt(len(blocks)))
            sums.append(Both.of(weights))
            far.append(np.where(away[:, None], entries @ weights.T, 0.0))
        near = tuple(
            Near(start, blocks[own[start]], Both.of(rows[start:stop, blocks[own[start]]]))
            for start, stop in _runs(own)
        )
        return cls(blocks, tuple(sums), Both.of(np.concatenate(far, axis=1)), near)

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.far.double)

    @property
    def samples(self) -> int:
        """Number of samples of the axis."""
        return int(self.blocks[-1].stop)

    @property
    def operations(self) -> int:
        """Products of two numbers for every fibre."""
        near = sum(own.rows.double.size for own in self.near)
        return near + self.far.double.size + sum(weights.double.size for weights in self.sums)

    def window(self, part: slice) -> slice:
        """Return all samples."""
        return slice(0, self.samples)

    def apply(self, tensor: Tensor, axis: int, part: slice) -> Tensor:
        """Return some of the rows applied to all samples along an axis."""
        start, stop, _ = part.indices(self.size)
        fibres = fold(tensor, axis)
        result: Tensor = np.empty((len(fibres), stop - start, fibres.shape[2]), tensor.dtype)
        multiply(self.far.as_type(tensor.dtype)[start:stop], self._add_up(fibres), result)
        for own, rows, block in self._pieces(start, stop, tensor.dtype):
            near: Tensor = np.empty((len(fibres), len(rows), fibres.shape[2]), tensor.dtype)
            multiply(rows, fibres[:, block], near)
            result[:, own] += near
        return result.reshape(*tensor.shape[:axis], stop - start, *tensor.shape[axis + 1 :])

    def _add_up(self, fibres: Tensor) -> Tensor:
        """Return the sums of all blocks (any, sums, any) of fibres (any, samples, any)."""
        count = self.far.double.shape[1]
        result: Tensor = np.empty((len(fibres), count, fibres.shape[2]), fibres.dtype)
        start = 0
        for block, weights in zip(self.blocks, self.sums, strict=True):
            stop = start + len(weights.double)
            multiply(weights.as_type(fibres.dtype), fibres[:, block], result[:, start:stop])
            start = stop
        return result

    def _pieces(
        self, start: int, stop: int, dtype: np.dtype[Any]
    ) -> Iterator[tuple[slice, Tensor, slice]]:
        """Yield rows from `start` to `stop` block by block: their place, matrix and block."""
        for own in self.near:
            first, end = max(start, own.start), min(stop, own.start + len(own.rows.double))
            if first < end:
                rows = own.rows.as_type(dtype)[first - own.start : end - own.start]
                yield slice(first - start, end - start), rows, own.block


def _own_blocks(rows: Array, blocks: tuple[slice, ...]) -> Indices:
    """Return the block in which each row has its largest entries."""
    lengths = [_lengths(rows[:, block])[:, 0] for block in blocks]
    return np.asarray(np.argmax(lengths, axis=0), np.intp)


def _lengths(rows: Array) -> Array:
    """Return the length of every row as a vector (size, 1); 1 of rows of zeros."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(lengths > 0, lengths, 1.0)


def _directions(rows: Array, least: float) -> Array:
    """Return directions (r, samples) outside of which no row is longer than `least`."""
    if not len(rows):
        return rows
    with one_blas_thread():
        _, sizes, vectors = np.linalg.svd(np.linalg.qr(rows, mode="r"), full_matrices=False)
    return np.asarray(vectors[: int(np.count_nonzero(sizes > least))])


def _runs(own: Indices) -> Iterator[tuple[int, int]]:
    """Yield the first and the last row, exclusive, of every run of rows in the same block."""
    changes = np.flatnonzero(np.diff(own)) + 1
    return pairwise([0, *changes.tolist(), own.size])
