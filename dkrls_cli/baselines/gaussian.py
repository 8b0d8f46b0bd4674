"""The Gaussian kernel of several features, and sums of it over many centres.

k(z, z') = exp(-|z - z'|^2 / (2 sigma^2)) (the paper's section 3). Centres come one per column
(D, m): each feature of them is contiguous. Distances are summed from differences, so that equal
points have distance 0 exactly.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dkrls_cli.arrays import Array

Rows = Callable[[Array, Array], Array]
"""A kernel: points (n, D) and centres (D, m) to (n, m)."""

_CELLS = 2**17  # of a kernel matrix at a time: a megabyte, which stays in the cache


def squared_distances(points: Array, centres: Array) -> Array:
    """|z - z'|^2 between points (n, D) and centres (D, m), as (n, m)."""
    total = np.subtract.outer(points[:, 0], centres[0])
    total *= total
    for feature in range(1, len(centres)):
        part = np.subtract.outer(points[:, feature], centres[feature])
        part *= part
        total += part
    return np.asarray(total)


def decayed(distances: Array, sigma: float) -> Array:
    """The kernel of squared distances, in their place."""
    distances *= -0.5 / sigma**2
    return np.exp(distances, out=distances)


def gaussian(sigma: float) -> Rows:
    """The kernel of one length scale for all features."""

    def rows(points: Array, centres: Array) -> Array:
        return decayed(squared_distances(points, centres), sigma)

    return rows


def expansion(rows: Rows, points: Array, centres: Array, weights: Array) -> Array:
    """sum_j w_j k(c_j, z) at points (n, D), as (n,), a block of points and centres at a time."""
    answers = np.zeros(len(points))
    high = min(len(points), 128)
    wide = max(_CELLS // max(high, 1), 1)
    for top in range(0, len(points), high):
        here = slice(top, top + high)
        for left in range(0, weights.size, wide):
            there = slice(left, left + wide)
            answers[here] += rows(points[here], centres[:, there]) @ weights[there]
    return answers
