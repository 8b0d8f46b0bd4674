"""The tiles of one range of coordinates along the outer axis: solved, compared and put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.errors import InputError
from dkrls_cli.grid.axes import Axis
from dkrls_cli.model.tiling.layout import Layout, Span
from dkrls_cli.model.tiling.scan import PartReader
from dkrls_cli.model.tiling.seams import Seams
from dkrls_cli.model.tiling.solving import SolvedTile, TileModel, least_bar


@dataclass(frozen=True, eq=False)
class Ground:
    """What all tiles of a grid have in common: its axes, and where they are solved and answered.

    Attributes
    ----------
    outer, last
        Places of the outer axis, and of the last level.
    axes
        The axes, without coordinates that repeat others.
    columns
        Indices of their coordinates in the grid.
    solved
        Indices along these axes of the coordinates that tiles have where they do not cut.
    answered
        For every coordinate of the grid, its place among those that are solved for.
    beyond
        Which coordinates of the grid are outside the data, and have no answer.
    spans
        The axes that may be cut, by place.
    seen
        Whether any cell along the last level is observed, if that is known.
    """

    outer: int
    last: int
    axes: Sequence[Axis]
    columns: Sequence[Indices]
    solved: Sequence[Indices]
    answered: Sequence[Indices]
    beyond: Sequence[Mask]
    spans: Mapping[int, Span]
    seen: Mask | None


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
        self.ahead: tuple[int, Array] | None = None
        self.edge: tuple[int, Array] | None = None
        behind = int(np.searchsorted(self.rows, self.core[-1], side="right"))
        if layout.count > 1 and behind < self.rows.size:
            shape = list(self.cells.shape)
            shape[self.outer] = 1
            self.edge = int(self.rows[behind]), np.full(shape, np.nan)
        self.behind = behind

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
            beyond[self.outer] = np.array([self.behind])
            self.edge[1][where] = answers[np.ix_(*beyond)]
        if inner is not None and core is not None and seen is not None:
            self._compare_inner(answers, own, seen, core)

    def _compare_inner(
        self, answers: Array, own: list[Indices], seen: Indices, core: Indices
    ) -> None:
        """Compare a tile with the one before it along the inner axis, and keep its edge."""
        assert self.layout.inner is not None
        axis = self.layout.inner.axis
        if self.ahead is not None and self.ahead[0] in core:
            self._add_seam(axis)
        self.ahead = None
        beyond = [*own]
        behind = int(np.searchsorted(seen, core[-1], side="right"))
        if behind < seen.size:
            beyond[axis] = np.array([behind])
            self.ahead = int(seen[behind]), answers[np.ix_(*beyond)]
        elif self.ground.spans[axis].ring and seen[0] == 0 < core[0]:  # the first tile is next
            beyond[axis] = np.array([0])
            self.ahead = 0, answers[np.ix_(*beyond)]
            self._add_seam(axis)

    def _add_seam(self, axis: int) -> None:
        """Compare the tile before with the present answers at the coordinate behind it."""
        assert self.ahead is not None
        place = [self.ahead[0]]
        mine, cells, bars = (
            np.take(array, place, axis) for array in (self.answers, self.cells, self.bars)
        )
        other = np.where(cells, self.ahead[1], np.nan)
        self.seams.append((mine.ravel(), other.ravel(), bars.ravel()))

    def compare(self, seams: Seams, before: tuple[int, Array] | None) -> Seams:
        """Return the seams with those of these tiles, and those towards the tiles before."""
        found = list(self.seams)
        if before is not None and before[0] in self.core:
            place = [before[0] - int(self.core[0])]
            mine, cells, bars = (
                np.take(array, place, self.outer) for array in (self.answers, self.cells, self.bars)
            )
            other = np.where(cells, before[1], np.nan)
            found.append((mine.ravel(), other.ravel(), bars.ravel()))
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
