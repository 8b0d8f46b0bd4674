"""A Gaussian that is long beside the step: K has far fewer directions than coordinates.

On a circle of length P, a kernel is a Fourier series k(z - z') = sum a_f cos(2 pi f (z - z') / P),
with a_f >= 0. So K = G G' with columns sqrt(a_f) cos and sqrt(a_f) sin of the coordinates, and a
Gaussian needs few of them: a_f falls below round-off. A line is part of a circle that is longer by
the kernel's reach on both sides. From G = Q R and R = U S W' follow K = V diag(w) V' with V = Q U
and w = S^2, which loses none of the small w, and the kernel between any z and the coordinates,
g(z) G' = (g(z) W) S V'. With r the number of columns

    C^-1 = (I - V diag(w / (w + ridge)) V') / ridge

in all directions, also in those that are not in V. The variance at z that data leaves unexplained
is a sum of squares, of the terms of g(z) W times ridge / (w + ridge).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Self

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.cascade.factors.factor import COLUMNS, Cost
from dkrls_cli.cascade.factors.reach import BLOCK, NEGLIGIBLE, reach
from dkrls_cli.cascade.functionals.derivatives import derivative_variance
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.spectrum import ROUND_OFF
from dkrls_cli.circle import wrap

# Frequencies after which the series of a Gaussian has surely ended, in units of P / (2 pi sigma),
# and those that a chord adds to them.
_FREQUENCIES, _CHORD_FREQUENCIES = 9.0, 30

# Rows of G that are orthogonalised at a time, in units of its columns: a tall part for little
# work on triangles, and yet one that fits in cache.
_PART = 8


@dataclass(frozen=True, eq=False)
class Waves:
    """The columns of G as functions of a coordinate.

    Attributes
    ----------
    middle, length
        Middle of the coordinates, and length P of the circle they lie on.
    sizes
        sqrt(a_f) of the frequencies 0, 1, 2 ... in the kernel.
    """

    middle: float
    length: float
    sizes: Array

    @property
    def count(self) -> int:
        """Number of columns r: a constant, and two for each further frequency."""
        return 2 * self.sizes.size - 1

    def __call__(self, query: Array, order: int = 0) -> Array:
        """Return g at coordinates of the circle, or a derivative of it, (q,) -> (q, r)."""
        rates = (2 * math.pi / self.length) * np.arange(1.0, self.sizes.size)
        turn = (query - self.middle) * (2 * math.pi / self.length)
        angles = np.multiply.outer(turn, np.arange(1.0, self.sizes.size))
        angles += order * (math.pi / 2)  # the derivative of a wave is a quarter turn ahead
        sizes = self.sizes[1:] * rates**order
        waves = np.empty((query.size, self.count))
        waves[:, 0] = 0.0 if order else self.sizes[0]
        np.multiply(np.cos(angles), sizes, out=waves[:, 1::2])
        np.multiply(np.sin(angles), sizes, out=waves[:, 2::2])
        return waves


@dataclass(frozen=True, eq=False)
class LowRank:
    """C = K + ridge of a Gaussian with few directions.

    Attributes
    ----------
    waves
        Functions g whose products are the kernel.
    vectors
        V, orthonormal columns (m, r).
    roots
        S, descending (r,); their squares are the eigenvalues w.
    turned
        W, orthonormal (r, r).
    """

    kernel: Kernel
    coordinates: Array
    ridge: float
    waves: Waves
    vectors: Array
    roots: Array
    turned: Array

    @classmethod
    def build(cls, kernel: Kernel, coordinates: Array, ridge: float) -> Self:
        """Return the factor of a Gaussian on fewer directions than coordinates.

        Examples
        --------
        >>> days = np.arange(1000.0)
        >>> factor = LowRank.build(Kernel(sigma=50.0), days, 1e-5)
        >>> factor.answer(np.array([500.5]), factor.solve(np.sin(days / 30)[:, None])).round(3)
        array([[-0.828]])
        >>> np.sin(500.5 / 30).round(3)
        np.float64(-0.828)
        """
        waves, places = _waves(kernel, coordinates), wrap(coordinates, kernel.period)
        assert waves is not None
        return cls(kernel, coordinates, ridge, waves, *_decompose(waves, places))

    def solve(self, right: Array) -> Array:
        """Return C^-1 right, (m, n) -> (m, n)."""
        v = self.vectors
        along = v.T @ right
        solution = v @ (along * self._inverse[:, None])
        if not self._truncated:
            rest = right - v @ along
            rest -= v @ (v.T @ rest)  # twice, because its rounding error is divided by the ridge
            rest /= self.ridge
            solution += rest
        return np.asarray(solution)

    def answer(self, query: Array, weights: Array) -> Array:
        """Return k(query, coordinates) @ weights, (q,), (m, n) -> (q, n)."""
        return self._answer(query, weights, 0)

    def _answer(self, query: Array, weights: Array, order: int) -> Array:
        """Return a derivative of k(query, coordinates) by the query, times weights (q, n)."""
        terms = self.turned @ (self.roots[:, None] * (self.vectors.T @ weights))
        answers = np.empty((query.size, weights.shape[1]))
        place, inside = self._on_circle(query)
        for rows in _blocks(query.size, self.waves.count):
            answers[rows] = self.waves(place[rows], order) @ terms
        answers[~inside] = 0.0
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
        w = self.roots**2
        left = np.where(self._live, self.ridge / (w + self.ridge), 1.0)
        unexplained = np.empty(query.size)
        place, inside = self._on_circle(query)
        for rows in _blocks(query.size, self.waves.count):
            unexplained[rows] = (self.waves(place[rows], order) @ self.turned) ** 2 @ left
        unexplained[~inside] = derivative_variance(self.kernel, order)
        return unexplained

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of C^-1, (m,)."""
        diagonal = np.empty(self.coordinates.size)
        for rows in _blocks(diagonal.size, self.waves.count):
            diagonal[rows] = self.vectors[rows] ** 2 @ self._shares
        return diagonal + self._beside

    def inverse_blocks(self, edges: Indices) -> list[Array]:
        """Return the diagonal blocks of C^-1 between consecutive edges, from 0 to m."""
        vectors = [self.vectors[start:end] for start, end in pairwise(edges)]
        return [(v * self._shares) @ v.T + self._beside * np.eye(len(v)) for v in vectors]

    def extend(self, coordinates: Array) -> Self:
        """Return the factor with further coordinates behind the last, built anew."""
        return self.build(self.kernel, np.concatenate([self.coordinates, coordinates]), self.ridge)

    @property
    def _truncated(self) -> bool:
        """Whether the ridge is round-off, so that C^-1 is restricted to the live directions."""
        return self.ridge <= ROUND_OFF * float(self.roots[0]) ** 2

    @property
    def _live(self) -> Mask:
        """Directions in which w + ridge is more than round-off."""
        return np.asarray(self.roots**2 + self.ridge > ROUND_OFF * self.roots[0] ** 2)

    @property
    def _beside(self) -> float:
        """The eigenvalue of C^-1 in all directions that are not in V."""
        return 0.0 if self._truncated else 1.0 / self.ridge

    @property
    def _shares(self) -> Array:
        """Eigenvalues of C^-1 in the directions of V, less those beside them (r,)."""
        w = self.roots**2
        return self._inverse if self._truncated else -w / (w + self.ridge) / self.ridge

    @property
    def _inverse(self) -> Array:
        """Return 1 / (w + ridge) of the live directions, and 0 of the others (r,)."""
        return np.divide(
            1.0, self.roots**2 + self.ridge, out=np.zeros_like(self.roots), where=self._live
        )

    def _on_circle(self, query: Array) -> tuple[Array, Mask]:
        """Return the places of queries on the circle of the waves, and which are in reach of it."""
        if self.kernel.period is not None:
            return wrap(query, self.kernel.period), np.ones(query.size, bool)
        far = 0.5 * self.waves.length
        low, high = self.waves.middle - far, self.waves.middle + far
        return np.clip(query, low, high), np.asarray((query > low) & (query < high))


