"""Squared errors of left-out slices of one level, slice by slice: kernels and splines compared.

Only inner slices or blocks are compared. Leaving out the outermost ones tests extrapolation, which
is no ground to choose between interpolations: beyond its ends a spline goes on straight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.splines.pieces import Piece, piecewise_left_out
from dkrls_cli.tuning.spectra import SpectrumCache

FIBRES = 512
"""Fibres at most by whose inner slices a few candidates are compared."""

FEW = 3
"""Slices or blocks up to which the outermost ones are compared as well: there are no others."""


@dataclass(frozen=True, eq=False)
class Slices:
    """The slices of a level in rising order, and the blocks that are left out.

    Attributes
    ----------
    coordinates
        Coordinates of the slices, rising (m,).
    data
        Fibres along the level, as columns (m, n).
    blocks
        Places of the slices that are left out together; None: one by one.
    """

    coordinates: Array
    data: Array
    blocks: Sequence[Indices] | None = None

    @classmethod
    def of(cls, coordinates: Array, data: Array, folds: int | None, most: int = FIBRES) -> Slices:
        """Return the slices of a level in any order, with `most` fibres at most."""
        order = np.argsort(coordinates)
        step = -(-data.shape[1] // most)
        count = min(folds or order.size, order.size)
        blocks = None if count == order.size else np.array_split(np.arange(order.size), count)
        return cls(coordinates[order], data[order, ::step], blocks)

    def thinned(self, start: int) -> Slices:
        """Return every second slice, to be left out one by one."""
        return Slices(self.coordinates[start::2], self.data[start::2])

    def spline_errors(self, family: str, pieces: tuple[Piece, ...] = ()) -> Array:
        """Return the mean square errors of a spline, one for each inner slice that is left out."""
        if (family, pieces) not in self._known:
            self._known[family, pieces] = self.spline_cells(family, pieces).mean(axis=1)
        return self._known[family, pieces]

    def spline_cells(self, family: str, pieces: tuple[Piece, ...] = ()) -> Array:
        """Return the squared errors of a spline in the cells of inner slices (slices, n)."""
        few = self.coordinates.size <= FEW
        rows = piecewise_left_out(family, pieces, self.coordinates, self.blocks, ends=few)
        return self._inner_squares(rows @ self.data - self.data)

    @cached_property
    def _known(self) -> dict[tuple[str, tuple[Piece, ...]], Array]:
        """The errors of splines that have been computed so far."""
        return {}

    def kernel_cells(self, kernel: Kernel, ridge: float, spectra: SpectrumCache) -> Array:
        """Return the squared errors of a kernel in the cells of inner slices (slices, n)."""
        spectrum = spectra.of(kernel, self.coordinates).solvable(ridge)
        missed = spectrum.vectors @ spectrum.solve(ridge, self.data)
        if self.blocks is None:
            missed /= spectrum.inverse_diagonal(ridge)[:, None]
        for block in self.blocks or ():
            own = spectrum.inverse(ridge, block)[:, block]
            missed[block] = np.linalg.pinv(own, hermitian=True) @ missed[block]
        return self._inner_squares(missed)

    def _inner_squares(self, missed: Array) -> Array:
        """Return the squares of what is missed of inner slices, or of slices in inner blocks.

        None is below the rounding of the data: errors that small are equal.
        """
        numbers = np.finfo(np.float64)
        rounding = max(float(numbers.eps * np.abs(self.data).max()) ** 2, float(numbers.tiny))
        return np.asarray(np.maximum(missed[self._inner] ** 2, rounding))

    @property
    def inner_coordinates(self) -> Array:
        """Coordinates of inner slices, or of slices in inner blocks."""
        return self.coordinates[self._inner]

    @property
    def _inner(self) -> slice:
        """The inner slices, or those in inner blocks."""
        if self.blocks is None:
            return slice(1, -1) if self.coordinates.size > FEW else slice(None)
        if len(self.blocks) > FEW:
            return slice(len(self.blocks[0]), -len(self.blocks[-1]))
        return slice(None)


@dataclass(frozen=True)
class Ratio:
    """Squared errors in the same cells of one candidate, relative to those of another.

    Attributes
    ----------
    mean
        Ratio of the means over all cells: where errors are large counts most.
    typical
        Geometric mean of the ratios of all slices: every slice counts alike.
    cells
        Geometric mean of the ratios of all cells: a fibre with large errors in all slices counts no
        more than others. Infinite if it is not known.
    """

    mean: float
    typical: float
    cells: float = math.inf

    @classmethod
    def of(cls, one: Array, other: Array) -> Ratio:
        """Return the ratio of squared errors in the cells of slices (slices, n)."""
        typical = np.mean(np.log(one.mean(axis=1)) - np.log(other.mean(axis=1)))
        cells = np.mean(np.log(one) - np.log(other))
        return cls(float(one.mean() / other.mean()), float(np.exp(typical)), float(np.exp(cells)))

    @property
    def both(self) -> float:
        """The geometric mean of the means of all cells and of typical slices."""
        return float(np.sqrt(self.mean * self.typical))
