"""Cascades that grow along one axis: batch over all other levels, recursive over that one.

The axis that grows is kept in samples, all others in their frames, so a new slice is projected on
the frames and put behind the old ones. Nothing else is touched: the spectrum of the level that grew
is worked out anew when an answer first needs it. What comes out is the cascade that
:func:`dkrls_cli.cascade.cascade.fit` makes of all slices at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from dkrls_cli.arrays import Array, Indices, Tensor
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.spectrum import Spectrum
from dkrls_cli.cascade.tensors import along
from dkrls_cli.threads import one_blas_thread

_LEFT = 1e-13
"""Share of a slice that may lie outside of the frames: round-off of the data."""


class _Boards:
    """Room for slices, and how much of it is taken."""

    def __init__(self, array: Tensor, used: int) -> None:
        self.array, self.used = array, used


@dataclass(frozen=True, eq=False)
class Shelf:
    """Slices one behind the other, with room for more.

    A shelf never changes for those who hold it. Slices put behind it make a longer one on the same
    boards, unless other slices stand there already or the boards end: only then are all slices
    copied, to boards of twice the length. So n slices put one by one cost n slices moved.
    """

    boards: _Boards
    start: int
    stop: int

    @property
    def slices(self) -> Tensor:
        """All slices, read only."""
        slices = self.boards.array[self.start : self.stop]
        slices.setflags(write=False)
        return slices

    def behind(self, new: Tensor) -> Shelf:
        """The shelf with these slices behind its own."""
        boards, stop = self.boards, self.stop + len(new)
        if self.stop < boards.used or stop > len(boards.array):
            return _shelf(self.slices, room=2 * (stop - self.start)).behind(new)
        boards.array[self.stop : stop] = new
        boards.used = stop
        return Shelf(boards, self.start, stop)

    def without_first(self, count: int) -> Shelf:
        """The shelf without its first slices."""
        return Shelf(self.boards, self.start + count, self.stop)


def _shelf(slices: Tensor, room: int) -> Shelf:
    array = np.empty((room, *slices.shape[1:]), slices.dtype)
    array[: len(slices)] = slices
    return Shelf(_Boards(array, len(slices)), 0, len(slices))


@dataclass(frozen=True, eq=False)
class Growing:
    """A cascade, the axis along which it grows, and the shelf that its slices stand on.

    The shelf is None until the cascade grows for the first time.
    """

    cascade: Cascade
    axis: int
    shelf: Shelf | None = None

    @property
    def coordinates(self) -> Array:
        """Those of the slices."""
        return self.cascade.coordinates[self.axis]

    def grown(self, coordinates: Array, slices: Array, *, without: int = 0) -> Growing:
        """With new complete slices behind the old ones, of which the first may go.

        `slices` has the axes of the data.
        """
        cascade, projected = _framed(_in_samples(self.cascade, self.axis), self.axis, slices)
        new = np.moveaxis(projected, self.axis, 0)
        shelf = self.shelf
        if shelf is None or cascade is not self.cascade:
            old = np.moveaxis(cascade.core, self.axis, 0)
            shelf = _shelf(old, room=2 * (len(old) + len(new)))
        together = np.concatenate([self.coordinates[without:], coordinates])
        known = self.cascade.known_factor(self.axis) if without == 0 else None
        factor = known if known is not None and known.triangular else None
        return self._on(cascade, shelf.without_first(without).behind(new), together, factor)

    def without_first(self, count: int) -> Growing:
        """Without the first slices."""
        if self.shelf is None:
            return self.taken(np.arange(count, self.coordinates.size))
        return self._on(self.cascade, self.shelf.without_first(count), self.coordinates[count:])

    def taken(self, places: Indices) -> Growing:
        """Some of the slices, in this order."""
        cascade = _in_samples(self.cascade, self.axis)
        old = np.moveaxis(cascade.core, self.axis, 0)
        shelf = _shelf(old[places], room=2 * max(1, places.size))
        return self._on(cascade, shelf, self.coordinates[places])

    def slices(self, places: Indices) -> Array:
        """Some of the slices as they were given, with the axes of the data."""
        some = np.asarray(self._taken_samples(places), np.float64)
        for axis, frame in enumerate(self.cascade.frames):
            if frame is not None and axis != self.axis:
                some = along(some, axis, frame)
        return some

    def _taken_samples(self, places: Indices) -> Tensor:
        frame, core = self.cascade.frames[self.axis], self.cascade.core
        if frame is None:
            return core.take(places, self.axis)
        return along(core, self.axis, frame[places])

    def _on(
        self, cascade: Cascade, shelf: Shelf, coordinates: Array, factor: Spectrum | None = None
    ) -> Growing:
        """The cascade with the slices of a shelf; under a joint ridge all spectra go together.

        A factor that is given is of the first coordinates.
        """
        coordinates.setflags(write=False)
        axes, factors = list(cascade.coordinates), list(cascade.factors)
        axes[self.axis], factors[self.axis] = coordinates, factor
        if cascade.joint_ridge is not None:
            factors = [None] * cascade.ndim
        order = [*range(1, self.axis + 1), 0, *range(self.axis + 1, cascade.ndim)]
        core = shelf.slices.transpose(order)
        changed = replace(cascade, coordinates=tuple(axes), factors=tuple(factors), core=core)
        return Growing(changed, self.axis, shelf)


def _in_samples(cascade: Cascade, axis: int) -> Cascade:
    """The cascade with one axis kept in samples."""
    frame = cascade.frames[axis]
    if frame is None:
        return cascade
    return _reframed(cascade, axis, None, frame)


def _reframed(cascade: Cascade, axis: int, frame: Array | None, change: Array) -> Cascade:
    """The cascade with another frame of an axis, to which `change` leads from the old one."""
    frames = list(cascade.frames)
    frames[axis] = frame
    core = along(cascade.core, axis, change).astype(cascade.core.dtype, copy=False)
    return replace(cascade, frames=tuple(frames), core=cast(Tensor, core))


def _framed(cascade: Cascade, grows: int, slices: Array) -> tuple[Cascade, Array]:
    """Slices in the frames of a cascade, and the cascade, its frames wide enough for them."""
    for axis, frame in enumerate(cascade.frames):
        if frame is None or axis == grows:
            continue
        wide = _widened(frame, axis, slices)
        if wide is not frame:
            change = frame if wide is None else wide.T @ frame
            cascade = _reframed(cascade, axis, wide, change)
        if wide is not None:
            slices = along(slices, axis, wide.T)
    return cascade, slices


def _widened(frame: Array, axis: int, slices: Array) -> Array | None:
    """A frame that holds slices as well; None where it would be over a quarter of the samples."""
    left = slices - along(along(slices, axis, frame.T), axis, frame)
    whole = float(np.linalg.norm(slices))
    if float(np.linalg.norm(left)) <= _LEFT * whole:
        return frame
    fibres = np.moveaxis(left, axis, 0).reshape(len(frame), -1)
    with one_blas_thread():
        vectors, sizes, _ = np.linalg.svd(fibres, full_matrices=False)
        new = vectors[:, sizes > 0.1 * _LEFT * whole]
        if frame.shape[1] + new.shape[1] > len(frame) // 4:
            return None
        return np.linalg.qr(np.column_stack([frame, new]))[0]
