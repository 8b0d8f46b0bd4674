"""Cascades that grow along one axis: batch over all other levels, recursive over that one.

The axis that grows is kept in samples, all others in their frames, so a new slice is projected on
the frames and appended to the old ones. Nothing else is touched: the spectrum of the level that
grew is computed again when an answer first needs it. The result is the cascade that
:func:`dkrls_cli.cascade.fit.fit_cascade` makes of all slices at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self, cast

import numpy as np

from dkrls_cli.arrays import Array, Indices, Tensor, fits_single
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.factors.levels import AnyFactor
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.tensors import along
from dkrls_cli.threads import one_blas_thread

# Share of a slice that may lie outside of the frames: round-off of the data.
_OUTSIDE_FRAME = 1e-13


class _Buffer:
    """An array with room for more slices, and the number of slices in use."""

    def __init__(self, array: Tensor, used: int) -> None:
        self.array, self.used = array, used


@dataclass(frozen=True, eq=False)
class SliceStore:
    """Slices one behind the other, with room for more.

    A store never changes for those who hold it. Appending returns a longer store on the same
    buffer, unless other slices were appended there already or the buffer is full: only then are all
    slices copied, to a buffer of twice the length. So appending n slices one by one copies O(n).
    """

    buffer: _Buffer
    start: int
    stop: int

    @property
    def slices(self) -> Tensor:
        """All slices, read only."""
        slices = self.buffer.array[self.start : self.stop]
        slices.setflags(write=False)
        return slices

    def append(self, new: Tensor) -> SliceStore:
        """Return the store with these slices behind its own."""
        buffer, stop = self.buffer, self.stop + len(new)
        if self.stop < buffer.used or stop > len(buffer.array):
            return _store(self.slices, room=2 * (stop - self.start)).append(new)
        buffer.array[self.stop : stop] = new
        buffer.used = stop
        return SliceStore(buffer, self.start, stop)

    def drop_first(self, count: int) -> SliceStore:
        """Return the store without its first slices."""
        return SliceStore(self.buffer, self.start + count, self.stop)


@dataclass(frozen=True, eq=False)
class Stored:
    """The slices of a cascade that grows, and their coordinates.

    Attributes
    ----------
    slices, coordinates
        Both with room for more, so that appending touches nothing but what is new.
    rises
        Whether the coordinates are known to rise.
    """

    slices: SliceStore
    coordinates: SliceStore
    rises: bool

    @classmethod
    def build(cls, slices: Tensor, coordinates: Array, room: int) -> Self:
        """Return a store with room for `room` slices in all."""
        rises = does_rise(coordinates)
        return cls(_store(slices, room), _store(coordinates, room), rises)

    def append(self, coordinates: Array, slices: Tensor) -> Self:
        """Return the store with these slices behind its own."""
        last = self.coordinates.slices[-1:]
        rises = self.rises and does_rise(np.concatenate([last, coordinates]))
        return type(self)(self.slices.append(slices), self.coordinates.append(coordinates), rises)

    def drop_first(self, count: int) -> Self:
        """Return the store without its first slices."""
        slices, coordinates = self.slices.drop_first(count), self.coordinates.drop_first(count)
        return type(self)(slices, coordinates, self.rises)


def does_rise(coordinates: Array) -> bool:
    """Return whether every coordinate is above the one before it."""
    return bool((coordinates[1:] > coordinates[:-1]).all())


def _store(slices: Tensor, room: int) -> SliceStore:
    """Return a store of slices in a new buffer."""
    array = np.empty((room, *slices.shape[1:]), slices.dtype)
    array[: len(slices)] = slices
    return SliceStore(_Buffer(array, len(slices)), 0, len(slices))


@dataclass(frozen=True, eq=False)
class Growing:
    """A cascade, the axis along which it grows, and the store of its slices.

    The store is None until the cascade grows for the first time.
    """

    cascade: Cascade
    axis: int
    store: Stored | None = None

    @property
    def coordinates(self) -> Array:
        """Coordinates of the slices."""
        return self.cascade.coordinates[self.axis]

    @property
    def rises(self) -> bool:
        """Whether the coordinates rise."""
        return does_rise(self.coordinates) if self.store is None else self.store.rises

    def append(self, coordinates: Array, slices: Array, *, drop: int = 0) -> Growing:
        """Return the cascade with new complete slices behind the old ones.

        The first `drop` old slices are left out. `slices` has the axes of the data.
        """
        cascade, projected = _project(_in_samples(self.cascade, self.axis), self.axis, slices)
        if cascade.exact and not fits_single(projected):
            cascade = cascade.widen()
        new = np.moveaxis(projected, self.axis, 0)
        store = self.store
        if store is None or cascade is not self.cascade:
            old = np.moveaxis(cascade.core, self.axis, 0)
            store = Stored.build(old, self.coordinates, room=2 * (len(old) + len(new)))
        known = self.cascade.known_factor(self.axis) if drop == 0 else None
        factor = known if isinstance(known, LongFactor) else None
        return self._with_store(cascade, store.drop_first(drop).append(coordinates, new), factor)

    def drop_first(self, count: int) -> Growing:
        """Return the cascade without its first slices."""
        if self.store is None:
            return self.take(np.arange(count, self.coordinates.size))
        return self._with_store(self.cascade, self.store.drop_first(count))

    def take(self, places: Indices) -> Growing:
        """Return the cascade with some of its slices, in this order."""
        cascade = _in_samples(self.cascade, self.axis)
        old = np.moveaxis(cascade.core, self.axis, 0)
        room = 2 * max(1, places.size)
        return self._with_store(cascade, Stored.build(old[places], self.coordinates[places], room))

    def slices(self, places: Indices) -> Array:
        """Return some of the slices as they were given, with the axes of the data."""
        some = np.asarray(self.samples(places), np.float64)
        for axis, frame in enumerate(self.cascade.frames):
            if frame is not None and axis != self.axis:
                some = along(some, axis, frame)
        return some

    def samples(self, places: Indices) -> Tensor:
        """Return some of the slices in the frames of the other axes."""
        frame, core = self.cascade.frames[self.axis], self.cascade.core
        if frame is None:
            return np.moveaxis(np.moveaxis(core, self.axis, 0)[places], 0, self.axis)
        return along(core, self.axis, frame[places])

    def _with_store(
        self,
        cascade: Cascade,
        store: Stored,
        factor: AnyFactor | None = None,
    ) -> Growing:
        """Return the cascade with the slices of a store.

        `factor` is that of the first coordinates, where it is known and can be extended.
        """
        axes = list(cascade.coordinates)
        axes[self.axis] = np.asarray(store.coordinates.slices, np.float64)
        factors = cascade.solver.factors_after(self.axis, factor)
        order = [*range(1, self.axis + 1), 0, *range(self.axis + 1, cascade.ndim)]
        core = store.slices.slices.transpose(order)
        changed = replace(cascade, coordinates=tuple(axes), factors=factors, core=core)
        return Growing(changed, self.axis, store)


def _in_samples(cascade: Cascade, axis: int) -> Cascade:
    """Return the cascade with one axis kept in samples."""
    frame = cascade.frames[axis]
    if frame is None:
        return cascade
    return _change_frame(cascade, axis, None, frame)


def _change_frame(cascade: Cascade, axis: int, frame: Array | None, change: Array) -> Cascade:
    """Return the cascade with another frame of an axis; `change` leads there from the old one."""
    frames = list(cascade.frames)
    frames[axis] = frame
    core = along(cascade.core, axis, change).astype(cascade.storage, copy=False)
    return replace(cascade, frames=tuple(frames), core=cast(Tensor, core), exact=False)


def _project(cascade: Cascade, grows: int, slices: Array) -> tuple[Cascade, Array]:
    """Return the cascade with frames wide enough for new slices, and the slices in them."""
    for axis, frame in enumerate(cascade.frames):
        if frame is None or axis == grows:
            continue
        wide = _widen(frame, axis, slices)
        if wide is not frame:
            change = frame if wide is None else wide.T @ frame
            cascade = _change_frame(cascade, axis, wide, change)
        if wide is not None:
            slices = along(slices, axis, wide.T)
    return cascade, slices


def _widen(frame: Array, axis: int, slices: Array) -> Array | None:
    """Return a frame that holds the slices as well; None if it exceeds a quarter of the samples."""
    left = slices - along(along(slices, axis, frame.T), axis, frame)
    whole = float(np.linalg.norm(slices))
    if float(np.linalg.norm(left)) <= _OUTSIDE_FRAME * whole:
        return frame
    fibres = np.moveaxis(left, axis, 0).reshape(len(frame), -1)
    with one_blas_thread():
        vectors, sizes, _ = np.linalg.svd(fibres, full_matrices=False)
        new = vectors[:, sizes > 0.1 * _OUTSIDE_FRAME * whole]
        if frame.shape[1] + new.shape[1] > len(frame) // 4:
            return None
        return np.linalg.qr(np.column_stack([frame, new]))[0]
