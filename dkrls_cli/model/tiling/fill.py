"""Missing cells of a grid beyond memory, filled tile by tile.

The grid is read once to know where land is, what is missing, and its mean. Settings are chosen on
a part of it. Then every tile is solved with its context (:mod:`dkrls_cli.model.tiling.layout`) and
its core is written. Tiles are compared where they meet: if they differ by more than a tenth of the
error bar, they are solved again with more context, and if that takes too much memory, the grid is
refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask, Slices
from dkrls_cli.circle import nearest, outside
from dkrls_cli.errors import ConvergenceError, InputError, SettingError
from dkrls_cli.files.source import Source, unusable_notes
from dkrls_cli.grid.axes import Axis, number_axis
from dkrls_cli.grid.cf import hierarchy_of
from dkrls_cli.grid.grid import Grid
from dkrls_cli.memory import held_bytes, peak_bytes
from dkrls_cli.model.answering.bounds import Bounds, bounds_asked, settle_bounds, unclear_limits
from dkrls_cli.model.filling.cells import leave_out
from dkrls_cli.model.planning.plan import plan_fit
from dkrls_cli.model.planning.requests import FitPlan, LevelRequest
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.tiling.layout import (
    CONTEXTS,
    MOST,
    USUAL,
    WORTH,
    Layout,
    TilesTooLargeError,
    worth,
)
from dkrls_cli.model.tiling.panel import Ground, Panel
from dkrls_cli.model.tiling.planning import (
    FillRequest,
    besides,
    find_spans,
    lay_along,
    plan_tiles,
    relative_work,
)
from dkrls_cli.model.tiling.rules import is_first, land_axes, make_rules
from dkrls_cli.model.tiling.scan import PartReader, scan
from dkrls_cli.model.tiling.seams import Seams
from dkrls_cli.model.tiling.solving import TileModel, choose_model, sample_rows
from dkrls_cli.model.training.lost import enclosed_among
from dkrls_cli.tuning.footprint import Machine, footprint

_SAMPLE = 400_000
"""Cells of the part that settings are chosen on: views of it are a twentieth of that."""

_FEWEST_ROWS = 24
"""Coordinates of a cut axis in that part at least: fewer show no gaps."""

_FEW = 20
"""Cells at seams below which these tell little: tiles then get as much context as memory allows."""

Tell = Callable[[str, float], None]
"""Called with what is being done, and the share of it that is."""


class Writer(Protocol):
    """Writes parts of a filled variable."""

    def restart(self) -> None:
        """Forget what was written: all parts will be written again."""

    def write(self, part: Slices, cells: Mask, values: Array, errors: Array | None = None) -> None:
        """Write a part, of which some cells are filled."""


@dataclass(frozen=True, eq=False)
class TiledFill:
    """Result of filling a grid in tiles.

    Attributes
    ----------
    cells, missing, filled, left
        Number of cells, of those that were missing, that are filled, and that are left, by reason.
    layout
        The tiles; None if there was nothing to fill.
    seams
        How far tiles differ where they meet; None if there was nothing to fill.
    model
        The model of all tiles; None if there was nothing to fill.
    note
        What was decided about land.
    notes, warnings
        What else was decided, and what could not be done exactly.
    bytes_read
        Bytes of values that were read.
    """

    cells: int
    missing: int
    filled: int
    left: Mapping[str, int]
    layout: Layout | None = None
    seams: Seams | None = None
    model: TileModel | None = None
    note: str = ""
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()
    bytes_read: int = 0


def fill_in_tiles(
    source: Source,
    settings: Settings,
    request: FillRequest,
    writer: Writer,
    limit: float,
    tell: Tell = lambda what, share: None,
) -> TiledFill:
    """Fill the missing cells of a grid that is read and written part by part.

    Parameters
    ----------
    source
        The grid.
    settings
        Settings of the model that fills the gaps.
    request
        Which cells to fill, and what to add.
    writer
        Writes the filled parts.
    limit
        Bytes that may be in use, the program included.
    tell
        Called with what is being done, and the share of it that is.

    Returns
    -------
    TiledFill
        What was filled and left.

    Raises
    ------
    InputError
        If the grid cannot be used, or not in tiles of that size.
    SettingError
        If a setting is not possible, or not with tiles.
    ConvergenceError
        If missing cells could not be solved for, or tiles do not fit together.
    """
    if request.max_std is not None and not request.max_std > 0:
        raise SettingError(f"Invalid largest standard error {request.max_std}. It must be above 0.")
    if source.errors is not None:
        raise InputError(
            "Errors of the observations need the whole grid in memory. Leave them out, or allow "
            "more memory.",
            setting="max_memory",
        )
    planned = plan_tiles(source, settings, request, limit)
    return _Filler(source, settings, request, writer, limit, tell, planned.layout).run()


class _Filler:
    """Fills one grid in tiles."""

    def __init__(
        self,
        source: Source,
        settings: Settings,
        request: FillRequest,
        writer: Writer,
        limit: float,
        tell: Tell,
        layout: Layout,
    ) -> None:
        self.source, self.settings, self.request = source, settings, request
        self.writer, self.limit, self.tell = writer, limit, tell
        self.room = limit - besides(source, settings)
        self.outer, self.cut = layout.outer.axis, layout.axes
        self.axes, self.shape = source.axes, source.shape
        self.reader = PartReader(source, self.outer)
        self.hierarchy = hierarchy_of(self.axes, settings.level_names)
        self.last = [axis.name for axis in self.axes].index(self.hierarchy[-1])
        self.wants_std = request.std or request.max_std is not None
        self.notes: list[str] = []

    def run(self) -> TiledFill:
        """Fill the grid."""
        blank = np.broadcast_to(np.float32(0), self.shape)
        source = self.source
        self.blank = Grid(blank, self.axes, source.name, source.attrs, source.style)
        asked, told_by = bounds_asked(self.settings.bounds, self.blank)
        self.summary = summary = scan(
            self.reader,
            self._seen_along(),
            asked,
            lambda share: self.tell("reading", share),
        )
        ends = np.array([summary.least, summary.largest])
        replace(self.blank, values=ends).refuse_unsuitable()
        self.notes += unusable_notes(summary.unusable)
        self.rules, note = make_rules(
            self.blank,
            self.hierarchy,
            self.outer,
            summary,
            self.request.mask,
            self.request.max_gap,
            self.request.within,
            self._first_slice() if is_first(self.request.mask) else None,
        )
        bounds: Bounds | None = None
        told = unclear_limits(self.settings.bounds, self.blank)
        if asked is not None:
            rounded = asked.round_out(ends)
            known = summary.cells - summary.missing
            bounds, told = settle_bounds(rounded, told_by, summary.outside.words(rounded, known))
        self.notes += [told] if told else []
        if not summary.missing:
            return self._fill(None, None, note)
        self._number_axes()
        model = self._choose(bounds)
        self.ground = self._ground(model)
        attempts = range(USUAL, 0, -1)
        attempt = next((one for one in attempts if self._fits(one, worth(one, CONTEXTS))), 0)
        while True:
            layout = self._lay(attempt)
            done = self._fill(model, layout, note)
            if done.seams is None or layout.count == 1:
                return done
            most = MOST
            if done.seams.fit:
                if done.seams.count >= _FEW:
                    return done
                most = WORTH
            attempt += 1
            if attempt == len(CONTEXTS) or not self._fits(attempt, most):
                return self._few(done) if done.seams.fit else self._accept(done)
            self.tell("filling again", 0.0)

    def _few(self, done: TiledFill) -> TiledFill:
        """Return a grid of whose tiles little is known, with a note on that."""
        assert done.seams is not None
        note = f"tiles could be compared in {done.seams.count} cells only, where they meet"
        return replace(done, notes=[*done.notes, note])

    def _accept(self, done: TiledFill) -> TiledFill:
        """Return a grid whose tiles do not fit together, if that is accepted."""
        assert done.seams is not None
        words = (
            f"tiles differ by {done.seams.worst:.2g} of the error bar where they meet, and by "
            f"{done.seams.largest:.2g} in a cell"
        )
        if not self.settings.accept_inexact:
            raise ConvergenceError(
                f"The {words}: more than a tenth of it. Holes may be larger than tiles. Allow more "
                "memory, or accept inexact answers.",
                setting="max_memory accept_inexact",
            )
        return replace(done, warnings=[*done.warnings, words])

    def _seen_along(self) -> list[tuple[int, ...]]:
        """Return the sets of axes along which it has to be known whether any cell is observed."""
        result = []
        mask, within = self.request.mask, self.request.within
        if (mask is None and within is None) or (isinstance(mask, str) and mask == "always"):
            along = land_axes(self.axes, self.hierarchy)
            result += [along] if along is not None else []
        if self.last == self.outer:
            result.append((self.last,))
        return list(dict.fromkeys(result))

    def _first_slice(self) -> Grid:
        """Read the first slice of the last level."""
        others: list[Indices | None] = [None] * len(self.shape)
        others[self.last] = np.arange(1)
        rows = np.arange(1 if self.last == self.outer else self.shape[self.outer])
        return replace(self.blank, values=self.reader.rows(rows, others))

    # --- axes ----------------------------------------------------------------------------------

    def _number_axes(self) -> None:
        """Set the axes without coordinates that repeat others, and what is known on them."""
        self.columns = [axis.distinct for axis in self.axes]
        self.fresh = [
            axis if own.size == axis.size else number_axis(axis.name, axis.stored[own], axis.attrs)
            for axis, own in zip(self.axes, self.columns, strict=True)
        ]
        self.empty = [
            np.flatnonzero(np.isin(own, gone))
            for own, gone in zip(self.columns, self.summary.empty, strict=True)
        ]
        self.known = [
            np.setdiff1d(np.arange(axis.size), gone)
            for axis, gone in zip(self.fresh, self.empty, strict=True)
        ]
        self.readable = tuple(find_spans(self.fresh, self.known))
        kept = [axis.take(own) for axis, own in zip(self.fresh, self.known, strict=True)]
        self.plan = self._plan(kept)

    def _plan(self, axes: Sequence[Axis]) -> FitPlan:
        """Return the plan of a fit to these axes, without a group of axes that are cut."""
        plan = plan_fit(axes, self.settings, complete=False)
        cut = [self.axes[place].name for place in plan.group if place in self.cut]
        if not cut:
            return plan
        if plan.group_given:
            raise SettingError(
                f"A group with '{cut[0]}' needs that dimension whole in memory, and tiles cut it. "
                "Leave the group out, or allow more memory.",
                setting="group max_memory",
            )
        self.notes.append(
            f"tiles cut {' and '.join(cut)}: dimensions with one distance are not tried"
        )
        return plan_fit(axes, replace(self.settings, group="none"), complete=False)

    def _ground(self, model: TileModel) -> Ground:
        """Return the coordinates that are solved for along every axis, and where answers are."""
        nodes = list(self.known)
        if model.choice.setting.grouping.sphere:
            for place, more in enclosed_among(self.fresh, self.empty, self.plan.group).items():
                nodes[place] = np.union1d(nodes[place], more)
        spans = find_spans(self.fresh, nodes)
        solved, answered, beyond = [], [], []
        for place, axis in enumerate(self.fresh):
            far = self._far(place, nodes[place])
            if place in spans and spans[place].ring and self._period(place) is None:
                ends = int(nodes[place][0]), int(nodes[place][-1]) + 1  # no ring without them
                spans[place] = replace(spans[place], ring=False, low=ends[0], high=ends[1])
            if self.request.extrapolate and place in spans:
                spans[place] = replace(spans[place], low=0, high=axis.size)
            solved.append(np.union1d(nodes[place], np.flatnonzero(~far)))
            twin = np.arange(axis.size)
            if self.axes[place].size != axis.size:
                numbers = self.axes[place].numbers
                twin = nearest(numbers, axis.numbers, self.axes[place].turn)[0]
            answered.append(np.searchsorted(solved[-1], twin).clip(max=solved[-1].size - 1))
            beyond.append(far[twin])
        seen = self.summary.seen.get((self.last,))
        return Ground(
            self.outer,
            self.last,
            self.fresh,
            self.columns,
            solved,
            answered,
            beyond,
            spans,
            seen,
        )

    def _far(self, place: int, nodes: Indices) -> Mask:
        """Return which coordinates of an axis lie outside the data and have no answer."""
        axis = self.fresh[place]
        if self.request.extrapolate:
            return np.zeros(axis.size, bool)
        return outside(axis.numbers, axis.numbers[nodes], self._period(place))

    def _period(self, place: int) -> float | None:
        """Return the length of the circle that an axis is modelled on; None for a line."""
        level = self.plan.levels[place]
        return level.period if isinstance(level, LevelRequest) else level.kernel.period

    # --- settings ------------------------------------------------------------------------------

    def _choose(self, bounds: Bounds | None) -> TileModel:
        """Choose the settings on a part of the grid."""
        self.tell("choosing settings", 0.0)
        inside = [
            np.union1d(known, np.flatnonzero(~self._far(place, known)))
            for place, known in enumerate(self.known)
        ]
        whole = [axis.take(own) for axis, own in zip(self.fresh, inside, strict=True)]
        return choose_model(
            self._sample(),
            self.plan,
            whole,
            self.cut,
            self.summary.mean if self.settings.centre is None else self.settings.centre,
            bounds=bounds,
            single=self.summary.single,
            accept_inexact=self.settings.accept_inexact,
            std=self.wants_std,
        )

    def _sample(self) -> Grid:
        """Read the part of the grid that settings are chosen on."""
        rows = self._sample_rows()
        columns = [self.columns[place][own] for place, own in enumerate(rows)]
        values = self.reader.rows(columns[self.outer], columns)
        axes = tuple(axis.take(own) for axis, own in zip(self.fresh, rows, strict=True))
        return replace(self.blank, values=values, axes=axes)

    def _sample_rows(self) -> list[Indices]:
        """Return the coordinates of that part: as many as memory allows, with missing cells."""
        rows, machine = list(self.known), Machine(held_bytes(), peak_bytes())
        while True:
            shape = [own.size for own in rows]
            needed = footprint(shape, self.source.dtype, gaps=True, machine=machine).memory
            few = all(shape[axis] <= _FEWEST_ROWS for axis in self.cut)
            if needed <= self.limit and (few or math.prod(shape) <= _SAMPLE):
                break
            place = max(self.readable if few else self.cut, key=lambda axis: shape[axis])
            if shape[place] <= _FEWEST_ROWS:
                raise InputError(
                    f"Choosing settings on a part of the grid takes about {needed / 1e6:.0f} MB, "
                    f"and {self.limit / 1e6:.0f} MB are allowed. Allow more memory.",
                    setting="max_memory",
                )
            count = max(_FEWEST_ROWS, int(shape[place] / 1.25))
            runs = 1 if place in self.plan.group else 3
            rows[place] = sample_rows(self.known[place], count, runs=runs)
        own = rows[self.outer]
        if not self.summary.gaps[own].any():
            middle = int(np.argmax(self.summary.gaps[self.known[self.outer]]))
            start = min(max(0, middle - own.size // 2), self.known[self.outer].size - own.size)
            rows[self.outer] = self.known[self.outer][start : start + own.size]
        return rows

    # --- tiles ---------------------------------------------------------------------------------

    def _lay(self, attempt: int) -> Layout:
        """Return the tiles of an attempt."""
        outer, *inner = self.cut
        axes = outer, inner[0] if inner else None
        return lay_along(self.source, self.request, self.ground.spans, axes, self.room, attempt)

    def _fits(self, attempt: int, most: float = math.inf) -> bool:
        """Return whether the tiles of an attempt fit into memory, and do not take too much work."""
        try:
            layout = self._lay(attempt)
        except TilesTooLargeError:
            return False
        return relative_work(layout, self.shape) <= most

    def _fill(self, model: TileModel | None, layout: Layout | None, note: str) -> TiledFill:
        """Fill all tiles."""
        self.writer.restart()
        left: dict[str, int] = {}
        filled, seams, edge = 0, Seams(), None
        parts = self._parts(layout)
        for number, (part, place) in enumerate(parts):
            cells, missing = self._cells(part, left)
            if place is None:
                name = f"left beyond the data along {self.axes[self.outer].name}"
                left[name] = left.get(name, 0) + int(np.count_nonzero(cells))
                cells[...] = False
            values = np.zeros(cells.shape)
            errors = np.where(missing, np.nan, 0.0) if self.request.std else None
            if cells.any() and place is not None:
                assert model is not None
                assert layout is not None
                self._leave_beyond(cells, left)
                panel = Panel(
                    self.ground, self.reader, model, layout, place, cells, std=self.wants_std
                )
                panel.solve()
                seams = panel.compare(seams, edge)
                edge = panel.edge
                values, std = panel.expand()
                if std is not None and self.request.max_std is not None:
                    most = self.request.max_std
                    gone = leave_out(cells, std > most)
                    reason = f"left with a standard error above {most:g}"
                    left[reason] = left.get(reason, 0) + gone
                if std is not None and errors is not None:
                    errors = np.where(cells, std, errors)
            else:
                edge = None
            filled += int(np.count_nonzero(cells))
            slices = [slice(0, size) for size in self.shape]
            slices[self.outer] = part
            self.writer.write(tuple(slices), cells, values, errors)
            self.tell("filling", (number + 1) / len(parts))
        return TiledFill(
            self.summary.cells,
            self.summary.missing,
            filled,
            {reason: count for reason, count in left.items() if count},
            layout if filled else None,
            seams if filled else None,
            model if filled else None,
            note,
            (*self.notes, *_near_notes(layout)),
            (),
            self.reader.bytes_read,
        )

    def _parts(self, layout: Layout | None) -> list[tuple[slice, int | None]]:
        """Return the parts along the outer axis with their places among tiles; None without one."""
        size = self.shape[self.outer]
        if layout is None:
            return [(slice(start, min(size, start + 64)), None) for start in range(0, size, 64)]
        cores = layout.outer.cores
        longest = max(stop - start for start, stop in cores)
        ends = [(0, cores[0][0]), (cores[-1][1], size)]
        outer: list[tuple[slice, int | None]] = [
            (slice(start, min(stop, start + longest)), None)
            for low, stop in ends
            for start in range(low, stop, longest)
        ]
        return [(slice(*core), place) for place, core in enumerate(cores)] + outer

    def _cells(self, part: slice, left: dict[str, int]) -> tuple[Mask, Mask]:
        """Return the cells of a part to fill, and those that are missing; count those left."""
        rows = self.rules.rows(part.start, part.stop)
        missing = np.isnan(self.reader.rows(rows))
        cells, counts = self.rules.choose(missing, rows, part)
        for reason, count in counts.items():
            left[reason] = left.get(reason, 0) + count
        own = [slice(None)] * missing.ndim
        own[self.outer] = slice(part.start - rows[0], part.stop - rows[0])
        return cells, missing[tuple(own)]

    def _leave_beyond(self, cells: Mask, left: dict[str, int]) -> None:
        """Leave cells at coordinates outside the data, in place, and count them."""
        for place, beyond in enumerate(self.ground.beyond):
            if place == self.outer:
                continue
            beside = [-1 if other == place else 1 for other in range(cells.ndim)]
            name = f"left beyond the data along {self.axes[place].name}"
            left[name] = left.get(name, 0) + leave_out(cells, beyond.reshape(beside))


def _near_notes(layout: Layout | None) -> list[str]:
    """Return what is told of tiles that do not see what is far."""
    if layout is None or layout.context.far:
        return []
    return [
        f"memory allows tiles to see {4 * layout.context.near} coordinates around them and no "
        "farther: wider holes are answered from less data than the whole grid has"
    ]
