"""Slices of a level left out in closed form: of all samples of a short level, or of segments.

With C = K + lambda I, the residual of slice j when it is left out is (C^-1 Y)_j / (C^-1)_jj, so
leaving out every slice in turn costs no more than one solve. The residual of a block B that is left
out is (C^-1)_BB^-1 (C^-1 Y)_B. The data enters through the R factor of its unfolding, which is at
most m x m however large the grid.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.poles.pairs import SINGULAR
from dkrls_cli.cascade.spectrum import ROUND_OFF
from dkrls_cli.tuning.candidates import END_WEIGHT, Candidate
from dkrls_cli.tuning.spectra import SpectrumCache

WHOLE, SEGMENT, SEGMENTS = 160, 64, 3
"""Samples up to which a level has a dense search; beyond, samples of a segment and segments."""

_COLUMNS = 32
"""Directions of the data, by energy, in which predictions of candidates are compared."""

TINY = float(np.finfo(np.float64).tiny)
"""Least error that counts: the logarithm of none is infinite."""


class Segment:
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
        inverse = np.where(lifted > ROUND_OFF * w[0], 1.0 / np.maximum(lifted, TINY), 0.0)
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


class CopiedSegment(Segment):
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


def cut_segments(
    coordinates: Array, data: Array, count: int
) -> Iterator[tuple[Array, list[Array]]]:
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
