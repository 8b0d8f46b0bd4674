"""Bounds of answers: ice stays between 0 and 1, rain at or above 0, error bars included.

A model answers with a normal distribution, which knows no bounds. An answer outside them is moved
to the nearest bound, and so is, for the standard error, every value that the distribution holds
possible: what is left is a rectified normal distribution, and the standard error is the root mean
square deviation of it from the answer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.grid import Grid

BoundsLike: TypeAlias = str | Sequence[float | str | None] | None
"""``auto``, ``none``, a text such as ``0,1`` or ``0,``, a pair with None for an open end, or None.
"""

# CF standard names of fractions of an area or a volume; changes of them may have any sign.
_FRACTION = re.compile(r"(?!tendency_of|change_over_time)(\w+_)?(area|volume)_fraction(_\w+)?")
_PERCENT = ("relative_humidity",)  # a fraction by definition, though not by its name
# Largest fraction by units.
_WHOLE = {"1": 1.0, "%": 100.0, "percent": 100.0}

# Values beyond a bound by no more than this part of it are rounding: 0.1 in single precision.
_ROUNDING = 1e-6

# Standard errors from the mean at which the density of a normal distribution is 0 in float64.
_FAR = 100.0


@dataclass(frozen=True)
class Bounds:
    """The least and the largest value that an answer can have.

    Attributes
    ----------
    low, high
        Infinite where there is no bound.

    Raises
    ------
    SettingError
        If `low` is not below `high`.

    Examples
    --------
    >>> Bounds(0.0, 1.0).clip(np.array([-0.2, 0.3, 1.4])).tolist()
    [0.0, 0.3, 1.0]
    """

    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise SettingError(
                f"Invalid bounds {self.low:g} and {self.high:g}. The first must be below the other."
            )

    def __str__(self) -> str:
        if math.isinf(self.high):
            return f"at or above {self.low:g}"
        return (
            f"at or below {self.high:g}"
            if math.isinf(self.low)
            else f"between {self.low:g} and {self.high:g}"
        )

    def clip(self, values: Array) -> Array:
        """Return values with those outside moved to the nearest bound."""
        return np.clip(values, self.low, self.high)

    def spread(self, values: Array, std: Array) -> Array:
        """Return the standard errors of clipped answers.

        Parameters
        ----------
        values, std
            Answers before they are clipped, and their standard errors; 0 stays 0.

        Returns
        -------
        Array
            Root mean square deviation, from the clipped answer, of a normal variable of that mean
            and standard error that is clipped as well. It is never above `std`, nor above the
            distance of the bounds.

        Examples
        --------
        >>> Bounds(0.0).spread(np.array([5.0, 0.0]), np.array([1.0, 1.0])).round(4).tolist()
        [1.0, 0.7071]
        """
        from scipy.special import ndtr

        answer = self.clip(values)
        a, b = _relative(self.low - values, std), _relative(self.high - values, std)
        shift = _relative(values - answer, std)
        inside = np.where(a > 0, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a))  # no cancelling of ones
        square = (1 + shift**2) * inside + 2 * shift * (_density(a) - _density(b))
        square += a * _density(a) - b * _density(b)
        square += _relative(self.low - answer, std) ** 2 * ndtr(a)
        square += _relative(self.high - answer, std) ** 2 * ndtr(-b)
        found = std * np.sqrt(np.clip(square, 0.0, 1.0))
        return np.asarray(np.minimum(found, self.high - self.low))

    def count_outside(self, values: Array) -> str:
        """Return how many values lie outside, and how far, in words; empty if none does."""
        beyond = values[(values < self.low) | (values > self.high)]
        if not beyond.size:
            return ""
        known = int(np.count_nonzero(~np.isnan(values)))
        low, high = beyond.min(), beyond.max()
        return f"{beyond.size} of {known} values lie outside, from {low:g} to {high:g}"

    def round_out(self, values: Array) -> Bounds:
        """Return bounds that hold values which are beyond these by rounding alone."""
        if np.isnan(values).all():
            return self
        least, largest = float(np.nanmin(values)), float(np.nanmax(values))
        slack = _ROUNDING * max(abs(end) for end in (self.low, self.high) if math.isfinite(end))
        return Bounds(
            least if self.low - slack <= least < self.low else self.low,
            largest if self.high < largest <= self.high + slack else self.high,
        )

    def admit(self, values: Array) -> Bounds:
        """Return the bounds of a model that learns new values.

        Raises
        ------
        InputError
            If values lie outside, and not by rounding alone.
        """
        bounds = self.round_out(values)
        counts = bounds.count_outside(values)
        if counts:
            raise InputError(
                f"The model keeps its answers {self}, and {counts}. Correct these values, or fit "
                "the model again with other bounds or none."
            )
        return bounds


def _relative(distance: Array, std: Array) -> Array:
    """Return distances in standard errors; beyond _FAR they do not matter, and stay finite."""
    with np.errstate(over="ignore"):
        return np.clip(distance / np.where(std > 0, std, 1.0), -_FAR, _FAR)


def _density(z: Array) -> Array:
    """Return the density of the standard normal distribution."""
    return np.asarray(np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi))


def read_bounds(given: BoundsLike) -> Bounds | None:
    """Return the bounds that a user gave other than ``auto``; None for none.

    Raises
    ------
    SettingError
        If they are no pair of numbers, the first below the second.

    Examples
    --------
    >>> read_bounds("0,"), read_bounds((None, 5)), read_bounds("none")
    (Bounds(low=0.0, high=inf), Bounds(low=-inf, high=5.0), None)
    """
    if given is None or given == "none":
        return None
    ends = given.split(",") if isinstance(given, str) else given
    try:
        low, high = (_end(end, sign) for end, sign in zip(ends, (-1, 1), strict=True))
    except (TypeError, ValueError):
        raise SettingError(
            f"Invalid bounds '{given}'. Give two numbers, either of which may be left out, like "
            "'0,1' or '0,'; none; or auto."
        ) from None
    if math.isinf(low) and math.isinf(high) and low < high:
        if isinstance(given, str):
            raise SettingError(f"The bounds '{given}' bound nothing. Give a number, or none.")
        return None
    return Bounds(low, high)


def _end(given: float | str | None, sign: int) -> float:
    """Return one bound, infinite with this sign if it is left out."""
    if given is None or (isinstance(given, str) and not given.strip()):
        return sign * math.inf
    return float(given)


def choose_bounds(given: BoundsLike, grid: Grid) -> tuple[Bounds | None, str]:
    """Return the bounds of answers for a grid, and a note of what was decided.

    Parameters
    ----------
    given
        Bounds that hold for the data, or ``auto``: those that the attributes of the variable tell
        (``valid_range``, ``valid_min``, ``valid_max``; 0 to 1 or 100 % for fractions by their
        standard name), unless the data lies outside.
    grid
        The data.

    Returns
    -------
    Bounds or None
        None if answers have no bounds.
    str
        What the file tells, without a full stop; empty if it tells nothing.

    Raises
    ------
    SettingError
        If values of the grid lie outside of the bounds that were given.
    """
    asked, source = bounds_asked(given, grid)
    if asked is None:
        return None, unclear_limits(given, grid)
    bounds = asked.round_out(grid.values)
    return settle_bounds(bounds, source, bounds.count_outside(grid.values))


def bounds_asked(given: BoundsLike, grid: Grid) -> tuple[Bounds | None, str]:
    """Return the bounds that are given, or that attributes tell, before the data is looked at.

    The text names the attribute that tells them; empty if they are given.
    """
    if given != "auto":
        return read_bounds(given), ""
    packing = grid.style.packing
    return bounds_told({**grid.attrs, **(packing.valid if packing else {})})


def unclear_limits(given: BoundsLike, grid: Grid) -> str:
    """Return a note on limits of packed values of which it is not known what they count.

    CF has them in units of the packed integers, and of their type; many files have them in units of
    the values. The note is empty if there are none, or attributes are not asked.
    """
    packing = grid.style.packing
    if given != "auto" or packing is None or not packing.unclear:
        return ""
    told = " and ".join(
        f"{key} {', '.join(map(str, limits))}" for key, limits in packing.unclear.items()
    )
    return (
        f"{told} of '{grid.name}' is not used: nothing tells whether it counts the packed integers "
        f"({packing.dtype}) or the values"
    )


def settle_bounds(bounds: Bounds, source: str, outside: str) -> tuple[Bounds | None, str]:
    """Return the bounds of answers and a note, as :func:`choose_bounds`.

    Parameters
    ----------
    bounds, source
        The bounds, and which attribute tells them; empty: they are given.
    outside
        How many values lie outside, in words; empty if none does.
    """
    if not source:
        if outside:
            raise SettingError(
                f"The bounds do not hold for the data: answers are to be {bounds}, and {outside}. "
                "Give bounds that hold, or none.",
                setting="bounds",
            )
        return bounds, ""
    if outside:
        return None, f"answers are not kept {bounds}, as {source} tells: {outside}"
    return bounds, f"answers are kept {bounds}, as {source} tells"


def bounds_told(attrs: Mapping[str, Any]) -> tuple[Bounds | None, str]:
    """Return the bounds that the attributes of a variable tell, and which attribute does.

    Examples
    --------
    >>> bounds_told({"standard_name": "sea_ice_area_fraction", "units": "%"})
    (Bounds(low=0.0, high=100.0), "the standard name 'sea_ice_area_fraction'")
    """
    if "valid_range" in attrs:
        names, given = ["valid_range"], np.ravel(attrs["valid_range"]).tolist()
    else:
        ends = {name: attrs[name] for name in ("valid_min", "valid_max") if name in attrs}
        single = {
            name: np.ravel(end).tolist()[0] for name, end in ends.items() if np.size(end) == 1
        }
        names, given = list(single), [single.get("valid_min"), single.get("valid_max")]
    if names:
        try:
            return read_bounds(given), " and ".join(names)
        except SettingError:  # attributes of files hold anything
            return None, ""
    standard, units = (str(attrs.get(key, "")).strip() for key in ("standard_name", "units"))
    whole = _WHOLE.get(units)
    if whole is not None and (standard in _PERCENT or _FRACTION.fullmatch(standard)):
        return Bounds(0.0, whole), f"the standard name '{standard}'"
    return None, ""
