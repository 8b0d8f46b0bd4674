"""The grid that a model was fitted to, whole, and which of its cells have no data.

A model is trained on the coordinates that have data. The file it came from may have more: rows of
land, longitudes that repeat the first, cells that were never observed. A coverage remembers them,
so that answers come back on the whole grid and land stays land. Between coordinates the nearest
cell decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.circle import nearest
from dkrls_cli.errors import InputError
from dkrls_cli.grid.alignment import drop_other_single, rename_like
from dkrls_cli.grid.axes import Axis, convert_coordinates
from dkrls_cli.grid.cf import natural_period
from dkrls_cli.grid.grid import Grid


@dataclass(frozen=True, eq=False)
class Coverage:
    """The cells of a grid that have no data.

    Attributes
    ----------
    axes
        Axes of the whole grid, in the order of the data.
    absent
        Which cells have no data. Its shape is that of the grid, but for a size of 1 along axes on
        which it does not depend.
    """

    axes: tuple[Axis, ...]
    absent: Mask

    @property
    def has_land(self) -> bool:
        """Whether any cell has no data."""
        return bool(self.absent.any())

    def absent_on(self, axes: Sequence[Axis]) -> Mask:
        """Return which cells of the product grid of these axes have no data.

        The shape is that of the product grid, but for sizes of 1 as in `absent`.
        """
        places = [self._nearest(place, axis.numbers) for place, axis in enumerate(axes)]
        return np.asarray(self.absent[np.ix_(*places)])

    def absent_at(self, points: Sequence[Array], layout: Mapping[int, int], ndim: int) -> Mask:
        """Return which scattered points have no data.

        Parameters
        ----------
        points
            The numbers of every axis.
        layout
            The axis of the result along which those of an axis of the data lie: 0 for the points.
        ndim
            Number of axes of the result.
        """
        places = (
            self._nearest(place, numbers).reshape(
                [-1 if axis == layout[place] else 1 for axis in range(ndim)]
            )
            for place, numbers in enumerate(points)
        )
        return np.asarray(self.absent[tuple(places)])

    def _nearest(self, place: int, numbers: Array) -> Indices:
        """Return the places along one axis of the cells nearest to some numbers."""
        if self.absent.shape[place] == 1:
            return np.zeros(1, np.intp)
        own = self.axes[place]
        return nearest(numbers, own.numbers, own.turn)[0]

    def grow(
        self,
        grows: int,
        trained: Sequence[Axis],
        unobserved: Mask | None,
        slices: Axis | None = None,
    ) -> Coverage:
        """Return the coverage of a model that has other slices along one axis.

        Cells that have data by now are no longer absent.

        Parameters
        ----------
        grows
            Place of the axis.
        trained
            Axes of the model now.
        unobserved
            Which cells of the model are missing; None if none is.
        slices
            All coordinates along the axis that grows; None: those of the model.
        """
        along = slices or trained[grows]
        axes = (*self.axes[:grows], along, *self.axes[grows + 1 :])
        if not self.has_land:
            return Coverage(axes, np.zeros((1,) * len(axes), bool))
        absent = self._at_slices(grows, along)
        missing = np.zeros((1,) * absent.ndim, bool) if unobserved is None else unobserved
        spread = tuple(place for place, size in enumerate(absent.shape) if size == 1)
        missing = np.asarray(missing.all(axis=spread, keepdims=True))
        grown = Coverage(axes, absent)
        return replace(grown, absent=absent & grown.with_land(trained, missing).absent)

    def with_land(self, trained: Sequence[Axis], land: Mask) -> Coverage:
        """Return the coverage with other absent cells: some of the training grid, and all others.

        Parameters
        ----------
        trained
            Axes of the training grid.
        land
            Which of its cells are absent, of size 1 along axes on which they do not depend.
        """
        for place, (whole, own) in enumerate(zip(self.axes, trained, strict=True)):
            near, known = nearest(whole.numbers, own.numbers, whole.turn)
            if land.shape[place] > 1 or (self.absent.shape[place] > 1 and not known.all()):
                taken = land.take(near if land.shape[place] > 1 else np.zeros_like(near), place)
                land = taken | ~known.reshape([-1 if i == place else 1 for i in range(land.ndim)])
        return replace(self, absent=land)

    def _at_slices(self, grows: int, axis: Axis) -> Mask:
        """Return the absent cells at some slices; all cells of a slice that is new are absent."""
        if self.absent.shape[grows] == 1:
            return self.absent.copy()
        near, known = nearest(axis.numbers, self.axes[grows].numbers, axis.turn)
        absent = np.moveaxis(self.absent.take(near, grows), grows, 0)
        absent[~known] = True
        return np.moveaxis(absent, 0, grows)


def coverage_of(mask: Grid, axes: Sequence[Axis]) -> Coverage:
    """Return the coverage that a mask on some of the axes says: no data where it is 0 or NaN.

    Beyond its ends the mask says nothing, so that there is no data either; up to a step of it, the
    cell at the end decides.

    Parameters
    ----------
    mask
        The mask. Its dimensions are among those of the axes, by their names or by what they mean,
        at any coordinates.
    axes
        Axes of the data.

    Raises
    ------
    InputError
        If the mask has another dimension, or coordinates of another kind.
    """
    mask = drop_other_single(rename_like(mask, axes), axes)
    names = [axis.name for axis in axes]
    others = [dim for dim in mask.dims if dim not in names]
    if others:
        raise InputError(
            f"The mask '{mask.name}' has a dimension '{others[0]}'. The data has "
            f"{', '.join(names)}."
        )
    order = [mask.dims.index(axis.name) for axis in axes if axis.name in mask.dims]
    shape = [mask.axes[mask.dims.index(a.name)].size if a.name in mask.dims else 1 for a in axes]
    absent = np.nan_to_num(mask.values.transpose(order)).reshape(shape) == 0
    theirs = {axis.name: axis for axis in mask.axes}
    own = (
        axis.at(convert_coordinates(theirs[axis.name], axis)) if axis.name in theirs else axis
        for axis in axes
    )
    known = Coverage(tuple(own), absent)
    for place in range(len(axes)):
        known = _with_ends(known, place)
    return known


def _with_ends(known: Coverage, place: int) -> Coverage:
    """Return a coverage with an absent cell two steps beyond each end of an axis, if it has ends.

    Whatever lies more than a step beyond an end is nearer to that cell.
    """
    axis = known.axes[place]
    if known.absent.shape[place] == 1 or axis.labels is not None:
        return known
    numbers = _in_one_piece(axis.numbers, axis.turn)
    if natural_period(replace(axis, numbers=numbers)) is not None:
        return known
    low, high = numbers.min(), numbers.max()
    way = 2 * np.diff(np.sort(numbers)).max()
    if axis.turn is not None:
        way = min(way, (axis.turn - (high - low)) / 2)
    longer = replace(axis, numbers=np.append(numbers, [low - way, high + way]), written=None)
    widths = [(0, 2 if i == place else 0) for i in range(known.absent.ndim)]
    absent = np.pad(known.absent, widths, constant_values=True)
    return Coverage((*known.axes[:place], longer, *known.axes[place + 1 :]), absent)


def _in_one_piece(numbers: Array, turn: float | None) -> Array:
    """Return numbers moved by turns so that the widest gap on their circle is none between them."""
    if turn is None:
        return numbers
    ring = np.sort(np.mod(numbers, turn))
    start = ring[(np.argmax(np.diff(ring, append=ring[0] + turn)) + 1) % ring.size]
    return np.asarray(start + np.mod(numbers - start, turn))
