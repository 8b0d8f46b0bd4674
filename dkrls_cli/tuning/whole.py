"""Choose the setting of a long level on its whole axis, in O(m) for every setting that is tried.

The factors of long levels (:mod:`dkrls_cli.cascade.factors`) give C^-1 Y and the diagonal of C^-1
in O(m), and with them the residual (C^-1 Y)_j / (C^-1)_jj of every slice that is left out. Windows
of the axis (:mod:`dkrls_cli.tuning.slices`) tell cheaply which families can win, and where to start
from: the search here goes downhill from there, in the logarithms of sigma and ridge.

Beyond the reach of its neighbours a Matern kernel of smoothness nu is told from another only by
ridge sigma^(2 nu), which is the noise beside the roughness of the data. So sigma moves with that
product kept, and the ridge alone: along these two lines the error is nearly a parabola.

Which candidate is taken
------------------------
As on a short level, every candidate has the weight (mean square error)^(-n/2), and the one that
predicts left-out slices most like the weighted average is taken. On a long axis that is the one of
least error, unless few slices decide: n is not their number m, but what it comes to if they count
by their squares, (sum of squares)^2 / sum of squares^2. A few spikes are few slices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Self

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.factors.choice import LONG, estimate, least_ridge
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.factors.markov import is_markov
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.spectrum import ROUND_OFF
from dkrls_cli.tuning.candidates import (
    COUNTS,
    END_WEIGHT,
    MAY_BE_TAKEN,
    RIDGES,
    SWINGS,
    Candidate,
)

_NUMBERS, _LEAST_COLUMNS = 2**16, 4
"""Numbers of the data that one evaluation sees, and columns it has at least."""

_LEFT_OUT = 8
"""Blocks that are left out at most, of all that were asked for: each takes a factor of its own."""

_AFFORDABLE, _DEAR = 2.0**15, 2.0**21
"""Operations a sample of a factor that is always tried (uneven steps take 2^14), and at most."""

_KEPT = 2**14
"""Numbers that are kept of the residuals of every candidate."""

_WORTH = 0.9
"""Share of the least error that a family must have on windows for its dear factor to be tried."""

_LEAST_RIDGE = 1e-12
"""Ridge that factors of long levels raise smaller ones to."""

_SIGMA_STEP, _RIDGE_STEP = math.log(2.0), math.log(10.0) / 2
"""First steps downhill: the windows know sigma and ridge about as well."""

_SHRINK = (1.0, 0.7, 0.4)
"""Steps of the rounds, beside the first."""

_MOST_STEPS = 6
"""Steps in one direction at most."""

_BETTER = 1e-3
"""Gain, as a share of the error, for which another setting is tried or taken."""

_AGAIN = 0.01
"""Gain of a round for which there is another."""

_HOPEFUL = 1.005
"""Errors, beside the best, from which a family is still improved."""

_ALIKE = 0.02
"""Differences of predictions, as a share of their errors, that do not matter."""

_LEAST_SHARE = 0.1
"""Share of log(ridge sigma^(2 nu)) that a candidate stands for at least."""

_SMOOTHNESS = {"matern12": 1.0, "matern32": 3.0, "matern52": 5.0, "gaussian": 0.0}
"""2 nu: the power of sigma that a ridge is moved with."""


def is_affordable(kernel: Kernel, coordinates: Array, error: float, least: float) -> bool:
    """Return whether a kernel can be tried on a whole axis, by what its factor costs.

    A dear factor is worth it if the `error` of the kernel on windows is well below the `least` of
    the others. Up to 1024 samples only Matern kernels on a line are tried: the others are better
    conditioned in a dense factor.
    """
    if coordinates.size <= LONG:
        return is_markov(kernel)
    cost = estimate(kernel, coordinates)
    limit = _DEAR if is_worth(error, least) else _AFFORDABLE
    return cost is not None and cost.operations <= limit * coordinates.size


def is_worth(error: float, least: float) -> bool:
    """Return whether an error on windows is so far below the least of others that cost is none."""
    return error < _WORTH * least


class WholeAxis:
    """All samples of a level in rising order, which are left out in turn.

    Parameters
    ----------
    coordinates, data
        The level (m,), and fibres along it as columns (m, fibres).
    closed
        Whether the coordinates go once around a circle, and have no ends.
    folds
        Leave out blocks of neighbours instead of single slices. Of more than eight blocks, eight
        are left out, spread evenly.
    """

    def __init__(
        self, coordinates: Array, data: Array, closed: bool = False, folds: int | None = None
    ) -> None:
        order = np.argsort(coordinates)
        self.coordinates, self.data = coordinates[order], mix_columns(data[order])
        blocks = [np.arange(0)] if folds is None else np.array_split(np.arange(order.size), folds)
        self.weights = np.ones(order.size)
        if not closed and (folds is None or folds > 3):
            ends = [0, -1] if folds is None else np.r_[blocks[0], blocks[-1]]
            self.weights[ends] = END_WEIGHT
        few = np.linspace(0, len(blocks) - 1, min(len(blocks), _LEFT_OUT)).astype(np.intp)
        self._blocks = None if folds is None else [blocks[place] for place in few]

    def leave_out(self, kernel: Kernel, ridge: float) -> LeftOut:
        """Return how well left-out slices or blocks are predicted."""
        if self._blocks is None:
            factor = LongFactor.build(kernel, self.coordinates, ridge, rough=True)
            missed = factor.solve(self.data)
            missed /= factor.inverse_diagonal()[:, None]
            return LeftOut.of(missed, self.weights)
        missed = np.concatenate([self._miss(kernel, ridge, block) for block in self._blocks])
        return LeftOut.of(missed, self.weights[np.concatenate(self._blocks)])

    def _miss(self, kernel: Kernel, ridge: float, block: Indices) -> Array:
        """Return the residuals of a block that is predicted from all other samples."""
        rest = np.delete(np.arange(self.coordinates.size), block)
        factor = LongFactor.build(kernel, self.coordinates[rest], ridge)
        answers = factor.answer(self.coordinates[block], factor.solve(self.data[rest]))
        return np.asarray(self.data[block] - answers)


@dataclass(frozen=True, eq=False)
class LeftOut:
    """The residuals of left-out slices under one setting.

    Attributes
    ----------
    error
        Root of their weighted mean square.
    slices
        The number of slices that it rests on: fewer than there are, if the squares differ.
    some
        Residuals of some slices, spread evenly.
    """

    error: float
    slices: float
    some: Array

    @classmethod
    def of(cls, missed: Array, weights: Array) -> Self:
        """Return what residuals (m, columns) of slices come to, which have a weight each (m,)."""
        squares = np.einsum("ij,ij->i", missed, missed) * weights
        total = float(squares.sum())
        error = math.sqrt(total / float(weights.sum()) / missed.shape[1])
        slices = total**2 / float(squares @ squares) if 0 < total < math.inf else len(missed)
        return cls(error, slices, missed[:: 1 + missed.size // _KEPT].copy())


def mix_columns(data: Array) -> Array:
    """Return the columns, or few random sums of many: the mean square over them is expected alike.

    With random signs, the sum of squares of any linear function of the sums is that of the columns
    in the mean (Hutchinson's estimator), and the more samples there are, the closer.
    """
    m, count = data.shape
    few = max(_LEAST_COLUMNS, _NUMBERS // m)
    if count <= few:
        return data
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (count, few))
    return np.asarray(data @ (signs / math.sqrt(count)))


@dataclass(frozen=True)
class WholeSearch:
    """A search downhill for the setting of least error on a whole axis.

    Attributes
    ----------
    axis
        The samples.
    span
        Shortest and longest sigma.
    open_sigma, open_ridge
        Whether sigma and ridge are to be chosen, or stay as they are.
    """

    axis: WholeAxis
    span: tuple[float, float]
    open_sigma: bool = True
    open_ridge: bool = True
    _known: dict[Candidate, LeftOut | None] = field(default_factory=dict, repr=False)

    @property
    def tried(self) -> tuple[Candidate, ...]:
        """All candidates so far that could be afforded."""
        return tuple(candidate for candidate, seen in self._known.items() if seen is not None)

    def run(self, starts: Sequence[Candidate], cycles: Sequence[float] = ()) -> Candidate:
        """Return the candidate to take, downhill from starts, the most promising of which is first.

        Every start is tried, and improved if it comes close to the best. Then the best is tried
        with each of the cycles, and the starts with the best cycle.
        """
        best = self._descend(self.assess(starts[0].kernel, starts[0].ridge))
        for start in starts[1:]:
            best = self._rival(best, self.assess(start.kernel, start.ridge))
        plain = best
        for cycle, swing in product(cycles, SWINGS):
            kernel = replace(plain.kernel, cycle=cycle, swing=swing)
            best = self._rival(best, self.assess(kernel, plain.ridge))
        if best.kernel.cycle is not None:
            for start in starts:
                kernel = replace(start.kernel, cycle=best.kernel.cycle, swing=best.kernel.swing)
                best = self._rival(best, self.assess(kernel, start.ridge))
        return self._nearest_to_average(best)

    def assess(self, kernel: Kernel, ridge: float) -> Candidate:
        """Return a setting with its error, which is infinite if its factor costs too much."""
        ridge = self._clip_ridge(kernel, ridge)
        for known in self._known:
            if known.kernel == kernel and known.ridge == ridge:
                return known
        can = is_affordable(kernel, self.axis.coordinates, 0.0, 1.0)
        left_out = self.axis.leave_out(kernel, ridge) if can else None
        candidate = Candidate(kernel, ridge, left_out.error if left_out else math.inf)
        self._known[candidate] = left_out
        return candidate

    def _nearest_to_average(self, best: Candidate) -> Candidate:
        """Return the candidate that predicts most like the weighted average of all.

        Of those that predict alike, the one of the largest ridge: it solves best.
        """
        seen = {candidate: left for candidate, left in self._known.items() if left is not None}
        odds = {candidate: self._odds(candidate, best) for candidate in seen}
        counted = [candidate for candidate in seen if odds[candidate] >= COUNTS]
        shares = _shares(counted)
        weights = [odds[candidate] * shares[candidate] for candidate in counted]
        average = np.average([seen[candidate].some for candidate in counted], 0, weights)
        close = [candidate for candidate in counted if odds[candidate] >= MAY_BE_TAKEN]
        away = {c: float(np.linalg.norm(seen[c].some - average)) for c in close}
        limit = min(away.values()) + _ALIKE * float(np.linalg.norm(average))
        return max((c for c in close if away[c] <= limit), key=lambda candidate: candidate.ridge)

    def _odds(self, candidate: Candidate, best: Candidate) -> float:
        """Return how likely a candidate is beside the best: (mean square error)^(-n/2) of both."""
        left = self._known[best]
        ratio = max(candidate.error, _TINY) / max(best.error, _TINY)
        return float(ratio ** -(left.slices if left else 1.0))

    def _clip_ridge(self, kernel: Kernel, ridge: float) -> float:
        """Return a ridge within bounds, if it is not given: none that drowns in round-off."""
        if not self.open_ridge:
            return ridge
        coordinates = self.axis.coordinates
        least = max(_LEAST_RIDGE, ROUND_OFF * coordinates.size * kernel.variance)
        return float(np.clip(ridge, max(least, least_ridge(kernel, coordinates)), RIDGES[-1]))

    def _rival(self, best: Candidate, rival: Candidate) -> Candidate:
        """Return the better one of the best and a rival, which is improved if it is hopeful."""
        hopeful = rival.error <= _HOPEFUL * best.error
        if hopeful or self._odds(rival, best) >= MAY_BE_TAKEN:
            return _least(best, self._descend(rival))
        return best

    def _descend(self, best: Candidate) -> Candidate:
        """Improve a candidate along its lines, and again as long as that gains much.

        The first round takes it to be far up a valley, as it is if it comes from the windows. In
        further rounds sigma moves alone as well.
        """
        for place, shrink in enumerate(_SHRINK):
            before = best.error
            for line in self._lines(best.kernel.family)[0 if place else 1 :]:
                best = self._follow(best, shrink * line)
            if best.error > (1 - _AGAIN) * before:
                break
        return best

    def _lines(self, family: str) -> list[Array]:
        """Return the lines of the search, steps of log sigma and log ridge.

        These are sigma alone, ridge alone, and sigma along the valley.
        """
        alone, ridge = np.array([_SIGMA_STEP, 0.0]), np.array([0.0, _RIDGE_STEP])
        if not self.open_ridge:
            return [alone, alone] if self.open_sigma else []
        # first where solves are better conditioned
        valley = np.array([-1.0, _SMOOTHNESS[family]]) * _SIGMA_STEP
        return [alone, ridge, valley] if self.open_sigma else [ridge, ridge]

    def _follow(self, start: Candidate, step: Array) -> Candidate:
        """Return the least error along a line: step by step, then at the vertex of a parabola."""
        seen = {0: start, 1: self._shift(start, step)}
        ahead = 1 if _is_better(seen[1], start) else -1
        place = max(ahead, 0)
        while abs(place) < _MOST_STEPS:
            seen[place + ahead] = self._shift(start, (place + ahead) * step)
            if not _is_better(seen[place + ahead], seen[place]):
                break
            place += ahead
        best = min(seen, key=lambda at: seen[at].error)
        found = seen[best]
        if best - 1 in seen and best + 1 in seen:
            vertex, gain = _vertex([math.log(seen[best + d].error or _TINY) for d in (-1, 0, 1)])
            if gain > _BETTER:
                found = _least(found, self._shift(start, (best + vertex) * step))
        return found if _is_better(found, start) else start

    def _shift(self, start: Candidate, step: Array) -> Candidate:
        """Return the candidate one step away; beyond the bounds, at the bound."""
        kernel = start.kernel
        if step[0]:
            sigma = float(np.clip(kernel.sigma * math.exp(step[0]), *self.span))
            kernel = replace(kernel, sigma=sigma)
        return self.assess(kernel, start.ridge * math.exp(step[1]) if step[1] else start.ridge)


def _shares(candidates: Sequence[Candidate]) -> dict[Candidate, float]:
    """Return the share of log(ridge sigma^(2 nu)) that each candidate stands for in its family."""
    shares: dict[Candidate, float] = {}
    for family in {candidate.kernel.family for candidate in candidates}:
        own = [candidate for candidate in candidates if candidate.kernel.family == family]
        own.sort(key=_roughness)
        places = np.array([_roughness(candidate) for candidate in own])
        widths = np.gradient(places) if places.size > 1 else np.zeros(1)
        shares |= dict(zip(own, (widths + _LEAST_SHARE).tolist(), strict=True))
    return shares


def _roughness(candidate: Candidate) -> float:
    """Return log(ridge sigma^(2 nu)), the noise beside the roughness of the data."""
    power = _SMOOTHNESS[candidate.kernel.family]
    return math.log(candidate.ridge or _TINY) + power * math.log(candidate.kernel.sigma)


def _least(*candidates: Candidate) -> Candidate:
    """Return the candidate of least error, the first of equals."""
    return min(candidates, key=lambda candidate: candidate.error)


_TINY = float(np.finfo(np.float64).tiny)


def _is_better(one: Candidate, other: Candidate) -> bool:
    """Return whether the error is smaller by so much that it matters."""
    return one.error < (1 - _BETTER) * other.error


def _vertex(values: Sequence[float]) -> tuple[float, float]:
    """Return where a parabola through three values at -1, 0, 1 is least, and how far below 0's."""
    slope, bend = (values[2] - values[0]) / 2, values[0] - 2 * values[1] + values[2]
    if not 0 < bend < math.inf:
        return 0.0, 0.0
    vertex = float(np.clip(-slope / bend, -1.0, 1.0))
    return vertex, -(slope + bend * vertex / 2) * vertex
