"""The tiles of one range of coordinates along the outer axis: solved, compared and put together."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.errors import InputError
from dkrls_cli.model.tiling.ground import Ground
from dkrls_cli.model.tiling.layout import Layout
from dkrls_cli.model.tiling.scan import PartReader
from dkrls_cli.model.tiling.seams import Seams
from dkrls_cli.model.tiling.solving import SolvedTile, TileModel, least_bar

Edge: TypeAlias = tuple[Indices, Array]
"""Coordinates behind the core of a tile, and its answers there."""


def _behind(seen: Indices, last: int, most: int) -> Indices:
    """Return the places of the coordinates that follow the last one of a core without a gap.

    >>> _behind(np.array([0, 1, 2, 3, 4, 6]), 2, 5).tolist()
    [3, 4]
    """
    start = int(np.searchsorted(seen, last, side="right"))
    ahead = seen[start : start + most]
    return start + np.flatnonzero(ahead == last + 1 + np.arange(ahead.size))


class Panel:
    """The tiles of one core along the outer axis, and what they share.

    Parameters
    ----------
    ground, reader
        The grid, and what reads it.
    model, layout
        Its model and its tiles.
    place
        Place of the core among those of the outer axis.
    cells
        The cells of the core to fill, at all coordinates of other axes.
    std
        Whether standard errors are needed.
    """

    def __init__(
        self,
        ground: Ground,
        reader: PartReader,
        model: TileModel,
        layout: Layout,
        place: int,
        cells: Mask,
        *,
        std: bool,
    ) -> None:
        self.ground, self.model, self.layout = ground, model, layout
        self.outer, self.wants_std = ground.outer, std
        self.core = np.arange(*layout.outer.cores[place])
        self.rows = ground.spans[self.outer].see(layout.outer, place, layout.context)
        columns = [ground.columns[axis][own] for axis, own in enumerate(ground.solved)]
        self.values = reader.rows(self.rows, columns)
        self.axes = [axis.take(own) for axis, own in zip(ground.axes, ground.solved, strict=True)]
        self.axes[self.outer] = ground.axes[self.outer].take(self.rows)
        columns[self.outer] = np.arange(self.core.size)
        self.cells = cells[np.ix_(*columns)]
        self.is_land = self._land(columns)
        self.answers = np.full(self.cells.shape, np.nan)
        self.bars = np.full(self.cells.shape, np.nan)
        self.seams: list[tuple[Array, Array, Array]] = []
        self.ahead: Edge | None = None
        self.edge: Edge | None = None
        self.behind = _behind(self.rows, int(self.core[-1]), layout.context.compared)
        if layout.count > 1 and self.behind.size:
            shape = list(self.cells.shape)
            shape[self.outer] = self.behind.size
            self.edge = self.rows[self.behind], np.full(shape, np.nan)

    def _land(self, columns: list[Indices]) -> Mask | None:
        """Return the cells without data all along the last level; None if that is not known."""
        if self.ground.seen is None or self.model.choice.tried == 1:
            return None
        own = [*columns]
        own[self.ground.last] = np.arange(1)
        return np.asarray(~self.ground.seen[np.ix_(*own)])

    def solve(self) -> None:
        """Solve for the cells of all tiles."""
        inner = self.layout.inner
        if inner is None:
            self._solve_tile(None, None)
            return
        span, solved = self.ground.spans[inner.axis], self.ground.solved[inner.axis]
        for place, core in enumerate(inner.cores):
            seen = np.searchsorted(solved, span.see(inner, place, self.layout.context))
            self._solve_tile(seen, np.searchsorted(solved, np.arange(*core)))

    def _solve_tile(self, seen: Indices | None, core: Indices | None) -> None:
        """Solve for the cells of one tile; `seen` and `core` are places along the inner axis."""
        cells = self._along_inner(self.cells, core)
        if not cells.any():
            self.ahead = None
            return
        axes = list(self.axes)
        if seen is not None and self.layout.inner is not None:
            axes[self.layout.inner.axis] = axes[self.layout.inner.axis].take(seen)
        values = self._along_inner(self.values, seen)
        if np.isnan(values).all():
            raise InputError(
                f"A tile of {' x '.join(str(side) for side in values.shape)} coordinates sees no "
                "data at all. Allow more memory, or fill only cells near data.",
                setting="max_memory within",
            )
        solved = self.model.solve(values, axes, self._watched(values, seen))
        own = [np.arange(axis.size) for axis in axes]
        own[self.outer] = np.searchsorted(self.rows, self.core)
        if core is not None and seen is not None and self.layout.inner is not None:
            own[self.layout.inner.axis] = np.searchsorted(seen, core)
        self._keep(solved, own, seen, core)

    def _watched(self, values: Array, seen: Indices | None) -> Mask | None:
        """Return the cells that are solved for as exactly as can be; None: all."""
        if self.is_land is None:
            return None
        if bool((self.cells & self.is_land).any()):
            return None
        watched = np.isnan(values) & ~self._along_inner(self.is_land, seen)
        return watched if watched.any() else None

    def _along_inner(self, array: Any, places: Indices | None) -> Any:
        """Return an array at some places along the inner axis; None: at all."""
        inner = self.layout.inner
        return array if places is None or inner is None else np.take(array, places, inner.axis)

    def _keep(
        self, solved: SolvedTile, own: list[Indices], seen: Indices | None, core: Indices | None
    ) -> None:
        """Keep the answers of the core of a tile, and those at its edges."""
        answers, part = solved.answers, np.ix_(*own)
        here: list[Any] = [slice(None)] * answers.ndim
        inner = self.layout.inner
        if inner is not None and core is not None:
            here[inner.axis] = core
        where = tuple(here)
        self.answers[where] = answers[part]
        if self.wants_std:
            self.bars[where] = solved.std(own)
        elif self.layout.count > 1:
            self.bars[where] = solved.near_bars()[part]
        if self.edge is not None:
            beyond = [*own]
            beyond[self.outer] = self.behind
            self.edge[1][where] = answers[np.ix_(*beyond)]
        if inner is not None and core is not None and seen is not None:
            self._compare_inner(answers, own, seen, core)

    def _compare_inner(
        self, answers: Array, own: list[Indices], seen: Indices, core: Indices
    ) -> None:
        """Compare a tile with the one before it along the inner axis, and keep its edge."""
        assert self.layout.inner is not None
        axis = self.layout.inner.axis
        if self.ahead is not None:
            self._add_seam(axis, core)
        beyond = [*own]
        beyond[axis] = _behind(seen, int(core[-1]), self.layout.context.compared)
        self.ahead = seen[beyond[axis]], answers[np.ix_(*beyond)]
        if self.ground.spans[axis].ring and core[-1] == self.cells.shape[axis] - 1 and core[0] > 0:
            beyond[axis] = _behind(seen, -1, self.layout.context.compared)  # the first tile is next
            self.ahead = seen[beyond[axis]], answers[np.ix_(*beyond)]
            self._add_seam(axis, np.arange(core[0]))

    def _add_seam(self, axis: int, core: Indices) -> None:
        """Compare the tile before with the present answers at coordinates behind it."""
        assert self.ahead is not None
        self.seams += self._seam(self.ahead, axis, core)

    def _seam(self, edge: Edge, axis: int, core: Indices) -> list[tuple[Array, Array, Array]]:
        """Return answers of two tiles at the cells to fill that both have, and error bars."""
        places, theirs = edge
        both = np.isin(places, core)
        own = places[both] if axis != self.outer else np.searchsorted(core, places[both])
        mine, cells, bars = (
            np.take(array, own, axis) for array in (self.answers, self.cells, self.bars)
        )
        other = np.where(cells, np.compress(both, theirs, axis), np.nan)
        return [(mine.ravel(), other.ravel(), bars.ravel())]

    def compare(self, seams: Seams, before: Edge | None) -> Seams:
        """Return the seams with those of these tiles, and those towards the tiles before."""
        found = list(self.seams)
        if before is not None:
            found += self._seam(before, self.outer, self.core)
        for one, other, bars in found:
            seams = seams.add(one, other, np.maximum(bars, least_bar(self.model)))
        return seams

    def expand(self) -> tuple[Array, Array | None]:
        """Return answers within bounds, and standard errors, at all coordinates of other axes."""
        columns = list(self.ground.answered)
        columns[self.outer] = np.arange(self.core.size)
        part, bounds = np.ix_(*columns), self.model.bounds
        values = self.answers[part]
        if bounds is not None:
            values = bounds.clip(values)
        return values, self.bars[part] if self.wants_std else None
