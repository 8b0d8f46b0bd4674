"""Models from labelled grids or plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dkrls_cli.arrays import Mask
from dkrls_cli.cascade.level import Level
from dkrls_cli.errors import SettingError
from dkrls_cli.files.stored.arrays import source_of
from dkrls_cli.grid.axes import NO_ATTRIBUTES, Attributes
from dkrls_cli.grid.cf import is_time
from dkrls_cli.grid.grid import (
    Coordinates,
    ErrorLike,
    Grid,
    GridLike,
    as_grid,
    is_chunked,
    refuse_coordinates,
)
from dkrls_cli.grid.observations import (
    describe_errors,
    read_number,
    with_errors,
)
from dkrls_cli.model.answering.bounds import BoundsLike
from dkrls_cli.model.answering.tolerance import PROMISE, ToleranceLike, shrink
from dkrls_cli.model.choosing import ChoiceCallback
from dkrls_cli.model.chunked.loading import refuse_errors, refuse_large, room
from dkrls_cli.model.model import OBS_ERRORS, Model
from dkrls_cli.model.planning.plan import plan_fit
from dkrls_cli.model.planning.requests import FitPlan, LevelRequest
from dkrls_cli.model.poles.planning import Poles
from dkrls_cli.model.quality.robust import ROBUST
from dkrls_cli.model.settings import DEFAULTS, Missing, Noise, PerLevel, Settings, Storage
from dkrls_cli.model.training.complete import train
from dkrls_cli.model.training.gaps import train_through_gaps
from dkrls_cli.model.training.lost import outage_folds
from dkrls_cli.model.training.noisy import train_with_errors
from dkrls_cli.model.training.prepared import (
    PreparedGrid,
    jump_notes,
    prepare_grid,
    suspicious_marks,
)
from dkrls_cli.model.training.result import CHOSEN_ON, Tell, TrainingResult
from dkrls_cli.tuning.spectra import SpectrumCache

if TYPE_CHECKING:
    import xarray as xr


def fit(
    data: GridLike,
    coordinates: Coordinates | None = None,
    levels: Sequence[Level | str] | None = DEFAULTS.levels,
    *,
    kernel: PerLevel[str] = DEFAULTS.kernel,
    sigma: PerLevel[float | str] = DEFAULTS.sigma,
    ridge: PerLevel[float | str] = DEFAULTS.ridge,
    period: PerLevel[float | str | None] = DEFAULTS.period,
    noise: Noise = DEFAULTS.noise,
    missing: Missing = DEFAULTS.missing,
    mean: float | str = DEFAULTS.mean,
    compact: bool = DEFAULTS.compact,
    dtype: Storage = DEFAULTS.dtype,
    folds: int | None = DEFAULTS.folds,
    bounds: BoundsLike = DEFAULTS.bounds,
    tolerance: ToleranceLike = DEFAULTS.tolerance,
    group: str | Sequence[str] = DEFAULTS.group,
    accept_inexact: bool = DEFAULTS.accept_inexact,
    poles: Poles = DEFAULTS.poles,
    cell_means: bool | str | Sequence[str] = DEFAULTS.cell_means,
    robust: bool = DEFAULTS.robust,
    obs_error: ErrorLike | None = None,
    origin: Attributes = NO_ATTRIBUTES,
    watch: ChoiceCallback | None = None,
) -> Model:
    """Train a model of a grid.

    Parameters
    ----------
    data
        An xarray.DataArray with its coordinates and attributes, a Grid, or an array of numbers;
        NaN where cells are missing. Values of single precision stay so in memory. An array that is
        read-only may be shared with the model, any other is copied.
        A DataArray that is chunked (with dask) is loaded if it fits into memory. With `compact` or
        `tolerance` it is not: settings are chosen on a few chunks, and the model is made in one
        pass over all of them (two with `tolerance`). It then needs all its cells.
    coordinates
        For an array of numbers, a coordinate vector per axis, by name or in order. Without them,
        the positions 0, 1, 2, ...
    levels
        The hierarchy from level 0 to the last: names of dimensions, or whole levels. Without it,
        the dimensions in the order of the data, a time-like one last.
    kernel, sigma, ridge, period
        Settings of the levels: one value for all, or a mapping from dimension to value; a sigma or
        period of dates may be a duration such as ``30D``, and ``lat`` names a ``latitude`` as well.
        ``auto`` is chosen by leaving slices out, see :mod:`dkrls_cli.tuning.slices`; the period is
        that of the circle the coordinates close, if they do.
    noise
        ``level``: a ridge per level, the paper's. ``joint``: one ridge over the whole grid.
        With ``level`` missing cells are solved for first, under one ridge, and the complete grid is
        fitted. ``auto``: joint if `ridge` is one number and cells are missing, else level.
    missing
        ``model``: fit through missing cells; cells that never had data stay missing in answers.
        ``error``: refuse missing cells.
    mean
        The number that answers fall back to far from data; ``auto`` is the mean of the data.
    compact
        Keep only what the kernels can express, see :func:`dkrls_cli.cascade.fit.fit_cascade`.
    dtype
        Storage of the data: ``float64``, or ``float32`` for half the size and an error of 6e-8.
    folds
        Number of blocks of neighbours to leave out when choosing, instead of single slices: for
        answers in gaps much wider than the steps of the data.
    bounds
        The least and the largest value of an answer: ``(0, 1)``, or ``(0, None)`` for one alone;
        None for no bounds. Answers outside are moved to the nearest bound, and standard errors
        with them. ``auto``: those that the attributes of the data tell (``valid_range``,
        ``valid_min``, ``valid_max``, or a standard name of a fraction), unless data lies outside.
    tolerance
        Store the smallest model whose answers at the training cells and half-way between them are
        this close to those of the full one: ``1e-3`` of the standard deviation of the data, or
        ``"0.05 K"`` in its units. What was measured is in ``origin["tolerance"]``. It takes the
        place of `compact` and `dtype`.
    group
        Where cells are missing, dimensions that share one distance: ``("lat", "lon")``; ``none``;
        ``auto``: latitude and longitude, where hidden cells are predicted clearly better with it.
        Where these go round the globe the distance is that on the sphere.
    accept_inexact
        Whether to take missing cells that could not be solved for exactly, with a warning.
    poles
        Whether data on latitudes that reach a pole, and longitudes all round, goes on behind it on
        the other side of the globe: as a ``scalar``; as a component of a ``vector``, with the
        opposite sign; or not (``none``). ``auto``: as latitudes next to the poles are predicted
        best; missing cells are solved for without that. Answers up to the poles are then inside.
    cell_means
        Dimensions along which the data are means over cells, and not values at coordinates: names,
        or True for those that ``cell_methods`` tells, or else latitude and longitude, or else all.
        Means over cells of the data are then the data, and those over other cells keep their sums.
        Missing cells are filled with means over them.
    robust
        Whether cells that the others speak against (spikes, stuck sensors, wrong units: see
        :func:`dkrls_cli.check`) are not shown to the fit. At these cells answers are predictions.
        How many there were is in ``origin["robust"]``.
    obs_error
        Standard error of every observation, in units of the data: a number, the name of a
        coordinate of a DataArray, or an array on some of the dimensions; 0 is exact. Errors are
        independent from cell to cell. The model is then that of the quantity itself: answers at the
        coordinates are no longer the data, and their standard errors no longer 0.
    origin
        Anything to remember in the model about where the data came from.
    watch
        Called with the name of a dimension and all that was tried for it; where all levels are
        chosen together, with the settings tried for all of them as they are along this one.

    Returns
    -------
    Model
        The trained model, with the names, units and attributes of the data.

    Raises
    ------
    InputError
        If the data cannot be used: no cell observed, infinite cells, or coordinates that are not
        finite or not distinct.
    SettingError
        If a setting is not possible, or not for this grid.
    ConvergenceError
        If missing cells could not be solved for.

    Examples
    --------
    >>> x, d = np.linspace(0, 3, 30), np.linspace(0, 5, 40)
    >>> model = fit(np.outer(np.sin(x), np.cos(d)), {"x": x, "d": d}, sigma={"x": 1.0, "d": 1.5})
    >>> [level.kernel.sigma for level in model.levels]
    [1.0, 1.5]

    A grid beyond memory, chunk by chunk:

    >>> import xarray as xr
    >>> data = xr.open_dataset("sst.nc", chunks={"time": 100})["sst"]  # doctest: +SKIP
    >>> small = fit(data, compact=True)  # doctest: +SKIP
    """
    settings = Settings(
        levels,
        kernel,
        sigma,
        ridge,
        period,
        noise,
        missing,
        mean,
        compact,
        dtype,
        folds,
        bounds,
        tolerance,
        group,
        accept_inexact,
        poles,
        cell_means,
        robust,
    )
    if is_chunked(data):
        if settings.compact or settings.allowed is not None:
            refuse_coordinates(coordinates)
            refuse_errors(obs_error)
            return _fit_part_by_part(data, settings, origin, watch)
        refuse_large(data, "Give compact=True, which makes a small model in one pass.")
    grid = with_errors(data, as_grid(data, coordinates, keep_single=True), obs_error)
    origin = {**origin, **error_origin(obs_error)}
    return fit_grid(grid, settings, origin=origin, watch=watch)


def _fit_part_by_part(
    data: xr.DataArray, settings: Settings, origin: Attributes, watch: ChoiceCallback | None
) -> Model:
    """Train a compact model of a chunked array in one pass over its chunks."""
    from dkrls_cli.model.chunked.compact import fit_compact

    if watch is not None:
        raise SettingError(
            "The choice of settings on a few chunks cannot be watched. Leave it out, or load the "
            "array first."
        )
    model = fit_compact(source_of(data), settings, room())
    return replace(model, origin={**origin, **model.origin})


def fit_grid(
    grid: Grid,
    settings: Settings = DEFAULTS,
    *,
    origin: Attributes = NO_ATTRIBUTES,
    watch: ChoiceCallback | None = None,
    spectra: SpectrumCache | None = None,
    land: bool = True,
    outages: bool = False,
    tell: Tell = lambda share: None,
) -> Model:
    """Train a model of a grid as :func:`fit` does, with settings that are one value.

    Parameters
    ----------
    grid
        Values on named axes, NaN where cells are missing.
    settings
        Settings of the fit.
    origin, watch
        As for :func:`fit`.
    spectra
        Spectra that are known from other variables on the same axes.
    land
        Whether answers are needed where data is missing all along the last level, as on land: to be
        as exact there takes longer.
    outages
        Whether answers are needed at coordinates without data, and between no others: where nothing
        else is missing, settings are chosen by leaving out blocks of slices.
    tell
        Called with the share that is done, 0 to 1, roughly, where cells are missing.

    Returns
    -------
    Model
        The trained model.

    Raises
    ------
    InputError, SettingError
        As for :func:`fit`.

    Examples
    --------
    >>> fit_grid(as_grid(np.eye(5)), Settings(ridge=0.1)).levels[0].ridge
    0.1
    """
    allowed, stored = settings.allowed, settings
    if allowed is not None:
        allowed.check_units(grid.name, grid.attrs)
        settings = replace(settings, compact=False, dtype="float64")
    ready = prepare_grid(grid, settings, gaps=outages, tell=tell)
    warnings = suspicious_marks(grid, stored)
    if ready.completed is not None:  # its group has told the missing cells
        settings = replace(settings, group=DEFAULTS.group)
        warnings += ready.completed.notes
    plan = _plan(ready, settings, outages)
    warnings = list(dict.fromkeys([*warnings, *jump_notes(ready.grid, plan)]))  # solves note too
    result = _train(ready, plan, settings, spectra, watch, land, tell)
    fitted, lost = result.enclosing or (ready.grid, ready.lost)
    cascade, promise = result.cascade, None
    if allowed is not None:
        result = replace(result, bars=result.bars.measured_in(cascade))
        cascade, promise = shrink(cascade, fitted.axes, fitted.values, allowed)
    coverage, note = ready.cover(plan.hierarchy)
    facts = {
        "dropped_coordinates": ready.repeats + lost,
        "land": note,
        "bounds": ready.bounds_note,
        CHOSEN_ON: _chosen_on(fitted, plan),
        PROMISE: promise,
        OBS_ERRORS: error_facts(origin, fitted),
        ROBUST: ready.cleaned and ready.cleaned.facts,
        **({} if ready.completed is None else {"missing": ready.completed.facts}),
        "notes": [*result.facts.get("notes", ()), *warnings] if warnings else None,
    }
    return Model(
        cascade,
        fitted.axes,
        plan.hierarchy,
        result.bars,
        fitted.name,
        fitted.attrs,
        fitted.style,
        {**origin, **result.facts, **{key: found for key, found in facts.items() if found}},
        filled=_filled(ready.filled, result),
        known_coverage=coverage,
        bounds=ready.bounds,
        poles=result.poles,
        cell_means=ready.cell_means,
    )


def _plan(ready: PreparedGrid, settings: Settings, outages: bool) -> FitPlan:
    """Plan the fit of a grid; settings are chosen for outages where nothing else is missing."""
    grid, has_errors = ready.grid, ready.grid.errors is not None
    plan = plan_fit(grid.axes, settings, grid.is_complete, errors=has_errors)
    if not outages or has_errors or settings.folds is not None or not grid.is_complete:
        return plan
    return plan.leaving_out(outage_folds(ready.with_lost.observed))


def _train(
    ready: PreparedGrid,
    plan: FitPlan,
    settings: Settings,
    spectra: SpectrumCache | None,
    watch: ChoiceCallback | None,
    land: bool,
    tell: Tell,
) -> TrainingResult:
    """Train the cascade of a grid in the way that its cells need."""
    grid = ready.grid
    if grid.errors is not None:
        return train_with_errors(grid, plan, settings, ready.missing, spectra, watch)
    if grid.is_complete:
        return train(grid, plan, settings, watch, spectra)
    return train_through_gaps(
        grid, plan, settings, ready.missing, spectra, land, ready.with_lost, watch, tell
    )


def _filled(cells: Mask | None, result: TrainingResult) -> Mask | None:
    """Return the cells of the cascade whose data is what the others say of them."""
    if cells is None or result.poles is None:
        return cells
    return result.poles.extend_mask(cells)


def error_origin(obs_error: object) -> dict[str, Any]:
    """Return where errors come from, as far as new slices can have them from there as well.

    That is a number, or the name of a variable.
    """
    number = None if obs_error is None else read_number(obs_error)
    source = number if number is not None else obs_error if isinstance(obs_error, str) else None
    return {} if source is None else {OBS_ERRORS: {"source": source}}


def error_facts(origin: Attributes, grid: Grid) -> dict[str, Any] | None:
    """Return how large errors are and where they come from; None if observations have none."""
    if grid.errors is None:
        return None
    return {**origin.get(OBS_ERRORS, {}), **describe_errors(grid.errors, grid.observed)}


def _chosen_on(grid: Grid, plan: FitPlan) -> int | None:
    """Return 1 if the last level has one slice, on which its settings cannot be chosen."""
    last = grid.dims.index(plan.hierarchy[-1])
    level = plan.levels[last]
    is_open = isinstance(level, LevelRequest) and level.sigma is None
    return 1 if is_open and grid.axes[last].size == 1 and is_time(grid.axes[last]) else None


def retune(model: Model, *, accept_inexact: bool = False) -> Model:
    """Choose the settings of the last level again, on the slices that the model holds.

    Nothing else changes: a coordinate without any observed cell stays, and all missing cells are
    filled again with the new settings.

    Parameters
    ----------
    model
        A trained model.
    accept_inexact
        Whether to take missing cells that could not be solved for exactly, with a warning.

    Returns
    -------
    Model
        The model of the same slices with the settings chosen.

    Raises
    ------
    ConvergenceError
        If missing cells could not be solved for exactly, and that is not accepted.

    Examples
    --------
    >>> x, t = np.linspace(0, 3, 20), np.arange(30.0)
    >>> model = fit(np.outer(np.sin(x), np.cos(t / 4)), {"x": x, "t": t}, sigma={"t": 0.5})
    >>> retune(model).levels[-1].kernel.sigma > 0.5
    True
    """
    *others, last = model.levels
    joint, seen = model.joint_ridge is not None, model.observations
    values = model.cut(model.cascade.predict()) if seen is None else seen.values.copy()
    if joint and model.unobserved is not None:
        values[model.unobserved] = np.nan
    errors = None if seen is None else seen.errors
    grid = Grid(values, model.axes, model.name, model.attrs, model.style, errors)
    settings = Settings(
        [*others, last.name],
        noise="joint" if joint else "level",
        mean=model.cascade.mean,
        accept_inexact=accept_inexact,
        poles=model.across_poles,
    )
    from dkrls_cli.model.updating.adding import change_settings

    chosen = fit_grid(grid, settings)
    found = chosen.cascade
    notes = chosen.origin["notes"]
    return change_settings(
        model,
        found.levels,
        found.joint_ridge,
        chosen.bars,
        notes,
        accept_inexact=accept_inexact,
    )
