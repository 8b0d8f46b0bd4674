"""Missing cells predicted one after the other, each from its neighbours: a preconditioner.

The missing cells m of a slice solve (C^-1)_mm x_m = -(C^-1)_mo y_o, see
:mod:`dkrls_cli.gaps.refine`. Put them in an order, coarse to fine, after all observed cells, and
predict each from those of its neighbours that come before it: with weights b, and an error of
variance d. If farther cells told nothing more, then

    (C^-1)_mm = (1 - B)' D^-1 (1 - B),

where B has the weights on missing cells as its rows. They tell a little more, so that this is not
exact, but near (Vecchia's approximation), and its inverse takes two triangular solves. It depends
on the mask and on the settings, and serves all slices that have these.

The order is that of lattices of 2^k steps: first the cells of the coarsest lattice that lie so far
from data, then those of the next. The neighbours of a cell are the nearest that come before it; far
from data, they are looked for on the lattice of the cell as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.gaps.pattern import distance_to_data

NEIGHBOURS = 64
"""Cells that each one is predicted from. 40 take a quarter more iterations; 100 save another
quarter, but each then takes as much longer."""

_LOOKED_AT = 8
"""Places that are looked at for each neighbour: some come later in the order."""

_UNEVEN = 8.0
"""Largest ratio of the steps of an axis to those of all, in units of their kernels, that counts."""

AT_ONCE = 2**22
"""Numbers of all matrices that are solved at a time: 32 MB."""

_LEAST = 1e-12
"""Least ridge of a prediction, as a share of the variance: below is round-off."""


@dataclass(frozen=True)
class Side:
    """One axis of the slices.

    Attributes
    ----------
    gram
        Its Gram matrix (m, m); neighbours have neighbouring rows.
    step
        Steps from coordinate to coordinate, in units of the kernel's sigma.
    circle
        Whether the first coordinate is a neighbour of the last.
    """

    gram: Array
    step: float
    circle: bool = False


@dataclass(frozen=True, eq=False)
class SequentialSolver:
    """The approximate inverse of (C^-1)_mm.

    Attributes
    ----------
    order
        Places of the missing cells, among all of them in C order, in the order of prediction.
    variances
        d, in that order.
    solve
        Solves with 1 - B for columns, or with its transpose if the second argument is "T".
    """

    order: Indices
    variances: Array
    solve: Callable[[Array, str], Array]

    @classmethod
    def build(
        cls, missing: Mask, sides: Sequence[Side], ridge: float, neighbours: int = NEIGHBOURS
    ) -> SequentialSolver:
        """Return the solver of a mask.

        Parameters
        ----------
        missing
            True where a cell of the slices is missing.
        sides
            The axes of the slices.
        ridge
            The joint ridge.
        neighbours
            Cells that each one is predicted from.
        """
        from scipy.sparse.linalg import splu

        levels = _levels(missing)
        order = _order(missing, levels)
        cells = np.argwhere(missing)[order]
        found = _find_neighbours(missing, cells, levels[order], sides, neighbours)
        weights, variances = _predict(cells, found, sides, ridge)
        matrix = _one_less(weights, found, missing, order)
        del found, weights  # which are as large as what follows
        factor = splu(matrix, permc_spec="NATURAL", diag_pivot_thresh=0.0)
        return cls(order, variances, factor.solve)

    def __call__(self, residuals: Array) -> Array:
        """Return the approximate solution for residuals (slices, missing cells in C order)."""
        columns = np.asfortranarray(residuals.T[self.order])
        columns = self.solve(columns, "T")
        columns *= self.variances[:, None]
        result = np.empty(residuals.shape)
        result.T[self.order] = self.solve(columns, "N")
        return result


def _levels(missing: Mask) -> Indices:
    """Return the lattice of every missing cell, in C order: k of the coarsest one it belongs to."""
    far = distance_to_data(~missing)[missing]
    cells = np.argwhere(missing)
    result = np.zeros(len(cells), np.intp)
    for level in range(1, max(missing.shape).bit_length()):
        step = 2**level
        result[(cells % step == 0).all(axis=1) & (far >= step)] = level
    return result


def _order(missing: Mask, levels: Indices) -> Indices:
    """Return the order of the missing cells: coarse lattices first, from data on inwards."""
    return np.lexsort((distance_to_data(~missing)[missing], -levels))


def _find_neighbours(
    missing: Mask, cells: Indices, levels: Indices, sides: Sequence[Side], count: int
) -> Indices:
    """Return the cells that each missing cell is predicted from (cells, count), flat; -1 for none.

    They are observed, or come before it. Parameters are in the order of prediction.
    """
    rank = np.full(missing.shape, -1, np.intp)
    rank[tuple(cells.T)] = np.arange(len(cells))
    found = np.full((len(cells), count), -1, np.intp)
    held = np.zeros(len(cells), np.intp)
    stencil = _stencil(sides, _LOOKED_AT * count)
    reach = 2 * np.abs(stencil).max(axis=0)
    pairs = zip(sides, reach, missing.shape, strict=True)
    meets = any(side.circle and far >= size for side, far, size in pairs)
    for level in range(int(levels.max()) + 1):
        left = np.flatnonzero((levels >= level) & (held < count))
        for offset in stencil * 2**level:
            there = cells[left] + offset
            inside = np.ones(left.size, bool)
            for axis, (side, size) in enumerate(zip(sides, missing.shape, strict=True)):
                if side.circle:
                    there[:, axis] %= size
                else:
                    inside &= (there[:, axis] >= 0) & (there[:, axis] < size)
            own, places = left[inside], tuple(there[inside].T)
            flat = np.ravel_multi_index(places, missing.shape)
            new = rank[places] < own
            if level or meets:  # places that were met before
                new &= (found[own] != flat[:, None]).all(axis=1)
            own, flat = own[new], flat[new]
            found[own, held[own]] = flat
            held[own] += 1
            left = left[held[left] < count]
    return found


def _stencil(sides: Sequence[Side], count: int) -> Indices:
    """Return steps to neighbours (count, axes), the nearest in units of the kernels first."""
    steps = np.array([side.step for side in sides])
    steps = np.clip(steps / math.exp(float(np.log(steps).mean())), 1 / _UNEVEN, _UNEVEN)
    ball = math.pi ** (steps.size / 2) / math.gamma(steps.size / 2 + 1)
    radius = (count * float(np.prod(steps)) / ball) ** (1 / steps.size)
    reach = [math.ceil(radius / step) for step in steps]
    grid = np.stack(np.meshgrid(*[np.arange(-r, r + 1) for r in reach], indexing="ij"), axis=-1)
    offsets = grid.reshape(-1, steps.size)
    distances = ((offsets * steps) ** 2).sum(axis=1)
    return np.asarray(offsets[np.argsort(distances, kind="stable")[1 : count + 1]])


def _predict(
    cells: Indices, found: Indices, sides: Sequence[Side], ridge: float
) -> tuple[Array, Array]:
    """Return the weights of the neighbours of every cell, and the variance of the prediction."""
    shape = tuple(len(side.gram) for side in sides)
    weights, variances = np.zeros(found.shape), np.empty(len(cells))
    step = max(1, AT_ONCE // found.shape[1] ** 2)
    for start in range(0, len(cells), step):
        part = slice(start, start + step)
        known = found[part] >= 0
        there = np.unravel_index(np.where(known, found[part], 0), shape)
        here = cells[part].T
        among, toward, own = np.array(1.0), np.array(1.0), np.array(1.0)
        for side, places, place in zip(sides, there, here, strict=True):
            among = among * side.gram[places[:, :, None], places[:, None, :]]
            toward = toward * side.gram[place[:, None], places]
            own = own * side.gram[place, place]
        least = np.maximum(ridge, _LEAST * own)
        among *= known[:, :, None] & known[:, None, :]
        toward *= known
        spots = np.arange(found.shape[1])
        among[:, spots, spots] = np.where(known, among[:, spots, spots], 1.0) + least[:, None]
        weights[part] = np.linalg.solve(among, toward[:, :, None])[:, :, 0]
        explained = (weights[part] * toward).sum(axis=1)
        variances[part] = np.maximum(own + least - explained, least)
    return weights, variances


def _one_less(weights: Array, found: Indices, missing: Mask, order: Indices) -> Any:
    """Return 1 - B as a sparse matrix, in the order of prediction."""
    from scipy.sparse import csr_array, eye_array

    rank = np.full(missing.size + 1, -1, np.int32)  # the last for those that are none
    rank[np.flatnonzero(missing)[order]] = np.arange(order.size)
    columns = rank[found]
    kept = columns >= 0
    starts = np.zeros(order.size + 1, np.int32)  # as the columns, which would be widened otherwise
    np.cumsum(np.count_nonzero(kept, axis=1), out=starts[1:])
    below = csr_array((weights[kept], columns[kept], starts), (order.size, order.size))
    below = below.tocsc()
    return eye_array(order.size, format="csc") - below
