"""What the system of a grid with missing cells is nearly, in a form that is solved at once.

The system is V' M V + lambda / w, see :mod:`dkrls_cli.gaps.solve`. Cells missing here and there
make it nearly p + lambda / w, p the observed share, and dividing by that is all it takes. A mask
that stays (land, dead sensors) is another matter: every smooth direction that fits into it is as
good as unobserved. There the mask is taken for a product s(x) r(t) of what is observed along the
other axes and along one, for which the system has an eigenbasis: that of sqrt(w) V' s V sqrt(w),
for the directions of the largest w, times the same of the one axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.cascade.spectrum import ROUND_OFF, Spectrum

Singles = NDArray[np.float32]

_LASTS, _NEVER = 0.15, 0.01
"""A mask lasts: share of its variance that is between fibres, share of fibres never observed."""

_DIRECTIONS = (800, 1500)
"""Directions across a lasting mask that are solved for: they factorise in a moment."""

_NO_USE = 0.01
"""Directions with w below this share of the ridge are as good without."""


@dataclass(frozen=True, eq=False)
class Lasting:
    """The inverse of the system for a mask s(x) r(t), on the smoothest directions across x.

    Attributes
    ----------
    axis
        That of t.
    places
        Indices of the directions, one vector per axis of x.
    across, along
        sqrt(w) U of the axes of x together and of t. In single precision, which is ample for what
        is but nearly the inverse, and half the memory.
    inverse
        1 / (mu nu + lambda), mu and nu the eigenvalues that belong to U.
    """

    axis: int
    places: tuple[Indices, ...]
    across: Singles
    along: Singles
    inverse: Singles

    def solve(self, left: Array, result: Array) -> None:
        """Set the directions of the result that this is made for, from those of a residual."""
        part = np.moveaxis(left, self.axis, -1)[self.places]
        size = float(np.linalg.norm(part)) or 1.0
        part /= size
        modes = self.across.T @ part.astype(np.float32) @ self.along
        modes *= self.inverse
        np.multiply(self.across @ modes @ self.along.T, size, out=part)
        np.moveaxis(result, self.axis, -1)[self.places] = part


def lasting(
    spectra: Sequence[Spectrum], observed: Mask, ridge: float, most: int | None = None
) -> Lasting | None:
    """For a mask that lasts along an axis, if there is one that does.

    It has as many directions as keep it below the memory of the grid, or `most`.
    """
    axis = lasting_axis(observed)
    largest = math.prod(spectrum.values[0] for spectrum in spectra)
    if axis is None or ridge < ROUND_OFF * largest:  # its eigenbasis would be round-off
        return None
    if most is None:
        most = min(max(math.isqrt(observed.size), _DIRECTIONS[0]), _DIRECTIONS[1])
    others = [spectrum for place, spectrum in enumerate(spectra) if place != axis]
    one = spectra[axis]
    places = _smoothest([s.values for s in others], most, _NO_USE * ridge / one.values[0])
    turned = np.moveaxis(observed, axis, 0).reshape(len(one.vectors), -1)
    across, mu = _modes(observed.mean(axis=axis), others, places)
    shares = turned.mean(axis=1) / turned.mean()
    along, nu = _modes(shares, [one], (np.arange(one.rank),))
    inverse = 1.0 / (np.multiply.outer(mu, nu) + ridge)
    return Lasting(axis, places, across, along, inverse.astype(np.float32))


def _smoothest(values: Sequence[Array], most: int, least: float) -> tuple[Indices, ...]:
    """Indices of the directions of the largest products of eigenvalues; one at least."""
    products = reduce(np.multiply.outer, values)
    count = min(most, max(1, int(np.count_nonzero(products > least))))
    largest = np.sort(np.argpartition(products.ravel(), -count)[-count:])
    return np.unravel_index(largest, products.shape)


def _modes(
    density: Array, spectra: Sequence[Spectrum], places: tuple[Indices, ...]
) -> tuple[Singles, Array]:
    """sqrt(w) U and mu, of sqrt(w) V' s V sqrt(w) = U diag(mu) U' for some directions.

    The first axis is summed over before the others, for all pairs of its directions.
    """
    first, firsts = spectra[0].vectors, places[0]
    roots = [np.sqrt(s.values)[p] for s, p in zip(spectra, places, strict=True)]
    root = reduce(np.multiply, roots)
    rest = np.broadcast_to(root, (1, root.size))
    for spectrum, place in zip(spectra[1:], places[1:], strict=True):
        columns = spectrum.vectors[:, place]
        rest = (rest[:, None] * columns).reshape(-1, root.size)
    system = np.empty((root.size, root.size))
    for direction in np.unique(firsts):
        weights = (first * first[:, [direction]]).T @ density.reshape(len(first), -1)
        mine = firsts == direction
        system[mine] = rest[:, mine].T @ (weights[firsts].T * rest)
    mu, u = np.linalg.eigh(system)
    del system
    u *= root[:, None]
    return u.astype(np.float32), np.maximum(mu, 0.0)


def lasting_axis(observed: Mask) -> int | None:
    """The axis along which the mask lasts most, if it does along any.

    It does where some cells are missing all along it, or where the observed share of its fibres
    varies more than that of cells missing at random.
    """
    share = float(observed.mean())
    spread = []
    for axis, size in enumerate(observed.shape):
        density = observed.mean(axis=axis)
        by_chance = 1.0 / size
        lasts = (float(density.var()) / (share * (1 - share)) - by_chance) / (1 - by_chance + 1e-9)
        never = float(np.mean(density == 0))
        spread.append(lasts if lasts > _LASTS or never > _NEVER else 0.0)
    best = int(np.argmax(spread))
    return best if observed.ndim > 1 and spread[best] > 0 else None
