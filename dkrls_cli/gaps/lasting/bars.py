"""Error bars of slices that are on their own, with the same settings.

If they have the same missing cells as well, the variance of an answer depends on its place alone:
that of one slice (:mod:`dkrls_cli.gaps.bars`) holds for all. If not, every slice has that of its
own missing cells, and whoever has the slice asks for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask, Slices
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars.bars import Bars, variance_on_grid
from dkrls_cli.cascade.tensors import lay_out
from dkrls_cli.errors import SettingError
from dkrls_cli.gaps.bars import GapBars


@dataclass(frozen=True, eq=False)
class LandBars:
    """Error bars of a grid whose slices are on their own.

    Attributes
    ----------
    slices
        Axes of the grid whose slices are on their own.
    one
        Error bars of one slice, which has the other axes. They know how large errors are between
        coordinates: there is no data to measure that on.
    most
        Missing cells of a slice at most, if slices miss different ones; 0 if all miss the same.
    """

    slices: tuple[int, ...]
    one: GapBars
    most: int = 0
    _known: WeakKeyDictionary[Cascade, Cascade] = field(
        init=False, repr=False, default_factory=WeakKeyDictionary
    )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what was calibrated: the cascade of a slice is made anew where it is needed."""
        return LandBars, (self.slices, self.one, self.most)

    @property
    def errors(self) -> Array:
        """Root mean square error on the cells held out (1,)."""
        return self.one.errors

    @property
    def unobserved(self) -> None:
        """None: the data, and which of it is missing, is not part of the model."""

    def variance_blocks(
        self, cascade: Cascade, queries: Sequence[Array], *, smooth: bool = False
    ) -> Callable[[Slices], Array]:
        """Return a function that computes the variance of one block; 0 at observed cells."""
        self._refuse_varied()
        own = [queries[axis] for axis in self.places(cascade)]
        one = variance_on_grid(self.one, self.slice_of(cascade), own, smooth=smooth)
        return self.over_slices(one, [query.size for query in queries]).__getitem__

    def over_slices(self, one: Array, sizes: Sequence[int]) -> Array:
        """Return what is the same in all slices, on a product grid of some sizes."""
        thin = [1 if axis in self.slices else size for axis, size in enumerate(sizes)]
        return np.broadcast_to(one.reshape(thin), sizes)

    def variance_at_points(
        self,
        cascade: Cascade,
        points: Sequence[Array],
        *,
        spread: Collection[int] = (),
        smooth: bool = False,
    ) -> Array:
        """Return the variance of the answers at scattered points."""
        self._refuse_varied()
        places = self.places(cascade)
        own = [points[axis] for axis in places]
        inner = [places.index(axis) for axis in spread if axis in places]
        one = self.one.variance_at_points(self.slice_of(cascade), own, spread=inner, smooth=smooth)
        order = sorted(spread)
        sizes = [points[axis].size for axis in order]
        thin = [1 if axis in self.slices else points[axis].size for axis in order]
        return np.broadcast_to(one.reshape(len(one), *thin), (len(one), *sizes))

    def deviations(
        self, cascade: Cascade, queries: Sequence[Array], *, smooth: bool = False, seed: int = 0
    ) -> Callable[[int], Array]:
        """Return a function that draws the deviation of member i, in every slice on its own."""
        self._refuse_varied()
        own = [queries[axis] for axis in self.places(cascade)]
        draw = self.one.deviations(self.slice_of(cascade), own, smooth=smooth, seed=seed)
        return self.draw_slices(cascade, [queries[axis] for axis in self.slices], draw)

    def draw_slices(
        self, cascade: Cascade, asked: Sequence[Array], draw: Callable[[int], Array]
    ) -> Callable[[int], Array]:
        """Return a function that draws member i of some slices from draws of one slice.

        `asked` are coordinates along the axes of the slices.
        """
        numbers = self._numbers(cascade, [np.asarray(own) for own in np.ix_(*asked)])
        count = math.prod(cascade.shape[axis] for axis in self.slices)
        order = np.argsort([*self.slices, *self.places(cascade)])

        def deviation(member: int) -> Array:
            known = {place: draw(member * count + place) for place in np.unique(numbers).tolist()}
            found = np.array([known[place] for place in numbers.ravel().tolist()])
            return found.reshape(*numbers.shape, *found.shape[1:]).transpose(order)

        return deviation

    def _numbers(self, cascade: Cascade, asked: Sequence[Array]) -> Indices:
        """Return the number of the slice at coordinates along their axes, which broadcast."""
        found = [
            cascade.find_nodes(axis, own.ravel(), False).reshape(own.shape)
            for axis, own in zip(self.slices, asked, strict=True)
        ]
        sizes = [cascade.shape[axis] for axis in self.slices]
        return np.asarray(np.ravel_multi_index(np.broadcast_arrays(*found), sizes))

    def deviations_at_points(
        self,
        cascade: Cascade,
        points: Sequence[Array],
        *,
        spread: Collection[int] = (),
        smooth: bool = False,
        seed: int = 0,
    ) -> Callable[[int], Array]:
        """Return a function that draws the deviation of member i at scattered points."""
        self._refuse_varied()
        places = self.places(cascade)
        own = [points[axis] for axis in places]
        inner = [places.index(axis) for axis in spread if axis in places]
        draw = self.one.deviations_at_points(
            self.slice_of(cascade), own, spread=inner, smooth=smooth, seed=seed
        )
        laid_out = lay_out(points, spread)
        numbers = self._numbers(cascade, [laid_out[axis] for axis in self.slices])
        count = math.prod(cascade.shape[axis] for axis in self.slices)
        order = sorted(spread)
        thin = [1 if axis in self.slices else points[axis].size for axis in order]

        def deviation(member: int) -> Array:
            found = np.zeros((1,) * numbers.ndim)
            for place in np.unique(numbers).tolist():
                drawn = draw(member * count + place)
                own = drawn.reshape(len(drawn), *thin)
                found = np.where(numbers == place, own, found)
            return found

        return deviation

    def with_unobserved(self, unobserved: Mask, axis: int) -> Bars:
        """Return these error bars: they know the cells that are missing."""
        return self

    def measured_in(self, cascade: Cascade) -> LandBars:
        """Return these error bars: all of them was measured when they were calibrated."""
        return self

    def of_mask(self, missing: Mask) -> GapBars:
        """Return the error bars of a slice with missing cells of its own, its local scale aside."""
        factors = self.one.factors if missing.any() else None
        return replace(self.one, unobserved=missing, factors=factors, local=None)

    def _refuse_varied(self) -> None:
        """Raise SettingError if errors depend on the slice, whose missing cells are in the data."""
        if self.most:
            raise SettingError(
                "Members of a grid beyond memory where every time misses other cells are not "
                "drawn. Ask for standard errors, or fill the grid first (land may stay)."
            )

    def places(self, cascade: Cascade) -> list[int]:
        """Return the axes of one slice."""
        return [axis for axis in range(cascade.ndim) if axis not in self.slices]

    def slice_of(self, cascade: Cascade) -> Cascade:
        """Return the cascade of one slice, without its data."""
        if cascade not in self._known:
            self._known[cascade] = cut_slice(cascade, self.places(cascade))
        return self._known[cascade]


def cut_slice(cascade: Cascade, places: Sequence[int], values: Array | None = None) -> Cascade:
    """Return the cascade of one slice, which has some of the axes; without values it has none."""
    count = len(places)
    return replace(
        cascade,
        levels=tuple(cascade.levels[axis] for axis in places),
        coordinates=tuple(cascade.coordinates[axis] for axis in places),
        frames=(None,) * count,
        factors=(None,) * count,
        core=np.zeros((1,) * count) if values is None else values,
    )
