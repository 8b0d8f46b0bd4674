"""Pictures of filled grids: before, after and the standard error, at the fullest slice.

A grid in memory is shown from what :func:`dkrls_cli.model.fill.fill_grid` returned, one that was
filled in tiles from its two files, of which one slice at a time is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.files.source import Source
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.fill import Filled
from dkrls_cli.plots.labels import title_text, units_text
from dkrls_cli.plots.pictures import LinePanel, Picture, interval, make_field
from dkrls_cli.plots.scales import error_scale, scale_of
from dkrls_cli.plots.slices import Fixed, fix_dimensions, orient, read_part

# Cells of two files that are read and compared at a time: some tens of MB.
_BLOCK_CELLS = 2**21

# Coordinates of an axis that are read of a file at most, evenly spaced: more than dots of a page.
_MOST_READ = 3000


@dataclass(frozen=True, eq=False)
class FilledSlice:
    """A part of a grid on one or two dimensions, before and after its gaps were filled.

    Attributes
    ----------
    before
        The data, with an axis of one coordinate for every other dimension.
    after
        Its values after filling, in the same shape.
    errors
        Standard errors in the same shape, or None if they are not known.
    fixed
        Coordinates of the other dimensions that were chosen.
    """

    before: Grid
    after: Array
    errors: Array | None
    fixed: list[Fixed]


def picture_filled(found: FilledSlice) -> Picture | None:
    """Return a picture of what was filled, or None if no cell has a value."""
    if not np.isfinite(found.after).any():
        return None
    before = orient(found.before)
    grid, name, attrs = before.grid, found.before.name, found.before.attrs
    title, units = title_text(name, attrs, before.fixed), units_text(attrs)
    after = orient(replace(found.before, values=found.after)).grid.values
    errors = None
    if found.errors is not None:
        errors = orient(replace(found.before, values=found.errors)).grid.values
    if len(grid.axes) == 1:
        return Picture(title, units, line=_filled_line(grid, after, errors))
    scale = scale_of([grid.values, after], name, attrs)
    fields = [
        make_field(grid.axes, grid.values, scale, "before"),
        make_field(grid.axes, after, scale, "after"),
    ]
    if errors is not None:
        fields.append(make_field(grid.axes, errors, error_scale([errors]), "standard error"))
    return Picture(title, units, tuple(fields))


def _filled_line(before: Grid, after: Array, errors: Array | None) -> LinePanel:
    """Return filled values along one dimension, with their interval and the data."""
    axis, known = before.axes[0], before.observed
    low, high = (None, None) if errors is None else interval(after, errors)
    points = (axis.numbers[known], before.values[known]) if known.any() else None
    return LinePanel(axis, after, low, high, points, "filled")


def slice_filled(filled: Filled) -> FilledSlice:
    """Return the slice of a grid in which most cells were filled.

    Standard errors that are not known are computed for that slice.
    """
    grid, cells = filled.grid, filled.cells
    hidden = [place for place, axis in enumerate(grid.axes) if axis.name in _hidden(grid.axes)]
    counts = _count_along(cells, hidden) if cells.any() else _count_along(grid.observed, hidden)
    chosen = np.unravel_index(int(np.argmax(counts)), counts.shape)
    indices = _indices(grid.axes, dict(zip(hidden, map(int, chosen), strict=True)))
    part = grid.take(indices)
    here = np.ix_(*indices)
    before = replace(part, values=np.where(cells[here], np.nan, part.values))
    errors = None if filled.std is None else filled.std[here]
    if errors is None and filled.model is not None:
        errors = _errors_at(filled, part, cells[here])
    fixed = _describe(part.axes, hidden, int(counts.max()) if cells.any() else None)
    return FilledSlice(before, part.values, errors, fixed)


def _hidden(axes: Sequence[Axis]) -> set[str]:
    """Return the dimensions of which a picture shows one coordinate."""
    return set(fix_dimensions(axes))


def _count_along(cells: Mask, hidden: Sequence[int]) -> Array:
    """Return the number of cells in every slice, one axis for each dimension that is not shown."""
    shown = tuple(place for place in range(cells.ndim) if place not in hidden)
    return np.asarray(np.count_nonzero(cells, axis=shown))


def _indices(
    axes: Sequence[Axis], chosen: dict[int, int], most: int | None = None
) -> list[Indices]:
    """Return the indices of a slice for every axis, at most so many, evenly spaced."""
    every = [np.arange(0, axis.size, -(-axis.size // (most or axis.size))) for axis in axes]
    return [
        np.array([chosen[place]]) if place in chosen else indices
        for place, indices in enumerate(every)
    ]


def _errors_at(filled: Filled, part: Grid, cells: Mask) -> Array:
    """Return the standard errors of a slice: of filled cells, 0 of data, NaN of missing cells."""
    assert filled.model is not None
    asked = {axis.name: axis.plain if axis.labels is None else axis.texts for axis in part.axes}
    errors = filled.model.std_on(filled.model.axes_at(asked))
    return np.where(cells, errors, np.where(part.observed, 0.0, np.nan))


def _describe(axes: Sequence[Axis], hidden: Sequence[int], count: int | None) -> list[Fixed]:
    """Return what was chosen: the coordinates of the slice, and why."""
    most = "have data" if count is None else f"({count}) are filled"
    why = f"where most cells {most}"
    return [Fixed(axes[p].name, axes[p].texts[0], why, asked=True) for p in hidden]


def slice_files(before: Source, after: Source, errors: Source | None) -> FilledSlice:
    """Read the slice of two files in which most cells were filled.

    Of an axis with thousands of coordinates some are left out, evenly spaced: a picture has fewer
    dots.

    Parameters
    ----------
    before, after
        The variable in the file with gaps and in the one without.
    errors
        Its standard errors, or None.
    """
    names = _hidden(before.axes)
    hidden = [place for place, axis in enumerate(before.axes) if axis.name in names]
    counts = np.zeros([before.axes[place].size for place in hidden], np.int64)
    for indices in _blocks(before, hidden):
        gone, left = (np.isnan(read_part(one, indices).values) for one in (before, after))
        here = np.ix_(*(indices[place] for place in hidden))
        counts[here] = _count_along(gone & ~left, hidden)
    chosen = np.unravel_index(int(np.argmax(counts)), counts.shape)
    indices = _indices(before.axes, dict(zip(hidden, map(int, chosen), strict=True)), _MOST_READ)
    part = read_part(before, indices)
    values = read_part(after, indices).values
    known = None if errors is None else read_part(errors, indices).values
    return FilledSlice(part, values, known, _describe(part.axes, hidden, int(counts.max())))


def _blocks(source: Source, hidden: Sequence[int]) -> Iterator[list[Indices]]:
    """Yield the indices of blocks of a variable, along the first dimension that is not shown."""
    if not hidden:
        return
    whole, first = _indices(source.axes, {}, _MOST_READ), hidden[0]
    for place in hidden:
        whole[place] = np.arange(source.axes[place].size)
    others = np.prod([indices.size for p, indices in enumerate(whole) if p != first])
    step = max(1, int(_BLOCK_CELLS // others))
    for start in range(0, whole[first].size, step):
        yield [part[start : start + step] if p == first else part for p, part in enumerate(whole)]
