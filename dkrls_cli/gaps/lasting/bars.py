"""Error bars of slices that are on their own, with the same settings.

If they have the same missing cells as well, the variance of an answer depends on its place alone:
that of one slice (:mod:`dkrls_cli.gaps.bars`) holds for all. If not, every slice has that of its
own missing cells, and whoever has the slice asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

import numpy as np

from dkrls_cli.arrays import Array, Mask, Slices
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars.bars import Bars
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
        places = self._places(cascade)
        own = [queries[axis] for axis in places]
        whole = tuple(slice(0, query.size) for query in own)
        one = self.one.variance_blocks(self.slice_of(cascade), own, smooth=smooth)(whole)

        def variance(part: Slices) -> Array:
            here = one[tuple(part[axis] for axis in places)]
            shape = [queries[axis][p].size for axis, p in enumerate(part)]
            thin = [1 if axis in self.slices else size for axis, size in enumerate(shape)]
            return np.broadcast_to(here.reshape(thin), shape)

        return variance

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
        places = self._places(cascade)
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
        """Raise SettingError: members of all slices are not drawn."""
        raise SettingError(
            "Members of a grid with missing cells need the whole grid in memory. Ask for standard "
            "errors, or fill the grid first, land as well."
        )

    def deviations_at_points(
        self,
        cascade: Cascade,
        points: Sequence[Array],
        *,
        spread: Collection[int] = (),
        smooth: bool = False,
        seed: int = 0,
    ) -> Callable[[int], Array]:
        """Raise SettingError: members of all slices are not drawn."""
        return self.deviations(cascade, points, smooth=smooth, seed=seed)

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
                "Standard errors where every time misses other cells need the data. Ask for those "
                "of values, or fill the grid first, land as well."
            )

    def _places(self, cascade: Cascade) -> list[int]:
        """Return the axes of one slice."""
        return [axis for axis in range(cascade.ndim) if axis not in self.slices]

    def slice_of(self, cascade: Cascade) -> Cascade:
        """Return the cascade of one slice, without its data."""
        if cascade not in self._known:
            self._known[cascade] = cut_slice(cascade, self._places(cascade))
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
