"""What metrics are made of, kept small: errors by coordinate, and one slice to look at.

A validation may compare many more cells than a picture can show, in many hold-outs. What is kept
has the size of the coordinates and of one slice, whatever the number of hold-outs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.cf import place_of

# Dimensions that a picture can show.
_MOST = 2


@dataclass(frozen=True, eq=False)
class CoordinateErrors:
    """Errors of answers at each coordinate of one dimension, over all others.

    Attributes
    ----------
    axis
        The dimension.
    counts
        Number of cells compared at each coordinate (m,).
    totals, squares
        Sums of the errors (answer minus truth) and of their squares (m,).
    """

    axis: Axis
    counts: Indices
    totals: Array
    squares: Array

    @property
    def rmse(self) -> Array:
        """Root mean square error at each coordinate; NaN where no cell was compared."""
        return np.asarray(np.sqrt(self._per_cell(self.squares)))

    @property
    def bias(self) -> Array:
        """Mean error at each coordinate; NaN where no cell was compared."""
        return self._per_cell(self.totals)

    def _per_cell(self, sums: Array) -> Array:
        nothing = np.full(sums.shape, np.nan)
        return np.asarray(np.divide(sums, self.counts, out=nothing, where=self.counts > 0))

    def plus(self, other: CoordinateErrors) -> CoordinateErrors:
        """Return the errors of this and of another comparison on the same axis."""
        return CoordinateErrors(
            self.axis,
            self.counts + other.counts,
            self.totals + other.totals,
            self.squares + other.squares,
        )


@dataclass(frozen=True, eq=False)
class ComparedSlice:
    """Truth and answers on one or two dimensions, at one coordinate of all others.

    Attributes
    ----------
    axes
        One or two dimensions, in the order of the arrays.
    fixed
        The other dimensions of more than one coordinate, each at its coordinate.
    truth, answers, deviations
        True values, NaN where they are not known; answers; and the standard errors of these.
    """

    axes: tuple[Axis, ...]
    fixed: tuple[Axis, ...]
    truth: Array
    answers: Array
    deviations: Array

    @property
    def known(self) -> int:
        """Number of cells whose truth is known."""
        return int(np.count_nonzero(np.isfinite(self.truth)))


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a validation has seen.

    Attributes
    ----------
    coordinates
        Errors by coordinate of every dimension that has more than one.
    shown
        Of all comparisons the slice with most known cells, the first of several.
    """

    coordinates: tuple[CoordinateErrors, ...]
    shown: ComparedSlice

    def plus(self, other: Evidence) -> Evidence:
        """Return the evidence of this and of another comparison on the same axes."""
        pairs = zip(self.coordinates, other.coordinates, strict=True)
        shown = other.shown if other.shown.known > self.shown.known else self.shown
        return Evidence(tuple(own.plus(theirs) for own, theirs in pairs), shown)


def collect_evidence(
    axes: Sequence[Axis],
    places: Sequence[Indices],
    truth: Array,
    answers: Array,
    variance: Array,
) -> Evidence:
    """Return what is kept of a comparison.

    Parameters
    ----------
    axes
        Axes of the whole grid.
    places
        Of each axis, the places of the coordinates that are compared.
    truth, answers, variance
        True values there, NaN where they are not known; answers, and their variances.

    Examples
    --------
    >>> from dkrls_cli.grid.axes import index_axis
    >>> truth, answers = np.array([[0.0, 1.0], [2.0, np.nan]]), np.ones((2, 2))
    >>> axes, held = [index_axis("y", 4), index_axis("x", 2)], [np.array([1, 3]), np.arange(2)]
    >>> found = collect_evidence(axes, held, truth, answers, np.ones((2, 2)))
    >>> found.coordinates[0].counts.tolist(), found.coordinates[1].totals.tolist()
    ([0, 2, 0, 1], [0.0, 0.0])
    """
    known = np.isfinite(truth)
    error = np.where(known, answers - truth, 0.0)
    counts, totals = (_sums(each, axes, places) for each in (known, error))
    squares = _sums(np.square(error, out=error), axes, places)
    each = zip(axes, counts, totals, squares, strict=True)
    coordinates = tuple(
        CoordinateErrors(axis, n.astype(np.intp), total, square)
        for axis, n, total, square in each
        if axis.size > 1
    )
    compared = [axis.take(own) for axis, own in zip(axes, places, strict=True)]
    return Evidence(coordinates, _best_slice(compared, known, truth, answers, variance))


def _sums(cells: Array, axes: Sequence[Axis], places: Sequence[Indices]) -> list[Array]:
    """Return the sum of compared cells at every coordinate of each axis."""
    found = []
    for place, (axis, own) in enumerate(zip(axes, places, strict=True)):
        others = tuple(other for other in range(len(axes)) if other != place)
        sums = np.zeros(axis.size)
        sums[own] = cells.sum(axis=others)
        found.append(sums)
    return found


def _best_slice(
    axes: Sequence[Axis], known: Array, truth: Array, answers: Array, variance: Array
) -> ComparedSlice:
    """Return the slice with most known cells, the first of several."""
    shown = shown_axes(axes)
    counts = known.sum(axis=shown, keepdims=True)
    at = np.unravel_index(int(np.argmax(counts)), counts.shape)
    part = tuple(slice(None) if place in shown else index for place, index in enumerate(at))
    own = (np.array(truth[part], np.float64), np.array(answers[part]), np.sqrt(variance[part]))
    fixed = tuple(
        axis.take([int(at[place])])
        for place, axis in enumerate(axes)
        if place not in shown and axis.size > 1
    )
    return ComparedSlice(tuple(axes[place] for place in shown), fixed, *own)


def shown_axes(axes: Sequence[Axis]) -> tuple[int, ...]:
    """Return the places of one or two axes to show: those of a map, or else the two longest."""
    long = [place for place, axis in enumerate(axes) if axis.size > 1] or [0]
    kinds = {place_of(axes[place]): place for place in reversed(long)}
    if len(long) > _MOST and {"latitude", "longitude"} <= set(kinds):
        long = [kinds["latitude"], kinds["longitude"]]
    return tuple(sorted(sorted(long, key=lambda place: -axes[place].size)[:_MOST]))
