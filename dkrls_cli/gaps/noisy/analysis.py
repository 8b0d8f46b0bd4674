"""The quantity itself, from observations that have errors of known size.

The quantity q on the grid has the covariance s^2 (K + lambda): K is the covariance of the field f
(:mod:`dkrls_cli.gaps.field`), lambda that of detail from cell to cell, which is real. An
observation is y = q + e, with e independent from cell to cell and of a known standard error E. In
units of s^2, with n = E^2 / s^2,

    alpha = (K + lambda + n)^-1 y,    f = K alpha,    q = f + lambda / (lambda + n) (y - f)

at observed cells, and q = f at missing ones, where alpha is 0. So y - n alpha = q: the *analysis* q
is a complete grid whose ordinary joint-ridge solution (K + lambda)^-1 q is alpha, and an ordinary
cascade of q has the same answers between the coordinates. At the coordinates it passes through q,
the mean of the quantity given all observations.

Given v, the variance of f given all observations, that of q is

    n lambda / (lambda + n) + (n / (lambda + n))^2 v

at observed cells, and v + lambda at missing ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.cascade.tensors import apply
from dkrls_cli.gaps.field import Field
from dkrls_cli.gaps.pattern import local_mean, spread_to_missing
from dkrls_cli.gaps.solve import LEAST_RIDGE, Completed, complete_field

_FINE = 1e-3
"""Variance, as a share of that of the quantity, below which no error is told from another."""

_NEIGHBOURHOOD = 5
"""Cells along every axis whose errors together say how good the data is around a cell."""

_GOOD = 0.9
"""Share of the observed cells that have worse data around them than good data is."""

_ROUND_OFF = 1e-14
"""Spread of data, as a share of its mean, that is round-off."""

_LEAST_SIGNAL = 0.01
"""Least variance of the quantity, as a share of that of the observations.

