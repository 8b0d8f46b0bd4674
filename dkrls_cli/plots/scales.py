"""Scales of values: the range of colours, and which colour map suits a variable."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dkrls_cli.arrays import Array

Palette = Literal["sequential", "diverging", "errors"]
"""Kinds of colour maps: of values, of values around zero, of standard errors."""

# Words of names by which a variable is a difference from something, or a part of a vector: zero is
# the middle of its values if they have both signs.
_AROUND_ZERO = re.compile(
    r"anomal(y|ies)|_?anom\b|difference|residual|bias|\berrors?\b|departure|increment|tendency"
    r"|eastward|northward|upward",
    re.IGNORECASE,
)
_STANDARD_ERROR = re.compile(r"standard[_ ](error|deviation)|_std\b", re.IGNORECASE)


@dataclass(frozen=True)
class Scale:
    """The range of values that colours show, and the kind of colour map."""

    low: float
    high: float
    palette: Palette = "sequential"

    def place(self, values: Array) -> Array:
        """Return where values lie between the ends, 0 to 1; NaN stays NaN."""
        return np.asarray(np.clip((values - self.low) / (self.high - self.low), 0.0, 1.0))


def scale_of(values: Sequence[Array], name: str, attrs: Mapping[str, Any]) -> Scale:
    """Return one scale for all values of a variable that are shown together.

    Parameters
    ----------
    values
        Arrays, NaN where cells are missing; at least one value is not.
    name, attrs
        Name and attributes of the variable: anomalies and other differences that have both signs
        are shown around zero.
    """
    known = np.concatenate([one[np.isfinite(one)].ravel() for one in values])
    low, high = float(known.min()), float(known.max())
    words = " ".join([name, *(str(attrs.get(key, "")) for key in ("standard_name", "long_name"))])
    if _STANDARD_ERROR.search(words):
        return error_scale([known])
    if low < 0 < high and _AROUND_ZERO.search(words):
        size = max(-low, high)
        return Scale(-size, size, "diverging")
    return Scale(*_widened(low, high))


def error_scale(values: Sequence[Array]) -> Scale:
    """Return the scale of standard errors: from 0 to the largest."""
    high = max((float(np.nanmax(one)) for one in values if np.isfinite(one).any()), default=0.0)
    return Scale(0.0, high if high > 0 else 1.0, "errors")


def _widened(low: float, high: float) -> tuple[float, float]:
    """Return the ends of a range, apart from each other also if all values are equal."""
    if high > low:
        return low, high
    half = 0.5 * abs(low) or 0.5
    return low - half, high + half
