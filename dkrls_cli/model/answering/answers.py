"""Answers of a model where users ask for them: what lies outside, and what is land.

:class:`Rules` say what happens to coordinates outside the training range and to cells that never
had data. :func:`ask` applies them to a product grid, :func:`ask_points` to scattered points.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from dkrls_cli.arrays import Array, Mask, Slices
from dkrls_cli.circle import outside
from dkrls_cli.errors import SettingError
from dkrls_cli.grid.axes import Axis, is_latitude, refuse_places
from dkrls_cli.model.answering.cellmeans import model_cells
from dkrls_cli.model.answering.coverage import Coverage
from dkrls_cli.model.answering.linear import LinearAnswers
from dkrls_cli.model.answering.questions import (
    Question,
    cells_outside,
    make_factors,
    make_functionals,
    question_view,
)
from dkrls_cli.model.answering.regions import region_answers
from dkrls_cli.model.answering.slopes import with_slopes

if TYPE_CHECKING:
    from dkrls_cli.model.model import Model

Outside = Literal["refuse", "missing", "nearest", "extrapolate"]
"""Ways with coordinates outside the training range.

``refuse``: an error. ``missing``: no answer. ``nearest``: the answer at the end of the range.
``extrapolate``: the answer of the model there.
"""

Land: TypeAlias = Literal["model", "none"] | Coverage
"""Cells without an answer: those that never had data, none, or those of a mask."""


@dataclass(frozen=True)
class Rules:
    """Rules by which a model answers.

    Attributes
    ----------
    outside
        What happens to coordinates outside the training range.
    land
        Cells that stay missing.
    smooth
        Whether the model answers at training coordinates as well, instead of returning the data.
    question
        What is asked for other than values; None: values.

    Raises
    ------
    SettingError
        If one of them is not a possible one.
    """

    outside: Outside = "refuse"
    land: Land = "model"
    smooth: bool = False
    question: Question | None = None

    def __post_init__(self) -> None:
        if self.outside not in get_args(Outside):
            raise SettingError(
                f"Unknown way with what lies outside '{self.outside}'. Choose from: "
                f"{', '.join(get_args(Outside))}."
            )
        if isinstance(self.land, str) and self.land not in ("model", "none"):
            raise SettingError(f"Unknown mask '{self.land}'. Choose from: model, none.")

    def coverage(self, model: Model) -> Coverage | None:
        """Return which cells stay missing, or None if none does."""
        known = model.coverage if isinstance(self.land, str) else self.land
        return known if self.land != "none" and known.has_land else None


@dataclass(frozen=True, eq=False)
class Query:
    """A product grid to answer on.

    Attributes
    ----------
    model, rules
        The model, and the rules by which it answers.
    axes
        Axes of the answers.
    asked
        Axes at which the model is asked: inside the training range, unless it extrapolates.
    beyond
        Per axis, which coordinates get no answer because they are outside.
    absent
        Which cells get no answer because they are land; sizes of 1 are repeated.
    linear
        The answers to a question other than values; None: values.
    """

    model: Model
    rules: Rules
    axes: tuple[Axis, ...]
    asked: tuple[Axis, ...]
    beyond: tuple[Mask, ...]
    absent: Mask
    linear: LinearAnswers | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the product grid."""
        return tuple(axis.size for axis in self.axes)

    @property
    def averaged(self) -> tuple[str, ...]:
        """Dimensions over which means are taken."""
        return self.rules.question.mean if self.rules.question is not None else ()

    @property
    def outside_count(self) -> int:
        """Number of cells without an answer because they are outside the training range."""
        inside = math.prod(int(np.count_nonzero(~beyond)) for beyond in self.beyond)
        return math.prod(self.shape) - inside

    @property
    def extrapolated_count(self) -> int:
        """Number of cells that are answered although they are outside the training range."""
        pairs = zip(self.model.outside(self.asked), self.beyond, strict=True)
        inside = math.prod(int(np.count_nonzero(~(out | gone))) for out, gone in pairs)
        return math.prod(self.shape) - self.outside_count - inside

    @property
    def land_count(self) -> int:
        """Number of cells inside the training range without an answer because they are land."""
        cells, repeats = self.absent, 1
        for place, beyond in enumerate(self.beyond):
            if cells.shape[place] == 1:
                repeats *= int(np.count_nonzero(~beyond))
            else:
                cells = cells & ~_along(beyond, place, cells.ndim)
        return repeats * int(np.count_nonzero(cells))

    def free(self) -> Array:
        """Return the answers before they are moved to the bounds, also where there is none."""
        if self.linear is not None:
            return self.linear.free()
        queries = self.model.queries(self.asked)
        return self.model.cascade.predict(queries, smooth=self.rules.smooth)

    def values(self) -> Array:
        """Return the answers, NaN where there is none."""
        if self.linear is not None:
            return self.blank(self.linear.values())
        return self.blank(self.model.values_on(self.asked, smooth=self.rules.smooth))

    def std(self) -> Array:
        """Return the standard errors of the answers, NaN where there is none."""
        if self.linear is not None:
            return self.blank(self.linear.std())
        return self.blank(self.model.std_on(self.asked, smooth=self.rules.smooth))

    def blocks(
        self, cells: int, *, std: bool = False
    ) -> Iterator[tuple[Slices, Array, Array | None]]:
        """Yield the answers in C order in blocks of about `cells` cells, with slices and errors."""
        smooth = self.rules.smooth
        parts = (
            self.model.blocks_on(self.asked, cells, std=std, smooth=smooth)
            if self.linear is None
            else self.linear.blocks(cells, std=std)
        )
        for part, values, errors in parts:
            blank = None if errors is None else self.blank(errors, part)
            yield part, self.blank(values, part), blank

    def blank(self, values: Array, part: Slices | None = None) -> Array:
        """Return values with NaN in the cells of a block that get no answer."""
        every = slice(None)
        whole = part or tuple(every for _ in self.axes)
        sizes = zip(whole, self.absent.shape, strict=True)
        missing = self.absent[tuple(here if size > 1 else every for here, size in sizes)]
        for place, beyond in enumerate(self.beyond):
            if beyond.any():
                missing = missing | _along(beyond[whole[place]], place, values.ndim)
        return np.where(missing, np.nan, values) if missing.any() else values


