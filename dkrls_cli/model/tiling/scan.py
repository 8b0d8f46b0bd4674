"""One pass over a grid that is read part by part: what has to be known before it is filled."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices, Mask, fits_single
from dkrls_cli.errors import InputError
from dkrls_cli.files.source import Source, mask_unusable
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.quantities import MarkCounts
from dkrls_cli.model.answering.bounds import Bounds

_AT_ONCE = 2**21
"""Cells that are read at a time: 16 MB of float64."""


class PartReader:
    """Reads parts of a variable along one axis.

    Parameters
    ----------
    source
        The variable.
    axis
        Place of the axis.

    Raises
    ------
    InputError
        If the file can only be read as a whole.
    """

    def __init__(self, source: Source, axis: int) -> None:
        if source.read is None:
            raise InputError(f"'{source.name}' can only be read as a whole, not part by part.")
        self._read, self.axes, self.axis = source.read, source.axes, axis
        self.shape, self.dtype = source.shape, np.dtype(source.dtype)
        self.unusable: Counter[str] = Counter()
        self.bytes_read = 0

    def rows(self, rows: Indices, others: Sequence[Indices | None] | None = None) -> NDArray[Any]:
        """Return values at some coordinates of the axis, NaN where they are missing.

        `others` has the indices along every axis; None: all of them. What `rows` has takes the
        place of those of the axis.
        """
        given = others or [None] * len(self.shape)
        indices = [
            np.arange(size) if own is None else own
            for size, own in zip(self.shape, given, strict=True)
        ]
        indices[self.axis] = rows
        result = np.empty([own.size for own in indices], self.dtype)
        cells = math.prod(own.size for place, own in enumerate(indices) if place != self.axis)
        for part in equal_steps(rows, max(1, _AT_ONCE // max(1, cells))):
            indices[self.axis] = rows[part]
            values, counts = mask_unusable(self._read(indices))
            self.unusable += counts
            self.bytes_read += values.size * self.dtype.itemsize
            np.moveaxis(result, self.axis, 0)[part] = np.moveaxis(values, self.axis, 0)
        return result

    def parts(self) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Yield all values in parts of some coordinates of the axis."""
        size = self.shape[self.axis]
        at_once = max(1, _AT_ONCE * size // max(1, math.prod(self.shape)))
        for start in range(0, size, at_once):
            part = slice(start, min(size, start + at_once))
            yield part, self.rows(np.arange(part.start, part.stop))


def equal_steps(rows: Indices, most: float = math.inf) -> Iterator[slice]:
    """Yield parts of indices with equal steps, at most so many each, which are read at once."""
    start = 0
    while start < rows.size:
        stop = start + 1
        while stop < rows.size and stop - start < most:
            if stop - start > 1 and rows[stop] - rows[stop - 1] != rows[start + 1] - rows[start]:
                break
            stop += 1
        yield slice(start, stop)
        start = stop


@dataclass(eq=False)
class Tally:
    """Values outside of bounds: how many below and above, and how far."""

    bounds: Bounds | None
    below: Array = field(default_factory=lambda: np.array([0, math.inf, -math.inf]))
    above: Array = field(default_factory=lambda: np.array([0, math.inf, -math.inf]))

    def add(self, values: NDArray[Any]) -> None:
        """Count the values of a part."""
        if self.bounds is None:
            return
        sides = (values[values < self.bounds.low], values[values > self.bounds.high])
        for found, counts in zip(sides, (self.below, self.above), strict=True):
            counts[0] += found.size
            counts[1] = min(counts[1], found.min(initial=math.inf))
            counts[2] = max(counts[2], found.max(initial=-math.inf))

    def words(self, rounded: Bounds, known: int) -> str:
        """Return how many of so many values lie outside rounded bounds; empty if none does."""
        assert self.bounds is not None
        sides = [(self.below, self.bounds.low != rounded.low)]
        sides += [(self.above, self.bounds.high != rounded.high)]
        outside = [counts for counts, is_rounding in sides if counts[0] and not is_rounding]
        if not outside:
            return ""
        count = int(sum(counts[0] for counts in outside))
        low, high = min(counts[1] for counts in outside), max(counts[2] for counts in outside)
        return f"{count} of {known} values lie outside, from {low:g} to {high:g}"


@dataclass(frozen=True, eq=False)
class Summary:
    """Findings of one pass over a grid.

    Attributes
    ----------
    cells, missing
        Number of cells, and of those that are missing.
    mean, least, largest
        Of the observed values.
    single
        Whether float32 holds them all.
    empty
        For every axis, indices of coordinates at which no cell is observed.
    gaps
        Number of missing cells at each coordinate of the axis that is read along.
    seen
        For each set of axes that was asked for, whether any cell along them is observed; of size 1
        along these.
    outside
        Values outside of bounds.
    unusable
        Values that are taken as missing, by reason.
    marks
        Values that seem to mark missing ones.
    """

    cells: int
    missing: int
    mean: float
    least: float
    largest: float
    single: bool
    empty: tuple[Indices, ...]
    gaps: Indices
    seen: dict[tuple[int, ...], Mask]
    outside: Tally
    unusable: Counter[str]
    marks: MarkCounts


def scan(
    reader: PartReader,
    along: Sequence[tuple[int, ...]],
    bounds: Bounds | None = None,
    tell: Callable[[float], None] = lambda share: None,
) -> Summary:
    """Read a grid once, part by part, and return what has to be known of it.

    Parameters
    ----------
    reader
        Reads the grid.
    along
        Sets of axes along which to find out whether any cell is observed.
    bounds
        Values outside of these are counted.
    tell
        Called with the share that is done.

    Raises
    ------
    InputError
        If no cell is observed.
    """
    shape, axis = reader.shape, reader.axis
    counts = [np.zeros(size, np.intp) for size in shape]
    seen = {
        axes: np.zeros([1 if place in axes else size for place, size in enumerate(shape)], bool)
        for axes in along
    }
    total, known, single, outside = 0.0, 0, True, Tally(bounds)
    least, largest, marks = math.inf, -math.inf, MarkCounts()
    for part, values in reader.parts():
        observed = ~np.isnan(values)
        for place in range(len(shape)):
            others = tuple(other for other in range(len(shape)) if other != place)
            found = observed.sum(axis=others)
            counts[place][part if place == axis else slice(None)] += found
        for axes, mask in seen.items():
            here = tuple(
                part if place == axis and axis not in axes else slice(None)
                for place in range(len(shape))
            )
            mask[here] |= observed.any(axis=axes, keepdims=True)
        there = values[observed].astype(np.float64, copy=False)
        total, known = total + float(there.sum()), known + there.size
        least = min(least, float(there.min(initial=math.inf)))
        largest = max(largest, float(there.max(initial=-math.inf)))
        single = single and fits_single(there)
        outside.add(there)
        marks.add(there)
        tell(part.stop / shape[axis])
    cells = math.prod(shape)
    if not known:
        raise InputError(f"All {cells} values are missing. Expected at least one number.")
    return Summary(
        cells,
        cells - known,
        total / known,
        least,
        largest,
        single,
        tuple(np.flatnonzero(count == 0) for count in counts),
        cells // shape[axis] - counts[axis],
        seen,
        outside,
        Counter(reader.unusable),
        marks,
    )


def is_rising(axis: Axis) -> bool:
    """Return whether the coordinates of an axis only rise or only fall."""
    steps = np.diff(axis.numbers)
    return bool((steps > 0).all() or (steps < 0).all())
