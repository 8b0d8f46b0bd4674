"""Rows that answer at scattered points, and what is made of their sums."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.factors.long import LongSmoother
from dkrls_cli.cascade.functionals.answers import axis_rows
from dkrls_cli.cascade.functionals.cells import SourceCells
from dkrls_cli.cascade.functionals.functional import Functional, Values
from dkrls_cli.cascade.kernels import gram
from dkrls_cli.cascade.streaming.forms import AxisRows, Taken
from dkrls_cli.cascade.streaming.rows import cut_rows
from dkrls_cli.cascade.streaming.windows import SMALL, PointRows
from dkrls_cli.cascade.tensors import Rows, lay_out
from dkrls_cli.model.answering.answers import PointQuery
from dkrls_cli.model.lasting.slices import LandSlices
from dkrls_cli.model.referring.land import LandSums, LandVariances, slice_nodes
from dkrls_cli.model.referring.sums import PointSums
from dkrls_cli.model.streaming.answering import stand_in

_COLUMNS = 256
"""Columns of rows that are an operator which are made at a time."""


@dataclass(frozen=True, eq=False)
class PointAnswers:
    """Answers at points: their sums, and rows of the axes that all points share.

    Attributes
    ----------
    sums
        Sums over the data.
    shared
        Rows of the axes that all points share.
    offset
        What is added to the answers: the mean of the model, as far as the question has it.
    factor
        A factor of every answer.
    """

    sums: PointSums
    shared: Mapping[int, AxisRows]
    offset: float
    factor: Array

    @classmethod
    def of_land(
        cls, query: PointQuery, land: LandSlices, *, variance: bool = False
    ) -> PointAnswers:
        """Return the answers to a query of a model of a grid with land, or their variance."""
        model, kind = stand_in(query.model), LandVariances if variance else LandSums
        sums = kind.of_land(query, model, land)
        shared = {
            axis: Taken(slice_nodes(model, axis, query.asked[axis]), model.shape[axis])
            for axis in query.spread
        }
        return cls(sums, shared, 0.0 if variance else model.cascade.mean, np.ones(1))

    @classmethod
    def of(cls, query: PointQuery, small: float = SMALL) -> PointAnswers:
        """Return the answers to a query of a model with a ridge per level.

        Entries of rows that are `small` beside the largest are left out.
        """
        model, linear = stand_in(query.model), query.linear
        cascade, smooth = model.cascade, query.rules.smooth
        asked: Sequence[Functional] = [Values(numbers) for numbers in query.asked]
        cells: Mapping[int, SourceCells] = {}
        factor, share = np.ones(1), 1.0
        if linear is not None:
            asked, cells = linear.functionals, linear.cells
            factor = reduce(np.multiply, lay_out(linear.factors, query.spread))
            share = math.prod(each.of_one for each in asked)
        shared = {
            axis: cut_rows(cascade, axis, axis_rows(cascade, axis, asked[axis], smooth, cells))
            for axis in query.spread
        }
        rows = {
            axis: _point_rows(cascade, axis, each, smooth, cells, small)
            for axis, each in enumerate(asked)
            if axis not in query.spread
        }
        samples = {axis: _kept_samples(own) for axis, own in shared.items()}
        return cls(PointSums(model, rows, samples), shared, cascade.mean * share, factor)

    def finish(self, sums: Array) -> Array:
        """Return the answers from sums."""
        for place, (axis, rows) in enumerate(self.shared.items(), 1):
            if isinstance(rows, Taken):
                sums = sums.take(np.searchsorted(self.sums.samples[axis], rows.indices), place)
            else:
                sums = np.asarray(rows.apply(sums, place, slice(0, rows.size)))
        return (sums + self.offset) * self.factor


def _kept_samples(rows: AxisRows) -> Indices:
    """Return the samples that rows are applied to."""
    return np.unique(rows.indices) if isinstance(rows, Taken) else np.arange(rows.samples)


def _point_rows(
    cascade: Cascade,
    axis: int,
    asked: Functional,
    smooth: bool,
    cells: Mapping[int, SourceCells],
    small: float,
) -> PointRows:
    """Return the rows of points along an axis."""
    samples = cascade.shape[axis]

    def make_rows(part: slice) -> Array:
        found = axis_rows(cascade, axis, asked[part], smooth, cells)
        if isinstance(found, LongSmoother):
            return _solved_rows(cascade, axis, found)
        if not isinstance(found, np.ndarray):
            return _as_matrix(found, samples)
        return np.asarray(np.eye(samples)[found] if found.ndim == 1 else found, np.float64)

    if isinstance(asked, Values):
        nodes = cascade.find_nodes(axis, asked.query, smooth)
        if (nodes >= 0).all():
            return PointRows.at_samples(nodes, samples)
    circle = cascade.levels[axis].kernel.period is not None
    return PointRows.build(make_rows, len(asked), samples, circle=circle, small=small)


def _solved_rows(cascade: Cascade, axis: int, rows: LongSmoother) -> Array:
    """Return rows k(q, c) C^-1 of a long level as a matrix, units at its coordinates."""
    kernel = cascade.levels[axis].kernel
    found = rows.factor.solve(gram(kernel, cascade.coordinates[axis], rows.query)).T
    known = np.flatnonzero(rows.nodes >= 0)
    found[known] = 0.0
    found[known, rows.nodes[known]] = 1.0
    return found


def _as_matrix(rows: Rows, samples: int) -> Array:
    """Return rows that are an operator as a matrix (rows, samples), some columns at a time."""
    result = np.empty((len(rows), samples))
    for start in range(0, samples, _COLUMNS):
        part = slice(start, min(start + _COLUMNS, samples))
        units = np.zeros((samples, part.stop - part.start))
        units[part] = np.eye(part.stop - part.start)
        result[:, part] = rows @ units
    return result
