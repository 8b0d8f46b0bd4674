"""Ensembles: draws of the errors of answers, as wide as the error bars and correlated in space.

An error bar tells how far off one answer may be. How far off the mean of a region is depends on how
the errors of its cells go together: independent ones average out, those of a model hardly do. The
deviation of a member is one draw of the errors of all answers at once.

A ridge per level
-----------------
The variance is factor * sum_l s_l^2 (R_l + lambda_l), with R_l = K_l - k C_l^-1 k' what the samples
of level l leave open. The draw is a sum, over the levels, of fields with the covariance

    s_l^2 (R_l(q, q') + mu_l [q_l = q'_l]) * product over j != l of k_j(q, q') / k_j(q, q),

and of white noise. Along its own axis a level errs as its covariance says, and not at all at
training coordinates. Along every other axis its errors reach as far as the data is similar there.
The root of the factor multiplies the sum cell by cell. So it sets the width of each pattern, and
two cells of different patterns stay correlated as the sum is.

A ridge lambda_l is what a level cannot predict from its other samples: noise of single cells, which
is independent from cell to cell, and detail that cells beside share along the other axes, such as
the weather of a day that no other day tells. Noise of single cells is in the ridge of every level.
So it is no more than the least ridge, relative to the variance of its kernel, and that much is
taken for white noise; the rest of a ridge, mu_l, is independent along its own axis only. This is
how the missing cells of slices are filled as well (:mod:`dkrls_cli.gaps.slices`).

Measured on slices held out of six grids, along every dimension: errors of means over boxes, 3 to 12
cells wide, against the band that should hold 90 % of them. Where the ridge is a large part of the
error (air temperature and rain, along time), the band would have to be 0.8 to 1.2 times as wide,
and 1.5 to 2.0 times with all of the ridge as white noise. Elsewhere it matters little. Over all 16
cases means are rather too uncertain than too certain (0.6 times as wide in the geometric mean, 0.1
to 2.5 at the ends): the data is similar further than errors are. Independent errors would be too
certain by factors of 1 to 20.

A joint ridge
-------------
The draw is one of the exact Gaussian posterior. With B_l = k(q, c_l) V_l / sqrt(w_l), and with
M_l = B_l B_l' the part of K_l(q, q) that the samples span, its covariance K - k (K + lambda)^-1 k'
is

    (prod K_l - prod M_l) + (prod B_l) diag(lambda / (p + lambda)) (prod B_l)',

p being the products of the w_l. The first part is the sum over l of products of M_j for all j
before l, K_l - M_l, and K_j for all j after l. Everything has a root along each axis, and a draw
takes no solve. A long level has no eigenvectors. There K stands for M, and in every direction of
the other levels a draw of the prior along it, less its prediction from noisy samples of that draw
(Matheron's rule), for lambda / (p + lambda). The noise of the answers, lambda, is white.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.drawing.fields import Field
from dkrls_cli.cascade.drawing.roots import (
    LARGEST,
    Root,
    Samples,
    correlate,
    correlation_root,
    draw_field,
    kernel_root,
)
from dkrls_cli.cascade.factors.levels import make_factor
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.factors.markov import is_markov
from dkrls_cli.cascade.kernels import gram
from dkrls_cli.cascade.solvers import JointSolver
from dkrls_cli.cascade.spectrum import ROUND_OFF, Spectrum
from dkrls_cli.cascade.tensors import apply, contract
from dkrls_cli.circle import wrap
from dkrls_cli.errors import SettingError

Draw = Callable[[int], Array]
"""Returns the deviation of a member from the answers, by the number of the member."""


def member_rng(seed: int, member: int, stream: int | None = None) -> np.random.Generator:
    """Return the random numbers of a member, the same however many members there are.

    A `stream` has numbers of its own.
    """
    return np.random.default_rng([seed, member] if stream is None else [seed, member, stream])


# A ridge per level --------------------------------------------------------------------------------


def level_draws(
    field: Field,
    scales: Array,
    variances: Sequence[Array],
    factors: Array,
    seed: int,
    widening: Sequence[Array],
) -> Draw:
    """Return the draws of a model with a ridge per level.

    Parameters
    ----------
    field
        Where to draw.
    scales
        s_l^2 of every level (L,).
    variances
        What each level adds to the variance at the places of its axis, its noise included, before
        the factor.
    factors
        The factor of every cell, in the shape of the field.
    seed
        Seed of all members.
    widening
        How many times as large as by the kernel the variances of each level are, by place.
    """
    cascade = field.cascade
    white, shared = split_ridges(cascade)
    noises = [
        scale * cell * (nodes < 0) * wide
        for scale, cell, nodes, wide in zip(
            scales.tolist(), white, field.nodes, widening, strict=True
        )
    ]
    others = {
        level: np.maximum(variance - noise, 0.0)
        for level, (variance, noise) in enumerate(zip(variances, noises, strict=True))
    }

    def covariance(level: int, here: Indices) -> Array:
        found = _samples(cascade, level).open_covariance(field.coordinates[level][here])
        found += shared[level] * field.is_same(level, here)
        width = np.sqrt(scales[level] * widening[level][here])
        found *= np.multiply.outer(width, width)
        return found

    def beyond(level: int, here: Indices) -> Root:
        query, scale = field.coordinates[level][here], scales[level] * widening[level][here]
        left = np.maximum(others[level][here] / scale - shared[level], 0.0)
        root = _samples(cascade, level).open_root(query, left).with_noise(shared[level])
        return root.times(np.sqrt(scale))

    terms = field.terms(others, covariance, beyond)
    noise, widths = np.sqrt(reduce(np.add, field.lay_out(noises))), np.sqrt(factors)

    def deviation(member: int) -> Array:
        rng = member_rng(seed, member)
        result = np.zeros(field.shape)
        for roots in terms:
            result += draw_field(rng, roots)
        if noise.any():
            result += noise * rng.standard_normal(field.shape)
        result *= widths
        return field.repeat(result)

    return deviation


def split_ridges(cascade: Cascade) -> tuple[list[float], list[float]]:
    """Return what of the ridge of every level is noise of single cells, and what is not.

    A level of one coordinate has no ridge that says anything.
    """
    told = [
        level.ridge / level.kernel.variance
        for level, size in zip(cascade.levels, cascade.shape, strict=True)
        if size > 1
    ]
    least = min(told, default=0.0)
    white = [min(level.ridge, least * level.kernel.variance) for level in cascade.levels]
    return white, [level.ridge - noise for level, noise in zip(cascade.levels, white, strict=True)]


def _samples(cascade: Cascade, level: int) -> Samples:
    """Return all samples of a level with a ridge of its own."""
    own = cascade.levels[level]
    return Samples(own.kernel, own.ridge, cascade.coordinates[level], cascade.factor(level))


# Filled cells -------------------------------------------------------------------------------------


def filled_draws(field: Field, level: int, filled: Mask, variances: Array, seed: int) -> Draw:
    """Return the draws of cells that were missing and are filled; 0 in all other cells.

    Along the level their errors go together as those of slices that are left out together, along
    all others as the data does.

    Parameters
    ----------
    field
        Where to draw.
    level
        The level along which the slices with missing cells were added.
    filled
        Which cells of the training grid are filled.
    variances
        Variance of a filled cell by its place along the level (m,), the noise included.
    seed
        Seed of all members.
    """
    nodes = np.broadcast_arrays(*field.lay_out(field.nodes))
    cells = np.all([n >= 0 for n in nodes], axis=0) & filled[tuple(nodes)]
    axis = field.axis_of[level]
    others = tuple(other for other in range(cells.ndim) if other != axis)
    here = np.flatnonzero(cells.any(axis=others))  # places along the axis of the level
    if not here.size:
        return lambda member: field.repeat(np.zeros(field.shape))
    slices, which = np.unique(field.nodes[level][here], return_inverse=True)
    white, shared = (parts[level] for parts in split_ridges(field.cascade))
    left = _left_out_together(field.cascade, level, slices) + shared * np.eye(slices.size)
    shares = left.diagonal() / (left.diagonal() + white)
    smooth, noise = np.zeros(field.shape[axis]), np.zeros(field.shape[axis])
    smooth[here] = (variances[slices] * shares)[which]
    noise[here] = (variances[slices] * (1.0 - shares))[which]
    related = correlate(left, left.diagonal().copy())

    def covariance(_: int, some: Indices) -> Array:
        places, widths = which[np.searchsorted(here, some)], np.sqrt(smooth[some])
        return np.asarray(np.outer(widths, widths) * related[np.ix_(places, places)])

    terms = field.terms({level: smooth}, covariance)
    widths = np.sqrt(noise).reshape([-1 if a == axis else 1 for a in range(cells.ndim)])

    def deviation(member: int) -> Array:
        rng = member_rng(seed, member, stream=1)
        result = widths * rng.standard_normal(field.shape)
        for roots in terms:
            result += draw_field(rng, roots)
        result *= cells
        return field.repeat(result)

    return deviation


def _left_out_together(cascade: Cascade, level: int, slices: Indices) -> Array:
    """Return the covariance of slices of a level, given all others (n, n), without noise.

    Raises
    ------
    SettingError
        If there are more of them than fit into a dense matrix.
    """
    own, coordinates = cascade.levels[level], cascade.coordinates[level]
    if slices.size > LARGEST:
        raise SettingError(
            f"An ensemble at {slices.size} coordinates of '{own.name}' that have filled cells is "
            f"too large. Ask for {LARGEST} of them at most."
        )
    others = np.delete(coordinates, slices)
    factor = make_factor(others, own) if others.size else None
    found = Samples(own.kernel, own.ridge, others, factor).open_covariance(coordinates[slices])
    np.fill_diagonal(found, np.maximum(found.diagonal(), ROUND_OFF * own.kernel.variance))
    return found


# A joint ridge ------------------------------------------------------------------------------------


def joint_draws(field: Field, solver: JointSolver, scale: float, seed: int) -> Draw:
    """Return the draws of a model of a complete grid with one joint ridge; 0 at training cells.

    `scale` is s^2, the factor of the covariance.
    """
    posterior = _Posterior(field, solver)
    at_node = reduce(np.logical_and, field.lay_out([nodes >= 0 for nodes in field.nodes]))
    terms, draw_spanned = posterior.terms(), posterior.spanned()
    width, noise = math.sqrt(scale), math.sqrt(solver.ridge)

    def deviation(member: int) -> Array:
        rng = member_rng(seed, member)
        result = draw_spanned(rng)
        for roots in terms:
            result += draw_field(rng, roots)
        result += noise * rng.standard_normal(field.shape)
        result *= width
        result[at_node] = 0.0
        return field.repeat(result)

    return deviation


@dataclass(frozen=True, eq=False)
class _Posterior:
    """The posterior covariance under a joint ridge, without noise, in parts that have roots."""

    field: Field
    solver: JointSolver

    def terms(self) -> list[list[Root]]:
        """Return the roots along all axes of prod K_l - prod M_l, a list for every product.

        Scattered points come last, so that no root of their M is needed.
        """
        axes = range(len(self.field.axes))
        order = sorted(axes, key=lambda axis: len(self.field.axes[axis].levels) > 1)
        found = []
        for place, axis in enumerate(order):
            own = self._open_root(axis)
            if own is None:
                continue
            roots = {axis: own}
            roots |= {before: self._spanned_root(before) for before in order[:place]}
            roots |= {after: self._prior_root(after) for after in order[place + 1 :]}
            found.append([roots[each] for each in axes])
        return found

    def _prior_root(self, axis: int) -> Root:
        """Return a root of K along an axis."""
        variance = self.field.variance(self.field.axes[axis].levels)
        return self.field.correlation(axis).times(
            np.full(self.field.shape[axis], math.sqrt(variance))
        )

    def _spanned_root(self, axis: int) -> Root:
        """Return a root of M along the axis of one level."""
        level = self.field.axes[axis].levels[0]
        if level == self.solver.long:
            return self._prior_root(axis)
        rows = self._rows(level)
        return Root(rows, rows.shape[1])

    def _open_root(self, axis: int) -> Root | None:
        """Return a root of K - M along an axis; None if its samples span all."""
        field, levels = self.field, self.field.axes[axis].levels
        short = [level for level in levels if level != self.solver.long]
        if not short:
            return None
        spanned = [(self._rows(level) ** 2).sum(axis=1) for level in short]
        own, beside = field.variance(short), field.variance(levels) / field.variance(short)
        variance = beside * np.maximum(own - reduce(np.multiply, spanned), 0.0)
        coordinates = [field.coordinates[level] for level in short]
        known = [
            field.cascade.find_nodes(level, each) >= 0
            for level, each in zip(short, coordinates, strict=True)
        ]
        variance[reduce(np.logical_and, known)] = 0.0
        here = np.flatnonzero(variance > 0)
        if not here.size:
            return None
        if field.is_drawn_along(axis, here.size):
            root = self._span(short[0]).open_root(coordinates[0][here], variance[here])
            return root.within(here, variance.size)
        grams = [self._rows(level)[here] @ self._rows(level)[here].T for level in short]
        matrix = field.similarity(short, here) - reduce(np.multiply, grams)
        matrix *= field.similarity([level for level in levels if level not in short], here)
        root = correlation_root(correlate(matrix, variance[here]))
        return root.times(np.sqrt(variance[here])).within(here, variance.size)

    def _span(self, level: int) -> Samples:
        """Return the samples of a level without a ridge; eigenvalues of 0 are round-off."""
        cascade, spectrum = self.field.cascade, self.field.cascade.spectrum(level)
        least = ROUND_OFF * spectrum.values[0]
        solvable = Spectrum(spectrum.vectors, np.maximum(spectrum.values, least))
        return Samples(self.field.kernel(level), 0.0, cascade.coordinates[level], solvable)

    def _rows(self, level: int) -> Array:
        """Return B (n, rank) of a level that is not long, computed once."""
        if level not in self._known_rows:
            span = self._span(level)
            assert isinstance(span.factor, Spectrum)
            cross = gram(span.kernel, self.field.coordinates[level], span.coordinates)
            rows = (cross @ span.factor.vectors) / np.sqrt(span.factor.values)
            self._known_rows[level] = rows
        return self._known_rows[level]

    @cached_property
    def _known_rows(self) -> dict[int, Array]:
        """B of the levels for which it has been computed so far."""
        return {}

    def spanned(self) -> Callable[[np.random.Generator], Array]:
        """Return the draw of what the noise of samples leaves open of all that they span."""
        field, long = self.field, self.solver.long
        asked: Indices | None = None
        draw: Callable[[np.random.Generator], Array] = self._draw_directions
        if long is not None:
            coordinates, asked = np.unique(field.coordinates[long], return_inverse=True)
            draw = self._along(long, coordinates)
        rows: list[Array | Indices] = [
            asked if level == long and asked is not None else self._rows(level)
            for level in range(field.cascade.ndim)
        ]
        if field.is_grid:
            return lambda rng: apply(draw(rng), rows)
        own = field.axes[0].levels
        looked_up = {long: asked} if long in own and asked is not None else {}
        spread = {level: row for level, row in enumerate(rows) if level not in own}
        widest = max(field.cascade.shape)

        def some(level: int, part: slice) -> Array:
            return self._rows(level)[part]

        return lambda rng: contract(draw(rng), field.shape[0], some, looked_up, widest, spread)

    def _draw_directions(self, rng: np.random.Generator) -> Array:
        """Return independent numbers of the variances lambda / (p + lambda)."""
        values = self.solver.eigenvalues()
        return np.sqrt(self.solver.ridge / values) * rng.standard_normal(values.shape)

    def _along(self, long: int, query: Array) -> Callable[[np.random.Generator], Array]:
        """Return the draw of what is open along the long level, in all directions of the others."""
        factor, ridge = self.field.cascade.factor(long), self.solver.ridge
        assert isinstance(factor, LongFactor)
        prior, nodes, queries = self._prior_along(long, query)
        products = self.solver.products()
        flat = np.maximum(products.ravel(), ROUND_OFF * products.max())

        def draw(rng: np.random.Generator) -> Array:
            drawn = prior.rows @ rng.standard_normal((prior.width, flat.size))
            noise = rng.standard_normal((nodes.size, flat.size))
            data = flat * drawn[nodes] + np.sqrt(ridge * flat) * noise  # p times noisy samples
            fibres = np.moveaxis(data.reshape(-1, *products.shape), 0, long)
            weights = np.moveaxis(self.solver.solve_long(fibres), long, 0)
            left = drawn[queries] - factor.answer(query, weights.reshape(nodes.size, -1))
            return np.moveaxis(left.reshape(-1, *products.shape), 0, long)

        return draw

    def _prior_along(self, long: int, query: Array) -> tuple[Root, Indices, Indices]:
        """Return a root of K at samples and queries of the long level together, and their places.

        Raises
        ------
        SettingError
            If they are more than fit into a matrix, and there is no other way.
        """
        coordinates, kernel = self.field.cascade.coordinates[long], self.field.kernel(long)
        both = wrap(np.concatenate([coordinates, query]), kernel.period)
        union, where = np.unique(both, return_inverse=True)
        if union.size > LARGEST and not is_markov(kernel):
            raise SettingError(
                f"An ensemble of {coordinates.size} samples of "
                f"'{self.field.cascade.levels[long].name}' is too large for its {kernel.family} "
                "kernel under a joint ridge. Fit with a Matern kernel on a line, or with a ridge "
                "per level."
            )
        return kernel_root(kernel, union), where[: coordinates.size], where[coordinates.size :]
