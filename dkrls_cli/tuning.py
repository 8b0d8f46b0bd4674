"""Kernel, sigma and ridge of a level, chosen by leaving slices out in closed form.

With C = K + lambda I the residual of a slice that is left out is (C^-1 Y)_j / (C^-1)_jj, so a
whole leave-one-out costs no more than a solve. The data enters through the R factor of its
unfolding, at most m x m however large the grid; the residuals of one level do not depend on the
settings of the others, so levels are chosen one by one.

Which one is taken
------------------
Not the least error, but the smallest ridge among settings whose mean square error is within
3 % + 1/m of it: leaving a slice out tests a gap of two steps, while answers lie within one, so the
least error smooths too much, and the fewer slices there are, the less it means. The two end
slices count a tenth: leaving them out tests extrapolation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from dkrls_cli.kernels import FAMILIES, Array, Kernel, gram
from dkrls_cli.spectral import ROUND_OFF, decompose, one_blas_thread
from dkrls_cli.tensors import Tensor, apply

RIDGES = np.concatenate([[1e-14, 3e-14, 1e-13, 3e-13], 10.0 ** np.arange(-12, 2)])
_FIBRES = 2048
_WHOLE, _WINDOW, _WINDOWS = 160, 64, 3
_END_WEIGHT = 0.1
_COARSE = 5
_REAL_RIDGE = 1e-4


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


def slices(values: Tensor, axis: int, mean: float, most: int = _FIBRES) -> Array:
    """The data along one axis (m, at most so many): every fibre, or fibres spread over the grid."""
    before, after = math.prod(values.shape[:axis]), math.prod(values.shape[axis + 1 :])
    fibres = values.reshape(before, values.shape[axis], after)
    taken = np.arange(before * after)
    if taken.size > most:
        golden = (math.sqrt(5) - 1) / 2
        taken = np.unique((np.arange(most) * golden % 1.0 * taken.size).astype(np.intp))
    return np.asarray(fibres[taken // after, :, taken % after], np.float64).T - mean


def choose(
    coordinates: Array,
    data: Array,
    *,
    family: str | None = None,
    sigma: float | None = None,
    ridge: float | None = None,
    period: float | None = None,
) -> Choice:
    """The setting of a level with these coordinates (m,) and data (m, fibres).

    What is given is kept, the rest is chosen around it. A level of more than 160 samples is seen
    through three windows of 64 neighbours, at its ends and in its middle.
    """
    with one_blas_thread():
        return _choose(coordinates, data, family, sigma, ridge, period)


def _choose(
    coordinates: Array,
    data: Array,
    family: str | None,
    sigma: float | None,
    ridge: float | None,
    period: float | None,
) -> Choice:
    windows = [_Window(c, _compressed(y)) for c, y in _windows(coordinates, data)]
    # No ridge so small that directions would drop out of the solve: noise in them would count for
    # nothing. An eigenvalue is at most m.
    ridges = RIDGES[ROUND_OFF * coordinates.size < RIDGES] if ridge is None else np.array([ridge])
    families = list(FAMILIES) if family is None else [family]
    span = _sigma_range(coordinates, period)

    def tried(kernel: Kernel) -> list[Trial]:
        squares = sum(window.errors(kernel, ridges) for window in windows) / len(windows)
        errors = np.sqrt(squares)
        return [Trial(kernel, float(r), float(e)) for r, e in zip(ridges, errors, strict=True)]

    widths = np.geomspace(*span, _COARSE) if sigma is None else np.array([sigma])
    trials = [t for name in families for s in widths for t in tried(Kernel(name, float(s), period))]
    if sigma is None:
        step = (span[1] / span[0]) ** (1 / (_COARSE - 1))
        for name, halvings in zip(_best_families(trials), (3, 1), strict=False):
            for halving in range(halvings):
                kernel = _best(trials, name).kernel
                factor = step**0.5 ** (halving + 1)
                for width in (kernel.sigma / factor, kernel.sigma * factor):
                    trials += tried(Kernel(name, width, period))
    return Choice(_taken(trials, coordinates.size), tuple(trials))


class _Window:
    """Samples that lie side by side, and the R factor of their data."""

    def __init__(self, coordinates: Array, data: Array) -> None:
        self.coordinates, self.data = coordinates, data
        self.weights = np.ones(coordinates.size)
        if coordinates.size > 3:
            self.weights[[coordinates.argmin(), coordinates.argmax()]] = _END_WEIGHT
        self.weights /= self.weights.sum()

    def errors(self, kernel: Kernel, ridges: Array) -> Array:
        """Mean square error of the slices left out one by one, for every ridge."""
        spectrum = decompose(gram(kernel, self.coordinates, self.coordinates))
        v, w = spectrum.vectors, spectrum.values
        z, squares = v.T @ self.data, v * v
        weights = self.weights if kernel.period is None else np.full(w.size, 1 / w.size)
        result = np.empty(ridges.size)
        for i, ridge in enumerate(ridges):
            rank = spectrum.solvable(ridge).rank
            inverse = 1.0 / (w[:rank] + ridge)
            residuals = (v[:, :rank] * inverse) @ z[:rank]
            residuals /= (squares[:, :rank] @ inverse)[:, None]
            result[i] = weights @ np.einsum("ij,ij->i", residuals, residuals)
        return np.asarray(result / self.data.shape[1])


def _windows(coordinates: Array, data: Array) -> Iterator[tuple[Array, Array]]:
    order = np.argsort(coordinates)
    size = coordinates.size
    if size <= _WHOLE:
        yield coordinates[order], data[order]
        return
    for start in np.linspace(0, size - _WINDOW, _WINDOWS).astype(int):
        here = order[start : start + _WINDOW]
        yield coordinates[here], data[here]


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
    steps = np.diff(np.sort(coordinates))
    shortest = float(np.median(steps)) if steps.size else 1.0
    longest = float(np.ptp(coordinates)) or 1.0
    return 0.4 * shortest, 3 * (longest if period is None else period / math.pi)


def _best_families(trials: Sequence[Trial]) -> list[str]:
    """The two families that have come closest."""
    names = dict.fromkeys(trial.kernel.family for trial in trials)
    return sorted(names, key=lambda name: _best(trials, name).error)[:2]


def _best(trials: Sequence[Trial], name: str) -> Trial:
    own = (trial for trial in trials if trial.kernel.family == name)
    return min(own, key=lambda trial: trial.error)


def _taken(trials: Sequence[Trial], size: int) -> Trial:
    least = min(trial.error for trial in trials)
    allowed = least * math.sqrt(1.03 + 1.0 / size)
    good = [trial for trial in trials if trial.error <= allowed]
    ridge = min(trial.ridge for trial in good)
    return min((t for t in good if t.ridge == ridge), key=lambda trial: trial.error)


def choose_joint_ridge(
    values: Tensor, coordinates: Sequence[Array], kernels: Sequence[Kernel]
) -> float:
    """The one ridge of a whole grid by generalised cross-validation over its spectrum.

    With p the products of the levels' eigenvalues and z the data in their eigenbases, it makes
    mean((lambda z / (p + lambda))^2) / mean(lambda / (p + lambda))^2 least.
    """
    spectra = [decompose(gram(k, c, c)) for k, c in zip(kernels, coordinates, strict=True)]
    energy = apply(values, [spectrum.vectors.T for spectrum in spectra]) ** 2
    products = reduce(np.multiply.outer, [spectrum.values for spectrum in spectra])
    edges = np.concatenate([[0.0], np.geomspace(1e-20, products.max() * 1.01, 400)])
    bins = np.digitize(products.ravel(), edges) - 1
    counts = np.bincount(bins, minlength=edges.size)
    sums = np.bincount(bins, energy.ravel(), minlength=edges.size)
    middles = np.concatenate([[0.0], np.sqrt(edges[1:-1] * edges[2:]), edges[-1:]])
    ridges = np.geomspace(1e-14, 1e3, 171)
    filters = ridges[:, None] / (middles + ridges[:, None])
    scores = (filters**2 @ sums) / (filters @ counts) ** 2
    return float(ridges[np.argmin(scores)])
