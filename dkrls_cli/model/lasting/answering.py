"""Answers of grids beyond memory with land: every slice is completed, and answered on its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices, Mask, Slices, Tensor
from dkrls_cli.cascade.errorbars.bars import Bars, variance_on_grid
from dkrls_cli.cascade.errorbars.joint import JointBars
from dkrls_cli.cascade.functionals.answers import joint_shares
from dkrls_cli.cascade.functionals.functional import Values
from dkrls_cli.cascade.streaming.forms import AxisRows, Taken
from dkrls_cli.cascade.tensors import apply
from dkrls_cli.errors import SettingError
from dkrls_cli.gaps.bars import GapBars
from dkrls_cli.gaps.lasting.bars import LandBars, cut_slice
from dkrls_cli.model.answering.answers import Query
from dkrls_cli.model.answering.ensembles import refuse_unknown_errors
from dkrls_cli.model.answering.linear import LinearAnswers
from dkrls_cli.model.answering.regions import RegionAnswers
from dkrls_cli.model.lasting.choosing import LandSurvey
from dkrls_cli.model.lasting.slices import LandSlices
from dkrls_cli.model.streaming.answering import BlockAnswers, stand_in

Linear = TypeVar("Linear", bound=LinearAnswers)


@dataclass(frozen=True)
class AllSamples:
    """Rows of an axis that are answered together with those of other axes.

    Attributes
    ----------
    size, samples
        Number of rows, and of samples.
    """

    size: int
    samples: int

    @property
    def operations(self) -> int:
        """Products of two numbers for every fibre, if the rows were a matrix."""
        return self.size * self.samples

    def window(self, part: slice) -> slice:
        """Return all samples."""
        return slice(0, self.samples)

    def apply(self, tensor: Tensor, axis: int, part: slice) -> Tensor:
        """Raise TypeError: all axes of a slice are answered together, none on its own."""
        raise TypeError("Rows of a slice with land are not applied along one axis alone.")


@dataclass(frozen=True, eq=False)
class LandAnswers(BlockAnswers):
    """Answers to a query of a grid with land, block by block.

    Attributes
    ----------
    land
        Completes the slices.
    """

    land: LandSlices = field(kw_only=True)

    @classmethod
    def of_land(
        cls, query: Query, found: LandSurvey, *, std: bool, inexact: bool = False
    ) -> LandAnswers:
        """Return the answers to a query of the stand-in of a grid with land.

        Raises
        ------
        SettingError
            If something other than values along the slices of the data is asked for, or errors of
            means and derivatives.
        """
        query = replace(query, model=stand_in(query.model))
        _refuse_question(query, std, found.slices)
        cascade = query.model.cascade
        rows: list[AxisRows] = []
        for axis, asked in enumerate(query.model.queries(query.asked)):
            if axis not in found.slices:
                rows.append(AllSamples(asked.size, cascade.shape[axis]))
                continue
            nodes = cascade.find_nodes(axis, asked, False)
            if (nodes < 0).any():
                raise SettingError(
                    "Beyond memory, a grid with missing cells is answered at the coordinates of "
                    f"'{query.model.axes[axis].name}' that it has. Ask there, or fill it first, "
                    "land as well."
                )
            rows.append(Taken(nodes, cascade.shape[axis]))
        land = LandSlices.of(found, query.model, inexact=inexact)
        if query.linear is None:
            return cls(query, tuple(rows), None, cascade.mean, std, False, land=land)
        bars = partial(getattr, query.model, "bars")  # of the stand-in, which can be sent
        linear = replace(query.linear, cascade=cascade, bars=bars)
        scales = tuple(np.asarray(factor) for factor in linear.factors)
        offset = cascade.mean * math.prod(each.of_one for each in linear.functionals)
        query = replace(query, linear=linear)
        return cls(query, tuple(rows), scales, offset, std, False, land=land)

    @property
    def is_separable(self) -> bool:
        """False: all axes of a slice are answered together."""
        return False

    @property
    def needs_factors(self) -> bool:
        """True: slices are completed with them."""
        return True

    def passes(self, axis: int) -> bool:
        """Return whether an axis passes through: those of slices do."""
        return axis in self.land.slices

    def working_bytes(self, cells: int) -> int:
        """Return the bytes that completing so many cells takes besides."""
        return self.land.working_bytes(cells)

    def answer(self, values: NDArray[Any], part: Slices) -> tuple[Tensor, Array | None]:
        """Return the answers of a block, and their standard errors, from its box of the data."""
        seen: Any = self._check(values, self.box(part))
        for axis in self.land.slices:
            seen = self.rows[axis].apply(seen, axis, part[axis])
        return self._answer_taken(seen, part)

    def answer_taken(
        self, values: NDArray[Any], where: Sequence[Indices], part: Slices
    ) -> tuple[Tensor, Array | None]:
        """Return the answers of a block from the slices that it asks for, in their order.

        `where` tells the samples of the values along every axis.
        """
        return self._answer_taken(self._check(values, where), part)

    def _check(self, values: NDArray[Any], where: Sequence[slice | Indices]) -> NDArray[Any]:
        """Return values, with NaN where cells are missing beside land, or raise InputError."""
        missing = self.land.refuse_gaps(values, where)
        return np.where(missing, np.nan, values) if self.land.most else values

    def _answer_taken(self, seen: Any, part: Slices) -> tuple[Tensor, Array | None]:
        land = self.land
        order = [*land.slices, *land.places]
        turned = seen.transpose(order)
        outer = turned.shape[: len(land.slices)]
        flat = np.array(turned.reshape(-1, *land.missing.shape), np.float64)
        gone = np.isnan(flat) if land.most else np.broadcast_to(land.missing, flat.shape)
        centred = land.complete(flat)

        def put_back(slices: Array) -> Array:
            return slices.reshape(*outer, *slices.shape[1:]).transpose(np.argsort(order))

        told = self.std and (land.most or self._region is not None)
        variance = put_back(self._variances(centred, gone, part)) if told else None
        return self.finish(put_back(self._answer_slices(centred, part)), part, variance)

    @property
    def _region(self) -> RegionAnswers | None:
        """Means over a region, if these are asked for."""
        linear = self.query.linear
        return linear if isinstance(linear, RegionAnswers) else None

    def _variances(self, centred: Array, missing: Mask, part: Slices) -> Array:
        """Return the variances of answers at the cells of a block (n, ...); NaN without data."""
        own = tuple(part[axis] for axis in self.land.places)
        found = np.full((len(centred), *self._sizes(part)), np.nan)
        for number, bars in self.land.error_bars(centred, missing):
            found[number] = self._variance_of(centred[number], bars, own)
        return found

    def _variance_of(self, centred: Array, bars: GapBars, own: Slices) -> Array:
        """Return the variances of answers in a slice, at some cells of it."""
        if self._region is not None:
            found: Array = self._slice_of(self._region, centred, bars).std()[own] ** 2
            return found
        if self.query.linear is not None:
            return self._slice_of(self.query.linear, centred, bars).variance_blocks()(own)
        model, smooth = self.query.model, self.query.rules.smooth
        assert isinstance(model.bars, LandBars)
        asked = [query[here] for query, here in zip(self._queries, own, strict=True)]
        return variance_on_grid(bars, model.bars.slice_of(model.cascade), asked, smooth=smooth)

    def _slice_of(self, linear: Linear, centred: Array, bars: Bars) -> Linear:
        """Return what is asked of a completed slice, as if it were a grid in memory."""
        cascade, places, solver = self.query.model.cascade, self.land.places, self.land.solver
        alone = cut_slice(cascade, places, centred + cascade.mean)
        return linear.of_slice(places, replace(alone, factors=solver.spectra), bars)

    def _sizes(self, part: Slices) -> list[int]:
        """Return the sizes of a block of answers along the axes of a slice."""
        shape = self.query.shape
        return [len(range(*part[axis].indices(shape[axis]))) for axis in self.land.places]

    def _answer_slices(self, centred: Array, part: Slices) -> Array:
        """Return answers less the mean at the cells of a block, from completed slices (n, ...)."""
        if self._region is not None:
            return self._answer_region(self._region, centred, part)
        solver, places = self.land.solver, self.land.places
        coefficients = solver.coefficients(centred)
        if self.query.linear is not None:
            return self._answer_linear(self.query.linear, centred, coefficients, part)
        asked = [own[part[axis]] for axis, own in zip(places, self._queries, strict=True)]
        nodes = [own[part[axis]] for axis, own in zip(places, self._nodes, strict=True)]
        rows = [solver.rows(axis, query) for axis, query in enumerate(asked)]
        result = apply(coefficients, [None, *rows])
        known = [np.flatnonzero(own >= 0) for own in nodes]
        taken = [own[some] for own, some in zip(nodes, known, strict=True)]
        every = np.arange(len(centred))
        result[np.ix_(every, *known)] = centred[np.ix_(every, *taken)]
        return result

    def _answer_linear(
        self, linear: LinearAnswers, centred: Array, coefficients: Array, part: Slices
    ) -> Array:
        """Return means or derivatives at the cells of a block, without what the mean adds.

        As in memory under a joint ridge, they are those of the smooth field, with a share of what
        the cells have beside it.
        """
        solver, places = self.land.solver, self.land.places
        asked = [linear.functionals[axis][part[axis]] for axis in places]
        rows = [solver.functional_rows(axis, each) for axis, each in enumerate(asked)]
        result = apply(coefficients, [None, *rows])
        nothing = [Values(own[:1]) for own in linear.cascade.coordinates]  # along the slices
        every = [
            each[part[axis]] if axis in places else nothing[axis]
            for axis, each in enumerate(linear.functionals)
        ]
        shares = None if linear.smooth else joint_shares(linear.cascade, every, linear.cells)
        if shares is not None:
            nodes = [solver.rows(axis, own) for axis, own in enumerate(solver.coordinates)]
            residual = centred - apply(coefficients, [None, *nodes])
            result = result + apply(residual, [None, *(shares[axis] for axis in places)])
        return result

    def _answer_region(self, region: RegionAnswers, centred: Array, part: Slices) -> Array:
        """Return means over a region at the cells of a block, without what the mean adds."""
        own = tuple(part[axis] for axis in self.land.places)
        bars, found = (
            JointBars(math.nan, math.nan),
            np.full((len(centred), *self._sizes(part)), np.nan),
        )
        for number, one in enumerate(centred):
            if not np.isnan(one).any():
                found[number] = self._slice_of(region, one, bars).free()[own] - self.offset
        return found

    def ready(self) -> LandAnswers:
        """Make the solver, before the program is measured and several threads need it."""
        self.land.ready()
        return self

    @property
    def _queries(self) -> list[Array]:
        """Numbers that are asked for along the axes of a slice."""
        every = self.query.model.queries(self.query.asked)
        return [every[axis] for axis in self.land.places]

    @property
    def _nodes(self) -> list[Indices]:
        """Samples that are asked for along the axes of a slice, -1 between them."""
        cascade, smooth = self.query.model.cascade, self.query.rules.smooth
        pairs = zip(self.land.places, self._queries, strict=True)
        return [cascade.find_nodes(axis, query, smooth) for axis, query in pairs]


def _refuse_question(query: Query, std: bool, slices: Sequence[int]) -> None:
    """Raise SettingError for what is not answered."""
    if std:
        refuse_unknown_errors(query.model)
    linear = query.linear
    if linear is None:
        return
    for axis in slices:
        if not isinstance(linear.functionals[axis], Values):
            raise SettingError(
                f"Beyond memory, a grid with missing cells has no means and no derivatives along "
                f"'{query.model.axes[axis].name}', whose slices are answered each on its own. Fill "
                "it first, land as well."
            )
