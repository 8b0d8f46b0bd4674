"""One ridge for a whole grid, and sigmas that go with it, by generalised cross-validation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from dkrls_cli.arrays import Array, Tensor
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.spectrum import Spectrum, decompose
from dkrls_cli.cascade.tensors import along, apply

_MOVING_CELLS, _MOVES = 2**21, 4
_BINS, _SMALLEST = 400, math.log(1e-20)
_TINY = float(np.finfo(np.float64).tiny)


def choose_joint(
    values: Tensor,
    coordinates: Sequence[Array],
    kernels: Sequence[Kernel],
    *,
    open_sigmas: Sequence[bool],
    ridge: float | None = None,
) -> tuple[tuple[Kernel, ...], float]:
    """Kernels and the one ridge of a whole grid by generalised cross-validation.

    With p the products of the levels' eigenvalues and z the data in their eigenbases, it makes
    mean((lambda z / (p + lambda))^2) / mean(lambda / (p + lambda))^2 least. Sigmas that are open
    move by factors of 1.4 as long as that helps; on a grid of more than two million cells, where
    every step would cost as much as a fit, they stay.
    """
    ridges = np.geomspace(1e-14, 1e3, 171) if ridge is None else np.array([ridge])
    chosen = list(kernels)
    spectra = [decompose(gram(k, c, c)) for k, c in zip(chosen, coordinates, strict=True)]
    least, taken = _gcv(apply(values, [s.vectors.T for s in spectra]), spectra, ridges)
    moving = [axis for axis, may in enumerate(open_sigmas) if may and values.size <= _MOVING_CELLS]
    for axis in moving:
        others = [None if a == axis else s.vectors.T for a, s in enumerate(spectra)]
        projected = apply(values, others)
        for factor in (1.4, 1 / 1.4):
            for _ in range(_MOVES):
                kernel = replace(chosen[axis], sigma=chosen[axis].sigma * factor)
                own = decompose(gram(kernel, coordinates[axis], coordinates[axis]))
                trial = [own if a == axis else s for a, s in enumerate(spectra)]
                score, at = _gcv(along(projected, axis, own.vectors.T), trial, ridges)
                if score >= least:
                    break
                least, taken, chosen[axis], spectra = score, at, kernel, trial
    return tuple(chosen), taken


def _gcv(data: Array, spectra: Sequence[Spectrum], ridges: Array) -> tuple[float, float]:
    """The least score of data in the eigenbases, and its ridge.

    Directions count by bins of the logarithm of their eigenvalue.
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
