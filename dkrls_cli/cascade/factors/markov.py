"""Matern kernels as few states: k(t - s) = u(t) v(s) for every t behind and s before an edge.

A Gaussian process with a Matern kernel of order nu = 1/2, 3/2, 5/2 is Markov together with its
first 0, 1, 2 derivatives. In units of sigma / sqrt(2 nu) they follow d/dx = F, the companion matrix
of (d/dx + 1)^states, so e^(Fx) = e^-x (I + x N + x^2 N^2 / 2) with N = F + I nilpotent. With the
stationary covariance S of the states, u = e_1' e^(F x) and v = e^(F y) S e_1 at distances x behind
and y before the edge.

Derivatives are the states, and not the terms of the polynomial in x + y, because those cancel where
steps are far shorter than sigma.
"""

from __future__ import annotations

import math

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.kernels import Kernel

STATES = {"matern12": 1, "matern32": 2, "matern52": 3}
"""Number of states of each family; the Gaussian has no finite number."""

# Covariance of a value with the value, the first and the second derivative: the first column of S.
_STATIONARY = np.array([1.0, 0.0, -1 / 3])

# Distance in units of sigma / sqrt(2 nu) beyond which every state is zero in float64.
_FAR = 800.0


def is_markov(kernel: Kernel) -> bool:
    """Return whether few states hold all that the past says of the future."""
    return kernel.family in STATES and kernel.period is None


def transition(kernel: Kernel, distances: Array) -> Array:
    """Return e^(F x) (..., states, states), which leads the states over distances."""
    count = STATES[kernel.family]
    x = np.minimum(math.sqrt(2 * count - 1) / kernel.sigma * distances, _FAR)
    shift = _nilpotent(count)
    series = np.eye(count) + np.multiply.outer(x, shift)
    if count > 2:
        series += np.multiply.outer(0.5 * x * x, shift @ shift)
    return np.asarray(series * np.exp(-x)[..., None, None])


def behind(kernel: Kernel, distances: Array, order: int = 0) -> Array:
    """Return u of coordinates at distances behind an edge (..., states), or a derivative of it."""
    states = transition(kernel, distances)[..., 0, :]
    return states if order == 0 else np.asarray(states @ _slope(kernel, order))


def before(kernel: Kernel, distances: Array, order: int = 0) -> Array:
    """Return v of coordinates at distances before an edge (..., states), or a derivative of it.

    Derivatives are by the coordinate, which falls as the distance grows.
    """
    stationary = _STATIONARY[: STATES[kernel.family]]
    if order:
        stationary = (-1.0) ** order * _slope(kernel, order) @ stationary
    return np.asarray(transition(kernel, distances) @ stationary)


def _slope(kernel: Kernel, order: int) -> Array:
    """Return F^order in the units of the coordinate: it takes states to their derivatives."""
    count = STATES[kernel.family]
    rate = math.sqrt(2 * count - 1) / kernel.sigma
    return np.asarray(np.linalg.matrix_power(rate * (_nilpotent(count) - np.eye(count)), order))


def _nilpotent(count: int) -> Array:
    """Return N = F + I, with F the companion matrix of (d/dx + 1)^count."""
    companion = np.eye(count, k=1)
    companion[-1] = [-float(math.comb(count, power)) for power in range(count)]
    return companion + np.eye(count)