def ask(
    model: Model, axes: Sequence[Axis], rules: Rules, chosen: Sequence[str] | None = None
) -> Query:
    """Return a product grid to answer on.

    Parameters
    ----------
    model
        The model.
    axes
        Axes that :meth:`Model.axes_at` returned.
    rules
        What happens outside the training range and on land.
    chosen
        Dimensions whose coordinates were asked for by name; None for all. Those of the others are
        the file's own, and what is outside the training range there never had data: instead of
        being refused, it stays missing as land does, and is answered where land is.

    Raises
    ------
    SettingError
        If the rules refuse a coordinate.
    """
    rules = _with_cells(model, rules)
    model, note = with_slopes(model, rules.question)
    _refuse_nowhere(axes, rules.outside)
    beyond = outside_of(model, axes, rules)
    if rules.outside == "refuse":
        _refuse(model, axes, chosen, rules)
    everywhere = rules.outside == "refuse" and rules.land == "none"
    beyond = [
        mask & False if everywhere and chosen is not None and axis.name not in chosen else mask
        for axis, mask in zip(axes, beyond, strict=True)
    ]
    asked = _moved(model, axes, beyond, rules)
    silent = rules.outside in ("refuse", "missing")
    kept = tuple(mask if silent else np.zeros(mask.shape, bool) for mask in beyond)
    known = rules.coverage(model)
    nothing = np.zeros((1,) * len(asked), bool)
    absent = nothing if known is None else known.absent_on(axes)
    linear = None
    if rules.question is not None:
        linear, absent, share = _region_or_cells(model, rules, asked, absent)
        model = question_view(model, rules.question, axes)
        model = _commented(model, note, _share_words(share) if share < 1.0 else "")
    return Query(model, rules, tuple(axes), asked, kept, absent, linear)


