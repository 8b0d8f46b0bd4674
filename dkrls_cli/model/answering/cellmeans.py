"""Models of data that are means over cells: which dimensions, and which cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from dkrls_cli.cascade.functionals.cells import SourceCells
from dkrls_cli.circle import nearest
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.axes import Attributes, Axis, is_latitude
from dkrls_cli.grid.cf import find_axis, is_called
from dkrls_cli.grid.derived import cell_numbers, cells_on, is_on_sphere, with_bounds
from dkrls_cli.grid.grid import Grid
from dkrls_cli.grid.style import Style

if TYPE_CHECKING:
    from dkrls_cli.model.model import Model

# A method of ``cell_methods``, with the dimensions it is taken over before it.
_METHOD = r"((?:\w+:\s*)+){method}\b"


def told_means(
    axes: Sequence[Axis], attrs: Attributes, method: Literal["mean", "sum"] = "mean"
) -> tuple[str, ...]:
    """Return the dimensions along which ``cell_methods`` tells of means, or of sums, over cells.

    Examples
    --------
    >>> from dkrls_cli.grid.axes import axis_of
    >>> axes = [axis_of("time", [0.0, 1.0]), axis_of("lat", [0.0, 1.0])]
    >>> told_means(axes, {"cell_methods": "area: mean time: maximum"})
    ('lat',)
    """
    words = [
        word
        for names in re.findall(_METHOD.format(method=method), str(attrs.get("cell_methods", "")))
        for word in names.replace(":", " ").split()
    ]
    return tuple(
        axis.name
        for axis in axes
        if axis.labels is None
        and axis.size > 1
        and any(is_called(axis, word) or (word == "area" and is_on_sphere(axis)) for word in words)
    )


def cell_mean_dims(
    given: bool | str | Sequence[str], axes: Sequence[Axis], attrs: Attributes
) -> tuple[str, ...]:
    """Return the dimensions along which data are means over cells; none if they are values.

    Raises
    ------
    SettingError
        If there is no such dimension, or it has no cells.
    """
    if not given:
        return ()
    usable = [axis for axis in axes if axis.labels is None and axis.size > 1]
    if given is True:
        places = tuple(axis.name for axis in usable if is_on_sphere(axis))
        found = told_means(axes, attrs) or places or tuple(axis.name for axis in usable)
        if not found:
            raise SettingError("The data has no dimension with cells to be means over.")
        return found
    assert not isinstance(given, bool)
    names = given.split(",") if isinstance(given, str) else given
    dims = tuple(
        find_axis(name.strip(), axes, purpose=" for means over cells").name for name in names
    )
    known = [axis.name for axis in usable]
    for dim in dims:
        if dim not in known:
            raise SettingError(f"'{dim}' has text labels or one coordinate: it has no cells.")
    return tuple(dict.fromkeys(dims))


def with_cells(grid: Grid, given: bool | str | Sequence[str]) -> Grid:
    """Return a grid that keeps the cells of its means where coordinates are left out of it.

    Cells that are not in the file go half-way to the next coordinate, be it one without data.
    """
    style = grid.style
    for dim in cell_mean_dims(given, grid.axes, grid.attrs):
        axis = grid.axes[grid.dims.index(dim)]
        style = with_bounds(style, axis, cells_on(axis, style))
    return grid if style is grid.style else replace(grid, style=style)


def source_cells(axis: Axis, style: Style, period: float | None) -> SourceCells:
    """Return the cells of the data along an axis: its bounds, or half-way between coordinates."""
    return SourceCells(*cell_numbers(axis, cells_on(axis, style)), is_latitude(axis), period)


def model_cells(model: Model, mean: Sequence[str]) -> dict[int, SourceCells]:
    """Return the cells of the data of a model, by the places of axes that need them.

    These are the axes along which the data are means, and those along which means are asked for,
    in `mean`. Cells of values that overlap are of no use there.
    """
    found = {}
    for place, axis in enumerate(model.axes):
        period = model.cascade.levels[place].kernel.period
        nodes = model.cascade.coordinates[place]
        if axis.name in model.cell_means:
            if nodes.size != axis.size:
                raise SettingError(
                    f"The model has rows beside those of '{axis.name}', and the data are means "
                    "over cells along it. Fit without rows across the poles."
                )
            found[place] = source_cells(axis, model.style, period)
        elif axis.name in mean and axis.size > 1:
            try:
                cells = source_cells(axis, model.style, period)
            except InputError:
                continue
            low = cells.low
            if model.cascade.levels[place].kernel.warp is not None:  # there is nothing below 0
                low = np.maximum(low, axis.numbers / 2)
            known = SourceCells.around(axis.numbers, low, cells.high, cells.latitude, period)
            beside = nodes.size != axis.size
            where = nearest(axis.numbers, nodes, period)[0] if beside else None
            found[place] = replace(known, places=where)
    return found
