"""Judge settings by cells that are left out one at a time, in closed form.

Where a grid lacks stray cells only, each of them has nearly all other cells to be told by. So has a
cell that is left out alone. With y the completed window less its mean and C = K + lambda, it is
missed by

    (C^-1 y)_j / (C^-1)_jj,

for all cells at once and without a solve. The few cells that are missing in the window are filled
such that C^-1 y is 0 there: :mod:`dkrls_cli.gaps.refine`.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.gaps.pattern import scattered, spread_to_missing
from dkrls_cli.gaps.refine import Precision, refine
from dkrls_cli.threads import one_blas_thread
from dkrls_cli.tuning.joint import JointSetting
from dkrls_cli.tuning.masks import HiddenWindow
from dkrls_cli.tuning.trials.descent import Attempt
from dkrls_cli.tuning.trials.solved import SolvedTrials

_STRAY, _TOGETHER = 0.01, 0.25
"""Share of missing cells up to which they are stray, and of pairs of neighbours among these."""

_BETTER = 0.995
"""An error below this share of the best is an improvement: it is that of all cells.

With 0.98, which suits a few hidden cells, the least error of 2.6 times as many trials was not
found on profiles of the sea.
"""

_TOLERANCE, _ITERATIONS = 0.05, 30
"""Largest change of a missing cell that is due, as a share of the error, and most iterations."""

_FIRST_ERROR = 0.05
"""Error that is assumed as long as none is known, as a share of the spread."""


def has_stray_gaps(observed: Mask) -> bool:
    """Return whether few cells are missing, and nearly all of them amid observed ones.

    Examples
    --------
    >>> observed = np.ones((20, 30), bool)
    >>> observed[4, 5] = observed[12, 20] = False
    >>> has_stray_gaps(observed)
    True
    >>> observed[12, 18:23] = False
    >>> has_stray_gaps(observed)
    False
    """
    missing = ~observed
    count = int(np.count_nonzero(missing))
    if count > _STRAY * observed.size or count != np.count_nonzero(scattered(observed)):
        return False
    pairs = sum(
        int(np.count_nonzero(lines[1:] & lines[:-1]))
        for lines in (np.moveaxis(missing, axis, 0) for axis in range(missing.ndim))
    )
    return pairs <= _TOGETHER * count


class LoneTrials(SolvedTrials):
    """Tries settings on all windows, each setting once, by cells that are left out alone.

    The error is that of all cells. Answers are kept of those that are hidden.
    """

    better = _BETTER

    def _solve(
        self, setting: JointSetting, best: Attempt | None, bar: float
    ) -> tuple[Attempt, float | None]:
        """Leave out every cell of all windows."""
        before, relative = self._started, _FIRST_ERROR
        if best is not None and math.isfinite(best.error) and self.spread > 0:
            before, relative = best.windows, best.error / self.spread
        windows, squares, count = [], 0.0, 0
        for window, near in zip(self.windows, before, strict=True):
            filled = self._fill(setting, window, near.answers, _TOLERANCE * relative)
            missed = self._miss(setting, window, filled)
            windows.append(window.with_answers(np.where(window.hidden, filled - missed, filled)))
            seen = np.isfinite(window.values)
            squares += float(np.sum(missed[seen] ** 2))
            count += int(np.count_nonzero(seen))
        return Attempt(setting, math.sqrt(squares / count), 0, tuple(windows)), None

    @cached_property
    def _started(self) -> tuple[HiddenWindow, ...]:
        """The windows, with the values of the nearest cells in those that are missing."""
        return tuple(
            w.with_answers(spread_to_missing(w.values, np.isfinite(w.values))) for w in self.windows
        )

    def _fill(
        self, setting: JointSetting, window: HiddenWindow, start: Array, tolerance: float
    ) -> Array:
        """Return a window with its missing cells filled, from those of a start."""
        seen = np.isfinite(window.values)
        filled = np.where(seen, window.values, start)
        if seen.all():
            return filled
        field, ridge, most = self._field(setting, window), setting.ridge, _ITERATIONS
        with one_blas_thread():
            refine(field, filled, seen, ridge, self.mean, tolerance=tolerance, limit=most)
        np.copyto(filled, window.values, where=seen)
        return filled

    def _miss(self, setting: JointSetting, window: HiddenWindow, filled: Array) -> Array:
        """Return by how much every cell of a window is missed by all others."""
        precision = Precision.of(self._field(setting, window), setting.ridge)
        with one_blas_thread():
            return np.asarray(precision.apply(filled - self.mean) / precision.diagonal())
