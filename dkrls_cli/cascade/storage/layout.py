"""The data of a cascade turned to its principal directions, of which the weakest are dropped.

That is the truncated higher-order singular value decomposition (De Lathauwer, De Moor and
Vandewalle, SIAM J. Matrix Anal. Appl. 21, 2000): it keeps, per axis, the directions in which the
data is largest. An axis is either kept as the full model has it, or truncated to r directions, a
frame (m, r).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import DTypeLike

from dkrls_cli.arrays import Array, Tensor
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.fit import lost_energy
from dkrls_cli.cascade.tensors import along, apply
from dkrls_cli.threads import one_blas_thread

# An axis with more coordinates than this, and more fibres, is not truncated: its basis would take
# a square matrix of that size.
_LONG = 2000

# Singular values below this share of the largest are round-off of the data.
_ROUND_OFF = 1e-14

Ranks = tuple[int, ...]
"""Directions that are stored per axis."""


@dataclass(frozen=True, eq=False)
class Layout:
    """The data of a cascade with some axes turned to their principal directions.

    Attributes
    ----------
    turned
        The full cascade with other frames. Along a turned axis the directions go from the strongest
        to the weakest, and before them the constant if a mean is taken out later.
    kept
        Per axis, whether it is as the full cascade has it, and not to be truncated.
    """

    turned: Cascade
    kept: tuple[bool, ...]

    @property
    def sizes(self) -> Ranks:
        """Directions per axis, before any is dropped."""
        return self.turned.core.shape

    def truncate(self, ranks: Ranks, dtype: DTypeLike) -> Cascade:
        """Return the cascade with the first directions per axis, stored in a type."""
        turned = self.turned
        core = turned.core[tuple(slice(rank) for rank in ranks)]
        stored: Tensor = np.ascontiguousarray(core, dtype)
        stored.setflags(write=False)
        frames = tuple(
            None if frame is None else np.ascontiguousarray(frame[:, :rank], dtype)
            for frame, rank in zip(turned.frames, ranks, strict=True)
        )
        return replace(turned, core=stored, frames=frames)

    def dropped(self, ranks: Ranks) -> float:
        """Return the share of the energy that a truncation leaves out."""
        core = self.turned.core
        return lost_energy(core, core[tuple(slice(rank) for rank in ranks)])

    def path(self, most: float) -> list[tuple[Ranks, float]]:
        """Return ranks that fall one by one, each with the root mean square of what is left out.

        The direction that goes is the one with the least energy per number that need not be stored
        without it. The path ends before more than `most` is left out.
        """
        shape, sizes = self.turned.shape, list(self.sizes)
        centred = self.turned.centred_core()
        scale = float(np.abs(centred).max()) or 1.0
        energy = np.square(centred / scale)
        steps: list[tuple[Ranks, float]] = []
        left_out = 0.0
        while (rms := scale * math.sqrt(left_out / math.prod(shape))) <= most:
            steps.append((tuple(sizes), rms))
            costs = {axis: _last_energy(energy, sizes, axis) for axis in self.shrinkable(sizes)}
            if not costs:
                break
            goes = min(costs, key=lambda axis: costs[axis] / _saved(shape, sizes, axis))
            left_out += costs[goes]
            sizes[goes] -= 1
        return steps

    def shrinkable(self, ranks: Sequence[int]) -> list[int]:
        """Return the axes that can lose a direction, the one that saves most numbers first."""
        axes = [a for a, rank in enumerate(ranks) if rank > 1 and not self.kept[a]]
        return sorted(axes, key=lambda axis: -_saved(self.turned.shape, ranks, axis))


def _saved(shape: Sequence[int], ranks: Sequence[int], axis: int) -> int:
    """Return how many numbers the last direction of an axis takes in its frame and the core."""
    return shape[axis] + math.prod(ranks) // ranks[axis]


def _last_energy(energy: Array, ranks: Sequence[int], axis: int) -> float:
    """Return the energy of the last direction of an axis among those that are left."""
    part = [slice(rank) for rank in ranks]
    part[axis] = slice(ranks[axis] - 1, ranks[axis])
    return float(energy[tuple(part)].sum())


def turn(full: Cascade, bases: Sequence[Array | None]) -> Layout:
    """Return the data of a cascade with the axes that have a basis turned to it."""
    core = apply(full.core, [None if basis is None else basis.T for basis in bases])
    frames = tuple(
        frame if basis is None else basis if frame is None else frame @ basis
        for frame, basis in zip(full.frames, bases, strict=True)
    )
    kept = tuple(basis is None for basis in bases)
    return Layout(replace(full, core=core, frames=frames, exact=False), kept)


def choose_axes(
    full: Cascade, bases: Sequence[Array | None], ranks: Ranks
) -> tuple[Array | None, ...]:
    """Return the bases of the axes that are worth truncating to these ranks, None for the others.

    Of all choices it is the one that stores least.
    """

    def count(chosen: Sequence[Array | None]) -> int:
        kept = [basis is None for basis in chosen]
        sizes = [s if k else r for s, r, k in zip(full.core.shape, ranks, kept, strict=True)]
        framed = [
            m * size
            for m, size, frame, k in zip(full.shape, sizes, full.frames, kept, strict=True)
            if frame is not None or not k
        ]
        return math.prod(sizes) + sum(framed)

    return min(product(*[[None] if b is None else [None, b] for b in bases]), key=count)


def principal_directions(full: Cascade) -> list[Array | None]:
    """Return the principal directions of every axis of a core; None for an axis too long."""
    core: Array = np.asarray(full.centred_core(), np.float64)
    bases: list[Array | None] = [None] * core.ndim
    for axis in sorted(range(core.ndim), key=lambda axis: full.core.shape[axis]):
        bases[axis] = basis = _basis(core, axis, _constant(full, axis))
        if basis is not None:
            core = along(core, axis, basis.T)
    return bases


def _constant(full: Cascade, axis: int) -> Array | None:
    """Return the direction of a constant in the core; None where no mean is taken out later."""
    if full.mean == 0:
        return None
    frame = full.frames[axis]
    ones = np.ones(full.shape[axis]) if frame is None else frame.sum(axis=0)
    return np.asarray(ones / np.linalg.norm(ones))


def _basis(core: Array, axis: int, constant: Array | None) -> Array | None:
    """Return an orthonormal basis (size, k) of the fibres along an axis, the strongest first.

    A constant goes before them, and they hold what is left beside it. The singular values come
    from a triangle and not from squares of the data, which would lose what is below 1e-8 of the
    largest. Return None for an axis that is too long.
    """
    size = core.shape[axis]
    if min(size, core.size // size) > _LONG:
        return None
    with one_blas_thread():
        triangle = _triangle(np.moveaxis(core, axis, -1).reshape(-1, size))
        if constant is not None:
            triangle = triangle - np.outer(triangle @ constant, constant)
        _, values, rows = np.linalg.svd(triangle, full_matrices=False)
        strong = rows[: max(1, int(np.count_nonzero(values > _ROUND_OFF * values[0])))].T
        if constant is None:
            return np.ascontiguousarray(strong)
        return np.linalg.qr(np.column_stack([constant, strong])[:, :size])[0]


def _triangle(rows: Array) -> Array:
    """Return R of the QR decomposition of a tall matrix (n, size), a block of rows at a time."""
    size = rows.shape[1]
    triangle = np.empty((0, size))
    for start in range(0, len(rows), 4 * size):
        block = np.concatenate([triangle, rows[start : start + 4 * size]])
        triangle = np.asarray(np.linalg.qr(block, mode="r"))
    return triangle
