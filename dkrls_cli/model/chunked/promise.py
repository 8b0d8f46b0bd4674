"""Tolerances of compact models beyond memory: how far their answers are from those of the data.

A compact model leaves out what its kernels cannot express. Between coordinates that makes no
difference to a full model; at coordinates of the data, which are passed through, it is the *rest*
of the data. A second pass measures its largest value. Where an answer passes through some levels
and lies between the coordinates of others, the rest enters through rows of these, and is at most
the largest sum of such a row times as large. What is left of the tolerance is what a smaller core
may differ by.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.kernels import gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.storage.comparison import half_way
from dkrls_cli.cascade.tensors import apply
from dkrls_cli.errors import InputError
from dkrls_cli.grid.axes import Axis
from dkrls_cli.model.answering.tolerance import Tolerance, shrink
from dkrls_cli.model.chunked.reduction import Read, Reduction, Slab

_ROWS = 64
"""Places half-way between coordinates at which rows of a level are looked at."""


def measure_rest(read: Read, reduction: Reduction, core: Array, slab: Slab) -> float:
    """Read a slab again and return its largest difference from what a core holds of it."""
    largest = 0.0
    for piece in slab:
        indices = [own[part] for own, part in zip(reduction.columns, piece, strict=True)]
        rows = [
            np.arange(part.start, part.stop) if matrix is None else matrix[part]
            for matrix, part in zip(reduction.matrices, piece, strict=True)
        ]
        held = apply(core, rows)
        held -= read(indices)
        largest = max(largest, float(held.max()), -float(held.min()))
    return largest


def largest_gain(levels: Sequence[Level], coordinates: Sequence[Array]) -> float:
    """Return how many times as large a difference of the data may be in an answer between."""
    gain = 1.0
    for level, numbers in zip(levels, coordinates, strict=True):
        if numbers.size > 1:
            places = half_way(numbers, level.kernel.period)
            some = places[np.unique(np.linspace(0, places.size - 1, _ROWS).astype(np.intp))]
            gain *= max(1.0, float(np.abs(_rows(level, numbers, some)).sum(axis=1).max()))
    return gain


def _rows(level: Level, numbers: Array, places: Array) -> Array:
    """Return the rows (places, m) with which a level answers from its data."""
    alone = Cascade((level,), (numbers,), (None,), (None,), np.zeros(numbers.size))
    factor = alone.factor(0)
    if isinstance(factor, LongFactor):
        return factor.solve(gram(level.kernel, numbers, places)).T
    rows = alone.answer_rows(0, places, smooth=True)
    assert isinstance(rows, np.ndarray)
    return np.asarray(rows, np.float64)


def keep_promise(
    cascade: Cascade,
    axes: Sequence[Axis],
    spread: float,
    tolerance: Tolerance,
    rests: Iterable[float],
) -> tuple[Cascade, dict[str, Any]]:
    """Return the smallest cascade within a tolerance of the data, and what is known of its answers.

    Parameters
    ----------
    cascade
        The compact one.
    axes
        Its axes.
    spread
        Standard deviation of the data.
    tolerance
        How far answers may differ from those of a model that holds all of the data.
    rests
        Largest differences of the data from the cascade, by parts.

    Raises
    ------
    InputError
        If the data has more that the kernels cannot express.
    """
    limit = tolerance.in_units(np.array([-spread, spread]))
    rest = max(rests) * largest_gain(cascade.levels, cascade.coordinates)
    if rest >= limit > 0:
        raise InputError(
            f"A tolerance of {tolerance} is {limit:.3g} in units of the data, and up to {rest:.3g} "
            "of the data is noise to the kernels, which a model made part by part does not keep. "
            "Give a larger tolerance or shorter sigmas, allow more memory, or keep the data where "
            "it is, with a model that refers to it.",
            setting="tolerance",
        )
    left = tolerance if limit == 0 else Tolerance(limit - rest, "")  # 0: data that is constant
    small, facts = shrink(cascade, axes, np.array([-spread, spread]), left)
    full = 8 * math.prod(cascade.shape)
    facts |= {"given": str(tolerance), "limit": limit, "full_bytes": full}
    return small, facts | {"max": facts["max"] + rest, "rms": math.hypot(facts["rms"], rest)}
