"""Tolerances: how far the answers of a model that is stored in less space may be from the full one.

A tolerance is a share of the standard deviation of the data, or a number in the units of the data.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dkrls_cli.arrays import Tensor
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.storage.compress import compress, stored_bytes
from dkrls_cli.errors import SettingError
from dkrls_cli.grid.axes import Attributes, Axis
from dkrls_cli.grid.units.spellings import same_units

ToleranceLike: TypeAlias = float | str | None
"""A share of the standard deviation, a text such as ``1e-3`` or ``0.05 K``, or None."""

PROMISE = "tolerance"
"""Key of the origin of a model: its tolerance, and the differences that were measured."""

# A number, and the units behind it.
_PARTS = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*(.*?)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Tolerance:
    """A largest difference of answers.

    Attributes
    ----------
    number
        A share of the standard deviation, or a number of `units`.
    units
        Units of the data, or None for a share.

    Raises
    ------
    SettingError
        If the number is not above 0, or not finite.
    """

    number: float
    units: str | None = None

    def __post_init__(self) -> None:
        if not (self.number > 0 and math.isfinite(self.number)):
            raise SettingError(
                f"Invalid tolerance {self.number:g}. It must be above 0: a share of the standard "
                "deviation such as 1e-3, or a number with units such as '0.05 K'."
            )

    def __str__(self) -> str:
        if self.units is None:
            return f"{self.number:g} of the standard deviation"
        return f"{self.number:g} {self.units}"

    def check_units(self, name: str, attrs: Attributes) -> None:
        """Raise SettingError if the units are not those of a variable."""
        known = str(attrs.get("units", "")).strip()
        if self.units is None or same_units(self.units, known):
            return
        have = f"has the units '{known}'" if known else "has no units"
        instead = f"Give '{self.number:g} {known}', or" if known else "Give"
        raise SettingError(
            f"The tolerance '{self}' is in '{self.units}', and '{name}' {have}. {instead} a share "
            "of the standard deviation such as 1e-3."
        )

    def in_units(self, values: Tensor) -> float:
        """Return the tolerance in units of the data; `values` may have missing cells."""
        if self.units is not None:
            return self.number
        largest = float(np.nanmax(np.abs(values))) or 1.0
        return self.number * largest * float(np.nanstd(values / largest, dtype=np.float64))


def read_tolerance(given: float | str) -> Tolerance:
    """Return the tolerance that a number or a text stands for.

    Raises
    ------
    SettingError
        If it is not a number above 0, alone or with units.

    Examples
    --------
    >>> read_tolerance("0.05K"), read_tolerance(1e-3)
    (Tolerance(number=0.05, units='K'), Tolerance(number=0.001, units=None))
    """
    if not isinstance(given, str):
        return Tolerance(float(given))
    parts = _PARTS.fullmatch(given)
    if parts is None:
        raise SettingError(
            f"Invalid tolerance '{given}'. Give a share of the standard deviation such as 1e-3, or "
            "a number with units such as '0.05 K'."
        )
    return Tolerance(float(parts[1]), parts[2] or None)


def shrink(
    full: Cascade, axes: Sequence[Axis], values: Tensor, tolerance: Tolerance
) -> tuple[Cascade, dict[str, Any]]:
    """Return the smallest cascade within a tolerance, and what is known of its answers.

    Parameters
    ----------
    full
        The trained cascade.
    axes
        Its axes; between labels nothing is asked.
    values
        The data that it was trained on, NaN where cells are missing.
    tolerance
        How far answers may differ.

    Returns
    -------
    tuple
        The cascade, and as plain values: the tolerance as it was ``given`` and as a ``limit`` in
        units of the data, ``rms`` and ``max`` of the differences at the training cells and
        half-way between them, and ``bytes`` of ``full_bytes`` that are stored.
    """
    limit = tolerance.in_units(values)
    facts: dict[str, Any] = {"given": str(tolerance), "limit": limit}
    if limit == 0:  # data that is constant
        size = stored_bytes(full)
        return full, facts | {"rms": 0.0, "max": 0.0, "bytes": size, "full_bytes": size}
    small = compress(full, limit, [axis.labels is None for axis in axes])
    facts |= {"rms": small.difference.rms, "max": small.difference.largest}
    return small.cascade, facts | {"bytes": small.bytes, "full_bytes": small.full_bytes}
