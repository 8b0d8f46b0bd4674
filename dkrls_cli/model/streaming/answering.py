"""Answers from parts of a grid beyond memory.

The *stand-in* of such a grid is a model of all of it that holds no data. What it is asked is made
into rows once (:mod:`dkrls_cli.cascade.streaming.rows`). Every *block* of the answers then needs a
*box* of the data: the same samples along axes that pass through, all samples along the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices, Slices, Tensor
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.functionals.answers import all_rows
from dkrls_cli.cascade.streaming.forms import AxisRows, Taken
from dkrls_cli.cascade.streaming.rows import cut_rows, negligible_in
from dkrls_cli.cascade.streaming.steps import plan_steps
from dkrls_cli.errors import InputError, ScatteredGapsError, SettingError
from dkrls_cli.files.source import UNWRITTEN
from dkrls_cli.model.answering.answers import Query
from dkrls_cli.model.answering.regions import RegionAnswers
from dkrls_cli.model.model import Model

_IN_CACHE = 2**23
"""Bytes of a box that are answered at once, where they can be told from others: beside what is made
of them they stay in the cache of a processor. Smaller ones take more calls than they save."""


class StandIn(Model):
    """A model without its data."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what is there: there is nothing to be stored in a file."""
        return StandIn, tuple(getattr(self, each.name) for each in fields(self))


def stand_in(model: Model) -> Model:
    """Return a model without its data: one number stands for all of it.

    It tells everything of a model that does not need values, and takes no memory, whatever the
    size of the grid. It can be sent to other processes.
    """
    known = {each.name: getattr(model, each.name) for each in fields(model)}
    return StandIn(**{**known, "cascade": without_data(model.cascade), "store": None})


def without_data(cascade: Cascade) -> Cascade:
    """Return a cascade in samples without its data."""
    nothing = np.zeros((1,) * cascade.ndim)
    return replace(cascade, core=nothing, frames=(None,) * cascade.ndim)


