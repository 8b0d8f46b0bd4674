"""Random fields given the observed cells: error bars and ensembles in holes.

A field drawn from the prior, less what the model answers to it when only the observed cells of
that draw are known (with noise), is a draw from the posterior about its mean (Matheron's rule). One
solve makes one draw, whatever the shape of the holes, and draws know how cells depend on each
other. The mean of their squares is the variance of every cell.

Far from data the variance changes slowly, so on a large grid it is computed with fewer cells and
interpolated. Fewer data leave more variance, and so does knowing the nearest cells only
(:func:`dkrls_cli.gaps.calibration.nearest.distance`): of these two upper limits the lower is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.gaps.coarse import CoarseMaker
from dkrls_cli.gaps.field import Field
from dkrls_cli.gaps.solve import LEAST_RIDGE, cell_weights, complete_field, useful_field

DRAWS = 24
"""Draws whose mean square is the variance: the root of that errs by a seventh."""

_MOST_DRAWS, _DRAWN_CELLS = 100, 200_000
"""Draws of a small grid, and cells of all draws up to which there are more than the usual ones."""

_EXACT = 3e-3
"""Largest change of a missing cell at the end of a solve, as a share of the largest value."""

_STILL = 0.99
"""Size of a draw, as a share of that ten iterations before, from which its solve may end.

What a solve lacks changes the mean square of a draw. Error bars of 24 draws err by a seventh, and
those in deep holes of made grids changed by one percent with this rule, and took half the time.
"""

_LIMIT = 300
"""Iterations of a solve."""

_CELLS = 60_000
"""Cells up to which the variance is computed for every cell."""


def posterior_draws(
    field: Field,
    observed: Mask,
    ridge: float,
    seed: Sequence[int],
    noise: Array | None = None,
    *,
    everywhere: bool = False,
    watched: Mask | None = None,
    only_size: bool = False,
) -> Callable[[int], Array]:
    """Return a function that draws the deviation of a field from its mean given the observed cells.

    Parameters
    ----------
    field
        The prior on the grid.
    observed
        True where a cell has a value.
    ridge
        Variance of the noise of an observed cell.
    seed
        Of the random numbers. Draw i depends on the seed and on i alone.
    noise
        Further variance of the noise of every observed cell, if it has any.
    everywhere
        Draw the field in observed cells as well, which are 0 otherwise if there is no further
        noise: what is known of them is known with the noise of the ridge.
    watched
        The cells whose change decides when a solve ends; by default those that it answers for.
    only_size
        Whether only the size of a draw is asked for: its solve ends as soon as that stays.
    """
    asked = ~observed if watched is None or not watched.any() else watched
    ridge = max(ridge, LEAST_RIDGE * float(field.variances.max()))
    coarse = CoarseMaker(cell_weights(observed, ridge, noise))
    field = useful_field(field, ridge, _EXACT)  # as solves have it: they share a coarse space
    sizes = np.sqrt(ridge if noise is None else ridge + noise)

    def draw(number: int) -> Array:
        rng = np.random.default_rng([*seed, number])
        truth = field.draw(rng)
        seen = truth + sizes * rng.standard_normal(truth.shape)
        seen[~observed] = np.nan
        done = complete_field(
            field,
            seen,
            ridge,
            0.0,
            tolerance=_EXACT,
            limit=_LIMIT,
            coarse=coarse,
            noise=noise,
            watched=watched,
            give_up=_size_stays(truth, asked) if only_size else None,
        )
        if noise is None and everywhere:
            return truth - _smooth(field, done.values, ridge)
        truth -= done.values
        if noise is None:
            truth[observed] = 0.0
        return truth

    return draw


def _size_stays(truth: Array, asked: Mask) -> Callable[[Array], bool]:
    """Return a function that tells whether a draw is as large with new answers as with the last."""
    known, last = truth[asked], math.inf

    def stays(answers: Array) -> bool:
        nonlocal last
        before, last = last, math.sqrt(float(np.mean((answers[asked] - known) ** 2)))
        return last >= _STILL * before

    return stays


def _smooth(field: Field, completed: Array, ridge: float) -> Array:
    """Return the field in every cell, from a grid whose missing cells have been filled by it.

    Cells filled with the answer of the model change none of its answers.
    """
    coefficients = field.analysis(field.fold(completed))
    coefficients *= field.variances / (field.variances + ridge)
    return field.unfold(field.synthesis(coefficients))


def posterior_variance(
    field: Field,
    observed: Mask,
    ridge: float,
    seed: Sequence[int],
    noise: Array | None = None,
    draws: int = DRAWS,
    watched: Mask | None = None,
) -> Array:
    """Return the variance of every cell given the observed ones, from some draws.

    `watched` are the cells that are asked for, if others may be less accurate.
    """
    draw = posterior_draws(
        field, observed, ridge, seed, noise, watched=watched, only_size=noise is None
    )
    total = np.zeros(observed.shape)
    for number in range(draws):
        deviation = draw(number)
        deviation *= deviation
        total += deviation
    total /= draws
    return total


def count_draws(cells: int) -> int:
    """Return how many draws the variance of a grid of so many cells is the mean of.

    >>> [count_draws(cells) for cells in (500, 4000, 20_000)]
    [100, 50, 24]
    """
    return min(_MOST_DRAWS, max(DRAWS, _DRAWN_CELLS // cells))


def thinning(shape: Sequence[int]) -> tuple[int, ...]:
    """Return, for every axis, the stride at which the variance of a large grid is computed.

    The longest axes are thinned first, so that a short one stays as it is.
    """
    strides = [1] * len(shape)
    while math.prod(-(-m // s) for m, s in zip(shape, strides, strict=True)) > _CELLS:
        longest = max(range(len(shape)), key=lambda axis: shape[axis] / strides[axis])
        strides[longest] += 1
    return tuple(strides)
