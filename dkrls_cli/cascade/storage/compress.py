"""Compression with a promise: the smallest model whose answers are within a tolerance.

The data of a cascade enters its answers through core and frames only, so that these are made
smaller. Along every axis, directions in which the data is small can be dropped
(:mod:`dkrls_cli.cascade.storage.layout`). How many are kept is found by measuring what that changes
(:mod:`dkrls_cli.cascade.storage.comparison`).

- An axis is truncated where that saves numbers.
- Directions go one by one, each time the one that costs the least squared error per number that
  need not be stored. The order is fixed beforehand, and a bisection finds how far it can be gone.
- Core and frames are stored in single precision where that is within the tolerance as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import DTypeLike

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.storage.comparison import Comparison, Difference, half_way
from dkrls_cli.cascade.storage.layout import Layout, choose_axes, principal_directions, turn
from dkrls_cli.cascade.storage.search import Search
from dkrls_cli.cascade.tensors import along
from dkrls_cli.errors import SettingError

# Largest over root mean square error of a truncation, roughly: of some 1e5 normal errors.
_PEAK = 4.0

# Rounding to single precision that takes more than this share of the tolerance may cost more
# numbers than it saves: then double precision is tried as well.
_SMALL_SHARE = 0.1

# Data above this, with room for sums of it, has no place in single precision.
_LARGEST_SINGLE = 1e30


@dataclass(frozen=True, eq=False)
class Compressed:
    """A compressed cascade, and how far its answers are from those of the full one.

    Attributes
    ----------
    cascade
        The smallest cascade found; the full one itself if none is smaller.
    difference
        As measured at the training coordinates and half-way between them.
    bytes, full_bytes
        Size of core and frames, after and before.
    """

    cascade: Cascade
    difference: Difference
    bytes: int
    full_bytes: int


def compress(full: Cascade, tolerance: float, between: Sequence[bool] | None = None) -> Compressed:
    """Return the smallest cascade whose answers are within a tolerance of those of the full one.

    The promise is for answers at the training coordinates and half-way between neighbours, in all
    combinations over the axes, and for the largest difference of all of them.

    Parameters
    ----------
    full
        A trained cascade.
    tolerance
        Largest difference allowed, in units of the data.
    between
        Per axis, whether answers half-way between coordinates count; all do by default. Between
        labels there is nothing to ask for.

    Returns
    -------
    Compressed
        The cascade and the difference that was measured.

    Raises
    ------
    SettingError
        If the tolerance is not a number above 0.

    Examples
    --------
    >>> from dkrls_cli.cascade.fit import fit_cascade
    >>> from dkrls_cli.cascade.kernels import Kernel
    >>> from dkrls_cli.cascade.level import Level
    >>> x, d = np.linspace(0, 3, 30), np.linspace(0, 5, 40)
    >>> values = np.sin(x)[:, None] * np.cos(d) + 1e-4 * np.cos(9 * x[:, None] * d)
    >>> levels = [Level("x", Kernel(sigma=0.5), 1e-6), Level("d", Kernel(sigma=0.5), 1e-6)]
    >>> small = compress(fit_cascade(values, [x, d], levels), 1e-3)
    >>> small.bytes, small.full_bytes, small.difference.largest < 1e-3
    (280, 9600, True)
    """
    if not (tolerance > 0 and math.isfinite(tolerance)):
        raise SettingError(f"Invalid tolerance {tolerance}. It must be a number above 0.")
    queries = [
        np.concatenate([c, half_way(c, level.kernel.period)]) if yes else c
        for c, level, yes in zip(
            full.coordinates, full.levels, between or [True] * full.ndim, strict=True
        )
    ]
    cells = Comparison(full, queries, float(tolerance))
    lean = _unframe(full)
    whole, bases = turn(lean, [None] * full.ndim), principal_directions(lean)
    small, difference = full, Difference(0.0, 0.0)
    for dtype in _types(whole, cells):
        for found in _truncations(lean, bases, cells, dtype):
            small, difference = min((small, difference), found, key=lambda f: stored_bytes(f[0]))
        same = whole.truncate(whole.sizes, dtype)
        if stored_bytes(same) < stored_bytes(small):
            measured = cells.measure(same)
            small, difference = (small, difference) if measured is None else (same, measured)
    return Compressed(small, difference, stored_bytes(small), stored_bytes(full))


def _types(whole: Layout, cells: Comparison) -> list[DTypeLike]:
    """Return the types of storage to try: double precision only where single loses too much."""
    if float(np.abs(whole.turned.core).max()) > _LARGEST_SINGLE:
        return [np.float64]
    rounding = cells.sampled(whole.truncate(whole.sizes, np.float32))
    return [np.float32] if rounding <= _SMALL_SHARE * cells.tolerance else [np.float32, np.float64]


def _unframe(full: Cascade) -> Cascade:
    """Return the cascade with those axes in samples that take fewer numbers so."""
    for axis, frame in enumerate(full.frames):
        if frame is not None:
            frames = (*full.frames[:axis], None, *full.frames[axis + 1 :])
            core = along(full.core, axis, frame)
            plain = replace(full, core=core, frames=frames, exact=False)
            full = min(full, plain, key=stored_bytes)
    return full


def _truncations(
    full: Cascade, bases: Sequence[Array | None], cells: Comparison, dtype: DTypeLike
) -> Iterator[tuple[Cascade, Difference]]:
    """Yield the smallest truncations within the tolerance that are stored in a type.

    Which axes are worth truncating depends on how much may be left out, which is known better once
    a truncation has been found: then others may be.
    """
    path = turn(full, bases).path(cells.tolerance)
    left_out, tried = cells.tolerance / _PEAK, {(True,) * full.ndim}
    while True:
        ranks = [ranks for ranks, rms in path if rms <= left_out][-1]
        chosen = choose_axes(full, bases, ranks)
        kept = tuple(basis is None for basis in chosen)
        if kept in tried:
            return
        tried.add(kept)
        search = Search(turn(full, chosen), cells, dtype)
        found = search.run()
        if found is None:
            return
        ranks, difference = found
        dropped = search.layout.dropped(ranks)
        yield replace(search.truncate(ranks), dropped=dropped), difference
        left_out = difference.rms


def stored_bytes(cascade: Cascade) -> int:
    """Return the size of the core and the frames of a cascade."""
    frames = (frame.nbytes for frame in cascade.frames if frame is not None)
    return cascade.core.nbytes + sum(frames)
