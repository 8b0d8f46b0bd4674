"""Errors on hidden cells whose observations have errors themselves.

A hidden cell differs from its answer by the error of the answer, which matters, and by that of its
own observation, whose size is known. Cells are weighed by how much they tell, so that one with a
huge error counts for little, and the mean square of the known errors is subtracted.

What is left may come out near 0 or below by chance, or because errors are stated too large. So it
is softened: settings keep their order, and no setting seems to be without error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Array, Indices

_LEAST_SOFT = 0.05
"""Mean square error, as a share of that of the observations, below which no setting seems to be."""

_CHANCE = 2.0
"""The same in standard deviations of the mean square of the observations' errors."""

_QUARTER = 0.25
"""Share of the cells with the smallest errors, which count about in full."""

_TYPICAL = 1e-3
"""Mean square error of an answer to begin with, as a share of the variance of the data."""


@dataclass(frozen=True, eq=False)
class PowerShares:
    """Weights of hidden cells, for each power of two of their distance to data.

    Attributes
    ----------
    weights
        Sum of the weights of the cells.
    expected
        Mean square of the errors of their observations; 0 without such errors.
    soft
        Mean square error below which the score is softened; 0 without such errors.
    """

    weights: Array
    expected: Array
    soft: Array

    def mean_squares(self, squares: Array) -> Array:
        """Return mean squares of the errors of the answers, from sums of weighted squares.

        They are those of the powers that have a weight, in their order.
        """
        known = self.weights > 0
        found = squares[known] / self.weights[known] - self.expected[known]
        soft = self.soft[known]
        return np.asarray(np.where(soft > 0, 0.5 * (found + np.hypot(found, 2.0 * soft)), found))

    def score(self, squares: Array) -> float:
        """Return the error by which settings are compared, from sums of weighted squares.

        It is the geometric mean over distances. In a plain mean the few cells far from data, whose
        errors are largest and depend on each other most, would decide alone. Up to a constant it is
        the log density of normal errors that have a variance for every distance.
        """
        known = self.weights > 0
        if not known.any():
            return 0.0
        logs = np.log(np.maximum(self.mean_squares(squares), np.finfo(np.float64).tiny))
        return math.exp(0.5 * float(self.weights[known] @ logs) / float(self.weights.sum()))


def share_powers(parts: Sequence[tuple[Indices, Array, Array | None]], powers: int) -> PowerShares:
    """Return the weights of hidden cells by power.

    Parameters
    ----------
    parts
        Of every window, the powers of its hidden cells, their weights, and the squared errors of
        their observations, or None.
    powers
        Number of powers.
    """
    place = np.concatenate([power for power, _, _ in parts])
    weight = np.concatenate([weights for _, weights, _ in parts])
    noise = np.concatenate([np.zeros(p.size) if e is None else e for p, _, e in parts])
    total, squares, spread = (
        np.bincount(place, values, minlength=powers)
        for values in (weight, weight * noise, 2.0 * (weight * noise) ** 2)
    )
    divisor = np.where(total > 0, total, 1.0)
    expected, chance = squares / divisor, np.sqrt(spread) / divisor
    soft = np.maximum(_CHANCE * chance, _LEAST_SOFT * expected)
    return PowerShares(total.astype(np.float64), expected, soft)


def weigh_by_errors(parts: Sequence[tuple[Indices, Array, Array]], variance: float) -> list[Array]:
    """Return weights of hidden cells by how much they tell of the error of an answer.

    A squared difference varies by the square of its own mean, so a cell counts by the inverse of
    that. Every power of two of the distance to data keeps the weight that it had.

    Parameters
    ----------
    parts
        Of every window, the powers of its hidden cells, their weights, and the squared errors of
        their observations.
    variance
        Variance of the data.
    """
    every = np.concatenate([noise for _, _, noise in parts])
    if not every.size or variance <= 0:
        return [weights for _, weights, _ in parts]
    typical = float(np.quantile(every, _QUARTER)) + _TYPICAL * variance
    told = [weights * (typical / (typical + noise)) ** 2 for _, weights, noise in parts]
    powers = np.concatenate([power for power, _, _ in parts])
    before = np.bincount(powers, np.concatenate([weights for _, weights, _ in parts]))
    after = np.bincount(powers, np.concatenate(told))
    factors = np.divide(before, after, out=np.zeros(before.shape), where=after > 0)
    return [factors[power] * new for (power, _, _), new in zip(parts, told, strict=True)]
