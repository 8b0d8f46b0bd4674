"""Boxes of a stored grid, read in any process."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Indices, Slices
from dkrls_cli.errors import InputError
from dkrls_cli.files.source import Source
from dkrls_cli.files.stored.reader import Reader

_AT_ONCE = 2**20
"""Cells that are read at once where only some of them are wanted: 8 MB of float64."""


class Boxes(Protocol):
    """Data that is read box by box, in any process."""

    def read_box(self, part: Slices) -> NDArray[Any]:
        """Return the values in a box, NaN where cells are missing, in memory of its own."""


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

    reader: Reader | SomeColumns
    kept: tuple[Indices, ...]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Floating type of the values."""
        return self.reader.dtype

    def read_box(self, part: Slices) -> NDArray[Any]:
        """Return the values in a box, NaN where cells are missing."""
        return read_columns(
            self.reader, [own[here] for own, here in zip(self.kept, part, strict=True)]
        )

    def read(self, indices: Sequence[Indices]) -> NDArray[Any]:
        """Return the values at some of the coordinates that are kept, NaN where cells miss."""
        return read_columns(
            self.reader, [own[here] for own, here in zip(self.kept, indices, strict=True)]
        )


def read_columns(reader: Reader | SomeColumns, indices: Sequence[Indices]) -> NDArray[Any]:
    """Return the values at some coordinates, from boxes that span them.

    Files read boxes fast, and single coordinates of several axes very slowly. Boxes have at most
    twice the cells that are wanted, or few.

    Parameters
    ----------
    reader
        Reads the whole grid.
    indices
        Rising places of coordinates, for each axis.
    """
    result = np.empty([own.size for own in indices], reader.dtype)
    if result.size:
        _fill(result, reader, indices)
    return result


def _fill(out: NDArray[Any], reader: Reader | SomeColumns, indices: Sequence[Indices]) -> None:
    """Read values at some coordinates into an array, in halves of an axis if that is less."""
    spans = [slice(int(own[0]), int(own[-1]) + 1) for own in indices]
    cells = math.prod(span.stop - span.start for span in spans)
    cut = next((axis for axis, own in enumerate(indices) if own.size > 1), None)
    if cut is None or cells <= max(_AT_ONCE, 2 * out.size):
        own = [places - span.start for places, span in zip(indices, spans, strict=True)]
        out[...] = reader.read_box(tuple(spans))[np.ix_(*own)]
        return
    half = indices[cut].size // 2
    for part in (slice(0, half), slice(half, None)):
        some = [own[part] if axis == cut else own for axis, own in enumerate(indices)]
        _fill(out[(slice(None),) * cut + (part,)], reader, some)


def restrict(source: Source, kept: tuple[Indices, ...]) -> Source:
    """Return a source that has only some coordinates of another one.

    Parameters
    ----------
    source
        The grid.
    kept
        Rising places of the coordinates of every axis.

    Raises
    ------
    InputError
        If it cannot be read part by part.
    """
    boxes: Any = boxes_of(source, kept)
    axes = tuple(axis.take(own) for axis, own in zip(source.axes, kept, strict=True))
    every = tuple(slice(0, axis.size) for axis in axes)
    return replace(
        source, axes=axes, read=boxes.read, reader=boxes, load=lambda: boxes.read_box(every)
    )


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
