"""Answers to questions beyond values, on grids and at points, with their standard errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array, Slices, blocks
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars import Bars, LevelBars
from dkrls_cli.cascade.functionals.answers import answer_blocks, answer_points
from dkrls_cli.cascade.functionals.bars import variance_at_points, variance_blocks
from dkrls_cli.cascade.functionals.cells import SourceCells
from dkrls_cli.cascade.functionals.functional import Functional
from dkrls_cli.cascade.functionals.regions import region_blocks
from dkrls_cli.cascade.poles.continuation import Continuation
from dkrls_cli.cascade.tensors import lay_out
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

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the answers."""
        if self.spread is None:
            return tuple(len(each) for each in self.functionals)
        own = next(len(f) for axis, f in enumerate(self.functionals) if axis not in self.spread)
        return own, *(len(self.functionals[axis]) for axis in sorted(self.spread))

    def values(self) -> Array:
        """Return all answers."""
        return self._clip(self._free())

    def std(self) -> Array:
        """Return the standard errors of all answers."""
        if self.spread is None:
            return self._std_on_grid()
        variance = self._variance_at_points()
        return self._bounded(np.sqrt(variance) * np.abs(self._factor(None)))

    def _std_on_grid(self) -> Array:
        whole = tuple(slice(0, size) for size in self.shape)
        variance = self.variance_blocks()
        return self._bounded(np.sqrt(variance(whole)) * np.abs(self._factor(whole)))

    def variance_blocks(self) -> Callable[[Slices], Array]:
        """Return a function that computes the variance of one block of a product grid."""
        bars = self.bars()
        if self.region and isinstance(bars, LevelBars):
            return region_blocks(self.cascade, self.functionals, poles=self.poles, **self._how)
        return variance_blocks(bars, self.cascade, self.functionals, **self._how)

    def _variance_at_points(self) -> Array:
        """Return the variance at points."""
        return variance_at_points(
            self.bars(), self.cascade, self.functionals, spread=self.spread or (), **self._how
        )

    def _free(self) -> Array:
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
        return std if self.bounds is None else self.bounds.spread(self._free(), std)
