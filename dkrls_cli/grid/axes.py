"""Axes: what the coordinates of a dimension mean, to numbers and back.

A kernel sees numbers only. An axis knows what they stand for (plain numbers, dates of some
calendar, text labels, or just positions) and how to read and write them in the user's own terms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.grid.cf import counts_time, in_units_of, marked_role, role_of
from dkrls_cli.spelling import suggest

Attributes = Mapping[str, Any]
NO_ATTRIBUTES: Attributes = MappingProxyType({})

# Degrees in a full turn of longitude.
_CIRCLE = 360.0
# Decimals of degrees to which two longitudes are compared, in single and in double precision.
_DIGITS = {"float32": 4, "float64": 9}
# Degrees from zero beyond which a latitude (but for rounding) or a longitude is none: nobody writes
# longitudes more than two turns from Greenwich, and marks of missing ones, like -999, lie beyond.
_FARTHEST = {"latitude": 90.001, "longitude": 2 * _CIRCLE}
# Degrees beyond which the latitudes of another grid are none: up to there they may be rows beyond
# the poles, which stay missing, and those of 0 to 180 degrees are counted from a pole.
_NO_HALO = 100.0
# Other names of calendars: of those that agree on all dates since 1582, and so may be joined, and
# of the same ones.
_SAME_CALENDARS = {
    "": "standard",
    **dict.fromkeys(("gregorian", "proleptic_gregorian"), "standard"),
    "365_day": "noleap",
    "366_day": "all_leap",
}
# A coordinate that differs from a known one in the last digit of single precision is that one, if
# this is at most so much of a step: what is computed in single precision is off by as much.
_PART_OF_STEP = 0.125
# Coordinates or labels that a message lists before it says only how many there are.
_MOST_LISTED = 4


@dataclass(frozen=True, eq=False)
class Axis:
    """The coordinates of one dimension.

    Attributes
    ----------
    name
        Name of the dimension.
    numbers
        The coordinates as the kernel sees them (m,).
    dtype
        Type in which the coordinates were stored, and in which they are written again.
    time
        What the numbers mean as dates, if they do.
    labels
        The texts at positions 0, 1, 2, ... if the coordinates are texts.
    attrs
        Attributes of the coordinate, without the units and calendar of a time axis.
    has_coordinate
        False for a dimension without a coordinate: the numbers are positions.
    turn
        Numbers this far apart are the same place: 360 for degrees of longitude, else None.
    written
        The numbers as the user writes them, where they are turns away from those the kernel sees,
        or these in single precision.
    """

    name: str
    numbers: Array
    dtype: str = "float64"
    time: TimeScale | None = None
    labels: tuple[str, ...] | None = None
    attrs: Attributes = field(default_factory=dict)
    has_coordinate: bool = True
    turn: float | None = None
    written: Array | None = None

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self.numbers.size

    @property
    def units(self) -> str:
        """Units of the numbers, empty if they are not known."""
        return self.time.units if self.time else str(self.attrs.get("units", ""))

    @property
    def length_units(self) -> str:
        """Units of distances between the coordinates, empty if there are none or not known.

        Of ``days since 2000-01-01`` they are days.
        """
        if self.labels is not None:
            return ""
        counted = self.units.lower().partition(" since ")
        word = self.units[: len(counted[0])].strip()
        return "" if word == "1" else word

    @property
    def plain(self) -> Array:
        """The numbers as the user writes them."""
        return self.numbers if self.written is None else self.written

    @property
    def values(self) -> NDArray[Any]:
        """The coordinates in the user's terms, in their stored type where it can hold them."""
        if self.labels is not None:
            return np.array(self.labels)[self.numbers.astype(np.intp)]
        return self.time.dates(self.numbers) if self.time else self.stored

    @property
    def stored(self) -> NDArray[Any]:
        """The plain numbers in the stored type if it holds them all exactly, else in float64."""
        if self.dtype == "str":
            return self.plain
        with np.errstate(invalid="ignore", over="ignore"):
            stored = self.plain.astype(self.dtype)
        return stored if np.array_equal(stored.astype(np.float64), self.plain) else self.plain

    @property
    def texts(self) -> list[str]:
        """The coordinates as texts that `at` reads back."""
        if self.labels is not None:
            return [self.labels[int(n)] for n in self.numbers]
        return (
            self.time.texts(self.numbers) if self.time else [str(n) for n in self.stored.tolist()]
        )

    def at(self, values: Any, *, single: bool = False) -> Axis:
        """Return the axis at other coordinates, given as dates, labels or numbers.

        Numbers in single precision mean the coordinates that they equal to so many digits, also
        where they were converted since, which `single` says.
        """
        plain = self._plain(values)
        numbers = self._unwrap_all(plain, values, single)
        differ = self.turn is not None or not np.array_equal(numbers, plain)
        return replace(self, numbers=numbers, written=plain if differ else None)

    def encode(self, values: Any, *, single: bool = False) -> Array:
        """Return coordinates in the user's terms as the numbers that the kernel sees: as `at`."""
        return self._unwrap_all(self._plain(values), values, single)

    def _unwrap_all(self, plain: Array, given: Any, single: bool) -> Array:
        """Return plain numbers as the kernel sees them; those in single precision as it has them.

        `given` is what they were read from.
        """
        numbers = self.unwrap(plain)
        single = single or "float32" in (self.dtype, np.asarray(given).dtype)
        return _snap(numbers, self.numbers) if single and self.labels is None else numbers

    def take(self, indices: Any) -> Axis:
        """Return the axis at some of its own coordinates."""
        written = None if self.written is None else self.written[indices]
        return replace(self, numbers=self.numbers[indices], written=written)

    @property
    def distinct(self) -> NDArray[np.intp]:
        """Positions of the coordinates that do not repeat an earlier one whole turns away.

        Coordinates are compared to the decimals of degrees that their stored type can hold. Equal
        coordinates are all returned: they are a fault of the data, not a way to close a circle.
        """
        if self.turn is None or np.unique(self.plain).size < self.size:
            return np.arange(self.size)
        digits = _DIGITS.get(self.dtype, _DIGITS["float64"])
        spots = np.round(np.mod(self.plain, self.turn), digits) % self.turn
        return np.sort(np.unique(spots, return_index=True)[1])

    def continue_with(self, theirs: Axis) -> Axis:
        """Return the coordinates of another axis in the terms of this one, to follow it.

        New labels get the next positions, and so do positions where neither has a coordinate.
        """
        if self.labels is not None and theirs.labels is not None:
            labels = tuple(dict.fromkeys([*self.labels, *theirs.texts]))
            return replace(self, labels=labels).at(theirs.texts)
        if not self.has_coordinate and not theirs.has_coordinate:
            return replace(self, numbers=theirs.numbers + self.numbers.max() + 1)
        return self.at(convert_coordinates(theirs, self), single=theirs.dtype == "float32")

    def append(self, new: Axis, *, without: int = 0) -> Axis:
        """Return this axis followed by a new one in its terms, without the first coordinates."""
        numbers = np.concatenate([self.numbers[without:], new.numbers])
        written = np.concatenate([self.plain[without:], new.plain]) if self.turn else None
        return replace(self, numbers=numbers, written=written, labels=new.labels)

    def unwrap(self, plain: Array) -> Array:
        """Move numbers by whole turns into the range of the axis, or else nearest to it."""
        if self.turn is None:
            return plain
        low, high = self.numbers.min(), self.numbers.max()
        numbers = plain - self.turn * np.floor((plain - low) / self.turn)
        below = (numbers > high) & (numbers - high > low + self.turn - numbers)
        return np.asarray(np.where(below, numbers - self.turn, numbers))

    def _plain(self, values: Any) -> Array:
        """Return coordinates in the user's terms as numbers, not yet moved by turns."""
        _refuse_masked(self.name, values)
        given = np.atleast_1d(np.asarray(values))
        if self.labels is not None:
            return self._positions(given)
        if self.time is not None and given.dtype.kind not in "fiu":
            numbers = self.time.numbers(given)
        else:
            numbers = self._as_numbers(given)
        return _snap(numbers, self.plain) if self.dtype == "float32" else numbers

    def _as_numbers(self, given: NDArray[Any]) -> Array:
        """Return numbers, or texts of them, as such, or raise SettingError."""
        try:
            return given.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            bad = next(str(v) for v in given.flat if not _is_number(v))
            raise SettingError(
                f"'{bad}' is not a number, as the coordinates of '{self.name}' are."
            ) from None

    def _positions(self, given: NDArray[Any]) -> Array:
        """Return the positions of labels, or raise SettingError if one is unknown."""
        place = {label: position for position, label in enumerate(self.labels or ())}
        unknown = [str(v) for v in given if str(v) not in place]
        if unknown:
            raise SettingError(
                f"'{self.name}' has no '{unknown[0]}'. It has the text labels "
                f"{list_some(list(place))}; there is nothing between labels."
                f"{suggest(unknown[0], place)}"
            )
        return np.array([float(place[str(v)]) for v in given])


