"""Draws of the errors of answers to functionals: members of ensembles of means and derivatives.

The errors of values are sums of fields, each a product of a covariance along every axis
(:mod:`dkrls_cli.cascade.ensembles`). Functionals act on both arguments of these covariances, as in
:mod:`dkrls_cli.cascade.functionals.bars`, whose variances the draws have: k(q, q') becomes L L'k
between two questions, and R_l becomes L L'k - (L k) C^-1 (L k)'.

A covariance among questions is a matrix, whatever the level: there is no draw in O(m) of means and
derivatives, so up to 4,096 of them can be drawn along an axis.

Cells that were missing and are filled in slices of a model with a ridge per level are data that
err: what they add to an answer is the answer to their errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.drawing.roots import (
    LARGEST,
    Root,
    correlate,
    correlation_root,
    draw_field,
)
from dkrls_cli.cascade.ensembles import Draw, member_rng, split_ridges
from dkrls_cli.cascade.errorbars.joint import JointBars
from dkrls_cli.cascade.errorbars.levels import FilledBars, LevelBars
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.functionals.answers import NO_CELLS, answer_data
from dkrls_cli.cascade.functionals.bars import (
    Part,
    crossed_levels,
    joint_answered,
    joint_noises,
    level_parts,
    noise_shares,
    widening,
)
from dkrls_cli.cascade.functionals.cells import SourceCells
from dkrls_cli.cascade.functionals.detail import Detail, has_detail, split_residuals
from dkrls_cli.cascade.functionals.functional import Functional
from dkrls_cli.cascade.kernels import gram
from dkrls_cli.cascade.spectrum import ROUND_OFF, Spectrum, decompose
from dkrls_cli.cascade.tensors import apply, contract, lay_out
from dkrls_cli.errors import SettingError

DRAWS = 64
"""Draws whose mean square is a variance: a standard error is known to 9 percent then."""

# Seed of the draws behind standard errors: the same model has the same standard errors.
_SEED = 2019

# Numbers of rows of a long level that are solved for at once: 32 MB.
_AT_ONCE = 2**22


def functional_draws(
    bars: LevelBars | JointBars | FilledBars,
    cascade: Cascade,
    asked: Sequence[Functional],
    *,
    spread: Collection[int] | None = None,
    smooth: bool = False,
    cells: Mapping[int, SourceCells] = NO_CELLS,
    seed: int = 0,
) -> Draw:
    """Return a function that draws the deviation of member i from answers to functionals.

    Parameters
    ----------
    bars
        Error bars of a complete grid, or of one with filled cells in slices.
    cascade, asked, smooth, cells
        The model and what is asked of it, as for
        :func:`dkrls_cli.cascade.functionals.answers.answer_blocks`.
    spread
        Axes that are no part of points; None: a product grid.
    seed
        Seed of all members. Member i depends on the seed and on i alone.

    Raises
    ------
    SettingError
        If there are more questions along an axis than can be drawn together.
    """
    if isinstance(bars, FilledBars):
        how: dict[str, Any] = {"spread": spread, "smooth": smooth, "cells": cells}
        filled = _filled_draws(bars, cascade, asked, seed, **how)
        observed = functional_draws(bars.level_bars, cascade, asked, seed=seed, **how)
        return lambda member: observed(member) + filled(member)
    layout = _Layout.of(cascade.covariance, asked, spread)
    if 0 in layout.shape:
        return lambda member: np.zeros(layout.shape)
    if isinstance(bars, JointBars):
        return joint_functional_draws(layout, bars, smooth, seed, cells)
    parts = level_parts(bars, cascade, asked, smooth, cells)
    return _level_draws(layout, bars, parts, smooth, seed)


@dataclass(frozen=True, eq=False)
class _Layout:
    """Functionals by the axes of the answers: one level each, or all levels of points.

    Attributes
    ----------
    cascade, asked
        The model, and what is asked of every level.
    axes
        The levels of every axis of the answers.
    spread
        Axes that are no part of points; None: a product grid.
    """

    cascade: Cascade
    asked: tuple[Functional, ...]
    axes: tuple[tuple[int, ...], ...]
    spread: tuple[int, ...] | None

    @classmethod
    def of(
        cls, cascade: Cascade, asked: Sequence[Functional], spread: Collection[int] | None
    ) -> _Layout:
        """Return the layout of a product grid, or of points that share the axes in `spread`.

        Raises
        ------
        SettingError
            If there are too many questions along an axis.
        """
        axes: tuple[tuple[int, ...], ...] = tuple((level,) for level in range(cascade.ndim))
        if spread is not None:
            own = tuple(level for level in range(cascade.ndim) if level not in spread)
            axes = (own, *((level,) for level in sorted(spread)))
        for levels in axes:
            count = len(asked[levels[0]])
            if count > LARGEST:
                name = cascade.levels[levels[0]].name
                where = "at points" if len(levels) > 1 else f"along '{name}'"
                raise SettingError(
                    f"An ensemble of {count} means or derivatives {where} is too large: their "
                    f"errors are correlated, each with each. Ask for {LARGEST} at most."
                )
        kept = None if spread is None else tuple(sorted(spread))
        return cls(cascade, tuple(asked), axes, kept)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the answers."""
        return tuple(len(self.asked[levels[0]]) for levels in self.axes)

    def lay_out(self, vectors: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return one vector per level in shapes that broadcast to that of the answers."""
        if self.spread is not None:
            return lay_out(vectors, self.spread)
        return list(np.meshgrid(*vectors, indexing="ij", sparse=True))

    def prior(self, level: int) -> Array:
        """Return L L'k of a level (q, q), computed once."""
        if level not in self._priors:
            self._priors[level] = self.asked[level].covariance(self.cascade.levels[level].kernel)
        return self._priors[level]

    @cached_property
    def _priors(self) -> dict[int, Array]:
        """The covariances of levels that have been computed so far."""
        return {}


def root_of(covariance: Array, variance: Array) -> Root:
    """Return a root of a covariance matrix (n, n) with these variances for its diagonal."""
    here = np.flatnonzero(variance > 0)
    inner = correlate(covariance[np.ix_(here, here)], variance[here])
    root = correlation_root(inner) if here.size else Root(np.zeros((0, 1)), 1)
    return root.times(np.sqrt(variance[here])).within(here, variance.size)


# A ridge per level --------------------------------------------------------------------------------


def _level_draws(
    layout: _Layout, bars: LevelBars, parts: Sequence[Part], smooth: bool, seed: int
) -> Draw:
    terms = [
        found
        for axis in range(len(layout.axes))
        if (found := _term(layout, bars, parts, smooth, axis))
    ]
    if crossed := crossed_levels(parts):
        terms.append(_crossed_term(layout, parts, crossed))
    whites = reduce(np.add, layout.lay_out([part.white for part in parts]))
    averaged = reduce(np.multiply, layout.lay_out([part.averaged for part in parts]))
    noise = np.sqrt(whites * averaged)
    between = layout.lay_out([part.between for part in parts])
    local = layout.lay_out([part.local for part in parts])
    widths = np.sqrt(reduce(np.multiply, local, bars.factors[tuple(between)]))

    def deviation(member: int) -> Array:
        rng = member_rng(seed, member)
        result = noise * rng.standard_normal(layout.shape)
        for roots in terms:
            result += draw_field(rng, roots)
        return np.asarray(widths * result)

    return deviation


def _term(
    layout: _Layout, bars: LevelBars, parts: Sequence[Part], smooth: bool, axis: int
) -> list[Root] | None:
    """Return the roots along all axes of what the levels of one axis add; None if nothing."""
    levels = [level for level in layout.axes[axis] if parts[level].variance.any()]
    if not levels:
        return None
    size = layout.shape[axis]
    matrix, total = np.zeros((size, size)), np.zeros(size)
    for level in levels:
        own, variance = _own_covariance(layout, bars, level, smooth), parts[level].variance
        for other in layout.axes[axis]:
            if other != level:
                own, variance = own * _related(layout, other), variance * parts[other].ratio
        matrix += own
        total += variance
    roots = [_beside(layout, parts, each) for each in layout.axes]
    roots[axis] = root_of(matrix, total)
    return roots


def _crossed_term(layout: _Layout, parts: Sequence[Part], crossed: Sequence[int]) -> list[Root]:
    """Return the roots along all axes of slopes of noise by several levels."""
    noise = sum(float(parts[level].single.max()) for level in crossed)
    roots = []
    for place, levels in enumerate(layout.axes):
        related = [
            _noise_slopes(layout, level) if level in crossed else _related(layout, level)
            for level in levels
        ]
        sizes = [parts[level].steep if level in crossed else parts[level].ratio for level in levels]
        scale = noise if place == 0 else 1.0
        matrix, variance = reduce(np.multiply, related), reduce(np.multiply, sizes)
        roots.append(root_of(scale * matrix, scale * variance))
    return roots


def _noise_slopes(layout: _Layout, level: int) -> Array:
    """Return the covariance of slopes of noise of variance 1 along a level (q, q)."""
    kernel, nodes = layout.cascade.levels[level].kernel, layout.cascade.coordinates[level]
    return Detail(kernel, nodes).covariance(layout.asked[level], 1.0, 0.0)


def _beside(layout: _Layout, parts: Sequence[Part], levels: Sequence[int]) -> Root:
    """Return a root of how errors of other levels go together along an axis."""
    related = reduce(np.multiply, [_related(layout, level) for level in levels])
    return root_of(related, reduce(np.multiply, [parts[level].ratio for level in levels]))


def _related(layout: _Layout, level: int) -> Array:
    """Return how errors go together along a level that is not their own: L L'k / k(q, q)."""
    return np.asarray(layout.prior(level) / layout.cascade.levels[level].kernel.variance)


def _own_covariance(layout: _Layout, bars: LevelBars, level: int, smooth: bool) -> Array:
    """Return s^2 (L L'k - (L k) C^-1 (L k)' + mu N) of a level (q, q), and slopes of detail."""
    cascade, asked = layout.cascade, layout.asked[level]
    own = cascade.levels[level]
    shared = split_ridges(cascade)[1][level]
    shares = noise_shares(cascade, level, asked)
    found = layout.prior(level) - _explained(cascade, level, asked)
    found += shared * np.asarray(shares @ shares.T)
    if has_detail(own, asked, smooth):
        detail = Detail(own.kernel, cascade.coordinates[level])
        single, other = (
            parts[level] for parts in split_residuals(cascade, bars.scales, bars.errors)
        )
        found += detail.covariance(asked, single, other)
    width = np.sqrt(bars.scales[level] * widening(bars, cascade, level, asked))
    found *= np.multiply.outer(width, width)
    return found


def _explained(cascade: Cascade, level: int, asked: Functional) -> Array:
    """Return (L k) C^-1 (L k)' of a level with its own ridge (q, q)."""
    own, factor, nodes = cascade.levels[level], cascade.factor(level), cascade.coordinates[level]
    if not isinstance(factor, LongFactor):
        rows = asked.rows(own.kernel, nodes) @ factor.vectors
        return np.asarray((rows / (factor.values + own.ridge)) @ rows.T)
    found, step = np.empty((len(asked), len(asked))), max(1, _AT_ONCE // nodes.size)
    whole = asked.rows(own.kernel, nodes)
    for start in range(0, len(asked), step):
        part = slice(start, start + step)
        found[:, part] = whole @ factor.solve(np.ascontiguousarray(whole[part].T))
    return found


# Filled cells -------------------------------------------------------------------------------------


def filled_variance(
    bars: FilledBars, cascade: Cascade, asked: Sequence[Functional], **how: Any
) -> Array:
    """Return the variance that the errors of filled cells add to answers, from draws.

    `how` is told :func:`dkrls_cli.cascade.functionals.answers.answer_data`.
    """
    draw = _filled_draws(bars, cascade, asked, _SEED, **how)
    return np.asarray(sum(draw(number) ** 2 for number in range(DRAWS)) / DRAWS)


def _filled_draws(
    bars: FilledBars, cascade: Cascade, asked: Sequence[Functional], seed: int, **how: Any
) -> Draw:
    """Return the draws of what the errors of filled cells add to answers."""
    draw = bars.deviations(cascade, cascade.coordinates, seed=seed)
    answer = answer_data(cascade, asked, **how)
    return lambda member: answer(draw(member))


# A joint ridge ------------------------------------------------------------------------------------


def joint_functional_draws(
    layout: _Layout,
    bars: JointBars,
    smooth: bool,
    seed: int,
    cells: Mapping[int, SourceCells] = NO_CELLS,
) -> Draw:
    """Return the draws of a joint ridge: from the posterior, in the parts that have roots."""
    posterior = _Posterior(layout)
    terms, ridge = posterior.terms(), layout.cascade.joint_ridge or 0.0
    noises = layout.lay_out(joint_noises(layout.cascade, layout.asked, smooth))
    noise = np.sqrt(ridge * reduce(np.multiply, noises))
    opened = joint_answered(layout.cascade, layout.asked, smooth, cells)
    width = math.sqrt(bars.scale) * reduce(np.maximum, layout.lay_out(opened))

    def deviation(member: int) -> Array:
        rng = member_rng(seed, member)
        result = noise * rng.standard_normal(layout.shape)
        result += posterior.draw_spanned(rng)
        for roots in terms:
            result += draw_field(rng, roots)
        return np.asarray(width * result)

    return deviation


@dataclass(frozen=True, eq=False)
class _Posterior:
    """The posterior covariance under a joint ridge: see :mod:`dkrls_cli.cascade.ensembles`.

    With B_l = (L k) V_l / sqrt(w_l) and M_l = B_l B_l', it is prod L L'k - prod M_l and
    (prod B_l) diag(lambda / (p + lambda)) (prod B_l)'.
    """

    layout: _Layout

    @cached_property
    def spectra(self) -> list[Spectrum]:
        """The spectrum of every level, of a long one as well; eigenvalues of 0 are round-off."""
        cascade, found = self.layout.cascade, []
        for axis, (level, nodes) in enumerate(
            zip(cascade.levels, cascade.coordinates, strict=True)
        ):
            factor = cascade.factor(axis)
            if isinstance(factor, LongFactor):
                if nodes.size > LARGEST:
                    raise SettingError(
                        f"An ensemble of means or derivatives from {nodes.size} samples of "
                        f"'{level.name}' is too large under a joint ridge. Fit with a ridge per "
                        "level, or a part of the grid."
                    )
                factor = decompose(gram(level.kernel, nodes, nodes))
            least = ROUND_OFF * factor.values[0]
            found.append(Spectrum(factor.vectors, np.maximum(factor.values, least)))
        return found

    @cached_property
    def rows(self) -> list[Array]:
        """B of every level (q, rank)."""
        cascade, asked = self.layout.cascade, self.layout.asked
        return [
            (each.rows(level.kernel, nodes) @ own.vectors) / np.sqrt(own.values)
            for each, level, nodes, own in zip(
                asked, cascade.levels, cascade.coordinates, self.spectra, strict=True
            )
        ]

    def terms(self) -> list[list[Root]]:
        """Return the roots along all axes of prod L L'k - prod M, a list for every product.

        Points come last, so that no root of their M is needed.
        """
        axes = self.layout.axes
        order = sorted(range(len(axes)), key=lambda axis: len(axes[axis]) > 1)
        found = []
        for place, axis in enumerate(order):
            prior = self._along(axis, self.layout.prior)
            left = prior - self._along(axis, self._spanned)
            variance = np.maximum(left.diagonal(), ROUND_OFF * prior.diagonal())
            roots = {axis: root_of(left, variance)}
            roots |= {before: self._spanned_root(before) for before in order[:place]}
            roots |= {after: self._prior_root(after) for after in order[place + 1 :]}
            found.append([roots[each] for each in range(len(axes))])
        return found

    def _along(self, axis: int, covariance: Callable[[int], Array]) -> Array:
        """Return the product of the covariances of all levels of an axis of the answers."""
        return np.asarray(reduce(np.multiply, map(covariance, self.layout.axes[axis])))

    def _spanned(self, level: int) -> Array:
        return np.asarray(self.rows[level] @ self.rows[level].T)

    def _prior_root(self, axis: int) -> Root:
        prior = self._along(axis, self.layout.prior)
        return root_of(prior, prior.diagonal().copy())

    def _spanned_root(self, axis: int) -> Root:
        rows = self.rows[self.layout.axes[axis][0]]
        return Root(rows, rows.shape[1])

    def draw_spanned(self, rng: np.random.Generator) -> Array:
        """Return a draw of what noise leaves open of all that the samples span."""
        ridge = self.layout.cascade.joint_ridge or 0.0
        products = reduce(np.multiply.outer, [own.values for own in self.spectra])
        draw = np.sqrt(ridge / (products + ridge)) * rng.standard_normal(products.shape)
        if self.layout.spread is None:
            return apply(draw, self.rows)
        return contract(
            draw,
            self.layout.shape[0],
            lambda level, part: self.rows[level][part],
            {},
            max(draw.shape),
            {level: self.rows[level] for level in self.layout.spread},
        )