Errors that explain all of the spread of the data are too large, or nothing is left to be seen.
"""


@dataclass(frozen=True, eq=False)
class Observations:
    """Observations on a grid, and how large their errors are.

    Attributes
    ----------
    values
        The observations, NaN where there is none.
    errors
        Their standard errors in units of the data, in the same shape; 0 where there is none.
    """

    values: Array
    errors: Array

    @property
    def observed(self) -> Mask:
        """Which cells have an observation."""
        return np.asarray(~np.isnan(self.values))

    def take(self, places: Indices, axis: int) -> Observations:
        """Return some of the slices along an axis."""
        return Observations(self.values.take(places, axis), self.errors.take(places, axis))

    def append(self, values: Array, errors: Array, axis: int) -> Observations:
        """Return these and other slices behind them."""
        errors = np.where(np.isnan(values), 0.0, errors)
        return Observations(
            np.concatenate([self.values, values], axis), np.concatenate([self.errors, errors], axis)
        )

    def reshape(self, shape: Sequence[int]) -> Observations:
        """Return the same in another shape."""
        return Observations(self.values.reshape(shape), self.errors.reshape(shape))


def split_noise(field: Field, observed: Mask, ridge: float, noise: Array) -> tuple[float, Array]:
    """Return lambda + n as the least of it in any observed cell, and what each cell has above.

    That is how :func:`dkrls_cli.gaps.solve.complete_field` takes it. A solve with the least of all
    as its ridge is far better conditioned than one with a tiny lambda.
    """
    least = max(
        ridge + float(noise[observed].min(initial=np.inf)),
        LEAST_RIDGE * float(field.variances.max()),
    )
    return least, np.where(observed, np.maximum(ridge + noise - least, 0.0), 0.0)


def solve_noisy(
    field: Field,
    values: Array,
    ridge: float,
    noise: Array,
    mean: float,
    *,
    tolerance: float,
    limit: int,
    watched: Mask | None = None,
    give_up: Callable[[Array], bool] | None = None,
) -> Completed:
    """Return the field f in every cell, given observations with noise.

    Parameters
    ----------
    field
        The prior on the grid.
    values
        The observations, NaN where there is none.
    ridge
        lambda, the variance of detail from cell to cell.
    noise
        n, the variance of the error of every observation, in units of the field.
    mean, tolerance, limit, watched, give_up
        As for :func:`dkrls_cli.gaps.solve.complete_field`.
    """
    least, rest = split_noise(field, np.isfinite(values), ridge, noise)
    return complete_field(
        field,
        values,
        least,
        mean,
        tolerance=tolerance,
        limit=limit,
        watched=watched,
        noise=rest,
        give_up=give_up,
    )


def analyse(
    field: Field,
    values: Array,
    ridge: float,
    noise: Array,
    mean: float,
    *,
    tolerance: float,
    limit: int,
) -> Completed:
    """Return the analysis: the mean of the quantity in every cell, given all observations.

    The parameters are those of :func:`solve_noisy`.

    Examples
    --------
    >>> from dkrls_cli.cascade.kernels import Kernel
    >>> from dkrls_cli.gaps.field import make_field
    >>> x = np.linspace(0.0, 6.0, 50)
    >>> field, rng = make_field([x], [Kernel("gaussian", 1.5)]), np.random.default_rng(1)
    >>> noise = np.where(x < 3, 1e-4, 0.5)
    >>> seen = np.sin(x) + np.sqrt(noise) * rng.standard_normal(50)
    >>> found = analyse(field, seen, 1e-8, noise, 0.0, tolerance=1e-9, limit=100).values
    >>> bool(np.abs(found - np.sin(x)).max() < 0.2 * np.abs(seen - np.sin(x)).max())
    True
    """
    done = solve_noisy(field, values, ridge, noise, mean, tolerance=tolerance, limit=limit)
    observed = np.isfinite(values)
    kept = np.where(observed, detail_share(ridge, noise), 0.0)
    seen = np.where(observed, values, 0.0)
    return replace(done, values=np.asarray(done.values + kept * (seen - done.values)))


def detail_share(ridge: float | Array, noise: Array) -> Array:
    """Return lambda / (lambda + n): how much of y - f is detail; all of it where both are 0."""
    whole = ridge + noise
    return np.asarray(np.divide(ridge, whole, out=np.ones(noise.shape), where=whole > 0))


def quantity_variance(
    field_variance: Array, observed: Mask, ridge: float | Array, noise: Array
) -> Array:
    """Return the variance of the quantity in every cell, from that of the field.

    Parameters
    ----------
    field_variance
        v, the variance of the field given all observations.
    observed
        Which cells have an observation.
    ridge, noise
        lambda and n, in the units of v.
    """
    share = detail_share(ridge, noise)
    seen = noise * share + (1.0 - share) ** 2 * field_variance
    return np.asarray(np.where(observed, seen, field_variance + ridge))


@dataclass(frozen=True, eq=False)
class Spread:
    """How far observations spread about their mean, inaccurate ones counting for less.

    Attributes
    ----------
    weights
        Weight of every cell, in the shape of the grid; their sum is 1.
    mean, variance
        Mean of the observations, and their mean square about it, by weight.
    noise
        What errors add to that mean square.
    """

    weights: Array
    mean: float
    variance: float
    noise: float

    @property
    def signal(self) -> float:
        """Variance of the quantity, as far as errors do not explain all of the spread."""
        return max(self.variance - self.noise, _LEAST_SIGNAL * self.variance)

    def expected(self, field: Field, ridge: float) -> float:
        """Return the same variance as the prior has it, in units of s^2.

        The mean over the cells varies as well, which a spread about the mean does not show.
        """
        of_mean = apply(self.weights, [basis.T for basis in field.bases])
        common = float(np.vdot(field.variances, of_mean**2))
        return field.variance - common + ridge * (1.0 - float(np.sum(self.weights**2)))


def measure_spread(values: Array, errors: Array) -> Spread:
    """Return the spread of observations with errors.

    Cells count by the inverse of their variance, errors included. The variance of the quantity is
    taken from the more accurate half of the cells for that.

    Parameters
    ----------
    values, errors
        Observations, NaN where there is none, and their standard errors.
    """
    observed = np.isfinite(values)
    y, noise = values[observed], errors[observed] ** 2
    good = noise <= np.median(noise)
    rough = float(np.var(y[good]))
    rough = max(rough - float(np.mean(noise[good])), _LEAST_SIGNAL * rough)
    whole = rough + noise
    weights = 1.0 / whole if (whole > 0).all() else (whole == 0.0) * 1.0
    weights = weights / weights.sum()
    mean = float(weights @ y)
    spread = np.zeros(values.shape)
    spread[observed] = weights
    told = float(weights @ (noise * (1.0 - weights)))
    variance = float(weights @ (y - mean) ** 2)
    constant = variance <= (_ROUND_OFF * mean) ** 2
    return Spread(spread, mean, 0.0 if constant else variance, told)


def estimate_scale(parts: Sequence[tuple[Field, Spread]], ridge: float) -> float:
    """Return s^2 such that the quantity has the spread of the data, less that of the errors.

    Parameters
    ----------
    parts
        Of every part of the grid, the prior there, and the spread of the observations.
    ridge
        lambda.

    Examples
    --------
    >>> from dkrls_cli.cascade.kernels import Kernel
    >>> from dkrls_cli.gaps.field import make_field
    >>> rng = np.random.default_rng(0)
    >>> field = make_field([np.arange(1000.0)], [Kernel("matern32", 3.0)])
    >>> seen = 5.0 * field.draw(rng) + 4.0 * rng.standard_normal(1000)
    >>> round(np.sqrt(estimate_scale([(field, measure_spread(seen, np.full(1000, 4.0)))], 0.0)))
    5
    """
    signal = sum(spread.weights.size * spread.signal for _, spread in parts)
    expected = sum(spread.weights.size * spread.expected(field, ridge) for field, spread in parts)
    return signal / expected if signal > 0 and expected > 0 else 1.0


def local_precision(observed: Mask, errors: Array, signal: float) -> Array:
    """Return how good data is around every cell: the mean inverse square of errors there.

    Far from data it is that around the nearest observed cell.

    Parameters
    ----------
    observed
        Which cells have an observation.
    errors
        Their standard errors.
    signal
        Variance of the quantity: far smaller errors are all the same.
    """
    precision = np.where(observed, 1.0 / (errors**2 + _FINE * signal), 0.0)
    return spread_to_missing(local_mean(precision, observed, _NEIGHBOURHOOD), observed)


def poorness(observed: Mask, errors: Array, signal: float, good: float | None = None) -> Array:
    """Return how many times larger errors are around every cell than where data is good; 1 there.

    The parameters are those of :func:`local_precision`; `good` is the precision of good data, by
    default that which a tenth of the observed cells has around them.
    """
    local = local_precision(observed, errors, signal)
    best = good_precision(local, observed) if good is None else good
    return np.maximum(np.sqrt(best / local), 1.0)


def good_precision(local: Array, observed: Mask) -> float:
    """Return the precision around the observed cells with the best data."""
    return float(np.quantile(local[observed], _GOOD))
