"""Splines that change along their level: linear beside an edge, quintic where the data is smooth.

All splines pass through the samples, so any weighted mean of them does, even if the weights change
along the level. From one piece to the next the weight goes over smoothly, as t^2 (3 - 2 t), so the
mean has a continuous slope where the splines have one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.splines.cardinal import left_out_rows, spline_rows


class Piece(NamedTuple):
    """A spline that takes over from the one before it.

    Attributes
    ----------
    family
        Name of the spline.
    low, high
        Coordinates between which it takes over.
    """

    family: str
    low: float
    high: float


def are_ordered(pieces: Sequence[Piece]) -> bool:
    """Return whether every piece takes over on a finite interval behind that of the one before."""
    ends = [end for piece in pieces for end in (piece.low, piece.high)]
    rising = all(a <= b for a, b in pairwise(ends))
    return rising and all(math.isfinite(p.high - p.low) and p.low < p.high for p in pieces)


def piece_weights(
    first: str, pieces: Sequence[Piece], places: Array, derivative: int = 0
) -> dict[str, Array]:
    """Return the weight of every spline at some places, or a derivative of it.

    >>> pieces = [Piece("cubic", 1.0, 2.0)]
    >>> piece_weights("linear", pieces, np.array([0.0, 1.5, 3.0]))["cubic"].tolist()
    [0.0, 0.5, 1.0]
    """
    all_of_it = np.full(places.shape, 1.0 if derivative == 0 else 0.0)
    shares = [all_of_it, *(_step(piece, places, derivative) for piece in pieces)]
    shares.append(np.zeros(places.shape))
    result: dict[str, Array] = {}
    for name, own, following in zip(
        [first, *(piece.family for piece in pieces)], shares[:-1], shares[1:], strict=True
    ):
        result[name] = result.get(name, 0.0) + (own - following)
    return result


def _step(piece: Piece, places: Array, derivative: int) -> Array:
    """Return a step from 0 to 1 over the interval of a piece, or its first or second derivative."""
    width = piece.high - piece.low
    t = np.clip((places - piece.low) / width, 0.0, 1.0)
    if derivative == 0:
        return np.asarray(t * t * (3.0 - 2.0 * t))
    if derivative == 1:
        return np.asarray(6.0 * t * (1.0 - t) / width)
    return np.where((t > 0) & (t < 1), (6.0 - 12.0 * t) / width**2, 0.0)


def piecewise_rows(
    first: str, pieces: Sequence[Piece], nodes: Array, query: Array, derivative: int = 0
) -> Array:
    """Return the rows that answer at queries from samples at nodes in any order (q, m).

    Without pieces they are those of the first spline. The derivative is of order 2 at most.
    """
    if not pieces:
        return spline_rows(first, nodes, query, derivative)
    result = np.zeros((query.size, nodes.size))
    for order in range(derivative + 1):  # the derivative of a product
        times = math.comb(derivative, order)
        for name, weight in piece_weights(first, pieces, query, order).items():
            here = np.flatnonzero(weight)
            rows = spline_rows(name, nodes, query[here], derivative - order)
            result[here] += times * weight[here, None] * rows
    return result


def piecewise_left_out(
    first: str,
    pieces: Sequence[Piece],
    nodes: Array,
    blocks: Sequence[Indices] | None = None,
    *,
    ends: bool = True,
) -> Array:
    """Return the rows that predict every sample from all others (m, m), on rising nodes.

    The arguments are those of :func:`dkrls_cli.cascade.splines.cardinal.left_out_rows`.
    """
    if not pieces:
        return left_out_rows(first, nodes, blocks, ends=ends)
    result = np.zeros((nodes.size, nodes.size))
    for name, weight in piece_weights(first, pieces, nodes).items():
        result += weight[:, None] * left_out_rows(name, nodes, blocks, ends=ends)
    return result
