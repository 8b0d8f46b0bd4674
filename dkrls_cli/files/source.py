"""Where grids come from: kinds of files, and a grid before its values are read."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.errors import InputError
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.grid import Grid, Style

UNWRITTEN = 9.9e36
"""A value of this size is what netCDF leaves in cells of floats that nobody wrote."""

_TABLES = (".csv", ".csv.gz", ".tsv", ".txt")
_NETCDF = (".nc", ".nc4", ".cdf", ".netcdf")


@dataclass(frozen=True, eq=False)
class Source:
    """A grid in a file, before its values are read.

    Attributes
    ----------
    axes, name, attrs, style
        As the grid will have them.
    dtype
        Of the values.
    load
        Reads the values.
    scalars
        Coordinates of dimensions of size 1, which are dropped, and of none.
    notes
        What was decided or noticed on the way, a sentence each.
    """

    axes: tuple[Axis, ...]
    name: str
    attrs: Mapping[str, Any]
    style: Style
    dtype: str
    load: Callable[[], NDArray[Any]]
    scalars: tuple[Axis, ...] = ()
    notes: list[str] = field(default_factory=list)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return tuple(axis.size for axis in self.axes)

    def grid(self) -> Grid:
        """Read the values."""
        values, told = _without_unusable(self.load())
        self.notes.extend(told)
        return Grid(values, self.axes, self.name, self.attrs, self.style)


def expand(given: str) -> list[str]:
    """The files that an input stands for: itself, or what a pattern matches."""
    if given == "-" or os.path.exists(given):
        return [given]
    paths = sorted(glob.glob(given)) if glob.has_magic(given) else []
    if not paths:
        what = "No file matches" if glob.has_magic(given) else "There is no file"
        raise InputError(f"{what} '{given}'.")
    return paths


def kind_of(path: str) -> str:
    """How to read a file: by its name, else by its first bytes."""
    name = path.lower().rstrip("/")
    if path == "-" or name.endswith(_TABLES):
        return "table"
    if name.endswith(".zarr"):
        return "zarr"
    if name.endswith(_NETCDF) and not os.path.isdir(path):
        return "netcdf"
    return _kind_by_content(path)


def _kind_by_content(path: str) -> str:
    expected = (
        f"Expected NetCDF ({' '.join(_NETCDF)}), Zarr (.zarr) or a table ({' '.join(_TABLES)})."
    )
    if os.path.isdir(path):
        if any(os.path.exists(os.path.join(path, n)) for n in ("zarr.json", ".zgroup")):
            return "zarr"
        raise InputError(f"'{path}' is a folder and no Zarr store. {expected}")
    with open(path, "rb") as file:
        start = file.read(8)
    if start[:3] == b"CDF" or start == b"\x89HDF\r\n\x1a\n":
        return "netcdf"
    if start[:2] == b"\x1f\x8b" and not path.lower().removesuffix(".gz").endswith(_NETCDF):
        return "table"
    what = {
        b"PK": "is a zip archive, as model files are, and no data",
        b"\x1f\x8b": "is compressed: gunzip it first",
    }.get(start[:2], "is of no kind that can be read")
    raise InputError(f"'{path}' {what}. {expected}")


def _without_unusable(values: NDArray[Any]) -> tuple[NDArray[Any], list[str]]:
    """Infinities, and what netCDF leaves in cells of floats that nobody wrote, made missing."""
    with np.errstate(invalid="ignore"):
        unusable = ~(np.abs(values) < UNWRITTEN) & ~np.isnan(values)
    if not unusable.any():
        return values, []
    infinite = int(np.isinf(values).sum())
    counts = {"infinite": infinite, "never written": int(unusable.sum()) - infinite}
    told = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return np.where(unusable, np.nan, values), [f"values taken as missing: {told}"]
