"""Grids with missing cells, completed for a fit with a ridge per level.

Between coordinates a ridge per level answers better than one joint ridge, as on complete grids: its
settings are chosen by leaving slices out, those of a joint ridge by hiding cells, most of which are
told by their neighbours in the same slice. So the missing cells are solved for under one joint
ridge, and the complete grid is fitted; the model remembers which cells were not observed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dkrls_cli.arrays import Mask
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.training.result import Tell


@dataclass(frozen=True, eq=False)
class CompletedGrid:
    """A grid whose missing cells have been solved for.

    Attributes
    ----------
    grid
        The grid, with values in every cell.
    filled
        Cells that were missing.
    lost
        Notes on coordinates that are left out, as they have no observed cell.
    facts
        What was missing, and how well it is solved for.
    notes
        Warnings of the solve.
    """

    grid: Grid
    filled: Mask
    lost: list[str]
    facts: dict[str, Any]
    notes: list[str]


def is_fitted_complete(grid: Grid, settings: Settings) -> bool:
    """Return whether missing cells are solved for first, and a fit has a ridge per level.

    If one ridge is given it is that of the whole grid, and so it is if observations have errors.
    """
    if grid.is_complete or grid.errors is not None or settings.noise == "joint":
        return False
    is_given = not isinstance(settings.ridge, Mapping) and settings.ridge != "auto"
    return settings.noise == "level" or not is_given


def complete_grid(grid: Grid, settings: Settings, tell: Tell = lambda share: None) -> CompletedGrid:
    """Return a grid with all cells solved for, as the model of a fit under one ridge holds it.

    Coordinates without any observed cell are left out, but for those of a hole on the sphere. What
    is asked for the levels is asked for the fit of the complete grid: the settings with which
    missing cells are solved for are chosen by hiding observed ones. `tell` is called with the share
    that is done, 0 to 1.

    Raises
    ------
    InputError, ConvergenceError
        If the missing cells could not be solved for.

    Examples
    --------
    >>> import numpy as np
    >>> from dkrls_cli.grid.grid import as_grid
    >>> values = np.outer(np.sin(np.arange(20) / 4), np.cos(np.arange(30) / 4))
    >>> values[7, 9] = np.nan
    >>> found = complete_grid(as_grid(values), Settings())
    >>> bool(found.grid.is_complete), int(found.filled.sum())
    (True, 1)
    """
    from dkrls_cli.model.fit import fit_grid

    own = Settings(
        settings.level_names,
        period=settings.period,
        mean=settings.mean,
        group=settings.group,
        accept_inexact=settings.accept_inexact,
        cell_means=settings.cell_means,
    )
    model = fit_grid(grid, own, outages=True, tell=tell)
    assert model.unobserved is not None
    values = model.cut(model.cascade.predict()).astype(grid.values.dtype, copy=False)
    complete = Grid(values, model.axes, grid.name, grid.attrs, grid.style).freeze()
    lost = model.origin.get("dropped_coordinates", [])
    facts, notes = model.origin["missing"], model.origin["notes"]
    return CompletedGrid(complete, model.unobserved, list(lost), facts, notes)
