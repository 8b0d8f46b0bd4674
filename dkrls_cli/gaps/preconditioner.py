"""A preconditioner for grids where the same cells are missing all along one axis.

The system is V' M V + lambda / w, see :mod:`dkrls_cli.gaps.solve`. If cells are missing at random
it is nearly p + lambda / w, with p the observed share, and dividing by that is enough. A mask that
lasts along an axis (land, dead sensors) is different: smooth directions that fit into the masked
region are hardly observed at all. For such a mask the preconditioner replaces M by a product
s(x) r(t) of the observed share at each place x on the other axes and the relative share at each
coordinate t of the one axis. That system has an eigenbasis: the eigenvectors of sqrt(w) V' s V
sqrt(w), for the directions x of largest w, times those of the same matrix for t.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.cascade.spectrum import ROUND_OFF
from dkrls_cli.gaps.coarse import decompose_in_place, largest_places, masked_gram
from dkrls_cli.gaps.field import Field

Singles = NDArray[np.float32]
"""Single precision: ample for an approximate inverse, and half the memory."""

_LASTS = 0.15
"""Share of a mask's variance that lies between fibres, above which it lasts; 0 if at random."""

_NEVER = 0.01
"""Share of fibres without an observed cell, above which a mask lasts however little it varies."""

_SIZES = (800, 1100, 1500, 2200)
"""Numbers of directions across a lasting mask to choose from: decomposed in 0.1 to 2 s."""

_STEPS, _STEPS_A_ROOT = 75.0, 1.7
"""Iterations of a solve whatever the directions, and per root of the ratio they leave; measured."""

_DECOMPOSING, _DEARER = 9.0, 0.75
"""Operations of an eigendecomposition per n^3, and cost of one in an iteration against these.

Products of an iteration are thin, but mostly in single precision.
"""

_NO_USE = 0.01
"""Directions whose w is below this share of the ridge are solved as well without."""


@dataclass(frozen=True, eq=False)
class ProductPreconditioner:
    """The inverse of the system for a mask s(x) r(t), on the smoothest directions across x.

    Attributes
    ----------
    places
        Indices of the directions, one vector per axis of x.
    spots
        Where their coefficients lie among all, flat: a row for each direction, a column for each t.
    across, along
        sqrt(w) U for the axes of x together and for t.
    inverse
        1 / (mu nu + lambda), with mu and nu the eigenvalues that belong to U.
    """

    places: tuple[Indices, ...]
    spots: Indices
    across: Singles
    along: Singles
    inverse: Singles

    def solve(self, left: Array, result: Array) -> None:
        """Overwrite the directions of `result` that this covers with the solution for `left`."""
        part = left.reshape(-1).take(self.spots)
        size = math.sqrt(float(np.vdot(part, part))) or 1.0
        part /= size
        modes = self.across.T @ part.astype(np.float32) @ self.along
        modes *= self.inverse
        np.multiply(self.across @ modes @ self.along.T, size, out=part)
        result.reshape(-1)[self.spots] = part


def build_preconditioner(
    field: Field, observed: Mask, ridge: float, most: int | None = None
) -> ProductPreconditioner | None:
    """Return a preconditioner for a mask that lasts along an axis, or None for any other mask.

    Parameters
    ----------
    field
        The field on the grid. Its variances along the axis must be a factor of all others: of a
        group, no axis is one along which a mask is taken to last.
    observed
        True where a cell has a value.
    ridge
        The joint ridge.
    most
        Number of directions across the mask. By default as many as are worth their time.
    """
    axis = lasting_axis(observed)
    largest = float(field.variances.max())
    if axis is None or axis in field.grouped or ridge < ROUND_OFF * largest:  # then round-off
        return None
    own = field.axis_of(axis)
    others, one = _split(field.variances, own)
    if most is None:
        most = count_directions(others, one, field.operations, ridge, observed.size)
    places = largest_places(others, most, _NO_USE * ridge / one.max())
    none = np.zeros(places[0].size, np.intp)
    bases, columns = field.factors((*places[:own], none, *places[own:]))
    basis = bases.pop(axis)
    del columns[axis]
    turned = np.moveaxis(observed, axis, 0).reshape(observed.shape[axis], -1)
    across, mu = _modes(observed.mean(axis=axis), bases, columns, np.sqrt(others[places]))
    shares = turned.mean(axis=1) / turned.mean()
    along, nu = _modes(shares, [basis], [np.arange(one.size)], np.sqrt(one))
    inverse = 1.0 / (np.multiply.outer(mu, nu) + ridge)
    spots = _lay_out(places, one.size, own, field.variances.shape)
    return ProductPreconditioner(places, spots, across, along, inverse.astype(np.float32))


