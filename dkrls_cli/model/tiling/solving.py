"""Settings of all tiles of a grid, chosen once on a part of it, and the solve of one tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices, Mask, round_to_single
from dkrls_cli.cascade.errorbars.bars import variance_on_grid
from dkrls_cli.cascade.factors.choice import is_long
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.spectrum import Spectrum, decompose
from dkrls_cli.errors import InputError
from dkrls_cli.gaps.bars import GapBars
from dkrls_cli.gaps.calibration.nearest import distance
from dkrls_cli.gaps.solve import Completed, complete
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.answering.bounds import Bounds
from dkrls_cli.model.planning.requests import FitPlan
from dkrls_cli.model.training.gaps import choose_through_gaps
from dkrls_cli.model.training.joint import SOLVE_LIMIT
from dkrls_cli.model.training.lost import drop_lost_slices
from dkrls_cli.model.training.result import inexact_error
from dkrls_cli.tuning.calibration.holes import usual_grid_error
from dkrls_cli.tuning.gaps import GapChoice

Cells = TypeVar("Cells", bound=NDArray[Any])
"""Values of cells, or a mask of them."""

_ROUNDING = 1e-9
"""Differences of answers beside their mean that are rounding, in solves that stop at 1e-9."""


@dataclass(frozen=True, eq=False)
class TileModel:
    """The model that fills all tiles: settings, error bars, and what is the same for every tile.

    Attributes
    ----------
    choice
        The setting chosen, its mean, and the tolerance of a solve.
    bars
        Error bars, without the cells that are missing.
    places
        Places of the axes that have more than one coordinate.
    names
        Names of these axes.
    bounds
        The least and the largest value of an answer, or None.
    single
        Whether answers are rounded to float32, as the data is.
    accept_inexact
        Whether to take answers that could not be solved for exactly.
    spectra
        Spectra of axes that are the same in all tiles, by place among those with more than one
        coordinate.
    """

    choice: GapChoice
    bars: GapBars
    places: tuple[int, ...]
    names: tuple[str, ...]
    bounds: Bounds | None
    single: bool
    accept_inexact: bool
    spectra: Mapping[int, Spectrum]

    def thin(self, values: Cells) -> Cells:
        """Return values without axes of one coordinate."""
        return cast(Cells, values.reshape([values.shape[place] for place in self.places]))

    def solve(self, values: Array, axes: Sequence[Axis], watched: Mask | None) -> SolvedTile:
        """Solve for the missing cells of a tile.

        Parameters
        ----------
        values
            Values of the tile and its context, NaN where they are missing.
        axes
            Its axes.
        watched
            Cells that are solved for as exactly as can be; None: all.

        Raises
        ------
        ConvergenceError
            If they could not be solved for, and that is not accepted.
        """
        coordinates = [axes[place].numbers for place in self.places]
        seen, setting = self.thin(values.astype(np.float64)), self.choice.setting
        spectra = [
            known if (known := self.spectra.get(i)) is not None and len(known.vectors) == c.size
            else None
            for i, c in enumerate(coordinates)
        ]  # fmt: skip
        done = complete(
            seen,
            coordinates,
            setting.kernels,
            setting.ridge,
            self.choice.mean,
            grouping=setting.grouping,
            tolerance=self.choice.tolerance,
            limit=SOLVE_LIMIT,
            spectra=spectra,
            watched=None if watched is None else self.thin(watched),
        )
        if not (done.converged or self.accept_inexact):
            raise inexact_error(done)
        return SolvedTile(self, values.shape, coordinates, ~np.isnan(seen), done, spectra)


@dataclass(frozen=True, eq=False)
class SolvedTile:
    """A tile whose missing cells are solved for.

    Attributes
    ----------
    model
        The model of all tiles.
    shape
        Shape of the tile with its context, axes of one coordinate included.
    coordinates
        Of the axes that have more than one.
    observed
        Which cells are observed, on these axes.
    done
        The completed tile.
    spectra
        Spectra of its axes, as far as they are known.
    """

    model: TileModel
    shape: tuple[int, ...]
    coordinates: Sequence[Array]
    observed: Mask
    done: Completed
    spectra: Sequence[Spectrum | None]

    @property
    def answers(self) -> Array:
        """The answers before they are kept within bounds."""
        found = self.done.values
        if self.model.single:
            found = round_to_single(found, ~self.observed)
        return found.reshape(self.shape)

    def near_bars(self) -> Array:
        """Return standard errors that follow from the nearest observed cells alone."""
        setting, bars = self.model.choice.setting, self.model.bars
        away = distance(self.coordinates, setting.kernels, self.observed, setting.ridge)
        found = np.sqrt(bars.scale * (away + setting.ridge) ** bars.power)
        return np.asarray(found).reshape(self.shape)

    def std(self, core: Sequence[Indices]) -> Array:
        """Return standard errors at some coordinates of every axis, 0 at observed cells."""
        model, setting = self.model, self.model.choice.setting
        levels = [Level(n, k) for n, k in zip(model.names, setting.kernels, strict=True)]
        cascade = fit_cascade(
            self.done.values,
            self.coordinates,
            levels,
            joint_ridge=setting.ridge,
            mean=model.choice.mean,
            spectra=self.spectra,
        )
        own = [core[place] for place in model.places]
        queries = [c[rows] for c, rows in zip(self.coordinates, own, strict=True)]
        bars = replace(model.bars, unobserved=~self.observed)
        found = np.sqrt(variance_on_grid(bars, cascade, queries))
        if model.bounds is not None:
            found = model.bounds.spread(self.done.values[np.ix_(*own)], found)
        return np.asarray(found).reshape([rows.size for rows in core])


def choose_model(
    sample: Grid,
    plan: FitPlan,
    whole: Sequence[Axis],
    cut: Sequence[int],
    mean: float,
    *,
    bounds: Bounds | None,
    single: bool,
    accept_inexact: bool,
    std: bool,
) -> TileModel:
    """Choose the settings of all tiles on a part of the grid.

    Parameters
    ----------
    sample
        The part.
    plan
        Levels, given or to be chosen, for the axes of the grid.
    whole
        Axes of the whole grid, as tiles have them where they are not cut.
    cut
        Places of the axes that are cut.
    mean
        Mean of the whole grid.
    bounds, single, accept_inexact
        As for :class:`TileModel`.
    std
        Whether standard errors will be asked for: in holes they are calibrated at once.
    """
    kept, _ = drop_lost_slices(sample)
    chosen, bars = choose_through_gaps(kept, plan, mean)
    places = tuple(place for place, axis in enumerate(whole) if axis.size > 1)
    if places != tuple(place for place, axis in enumerate(kept.axes) if axis.size > 1):
        raise InputError("The part of the grid that settings are chosen on has too little data.")
    setting = chosen.setting
    grouped = {axis for group in setting.grouping.axes for axis in group}
    spectra = {
        i: decompose(gram(kernel, whole[place].numbers, whole[place].numbers))
        for i, (place, kernel) in enumerate(zip(places, setting.kernels, strict=True))
        if place not in cut and i not in grouped and not is_long(kernel, whole[place].numbers)
    }
    factors = bars.hole_factors if std else None
    is_local, usual = std and bars.is_local, None
    if is_local:
        values = kept.values.reshape([kept.axes[place].size for place in places])
        axes = [kept.axes[place].numbers for place in places]
        usual = usual_grid_error(np.asarray(values, np.float64), axes, chosen)
    none = np.zeros((1,) * len(places), bool)
    return TileModel(
        replace(chosen, windows=(), spectra=(), targets=None),
        GapBars(
            none,
            bars.scale,
            bars.power,
            bars.error,
            bars.grouping,
            factors or None,
            is_local=is_local,
            usual=usual,
        ),
        places,
        tuple(whole[place].name for place in places),
        bounds,
        single,
        accept_inexact,
        spectra,
    )


def least_bar(model: TileModel) -> float:
    """Return the standard error below which differences are those of solves, or of rounding."""
    choice = model.choice
    solves, rounding = 10.0 * choice.tolerance * choice.spread, _ROUNDING * abs(choice.mean)
    return max(solves, rounding, float(np.finfo(np.float64).tiny))
