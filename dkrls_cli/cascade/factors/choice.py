"""Which form the factor of a level has: decided by what each would cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.factors import quasiseparable
from dkrls_cli.cascade.factors.factor import Cost, Factor
from dkrls_cli.cascade.factors.markov import is_markov
from dkrls_cli.cascade.factors.quasiseparable import Quasiseparable
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.circle import spacing, wrap
from dkrls_cli.errors import SettingError

LONG = 1024
"""Coordinates above which a level is long: its factor has a form that costs O(m), if there is one.

Up to there a dense matrix takes 8 MB at most, and its eigenvectors less than a second.
"""

LARGEST = 8192
"""Coordinates of a level up to which a dense matrix is made where no other form serves: 512 MB."""

LARGEST_FACTOR = 2**31
"""Bytes that the factor of one level may take: 2 GB."""

Build = Callable[[Kernel, Array, float], Factor]


def is_long(kernel: Kernel, coordinates: Array) -> bool:
    """Return whether a level has the factor of a long level, and not a dense one.

    A dense one takes some 10 m^3 operations, 1e10 for the smallest of these sizes, and is made
    where no other form is cheaper. A spline has no other.

    Raises
    ------
    SettingError
        If a spline is too long.
    """
    size = coordinates.size
    if kernel.is_spline and size > LARGEST:
        raise SettingError(
            f"A {kernel.family} spline through {size} coordinates is too large: it takes "
            f"{LARGEST} at most. Choose a Matern kernel.",
            setting="kernel",
        )
    if kernel.is_spline:
        return False
    if size <= LONG or size > LARGEST:
        return size > LONG
    found = estimate(kernel, coordinates)
    return found is not None and found.operations < max(1e10, 10.0 * size**3)


def estimate(kernel: Kernel, coordinates: Array) -> Cost | None:
    """Return what the cheapest factor of a long level costs; None if none fits into memory."""
    found = _cheapest(kernel, _rising(kernel, coordinates))
    return None if found is None else found[0]


def build_base(kernel: Kernel, coordinates: Array, ridge: float, *, rough: bool = False) -> Factor:
    """Return the cheapest factor of a kernel without trend on rising coordinates.

    A `rough` one is good enough for a score, where that saves time.

    Raises
    ------
    SettingError
        If none fits into memory.
    """
    found = _cheapest(kernel, coordinates)
    if found is None:
        circle = "" if kernel.period is None else " of a circle"
        raise SettingError(
            f"A {kernel.family} kernel of sigma {kernel.sigma:g} on {coordinates.size} coordinates"
            f"{circle} would take more than {LARGEST_FACTOR >> 30} GB. Choose a Matern kernel on a "
            f"line, or another sigma: some {10 * spacing(coordinates):.2g} is short enough.",
            setting="kernel",
        )
    if is_markov(kernel):
        return Quasiseparable.build(kernel, coordinates, ridge, rough=rough)
    return found[1](kernel, coordinates, ridge)


def least_ridge(kernel: Kernel, coordinates: Array) -> float:
    """Return the ridge below which the factor of a long level may be that of a larger ridge."""
    if is_markov(kernel):
        return quasiseparable.LEAST_RIDGE
    found = _cheapest(kernel, _rising(kernel, coordinates))
    return 0.0 if found is None else found[2]


def _rising(kernel: Kernel, coordinates: Array) -> Array:
    """Return the coordinates that distances are measured in, in rising order."""
    return np.sort(wrap(kernel.warped(coordinates), kernel.period))


def _cheapest(kernel: Kernel, coordinates: Array) -> tuple[Cost, Build, float] | None:
    """Return cost, maker and least ridge of the cheapest form that fits into memory, or None."""
    plain = replace(kernel, constant=0.0, cycle=None, warp=None)
    known = [(cost(plain, coordinates), build, least) for cost, build, least in _forms(plain)]
    fitting = [(c, b, r) for c, b, r in known if c is not None and c.memory <= LARGEST_FACTOR]
    return min(fitting, key=lambda form: form[0].operations, default=None)


def _forms(kernel: Kernel) -> list[tuple[Callable[[Kernel, Array], Cost | None], Build, float]]:
    """Return the forms that a kernel can have: what they cost, what makes them, least ridges.

    Where few states suffice, no other form is cheaper.
    """
    if is_markov(kernel):
        return [(quasiseparable.cost, Quasiseparable.build, quasiseparable.LEAST_RIDGE)]
    from dkrls_cli.cascade.factors import banded, circulant, lowrank

    return [
        (circulant.cost, circulant.Circulant.build, 0.0),
        (banded.cost, banded.Banded.build, banded.LEAST_EIGENVALUE),
        (lowrank.cost, lowrank.LowRank.build, 0.0),
    ]