def _snap(numbers: Array, known: Array) -> Array:
    """Replace numbers that equal a coordinate in single precision by that coordinate.

    A file may store 0.1 in single precision; whoever writes 0.1 means that coordinate.
    """
    place, same = _equal_in_single(numbers, known)
    return np.where(same, known[place], numbers)


def _equal_in_single(numbers: Array, known: Array) -> tuple[Indices, Mask]:
    """Return the index of the coordinate next to each number, and which of them are one place.

    They are if they are the same number in single precision, or if the sums and products that made
    one of them may account for the difference. A number that two coordinates share is neither.
    """
    nowhere = np.zeros(numbers.shape, np.intp), np.zeros(numbers.shape, bool)
    if known.size < 2:
        return nowhere
    low, high = float(known.min()), float(known.max())
    precision = 4 * float(np.finfo(np.float32).eps) * max(abs(low), abs(high))
    if ((numbers < low - precision) | (numbers > high + precision)).all():
        return nowhere
    order = np.argsort(known, kind="stable")
    rising = known[order]
    above = np.clip(np.searchsorted(rising, numbers), 1, known.size - 1)
    nearer_below = numbers - rising[above - 1] < rising[above] - numbers
    near = np.where(nearer_below, above - 1, above)
    step = float(np.min(np.diff(rising)))
    with np.errstate(over="ignore"):
        single, digit = rising.astype(np.float32), np.spacing(np.abs(rising).astype(np.float32))
        equal = (numbers.astype(np.float32) == single[near]) & (digit[near] < step)
    slack = np.maximum(
        min(precision, 1e-3 * step), np.where(digit <= _PART_OF_STEP * step, digit, 0)
    )
    return order[near], equal | (np.abs(numbers - rising[near]) <= slack[near])


