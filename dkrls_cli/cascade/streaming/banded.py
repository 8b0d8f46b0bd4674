"""Rows as matrices that are cut to windows of the samples.

Away from the queried coordinate the entries of a row fall off, within a few steps for most kernels,
so that groups of neighbouring rows are applied to a *window* of the samples only; on a circle it
may begin near the last sample and end near the first. What does not fall off is the share of a
constant in the kernel. With C = A + c 1 1', where c is the variance of the constant,

    k' C^-1 = k0' A^-1 + s g',   g = C^-1 1,   s = c (1 - k' C^-1 1) / (1 - c 1' g),

and only the first term is cut to windows: the second is one product with g for all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from dkrls_cli.arrays import Array, Tensor
from dkrls_cli.cascade.streaming.products import Both, fold, multiply, multiply_all

NEGLIGIBLE = 1e-13
"""Length of the entries of a row outside its window, as a vector, beside that of all of them: less
than the round-off of a sum of many samples in double precision. What is left far away is mostly
noise of solving, of random signs, which a sum of sizes would count as much more than it is."""

GROUPS = (16, 32, 64)
"""Rows that share one window in a matrix product, to choose from: more make the window wide."""

_THIN = 2.0
"""Extra cost of a product with a group of rows, in rows: thin products are slow."""

_WIDER = 1.05
"""Width of the windows of a run, beside that of their own, up to which they are made equal."""

_FEWEST = 4
"""Groups of a run at least."""

_ADDED = 2**16
"""Numbers to which the share of a constant is added at a time: what is added stays in the cache."""

Window = tuple[slice, ...]
"""Samples that rows are applied to: one part of an axis, or two, the first and the last of it."""


@dataclass(frozen=True, eq=False)
class Constant:
    """The constant in a kernel.

    Attributes
    ----------
    variance
        c, its variance.
    weights
        g = C^-1 1 (samples,).
    """

    variance: float
    weights: Array

    def shares(self, rows: Array) -> Array:
        """Return s of rows k' C^-1: how much of each is the constant's."""
        left = 1.0 - self.variance * self.weights.sum()
        return np.asarray(self.variance * (1.0 - rows.sum(axis=1)) / left)


@dataclass(frozen=True, eq=False)
class Run:
    """Groups one after the other whose windows are equally wide and equally far from each other.

    One call applies all of them: what runs beside in other threads is not held up by many.

    Attributes
    ----------
    groups
        Places of the groups.
    start, step
        First sample of the first window, and samples from each window to the next.
    rows
        The rows of all groups (groups, rows, width), in double and in single precision.
    """

    groups: range
    start: int
    step: int
    rows: Both

    @property
    def first(self) -> int:
        """The first row."""
        return self.groups.start * int(self.rows.double.shape[1])

    @property
    def last(self) -> int:
        """The row behind the last."""
        return self.groups.stop * int(self.rows.double.shape[1])

    @property
    def window(self) -> slice:
        """All samples of the windows."""
        count, _, width = self.rows.double.shape
        return slice(self.start, self.start + self.step * (count - 1) + width)

    def apply(self, fibres: Tensor, out: Tensor) -> None:
        """Put the rows, applied to fibres (any, m, any), into `out` (any, all rows, any)."""
        rows = self.rows.as_type(fibres.dtype)
        windows: Any = sliding_window_view(fibres[:, self.window], rows.shape[2], axis=1)
        found = out.reshape(len(out), len(rows), -1, out.shape[2])  # a view: one axis is cut in two
        multiply_all(rows, windows[:, :: self.step].swapaxes(2, 3), found)


@dataclass(frozen=True, eq=False)
class Banded:
    """Rows as matrices, in groups of neighbours that share a window, and a constant's share.

    Attributes
    ----------
    samples
        Number of samples of the axis.
    windows
        The samples that each group is applied to: one part of the axis, or two, at its ends.
    groups
        The rows of each group (rows, samples of its window), in double and in single precision.
    group
        Rows of every group but the last, which may have fewer.
    trend
        s of every row (size,) and g (samples,), in double and in single precision; or None.
    runs
        Groups that are applied together.
    """

    samples: int
    windows: tuple[Window, ...]
    groups: tuple[Both, ...]
    group: int
    trend: tuple[Both, Both] | None = None
    runs: tuple[Run, ...] = ()

    @classmethod
    def build(
        cls,
        make_rows: Callable[[slice], Array],
        size: int,
        constant: Constant | None = None,
        negligible: float = NEGLIGIBLE,
    ) -> Banded:
        """Return rows of which `make_rows` returns some (rows, samples) at a time.

        Parameters
        ----------
        make_rows
            Returns the rows of a part.
        size
            Number of rows.
        constant
            The constant that the kernel has, if it has one.
        negligible
            Length of the entries outside a window, as a vector, beside that of all entries.

        Examples
        --------
        >>> rows = np.array([[1.0, 0.5, 1e-15, 0.0], [0.5, 1.0, 0.0, 0.0]])
        >>> Banded.build(lambda part: rows[part], 2).windows
        ((slice(0, 2, None),),)
        """
        made = (cls._in_groups(make_rows, size, group, constant, negligible) for group in GROUPS)
        best = min(made, key=lambda one: one.operations * (1.0 + _THIN / one.group))
        return replace(best, runs=tuple(best._find_runs()))

    @classmethod
    def _in_groups(
        cls,
        make_rows: Callable[[slice], Array],
        size: int,
        group: int,
        constant: Constant | None,
        negligible: float,
    ) -> Banded:
        """Return rows in groups of a size."""
        windows, groups, shares = [], [], []
        samples = 0
        for start in range(0, size, group):
            rows = make_rows(slice(start, min(start + group, size)))
            samples = rows.shape[1]
            if constant is not None:
                shares.append(constant.shares(rows))
                rows = rows - np.outer(shares[-1], constant.weights)
            windows.append(_window(rows, negligible))
            groups.append(Both.of(np.asarray(_pick(rows, windows[-1]), np.float64)))
        trend = None
        if constant is not None:
            trend = Both.of(np.concatenate(shares)), Both.of(constant.weights)
        return cls(samples, tuple(windows), tuple(groups), group, trend)

    def _find_runs(self) -> Iterator[Run]:
        """Yield runs of groups of all rows, as long as they can be."""
        full = sum(len(own.double) == self.group for own in self.groups)
        first = 0
        while first < full:
            last = first + 1
            while last < full and self._layout(range(first, last + 1)) is not None:
                last += 1
            if last - first >= _FEWEST:
                yield self._run(range(first, last))
            first = last

    def _layout(self, places: range) -> tuple[int, int, int] | None:
        """Return start, step and width of the windows of a run; None if they differ too much."""
        windows = [self.windows[place] for place in places]
        if any(len(window) > 1 for window in windows):
            return None
        starts, stops = np.array([(window[0].start, window[0].stop) for window in windows]).T
        step = round((starts[-1] - starts[0]) / (len(places) - 1))
        away = step * np.arange(len(places))
        start = int((starts - away).min())
        width = int((stops - away).max()) - start
        inside = start >= 0 and start + away[-1] + width <= self.samples
        narrow = width <= _WIDER * (stops - starts).min()
        return (start, step, width) if step > 0 and inside and narrow else None

    def _run(self, places: range) -> Run:
        """Return some groups, whose windows differ little, as a run."""
        layout = self._layout(places)
        assert layout is not None
        start, step, width = layout
        rows = np.zeros((len(places), self.group, width))
        for number, place in enumerate(places):
            own, origin = self.windows[place][0], start + step * number
            rows[number, :, own.start - origin : own.stop - origin] = self.groups[place].double
        return Run(places, start, step, Both.of(rows))

    @cached_property
    def size(self) -> int:
        """Number of rows."""
        return sum(len(group.double) for group in self.groups)

    @cached_property
    def operations(self) -> int:
        """Products of two numbers for every fibre."""
        return sum(group.double.size for group in self.groups)

    def window(self, part: slice) -> slice:
        """Return all samples: a constant has a share in every row."""
        return slice(0, self.samples)

    def apply(self, tensor: Tensor, axis: int, part: slice) -> Tensor:
        """Return some of the rows applied to all samples along an axis."""
        start, stop, _ = part.indices(self.size)
        fibres = fold(tensor, axis)
        result: Tensor = np.empty((len(fibres), stop - start, fibres.shape[2]), tensor.dtype)
        shares, constant = self._constant_part(fibres)
        together = [run for run in self.runs if start <= run.first and run.last <= stop]
        for run in together:
            run.apply(fibres, result[:, run.first - start : run.last - start])
        for own, rows, window in self._pieces(start, stop, tensor.dtype, together):
            multiply(rows, _pick(fibres, window), result[:, own])
        if shares is not None:
            _add_products(result, shares[start:stop], constant)
        return result.reshape(*tensor.shape[:axis], stop - start, *tensor.shape[axis + 1 :])

    def _constant_part(self, fibres: Tensor) -> tuple[Tensor | None, Tensor]:
        """Return the share of a constant in every row, and its weights applied to the samples."""
        if self.trend is None:
            return None, fibres
        shares, weights = (both.as_type(fibres.dtype) for both in self.trend)
        constant: Tensor = np.empty((len(fibres), 1, fibres.shape[2]), fibres.dtype)
        multiply(weights[None], fibres, constant)
        return shares, constant

    def _pieces(
        self, start: int, stop: int, dtype: np.dtype[Any], without: Sequence[Run]
    ) -> Iterator[tuple[slice, Tensor, Window]]:
        """Yield rows from `start` to `stop` group by group: their place, matrix and window.

        Those of some runs are left out.
        """
        for place in range(start // self.group, -(-stop // self.group)):
            if any(place in run.groups for run in without):
                continue
            origin = place * self.group
            first, end = max(start, origin), min(stop, origin + self.group)
            rows = self.groups[place].as_type(dtype)[first - origin : end - origin]
            yield slice(first - start, end - start), rows, self.windows[place]


def _add_products(out: Tensor, shares: Tensor, constant: Tensor) -> None:
    """Add shares (p,) times a constant (any, 1, any) to `out` (any, p, any), a part at a time."""
    before, rows, behind = out.shape
    if behind == 1:  # many rows at once, which lie one after the other
        step = max(1, _ADDED // rows)
        for first in range(0, before, step):
            out[first : first + step, :, 0] += constant[first : first + step, :, 0] * shares
        return
    step = max(1, _ADDED // (before * behind))
    for first in range(0, rows, step):
        out[:, first : first + step] += shares[first : first + step, None] * constant


def _window(rows: Array, negligible: float) -> Window:
    """Return the samples outside of which every row is negligible; at least one.

    These are all but the samples around the ends of the axis; or around the place where the rows
    are smallest, if so few are left that it pays to put the parts before and behind it together.
    """
    sizes, samples = rows**2, rows.shape[1]
    least = negligible**2 * sizes.sum(axis=1, keepdims=True) / 2
    place, (before, after) = 0, _negligible_around(sizes, least, 0)
    inner = int(sizes.max(axis=0).argmin())
    around = _negligible_around(sizes, least, inner)
    if 2 * (samples - sum(around)) <= samples - before - after:
        place, (before, after) = inner, around
    start = (place + min(after, samples - 1)) % samples
    stop = start + max(1, samples - before - after)
    if stop <= samples:
        return (slice(start, stop),)
    return slice(0, stop - samples), slice(start, samples)


def _negligible_around(sizes: Array, least: Array, place: int) -> tuple[int, int]:
    """Return how many samples before a place on a circle, and from it on, are negligible."""
    turned = np.roll(sizes, -place, axis=1)
    before, after = (
        int(np.count_nonzero(np.cumsum(part, axis=1) <= least, axis=1).min())
        for part in (turned[:, ::-1], turned)
    )
    return before, after


def _pick(values: Tensor, window: Window) -> Tensor:
    """Return the samples of a window along the second axis."""
    if len(window) == 1:
        return values[:, window[0]]
    return np.concatenate([values[:, part] for part in window], axis=1)
