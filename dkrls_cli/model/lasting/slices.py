"""Slices of a grid with land, completed part by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.errors import ConvergenceError
from dkrls_cli.files.source import UNWRITTEN
from dkrls_cli.gaps.lasting.completion import MaskedSlices
from dkrls_cli.model.lasting.choosing import LandSurvey, scattered_gaps
from dkrls_cli.model.model import Model
from dkrls_cli.model.streaming.answering import refuse_beyond, stand_in

COMPLETED = 8 * 10
"""Bytes in use for each cell of slices that are completed: ten arrays of float64."""


@dataclass(frozen=True, eq=False)
class LandSlices:
    """Completes the slices of a grid whose missing cells last.

    Attributes
    ----------
    model
        Stand-in of the grid.
    missing
        Missing cells of every slice, in the shape of a slice.
    slices
        Places of the axes whose slices are on their own.
    tolerance
        Largest change of a missing cell at the end of a solve, as a share of the spread.
    inexact
        Whether to take missing cells that could not be solved for exactly.
    """

    model: Model
    missing: Mask
    slices: tuple[int, ...]
    tolerance: float
    inexact: bool = False

    @classmethod
    def of(cls, found: LandSurvey, model: Model, *, inexact: bool = False) -> LandSlices:
        """Return the slices of a grid whose settings are known; `model` is its stand-in."""
        shape = [1 if a in found.slices else size for a, size in enumerate(model.shape)]
        own = tuple(size for a, size in enumerate(shape) if a not in found.slices)
        missing = np.broadcast_to(found.missing, shape).reshape(own)
        return cls(stand_in(model), missing, found.slices, found.tolerance, inexact)

    @property
    def places(self) -> list[int]:
        """Axes of one slice."""
        return [axis for axis in range(len(self.model.shape)) if axis not in self.slices]

    def complete(self, values: Array) -> Array:
        """Return slices (n, ...) with all their cells, less the mean; they are overwritten.

        Raises
        ------
        ConvergenceError
            If missing cells could not be solved for.
        """
        mean = self.model.cascade.mean
        done = self.solver.complete(values, mean, tolerance=self.tolerance)
        if done.change > self.tolerance and not self.inexact:
            raise ConvergenceError(
                f"Missing cells are solved for to {done.change:.2g} of the spread of the data "
                f"only, after {done.iterations} steps. Give a larger ridge or a shorter sigma, or "
                "accept inexact answers.",
                setting="accept_inexact",
            )
        return np.asarray(done.values - mean)

    @property
    def solver(self) -> MaskedSlices:
        """The solver that completes the slices; it is made once in every process."""
        known = self.__dict__.get("_solver")
        if known is None:
            cascade = self.model.cascade
            assert cascade.joint_ridge is not None
            known = MaskedSlices.build(
                self.missing,
                [cascade.coordinates[axis] for axis in self.places],
                [cascade.levels[axis].kernel for axis in self.places],
                cascade.joint_ridge,
            )
            self.__dict__["_solver"] = known
        return known

    def ready(self) -> LandSlices:
        """Make the solver, before the program is measured and several threads need it."""
        _ = self.solver
        return self

    def refuse_gaps(self, values: NDArray[Any], box: Sequence[slice]) -> None:
        """Raise InputError if a box has other missing cells than the slice that was looked at.

        A box has all cells of its slices.
        """
        model = self.model
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
