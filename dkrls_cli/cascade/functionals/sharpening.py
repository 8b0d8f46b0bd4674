"""Fields whose means over cells are the data, and means that keep the data.

A level takes its samples for values at the coordinates. Where they are means y over cells S, the
field is sharpened: its weights a, those of values y, are corrected in two steps,

    (I + N + N^2) a,    N = C^-1 (K - S k),

with K a its values at the coordinates and (S k) a its means over the cells. Its means over the
cells then differ from y by the third power of N, and by what the ridge smooths.
That residual is added as a constant in every cell. So the mean over a cell of the data is the data,
the mean over a union of cells is theirs, and the means over all parts of a cell make up the mean
over the cell: areas times means have the same sum on either grid. Values between coordinates have
the same residual, and derivatives have none.

Under a joint ridge all axes are solved for at once, and missing cells are filled as those of any
grid: they are means over cells as the observed ones are. The weights of the one solve are then
sharpened along every axis of means. C has the share of the ridge that is left to an axis beside the
largest direction of all others: directions of less variance are unknown to the data.

Data that are values at coordinates need no correction. What the ridge smooths away at them is added
to means in the same way, as a constant in the cell around each, so that the mean over a month or a
region of noisy data is that of the data, as values at training coordinates are the data. Such cells
are no wider than the usual step: in a gap nothing is known of what the ridge smooths away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.factors.levels import largest_value, ridge_shares
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.functionals.cells import Pieces, SourceCells, own_cells
from dkrls_cli.cascade.functionals.functional import Functional, Means, Values
from dkrls_cli.cascade.functionals.rows import answer_long, kernel_rows
from dkrls_cli.cascade.spectrum import Spectrum
from dkrls_cli.cascade.tensors import Rows, apply

# Corrections of the weights: the means over cells then err by the third power of N.
_STEPS = 2

# Least ridge of C, as a share of the largest variance of a direction. Of a rough field that is
# taken for a smooth one without noise, corrections of lesser directions do more harm than good:
# on block means of a climate model values were worse by 18 % without it, and on smooth fields no
# answer is worse by more than 0.4 % with it.
_LEAST = 1e-9


@dataclass(frozen=True, eq=False)
class CellField:
    """A field along one axis, whose samples have cells, by its weights (m, n).

    The weights of a level that is not long are in its eigenbasis (r, n). There rounding stays in
    the directions that the data hardly has. The weights of samples are as large as 1 / ridge, and
    their rounding would be in all.

    Attributes
    ----------
    cascade, axis
        The model, and the axis of the level.
    source
        The cells of its samples.
    factor
        What solves C = K + ridge.
    ridge
        That ridge.
    """

    cascade: Cascade
    axis: int
    source: SourceCells
    factor: Spectrum | LongFactor
    ridge: float

    @classmethod
    def of(cls, cascade: Cascade, axis: int, source: SourceCells) -> CellField:
        """Return the field of an axis with its own ridge, or its share of a joint ridge."""
        factor, ridge = cascade.factor(axis), cascade.levels[axis].ridge
        if cascade.joint_ridge is not None:
            factors = [cascade.factor(place) for place in range(cascade.ndim)]
            ridge = ridge_shares(factors, cascade.joint_ridge)[axis]
            ridge = max(ridge, _LEAST * largest_value(factor))
            factor = factor.with_ridge(ridge) if isinstance(factor, LongFactor) else factor
        return cls(cascade, axis, source, factor, ridge)

    @property
    def nodes(self) -> Values:
        """The values at the coordinates."""
        return Values(self.cascade.coordinates[self.axis])

    def solve(self, fibres: Array) -> Array:
        """Return the weights C^-1 y."""
        if isinstance(self.factor, LongFactor):
            return self.factor.solve(fibres)
        return np.asarray(self.factor.solve(self.ridge, fibres))

    def answer(self, asked: Functional, weights: Array) -> Array:
        """Return L k(., c) times the weights."""
        if isinstance(self.factor, LongFactor):
            return answer_long(self.factor, asked, weights)
        rows = asked.rows(self.cascade.levels[self.axis].kernel, self.nodes.query)
        return np.asarray((rows @ self.factor.vectors) @ weights)

    def sharpen(self, weights: Array) -> Array:
        """Return (I + N + N^2) a, if the samples are means."""
        term, total = weights, weights
        for _ in range(_STEPS if self.source.are_means else 0):
            missed = self.answer(self.nodes, term) - self.answer(self.source.means, term)
            term = self.solve(missed)
            total = total + term
        return total

    def over(self, pieces: Pieces, weights: Array) -> Array:
        """Return the means over pieces (p, n), of which the parts of a cell make up the cell."""
        means = self.answer(self.source.means, weights)
        found = np.empty((pieces.cell.size, means.shape[1]))
        whole = pieces.whole
        found[whole] = means[pieces.cell[whole]]
        rest = Means(pieces.low[~whole], pieces.high[~whole], self.source.latitude)
        if len(rest):
            found[~whole] = self.answer(rest, weights)
        own = pieces.cell >= 0
        # rounding is taken out where the parts of a cell are all there: their sum is the cell's
        sums = np.zeros_like(means)
        np.add.at(sums, pieces.cell[own], pieces.part[own, None] * found[own])
        excess = np.where(pieces.tiled[:, None], sums - means, 0.0)
        found[own] -= excess[pieces.cell[own]]
        return found

    def smooth(self, asked: Functional, weights: Array) -> Array:
        """Return the answers (q, n) without the residuals of the cells."""
        if not isinstance(asked, Means):
            return self.answer(asked, weights)
        pieces = self.source.cut(asked)
        return pieces.average(self.over(pieces, weights))


@dataclass(frozen=True, eq=False)
class CellRows:
    """Rows (q, m) that answer from the data of a level with its own ridge, by its cells.

    Attributes
    ----------
    field
        The field of the level.
    asked
        What is asked for.
    smooth
        Whether what the ridge smooths away is not added again.
    """

    field: CellField
    asked: Functional
    smooth: bool = False
    ndim: ClassVar[int] = 2

    def __len__(self) -> int:
        """Return the number of questions."""
        return len(self.asked)

    def __getitem__(self, part: slice) -> CellRows:
        """Return some of the rows."""
        return CellRows(self.field, self.asked[part], self.smooth)

    def __matmul__(self, fibres: Array) -> Array:
        """Return the answers (q, n) from data (m, n)."""
        field, source = self.field, self.field.source
        weights = field.sharpen(field.solve(fibres))
        if self.smooth:
            return field.smooth(self.asked, weights)
        seen = field.answer(source.means if source.are_means else field.nodes, weights)
        residual = fibres - seen if source.places is None else (fibres - seen)[source.places]
        if isinstance(self.asked, Means):
            pieces = source.cut(self.asked)
            found = field.over(pieces, weights)
            own = pieces.cell >= 0
            found[own] += residual[pieces.cell[own]]
            return pieces.average(found)
        found = field.answer(self.asked, weights)
        if isinstance(self.asked, Values):
            cell = source.find(self.asked.query)
            found[cell >= 0] += residual[cell[cell >= 0]]
        return found


def cell_rows(
    cascade: Cascade, axis: int, source: SourceCells, asked: Functional, smooth: bool
) -> Array | Indices | CellRows:
    """Return the rows (q, r_l) that answer from the core along an axis with cells.

    Means over the cells of data that are means pass through.
    """
    frame = cascade.frames[axis]
    own = None if smooth or frame is not None else own_cells(source, asked)
    if own is not None:
        return own
    operator = CellRows(CellField.of(cascade, axis, source), asked, smooth)
    if frame is not None:
        return operator @ np.asarray(frame, np.float64)
    if cascade.is_long(axis):
        return operator
    return operator @ np.eye(cascade.shape[axis])


# A joint ridge ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class JointCellRows:
    """Rows (q, m) that answer from the weights of a joint ridge along a long axis of means."""

    field: CellField
    asked: Functional
    ndim: ClassVar[int] = 2

    def __len__(self) -> int:
        """Return the number of questions."""
        return len(self.asked)

    def __getitem__(self, part: slice) -> JointCellRows:
        """Return some of the rows."""
        return JointCellRows(self.field, self.asked[part])

    def __matmul__(self, weights: Array) -> Array:
        """Return the answers (q, n) of weights (m, n)."""
        return self.field.smooth(self.asked, self.field.sharpen(weights))


def joint_rows(
    cascade: Cascade, axis: int, asked: Functional, source: SourceCells | None = None
) -> Array | Rows:
    """Return the rows of an axis that answer from the coefficients of a joint ridge.

    They are those of the smooth field, sharpened where the data are means over cells.
    """
    if source is None or not source.are_means:
        return kernel_rows(cascade, axis, asked)
    field = CellField.of(cascade, axis, source)
    if isinstance(field.factor, LongFactor):
        return JointCellRows(field, asked)
    return field.smooth(asked, field.sharpen(np.eye(field.factor.values.size)))


def joint_residual(
    cascade: Cascade, coefficients: Array, cells: Mapping[int, SourceCells]
) -> Array:
    """Return what the data has beside the field of a joint ridge, in every cell.

    `coefficients` are those of the one solve.
    """
    means = {axis: source for axis, source in cells.items() if source.are_means}
    if not means:
        return np.asarray(cascade.predict() - cascade.predict(smooth=True))
    rows = [
        joint_rows(cascade, axis, means[axis].means, means[axis])
        if axis in means
        else kernel_rows(cascade, axis, Values(cascade.coordinates[axis]))
        for axis in range(cascade.ndim)
    ]
    return np.asarray(cascade.predict() - cascade.mean - apply(coefficients, rows))
