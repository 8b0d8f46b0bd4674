"""Variances of answers to functionals: the error bars of values, carried through every level.

A ridge per level
-----------------
The errors of values are a sum, over the levels, of fields (:mod:`dkrls_cli.cascade.ensembles`) with
the covariance

    s_l^2 (R_l(q, q') + mu_l [q_l = q'_l]) * product over j != l of k_j(q, q') / k_j(q, q)

and of white noise. Functionals of all levels act on both of its arguments: R_l becomes
L L'R_l = L L'k - (L k)' C^-1 (L k), and a correlation along another axis becomes
L L'k_j / k_j(q, q): 1 for values, less for means, as errors average out, and for derivatives the
steepness of errors. Noise that is independent from cell to cell averages out over the cells that an
interval covers, and has no derivative. A derivative passes through the data, so that it has the
slopes of noise and of detail in the data (:mod:`dkrls_cli.cascade.functionals.detail`). Noise is
as rough along all axes: a derivative by several of them has the product of its slopes beside.

A joint ridge
-------------
The variance is s^2 times that of the exact posterior, prod L L'k - (prod L k)' C^-1 (prod L k), and
the noise.

Data that are means over cells are taken for values at the coordinates here, except that means over
unions of cells are known: so far the errors of a sharpened field are those of the field.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices, Slices
from dkrls_cli.cascade.calibration.local import LocalScale
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.ensembles import split_ridges
from dkrls_cli.cascade.errorbars.joint import JointBars
from dkrls_cli.cascade.errorbars.levels import LevelBars
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.functionals.answers import NO_CELLS
from dkrls_cli.cascade.functionals.cells import SourceCells, known_means
from dkrls_cli.cascade.functionals.derivatives import ORDERS
from dkrls_cli.cascade.functionals.detail import Detail, has_detail, split_residuals
from dkrls_cli.cascade.functionals.functional import Derivatives, Functional, Means, Values
from dkrls_cli.cascade.functionals.quadrature import make_rule
from dkrls_cli.cascade.functionals.rows import kernel_rows, left_variance, long_variance
from dkrls_cli.cascade.solvers import JointSolver
from dkrls_cli.cascade.tensors import along, apply, contract, lay_out
from dkrls_cli.circle import nearest
from dkrls_cli.errors import SettingError

# Numbers of a long level that are computed at once: 32 MB.
_ROWS = 2**22


def variance_blocks(
    bars: LevelBars | JointBars,
    cascade: Cascade,
    asked: Sequence[Functional],
    *,
    smooth: bool = False,
    cells: Mapping[int, SourceCells] = NO_CELLS,
) -> Callable[[Slices], Array]:
    """Return a function that computes the variance of one block of a product grid of functionals.

    The error bars are those of a complete grid. The data are means over `cells` along some axes.
    """
    if isinstance(bars, JointBars):
        return _joint_blocks(bars, cascade, asked, smooth, cells)
    parts = level_parts(bars, cascade, asked, smooth, cells)

    def variance(part: Slices) -> Array:
        return _combine(bars, [p[s] for p, s in zip(parts, part, strict=True)], None)

    return variance


def variance_at_points(
    bars: LevelBars | JointBars,
    cascade: Cascade,
    asked: Sequence[Functional],
    *,
    spread: Collection[int] = (),
    smooth: bool = False,
    cells: Mapping[int, SourceCells] = NO_CELLS,
) -> Array:
    """Return the variance at scattered points: one functional of every axis for each point.

    Axes in `spread` are no part of the points: see :meth:`Cascade.predict_points`.
    """
    if isinstance(bars, JointBars):
        return _joint_points(bars, cascade, asked, spread, smooth, cells)
    return _combine(bars, level_parts(bars, cascade, asked, smooth, cells), spread)


# A ridge per level --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Part:
    """Parts of the variance that one level adds at its own functionals (q,).

    Attributes
    ----------
    between
        1 where the level answers, 0 where it is passed through.
    variance
        s^2 (L L'R + mu N), 0 where it is passed through.
    white
        s^2 times the white noise of the level, 0 where it is passed through.
    ratio
        L L'k / k(q, q).
    averaged
        N: what the functional leaves of the variance of independent noise.
    local
        Factor of the whole variance by place, 1 where the level is passed through.
    steep
        The variance of slopes of noise of variance 1, where a derivative passes through it; else 0.
    single
        s^2 times what of the ridge may be noise of single cells.
    """

    between: Indices
    variance: Array
    white: Array
    ratio: Array
    averaged: Array
    local: Array
    steep: Array
    single: Array

    def __getitem__(self, part: slice) -> Part:
        """Return what the level adds at some of its functionals."""
        return Part(*(vector[part] for vector in self.vectors))

    @property
    def vectors(self) -> tuple[NDArray[Any], ...]:
        """All vectors, in the order of the attributes."""
        own = self.between, self.variance, self.white, self.ratio, self.averaged
        return *own, self.local, self.steep, self.single


def level_parts(
    bars: LevelBars,
    cascade: Cascade,
    asked: Sequence[Functional],
    smooth: bool,
    cells: Mapping[int, SourceCells],
) -> list[Part]:
    """Return what every level adds to the variance.

    Raises
    ------
    SettingError
        If the errors of a spline have no derivative.
    """
    _refuse_rough_errors(cascade, asked)
    cascade = cascade.covariance
    return [
        _level_part(
            cascade,
            axis,
            each,
            answered(cascade, axis, each, smooth, cells.get(axis)),
            bars,
            smooth,
        )
        for axis, each in enumerate(asked)
    ]


def _refuse_rough_errors(cascade: Cascade, asked: Sequence[Functional]) -> None:
    """Raise SettingError if the errors of a spline have no derivative, though it has one."""
    for level, each in zip(cascade.levels, asked, strict=True):
        errors = level.kernel.covariance.family
        if isinstance(each, Derivatives) and each.order > ORDERS[errors]:
            raise SettingError(
                f"The errors of the {level.kernel.family} spline along '{level.name}' are too "
                "rough for a standard error of its derivative. Ask without standard errors, or fit "
                f"with matern52 along '{level.name}'.",
                setting="kernel",
            )


def answered(
    cascade: Cascade, axis: int, asked: Functional, smooth: bool, source: SourceCells | None
) -> Indices:
    """Return 1 where a level answers, and 0 where the answer is its data (q,)."""
    if source is not None and source.are_means:
        known = np.zeros(len(asked), bool) if smooth else known_means(source, asked)
        return (~known).astype(np.intp)
    if isinstance(asked, Values):
        return (cascade.find_nodes(axis, asked.query, smooth) < 0).astype(np.intp)
    return np.ones(len(asked), np.intp)


def _level_part(
    cascade: Cascade,
    axis: int,
    asked: Functional,
    between: Indices,
    bars: LevelBars,
    smooth: bool,
) -> Part:
    kernel = cascade.levels[axis].kernel
    white, shared = (parts[axis] for parts in split_ridges(cascade))
    single, detail = (parts[axis] for parts in split_residuals(cascade, bars.scales, bars.errors))
    scale = bars.scales[axis] * widening(bars, cascade, axis, asked)
    scale = np.where(between, scale, 0.0)  # that of a level which is passed through may be unknown
    here = np.flatnonzero(between)
    averaged = noise_left(cascade, axis, asked)
    variance = np.zeros(len(asked))
    variance[here] = left_variance(cascade, axis, asked.take(here))
    variance += shared * averaged * between
    variance *= scale
    variance += scale * detail_variance(cascade, axis, asked, smooth, single, detail)
    return Part(
        between,
        variance,
        scale * white,
        np.asarray(asked.prior(kernel) / kernel.variance),
        averaged,
        np.where(between, _local_scale(bars, cascade, axis, asked), 1.0),
        detail_variance(cascade, axis, asked, smooth, 1.0, 0.0),
        np.asarray(scale * single),
    )


def crossed_levels(parts: Sequence[Part]) -> list[int]:
    """Return the levels of a derivative by several of them that passes through noise; or none."""
    steep = [level for level, part in enumerate(parts) if part.steep.any()]
    return steep if len(steep) > 1 else []


def detail_variance(
    cascade: Cascade, axis: int, asked: Functional, smooth: bool, white: float, shared: float
) -> Array:
    """Return the variance of slopes of the detail of a level (q,).

    Of its ridge, `white` is what may be noise of single cells, and `shared` what is detail.
    """
    level = cascade.levels[axis]
    if not has_detail(level, asked, smooth):
        return np.zeros(len(asked))
    return Detail(level.kernel, cascade.coordinates[axis]).variance(asked, white, shared)


def _local_scale(bars: LevelBars, cascade: Cascade, axis: int, asked: Functional) -> Array:
    """Return the factor of the variance by place (q,): of a mean, that over its interval."""
    return _average_scale(bars.local[axis] if bars.local else None, cascade, axis, asked)


def widening(bars: LevelBars, cascade: Cascade, axis: int, asked: Functional) -> Array:
    """Return the factor by which errors of a level fall less than its kernel says (q,).

    Of a mean it is that over its interval; slopes have that of the values.
    """
    return _average_scale(bars.growth[axis] if bars.growth else None, cascade, axis, asked)


def _average_scale(
    scale: LocalScale | None, cascade: Cascade, axis: int, asked: Functional
) -> Array:
    """Return a scale by place where a functional asks (q,)."""
    kernel = cascade.levels[axis].kernel
    if scale is None:
        return np.ones(len(asked))
    if isinstance(asked, Values | Derivatives):
        return scale.at(asked.query, kernel.period)
    assert isinstance(asked, Means)
    rule = make_rule(
        kernel, asked.low, asked.high, cascade.coordinates[axis], latitude=asked.latitude
    )
    return rule.average(scale.at(rule.points, kernel.period))


def noise_left(cascade: Cascade, axis: int, asked: Functional) -> Array:
    """Return what functionals leave of the variance of noise that is independent in every cell.

    A mean leaves the sum of the squared shares of the cells that it covers, each the places nearest
    to one coordinate.
    """
    if not isinstance(asked, Means):
        return np.full(len(asked), asked.scale)
    which, _, shares = _cell_shares(cascade, axis, asked)
    return np.asarray(np.bincount(which, shares**2, len(asked)), np.float64)


def _cell_shares(cascade: Cascade, axis: int, asked: Means) -> tuple[Indices, Indices, Array]:
    """Return intervals, cells, and the share of every such cell in its interval."""
    kernel, nodes = cascade.levels[axis].kernel, cascade.coordinates[axis]
    rule = make_rule(kernel, asked.low, asked.high, nodes, latitude=asked.latitude)
    which = np.repeat(np.arange(len(asked)), np.diff(rule.starts))
    pairs = which * nodes.size + nearest(rule.points, nodes, kernel.period)[0]
    cells, inverse = np.unique(pairs, return_inverse=True)
    shares = np.bincount(inverse, rule.weights, cells.size)
    return cells // nodes.size, cells % nodes.size, np.asarray(shares, np.float64)


def noise_shares(cascade: Cascade, axis: int, asked: Functional) -> Array:
    """Return the shares (q, n) of independent noises in answers; N is the sum of their squares.

    The noises are those of cells for means, of places for values; derivatives have none.
    """
    if isinstance(asked, Means):
        found = np.zeros((len(asked), cascade.shape[axis]))
        which, cells, shares = _cell_shares(cascade, axis, asked)
        found[which, cells] = shares
        return found
    if isinstance(asked, Values):
        places, where = np.unique(asked.query, return_inverse=True)
        return np.asarray(where[:, None] == np.arange(places.size), np.float64)
    return np.zeros((len(asked), 1))


def _combine(bars: LevelBars, parts: Sequence[Part], spread: Collection[int] | None) -> Array:
    """Return the variance on a product grid, or at points that share the axes in `spread`."""

    def laid_out(vectors: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        if spread is not None:
            return lay_out(vectors, spread)
        return list(np.meshgrid(*vectors, indexing="ij", sparse=True))

    columns = zip(*(part.vectors for part in parts), strict=True)
    between, variances, whites, ratios, averaged, local, steep, single = (
        laid_out(list(c)) for c in columns
    )
    total: Array = np.zeros(1)
    for place, variance in enumerate(variances):
        others = [ratio for other, ratio in enumerate(ratios) if other != place]
        total = total + reduce(np.multiply, others, variance)
    if crossed := crossed_levels(parts):
        noise = sum(single[level] for level in crossed)
        slopes = [steep[a] if a in crossed else ratio for a, ratio in enumerate(ratios)]
        total = total + reduce(np.multiply, slopes, noise)
    total = total + reduce(np.add, whites) * reduce(np.multiply, averaged)
    factor = reduce(np.multiply, local, bars.factors[tuple(between)])
    return np.asarray(factor * total)


# A joint ridge ------------------------------------------------------------------------------------


def _joint_blocks(
    bars: JointBars,
    cascade: Cascade,
    asked: Sequence[Functional],
    smooth: bool,
    cells: Mapping[int, SourceCells],
) -> Callable[[Slices], Array]:
    solver = _joint_solver(cascade)
    squares = [
        np.arange(len(each)) if axis == solver.long else _squares(cascade, axis, each)
        for axis, each in enumerate(asked)
    ]
    if solver.long is None:
        inverse = 1.0 / solver.eigenvalues()
    else:
        inverse = _long_explained(cascade, solver, asked[solver.long])
    priors, noises = _priors(cascade, asked), joint_noises(cascade, asked, smooth)
    opened = joint_answered(cascade, asked, smooth, cells)

    def variance(part: Slices) -> Array:
        explained = apply(inverse, [row[p] for row, p in zip(squares, part, strict=True)])
        prior = reduce(np.multiply.outer, [v[p] for v, p in zip(priors, part, strict=True)])
        noise = reduce(np.multiply.outer, [v[p] for v, p in zip(noises, part, strict=True)])
        left = bars.scale * (np.maximum(prior - explained, 0.0) + solver.ridge * noise)
        here = [each[p] for each, p in zip(opened, part, strict=True)]
        return np.asarray(left * reduce(np.maximum.outer, here))

    return variance


def _joint_points(
    bars: JointBars,
    cascade: Cascade,
    asked: Sequence[Functional],
    spread: Collection[int],
    smooth: bool,
    cells: Mapping[int, SourceCells],
) -> Array:
    solver = _joint_solver(cascade)
    if solver.long is not None and solver.long not in spread:
        explained = _explained_beside_long(cascade, solver, asked, spread)
    else:
        explained = _explained_at_points(cascade, solver, asked, spread)
    prior = reduce(np.multiply, lay_out(_priors(cascade, asked), spread))
    noise = reduce(np.multiply, lay_out(joint_noises(cascade, asked, smooth), spread))
    opened = reduce(np.maximum, lay_out(joint_answered(cascade, asked, smooth, cells), spread))
    left = bars.scale * (np.maximum(prior - explained, 0.0) + solver.ridge * noise)
    return np.asarray(left * opened)


def joint_answered(
    cascade: Cascade,
    asked: Sequence[Functional],
    smooth: bool,
    cells: Mapping[int, SourceCells],
) -> list[Indices]:
    """Return 1 where a level answers under a joint ridge; where none does, the answer is the data.

    That is so for means over unions of cells, where the data are means over cells. All others are
    answers.
    """
    if not any(source.are_means for source in cells.values()):
        return [np.ones(len(each), np.intp) for each in asked]
    return [
        answered(cascade, axis, each, smooth, cells.get(axis)) for axis, each in enumerate(asked)
    ]


def _explained_at_points(
    cascade: Cascade, solver: JointSolver, asked: Sequence[Functional], spread: Collection[int]
) -> Array:
    """Return the variance that the data explains at points that have no long coordinate."""
    own = [axis for axis in range(cascade.ndim) if axis not in spread]
    tensor = (
        1.0 / solver.eigenvalues()
        if solver.long is None
        else _long_explained(cascade, solver, asked[solver.long])
    )
    shared: dict[int, NDArray[Any]] = {
        axis: np.arange(len(each)) if axis == solver.long else _squares(cascade, axis, each)
        for axis, each in enumerate(asked)
        if axis in spread
    }

    def rows(axis: int, part: slice) -> Array:
        return _squares(cascade, axis, asked[axis][part])

    return contract(tensor, len(asked[own[0]]), rows, {}, max(cascade.shape), shared)


def _explained_beside_long(
    cascade: Cascade, solver: JointSolver, asked: Sequence[Functional], spread: Collection[int]
) -> Array:
    """Return the variance that the data explains at points, one of whose coordinates is long."""
    long = solver.long
    assert long is not None
    explained = np.empty((len(asked[long]), *(len(asked[axis]) for axis in sorted(spread))))
    step = max(1, _ROWS // math.prod(cascade.spectrum(axis).rank for axis in solver.short))
    for start in range(0, len(explained), step):
        part = slice(start, start + step)
        left = np.moveaxis(_long_explained(cascade, solver, asked[long][part]), long, 0)
        for place, axis in reversed(list(enumerate(solver.short, 1))):
            if axis in spread:
                left = along(left, place, _squares(cascade, axis, asked[axis]))
            else:
                turned = np.moveaxis(left, place, 1)
                left = np.einsum(
                    "pr...,pr->p...", turned, _squares(cascade, axis, asked[axis][part])
                )
        explained[part] = left
    return explained


def _joint_solver(cascade: Cascade) -> JointSolver:
    solver = cascade.solver
    assert isinstance(solver, JointSolver)
    return solver


def _squares(cascade: Cascade, axis: int, asked: Functional) -> Array:
    """Return the squared rows of a level that is not long, in its eigenbasis."""
    rows = kernel_rows(cascade, axis, asked)
    assert isinstance(rows, np.ndarray)
    return np.asarray(rows**2)


def _long_explained(cascade: Cascade, solver: JointSolver, asked: Functional) -> Array:
    """Return (L k)' (p K + ridge)^-1 (L k) of the long axis, in every direction of the others."""
    assert solver.long is not None
    level = cascade.levels[solver.long]
    prior = asked.prior(level.kernel)

    def explained(factor: LongFactor) -> Array:
        return np.asarray(prior - long_variance(factor, asked, level.name))

    return solver.long_variances(explained)


def _priors(cascade: Cascade, asked: Sequence[Functional]) -> list[Array]:
    return [each.prior(level.kernel) for each, level in zip(asked, cascade.levels, strict=True)]


def joint_noises(
    cascade: Cascade, asked: Sequence[Functional], smooth: bool, *, white: float = 1.0
) -> list[Array]:
    """Return what functionals of every level leave of the variance of independent noise.

    With a derivative, that is the variance of the slope of the detail, of which the share `white`
    may be noise, where the residual has a share in the answer; where it has none, the answer is one
    of the smooth field.
    """
    slopes = any(isinstance(each, Derivatives) for each in asked)
    found = []
    for axis, each in enumerate(asked):
        if isinstance(each, Derivatives):
            found.append(detail_variance(cascade, axis, each, smooth, white, 1.0 - white))
        elif slopes and isinstance(each, Values):
            found.append(np.asarray(cascade.find_nodes(axis, each.query) >= 0, np.float64))
        else:
            found.append(noise_left(cascade, axis, each))
    return found
