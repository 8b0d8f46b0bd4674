"""Open parts of a mean over a range: samples that its gaps lack, or those between its samples.

A mean over a range passes through the data in the cells around its coordinates. Where the range has
gaps, two usual steps and wider, they are what is not known: cells of a usual step are taken for
known, each for its sample, and the gaps lack samples a usual step apart. Without gaps it is open
how well samples stand for their cells: as in truth with twice as many samples, of which every
second one is known.

The error of a long range is that of some parts of it, each judged by the samples around it. They
are taken for independent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.cascade.calibration.averaging import WeightedMean
from dkrls_cli.cascade.functionals.cells import Pieces, SourceCells
from dkrls_cli.cascade.functionals.functional import Means
from dkrls_cli.circle import spacing

# Part of a usual step that is a gap if no cell is there: beside one that is missing it is a whole.
_WIDE = 0.5

# Samples around a part by which it is judged, and of a part: matrices of 32 kB.
_AROUND, _TOGETHER = 64, 32

# Parts of a long range that are judged at most, spread evenly.
_PARTS = 16

# Places and weights of a mean over one cell: exact for cubics and quintics.
_PLACES, _WEIGHTS = np.polynomial.legendre.leggauss(3)


@dataclass(frozen=True, eq=False)
class OpenPart:
    """A part of a range, of which something is open.

    Attributes
    ----------
    asked
        Intervals that make it up (p,).
    weights
        Their shares in its mean, which sum to 1.
    share
        Its share in the range, times the root of how many parts it stands for.
    near
        Places of the samples around it (m,).
    mean
        Its mean by these samples and what they lack.
    """

    asked: Means
    weights: Array
    share: float
    near: Indices
    mean: WeightedMean


def open_parts(source: SourceCells, asked: Means, nodes: Array) -> list[OpenPart]:
    """Return the parts of one range of which something is open.

    Parameters
    ----------
    source
        Cells of the samples.
    asked
        The range.
    nodes
        Coordinates of the samples that have cells (m,).
    """
    pieces = source.cut(asked)
    gaps = find_gaps(pieces, nodes)
    low, high, known = (
        _lacking(pieces, gaps, nodes) if gaps.any() else _refined(asked, source, nodes)
    )
    areas, whole = source.area(low, high), float(pieces.source.area(asked.low, asked.high)[0])
    parts = np.array_split(np.arange(low.size), math.ceil(low.size / _TOGETHER))
    some = np.unique(np.linspace(0, len(parts) - 1, _PARTS).astype(np.intp)).tolist()
    stands_for = math.sqrt(len(parts) / len(some))
    found = []
    for part in (parts[place] for place in some):
        weights = areas[part] / areas[part].sum()
        near = _around(nodes, 0.5 * (low[part[0]] + high[part[-1]]), source.period)
        mean = _mean_of(low[part], high[part], known[part], weights, near)
        share = stands_for * float(areas[part].sum()) / whole
        cut = Means(low[part], high[part], asked.latitude)
        found.append(OpenPart(cut, weights, share, near, mean))
    return found


def find_gaps(pieces: Pieces, nodes: Array) -> Mask:
    """Return which pieces of a range are gaps (p,): no cell is there for half a usual step.

    If one piece is, all that no cell has are.
    """
    beside = pieces.cell < 0
    wide = pieces.high - pieces.low >= _WIDE * spacing(nodes)
    return np.asarray(beside & bool((beside & wide).any()))


def _lacking(pieces: Pieces, gaps: Mask, nodes: Array) -> tuple[Array, Array, Indices]:
    """Return the ends of the cells that gaps lack, a usual step wide, and -1 for each."""
    low, high = pieces.low[gaps], pieces.high[gaps]
    counts = np.maximum(1, np.rint((high - low) / spacing(nodes)).astype(np.intp))
    number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    width = np.repeat((high - low) / counts, counts)
    start = np.repeat(low, counts) + number * width
    return start, start + width, np.full(start.size, -1)


def _refined(asked: Means, source: SourceCells, nodes: Array) -> tuple[Array, Array, Indices]:
    """Return the ends of the cells of samples and of places between them, and which sample it is.

    Between samples nothing is known: -1.
    """
    turns = np.zeros(1)
    if source.period is not None:
        first = math.floor((asked.low[0] - nodes.max()) / source.period)
        last = math.ceil((asked.high[0] - nodes.min()) / source.period)
        turns = source.period * np.arange(first - 1, last + 2)
    places = np.add.outer(turns, nodes).ravel()
    order = np.argsort(places)
    rising, own = places[order], np.tile(np.arange(nodes.size), turns.size)[order]
    middles = 0.5 * (rising[1:] + rising[:-1])
    finer = np.empty(2 * rising.size + 1)
    finer[1::2], finer[2:-1:2] = rising, middles
    finer[0], finer[-1] = 2 * rising[0] - finer[2], 2 * rising[-1] - finer[-3]
    known = np.full(finer.size, -1)
    known[1::2] = own
    edges = np.r_[-np.inf, 0.5 * (finer[1:] + finer[:-1]), np.inf]
    low, high = np.maximum(edges[:-1], asked.low[0]), np.minimum(edges[1:], asked.high[0])
    inside = high > low
    return low[inside], high[inside], known[inside]


def _around(nodes: Array, middle: float, period: float | None) -> Indices:
    """Return the places of the samples nearest to a coordinate, by rising distance."""
    away = np.abs(nodes - middle)
    if period is not None:
        away = np.abs((nodes - middle + 0.5 * period) % period - 0.5 * period)
    return np.argsort(away, kind="stable")[:_AROUND]


def _mean_of(
    low: Array, high: Array, known: Indices, weights: Array, near: Indices
) -> WeightedMean:
    """Return the mean of a part by the samples around it."""
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    places = middle[:, None] + half[:, None] * _PLACES
    field = weights[:, None] * 0.5 * _WEIGHTS
    shares = np.where(known[:, None] == near, weights[:, None], 0.0).sum(axis=0)
    unseen = float(np.sum(weights[known < 0] ** 2))
    return WeightedMean(shares, places.ravel(), field.ravel(), unseen)
