"""Choose kernel, sigma and ridge of one level by leaving slices out, in closed form.

With C = K + lambda I, the residual of slice j when it is left out is (C^-1 Y)_j / (C^-1)_jj, so
leaving out every slice in turn costs no more than one solve. The residual of a block B that is left
out is (C^-1)_BB^-1 (C^-1 Y)_B. The data enters through the R factor of its unfolding, which is at
most m x m however large the grid. The residuals of one level do not depend on the settings of the
others, so levels are chosen one by one.

Which candidate is taken
------------------------
Not the one of least error: with few slices that is luck. Every candidate gets the weight
(mean square error)^(-n/2), as in a likelihood of n slices, times the share of the range of sigma
that it stands for, and less for a larger ridge (its power of -0.1). The predictions of all
candidates half-way between the slices are averaged with these weights, and the candidate that
predicts most like the average is taken. The outermost slices count a tenth, because leaving them
out tests extrapolation.

A few slices that are missed by much would decide alone. So, from twelve slices on, half of the
logarithm of the mean square error is that of the arithmetic mean over the slices, and half that of
the geometric mean.

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

Order of the levels
-------------------
Users ask for answers between the coordinates of several levels at once, and noise that one level
has smoothed need not be smoothed again by the next. So the shortest level is chosen first, and
every other level on data that the levels before it have predicted half-way between their
coordinates (:func:`predict_midpoints`).

Chosen kernels include a constant of variance 1, so that answers far from the data fall back to the
mean along the dimension and not to the mean of the grid.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from dkrls_cli.arrays import Array, Indices, Tensor
from dkrls_cli.cascade.factors.choice import LARGEST, LONG, is_long
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.kernels import FAMILIES, SPLINES, WARPS, Kernel, gram, kernel_named
from dkrls_cli.cascade.poles.pairs import SINGULAR
from dkrls_cli.cascade.spectrum import ROUND_OFF, Spectrum, decompose
from dkrls_cli.cascade.tensors import along, along_map
from dkrls_cli.circle import is_even, spacing
from dkrls_cli.threads import one_blas_thread
from dkrls_cli.tuning.candidates import (
    CONSTANT,
    COUNTS,
    END_WEIGHT,
    MAY_BE_TAKEN,
    REAL_RIDGE,
    RIDGES,
    SWINGS,
    Candidate,
    LevelChoice,
)
from dkrls_cli.tuning.spectra import SpectrumCache
from dkrls_cli.tuning.tables.leftout import Slices
from dkrls_cli.tuning.tables.rivals import Rival, can_win, pick
from dkrls_cli.tuning.tables.splines import spline_candidates, with_error_kernel
from dkrls_cli.tuning.tables.warps import warps_worth_trying
from dkrls_cli.tuning.whole import WholeAxis, WholeSearch, is_affordable, is_worth

FIBRES = 2048
"""Fibres that stand for a grid: several times the samples of a segment, so its R factor is full."""

NUMBERS = 2**21
"""Numbers of all fibres that stand for a grid: on a long level there are fewer fibres."""

WHOLE, SEGMENT, _SEGMENTS = 160, 64, 3
"""Samples up to which a level has a dense search; beyond, samples of a segment and segments."""

_MANY_SEGMENTS, _MANY_RUNS = 16, 6144
"""Segments of a level with even steps, which make one, and fibres of all of them together."""

_FAR, _FAR_RIDGE, _NOISY = 8.0, 1.0, 0.01
"""Factor between sigmas beyond the segments, their ridge, and ridge from which they are tried."""

_CAN_WIN = 1.1
"""Errors on segments, beside the least of all families, from which a family can win."""

_HOPELESS = 10.0
"""Least error of a family, beside the least of smoother ones, from which rougher ones are left out:
they are worse still."""

_CLOSE = 1.005
"""Errors on segments, beside the least, that are not told apart there."""

_BLOCKS = 4
"""Blocks of a segment at least: where it has fewer of the size asked for, they are smaller."""

_COARSE = 9
"""Sigmas of the first, coarse search, evenly spaced in logarithms."""

_COARSE_SEGMENTS = 7
"""The same on segments, before a search on the whole axis."""

_HALVINGS = (5, 2)
"""How often the step of sigma is halved around the best, for the best family and the second."""

_MANY_SLICES = 12
"""Slices from which half of the score is their geometric mean: of fewer, one is met by chance."""

_FAR_BEHIND = 4.0
"""Least error of the second family, beside that of the best, from which it is not refined: at five
slices it has a thousandth of the weight."""

_LESS_NOISE, _NO_NOISE = 0.1, 1e-6
"""Power of the ridge that the weight of a candidate is divided by, and ridge below which all count
alike. A slice that is left out is twice as far from its neighbours as most places one asks for, and
what is not known at that distance passes for noise."""

_TWO_SLICES = 2
"""Slices of which one is predicted by the other alone: nothing tells noise from distance."""

_COLUMNS = 32
"""Directions of the data, by energy, in which predictions of candidates are compared."""

MIDPOINTS = 24
"""Places between the coordinates of one level that stand for it while others are chosen."""

_SPLINE_FIBRES = 512
"""Fibres at most by whose inner slices a few candidates are compared."""

_TINY = float(np.finfo(np.float64).tiny)


def sample_fibres(values: Tensor, axis: int, mean: float, most: int = FIBRES) -> Array:
    """Return fibres along one axis, less the mean, as columns (m, fibres).

    All fibres if there are at most `most`, else about as many, spread evenly over the grid. Along
    an axis of more than 1024 samples there are at most as many as make two million numbers.
    """
    most = max(1, min(most, NUMBERS // values.shape[axis]))
    before, after = math.prod(values.shape[:axis]), math.prod(values.shape[axis + 1 :])
    fibres = values.reshape(before, values.shape[axis], after)
    taken = np.arange(before * after)
    if taken.size > most:
        golden = (math.sqrt(5) - 1) / 2
        taken = np.unique((np.arange(most) * golden % 1.0 * taken.size).astype(np.intp))
    return np.asarray(fibres[taken // after, :, taken % after], np.float64).T - mean


def predict_midpoints(
    values: Tensor,
    axis: int,
    mean: float,
    coordinates: Array,
    kernel: Kernel,
    ridge: float,
    *,
    spectrum: Spectrum | None = None,
) -> Array:
    """Return the data less its mean, predicted half-way between neighbours along one axis.

    At most 24 midpoints are predicted, spread evenly. `spectrum` is the full spectrum of the
    kernel on the coordinates, if it is known.
    """
    order = np.sort(coordinates)
    places = np.arange(order.size - 1)
    if places.size > MIDPOINTS:
        places = np.linspace(0, places[-1], MIDPOINTS).astype(np.intp)
    middles = (order[places] + order[places + 1]) / 2
    if spectrum is None and is_long(kernel, coordinates):
        factor = LongFactor.build(kernel, coordinates, ridge)
        centred = np.asarray(values, np.float64) - mean
        return along_map(centred, axis, lambda y: factor.answer(middles, factor.solve(y)))
    with one_blas_thread():
        whole = spectrum or decompose(gram(kernel, coordinates, coordinates))
        solvable = whole.solvable(ridge)
        asked = gram(kernel, middles, coordinates)
        # k' V first: its entries fall with w, so no digits go where w + ridge is tiny.
        rows = (asked @ solvable.vectors) / (solvable.values + ridge) @ solvable.vectors.T
    answers = along(values, axis, rows)
    answers -= mean * rows.sum(axis=1).reshape(-1, *[1] * (values.ndim - axis - 1))
    return answers


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
    request = _Request(coordinates, data, plain, sigma, ridge, period, cycles, folds, joint, copies)
    warps: list[str | None] = [None] if named is None else [named.warp]
    if request.is_open and request.size <= LONG:
        warps += warps_worth_trying(coordinates)
    with one_blas_thread():
        return _choose_among(request, warps, spectra)


def _choose_among(
    request: _Request, warps: Sequence[str | None], spectra: SpectrumCache
) -> LevelChoice:
    """Choose a kernel for every warp of the coordinates, and one of these and of the splines."""
    choices = {warp: _choose_unwarped(request.warped(warp), spectra) for warp in warps}
    rivals = [Rival(warp, choices[warp].taken) for warp in warps]
    if request.is_open and request.size <= LONG:
        rivals += [
            Rival(warp, spline)
            for warp in warps
            for spline in spline_candidates(request.warped(warp).slices)
            if request.size <= WHOLE
            or can_win(request.warped(warp).slices, spline, choices[warp].taken)
        ]
    best = rivals[0]
    if len(rivals) > 1:
        best = pick({rival: _inner_errors(request, rival, spectra) for rival in rivals})
    slices, taken = request.warped(best.warp).slices, best.candidate
    if taken.kernel.is_spline:
        taken = with_error_kernel(slices, taken)
    tried = [c for warp in warps for c in choices[warp].warped(warp).tried]
    tried += [r.warped for r in rivals if r.candidate.kernel.is_spline and r is not best]
    chosen = LevelChoice(Rival(best.warp, taken).warped, tuple(tried))
    if taken.kernel.is_spline:
        return replace(chosen, tried=(*tried, chosen.taken))
    nodes = request.warped(best.warp).coordinates
    kernels = {taken.kernel, choices[best.warp].under_joint_ridge.kernel}
    known = {replace(k, warp=best.warp): spectra.known(k, nodes) for k in kernels}
    return replace(chosen, spectra={k: found for k, found in known.items() if found is not None})


def _choose_unwarped(request: _Request, spectra: SpectrumCache) -> LevelChoice:
    """Choose a kernel, or take the spline that is named."""
    if request.family not in SPLINES:
        return _choose_whole(request) or _choose_on_segments(request, spectra)
    (spline,) = spline_candidates(request.slices, request.family)
    return LevelChoice(spline, ())


def _inner_errors(request: _Request, rival: Rival, spectra: SpectrumCache) -> Array:
    """Return the mean square errors of a rival on inner slices."""
    slices, kernel = request.warped(rival.warp).slices, rival.candidate.kernel
    if kernel.is_spline:
        return slices.spline_errors(kernel.family)
    return slices.kernel_errors(kernel, rival.candidate.ridge, spectra)


@dataclass(frozen=True, eq=False)
class _Request:
    """What :func:`choose_level` is asked for."""

    coordinates: Array
    data: Array
    family: str | None
    sigma: float | None
    ridge: float | None
    period: float | None
    cycles: Sequence[float]
    folds: int | None
    joint: bool
    copies: Indices | None = None

    @property
    def is_open(self) -> bool:
        """Whether kernel, sigma and ridge are all to be chosen, on a line and for this level.

        Splines and warps do not know samples that are copies of others.
        """
        given = (self.family, self.sigma, self.ridge, self.period, self.copies)
        return all(value is None for value in given) and not self.joint

    @cached_property
    def slices(self) -> Slices:
        """The slices of the level, to compare a few candidates by inner slices."""
        return Slices.of(self.coordinates, self.data, self.folds, _SPLINE_FIBRES)

    def warped(self, warp: str | None) -> _Request:
        """Return the same with the coordinates that a warp measures distances in."""
        if warp is None:
            return self
        if warp not in self._warped:
            coordinates = WARPS[warp](self.coordinates)
            self._warped[warp] = replace(self, coordinates=coordinates, cycles=())
        return self._warped[warp]

    @cached_property
    def _warped(self) -> dict[str, _Request]:
        """The same with other coordinates, by warp."""
        return {}

    @property
    def size(self) -> int:
        """Samples of the level."""
        return self.coordinates.size

    @property
    def families(self) -> list[str]:
        """The families to try."""
        return list(FAMILIES) if self.family is None else [self.family]

    @property
    def segment_folds(self) -> int | None:
        """Blocks of a segment: of the size that they have on the level, if it has some of them."""
        if self.folds is None or self.size <= WHOLE:
            return self.folds
        return max(min(self.folds, _BLOCKS), round(self.folds * SEGMENT / self.size))

    def segments(self, count: int, spectra: SpectrumCache) -> list[_Segment]:
        """Return this many segments of the level, or all of a short one."""
        closed = self.period is not None and self.size <= WHOLE
        cut = _segments(self.coordinates, self.data, count)
        if self.copies is not None:
            ((rising, runs),) = cut
            return [_CopiedSegment(rising, runs, self.rising_copies, spectra)]
        return [_Segment(c, runs, closed, self.segment_folds, spectra) for c, runs in cut]

    @property
    def rising_copies(self) -> Indices:
        """The copies of samples in rising order."""
        assert self.copies is not None
        order = np.argsort(self.coordinates)
        copied = self.copies[order]
        return np.where(copied < 0, -1, np.argsort(order)[copied])

    def cycles_within(self, extent: float) -> list[float]:
        """Return the cycles that fit twice."""
        return [length for length in self.cycles if 2 * length <= extent]


def _choose_on_segments(request: _Request, spectra: SpectrumCache) -> LevelChoice:
    """Choose on all samples of a short level, or on segments of a longer one."""
    segments = request.segments(_SEGMENTS, spectra)
    shortest = min(float(np.ptp(segment.coordinates)) for segment in segments)
    cycles = request.cycles_within(shortest)
    search = _Search(segments, request.size, request.ridge, request.period, cycles)
    span = _sigma_range(request.coordinates, request.period)
    tried = search.candidates(request.families, request.sigma, span)
    return LevelChoice(_nearest_to_average(segments, tried), tuple(tried))


def _choose_whole(request: _Request) -> LevelChoice | None:
    """Choose on the whole axis of a long level; None if the level is short, or that is too dear."""
    small_blocks = request.folds is not None and request.folds * SEGMENT > _BLOCKS * request.size
    if request.size <= WHOLE or small_blocks:
        return None
    coarse = _see_segments(request)
    starts = _affordable_starts(request, coarse)
    if not starts:
        return None
    axis = WholeAxis(request.coordinates, request.data, request.period is not None, request.folds)
    span = _sigma_range(request.coordinates, request.period)
    search = WholeSearch(axis, span, request.sigma is None, request.ridge is None)
    taken = search.run(
        [*starts, *_far_starts(request, starts[0])],
        request.cycles_within(float(np.ptp(request.coordinates))),
    )
    if request.joint and request.ridge is None:
        real = [candidate for candidate in coarse if candidate.ridge >= REAL_RIDGE]
        noisy = _best(real, taken.kernel.family)
        search.assess(noisy.kernel, noisy.ridge)
    return LevelChoice(taken, search.tried)


def _see_segments(request: _Request) -> list[Candidate]:
    """Return candidates with their errors on segments, sigmas up to a few of their extents."""
    count = _SEGMENTS
    if is_even(np.sort(request.coordinates)):
        count = min(_MANY_SEGMENTS, max(count, _MANY_RUNS // request.data.shape[1]))
    segments = request.segments(count, SpectrumCache())
    search = _Search(segments, request.size, request.ridge, request.period, ())
    longest = 3 * max(float(np.ptp(segment.coordinates)) for segment in segments)
    shortest, most = _sigma_range(request.coordinates, request.period)
    span = shortest, min(longest, most)
    return search.candidates(request.families, request.sigma, span, _COARSE_SEGMENTS, refined=False)


def _affordable_starts(request: _Request, coarse: Sequence[Candidate]) -> list[Candidate]:
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
    least = _best(candidates, family).error
    own = [c for c in candidates if c.kernel.family == family and c.error <= _CLOSE * least]
    return max(own, key=lambda candidate: candidate.ridge)


def _far_starts(request: _Request, best: Candidate) -> list[Candidate]:
    """Return settings of long sigma, which segments do not see, if they see much noise."""
    step, kernel = spacing(request.coordinates), best.kernel
    if request.sigma is not None or (best.ridge < _NOISY and kernel.sigma > step):
        return []
    ridge = _FAR_RIDGE if request.ridge is None else request.ridge
    power = np.arange(1, math.log(request.size / SEGMENT, _FAR))
    sigmas = (step * SEGMENT * _FAR**power).tolist()
    return [Candidate(replace(kernel, sigma=sigma), ridge, math.nan) for sigma in sigmas]


class _Segment:
    """Neighbouring samples in rising order, and the R factor of their data.

    Runs of samples with the same steps between them have the same Gram matrix, and make one
    segment. A closed segment is a whole circle and has no ends.
    """

    def __init__(
        self,
        coordinates: Array,
        runs: Sequence[Array],
        closed: bool,
        folds: int | None,
        spectra: SpectrumCache,
    ) -> None:
        self.coordinates, self.data = coordinates, _compress(np.concatenate(runs, axis=1))
        self._spectra = spectra
        self._kept: dict[Kernel, Array] = {}
        count = coordinates.size
        self.slices = count * len(runs)
        blocks = min(folds or count, count)
        self.blocks = None if blocks == count else np.array_split(np.arange(count), blocks)
        self.weights = np.ones(count)
        if not closed and blocks > 3:
            ends = [0, -1] if self.blocks is None else np.r_[self.blocks[0], self.blocks[-1]]
            self.weights[ends] = END_WEIGHT
        self.weights /= self.weights.sum()

    def squares(self, kernel: Kernel, ridges: Array) -> Array:
        """Return the mean square error of every slice that is left out, (ridges, m)."""
        spectrum = self._spectra.of(kernel, self.coordinates)
        v, w = spectrum.vectors, spectrum.values
        lifted = w + ridges[:, None]  # (ridges, m)
        inverse = np.where(lifted > ROUND_OFF * w[0], 1.0 / np.maximum(lifted, _TINY), 0.0)
        missed = np.matmul(v, inverse[:, :, None] * (v.T @ self.data))  # C^-1 Y of every ridge
        self.leave_out(missed, v, inverse)
        return np.asarray(np.einsum("rij,rij->ri", missed, missed) / self.data.shape[1])

    def leave_out(self, missed: Array, vectors: Array, inverse: Array) -> None:
        """Replace C^-1 Y of every ridge (ridges, m, n) by the residuals of what is left out."""
        if self.blocks is None:
            missed /= (inverse @ (vectors * vectors).T)[:, :, None]
        for block in self.blocks or ():
            own = np.matmul(vectors[block] * inverse[:, None, :], vectors[block].T)
            missed[:, block] = np.linalg.pinv(own, hermitian=True) @ missed[:, block]

    def midpoints(self, candidate: Candidate) -> Array:
        """Return predictions half-way between the slices in the directions of most energy.

        They are flattened, and scaled so that segments of any rank count alike.
        """
        spectrum = self._spectra.of(candidate.kernel, self.coordinates).solvable(candidate.ridge)
        solved = spectrum.solve(candidate.ridge, self.data[:, :_COLUMNS])
        rows = self._between(candidate.kernel) @ spectrum.vectors
        return np.ravel(rows @ solved) / math.sqrt(self.data.shape[1])

    def _between(self, kernel: Kernel) -> Array:
        """Return the kernel between midpoints and slices; that of the last kernel is kept."""
        if kernel not in self._kept:
            middles = (self.coordinates[:-1] + self.coordinates[1:]) / 2
            self._kept = {kernel: gram(kernel, middles, self.coordinates)}
        return self._kept[kernel]


class _CopiedSegment(_Segment):
    """All samples of a level, some of which are copies of others.

    A sample is left out together with its copy: see :mod:`dkrls_cli.cascade.poles.pairs`.
    """

    def __init__(
        self, coordinates: Array, runs: Sequence[Array], copies: Indices, spectra: SpectrumCache
    ) -> None:
        super().__init__(coordinates, runs, True, None, spectra)
        own = np.flatnonzero(copies < 0)
        self.slices = own.size
        self.weights = np.where(copies < 0, 1.0, 0.0)
        for end in {own[0], own[-1]} & {0, copies.size - 1}:
            self.weights[end] = END_WEIGHT
        self.weights /= self.weights.sum()
        self._copies = np.flatnonzero(copies >= 0)
        self._copied = copies[self._copies]

    def leave_out(self, missed: Array, vectors: Array, inverse: Array) -> None:
        """Replace C^-1 Y of every ridge (ridges, m, n) by the residuals of samples left out."""
        diagonal = inverse @ (vectors * vectors).T  # (ridges, m)
        one, other = self._copied, self._copies
        both = inverse @ (vectors[one] * vectors[other]).T
        product = diagonal[:, one] * diagonal[:, other]
        determinant = np.maximum(product - both**2, SINGULAR * product)
        pairs = diagonal[:, other, None] * missed[:, one] - both[:, :, None] * missed[:, other]
        missed /= diagonal[:, :, None]
        missed[:, one] = pairs / determinant[:, :, None]


@dataclass(frozen=True)
class _Search:
    """The settings that are tried: a coarse grid, then a finer one around the best."""

    segments: Sequence[_Segment]
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
                if own and _best(own, own[-1].kernel.family).error > _HOPELESS * _least(own):
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
        seen = [segment.slices for segment in self.segments]
        squares = [segment.squares(kernel, ridges) for segment in self.segments]
        means = [s @ own.weights for s, own in zip(squares, self.segments, strict=True)]
        errors = np.sqrt(np.average(means, axis=0, weights=seen)).tolist()
        many = sum(seen) >= _MANY_SLICES
        typical = self._typical_errors(squares).tolist() if many else [None] * len(errors)
        found = zip(ridges.tolist(), errors, typical, strict=True)
        return [Candidate(kernel, ridge, error, usual) for ridge, error, usual in found]

    def _typical_errors(self, squares: Sequence[Array]) -> Array:
        """Return the root of the geometric mean over all slices, one number per ridge."""
        logarithms = [
            np.log(np.maximum(s, _TINY)) @ own.weights
            for s, own in zip(squares, self.segments, strict=True)
        ]
        seen = [segment.slices for segment in self.segments]
        return np.asarray(np.exp(np.average(logarithms, axis=0, weights=seen) / 2))

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
            if _best(coarse, family).error > _FAR_BEHIND * least:
                break
            for halving in range(halvings):
                best = _best([*coarse, *found], family).kernel
                factor = step**0.5 ** (halving + 1)
                for width in (best.sigma / factor, best.sigma * factor):
                    kernel = self._kernel(family, width, best.cycle, best.swing)
                    found += self._assess(kernel)
        return found


def _segments(coordinates: Array, data: Array, count: int) -> Iterator[tuple[Array, list[Array]]]:
    """Yield the rising coordinates of each segment, and the data of all runs with its steps."""
    order = np.argsort(coordinates)
    if coordinates.size <= WHOLE:
        yield coordinates[order], [data[order]]
        return
    starts = np.linspace(0, coordinates.size - SEGMENT, count).astype(int)
    runs = [order[start : start + SEGMENT] for start in starts]
    while runs:
        steps = np.diff(coordinates[runs[0]])
        alike = [np.allclose(np.diff(coordinates[run]), steps, rtol=1e-9, atol=0) for run in runs]
        yield coordinates[runs[0]], [data[r] for r, same in zip(runs, alike, strict=True) if same]
        runs = [run for run, same in zip(runs, alike, strict=True) if not same]


def _compress(data: Array) -> Array:
    """Return slices (m, rank) with the inner products of slices (m, fibres).

    That is R' of the QR of Y', rotated, and scaled so that the mean over its columns is the mean
    over fibres. Columns fall in energy.
    """
    m, count = data.shape
    triangle = data if count <= m else np.asarray(np.linalg.qr(data.T, mode="r")).T
    u, sizes, _ = np.linalg.svd(triangle, full_matrices=False)
    kept = max(1, int(np.count_nonzero(sizes > 1e-15 * sizes[0])))
    return np.asarray(u[:, :kept] * (sizes[:kept] * math.sqrt(kept / count)))


def _sigma_range(coordinates: Array, period: float | None) -> tuple[float, float]:
    """Return the shortest and longest sigma to try: under half a step, and three extents."""
    longest = float(np.ptp(coordinates)) or 1.0
    return 0.4 * spacing(coordinates), 3 * (longest if period is None else period / math.pi)


def _best_families(candidates: Sequence[Candidate]) -> list[str]:
    """Return the names of the two families of least error, the best first."""
    names = dict.fromkeys(candidate.kernel.family for candidate in candidates)
    return sorted(names, key=lambda name: _best(candidates, name).error)[:2]


def _least(candidates: Sequence[Candidate]) -> float:
    """Return the least error."""
    return min(candidate.error for candidate in candidates)


def _best(candidates: Sequence[Candidate], family: str) -> Candidate:
    """Return the candidate of least error of one family."""
    own = (candidate for candidate in candidates if candidate.kernel.family == family)
    return min(own, key=lambda candidate: candidate.error)


def _nearest_to_average(segments: Sequence[_Segment], candidates: Sequence[Candidate]) -> Candidate:
    """Return the candidate that predicts most like the weighted average of all."""
    scores = np.array([candidate.score for candidate in candidates])
    ratios = np.maximum(scores, _TINY) / max(float(scores.min()), _TINY)
    share = _shares({candidate.kernel for candidate in candidates})
    slices = sum(segment.slices for segment in segments)
    weights = ratios ** -float(slices)
    weights *= [share[candidate.kernel] for candidate in candidates]
    if slices > _TWO_SLICES:
        weights *= [max(candidate.ridge, _NO_NOISE) ** -_LESS_NOISE for candidate in candidates]
    weights /= weights.max()
    counted = np.flatnonzero(weights >= COUNTS).tolist()
    answers = {i: np.concatenate([s.midpoints(candidates[i]) for s in segments]) for i in counted}
    average = np.tensordot(weights[counted], list(answers.values()), 1) / weights[counted].sum()
    close = [i for i in counted if weights[i] >= MAY_BE_TAKEN]
    return candidates[min(close, key=lambda i: float(np.linalg.norm(answers[i] - average)))]


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
