"""Errors of answers to functionals, where cells are missing or observations have errors.

Let e be the error of the field in all cells, drawn given the observations
(:mod:`dkrls_cli.gaps.samples`). A complete grid without noise would still leave open what lies
between its coordinates, r, and that is independent of e. So with T = (L k) K^-1 the error of the
answer to a functional L is

    T e + L r,

whose second part has its variance in closed form, L L'k - (L k) K^-1 (L k)'. K^-1 is that of a
ridge far below the noise (:data:`_FINE`): directions of less variance are unknown to the data, and
are in the second part.

Means and derivatives pass through the data: to those of the field they add, with the share S of
every cell, what the data has beside the field (for slopes see
:mod:`dkrls_cli.cascade.functionals.detail`). With q the error of the quantity in the cells (0 where
it is observed without error) the error is T e + S (q - e) + L r, and what is left open of the
slopes of detail. A smooth answer has the error T e + L r.

Where the data are means over cells, T is that of a sharpened field
(:mod:`dkrls_cli.cascade.functionals.sharpening`), and the mean over a union of cells is S of the
quantity itself: its error is S q.

All this is in units of the kernels. Two things tell how large errors are, as for values. The
variance of what comes of the cells, T e + S (q - e) and noise, is multiplied, answer by answer, by
what the error bars of the cells there are larger than these draws of cells are. That of L r is
multiplied by what slices left out are missed by more than they leave open
(:mod:`dkrls_cli.cascade.calibration.folds`): cells held out one by one say nothing of it. So both
are as well calibrated as values are, however these came about.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.cascade.calibration.hats import Hats
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars.bars import variance_on_grid
from dkrls_cli.cascade.functionals.answers import answer_data, joint_shares
from dkrls_cli.cascade.functionals.bars import (
    joint_answered,
    joint_noises,
    variance_at_points,
    variance_blocks,
)
from dkrls_cli.cascade.functionals.cells import SourceCells
from dkrls_cli.cascade.functionals.draws import functional_draws
from dkrls_cli.cascade.functionals.functional import Derivatives, Functional, Means, Values
from dkrls_cli.cascade.kernels import gram
from dkrls_cli.cascade.tensors import Rows, apply, contract, lay_out
from dkrls_cli.gaps.bars import UNSCALED, GapBars, other_seed, refuse_long
from dkrls_cli.gaps.field import make_field
from dkrls_cli.gaps.noisy.analysis import detail_share, quantity_variance, split_noise
from dkrls_cli.gaps.noisy.bars import NoisyBars
from dkrls_cli.gaps.samples import posterior_draws

DRAWS = 64
"""Draws whose mean square is a variance: a standard error is known to 9 percent then."""

_MEMBER_DRAWS = 24
"""Draws that tell how much larger than draws the error bars of values are, for members."""

_FINE = 1e-3
"""Ridge of T as a share of the noise: directions of less variance are unknown to the data."""

_ROUNDING = 1e-13
"""Least ridge of T, as a share of the largest variance of a direction."""

_FEW = 1e-6
"""Weight of observed cells where it is asked how much larger the error bars of values are."""

_BEST = 0.1
"""Share of the missing cells that are taken for those known best."""

# Seed of the draws behind standard errors: the same model has the same standard errors.
_SEED = 2019

Reduce = Callable[[Array], Array]
"""Takes a mean with weights of parts of the answers."""


@dataclass(frozen=True, eq=False)
class GapFunctionals:
    """Functionals asked of a model of a grid with missing cells, or of observations with errors.

    Attributes
    ----------
    bars
        The error bars of its values.
    cascade
        The model, with a joint ridge.
    asked
        What is asked for along every axis.
    smooth
        Whether means do not pass through the data.
    cells
        Cells of the data along axes of means.
    spread
        Axes that are no part of points; None: a product grid.
    """

    bars: GapBars | NoisyBars
    cascade: Cascade
    asked: tuple[Functional, ...]
    smooth: bool = False
    cells: Mapping[int, SourceCells] = field(default_factory=dict)
    spread: tuple[int, ...] | None = None

    def variance(self, draws: int | None = None) -> Array:
        """Return the variance of all answers, from some draws."""
        return self.reduced_variance(lambda parts: parts, self, draws)

    def reduced_variance(
        self, reduce_parts: Reduce, whole: GapFunctionals, draws: int | None = None
    ) -> Array:
        """Return the variance of means of the answers.

        Parameters
        ----------
        reduce_parts
            Takes these means.
        whole
            What is asked for as if it were one mean: what lies between coordinates, and is
            independent from cell to cell, is that of it.
        draws
            Number of draws; None for as many as are usual.
        """
        draws = draws or DRAWS
        cells = self._cell_draws(_SEED)
        squares, total = np.zeros(self.cascade.shape), np.zeros(1)
        for number in range(draws):
            field, quantity = cells.draw(number)
            squares += field**2
            total = total + reduce_parts(self._carried(field, quantity)) ** 2
        squares /= draws
        of_cells = (total / draws + whole._noise()) * self._sizes(cells, squares, reduce_parts)
        return np.asarray(of_cells + whole.left_open() * whole._open_sizes())

    def deviations(self, seed: int) -> Callable[[int], Array]:
        """Return a function that draws the deviation of member i from the answers."""
        return self.reduced_deviations(lambda parts: parts, self, seed)

    def reduced_deviations(
        self, reduce_parts: Reduce, whole: GapFunctionals, seed: int
    ) -> Callable[[int], Array]:
        """Return a function that draws the deviation of member i from means of the answers.

        `reduce_parts` takes these means, and `whole` is what is asked for as if it were one mean.
        They are as wide as :meth:`reduced_variance` tells: the error bars of the means, and not of
        the parts one by one, tell how wide.
        """
        known = self._cell_draws(_SEED)
        squares = np.zeros(self.cascade.shape)
        for number in range(_MEMBER_DRAWS):
            squares += known.draw(number)[0] ** 2 / _MEMBER_DRAWS
        sizes = np.sqrt(self._sizes(known, squares, reduce_parts))
        cells = self._cell_draws(seed)
        between = functional_draws(
            UNSCALED,
            self._fine,
            self.asked,
            spread=self.spread,
            smooth=True,
            seed=other_seed(seed),
        )
        noise, opened = np.sqrt(self._noise()), self._opened
        open_sizes = np.sqrt(whole._open_sizes())

        def deviation(member: int) -> Array:
            rng = np.random.default_rng([seed, member, 2])
            parts = self._carried(*cells.draw(member))
            parts += noise * rng.standard_normal(parts.shape)
            left = reduce_parts(opened * between(member))
            return np.asarray(sizes * reduce_parts(parts) + open_sizes * left)

        return deviation

    def left_open(self) -> Array:
        """Return the variance of L r."""
        if self.spread is None:
            whole = tuple(slice(0, len(each)) for each in self.asked)
            found = variance_blocks(UNSCALED, self._fine, self.asked, smooth=True)(whole)
        else:
            found = variance_at_points(
                UNSCALED, self._fine, self.asked, spread=self.spread, smooth=True
            )
        return np.asarray(found * self._opened)

    @cached_property
    def _opened(self) -> Array:
        """0 where all cells leave nothing open: in means over unions of cells of means; else 1."""
        opened = joint_answered(self.cascade, self.asked, False, self.cells)
        laid_out = self._lay_out([each.astype(np.float64) for each in opened])
        return np.asarray(reduce(np.maximum, laid_out))

    @property
    def ridge(self) -> float:
        """The variance of detail from cell to cell, in units of the kernels."""
        return self.cascade.joint_ridge or 0.0

    @cached_property
    def _fine(self) -> Cascade:
        """The same kernels with a ridge far below the noise."""
        pairs = zip(self.cascade.levels, self.cascade.coordinates, strict=True)
        grams = (np.abs(gram(level.kernel, nodes, nodes)) for level, nodes in pairs)
        largest = math.prod(float(each.sum(axis=1).max()) for each in grams)
        least = max(_FINE * self.ridge, _ROUNDING * largest)
        fine = replace(
            self.cascade,
            joint_ridge=least,
            factors=(None,) * self.cascade.ndim,
            frames=(None,) * self.cascade.ndim,
            mean=0.0,
            core=np.zeros(self.cascade.shape),
            compact=False,
        )
        factors = tuple(fine.factor(axis) for axis in range(fine.ndim))
        return replace(fine, factors=factors)

    @cached_property
    def _answer(self) -> Callable[[Array], Array]:
        """Returns T times an error of all cells."""
        return answer_data(
            self._fine, self.asked, spread=self.spread, smooth=True, cells=self.cells
        )

    @cached_property
    def _shares(self) -> list[Array] | None:
        """S along every axis; None if answers do not pass through the data."""
        return None if self.smooth else joint_shares(self.cascade, self.asked, self.cells)

    def _carried(self, field: Array, quantity: Array) -> Array:
        """Return T e + S (q - e), or S q where the answer is the quantity itself."""
        found = self._answer(field)
        if self._shares is None:
            return found
        found += self._put(quantity - field, self._shares)
        if self._opened.all():
            return found
        return np.where(self._opened, found, self._put(quantity, self._shares))

    def _put(self, cells: Array, rows: Sequence[Array | Rows]) -> Array:
        """Return values of cells put through rows of every axis."""
        if self.spread is None:
            return apply(cells, list(rows))
        own = [axis for axis in range(cells.ndim) if axis not in self.spread]

        def some(axis: int, part: slice) -> Array:
            row = rows[axis][part]
            return row.dense(cells.shape[axis]) if isinstance(row, Hats) else np.asarray(row)

        count, beside = len(self.asked[own[0]]), {axis: rows[axis] for axis in self.spread}
        return contract(cells, count, some, {}, max(cells.shape), beside)

    def _noise(self) -> Array:
        """Return the variance of noise in answers, as far as they are not the data's."""
        white = 0.0 if isinstance(self.bars, NoisyBars) else 1.0  # else the noise is told
        left = self._lay_out(joint_noises(self.cascade, self.asked, self.smooth, white=white))
        found = self.ridge * reduce(np.multiply, left)
        slopes = any(isinstance(each, Derivatives) for each in self.asked)
        if self._shares is not None and not slopes:
            covered = self._lay_out([share.sum(axis=1) for share in self._shares])
            found = found * np.clip(1.0 - reduce(np.multiply, covered), 0.0, 1.0)
        return np.asarray(found)

    def _lay_out(self, vectors: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        if self.spread is not None:
            return lay_out(vectors, self.spread)
        return list(np.meshgrid(*vectors, indexing="ij", sparse=True))

    def _cell_draws(self, seed: int) -> CellDraws:
        return CellDraws.of(self.bars, self.cascade, seed)

    def _sizes(self, cells: CellDraws, squares: Array, reduce_parts: Reduce) -> Array:
        """Return the factor from the variance of what comes of the cells to that of errors.

        `squares` is the variance of draws of the field.
        """
        nodes, drawn = self.cascade.coordinates, squares + self.ridge
        missing = ~cells.observed
        known = self._field_variance(bool(missing.any()))
        if missing.any() and not cells.noise.any():
            known[cells.observed] = _ratio_beside(known, drawn, missing) * drawn[cells.observed]
        if self._shares is not None:
            own = quantity_variance(squares, cells.observed, self.ridge, cells.noise)
            known = _FEW * known + variance_on_grid(self.bars, self.cascade, nodes)
            drawn = _FEW * drawn + own
        rows = [self._near(axis) for axis in range(self.cascade.ndim)]
        above, below = (reduce_parts(self._put(each, rows)) for each in (known, drawn))
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(above / below)

    def _field_variance(self, some_missing: bool) -> Array:
        """Return the variance of the field in every cell, lambda included.

        In a slice without missing cells none was held out, and left-out slices tell it.
        """
        if isinstance(self.bars, NoisyBars):
            return self.bars.cells_in(self.cascade).field
        nodes = self.cascade.coordinates
        return variance_on_grid(self.bars, self.cascade, nodes, smooth=not some_missing)

    def _open_sizes(self) -> Array:
        """Return the factor from the variance of L r to that of errors: that of values there.

        Where a ridge is less than round-off allows T, L r is larger than what the model leaves
        open, and the factor is smaller.
        """
        between = self._lay_out([self._is_between(axis) for axis in range(self.cascade.ndim)])
        left, largest = (self._left_of_values(each) for each in (self.cascade, self._fine))
        found = self.bars.between_sizes(self.cascade, left, between)
        found = found * (left / np.maximum(left, largest))
        return np.where(reduce(np.maximum, between), found, 0.0)

    def _is_between(self, axis: int) -> Indices:
        """Return 1 where errors along an axis are those between coordinates, else 0 (q,)."""
        asked = self.asked[axis]
        if isinstance(asked, Values):
            return (self.cascade.find_nodes(axis, asked.query) < 0).astype(np.intp)
        return np.ones(len(asked), np.intp)

    def _left_of_values(self, cascade: Cascade) -> Array:
        """Return what a complete grid leaves open of values where functionals ask."""
        middles = [_middle(each) for each in self.asked]
        if self.spread is None:
            return variance_on_grid(UNSCALED, cascade, middles, smooth=True)
        return UNSCALED.variance_at_points(cascade, middles, spread=self.spread, smooth=True)

    def _near(self, axis: int) -> Array | Rows:
        """Return rows that average the cells near what is asked for along an axis."""
        asked, nodes = self.asked[axis], self.cascade.coordinates[axis]
        if isinstance(asked, Means) and axis in self.cells:
            shares = self.cells[axis].cut(asked).shares(nodes.size)
            total = shares.sum(axis=1, keepdims=True)
            if (total > 0).all():
                return np.asarray(shares / total)
        return Hats.between(nodes, _middle(asked), self.cascade.levels[axis].kernel.period)


def _middle(asked: Functional) -> Array:
    """Return where functionals ask, means in their middle."""
    if isinstance(asked, Means):
        return (asked.low + asked.high) / 2
    assert isinstance(asked, Values | Derivatives)
    return asked.query


def _ratio_beside(known: Array, drawn: Array, missing: Mask) -> float:
    """Return how much larger error bars are than draws in the missing cells that are known best.

    No cell was ever held out that is known better, and what holds for these is taken for observed
    cells.
    """
    best = drawn <= np.quantile(drawn[missing], _BEST)
    return float(known[missing & best].sum() / drawn[missing & best].sum())


@dataclass(frozen=True, eq=False)
class CellDraws:
    """Draws of errors in all cells, in units of the kernels.

    Attributes
    ----------
    field
        Returns draw i of the error of the field.
    observed
        Which cells have an observation.
    ridge, noise
        lambda, and the variance of the error of every observation.
    seed
        Seed of the detail.
    """

    field: Callable[[int], Array]
    observed: Mask
    ridge: float
    noise: Array
    seed: int

    @classmethod
    def of(cls, bars: GapBars | NoisyBars, cascade: Cascade, seed: int) -> CellDraws:
        """Return the draws of a model.

        Raises
        ------
        SettingError
            If a dimension is too long for draws.
        """
        refuse_long([level.name for level in cascade.levels], cascade.shape, linear=True)
        kernels, ridge = [level.kernel for level in cascade.levels], cascade.joint_ridge or 0.0
        prior = make_field(cascade.coordinates, kernels, bars.grouping)
        if isinstance(bars, NoisyBars):
            observed = bars.observations.observed
            least, rest = split_noise(prior, observed, ridge, bars.noise)
            draw = posterior_draws(prior, observed, least, (seed,), rest)
            return cls(draw, observed, ridge, bars.noise, seed)
        observed = ~bars.unobserved
        draw = posterior_draws(prior, observed, ridge, (seed,), everywhere=True)
        return cls(draw, observed, ridge, np.zeros(observed.shape), seed)

    def draw(self, number: int) -> tuple[Array, Array]:
        """Return the errors e of the field and q of the quantity in all cells."""
        field = self.field(number)
        share = np.where(self.observed, detail_share(self.ridge, self.noise), 0.0)
        spread = np.where(self.observed, self.noise * share, self.ridge)
        detail = np.random.default_rng([self.seed, number, 1]).standard_normal(spread.shape)
        return field, np.asarray((1.0 - share) * field + np.sqrt(spread) * detail)
