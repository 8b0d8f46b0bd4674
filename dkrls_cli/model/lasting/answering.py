"""Answers of grids beyond memory with land: every slice is completed, and answered on its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices, Mask, Slices, Tensor
from dkrls_cli.cascade.streaming.rows import AxisRows, Taken
from dkrls_cli.cascade.tensors import apply
from dkrls_cli.errors import ConvergenceError, SettingError
from dkrls_cli.files.source import UNWRITTEN
from dkrls_cli.gaps.lasting.completion import MaskedSlices
from dkrls_cli.model.answering.answers import Query
from dkrls_cli.model.lasting.choosing import LandSurvey, scattered_gaps
from dkrls_cli.model.streaming.answering import BlockAnswers, refuse_beyond, stand_in

_CELL = 8 * 10
"""Bytes in use for each cell of slices that are completed: ten arrays of float64."""


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
    missing
        Missing cells of every slice, in the shape of a slice.
    slices
        Places of the axes whose slices are on their own.
    tolerance
        Largest change of a missing cell at the end of a solve, as a share of the spread.
    inexact
        Whether to take missing cells that could not be solved for exactly.
    """

    missing: Mask = field(kw_only=True)
    slices: tuple[int, ...] = field(kw_only=True)
    tolerance: float = field(kw_only=True)
    inexact: bool = field(kw_only=True)

    @classmethod
    def of_land(
        cls, query: Query, found: LandSurvey, *, std: bool, inexact: bool = False
    ) -> LandAnswers:
        """Return the answers to a query of the stand-in of a grid with land.

        Raises
        ------
        SettingError
            If something other than values at the slices of the data is asked for.
        """
        query = replace(query, model=stand_in(query.model))
        _refuse_question(query, std)
        cascade = query.model.cascade
        rows: list[AxisRows] = []
        for axis, asked in enumerate(query.model.queries(query.asked)):
            if axis not in found.slices:
                rows.append(AllSamples(asked.size, cascade.shape[axis]))
                continue
            nodes = cascade.find_nodes(axis, asked, False)
            if (nodes < 0).any():
                raise SettingError(
                    f"Beyond memory, a grid with missing cells is answered at the coordinates of "
                    f"'{query.model.axes[axis].name}' that it has. Fill it first, land as well, to "
                    "ask between them."
                )
            rows.append(Taken(nodes, cascade.shape[axis]))
        shape = [1 if a in found.slices else size for a, size in enumerate(query.model.shape)]
        missing = np.broadcast_to(found.missing, shape)
        own = tuple(size for a, size in enumerate(shape) if a not in found.slices)
        return cls(
            query,
            tuple(rows),
            None,
            cascade.mean,
            False,
            False,
            missing=missing.reshape(own),
            slices=found.slices,
            tolerance=found.tolerance,
            inexact=inexact,
        )

    @property
    def is_separable(self) -> bool:
        """False: all axes of a slice are answered together."""
        return False

    def passes(self, axis: int) -> bool:
        """Return whether an axis passes through: those of slices do."""
        return axis in self.slices

    def working_bytes(self, cells: int) -> int:
        """Return the bytes that completing so many cells takes besides."""
        return _CELL * cells

    def answer(self, values: NDArray[Any], part: Slices) -> tuple[Tensor, Array | None]:
        """Return the answers of a block from its box of the data; there are no standard errors."""
        box = self.box(part)
        self._refuse_gaps(values, box)
        seen: Any = values
        for axis in self.slices:
            seen = self.rows[axis].apply(seen, axis, part[axis])
        order = [*self.slices, *self._places]
        turned = seen.transpose(order)
        outer = turned.shape[: len(self.slices)]
        flat = np.array(turned.reshape(-1, *self.missing.shape), np.float64)
        answers = self._answer_slices(flat, part)
        back = answers.reshape(*outer, *answers.shape[1:]).transpose(np.argsort(order))
        return self.finish(back, part)

    @property
    def _places(self) -> list[int]:
        """Axes of one slice."""
        return [axis for axis in range(len(self.rows)) if axis not in self.slices]

    def _answer_slices(self, values: Array, part: Slices) -> Array:
        """Return answers less the mean at the cells of a block, from slices (n, ...)."""
        mean, solver = self.query.model.cascade.mean, self.solver
        done = solver.complete(values, mean, tolerance=self.tolerance)
        if done.change > self.tolerance and not self.inexact:
            raise ConvergenceError(
                f"Missing cells are solved for to {done.change:.2g} of the spread of the data "
                f"only, after {done.iterations} steps. Give a larger ridge or a shorter sigma, or "
                "accept inexact answers.",
                setting="accept_inexact",
            )
        centred = done.values - mean
        coefficients = solver.coefficients(centred)
        asked = [own[part[axis]] for axis, own in zip(self._places, self._queries, strict=True)]
        nodes = [own[part[axis]] for axis, own in zip(self._places, self._nodes, strict=True)]
        rows = [solver.rows(axis, query) for axis, query in enumerate(asked)]
        result = apply(coefficients, [None, *rows])
        known = [np.flatnonzero(own >= 0) for own in nodes]
        taken = [own[some] for own, some in zip(nodes, known, strict=True)]
        every = np.arange(len(values))
        result[np.ix_(every, *known)] = centred[np.ix_(every, *taken)]
        return result

    @property
    def solver(self) -> MaskedSlices:
        """The solver that completes the slices; it is made once in every process."""
        known = self.__dict__.get("_solver")
        if known is None:
            cascade = self.query.model.cascade
            assert cascade.joint_ridge is not None
            known = MaskedSlices.build(
                self.missing,
                [cascade.coordinates[axis] for axis in self._places],
                [cascade.levels[axis].kernel for axis in self._places],
                cascade.joint_ridge,
            )
            self.__dict__["_solver"] = known
        return known

    def ready(self) -> LandAnswers:
        """Make the solver, before the program is measured and several threads need it."""
        _ = self.solver
        return self

    @property
    def _queries(self) -> list[Array]:
        """Numbers that are asked for along the axes of a slice."""
        every = self.query.model.queries(self.query.asked)
        return [every[axis] for axis in self._places]

    @property
    def _nodes(self) -> list[Indices]:
        """Samples that are asked for along the axes of a slice, -1 between them."""
        cascade, smooth = self.query.model.cascade, self.query.rules.smooth
        pairs = zip(self._places, self._queries, strict=True)
        return [cascade.find_nodes(axis, query, smooth) for axis, query in pairs]

    def _refuse_gaps(self, values: NDArray[Any], box: Sequence[slice]) -> None:
        """Raise InputError if other cells are missing than at the slice that was looked at."""
        model = self.query.model
        with np.errstate(invalid="ignore"):
            gone = ~(np.abs(values) < UNWRITTEN)
        shape = [1 if a in self.slices else size for a, size in enumerate(values.shape)]
        differs = gone != self.missing.reshape(shape)
        if differs.any():
            place = np.argwhere(differs)[0]
            texts = [
                f"{axis.name} {axis.take(np.array([here.start + int(i)])).texts[0]}"
                for axis, here, i in zip(model.axes, box, place, strict=True)
            ]
            names = " and ".join(model.axes[axis].name for axis in self.slices)
            raise scattered_gaps(model.name, names, f"at {', '.join(texts)}")
        if model.bounds is not None:
            refuse_beyond(values[~gone], model)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is sent to other processes: not the solver, which each makes for itself."""
        return {key: value for key, value in self.__dict__.items() if key != "_solver"}


def _refuse_question(query: Query, std: bool) -> None:
    """Raise SettingError for what is not answered."""
    if std:
        raise SettingError(
            "Standard errors of a grid with missing cells need the whole grid in memory. Leave "
            "them out, or fill the grid first, land as well."
        )
    if query.linear is not None:
        raise SettingError(
            "Means over cells and derivatives of a grid with missing cells need the whole grid in "
            "memory. Ask for values, or fill the grid first, land as well."
        )
