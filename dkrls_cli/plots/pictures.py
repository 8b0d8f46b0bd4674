"""Contents of pictures as plain values: maps and sections with their scales, and lines.

A picture of a file shows its data, one of a model its answers, their standard errors and the data.
How the contents are drawn is left to :mod:`dkrls_cli.plots.figures` and
:mod:`dkrls_cli.plots.terminal`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.circle import nearest
from dkrls_cli.errors import SettingError
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.answering.answers import Query, Rules, ask
from dkrls_cli.plots.labels import title_text, units_text
from dkrls_cli.plots.scales import Scale, error_scale, scale_of
from dkrls_cli.plots.slices import (
    Fixed,
    Slice,
    describe_fixed,
    fix_dimensions,
    orient,
    refuse_empty,
    shown_index,
)

if TYPE_CHECKING:
    from dkrls_cli.model.answering.bounds import Bounds
    from dkrls_cli.model.model import Model

INTERVAL = 1.6449
"""Standard errors on either side of an answer that hold 90 % of a normal distribution."""


@dataclass(frozen=True, eq=False)
class FieldPanel:
    """Values on two dimensions, to be shown by colours.

    Attributes
    ----------
    axes
        The axis that runs upward or downward, and the one from left to right; coordinates rise.
    values
        Values (up, right), NaN where cells are missing.
    scale
        The range of the colours.
    heading
        What these values are beside others in the same picture; empty for the only ones.
    """

    axes: tuple[Axis, Axis]
    values: Array
    scale: Scale
    heading: str = ""


@dataclass(frozen=True, eq=False)
class LinePanel:
    """Values on one dimension.

    Attributes
    ----------
    axis
        The dimension; coordinates rise.
    values
        Values (m,), NaN where cells are missing.
    low, high
        Ends of the interval that holds 90 % of the errors, or None.
    points
        Coordinates and values of the data that a model was fitted to, or None.
    label
        What the values are beside the data: ``model`` or ``filled``; empty if they are the data.
    """

    axis: Axis
    values: Array
    low: Array | None = None
    high: Array | None = None
    points: tuple[Array, Array] | None = None
    label: str = ""


@dataclass(frozen=True, eq=False)
class Picture:
    """What a picture shows of one variable.

    Attributes
    ----------
    title
        The variable, and the coordinates that are the same in all of the picture.
    units
        Units of the values, empty if there are none.
    fields
        Maps or sections beside each other; none if there is a line.
    line
        A line; None if there are fields.
    """

    title: str
    units: str
    fields: tuple[FieldPanel, ...] = ()
    line: LinePanel | None = None


def picture_data(found: Slice) -> Picture:
    """Return the picture of data in a file.

    Raises
    ------
    InputError
        If no cell has a value.
    """
    grid = found.grid
    refuse_empty(grid.values, grid.name, found.fixed)
    title, units = title_text(grid.name, grid.attrs, found.fixed), units_text(grid.attrs)
    values = np.asarray(grid.values, np.float64)
    if len(grid.axes) == 1:
        return Picture(title, units, line=LinePanel(grid.axes[0], values))
    scale = scale_of([values], grid.name, grid.attrs)
    return Picture(title, units, (make_field(grid.axes, values, scale),))


def make_field(axes: Sequence[Axis], values: Array, scale: Scale, heading: str = "") -> FieldPanel:
    """Return values on two axes as they are shown by colours."""
    up, right = axes
    return FieldPanel((up, right), values, scale, heading)


@dataclass(frozen=True, eq=False)
class ModelQuery:
    """Where a picture shows the answers of a model.

    Attributes
    ----------
    query
        The cells to answer in: one or two dimensions have more than one coordinate.
    fixed
        What was chosen for the other dimensions.
    """

    query: Query
    fixed: list[Fixed]


def ask_model(model: Model, at: Mapping[str, Any]) -> ModelQuery:
    """Return where a picture shows the answers of a model; none are computed yet.

    Coordinates outside the training range get no answer.

    Parameters
    ----------
    model
        The model.
    at
        Coordinates by dimension; those of the data for others.

    Raises
    ------
    SettingError
        If a coordinate cannot be read.
    """
    axes = model.axes_at(at)
    usual = {axis.name: axis for axis in model.axes} | {a.name: a for a in axes if a.name in at}
    fixed = {dim: shown_index(usual[dim]) for dim in fix_dimensions(axes)}
    shown = {dim: usual[dim].take([index]) for dim, index in fixed.items()}
    one = {dim: axis.plain if axis.labels is None else axis.texts for dim, axis in shown.items()}
    asked = {**at, **one}
    query = ask(model, model.axes_at(asked), Rules("missing"), list(asked))
    return ModelQuery(query, describe_fixed(list(usual.values()), fixed))


def picture_model(asked: ModelQuery, *, std: bool, data: bool) -> Picture:
    """Return the picture of a model's answers.

    Parameters
    ----------
    asked
        Where it answers.
    std
        Whether standard errors are shown: as a band around a line, as a field beside another.
    data
        Whether the data is shown beside a field; with a line it always is, if there is some.

    Raises
    ------
    SettingError
        If one cell is left, or the data is asked for and has not the coordinates of the picture.
    InputError
        If no cell has an answer.
    """
    query, model = asked.query, asked.query.model
    whole = Grid(query.values(), query.axes, model.name, model.attrs)
    found = orient(whole)
    refuse_empty(found.grid.values, model.name, found.fixed)
    errors = orient(replace(whole, values=query.std())).grid.values if std else None
    known = training_data(model, found.fixed)
    title, units = title_text(model.name, model.attrs, found.fixed), units_text(model.attrs)
    if len(found.grid.axes) == 1:
        return Picture(title, units, line=_model_line(found.grid, errors, known, model.bounds))
    if data and known is None:
        raise SettingError(
            f"The data of '{model.name}' cannot be shown: it has no values at "
            f"{', '.join(f'{axis.name}={axis.texts[0]}' for axis in found.fixed)}. Ask for "
            "coordinates of the data."
        )
    return Picture(title, units, _model_fields(found.grid, errors, known if data else None))


def _model_fields(grid: Grid, errors: Array | None, data: Grid | None) -> tuple[FieldPanel, ...]:
    """Return the data, the answers and their standard errors, as far as they are asked for."""
    together = [grid.values] if data is None else [data.values, grid.values]
    scale = scale_of(together, grid.name, grid.attrs)
    several = errors is not None or data is not None
    fields = [make_field(grid.axes, grid.values, scale, "model" if several else "")]
    if data is not None:
        fields.insert(0, make_field(data.axes, data.values, scale, "data"))
    if errors is not None:
        fields.append(make_field(grid.axes, errors, error_scale([errors]), "standard error"))
    return tuple(fields)


def _model_line(
    grid: Grid, errors: Array | None, data: Grid | None, bounds: Bounds | None
) -> LinePanel:
    """Return answers along one dimension, with their interval and the data in the same range."""
    axis = grid.axes[0]
    line = LinePanel(axis, grid.values, label="model")
    if errors is not None:
        low, high = interval(grid.values, errors, bounds)
        line = replace(line, low=low, high=high)
    if data is None:
        return line
    numbers, (low_end, high_end) = data.axes[0].numbers, axis.numbers[[0, -1]]
    if axis.turn is not None:
        numbers = numbers + axis.turn * np.round(((low_end + high_end) / 2 - numbers) / axis.turn)
    inside = np.isfinite(data.values) & (numbers >= low_end) & (numbers <= high_end)
    return replace(line, points=(numbers[inside], data.values[inside])) if inside.any() else line


def interval(values: Array, std: Array, bounds: Bounds | None = None) -> tuple[Array, Array]:
    """Return the ends of the interval around answers that holds 90 % of the errors."""
    low, high = values - INTERVAL * std, values + INTERVAL * std
    return (low, high) if bounds is None else (bounds.clip(low), bounds.clip(high))


def training_data(model: Model, fixed: Sequence[Axis]) -> Grid | None:
    """Return the data of a model at some coordinates, or None if it has none there.

    Parameters
    ----------
    model
        The model.
    fixed
        Axes of one coordinate each; one or two other dimensions remain.
    """
    chosen = {axis.name: axis for axis in fixed}
    indices = []
    for own in model.axes:
        place, same = np.arange(own.size), np.ones(1, bool)
        if own.name in chosen:
            place, same = nearest(chosen[own.name].numbers, own.numbers, own.turn)
        if not same.all():
            return None
        indices.append(place)
    axes = tuple(axis.take(places) for axis, places in zip(model.axes, indices, strict=True))
    here, seen, missing = np.ix_(*indices), model.observations, model.unobserved
    values = model.values_on(axes) if seen is None else seen.values[here]
    if missing is not None:
        values = np.where(missing[here], np.nan, values)
    known = Grid(values, axes, model.name, model.attrs)
    return orient(known).grid if np.isfinite(values).any() and values.size > 1 else None
