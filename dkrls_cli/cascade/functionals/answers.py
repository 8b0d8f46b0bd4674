"""Answers of a cascade to functionals of its levels: on product grids, and at scattered points.

Every level has its own functional, so the answer is a product of rows as that of values is. With a
ridge per level the rows of an axis are (L k(., c)) C^-1; under a joint ridge they are L k(., c),
applied to the coefficients of the one solve. The mean of the data enters as its functional: a
derivative has none of it.

Values still pass through at training coordinates of an axis with a ridge of its own, and
derivatives are those of what passes through: of the smooth field, and of the detail that the data
has beside it. Under a joint ridge the residual of every cell has a share in an answer along all
axes together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np

from dkrls_cli.arrays import Array, Indices, Slices
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.factors.long import LongAxis, LongSmoother
from dkrls_cli.cascade.functionals.cells import SourceCells
from dkrls_cli.cascade.functionals.detail import Detail
from dkrls_cli.cascade.functionals.functional import Derivatives, Functional, Means, Values
from dkrls_cli.cascade.functionals.rows import (
    LongAnswerRows,
    LongKernelRows,
    answer_rows,
    prepare_long,
)
from dkrls_cli.cascade.functionals.sharpening import cell_rows, joint_residual, joint_rows
from dkrls_cli.cascade.tensors import Rows, apply, contract

NO_CELLS: Mapping[int, SourceCells] = MappingProxyType({})
"""The data are values along all axes."""


def answer_blocks(
    cascade: Cascade,
    asked: Sequence[Functional],
    *,
    smooth: bool = False,
    cells: Mapping[int, SourceCells] = NO_CELLS,
    rows: Sequence[Array | Indices | Rows] | None = None,
) -> Callable[[Slices], Array]:
    """Return a function that answers one block of a product grid of functionals.

    The data have `cells` along some axes. `rows` are those of :func:`all_rows`, if they are known.
    """
    rows = rows or all_rows(cascade, asked, smooth, cells)
    tensor = _tensor(cascade)
    mean = cascade.mean * math.prod(each.of_one for each in asked)
    shares = None if smooth else joint_shares(cascade, asked, cells)
    residual = None if shares is None else joint_residual(cascade, tensor, cells)

    def answer(part: Slices) -> Array:
        result = apply(tensor, [row[p] for row, p in zip(rows, part, strict=True)])
        result += mean
        if shares is not None and residual is not None:
            result += apply(residual, [row[p] for row, p in zip(shares, part, strict=True)])
        return result

    return answer


def joint_shares(
    cascade: Cascade, asked: Sequence[Functional], cells: Mapping[int, SourceCells]
) -> list[Array] | None:
    """Return the shares of the residual of the cells in answers under a joint ridge, or None.

    Between coordinates the shares are 0, and in a cell of data that are means they are 1. Those of
    derivatives are slopes of the detail (:mod:`dkrls_cli.cascade.functionals.detail`), and 0 along
    an axis of means.
    """
    slopes = any(isinstance(each, Derivatives) for each in asked)
    if cascade.joint_ridge is None or not (cells or slopes):
        return None
    found = [_share(cascade, axis, each, cells.get(axis)) for axis, each in enumerate(asked)]
    known = [each for each in found if each is not None]
    return known if len(known) == len(found) else None


def _share(
    cascade: Cascade, axis: int, asked: Functional, source: SourceCells | None
) -> Array | None:
    """Return the shares (q, m) of the residuals along one axis; None if they are not known."""
    size = cascade.shape[axis]
    if isinstance(asked, Means):
        return None if source is None else source.cut(asked).shares(size)
    of_means = source if source is not None and source.are_means else None
    if isinstance(asked, Derivatives):
        if of_means is not None:
            return np.zeros((len(asked), size))
        return Detail(cascade.levels[axis].kernel, cascade.coordinates[axis]).rows(asked)
    assert isinstance(asked, Values)
    query = asked.query
    cells = cascade.find_nodes(axis, query) if of_means is None else of_means.find(query)
    return np.asarray(cells[:, None] == np.arange(size), np.float64)


def answer_grid(
    cascade: Cascade,
    asked: Sequence[Functional],
    *,
    smooth: bool = False,
    cells: Mapping[int, SourceCells] = NO_CELLS,
    rows: Sequence[Array | Indices | Rows] | None = None,
) -> Array:
    """Return the answers on a whole product grid of functionals."""
    whole = tuple(slice(0, len(each)) for each in asked)
    return answer_blocks(cascade, asked, smooth=smooth, cells=cells, rows=rows)(whole)


def answer_points(
    cascade: Cascade,
    asked: Sequence[Functional],
    *,
    spread: Collection[int] = (),
    smooth: bool = False,
    cells: Mapping[int, SourceCells] = NO_CELLS,
    rows: Sequence[Array | Indices | Rows] | None = None,
) -> Array:
    """Return the answers at scattered points: one functional of every axis for each point.

    Axes in `spread` are no part of the points: see :meth:`Cascade.predict_points`.
    """
    rows = rows or all_rows(cascade, asked, smooth, cells)
    tensor = _tensor(cascade)
    mean = cascade.mean * math.prod(each.of_one for each in asked)
    own = [axis for axis in range(cascade.ndim) if axis not in spread]
    looked_up = {axis: np.asarray(rows[axis]) for axis in own if _are_indices(rows[axis])}
    long = [axis for axis in own if not isinstance(rows[axis], np.ndarray)]
    leading = max(long, key=lambda axis: tensor.shape[axis], default=None)

    def some(axis: int, part: slice) -> Array:
        row = rows[axis][part]
        return np.asarray(row if isinstance(row, np.ndarray) else row @ np.eye(tensor.shape[axis]))

    count, widest = len(asked[own[0]]), max(cascade.shape)
    found = mean + contract(
        tensor,
        count,
        some,
        looked_up,
        widest,
        {axis: rows[axis] for axis in spread},
        None if leading is None else (leading, partial(_lead, rows[leading])),
    )
    shares = None if smooth else joint_shares(cascade, asked, cells)
    if shares is not None:
        residual = joint_residual(cascade, tensor, cells)
        beside = {axis: shares[axis] for axis in spread}
        found += contract(residual, count, lambda a, part: shares[a][part], {}, widest, beside)
    return found


def _lead(rows: Rows, fibres: Array) -> Callable[[slice], Array]:
    """Return a function that answers some of the points along a long axis, solved for once."""
    if isinstance(rows, LongSmoother):
        axis = LongAxis(rows.factor, fibres, 0)
        return lambda part: axis.at(rows.query[part], rows.nodes[part])
    if isinstance(rows, LongAnswerRows):
        answer = rows.prepare(fibres)
    elif isinstance(rows, LongKernelRows):
        answer = prepare_long(rows.factor, fibres, rows.asked)
    else:
        return lambda part: rows[part] @ fibres
    asked = rows.asked
    return lambda part: answer(asked[part])


def answer_data(
    cascade: Cascade,
    asked: Sequence[Functional],
    *,
    spread: Collection[int] | None = None,
    smooth: bool = False,
    cells: Mapping[int, SourceCells] = NO_CELLS,
) -> Callable[[Array], Array]:
    """Return a function that answers from other data with a mean of 0, in the shape of the grid.

    Kernels and ridges are those of the cascade. None as `spread` means a product grid.
    """
    bare = replace(
        cascade,
        frames=(None,) * cascade.ndim,
        factors=tuple(cascade.factor(axis) for axis in range(cascade.ndim)),
        mean=0.0,
        core=np.zeros(cascade.shape),
    )
    rows = all_rows(bare, asked, smooth, cells)

    def answer(data: Array) -> Array:
        other = replace(bare, core=data)
        if spread is None:
            return answer_grid(other, asked, smooth=smooth, cells=cells, rows=rows)
        return answer_points(other, asked, spread=spread, smooth=smooth, cells=cells, rows=rows)

    return answer


def _are_indices(row: Array | Indices | Rows) -> bool:
    return isinstance(row, np.ndarray) and row.ndim == 1


def all_rows(
    cascade: Cascade,
    asked: Sequence[Functional],
    smooth: bool,
    cells: Mapping[int, SourceCells],
    skip: int | None = None,
) -> list[Array | Indices | Rows]:
    """Return the rows of every axis; of the axis `skip` there are none."""
    if cascade.joint_ridge is not None:
        return [joint_rows(cascade, axis, each, cells.get(axis)) for axis, each in enumerate(asked)]
    return [
        np.empty((0, 0)) if axis == skip else axis_rows(cascade, axis, each, smooth, cells)
        for axis, each in enumerate(asked)
    ]


def axis_rows(
    cascade: Cascade,
    axis: int,
    asked: Functional,
    smooth: bool,
    cells: Mapping[int, SourceCells],
) -> Array | Indices | Rows:
    """Return the rows of one axis that has a ridge of its own."""
    if is_asked_of_cells(cells.get(axis), asked):
        return cell_rows(cascade, axis, cells[axis], asked, smooth)
    return answer_rows(cascade, axis, asked, smooth)


def is_asked_of_cells(source: SourceCells | None, asked: Functional) -> bool:
    """Return whether an answer is one of cells: a mean, or anything where data are means."""
    return source is not None and (source.are_means or isinstance(asked, Means))


def _tensor(cascade: Cascade) -> Array:
    """Return what the rows are applied to: data less its mean, or coefficients of a joint ridge."""
    if cascade.joint_ridge is None:
        return np.asarray(cascade.centred_core(), np.float64)
    return cascade.solver.coefficients([True] * cascade.ndim)
