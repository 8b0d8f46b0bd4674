"""Grids made ready for a fit: what cannot be fitted is refused, left out or replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.circle import spacing
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.cf import period_beside
from dkrls_cli.grid.grid import Grid, drop_repeats
from dkrls_cli.grid.quantities import coordinate_marks, mark_note
from dkrls_cli.model.answering.bounds import Bounds, choose_bounds
from dkrls_cli.model.answering.cellmeans import cell_mean_dims, source_cells, with_cells
from dkrls_cli.model.answering.coverage import Coverage
from dkrls_cli.model.answering.masks import lasting_mask
from dkrls_cli.model.planning.requests import FitPlan, LevelRequest
from dkrls_cli.model.quality.robust import Cleaned, clean_grid
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.training.completed import (
    CompletedGrid,
    complete_grid,
    is_fitted_complete,
)
from dkrls_cli.model.training.lost import drop_lost_slices
from dkrls_cli.model.training.result import Tell

# Times that neighbours across the seam of a circle differ more than any others, by step, where the
# data does not go round: rings of 6 to 72 random waves reach 2.3, a line from end to end of eight
# coordinates 7.
_JUMP = 3.0
# Cells that are looked at for it.
_LOOKED_AT = 2**20


@dataclass(frozen=True, eq=False)
class PreparedGrid:
    """A grid ready for a fit, and what was done to it.

    Attributes
    ----------
    given
        The grid as it was given.
    with_lost
        Without repeated coordinates and bad cells, with coordinates that have no observed cell.
    grid
        The grid to fit: without these coordinates as well.
    repeats, lost
        Notes on coordinates that are left out: as they are repeated, or have no observed cell.
    cleaned
        What a robust fit found; None in others.
    completed
        The grid with its missing cells solved for, if these are fitted with a ridge per level.
    bounds, bounds_note
        Bounds of the answers, and how they were told.
    cell_means
        Dimensions along which the data are means over cells.
    """

    given: Grid
    with_lost: Grid
    grid: Grid
    repeats: list[str]
    lost: list[str]
    cleaned: Cleaned | None
    completed: CompletedGrid | None
    bounds: Bounds | None
    bounds_note: str
    cell_means: tuple[str, ...]

    @property
    def filled(self) -> Mask | None:
        """Cells of the grid with values that were not observed, or None."""
        if self.completed is not None:
            return self.completed.filled
        return None if self.cleaned is None else self.cleaned.replaced

    @cached_property
    def missing(self) -> float:
        """Share of the cells that are missing, lost coordinates included."""
        values = self.with_lost.values
        return 0.0 if self.with_lost.is_complete else float(np.isnan(values).mean())

    def cover(self, hierarchy: Sequence[str]) -> tuple[Coverage, str]:
        """Return the given cells that never had data, and a note on how these were told."""
        given = self.given
        if given.is_complete or not given.observed.any():
            return Coverage(given.axes, np.zeros((1,) * len(given.axes), bool)), ""
        lasting = lasting_mask(given, hierarchy)
        return Coverage(given.axes, lasting.cells), lasting.note


def prepare_grid(
    given: Grid, settings: Settings, *, gaps: bool = False, tell: Tell = lambda share: None
) -> PreparedGrid:
    """Make a grid ready for a fit.

    With `gaps` answers are needed in missing cells only: they are not solved for before the fit.

    Raises
    ------
    InputError, SettingError
        If it cannot be fitted with these settings.
    """
    if settings.missing == "error":
        given.refuse_missing()
    given.refuse_unsuitable()
    grid, repeats = drop_repeats(given)
    cleaned = clean_grid(grid, settings) if settings.robust else None
    grid = grid if cleaned is None else cleaned.grid
    bounds, bounds_note = choose_bounds(settings.bounds, grid if settings.robust else given)
    lost: list[str] = []
    with_lost = grid if grid.is_complete else with_cells(grid, settings.cell_means)
    if not grid.is_complete:
        grid, lost = drop_lost_slices(with_lost)
    if not np.may_share_memory(grid.values, given.values):  # a copy that nobody else has
        grid.freeze()
    averaged = cell_mean_dims(settings.cell_means, grid.axes, grid.attrs)
    for dim in averaged:
        source_cells(grid.axes[grid.dims.index(dim)], grid.style, None)  # refused before the fit
    completed = None
    if not gaps and is_fitted_complete(grid, settings):
        completed = complete_grid(with_lost, settings, tell)
        grid, lost = completed.grid, completed.lost
    return PreparedGrid(
        given, with_lost, grid, repeats, lost, cleaned, completed, bounds, bounds_note, averaged
    )


def suspicious_marks(grid: Grid, settings: Settings) -> list[str]:
    """Return notes on values and coordinates that may stand for missing ones, or lose digits."""
    notes = [mark_note(grid.name, grid.values)]
    notes += coordinate_marks(grid.axes)
    notes += [grid.single_note] if settings.dtype == "float32" else []
    return [note for note in notes if note]


def jump_notes(grid: Grid, plan: FitPlan) -> list[str]:
    """Return notes on dimensions that are taken for circles, and whose data jumps at the seam.

    Such as that of a region whose longitudes happen to go once round: between its ends the circle
    answers with what lies between both, and the steps beside them are bent.
    """
    notes = []
    for place, (axis, level) in enumerate(zip(grid.axes, plan.levels, strict=True)):
        period = level.period if isinstance(level, LevelRequest) else None
        if period is None or period != period_beside(axis, grid.axes):
            continue
        times = _jump_at_seam(grid.values, axis, place, period)
        if times > _JUMP:
            order = np.argsort(axis.numbers)
            last, first = axis.take(order[[-1, 0]]).texts
            notes.append(
                f"'{grid.name}' jumps along '{axis.name}' from {last} to {first}, {times:.2g} "
                f"times as far as between any other neighbours, and '{axis.name}' is taken for a "
                "circle: if it is none, set its period to none"
            )
    return notes


def _jump_at_seam(values: Array, axis: Axis, place: int, period: float) -> float:
    """Return how many times more neighbours differ across the seam than any others, by step."""
    others = values.ndim - 1
    thin = int(np.ceil(max(1.0, values.size / _LOOKED_AT) ** (1 / others))) if others else 1
    looked = values[tuple(slice(None, None, 1 if i == place else thin) for i in range(others + 1))]
    order = np.argsort(axis.numbers)
    along = np.moveaxis(looked, place, 0)[order].reshape(axis.size, -1).astype(np.float64)
    steps = np.diff(axis.numbers[order], append=axis.numbers.min() + period)
    squares = (np.roll(along, -1, axis=0) - along) ** 2
    known = ~np.isnan(squares)
    counts = known.sum(axis=1)
    means = np.where(known, squares, 0.0).sum(axis=1) / np.maximum(counts, 1)
    far = np.sqrt(means) / np.maximum(1.0, steps / spacing(axis.numbers))
    largest = far[:-1].max()
    return float(far[-1] / largest) if largest > 0 and counts.all() else 0.0
