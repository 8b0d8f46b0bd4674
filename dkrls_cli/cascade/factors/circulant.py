"""An even circle: K is circulant, so that the Fourier transform diagonalises it.

With h the kernel between the first coordinate and all, the eigenvalues of K are w = F h (F the
discrete Fourier transform), and C^-1 = F^-1 diag(1 / (w + ridge)) F costs O(m log m) a column.

A query at offset t from a node sees h_t, the kernel moved by t. Within one step a moved kernel has
no kink, so that h_t is a polynomial in t, given by a few offsets: the answers to any queries are a
few convolutions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.factors.factor import COLUMNS, Cost
from dkrls_cli.cascade.factors.reach import product, reach
from dkrls_cli.cascade.functionals.derivatives import derivative_gram, derivative_variance
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.spectrum import ROUND_OFF
from dkrls_cli.circle import wrap

_EPS = float(np.finfo(np.float64).eps)

# Coordinates may be this many epsilons of the period away from an even circle: rounding.
_EVEN_EPSILONS = 8

# Offsets are one offset if they differ by this many epsilons of the period: the rounding of a
# coordinate that is wrapped and counted in steps.
_SAME_EPSILONS = 16

# Where a step is cut open, as a share of it: far from nodes, from half-way points and other simple
# fractions, so that rounding does not scatter their offsets to both ends of the step.
_CUT = 0.2718

# Nodes within reach up to which kernel rows are cheaper than convolutions.
_FEW_NODES = 64

# Chebyshev points that hold a kernel over one step to round-off, for a length scale of at least so
# many steps: measured for all families, to 3e-15; two to four points fewer lose digits.
_POINTS = ((2.0, 14), (0.3, 28))


@dataclass(frozen=True, eq=False)
class Circulant:
    """C = K + ridge on an even circle.

    Attributes
    ----------
    inverse
        1 / (w + ridge) of the frequencies 0 to m // 2; 0 in directions that are round-off.
    """

    kernel: Kernel
    coordinates: Array
    ridge: float
    inverse: Array

    @classmethod
    def build(cls, kernel: Kernel, coordinates: Array, ridge: float) -> Self:
        """Return the factor of the kernel on coordinates that make up an even circle.

        Examples
        --------
        >>> months, data = np.arange(12.0), np.cos(np.arange(12.0) * np.pi / 6)[:, None]
        >>> factor = Circulant.build(Kernel(sigma=2.0, period=12.0), months, 1e-6)
        >>> factor.answer(np.array([6.0, 11.5]), factor.solve(data)).round(3).ravel()
        array([-1.   ,  0.966])
        """
        assert cost(kernel, coordinates) is not None
        first = _moved(kernel, coordinates.size, np.zeros(1))[0]
        w = np.maximum(np.fft.rfft(first).real, 0.0)
        live = w + ridge > ROUND_OFF * w.max()
        inverse = np.divide(1.0, w + ridge, out=np.zeros_like(w), where=live)
        return cls(kernel, coordinates, ridge, inverse)

    def solve(self, right: Array) -> Array:
        """Return C^-1 right, (m, n) -> (m, n)."""
        waves = np.fft.rfft(right, axis=0)
        waves *= self.inverse[:, None]
        return np.fft.irfft(waves, len(right), axis=0)

    def answer(self, query: Array, weights: Array) -> Array:
        """Return k(query, coordinates) @ weights, (q,), (m, n) -> (q, n)."""
        return self._answer(query, weights, 0)

    def _answer(self, query: Array, weights: Array, order: int) -> Array:
        """Return a derivative of k(query, coordinates) by the query, times weights (q, n)."""
        if min(2 * self._far, self._size) < _FEW_NODES:
            return product(self.kernel, query, self.coordinates, weights, order)
        cells, offsets, shares = self._places(query)
        waves = np.fft.rfft(weights, axis=0)
        answers = np.zeros((query.size, weights.shape[1]))
        for offset, share in zip(offsets, shares.T, strict=True):
            kernel_waves = np.fft.rfft(_moved(self.kernel, self._size, offset[None], order)[0])
            moved = np.fft.irfft(kernel_waves[:, None] * waves, self._size, axis=0)
            rows = np.flatnonzero(share)
            answers[rows] += share[rows, None] * moved[cells[rows]]
        return answers

    def prepare(self, weights: Array, order: int = 0) -> Callable[[Array], Array]:
        """Return a function that answers queries from the same weights (m, n) again and again.

        The answers are values, or derivatives of an `order`.
        """
        return partial(self._answer, weights=weights, order=order)

    def unexplained(self, query: Array, order: int = 0) -> Array:
        """Return k(0) - k' C^-1 k at any coordinates, (q,) -> (q,), never negative.

        It is that of values, or of derivatives of an `order`.
        """
        prior = derivative_variance(self.kernel, order)
        if self._is_short:
            return self._unexplained_by_rows(query, prior, order)
        _, offsets, shares = self._places(query)
        waves = np.fft.rfft(_moved(self.kernel, self._size, offsets, order), axis=1)
        waves *= np.sqrt(self.inverse * self._multiplicity / self._size)
        return _rest(prior, shares, (waves @ waves.conj().T).real)

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of C^-1, (m,): one number m times."""
        return np.full(self._size, self._multiplicity @ self.inverse / self._size)

    def inverse_blocks(self, edges: Indices) -> list[Array]:
        """Return the diagonal blocks of C^-1 between consecutive edges, from 0 to m."""
        first = np.fft.irfft(self.inverse, self._size)
        counts = [np.arange(size) for size in np.diff(edges)]
        return [first[np.abs(np.subtract.outer(count, count))] for count in counts]

    def extend(self, coordinates: Array) -> Self:
        """Return the factor with further coordinates, of which a full circle can take none."""
        return self.build(self.kernel, np.concatenate([self.coordinates, coordinates]), self.ridge)

    @property
    def _size(self) -> int:
        return self.coordinates.size

    @property
    def _step(self) -> float:
        return _period(self.kernel) / self._size

    @property
    def _far(self) -> int:
        """How many nodes the kernel reaches to each side, at most all."""
        return math.ceil(min(reach(self.kernel) / self._step, self._size))

    @property
    def _is_short(self) -> bool:
        """Whether the kernel changes too much within a step for the points of a polynomial."""
        return self.kernel.sigma < _POINTS[-1][0] * self._step

    @property
    def _multiplicity(self) -> Array:
        """How often each frequency from 0 to m // 2 stands in the whole spectrum: once or twice."""
        frequency = np.arange(self._size // 2 + 1)
        return np.where((2 * frequency) % self._size == 0, 1.0, 2.0)

    def _places(self, query: Array) -> tuple[Indices, Array, Array]:
        """Return the node before each query (q,), offsets in steps (p,), and shares in them (q, p).

        The kernel at a query is the sum of the kernels at these offsets, times its shares. If there
        are few offsets, as on a regular grid, each query has a share in its own only.
        """
        steps = wrap(query - self.coordinates[0], self.kernel.period) / self._step
        points = next(count for least, count in _POINTS if self.kernel.sigma >= least * self._step)
        nodes = np.floor(steps + _CUT)
        same = _SAME_EPSILONS * _EPS * self._size
        offsets, which = np.unique(np.rint((steps - nodes) / same), return_inverse=True)
        if offsets.size <= points:
            return nodes.astype(np.intp) % self._size, offsets * same, np.eye(offsets.size)[which]
        nodes = np.floor(steps)
        offsets, shares = _interpolation(steps - nodes, points)
        return nodes.astype(np.intp) % self._size, offsets, shares

    def _unexplained_by_rows(self, query: Array, prior: float, order: int) -> Array:
        """Return the same for a kernel that reaches few nodes: C is close to diagonal."""
        steps = wrap(query - self.coordinates[0], self.kernel.period) / self._step
        near = np.arange(
            min(2 * self._far + 2, self._size)
        )  # nodes, counted from the first in reach
        (inverse,) = self.inverse_blocks(np.array([0, near.size]))
        offsets = (steps - np.floor(steps) + self._far) * self._step
        nodes = self._step * near.astype(np.float64)
        return _rest(prior, derivative_gram(self.kernel, offsets, nodes, order), inverse)


def cost(kernel: Kernel, coordinates: Array) -> Cost | None:
    """Return what the factor takes, or None if the coordinates are not an even circle.

    Examples
    --------
    >>> cost(Kernel(), np.arange(4.0)) is None
    True
    """
    assert kernel.constant == 0
    assert kernel.cycle is None
    size = coordinates.size
    if kernel.period is None or not _is_even(coordinates, kernel.period):
        return None
    points = _POINTS[-1][1]
    return Cost(16 * size * points, 5.0 * COLUMNS * size * math.log2(size + 1))


def _is_even(coordinates: Array, period: float) -> bool:
    """Return whether coordinates are evenly spaced all the way round, but for rounding."""
    even = coordinates[0] + np.arange(coordinates.size) * (period / coordinates.size)
    return bool(np.max(np.abs(coordinates - even)) <= _EVEN_EPSILONS * _EPS * period)


def _moved(kernel: Kernel, size: int, offsets: Array, order: int = 0) -> Array:
    """Return the kernel between a node and all nodes, moved by offsets in steps (p, m)."""
    places = np.add.outer(offsets, np.arange(size)).ravel() * (_period(kernel) / size)
    return derivative_gram(kernel, places, np.zeros(1), order).reshape(offsets.size, size)


def _interpolation(offsets: Array, count: int) -> tuple[Array, Array]:
    """Return Chebyshev points of [0, 1] (p,), and the share of each in a polynomial (q, p)."""
    from numpy.polynomial.chebyshev import chebvander

    angles = (np.arange(count) + 0.5) * (np.pi / count)
    terms = (2.0 / count) * np.cos(np.outer(np.arange(count), angles))
    terms[0] *= 0.5
    return 0.5 + 0.5 * np.cos(angles), np.asarray(chebvander(2 * offsets - 1, count - 1) @ terms)


def _rest(prior: float, rows: Array, matrix: Array) -> Array:
    """Return the prior variance less x' M x of every row x (q,), never negative."""
    return np.asarray(np.maximum(prior - np.einsum("qa,qa->q", rows @ matrix, rows), 0.0))


def _period(kernel: Kernel) -> float:
    """Return the period of a kernel that has one."""
    assert kernel.period is not None
    return kernel.period
