"""Where to answer, as labelled data says it: grids like another one, and points with names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from dkrls_cli.arrays import Array
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.text.points import find_columns
from dkrls_cli.grid.axes import Axis, convert_cells, convert_coordinates
from dkrls_cli.grid.cf import by_dimension, pair_axes
from dkrls_cli.grid.grid import (
    COORDINATE_KINDS,
    POINT,
    coordinate_axes,
    coordinate_cells,
    is_labelled,
    labelled_axis,
)

if TYPE_CHECKING:
    import xarray as xr

TargetLike: TypeAlias = "xr.DataArray | xr.Dataset | Mapping[str, ArrayLike]"
"""Where to answer: an object of xarray whose coordinates are taken, or coordinates by name."""

PointsLike: TypeAlias = "xr.DataArray | xr.Dataset | Mapping[str, ArrayLike] | Any"
"""Scattered points: a Dataset, a DataArray of one dimension, a pandas.DataFrame, or a mapping."""


def target_coordinates(
    target: TargetLike, axes: Sequence[Axis]
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the coordinates to ask for and their cells, by name of the dimension.

    Raises
    ------
    InputError
        If the target has no coordinate of any of the axes.
    """
    if not is_labelled(target):
        return by_dimension(cast("Mapping[str, Any]", target), axes, "model"), {}
    pairs = pair_axes(axes, coordinate_axes(target))
    bounds = coordinate_cells(target, [theirs for _, theirs in pairs])
    found = {own.name: convert_coordinates(theirs, own) for own, theirs in pairs}
    if not found:
        names = ", ".join(axis.name for axis in axes)
        raise InputError(f"The target has no coordinate of the dimensions {names}.")
    cells = {
        own.name: convert_cells(bounds[theirs.name], theirs, own)
        for own, theirs in pairs
        if theirs.name in bounds and own.labels is None
    }
    return found, cells


@dataclass(frozen=True, eq=False)
class LabelledPoints:
    """Scattered points and what they are called.

    Attributes
    ----------
    at
        Equally long coordinates by dimension of the model.
    dim
        Name of the dimension along which the points are counted.
    coords
        Other coordinates of the points, by name, such as the identifiers of stations.
    is_labelled
        Whether the points came with labels.
    """

    at: dict[str, Any]
    dim: str = POINT
    coords: dict[str, Any] = field(default_factory=dict)
    is_labelled: bool = True


def read_points(
    points: PointsLike | None, at: Mapping[str, Any], axes: Sequence[Axis]
) -> LabelledPoints:
    """Return points as labelled data gives them, and coordinates that are given beside them.

    Parameters
    ----------
    points
        A Dataset with variables or coordinates along one dimension, a DataArray with coordinates
        along its only dimension, a DataFrame with columns, or a mapping; None without any. Names
        are found as in :func:`dkrls_cli.grid.cf.find_axis`; what is no dimension is left out.
    at
        Coordinates by dimension. A single one is that of every point.
    axes
        Axes of the model.

    Raises
    ------
    InputError
        If the points have no coordinate of the model, or lie along several dimensions.
    SettingError
        If a dimension is given twice.
    """
    own = by_dimension(at, axes, "model")
    if points is None:
        return LabelledPoints(own, is_labelled=False)
    if is_labelled(points):
        found = _from_xarray(points, axes)
    elif hasattr(points, "columns"):
        found = _from_columns(points, axes)
    else:
        found = LabelledPoints(by_dimension(points, axes, "model"), is_labelled=False)
    if not found.at:
        raise InputError(
            f"The points have no coordinate of the dimensions {', '.join(a.name for a in axes)}."
        )
    twice = [dim for dim in own if dim in found.at]
    if twice:
        raise SettingError(f"Coordinates of '{twice[0]}' were given twice.")
    return replace(found, at=found.at | own)


def _from_xarray(points: xr.DataArray | xr.Dataset, axes: Sequence[Axis]) -> LabelledPoints:
    """Return the points of an object of xarray: its vectors along one dimension, and scalars."""
    vectors = {str(name): points[name] for name in _names(points) if points[name].ndim < 2}
    theirs = [
        labelled_axis(name, vector)
        for name, vector in vectors.items()
        if _can_be_coordinate(vector)
    ]
    pairs = pair_axes(axes, theirs)
    dims = {str(dim) for _, axis in pairs for dim in vectors[axis.name].dims}
    if len(dims) > 1:
        raise InputError(
            f"The points lie along {' and '.join(sorted(dims))}. Expected one dimension: for a "
            "grid, ask for one."
        )
    dim = dims.pop() if dims else POINT
    used = {axis.name for _, axis in pairs}
    beside = {
        name: vector.variable
        for name, vector in vectors.items()
        if name in points.coords and name not in used and vector.dims in ((), (dim,))
    }
    return LabelledPoints(
        {own.name: convert_coordinates(its, own) for own, its in pairs}, dim, beside
    )


def _can_be_coordinate(vector: xr.DataArray) -> bool:
    """Return whether a vector holds numbers, dates or texts; objects go by the first of them."""
    if vector.dtype.kind != "O":
        return vector.dtype.kind in COORDINATE_KINDS
    first = vector.values.flat[0] if vector.size else None
    return isinstance(first, str | bytes) or hasattr(first, "year")


def _names(points: xr.DataArray | xr.Dataset) -> list[Any]:
    """Return the names of the coordinates, and of the variables of a dataset."""
    return [*points.coords, *getattr(points, "data_vars", ())]


def _from_columns(table: Any, axes: Sequence[Axis]) -> LabelledPoints:
    """Return the points of a table such as a pandas.DataFrame, a row each."""
    names = [str(name) for name in table.columns]
    found = find_columns(names, axes, "The table of points")
    at = {dim: np.asarray(table[table.columns[place]]) for dim, place in found.items()}
    return LabelledPoints(at)
