"""Missing cells of a grid beyond memory, filled tile by tile.

The grid is read once to know where land is, what is missing, and its mean. Settings are chosen on
a part of it. Then every tile is solved with its context (:mod:`dkrls_cli.model.tiling.layout`) and
its core is written. Tiles are compared where they meet: if they differ by more than a tenth of the
error bar, they are solved again with more context, and if that takes too much memory, the grid is
refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from dkrls_cli.arrays import Array, Mask, Slices
from dkrls_cli.errors import ConvergenceError, InputError, SettingError
from dkrls_cli.files.source import Source
from dkrls_cli.model.filling.cells import leave_out
from dkrls_cli.model.planning.plan import plan_fit
from dkrls_cli.model.planning.requests import FitPlan
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.tiling.ground import Frame, Ground
from dkrls_cli.model.tiling.layout import (
    CONTEXTS,
    MOST,
    USUAL,
    WORTH,
    Layout,
    TilesTooLargeError,
    worth,
)
from dkrls_cli.model.tiling.panel import Edge, Panel
from dkrls_cli.model.tiling.planning import (
    FillRequest,
    besides,
    lay_along,
    plan_tiles,
    relative_work,
)
from dkrls_cli.model.tiling.sampling import Sample
from dkrls_cli.model.tiling.scan import PartReader
from dkrls_cli.model.tiling.seams import Seams
from dkrls_cli.model.tiling.solving import TileModel, choose_model
from dkrls_cli.model.tiling.survey import Survey, Task, survey_grid

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
    layout = plan_tiles(source, settings, request, limit).layout
    reader = PartReader(source, layout.outer.axis)
    task = Task(source, settings, request, layout.axes, reader)
    found = survey_grid(task, lambda share: tell("reading", share))
    if not found.summary.missing:
        return _Run(task, found, writer).over_all(None, tell)
    empty = found.summary.empty
    frame = Frame.of(source.axes, empty, extrapolate=request.extrapolate)
    plan, note = _plan(task, frame)
    found = replace(found, notes=(*found.notes, *note))
    tell("choosing settings", 0.0)
    model = _choose(task, found, frame, plan, limit)
    seen = found.summary.seen.get((task.last,))
    sphere = model.choice.setting.grouping.sphere
    ground = frame.ground(plan, task.outer, task.last, seen, sphere=sphere)
    tiling = _Tiling(task, ground, limit - besides(source, settings))
    return _fill_until_tiles_fit(task, found, writer, tiling, model, tell)


def _plan(task: Task, frame: Frame) -> tuple[FitPlan, list[str]]:
    """Return the plan of a fit, without a group of axes that are cut, and a note on that."""
    axes = frame.known_axes
    plan = plan_fit(axes, task.settings, complete=False)
    cut = [axes[place].name for place in plan.group if place in task.cut]
    if not cut:
        return plan, []
    if plan.group_given:
        raise SettingError(
            f"A group with '{cut[0]}' needs that dimension whole in memory, and tiles cut it. "
            "Leave the group out, or allow more memory.",
            setting="group max_memory",
        )
    note = f"tiles cut {' and '.join(cut)}: dimensions with one distance are not tried"
    return plan_fit(axes, replace(task.settings, group="none"), complete=False), [note]


def _choose(task: Task, found: Survey, frame: Frame, plan: FitPlan, limit: float) -> TileModel:
    """Choose the settings of all tiles on a part of the grid."""
    settings, summary = task.settings, found.summary
    rows = Sample(frame, plan, task.cut, summary.gaps, task.source.dtype, limit).rows()
    columns = [frame.columns[place][own] for place, own in enumerate(rows)]
    values = task.reader.rows(columns[task.outer], columns)
    axes = tuple(axis.take(own) for axis, own in zip(frame.axes, rows, strict=True))
    return choose_model(
        replace(task.blank, values=values, axes=axes),
        plan,
        frame.inner_axes(plan),
        task.cut,
        summary.mean if settings.centre is None else settings.centre,
        bounds=found.bounds,
        single=summary.single,
        accept_inexact=settings.accept_inexact,
        std=task.wants_std,
    )


@dataclass(frozen=True, eq=False)
class _Tiling:
    """Tiles of a grid, by how much context they see.

    Attributes
    ----------
    task, ground
        The grid, and where it is solved and answered.
    room
        Bytes that tiles may take.
    """

    task: Task
    ground: Ground
    room: float

    def lay(self, context: int) -> Layout:
        """Return the tiles with a context."""
        outer, *inner = self.task.cut
        axes = outer, inner[0] if inner else None
        task = self.task
        return lay_along(task.source, task.request, self.ground.spans, axes, self.room, context)

    def fits(self, context: int, most: float) -> bool:
        """Return whether tiles with a context fit into memory, and do not take too much work."""
        try:
            layout = self.lay(context)
        except TilesTooLargeError:
            return False
        return relative_work(layout, self.task.source.shape) <= most

    def usual(self) -> int:
        """Return the context to begin with: the usual one, or the most that fits."""
        fitting = (one for one in range(USUAL, 0, -1) if self.fits(one, worth(one, CONTEXTS)))
        return next(fitting, 0)


def _fill_until_tiles_fit(
    task: Task, found: Survey, writer: Writer, tiling: _Tiling, model: TileModel, tell: Tell
) -> TiledFill:
    """Fill a grid in tiles with more and more context, until they agree where they meet."""
    context = tiling.usual()
    while True:
        layout = tiling.lay(context)
        tiles = _Tiles(tiling.ground, model, layout)
        done = _Run(task, found, writer).over_all(tiles, tell)
        seams = done.seams
        if seams is None or layout.count == 1 or (seams.fit and seams.count >= _FEW):
            return done
        context += 1
        most = WORTH if seams.fit else MOST
        if context == len(CONTEXTS) or not tiling.fits(context, most):
            return _accept(done, seams, task.settings)
        tell("filling again", 0.0)


def _accept(done: TiledFill, seams: Seams, settings: Settings) -> TiledFill:
    """Return a grid whose tiles cannot see more, if they fit together or that is not asked for."""
    if seams.fit:
        note = f"tiles could be compared in {seams.count} cells only, where they meet"
        return replace(done, notes=[*done.notes, note])
    words = (
        f"tiles differ by {seams.worst:.2g} of the error bar where they meet, and by "
        f"{seams.largest:.2g} in a cell"
    )
    if not settings.accept_inexact:
        raise ConvergenceError(
            f"The {words}: more than a tenth of it. Holes may be larger than tiles. Allow more "
            "memory, or accept inexact answers.",
            setting="max_memory accept_inexact",
        )
    return replace(done, warnings=[*done.warnings, words])


@dataclass(frozen=True, eq=False)
class _Tiles:
    """Tiles of one layout, and the model that fills them."""

    ground: Ground
    model: TileModel
    layout: Layout


class _Run:
    """One run over all parts of a grid, that fills and writes them and counts what is left."""

    def __init__(self, task: Task, found: Survey, writer: Writer) -> None:
        self.task, self.found, self.writer = task, found, writer
        self.left: Counter[str] = Counter()
        self.filled, self.seams = 0, Seams()
        self.edge: Edge | None = None

    def over_all(self, tiles: _Tiles | None, tell: Tell) -> TiledFill:
        """Fill and write all parts; without tiles nothing is missing."""
        self.writer.restart()
        size, layout = (
            self.task.source.shape[self.task.outer],
            None if tiles is None else tiles.layout,
        )
        parts = _parts(size, layout)
        for number, (part, place) in enumerate(parts):
            self._fill(part, tiles, place)
            tell("filling", (number + 1) / len(parts))
        summary, found = self.found.summary, self.found
        return TiledFill(
            summary.cells,
            summary.missing,
            self.filled,
            {reason: count for reason, count in self.left.items() if count},
            layout if self.filled else None,
            self.seams if self.filled else None,
            tiles.model if self.filled and tiles else None,
            found.land_note,
            (*found.notes, *_near_notes(layout)),
            found.warnings,
            self.task.reader.bytes_read,
        )

    def _fill(self, part: slice, tiles: _Tiles | None, place: int | None) -> None:
        """Fill and write one part; `place` is that of its tiles, None outside of them."""
        cells, missing = self._cells(part)
        if tiles is not None:
            self._leave_beyond(cells, tiles.ground, is_outside=place is None)
        values, std = np.zeros(cells.shape), None
        if tiles is None or place is None or not cells.any():
            self.edge = None
        else:
            values, std = self._answer(cells, tiles, place)
        errors = np.where(missing, np.nan, 0.0) if self.task.request.std else None
        if errors is not None and std is not None:
            errors = np.where(cells, std, errors)
        self.filled += int(np.count_nonzero(cells))
        where = [slice(0, size) for size in self.task.source.shape]
        where[self.task.outer] = part
        self.writer.write(tuple(where), cells, values, errors)

    def _cells(self, part: slice) -> tuple[Mask, Mask]:
        """Return the cells of a part to fill, and those that are missing; count those left."""
        rules, outer = self.found.rules, self.task.outer
        rows = rules.rows(part.start, part.stop)
        missing = np.isnan(self.task.reader.rows(rows))
        cells, counts = rules.choose(missing, rows, part)
        self.left.update(counts)
        own = [slice(None)] * missing.ndim
        own[outer] = slice(part.start - rows[0], part.stop - rows[0])
        return cells, missing[tuple(own)]

    def _leave_beyond(self, cells: Mask, ground: Ground, *, is_outside: bool) -> None:
        """Leave cells at coordinates outside the data, in place, and count them."""
        beyond = {place: far for place, far in enumerate(ground.beyond) if place != ground.outer}
        if is_outside:  # tiles end where the data does
            beyond = {ground.outer: np.ones(1, bool)}
        for place, far in beyond.items():
            beside = [-1 if other == place else 1 for other in range(cells.ndim)]
            gone = leave_out(cells, far.reshape(beside))
            self.left[f"left beyond the data along {self.task.source.axes[place].name}"] += gone

    def _answer(self, cells: Mask, tiles: _Tiles, place: int) -> tuple[Array, Array | None]:
        """Return answers and standard errors; cells whose error is too large are left, in place."""
        task, most = self.task, self.task.request.max_std
        panel = Panel(
            tiles.ground, task.reader, tiles.model, tiles.layout, place, cells, std=task.wants_std
        )
        panel.solve()
        self.seams = panel.compare(self.seams, self.edge)
        self.edge = panel.edge
        values, std = panel.expand()
        if std is not None and most is not None:
            reason = f"left with a standard error above {most:g}"
            self.left[reason] += leave_out(cells, std > most)
        return values, std


def _parts(size: int, layout: Layout | None) -> list[tuple[slice, int | None]]:
    """Return the parts along the outer axis with their places among tiles; None without one."""
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


def _near_notes(layout: Layout | None) -> list[str]:
    """Return what is told of tiles that do not see what is far."""
    if layout is None or layout.context.far:
        return []
    return [
        f"memory allows tiles to see {4 * layout.context.near} coordinates around them and no "
        "farther: wider holes are answered from less data than the whole grid has"
    ]
