"""Axes: what the coordinates of a dimension mean, to numbers and back.

A kernel sees numbers only. An axis knows what they stand for (plain numbers, dates of some
calendar, text labels, or just positions) and how to read and write them in the user's own terms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.calendars import TimeScale
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.kernels import Array

Attributes = Mapping[str, Any]
NO_ATTRIBUTES: Attributes = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Axis:
    """One dimension's coordinates.

    Attributes
    ----------
    name
        Name of the dimension.
    numbers
        The coordinates as the kernel sees them (m,).
    dtype
        Type in which the coordinates were stored, and are written again.
    time
        What the numbers mean as dates, if they do.
    labels
        What stands at positions 0, 1, 2, ... if the coordinates are texts.
    attrs
        Attributes of the coordinate, units and calendar of a time axis not among them.
    has_coordinate
        False for a dimension without a coordinate: the numbers are positions.
    """

    name: str
    numbers: Array
    dtype: str = "float64"
    time: TimeScale | None = None
    labels: tuple[str, ...] | None = None
    attrs: Attributes = field(default_factory=dict)
    has_coordinate: bool = True

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self.numbers.size

    @property
    def units(self) -> str:
        """Units of the numbers, as far as known."""
        return self.time.units if self.time else str(self.attrs.get("units", ""))

    def encode(self, values: Any) -> Array:
        """Coordinates in the user's terms as numbers: dates, labels or numbers."""
        given = np.atleast_1d(np.asarray(values))
        if self.labels is not None:
            return self._positions(given)
        if self.time is not None and given.dtype.kind not in "fiu":
            return self.time.numbers(given)
        try:
            numbers = given.astype(np.float64)
        except (TypeError, ValueError):
            bad = str(given.flat[0])
            raise SettingError(f"'{bad}' is not a number, as '{self.name}' needs.") from None
        return self._settle(numbers)

    def _positions(self, given: NDArray[Any]) -> Array:
        place = {label: position for position, label in enumerate(self.labels or ())}
        unknown = [str(v) for v in given if str(v) not in place]
        if unknown:
            raise SettingError(
                f"'{self.name}' has no '{unknown[0]}'. It holds text labels, {_some(list(place))}; "
                "between labels there is nothing to ask for."
            )
        return np.array([float(place[str(v)]) for v in given])

    def _settle(self, numbers: Array) -> Array:
        """Numbers that are training coordinates in the stored precision, made exactly those."""
        if self.dtype != "float32":
            return numbers
        stored = numbers.astype(np.float32).astype(np.float64)
        return np.where(np.isin(stored, self.numbers), stored, numbers)

    def decode(self, numbers: Array) -> NDArray[Any]:
        """Numbers in the user's terms, in the type they were stored in where it can hold them."""
        if self.labels is not None:
            return np.array(self.labels)[numbers.astype(np.intp)]
        if self.time is not None:
            return self.time.dates(numbers)
        return self.stored(numbers)

    def stored(self, numbers: Array) -> NDArray[Any]:
        """Numbers in the stored type if it holds them all exactly, else as they are."""
        with np.errstate(invalid="ignore", over="ignore"):
            stored = numbers.astype(self.dtype)
        return stored if np.array_equal(stored.astype(np.float64), numbers) else numbers

    def texts(self, numbers: Array) -> list[str]:
        """Numbers as texts that `encode` reads back."""
        if self.labels is not None:
            return [self.labels[int(n)] for n in numbers]
        if self.time is not None:
            return self.time.texts(numbers)
        if self.dtype == "float32":
            narrow = numbers.astype(np.float32)
            return [
                repr(float(str(n))) if n == x else repr(float(x))
                for n, x in zip(narrow, numbers, strict=True)
            ]
        return [
            np.format_float_positional(n, trim="-") if _plain(n) else repr(float(n))
            for n in numbers
        ]


def index_axis(name: str, size: int) -> Axis:
    """A dimension without coordinates: positions 0, 1, 2, ..."""
    return Axis(name, np.arange(float(size)), "int64", has_coordinate=False)


def axis_of(name: str, values: Any, attrs: Attributes = NO_ATTRIBUTES) -> Axis:
    """The axis of coordinates in memory: numbers, datetime64, datetime or cftime objects, texts."""
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
    return Axis(name, given.astype(np.float64), given.dtype.name, attrs=attrs)


def text_axis(name: str, labels: Sequence[str], attrs: Attributes = NO_ATTRIBUTES) -> Axis:
    """An axis of text labels: positions for the kernel, labels for the user."""
    return Axis(name, np.arange(float(len(labels))), "str", labels=tuple(labels), attrs=attrs)


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace").strip() if isinstance(value, bytes) else value.strip()


def _some(labels: Sequence[str]) -> str:
    shown = ", ".join(labels[:4])
    return shown if len(labels) <= 4 else f"{shown}, ... ({len(labels)} of them)"


def _plain(number: float) -> bool:
    return number == 0 or 1e-4 <= abs(number) < 1e16