def _lay_out(places: Sequence[Indices], size: int, axis: int, shape: tuple[int, ...]) -> Indices:
    """Return the flat places of all coefficients of some directions (n, size) across an axis."""
    across = [place[:, None] for place in places]
    return np.ravel_multi_index((*across[:axis], np.arange(size), *across[axis:]), shape)


def count_directions(others: Array, one: Array, operations: float, ridge: float, cells: int) -> int:
    """Return the number of directions across a lasting mask for which a solve takes least time.

    Parameters
    ----------
    others, one
        Variances of the directions across the mask, and along the axis.
    operations
        Operations of a product with the system.
    ridge
        The joint ridge.
    cells
        Cells of the grid. A matrix of the directions has at most four times as many numbers, or
        those of the fewest directions.
    """
    sizes = [size for size in _SIZES if size <= max(_SIZES[0], 2 * math.isqrt(cells))]
    ordered = np.sort(others, axis=None)[::-1]
    left = [float(ordered[size] * one.max()) if size < ordered.size else 0.0 for size in sizes]
    costs = [
        (_STEPS + _STEPS_A_ROOT * math.sqrt(rest / ridge))
        * (_DEARER * operations + 2.0 * size**2 * one.size)
        + _DECOMPOSING * size**3
        for size, rest in zip(sizes, left, strict=True)
    ]
    return sizes[int(np.argmin(costs))]


def _split(variances: Array, axis: int) -> tuple[Array, Array]:
    """Return variances as a product: those of all other axes, and those of one."""
    turned = np.moveaxis(variances, axis, -1)
    peak = np.unravel_index(int(np.argmax(turned)), turned.shape)
    one = turned[peak[:-1]]
    return turned[..., peak[-1]] / one[peak[-1]], one


def _modes(
    density: Array, bases: Sequence[Array], places: Sequence[Indices], root: Array
) -> tuple[Singles, Array]:
    """Return sqrt(w) U and mu of sqrt(w) V' s V sqrt(w) = U diag(mu) U' for some directions."""
    system = masked_gram(density, bases, places)
    system *= root
    system *= root[:, None]
    mu, u = decompose_in_place(system)
    u *= root[:, None]
    return u.astype(np.float32), np.maximum(mu, 0.0)


def lasting_axis(observed: Mask) -> int | None:
    """Return the axis along which a mask lasts most, or None if it lasts along no axis.

    A mask lasts along an axis if some fibres along it have no observed cell, or if the observed
    share of its fibres varies more than it would with cells missing at random.
    """
    if observed.all():
        return None
    share = float(observed.mean())
    spread = []
    for axis, size in enumerate(observed.shape):
        density = observed.mean(axis=axis)
        by_chance = 1.0 / size
        lasts = (float(density.var()) / (share * (1 - share)) - by_chance) / (1 - by_chance + 1e-9)
        never = float(np.mean(density == 0))
        spread.append(lasts if lasts > _LASTS or never > _NEVER else 0.0)
    best = int(np.argmax(spread))
    return best if spread[best] > 0 else None
