"""A latitude that goes on across the poles, beside a longitude that closes the circle.

Going north across the pole one comes down on the other side of the globe: the row of a field at
latitude 90 + d is its row at 90 - d, half a turn of longitude away, with the same sign for a scalar
and with the opposite one for the components of a vector, whose directions turn round at the pole.
A *continuation* adds such rows, copies of those nearest to each pole that is reached, behind the
ends of the latitudes. The level of latitude then has more samples and no end near a pole; nothing
else of a cascade changes.

On a whole circle of latitudes that is the model of a Gaussian process with the kernel
k(x, x') + s k(x, Mx'), where M goes across the pole and s is the sign: rows and copies are no
independent data, but the answers are those of the symmetric kernel on the rows alone. A dozen rows
stand for the circle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices, Mask, Tensor
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.tensors import Operator, apply
from dkrls_cli.circle import nearest, spacing, wrap

T = TypeVar("T", np.float64, np.float32, np.bool_)

POLE = 90.0
"""Latitude of a pole in degrees."""

ROWS = 12
"""Rows behind a pole at most: rough fields need three, very smooth ones gain up to these."""

_ROUNDING = 1e-4
"""Degrees by which single precision may move a latitude."""

_REACHES = 1.5
"""Steps from the last latitude to the pole at most: as far as circles may close."""

_FEWEST = 4
"""Latitudes at least: fewer say nothing of what lies behind the last."""

_SAME = 1e-3
"""Part of a step within which a latitude is at the pole, and longitudes are the same."""


@dataclass(frozen=True, eq=False)
class Continuation:
    """Rows that go on behind the ends of the latitudes.

    Attributes
    ----------
    latitude, longitude
        Axes of the data.
    sign
        1 for scalars, -1 for components of vectors.
    before, after
        Places of the latitudes that are copied in front of the first and behind the last, in the
        order in which the copies stand.
    longitudes
        Coordinates of the ring.
    ring
        Level of the ring: its kernel has the period of the ring. Where a longitude half a turn away
        is not in the data, its model is asked.
    mean
        Value to which that model falls back.
    """

    latitude: int
    longitude: int
    sign: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    longitudes: Array
    ring: Level
    mean: float = 0.0

    @cached_property
    def turn(self) -> Operator:
        """Operator that takes the ring to the places half a turn away: see :func:`half_turn`."""
        return half_turn(self.longitudes, self.ring)

    @property
    def rows(self) -> int:
        """Number of rows that are added."""
        return len(self.before) + len(self.after)

    def inner(self, size: int) -> slice:
        """Return where the rows of the data are among `size` rows in all."""
        return slice(len(self.before), size - len(self.after))

    def cut(self, values: NDArray[T]) -> NDArray[T]:
        """Return values without the rows that were added."""
        whole: list[slice] = [slice(None)] * values.ndim
        whole[self.latitude] = self.inner(values.shape[self.latitude])
        return values[tuple(whole)]

    def nearest(self, most: int) -> Continuation:
        """Return at most so many of the rows behind each pole, those next to it."""
        return replace(self, before=self.before[-most:], after=self.after[:most])

    def extend_latitudes(self, latitudes: Array) -> Array:
        """Return the latitudes with those of the rows that are added."""
        first, last = (np.copysign(2 * POLE, latitudes[end]) for end in (0, -1))
        return np.concatenate(
            [
                first - latitudes[list(self.before)],
                latitudes,
                last - latitudes[list(self.after)],
            ]
        )

    def extend(self, values: Tensor) -> Tensor:
        """Return values with the rows that are added, NaN where cells are missing.

        Where the model of a ring is asked, all of the copy of a ring with missing cells is missing.
        """
        before, after = self.copied(values)
        together = np.concatenate([before, values, after], axis=self.latitude)
        return cast(Tensor, together)

    def copied(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rows that are added, those before all others and those after them."""
        return self._copy(values, self.before), self._copy(values, self.after)

    def extend_mask(self, mask: Mask) -> Mask:
        """Return which cells are marked, with the rows that are added."""
        return np.isnan(self.extend(np.where(mask, np.nan, 0.0)))

    def _copy(self, values: Tensor, rows: Sequence[int]) -> Tensor:
        """Return some rows as they are seen from the other side of a pole."""
        some, turn = values.take(np.array(rows, np.intp), self.latitude), self.turn
        if isinstance(turn, np.ndarray) and turn.ndim == 1:
            return self.sign * some.take(turn, self.longitude)
        operators: list[Operator] = [None] * values.ndim
        operators[self.longitude] = turn
        centred = np.asarray(some, np.float64) - self.mean
        return self.sign * (apply(centred, operators) + self.mean)

    def copies(self, size: int) -> Indices:
        """Return, for each of `size` rows in all, the place of the row that it copies, or -1."""
        start = len(self.before)
        own = np.full(size - self.rows, -1)
        before, after = (np.array(rows, np.intp) + start for rows in (self.before, self.after))
        return np.concatenate([before, own, after])

    def reach(self, latitudes: Array) -> Array:
        """Return latitudes, and the poles that data lies on both sides of."""
        ends = [end for end, rows in ((0, self.before), (-1, self.after)) if rows]
        return np.append(latitudes, [np.copysign(POLE, latitudes[end]) for end in ends])

    def bare(self, cascade: Cascade) -> Cascade:
        """Return a cascade without the rows that were added."""
        axis = self.latitude
        kept = self.inner(cascade.shape[axis])
        coordinates, factors = list(cascade.coordinates), list(cascade.factors)
        coordinates[axis], factors[axis] = coordinates[axis][kept], None
        frame, frames, core = cascade.frames[axis], list(cascade.frames), cascade.core
        if frame is None:
            core = cast(Tensor, self.cut(cast(Array, core)))
        else:
            frames[axis] = frame[kept]
        if cascade.joint_ridge is not None:
            factors = [None] * cascade.ndim
        return replace(
            cascade,
            coordinates=tuple(coordinates),
            factors=tuple(factors),
            frames=tuple(frames),
            core=core,
        )

    def restores(self, cascade: Cascade) -> bool:
        """Return whether a cascade is its bare one with the rows added again, to the last bit."""
        in_samples = (
            cascade.frames[self.latitude] is None and cascade.frames[self.longitude] is None
        )
        if not in_samples or not isinstance(self.turn, np.ndarray) or self.turn.ndim != 1:
            return False
        bare = cast(Tensor, self.cut(cast(Array, cascade.core)))
        return np.array_equal(self.extend(bare), cascade.core)

    def restore(self, bare: Cascade) -> Cascade:
        """Return the cascade that :meth:`bare` was made of, if :meth:`restores` said so."""
        coordinates = list(bare.coordinates)
        coordinates[self.latitude] = self.extend_latitudes(coordinates[self.latitude])
        core = self.extend(bare.core)
        core.setflags(write=False)
        return replace(bare, coordinates=tuple(coordinates), core=core)


