"""Panels: small parts of a stored grid on which the settings of its levels are chosen.

A panel is whole along the axes whose levels are chosen on it, so that its fibres are those of the
grid. Along the others it has few coordinates:

- *near* ones, runs of neighbours, along levels that are chosen before: the data is predicted
  half-way between them, as in a fit of the whole grid;
- *spread* ones, far from each other, where nothing is asked between coordinates.

They lie in few stored chunks: reading one number of a chunk costs as much as reading all of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Indices
from dkrls_cli.tuning.slices.fibres import FIBRES, MIDPOINTS

SHARE = 0.05
"""Share of the bytes of a grid that all panels read, where its chunks permit."""

_CHEAP = 2**25
"""Bytes that are read at any rate, however small the grid: 32 MB."""

_PLACES = 3
"""Places along an axis from which coordinates are taken, if chunks permit: ends and middle."""

_NEAR = (2 * MIDPOINTS, MIDPOINTS, MIDPOINTS // 2)
"""Coordinates in runs of neighbours: twice as many as are predicted between, or fewer."""

_SPREAD = (24, 3)
"""Coordinates far from each other, at most and at least."""

_ENOUGH = 2 * FIBRES
"""Fibres along every level that is chosen: twice as many as the choice takes."""


@dataclass(frozen=True)
class Stored:
    """How a grid is stored.

    Attributes
    ----------
    shape
        Sizes of its axes.
    chunks
        Sizes of its chunks.
    itemsize
        Bytes of a stored number.
    """

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    itemsize: int

    @property
    def bytes(self) -> int:
        """Bytes of all values."""
        return math.prod(self.shape) * self.itemsize

    @property
    def few(self) -> float:
        """Bytes that all panels together may read."""
        return max(SHARE * self.bytes, _CHEAP)

    def touched(self, indices: Sequence[Indices]) -> tuple[int, int]:
        """Return the number of chunks that hold cells at some coordinates, and their bytes."""
        count, cells = 1, 1
        for own, size, chunk in zip(indices, self.shape, self.chunks, strict=True):
            held = np.unique(own // chunk)
            count *= held.size
            cells *= int(np.minimum((held + 1) * chunk, size).sum() - (held * chunk).sum())
        return count, cells * self.itemsize


@dataclass(frozen=True, eq=False)
class Panel:
    """A part of a grid on which levels are chosen.

    Attributes
    ----------
    whole
        Axes along which it has all coordinates, and whose levels are chosen on it.
    near
        Axes along which it has runs of neighbours.
    indices
        Its coordinates along every axis, rising.
    """

    whole: tuple[int, ...]
    near: tuple[int, ...]
    indices: tuple[Indices, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the panel."""
        return tuple(own.size for own in self.indices)


def plan_panels(
    stored: Stored,
    wanted: Collection[int],
    together: Collection[int],
    fits: Callable[[Sequence[int]], bool],
    *,
    near: Collection[int] | None = None,
) -> list[Panel] | None:
    """Return the panels on which wanted levels are chosen; None if they do not fit into memory.

    The shortest levels share the first panel, as far as that fits and reads few chunks. Every
    longer one has a panel of its own, after those of shorter ones.

    Parameters
    ----------
    stored
        The grid.
    wanted
        Axes whose levels are chosen.
    together
        Axes of these that must share a panel.
    fits
        Tells whether a panel of some shape fits into memory.
    near
        Axes along which neighbours are needed wherever a panel is not whole; None: those of levels
        that are chosen on an earlier panel.
    """
    groups = _group(stored, wanted, together, fits)
    panels: list[Panel] = []
    for group in groups:
        before = [axis for panel in panels for axis in panel.whole]
        budget = stored.few / len(groups)
        panel = plan_panel(stored, group, before if near is None else near, fits, budget)
        if panel is None:
            return None
        panels.append(panel)
    return panels


def _group(
    stored: Stored,
    wanted: Collection[int],
    together: Collection[int],
    fits: Callable[[Sequence[int]], bool],
) -> list[tuple[int, ...]]:
    """Return which axes share a panel, those of the first panel first."""
    order = sorted(wanted, key=lambda axis: (axis not in together, stored.shape[axis]))
    first = tuple(order[: max(1, len(together))])
    rest = order[len(first) :]
    while rest and _is_better(stored, first, rest[0], fits):
        first, rest = (*first, rest[0]), rest[1:]
    return [first, *((axis,) for axis in rest)]


def _is_better(
    stored: Stored, group: tuple[int, ...], axis: int, fits: Callable[[Sequence[int]], bool]
) -> bool:
    """Return whether a panel that is whole along one more axis fits and reads no more than two."""
    few = stored.few
    joint = plan_panel(stored, (*group, axis), (), fits, few)
    if joint is None:
        return False
    alone = [plan_panel(stored, one, (), fits, few / 2) for one in (group, (axis,))]
    apart = sum(math.inf if p is None else stored.touched(p.indices)[1] for p in alone)
    return stored.touched(joint.indices)[1] <= max(few, apart)


