"""Slices of a grid with land, completed part by part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.errors import ConvergenceError
from dkrls_cli.files.source import UNWRITTEN
from dkrls_cli.gaps.bars import GapBars
from dkrls_cli.gaps.calibration.local import left_out_errors, local_scale
from dkrls_cli.gaps.lasting.bars import LandBars
from dkrls_cli.gaps.lasting.completion import MaskedSlices, mask_bytes
from dkrls_cli.model.lasting.choosing import LandSurvey, scattered_gaps
from dkrls_cli.model.model import Model
from dkrls_cli.model.streaming.answering import refuse_beyond, stand_in

COMPLETED = 8 * 10
"""Bytes in use for each cell of slices that are completed: ten arrays of float64."""

_NEIGHBOURS, _ALIKE = 16, 8
"""Neighbours in the preconditioner of cells that at most so many slices miss. On maps of 180 x 360
cells, half of them missing, one slice then takes a fifth of the time that it takes with 64: these
take nine tenths of it, and save half of the iterations."""


@dataclass(frozen=True, eq=False)
class LandSlices:
    """Completes the slices of a grid whose missing cells last, or of which some do not.

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
    most
        Missing cells of a slice at most, if slices miss other cells as well; 0 if none does.
    """

    model: Model
    missing: Mask
    slices: tuple[int, ...]
    tolerance: float
    inexact: bool = False
    most: int = 0

    @classmethod
    def of(cls, found: LandSurvey, model: Model, *, inexact: bool = False) -> LandSlices:
        """Return the slices of a grid whose settings are known; `model` is its stand-in."""
        shape = [1 if a in found.slices else size for a, size in enumerate(model.shape)]
        own = tuple(size for a, size in enumerate(shape) if a not in found.slices)
        missing = np.broadcast_to(found.missing, shape).reshape(own)
        return cls(stand_in(model), missing, found.slices, found.tolerance, inexact, found.most)

    @property
    def places(self) -> list[int]:
        """Axes of one slice."""
        return [axis for axis in range(len(self.model.shape)) if axis not in self.slices]

    def working_bytes(self, cells: int) -> int:
        """Return the bytes that completing slices of so many cells takes besides these."""
        return COMPLETED * cells + mask_bytes(self.most)

    def complete(self, values: Array) -> Array:
        """Return slices (n, ...) with all their cells, less the mean; they are overwritten.

        If slices miss other cells than land, NaN tells which; those without any data stay so.

        Raises
        ------
        ConvergenceError
            If missing cells could not be solved for.
        """
        if not self.most:
            return self._complete(values, self.solver)
        for missing, places in _by_mask(np.isnan(values)):
            if not missing.all():
                values[places] = self._complete_alike(values[places], missing)
        return values

    def _complete_alike(self, values: Array, missing: Mask) -> Array:
        """Return slices with the same missing cells, completed, less the mean.

        Cells that only one or a few slices miss are solved for with less preparation; or with all
        of it, if that does not suffice.
        """
        if np.array_equal(missing, self.missing):
            return self._complete(values, self.solver)
        if len(values) <= _ALIKE:
            quick, mean = self.solver.with_mask(missing, _NEIGHBOURS), self.model.cascade.mean
            done = quick.complete(values.copy(), mean, tolerance=self.tolerance)
            if done.change <= self.tolerance:
                return np.asarray(done.values - mean)
        return self._complete(values, self.solver.with_mask(missing))

    def _complete(self, values: Array, solver: MaskedSlices) -> Array:
        """Return slices with the missing cells of a solver, completed, less the mean."""
        mean = self.model.cascade.mean
        done = solver.complete(values, mean, tolerance=self.tolerance)
        if done.change > self.tolerance and not self.inexact:
            raise ConvergenceError(
                f"Missing cells are solved for to {done.change:.2g} of the spread of the data "
                f"only, after {done.iterations} steps. Give a larger ridge or a shorter sigma, or "
                "accept inexact answers.",
                setting="accept_inexact",
            )
        return np.asarray(done.values - mean)

    def error_bars(self, values: Array, missing: Mask) -> Iterator[tuple[int, GapBars]]:
        """Yield the numbers and the error bars of slices (n, ...) that have data.

        Parameters
        ----------
        values
            The slices, completed, less the mean.
        missing
            The cells that were missing in each.
        """
        bars = self.model.bars
        assert isinstance(bars, LandBars)
        if not bars.most:
            yield from ((number, bars.one) for number in range(len(values)))
            return
        for gone, places in _by_mask(missing):
            if not gone.all():
                own = bars.of_mask(gone)
                for place in places:
                    yield int(place), own.with_local(self._local_scale(own, values[place]))

    def _local_scale(self, bars: GapBars, values: Array) -> Array | None:
        """Return the local scale of the missing cells of a completed slice, if there is one."""
        if not bars.is_local:
            return None
        errors = left_out_errors(values, self.solver.spectra, self.solver.ridge)
        return local_scale(errors, ~bars.unobserved, bars.usual)[bars.unobserved]

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

    def refuse_gaps(self, values: NDArray[Any], box: Sequence[slice | Indices]) -> Mask:
        """Return the missing cells of a box, or raise InputError if it should not have them.

        These are other ones than those of the slice that was looked at; or, where all were, land
        that has data. A box has all cells of its slices.
        """
        model = self.model
        with np.errstate(invalid="ignore"):
            gone: Mask = ~(np.abs(values) < UNWRITTEN)
        shape = [1 if a in self.slices else size for a, size in enumerate(values.shape)]
        land = self.missing.reshape(shape)
        differs = ~gone & land if self.most else gone != land
        if differs.any():
            texts = [
                f"{axis.name} {axis.take(np.array([_sample(here, int(place))])).texts[0]}"
                for axis, here, place in zip(model.axes, box, np.argwhere(differs)[0], strict=True)
            ]
            names = " and ".join(model.axes[axis].name for axis in self.slices)
            raise scattered_gaps(model.name, names, f"at {', '.join(texts)}")
        if model.bounds is not None:
            refuse_beyond(values[~gone], model)
        return gone

    def __getstate__(self) -> dict[str, Any]:
        """Return what is sent to other processes: not the solver, which each makes for itself."""
        return {key: value for key, value in self.__dict__.items() if key != "_solver"}


def _by_mask(missing: Mask) -> Iterator[tuple[Mask, Indices]]:
    """Yield every mask that some slices (n, ...) have, and the places of these."""
    found: dict[bytes, list[int]] = {}
    for place, own in enumerate(missing):
        found.setdefault(own.tobytes(), []).append(place)
    for places in found.values():
        yield missing[places[0]], np.array(places, np.intp)


def _sample(part: slice | Indices, place: int) -> int:
    """Return the sample at a place of a part of an axis."""
    return int(part.start + place if isinstance(part, slice) else part[place])
