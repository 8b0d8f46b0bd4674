"""Questions beyond values: derivatives, and means over the cells of a grid.

A :class:`Question` says what is asked for along every dimension. Asked of a model it becomes
functionals of the levels (:mod:`dkrls_cli.cascade.functionals`) and a variable of its own name,
units and attributes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.cascade.functionals.derivatives import refuse_rough
from dkrls_cli.cascade.functionals.functional import Derivatives, Functional, Means, Values
from dkrls_cli.circle import nearest
from dkrls_cli.errors import SettingError
from dkrls_cli.grid.axes import Axis, is_latitude, is_longitude
from dkrls_cli.grid.cf import find_axis
from dkrls_cli.grid.derived import (
    EARTH_RADIUS,
    cell_numbers,
    cells_on,
    derivative_variable,
    is_on_sphere,
    mean_variable,
)
from dkrls_cli.model.answering.slopes import can_replace

if TYPE_CHECKING:
    from dkrls_cli.model.model import Model

MeanLike: TypeAlias = bool | str | Sequence[str]
"""Over the cells of which dimensions means are taken: True for all that are asked for."""

# Cosine of a latitude that is a pole but for rounding: a metre to the east is no angle there.
_POLE = 1e-9

# Part of its width by which a cell may reach beyond those of the data: rounding.
_SLACK = 1e-6


@dataclass(frozen=True)
class Question:
    """A question other than one for values.

    Attributes
    ----------
    mean
        Dimensions over the cells of which means are taken.
    derivative
        Dimensions by which to derive; one of them twice for the second derivative.
    per_metre
        Whether derivatives by latitude and longitude are by metres on the sphere.
    cells
        Cells (m, 2) of the coordinates that are asked for, by dimension, where they are known.
    region
        Whether means are over one region, with its own standard error and without its land.

    Raises
    ------
    SettingError
        If a dimension is asked for a mean and a derivative at once, or nothing is asked for.
    """

    mean: tuple[str, ...] = ()
    derivative: tuple[str, ...] = ()
    per_metre: bool = False
    cells: Mapping[str, Array] = field(default_factory=dict)
    region: bool = False

    def __post_init__(self) -> None:
        both = [dim for dim in self.mean if dim in self.derivative]
        if both:
            raise SettingError(
                f"'{both[0]}' is asked for means over cells and for derivatives. Choose one."
            )
        if self.per_metre and not self.derivative:
            raise SettingError(
                "Metres on the sphere are for derivatives. Name latitude or longitude to derive by."
            )

    def orders(self) -> Counter[str]:
        """Return the order of the derivative by every dimension."""
        return Counter(self.derivative)


def read_question(
    model: Model,
    mean: MeanLike,
    derivative: str | Sequence[str],
    per_metre: bool,
    asked: Mapping[str, Any],
    cells: Mapping[str, Array] | None = None,
) -> Question | None:
    """Return the question that parameters ask, or None if they ask for values.

    Parameters
    ----------
    model
        The model that is asked.
    mean
        Over the cells of which dimensions to take means; True: of those in `asked` at other
        coordinates than those of the data or one of them, and of all along which the data are
        means; if there are none such, of all in `asked`. Dimensions to derive by do not count.
    derivative
        By which dimensions to derive.
    per_metre
        Whether by metres on the sphere.
    asked
        Coordinates that were asked for, by dimension.
    cells
        Cells of these coordinates, where they are known.

    Raises
    ------
    SettingError
        If a dimension is unknown or cannot be asked so.
    """
    derive = [derivative] if isinstance(derivative, str) else list(derivative)
    derive = [_named(model, dim) for dim in derive]
    if mean is True:
        means = _averaged(model, asked, cells or {}, derive)
    else:
        means = [mean] if isinstance(mean, str) else [] if isinstance(mean, bool) else list(mean)
    if not (derive or means or per_metre):
        return None
    means = list(dict.fromkeys(_named(model, dim) for dim in means))
    question = Question(tuple(means), tuple(derive), per_metre, cells or {})
    refuse_impossible(model, question)
    return question


def _named(model: Model, dim: str) -> str:
    """Return the name of a dimension that a mean or a derivative is asked of."""
    return find_axis(dim, model.axes, "model", " for a mean or a derivative").name


def _averaged(
    model: Model, asked: Mapping[str, Any], cells: Mapping[str, Array], derive: Sequence[str]
) -> list[str]:
    """Return the dimensions over the cells of which means are taken if none are named.

    Data that are means over cells have no other sum than that of means over all of their
    dimensions, so these count at the coordinates of the data as well.
    """
    numeric = [dim for dim in asked if model.axis_of(dim).labels is None]
    found = [
        dim
        for dim in dict.fromkeys([*numeric, *model.cell_means])
        if dim in model.cell_means or not _is_data(model, dim, asked[dim], dim in cells)
    ]
    found = found or [dim for dim in numeric if np.size(asked[dim]) > 1]
    found = [dim for dim in found if dim not in derive]
    if not found:
        raise SettingError(
            "Means over cells of which dimensions? Ask for coordinates, or name dimensions."
        )
    return found


def _is_data(model: Model, dim: str, values: Any, bounded: bool) -> bool:
    """Return whether coordinates are those of the data, or a single one of them without bounds."""
    own = model.axis_of(dim)
    known = bool(nearest(own.at(values).numbers, own.numbers, own.turn)[1].all())
    return known and (np.size(values) == own.size or (np.size(values) == 1 and not bounded))


def refuse_impossible(model: Model, question: Question) -> None:
    """Raise SettingError if there is no such derivative, or an axis is one of labels."""
    for dim in (*question.mean, *question.derivative):
        if model.axis_of(dim).labels is not None:
            raise SettingError(
                f"'{dim}' has text labels: there is no mean over cells and no derivative along it."
            )
    for dim, order in question.orders().items():
        if model.axis_of(dim).size == 1:
            raise SettingError(
                f"'{dim}' has one coordinate, which says nothing of a derivative along it. Fit "
                "data with two or more."
            )
        if not can_replace(model, order):
            refuse_rough(model.level_of(dim).kernel, order, dim)
    derived = [model.axis_of(dim) for dim in question.derivative]
    if question.per_metre and not any(is_on_sphere(axis) for axis in derived):
        raise SettingError(
            "Metres on the sphere are for derivatives by latitude and longitude, and "
            f"{' and '.join(question.orders())} is neither."
        )
    if question.per_metre and any(is_longitude(axis) for axis in derived):
        _latitude_place(model, question)


def _latitude_place(model: Model, question: Question) -> int:
    """Return the place of the latitude that tells how long a degree of longitude is."""
    found = [place for place, axis in enumerate(model.axes) if is_latitude(axis)]
    if len(found) != 1 or model.axes[found[0]].name in (*question.mean, *question.derivative):
        raise SettingError(
            "A derivative by metres of longitude needs the values of one dimension of latitude, "
            "neither means nor derivatives."
        )
    return found[0]


def question_view(model: Model, question: Question, axes: Sequence[Axis] | None = None) -> Model:
    """Return the model as it answers a question: with the name and attributes of the answers.

    `axes` are those of the answers, for the bounds of cells; None: at points.
    """
    name, attrs, style, bounds = model.name, model.attrs, model.style, model.bounds
    if set(model.cell_means) - set(question.mean):  # values are no longer means over cells
        attrs = {key: value for key, value in attrs.items() if key != "cell_methods"}
    if question.derivative:
        along = [model.axis_of(dim) for dim in question.derivative]
        name, attrs = derivative_variable(name, attrs, along, per_metre=question.per_metre)
        style, bounds = style.of_errors, None
    if question.mean and axes is None:
        words = f"{attrs.get('long_name', name)}, mean over cells of {' and '.join(question.mean)}"
        attrs = {**attrs, "long_name": words}
    elif question.mean and axes is not None:
        by_name = {axis.name: axis for axis in axes}
        cells = {dim: cells_asked(model, question, by_name[dim]) for dim in question.mean}
        attrs, style = mean_variable(attrs, style, axes, cells)
    return replace(model, name=name, attrs=attrs, style=style, bounds=bounds)


def cells_asked(model: Model, question: Question, axis: Axis) -> Array:
    """Return the cells (m, 2) of an axis of answers, as the user writes them."""
    known = question.cells.get(axis.name)
    if known is not None and known.shape == (axis.size, 2):
        return known
    return cells_on(axis, model.style)


def make_functionals(
    model: Model, question: Question, axes: Sequence[Axis]
) -> tuple[Functional, ...]:
    """Return what is asked for along every axis."""
    orders, found = question.orders(), list[Functional]()
    for axis, numbers in zip(axes, model.queries(axes), strict=True):
        if axis.name in question.mean:
            low, high = cell_numbers(axis, cells_asked(model, question, axis))
            found.append(Means(low, high, is_latitude(axis)))
        elif axis.name in orders:
            found.append(Derivatives(numbers, orders[axis.name]))
        else:
            found.append(Values(numbers))
    return tuple(found)


def make_factors(model: Model, question: Question, axes: Sequence[Axis]) -> list[Array]:
    """Return a factor of the answers for every coordinate of every axis: metres for degrees.

    NaN at the poles, where a metre to the east is no angle.
    """
    factors = [np.ones(axis.size) for axis in axes]
    if not question.per_metre:
        return factors
    for place, axis in enumerate(axes):
        order = question.orders()[axis.name]
        if order and is_on_sphere(axis):
            factors[place] *= np.radians(EARTH_RADIUS) ** -order
        if order and is_longitude(axis):
            beside = _latitude_place(model, question)
            cosine = np.cos(np.radians(axes[beside].numbers))
            with np.errstate(divide="ignore"):
                factors[beside] *= np.where(np.abs(cosine) > _POLE, cosine, np.nan) ** -order
    return factors


def whole_axis(model: Model, place: int) -> Axis:
    """Return an axis of the file, also where it has no data, in the numbers of the model."""
    own, whole = model.axes[place], model.coverage.axes[place]
    each = whole.take(whole.distinct)
    return own if each.size == own.size else replace(each, numbers=own.unwrap(each.plain))


def cells_outside(model: Model, question: Question, axis: Axis, *, land: bool) -> Mask:
    """Return which cells of an axis of answers reach beyond the cells of the data.

    Where `land` is left out of regions, cells of the file without any data are none beyond them.
    """
    place = model.dims.index(axis.name)
    own, period = model.axes[place], model.cascade.levels[place].kernel.period
    low, high = cell_numbers(axis, cells_asked(model, question, axis))
    if period is not None:
        return np.zeros(axis.size, bool)
    if question.region and land:
        own = whole_axis(model, place)
    first, last = cell_numbers(own, cells_on(own, model.style))
    slack = _SLACK * (high - low)
    return np.asarray((low < first.min() - slack) | (high > last.max() + slack))
