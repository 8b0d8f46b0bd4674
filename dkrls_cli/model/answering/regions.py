"""Means over a region or a period: one number, or a series, with its standard error.

Along the dimensions of a region there is one functional each, the mean over its range; along the
others there are values, or derivatives. Land in a region is left out of the mean: cells of the data
that never had a value have no weight. Where cells are missing or observations have errors, the
standard error comes from draws of the errors of all cells
(:mod:`dkrls_cli.gaps.functionals.deviations`); so it does where the region has land.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask, Slices, blocks
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars.bars import Bars
from dkrls_cli.cascade.functionals.answers import answer_blocks
from dkrls_cli.cascade.functionals.functional import Functional, Means
from dkrls_cli.errors import SettingError
from dkrls_cli.gaps.bars import GapBars
from dkrls_cli.gaps.lasting.bars import LandBars
from dkrls_cli.gaps.noisy.bars import NoisyBars
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.cf import by_dimension, find_axis
from dkrls_cli.grid.derived import cell_numbers, cells_on
from dkrls_cli.grid.iso.dates import read_date, smallest_part
from dkrls_cli.grid.spec import parse_region
from dkrls_cli.model.answering.cellmeans import source_cells
from dkrls_cli.model.answering.coverage import Coverage
from dkrls_cli.model.answering.linear import LinearAnswers, complete_bars
from dkrls_cli.model.answering.questions import Question, refuse_impossible, whole_axis

if TYPE_CHECKING:
    from dkrls_cli.model.answering.answers import Query, Rules
    from dkrls_cli.model.model import Model

RegionLike: TypeAlias = "str | Sequence[str] | Mapping[str, Any]"
"""Ranges by dimension, ``{"lat": (20, 60)}`` or ``"lat=20:60,lon"``; all of one that has no range.
"""

MEMBERS = 64
"""Members of the ensemble whose spread is a standard error: it is known to 9 percent then."""

# Seed of members whose spread is a standard error: the same model has the same standard errors.
_SEED = 2019

# Numbers that are answered at once where a region has land: 64 MB.
_AT_ONCE = 2**23

# Means whose members are drawn at once: the errors along an axis are correlated, each with each.
_DRAWN = 1024


def read_region(model: Model, region: RegionLike) -> dict[str, Array]:
    """Return the cells (1, 2) of a region by dimension, as the user writes its numbers.

    Raises
    ------
    SettingError
        If a dimension is unknown or has labels, or a range has no width.
    """
    if isinstance(region, Mapping):
        given: dict[str, Any] = dict(region)
    else:
        texts = [region] if isinstance(region, str) else list(region)
        given = parse_region(texts, model.axes)
    found = by_dimension(given, model.axes, "model", " for a mean over a region")
    if not found:
        raise SettingError("A mean over which region? Name dimensions, with ranges or without.")
    return {dim: _range(model, model.axis_of(dim), ends) for dim, ends in found.items()}


def _range(model: Model, axis: Axis, ends: Any) -> Array:
    """Return the ends (1, 2) of a range of an axis."""
    if axis.labels is not None:
        raise SettingError(f"'{axis.name}' has text labels: there is no mean over a range of it.")
    if ends is None or ends is True:
        return _whole(model, axis)
    if not isinstance(ends, list | tuple | np.ndarray) or len(ends) != 2:
        raise SettingError(
            f"Invalid range {ends} of '{axis.name}'. Give its two ends, or None for all of it."
        )
    low, high = _span(model, axis, list(ends))
    if axis.turn is not None:
        high += axis.turn * math.ceil((low - high) / axis.turn) if high <= low else 0.0
    low, high = min(low, high), max(low, high)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise SettingError(f"The range {ends[0]} to {ends[1]} of '{axis.name}' has no width.")
    return np.array([[low, high]])


def _span(model: Model, axis: Axis, ends: list[Any]) -> tuple[float, float]:
    """Return the two ends of a range as numbers: those of months and years include all of them.

    What the data's first or last cell lacks of such a month or year is left out.
    """
    if axis.time is None or not any(map(_is_month, ends)):
        first, second = axis.at(ends).plain.tolist()
        return first, second
    spans = [
        axis.time.span(end) if _is_month(end) else tuple(axis.at([end, end]).plain.tolist())
        for end in ends
    ]
    low, high = min(begin for begin, _ in spans), max(end for _, end in spans)
    below, above = cell_numbers(axis, cells_on(axis, model.style))
    first, last = below.argmin(), above.argmax()
    if 0 < below[first] - low < above[first] - below[first]:
        low = float(below[first])
    if 0 < high - above[last] < above[last] - below[last]:
        high = float(above[last])
    return low, high


def _is_month(end: Any) -> bool:
    """Return whether a text names a month or a year, which last some time."""
    fields = read_date(end) if isinstance(end, str) else None
    return fields is not None and smallest_part(end) in ("month", "year")


def _whole(model: Model, axis: Axis) -> Array:
    """Return the range of all cells of the data along an axis; once round on a circle."""
    low, high = cell_numbers(axis, cells_on(axis, model.style))
    kernel, first = model.level_of(axis.name).kernel, low.min()
    if kernel.warp is not None:  # there is nothing below 0
        first = max(first, axis.numbers.min() / 2)
    last = high.max() if kernel.period is None else first + kernel.period
    return np.array([[first, last]])


def region_question(
    region: Mapping[str, Array], derivative: Sequence[str] = (), per_metre: bool = False
) -> Question:
    """Return the question that asks for means over a region."""
    return Question(tuple(region), tuple(derivative), per_metre, region, region=True)


def ask_region(
    model: Model,
    region: RegionLike,
    at: Mapping[str, Any],
    rules: Rules,
    derivative: str | Sequence[str] = (),
    per_metre: bool = False,
) -> Query:
    """Return the question for means over a region.

    Parameters
    ----------
    model
        The model.
    region
        Ranges by dimension.
    at
        Coordinates of the other dimensions.
    rules
        What happens outside the training range and on land.
    derivative, per_metre
        Dimensions by which to derive the means, and whether by metres.

    Raises
    ------
    SettingError
        If there is no such region, or a dimension is asked for in two ways.
    """
    from dkrls_cli.model.answering.answers import ask

    ranges = read_region(model, region)
    asked = by_dimension(at, model.axes, "model")
    both = [dim for dim in asked if dim in ranges]
    if both:
        raise SettingError(f"'{both[0]}' is a dimension of the region, and has coordinates.")
    derive = [derivative] if isinstance(derivative, str) else list(derivative)
    names = [find_axis(dim, model.axes, "model", " for a derivative").name for dim in derive]
    question = region_question(ranges, names, per_metre)
    refuse_impossible(model, question)
    asked = {**asked, **region_middle(ranges)}
    return ask(model, model.axes_at(asked), replace(rules, question=question), list(asked))


def region_middle(region: Mapping[str, Array]) -> dict[str, Array]:
    """Return the coordinates that stand for a region: the middle of every range."""
    return {dim: ends.mean(axis=1) for dim, ends in region.items()}


def region_answers(
    model: Model,
    linear: LinearAnswers,
    question: Question,
    axes: Sequence[Axis],
    land: Coverage | None,
) -> tuple[LinearAnswers, float]:
    """Return the answers of a region, land left out of them, and the share of it that is not land.

    `axes` are those of the answers, and `land` tells which cells stay missing.
    """
    cuts = _cut(model, linear.functionals, question)
    absent = np.zeros((1,) * len(axes), bool) if land is None else land.absent_on(_at(axes, cuts))
    areas = [cut.areas for cut in cuts]
    weights = reduce(np.multiply.outer, areas)
    sea = np.broadcast_to(~absent, weights.shape) * weights
    share = float(sea.sum() / weights.sum())
    names = {field: getattr(linear, field) for field in linear.__dataclass_fields__}
    return RegionAnswers(**names, cuts=tuple(cuts), absent=absent), share


@dataclass(frozen=True, eq=False)
class Cut:
    """One axis of a region: pieces, each within a cell of the data; or single questions.

    Attributes
    ----------
    asked
        Means over the pieces, or what is asked for along an axis that is not averaged.
    areas
        Areas of the pieces; 1 for single questions.
    nodes
        The cell of the data of every piece, or -1; None along an axis that is not averaged.
    coordinates
        Coordinates of the data along the axis.
    """

    asked: Functional
    areas: Array
    nodes: Indices | None
    coordinates: Array

    @property
    def middles(self) -> Array:
        """Middles of the pieces."""
        assert isinstance(self.asked, Means)
        return (self.asked.low + self.asked.high) / 2


def _cut(model: Model, asked: Sequence[Functional], question: Question) -> list[Cut]:
    """Return the axes of a region cut at the cells of the data."""
    found = []
    for place, each in enumerate(asked):
        axis = model.axes[place]
        if axis.name not in question.mean:
            found.append(Cut(each, np.ones(len(each)), None, axis.numbers))
            continue
        assert isinstance(each, Means)
        axis = whole_axis(model, place)
        source = source_cells(axis, model.style, model.cascade.levels[place].kernel.period)
        pieces = source.cut(each)
        areas = source.area(pieces.low, pieces.high)
        means = Means(pieces.low, pieces.high, each.latitude)
        found.append(Cut(means, areas, pieces.cell, axis.numbers))
    return found


def _at(axes: Sequence[Axis], cuts: Sequence[Cut]) -> list[Axis]:
    """Return the axes at the middles of the pieces of a region."""
    return [
        axis if cut.nodes is None else replace(axis, numbers=cut.middles, written=None)
        for axis, cut in zip(axes, cuts, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class RegionAnswers(LinearAnswers):
    """Means over a region, without its land.

    Attributes
    ----------
    cuts
        Every axis, cut at the cells of the data where it is averaged.
    absent
        Which pieces are land; sizes of 1 are repeated.
    """

    cuts: tuple[Cut, ...] = ()
    absent: Mask | None = None

    @property
    def has_land(self) -> bool:
        """Whether any piece of the region is land."""
        return self.absent is not None and bool(self.absent.any())

    def of_slice(self, places: Sequence[int], cascade: Cascade, bars: Bars) -> Self:
        """Return the means over the region in one slice of a grid whose slices are on their own."""
        found, absent = super().of_slice(places, cascade, bars), self.absent
        assert absent is not None
        slices = tuple(axis for axis in range(absent.ndim) if axis not in places)
        cuts = tuple(self.cuts[axis] for axis in places)
        return replace(found, cuts=cuts, absent=absent.squeeze(slices))

    def free(self) -> Array:
        """Return all means, bounds aside; NaN where a region is nothing but land."""
        if not self.has_land:
            return super().free()
        assert self.absent is not None
        sizes = [1 if cut.nodes is not None else len(cut.asked) for cut in self.cuts]
        pieces = math.prod(len(cut.asked) for cut in self.cuts if cut.nodes is not None)
        answer = answer_blocks(self.cascade, [cut.asked for cut in self.cuts], **self._how)
        found = np.empty(sizes)
        for part in blocks(sizes, max(1, _AT_ONCE // pieces)):
            here = tuple(
                slice(0, len(cut.asked)) if cut.nodes is not None else p
                for cut, p in zip(self.cuts, part, strict=True)
            )
            weights = self._weights(here)
            averaged = tuple(a for a, cut in enumerate(self.cuts) if cut.nodes is not None)
            total = weights.sum(axis=averaged, keepdims=True)
            with np.errstate(invalid="ignore"):
                found[part] = (answer(here) * weights).sum(axis=averaged, keepdims=True) / total
        return found * self._factor(tuple(slice(0, size) for size in sizes))

    def _weights(self, here: tuple[slice, ...]) -> Array:
        """Return the areas of pieces that are not land, of one block of answers."""
        areas = reduce(
            np.multiply.outer, [c.areas[p] for c, p in zip(self.cuts, here, strict=True)]
        )
        assert self.absent is not None
        every = slice(None)
        sizes = zip(here, self.absent.shape, strict=True)
        land = self.absent[tuple(p if size > 1 else every for p, size in sizes)]
        return np.where(np.broadcast_to(land, areas.shape), 0.0, areas)

    def blocks(self, cells: int, *, std: bool) -> Iterator[tuple[Slices, Array, Array | None]]:
        """Yield the means in C order in blocks of about `cells` cells, with slices and errors."""
        values, errors = self.values(), self.std() if std else None
        for part in blocks(self.shape, cells):
            yield part, values[part], None if errors is None else errors[part]

    def std(self) -> Array:
        """Return the standard errors of all means."""
        bars = self.bars()
        if not self.has_land:
            return super().std()
        if isinstance(bars, GapBars | NoisyBars):
            return self._bounded(self._std_at_sea(bars))
        found = np.empty(self.shape)
        pieces = math.prod(len(cut.asked) for cut in self.cuts if cut.nodes is not None)
        for part in blocks(self.shape, min(_DRAWN, max(1, _AT_ONCE // pieces))):
            found[part] = self._take(part)._spread_of_members()
        return self._bounded(found)

    def deviations(self, seed: int) -> Callable[[int], Array]:
        """Return a function that draws the deviation of member i from the means, bounds aside."""
        if not self.has_land:
            return super().deviations(seed)
        bars, factors = self.bars(), self._factors()
        if isinstance(bars, GapBars | NoisyBars):
            pieces, whole = self._pieces().with_gaps(bars), self.with_gaps(bars)
            at_sea = pieces.reduced_deviations(self._at_sea, whole, seed)
            return lambda member: at_sea(member) * factors
        if not isinstance(bars, LandBars):
            factors = factors * self._region_width(complete_bars(bars))
        draw = self._pieces().deviations(seed)
        return lambda member: self._at_sea(draw(member)) * factors

    def _pieces(self) -> LinearAnswers:
        """Return the answers of all pieces of the region, as a product grid of their own."""
        asked = tuple(cut.asked for cut in self.cuts)
        ones = [np.ones(len(each)) for each in asked]
        return LinearAnswers(
            self.cascade, asked, ones, self.smooth, None, self.bars, None, self.cells
        )

    def _at_sea(self, pieces: Array) -> Array:
        """Return the means of values of all pieces, without those of land."""
        weights = self._weights(tuple(slice(0, len(cut.asked)) for cut in self.cuts))
        averaged = tuple(a for a, cut in enumerate(self.cuts) if cut.nodes is not None)
        total = weights.sum(axis=averaged, keepdims=True)
        with np.errstate(invalid="ignore"):
            return np.asarray((pieces * weights).sum(axis=averaged, keepdims=True) / total)

    def _factors(self) -> Array:
        """Return the factors of all means."""
        return self._factor(tuple(slice(0, size) for size in self.shape))

    def _std_at_sea(self, bars: GapBars | NoisyBars) -> Array:
        """Return the standard errors where cells are missing, or observations have errors."""
        pieces, whole = self._pieces().with_gaps(bars), self.with_gaps(bars)
        variance = pieces.reduced_variance(self._at_sea, whole)
        return np.asarray(np.sqrt(variance) * np.abs(self._factors()))

    def _take(self, part: Slices) -> RegionAnswers:
        """Return some of the means."""
        assert self.absent is not None
        own = [
            p if cut.nodes is None else slice(None) for cut, p in zip(self.cuts, part, strict=True)
        ]
        cuts = tuple(
            replace(cut, asked=cut.asked[p], areas=cut.areas[p])
            for cut, p in zip(self.cuts, own, strict=True)
        )
        sizes = zip(own, self.absent.shape, strict=True)
        absent = self.absent[tuple(p if size > 1 else slice(None) for p, size in sizes)]
        functionals = tuple(each[p] for each, p in zip(self.functionals, part, strict=True))
        factors = [each[p] for each, p in zip(self.factors, part, strict=True)]
        return replace(self, functionals=functionals, factors=factors, cuts=cuts, absent=absent)

    def _spread_of_members(self) -> Array:
        """Return the spread of the means of members, drawn for every piece of the region."""
        draw, squares = self.deviations(_SEED), np.zeros(self.shape)
        for member in range(MEMBERS):
            squares += draw(member) ** 2
        return np.sqrt(squares / MEMBERS)
