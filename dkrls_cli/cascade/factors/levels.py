"""The factors of the levels of a cascade: spectra, and the factors of long levels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.factors.choice import LARGEST, is_long
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.factors.quasiseparable import LEAST_RIDGE
from dkrls_cli.cascade.kernels import gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.spectrum import Spectrum, decompose
from dkrls_cli.errors import SettingError

AnyFactor = Spectrum | LongFactor
"""The directions of a Gram matrix, or the factor of a long level."""


def make_factors(
    axes: Sequence[Array],
    levels: Sequence[Level],
    joint_ridge: float | None,
    known: Sequence[AnyFactor | None],
) -> list[AnyFactor]:
    """Return the factors of all levels, with a ridge each or under a joint ridge."""
    if joint_ridge is not None:
        return make_joint_factors(axes, levels, joint_ridge, known)
    return [make_factor(*each) for each in zip(axes, levels, known, strict=True)]


def make_factor(axis: Array, level: Level, known: AnyFactor | None = None) -> AnyFactor:
    """Return the factor of a level with its own ridge.

    A spectrum that is `known` is not computed again. A known factor of a long level may lack the
    last coordinates: it is extended by them.
    """
    if isinstance(known, Spectrum) and len(known.vectors) == axis.size:
        return known.solvable(level.ridge)
    long = known if isinstance(known, LongFactor) else None
    found = None
    if long is not None or is_long(level.kernel, axis):
        found = _long_factor(axis, level, level.ridge, long)
    return found or decompose(gram(level.kernel, axis, axis)).solvable(level.ridge)


def _long_factor(
    axis: Array, level: Level, ridge: float, known: LongFactor | None = None
) -> LongFactor | None:
    """Return the factor of a long level; None if it needs a larger ridge, and a spectrum does not.

    `known` is that of the first coordinates.

    Raises
    ------
    SettingError
        If the level is too long for a spectrum.
    """
    if known is None:
        factor = LongFactor.build(level.kernel, axis, ridge)
    else:
        more = axis[known.coordinates.size :]
        factor = known.extend(more) if more.size else known
    if factor.ridge <= max(ridge, LEAST_RIDGE):
        return factor
    if axis.size <= LARGEST:
        return None
    raise SettingError(
        f"A {level.kernel.family} kernel on the {axis.size} coordinates of level '{level.name}' "
        f"cannot be solved with a ridge of {ridge:.2g}. Give a ridge of {factor.ridge:.2g} or "
        "more, or choose matern52.",
        setting="ridge",
    )


def express(factor: AnyFactor) -> AnyFactor:
    """Return a factor with the directions only that its kernel can express; a long one has all."""
    return factor.expressible() if isinstance(factor, Spectrum) else factor


def make_joint_factors(
    axes: Sequence[Array],
    levels: Sequence[Level],
    ridge: float,
    known: Sequence[AnyFactor | None],
) -> list[AnyFactor]:
    """Return the factors of all levels under a joint ridge: at most one is that of a long level.

    A spectrum holds the directions that the level's share of the ridge can solve for.
    """
    long = long_axis(axes, levels)
    short = {
        place: factor if isinstance(factor, Spectrum) else decompose(gram(level.kernel, axis, axis))
        for place, (axis, level, factor) in enumerate(zip(axes, levels, known, strict=True))
        if place != long
    }
    factors: list[AnyFactor] = list(short.values())
    if long is not None:
        largest = math.prod(float(spectrum.values[0]) for spectrum in short.values())
        axis, level = axes[long], levels[long]
        found = _long_factor(axis, level, ridge / largest)
        factors.insert(long, found or decompose(gram(level.kernel, axis, axis)))
    return [
        factor if isinstance(factor, LongFactor) else factor.solvable(share)
        for factor, share in zip(factors, ridge_shares(factors, ridge), strict=True)
    ]


def ridge_shares(factors: Sequence[AnyFactor], ridge: float) -> list[float]:
    """Return the share of a joint ridge that every level has beside the largest of all others."""
    sizes = [largest_value(factor) for factor in factors]
    return [ridge * size / math.prod(sizes) for size in sizes]


def long_axis(axes: Sequence[Array], levels: Sequence[Level]) -> int | None:
    """Return the axis that is solved for as a long level under a joint ridge; None if none is.

    Raises
    ------
    SettingError
        If another level is too long for a spectrum.
    """
    long = [
        p for p, (a, level) in enumerate(zip(axes, levels, strict=True)) if is_long(level.kernel, a)
    ]
    if not long:
        return None
    longest = max(long, key=lambda place: axes[place].size)
    for place in long:
        if place != longest and axes[place].size > LARGEST:
            raise SettingError(
                f"Levels '{levels[longest].name}' and '{levels[place].name}' both have more than "
                f"{LARGEST} coordinates. A joint ridge takes one such level: give a ridge per "
                "level, or less of the grid.",
                setting="noise",
            )
    return longest


def largest_value(factor: AnyFactor) -> float:
    """Return the largest eigenvalue of a Gram matrix; of a long one, an estimate."""
    if isinstance(factor, Spectrum):
        return float(factor.values[0])
    ones = np.ones((factor.coordinates.size, 1))
    return float(np.mean(factor.answer(factor.coordinates, ones)))
