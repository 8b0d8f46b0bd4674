"""A stored grid as a fit takes it: its axes, the plan of the fit, and how it is read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Indices
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.source import Source, mask_unusable
from dkrls_cli.grid.axes import Axis, text_axis
from dkrls_cli.grid.grid import Grid, drop_repeats
from dkrls_cli.model.answering.cellmeans import cell_mean_dims, source_cells
from dkrls_cli.model.chunked.panels import Panel, Stored
from dkrls_cli.model.planning.plan import plan_fit
from dkrls_cli.model.planning.requests import FitPlan
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.tiling.scan import equal_steps


@dataclass(frozen=True, eq=False)
class Ground:
    """A stored grid as a fit takes it.

    Attributes
    ----------
    source, settings
        The grid, and the settings of its fit.
    axes, columns
        Axes without coordinates that repeat others, and the places of their coordinates.
    notes
        What was left out.
    plan
        Levels, given or to be chosen.
    averaged
        Dimensions along which the data are means over cells.
    wanted
        Axes that are asked between their coordinates.
    """

    source: Source
    settings: Settings
    axes: tuple[Axis, ...]
    columns: tuple[Indices, ...]
    notes: tuple[str, ...]
    plan: FitPlan
    averaged: tuple[str, ...]
    wanted: tuple[int, ...]

    @property
    def stored(self) -> Stored:
        """How the grid is stored, columns that repeat others left out."""
        chunks = stored_chunks(self.source)
        packing = self.source.style.packing
        item = np.dtype(self.source.dtype if packing is None else packing.dtype).itemsize
        return Stored(tuple(axis.size for axis in self.axes), chunks, item)

    def read(self, indices: Sequence[Indices]) -> NDArray[Any]:
        """Return the values at some coordinates, read run by run."""
        read = self.source.read
        assert read is not None
        result = np.empty([own.size for own in indices], self.source.dtype)
        runs = [list(equal_steps(own)) for own in indices]
        for part in product(*runs):
            places = [
                columns[own[one]]
                for columns, own, one in zip(self.columns, indices, part, strict=True)
            ]
            result[part] = mask_unusable(read(places))[0]
        return result

    def grid(self, panel: Panel, *, labelled: bool) -> Grid:
        """Read a panel; with `labelled`, nothing lies between slices that are not neighbours."""
        own = [axis.take(i) for axis, i in zip(self.axes, panel.indices, strict=True)]
        for place in range(len(own)):
            if labelled and place not in (*panel.whole, *panel.near) and own[place].size > 1:
                own[place] = text_axis(own[place].name, [str(i) for i in panel.indices[place]])
        source = self.source
        values = self.read(panel.indices)
        return Grid(values, tuple(own), source.name, source.attrs, source.style)


def stored_chunks(source: Source) -> tuple[int, ...]:
    """Return the sizes of the chunks of a source; of one without, rows along the last axis."""
    chunks = getattr(source, "chunks", None)
    if chunks is None:
        return (*(1 for _ in source.shape[1:]), source.shape[-1])
    return tuple(max(1, min(c, size)) for c, size in zip(chunks, source.shape, strict=True))


def prepare(source: Source, settings: Settings, wanted: Collection[int] | None = None) -> Ground:
    """Resolve the settings of a fit for a stored grid, and refuse what needs all of it in memory.

    Parameters
    ----------
    source
        The grid.
    settings
        Settings of the fit.
    wanted
        Places of the axes that are asked between their coordinates; None: all.

    Raises
    ------
    InputError
        If the grid can only be read as a whole, or its observations have errors.
    SettingError
        If a setting is not possible, or not for a grid beyond memory.
    """
    refuse_whole_grid(source, settings)
    single = [drop_repeats(Grid(np.zeros(axis.size), (axis,))) for axis in source.axes]
    axes = tuple(grid.axes[0] for grid, _ in single)
    averaged = cell_mean_dims(settings.cell_means, axes, source.attrs)
    for dim in averaged:
        source_cells(next(axis for axis in axes if axis.name == dim), source.style, None)
    plan = plan_fit(axes, settings, complete=True)
    asked = range(len(axes)) if wanted is None else wanted
    places = {place for place in asked if axes[place].size > 1}
    if plan.poles is not None:
        if plan.poles.latitude in places:
            places.add(plan.poles.longitude)
        else:
            plan = replace(plan, poles=None)
    return Ground(
        source,
        settings,
        axes,
        tuple(axis.distinct for axis in source.axes),
        tuple(note for _, notes in single for note in notes),
        plan,
        averaged,
        tuple(sorted(places)),
    )


def refuse_whole_grid(source: Source, settings: Settings) -> None:
    """Raise an error for what cannot be done part by part."""
    if source.read is None:
        raise InputError(
            f"'{source.name}' can only be read as a whole, not part by part. Write it to NetCDF or "
            "Zarr, or allow more memory.",
            setting="max_memory",
        )
    if source.errors is not None:
        raise InputError(
            "Errors of the observations need the whole grid in memory. Leave them out, or take "
            "all of it into memory.",
            setting="max_memory",
        )
    for is_set, what, setting in (
        (settings.noise == "joint", "One joint ridge", "noise"),
        (settings.robust, "A robust fit", "robust"),
    ):
        if is_set:
            raise SettingError(
                f"{what} needs the whole grid in memory. Leave it out, or load all of it.",
                setting=setting,
            )
