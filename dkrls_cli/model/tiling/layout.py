"""Tiles of a grid: which cells each one fills, and which others it sees.

A tile fills the cells of its *core*, a range of coordinates along one or two axes. It is solved
together with its *context*: all coordinates beside the core, and farther away fewer and fewer,
every second, every fourth, up to the ends of the axis, or not beyond some distance where memory is
scarce. So a tile sees the whole grid, coarser with distance, or what is near, and its answers are
those of the same model given a part of the data. They differ from
the answers given all data by what the coordinates left out tell: of a variance v of the whole grid
and w of the tile, the mean square of the difference is w - v.

Neighbouring tiles leave out other coordinates. What they differ by where they meet tells how far
they are from the whole grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

from dkrls_cli.arrays import Indices
from dkrls_cli.errors import InputError


@dataclass(frozen=True)
class Context:
    """How much of an axis a tile sees besides its core.

    Attributes
    ----------
    near
        Coordinates beside the core that are all seen. Every second one is seen from twice as far,
        every fourth from four times as far, and so on.
    least
        Coordinates of the whole axis that are seen about, however far, where it has so many.
    far
        Whether any are seen from four times as far as `near` on.
    """

    near: int
    least: int
    far: bool = True

    @property
    def compared(self) -> int:
        """Coordinates of the next tile at which two tiles are compared.

        Farther away a tile has less data around than in its core.
        """
        return max(1, self.near // 2)


CONTEXTS = (
    Context(4, 32, far=False),
    Context(8, 64, far=False),
    Context(4, 32),
    Context(8, 64),
    Context(16, 128),
    Context(32, 256),
)
"""Contexts from the least to the most that is seen.

Those without what is far leave memory for large tiles. Where holes are wide or kernels reach
farther, such tiles do not fit together, and the others are tried, or the grid is refused.

