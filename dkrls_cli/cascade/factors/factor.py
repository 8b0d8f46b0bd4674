"""The interface of all factors, and what a factor costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self

from dkrls_cli.arrays import Array, Indices

COLUMNS = 64
"""Columns that a cost is counted for: those of a middling core."""


@dataclass(frozen=True)
class Cost:
    """What a factor takes.

    Attributes
    ----------
    memory
        Bytes at the peak: all that the factor holds, and what building it takes beside.
    operations
        Floating-point operations to build it, solve 64 columns and find the inverse's diagonal.
    """

    memory: int
    operations: float


class Factor(Protocol):
    """The covariance C = K + ridge of the m samples of one level, ready for solves.

    Coordinates may stand in any order, unless a factor says otherwise.
    """

    @property
    def coordinates(self) -> Array:
        """Coordinates of the samples (m,)."""

    @property
    def ridge(self) -> float:
        """The number on the diagonal."""

    def solve(self, right: Array) -> Array:
        """Return the weights C^-1 right (m, n) of data (m, n): the solve of (20), (21)."""

    def answer(self, query: Array, weights: Array) -> Array:
        """Return k(q, c) weights (q, n), the rows of (12), (15), (18) times the weights (m, n)."""

    def prepare(self, weights: Array, order: int = 0) -> Callable[[Array], Array]:
        """Return a function that answers queries from the same weights (m, n) again and again.

        The answers are values, or derivatives of an `order` that the kernel has.
        """

    def unexplained(self, query: Array, order: int = 0) -> Array:
        """Return k(q, q) - k' C^-1 k (q,), the variance that the samples leave, without noise.

        It is that of values, or of derivatives of an `order` that the kernel has.
        """

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of C^-1 (m,), of which residuals of left-out samples are made."""

    def inverse_blocks(self, edges: Indices) -> list[Array]:
        """Return the diagonal blocks of C^-1 between consecutive edges, from 0 to m."""

    def extend(self, coordinates: Array) -> Self:
        """Return the factor with further samples behind its last."""
