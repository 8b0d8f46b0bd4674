"""Error bars between the coordinates of a model with a joint ridge, from slices left out.

What such a model leaves open between its coordinates (its posterior variance) tells how errors grow
with the distance to them, but not how large they are: cells that are missed one by one, or as gaps
lie, say little of whole slices. So slices are left out in five folds. A fold leaves out every fifth
slice of every level at once. What stays is a complete grid, no two neighbours are left out, and
cells are predicted in all *patterns*: sets of levels that are asked between their coordinates. For
every pattern the variance is multiplied by the factor that makes the 90 % band hold 90 % of them.

Far from all coordinates nothing is known but the spread of the data. Left-out slices say nothing of
that distance, so beyond what they leave open the variance goes over to that of the data, as a power
of what is left open. Where answers are far from the data themselves it may be as large as they are
far (:mod:`dkrls_cli.cascade.calibration.between`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.cascade.calibration.local import student_factor
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.factors.choice import LONG
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.solvers import JointSolver
from dkrls_cli.cascade.tensors import apply

# Folds, and steps between two slices that are left out together.
_FOLDS = 5

# Cells that a fold sees at most: of a larger grid or a long level a part, another in every fold.
_CELLS = 2**19

# Cells of a pattern from which a quantile of their errors is taken, and not the mean square.
_ENOUGH = 20

# Least variance: keeps logarithms finite where all slices are predicted exactly.
_TINY = 1e-300

# Least share of the prior variance that is left open: below, it is round-off.
_ROUND_OFF = 1e-14

# Square of the half width of the band that holds 90 % of a normal distribution.
_BAND = 1.6448536269514722**2

Pattern = tuple[int, ...]
"""For every level 1 if it is asked between its coordinates, else 0."""


@dataclass(frozen=True, eq=False)
class Fold:
    """Slices of all levels that are left out at once, and what the others say of them.

    Attributes
    ----------
    places
        Places of the coordinates of every level that the fold sees, these in rising order.
    kept
        Those that are not left out.
    queries
        The coordinates themselves, at all places.
    cascade
        The model of those that are kept.
    missed
        Predicted less true values at all places; 0 where nothing is left out.
    left
        What the others leave open there, noise included, in units of the kernels.
    """

    places: tuple[Indices, ...]
    kept: tuple[Indices, ...]
    queries: tuple[Array, ...]
    cascade: Cascade
    missed: Array
    left: Array

    def cells(self, pattern: Pattern) -> tuple[Indices, ...]:
        """Return an index of the cells of a pattern."""
        out = [~np.isin(all_, kept) for all_, kept in zip(self.places, self.kept, strict=True)]
        return np.ix_(*[np.flatnonzero(o == on) for o, on in zip(out, pattern, strict=True)])


@dataclass(frozen=True, eq=False)
class BetweenScale:
    """From what a joint ridge leaves open between coordinates to the variance of answers.

    Attributes
    ----------
    factors
        Factor of every pattern (2, ..., 2), an axis per level.
    usual
        What slices that are left out usually leave open, by pattern.
    open
        What is left open far from all data.
    climate
        Variance of the data.
    """

    factors: Array
    usual: Array
    open: float
    climate: float

    def variance(self, left: Array, pattern: Sequence[Indices]) -> Array:
        """Return the variance of answers.

        Parameters
        ----------
        left
            What the data leaves open there, noise included.
        pattern
            For every level whether it is asked between its coordinates, 0 or 1, as arrays that
            broadcast to the shape of `left`.
        """
        factor, usual = self.factors[tuple(pattern)], self.usual[tuple(pattern)]
        result = self.unbounded(left, pattern)
        far = (left > usual) & (usual < self.open)
        if far.any():
            factor, usual = (np.broadcast_to(known, left.shape)[far] for known in (factor, usual))
            share = np.log(left[far] / usual) / np.log(self.open / usual)
            here = np.maximum(factor * usual, _TINY)
            result[far] = here * (np.maximum(self.climate, here) / here) ** share
        return result

    def sizes(self, left: Array, pattern: Sequence[Indices]) -> Array:
        """Return the factor from what is left open to the variance of answers."""
        return self.variance(left, pattern) / np.maximum(left, _ROUND_OFF * self.open)

    def unbounded(self, left: Array, pattern: Sequence[Indices]) -> Array:
        """Return the variance of answers that nothing is known to bound."""
        return np.asarray(self.factors[tuple(pattern)] * np.maximum(left, _ROUND_OFF * self.open))


def find_between_scale(cascade: Cascade, *counts: Callable[[Fold], Mask]) -> BetweenScale:
    """Measure how large errors are between the coordinates of a model with a joint ridge.

    Parameters
    ----------
    cascade
        The model.
    counts
        Each returns for a fold which of the cells at its places count: of several the first that
        has enough cells of a pattern.

    Returns
    -------
    BetweenScale
        Patterns that no fold has take the largest factor of their levels alone, or of all patterns.
    """
    shape = (2,) * cascade.ndim
    factors, usual = np.full(shape, np.nan), np.full(shape, np.nan)
    open_, climate = _far_from_data(cascade)
    folds = [(fold, [count(fold) for count in counts]) for fold in leave_out_folds(cascade)]
    for pattern in list(np.ndindex(shape))[1:]:
        here = [(fold, counted, fold.cells(pattern)) for fold, counted in folds]
        for which in range(len(counts)):
            missed, left = (
                np.concatenate(
                    [np.zeros(0), *(getattr(f, name)[at][c[which][at]] for f, c, at in here)]
                )
                for name in ("missed", "left")
            )
            if missed.size >= _ENOUGH:
                break
        if missed.size:
            left = np.maximum(left, _ROUND_OFF * open_)
            factors[pattern] = _factor(missed**2 / left) * _uncertainty(cascade, pattern)
            usual[pattern] = np.median(left)
    _complete(factors, usual, open_, climate)
    return BetweenScale(factors, usual, open_, climate)


def _factor(squares: Array) -> float:
    """Return the factor of the variance that squared errors tell: of few cells, their mean."""
    if squares.size < _ENOUGH:
        return float(squares.mean())
    return float(np.quantile(squares, 0.9) / _BAND)


def leave_out_folds(cascade: Cascade) -> Iterator[Fold]:
    """Leave out slices of all levels of a model with a joint ridge, in folds."""
    for number in range(_FOLDS):
        seen = _window(cascade.shape, number)
        places = tuple(np.argsort(c)[w] for c, w in zip(cascade.coordinates, seen, strict=True))
        kept = tuple(
            np.delete(place, _left_out(place.size, _is_closed(level, place.size, size), number))
            for place, level, size in zip(places, cascade.levels, cascade.shape, strict=True)
        )
        if any(k.size < place.size for k, place in zip(kept, places, strict=True)):
            yield _predict_fold(cascade, places, kept)


def _predict_fold(cascade: Cascade, places: tuple[Indices, ...], kept: tuple[Indices, ...]) -> Fold:
    """Predict the slices that are left out from those that are kept."""

    def data(where: Sequence[Indices]) -> Array:
        rows = [cascade.data_rows(axis, nodes) for axis, nodes in enumerate(where)]
        return apply(np.asarray(cascade.core, np.float64), rows)

    queries = tuple(c[seen] for c, seen in zip(cascade.coordinates, places, strict=True))
    others = fit_cascade(
        data(kept),
        [c[k] for c, k in zip(cascade.coordinates, kept, strict=True)],
        cascade.levels,
        joint_ridge=cascade.joint_ridge,
        mean=cascade.mean,
    )
    solver = others.solver
    assert isinstance(solver, JointSolver)
    whole = tuple(slice(0, query.size) for query in queries)
    missed = others.predict(queries) - data(places)
    return Fold(places, kept, queries, others, missed, solver.left(queries)(whole))


def _is_closed(level: Level, seen: int, size: int) -> bool:
    """Return whether a level is a circle that is seen whole."""
    return level.kernel.period is not None and seen == size


def _left_out(size: int, closed: bool, fold: int) -> Indices:
    """Return the places of the slices that a fold leaves out of a level.

    The ends of a line test extrapolation, and stay if there are others.
    """
    if size < 2:
        return np.arange(0)
    inner = np.arange(size) if closed or size <= 3 else np.arange(1, size - 1)
    return inner[fold::_FOLDS]


def _window(shape: Sequence[int], fold: int) -> tuple[Indices, ...]:
    """Return what a fold sees, in rising order: all, or runs of long levels and in large grids."""
    sizes = [min(size, LONG) for size in shape]
    longest = int(np.argmax(sizes))
    sizes[longest] = min(
        sizes[longest], max(2 * _FOLDS, _CELLS * sizes[longest] // math.prod(sizes))
    )
    starts = [
        (whole - size) * fold // (_FOLDS - 1) for whole, size in zip(shape, sizes, strict=True)
    ]
    return tuple(np.arange(start, start + size) for start, size in zip(starts, sizes, strict=True))


def _uncertainty(cascade: Cascade, pattern: Pattern) -> float:
    """Return the factor of a variance that few slices tell: that of the level with the fewest."""
    return max(
        student_factor(size - 2 if size > 3 and level.kernel.period is None else size)
        for size, level, on in zip(cascade.shape, cascade.levels, pattern, strict=True)
        if on
    )


def _complete(factors: Array, usual: Array, open_: float, climate: float) -> None:
    """Give patterns that are not known what is known of their levels alone, or else of others.

    If nothing is, all is left open, and the variance far from all data is that of the data.
    """
    measured = factors[np.isfinite(factors)]
    alone = np.eye(factors.ndim, dtype=int)
    known = [tuple(each) for each in alone if np.isfinite(factors[tuple(each)])]
    for pattern in np.ndindex(factors.shape):
        if np.isfinite(factors[pattern]):
            continue
        own = [each for each in known if reduce(max, map(min, each, pattern))]
        others = measured.max(initial=0.0) if measured.size else climate / open_
        factors[pattern] = max((factors[each] for each in own), default=others)
        usual[pattern] = max((usual[each] for each in own), default=open_)


def _far_from_data(cascade: Cascade) -> tuple[float, float]:
    """Return what is left open far from all data, and the variance of the data."""
    prior = math.prod(level.kernel.variance for level in cascade.levels)
    core = cascade.centred_core()
    climate = float(np.vdot(core, core).real) / math.prod(cascade.shape)
    return prior + (cascade.joint_ridge or 0.0), climate
