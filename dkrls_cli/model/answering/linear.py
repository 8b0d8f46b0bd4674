"""Answers to questions beyond values, on grids and at points, with their standard errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any, Self

import numpy as np

from dkrls_cli.arrays import Array, Slices, blocks
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars.bars import Bars
from dkrls_cli.cascade.errorbars.joint import JointBars
from dkrls_cli.cascade.errorbars.levels import FilledBars, LevelBars
from dkrls_cli.cascade.functionals.answers import answer_blocks, answer_grid, answer_points
from dkrls_cli.cascade.functionals.bars import variance_at_points, variance_blocks
from dkrls_cli.cascade.functionals.cells import SourceCells
from dkrls_cli.cascade.functionals.draws import filled_variance, functional_draws
from dkrls_cli.cascade.functionals.functional import Functional, Means, Values
from dkrls_cli.cascade.functionals.regions import SeriesMaker, range_variances, region_blocks
from dkrls_cli.cascade.poles.continuation import Continuation
from dkrls_cli.cascade.tensors import lay_out
from dkrls_cli.errors import SettingError
from dkrls_cli.gaps.bars import GapBars
from dkrls_cli.gaps.functionals.deviations import GapFunctionals
from dkrls_cli.gaps.lasting.bars import LandBars
from dkrls_cli.gaps.noisy.bars import NoisyBars
from dkrls_cli.model.answering.bounds import Bounds


@dataclass(frozen=True, eq=False)
class LinearAnswers:
    """Answers to a functional of every level.

    Attributes
    ----------
    cascade
        The numbers of the model.
    functionals
        What is asked for along every axis.
    factors
        A factor of the answers for every question of every axis.
    smooth
        Whether values do not pass through at training coordinates.
    bounds
        The least and the largest value of an answer, or None.
    bars
        Returns the error bars of the model, which are calibrated when first asked for.
    spread
        Places of the axes that all points share; None: a product grid.
    cells
        The cells of the data, by the places of axes along which means need them.
    region
        Whether errors are those of means over a region, from data averaged over it.
    poles
        Rows of the cascade that go on across the poles, or None.
    series
        Returns the data along one axis, averaged along the others as questions tell, where the
        cascade does not hold it; None: it does.
    """

    cascade: Cascade
    functionals: tuple[Functional, ...]
    factors: Sequence[Array]
    smooth: bool
    bounds: Bounds | None
    bars: Callable[[], Bars]
    spread: tuple[int, ...] | None = None
    cells: Mapping[int, SourceCells] = field(default_factory=dict)
    region: bool = False
    poles: Continuation | None = None
    series: SeriesMaker | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the answers."""
        if self.spread is None:
            return tuple(len(each) for each in self.functionals)
        own = next(len(f) for axis, f in enumerate(self.functionals) if axis not in self.spread)
        return own, *(len(self.functionals[axis]) for axis in sorted(self.spread))

    def values(self) -> Array:
        """Return all answers."""
        return self._clip(self.free())

    def std(self) -> Array:
        """Return the standard errors of all answers."""
        if self.spread is None:
            return self._std_on_grid()
        variance = self._variance_at_points()
        return self._bounded(np.sqrt(variance) * np.abs(self._factor(None)))

    def deviations(self, seed: int) -> Callable[[int], Array]:
        """Return a function that draws the deviation of member i from the answers, bounds aside."""
        bars, whole = self.bars(), tuple(slice(0, size) for size in self.shape)
        factor = self._factor(None if self.spread is not None else whole)
        if isinstance(bars, LandBars) and not self.region:
            one = self.of_slice(bars.places(self.cascade), bars.slice_of(self.cascade), bars.one)
            asked = [_queries(self.functionals[axis]) for axis in bars.slices]
            draw = bars.draw_slices(self.cascade, asked, one.deviations(seed))
        elif isinstance(bars, GapBars | NoisyBars):
            draw = self.with_gaps(bars).deviations(seed)
            if self._has_open_ranges:
                usual = self.with_gaps(bars).variance()
                wider = np.divide(
                    self._at_least(usual), usual, out=np.ones(usual.shape), where=usual > 0
                )
                factor = factor * np.sqrt(wider)
        else:
            known = complete_bars(bars)
            draw = functional_draws(
                known, self.cascade, self.functionals, spread=self.spread, seed=seed, **self._how
            )
            factor = factor * self._region_width(known)
        return lambda member: draw(member) * factor

    def _region_width(self, bars: LevelBars | JointBars | FilledBars) -> Array | float:
        """Return how much wider errors of means over a region are than those of such means."""
        of_levels = bars.level_bars if isinstance(bars, FilledBars) else bars
        if not (self.region and isinstance(of_levels, LevelBars)):
            return 1.0
        whole = tuple(slice(0, size) for size in self.shape)
        usual = variance_blocks(of_levels, self.cascade, self.functionals, **self._how)(whole)
        ours = self._observed_blocks(of_levels)(whole)
        return np.sqrt(np.divide(ours, usual, out=np.ones(usual.shape), where=usual > 0))

    def of_slice(self, places: Sequence[int], cascade: Cascade, bars: Bars) -> Self:
        """Return what is asked of one slice of a grid whose slices are on their own.

        Parameters
        ----------
        places
            Axes of the slice.
        cascade, bars
            Those of the slice.
        """
        cells = {place: self.cells[axis] for place, axis in enumerate(places) if axis in self.cells}
        ones = [np.ones(len(self.functionals[axis])) for axis in places]
        functionals = tuple(self.functionals[axis] for axis in places)
        how: dict[str, Any] = {"functionals": functionals, "factors": ones, "cells": cells}
        return replace(self, cascade=cascade, bars=lambda: bars, bounds=None, **how)

    def with_gaps(self, bars: GapBars | NoisyBars) -> GapFunctionals:
        """Return what is asked of a model with missing cells or errors of the observations."""
        return GapFunctionals(
            bars, self.cascade, self.functionals, self.smooth, self.cells, self.spread
        )

    def _std_on_grid(self) -> Array:
        whole = tuple(slice(0, size) for size in self.shape)
        variance = self.variance_blocks()
        return self._bounded(np.sqrt(variance(whole)) * np.abs(self._factor(whole)))

    def variance_blocks(self) -> Callable[[Slices], Array]:
        """Return a function that computes the variance of one block of a product grid."""
        bars = self.bars()
        if isinstance(bars, GapBars | NoisyBars):
            found = self.with_gaps(bars).variance()
            return (self._at_least(found) if self._has_open_ranges else found).__getitem__
        if isinstance(bars, LandBars) and not self.region:
            one = self.of_slice(bars.places(self.cascade), bars.slice_of(self.cascade), bars.one)
            whole = tuple(slice(0, size) for size in one.shape)
            return bars.over_slices(one.variance_blocks()(whole), self.shape).__getitem__
        known = complete_bars(bars)
        if isinstance(known, FilledBars):
            observed, filled = self._observed_blocks(known.level_bars), self._filled_variance(known)
            return lambda part: observed(part) + filled[part]
        return self._observed_blocks(known)

    def _observed_blocks(self, bars: LevelBars | JointBars) -> Callable[[Slices], Array]:
        """Return a function that computes the variance of one block, of a complete grid."""
        if self.region and isinstance(bars, LevelBars):
            make = self.series
            return region_blocks(
                self.cascade, self.functionals, poles=self.poles, make=make, **self._how
            )
        return variance_blocks(bars, self.cascade, self.functionals, **self._how)

    @property
    def _has_open_ranges(self) -> bool:
        """Whether errors are those of means over ranges of a grid with missing cells."""
        return self.region and isinstance(self.bars(), GapBars) and not self.smooth

    def _at_least(self, variance: Array) -> Array:
        """Return variances no less than by all settings that series along ranges may have.

        The posterior of a model with missing cells, which `variance` is, believes in one of them.
        """
        found = np.zeros(self.shape)
        for axis, each in enumerate(self.functionals):
            source = self.cells.get(axis)
            if isinstance(each, Means) and source is not None and not source.are_means:
                tell = partial(self._along, axis)
                own = range_variances(self.cascade, axis, each, source, tell)
                others = [size for other, size in enumerate(self.shape) if other != axis]
                found += np.moveaxis(own.reshape(-1, *others), 0, axis)
        return np.maximum(variance, found)

    def _along(self, axis: int, asked: Functional) -> Array:
        """Return the answers to something else along one axis, a column for each of the others."""
        others = [asked if own == axis else each for own, each in enumerate(self.functionals)]
        found = answer_grid(self.cascade, others, **self._how)
        return np.moveaxis(found, axis, 0).reshape(len(asked), -1)

    def _filled_variance(self, bars: FilledBars) -> Array:
        """Return the variance that the errors of filled cells add."""
        return filled_variance(
            bars, self.cascade, self.functionals, spread=self.spread, **self._how
        )

    def _variance_at_points(self) -> Array:
        """Return the variance at points."""
        bars = self.bars()
        if isinstance(bars, GapBars | NoisyBars):
            return self.with_gaps(bars).variance()
        known = complete_bars(bars)
        added = self._filled_variance(known) if isinstance(known, FilledBars) else np.zeros(1)
        of_data = known.level_bars if isinstance(known, FilledBars) else known
        spread = self.spread or ()
        return added + variance_at_points(
            of_data, self.cascade, self.functionals, spread=spread, **self._how
        )

    def free(self) -> Array:
        """Return all answers, bounds aside."""
        if self.spread is None:
            whole = tuple(slice(0, size) for size in self.shape)
            found = answer_blocks(self.cascade, self.functionals, **self._how)(whole)
            return found * self._factor(whole)
        found = answer_points(self.cascade, self.functionals, spread=self.spread, **self._how)
        return found * self._factor(None)

    def blocks(self, cells: int, *, std: bool) -> Iterator[tuple[Slices, Array, Array | None]]:
        """Yield the answers in C order in blocks of about `cells` cells, with slices and errors.

        Without `std` there are no errors.
        """
        if self.spread is not None:
            yield from self._point_blocks(cells, std)
            return
        answer = answer_blocks(self.cascade, self.functionals, **self._how)
        variance = self.variance_blocks() if std else None
        for part in blocks(self.shape, cells):
            factor, errors = self._factor(part), None
            free = answer(part) * factor
            if variance is not None:
                errors = np.sqrt(variance(part)) * np.abs(factor)
                errors = errors if self.bounds is None else self.bounds.spread(free, errors)
            yield part, self._clip(free), errors

    def _point_blocks(self, cells: int, std: bool) -> Iterator[tuple[Slices, Array, Array | None]]:
        assert self.spread is not None
        if std and not isinstance(self.bars(), LevelBars | JointBars):  # drawn for all at once
            values, errors = self.values(), self.std()
            yield from ((part, values[part], errors[part]) for part in blocks(self.shape, cells))
            return
        order = sorted(self.spread)
        whole = tuple(slice(0, size) for size in self.shape)
        for part in blocks(self.shape, cells) if math.prod(self.shape) else [whole]:
            own = dict(zip(order, part[1:], strict=True))
            places = [own.get(axis, part[0]) for axis in range(len(self.functionals))]
            some = LinearAnswers(
                self.cascade,
                tuple(f[p] for f, p in zip(self.functionals, places, strict=True)),
                [f[p] for f, p in zip(self.factors, places, strict=True)],
                self.smooth,
                self.bounds,
                self.bars,
                self.spread,
                self.cells,
                self.region,
                self.poles,
            )
            yield part, some.values(), some.std() if std else None

    @property
    def _how(self) -> dict[str, Any]:
        """How the cascade is asked."""
        return {"smooth": self.smooth, "cells": self.cells}

    def _factor(self, part: Slices | None) -> Array:
        """Return the product of the factors of all axes, of a block or of points."""
        if part is None:
            return np.asarray(reduce(np.multiply, lay_out(self.factors, self.spread or ())))
        here = [factor[p] for factor, p in zip(self.factors, part, strict=True)]
        return np.asarray(reduce(np.multiply.outer, here))

    def _clip(self, values: Array) -> Array:
        return values if self.bounds is None else self.bounds.clip(values)

    def _bounded(self, std: Array) -> Array:
        """Return the standard errors of all answers within the bounds."""
        return std if self.bounds is None else self.bounds.spread(self.free(), std)


def _queries(asked: Functional) -> Array:
    """Return the coordinates of values."""
    assert isinstance(asked, Values)
    return asked.query


def complete_bars(bars: Bars) -> LevelBars | JointBars | FilledBars:
    """Return error bars that are none of missing cells or errors of the observations.

    Raises
    ------
    SettingError
        If they are those of a grid beyond memory with missing cells, which tell errors of values.
    """
    if isinstance(bars, LevelBars | JointBars | FilledBars):
        return bars
    raise SettingError(
        "Standard errors and members of means and derivatives of a grid with missing cells need "
        "all of it in memory. Ask for the answers alone, or fill the grid first, land as well."
    )
