"""Holes of a grid: connected missing cells, and how far missing cells are from data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.circle import wrap


def label_holes(missing: Mask, ring: int | None = None) -> tuple[Indices, int]:
    """Give every hole of a grid a number: missing cells that are connected along the axes.

    Parameters
    ----------
    missing
        True where a cell has no value.
    ring
        An axis whose last coordinate is next to its first, if there is one.

    Returns
    -------
    Indices
        The number of the hole of every cell, from 1; 0 for cells with a value.
    int
        Number of holes.

    Examples
    --------
    >>> missing = np.array([[True, False, True, True], [False, False, False, True]])
    >>> label_holes(missing)[0].tolist()
    [[1, 0, 2, 2], [0, 0, 0, 2]]
    >>> label_holes(missing, ring=1)[1]
    1
    """
    from scipy.ndimage import label

    labels, count = label(missing)
    if ring is not None and count > 1:
        labels, count = _join_seam(labels, count, ring)
    return labels.astype(np.intp, copy=False), int(count)


def _join_seam(labels: Indices, count: int, ring: int) -> tuple[Indices, int]:
    """Give holes that touch across the seam of a ring one number."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    first, last = (np.take(labels, place, axis=ring).ravel() for place in (0, -1))
    touch = (first > 0) & (last > 0)
    pairs = first[touch], last[touch]
    graph = coo_array((np.ones(pairs[0].size), pairs), shape=(count + 1, count + 1))
    joined, number = connected_components(graph, directed=False)  # 0, the data, is one by itself
    order = np.unique(number, return_index=True)[1]  # in the order of first appearance
    rank = np.empty(joined, np.intp)
    rank[number[np.sort(order)]] = np.arange(joined)
    return rank[number][labels], joined - 1


def shore(missing: Mask) -> Mask:
    """Return the cells with a value that are next to a missing one, or at an end of an axis.

    The cell with a value that is nearest to a missing cell is one of them, for any distance that
    grows along each axis; on a circle, for distances the other way round as well.

    Examples
    --------
    >>> shore(np.array([False, False, False, True, False, False, False])).tolist()
    [True, False, True, False, True, False, True]
    """
    near = beside(missing)
    for axis in range(missing.ndim):
        np.moveaxis(near, axis, 0)[[0, -1]] = True
    return near & ~missing


def beside(cells: Mask, ring: int | None = None) -> Mask:
    """Return the cells that have one of some cells next to them along an axis.

    Parameters
    ----------
    cells
        True for these cells.
    ring
        An axis whose last coordinate is next to its first, if there is one.

    Examples
    --------
    >>> beside(np.array([True, False, False, False])).tolist()
    [False, True, False, False]
    """
    near = np.zeros(cells.shape, bool)
    for axis in range(cells.ndim):
        there, flags = np.moveaxis(near, axis, 0), np.moveaxis(cells, axis, 0)
        there[1:] |= flags[:-1]
        there[:-1] |= flags[1:]
        if axis == ring:
            there[0] |= flags[-1]
            there[-1] |= flags[0]
    return near


def nearest_distance(points: Array, data: Array, limit: float) -> Array:
    """Return the distance of each point to the nearest datum; infinite above the limit.

    Parameters
    ----------
    points, data
        Positions (n, k) and (m, k) in one unit of length.
    limit
        Largest distance to search, in that unit.

    Examples
    --------
    >>> nearest_distance(np.array([[0.0], [5.0]]), np.array([[1.0], [2.0]]), 2.0)
    array([ 1., inf])
    """
    from scipy.spatial import cKDTree

    if not data.size:
        return np.full(len(points), np.inf)
    distance, _ = cKDTree(data).query(points, distance_upper_bound=np.nextafter(limit, np.inf))
    return np.asarray(distance)


def reaches_end(missing: Mask, axis: int) -> Mask:
    """Return the missing cells in runs along an axis that reach its first or last coordinate.

    Parameters
    ----------
    missing
        True where a cell has no value.
    axis
        The axis along which the runs go, its coordinates in order.

    Examples
    --------
    >>> reaches_end(np.array([True, False, True, False, True, True]), 0).tolist()
    [True, False, False, False, True, True]
    """
    ends = np.logical_and.accumulate(missing, axis)
    ends |= np.flip(np.logical_and.accumulate(np.flip(missing, axis), axis), axis)
    return np.asarray(ends)


@dataclass(frozen=True, eq=False)
class Reach:
    """How far from data cells may be along one axis.

    Attributes
    ----------
    coordinates
        Coordinates of the axis (m,), in any order.
    length
        The largest distance, in units of the coordinates.
    period
        Length of the circle that the coordinates lie on; None for a line.
    """

    coordinates: Array
    length: float
    period: float | None = None


# Relative rounding of coordinates: a cell at just the distance is within it.
_ROUNDING = 1e-9


def within_reach(missing: Mask, reaches: Mapping[int, Reach]) -> Mask:
    """Return the cells that are near a cell with a value.

    A cell is near if some cell with a value, in the same slice of all other axes, lies in the
    ellipse around it: the sum of (distance / length)^2 over the axes named is at most 1.

    Parameters
    ----------
    missing
        True where a cell has no value.
    reaches
        How far to go along each of some axes, by place of the axis.

    Returns
    -------
    Mask
        In the shape of the grid; True at all cells with a value.

    Examples
    --------
    >>> missing = np.array([False, True, True, True])
    >>> within_reach(missing, {0: Reach(np.array([0.0, 1.0, 2.0, 4.0]), 2.0)}).tolist()
    [True, True, True, False]
    """
    squares = np.where(missing, np.inf, 0.0)
    for axis, reach in reaches.items():
        squares = np.moveaxis(_spread(np.moveaxis(squares, axis, 0), reach), 0, axis)
    return np.asarray(squares <= (1 + _ROUNDING) ** 2)


def _spread(squares: Array, reach: Reach) -> Array:
    """Return the least sum of a square and the squared distance along axis 0, for each cell.

    Lower envelopes of this kind are separable: one pass per axis is exact.
    """
    places = wrap(reach.coordinates, reach.period)
    order = np.argsort(places, kind="stable")
    sorted_squares, places = squares[order], places[order]
    least = sorted_squares.copy()
    # Round a circle, more than half of the steps one way are fewer the other way.
    most = places.size - 1 if reach.period is None else places.size // 2
    for step in range(1, most + 1):
        near = False
        for shift in (step, -step):
            part = _relative(places, np.roll(places, shift), shift, reach)
            here = np.flatnonzero(part <= (1 + _ROUNDING) ** 2)
            if here.size:
                near = True
                beside = (-1, *[1] * (squares.ndim - 1))
                moved = sorted_squares[(here - shift) % places.size] + part[here].reshape(beside)
                least[here] = np.minimum(least[here], moved)
        if not near:
            break
    result = np.empty_like(least)
    result[order] = least
    return result


def _relative(here: Array, there: Array, shift: int, reach: Reach) -> Array:
    """Return the squares of distance / length between coordinates a number of steps apart."""
    distance = np.abs(here - there)
    if reach.period is not None:
        distance = np.minimum(distance, reach.period - distance)
    else:  # a roll brings the other end here, which is no neighbour on a line
        ends = slice(0, shift) if shift > 0 else slice(shift, None)
        distance[ends] = np.inf
    return (distance / reach.length) ** 2
