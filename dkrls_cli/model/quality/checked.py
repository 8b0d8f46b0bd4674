"""Grids that were checked: flags of their cells, as CF has them, and what was expected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Mask, fits_single
from dkrls_cli.checking.survey import GOOD, KINDS, MISSING
from dkrls_cli.checking.units import CONVERSIONS
from dkrls_cli.grid.axes import Attributes
from dkrls_cli.grid.grid import Grid

MEANINGS: Mapping[int, str] = {
    **KINDS,
    4: "slice_out_of_line",
    5: "unit_changed",
    6: "duplicate_slice",
}
"""Words of the flags as CF has them: one each."""


@dataclass(frozen=True, eq=False)
class Checked:
    """A grid, and what the other cells say of each.

    Attributes
    ----------
    grid
        The grid.
    flags
        Flag of every cell (int8), see :data:`dkrls_cli.checking.survey.KINDS`.
    expected
        What the other cells say of each; NaN where it is missing.
    std
        Usual size of the difference, as a standard deviation.
    units
        For cells in wrong units the place of the conversion, else -1.
    limits
        Standard deviations beyond which a cell is flagged, below and above what is expected.
    predictor
        How cells were predicted, a text for each dimension used, the most telling first.
    """

    grid: Grid
    flags: NDArray[np.int8]
    expected: Array
    std: Array
    units: NDArray[np.int8]
    limits: tuple[float, float]
    predictor: Mapping[str, str]

    @property
    def bad(self) -> Mask:
        """Cells that are flagged, missing ones aside."""
        return np.asarray((self.flags != GOOD) & (self.flags != MISSING))

    @property
    def counts(self) -> dict[str, int]:
        """Number of cells of every kind that was found."""
        kinds, counts = np.unique(self.flags[self.bad], return_counts=True)
        return {KINDS[int(kind)]: int(count) for kind, count in zip(kinds, counts, strict=True)}

    @property
    def share(self) -> float:
        """Share of the observed cells that are flagged."""
        observed = int((self.flags != MISSING).sum())
        return int(self.bad.sum()) / observed if observed else 0.0

    @property
    def hints(self) -> dict[str, int]:
        """Number of cells in other units, by what these seem to be."""
        kinds, counts = np.unique(self.units[self.units >= 0], return_counts=True)
        words = [CONVERSIONS[int(kind)].words for kind in kinds]
        return dict(zip(words, counts.tolist(), strict=True))

    @property
    def masked(self) -> Grid:
        """The grid without the flagged cells."""
        values = np.where(self.bad, np.nan, self.grid.values)
        errors = self.grid.errors
        if errors is not None:
            errors = np.where(self.bad, 0.0, errors)
        return replace(self.grid, values=values, errors=errors)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the flagged cells: coordinates, value, expected, std, z, kind and hint.

        Values are as the data has them, the other numbers have six digits.
        """
        texts, single = [axis.texts for axis in self.grid.axes], fits_single(self.grid.values)
        for place in np.argwhere(self.bad):
            cell = tuple(place.tolist())
            value, expected, std = (
                float(array[cell]) for array in (self.grid.values, self.expected, self.std)
            )
            unit = int(self.units[cell])
            yield {
                **{dim: t[at] for dim, t, at in zip(self.grid.dims, texts, cell, strict=True)},
                "value": float(str(np.float32(value))) if single else value,
                "expected": _shorten(expected),
                "std": _shorten(std),
                "z": _shorten((value - expected) / std if std > 0 else np.nan),
                "kind": KINDS[int(self.flags[cell])],
                "hint": CONVERSIONS[unit].words if unit >= 0 else "",
            }


def _shorten(number: float) -> float:
    """Return a number with six digits."""
    return float(f"{number:.6g}")


def flag_variable(name: str, attrs: Attributes) -> tuple[str, dict[str, Any]]:
    """Return name and attributes of the flags of a variable, as CF has them.

    Examples
    --------
    >>> name, attrs = flag_variable("sst", {"long_name": "temperature"})
    >>> name, attrs["standard_name"], attrs["flag_meanings"].split()[:3]
    ('sst_flag', 'quality_flag', ['good', 'spike', 'stuck'])
    """
    return f"{name}_flag", {
        "standard_name": "quality_flag",
        "long_name": f"quality of {attrs.get('long_name', name)}",
        "flag_values": np.array(list(MEANINGS), np.int8),
        "flag_meanings": " ".join(MEANINGS.values()),
    }


def expected_variables(
    name: str, attrs: Attributes
) -> tuple[tuple[str, dict[str, Any]], tuple[str, dict[str, Any]]]:
    """Return names and attributes of what is expected of a variable, and of its usual error."""
    units = {"units": attrs["units"]} if "units" in attrs else {}
    long = attrs.get("long_name", name)
    return (
        (f"{name}_expected", {"long_name": f"{long} as the other cells tell", **units}),
        (f"{name}_expected_std", {"long_name": f"usual error of that {long}", **units}),
    )
