"""Derivatives of kernels, and of the fields that have them.

A field with a stationary kernel k(d) has as many derivatives as half those of k at 0. With
k^(n) the n-th derivative, that of order n of the field at q has the covariance

    k^(n)(q - c)            with the value at c,
    (-1)^n k^(2n)(q - q')   with that at q'.

On a circle d is replaced by the chord (P / pi) sin(pi d / P), and the chain rule holds. It holds
for warped coordinates too: with u(q) the logarithm or the root, the derivatives of f(u(q)) are
u' f' and u'^2 f'' + u'' f', and a stationary field has f' and f'' independent of each other at a
place. A spline has the derivatives of its polynomials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.kernels import CYCLE_SIGMA, Kernel, gram, pairs
from dkrls_cli.cascade.splines.pieces import piecewise_rows
from dkrls_cli.circle import wrap
from dkrls_cli.errors import SettingError

ORDERS = {
    "gaussian": 2,
    "matern52": 2,
    "matern32": 1,
    "matern12": 0,
    "quintic": 2,
    "cubic": 2,
    "linear": 0,
}
"""Highest derivative of a field of each family that is answered; a Gaussian one has them all."""

# By order of the derivative, the families that have it on any grid.
_SMOOTH = {1: "matern32, matern52 or gaussian", 2: "matern52 or gaussian"}

# By family, k''(0) and k''''(0) as functions of the distance in length scales: those that exist.
_AT_ZERO = {
    "gaussian": (-1.0, 3.0),
    "matern52": (-5.0 / 3.0, 25.0),
    "matern32": (-3.0, math.nan),
}

# Beyond this many length scales every kernel is zero in float64; the cap keeps inf * 0 away.
_FAR = 1e3


def refuse_rough(kernel: Kernel, order: int, name: str) -> None:
    """Raise SettingError if a field with this kernel has no derivative of this order.

    `name` is that of the dimension.
    """
    most = ORDERS[kernel.roughest]
    if order <= most:
        return
    if order > 2:
        raise SettingError(
            f"A derivative of order {order} along '{name}' was asked for. Orders 1 and 2 are "
            "answered."
        )
    ordinal = {1: "first", 2: "second"}[order]
    raise SettingError(
        f"A field with a {kernel.roughest} kernel, as '{name}' has, has no {ordinal} derivative. "
        f"Fit with {_SMOOTH[order]} along '{name}'.",
        setting="kernel",
    )


def derivative_gram(kernel: Kernel, a: Array, b: Array, order: int) -> Array:
    """Return the derivative of k(a, b) by a, between all pairs of coordinates (len(a), len(b))."""
    if order == 0:
        return gram(kernel, a, b)
    if kernel.warp is None:
        return _unwarped_gram(kernel, a, b, order)
    slope, bend = (each[:, None] for each in warp_slopes(kernel, a))
    plain, here, there = kernel.unwarped, kernel.warped(a), kernel.warped(b)
    first = _unwarped_gram(plain, here, there, 1)
    if order == 1:
        return slope * first
    return slope**2 * _unwarped_gram(plain, here, there, 2) + bend * first


def _unwarped_gram(kernel: Kernel, a: Array, b: Array, order: int) -> Array:
    """Return the derivative of k(a, b) by a, of coordinates that have no warp."""
    if kernel.is_spline:
        return piecewise_rows(kernel.family, kernel.pieces, b, a, order)
    return _derivative(kernel, a, b, order, np.subtract.outer)


def warp_slopes(kernel: Kernel, coordinates: Array) -> tuple[Array, Array]:
    """Return first and second derivative of the warp of a kernel at coordinates.

    >>> warp_slopes(Kernel(warp="log"), np.array([2.0]))
    (array([0.5]), array([-0.25]))
    """
    slope = 1.0 / coordinates if kernel.warp == "log" else 0.5 / np.sqrt(coordinates)
    return slope, -slope / (1.0 if kernel.warp == "log" else 2.0) / coordinates


def derivative_pairs(kernel: Kernel, a: Array, b: Array, order: int) -> Array:
    """Return the derivative of k(a, b) by a, of coordinates that belong together, in their shape.

    >>> derivative_pairs(Kernel(sigma=2.0), np.array([1.0]), np.array([0.0]), 1).round(4)
    array([-0.2206])
    """
    if order == 0:
        return pairs(kernel, a, b)
    return _derivative(kernel, a, b, order, np.subtract)


def prior_variance(kernel: Kernel, query: Array, order: int) -> Array:
    """Return the prior variance of a derivative of a field at coordinates (q,)."""
    if kernel.warp is None:
        return np.full(query.size, derivative_variance(kernel, order))
    slope, bend = warp_slopes(kernel, query)
    first = derivative_variance(kernel, 1)
    if order == 1:
        return slope**2 * first
    return slope**4 * derivative_variance(kernel, 2) + bend**2 * first


def derivative_covariance(kernel: Kernel, query: Array, order: int) -> Array:
    """Return the prior covariance of the derivatives of a field among coordinates (q, q).

    >>> derivative_covariance(Kernel(sigma=2.0), np.array([0.0, 1.0]), 1).round(4).tolist()
    [[0.25, 0.1655], [0.1655, 0.25]]
    """
    if order == 0:
        return gram(kernel, query, query)
    here = kernel.warped(query)
    second = _derivative(kernel.unwarped, here, here, 2, np.subtract.outer)
    fourth = None
    if order == 2:
        fourth = _derivative(kernel.unwarped, here, here, 4, np.subtract.outer)
    if kernel.warp is None:
        return -second if fourth is None else fourth
    slope, bend = warp_slopes(kernel, query)
    if fourth is None:
        return np.asarray(-np.outer(slope, slope) * second)
    third = _derivative(kernel.unwarped, here, here, 3, np.subtract.outer)
    mixed = np.outer(bend, slope**2) - np.outer(slope**2, bend)
    return np.asarray(
        np.outer(slope**2, slope**2) * fourth + mixed * third - np.outer(bend, bend) * second
    )


def derivative_variance(kernel: Kernel, order: int) -> float:
    """Return the prior variance of a derivative of a field, (-1)^order k^(2 order)(0).

    It is that by the warped coordinate.

    >>> derivative_variance(Kernel("matern52", sigma=2.0), 1).__round__(4)
    0.4167
    """
    if order == 0:
        return kernel.variance
    total = _variance(kernel.family, kernel.sigma, kernel.period, order)
    if kernel.cycle is not None:
        sigma = CYCLE_SIGMA * kernel.cycle
        total += kernel.swing * _variance("gaussian", sigma, kernel.cycle, order)
    return total


def _variance(family: str, sigma: float, period: float | None, order: int) -> float:
    """Return (-1)^order k^(2 order)(0) of a family, on a line or a circle."""
    second, fourth = _AT_ZERO[family]
    if order == 1:
        return -second / sigma**2
    turn = 0.0 if period is None else math.pi / period
    return fourth / sigma**4 - 4 * turn**2 * second / sigma**2


def _derivative(
    kernel: Kernel, a: Array, b: Array, order: int, subtract: Callable[[Array, Array], Array]
) -> Array:
    with np.errstate(over="ignore", under="ignore"):
        if kernel.period is None:
            distance = subtract(a, b)
        else:
            distance = subtract(wrap(a, kernel.period), wrap(b, kernel.period))
        result = _of_distance(kernel.family, kernel.sigma, kernel.period, distance, order)
        if kernel.cycle is not None:
            sigma = CYCLE_SIGMA * kernel.cycle
            cycle = _of_distance("gaussian", sigma, kernel.cycle, subtract(a, b), order)
            result += kernel.swing * cycle
    return result


def _of_distance(
    family: str, sigma: float, period: float | None, distance: Array, order: int
) -> Array:
    """Return the derivative of order 1 to 4 of a family, by signed distances."""
    if period is None:
        scaled = np.clip(distance / sigma, -_FAR, _FAR)
        return np.asarray(_BY_SCALED[family](scaled, order) / sigma**order)
    turn = math.pi / period
    chord = np.clip(np.sin(turn * distance) / (turn * sigma), -_FAR, _FAR)
    slope, bend = np.cos(turn * distance) / sigma, -(turn**2) * chord
    by_chord = [_BY_SCALED[family](chord, each) for each in range(1, order + 1)]
    return np.asarray(_chain(by_chord, slope, bend, turn**2))


def _chain(by_chord: Sequence[Array], slope: Array, bend: Array, turn2: float) -> Array:
    """Return the derivative of k(c(d)) by d, of the order of the last derivative by c.

    `slope` and `bend` are c' and c''; the third and fourth derivative of c are -turn2 times these.
    """
    match by_chord:
        case [first]:
            return first * slope
        case [first, second]:
            return second * slope**2 + first * bend
        case [first, second, third]:
            return third * slope**3 + 3.0 * second * slope * bend - turn2 * first * slope
    first, second, third, fourth = by_chord
    return np.asarray(
        fourth * slope**4
        + 6.0 * third * slope**2 * bend
        + second * (3.0 * bend**2 - 4.0 * turn2 * slope**2)
        - turn2 * first * bend
    )


def _gaussian(s: Array, order: int) -> Array:
    """Return the derivatives of exp(-s^2 / 2)."""
    polynomials = {
        1: lambda: -s,
        2: lambda: s * s - 1.0,
        3: lambda: s * (3.0 - s * s),
        4: lambda: (s * s - 6.0) * s * s + 3.0,
    }
    return np.asarray(polynomials[order]() * np.exp(-0.5 * s * s))


def _matern32(s: Array, order: int) -> Array:
    """Return the derivatives of (1 + r) e^-r with r = sqrt(3) |s|; the second is two-sided at 0."""
    r = math.sqrt(3.0) * np.abs(s)
    return -3.0 * s * np.exp(-r) if order == 1 else 3.0 * (r - 1.0) * np.exp(-r)


def _matern52(s: Array, order: int) -> Array:
    """Return the derivatives of (1 + r + r^2 / 3) e^-r with r = sqrt(5) |s|."""
    root = math.sqrt(5.0)
    r = root * np.abs(s)
    polynomials = {
        1: lambda: s * (1.0 + r),
        2: lambda: 1.0 + r - r * r,
        3: lambda: 5.0 * s * (r - 3.0),
        4: lambda: 5.0 * (5.0 * r - r * r - 3.0),
    }
    return np.asarray(-5.0 / 3.0 * polynomials[order]() * np.exp(-r))


_BY_SCALED: dict[str, Callable[[Array, int], Array]] = {
    "gaussian": _gaussian,
    "matern52": _matern52,
    "matern32": _matern32,
}
