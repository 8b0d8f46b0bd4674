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
that it stands for. The predictions of all candidates half-way between the slices are averaged with
these weights, and the candidate that predicts most like the average is taken. The outermost slices
count a tenth, because leaving them out tests extrapolation.

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from dkrls_cli.arrays import Array, Tensor
from dkrls_cli.cascade.kernels import FAMILIES, Kernel, gram
from dkrls_cli.cascade.spectrum import ROUND_OFF, Spectrum, decompose
from dkrls_cli.cascade.tensors import along
from dkrls_cli.circle import spacing
from dkrls_cli.threads import one_blas_thread
from dkrls_cli.tuning.spectra import SpectrumCache

RIDGES = np.concatenate([[1e-14, 3e-14, 1e-13, 3e-13], 10.0 ** np.arange(-12, 2)])
"""Ridges that are tried; closer at the small end, where clean data tells them apart."""

CONSTANT = 1.0
"""Variance of the constant in chosen kernels, in units of the variance of the family."""

_FIBRES = 2048
"""Fibres that stand for a grid: several times the samples of a segment, so its R factor is full."""

_WHOLE, _SEGMENT, _SEGMENTS = 160, 64, 3
"""Samples up to which a level is seen whole; beyond, samples of a segment and segments seen."""

_END_WEIGHT = 0.1
"""Weight of the outermost slices or blocks beside 1: leaving them out tests extrapolation."""

_COARSE = 9
"""Sigmas of the first, coarse search, evenly spaced in logarithms."""

_HALVINGS = (5, 2)
"""How often the step of sigma is halved around the best, for the best family and the second."""

_SWINGS = (1.0, 10.0)
"""Variances of a cycle that are tried, in units of the variance of the family."""

_REAL_RIDGE = 1e-4
"""Ridge from which a level is taken to have noise of its own."""

_COUNTS, _MAY_BE_TAKEN = 0.01, 0.3
"""Weights, as shares of the largest, from which a candidate is averaged, and may be taken."""

_COLUMNS = 32
"""Directions of the data, by energy, in which predictions of candidates are compared."""

_MIDPOINTS = 24
"""Places between the coordinates of one level that stand for it while others are chosen."""

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Candidate:
    """A setting of one level, and the root of its mean square error on left-out slices."""

    kernel: Kernel
    ridge: float
    error: float


@dataclass(frozen=True)
class LevelChoice:
    """The setting chosen for one level.

    Attributes
    ----------
    taken
        The candidate that was chosen.
    tried
        All candidates.
    spectra
        Full spectra, on all coordinates of the level, of the kernels of `taken` and of
        `under_joint_ridge`. Empty if the level was seen in segments only, or if its coordinates
        do not rise.
    """

    taken: Candidate
    tried: tuple[Candidate, ...]
    spectra: Mapping[Kernel, Spectrum] = field(default_factory=dict, compare=False, repr=False)

    @property
    def under_joint_ridge(self) -> Candidate:
        """The candidate for a level without a ridge of its own: least error with a real ridge.

        A joint ridge must find the noise in the spectra of the kernels, and kernels chosen
        together with a tiny ridge leave no room for it.
        """
        real = [candidate for candidate in self.tried if candidate.ridge >= _REAL_RIDGE]
        return min(real or self.tried, key=lambda candidate: candidate.error)

    @property
    def warnings(self) -> list[str]:
        """Sentences about settings at the end of their range, where better ones may lie beyond."""
        sigmas = [candidate.kernel.sigma for candidate in self.tried]
        found = []
        if len(set(sigmas)) > 1 and self.taken.kernel.sigma == min(sigmas):
            found.append(f"sigma {self.taken.kernel.sigma:.3g} is the shortest tried")
        if self.taken.ridge == RIDGES[-1]:
            found.append(f"ridge {self.taken.ridge:g} is the largest tried")
        return found

    @property
    def curve(self) -> list[Candidate]:
        """The best candidate of each kernel, ordered by cycle, family and sigma."""
        best: dict[Kernel, Candidate] = {}
        for candidate in self.tried:
            known = best.get(candidate.kernel)
            if known is None or candidate.error < known.error:
                best[candidate.kernel] = candidate
        order = list(FAMILIES)
        return sorted(
            best.values(),
            key=lambda c: (c.kernel.cycle or 0.0, order.index(c.kernel.family), c.kernel.sigma),
        )


