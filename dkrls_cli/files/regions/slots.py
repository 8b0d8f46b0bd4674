"""Slots: variables of a file before they have values, and how a region of one is stored.

A whole field is stored as :func:`dkrls_cli.files.packing.encode` finds best once all of its values
are known. A region has to be stored before that. What the type of a variable cannot hold is stored
as the nearest number that it can, is counted, and is told at the end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Slices
from dkrls_cli.errors import OutputError
from dkrls_cli.files.packing import (
    RANGES,
    packed_range,
    store_integers,
    true_ranges,
    unpacked_note,
)
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.style import Packing, Style

# Cells that are stored at a time: 8 MB of float64, so that copies of them take little memory.
_BLOCK = 2**20


@dataclass(frozen=True, eq=False)
class Blank:
    """A variable to write whose values are not known yet.

    Attributes
    ----------
    name, axes, attrs, style
        As a :class:`dkrls_cli.files.writing.Field` has them.
    may_miss
        Whether values may be missing: they need a mark then.
    """

    name: str
    axes: Sequence[Axis]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    style: Style = field(default_factory=Style)
    may_miss: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return tuple(axis.size for axis in self.axes)


@dataclass(frozen=True)
class Tally:
    """What is known of the regions of a variable that are written: tallies are added up.

    Attributes
    ----------
    low, high
        Smallest and largest value.
    stored_low, stored_high
        Those of the packed integers.
    beyond
        Values that the type cannot hold.
    marked
        Values equal to a mark of missing ones.
    """

    low: float = math.inf
    high: float = -math.inf
    stored_low: int | None = None
    stored_high: int | None = None
    beyond: int = 0
    marked: int = 0

    def __add__(self, other: Tally) -> Tally:
        """Return what is known of the regions of both."""
        lows = [low for low in (self.stored_low, other.stored_low) if low is not None]
        highs = [high for high in (self.stored_high, other.stored_high) if high is not None]
        return Tally(
            min(self.low, other.low),
            max(self.high, other.high),
            min(lows, default=None),
            max(highs, default=None),
            self.beyond + other.beyond,
            self.marked + other.marked,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers by name, for a file of JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Tally:
        """Return a tally of numbers that :meth:`as_dict` has given."""
        return cls(**{each.name: numbers[each.name] for each in fields(cls)})


@dataclass(frozen=True, eq=False)
class Slot:
    """How regions of a variable are stored; it can be pickled.

    Attributes
    ----------
    name, shape
        Name of the variable, and sizes of its dimensions.
    dtype
        Type in which it is stored.
    attrs
        Attributes that hold whatever the values are.
    stated
        Attributes that state a range of the values, in their units.
    packing
        How values are stored as integers, if they are.
    fill
        The number that marks missing values among floating ones; NaN if there is none.
    notes
        What cannot be stored as in the source, a sentence each.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    attrs: dict[str, Any]
    stated: dict[str, Any]
    packing: Packing | None = None
    fill: float = math.nan
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, blank: Blank, attrs: Mapping[str, Any]) -> Slot:
        """Return how a blank with some attributes is stored."""
        kept = {key: value for key, value in attrs.items() if key not in RANGES}
        stated = {key: value for key, value in attrs.items() if key in RANGES}
        style, packing = blank.style, blank.style.packing
        if packing is not None and (not blank.may_miss or packing.marks):
            own = {key: value for key, value in packing.attrs.items() if key not in RANGES}
            return cls(blank.name, blank.shape, packing.dtype, {**kept, **own}, stated, packing)
        kind = np.dtype(style.dtype).type
        fill = math.nan if style.fill is None else style.fill
        marks = style.marks if style.fill is not None else ("_FillValue",) * blank.may_miss
        notes = [unpacked_note(blank.name, style.dtype, packing)] if packing else []
        own = dict.fromkeys(marks, kind(fill))
        attrs = {**kept, **own}
        return cls(blank.name, blank.shape, style.dtype, attrs, stated, None, fill, tuple(notes))

    def region(self, part: Slices, values: NDArray[Any]) -> Slices:
        """Return a region with the start and stop of each slice, or raise ValueError.

        Libraries would repeat values that are too few.
        """
        ends = [own.indices(size) for own, size in zip(part, self.shape, strict=True)]
        found = tuple(slice(start, stop) for start, stop, _ in ends)
        sizes = tuple(own.stop - own.start for own in found)
        if sizes != values.shape or any(step != 1 for _, _, step in ends):
            raise ValueError(f"values of shape {values.shape} do not fill {part} of '{self.name}'")
        return found

    def store(self, values: NDArray[Any]) -> tuple[NDArray[Any], Tally]:
        """Return a region as it is stored, and what is known of it.

        Raises
        ------
        OutputError
            If floating numbers are too large for the type, or values are missing that no integer
            stands for.
        """
        if (known := self._plain(values)) is not None:
            return values, known
        stored, tally = np.empty(values.shape, self.dtype), Tally()
        given, found = np.ascontiguousarray(values).reshape(-1), stored.reshape(-1)
        put = self._put_floats if self.packing is None else self._put_integers
        for start in range(0, given.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            tally += put(given[block], found[block])
        return stored, tally

    def _plain(self, values: NDArray[Any]) -> Tally | None:
        """Return what is known of values that are stored as they are; None if some may not be.

        That is so if they have the stored type, none is missing, and no mark is among them.
        """
        if self.packing is not None or values.dtype != self.dtype or not values.size:
            return None
        low, high = float(values.min()), float(values.max())
        if not math.isfinite(low) or not math.isfinite(high):  # NaN if one value is
            return None
        mark = float(values.dtype.type(self.fill))
        return None if low <= mark <= high else Tally(low, high)

    def _put_floats(self, values: NDArray[Any], stored: NDArray[Any]) -> Tally:
        with np.errstate(over="ignore"):
            stored[...] = values
        missing = np.isnan(stored)
        if not np.array_equal(np.isinf(stored), np.isinf(values)):
            most = np.abs(values[~missing]).max()
            raise OutputError(
                f"'{self.name}' has {most:g}, which {self.dtype} cannot hold. Write it in another "
                "type."
            )
        fill = stored.dtype.type(self.fill)
        marked = stored == fill
        stored[marked] = np.nextafter(fill, type(fill)(0 if fill else 1))
        if not math.isnan(self.fill):
            stored[missing] = self.fill
        there = values[~missing]
        return Tally(_low(there), _high(there), marked=int(np.count_nonzero(marked)))

    def _put_integers(self, values: NDArray[Any], stored: NDArray[Any]) -> Tally:
        assert self.packing is not None
        there = ~np.isnan(values)
        if not there.all() and not self.packing.marks:
            raise OutputError(
                f"'{self.name}' has missing cells, and no mark for them in {self.dtype}."
            )
        stored[...], packed = store_integers(values, there, self.packing)
        own, known = packed.stored, values[there]
        low, high = (int(own.min()), int(own.max())) if own.size else (None, None)
        return Tally(_low(known), _high(known), low, high, packed.beyond, packed.marked)

    def ranges(self, tally: Tally) -> dict[str, Any]:
        """Return the attributes that state a range which holds for all that is written."""
        ends = np.array([tally.low, tally.high] if tally.low <= tally.high else [math.nan])
        if self.packing is None:
            return true_ranges(self.stated, ends, np.dtype(self.dtype))
        own = {key: value for key, value in self.packing.attrs.items() if key in RANGES}
        stored = ends
        if tally.stored_low is not None and tally.stored_high is not None:
            stored = np.array([tally.stored_low, tally.stored_high], self.dtype)
        return {**true_ranges(self.stated, ends), **true_ranges(own, stored)}

    def all_notes(self, tally: Tally) -> list[str]:
        """Return what was not stored as in the source, or not as it is, a sentence each."""
        notes = list(self.notes)
        if tally.beyond and self.packing is not None:
            low, high = packed_range(self.packing)
            notes.append(
                f"{tally.beyond} cells of '{self.name}' lie beyond {low:g} to {high:g}, which its "
                f"{self.dtype} can hold, and are stored as the nearer of the two"
            )
        if tally.marked:
            notes.append(
                f"{tally.marked} cells of '{self.name}' equal a mark of missing values, and are "
                "stored as the next number beside it"
            )
        return notes


def _low(values: NDArray[Any]) -> float:
    return float(values.min(initial=math.inf))


def _high(values: NDArray[Any]) -> float:
    return float(values.max(initial=-math.inf))
