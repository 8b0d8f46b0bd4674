"""Fits of fields that go on across the poles: whether they do, and with which settings.

See :mod:`dkrls_cli.cascade.poles.continuation` for what is added to the data. All settings are
first chosen without it. If copies behind the poles predict the latitudes next to them clearly
better (:mod:`dkrls_cli.tuning.poles.choice`), they are added, and the settings of latitude are
chosen again: a field that is smooth across the pole looks rough where it seems to end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dkrls_cli.arrays import Tensor
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.poles.continuation import Continuation, plan_rows
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.choosing import ChoiceCallback, ChosenLevels, choose_levels
from dkrls_cli.model.planning.requests import FitPlan, LevelRequest
from dkrls_cli.model.poles.planning import PolePlan, extend_axes
from dkrls_cli.tuning.poles.choice import choose_sign
from dkrls_cli.tuning.slices.fibres import sample_fibres
from dkrls_cli.tuning.slices.segments import WHOLE
from dkrls_cli.tuning.spectra import SpectrumCache

# Copies behind each pole with which the settings of latitude are chosen: as good as with all, and
# faster.
_COPIES = 4


@dataclass(frozen=True, eq=False)
class Continued:
    """A grid that goes on across the poles.

    Attributes
    ----------
    rows
        The rows that were added.
    grid
        The data with these.
    """

    rows: Continuation
    grid: Grid


@dataclass(frozen=True, eq=False)
class Crossing(Continued):
    """A grid that goes on across the poles, and the settings of its levels."""

    chosen: ChosenLevels


def continue_rows(
    axes: Sequence[Axis],
    places: PolePlan,
    sign: int,
    levels: Sequence[Level],
    joint_ridge: float | None,
    mean: float,
) -> Continuation:
    """Return the rows that go on behind the latitudes of a grid, by the levels of its model."""
    before, after = plan_rows(axes[places.latitude].numbers)
    ring = levels[places.longitude]
    if joint_ridge is not None:
        ring = replace(ring, ridge=joint_ridge)
    numbers = axes[places.longitude].numbers
    return Continuation(places.latitude, places.longitude, sign, before, after, numbers, ring, mean)


def cross_poles(
    grid: Grid,
    values: Tensor,
    plan: FitPlan,
    chosen: ChosenLevels,
    mean: float,
    *,
    folds: int | None = None,
    watch: ChoiceCallback | None = None,
    spectra: SpectrumCache | None = None,
) -> Crossing | None:
    """Return a complete grid that goes on across the poles, or None if it does not.

    Parameters
    ----------
    grid
        The data.
    values
        Its values as numbers with which can be computed.
    plan
        The plan of the fit.
    chosen
        Settings that were chosen for the data alone.
    mean, folds, watch, spectra
        As for :func:`dkrls_cli.model.choosing.choose_levels`.
    """
    if plan.poles is None:
        return None
    data = grid.values if grid.values.dtype in ("float32", "float64") else values
    found = _go_on(
        replace(grid, values=data),
        plan.poles,
        chosen.levels,
        chosen.joint_ridge,
        chosen.smoothers[plan.poles.latitude],
        mean,
    )
    if found is None:
        return None
    rows, axes = found.rows, found.grid.axes
    found = Crossing(rows, found.grid, _without_spectrum(chosen, rows.latitude))
    request = plan.levels[rows.latitude]
    is_open = isinstance(request, LevelRequest) and None in (
        request.family,
        request.sigma,
        request.ridge,
    )
    if plan.joint or not is_open or folds is not None or axes[rows.latitude].size > WHOLE:
        return found
    return _choose_again(found, grid, plan, mean, watch, spectra)


def cross_with_gaps(
    grid: Grid, plan: FitPlan, levels: Sequence[Level], ridge: float, mean: float
) -> Continued | None:
    """Return a grid with missing cells that goes on across the poles, or None if it does not.

    It goes on if it was asked to: left alone it would be no better, on the average of many grids.

    Parameters
    ----------
    grid
        The data, NaN where cells are missing; so are their copies.
    plan
        The plan of the fit.
    levels
        Levels of all axes, chosen for the data alone.
    ridge
        The joint ridge.
    mean
        Value to which answers fall back.
    """
    if plan.poles is None or plan.poles.kind == "auto":
        return None
    own = replace(levels[plan.poles.latitude], ridge=ridge)
    return _go_on(grid, plan.poles, levels, ridge, own, mean)


def _go_on(
    grid: Grid,
    places: PolePlan,
    levels: Sequence[Level],
    joint_ridge: float | None,
    smoother: Level,
    mean: float,
) -> Continued | None:
    """Return a grid with the rows behind its poles, or None if it does not go on there.

    `smoother` is the level of latitude, with a ridge of its own.
    """
    signs = places.signs(grid.attrs)
    rows = continue_rows(grid.axes, places, signs[0], levels, joint_ridge, mean)
    axes, extended = extend_axes(grid.axes, rows), rows.extend(grid.values)
    if places.kind == "auto":
        fibres = sample_fibres(extended, rows.latitude, mean)
        latitudes = axes[rows.latitude].numbers
        sign = choose_sign(rows, latitudes, fibres, mean, smoother, signs)
        if sign == 0:
            return None
        if sign != rows.sign:
            rows = replace(rows, sign=sign)
            extended = rows.extend(grid.values)
    return Continued(rows, replace(grid, values=np.asarray(extended), axes=axes))


def _without_spectrum(chosen: ChosenLevels, axis: int) -> ChosenLevels:
    """Return chosen levels without the spectrum of an axis that has other coordinates now."""
    spectra = list(chosen.spectra)
    spectra[axis] = None
    return replace(chosen, spectra=tuple(spectra))


def _choose_again(
    found: Crossing,
    grid: Grid,
    plan: FitPlan,
    mean: float,
    watch: ChoiceCallback | None,
    spectra: SpectrumCache | None,
) -> Crossing:
    """Return the crossing with the settings of latitude chosen on the data and a few copies."""
    few, latitude = found.rows.nearest(_COPIES), found.rows.latitude
    levels: list[Level | LevelRequest] = list(found.chosen.levels)
    levels[latitude] = plan.levels[latitude]
    axes = extend_axes(grid.axes, few)
    again = choose_levels(
        replace(plan, levels=tuple(levels)),
        axes,
        _between(found, few),
        mean,
        watch=watch,
        spectra=spectra,
        copies={latitude: few.copies(axes[latitude].size)},
    )
    kept = [
        text for text in found.chosen.warnings if not text.startswith(f"{axes[latitude].name}: ")
    ]
    return replace(
        found,
        chosen=replace(again, warnings=(*kept, *again.warnings), spectra=found.chosen.spectra),
    )


def _between(found: Crossing, few: Continuation) -> Tensor:
    """Return the data with few of the rows that were added."""
    latitude, size = few.latitude, found.grid.values.shape[few.latitude]
    inner = found.rows.inner(size)
    part: list[slice] = [slice(None)] * found.grid.values.ndim
    part[latitude] = slice(inner.start - len(few.before), inner.stop + len(few.after))
    return found.grid.values[tuple(part)]