def cost(kernel: Kernel, coordinates: Array) -> Cost | None:
    """Return what the factor takes, or None if it has no fewer directions than coordinates.

    Examples
    --------
    >>> cost(Kernel(sigma=1.0), np.arange(1000.0)) is None
    True
    """
    waves, size = _waves(kernel, coordinates), coordinates.size
    if waves is None or waves.count > size // 2:
        return None
    memory = 8 * (size * waves.count + 6 * waves.count**2 + BLOCK)
    return Cost(memory, size * (6.0 * waves.count**2 + 4.0 * COLUMNS * waves.count))


def _waves(kernel: Kernel, coordinates: Array) -> Waves | None:
    """Return the series of a Gaussian, or None if it is as long as the coordinates are many."""
    assert kernel.constant == 0
    assert kernel.cycle is None
    if kernel.family != "gaussian":
        return None
    if kernel.period is None:
        low, high = float(coordinates[0]), float(coordinates[-1])
        middle, length = 0.5 * (low + high), high - low + 2 * reach(kernel)
    else:
        middle, length = 0.0, kernel.period
    spread = length / (2 * math.pi * kernel.sigma)  # of the frequencies
    if not spread < coordinates.size:
        return None
    limit = min(coordinates.size // 2, int(_FREQUENCIES * spread) + _CHORD_FREQUENCIES)
    variances = _variances(spread, np.arange(limit + 1.0), kernel.period is not None)
    kept = int(np.count_nonzero(variances > NEGLIGIBLE * variances[0]))
    return Waves(middle, length, np.sqrt(variances[:kept])) if kept <= limit else None


def _variances(spread: float, frequency: Array, chords: bool) -> Array:
    """Return a_f of a Gaussian on a circle, of chords or of distances along it."""
    from scipy.special import ive

    if chords:  # exp(-z (1 - cos x)) = sum of exp(-z) I_f(z) cos(f x), z = spread^2
        variances = ive(frequency, spread**2)
    else:
        variances = np.exp(-0.5 * (frequency / spread) ** 2) / (spread * math.sqrt(2 * math.pi))
    variances[1:] *= 2.0
    return np.asarray(variances)


def _decompose(waves: Waves, coordinates: Array) -> tuple[Array, Array, Array]:
    """Return V, S and W of G = V S W': parts that fit in cache are made triangular, then these."""
    from scipy.linalg import qr, svd

    size, rank = coordinates.size, waves.count
    vectors = np.empty((size, rank))
    edges = np.linspace(0, size, max(1, size // (_PART * rank)) + 1).astype(int)
    parts = [slice(*pair) for pair in pairwise(edges)]
    triangles = np.empty((len(parts), rank, rank))
    for part, triangle in zip(parts, triangles, strict=True):
        vectors[part], triangle[:] = qr(waves(coordinates[part]), mode="economic")
    turns, whole = qr(triangles.reshape(-1, rank), mode="economic")
    left, roots, right = svd(whole)
    for part, turn in zip(parts, (turns @ left).reshape(-1, rank, rank), strict=True):
        vectors[part] = vectors[part] @ turn
    return vectors, roots, right.T


def _blocks(size: int, columns: int) -> Iterator[slice]:
    """Yield slices over rows, each of at most BLOCK numbers."""
    longest = max(1, BLOCK // columns)
    for start in range(0, size, longest):
        yield slice(start, start + longest)