def _region_or_cells(
    model: Model, rules: Rules, axes: Sequence[Axis], absent: Mask
) -> tuple[LinearAnswers, Mask, float]:
    """Return the answers to a question, which are land, and the share of a region at sea."""
    linear = _linear_answers(model, rules, axes)
    assert rules.question is not None
    if not rules.question.region:
        return linear, absent, 1.0
    land = rules.coverage(model)
    found, share = region_answers(model, linear, rules.question, axes, land)
    return found, np.zeros((1,) * len(axes), bool), share


def _commented(model: Model, *notes: str) -> Model:
    """Return the model with notes on its answers as their attribute ``comment``."""
    told = "; ".join(note for note in notes if note)
    return replace(model, attrs={**model.attrs, "comment": told}) if told else model


def _share_words(share: float) -> str:
    """Return what a mean over a region with land is a mean of."""
    return f"mean over {100 * share:.3g} % of the region, where the data has values"


def _with_cells(model: Model, rules: Rules) -> Rules:
    """Return rules by which values of a model of means over cells are a question as others are."""
    values = rules.question is None and model.cell_means
    return replace(rules, question=Question()) if values else rules


def outside_of(model: Model, axes: Sequence[Axis], rules: Rules) -> list[Mask]:
    """Return, for every axis, what lies beyond the data: coordinates, or cells of a mean."""
    beyond, question = model.outside(axes), rules.question
    for place, axis in enumerate(axes):
        if question is not None and axis.name in question.mean:
            beyond[place] = cells_outside(model, question, axis, land=rules.land == "model")
    return beyond


def _linear_answers(
    model: Model, rules: Rules, axes: Sequence[Axis], spread: tuple[int, ...] | None = None
) -> LinearAnswers:
    """Return the answers to a question other than values."""
    assert rules.question is not None
    return LinearAnswers(
        model.cascade,
        make_functionals(model, rules.question, axes),
        make_factors(model, rules.question, axes),
        rules.smooth,
        None if rules.question.derivative else model.bounds,
        lambda: model.bars,
        spread,
        model_cells(model, rules.question.mean),
        rules.question.region,
        model.poles,
    )


@dataclass(frozen=True, eq=False)
class PointQuery:
    """Points to answer at, each at every coordinate of the axes that all of them share.

    Attributes
    ----------
    model, rules
        The model, and the rules by which it answers.
    asked
        Numbers of every axis at which the model is asked.
    spread
        Places of the axes that all points share: the answers have an axis for each of them after
        that of the points.
    shape
        Sizes of the answers.
    beyond, absent
        Which answers are left out because they are outside, and because they are land; sizes of 1
        are repeated.
    linear
        The answers to a question other than values; None: values.
    """

    model: Model
    rules: Rules
    asked: tuple[Array, ...]
    spread: tuple[int, ...]
    shape: tuple[int, ...]
    beyond: Mask
    absent: Mask
    linear: LinearAnswers | None = None

    @property
    def outside_count(self) -> int:
        """Number of cells without an answer because they are outside the training range."""
        return int(np.count_nonzero(np.broadcast_to(self.beyond, self.shape)))

    @property
    def land_count(self) -> int:
        """Number of cells inside the training range without an answer because they are land."""
        return int(np.count_nonzero(np.broadcast_to(self.absent & ~self.beyond, self.shape)))

    def free(self) -> Array:
        """Return the answers before they are moved to the bounds, also where there is none."""
        if self.linear is not None:
            return self.linear.free()
        cascade, smooth = self.model.cascade, self.rules.smooth
        return cascade.predict_points(self.asked, spread=self.spread, smooth=smooth)

    def values(self) -> Array:
        """Return the answers, NaN where there is none."""
        if self.linear is not None:
            return self.blank(self.linear.values())
        smooth = self.rules.smooth
        return self.blank(self.model.values_at(self.asked, spread=self.spread, smooth=smooth))

    def std(self) -> Array:
        """Return the standard errors of the answers, NaN where there is none."""
        if self.linear is not None:
            return self.blank(self.linear.std())
        smooth = self.rules.smooth
        return self.blank(self.model.std_at(self.asked, spread=self.spread, smooth=smooth))

    def blocks(
        self, cells: int, *, std: bool = False
    ) -> Iterator[tuple[Slices, Array, Array | None]]:
        """Yield the answers in C order in blocks of about `cells` cells, with slices and errors."""
        smooth = self.rules.smooth
        parts = (
            self.model.blocks_at(self.asked, cells, spread=self.spread, std=std, smooth=smooth)
            if self.linear is None
            else self.linear.blocks(cells, std=std)
        )
        for part, values, errors in parts:
            blank = None if errors is None else self.blank(errors, part)
            yield part, self.blank(values, part), blank

    def blank(self, values: Array, part: Slices | None = None) -> Array:
        """Return values with NaN in the cells of a block that get no answer."""
        missing = np.broadcast_to(self.beyond | self.absent, self.shape)
        here = missing if part is None else missing[part]
        return np.where(here, np.nan, values) if here.any() else values


