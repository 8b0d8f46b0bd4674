"""Error bars of a stored grid with land, calibrated on a few of its slices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dkrls_cli.cascade.calibration.folds import BetweenScale
from dkrls_cli.gaps.bars import GapBars
from dkrls_cli.gaps.lasting.bars import LandBars, cut_slice
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
    trained = train_through_gaps(panel, plan, Settings(mean=mean), 0.0)
    bars, cascade = trained.bars, trained.cascade
    assert isinstance(bars, GapBars)
    places = [axis for axis in range(cascade.ndim) if axis not in slices]
    unobserved = np.isnan(panel.values).all(axis=slices)
    one = GapBars(
        unobserved,
        bars.scale,
        bars.power,
        bars.error,
        factors=bars.hole_factors or None,
        is_local=bars.is_local,
        local=bars.local_scale_in(cascade).mean(axis=slices)[unobserved],
    )
    maps = np.moveaxis(cascade.predict(), slices, range(len(slices)))
    measured = [
        one.slices.scale_in(cut_slice(cascade, places, np.ascontiguousarray(values)))
        for values in maps.reshape(-1, *unobserved.shape)
    ]
    return LandBars(slices, replace(one, between=_mean_scale(measured)))


def _mean_scale(scales: list[BetweenScale]) -> BetweenScale:
    """Return the mean of what several slices tell."""
    return BetweenScale(
        np.mean([one.factors for one in scales], axis=0),
        np.mean([one.usual for one in scales], axis=0),
        float(np.mean([one.open for one in scales])),
        float(np.mean([one.climate for one in scales])),
    )
