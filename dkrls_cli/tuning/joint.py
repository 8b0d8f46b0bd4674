"""Choose one ridge for a whole grid, and sigmas to go with it, by generalised cross-validation.

With p the products of the levels' eigenvalues and z the data in their eigenbases, the score

    mean((lambda z / (p + lambda))^2) / mean(lambda / (p + lambda))^2

is the mean square error of leaving cells out, but for the variation of leverage between cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from dkrls_cli.arrays import Array, Tensor
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.spectrum import Spectrum, decompose
from dkrls_cli.cascade.tensors import along, apply

_RIDGES = np.geomspace(1e-14, 1e3, 171)
"""Ridges that are tried, ten to each power of ten."""

_MOVING_CELLS = 2**21
"""Cells up to which sigmas are changed: beyond, every step would cost as much as a fit."""

_FACTOR, _MOVES = 1.4, 4
"""Factor of one step of sigma, and the most steps in one direction."""

_BINS, _SMALLEST = 400, math.log(1e-20)
"""Bins of log p, and the lower edge of the first, which holds all that is smaller."""

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class JointSetting:
    """The kernels of all levels and their joint ridge."""

    kernels: tuple[Kernel, ...]
    ridge: float


@dataclass(frozen=True, eq=False)
class JointChoice:
    """The setting chosen for a grid, and the full spectra of its kernels on the coordinates."""

    setting: JointSetting
    spectra: tuple[Spectrum, ...]


def choose_joint(
    values: Tensor,
    coordinates: Sequence[Array],
    kernels: Sequence[Kernel],
    *,
    open_sigmas: Sequence[bool],
    ridge: float | None = None,
    spectra: Sequence[Spectrum | None] | None = None,
) -> JointChoice:
    """Choose the joint ridge of a complete grid, and the sigmas that are open.

    Open sigmas move by factors of 1.4 as long as the score falls. On a grid of more than two
    million cells they stay.

    Parameters
    ----------
    values
        The data less its mean, one axis per level.
    coordinates, kernels
        One per axis.
    open_sigmas
        Whether the sigma of each kernel may change.
    ridge
        The joint ridge if it is given; None: to be chosen.
    spectra
        The full spectrum of each kernel on its coordinates, None where it is not known.
    """
    ridges = _RIDGES if ridge is None else np.array([ridge])
    chosen = list(kernels)
    known = spectra or [None] * len(chosen)
    found = [
        spectrum or decompose(gram(kernel, c, c))
        for spectrum, kernel, c in zip(known, chosen, coordinates, strict=True)
    ]
    least, taken = _least_score(apply(values, [s.vectors.T for s in found]), found, ridges)
    moving = [axis for axis, may in enumerate(open_sigmas) if may and values.size <= _MOVING_CELLS]
    for axis in moving:
        others = [None if a == axis else s.vectors.T for a, s in enumerate(found)]
        projected = apply(values, others)
        start = chosen[axis]
        for factor in (_FACTOR, 1 / _FACTOR):
            for _ in range(_MOVES):
                kernel = replace(chosen[axis], sigma=chosen[axis].sigma * factor)
                own = decompose(gram(kernel, coordinates[axis], coordinates[axis]))
                trial = [own if a == axis else s for a, s in enumerate(found)]
                score, at = _least_score(along(projected, axis, own.vectors.T), trial, ridges)
                if score >= least:
                    break
                least, taken, chosen[axis], found = score, at, kernel, trial
            if chosen[axis] is not start:  # a step back leads where the score was larger
                break
    return JointChoice(JointSetting(tuple(chosen), taken), tuple(found))


def _least_score(data: Array, spectra: Sequence[Spectrum], ridges: Array) -> tuple[float, float]:
    """Return the least score of data in the eigenbases, and the ridge that has it.

    Directions are counted in bins of log p: the score is then a sum over bins, not cells.
    """
    logs = reduce(np.add.outer, [np.log(np.maximum(s.values, _TINY)) for s in spectra])
    edges = np.linspace(_SMALLEST, float(logs.max()), _BINS + 1)
    bins = ((logs.ravel() - edges[0]) * (_BINS / (edges[-1] - edges[0]))).astype(np.intp)
    bins = np.clip(bins, 0, _BINS - 1, out=bins)
    counts = np.bincount(bins, minlength=_BINS)
    sums = np.bincount(bins, (data * data).ravel(), minlength=_BINS)
    middles = np.exp((edges[:-1] + edges[1:]) / 2)
    filters = ridges[:, None] / (middles + ridges[:, None])
    scores = (filters**2 @ sums) / (filters @ counts) ** 2
    best = int(np.argmin(scores))
    return float(scores[best]), float(ridges[best])