def plan_rows(latitudes: Array) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the places of latitudes to copy in front of the first and behind the last.

    None are copied behind an end that reaches no pole. The latitudes rise or fall, or none is.

    Examples
    --------
    >>> before, after = plan_rows(np.linspace(-90.0, 80.0, 18))
    >>> before[-3:], after[:3]
    ((3, 2, 1), (17, 16, 15))
    >>> plan_rows(np.linspace(-60.0, 60.0, 13))
    ((), ())
    """
    steps = np.sign(np.diff(latitudes))
    beyond = latitudes.size < _FEWEST or np.abs(latitudes).max() > POLE + _ROUNDING
    if beyond or not (np.unique(steps).size == 1 and steps[0]):
        return (), ()
    inwards = np.arange(latitudes.size)
    return _behind(latitudes, inwards)[::-1], _behind(latitudes, inwards[::-1])


def _behind(latitudes: Array, inwards: Indices) -> tuple[int, ...]:
    """Return the places of the rows to copy behind one end, the nearest to the pole first."""
    step, first = spacing(latitudes), float(latitudes[inwards[0]])
    if (latitudes[inwards[1]] - first) * first > 0 or POLE - abs(first) > _REACHES * step:
        return ()
    at_pole = POLE - abs(first) <= _SAME * step
    most = min(ROWS, latitudes.size // 2)
    return tuple(inwards[int(at_pole) :][:most].tolist())


def half_turn(longitudes: Array, ring: Level) -> Operator:
    """Return what takes a ring of longitudes to the places half a turn away.

    These are the places of longitudes, where all are the same half a turn away; else rows that ask
    the model of the ring there.
    """
    period = ring.kernel.period
    assert period is not None
    asked = longitudes + period / 2
    near = nearest(asked, longitudes, period)[0]
    away = wrap(asked - longitudes[near] + period / 2, period) - period / 2
    same = np.abs(away) <= _SAME * spacing(longitudes)
    if same.all():
        return near
    model = Cascade((ring,), (longitudes,), (None,), (None,), np.zeros(longitudes.size))
    return model.answer_rows(0, np.where(same, longitudes[near], asked), smooth=False)
