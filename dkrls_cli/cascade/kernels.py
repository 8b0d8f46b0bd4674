"""Kernels over one dimension: a frozen value and its Gram matrix.

Besides the covariances there are splines (:mod:`dkrls_cli.cascade.splines.cardinal`), whose matrix
between queries and samples holds the rows of the interpolation. All of them may be functions of the
logarithm or the square root of the coordinate (a *warp*), as tables with uneven steps often are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.splines.cardinal import DEGREES
from dkrls_cli.cascade.splines.pieces import Piece, are_ordered, piecewise_rows
from dkrls_cli.circle import wrap
from dkrls_cli.errors import InputError, SettingError
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

SPLINES = tuple(DEGREES)
"""The families that interpolate and are no covariance."""

WARPS: dict[str, Callable[[Array], Array]] = {"log": np.log, "sqrt": np.sqrt}
"""Functions of the coordinate, which must be above 0, that a kernel may be a function of."""

KERNELS = (*FAMILIES, *SPLINES, *(f"{w}-{f}" for w in WARPS for f in (*FAMILIES, *SPLINES)))
"""The names of all kernels: a family, or the warp of the coordinate and a family."""

SPLINE_RIDGE = 1e-12
"""Ridge of the covariance of a spline's errors: far less than they are between coordinates."""


