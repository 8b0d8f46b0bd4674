"""How often error bars hold the truth: nominal against observed coverage, and standardised errors.

A standardised error z is the error of an answer over its standard error. If the error bars are
right, z has the standard normal distribution: half of all cells have abs(z) below 0.674.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from dkrls_cli.arrays import Array, Indices, blocks

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Probabilities of the central intervals whose coverage is counted."""

EDGES: Array = np.linspace(-5.0, 5.0, 41)
"""Edges of the bins of z. The outermost bins also hold what lies beyond them."""

# Cells that are counted at a time: temporary arrays of 8 MB.
_BLOCK = 2**20

# Half widths of the intervals, in standard deviations.
_WIDTHS: Array = np.array([NormalDist().inv_cdf((1 + level) / 2) for level in LEVELS])


@dataclass(frozen=True, eq=False)
class Calibration:
    """Counts of standardised errors, which add up over parts of a grid and over hold-outs.

    Attributes
    ----------
    inside
        Number of cells within each interval of :data:`LEVELS`.
    bins
        Number of cells in each bin of z, see :data:`EDGES`.
    count
        Number of all cells: those whose truth is known and whose variance is not 0.
    squares
        Sum of the squares of z.
    """

    inside: Indices
    bins: Indices
    count: int
    squares: float

    @classmethod
    def of(cls, truth: ArrayLike, answers: ArrayLike, variance: ArrayLike) -> Calibration:
        """Count the standardised errors of answers.

        Parameters
        ----------
        truth
            True values, NaN where they are not known.
        answers, variance
            Answers for the same cells, and their variances. Cells of variance 0, which are passed
            through, have no band and do not count.

        Returns
        -------
        Calibration
            The counts.

        Examples
        --------
        >>> Calibration.of([0.0, 0.0], [1.0, 2.0], [1.0, 1.0]).observed[-3:].tolist()
        [0.5, 0.5, 1.0]
        """
        t, a, v = (np.asarray(each, np.float64) for each in (truth, answers, variance))
        found = cls(np.zeros(_WIDTHS.size, np.intp), np.zeros(EDGES.size - 1, np.intp), 0, 0.0)
        for part in blocks(t.shape, _BLOCK):
            known = np.isfinite(t[part]) & (v[part] > 0)
            missed = a[part][known] - t[part][known]
            found += cls._of_standardised(missed / np.sqrt(v[part][known]))
        return found

    @classmethod
    def _of_standardised(cls, z: Array) -> Calibration:
        """Count standardised errors (n,)."""
        narrowest = np.searchsorted(_WIDTHS, np.abs(z))  # the interval that just holds the truth
        inside = np.cumsum(np.bincount(narrowest, minlength=_WIDTHS.size)[: _WIDTHS.size])
        bins, _ = np.histogram(np.clip(z, EDGES[0], EDGES[-1]), EDGES)
        return cls(inside, bins, z.size, float(z @ z))

    def __add__(self, other: Calibration) -> Calibration:
        return Calibration(
            self.inside + other.inside,
            self.bins + other.bins,
            self.count + other.count,
            self.squares + other.squares,
        )

    @property
    def observed(self) -> Array:
        """Share of cells within each interval, 0 to 1; NaN if no cell counts."""
        if not self.count:
            return np.full(len(LEVELS), math.nan)
        return np.asarray(self.inside / self.count)

    @property
    def spread(self) -> float:
        """Root mean square of z: above 1 the error bars are too short; NaN if no cell counts."""
        return math.sqrt(self.squares / self.count) if self.count else math.nan
