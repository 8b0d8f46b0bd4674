"""Choose kernel, sigma and ridge of one level by leaving slices out, in closed form.

The residuals of one level do not depend on the settings of the others, so levels are chosen one by
one, the shortest first (:mod:`dkrls_cli.tuning.slices.fibres`). Which of the settings that were
tried is taken, and why, stands in :mod:`dkrls_cli.tuning.slices.average`.

A level of two samples is taken for a straight line, unless a setting is given: leaving out one of
two says nothing of what lies between them. With every second coordinate of three held out, errors
went from 1.09 to 1.00 of those of linear interpolation on 19 sets of series (climate model,
generated), and from 1.04 to 0.94 on 19 others (ocean, climate of the USA, profiles, El Nino,
sensors, satellite); those of slopes from 1.64 to 1.00 of those of the better of numpy.gradient and
a spline, and from 1.78 to 1.01. Of three samples and more a straight line is worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.factors.choice import LONG
from dkrls_cli.cascade.kernels import SPLINES, kernel_named
from dkrls_cli.threads import one_blas_thread
from dkrls_cli.tuning.candidates import Candidate, LevelChoice
from dkrls_cli.tuning.slices.average import nearest_to_average
from dkrls_cli.tuning.slices.long import choose_whole
from dkrls_cli.tuning.slices.request import Request
from dkrls_cli.tuning.slices.search import Search, sigma_range
from dkrls_cli.tuning.slices.segments import SEGMENTS, WHOLE
from dkrls_cli.tuning.spectra import SpectrumCache
from dkrls_cli.tuning.tables.pieces import join_splines
from dkrls_cli.tuning.tables.rivals import Rival, can_win, pick
from dkrls_cli.tuning.tables.splines import spline_candidates, with_error_kernel
from dkrls_cli.tuning.tables.warps import warps_worth_trying

# Samples that have nothing between them: see above.
TWO = 2

# Sigma of a straight line in distances of its two samples, and its ridge: a Matern 3/2 kernel is
# straight to a thousandth, and the ridge is far below what it leaves open.
_LINE_SIGMA, _LINE_RIDGE = 20.0, 1e-6


def choose_level(
    coordinates: Array,
    data: Array,
    *,
    family: str | None = None,
    sigma: float | None = None,
    ridge: float | None = None,
    period: float | None = None,
    cycles: Sequence[float] = (),
    folds: int | None = None,
    joint: bool = False,
    spectra: SpectrumCache | None = None,
    copies: Indices | None = None,
) -> LevelChoice:
    """Choose the setting of a level by leaving slices out.

    A level of more than 160 samples is first seen through segments of 64 neighbours, which tell
    the families that can win, and then whole (:mod:`dkrls_cli.tuning.whole`). Where that would
    cost too much, the choice is made on three segments, at its ends and in its middle.

    Parameters
    ----------
    coordinates
        Coordinates of the level (m,), in any order.
    data
        Fibres along the level, as columns (m, fibres).
    family, sigma, ridge
        Settings that are given; None: to be chosen.
    period
        Length of the circle that the coordinates lie on, or None for a line.
    cycles
        Lengths with which the data may repeat. Those that fit twice into what is seen are tried.
    folds
        Leave out this many blocks of neighbours, one at a time, instead of single slices. Of a
        level of more than 160 samples at most eight large blocks are left out, spread evenly;
        blocks of less than 16 samples are left out of segments.
    joint
        Whether a joint ridge will stand for the ridge of the level: a real one is tried as well.
    spectra
        Spectra that are known from other variables on the same coordinates.
    copies
        Of a level of at most 160 samples without folds: for each sample the place of the one that
        it copies, or -1. Samples are left out together with their copies, which count for nothing
        themselves; an end behind which there are copies is no end.

    Examples
    --------
    >>> x = np.linspace(0.0, 12.0, 40)
    >>> choice = choose_level(x, np.sin(np.outer(x, [1.0, 1.1, 1.2])))
    >>> choice.taken.kernel.family, choice.taken.error < 1e-6
    ('gaussian', True)
    """
    spectra = spectra or SpectrumCache()
    named = None if family is None else kernel_named(family)
    plain = None if named is None else named.family
    request = Request(coordinates, data, plain, sigma, ridge, period, cycles, folds, joint, copies)
    warps: list[str | None] = [None] if named is None else [named.warp]
    if request.is_open and request.size <= LONG:
        warps += warps_worth_trying(coordinates)
    with one_blas_thread():
        return _choose_among(request, warps, spectra)


def _choose_among(
    request: Request, warps: Sequence[str | None], spectra: SpectrumCache
) -> LevelChoice:
    """Choose a kernel for every warp of the coordinates, and one of these and of the splines."""
    choices = {warp: _choose_unwarped(request.warped(warp), spectra) for warp in warps}
    rivals = [Rival(warp, choices[warp].taken) for warp in warps]
    splines: list[Rival] = []
    if request.is_open and request.size <= LONG:
        for warp in warps:
            slices = request.warped(warp).slices
            singles = spline_candidates(slices)
            splines += [Rival(warp, single) for single in singles]
            joined = join_splines(slices, singles) if singles else None
            if joined and (request.size <= WHOLE or can_win(slices, joined, choices[warp].taken)):
                rivals.append(Rival(warp, joined))
    best = rivals[0]
    if len(rivals) > 1:
        best = pick({rival: _inner_errors(request, rival, spectra) for rival in rivals})
    slices, taken = request.warped(best.warp).slices, best.candidate
    if taken.kernel.is_spline:
        taken = with_error_kernel(slices, taken)
    tried = [c for warp in warps for c in choices[warp].warped(warp).tried]
    tried += [spline.warped for spline in splines if spline != best]
    chosen = LevelChoice(Rival(best.warp, taken).warped, tuple(tried))
    if taken.kernel.is_spline:
        return replace(chosen, tried=(*tried, chosen.taken))
    nodes = request.warped(best.warp).coordinates
    kernels = {taken.kernel, choices[best.warp].under_joint_ridge.kernel}
    known = {replace(k, warp=best.warp): spectra.known(k, nodes) for k in kernels}
    return replace(chosen, spectra={k: found for k, found in known.items() if found is not None})


def _choose_unwarped(request: Request, spectra: SpectrumCache) -> LevelChoice:
    """Choose a kernel, or take the spline that is named."""
    if request.family not in SPLINES:
        return choose_whole(request) or _choose_on_segments(request, spectra)
    (spline,) = spline_candidates(request.slices, request.family)
    return LevelChoice(spline, ())


def _choose_on_segments(request: Request, spectra: SpectrumCache) -> LevelChoice:
    """Choose on all samples of a short level, or on segments of a longer one."""
    segments = request.segments(SEGMENTS, spectra)
    shortest = min(float(np.ptp(segment.coordinates)) for segment in segments)
    cycles = request.cycles_within(shortest)
    search = Search(segments, request.size, request.ridge, request.period, cycles)
    span = sigma_range(request.coordinates, request.period)
    tried = search.candidates(request.families, request.sigma, span)
    if request.is_open and request.size == TWO:
        line = _straight_line(request, search)
        return LevelChoice(line, (*tried, line))
    return LevelChoice(nearest_to_average(segments, tried), tuple(tried))


def _straight_line(request: Request, search: Search) -> Candidate:
    """Return the candidate that goes straight from one of two samples to the other."""
    sigma = _LINE_SIGMA * float(np.ptp(request.coordinates))
    (line,) = replace(search, ridge=_LINE_RIDGE, cycles=()).candidates(
        ["matern32"], sigma, (sigma, sigma)
    )
    return line


def _inner_errors(request: Request, rival: Rival, spectra: SpectrumCache) -> Array:
    """Return the squared errors of a rival in the cells of inner slices."""
    slices, kernel = request.warped(rival.warp).slices, rival.candidate.kernel
    if kernel.is_spline:
        return slices.spline_cells(kernel.family, kernel.pieces)
    return slices.kernel_cells(kernel, rival.candidate.ridge, spectra)