On grids of 800 times with kernels from rough to smooth, answers in holes half as long again as a
tile were within 0.09 of the error bar of those of the whole grid (root mean square) with the
fourth, 0.08 with the fifth and 0.06 with the last; elsewhere within 0.04, 0.03 and 0.025.
"""

USUAL, WORTH, MOST = 4, 6.0, 60.0
"""Context to begin with, if memory allows it such that tiles see at most `WORTH` times the cells of
the grid; with a smaller one otherwise. What is far is left out, and tiles are solved again, only up
to `MOST` times the cells: more would take days where the grid is large."""


def worth(place: int, contexts: Sequence[Context] = CONTEXTS) -> float:
    """Return how many times the cells of the grid tiles may see, to begin with a context.

    The least of those that see what is far is preferred to those that do not, at some price.
    """
    if place == 0:
        return math.inf
    return MOST if contexts[place].far and not contexts[place - 1].far else WORTH


def see_context(
    core: Indices, known: Indices, context: Context, *, ring: bool, odd: bool
) -> Indices:
    """Return the coordinates of an axis that a tile sees, ascending.

    Parameters
    ----------
    core
        Indices of the coordinates that the tile fills, ascending.
    known
        Indices of all coordinates that have data, ascending.
    context
        How much is seen.
    ring
        Whether the last coordinate is next to the first.
    odd
        Whether the tile is the second, fourth, ...: it then sees other coordinates.

    Examples
    --------
    >>> see_context(np.arange(6, 8), np.arange(40), Context(2, 1), ring=False, odd=False).tolist()
    [0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 32]
    """
    size, places = known.size, np.arange(known.size)
    first = int(np.searchsorted(known, core[0], side="left"))
    behind = int(np.searchsorted(known, core[-1], side="right"))
    before, after = first - places, places - behind + 1
    if ring:
        before, after = before % size, after % size
        away = np.minimum(before, after)
        away[first:behind] = 0
    else:
        away = np.maximum(np.maximum(before, after), 0)
    power = np.floor(np.log2(np.maximum(1.0, away / context.near)))
    most = round(math.log2(max(1.0, size / context.least)))
    step = (2 ** np.minimum(power, most)).astype(np.intp)
    seen = (places + (step // 2 if odd else 0)) % step == 0
    seen &= context.far or away < 4 * context.near
    return np.union1d(core, known[seen])


@dataclass(frozen=True)
class Cut:
    """How one axis is cut into tiles.

    Attributes
    ----------
    axis
        Place of the axis.
    cores
        First and last index of every core, the last one not included.
    """

    axis: int
    cores: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Layout:
    """The tiles of a grid.

    Attributes
    ----------
    outer
        The axis that is read tile by tile.
    inner
        A second axis that is cut, of which all coordinates are read; None: it is whole.
    context
        What tiles see besides their cores.
    memory
        Bytes that the largest tile takes.
    work
        Coordinates that all tiles see, the product over the axes that may be cut.
    tried
        The axes that may be cut.
    """

    outer: Cut
    inner: Cut | None
    context: Context
    memory: int
    work: int
    tried: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of tiles."""
        return len(self.outer.cores) * (len(self.inner.cores) if self.inner else 1)

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes that are cut."""
        return (self.outer.axis, *((self.inner.axis,) if self.inner else ()))


@dataclass(frozen=True, eq=False)
class Span:
    """An axis that may be cut.

    Attributes
    ----------
    axis
        Its place.
    low, high
        First and last index of the coordinates to be answered at, the last one not included.
    known
        Indices of the coordinates that have data, ascending.
    ring
        Whether its last coordinate is next to its first.
    """

    axis: int
    low: int
    high: int
    known: Indices
    ring: bool = False

    @property
    def size(self) -> int:
        """Number of coordinates to be answered at."""
        return self.high - self.low

    def cut(self, core: int) -> Cut:
        """Return cores of equal size, of at most so many coordinates."""
        count = max(1, -(-self.size // core))
        ends = np.linspace(self.low, self.high, count + 1).round().astype(int).tolist()
        return Cut(self.axis, tuple(pairwise(ends)))

    def width(self, cut: Cut, context: Context) -> int:
        """Return the most coordinates that a tile sees: of the first, the last and two between."""
        last = len(cut.cores) - 1
        some = {0, last // 2, min(last, last // 2 + 1), last}
        return max(self.see(cut, place, context).size for place in some)

    def see(self, cut: Cut, place: int, context: Context) -> Indices:
        """Return the coordinates that a tile sees: the first one of the next tile always.

        There the two are compared, whether it has data or not.
        """
        start, stop = cut.cores[place]
        core = np.arange(start, stop)
        if len(cut.cores) == 1:
            return np.union1d(core, self.known)
        seen = see_context(core, self.known, context, ring=self.ring, odd=bool(place % 2))
        return np.union1d(seen, [min(stop, self.high - 1)])


class TilesTooLargeError(InputError):
    """The smallest tiles take more memory than is allowed; `least` bytes, without the program."""

    def __init__(self, message: str, least: float) -> None:
        super().__init__(message, setting="max_memory")
        self.least = least


Memory = Callable[[int, int, int], int]
"""Returns the bytes of a tile by core and width along the outer axis, and width along the inner."""


def lay_tiles(
    outer: Span, inner: Span | None, context: Context, memory: Memory, limit: float
) -> Layout:
    """Return the tiles that fit into a limit and see the fewest cells besides their cores.

    Parameters
    ----------
    outer, inner
        The axes that may be cut.
    context
        What tiles see.
    memory
        Returns the bytes that a tile takes.
    limit
        Bytes that it may take.

    Raises
    ------
    TilesTooLargeError
        If no tile is so small.
    """
    best: Layout | None = None
    least = math.inf
    tried = tuple(span.axis for span in (outer, inner) if span is not None)
    others: Sequence[tuple[Cut | None, int]] = [(None, 1)]
    if inner is not None:
        others = _cuts(inner, context)
    for (one, width), (other, inner_width) in product(_cuts(outer, context), others):
        core = max(stop - start for start, stop in one.cores)
        needed = memory(core, width, inner_width)
        least = min(least, needed)
        second = other if other is not None and len(other.cores) > 1 else None
        count = len(one.cores) * (len(second.cores) if second else 1)
        work = count * width * inner_width
        if needed <= limit and (best is None or work < best.work):
            best = Layout(one, second, context, needed, work, tried)
    if best is None:
        raise TilesTooLargeError(
            f"Even the smallest tiles take about {least / 1e6:.0f} MB besides the program, and "
            f"{max(0.0, limit) / 1e6:.0f} MB are allowed. Allow more memory.",
            least,
        )
    return best


def _cuts(span: Span, context: Context) -> list[tuple[Cut, int]]:
    """Return ways to cut an axis, whole or in tiles of fewer and fewer coordinates, and widths."""
    core, found = float(span.size), dict[int, Cut]()
    while core >= 1:
        cut = span.cut(int(core))
        found.setdefault(len(cut.cores), cut)
        core /= 1.25
    return [(cut, span.width(cut, context)) for cut in found.values()]