def sample_fibres(values: Tensor, axis: int, mean: float, most: int = _FIBRES) -> Array:
    """Return fibres along one axis, less the mean, as columns (m, fibres).

    All fibres if there are at most `most`, else about as many, spread evenly over the grid.
    """
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
    if places.size > _MIDPOINTS:
        places = np.linspace(0, places[-1], _MIDPOINTS).astype(np.intp)
    with one_blas_thread():
        whole = spectrum or decompose(gram(kernel, coordinates, coordinates))
        solvable = whole.solvable(ridge)
        asked = gram(kernel, (order[places] + order[places + 1]) / 2, coordinates)
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
    spectra: SpectrumCache | None = None,
) -> LevelChoice:
    """Choose the setting of a level by leaving slices out.

    A level of more than 160 samples is seen through three segments of 64 neighbours, at its ends
    and in its middle.

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
        Lengths with which the data may repeat. Those that fit twice into every segment are tried.
    folds
        Leave out this many blocks of neighbours, one at a time, instead of single slices.
    spectra
        Spectra that are known from other variables on the same coordinates.

    Examples
    --------
    >>> x = np.linspace(0.0, 12.0, 40)
    >>> choice = choose_level(x, np.sin(np.outer(x, [1.0, 1.1, 1.2])))
    >>> choice.taken.kernel.family, choice.taken.error < 1e-6
    ('gaussian', True)
    """
    spectra = spectra or SpectrumCache()
    with one_blas_thread():
        closed = period is not None and coordinates.size <= _WHOLE
        segments = [
            _Segment(c, runs, closed, folds, spectra) for c, runs in _segments(coordinates, data)
        ]
        shortest = min(float(np.ptp(segment.coordinates)) for segment in segments)
        fitting = [length for length in cycles if 2 * length <= shortest]
        search = _Search(segments, coordinates.size, ridge, period, fitting)
        families = list(FAMILIES) if family is None else [family]
        tried = search.candidates(families, sigma, _sigma_range(coordinates, period))
        choice = LevelChoice(_nearest_to_average(segments, tried), tuple(tried))
    kernels = {choice.taken.kernel, choice.under_joint_ridge.kernel}
    known = {kernel: spectra.known(kernel, coordinates) for kernel in kernels}
    return replace(choice, spectra={k: found for k, found in known.items() if found is not None})


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
        count = coordinates.size
        self.slices = count * len(runs)
        blocks = min(folds or count, count)
        self.blocks = None if blocks == count else np.array_split(np.arange(count), blocks)
        self.weights = np.ones(count)
        if not closed and blocks > 3:
            ends = [0, -1] if self.blocks is None else np.r_[self.blocks[0], self.blocks[-1]]
            self.weights[ends] = _END_WEIGHT
        self.weights /= self.weights.sum()

    def errors(self, kernel: Kernel, ridges: Array) -> Array:
        """Return the mean square error of left-out slices or blocks, one number per ridge."""
        spectrum = self._spectra.of(kernel, self.coordinates)
        v, w = spectrum.vectors, spectrum.values
        lifted = w + ridges[:, None]  # (ridges, m)
        inverse = np.where(lifted > ROUND_OFF * w[0], 1.0 / np.maximum(lifted, _TINY), 0.0)
        missed = np.matmul(v, inverse[:, :, None] * (v.T @ self.data))  # C^-1 Y of every ridge
        if self.blocks is None:
            missed /= (inverse @ (v * v).T)[:, :, None]
        for block in self.blocks or ():
            own = np.matmul(v[block] * inverse[:, None, :], v[block].T)
            missed[:, block] = np.linalg.pinv(own, hermitian=True) @ missed[:, block]
        squares = np.einsum("rij,rij,i->r", missed, missed, self.weights)
        return np.asarray(squares / self.data.shape[1])

    def midpoints(self, candidate: Candidate) -> Array:
        """Return predictions half-way between the slices in the directions of most energy.

        They are flattened, and scaled so that segments of any rank count alike.
        """
        spectrum = self._spectra.of(candidate.kernel, self.coordinates).solvable(candidate.ridge)
        solved = spectrum.solve(candidate.ridge, self.data[:, :_COLUMNS])
        middles = (self.coordinates[:-1] + self.coordinates[1:]) / 2
        rows = gram(candidate.kernel, middles, self.coordinates) @ spectrum.vectors
        return np.ravel(rows @ solved) / math.sqrt(self.data.shape[1])