def ask_points(
    model: Model, axes: Sequence[Axis], rules: Rules, spread: Sequence[int] = ()
) -> PointQuery:
    """Return points to answer at.

    Parameters
    ----------
    model
        The model.
    axes
        Axes of the model at the coordinates of the points, equally many on each.
    rules
        What happens outside the training range and on land.
    spread
        Places of axes that are no part of the points: every point is answered at all their
        coordinates.

    Raises
    ------
    SettingError
        If the rules refuse a coordinate, or the points have different numbers of coordinates.
    """
    rules = _with_cells(model, rules)
    model, note = with_slopes(model, rules.question)
    order = sorted(spread)
    own = [place for place in range(len(axes)) if place not in order]
    counts = list(dict.fromkeys(axes[place].size for place in own))
    if len(counts) > 1:
        raise SettingError(
            f"Points need equally many coordinates of every dimension, got {counts[0]} and "
            f"{counts[1]}."
        )
    _refuse_nowhere(axes, rules.outside)
    _refuse_point_means(rules.question, axes, own)
    beyond = outside_of(model, axes, rules)
    if rules.outside == "refuse":
        _refuse(model, axes, None, rules)
    moved = _moved(model, axes, beyond, rules)
    layout = dict.fromkeys(own, 0) | {place: 1 + i for i, place in enumerate(order)}
    shape = (axes[own[0]].size, *(axes[place].size for place in order))
    ndim = len(shape)
    nothing = np.zeros((1,) * ndim, bool)
    outer = nothing
    if rules.outside in ("refuse", "missing"):
        for place, mask in enumerate(beyond):
            outer = outer | _along(mask, layout[place], ndim)
    known = rules.coverage(model)
    land = nothing if known is None else known.absent_at([a.numbers for a in axes], layout, ndim)
    linear = None
    if rules.question is not None:
        linear = _linear_answers(model, rules, moved, tuple(order))
        model = _commented(question_view(model, rules.question), note)
    asked = tuple(axis.numbers for axis in moved)
    return PointQuery(model, rules, asked, tuple(order), shape, outer, land, linear)


def _refuse_point_means(
    question: Question | None, axes: Sequence[Axis], own: Sequence[int]
) -> None:
    """Raise SettingError if means are asked for along dimensions of points: they have no cells."""
    for place in own:
        if question is not None and axes[place].name in question.mean:
            raise SettingError(
                f"Points have no cells along '{axes[place].name}' to take means over. Ask for a "
                "grid, or for means along dimensions that all points share."
            )