@dataclass(frozen=True, eq=False)
class BlockAnswers:
    """Answers to a query, block by block, from boxes of the data.

    Attributes
    ----------
    query
        What a stand-in is asked.
    rows
        The rows of every axis of the cascade.
    scales
        A factor of the answers for every row of every axis.
    offset
        What is added to the answers: the mean of the model, as far as the question has it.
    std
        Whether standard errors are asked for.
    single
        Whether data and answers are in single precision.
    bounded
        Whether answers are kept within the bounds of the model.
    """

    query: Query
    rows: tuple[AxisRows, ...]
    scales: tuple[Array, ...] | None
    offset: float
    std: bool
    single: bool
    bounded: bool = True

    @classmethod
    def of(cls, query: Query, *, std: bool, single: bool) -> BlockAnswers:
        """Return the answers to a query of a stand-in.

        Data in single precision is answered in single precision, but for derivatives, which are
        differences of almost equal numbers.

        Raises
        ------
        SettingError
            If the answers do not go axis by axis: under a joint ridge, for means over regions with
            cells that are left out, or for their standard errors.
        """
        query = replace(query, model=stand_in(query.model))
        cascade, linear = query.model.cascade, query.linear
        asked = query.rules.question
        if cascade.joint_ridge is not None:
            raise SettingError(
                "A joint ridge takes the whole grid at once, which is beyond memory. Give a ridge "
                "per level, or take all of it into memory.",
                setting="noise",
            )
        if isinstance(linear, RegionAnswers):
            _refuse_region(linear, std)
        single = single and not (asked is not None and asked.derivative)
        if linear is None:
            queries = query.model.queries(query.asked)
            found: Sequence[Any] = [
                cascade.answer_rows(axis, q, query.rules.smooth) for axis, q in enumerate(queries)
            ]
            scales, share = None, 1.0
        else:
            bars = partial(getattr, query.model, "bars")  # of the stand-in, which can be sent
            linear = replace(linear, cascade=without_data(linear.cascade), bars=bars)
            query = replace(query, linear=linear)
            found = all_rows(cascade, linear.functionals, linear.smooth, linear.cells)
            scales = tuple(np.asarray(factor) for factor in linear.factors)
            share = math.prod(each.of_one for each in linear.functionals)
        rows = tuple(
            cut_rows(
                cascade,
                axis,
                row,
                negligible_in(cascade, axis, single=single),
                noisy=not single,
            )
            for axis, row in enumerate(found)
        )
        return cls(query, rows, scales, cascade.mean * share, std, single)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of all answers."""
        return self.query.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers that rows are applied to."""
        return np.dtype(np.float32 if self.single else np.float64)

    @property
    def samples(self) -> tuple[int, ...]:
        """Sizes of the grid of the data."""
        return self.query.model.shape

    @property
    def is_separable(self) -> bool:
        """Whether one axis may be answered before the others."""
        return True

    @property
    def needs_factors(self) -> bool:
        """Whether blocks need the factors of the levels, beside the rows that were made of them."""
        return self.std

    def working_bytes(self, cells: int) -> int:
        """Return the bytes that a box of so many cells takes besides values and answers."""
        return 0

    def passes(self, axis: int) -> bool:
        """Return whether an axis passes through: each answer needs one sample along it."""
        poles = self.query.model.poles
        in_rows_of_poles = poles is not None and axis in (poles.latitude, poles.longitude)
        return isinstance(self.rows[axis], Taken) and not in_rows_of_poles

    def box(self, part: Slices) -> Slices:
        """Return the samples of the data that a block needs."""
        return tuple(
            self.rows[axis].window(here) if self.passes(axis) else slice(0, size)
            for axis, (here, size) in enumerate(zip(part, self.samples, strict=True))
        )

    def centre(
        self, values: NDArray[Any], where: Sequence[slice | Indices], *, spent: bool = False
    ) -> Tensor:
        """Return the data of a box less the mean of the model, with rows across the poles.

        `where` tells the samples of the box along every axis, `spent` that the values are needed no
        more, and their memory may be used.

        Raises
        ------
        InputError
            If a cell is missing, or lies outside the bounds of the answers.
        """
        return centre_box(values, where, self.query.model, self.dtype, spent=spent)

    def apply(self, tensor: Tensor, parts: Slices, axes: Sequence[int]) -> Tensor:
        """Return the rows of some axes applied to a box, in the order that costs least.

        A box with rows across the poles has all latitudes, also where these pass through.
        """
        result = tensor
        for step in plan_steps(self.rows, tensor.shape, parts, axes):
            rows, axis = step.rows, step.axis
            if isinstance(rows, Taken) and not self.passes(axis):
                result = result.take(rows.indices[step.part], axis)
            else:
                result = rows.apply(result, axis, step.part)
        return result

    def finish(
        self, tensor: Tensor, part: Slices, variance: Array | None = None
    ) -> tuple[Tensor, Array | None]:
        """Return the answers of a block and their standard errors, with NaN where there is none.

        The errors have a variance that the data tells, or that of the model.
        """
        free: Tensor = tensor + tensor.dtype.type(self.offset)
        if self.scales is not None:
            free = self._scale(free, part)
        bounds = self.query.model.bounds if self.bounded and not self._is_derivative else None
        values = free if bounds is None else bounds.clip(np.asarray(free, np.float64))
        errors = None
        if self.std:
            errors = np.sqrt(self._variance(part) if variance is None else variance)
            if self.scales is not None:
                errors = np.abs(self._scale(errors, part))
            if bounds is not None:
                errors = bounds.spread(np.asarray(free, np.float64), errors)
            errors = self.query.blank(errors, part)
        return self.query.blank(values, part), errors  # type: ignore[arg-type]  # of any precision

    def answer(self, values: NDArray[Any], part: Slices) -> tuple[Tensor, Array | None]:
        """Return the answers of a block, and their standard errors, from its box of the data.

        The memory of the values is used for what is made of them.
        """
        box, pieces = self.box(part), self._pieces(part, values.nbytes)
        windows = [self.box(piece)[0] for piece in pieces]
        apart = all(one.stop <= after.start for one, after in pairwise(windows))
        found = []
        for piece, window in zip(pieces, windows, strict=True):
            own = (window, *box[1:])
            first = slice(window.start - box[0].start, window.stop - box[0].start)
            centred = self.centre(values[first], own, spent=apart)
            found.append(self.finish(self.apply(centred, piece, range(len(part))), piece))
        if len(found) == 1:
            return found[0]
        answers, errors = zip(*found, strict=True)
        return np.concatenate(answers), np.concatenate(errors) if self.std else None

    def _pieces(self, part: Slices, size: int) -> list[Slices]:
        """Return the pieces along the first axis in which a block with a box of a size is answered.

        What is made of a small piece stays in the cache of a processor from step to step.
        """
        start, stop, _ = part[0].indices(self.rows[0].size)
        step = -(-(stop - start) * _IN_CACHE // size) if self.passes(0) else stop - start
        starts = range(start, stop, max(1, step))
        return [(slice(one, min(one + step, stop)), *part[1:]) for one in starts]

    @property
    def _is_derivative(self) -> bool:
        asked = self.query.rules.question
        return asked is not None and bool(asked.derivative)

    def _scale(self, values: Any, part: Slices) -> Any:
        """Return values times the factors of their rows."""
        assert self.scales is not None
        for axis, (scale, here) in enumerate(zip(self.scales, part, strict=True)):
            some = scale[here]
            if (some != 1.0).any():
                values = values * some.reshape(-1, *[1] * (len(part) - axis - 1))
        return values

    @cached_property
    def _variance(self) -> Callable[[Slices], Array]:
        """Function that computes the variance of a block."""
        query, model = self.query, self.query.model
        if query.linear is not None:
            return query.linear.variance_blocks()
        queries = model.queries(query.asked)
        return model.bars.variance_blocks(model.cascade, queries, smooth=query.rules.smooth)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is sent to other processes.

        Not the function, which each makes for itself, nor factors of levels that are not needed:
        two levels of 720 coordinates have 8 MB.
        """
        state = {key: value for key, value in self.__dict__.items() if key != "_variance"}
        return state if self.needs_factors else {**state, "query": _without_factors(self.query)}


def _without_factors(query: Query) -> Query:
    """Return a query of a model whose factors are computed again if they are needed."""
    model = query.model
    cascade = replace(model.cascade, factors=(None,) * model.cascade.ndim)
    return replace(query, model=replace(model, cascade=cascade))


def _refuse_region(linear: RegionAnswers, std: bool) -> None:
    """Raise SettingError if means over a region do not go axis by axis, or their errors do not."""
    if linear.has_land:
        raise SettingError(
            "Means over a region of which cells are left out take the whole grid at once, which is "
            "beyond memory. Take all cells of the region, or all of the grid into memory."
        )
    if std:
        raise SettingError(
            "Standard errors of means over regions need other means of the same data, which takes "
            "passes of their own. Fit a model that refers to the data, and ask it."
        )


def centre_box(
    values: NDArray[Any],
    where: Sequence[slice | Indices],
    model: Model,
    dtype: np.dtype[Any],
    *,
    spent: bool = False,
) -> Tensor:
    """Return the data of a box less the mean of a model, with rows across the poles.

    Parameters
    ----------
    values, where
        The data, and its samples along every axis.
    model
        The model.
    dtype
        Type of the result.
    spent
        Whether the values are needed no more, so that the result may take their memory.

    Raises
    ------
    InputError
        If a cell is missing, or lies outside the bounds of the answers.
    """
    refuse_missing(values, where, model)
    refuse_beyond(values, model)
    poles, mean = model.poles, model.cascade.mean
    if poles is None:
        room = values if spent and values.dtype == dtype and values.flags.writeable else None
        centred: Tensor = np.subtract(values, mean, dtype=dtype, out=room)
        return centred
    before, after = poles.copied(values)
    shape = list(values.shape)
    shape[poles.latitude] += poles.rows
    centred = np.empty(shape, dtype)
    start = 0
    for part in (before, values, after):
        stop = start + part.shape[poles.latitude]
        here = centred[(slice(None),) * poles.latitude + (slice(start, stop),)]
        np.subtract(part, mean, out=here, dtype=dtype)
        start = stop
    return centred


def refuse_missing(values: NDArray[Any], where: Sequence[slice | Indices], model: Model) -> None:
    """Raise InputError if a cell of a box is missing; the message names the first one.

    The sum of squares is one quick pass, and tells of a missing cell, or that there may be one.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        flat = values.reshape(-1)
        if float(np.dot(flat, flat)) < UNWRITTEN**2:  # not so if one is NaN
            return
        if values.min() > -UNWRITTEN and values.max() < UNWRITTEN:
            return
    gone = np.argwhere(~(np.abs(values) < UNWRITTEN))[0]
    places = [
        int(here.start + place if isinstance(here, slice) else here[place])
        for here, place in zip(where, gone, strict=True)
    ]
    cell = ", ".join(
        f"{axis.name} {axis.take(np.array([place])).texts[0]}"
        for axis, place in zip(model.axes, places, strict=True)
    )
    raise ScatteredGapsError(
        f"'{model.name}' has missing cells, the first at {cell}. Beyond memory, grids are taken "
        "whole: fill it first, land as well, or take all of it into memory.",
        setting="max_memory",
    )


def refuse_beyond(values: NDArray[Any], model: Model) -> None:
    """Raise InputError if values lie outside the bounds that the part of the data has told."""
    bounds = model.bounds
    if bounds is None or (values.min() >= bounds.low and values.max() <= bounds.high):
        return
    raise InputError(
        f"'{model.name}' has values from {values.min():g} to {values.max():g}, and answers are "
        f"bounded by {bounds.low:g} and {bounds.high:g}, which the part of the data on which "
        "settings were chosen keeps to. Give bounds that hold, or none.",
        setting="bounds",
    )
