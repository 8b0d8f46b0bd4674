"""Boxes of a stored grid, read in any process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Indices, Slices
from dkrls_cli.errors import InputError
from dkrls_cli.files.source import Source
from dkrls_cli.files.stored.reader import Reader


class Boxes(Protocol):
    """Data that is read box by box, in any process."""

    def read_box(self, part: Slices) -> NDArray[Any]:
        """Return the values in a box, NaN where cells are missing."""


@dataclass(frozen=True, eq=False)
class SomeColumns:
    """Boxes of a grid of which some coordinates are left out.

    Attributes
    ----------
    reader
        Reads the whole grid.
    kept
        Rising places of the coordinates of every axis that are kept.
    """

    reader: Reader
    kept: tuple[Indices, ...]

    def read_box(self, part: Slices) -> NDArray[Any]:
        """Return the values in a box, NaN where cells are missing."""
        return self.reader.read([own[here] for own, here in zip(self.kept, part, strict=True)])


def boxes_of(source: Source, kept: tuple[Indices, ...]) -> Boxes:
    """Return the boxes of a source at some coordinates of every axis.

    Raises
    ------
    InputError
        If it cannot be read part by part.
    """
    if source.reader is None:
        raise InputError(
            f"'{source.name}' can only be read as a whole, not part by part. Write it to NetCDF or "
            "Zarr, or allow more memory.",
            setting="max_memory",
        )
    if all(
        np.array_equal(own, np.arange(a.size)) for own, a in zip(kept, source.axes, strict=True)
    ):
        return source.reader
    return SomeColumns(source.reader, kept)
