"""Rows of one level as they are applied to part after part of a large grid.

Along an axis, an answer is a row times the samples of the data. Of a matrix of rows, the form is
taken that costs least.

- :class:`.forms.Taken`: training coordinates that pass through, each of which is one sample.
- :class:`.banded.Banded`: rows as matrices that are cut to windows.
- :class:`.dense.Dense`: rows as one matrix, where windows would have nearly all samples.
- :class:`.dense.Factored`: rows as the product of two matrices, for few directions.
- :class:`.split.Split`: wide rows, of which few sums tell all but what is near them.
- :class:`.forms.Mixed`: some rows pass through, the others do not.
- :class:`.forms.Whole`: rows that are an operator, as those of long levels.
"""

from __future__ import annotations

import math

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.spectrum import Spectrum
from dkrls_cli.cascade.streaming.banded import NEGLIGIBLE, Banded, Constant
from dkrls_cli.cascade.streaming.dense import Dense, Factored
from dkrls_cli.cascade.streaming.forms import AxisRows, Mixed, Taken, Whole
from dkrls_cli.cascade.streaming.products import Both
from dkrls_cli.cascade.streaming.split import WIDTHS, Split
from dkrls_cli.cascade.tensors import Rows

NEGLIGIBLE_IN_SINGLE = 1e-8
"""The same for data in single precision, which is rounded by 6e-8 of itself."""

_MOST_NEGLIGIBLE = 1e-5
"""The same, at most, where rows are solved for with small ridges and have such noise themselves:
without it they are no farther from the rows of an exact solve."""

_NOISE = 0.1
"""Length of the noise of solving in a row, in units of machine epsilon times the largest eigenvalue
over the least with the ridge: 0.1 to 0.4 beside exact rows of ten kernels with ridges from 1e-11 to
1e-5."""

_MOST_NOISE = 1e-4
"""Noise at most that is left out with what is smaller than it: with more, that would be felt."""

_OF_NOISE = 20.0
"""Length at most of what is left out of a row beside directions that its kernel can express, in
units of the noise of solving: 4 to 12 for gaussians with ridges from 1e-12 to 1e-9."""

_MOST_BESIDE = 0.05
"""The same at most, whatever the noise."""

_MOST_ROWS = 2048
"""Rows at most whose directions are looked for: a singular value decomposition takes seconds."""

_MANY = 0.1
"""Share of rows that pass through from which they are worth telling from the others."""

_NEARLY_ALL = 0.8
"""Share of all entries in windows from which one product with all of them is faster: every group of
rows has its samples brought into the order of a product for itself."""

_WORTH = 0.6
"""Operations of rows in several products, beside those of others, from which they are worth it."""


def cut_rows(
    cascade: Cascade,
    axis: int,
    rows: Array | Indices | Rows,
    negligible: float = NEGLIGIBLE,
    *,
    noisy: bool = True,
) -> AxisRows:
    """Return rows of an axis that is kept in samples as they are applied to parts of a grid.

    Parameters
    ----------
    cascade
        A cascade; its data is not looked at.
    axis
        The axis.
    rows
        What answers along the axis: indices, a matrix, or an operator.
    negligible
        Length of the entries outside a window, as a vector, beside that of all entries.
    noisy
        Whether the noise of solving is to stay in the rows: see :func:`noise_in`.
    """
    samples = cascade.shape[axis]
    if not isinstance(rows, np.ndarray):
        return Whole(rows, samples)
    if rows.ndim == 1:
        return Taken(np.asarray(rows, np.intp), samples)
    matrix: Array = np.asarray(rows, np.float64)
    nodes = _unit_rows(matrix)
    if (nodes >= 0).mean() < _MANY or (nodes >= 0).all():
        return _cut_matrix(cascade, axis, matrix, negligible, noisy)
    return Mixed(nodes, _cut_matrix(cascade, axis, matrix[nodes < 0], negligible, noisy))


def negligible_in(cascade: Cascade, axis: int, *, single: bool) -> float:
    """Return what is negligible in the rows of an axis, for data in single or double precision.

    Solving with a small ridge leaves noise of random signs in the rows. Data in single precision
    does not tell it from nothing, while a product with it would take most of the time.
    """
    ridge, samples = cascade.levels[axis].ridge, cascade.shape[axis]
    if not single:
        return NEGLIGIBLE
    noise = 2.0 * np.finfo(float).eps * math.sqrt(samples) / ridge if ridge else 0.0
    return min(max(NEGLIGIBLE_IN_SINGLE, noise), _MOST_NEGLIGIBLE)


