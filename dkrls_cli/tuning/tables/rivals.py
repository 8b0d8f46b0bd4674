"""The choice between a kernel, kernels of warped coordinates, and splines.

On 101 grids (tables, climate, images, volumes, terrain, generated fields; a fifth of every
dimension held out, five times, or every second coordinate) a spline that is no loss in the mean and
far better in most cells, and a quintic one that is as good in the mean or typically where rounding
limits a kernel, took cases of tables within 2 % of the best spline in hindsight from 75.0 to 77.4 %
of 252, and those more than 1.25 times as large from 40 to 35; on 60 other grids from 70.4 to 71.6 %
of 162, and from 27 to 23. Other grids stayed as they were.
"""

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

BETTER_EVERYWHERE = 0.8
"""The same for a spline that is better in most places as well, and for a kernel of a warped
coordinate."""

EQUAL, BETTER_ELSEWHERE, IN_MOST_CELLS = 1.02, 0.7, 0.3
"""Mean square error of a spline, as a multiple of the kernel's, that is no loss, and the ratios of
typical slices and of typical cells from one of which on it is then taken. Across a phase boundary
or an edge a kernel needs a ridge, which costs exactness everywhere."""

WORSE, FAR_BETTER = 2.0, 0.1
"""Mean square error of a spline, as a multiple of the kernel's, and typical ratio from which on it
is taken all the same: a few slices beside an end make the mean, and where a slice is left out there
the gap is twice as wide as where one asks."""

IN_ALL_CELLS = 0.01
"""The same for the ratio of typical cells. Beside a critical point or across an edge that lies in
every slice a few fibres make the errors of all slices."""

EXACT_RIDGE, AS_GOOD = 1e-12, 2.0
"""Ridge of a Gaussian kernel up to which rounding limits it, and the ratio of mean square errors,
between that of the mean and that of typical slices, up to which a quintic spline is taken instead:
left-out slices are twice as far from their neighbours as most queries, and nearer the spline gains
while the kernel does not. With noise a lower degree would be the best of the splines, and then the
kernel stays."""


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

    Errors are squared, in the cells of inner slices that are left out (slices, n).
    """
    first = next(iter(errors))
    ratios = {rival: Ratio.of(own, errors[first]) for rival, own in errors.items()}
    better = [
        rival
        for rival, ratio in ratios.items()
        if rival is not first and _is_clearly_better(rival, first.candidate, ratio)
    ]
    return min(better, key=lambda rival: ratios[rival].both, default=first)


def _is_clearly_better(rival: Rival, first: Candidate, ratio: Ratio) -> bool:
    """Return whether a rival is better than the kernel without a warp, by a ratio of errors."""
    kernel = rival.candidate.kernel
    if not kernel.is_spline:
        return ratio.mean < BETTER_EVERYWHERE
    if ratio.mean < BETTER or (ratio.mean < BETTER_EVERYWHERE and ratio.typical < 1):
        return True
    if ratio.mean < EQUAL and (ratio.typical < BETTER_ELSEWHERE or ratio.cells < IN_MOST_CELLS):
        return True
    if ratio.mean < WORSE and (ratio.typical < FAR_BETTER or ratio.cells < IN_ALL_CELLS):
        return True
    is_limited = first.kernel.family == "gaussian" and first.ridge <= EXACT_RIDGE
    is_smooth = set(kernel.families) == {"quintic"}
    return is_limited and is_smooth and ratio.both < AS_GOOD


def can_win(slices: Slices, spline: Candidate, kernel: Candidate) -> bool:
    """Return whether a spline is worth a comparison slice by slice, by the mean of the kernel.

    That comparison takes a spectrum, which is dear on a long level.
    """
    squares = slices.spline_errors(spline.kernel.family, spline.kernel.pieces)
    mean = max(kernel.error**2, float(np.finfo(np.float64).tiny))
    found = Ratio(float(squares.mean()) / mean, float(np.median(squares)) / mean)
    return _is_clearly_better(Rival(None, spline), kernel, found)
