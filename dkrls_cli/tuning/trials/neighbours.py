"""Hidden cells of a window, and the observed cells around each that say most of it.

Neighbours are the nearest by several measures: cells count alike along all axes, and along one of
them for less than along the others. A field that is longer along one axis than along another has
its neighbours among them, whichever axis that is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.tuning.masks import HiddenWindow

_STRETCH = 6.0
"""Cells along the preferred axis of a measure that are as near as one cell along the others."""

_LEAST_OF_A_POWER = 12
"""Hidden cells of every power of two of the distance to data, if there are so many."""


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """Some hidden cells of a window with their neighbours.

    Attributes
    ----------
    coordinates
        Of the window, one vector per axis.
    places
        Per axis, where the n neighbours of every hidden cell lie, and it itself last (h, n + 1).
    values
        The data of the neighbours (h, n).
    truth
        The data of the hidden cells (h,).
    powers, weights
        Power of two of the distance to data, and weight in a mean, of the hidden cells (h,).
    """

    coordinates: tuple[Array, ...]
    places: tuple[Indices, ...]
    values: Array
    truth: Array
    powers: Indices
    weights: Array


def find_neighbourhoods(
    window: HiddenWindow, cells: int, neighbours: int, rng: np.random.Generator
) -> Neighbourhoods:
    """Return about so many hidden cells of a window, each with so many neighbours or fewer.

    The weight of the hidden cells of every power of two of the distance to data stays what it is.
    """
    chosen, weights = _sample(window, cells, rng)
    hidden = np.argwhere(window.hidden)[chosen]
    observed = np.argwhere(np.isfinite(window.seen))
    near = observed[_nearest(observed, hidden, min(neighbours, len(observed)))]
    places = np.concatenate([near, hidden[:, None]], axis=1)
    values = window.values[tuple(np.moveaxis(places, -1, 0))]
    return Neighbourhoods(
        window.coordinates,
        tuple(np.ascontiguousarray(places[..., axis]) for axis in range(places.shape[-1])),
        values[:, :-1],
        values[:, -1],
        window.powers[chosen],
        weights,
    )


def _sample(window: HiddenWindow, cells: int, rng: np.random.Generator) -> tuple[Indices, Array]:
    """Return places of some hidden cells among all, and their weights.

    Of every power there are as many as the root of its weight asks for: powers of little weight are
    the far ones, whose errors vary most.
    """
    shares, powers = window.shares, window.powers
    sums = np.bincount(powers, shares, minlength=1)
    roots = np.sqrt(sums) / max(float(np.sqrt(sums).sum()), np.finfo(float).tiny)
    chosen, weights = [np.empty(0, np.intp)], [np.empty(0)]
    for power in np.flatnonzero(sums):
        own = np.flatnonzero((powers == power) & (shares > 0))
        count = min(own.size, max(_LEAST_OF_A_POWER, round(cells * float(roots[power]))))
        chosen.append(rng.choice(own, count, replace=False))
        weights.append(np.full(count, sums[power] / count))
    return np.concatenate(chosen), np.concatenate(weights)


def _nearest(observed: Indices, hidden: Indices, count: int) -> Indices:
    """Return which observed cells are nearest to each hidden one (h, count), each once.

    They are taken in turn from the lists of all measures.
    """
    from scipy.spatial import cKDTree

    axes = observed.shape[1]
    measures = [np.ones(axes)]
    if axes > 1:
        measures += [np.where(np.arange(axes) == axis, _STRETCH, 1.0) for axis in range(axes)]
    lists = []
    for measure in measures:
        tree = cKDTree(observed / measure, balanced_tree=False, compact_nodes=False)
        _, found = tree.query(hidden / measure, k=[*range(1, count + 1)])
        lists.append(found)
    merged = np.stack(lists, axis=-1).reshape(len(hidden), count * len(measures))
    return _first_distinct(merged, count)


def _first_distinct(numbers: Indices, count: int) -> Indices:
    """Return the first so many different numbers of every row, which has at least so many.

    >>> _first_distinct(np.array([[5, 5, 2, 5, 7], [1, 2, 1, 2, 3]]), 3)
    array([[5, 2, 7],
           [1, 2, 3]])
    """
    order = np.argsort(numbers, axis=1, kind="stable")
    ordered = np.take_along_axis(numbers, order, axis=1)
    is_first = np.ones(numbers.shape, bool)
    is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    new = np.empty(numbers.shape, bool)
    np.put_along_axis(new, order, is_first, axis=1)
    kept = new & (np.cumsum(new, axis=1) <= count)
    return numbers[kept].reshape(len(numbers), count)
