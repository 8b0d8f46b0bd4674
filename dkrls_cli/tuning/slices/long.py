"""Choose the setting of a long level on its whole axis, from what segments of it tell.

Segments of 64 neighbours tell cheaply which families can win, and where to start from; the search
on the whole axis is :mod:`dkrls_cli.tuning.whole`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dkrls_cli.cascade.factors.choice import LARGEST, LONG
from dkrls_cli.circle import is_even, spacing
from dkrls_cli.tuning.candidates import REAL_RIDGE, Candidate, LevelChoice
from dkrls_cli.tuning.slices.request import Request
from dkrls_cli.tuning.slices.search import Search, best_of, sigma_range
from dkrls_cli.tuning.slices.segments import SEGMENT, SEGMENTS, WHOLE
from dkrls_cli.tuning.spectra import SpectrumCache
from dkrls_cli.tuning.whole import WholeAxis, WholeSearch, is_affordable, is_worth

_MANY_SEGMENTS, _MANY_RUNS = 16, 6144
"""Segments of a level with even steps, which make one, and fibres of all of them together."""

_COARSE_SEGMENTS = 7
"""The same on segments, before a search on the whole axis."""

_FAR, _FAR_RIDGE, _NOISY = 8.0, 1.0, 0.01
"""Factor between sigmas beyond the segments, their ridge, and ridge from which they are tried."""

_CAN_WIN = 1.1
"""Errors on segments, beside the least of all families, from which a family can win."""

_CLOSE = 1.005
"""Errors on segments, beside the least, that are not told apart there."""


def choose_whole(request: Request) -> LevelChoice | None:
    """Choose on the whole axis of a long level; None if the level is short, or that is too dear."""
    if request.size <= WHOLE or request.has_small_blocks:
        return None
    coarse = _see_segments(request)
    starts = _affordable_starts(request, coarse)
    if not starts:
        return None
    axis = WholeAxis(request.coordinates, request.data, request.period is not None, request.folds)
    span = sigma_range(request.coordinates, request.period)
    search = WholeSearch(axis, span, request.sigma is None, request.ridge is None)
    taken = search.run(
        [*starts, *_far_starts(request, starts[0])],
        request.cycles_within(float(np.ptp(request.coordinates))),
    )
    if request.joint and request.ridge is None:
        real = [candidate for candidate in coarse if candidate.ridge >= REAL_RIDGE]
        noisy = best_of(real, taken.kernel.family)
        search.assess(noisy.kernel, noisy.ridge)
    return LevelChoice(taken, search.tried)


def _see_segments(request: Request) -> list[Candidate]:
    """Return candidates with their errors on segments, sigmas up to a few of their extents."""
    count = SEGMENTS
    if is_even(np.sort(request.coordinates)):
        count = min(_MANY_SEGMENTS, max(count, _MANY_RUNS // request.data.shape[1]))
    segments = request.segments(count, SpectrumCache())
    search = Search(segments, request.size, request.ridge, request.period, ())
    longest = 3 * max(float(np.ptp(segment.coordinates)) for segment in segments)
    shortest, most = sigma_range(request.coordinates, request.period)
    span = shortest, min(longest, most)
    return search.candidates(request.families, request.sigma, span, _COARSE_SEGMENTS, refined=False)


def _affordable_starts(request: Request, coarse: Sequence[Candidate]) -> list[Candidate]:
    """Return the best candidate of each family that can be tried on the whole axis, best first.

    There are none if the family that is best on segments is not among them, but has a dense factor.
    """
    families = dict.fromkeys(candidate.kernel.family for candidate in coarse)
    best = sorted((_calmest(coarse, f) for f in families), key=lambda c: c.error)
    starts = []
    for start in best:
        least = min((c.error for c in best if c is not start), default=math.inf)
        if is_affordable(start.kernel, request.coordinates, start.error, least):
            starts.append(start)
    if not starts:
        return []
    dense = request.size <= LONG or is_worth(best[0].error, starts[0].error)
    if starts[0] is not best[0] and request.size <= LARGEST and dense:
        return []
    return [start for start in starts if start.error <= _CAN_WIN * starts[0].error]


def _calmest(candidates: Sequence[Candidate], family: str) -> Candidate:
    """Return the largest ridge of a family among errors close to its least: it solves best."""
    least = best_of(candidates, family).error
    own = [c for c in candidates if c.kernel.family == family and c.error <= _CLOSE * least]
    return max(own, key=lambda candidate: candidate.ridge)


def _far_starts(request: Request, best: Candidate) -> list[Candidate]:
    """Return settings of long sigma, which segments do not see, if they see much noise."""
    step, kernel = spacing(request.coordinates), best.kernel
    if request.sigma is not None or (best.ridge < _NOISY and kernel.sigma > step):
        return []
    ridge = _FAR_RIDGE if request.ridge is None else request.ridge
    power = np.arange(1, math.log(request.size / SEGMENT, _FAR))
    sigmas = (step * SEGMENT * _FAR**power).tolist()
    return [Candidate(replace(kernel, sigma=sigma), ridge, math.nan) for sigma in sigmas]