def _refuse_nowhere(axes: Sequence[Axis], outside: Outside) -> None:
    """Raise an error if a coordinate is not a finite number, or no place on the globe.

    It has no nearest one either. A longitude of -9999 must not become one of 81 degrees; latitudes
    beyond 90 degrees may stay missing with all others outside the training range.
    """
    for axis in axes:
        bad = axis.numbers[~np.isfinite(axis.numbers)]
        if bad.size:
            raise SettingError(
                f"A coordinate of '{axis.name}' is {bad[0]}. Expected a finite number."
            )
        if outside in ("nearest", "extrapolate") or not is_latitude(axis):
            refuse_places(axis)


def _refuse(
    model: Model,
    axes: Sequence[Axis],
    chosen: Sequence[str] | None,
    rules: Rules,
) -> None:
    """Raise SettingError if a coordinate that was asked for is outside the file's whole range."""
    question = rules.question
    spans = zip(axes, model.axes, model.ranges, model.coverage.axes, strict=True)
    for axis, own, known, whole in spans:
        if chosen is not None and axis.name not in chosen:
            continue
        if question is not None and axis.name in question.mean:
            _refuse_cells(axis, cells_outside(model, question, axis, land=rules.land == "model"))
            continue
        level = model.level_of(axis.name)
        beyond = outside(axis.numbers, known, level.kernel.period) & outside(
            axis.numbers, whole.numbers, None
        )
        if beyond.any():
            low, high = own.take([own.numbers.argmin(), own.numbers.argmax()]).texts
            if known is not own.numbers:
                low, high = own.at([known.min(), known.max()]).texts
            first = axis.take(np.flatnonzero(beyond)[:1]).texts[0]
            raise SettingError(
                f"{int(beyond.sum())} of {axis.size} coordinates of '{axis.name}' are outside "
                f"the training range {low} to {high}, the first {first}.",
                setting="outside" if not _is_linear(axis, question) else "outside mean derivative",
            )


def _is_linear(axis: Axis, question: Question | None) -> bool:
    """Return whether means or derivatives are asked for along an axis."""
    return question is not None and axis.name in (*question.mean, *question.derivative)


def _refuse_cells(axis: Axis, beyond: Mask) -> None:
    """Raise SettingError if a cell of a mean reaches beyond the cells of the data."""
    if beyond.any():
        first = axis.take(np.flatnonzero(beyond)[:1]).texts[0]
        raise SettingError(
            f"{int(beyond.sum())} of {axis.size} cells of '{axis.name}' reach beyond the cells of "
            f"the data, the first that of {first}.",
            setting="outside mean derivative",
        )


def _moved(
    model: Model, axes: Sequence[Axis], beyond: Sequence[Mask], rules: Rules
) -> tuple[Axis, ...]:
    """Return the axes at which the model is asked: inside the training range, as rules tell.

    Means and derivatives have no nearest one along their own dimensions.
    """
    question = rules.question
    if rules.outside == "extrapolate" or (question is not None and rules.outside != "nearest"):
        return tuple(axes)
    for axis, mask in zip(axes, beyond, strict=True):
        if _is_linear(axis, question) and mask.any():
            raise SettingError(
                f"Means over cells and derivatives along '{axis.name}' outside the training range "
                "are not those at the end of it. Choose missing or extrapolate instead of nearest."
            )
    return tuple(map(_move_inside, axes, model.ranges, beyond))


def _move_inside(axis: Axis, known: Array, beyond: Mask) -> Axis:
    """Return an axis with the numbers outside the training range moved to the end of it."""
    if not beyond.any():
        return axis
    low, high = known.min(), known.max()
    return replace(axis, numbers=np.where(beyond, np.clip(axis.numbers, low, high), axis.numbers))


def _along(mask: Mask, place: int, ndim: int) -> Mask:
    """Return a mask of one axis in a shape that broadcasts to a grid."""
    return mask.reshape([-1 if axis == place else 1 for axis in range(ndim)])