def plan_panel(
    stored: Stored,
    whole: Sequence[int],
    near: Collection[int],
    fits: Callable[[Sequence[int]], bool],
    budget: float,
) -> Panel | None:
    """Return a panel that is whole along some axes, within a budget of bytes read if it can be.

    None if it does not fit into memory however few coordinates of the other axes it has.
    """
    others = [axis for axis in range(len(stored.shape)) if axis not in whole]
    runs = tuple(axis for axis in others if axis in near)
    found: list[Panel] = []
    for count in _NEAR if runs else _NEAR[:1]:
        for spread in _spreads(stored, whole, runs, count):
            sizes = {axis: count if axis in runs else spread for axis in others}
            if fits([min(size, sizes.get(axis, size)) for axis, size in enumerate(stored.shape)]):
                found.append(Panel(tuple(whole), runs, _place(stored, sizes, runs, budget)))
                break
        if found and stored.touched(found[-1].indices)[1] <= budget:
            return found[-1]
    return min(found, key=lambda panel: stored.touched(panel.indices)[1], default=None)


def _spreads(stored: Stored, whole: Sequence[int], runs: Sequence[int], near: int) -> list[int]:
    """Return how many coordinates to take along axes where they are spread, the best first."""
    free = [axis for axis in range(len(stored.shape)) if axis not in (*whole, *runs)]
    if not free:
        return [0]
    sizes = [stored.shape[axis] for axis in whole] + [
        min(near, stored.shape[axis]) for axis in runs
    ]
    longest = max((stored.shape[axis] for axis in whole), default=1)
    needed = _ENOUGH * longest / math.prod(sizes)
    each = max(_SPREAD[1], min(_SPREAD[0], math.ceil(needed ** (1 / len(free)))))
    return list(range(each, _SPREAD[1] - 1, -1))


def _place(
    stored: Stored, sizes: dict[int, int], runs: Collection[int], budget: float
) -> tuple[Indices, ...]:
    """Return the coordinates of a panel, in fewer places along an axis while it reads too much."""
    places = {
        axis: _PLACES if axis in runs else max(_PLACES, min(count, -(-_SPREAD[0] // 2)))
        for axis, count in sizes.items()
    }
    while True:
        indices = tuple(
            np.arange(size)
            if axis not in sizes
            else (find_runs if axis in runs else find_spread)(
                size, stored.chunks[axis], sizes[axis], places[axis]
            )
            for axis, size in enumerate(stored.shape)
        )
        several = [axis for axis in places if places[axis] > 1]
        if stored.touched(indices)[1] <= budget or not several:
            return indices
        places[max(several, key=lambda axis: places[axis])] -= 1


def find_spread(size: int, chunk: int, count: int, places: int) -> Indices:
    """Return coordinates far from each other that lie in few chunks.

    Parameters
    ----------
    size, chunk
        Size of the axis, and of its chunks.
    count
        Number of coordinates.
    places
        Number of chunks at most.

    Examples
    --------
    >>> find_spread(4000, 100, 6, 3).tolist()
    [600, 650, 2000, 2050, 3300, 3350]
    >>> find_spread(10, 1, 3, 3).tolist()
    [1, 5, 8]
    """
    if count >= size:
        return np.arange(size)
    chunks = -(-size // chunk)
    held = min(places, chunks, count)
    each = -(-count // held)
    taken = ((2 * np.arange(held) + 1) * chunks // (2 * held)) * chunk
    steps = [
        start + np.arange(min(each, stop - start)) * ((stop - start) // min(each, stop - start))
        for start, stop in ((int(s), min(int(s) + chunk, size)) for s in taken)
    ]
    return np.concatenate(steps)


def find_runs(size: int, chunk: int, count: int, places: int) -> Indices:
    """Return coordinates in runs of neighbours that lie in few chunks.

    Parameters
    ----------
    size, chunk, count
        As for :func:`find_spread`.
    places
        Number of runs at most.

    Examples
    --------
    >>> find_runs(4000, 100, 6, 2).tolist()
    [1048, 1049, 1050, 3048, 3049, 3050]
    """
    if count >= size:
        return np.arange(size)
    chunks = -(-size // chunk)
    held = min(places, chunks)
    each = -(-count // held)
    runs = []
    for place in range(held):
        middle = (2 * place + 1) * size // (2 * held)
        start = middle // chunk * chunk
        if each <= chunk:
            start += max(0, (min(chunk, size - start) - each) // 2)
        start = min(start, size - each)
        runs.append(np.arange(start, start + each))
    return np.unique(np.concatenate(runs))
