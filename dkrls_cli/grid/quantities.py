"""Values that no mean can be taken of: directions that go round, codes, and marks of missing cells.

Half-way between 350 and 10 degrees lies north, not 180 degrees; between the codes of forest and
water lies no third one. A model would answer with such numbers all the same, so data like these are
refused. What they are is read from their attributes, and from their least and largest value, which
are known of grids of any size.

Numbers like -9999 that mark missing cells are data where a file does not declare them. They are
known by their usual values, far from all others, and warned of: they may be meant.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array
from dkrls_cli.errors import InputError
from dkrls_cli.grid.style import Packing

if TYPE_CHECKING:
    from dkrls_cli.grid.axes import Axis

# Words for angles that go round: wind_from_direction, solar_azimuth_angle, "tidal phase".
_GOES_ROUND = re.compile(r"\b(direction|azimuth|bearing|heading|aspect|phase)\b")
# Words for what is told of a direction, and does not go round itself. Some tell it only right
# behind the direction: an aspect ratio is no direction, one of the highest wind speed is.
_TOLD_OF_IT = re.compile(
    r"\b(deviation|spread|error|uncertainty|variance|difference|tendency)\b"
    rf"|{_GOES_ROUND.pattern} (counts?|number|index|ratio|rate|speed|velocity|fraction|noise)\b"
)
# A whole turn by how units of angles begin, such as degrees_true.
_TURN = {r"deg|°": 360.0, r"rad(ian)?s?(?![a-z])": 2 * np.pi}
# Units that begin like those of angles: temperatures, and angles by something.
_NO_ANGLE = re.compile(r"deg(ree)?s?[ _]?([ckf]|celsius|kelvin|fahrenheit)$|/|[a-z]\W*-\d|\bper\b")

# Attributes by which CF tells the codes of a variable.
_FLAGS = ("flag_values", "flag_masks")
# Difference, in parts of a code, that single precision makes when it is unpacked.
_ROUNDING = 1e-6
# Flags that the numbers of a file have room for.
_BITS = 64
# Numbers that usually mark missing cells: nines, the least integers of 16 and 32 bits, and powers
# of ten and the fill value of NetCDF beyond any measurement.
_MARKS = np.array(
    [
        *(sign * nines for sign in (-1.0, 1.0) for nines in (99.99, 999.0, 999.9, 999.99)),
        *(sign * nines for sign in (-1.0, 1.0) for nines in (9999.0, 9999.9, 99999.0, 999999.0)),
        *(-99.0, -99.9, -32768.0, -32767.0, -(2.0**31), -(2.0**31) + 1),
        *(sign * 10.0**power for sign in (-1, 1) for power in (15, 20, 30, 32, 33, 34, 35, 36)),
        *(9.969209968386869e36, -3.4028234663852886e38, -1.7976931348623157e308),
    ]
)

# Values of which one may be a mark, and the least that is beyond any measurement.
_FEWEST, _BEYOND = {"cell": 1, "coordinate": 4}, 1e15
# Marks of a kind that a warning counts at most: each takes 8 bytes for a moment.
_COUNTED = 2**20
# What to do about marks of missing cells and coordinates.
_REMEDIES = {
    "cell": "declare it as _FillValue, or leave these fields of a table empty",
    "coordinate": "leave what is there out",
}


def refuse_no_averages(
    name: str,
    attrs: Mapping[str, Any],
    least: float,
    largest: float,
    packing: Packing | None = None,
) -> None:
    """Raise InputError if values are directions that go round, or codes.

    Parameters
    ----------
    name, attrs
        Name and attributes of the variable.
    least, largest
        Its least and largest value.
    packing
        How the file packs the values, which the codes are told in.

    Raises
    ------
    InputError
        If one of the two values is a code, or directions span more than half a turn.

    Examples
    --------
    >>> refuse_no_averages("tas", {"units": "K"}, 250.0, 310.0)
    >>> try:
    ...     refuse_no_averages("kind", {"flag_values": [1, 2, 3]}, 1.0, 3.0)
    ... except InputError as error:
    ...     print(str(error).partition(",")[0])
    'kind' holds codes
    """
    if holds_codes(attrs, least, largest, packing):
        raise InputError(
            f"'{name}' holds codes, as flag_values or flag_masks tell: its values go from "
            f"{least:g} to {largest:g}. Nothing lies between codes: mark those that stand among "
            "measurements as missing; of categories, take the nearest cell with another tool. If "
            "all are measurements, remove these attributes."
        )
    turn = turn_of(name, attrs, least, largest)
    if turn is not None and largest - least > turn / 2:
        raise InputError(
            f"'{name}' holds directions from {least:g} to {largest:g}, and half-way between "
            "directions on both sides of the turn lies the opposite one. Model their sine and "
            "cosine, or the components of the vector, and take the direction of the answers."
        )


def may_have_no_averages(name: str, attrs: Mapping[str, Any]) -> bool:
    """Return whether values may be directions or codes, by the name and the attributes alone.

    >>> may_have_no_averages("tas", {"units": "K"}), may_have_no_averages("wind_direction", {})
    (False, True)
    """
    return any(key in attrs for key in _FLAGS) or turn_of(name, attrs, 0.0, 0.0) is not None


def holds_codes(
    attrs: Mapping[str, Any], least: float, largest: float, packing: Packing | None = None
) -> bool:
    """Return whether the least or the largest value is a code, or both are sums of flags.

    >>> holds_codes({"flag_masks": [1, 2, 4]}, 0.0, 7.0)
    True
    """
    codes, ends = codes_of(attrs, packing), np.array([least, largest])
    if np.isclose(ends[:, None], codes, _ROUNDING, 0).any():
        return True
    masks = codes_of({"flag_masks": attrs.get("flag_masks", ())})
    bits = set(masks.tolist()) & {2.0**power for power in range(_BITS)}
    if packing is not None:
        ends = (ends - packing.offset) / packing.scale
    whole = np.rint(ends)
    if not bits or not np.isfinite(ends).all():
        return False
    if not np.isclose(ends, whole, _ROUNDING, _ROUNDING).all():
        return False
    return all(int(value) & ~int(sum(bits)) == 0 for value in whole)


def codes_of(attrs: Mapping[str, Any], packing: Packing | None = None) -> Array:
    """Return the values that stand for something else than a number, as CF attributes tell.

    >>> codes_of({"flag_values": np.array([251, 252], np.uint8)}).tolist()
    [251.0, 252.0]
    """
    told = [np.ravel(attrs[key]) for key in _FLAGS if key in attrs]
    numbers = [codes.astype(np.float64) for codes in told if codes.dtype.kind in "fiu"]
    codes = np.concatenate([np.empty(0), *numbers])
    return codes if packing is None else codes * packing.scale + packing.offset


def turn_of(name: str, attrs: Mapping[str, Any], least: float, largest: float) -> float | None:
    """Return the length of a whole turn of directions, or None if values are no directions.

    Without units, numbers from -180 to 360 of that name are taken for degrees.

    >>> turn_of("mwd", {"long_name": "Mean wave direction", "units": "degrees"}, 0.0, 359.0)
    360.0
    """
    texts = [name, *(str(attrs.get(key, "")) for key in ("standard_name", "long_name"))]
    words = [re.sub(r"[^a-z]+", " ", text.lower()) for text in texts]
    if not any(map(_GOES_ROUND.search, words)) or any(map(_TOLD_OF_IT.search, words)):
        return None
    units = str(attrs.get("units", "")).strip().lower()
    if not units:
        return 360.0 if least >= -180 and largest <= 360 else None
    if _NO_ANGLE.search(units):
        return None
    return next((turn for start, turn in _TURN.items() if re.match(start, units)), None)


def mark_note(name: str, values: NDArray[Any], what: Literal["cell", "coordinate"] = "cell") -> str:
    """Return a warning of values that seem to mark missing ones; empty if none does.

    They are the least or largest value, usual as a mark, and farther from the next value than all
    others are from each other. Coordinates are often that far apart, as in 1, 10, 100 and 999: of
    four and more, negative ones and those beyond any measurement count.

    >>> mark_note("t", np.array([12.0, 14.5, -9999.0, 13.1]))[:47]
    "1 cell of 't' holds -9999, and all others 12 to"
    """
    if values.size < _FEWEST[what]:
        return ""
    for end in (np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)):
        if not _is_mark(end):
            continue
        if what == "coordinate" and 0.0 < end < _BEYOND:
            continue
        others = values[(values != end) & ~np.isnan(values)]
        if others.size and np.abs(others - end).min() > np.ptp(others):
            count = int(np.count_nonzero(values == end))
            found = (
                f"1 {what} of '{name}' holds" if count == 1 else f"{count} {what}s of '{name}' hold"
            )
            return (
                f"{found} {end:g}, and all others {others.min():g} to {others.max():g}: if that "
                f"marks missing {what}s, {_REMEDIES[what]}"
            )
    return ""


def coordinate_marks(axes: Iterable[Axis]) -> list[str]:
    """Return warnings of coordinates that seem to mark missing ones."""
    return [*filter(None, (mark_note(axis.name, axis.plain, "coordinate") for axis in axes))]


def _is_mark(value: float) -> bool:
    """Return whether a number is one of those that usually mark missing cells."""
    return bool(np.isclose(value, _MARKS, _ROUNDING, 0).any())


@dataclass
class MarkCounts:
    """Range of values that are read part by part, and how many seem to mark missing ones.

    Examples
    --------
    >>> counts = MarkCounts()
    >>> for part in ([12.0, -9999.0], [14.5, -9999.0]):
    ...     counts.add(np.array(part))
    >>> counts.note("t")[:49]
    "2 cells of 't' hold -9999, and all others 12 to 1"
    """

    least: float = np.inf
    largest: float = -np.inf
    found: Counter[float] = field(default_factory=Counter)

    def add(self, values: NDArray[Any]) -> None:
        """Count values, none of which is missing."""
        while values.size:
            ends = float(values.min()), float(values.max())
            marks = [end for end in ends if _is_mark(end)]
            if not marks:
                self.least, self.largest = min(self.least, ends[0]), max(self.largest, ends[1])
                return
            here = values == marks[0]
            self.found[marks[0]] += int(np.count_nonzero(here))
            values = values[~here]

    def note(self, name: str) -> str:
        """Return a warning of all values that seem to be marks, as :func:`mark_note` does."""
        if self.least > self.largest:
            return ""
        marks = [np.full(min(count, _COUNTED), mark) for mark, count in self.found.items()]
        return mark_note(name, np.concatenate([[self.least, self.largest], *marks]))


@dataclass
class SeenValues:
    """Range of values that come one part after the other, marks of missing ones aside.

    Examples
    --------
    >>> seen = SeenValues()
    >>> seen.mark_note("t", np.array([12.0, 14.5]))
    ''
    >>> seen.mark_note("t", np.array([-9999.0]))[:47]
    "1 cell of 't' holds -9999, and all others 12 to"
    """

    least: float = np.inf
    largest: float = -np.inf

    def mark_note(self, name: str, values: NDArray[Any]) -> str:
        """Return a warning of new values that seem to be marks, as :func:`mark_note` does.

        Those that come before any other value are not known as marks.
        """
        marks = []
        for value in values[(values < self.least) | (values > self.largest)].tolist():
            if _is_mark(value):
                marks.append(value)
            else:
                self.least, self.largest = min(self.least, value), max(self.largest, value)
        if not marks or self.least > self.largest:
            return ""
        return mark_note(name, np.array([self.least, self.largest, *marks]))
