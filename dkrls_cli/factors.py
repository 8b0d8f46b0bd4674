"""The spectra of the levels of a cascade, as far as their ridges can solve for them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dkrls_cli.kernels import Array, gram
from dkrls_cli.levels import Level
from dkrls_cli.spectral import Spectrum, decompose, triangle, widened

_LONG, _LEAST_RIDGE = 2000, 1e-7
"""Coordinates of a long level, and what ridge (beside its kernel) it needs for Cholesky."""


def spectra_of(
    axes: Sequence[Array],
    levels: Sequence[Level],
    joint_ridge: float | None,
    known: Sequence[Spectrum | None],
) -> tuple[Spectrum, ...]:
    """The directions of every level that its ridge (its share of the joint one) can solve for."""
    if joint_ridge is None:
        return tuple(_solvable(*each) for each in zip(axes, levels, known, strict=True))
    whole = [
        factor or decompose(gram(level.kernel, axis, axis))
        for level, axis, factor in zip(levels, axes, known, strict=True)
    ]
    largest = math.prod(spectrum.values[0] for spectrum in whole)
    return tuple(
        factor or spectrum.solvable(joint_ridge * float(spectrum.values[0]) / largest)
        for factor, spectrum in zip(known, whole, strict=True)
    )


def _solvable(axis: Array, level: Level, known: Spectrum | None) -> Spectrum:
    """The spectrum of a level with its own ridge; a known one may lack the last coordinates."""
    size = 0 if known is None else len(known.vectors)
    if known is not None and size == axis.size:
        return known
    if known is not None and known.triangular:
        old, new = axis[:size], axis[size:]
        across, among = gram(level.kernel, old, new), gram(level.kernel, new, new)
        return widened(known, across, among, level.ridge)
    gramian = gram(level.kernel, axis, axis)
    if axis.size > _LONG and level.ridge > _LEAST_RIDGE * level.kernel.variance:
        return triangle(gramian, level.ridge)
    return decompose(gramian).solvable(level.ridge)
