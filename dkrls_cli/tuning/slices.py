"""Kernel, sigma and ridge of a level, chosen by leaving slices out in closed form.

With C = K + lambda I the residual of a slice that is left out is (C^-1 Y)_j / (C^-1)_jj, so a
whole leave-one-out costs no more than a solve; that of a block B is (C^-1)_BB^-1 (C^-1 Y)_B. The
data enters through the R factor of its unfolding, at most m x m however large the grid; the
residuals of one level do not depend on the settings of the others, so levels are chosen one by one.

Which one is taken
------------------
Not the one of least error: with few slices that is luck. Every setting gets the weight
(mean square error)^(-n/2), as in a likelihood of n slices, times the share of the range of sigma
that it stands for, and the answers of all settings half-way between the slices are averaged with
these weights. The setting that answers most like the
average is taken: the middle of what the data leaves open. The ends count a tenth, because leaving
them out tests extrapolation.

Answers are asked for between the coordinates of several levels at once, and what one level
smooths, the next need not: so the shortest level is chosen first, and every other one on data that
the levels before it have answered half-way between their coordinates.

Chosen kernels hold a constant of their own variance, so that answers far from the data fall back
to the mean along the dimension and not to that of the grid.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np

from dkrls_cli.arrays import Array, Tensor
from dkrls_cli.cascade.kernels import FAMILIES, Kernel, gram
from dkrls_cli.cascade.spectrum import ROUND_OFF, Spectrum, decompose
from dkrls_cli.cascade.tensors import along
from dkrls_cli.circle import spacing
from dkrls_cli.threads import one_blas_thread

RIDGES = np.concatenate([[1e-14, 3e-14, 1e-13, 3e-13], 10.0 ** np.arange(-12, 2)])
CONSTANT = 1.0
_FIBRES = 2048
_WHOLE, _WINDOW, _WINDOWS = 160, 64, 3
_END_WEIGHT = 0.1
_COARSE = 9
_SWINGS = (1.0, 10.0)
_REAL_RIDGE = 1e-4
_COUNTS, _MAY_BE_TAKEN = 0.01, 0.3  # weights, as shares of the largest
_COLUMNS = 32
_TINY = float(np.finfo(np.float64).tiny)
_BETWEEN = 24


@dataclass(frozen=True)
class Trial:
    """One setting of a level and the root of its mean square error on slices left out."""

    kernel: Kernel
    ridge: float
    error: float


@dataclass(frozen=True)
class Choice:
    """The setting taken, and all that were tried."""

    taken: Trial
    tried: tuple[Trial, ...]

    @property
    def under_joint_ridge(self) -> Trial:
        """The setting for a level without a ridge of its own: that of least error with a real one.

        A joint ridge must find noise in the spectrum of the kernels, and kernels that were chosen
        beside a tiny ridge leave it no room.
        """
        real = [trial for trial in self.tried if trial.ridge >= _REAL_RIDGE]
        return min(real or self.tried, key=lambda trial: trial.error)

    @property
    def warnings(self) -> list[str]:
        """What lies at the end of its range, where a better value may be beyond."""
        sigmas = [trial.kernel.sigma for trial in self.tried]
        said = []
        if len(set(sigmas)) > 1 and self.taken.kernel.sigma == min(sigmas):
            said.append(f"sigma {self.taken.kernel.sigma:.3g} is the shortest tried")
        if self.taken.ridge == RIDGES[-1]:
            said.append(f"ridge {self.taken.ridge:g} is the largest tried")
        return said

    @property
    def curve(self) -> list[Trial]:
        """The least error of every kernel tried, families in turn and sigma rising."""
        best: dict[Kernel, Trial] = {}
        for trial in self.tried:
            known = best.get(trial.kernel)
            if known is None or trial.error < known.error:
                best[trial.kernel] = trial
        order = list(FAMILIES)
        return sorted(
            best.values(),
            key=lambda t: (t.kernel.cycle or 0.0, order.index(t.kernel.family), t.kernel.sigma),
        )


def slices(values: Tensor, axis: int, mean: float, most: int = _FIBRES) -> Array:
    """The data along one axis (m, at most so many): every fibre, or fibres spread over the grid."""
    before, after = math.prod(values.shape[:axis]), math.prod(values.shape[axis + 1 :])
    fibres = values.reshape(before, values.shape[axis], after)
    taken = np.arange(before * after)
    if taken.size > most:
        golden = (math.sqrt(5) - 1) / 2
        taken = np.unique((np.arange(most) * golden % 1.0 * taken.size).astype(np.intp))
    return np.asarray(fibres[taken // after, :, taken % after], np.float64).T - mean


def between(
    values: Tensor, axis: int, mean: float, coordinates: Array, kernel: Kernel, ridge: float
) -> Array:
    """The data less its mean, answered half-way between neighbours along one axis.

    At 24 places at most, spread evenly.
    """
    order = np.sort(coordinates)
    places = np.arange(order.size - 1)
    if places.size > _BETWEEN:
        places = np.linspace(0, places[-1], _BETWEEN).astype(np.intp)
    with one_blas_thread():
        spectrum = decompose(gram(kernel, coordinates, coordinates)).solvable(ridge)
        asked = gram(kernel, (order[places] + order[places + 1]) / 2, coordinates)
        rows = (asked @ spectrum.vectors) / (spectrum.values + ridge) @ spectrum.vectors.T
    answers = along(values, axis, rows)
    answers -= mean * rows.sum(axis=1).reshape(-1, *[1] * (values.ndim - axis - 1))
    return answers


def choose(
    coordinates: Array,
    data: Array,
    *,
    family: str | None = None,
    sigma: float | None = None,
    ridge: float | None = None,
    period: float | None = None,
    cycles: Sequence[float] = (),
    folds: int | None = None,
) -> Choice:
    """The setting of a level with these coordinates (m,) and data (m, fibres).

    What is given is kept, the rest is chosen around it. A level of more than 160 samples is seen
    through three windows of 64 neighbours, at its ends and in its middle. Of the `cycles` that
    the data may repeat with, those are tried that a window holds twice. With `folds`, so many
    blocks of neighbours are left out of every window instead of single slices.
    """
    with one_blas_thread():
        closed = period is not None and coordinates.size <= _WHOLE
        windows = [_Window(c, ys, closed, folds) for c, ys in _windows(coordinates, data)]
        held = min(float(np.ptp(window.coordinates)) for window in windows)
        seen = [length for length in cycles if 2 * length <= held]
        search = _Search(windows, coordinates.size, ridge, period, seen)
        families = list(FAMILIES) if family is None else [family]
        trials = search.trials(families, sigma, _sigma_range(coordinates, period))
        return Choice(_nearest_to_average(windows, trials), tuple(trials))


class _Window:
    """Samples that lie side by side, and the R factor of their data.

    Runs of samples with the same steps between them have the same Gram matrix, and are one window.
    One that is closed is a whole circle and has no ends.
    """

    def __init__(
        self, coordinates: Array, runs: Sequence[Array], closed: bool, folds: int | None
    ) -> None:
        self.coordinates, self.data = coordinates, _compressed(np.concatenate(runs, axis=1))
        count = coordinates.size
        self.slices = count * len(runs)
        blocks = min(folds or count, count)
        self.blocks = None if blocks == count else np.array_split(np.arange(count), blocks)
        self.weights = np.ones(count)
        if not closed and blocks > 3:
            ends = [0, -1] if self.blocks is None else np.r_[self.blocks[0], self.blocks[-1]]
            self.weights[ends] = _END_WEIGHT
        self.weights /= self.weights.sum()
        self.spectrum = cache(self._spectrum)

    def _spectrum(self, kernel: Kernel) -> Spectrum:
        return decompose(gram(kernel, self.coordinates, self.coordinates))

    def errors(self, kernel: Kernel, ridges: Array) -> Array:
        """Mean square error of what is left out, for every ridge."""
        spectrum = self.spectrum(kernel)
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

    def half_way(self, trial: Trial) -> Array:
        """Answers half-way between the slices (m - 1, columns), of the columns of most energy."""
        spectrum = self.spectrum(trial.kernel).solvable(trial.ridge)
        solved = spectrum.solve(trial.ridge, self.data[:, :_COLUMNS])
        middles = (self.coordinates[:-1] + self.coordinates[1:]) / 2
        rows = gram(trial.kernel, middles, self.coordinates) @ spectrum.vectors
        return np.asarray(rows @ solved)


@dataclass(frozen=True)
class _Search:
    """The settings that are tried: a coarse grid, then finer around the best."""

    windows: Sequence[_Window]
    size: int
    ridge: float | None
    period: float | None
    cycles: Sequence[float]

    def trials(
        self, families: Sequence[str], sigma: float | None, span: tuple[float, float]
    ) -> list[Trial]:
        """All trials, of one sigma or of those in a range."""
        widths = np.geomspace(*span, _COARSE) if sigma is None else np.array([sigma])
        trials: list[Trial] = []
        for cycle, swing in [(None, 1.0), *product(self.cycles, _SWINGS)]:
            own = [
                trial
                for family, width in product(families, widths)
                for trial in self._tried(self._kernel(family, float(width), cycle, swing))
            ]
            if sigma is None:
                own += self._finer(own, (span[1] / span[0]) ** (1 / (_COARSE - 1)))
            trials += own
        return trials

    def _kernel(self, family: str, sigma: float, cycle: float | None, swing: float) -> Kernel:
        return Kernel(family, sigma, self.period, CONSTANT, cycle, swing)

    def _tried(self, kernel: Kernel) -> list[Trial]:
        ridges = self._ridges(kernel)
        squares = [window.errors(kernel, ridges) for window in self.windows]
        seen = [window.slices for window in self.windows]
        errors = np.sqrt(np.average(squares, axis=0, weights=seen)).tolist()
        return [Trial(kernel, r, e) for r, e in zip(ridges.tolist(), errors, strict=True)]

    def _ridges(self, kernel: Kernel) -> Array:
        """None so small that directions drop out of the solve: noise in them would not count.

        An eigenvalue is at most m times the variance of the kernel.
        """
        if self.ridge is not None:
            return np.array([self.ridge])
        return RIDGES[ROUND_OFF * self.size * kernel.variance < RIDGES]

    def _finer(self, trials: Sequence[Trial], step: float) -> list[Trial]:
        """Steps of sigma halved and halved again around the best of the two best families."""
        found: list[Trial] = []
        for family, halvings in zip(_best_families(trials), (5, 2), strict=False):
            for halving in range(halvings):
                best = _best([*trials, *found], family).kernel
                factor = step**0.5 ** (halving + 1)
                for width in (best.sigma / factor, best.sigma * factor):
                    kernel = self._kernel(family, width, best.cycle, best.swing)
                    found += self._tried(kernel)
        return found


def _windows(coordinates: Array, data: Array) -> Iterator[tuple[Array, list[Array]]]:
    """Coordinates in order, and the data of all runs of samples that have their steps."""
    order = np.argsort(coordinates)
    if coordinates.size <= _WHOLE:
        yield coordinates[order], [data[order]]
        return
    starts = np.linspace(0, coordinates.size - _WINDOW, _WINDOWS).astype(int)
    runs = [order[start : start + _WINDOW] for start in starts]
    while runs:
        steps = np.diff(coordinates[runs[0]])
        alike = [np.allclose(np.diff(coordinates[run]), steps, rtol=1e-9, atol=0) for run in runs]
        yield coordinates[runs[0]], [data[r] for r, same in zip(runs, alike, strict=True) if same]
        runs = [run for run, same in zip(runs, alike, strict=True) if not same]


def _compressed(data: Array) -> Array:
    """Slices (m, fibres) with the same inner products in as few columns as they span.

    That is R' of the QR of Y', rotated, scaled so that a mean over columns is one over fibres.
    """
    m, count = data.shape
    triangle = data if count <= m else np.asarray(np.linalg.qr(data.T, mode="r")).T
    u, sizes, _ = np.linalg.svd(triangle, full_matrices=False)
    kept = max(1, int(np.count_nonzero(sizes > 1e-15 * sizes[0])))
    return np.asarray(u[:, :kept] * (sizes[:kept] * math.sqrt(kept / count)))


def _sigma_range(coordinates: Array, period: float | None) -> tuple[float, float]:
    longest = float(np.ptp(coordinates)) or 1.0
    return 0.4 * spacing(coordinates), 3 * (longest if period is None else period / math.pi)


def _best_families(trials: Sequence[Trial]) -> list[str]:
    """The two families that have come closest."""
    names = dict.fromkeys(trial.kernel.family for trial in trials)
    return sorted(names, key=lambda name: _best(trials, name).error)[:2]


def _best(trials: Sequence[Trial], name: str) -> Trial:
    own = (trial for trial in trials if trial.kernel.family == name)
    return min(own, key=lambda trial: trial.error)


def _nearest_to_average(windows: Sequence[_Window], trials: Sequence[Trial]) -> Trial:
    """The trial that answers most like the average of all, weighted by how well they did."""
    errors = np.array([trial.error for trial in trials])
    ratios = np.maximum(errors, _TINY) / max(float(errors.min()), _TINY)
    share = _shares({trial.kernel for trial in trials})
    weights = ratios ** -float(sum(window.slices for window in windows))
    weights *= [share[trial.kernel] for trial in trials]
    weights /= weights.max()
    counted = np.flatnonzero(weights >= _COUNTS).tolist()
    answers = {i: np.concatenate([w.half_way(trials[i]) for w in windows]) for i in counted}
    average = np.tensordot(weights[counted], list(answers.values()), 1) / weights[counted].sum()
    close = [i for i in counted if weights[i] >= _MAY_BE_TAKEN]
    return trials[min(close, key=lambda i: float(np.linalg.norm(answers[i] - average)))]


def _shares(kernels: Iterable[Kernel]) -> dict[Kernel, float]:
    """How much of the range of sigma, in logarithms, each kernel stands for in its own kind."""
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