def _refuse_masked(name: str, values: Any) -> None:
    """Raise InputError if a coordinate is masked: what stands below a mask is no coordinate."""
    if np.ma.is_masked(values):
        count = int(np.count_nonzero(np.ma.getmaskarray(values)))
        raise InputError(
            f"{count} of {np.size(values)} coordinates of '{name}' are masked. Expected a number, "
            "a date or a text for each: leave such slices out."
        )


def index_axis(name: str, size: int) -> Axis:
    """Return the axis of a dimension without coordinates: positions 0, 1, 2, ..."""
    return Axis(name, np.arange(float(size)), "int64", has_coordinate=False)


def axis_of(name: str, values: Any, attrs: Attributes = NO_ATTRIBUTES) -> Axis:
    """Return the axis of numbers, datetime64, datetime or cftime objects, or texts.

    Raises
    ------
    InputError
        If the coordinates are no vector, or of another type.
    """
    _refuse_masked(name, values)
    given = np.asarray(values)
    if given.ndim != 1:
        raise InputError(f"Coordinates of '{name}' must be a vector, got shape {given.shape}.")
    first = given.flat[0] if given.size else None
    if given.dtype.kind == "M" or hasattr(first, "year"):
        scale = TimeScale(
            "days since 1970-01-01", getattr(first, "calendar", "proleptic_gregorian")
        )
        return Axis(name, scale.numbers(given), "float64", scale, attrs=attrs)
    if given.dtype.kind in "US" or isinstance(first, str | bytes):
        return text_axis(name, [_text(v) for v in given.tolist()], attrs)
    if given.dtype.kind not in "fiub":
        raise InputError(
            f"Coordinates of '{name}' are of type {given.dtype}. Expected numbers, dates or texts."
        )
    return number_axis(name, given, attrs)


def number_axis(name: str, values: NDArray[Any], attrs: Attributes = NO_ATTRIBUTES) -> Axis:
    """Return an axis of numbers; degrees of longitude have no jump from 360 to 0 in it."""
    plain = values.astype(np.float64)
    axis = Axis(name, plain, stored_type(values.dtype), attrs=attrs)
    if not is_longitude(axis) or not np.isfinite(plain).all():
        return axis
    return replace(axis, numbers=_without_jump(plain), turn=_CIRCLE, written=plain)


def stored_type(dtype: np.dtype[Any]) -> str:
    """Return the type in which coordinates are written that were read in another: their own.

    Half precision, which NetCDF does not have, becomes single, and what is wider than double that.

    >>> [stored_type(np.dtype(kind)) for kind in ("f2", ">f4", "i8")]
    ['float32', 'float32', 'int64']
    """
    if dtype.kind == "f":
        return "float32" if dtype.itemsize <= 4 else "float64"
    return dtype.newbyteorder("=").name


def _without_jump(degrees: Array) -> Array:
    """Move degrees by whole turns where they leave out more than half of the circle inside.

    Longitudes such as 350, 355, 0, 5 are then neighbours. A narrower gap stays where it is, so
    that whatever lies between the smallest and the largest longitude lies inside.
    """
    if degrees.size < 2 or np.diff(np.sort(degrees)).max() <= _CIRCLE / 2:
        return degrees
    ring = np.sort(np.mod(degrees, _CIRCLE))
    widest = np.argmax(np.diff(ring, append=ring[0] + _CIRCLE))
    start = ring[(widest + 1) % ring.size]
    turns = np.floor((degrees - start) / _CIRCLE + 1e-9)
    return np.asarray(degrees - _CIRCLE * (turns - turns[0]))


