"""Grids for a fit that bad cells do not pull.

Cells that the others speak against are not shown to the fit. In a complete grid they are filled as
missing cells are, so that the grid stays complete and settings are chosen as without them; the
model remembers that these cells were not observed. In other cases they are missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dkrls_cli.arrays import Mask
from dkrls_cli.errors import InputError
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.quality.check import check_grid
from dkrls_cli.model.quality.checked import Checked
from dkrls_cli.model.settings import Settings

ROBUST = "robust"
"""Key of the origin of a model that was fitted without bad cells: how many, and of which kinds."""

# Share of the observed cells that a fit may do without: of more, it is not clear which are good.
_MOST = 0.25


@dataclass(frozen=True, eq=False)
class Cleaned:
    """A grid without its bad cells.

    Attributes
    ----------
    grid
        The grid to fit: bad cells are filled from the others, or are missing.
    replaced
        Cells that have another value now, if the grid is complete; else None.
    bad
        Cells that were found to be bad.
    facts
        How many there are, for the origin of a model.
    """

    grid: Grid
    replaced: Mask | None
    bad: Mask
    facts: dict[str, Any]


def clean_grid(grid: Grid, settings: Settings) -> Cleaned:
    """Return the grid that a robust fit sees.

    Parameters
    ----------
    grid
        Values on named axes, without repeated longitudes.
    settings
        Settings of the fit.

    Raises
    ------
    InputError
        If so many cells are bad that a fit could not do without them.

    Examples
    --------
    >>> import numpy as np
    >>> from dkrls_cli.grid.grid import as_grid
    >>> values = np.outer(np.sin(np.arange(20) / 4), np.cos(np.arange(30) / 4))
    >>> values += 0.01 * np.random.default_rng(0).normal(size=values.shape)
    >>> values[7, 9] += 1
    >>> clean_grid(as_grid(values), Settings()).facts["kinds"]
    {'spike': 1}
    """
    own = Settings(settings.level_names, period=settings.period)  # kernels of a fit are no matter
    checked = check_grid(grid, own)
    _refuse_many(checked)
    bad = checked.bad
    facts = {"cells": int(bad.sum()), "share": checked.share, "kinds": checked.counts}
    stays = grid.is_complete and settings.noise != "joint" and grid.errors is None
    if not bad.any():
        return Cleaned(grid, None, bad, facts)
    if stays:
        filled = _fill_without(checked.masked, settings)
        if filled.is_complete:
            return Cleaned(filled, bad, bad, facts)
    return Cleaned(checked.masked, None, bad, facts)


def _fill_without(masked: Grid, settings: Settings) -> Grid:
    """Return the grid with its bad cells filled; slices in which all cells are bad stay missing.

    What a check expects of a cell is told by its fibres, which is too little where many neighbours
    are bad as well.
    """
    from dkrls_cli.model.fill import fill_grid

    return fill_grid(masked, Settings(settings.levels, period=settings.period), mask="none").grid


def _refuse_many(checked: Checked) -> None:
    """Raise InputError if a large part of the cells is flagged."""
    if checked.share > _MOST:
        kinds = ", ".join(f"{count} {kind}" for kind, count in checked.counts.items())
        hints = "".join(f" They look like {words}." for words in list(checked.hints)[:1])
        raise InputError(
            f"{100 * checked.share:.3g} % of the cells of '{checked.grid.name}' do not fit the "
            f"others ({kinds}). A robust fit does without {100 * _MOST:g} % at most.{hints} Check "
            "and correct the data first."
        )
