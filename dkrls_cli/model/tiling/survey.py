"""Findings of one pass over a grid before its tiles are solved: cells to fill, and bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dkrls_cli.arrays import Indices
from dkrls_cli.files.source import Source, unusable_notes
from dkrls_cli.grid.cf import hierarchy_of
from dkrls_cli.grid.grid import Grid
from dkrls_cli.grid.quantities import coordinate_marks
from dkrls_cli.model.answering.bounds import Bounds, bounds_asked, settle_bounds, unclear_limits
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.tiling.planning import FillRequest
from dkrls_cli.model.tiling.rules import CellRules, is_first, land_axes, make_rules
from dkrls_cli.model.tiling.scan import PartReader, Summary, scan


@dataclass(frozen=True, eq=False)
class Task:
    """A grid to fill part by part.

    Attributes
    ----------
    source, settings, request
        The grid, the settings of its model, and which cells to fill.
    cut
        Places of the axes that tiles cut, the outer one first.
    reader
        Reads parts of the grid along the outer axis.
    """

    source: Source
    settings: Settings
    request: FillRequest
    cut: tuple[int, ...]
    reader: PartReader

    @property
    def outer(self) -> int:
        """Place of the axis that parts are ranges of."""
        return self.cut[0]

    @property
    def wants_std(self) -> bool:
        """Whether standard errors are needed, to write them or to leave cells by them."""
        return self.request.std or self.request.max_std is not None

    @cached_property
    def hierarchy(self) -> Sequence[str]:
        """Names of the dimensions from level 0 to the last."""
        return hierarchy_of(self.source.axes, self.settings.level_names)

    @property
    def last(self) -> int:
        """Place of the last level."""
        return [axis.name for axis in self.source.axes].index(self.hierarchy[-1])

    @cached_property
    def blank(self) -> Grid:
        """The grid with one number in place of all its values."""
        source = self.source
        values = np.broadcast_to(np.float32(0), source.shape)
        return Grid(values, source.axes, source.name, source.attrs, source.style)


@dataclass(frozen=True, eq=False)
class Survey:
    """Findings of one pass over a grid that is to be filled.

    Attributes
    ----------
    summary
        Its cells in numbers.
    rules
        Which missing cells are filled.
    land_note
        What was decided about land.
    bounds
        The least and the largest value of an answer, or None.
    notes, warnings
        What else was decided, and what looks wrong with the data.
    """

    summary: Summary
    rules: CellRules
    land_note: str
    bounds: Bounds | None
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def survey_grid(task: Task, tell: Callable[[float], None]) -> Survey:
    """Read a grid once, and decide what of it is filled.

    Raises
    ------
    InputError, SettingError
        If it cannot be filled part by part, or not as it is asked for.
    """
    asked, told_by = bounds_asked(task.settings.bounds, task.blank)
    summary = scan(task.reader, _seen_along(task), asked, tell)
    ends = np.array([summary.least, summary.largest])
    replace(task.blank, values=ends).refuse_unsuitable()
    request = task.request
    rules, land_note = make_rules(
        task.blank,
        task.hierarchy,
        task.outer,
        summary,
        request.mask,
        request.max_gap,
        request.within,
        _first_slice(task) if is_first(request.mask) else None,
    )
    bounds, told = None, unclear_limits(task.settings.bounds, task.blank)
    if asked is not None:
        rounded, known = asked.round_out(ends), summary.cells - summary.missing
        bounds, told = settle_bounds(rounded, told_by, summary.outside.words(rounded, known))
    notes = (*unusable_notes(summary.unusable), *([told] if told else []))
    marks = filter(None, [summary.marks.note(task.source.name)])
    warnings = (*marks, *coordinate_marks(task.source.axes))
    return Survey(summary, rules, land_note, bounds, notes, warnings)


def _seen_along(task: Task) -> list[tuple[int, ...]]:
    """Return the sets of axes along which it has to be known whether any cell is observed."""
    result = []
    mask, within = task.request.mask, task.request.within
    if (mask is None and within is None) or (isinstance(mask, str) and mask == "always"):
        along = land_axes(task.source.axes, task.hierarchy)
        result += [along] if along is not None else []
    if task.last == task.outer:
        result.append((task.last,))
    return list(dict.fromkeys(result))


def _first_slice(task: Task) -> Grid:
    """Read the first slice of the last level."""
    shape = task.source.shape
    others: list[Indices | None] = [None] * len(shape)
    others[task.last] = np.arange(1)
    rows = np.arange(1 if task.last == task.outer else shape[task.outer])
    return replace(task.blank, values=task.reader.rows(rows, others))
