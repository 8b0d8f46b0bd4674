"""Rows as matrices that are cut to windows of the samples.

Away from the queried coordinate the entries of a row fall off, within a few steps for most kernels,
so that groups of neighbouring rows are applied to a *window* of the samples only; on a circle it
may begin near the last sample and end near the first. What does not fall off is the share of a
constant in the kernel. With C = A + c 1 1', where c is the variance of the constant,

    k' C^-1 = k0' A^-1 + s g',   g = C^-1 1,   s = c (1 - k' C^-1 1) / (1 - c 1' g),

and only the first term is cut to windows: the second is one product with g for all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array, Tensor
from dkrls_cli.cascade.streaming.products import Both, fold, multiply

NEGLIGIBLE = 1e-13
"""Length of the entries of a row outside its window, as a vector, beside that of all of them: less
than the round-off of a sum of many samples in double precision. What is left far away is mostly
noise of solving, of random signs, which a sum of sizes would count as much more than it is."""

GROUPS = (16, 32, 64)
"""Rows that share one window in a matrix product, to choose from: more make the window wide."""

_THIN = 2.0
"""Extra cost of a product with a group of rows, in rows: thin products are slow."""

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
    """

    samples: int
    windows: tuple[Window, ...]
    groups: tuple[Both, ...]
    group: int
    trend: tuple[Both, Both] | None = None

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
        return min(made, key=lambda one: one.operations * (1.0 + _THIN / one.group))

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
        for own, rows, window in self._pieces(start, stop, tensor.dtype):
            here = result[:, own]
            multiply(rows, _pick(fibres, window), here)
            if shares is not None:
                here += shares[own.start + start : own.stop + start, None] * constant
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
        self, start: int, stop: int, dtype: np.dtype[Any]
    ) -> Iterator[tuple[slice, Tensor, Window]]:
        """Yield rows from `start` to `stop` group by group: their place, matrix and window."""
        for place in range(start // self.group, -(-stop // self.group)):
            origin = place * self.group
            first, end = max(start, origin), min(stop, origin + self.group)
            rows = self.groups[place].as_type(dtype)[first - origin : end - origin]
            yield slice(first - start, end - start), rows, self.windows[place]


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
