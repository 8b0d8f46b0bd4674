"""Variance of a missing cell given the nearest observed cells along every axis.

Under a product of kernels it has a closed form: with v_l the variance given the neighbours along
axis l alone, as a share of the prior variance, the variance given all neighbours is

    1 / (1 + sum_l (1 / v_l - 1))

of the prior variance. It grows with the distance to data in every direction, and less where one
direction helps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask, Slices
from dkrls_cli.cascade.kernels import Kernel, pairs
from dkrls_cli.circle import wrap

# Smallest variance of a missing cell and smallest determinant, as shares: keeps divisions finite.
_LEAST = 1e-12

# Cells worked on at once: they stay in the cache.
_AT_ONCE = 2**16


def distance(
    coordinates: Sequence[Array], kernels: Sequence[Kernel], observed: Mask, ridge: float
) -> Array:
    """Return the variance of every missing cell given its neighbours; 0 where observed."""
    precision = np.zeros(observed.shape)
    prior = math.prod(kernel.variance for kernel in kernels)
    for axis, (kernel, nodes) in enumerate(zip(kernels, coordinates, strict=True)):
        order = np.argsort(wrap(nodes, kernel.period))
        similar = partial(_similarity, kernel, nodes[order])
        for part in _beside(observed.shape, axis):
            seen = np.moveaxis(observed[part], axis, 0)[order]
            gaps = np.nonzero(~seen)
            before, after = (n[gaps] for n in _neighbours(seen, circle=kernel.period is not None))
            found = _precision(similar, gaps[0], before, after, ridge / prior)
            np.moveaxis(precision[part], axis, 0)[(order[gaps[0]], *gaps[1:])] += found
    precision += 1.0
    result = np.divide(prior, precision, out=precision)
    np.maximum(result, _LEAST * prior, out=result)
    result[observed] = 0.0
    return result


def _similarity(kernel: Kernel, nodes: Array, one: Indices, other: Indices) -> Array:
    """Return the kernel between nodes, as a share of its variance; 0 for a node that there is not.

    An index equal to the number of nodes means that there is none.
    """
    result = np.zeros(one.shape)
    both = np.flatnonzero((one < nodes.size) & (other < nodes.size))
    result[both] = pairs(kernel, nodes[one[both]], nodes[other[both]]) / kernel.variance
    return result


def _beside(shape: Sequence[int], axis: int) -> Iterator[Slices]:
    """Yield parts of a grid that are whole along one axis and small enough for the cache."""
    whole = [slice(None)] * len(shape)
    others = [other for other in range(len(shape)) if other != axis]
    if not others:
        yield tuple(whole)
        return
    cut = max(others, key=lambda other: shape[other])
    step = max(1, _AT_ONCE * shape[cut] // math.prod(shape))
    for start in range(0, shape[cut], step):
        yield (*whole[:cut], slice(start, start + step), *whole[cut + 1 :])


def _precision(
    similar: Callable[[Indices, Indices], Array],
    here: Indices,
    before: Indices,
    after: Indices,
    ridge: float,
) -> Array:
    """Return the precision that two neighbours along an axis add to a cell.

    That is k' D^-1 k, with D the covariance of the neighbours given the cell. `similar` returns the
    similarity of pairs of places along the axis, 0 where there is no neighbour on that side.
    """
    one, other, both = similar(here, before), similar(here, after), similar(before, after)
    lone = before == after
    other[lone] = both[lone] = 0.0
    left, right, shared = 1.0 + ridge - one**2, 1.0 + ridge - other**2, both - one * other
    spread = np.maximum(left * right - shared**2, _LEAST * (ridge + _LEAST))
    found = (one**2 * right - 2 * one * other * shared + other**2 * left) / spread
    return np.asarray(np.maximum(found, 0.0))


def _neighbours(observed: Mask, *, circle: bool) -> tuple[Indices, Indices]:
    """Return indices along the first axis of the nearest observed cells before and after.

    Where there is none the index is the size of the axis.
    """
    size = len(observed)
    turns = np.concatenate([observed] * 3) if circle else observed
    places = np.arange(len(turns)).reshape(-1, *[1] * (observed.ndim - 1))
    before = np.maximum.accumulate(np.where(turns, places, -1), axis=0)
    after = np.minimum.accumulate(np.where(turns, places, len(turns))[::-1], axis=0)[::-1]
    if circle:  # a turn before and a turn after
        before, after = before[size : 2 * size], after[size : 2 * size]
        never = ~observed.any(axis=0)
        return np.where(never, size, before % size), np.where(never, size, after % size)
    return np.where(before < 0, size, before), after
