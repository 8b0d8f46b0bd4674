"""Readers: parts of a variable in one file or in several, read in any process.

A reader holds no open file and can be pickled: it knows names and sizes, and opens what it needs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Indices, Slices
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.source import FileKind
from dkrls_cli.files.stored.handles import State, close_files, read_part


@dataclass(frozen=True)
class StoredVariable:
    """A variable in one file.

    Attributes
    ----------
    path, kind, name
        The file, its kind, and the variable.
    shape
        Sizes of the axes of the grid. The first may be one of a single coordinate that the variable
        does not have: a scalar of the file.
    dtype
        Floating type of its values.
    state
        The state of the file when it was opened; None: it may change.
    """

    path: str
    kind: FileKind
    name: str
    shape: tuple[int, ...]
    dtype: str
    state: State | None = None

    def read(self, part: Sequence[slice | Indices]) -> NDArray[Any]:
        """Return the values of a part, NaN where they are missing."""
        sizes = [_length(own) for own in part]
        if 0 in sizes:
            return np.empty(sizes, self.dtype)
        values = read_part(self.path, self.kind, self.name, part, self.state)
        if values.size != math.prod(sizes):
            raise InputError(
                f"'{self.path}' has changed: '{self.name}' has fewer cells than before."
            )
        return values.reshape(sizes)


@dataclass(frozen=True)
class Reader:
    """Reads parts of a variable from the files that they lie in.

    Values that are no usable numbers are as the file has them: see
    :func:`dkrls_cli.files.source.mask_unusable`. A reader may be used by several threads at once.

    Attributes
    ----------
    parts
        The variable in each file, one after the other along an axis.
    axis
        Place of that axis.
    """

    parts: tuple[StoredVariable, ...]
    axis: int = 0

    @cached_property
    def _starts(self) -> Indices:
        """Index along the axis at which each file begins, and the end of the last one."""
        return np.cumsum([0, *(part.shape[self.axis] for part in self.parts)])

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        first = self.parts[0].shape
        return (*first[: self.axis], int(self._starts[-1]), *first[self.axis + 1 :])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Floating type that holds the values of all files."""
        return np.result_type(*(part.dtype for part in self.parts))

    @property
    def paths(self) -> tuple[str, ...]:
        """The files."""
        return tuple(part.path for part in self.parts)

    def read(self, indices: Sequence[Indices]) -> NDArray[Any]:
        """Return the values at some coordinates, NaN where they are missing.

        Parameters
        ----------
        indices
            Ascending indices for each axis.

        Raises
        ------
        InputError
            If a file cannot be read any more.
        """
        return self._read([span_of(own) for own in indices], indices[self.axis])

    def read_box(self, box: Slices) -> NDArray[Any]:
        """Return the values of a box of neighbouring coordinates, NaN where they are missing.

        Parameters
        ----------
        box
            A slice for each axis, without a step.

        Raises
        ------
        InputError
            If a file cannot be read any more.
        """
        within = [_within(own, size) for own, size in zip(box, self.shape, strict=True)]
        return self._read(within, within[self.axis])

    def read_all(self) -> NDArray[Any]:
        """Return all values; the files are closed again."""
        try:
            return self.read_box((slice(None),) * len(self.shape))
        finally:
            close_files(self.paths)

    def _read(self, part: Sequence[slice | Indices], along: slice | Indices) -> NDArray[Any]:
        """Return a part that is `along` on the axis of the files."""
        before, after = part[: self.axis], part[self.axis + 1 :]
        if len(self.parts) == 1:
            return self.parts[0].read([*before, span_of(along), *after])
        sizes = [*map(_length, before), _length(along), *map(_length, after)]
        result = np.empty(sizes, self.dtype)
        rows = np.moveaxis(result, self.axis, 0)
        for stored, place, local in self._pieces(along):
            values = stored.read([*before, span_of(local), *after])
            rows[place] = np.moveaxis(values, self.axis, 0)
        return result

    def _pieces(
        self, along: slice | Indices
    ) -> Iterator[tuple[StoredVariable, slice, slice | Indices]]:
        """Yield the files that a part lies in, with its place in the result and in the file."""
        ends = zip(self.parts, self._starts[:-1].tolist(), self._starts[1:].tolist(), strict=True)
        for stored, start, stop in ends:
            if isinstance(along, slice):
                first, last = max(along.start, start), min(along.stop, stop)
                place = slice(first - along.start, last - along.start)
                local: slice | Indices = slice(first - start, last - start)
            else:
                place = slice(*np.searchsorted(along, (start, stop)).tolist())
                local = along[place] - start
            if place.start < place.stop:
                yield stored, place, local


def span_of(indices: slice | Indices) -> slice | Indices:
    """Return ascending indices as a slice if they have equal steps, which is read at once."""
    if isinstance(indices, slice):
        return indices
    steps = np.unique(np.diff(indices))
    if steps.size > 1 or not indices.size:
        return indices
    step = int(steps[0]) if steps.size else 1
    return slice(int(indices[0]), int(indices[-1]) + 1, step)


def _within(part: slice, size: int) -> slice:
    """Return a slice without a step as one from a start to a stop."""
    start, stop, step = part.indices(size)
    if step != 1:
        raise SettingError(f"The slice {part} has a step of {step}. Expected neighbours.")
    return slice(start, max(start, stop))


def _length(part: slice | Indices) -> int:
    if isinstance(part, slice):
        return len(range(part.start, part.stop, part.step or 1))
    return part.size
