"""The interface of error bars, and their draws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from functools import reduce
from typing import Protocol, Self

import numpy as np

from dkrls_cli.arrays import Array, Mask, Slices
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.drawing.fields import Field
from dkrls_cli.cascade.ensembles import Draw

# Half width of the band that holds 90 % of a normal distribution, in standard deviations.
Z90 = 1.6448536269514722


class Bars(Protocol):
    """The error bars of a model: variances of its answers, from errors on data left out."""

    @property
    def errors(self) -> Array:
        """Root mean square error on the data left out, one per level or one for all."""

    def variance_blocks(
        self, cascade: Cascade, queries: Sequence[Array], *, smooth: bool = False
    ) -> Callable[[Slices], Array]:
        """Return a function that computes the variance of one block of a product grid."""

    def variance_at_points(
        self,
        cascade: Cascade,
        points: Sequence[Array],
        *,
        spread: Collection[int] = (),
        smooth: bool = False,
    ) -> Array:
        """Return the variance of the answers at scattered points.

        Axes in `spread` are no part of the points: see :meth:`Cascade.predict_points`.
        """

    def deviations(
        self, cascade: Cascade, queries: Sequence[Array], *, smooth: bool = False, seed: int = 0
    ) -> Callable[[int], Array]:
        """Return a function that draws the deviation of member i from the answers, on a grid.

        On the product grid of the queries, its variance is that of :meth:`variance_blocks`. Member
        i depends on the seed and on i only, not on how many members are drawn.
        """

    def deviations_at_points(
        self,
        cascade: Cascade,
        points: Sequence[Array],
        *,
        spread: Collection[int] = (),
        smooth: bool = False,
        seed: int = 0,
    ) -> Callable[[int], Array]:
        """Return a function that draws the deviation of member i from the answers, at points.

        Its variance is that of :meth:`variance_at_points`.
        """

    @property
    def unobserved(self) -> Mask | None:
        """Which cells of the grid were missing; None if none was."""

    def with_unobserved(self, unobserved: Mask, axis: int) -> Bars:
        """Return error bars that know which cells of the grid were missing and are filled.

        `axis` is the one along which slices with missing cells were added.
        """

    def measured_in(self, cascade: Cascade) -> Bars:
        """Return error bars with all that is measured on the data of a cascade.

        It is for a model that is about to keep less of its data.
        """


def variance_on_grid(
    bars: Bars, cascade: Cascade, queries: Sequence[Array], *, smooth: bool = False
) -> Array:
    """Return the variance of the answers on a whole product grid."""
    whole = tuple(slice(0, query.size) for query in queries)
    return bars.variance_blocks(cascade, queries, smooth=smooth)(whole)


class Drawn(ABC):
    """Draws of members on grids and at points, by what a kind of error bars draws at places."""

    def measured_in(self, cascade: Cascade) -> Self:
        """Return these error bars: all of them was measured when they were calibrated."""
        return self

    @abstractmethod
    def draws(self, field: Field, seed: int) -> Draw:
        """Return the draws of the members at the places of a field."""

    def deviations(
        self, cascade: Cascade, queries: Sequence[Array], *, smooth: bool = False, seed: int = 0
    ) -> Draw:
        """Return a function that draws the deviation of member i from the answers, on a grid."""
        return self._draw(Field.of(cascade.covariance, queries, smooth=smooth), seed)

    def deviations_at_points(
        self,
        cascade: Cascade,
        points: Sequence[Array],
        *,
        spread: Collection[int] = (),
        smooth: bool = False,
        seed: int = 0,
    ) -> Draw:
        """Return a function that draws the deviation of member i from the answers, at points."""
        return self._draw(Field.of(cascade.covariance, points, spread, smooth=smooth), seed)

    def _draw(self, field: Field, seed: int) -> Draw:
        """Return the draws of the members; there may be no place to draw at."""
        if 0 in field.shape:
            return lambda member: field.repeat(np.zeros(field.shape))
        return self.draws(field, seed)


def outer_sum(parts: Sequence[Array]) -> Array:
    """Return the sum of what every level adds, on the product of their coordinates."""
    return reduce(np.add.outer, parts)


def unexplained(prior: float, explained: Array, ridge: float) -> Array:
    """Return the prior variance that the data leaves, and the noise; never below the noise."""
    return np.asarray(np.maximum(prior - explained, 0.0) + ridge)
