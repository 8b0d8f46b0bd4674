"""The choice between a kernel, kernels of warped coordinates, and splines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.tuning.candidates import Candidate
from dkrls_cli.tuning.tables.leftout import Ratio, Slices

BETTER = 0.5
"""Mean square error of left-out slices, as a share of the kernel's, from which on a spline is
taken. Shares of 0.25 to 0.8 gave the same on 47 grids of many kinds."""

BETTER_WARPED = 0.8
"""The same for a kernel of a warped coordinate."""

WORSE, FAR_BETTER = 8.0, 0.1
"""Mean square error of a rival that is taken because it is far better in most places, as a
multiple of the least, and typical ratio of its squares: a few slices beside an end or an edge
make the mean, and where a slice is left out there the gap is twice as wide as where one asks."""

EQUAL, BETTER_ELSEWHERE = 1.02, 0.7
"""Mean square error of linear interpolation, as a multiple of the kernel's, that is no loss, and
the typical ratio from which on it is then taken. Across a phase boundary or an edge a kernel needs
a ridge, which costs exactness everywhere; linear interpolation knows its two neighbours only."""


@dataclass(frozen=True)
class Rival:
    """A candidate on the coordinates that a warp measures distances in."""

    warp: str | None
    candidate: Candidate

    @property
    def warped(self) -> Candidate:
        """The candidate as one on the coordinates themselves."""
        kernel = replace(self.candidate.kernel, warp=self.warp)
        return replace(self.candidate, kernel=kernel)


def pick(errors: Mapping[Rival, Array]) -> Rival:
    """Return the best rival that is clearly better than the first, or else the first.

    Errors are mean squares on inner slices that are left out.
    """
    first = next(iter(errors))
    ratios = {rival: Ratio.of(own, errors[first]) for rival, own in errors.items()}
    limit = WORSE * min(ratio.mean for ratio in ratios.values())
    better = [
        rival
        for rival, ratio in ratios.items()
        if rival is not first and ratio.mean <= limit and _is_clearly_better(rival, ratio)
    ]
    return min(better, key=lambda rival: ratios[rival].both, default=first)


def _is_clearly_better(rival: Rival, ratio: Ratio) -> bool:
    """Return whether a rival is better in the mean, or far better in most places."""
    kernel = rival.candidate.kernel
    if kernel.family == "linear" and ratio.mean < EQUAL and ratio.typical < BETTER_ELSEWHERE:
        return True
    enough = BETTER if kernel.is_spline else BETTER_WARPED
    return ratio.mean < enough or ratio.typical < FAR_BETTER


def can_win(slices: Slices, spline: Candidate, kernel: Candidate) -> bool:
    """Return whether a spline is worth a comparison slice by slice, by the mean of the kernel.

    That comparison takes a spectrum, which is dear on a long level.
    """
    squares = slices.spline_errors(spline.kernel.family)
    mean = max(kernel.error**2, float(np.finfo(np.float64).tiny))
    found = Ratio(float(squares.mean()) / mean, float(np.median(squares)) / mean)
    return found.mean <= WORSE and _is_clearly_better(Rival(None, spline), found)