def is_longitude(axis: Axis) -> bool:
    """Return whether a dimension is longitude in degrees; a name alone needs two coordinates."""
    if marked_role(axis.attrs) == "longitude":
        return True
    return axis.size > 1 and role_of(axis.name, axis.attrs) == "longitude"


def is_latitude(axis: Axis) -> bool:
    """Return whether a dimension is latitude in degrees."""
    return role_of(axis.name, axis.attrs) == "latitude"


def refuse_places(axis: Axis) -> None:
    """Raise InputError if a latitude or longitude is none, as marks of missing ones are."""
    role = role_of(axis.name, axis.attrs) or ""
    if not axis.has_coordinate or axis.labels is not None or role not in _FARTHEST:
        return
    far = axis.plain[np.abs(axis.plain) > _FARTHEST[role]]
    if far.size:
        most = round(_FARTHEST[role])
        raise InputError(
            f"'{axis.name}' has {far[0]:g}, which is no {role}. Expected -{most} to {most}: leave "
            "such places out, or give a dimension that is none another name and units."
        )


def convert_coordinates(theirs: Axis, own: Axis) -> Any:
    """Return the coordinates of another axis in the terms of our own, units among them.

    They are in single precision if the other axis is, so that ours are found among them.

    Raises
    ------
    InputError
        If one axis has dates, labels, other time units or another calendar and the other has not,
        or if units do not convert into each other.
    """
    if is_latitude(theirs) and (np.abs(theirs.plain) > _NO_HALO).any():
        refuse_places(theirs)
    kinds = [(axis.time is None, axis.labels is None) for axis in (theirs, own)]
    counted = {_kind_text(axis) for axis in (theirs, own) if counts_time({"units": axis.units})}
    if kinds[0] != kinds[1] or (own.time is None and len(counted) > 1):
        raise InputError(
            f"Coordinates of '{own.name}' are of another kind there ({_kind_text(theirs)}) than "
            f"here ({_kind_text(own)})."
        )
    if own.time is not None and theirs.time is not None:
        if theirs.time != own.time:
            return _convert_times(theirs, theirs.time, own, own.time)
    elif own.labels is not None:
        return theirs.texts
    stored = theirs.stored
    return in_units_of(own, theirs, stored if stored.dtype == np.float32 else theirs.plain)


def _convert_times(theirs: Axis, scale: TimeScale, own: Axis, own_scale: TimeScale) -> Array:
    """Return times in the units of ours; those in single precision that are ours as we have them.

    Days since 1850 in single precision are known to five minutes only. Whether a time is one of
    ours is seen in the units that were rounded.
    """
    numbers = own_scale.numbers(scale.texts(theirs.numbers))
    if theirs.dtype != "float32" or calendar_of(theirs) != calendar_of(own):
        return numbers
    place, same = _equal_in_single(theirs.numbers, scale.numbers(own_scale.texts(own.numbers)))
    return np.where(same, own.numbers[place], numbers)


def convert_cells(cells: Array, theirs: Axis, own: Axis) -> Array:
    """Return the cells of another axis in the terms of our own."""
    ends = cells.ravel()
    flat = replace(theirs, numbers=ends, written=ends if theirs.turn else None)
    converted = convert_coordinates(flat, own)
    if own.turn is None:
        converted = own.at(converted).plain
    return np.asarray(converted, np.float64).reshape(-1, 2)


def _kind_text(axis: Axis) -> str:
    if axis.labels is not None:
        return "text labels"
    calendar = calendar_of(axis)
    known = calendar in ("none", "standard")
    return (axis.units if known else f"{axis.units}, calendar {calendar}") or "numbers"


def calendar_of(axis: Axis) -> str:
    """Return the calendar of a time axis; calendars that agree since 1582 share one name.

    Numbers that count time but are not decoded have that of their attributes.
    """
    if axis.time is not None:
        name = axis.time.calendar
    else:
        name = str(axis.attrs.get("calendar", "")) if counts_time(axis.attrs) else "none"
    return _SAME_CALENDARS.get(name.strip().lower(), name.strip().lower())


def text_axis(name: str, labels: Sequence[str], attrs: Attributes = NO_ATTRIBUTES) -> Axis:
    """Return an axis of text labels: positions for the kernel, labels for the user."""
    return Axis(name, np.arange(float(len(labels))), "str", labels=tuple(labels), attrs=attrs)


def list_some(texts: Sequence[str]) -> str:
    """Return texts as a list for a message, the first few and their number if there are many.

    >>> list_some(["a", "b", "c", "d", "e"])
    'a, b, c, d, ... (5 in all)'
    """
    shown = ", ".join(texts[:_MOST_LISTED])
    return shown if len(texts) <= _MOST_LISTED else f"{shown}, ... ({len(texts)} in all)"


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace").strip() if isinstance(value, bytes) else value.strip()


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True
