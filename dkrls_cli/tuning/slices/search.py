"""The settings of a level that are tried on segments of it, and their errors on left-out slices.

A few slices that are missed by much would decide alone. So, from twelve slices on, half of the
logarithm of the mean square error is that of the arithmetic mean over the slices, and half that of
the geometric mean.

Kernels include a constant of variance 1, so that answers far from the data fall back to the mean
along the dimension and not to the mean of the grid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.spectrum import ROUND_OFF
from dkrls_cli.circle import spacing
from dkrls_cli.tuning.candidates import CONSTANT, RIDGES, SWINGS, Candidate
from dkrls_cli.tuning.slices.segments import TINY, Segment

_HOPELESS = 10.0
"""Least error of a family, beside the least of smoother ones, from which rougher ones are left out:
they are worse still."""

_COARSE = 9
"""Sigmas of the first, coarse search, evenly spaced in logarithms."""

_HALVINGS = (5, 2)
"""How often the step of sigma is halved around the best, for the best family and the second."""

_MANY_SLICES = 12
"""Slices from which half of the score is their geometric mean: of fewer, one is met by chance."""

_FAR_BEHIND = 4.0
"""Least error of the second family, beside that of the best, from which it is not refined: at five
slices it has a thousandth of the weight."""


@dataclass(frozen=True)
class Search:
    """The settings that are tried: a coarse grid, then a finer one around the best."""

    segments: Sequence[Segment]
    size: int
    ridge: float | None
    period: float | None
    cycles: Sequence[float]

    def candidates(
        self,
        families: Sequence[str],
        sigma: float | None,
        span: tuple[float, float],
        coarse: int = _COARSE,
        refined: bool = True,
    ) -> list[Candidate]:
        """Return all candidates, with one given sigma or with sigmas within a range."""
        widths = np.geomspace(*span, coarse) if sigma is None else np.array([sigma])
        found: list[Candidate] = []
        for cycle, swing in [(None, 1.0), *product(self.cycles, SWINGS)]:
            own: list[Candidate] = []
            for family in families:
                if own and best_of(own, own[-1].kernel.family).error > _HOPELESS * _least(own):
                    break
                for width in widths:
                    own += self._assess(self._kernel(family, float(width), cycle, swing))
            if sigma is None and refined:
                own += self._refine(own, (span[1] / span[0]) ** (1 / (coarse - 1)))
            found += own
        return found

    def _kernel(self, family: str, sigma: float, cycle: float | None, swing: float) -> Kernel:
        return Kernel(family, sigma, self.period, CONSTANT, cycle, swing)

    def _assess(self, kernel: Kernel) -> list[Candidate]:
        """Return the candidates of one kernel, one for each ridge."""
        ridges = self._ridges(kernel)
        squares = [segment.squares(kernel, ridges) for segment in self.segments]
        means = [s @ own.weights for s, own in zip(squares, self.segments, strict=True)]
        errors = np.sqrt(self._average(means)).tolist()
        many = sum(segment.slices for segment in self.segments) >= _MANY_SLICES
        typical = self._typical_errors(squares).tolist() if many else [None] * len(errors)
        found = zip(ridges.tolist(), errors, typical, strict=True)
        return [Candidate(kernel, ridge, error, usual) for ridge, error, usual in found]

    def _typical_errors(self, squares: Sequence[Array]) -> Array:
        """Return the root of the geometric mean over all slices, one number per ridge."""
        logarithms = [
            np.log(np.maximum(s, TINY)) @ own.weights
            for s, own in zip(squares, self.segments, strict=True)
        ]
        return np.asarray(np.exp(self._average(logarithms) / 2))

    def _average(self, numbers: Sequence[Array]) -> Array:
        """Return the mean over the segments, each of which counts by its slices."""
        seen = np.array([segment.slices for segment in self.segments], np.float64)
        return np.asarray(seen @ np.array(numbers) / seen.sum())

    def _ridges(self, kernel: Kernel) -> Array:
        """Return the ridges to try: large enough that no direction drops out of the solve.

        Noise in directions that drop out would not count. An eigenvalue is at most m times the
        variance of the kernel.
        """
        if self.ridge is not None:
            return np.array([self.ridge])
        return RIDGES[ROUND_OFF * self.size * kernel.variance < RIDGES]

    def _refine(self, coarse: Sequence[Candidate], step: float) -> list[Candidate]:
        """Halve the step of sigma again and again around the best of the two best families."""
        found: list[Candidate] = []
        least = min(candidate.error for candidate in coarse)
        for family, halvings in zip(_best_families(coarse), _HALVINGS, strict=False):
            if best_of(coarse, family).error > _FAR_BEHIND * least:
                break
            for halving in range(halvings):
                best = best_of([*coarse, *found], family).kernel
                factor = step**0.5 ** (halving + 1)
                for width in (best.sigma / factor, best.sigma * factor):
                    kernel = self._kernel(family, width, best.cycle, best.swing)
                    found += self._assess(kernel)
        return found


def sigma_range(coordinates: Array, period: float | None) -> tuple[float, float]:
    """Return the shortest and longest sigma to try: under half a step, and three extents."""
    longest = float(np.ptp(coordinates)) or 1.0
    return 0.4 * spacing(coordinates), 3 * (longest if period is None else period / math.pi)


def _best_families(candidates: Sequence[Candidate]) -> list[str]:
    """Return the names of the two families of least error, the best first."""
    names = dict.fromkeys(candidate.kernel.family for candidate in candidates)
    return sorted(names, key=lambda name: best_of(candidates, name).error)[:2]


def _least(candidates: Sequence[Candidate]) -> float:
    """Return the least error."""
    return min(candidate.error for candidate in candidates)


def best_of(candidates: Sequence[Candidate], family: str) -> Candidate:
    """Return the candidate of least error of one family."""
    own = (candidate for candidate in candidates if candidate.kernel.family == family)
    return min(own, key=lambda candidate: candidate.error)
