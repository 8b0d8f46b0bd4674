"""Splines as candidates of a level: taken where they are clearly better than every kernel.

A table of a smooth function is known to ten digits and more, and there a kernel cannot follow: a
ridge of 1e-14, the least that float64 can solve with, leaves an error of some 1e-7. Where axes are
uneven by orders of magnitude no length scale suits all of an axis. A spline has neither.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.kernels import SPLINE_RIDGE, SPLINES, Kernel, gram
from dkrls_cli.cascade.splines.cardinal import DEGREES, is_solvable
from dkrls_cli.circle import spacing
from dkrls_cli.errors import InputError
from dkrls_cli.tuning.candidates import Candidate
from dkrls_cli.tuning.tables.leftout import Slices

_COVARIANCES = (
    ("matern12", 16.0),
    ("matern32", 16.0),
    ("matern52", 16.0),
    ("gaussian", 1.5),
    ("gaussian", 2.0),
    ("gaussian", 3.0),
)
"""Covariances of errors that are compared: family, and length scale in steps.

When every second sample is taken away, their variances grow by 2 to 400,000 times. Errors of
splines on smooth data grow by 2^4 (linear), 2^8 (cubic) and 2^12 (quintic)."""

_USUAL = "matern52", 16.0
"""Covariance of errors, family and length scale in steps, where a level cannot be thinned."""

_EVEN = 33
"""Samples of the even axis on which covariances are compared."""

_LEAST = 8
"""Samples from which a level can be thinned by two and still have inner slices."""


_FEWEST = 3
"""Samples from which splines are tried: of two, one is predicted by the other alone."""


def spline_candidates(slices: Slices, family: str | None = None) -> list[Candidate]:
    """Return the spline that is named, or all that a level is long and even enough for.

    One that is a polynomial through all samples is judged by those through all but one.
    """
    if family is not None:
        return [_candidate(slices, family)]
    if slices.coordinates.size < _FEWEST or not is_solvable(slices.coordinates):
        return []
    left_out = max(len(block) for block in slices.blocks) if slices.blocks else 0
    most = slices.coordinates.size - left_out - 1
    found = []
    for name in SPLINES:
        if DEGREES[name] <= most:
            with suppress(InputError):  # too uneven for this degree
                found.append(_candidate(slices, name))
    return found


def _candidate(slices: Slices, name: str) -> Candidate:
    """Return a spline with the usual covariance of its errors."""
    family, reach = _USUAL
    error = math.sqrt(float(np.mean(slices.spline_errors(name))))
    return Candidate(Kernel(name, reach * spacing(slices.coordinates), errors=family), 0.0, error)


def with_error_kernel(slices: Slices, spline: Candidate) -> Candidate:
    """Return a spline with the covariance of errors that suits the data best.

    That is the one whose errors on left-out slices grow as those of the spline do, when every
    second slice is taken away.
    """
    if slices.coordinates.size < _LEAST:
        return spline
    name, pieces, one_by_one = (
        spline.kernel.family,
        spline.kernel.pieces,
        replace(slices, blocks=None),
    )
    near = np.mean(one_by_one.spline_errors(name, pieces))
    thinned = [one_by_one.thinned(start) for start in (0, 1)]
    try:
        far = np.mean([np.mean(half.spline_errors(name, pieces)) for half in thinned])
    except InputError:  # too uneven without every second slice
        return spline
    family, reach = _growing_by(float(far / near)) if near > 0 else _USUAL
    sigma = reach * spacing(slices.coordinates)
    return replace(spline, kernel=replace(spline.kernel, sigma=sigma, errors=family))


def _growing_by(growth: float) -> tuple[str, float]:
    """Return the covariance, family and length scale in steps, with the nearest growth."""
    known = _growths()
    return min(known, key=lambda key: abs(math.log(max(growth, 1.0) / known[key])))


@lru_cache(maxsize=1)
def _growths() -> dict[tuple[str, float], float]:
    """Return the growth of the variance of left-out samples when an even axis is thinned by two."""
    steps = np.arange(float(_EVEN))
    return {
        (family, reach): _left_variance(Kernel(family, reach), steps[::2])
        / _left_variance(Kernel(family, reach), steps)
        for family, reach in _COVARIANCES
    }


def _left_variance(kernel: Kernel, nodes: Array) -> float:
    """Return the mean variance of inner samples that are left out one by one."""
    inverse = np.linalg.inv(gram(kernel, nodes, nodes) + SPLINE_RIDGE * np.eye(nodes.size))
    return float(np.mean(1.0 / inverse.diagonal()[1:-1]))