def noise_in(cascade: Cascade, axis: int) -> float:
    """Return the length of the noise of solving in each row of an axis, as far as it is left out.

    Noise has as many directions as there are samples, so that rows of few directions seem to have
    many. Answers without it are no farther from those of an exact solve.
    """
    factor, ridge = _spectrum(cascade, axis), cascade.levels[axis].ridge
    return 0.0 if factor is None else min(_noise_of(factor, ridge), _MOST_NOISE)


def _spectrum(cascade: Cascade, axis: int) -> Spectrum | None:
    """Return the spectrum of a level that has a ridge; None if it is solved for in another way."""
    factor = cascade.factor(axis) if cascade.levels[axis].ridge else None
    return factor if isinstance(factor, Spectrum) else None


def _noise_of(factor: Spectrum, ridge: float) -> float:
    """Return the length of the noise of solving in each row."""
    least = ridge + (factor.values[-1] if factor.rank == len(factor.vectors) else 0.0)
    return _NOISE * float(np.finfo(float).eps * factor.values[0] / least)


def _unit_rows(matrix: Array) -> Indices:
    """Return the place of the 1 in rows that have nothing else, -1 for other rows."""
    units = (np.count_nonzero(matrix, axis=1) == 1) & (matrix.max(axis=1) == 1.0)
    return np.where(units, matrix.argmax(axis=1), -1)


def _cut_matrix(
    cascade: Cascade, axis: int, matrix: Array, negligible: float, noisy: bool
) -> AxisRows:
    """Return rows in the form that costs least."""
    constant, noise = _constant_of(cascade, axis), 0.0 if noisy else noise_in(cascade, axis)
    best: AxisRows = Banded.build(lambda part: matrix[part], len(matrix), constant, negligible)
    if min(matrix.shape) > _MOST_ROWS:
        return best
    for width in WIDTHS:
        if 2 * width <= matrix.shape[1] and len(matrix) * width < _WORTH * best.operations:
            split = Split.build(matrix, width, negligible, noise)
            best = split if _is_worth(split, best) else best
    if _least_directions(matrix) * sum(matrix.shape) < best.operations:
        factored = Factored.build(matrix, negligible, noise)
        best = factored if _is_worth(factored, best) else best
    expressed = None if noisy else _expressed(cascade, axis, matrix)
    if expressed is not None and _is_worth(expressed, best):
        best = expressed
    if isinstance(best, Banded) and best.operations > _NEARLY_ALL * matrix.size:
        best = Dense(Both.of(matrix))
    return best


def _expressed(cascade: Cascade, axis: int, matrix: Array) -> Factored | None:
    """Return rows in the directions that their kernel can express; None if they have others.

    What is beside these is noise of solving, in directions in which eigenvalues are round-off. Data
    that the kernel can express is answered as before, however much noise there is.
    """
    factor = _spectrum(cascade, axis)
    if factor is None:
        return None
    vectors = factor.expressible().vectors
    left = matrix @ vectors
    beside = float(np.linalg.norm(matrix - left @ vectors.T, axis=1).max())
    if beside > min(_OF_NOISE * _noise_of(factor, cascade.levels[axis].ridge), _MOST_BESIDE):
        return None
    return Factored(Dense(Both.of(left)), Dense(Both.of(vectors.T)))


def _is_worth(several: Split | Factored, other: AxisRows) -> bool:
    """Return whether rows in several products take less time than others."""
    share = 1.0 if isinstance(other, Split | Factored) else _WORTH
    in_few_parts = not isinstance(several, Split) or len(several.near) <= 2 * len(several.blocks)
    return in_few_parts and several.operations < share * other.operations


def _least_directions(matrix: Array) -> float:
    """Return a number of principal directions that a matrix is sure to have, without finding them.

    It is the sum of their squared sizes, beside a bound on the largest of these.
    """
    sizes = np.abs(matrix)
    largest = sizes.sum(axis=0).max() * sizes.sum(axis=1).max()
    return float((sizes**2).sum() / largest) if largest else 0.0


def _constant_of(cascade: Cascade, axis: int) -> Constant | None:
    """Return the constant in the kernel of a level, if it has one."""
    level, ones = cascade.levels[axis], np.ones(cascade.shape[axis])
    if level.kernel.is_spline or not level.kernel.constant:
        return None
    factor = cascade.factor(axis)
    if isinstance(factor, LongFactor):
        weights = factor.solve(ones[:, None])[:, 0]
    else:
        weights = factor.inverse(level.ridge) @ ones
    return Constant(level.kernel.constant, np.asarray(weights))
