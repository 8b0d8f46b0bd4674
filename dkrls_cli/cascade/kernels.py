"""Kernels over one dimension: a frozen value and its Gram matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.circle import wrap
from dkrls_cli.errors import SettingError
from dkrls_cli.spelling import suggest

CYCLE_SIGMA = 0.25
"""Length scale of the part that repeats, in cycles: a wave and its first overtones."""

# Beyond this many length scales every kernel is zero in float64; the cap keeps inf * 0 away.
_FAR = 1e3

# Each family overwrites the signed distances it is given: on large queries passes over memory and
# the exponential are the whole cost.


def _gaussian(s: Array) -> Array:
    s *= s
    s *= -0.5
    return np.exp(s, out=s)


def _matern12(s: Array) -> Array:
    np.copysign(s, -1.0, out=s)
    return np.exp(s, out=s)


def _matern32(s: Array) -> Array:
    s *= math.sqrt(3.0)
    np.clip(s, -_FAR, _FAR, out=s)
    polynomial = 1.0 + np.abs(s)
    polynomial *= _matern12(s)
    return polynomial


def _matern52(s: Array) -> Array:
    s *= math.sqrt(5.0)
    np.clip(s, -_FAR, _FAR, out=s)
    polynomial = 1.0 + np.abs(s)
    s_squared = s * s
    s_squared /= 3.0
    polynomial += s_squared
    polynomial *= _matern12(s)
    return polynomial


FAMILIES: dict[str, Callable[[Array], Array]] = {
    "gaussian": _gaussian,
    "matern52": _matern52,
    "matern32": _matern32,
    "matern12": _matern12,
}
"""Each family as a function of the distance in length scales, smoothest first."""


@dataclass(frozen=True)
class Kernel:
    """A stationary kernel of one dimension.

    Parameters
    ----------
    family
        ``gaussian`` (the paper's exp(-(z - z')^2 / (2 sigma^2))), ``matern52``, ``matern32`` or
        ``matern12``.
    sigma
        Length scale in the units of the coordinate.
    period
        Length of the circle the coordinate lies on, or None for a line. Distances on the circle
        are chords, (period / pi) |sin(pi (z - z') / period)|, so every family stays positive
        definite and, for a short sigma, is the kernel on the line.
    constant
        Variance of an added constant, in units of the family's own variance: with it answers far
        from data fall back to the mean along this dimension, without it to the mean of the grid.
    cycle, swing
        Length of a cycle that the data repeats along the line (a year, a day), and variance of
        the smooth part that repeats. None: there is no such part.

    Raises
    ------
    SettingError
        If the family is unknown, or sigma or period is not a finite number above 0.

    Examples
    --------
    >>> kernel = Kernel("matern32", sigma=2.0)
    >>> gram(kernel, np.array([0.0]), np.array([0.0, 2.0])).round(3)
    array([[1.   , 0.483]])
    """

    family: str = "gaussian"
    sigma: float = 1.0
    period: float | None = None
    constant: float = 0.0
    cycle: float | None = None
    swing: float = 1.0

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise SettingError(
                f"Unknown kernel '{self.family}'. Choose from: {', '.join(FAMILIES)}."
                f"{suggest(self.family, FAMILIES)}"
            )
        if not (math.isfinite(self.sigma) and self.sigma > 0):
            raise SettingError(f"Invalid sigma {self.sigma}. It must be a finite number above 0.")
        if self.period is not None and not (math.isfinite(self.period) and self.period > 0):
            raise SettingError(f"Invalid period {self.period}. It must be a finite number above 0.")

    @property
    def variance(self) -> float:
        """k(z, z)."""
        return 1.0 + self.constant + (self.swing if self.cycle is not None else 0.0)


def gram(kernel: Kernel, a: Array, b: Array) -> Array:
    """Return the kernel between all pairs of coordinates, (len(a), len(b))."""
    return _evaluate(kernel, a, b, np.subtract.outer, _differences)


def pairs(kernel: Kernel, a: Array, b: Array) -> Array:
    """Return the kernel between coordinates that belong together, in their shape.

    >>> pairs(Kernel("matern32", sigma=2.0), np.array([0.0, 1.0]), np.array([0.0, 3.0])).round(3)
    array([1.   , 0.483])
    """
    return _evaluate(kernel, a, b, np.subtract, lambda a, b, sigma: (a - b) / sigma)


def _evaluate(
    kernel: Kernel,
    a: Array,
    b: Array,
    subtract: Callable[[Array, Array], Array],
    differences: Callable[[Array, Array, float], Array],
) -> Array:
    """Return the kernel between coordinates, paired by `subtract`, and on a line `differences`."""
    with np.errstate(over="ignore", under="ignore"):
        if kernel.period is not None:
            here, there = wrap(a, kernel.period), wrap(b, kernel.period)
            scaled = _chords(here, there, kernel.period, kernel.sigma, subtract)
        else:
            scaled = differences(a, b, kernel.sigma)
        result = FAMILIES[kernel.family](scaled)
        if kernel.cycle is not None:
            chords = _chords(a, b, kernel.cycle, CYCLE_SIGMA * kernel.cycle, subtract)
            result += kernel.swing * _gaussian(chords)
        if kernel.constant:
            result += kernel.constant
    return result


def _differences(a: Array, b: Array, sigma: float) -> Array:
    """Return signed distances on a line, in length scales.

    Coordinates are counted from the middle of b and in length scales before they are paired, which
    changes each by a rounding error at most and saves a pass over the matrix.
    """
    middle = np.sort(b)[b.size // 2]
    scaled_a, scaled_b = (a - middle) / sigma, (b - middle) / sigma
    if np.isfinite(scaled_a).all() and np.isfinite(scaled_b).all():
        return np.asarray(np.subtract.outer(scaled_a, scaled_b))
    return np.asarray(np.subtract.outer(a, b) / sigma)


def _chords(
    a: Array, b: Array, period: float, sigma: float, subtract: Callable[[Array, Array], Array]
) -> Array:
    """Return signed distances through a circle (chords), in length scales."""
    chords = np.sin(math.pi * subtract(a / period, b / period))
    chords *= period / math.pi
    chords /= sigma
    return np.asarray(chords)
