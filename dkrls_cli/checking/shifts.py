"""Series that jump among others: those that do are told from those that these predict.

A series that jumps moves what is expected of its neighbours, which then seem to jump as well. So
the worst of neighbours is left out as a whole, all others are predicted again without it, and so on
until none jumps. Series that do not jump against the others after all come back. What predicts a
series is the same at all times, so that nothing jumps because of what is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.checking.choice import Predictor
from dkrls_cli.checking.jumps import JumpLimits, find_jumps, find_levels, jump_limits
from dkrls_cli.checking.scales import robust_spread

# Slices from which on a series may jump: in shorter ones a few spikes look like it.
_FEWEST = 12
# Rounds in which series are left out, and come back.
_ROUNDS = 24
# Share of the largest jump at about that time that one needs in each round.
_WORST = 0.5
# Places and steps around a jump at which others may stem from it.
_NEAR = 2
# Power with which errors grow as their standard errors by the model do.
_GROWTH = 1.5


def find_shifts(
    values: Array, used: Mask, predictor: Predictor, along: int, floor: float = 0.0
) -> Array:
    """Return by how much the cells of series that jump are shifted, 0 for all others.

    Parameters
    ----------
    values
        The grid, NaN where it is missing.
    used
        Cells that are not known to be bad already.
    predictor
        How a series is predicted from the others; it does not use the axis of time.
    along
        The axis of time.
    floor
        Standard deviation of a residual that rounding of the data alone makes.
    """
    if values.shape[along] < _FEWEST:
        return np.zeros(values.shape)
    search = _Search(values, used, predictor, along, floor)
    jumping = search.put_back(search.take_out())
    series, limits = search.compare(jumping)
    jumps = np.where(jumping, find_jumps(series, limits), 0.0)
    return search.as_grid(find_levels(series, jumps))


class _Search:
    """Series that are left out, until no other one jumps."""

    def __init__(
        self, values: Array, used: Mask, predictor: Predictor, along: int, floor: float
    ) -> None:
        self.values, self.used, self.predictor, self.along = values, used, predictor, along
        self.shape = np.moveaxis(values, along, 0).shape
        self.axes = [step.axis + (step.axis < along) for step in predictor.steps]
        series, self.errors = self.predict(np.zeros(self.shape[1:], bool))
        self.limits = jump_limits(series, _spread(values, used, along), floor)

    def as_grid(self, series: Array) -> Array:
        """Return series, one in each column, as the grid that they were."""
        return np.moveaxis(series.reshape(self.shape), 0, self.along)

    def predict(self, without: Mask) -> tuple[Array, Array]:
        """Return what is left of every series (m, n), and the standard error of each (n,)."""
        others = np.broadcast_to(~without.reshape(self.shape[1:]), self.shape)
        used = self.used & np.moveaxis(others, 0, self.along)
        left, errors = self.predictor.residuals(self.values, used)
        rows = [np.moveaxis(a, self.along, 0).reshape(self.shape[0], -1) for a in (left, errors)]
        known = np.moveaxis(self.used, self.along, 0).reshape(rows[0].shape)
        return np.where(known, rows[0], np.nan), np.median(np.nan_to_num(rows[1]), axis=0)

    def compare(self, without: Mask) -> tuple[Array, JumpLimits]:
        """Return what is left of every series, and its limits, when some predict no other."""
        series, errors = self.predict(without)
        grown = np.divide(errors, self.errors, np.ones(errors.size), where=self.errors > 0)
        return series, self.limits.grown(np.maximum(grown, 1.0) ** _GROWTH)

    def sizes(self, without: Mask) -> Array:
        """Return the sizes of all jumps in units of standard errors by the model (m - 1, n)."""
        jumps = np.abs(find_jumps(*self.compare(without)))
        return np.divide(jumps, self.errors, np.zeros(jumps.shape), where=self.errors > 0)

    def take_out(self) -> Mask:
        """Return the series that seem to jump, the worst of neighbours first (n,)."""
        jumping = np.zeros(self.limits.size.size, bool)
        for _ in range(_ROUNDS):
            sizes = np.where(jumping, 0.0, self.sizes(jumping))
            worst = _worst_of_neighbours(sizes.reshape(-1, *self.shape[1:]), self.axes)
            if not worst.any():
                break
            jumping = jumping | worst.any(axis=0).ravel()
        return jumping

    def put_back(self, jumping: Mask) -> Mask:
        """Return the series that jump still when those that do not are back again (n,)."""
        for _ in range(_ROUNDS):
            still = jumping & (self.sizes(jumping) > 0).any(axis=0)
            if np.array_equal(still, jumping):
                break
            jumping = still
        return jumping


def _worst_of_neighbours(sizes: Array, axes: Sequence[int]) -> Mask:
    """Return the jumps that are the largest around, and not small beside any at that time."""
    largest = sizes
    for axis in {0, *axes}:
        largest = _largest_near(largest, axis)
    most = _largest_near(sizes.max(axis=tuple(range(1, sizes.ndim)), keepdims=True), 0)
    return np.asarray((sizes > 0) & (sizes >= largest) & (sizes >= _WORST * most))


def _largest_near(sizes: Array, axis: int) -> Array:
    """Return the largest of each number and those next to it along an axis."""
    width = [(_NEAR, _NEAR) if place == axis else (0, 0) for place in range(sizes.ndim)]
    padded = np.pad(sizes, width)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * _NEAR + 1, axis)
    return np.asarray(windows.max(axis=-1))


def _spread(values: Array, used: Mask, along: int) -> float:
    """Return the standard deviation of all values about the median of each series."""
    some = np.where(used, values, np.nan)
    known = ~np.isnan(some).all(axis=along, keepdims=True)
    return robust_spread(some - np.nanmedian(np.where(known, some, 0.0), axis=along, keepdims=True))
