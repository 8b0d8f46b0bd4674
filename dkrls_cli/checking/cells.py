"""Single cells that the others speak against.

A bad cell moves what is expected of its neighbours. So of neighbours that look bad only the worst
is taken out, all others are predicted again without it, and so on until no cell looks bad. A cell
that was taken out comes back if what the good ones say of it agrees with it after all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.checking.choice import Predictor, middle
from dkrls_cli.checking.scales import (
    Limits,
    find_limits,
    growth,
    heavy_limits,
    local_scale,
    nearby_scale,
    robust_spread,
)

# Rounds in which cells are taken out: a run of bad neighbours loses two cells in each.
_ROUNDS = 40
# Standard deviations beyond which a cell is taken out for the time being: neighbours of bad cells
# make the tail look heavy at first. Whether it is bad is decided when all such cells are out.
_GENEROUS = 5.5
# Rounds in which clearly bad cells that took part in predicting others are left out in the end.
_AGAIN = 6
# Neighbours on each side that show how large residuals are nearby, in the end.
_NEAR = 2
# Size in units of the limit beyond which a cell says nothing of how large residuals are by chance.
_SURELY = 3.0
# Standard deviations of its residual, and share of the spread of the data, beyond which a cell is
# bad whatever the tail of the others looks like. That of real grids reaches 5 to 50; that of smooth
# data without noise, in which residuals differ by orders of magnitude, reaches thousands.
_FAR, _CLEARLY = 20.0, 1.0
# Rounds after the first in which the scale is determined again; later it hardly changes.
_RESCALED = 4


@dataclass(frozen=True, eq=False)
class CellCheck:
    """Comparison of every cell with the others.

    Attributes
    ----------
    bad
        Cells that they speak against.
    residual
        Value less what the others say.
    std
        Usual size of that, as a standard deviation.
    score
        Size of the residual in units of the largest that chance allows: bad above 1.
    limits
        Limits of residuals in standard deviations.
    """

    bad: Mask
    residual: Array
    std: Array
    score: Array
    limits: Limits


def check_cells(
    values: Array,
    used: Mask,
    predictor: Predictor,
    rate: float,
    floor: float,
    suspects: Mask | None = None,
    telling: Mask | None = None,
) -> CellCheck:
    """Find the cells that the others speak against.

    Parameters
    ----------
    values
        The grid, NaN where it is missing.
    used
        Cells that are not known to be bad already.
    predictor
        How a cell is predicted from the others.
    rate
        Share of good cells that may be found.
    floor
        Smallest standard deviation of a residual: what rounding of the data does.
    suspects
        Cells that are left out at first; they come back if the others agree with them.
    telling
        Cells whose residuals tell how large these are by chance; all if None.

    Returns
    -------
    CellCheck
        The cells found, and residuals of all cells, predicted without those found.
    """
    search = _Search(values, used, predictor, rate, floor, telling)
    bad = search.put_back(search.take_out(suspects))
    found = search.judge(bad)
    for _ in range(_AGAIN):
        used_still = found.bad & ~bad & search.clearly(found.residual)
        if not used_still.any():
            break
        bad = search.put_back(bad | found.bad)  # a bad cell speaks against good ones beside it
        found = search.judge(bad)
    return search.rejoin(found)


class _Search:
    """Cells that are left out, until the others agree with each other."""

    def __init__(
        self,
        values: Array,
        used: Mask,
        predictor: Predictor,
        rate: float,
        floor: float,
        telling: Mask | None,
    ) -> None:
        self.values, self.used, self.predictor = values, used, predictor
        self.rate, self.floor = rate, floor
        self.telling = used if telling is None else used & telling
        self.centred = values - middle(values, used)
        self.trace = predictor.trace(self.centred, used)
        self.base = self.trace.residuals
        self.axes = [step.axis for step in predictor.steps]
        self.power = growth(*self.base, self.telling, self.axes)
        self.scale = np.ones(values.shape)
        # the others know more of a cell than nothing: how much the data varies
        self.most = max(robust_spread(self.centred[self.telling]), floor)

    def measure(self, bad: Mask, *, scale: bool = True) -> tuple[Array, Array]:
        """Return residuals with some cells left out, and their usual sizes."""
        good = self.used & ~bad
        self.trace = self.predictor.trace(self.centred, good, self.trace)
        left, spread = self.trace.residuals
        self.spread, known = spread, self.base[1]
        spread = np.minimum(known * (spread / known) ** self.power, self.most)
        if scale:
            self.scale = local_scale(np.abs(left) / spread, good & self.telling)
        return left, np.clip(spread * self.scale, self.floor, self.most)

    def score(self, left: Array, std: Array) -> Array:
        """Return the size of residuals in units of a limit that the tail does not raise."""
        limits = find_limits((left / std)[self.telling & ~np.isnan(left)], self.rate)
        return limits.capped(_GENEROUS).excess(left / std)

    def judge(self, bad: Mask) -> CellCheck:
        """Return what the others, without some bad cells, say of every cell."""
        left, std = self.measure(bad)
        self.nearby = nearby_scale(np.abs(left) / std, self.telling & ~bad, _NEAR)
        std = np.clip(std * self.nearby, self.floor, self.most)
        known = self.telling & ~np.isnan(left)
        limits = find_limits((left / std)[known & ~bad], self.rate)
        beyond = bad & (limits.excess(left / std) > _SURELY)  # others may be the tail of good ones
        limits = find_limits((left / std)[known & ~beyond], self.rate)
        self.heavy = self.heavy_tails((left / std)[known])
        limits = limits.beyond(self.heavy)
        score = self.excess(limits, left, std)
        return CellCheck(self.used & (score > 1.0), left, std, score, limits)

    def heavy_tails(self, scaled: Array) -> Limits:
        """Return the limits of residuals with heavy tails; 0 on sides where there are none.

        The data has such a tail there as well: residuals of data of several scales seem to have
        one, in which a cell that is far from all the data would be lost.
        """
        found = heavy_limits(scaled, self.rate)
        own = heavy_limits(self.centred[self.telling], self.rate)
        return Limits(found.low * (own.low > 0), found.high * (own.high > 0))

    def excess(self, limits: Limits, left: Array, std: Array) -> Array:
        """Return the size of residuals in units of the limit, or of what is far if it is less."""
        score = limits.excess(left / std)
        far = np.maximum(score, Limits(_FAR, _FAR).beyond(self.heavy).excess(left / std))
        return np.where(self.clearly(left), far, score)

    def rejoin(self, found: CellCheck) -> CellCheck:
        """Return the findings without cells that go on from good ones, step by step.

        Across a run of cells that are left out little is known, and what changes fast for a while
        is lost as a whole. Predicted from all others, its cells agree; of a run that is off, the
        first and the last do not, nor the good cells beside them. A single cell is no such run.
        """
        if not found.bad.any() or not self.axes:
            return found
        left, spread = self.base
        std = np.clip(spread * self.scale * self.nearby, self.floor, self.most)
        score = self.excess(found.limits, left, std)
        agree, good = self.used & (score <= 1.0), self.used & ~found.bad
        beside = [_shifted(found.bad.astype(float), self.axes[0], step) > 0 for step in (-1, 1)]
        back = follow_on(found.bad & agree & np.logical_or(*beside), good & agree, self.axes[0])
        keep = found.bad & ~back
        return CellCheck(
            keep,
            np.where(back, left, found.residual),
            np.where(back, std, found.std),
            np.where(back, score, found.score),
            found.limits,
        )

    def clearly(self, left: Array) -> Mask:
        """Return which residuals are as large as the spread of the data."""
        return np.asarray(np.abs(left) > _CLEARLY * self.most)

    def take_out(self, suspects: Mask | None) -> Mask:
        """Return the cells that look bad, the worst of neighbours first."""
        bad = np.zeros(self.values.shape, bool) if suspects is None else suspects
        for number in range(_ROUNDS):
            left, std = self.measure(bad, scale=number <= _RESCALED)
            score = np.where(self.used & ~bad, self.score(left, std), np.nan)
            size = np.where(self.used & ~bad, self.trace.size, 0.0)
            worst = worst_of_neighbours(score, size, self.axes)
            if not worst.any():
                break
            bad = bad | worst
        return bad

    def put_back(self, bad: Mask) -> Mask:
        """Return the cells that look bad still when those that do not are back again."""
        for number in range(_ROUNDS):
            score = self.score(*self.measure(bad, scale=number <= _RESCALED))
            fine = bad & ~(score > 1.0)
            if not fine.any():
                break
            bad = bad & ~fine
        return bad


def worst_of_neighbours(score: Array, size: Array, axes: Sequence[int]) -> Mask:
    """Return the cells that score above 1 and are the worst of their neighbours along some axes.

    Parameters
    ----------
    score
        How much speaks against a cell, NaN for those that do not count.
    size
        By what the worst is told: residuals by one step and by all, in units of their standard
        errors by the model. Of a single bad cell they are larger than of any that the bad one
        predicts wrongly, by the inequality of Cauchy and Schwarz.
    axes
        Axes along which cells are predicted.

    Examples
    --------
    >>> size = np.array([0.5, 2.0, 3.0, 2.0, 0.1, 2.5])
    >>> worst_of_neighbours(size, size, [0]).astype(int)
    array([0, 0, 1, 0, 0, 1])
    """
    known = np.nan_to_num(size, nan=0.0)
    worst = score > 1.0
    for axis in axes:
        for step in _STEPS:
            worst &= known >= _shifted(known, axis, step)
    return np.asarray(worst)


def follow_on(some: Mask, firm: Mask, axis: int) -> Mask:
    """Return the cells of some that lie beside firm ones along an axis, or beside such cells.

    Examples
    --------
    >>> some = np.array([1, 1, 0, 1, 1, 0, 1], bool)
    >>> follow_on(some, np.array([0, 0, 0, 0, 0, 1, 0], bool), 0).astype(int)
    array([0, 0, 0, 1, 1, 0, 1])
    """
    rows, ground = np.moveaxis(some, axis, 0), np.moveaxis(firm, axis, 0)
    found = np.zeros(rows.shape, bool)
    places = range(len(rows))
    for order in (places, reversed(places)):
        beside = np.zeros(rows.shape[1:], bool)
        for place in order:
            found[place] |= rows[place] & beside
            beside = ground[place] | found[place]
    return np.moveaxis(found, 0, axis)


# Steps to the neighbours of a cell of which only one is taken out at a time.
_STEPS = (-2, -1, 1, 2)


def _shifted(values: Array, axis: int, step: int) -> Array:
    """Return the next values along an axis, 0 beyond its end."""
    moved = np.roll(values, step, axis)
    edge = [slice(None)] * values.ndim
    edge[axis] = slice(0, step) if step > 0 else slice(step, None)
    moved[tuple(edge)] = 0.0
    return moved
