"""The Gaussian kernel of several features, and weighted sums of it over many centres.

k(z, z') = exp(-|z - z'|^2 / (2 sigma^2)) (the paper's section 3). Centres are columns (D, m), so
that the values of one feature are contiguous. Distances are sums of squared differences, so that
equal points have distance exactly 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dkrls_cli.arrays import Array

KernelFunction = Callable[[Array, Array], Array]
"""A kernel: maps points (n, D) and centres (D, m) to a matrix (n, m)."""

# Cells of a kernel matrix computed at a time: one megabyte, which stays in the cache.
BLOCK_CELLS = 2**17

# Points of such a block at most; the rest of its cells are centres.
BLOCK_POINTS = 128


def squared_distances(points: Array, centres: Array) -> Array:
    """Return |z - z'|^2 between points (n, D) and centres (D, m), as (n, m)."""
    total = np.subtract.outer(points[:, 0], centres[0])
    total *= total
    for feature in range(1, len(centres)):
        part = np.subtract.outer(points[:, feature], centres[feature])
        part *= part
        total += part
    return np.asarray(total)


def apply_gaussian(distances: Array, sigma: float) -> Array:
    """Replace squared distances by the kernel, in place, and return them."""
    distances *= -0.5 / sigma**2
    return np.exp(distances, out=distances)


def gaussian(sigma: float) -> KernelFunction:
    """Return the kernel with one length scale for all features."""

    def kernel(points: Array, centres: Array) -> Array:
        return apply_gaussian(squared_distances(points, centres), sigma)

    return kernel


def expand(kernel: KernelFunction, points: Array, centres: Array, weights: Array) -> Array:
    """Return sum_j w_j k(c_j, z) at points (n, D), as (n,).

    The kernel matrix is computed in blocks of about `BLOCK_CELLS` cells and never held whole.
    """
    answers = np.zeros(len(points))
    high = min(len(points), BLOCK_POINTS)
    wide = max(BLOCK_CELLS // max(high, 1), 1)
    for top in range(0, len(points), high):
        here = slice(top, top + high)
        for left in range(0, weights.size, wide):
            there = slice(left, left + wide)
            answers[here] += kernel(points[here], centres[:, there]) @ weights[there]
    return answers
