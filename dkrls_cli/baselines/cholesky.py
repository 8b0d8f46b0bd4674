"""A Cholesky factor that grows by rows, for least squares that keep every sample.

Updating the inverse of a growing Gram matrix takes O(n^2) per sample, all of it memory traffic. Its
Cholesky factor takes half of that, and rows that come in blocks use matrix products. The factor is
kept as rows of blocks, (rows, rows before + rows) each, so that growing copies nothing.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from dkrls_cli.arrays import Array
from dkrls_cli.errors import InputError


class GrowingCholesky:
    """The factor L with L L' = A, and z with L z = y, while A and y grow.

    Parameters
    ----------
    height
        Rows of a block.
    """

    def __init__(self, height: int) -> None:
        self._height = height
        self._blocks: list[Array] = []
        self._z = np.empty(0)
        self.size = 0

    @property
    def room(self) -> int:
        """Rows left in the last block."""
        return len(self._blocks) * self._height - self.size

    def append(self, rows: Array, values: Array) -> None:
        """Add rows of A (r, m + r), up to and including the diagonal, and their values y (r,).

        The rows must fit in the last block, or in a new one if that is full. Raises InputError if
        the matrix is not positive definite with them; the factor then stays as it was.
        """
        start, count = self.size, len(rows)
        left = self._substitute(rows[:, :start])
        corner = rows[:, start:] - left @ left.T
        try:
            diagonal = cholesky(corner, lower=True, check_finite=False)
        except LinAlgError:
            raise InputError(
                f"The Gram matrix is singular at sample {start + 1}. Raise the ridge."
            ) from None
        if self.room == 0:
            self._blocks.append(np.empty((self._height, start + self._height)))
        top = start - (len(self._blocks) - 1) * self._height
        block = self._blocks[-1][top : top + count]
        block[:, :start], block[:, start : start + count] = left, diagonal
        known = solve_triangular(
            diagonal, values - left @ self._z[:start], lower=True, check_finite=False
        )
        self._z = np.append(self._z[:start], known)
        self.size += count

    def solve(self) -> Array:
        """Return A^-1 y (n,)."""
        rest = self._z.copy()
        for block, here in reversed(self._rows()):
            rest[here] = solve_triangular(
                block[:, here], rest[here], lower=True, trans="T", check_finite=False
            )
            rest[: here.start] -= rest[here] @ block[:, : here.start]
        return rest

    def _substitute(self, rows: Array) -> Array:
        """Return X (r, m) with X L' = rows."""
        result = np.empty_like(rows)
        for block, here in self._rows():
            rest = rows[:, here] - result[:, : here.start] @ block[:, : here.start].T
            result[:, here] = solve_triangular(
                block[:, here], rest.T, lower=True, check_finite=False
            ).T
        return result

    def _rows(self) -> list[tuple[Array, slice]]:
        """Return the filled rows of every block, and the slice of all rows that they are."""
        starts = [place * self._height for place in range(len(self._blocks))]
        ends = [min(start + self._height, self.size) for start in starts]
        return [
            (block[: end - start], slice(start, end))
            for block, start, end in zip(self._blocks, starts, ends, strict=True)
        ]