@dataclass(frozen=True)
class Kernel:
    """A stationary kernel of one dimension.

    Parameters
    ----------
    family
        ``gaussian`` (the paper's exp(-(z - z')^2 / (2 sigma^2))), ``matern52``, ``matern32`` or
        ``matern12``; or a spline, ``linear``, ``cubic`` or ``quintic``.
    sigma
        Length scale in the units of the coordinate, or of the warped one. The answers of a spline
        have none: there it is that of its errors.
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
    warp
        ``log`` or ``sqrt`` of the coordinate takes the place of the coordinate. None: the
        coordinate itself.
    errors
        Of a spline, the family of the covariance of its errors, for error bars.
    pieces
        Of a spline, other splines that take over from it along the level, where the coordinate, or
        the warped one, rises.

    Raises
    ------
    SettingError
        If family or warp is unknown, sigma or period is not a finite number above 0, or a kernel
        has a part that it cannot have: a spline or a warp a circle, a constant or a cycle, another
        kernel pieces.

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
    warp: str | None = None
    errors: str | None = None
    pieces: tuple[Piece, ...] = ()

    def __post_init__(self) -> None:
        known = (*FAMILIES, *SPLINES)
        if self.family not in known:
            raise SettingError(
                f"Unknown kernel '{self.family}'. Choose from: {', '.join(known)}."
                f"{suggest(self.family, known)}"
            )
        if self.warp not in (None, *WARPS):
            raise SettingError(f"Unknown warp '{self.warp}'. Choose from: {', '.join(WARPS)}.")
        if self.errors not in ((None, *FAMILIES) if self.is_spline else (None,)):
            raise SettingError(
                f"Invalid covariance '{self.errors}' of the errors of a {self.family} kernel. A "
                f"spline has one of: {', '.join(FAMILIES)}; no other kernel has one."
            )
        self._check_parts()
        if not (math.isfinite(self.sigma) and self.sigma > 0):
            raise SettingError(f"Invalid sigma {self.sigma}. It must be a finite number above 0.")
        if self.period is not None and not (math.isfinite(self.period) and self.period > 0):
            raise SettingError(f"Invalid period {self.period}. It must be a finite number above 0.")

    def _check_parts(self) -> None:
        """Raise SettingError if a spline or a warp has a part that it cannot have."""
        if (self.is_spline or self.warp) and (self.period is not None or self.cycle is not None):
            raise SettingError(
                f"A kernel '{self.name}' cannot go round a circle, nor repeat with a cycle. Choose "
                f"from: {', '.join(FAMILIES)}; or say that the dimension has no period.",
                setting="kernel",
            )
        fits = self.is_spline and all(piece.family in DEGREES for piece in self.pieces)
        if self.pieces and not (fits and are_ordered(self.pieces)):
            raise SettingError(
                f"Invalid pieces {[tuple(piece) for piece in self.pieces]} of a {self.family} "
                "kernel. A spline may have pieces, each with a spline that takes over between two "
                "coordinates, behind those of the piece before it."
            )
        if self.is_spline and self.constant:
            raise SettingError(f"A {self.family} spline has no constant, got {self.constant}.")

    @property
    def is_spline(self) -> bool:
        """Whether this is a spline, and no covariance."""
        return self.family in DEGREES

    @property
    def name(self) -> str:
        """The warp, if there is one, and the family; those of all pieces, as linear/cubic."""
        families = "/".join(dict.fromkeys(self.families))
        return f"{self.warp}-{families}" if self.warp else families

    @property
    def families(self) -> tuple[str, ...]:
        """The family, and those of the pieces."""
        return (self.family, *(piece.family for piece in self.pieces))

    @property
    def roughest(self) -> str:
        """The family; of a spline with pieces, that of the lowest degree."""
        return min(self.families, key=lambda name: DEGREES.get(name, 0))

    @property
    def covariance(self) -> Kernel:
        """The kernel itself; of a spline, the covariance of its errors."""
        if not self.is_spline:
            return self
        return Kernel(self.errors or "matern52", self.sigma, warp=self.warp)

    def warped(self, coordinates: Array) -> Array:
        """Return the coordinates that distances are measured in, or raise InputError."""
        if self.warp is None:
            return coordinates
        if coordinates.size and not float(coordinates.min()) > 0:
            raise InputError(
                f"The {self.warp} of coordinate {float(coordinates.min()):g} cannot be taken, and "
                f"the kernel '{self.name}' needs it. Give coordinates above 0, or choose the "
                f"kernel {self.family}.",
                setting="kernel",
            )
        return WARPS[self.warp](coordinates)

    @property
    def unwarped(self) -> Kernel:
        """The same kernel as a function of warped coordinates."""
        return self if self.warp is None else replace(self, warp=None)

    @property
    def variance(self) -> float:
        """k(z, z)."""
        return 1.0 + self.constant + (self.swing if self.cycle is not None else 0.0)


def kernel_named(name: str, sigma: float = 1.0, period: float | None = None) -> Kernel:
    """Return the kernel of one of the names in `KERNELS`.

    >>> kernel_named("log-cubic").warp
    'log'
    """
    if name not in KERNELS:
        raise unknown_kernel(name)
    warp, _, family = name.rpartition("-")
    return Kernel(family, sigma, period, warp=warp or None)


def kernel_text(kernel: Kernel) -> str:
    """Return the name of a kernel and its parts as one word, which :func:`read_kernel` reads.

    >>> kernel_text(Kernel("gaussian", constant=1.0, cycle=365.25, swing=0.5))
    'gaussian+constant:1.0+cycle:365.25:0.5'
    """
    parts = [replace(kernel, pieces=()).name]
    if kernel.constant:
        parts.append(f"constant:{kernel.constant!r}")
    if kernel.cycle is not None:
        parts.append(f"cycle:{kernel.cycle!r}:{kernel.swing!r}")
    if kernel.is_spline:
        parts.append(f"errors:{kernel.covariance.family}")
    parts += [f"{piece.family}:{piece.low!r}:{piece.high!r}" for piece in kernel.pieces]
    return "+".join(part.replace("e+", "e") for part in parts)  # 1e+16 has no sign


def read_kernel(text: str, sigma: float, period: float | None = None) -> Kernel:
    """Return the kernel of a name with its parts, such as ``gaussian+constant:1``.

    Parts are ``constant:VARIANCE``, ``cycle:LENGTH:VARIANCE`` and, of a spline, ``errors:FAMILY``
    and ``SPLINE:LOW:HIGH``, a piece that takes over between two coordinates.

    Raises
    ------
    SettingError
        If the name or a part is not known, or the kernel cannot have it.
    """
    name, *parts = text.split("+")
    found = kernel_named(name, sigma, period)
    for part in parts:
        word, *values = part.split(":")
        try:
            found = replace(found, **_kernel_part(found, word, values))
        except ValueError:
            raise SettingError(
                f"Unknown part '{part}' of the kernel '{text}'. Expected constant:VARIANCE, "
                "cycle:LENGTH:VARIANCE, or errors:FAMILY or SPLINE:LOW:HIGH of a spline."
            ) from None
    return found


def _kernel_part(kernel: Kernel, word: str, values: list[str]) -> dict[str, Any]:
    """Return the attributes of a kernel that a part of its text gives, or raise ValueError."""
    if word == "errors":
        (family,) = values
        return {"errors": family}
    numbers = [float(value) for value in values]
    if word in DEGREES:
        low, high = numbers
        return {"pieces": (*kernel.pieces, Piece(word, low, high))}
    if not all(0 <= number < math.inf for number in numbers):
        raise ValueError
    names = {"constant": ["constant"], "cycle": ["cycle", "swing"]}.get(word, [])
    if len(names) != len(numbers) or not names:
        raise ValueError
    return dict(zip(names, numbers, strict=True))


def unknown_kernel(name: str, *others: str) -> SettingError:
    """Return the error of a name that is no kernel, where `others` may be given as well."""
    choices = (*others, *FAMILIES, *SPLINES)
    return SettingError(
        f"Unknown kernel '{name}'. Choose from: {', '.join(choices)}; a kernel of the logarithm or "
        "root of the coordinate has log- or sqrt- before its name."
        f"{suggest(name, (*others, *KERNELS))}"
    )


def gram(kernel: Kernel, a: Array, b: Array) -> Array:
    """Return the kernel between all pairs of coordinates, (len(a), len(b)).

    Of a spline these are the rows that answer at a from samples at b; among the samples themselves
    it is the identity.
    """
    if kernel.is_spline:
        if np.array_equal(a, b):
            return np.eye(a.size)
        return piecewise_rows(kernel.family, kernel.pieces, kernel.warped(b), kernel.warped(a))
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
    assert not kernel.is_spline  # it has rows among all samples only
    if kernel.warp is not None:
        a, b = kernel.warped(a), kernel.warped(b)
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