@dataclass(frozen=True)
class _Search:
    """The settings that are tried: a coarse grid, then a finer one around the best."""

    segments: Sequence[_Segment]
    size: int
    ridge: float | None
    period: float | None
    cycles: Sequence[float]

    def candidates(
        self, families: Sequence[str], sigma: float | None, span: tuple[float, float]
    ) -> list[Candidate]:
        """Return all candidates, with one given sigma or with sigmas within a range."""
        widths = np.geomspace(*span, _COARSE) if sigma is None else np.array([sigma])
        found: list[Candidate] = []
        for cycle, swing in [(None, 1.0), *product(self.cycles, _SWINGS)]:
            own = [
                candidate
                for family, width in product(families, widths)
                for candidate in self._assess(self._kernel(family, float(width), cycle, swing))
            ]
            if sigma is None:
                own += self._refine(own, (span[1] / span[0]) ** (1 / (_COARSE - 1)))
            found += own
        return found

    def _kernel(self, family: str, sigma: float, cycle: float | None, swing: float) -> Kernel:
        return Kernel(family, sigma, self.period, CONSTANT, cycle, swing)

    def _assess(self, kernel: Kernel) -> list[Candidate]:
        """Return the candidates of one kernel, one for each ridge."""
        ridges = self._ridges(kernel)
        squares = [segment.errors(kernel, ridges) for segment in self.segments]
        seen = [segment.slices for segment in self.segments]
        errors = np.sqrt(np.average(squares, axis=0, weights=seen)).tolist()
        return [Candidate(kernel, r, e) for r, e in zip(ridges.tolist(), errors, strict=True)]

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
        for family, halvings in zip(_best_families(coarse), _HALVINGS, strict=False):
            for halving in range(halvings):
                best = _best([*coarse, *found], family).kernel
                factor = step**0.5 ** (halving + 1)
                for width in (best.sigma / factor, best.sigma * factor):
                    kernel = self._kernel(family, width, best.cycle, best.swing)
                    found += self._assess(kernel)
        return found


def _segments(coordinates: Array, data: Array) -> Iterator[tuple[Array, list[Array]]]:
    """Yield the rising coordinates of each segment, and the data of all runs with its steps."""
    order = np.argsort(coordinates)
    if coordinates.size <= _WHOLE:
        yield coordinates[order], [data[order]]
        return
    starts = np.linspace(0, coordinates.size - _SEGMENT, _SEGMENTS).astype(int)
    runs = [order[start : start + _SEGMENT] for start in starts]
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


def _best(candidates: Sequence[Candidate], family: str) -> Candidate:
    """Return the candidate of least error of one family."""
    own = (candidate for candidate in candidates if candidate.kernel.family == family)
    return min(own, key=lambda candidate: candidate.error)


def _nearest_to_average(segments: Sequence[_Segment], candidates: Sequence[Candidate]) -> Candidate:
    """Return the candidate that predicts most like the weighted average of all."""
    errors = np.array([candidate.error for candidate in candidates])
    ratios = np.maximum(errors, _TINY) / max(float(errors.min()), _TINY)
    share = _shares({candidate.kernel for candidate in candidates})
    weights = ratios ** -float(sum(segment.slices for segment in segments))
    weights *= [share[candidate.kernel] for candidate in candidates]
    weights /= weights.max()
    counted = np.flatnonzero(weights >= _COUNTS).tolist()
    answers = {i: np.concatenate([s.midpoints(candidates[i]) for s in segments]) for i in counted}
    average = np.tensordot(weights[counted], list(answers.values()), 1) / weights[counted].sum()
    close = [i for i in counted if weights[i] >= _MAY_BE_TAKEN]
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
