"""The part of a grid beyond memory on which the settings of all its tiles are chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Indices
from dkrls_cli.errors import InputError
from dkrls_cli.memory import held_bytes, peak_bytes
from dkrls_cli.model.planning.requests import FitPlan
from dkrls_cli.model.tiling.ground import Frame
from dkrls_cli.tuning.footprint import Machine, footprint

_MOST_CELLS = 400_000
"""Cells of the part at most, if it may be cut to that: views of it are a twentieth of that."""

_FEWEST_ROWS = 24
"""Coordinates of a cut axis in the part at least: fewer show no gaps."""

_SHORTER = 1.25
"""Factor by which the longest axis of the part is cut at a time."""

_RUNS = 3
"""Ranges of coordinates of a long axis in the part that settings are chosen on: both ends and the
middle, where views of a whole grid lie as well."""


def sample_rows(known: Indices, count: int, *, runs: int = _RUNS) -> Indices:
    """Return some of the coordinates of an axis: ranges at both ends and in the middle.

    One range alone is in the middle.

    Examples
    --------
    >>> sample_rows(np.arange(100), 9).tolist()
    [0, 1, 2, 48, 49, 50, 97, 98, 99]
    """
    if count >= known.size:
        return known
    each = max(1, count // runs)
    middle = (known.size - each) // 2
    if runs == 1:
        return known[middle : middle + each]
    ranges = (np.arange(each), middle + np.arange(each), known.size - each + np.arange(each))
    return known[np.unique(np.concatenate(ranges))]


@dataclass(frozen=True, eq=False)
class Sample:
    """The facts from which the size and the place of the part follow.

    Attributes
    ----------
    frame, plan
        The axes of the grid, and the levels of its model.
    cut
        Places of the axes that tiles cut, the outer one first.
    gaps
        Number of missing cells at each coordinate of the outer axis of the grid.
    dtype
        Type of the values.
    limit
        Bytes that may be in use, the program included.
    """

    frame: Frame
    plan: FitPlan
    cut: Sequence[int]
    gaps: Indices
    dtype: str
    limit: float

    def rows(self) -> list[Indices]:
        """Return the coordinates of the part: as many as memory allows, with missing cells.

        Raises
        ------
        InputError
            If even the smallest part takes more memory than is allowed.
        """
        known = self.frame.known
        rows, spans = list(known), self.frame.spans
        while not self._is_small([own.size for own in rows]):
            fewest = all(rows[axis].size <= _FEWEST_ROWS for axis in self.cut)
            place = max(spans if fewest else self.cut, key=lambda axis: rows[axis].size)
            if rows[place].size <= _FEWEST_ROWS:
                raise InputError(
                    "Choosing settings on a part of the grid takes about "
                    f"{self._memory([own.size for own in rows]) / 1e6:.0f} MB, and "
                    f"{self.limit / 1e6:.0f} MB are allowed. Allow more memory.",
                    setting="max_memory",
                )
            count = max(_FEWEST_ROWS, int(rows[place].size / _SHORTER))
            runs = 1 if place in self.plan.group else _RUNS
            rows[place] = sample_rows(known[place], count, runs=runs)
        outer = self.cut[0]
        rows[outer] = self._where_cells_are_missing(rows[outer], known[outer])
        return rows

    def _is_small(self, shape: Sequence[int]) -> bool:
        """Return whether a part fits into memory, and has no more cells than it needs."""
        needed = math.prod(shape) <= _MOST_CELLS
        fewest = all(shape[axis] <= _FEWEST_ROWS for axis in self.cut)
        return (needed or fewest) and self._memory(shape) <= self.limit

    def _memory(self, shape: Sequence[int]) -> float:
        """Return the bytes in use while settings are chosen on a part."""
        machine = Machine(held_bytes(), peak_bytes())
        return footprint(shape, self.dtype, gaps=True, machine=machine).memory

    def _where_cells_are_missing(self, own: Indices, known: Indices) -> Indices:
        """Return as many coordinates around most gaps, if those chosen have none."""
        if self.gaps[own].any():
            return own
        middle = int(np.argmax(self.gaps[known]))
        start = min(max(0, middle - own.size // 2), known.size - own.size)
        return known[start : start + own.size]
