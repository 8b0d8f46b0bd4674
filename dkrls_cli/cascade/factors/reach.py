"""Kernels that end: how far one reaches, and its products without what lies beyond."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.functionals.derivatives import derivative_gram
from dkrls_cli.cascade.kernels import FAMILIES, Kernel
from dkrls_cli.circle import wrap

# A kernel below this is zero: a tenth of the rounding error of its largest value, 1.
NEGLIGIBLE = 1e-17

# Length scales within which every family has fallen to NEGLIGIBLE (matern12 is last, at 39.1).
_FARTHEST = 64.0

# Numbers in a block of kernel rows: 32 MB, large enough for BLAS.
BLOCK = 2**22

# Fewest coordinates that products take at a time, so that Python's loop costs little beside BLAS.
LEAST_BLOCK = 64


def reach(kernel: Kernel) -> float:
    """Return the distance beyond which the kernel is zero to round-off.

    Infinite if it is nowhere zero, on a circle too small for it.

    Examples
    --------
    >>> round(reach(Kernel("gaussian", sigma=2.0)), 1)
    17.7
    """
    assert kernel.constant == 0
    assert kernel.cycle is None
    chord = _length_scales(kernel.family) * kernel.sigma
    if kernel.period is None:
        return chord
    sine = math.pi * chord / kernel.period
    return kernel.period / math.pi * math.asin(sine) if sine < 1 else math.inf


def windows(kernel: Kernel, query: Array, nodes: Array) -> tuple[Indices, Indices]:
    """Return the first node within reach of every query and the one after the last (q,), (q,).

    Nodes rise; on a circle nodes and queries are wrapped, and windows past an end of the circle
    count on: node -1 is the last, node m the first.
    """
    far = reach(kernel)
    if kernel.period is None:
        return np.searchsorted(nodes, query - far), np.searchsorted(nodes, query + far, "right")
    if far == math.inf:
        return np.zeros(query.size, np.intp), np.full(query.size, nodes.size)
    turns = np.concatenate([nodes - kernel.period, nodes, nodes + kernel.period])
    low, high = np.searchsorted(turns, query - far), np.searchsorted(turns, query + far, "right")
    return low - nodes.size, high - nodes.size


def product(
    kernel: Kernel, query: Array, coordinates: Array, weights: Array, order: int = 0
) -> Array:
    """Return k(query, coordinates) @ weights, (q,), (m,), (m, n) -> (q, n), in bounded blocks.

    With an `order` it is the derivative of the kernel by the query. Queries are taken by
    place, each with the coordinates within its reach only.
    """
    here, there = wrap(query, kernel.period), wrap(coordinates, kernel.period)
    by_query, by_node = np.argsort(here, kind="stable"), np.argsort(there, kind="stable")
    here, there = here[by_query], there[by_node]
    low, high = windows(kernel, here, there)
    width = max(LEAST_BLOCK, int(np.max(high - low, initial=0)))
    answers = np.empty((query.size, weights.shape[1]))
    for rows in runs(low // width, max(1, BLOCK // (3 * width))):
        first, end = low[rows.start], high[rows.stop - 1]
        near = np.arange(first, min(end, first + there.size)) % there.size
        nodes = there[near]
        block = derivative_gram(kernel, here[rows], nodes, order) if near.size else np.empty((1, 0))
        answers[by_query[rows]] = block @ weights[by_node[near]]
    return answers


def runs(groups: Indices, longest: int) -> Iterator[slice]:
    """Yield slices over numbers that rise, each over equal ones and at most `longest` of them."""
    starts = np.flatnonzero(np.diff(groups, prepend=groups[:1] - 1))
    for start, end in zip(starts, np.append(starts, groups.size)[1:], strict=True):
        for first in range(start, end, longest):
            yield slice(first, min(first + longest, end))


def _length_scales(family: str) -> float:
    """Return the distance, in length scales, at which a kernel falls to NEGLIGIBLE."""
    low, high = 0.0, _FARTHEST
    while high - low > 1e-9:  # bisection
        middle = 0.5 * (low + high)
        if FAMILIES[family](np.array([middle]))[0] > NEGLIGIBLE:
            low = middle
        else:
            high = middle
    return high
