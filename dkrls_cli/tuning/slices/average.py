"""Which of the settings of a level is taken.

Not the one of least error: with few slices that is luck. Every candidate gets the weight
(mean square error)^(-n/2), as in a likelihood of n slices, times the share of the range of sigma
that it stands for, and less for a larger ridge (its power of -0.1). The predictions of all
candidates half-way between the slices are averaged with these weights, and the candidate that
predicts most like the average is taken. The outermost slices count a tenth, because leaving them
out tests extrapolation.

On 103 grids of public and generated fields, with a fifth of every dimension held out, eight times,
or every second coordinate, cases within 2 % of the best of linear, cubic and quintic splines,
picked in hindsight, went from 73.0 to 75.9 % of 423 in the half that the rule was made on, and
from 79.5 to 79.9 % of 468 in the other, which was looked at as well; errors beside that best, in
the geometric mean, from 0.950 to 0.944 and from 0.775 to 0.758. Data thinned by two with settings
in steps as half of the score, more weight of slices beside wide gaps, marginal likelihood, levels
chosen twice, and a prior of smoothness for short levels gained nothing that is clear of chance in
both halves.

The weight against large ridges was made on 81 grids and reported on 64 others. With every second
coordinate held out, cases within 2 % of that best went from 76.5 to 82.7 % of 81, and from 84.4 to
89.1 % of 64, and none was lost; with a fifth held out, from 81.5 to 81.9 % of 243, and stayed at
81.2 % of 192. Errors in the geometric mean changed by less than 0.4 %.

That the candidates of a kernel without noise count as three at most, however many there are, was
found on 101 grids and reported on 60 others, with a fifth held out, five times, or every second
coordinate: cases within 2 % of that best went from 78.1 to 79.4 % of 630, and from 79.2 to 80.0 %
of 360; errors in the geometric mean changed by less than 0.4 %.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.tuning.candidates import COUNTS, MAY_BE_TAKEN, Candidate
from dkrls_cli.tuning.slices.segments import TINY, Segment

_LESS_NOISE, _NO_NOISE = 0.1, 1e-6
"""Power of the ridge that the weight of a candidate is divided by, and ridge below which all count
alike. A slice that is left out is twice as far from its neighbours as most places one asks for, and
what is not known at that distance passes for noise."""

_ALIKE = 3
"""Candidates of one kernel for which those below that ridge count at most. Ridges are tried down to
1e-14 for the sake of exact data; of any other these are a dozen times the same answers."""

_TWO_SLICES = 2
"""Slices of which one is predicted by the other alone: nothing tells noise from distance."""


def nearest_to_average(segments: Sequence[Segment], candidates: Sequence[Candidate]) -> Candidate:
    """Return the candidate that predicts most like the weighted average of all."""
    scores = np.array([candidate.score for candidate in candidates])
    ratios = np.maximum(scores, TINY) / max(float(scores.min()), TINY)
    share = _shares({candidate.kernel for candidate in candidates})
    slices = sum(segment.slices for segment in segments)
    weights = ratios ** -float(slices)
    weights *= [share[candidate.kernel] for candidate in candidates]
    if slices > _TWO_SLICES:
        weights *= [max(candidate.ridge, _NO_NOISE) ** -_LESS_NOISE for candidate in candidates]
    weights *= _shares_of_alike(candidates)
    weights /= weights.max()
    counted = np.flatnonzero(weights >= COUNTS).tolist()
    answers = {i: np.concatenate([s.midpoints(candidates[i]) for s in segments]) for i in counted}
    average = np.tensordot(weights[counted], list(answers.values()), 1) / weights[counted].sum()
    close = [i for i in counted if weights[i] >= MAY_BE_TAKEN]
    return candidates[min(close, key=lambda i: float(np.linalg.norm(answers[i] - average)))]


def _shares_of_alike(candidates: Sequence[Candidate]) -> list[float]:
    """Return the share with which every candidate counts: less where many of a kernel are alike."""
    clean = Counter(one.kernel for one in candidates if one.ridge <= _NO_NOISE)
    return [
        min(1.0, _ALIKE / clean[one.kernel]) if one.ridge <= _NO_NOISE else 1.0
        for one in candidates
    ]


def _shares(kernels: Iterable[Kernel]) -> dict[Kernel, float]:
    """Return the share of the range of log sigma that each kernel stands for among its kind."""
    kinds: dict[Kernel, list[Kernel]] = {}
    for kernel in kernels:
        kinds.setdefault(replace(kernel, sigma=1.0), []).append(kernel)
    shares: dict[Kernel, float] = {}
    for kind in kinds.values():
        kind.sort(key=lambda kernel: kernel.sigma)
        places = np.log([kernel.sigma for kernel in kind])
        widths = np.gradient(places) if places.size > 1 else np.ones(1)
        shares |= dict(zip(kind, widths.tolist(), strict=True))
    return shares
