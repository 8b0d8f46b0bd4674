"""Error bars of a stored grid with land, calibrated on a few of its slices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dkrls_cli.arrays import Mask
from dkrls_cli.cascade.calibration.between import BetweenErrors
from dkrls_cli.cascade.calibration.folds import BetweenScale
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.gaps.bars import GapBars
from dkrls_cli.gaps.lasting.bars import LandBars, cut_slice
from dkrls_cli.gaps.pattern import empty_slices
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.planning.requests import FitPlan
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.training.gaps import train_through_gaps


def calibrate_land(panel: Grid, plan: FitPlan, mean: float, slices: tuple[int, ...]) -> LandBars:
    """Return the error bars of a grid with land.

    Cells are hidden in the slices of a panel as they are in a grid in memory
    (:func:`dkrls_cli.tuning.calibration.holes.gap_bars`); the local scale, and what slices leave
    open between coordinates, are means over them.

    Parameters
    ----------
    panel
        Some slices, each on its own, with missing cells.
    plan
        Levels and the joint ridge, all given.
    mean
        Value to which answers fall back far from data.
    slices
        Axes of the slices.
    """
    bars, cascade = _train(panel, plan, mean)
    unobserved = np.isnan(panel.values).all(axis=slices)
    local = bars.local_scale_in(cascade).mean(axis=slices)[unobserved]
    return LandBars(slices, _one_slice(panel, bars, cascade, slices, unobserved).with_local(local))


def calibrate_gaps(
    panel: Grid, plan: FitPlan, mean: float, slices: tuple[int, ...], land: Mask, most: int
) -> LandBars:
    """Return the error bars of a grid whose slices miss different cells.

    Every slice has a local scale of its own, relative to the errors of the cells of all of them.

    Parameters
    ----------
    panel, plan, mean, slices
        As for :func:`calibrate_land`.
    land, most
        Cells that are missing in all slices of the grid, in the shape of one slice, and missing
        cells of a slice at most.
    """
    lost = empty_slices(panel.observed)
    kept = [np.setdiff1d(np.arange(a.size), own) for a, own in zip(panel.axes, lost, strict=True)]
    some = panel.take(kept)
    bars, cascade = _train(some, plan, mean)
    one = _one_slice(some, bars, cascade, slices, land)
    return LandBars(slices, replace(one, usual=bars.usual_in(cascade)), most)


def _train(panel: Grid, plan: FitPlan, mean: float) -> tuple[GapBars, Cascade]:
    """Return the error bars of some slices, and their model."""
    trained = train_through_gaps(panel, plan, Settings(mean=mean), 0.0)
    assert isinstance(trained.bars, GapBars)
    return trained.bars, trained.cascade


def _one_slice(
    panel: Grid, bars: GapBars, cascade: Cascade, slices: tuple[int, ...], unobserved: Mask
) -> GapBars:
    """Return the error bars of one slice with missing cells from those of a panel of some."""
    places = [axis for axis in range(cascade.ndim) if axis not in slices]
    first = range(len(slices))
    maps = np.moveaxis(cascade.predict(), slices, first)
    gone = np.moveaxis(np.isnan(panel.values), slices, first)
    own = maps.shape[len(slices) :]
    measured = [
        BetweenErrors(missing).scale_in(cut_slice(cascade, places, np.ascontiguousarray(values)))
        for values, missing in zip(maps.reshape(-1, *own), gone.reshape(-1, *own), strict=True)
    ]
    return GapBars(
        unobserved,
        bars.scale,
        bars.power,
        bars.error,
        factors=bars.hole_factors or None,
        between=_mean_scale(measured),
        is_local=bars.is_local,
    )


def _mean_scale(scales: list[BetweenScale]) -> BetweenScale:
    """Return the mean of what several slices tell."""
    return BetweenScale(
        np.mean([one.factors for one in scales], axis=0),
        np.mean([one.usual for one in scales], axis=0),
        float(np.mean([one.open for one in scales])),
        float(np.mean([one.climate for one in scales])),
    )
