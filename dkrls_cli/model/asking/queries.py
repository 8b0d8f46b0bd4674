"""Queries of a model on grids, at points and at stations, as a user gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.errors import SettingError
from dkrls_cli.grid.axes import Attributes, Axis
from dkrls_cli.grid.cf import by_dimension
from dkrls_cli.grid.grid import STATION, Grid, as_grid, station_array
from dkrls_cli.model.answering.answers import (
    Land,
    Outside,
    PointQuery,
    Query,
    Rules,
    ask,
    ask_points,
)
from dkrls_cli.model.answering.coverage import Coverage, coverage_of
from dkrls_cli.model.answering.questions import MeanLike, Question, read_question
from dkrls_cli.model.answering.regions import RegionLike, ask_region
from dkrls_cli.model.answering.targets import (
    LabelledPoints,
    PointsLike,
    read_points,
    target_coordinates,
)

if TYPE_CHECKING:
    import xarray as xr

    from dkrls_cli.model.model import Model

Asked = TypeVar("Asked", Query, PointQuery)

MaskLike: TypeAlias = "Land | xr.DataArray | Grid"
"""Cells without an answer: the name of a rule, or a mask with labels."""

Asks: TypeAlias = tuple[MeanLike, str | Sequence[str], bool]
"""Questions other than values: means over cells, derivatives, and whether by metres."""


@dataclass(frozen=True)
class Manner:
    """How to answer.

    Attributes
    ----------
    smooth
        Whether to ask the model at training coordinates as well, where it has the data.
    outside
        What happens to coordinates outside the training range; None: as is usual for the query.
    extrapolate
        The same as to extrapolate them.
    mask
        Cells without an answer.
    """

    smooth: bool = False
    outside: Outside | None = None
    extrapolate: bool = False
    mask: MaskLike = "model"

    def rules(
        self, model: Model, question: Question | None = None, usual: Outside = "refuse"
    ) -> Rules:
        """Return the rules of answering; `usual` holds where nothing is said of the outside."""
        outside = "extrapolate" if self.extrapolate else self.outside or usual
        mask = self.mask
        land = mask if isinstance(mask, str | Coverage) else coverage_of(as_grid(mask), model.axes)
        return Rules(outside, land, self.smooth, question)


@dataclass(frozen=True)
class AskedPoints:
    """A query at scattered points, and the labels of these."""

    model: Model
    points: LabelledPoints
    query: PointQuery

    def label(
        self, values: Array, name: str, attrs: Attributes, members: int | None = None
    ) -> Array | xr.DataArray:
        """Return values with the labels of the points, or as they are if there are none."""
        points = self.points
        if not (points.is_labelled or self.model.is_labelled):
            return values
        axes = point_axes(self.model, points.at)
        found = station_array(values, axes, (), {}, name, attrs, members, points.dim)
        fresh = {key: coord for key, coord in points.coords.items() if key not in found.coords}
        return found.assign_coords(fresh)


@dataclass(frozen=True)
class AskedStations:
    """A query of stations: the axes it asks at, and those that are no part of the stations."""

    query: PointQuery
    axes: Sequence[Axis]
    spread: Sequence[int]
    at: Mapping[str, Any]

    def label(
        self, values: Array, name: str, attrs: Attributes, members: int | None = None
    ) -> xr.DataArray:
        """Return values with the coordinates of the stations, and of the other dimensions."""
        return station_array(values, self.axes, self.spread, self.at, name, attrs, members)


def grid_query(
    model: Model,
    like: xr.DataArray | xr.Dataset | None,
    given: Mapping[str, Any],
    manner: Manner,
    asks: Asks,
) -> tuple[Query, dict[str, int]]:
    """Return the grid to answer on, and the index of each dimension that a scalar drops."""
    own = by_dimension(given, model.axes, "model")
    theirs, cells = ({}, {}) if like is None else target_coordinates(like, model.axes)
    at = theirs | own
    cells = {dim: edges for dim, edges in cells.items() if dim not in own}
    question = read_question(model, *asks, at, cells)
    rules = manner.rules(model, question, "refuse" if like is None else "missing")
    query = refer(model, ask(model, model.axes_at(at), rules, list(at)))
    return query, _scalars(own)


def region_query(
    model: Model,
    region: RegionLike,
    given: Mapping[str, Any],
    manner: Manner,
    derivative: str | Sequence[str],
    per_metre: bool,
) -> tuple[Query, dict[str, int]]:
    """Return the query of means over a region, and the index of each dimension that drops out."""
    asked = ask_region(model, region, given, manner.rules(model), derivative, per_metre)
    query = refer(model, asked)
    dropped = _scalars(by_dimension(given, model.axes, "model"))
    return query, dict.fromkeys(query.averaged, 0) | dropped


def point_query(
    model: Model,
    points: PointsLike | None,
    at: Mapping[str, Any],
    manner: Manner,
    derivative: str | Sequence[str],
    per_metre: bool,
) -> AskedPoints:
    """Return the points with their labels, and the query that answers there."""
    asked = read_points(points, at, model.axes)
    question = read_question(model, False, derivative, per_metre, {})
    rules = manner.rules(model, question)
    query = ask_points(model, point_axes(model, asked.at), rules)
    return AskedPoints(model, asked, refer(model, query))


def station_query(
    model: Model,
    stations: Mapping[str, Any],
    given: Mapping[str, Any],
    manner: Manner,
    asks: Asks,
) -> AskedStations:
    """Return the query of every station at every coordinate of the other dimensions."""
    at = by_dimension(given, model.axes, "model")
    rules = manner.rules(model, read_question(model, *asks, at))
    axes, spread = _station_axes(model, stations, at)
    return AskedStations(refer(model, ask_points(model, axes, rules, spread)), axes, spread, at)


def refer(model: Model, query: Asked) -> Asked:
    """Return a query that reads the data which the model refers to, if it does."""
    if model.reference is None:
        return query
    from dkrls_cli.model.referring.grids import refer

    return refer(query)


def point_axes(model: Model, at: Mapping[str, Any]) -> list[Axis]:
    """Return the axes at the coordinates of points; that of one coordinate is repeated."""
    missing = [axis.name for axis in model.axes if axis.name not in at and axis.size > 1]
    if missing:
        raise SettingError(f"Points need a coordinate for '{missing[0]}' as well.")
    axes = model.axes_at(at)
    count = max(axis.size for axis in axes if axis.name in at)
    return [axis.take(np.zeros(count, int)) if axis.size == 1 else axis for axis in axes]


def _station_axes(
    model: Model, stations: Mapping[str, Any], at: Mapping[str, Any]
) -> tuple[list[Axis], list[int]]:
    """Return the axes to ask at, and the places of those that are no part of stations."""
    stations = by_dimension(stations, model.axes, "model")
    twice = [dim for dim in at if dim in stations]
    if twice:
        raise SettingError(f"Coordinates of '{twice[0]}' were given twice.")
    if not stations:
        raise SettingError("Stations need the coordinates of at least one dimension.")
    axes = model.axes_at({**stations, **at})
    spread = [place for place, dim in enumerate(model.dims) if dim not in stations]
    if STATION in model.dims and STATION not in stations:
        raise SettingError(f"The model has a dimension '{STATION}'. Give the stations by it.")
    return axes, spread


def _scalars(at: Mapping[str, Any]) -> dict[str, int]:
    """Return the index of each dimension that a scalar coordinate drops."""
    return {dim: 0 for dim, value in at.items() if np.ndim(value) == 0}
