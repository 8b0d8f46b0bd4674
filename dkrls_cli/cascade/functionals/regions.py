"""Variances of means over a region: from how well just these means are predicted.

Averaged over all other axes as the answer is, the data is a series along one level. How far its
samples are off when they are left out is known in closed form
(:func:`dkrls_cli.cascade.errorbars.leaving.leave_out`), and gives the scale s_l^2 of that level for
this region: errors that go together in the region stay in the series, those that do not have
averaged out. Each of several series has a scale of its own, as far as they differ by more than
chance. With L the functional along the level the variance is

    sum over l of s_l^2 (L L'k - (L k)' C^-1 (L k) + lambda_l N),

N being what the functional leaves of independent noise. Nothing is assumed of how errors go
together in space. Under a joint ridge the variance is that of the posterior
(:mod:`dkrls_cli.cascade.functionals.bars`).

Along an axis with a range of the region the variance is that of the settings which the series may
have (:mod:`dkrls_cli.cascade.calibration.averaging`), part of the range by part
(:mod:`dkrls_cli.cascade.functionals.windows`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from dkrls_cli.arrays import Array, Indices, Slices
from dkrls_cli.cascade.calibration.averaging import averaged_variances
from dkrls_cli.cascade.calibration.local import series_scales, student_factor
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars.leaving import copies_of, leave_out
from dkrls_cli.cascade.functionals.answers import NO_CELLS, all_rows
from dkrls_cli.cascade.functionals.bars import answered, noise_left
from dkrls_cli.cascade.functionals.cells import SourceCells
from dkrls_cli.cascade.functionals.functional import Functional, Means, Values
from dkrls_cli.cascade.functionals.rows import left_variance
from dkrls_cli.cascade.functionals.sharpening import CellField, CellRows
from dkrls_cli.cascade.functionals.windows import open_parts
from dkrls_cli.cascade.poles.continuation import Continuation

SeriesMaker: TypeAlias = Callable[[int, Sequence[Functional]], Array]
"""Returns the data less its mean along one axis (m, n), averaged along the others as the questions
tell; that of the axis itself does not count."""

# Questions along an axis that is not averaged which have scales of their own; others have those of
# the nearest.
_MOST = 512

# Part of the errors of samples left out of a series that are independent: neighbours share errors.
_INDEPENDENT = 0.5


@dataclass(frozen=True, eq=False)
class RegionPart:
    """Part of the variance of means over a region that one level adds.

    Attributes
    ----------
    axis
        Its axis.
    left
        What it leaves open of its own questions (q,).
    scales
        The scale of every answer: of size q or 1 along the axis, and of some evenly spread
        questions along the others.
    """

    axis: int
    left: Array
    scales: Array

    def block(self, part: Slices, sizes: Sequence[int]) -> Array:
        """Return a block of the variance of all answers, which have so many questions by axis."""
        places = [
            _nearest_of(sparse, size)[own]
            for own, sparse, size in zip(part, self.scales.shape, sizes, strict=True)
        ]
        left = self.left[part[self.axis]]
        left = left.reshape([-1 if axis == self.axis else 1 for axis in range(len(part))])
        return np.asarray(left * self.scales[np.ix_(*places)])


def region_blocks(
    cascade: Cascade,
    asked: Sequence[Functional],
    *,
    smooth: bool = False,
    cells: Mapping[int, SourceCells] = NO_CELLS,
    poles: Continuation | None = None,
    make: SeriesMaker | None = None,
) -> Callable[[Slices], Array]:
    """Return a function that computes the variance of a block of means, with a ridge per level.

    `poles` are rows of the cascade that go on across the poles. `make` returns the data along one
    axis where the cascade does not hold it.
    """
    parts = region_parts(cascade, asked, smooth, cells, poles, make)
    sizes = [len(each) for each in asked]

    def variance(part: Slices) -> Array:
        none = np.zeros([len(range(size)[own]) for own, size in zip(part, sizes, strict=True)])
        return np.asarray(sum((each.block(part, sizes) for each in parts), none))

    return variance


def region_parts(
    cascade: Cascade,
    asked: Sequence[Functional],
    smooth: bool,
    cells: Mapping[int, SourceCells],
    poles: Continuation | None = None,
    make: SeriesMaker | None = None,
) -> list[RegionPart]:
    """Return what the levels add to the variance, but for those that add nothing."""
    errors, copies = cascade.covariance, copies_of(cascade, poles)
    few = [each.take(_spread_out(len(each))) for each in asked]

    def series(axis: int) -> Array:
        if make is not None:
            return make(axis, few)
        return region_series(cascade, axis, few, smooth, cells)

    found = []
    for axis, each in enumerate(asked):
        source = cells.get(axis)
        if isinstance(each, Means) and not smooth and source is not None and not source.are_means:
            field = CellField.of(cascade, axis, source)
            tell = partial(_told, field, series(axis))
            scales = range_variances(cascade, axis, each, source, tell)
            left = np.ones(len(each))
        else:
            here = np.flatnonzero(answered(cascade, axis, each, smooth, source))
            if not here.size:
                continue
            left = np.zeros(len(each))
            left[here] = left_variance(errors, axis, each.take(here))
            left[here] += errors.levels[axis].ridge * noise_left(errors, axis, each.take(here))
            scales = left_out_scales(cascade, axis, series(axis), copies.get(axis))[None]
        others = [len(some) for other, some in enumerate(few) if other != axis]
        laid_out = np.moveaxis(scales.reshape(len(scales), *others), 0, axis)
        found.append(RegionPart(axis, left, laid_out))
    return found


def _told(field: CellField, series: Array, asked: Functional) -> Array:
    """Return what series (m, n) are along a level with its own ridge (q, n)."""
    return CellRows(field, asked) @ series


def range_variances(
    cascade: Cascade,
    axis: int,
    each: Means,
    cells: SourceCells,
    tell: Callable[[Functional], Array],
) -> Array:
    """Return what a level adds to the variances of means of n series over ranges of it (q, n).

    `tell` returns what the n series are along the axis, asked for something (p, n).
    """
    kernel, nodes = cascade.levels[axis].kernel, cascade.coordinates[axis]
    nodes = nodes if cells.places is None else nodes[cells.places]
    series = tell(Values(nodes))
    found = np.zeros((len(each), series.shape[1]))
    for place in range(len(each)):
        for part in open_parts(cells, each[place : place + 1], nodes):
            answer, near = part.weights @ tell(part.asked), part.near
            told = averaged_variances(kernel, nodes[near], series[near], part.mean, answer)
            found[place] += part.share**2 * told
    return found


def left_out_scales(
    cascade: Cascade, axis: int, series: Array, copies: Indices | None = None
) -> Array:
    """Return s^2 of a level for means over a region (n,).

    They come from samples left out of their series (m, n), of which each has a scale of its own:
    the mean square of what it is off by, wider where few samples tell it. `copies` has the place of
    the sample that each sample copies, -1 where it copies none.
    """
    left = leave_out(cascade, axis, cascade.shape[axis], copies)
    known, predicted = np.split(left.twice @ series, 2)
    squares = (predicted - known) ** 2 / left.variance[:, None]
    return series_scales(squares, _INDEPENDENT * len(squares)) * student_factor(len(squares))


def region_series(
    cascade: Cascade,
    axis: int,
    asked: Sequence[Functional],
    smooth: bool,
    cells: Mapping[int, SourceCells],
) -> Array:
    """Return the data along one axis (m, n), averaged along the others as the answers are."""
    rows = all_rows(cascade, asked, smooth, cells, skip=axis)
    own = cascade.frames[axis]
    operators = [own if other == axis else row for other, row in enumerate(rows)]
    found = np.moveaxis(cascade.apply_centred(operators), axis, 0)
    return found.reshape(len(found), -1)


def _spread_out(size: int) -> Indices:
    """Return some of many questions, evenly spread."""
    return np.unique(np.linspace(0, size - 1, min(size, _MOST)).astype(np.intp))


def _nearest_of(some: int, size: int) -> Indices:
    """Return which of so many evenly spread questions is next to each of all (size,)."""
    steps = (some - 1) / max(size - 1, 1)
    return np.asarray(np.rint(steps * np.arange(size)), np.intp)
