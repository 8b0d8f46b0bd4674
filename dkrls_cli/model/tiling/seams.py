"""Seams: how far tiles differ from each other where they meet, in units of the error bar."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Array

ALLOWED, FARTHEST = 0.1, 0.5
"""Differences that are allowed, in units of the error bar: root mean square of a seam, and of a
single cell."""


@dataclass(frozen=True)
class Seams:
    """Differences of neighbouring tiles at the cells that both have answers for.

    Attributes
    ----------
    count
        Number of cells compared.
    squares
        Sum of squares, in units of the error bar.
    worst
        Largest root mean square of one seam.
    largest
        Largest difference of a cell.
    """

    count: int = 0
    squares: float = 0.0
    worst: float = 0.0
    largest: float = 0.0

    @property
    def rms(self) -> float:
        """Root mean square over all seams."""
        return math.sqrt(self.squares / self.count) if self.count else 0.0

    @property
    def fit(self) -> bool:
        """Whether tiles fit together at every seam."""
        return self.worst <= ALLOWED and self.largest <= FARTHEST

    def add(self, one: Array, other: Array, bars: Array) -> Seams:
        """Return these with another seam: answers of two tiles (n,), NaN where there is none.

        Examples
        --------
        >>> one, other = np.array([1.0, 2.0]), np.array([1.5, np.nan])
        >>> Seams().add(one, other, np.array([2.0, 2.0])).worst
        0.25
        """
        known = ~np.isnan(one) & ~np.isnan(other)
        if not known.any():
            return self
        ratios = np.abs(one - other)[known] / bars[known]
        squares = float(ratios @ ratios)
        rms, largest = math.sqrt(squares / ratios.size), float(ratios.max())
        return Seams(
            self.count + ratios.size,
            self.squares + squares,
            max(self.worst, rms),
            max(self.largest, largest),
        )
