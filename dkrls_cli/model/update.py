"""Add slices to a model along its last level: which are kept, where they go, how gaps are filled.

The result is the model that a fit of all kept slices would make with the same settings, whatever
the order in which they came: slices stand in the order of their coordinates, and cells that were
missing are filled again from all that is known.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dkrls_cli.arrays import Array, Indices, Mask, as_numbers, fits_single, round_to_single
from dkrls_cli.cascade.errorbars import Bars, calibrate
from dkrls_cli.cascade.factors.choice import is_long
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.growing import Growing, does_rise
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.spectrum import ROUND_OFF, decompose
from dkrls_cli.circle import nearest, repeated
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.gaps.bars import GapBars, rescale
from dkrls_cli.gaps.field import NO_GROUPS, Grouping, make_field
from dkrls_cli.gaps.noisy.analysis import Observations, analyse
from dkrls_cli.gaps.noisy.bars import NoisyBars
from dkrls_cli.gaps.slices import fill_slices
from dkrls_cli.gaps.solve import Completed, complete
from dkrls_cli.grid.alignment import align_slices, plain_slices
from dkrls_cli.grid.axes import Attributes, Axis, convert_coordinates, index_axis, list_some
from dkrls_cli.grid.cf import place_of
from dkrls_cli.grid.grid import ErrorLike, Grid, drop_repeats, from_data_array, is_labelled
from dkrls_cli.grid.observations import describe_errors, read_number, with_errors
from dkrls_cli.grid.quantities import refuse_no_averages, turn_of
from dkrls_cli.grid.style import grow_style
from dkrls_cli.model.answering.masks import lasting_mask
from dkrls_cli.model.answering.tolerance import PROMISE
from dkrls_cli.model.model import OBS_ERRORS, Model
from dkrls_cli.model.poles.crossing import continue_rows
from dkrls_cli.model.poles.planning import extend_axes, plan_poles
from dkrls_cli.model.training import CHOSEN_ON, inexact_error, missing_facts, solve_notes
from dkrls_cli.threads import one_blas_thread
from dkrls_cli.tuning.gaps import final_tolerance

if TYPE_CHECKING:
    import xarray as xr

# Relative difference of two variances that count as equal.
_ALIKE = 1e-6

# Slices that are enough to choose the settings of the last level for good: two years of months.
_ENOUGH = 24

# Tolerance and iterations of the analysis of all observations, as those of a fit with all settings.
_EXACT, _LIMIT = 1e-9, 1500

# Drift: root mean square error more than this many times the standard error that was predicted.
_DRIFT = 3.0


@dataclass(frozen=True)
class Surprise:
    """How new slices differ from the model's predictions of them.

    Attributes
    ----------
    cells
        Number of cells compared.
    rmse
        Root mean square error of the predictions.
    promised
        Root mean square of the standard errors that the model gave them.
    """

    cells: int
    rmse: float
    promised: float

    @classmethod
    def measure(cls, errors: Array, variances: Array) -> Self:
        """Return the surprise of prediction errors, beside the variances that were predicted."""
        if not errors.size:
            return cls(0, math.nan, math.nan)
        rmse, promised = (float(np.sqrt(np.mean(x))) for x in (errors**2, variances))
        return cls(errors.size, rmse, promised)

    @property
    def drifts(self) -> bool:
        """Whether the errors are far larger than predicted."""
        return self.cells > 0 and self.rmse > _DRIFT * self.promised


@dataclass(frozen=True, eq=False)
class Update:
    """An updated model.

    Attributes
    ----------
    model
        The model with the new slices.
    surprise
        How the new slices differ from the predictions of the model before.
    added, empty
        Number of new slices with an observed cell, and without one; the latter are left out.
    """

    model: Model
    surprise: Surprise
    added: int
    empty: int


def update_model(
    model: Model,
    data: xr.DataArray | Grid | ArrayLike,
    coordinates: Any = None,
    *,
    replace: bool = False,
    window: int | None = None,
    max_rank: int | None = None,
    obs_error: ErrorLike | None = None,
    accept_inexact: bool = False,
) -> Update:
    """Compare new slices with the predictions of a model, then add them to it.

    The parameters are those of :meth:`dkrls_cli.model.model.Model.update`.

    Returns
    -------
    Update
        The model, how surprising the slices were, and how many there were.
    """
    values, new = align(model, data, coordinates)
    added = observed_slices(values, model.grows).size
    errors = slice_errors(model, data, coordinates, values, obs_error)
    surprise = measure_surprise(model, values, new, errors)
    after = add_slices(
        model,
        values,
        new,
        replace=replace,
        window=window,
        max_rank=max_rank,
        errors=errors,
        accept_inexact=accept_inexact,
    )
    return Update(with_style(after, data, new), surprise, added, new.size - added)


def with_style(model: Model, data: xr.DataArray | Grid | ArrayLike, new: Axis) -> Model:
    """Return a model that has grown with what stands beside new slices, such as their bounds."""
    theirs = {axis.name: axis for axis in data.axes} if isinstance(data, Grid) else {}
    if not isinstance(data, Grid) or new.name not in theirs:
        return model
    if theirs[new.name].units != new.units:
        return model
    style = grow_style(model.style, model.axes[model.grows], data.style)
    return dataclasses.replace(model, style=style)


def align(
    model: Model, data: xr.DataArray | Grid | ArrayLike, coordinates: Any = None
) -> tuple[Array, Axis]:
    """Return new values with the axes of the model, and the axis of the slices."""
    if is_labelled(data):
        labelled = from_data_array(data, keep=model.hierarchy[-1])
        data = dataclasses.replace(labelled, values=as_numbers(labelled.values, "values"))
    if not isinstance(data, Grid):
        return plain_slices(as_numbers(data, "values"), coordinates, model.axes, model.grows)
    if coordinates is not None:
        raise SettingError("Coordinates were given for data that has its own.")
    trained = drop_untrained(model, drop_repeats(data)[0])
    return align_slices(trained, model.axes, model.grows, model.attrs)


def slice_errors(
    model: Model,
    data: xr.DataArray | Grid | ArrayLike,
    coordinates: Any,
    values: Array,
    obs_error: ErrorLike | None,
) -> Array | None:
    """Return the standard errors of new slices with the axes of the model; None if it has none.

    Parameters
    ----------
    model
        The model.
    data, coordinates
        The new slices as they were given.
    values
        The same as :func:`align` returns them.
    obs_error
        Their errors. None: those of the grid, or from where the model had its own.

    Raises
    ------
    InputError
        If just one of model and slices has errors, or errors do not fit the slices.
    """
    theirs = data.errors if isinstance(data, Grid) else None
    if model.observations is None:
        if obs_error is not None or theirs is not None:
            raise InputError(
                "The new slices have errors of the observations, and the model was fitted without. "
                "Leave the errors out, or fit all slices again with them."
            )
        return None
    if theirs is None:
        obs_error = usual_error(model) if obs_error is None else obs_error
        if obs_error is None:
            raise _no_errors()
        if not (isinstance(data, Grid) or is_labelled(data)):
            return _plain_errors(values, obs_error)
        grid = data if isinstance(data, Grid) else from_data_array(data, model.hierarchy[-1])
        data = with_errors(data, grid, obs_error)
    assert isinstance(data, Grid)
    assert data.errors is not None
    known = np.where(np.isnan(data.values), np.nan, data.errors)
    return align(model, dataclasses.replace(data, values=known, errors=None))[0]


def usual_error(model: Model) -> float | str | None:
    """Return the number or the name from which a model had the errors of its observations."""
    found: float | str | None = model.origin.get(OBS_ERRORS, {}).get("source")
    return found


def _no_errors() -> InputError:
    return InputError(
        "The model has errors of its observations, and the new slices have none. Give theirs.",
        setting="obs_error",
    )


def _plain_errors(values: Array, obs_error: ErrorLike) -> Array:
    """Return errors of slices that are plain numbers."""
    axes = tuple(index_axis(f"dim_{place}", size) for place, size in enumerate(values.shape))
    errors = with_errors(values, Grid(values, axes), obs_error).errors
    assert errors is not None
    return errors


def drop_untrained(model: Model, grid: Grid) -> Grid:
    """Return new slices without the coordinates at which the model has never had data.

    Raises
    ------
    InputError
        If the slices have data there.
    """
    for place, its in enumerate(grid.axes):
        if its.name not in model.dims or its.name == model.hierarchy[-1]:
            continue
        at = model.dims.index(its.name)
        own, whole = model.axes[at], model.coverage.axes[at]
        lost = whole.take(~nearest(whole.numbers, own.numbers, own.turn)[1])
        if not lost.size:
            continue
        numbers = own.encode(convert_coordinates(its, own))
        gone = nearest(numbers, lost.numbers, own.turn)[1]
        seen = np.flatnonzero(gone)[observed_slices(grid.values.compress(gone, place), place)]
        if seen.size:
            raise InputError(
                f"The new slices have data at '{its.name}' {list_some(its.take(seen).texts)}, "
                "where the model has never had any. Fit all slices again."
            )
        kept = [np.arange(axis.size) for axis in grid.axes]
        kept[place] = np.flatnonzero(~gone)
        grid = grid.take(kept)
    return grid


def measure_surprise(
    model: Model, values: Array, new: Axis, noise: Array | None = None
) -> Surprise:
    """Return how far new slices are from the predictions of a model that has not learnt them.

    `noise` is the standard errors of the slices: as much more may they differ.
    """
    queries = list(model.queries(model.axes))
    queries[model.grows] = new.numbers
    errors = model.cascade.predict(queries) - values
    promised = model.variance(queries)
    if noise is not None:
        promised = promised + np.nan_to_num(noise) ** 2
    seen = np.isfinite(errors) & (promised > 0)
    return Surprise.measure(errors[seen], promised[seen])


def _refuse_no_averages(model: Model, values: Array) -> None:
    """Raise InputError if new slices hold codes, or directions that go round.

    Directions may go round within the new slices, or from the last one to them.
    """
    if not values.size:
        return
    seen = np.ravel(values)
    if turn_of(model.name, model.attrs, 0.0, 0.0) is not None:
        growing = model.growing
        last = model.cut(growing.slices(np.array([np.argmax(growing.coordinates)])))
        seen = np.concatenate([np.ravel(last), seen])
    ends = np.fmin.reduce(seen), np.fmax.reduce(seen)
    refuse_no_averages(model.name, model.attrs, *ends, model.style.packing)


def add_slices(
    model: Model,
    values: Array,
    new: Axis,
    *,
    replace: bool = False,
    window: int | None = None,
    max_rank: int | None = None,
    errors: Array | None = None,
    accept_inexact: bool = False,
) -> Model:
    """Return the model with new slices, each in its place by its coordinate.

    Parameters
    ----------
    model
        The model before.
    values, new
        The slices with the axes of the model, NaN where missing, and their axis: see :func:`align`.
    replace
        Whether a slice may take the place of one at the same coordinate.
    window
        How many slices to keep at most: those of the largest coordinates.
    max_rank
        How many slices to keep at most: see :func:`thin`.
    errors
        Standard errors of the slices, for a model of observations with errors: see
        :func:`slice_errors`. None: the number that the model was fitted with.
    accept_inexact
        Whether to take missing cells that could not be solved for exactly, with a warning.

    Raises
    ------
    ConvergenceError
        If missing cells are solved for less exactly than a fit does, and that is not accepted.
    """
    if model.observations is not None and errors is None and values.size:
        number = read_number(usual_error(model))
        if number is None:
            raise _no_errors()
        errors = np.full(values.shape, number)
    if window is not None and window < 1:
        raise SettingError(f"Invalid window {window}. It must be 1 or above.")
    _refuse_no_averages(model, values)
    if model.bounds is not None:
        model = dataclasses.replace(model, bounds=model.bounds.admit(values))
    count = int(model.origin.get("slices_added", 0)) + observed_slices(values, model.grows).size
    facts = {"slices_added": count, PROMISE: None}  # what was measured, was before these slices
    rows = model.poles
    if rows is not None and model.grows in (rows.latitude, rows.longitude):
        bare = _without_poles(model)
        joined = _join(bare, values, new, replace, window, None, accept_inexact)
        after = _settle(_with_facts(joined, facts), accept_inexact)
        after = after if max_rank is None else thin(after, max_rank, accept_inexact)
        return _across_poles(after, rows.sign)
    whole = model.extend(values)
    joined = _join(model, whole, new, replace, window, errors, accept_inexact)
    after = _settle(_with_facts(joined, facts), accept_inexact)
    return after if max_rank is None else thin(after, max_rank, accept_inexact)


def _without_poles(model: Model) -> Model:
    """Return a model that ends at the poles, with the same settings."""
    if model.poles is None:
        return model
    bare, unobserved = model.poles.bare(model.cascade), model.unobserved
    return dataclasses.replace(
        model, cascade=bare, known_bars=None, filled=unobserved, store=None, poles=None
    )


def _across_poles(model: Model, sign: int) -> Model:
    """Return a model that goes on across the poles, with the same settings; or ends there still.

    New latitudes or longitudes need other rows there.
    """
    trained, filled = model.cascade, model.filled
    periods = [level.kernel.period for level in trained.levels]
    places = plan_poles(model.axes, periods, "auto")
    if places is None:
        return model
    rows = continue_rows(
        model.axes, places, sign, trained.levels, trained.joint_ridge, trained.mean
    )
    cascade = fit_cascade(
        rows.extend(trained.predict()),
        [axis.numbers for axis in extend_axes(model.axes, rows)],
        trained.levels,
        joint_ridge=trained.joint_ridge,
        mean=trained.mean,
        compact=trained.compact,
        dtype=trained.storage,
    )
    if filled is not None:
        filled = rows.extend_mask(filled)
    return dataclasses.replace(
        model, cascade=cascade, known_bars=None, filled=filled, store=None, poles=rows
    )


def _settle(model: Model, accept_inexact: bool) -> Model:
    """Choose the settings of the last level for a model that was fitted to one slice.

    One slice says nothing of them, so they are chosen each time there are twice as many slices,
    until there are enough to choose them for good.
    """
    chosen_on, slices = model.origin.get(CHOSEN_ON), model.axes[model.grows].size
    if chosen_on is None or slices < 2 * chosen_on:
        return model
    from dkrls_cli.model.fit import retune

    settled = retune(_with_facts(model, {CHOSEN_ON: None}), accept_inexact=accept_inexact)
    return _with_facts(settled, {CHOSEN_ON: slices if slices < _ENOUGH else None})


def change_settings(
    model: Model,
    levels: Sequence[Level],
    joint_ridge: float | None,
    bars: Bars,
    notes: list[str],
    *,
    accept_inexact: bool = False,
) -> Model:
    """Return the model of the same slices with other settings, and error bars of that width.

    Missing cells are filled again with the new settings.
    """
    factors = (None,) * len(levels)
    cascade = dataclasses.replace(
        model.cascade, levels=tuple(levels), joint_ridge=joint_ridge, factors=factors
    )
    known = model.known_bars
    if isinstance(known, GapBars) and isinstance(bars, GapBars):
        known = _keep_group(known, rescale(bars, known.unobserved))
    if isinstance(known, NoisyBars) and isinstance(bars, NoisyBars):
        known = _keep_observations(known, bars)
    origin = {**model.origin, "notes": notes}
    changed = dataclasses.replace(model, cascade=cascade, known_bars=known, origin=origin)
    none = np.arange(0)
    slices = model.cut(model.growing.slices(none))
    nothing = slices, model.axes[model.grows].take(none)
    return add_slices(changed, *nothing, accept_inexact=accept_inexact)


def thin(model: Model, max_rank: int, accept_inexact: bool = False) -> Model:
    """Drop the slices whose coordinates the others span best, until `max_rank` are left.

    That is the approximate linear dependency of S-KRLS on the level that grows: the slice with the
    least variance given the others goes first. The cost is the error with which those left predict
    the slices that went; it is kept in ``origin["thinned"]``.
    """
    if max_rank < 1:
        raise SettingError(f"Invalid rank {max_rank}. It must be 1 or above.")
    if model.hierarchy[-1] in model.cell_means:
        raise SettingError(
            f"The data are means over cells of '{model.hierarchy[-1]}', and slices left out would "
            "leave it unknown where their neighbours' cells end. Keep the last slices instead, in "
            "a window, or all of them.",
            setting="max_rank",
        )
    growing = model.growing
    if growing.coordinates.size <= max_rank:
        return model
    kept = _least_dependent(growing, max_rank)
    gone = np.setdiff1d(np.arange(growing.coordinates.size), kept)
    none = growing.slices(gone[:0]), growing.coordinates[:0]
    axis = model.axes[model.grows].take(kept)
    fewer = _rearrange(model, *none, axis, kept, accept_inexact=accept_inexact)
    queries: list[Array | None] = [None] * growing.cascade.ndim
    queries[growing.axis] = growing.coordinates[gone]
    errors = model.cut(fewer.cascade.predict(queries) - growing.slices(gone))
    unobserved = model.unobserved
    seen = slice(None) if unobserved is None else ~unobserved.take(gone, growing.axis)
    before = model.origin.get("thinned") or {"slices": 0, "rmse": 0.0}
    slices = gone.size + before["slices"]
    squares = gone.size * float(np.mean(errors[seen] ** 2)) + before["slices"] * before["rmse"] ** 2
    return _with_facts(fewer, {"thinned": {"slices": slices, "rmse": math.sqrt(squares / slices)}})


def observed_slices(values: Array, grows: int) -> Indices:
    """Return the places of the slices with at least one observed cell."""
    others = tuple(axis for axis in range(values.ndim) if axis != grows)
    return np.flatnonzero(~np.isnan(values).all(axis=others))


def _join(
    model: Model,
    values: Array,
    new: Axis,
    replace: bool,
    window: int | None,
    errors: Array | None = None,
    accept_inexact: bool = False,
) -> Model:
    """Return the model with new slices among the old ones."""
    model.cascade.levels[model.grows].kernel.warped(new.numbers)  # or refuse them
    if _only_follow(model, values, new):
        return _append(model, values, new, window)
    seen = observed_slices(values, model.grows)
    values, new = values.take(seen, model.grows), new.take(seen)
    errors = None if errors is None else errors.take(seen, model.grows)
    kernel, old = model.cascade.levels[model.grows].kernel, model.axes[model.grows]
    _refuse_repeated(kernel, new)
    kept = _kept_slices(kernel, old, new, replace)
    together = old.take(kept).append(new)
    places = _order_slices(together.numbers, old.numbers, window)
    source = np.concatenate([kept, old.size + np.arange(new.size)])[places]
    axis = together.take(places)
    return _rearrange(model, values, new.numbers, axis, source, errors, accept_inexact)


def _only_follow(model: Model, values: Array, new: Axis) -> bool:
    """Return whether complete slices come behind complete ones, as they mostly do."""
    circle = model.cascade.levels[model.grows].kernel.period is not None
    if circle or _has_gaps(model, values) or model.observations is not None:
        return False
    growing = model.growing
    return growing.rises and does_rise(np.concatenate([growing.coordinates[-1:], new.numbers]))


def _append(model: Model, values: Array, new: Axis, window: int | None) -> Model:
    """Return the model with slices behind its own; nothing but these is touched."""
    old = model.axes[model.grows]
    over = 0 if window is None else max(0, old.size + new.size - window)
    if over > old.size:
        kept = np.arange(over - old.size, new.size)
        values, new, over = values.take(kept, model.grows), new.take(kept), old.size
    growing = model.growing.append(new.numbers, values, drop=over)
    return _with_slices(model, growing, _follow(old, new, growing.coordinates, over))


def _follow(old: Axis, new: Axis, together: Array, over: int) -> Axis:
    """Return an axis followed by a new one; the numbers of both are known, and are not copied."""
    if old.turn is not None:
        return old.append(new, without=over)
    return dataclasses.replace(old, numbers=together, labels=new.labels)


def _refuse_repeated(kernel: Kernel, new: Axis) -> None:
    """Raise InputError if two of the new slices have the same coordinate."""
    same = repeated(new.numbers, kernel.period)
    if same:
        text = new.take([same[0]]).texts[0]
        raise InputError(f"Coordinate {text} of '{new.name}' is twice in the new slices.")


def _kept_slices(kernel: Kernel, old: Axis, new: Axis, replace: bool) -> Indices:
    """Return the places of old slices that no new one replaces.

    Raises InputError if a new slice has the coordinate of an old one and may not replace it.
    """
    near, same = nearest(new.numbers, old.numbers, kernel.period)
    if same.any() and not replace:
        text = new.take(np.flatnonzero(same)[:1]).texts[0]
        raise InputError(
            f"Coordinate {text} of '{new.name}' is in the model already. Leave the slice out, or "
            "replace the old one.",
            setting="replace",
        )
    return np.setdiff1d(np.arange(old.size), near[same])


def _order_slices(numbers: Array, old: Array, window: int | None) -> Indices:
    """Return the places of the slices that stay, in the order that the old ones had, if any."""
    steps = np.diff(old)
    order = np.arange(numbers.size)
    if (steps > 0).all():
        order = np.argsort(numbers, kind="stable")
    elif (steps < 0).all():
        order = np.argsort(-numbers, kind="stable")
    if window is None or window >= numbers.size:
        return order
    last = np.sort(np.argsort(numbers, kind="stable")[-window:])
    return order[np.isin(order, last)]


def _rearrange(
    model: Model,
    values: Array,
    numbers: Array,
    axis: Axis,
    source: Indices,
    errors: Array | None = None,
    accept_inexact: bool = False,
) -> Model:
    """Return the model with the slices from `source`, which stand on `axis`.

    `source` counts the old slices first and then the new ones, `values` at `numbers`.
    """
    judge = _Judge(model, accept_inexact)
    if isinstance(model.known_bars, NoisyBars):
        new = np.zeros(values.shape) if errors is None else errors
        observations = model.known_bars.observations.append(values, new, model.grows)
        taken = observations.take(source, model.grows)
        return _reanalyse(model, taken, model.known_bars, axis, judge)
    if _has_gaps(model, values):
        missing = _missing_cells(model, values)[source]
        if model.joint_ridge is not None:
            return _refill_all(model, values, axis, source, missing, judge)
        if missing.any():
            return _refill_slices(model, values, axis, source, missing, judge)
    growing = model.growing.append(numbers, values)
    return _with_slices(model, _take_slices(growing, source), axis)


@dataclass(frozen=True, eq=False)
class _Judge:
    """Says whether missing cells are solved for as exactly as in a fit.

    A fit ends when what is still due is far below the error of the model. An update goes on, so
    that the order of slices does not matter; but where it gets stuck, that much is enough.

    Attributes
    ----------
    model
        The model before.
    accept_inexact
        Whether to go on, with a warning, where they are not.
    """

    model: Model
    accept_inexact: bool

    def check(self, done: Completed, values: Array) -> Completed:
        """Return the solve of a grid, NaN where it is missing; raise if it is not good enough."""
        if done.converged:
            return done
        given = self.model.origin.get("missing", {}).get("settings_tried") == 1
        error = 0.0 if given else float(self.model.bars.errors.min())  # given: as exact as can be
        if done.residual <= final_tolerance(error, float(np.nanstd(values))):
            return dataclasses.replace(done, converged=True)
        if not self.accept_inexact:
            raise inexact_error(done)
        return done


def _has_gaps(model: Model, values: Array) -> bool:
    return model.trained_unobserved is not None or bool(np.isnan(values).any())


def _missing_cells(model: Model, values: Array) -> Mask:
    """Return which cells of old and new slices are missing, the axis that grows first."""
    known, shape = model.trained_unobserved, model.cascade.shape
    before = np.zeros(shape, bool) if known is None else known
    together: Mask = np.concatenate([before, np.isnan(values)], axis=model.grows)
    return np.moveaxis(together, model.grows, 0)


def _take_slices(growing: Growing, places: Indices) -> Growing:
    """Return slices in this order; if only the first ones go, no other is touched."""
    first = places[0]
    if np.array_equal(places, np.arange(first, growing.coordinates.size)):
        return growing.drop_first(int(first)) if first else growing
    return growing.take(places)


def _refill_slices(
    model: Model, values: Array, axis: Axis, source: Indices, missing: Mask, judge: _Judge
) -> Model:
    """Fill slices with gaps from the complete ones and from each other, under level ridges.

    All stand in the order of the axis, whenever they came: an iterative solve depends on the order,
    to its tolerance.
    """
    growing, old = model.growing, model.axes[model.grows].size
    gappy: Mask = np.asarray(missing.reshape(len(missing), -1).any(axis=1))
    whole = _take_complete(growing, values, axis.take(~gappy).numbers, source[~gappy], old)
    slices = _gather(growing, values, source[gappy], old)
    slices[np.moveaxis(missing[gappy], 0, growing.axis)] = np.nan
    coordinates = axis.numbers[gappy]
    done = judge.check(fill_slices(whole, coordinates, slices), slices)
    done = _like_data(model, values, done, np.isnan(slices))
    together = whole.append(coordinates, done.values)
    places = np.argsort(np.concatenate([np.flatnonzero(~gappy), np.flatnonzero(gappy)]))
    unobserved = np.moveaxis(missing, 0, growing.axis)
    return _with_slices(model, together.take(places), axis, filled=unobserved, done=done)


def _take_complete(
    growing: Growing, values: Array, coordinates: Array, source: Indices, old: int
) -> Growing:
    """Return old and new slices without gaps."""
    new = source >= old
    together = growing.append(coordinates[new], values.take(source[new] - old, growing.axis))
    places = source.copy()
    places[new] = old + np.arange(np.count_nonzero(new))
    return together.take(places)


def _gather(growing: Growing, values: Array, source: Indices, old: int) -> Array:
    """Return old and new slices as they were given, in the order of `source`."""
    by_age = np.argsort(source)
    before, new = np.split(source[by_age], [np.count_nonzero(source < old)])
    parts = [growing.slices(before), values.take(new - old, growing.axis)]
    return np.concatenate(parts, growing.axis).take(np.argsort(by_age), growing.axis)


def _refill_all(
    model: Model, values: Array, axis: Axis, source: Indices, missing: Mask, judge: _Judge
) -> Model:
    """Solve for all missing cells again, as a fit does, under a joint ridge."""
    growing, trained = model.growing, model.cascade
    slices = _gather(growing, values, source, model.axes[model.grows].size)
    unobserved = np.moveaxis(missing, 0, growing.axis)
    slices[unobserved] = np.nan
    nodes = list(trained.coordinates)
    nodes[growing.axis] = axis.numbers
    kernels, ridge = [level.kernel for level in trained.levels], trained.joint_ridge or 0.0
    spectra = [
        None if is_long(k, c) else decompose(gram(k, c, c))
        for k, c in zip(kernels, nodes, strict=True)
    ]
    done = complete(
        slices,
        nodes,
        kernels,
        ridge,
        trained.mean,
        grouping=_grouping(model),
        limit=_LIMIT,
        spectra=spectra,
    )
    done = judge.check(done, slices)
    done = _like_data(model, values, done, unobserved)
    solved = fit_cascade(
        done.values,
        nodes,
        trained.levels,
        joint_ridge=ridge,
        mean=trained.mean,
        dtype=trained.storage,
        spectra=spectra,
    )
    known = calibrate(trained, model.poles) if model.known_bars is None else model.known_bars
    bars = rescale(known, unobserved)
    return _with_slices(model, Growing(solved, growing.axis), axis, bars=bars, done=done)


def _reanalyse(
    model: Model, seen: Observations, bars: NoisyBars, axis: Axis, judge: _Judge
) -> Model:
    """Return the model of other observations, with the same settings, as a fit makes it."""
    growing, trained = model.growing, model.cascade
    nodes = list(trained.coordinates)
    nodes[growing.axis] = axis.numbers
    kernels, ridge = [level.kernel for level in trained.levels], trained.joint_ridge or 0.0
    done = analyse(
        make_field(nodes, kernels, bars.grouping),
        seen.values,
        ridge,
        seen.errors**2 / bars.scale,
        trained.mean,
        tolerance=_EXACT,
        limit=_LIMIT,
    )
    done = judge.check(done, seen.values)
    if fits_single(seen.values):
        every = np.ones(seen.values.shape, bool)
        done = dataclasses.replace(done, values=round_to_single(done.values, every))
    solved = fit_cascade(
        done.values,
        nodes,
        trained.levels,
        joint_ridge=ridge,
        mean=trained.mean,
        dtype=trained.storage,
    )
    known = dataclasses.replace(bars, observations=seen, factors=bars.known_factors)
    after = _with_slices(model, Growing(solved, growing.axis), axis, bars=known, done=done)
    facts = {**model.origin.get(OBS_ERRORS, {}), **describe_errors(seen.errors, seen.observed)}
    return _with_facts(after, {OBS_ERRORS: facts, "notes": solve_notes(done)})


def _keep_observations(before: NoisyBars, bars: NoisyBars) -> NoisyBars:
    """Return new error bars of the same observations, and of their group, if they have one."""
    kept = dataclasses.replace(bars, observations=before.observations)
    if not before.grouping.axes:
        return kept
    return dataclasses.replace(kept, grouping=before.grouping, factors=before.known_factors)


def _keep_group(before: GapBars, bars: GapBars) -> GapBars:
    """Return new error bars of a model whose holes are still filled with its group, if it has one.

    Other settings are chosen with a product of kernels, which says nothing of the group.
    """
    if not before.grouping.axes:
        return bars
    factors = before.hole_factors or bars.factors
    return dataclasses.replace(bars, grouping=before.grouping, factors=factors)


def _grouping(model: Model) -> Grouping:
    """Return which axes of a model share one distance."""
    return model.known_bars.grouping if isinstance(model.known_bars, GapBars) else NO_GROUPS


def _like_data(model: Model, values: Array, done: Completed, filled: Mask) -> Completed:
    """Return filled cells as numbers that float32 holds, if it holds those of model and slices."""
    if not (fits_single(model.cascade.core) and fits_single(values)):
        return done
    return dataclasses.replace(done, values=round_to_single(done.values, filled))


def _least_dependent(growing: Growing, most: int) -> Indices:
    """Return the places of the slices that stay; among equals the oldest place goes first."""
    level = growing.cascade.levels[growing.axis]
    if is_long(level.kernel, growing.coordinates):
        return _least_dependent_of_many(level, growing.coordinates, most)
    spectrum = growing.cascade.covariance.spectrum(growing.axis)
    ridge = growing.cascade.covariance.levels[growing.axis].ridge or ROUND_OFF * float(
        spectrum.values[0]
    )
    with one_blas_thread():
        inverse = spectrum.inverse(ridge)
    left = np.arange(growing.coordinates.size)
    while left.size > most:
        precision = inverse.diagonal()
        goes = int(np.argmax(precision >= (1 - _ALIKE) * precision.max()))
        column = np.delete(inverse[:, goes], goes)
        inverse = np.delete(np.delete(inverse, goes, 0), goes, 1)
        inverse -= np.outer(column, column / precision[goes])
        left = np.delete(left, goes)
    return left


def _least_dependent_of_many(level: Level, coordinates: Array, most: int) -> Indices:
    """Return the places of the slices of a long level that stay, without a matrix of all of them.

    One by one would take a factor for each slice that goes. Slices go in rounds instead, a quarter
    of those that are still to go at a time, no two of them neighbours; the last few go one by one.
    """
    left = np.arange(coordinates.size)
    while left.size > most:
        factor = LongFactor.build(level.kernel, coordinates[left], level.ridge)
        with one_blas_thread():
            precision = factor.inverse_diagonal()
        going = _pick_apart(precision, coordinates[left], -(-(left.size - most) // 4))
        left = np.delete(left, going)
    return left


def _pick_apart(precision: Array, coordinates: Array, count: int) -> list[int]:
    """Return at most so many places of largest precision, no two of them neighbours; one at least.

    Precisions that are equal but for rounding count as equal, and the oldest place goes first.
    """
    order = np.argsort(coordinates)
    rank = np.argsort(order)
    below = np.floor((1 - precision / precision.max()) / _ALIKE)
    taken = np.zeros(order.size + 2, bool)
    picked: list[int] = []
    for place in np.lexsort([np.arange(order.size), below]):
        if not taken[rank[place] : rank[place] + 3].any():
            taken[rank[place] + 1] = True
            picked.append(int(place))
            if len(picked) == count:
                break
    return picked


def _with_slices(
    model: Model,
    growing: Growing,
    axis: Axis,
    *,
    bars: Bars | None = None,
    filled: Mask | None = None,
    done: Completed | None = None,
) -> Model:
    """Return the model with other slices; `done` is how its missing cells were solved for."""
    axes = list(model.axes)
    axes[model.grows] = axis
    changed = dataclasses.replace(
        model,
        cascade=growing.cascade,
        axes=tuple(axes),
        known_bars=bars,
        filled=filled,
        store=growing.store,
    )
    changed = _grow_coverage(model, changed)
    if changed.unobserved is None:
        lasting = {key: value for key, value in changed.origin.items() if key != "missing"}
        return dataclasses.replace(changed, origin=lasting)
    return _with_facts(changed, _gap_facts(changed, done))


def _grow_coverage(model: Model, changed: Model) -> Model:
    """Return a model with the coverage of its slices, which are others than before.

    One slice shows no land, and shape decided what is; several slices show it.
    """
    axis = changed.axes[changed.grows]
    grown = model.coverage.grow(
        model.grows, changed.axes, changed.unobserved, _with_lost(model, axis)
    )
    if "land" in model.origin and place_of(axis) is None and axis.size > 1:
        values = np.zeros(changed.shape)
        if changed.unobserved is not None:
            values[changed.unobserved] = np.nan
        known = Grid(values, changed.axes, changed.name, changed.attrs)
        grown = grown.with_land(changed.axes, lasting_mask(known, changed.hierarchy).cells)
        changed = _with_facts(changed, {"land": None})
    return dataclasses.replace(changed, known_coverage=grown)


def _with_lost(model: Model, axis: Axis) -> Axis:
    """Return new slices of a model, and among them those of its file that have no data at all."""
    own, whole = model.axes[model.grows], model.coverage.axes[model.grows]
    if own.size == whole.size or axis.labels is not None:
        return axis
    lost = whole.take(~nearest(whole.numbers, own.numbers, own.turn)[1])
    between = (lost.numbers > axis.numbers.min()) & (lost.numbers < axis.numbers.max())
    lost = lost.take(between & ~nearest(lost.numbers, axis.numbers, own.turn)[1])
    together = axis.append(lost)
    return together.take(_order_slices(together.numbers, axis.numbers, None))


def _with_facts(model: Model, facts: Attributes) -> Model:
    """Return the model with more known about its origin; a fact that is None is forgotten."""
    origin = {**model.origin, **facts}
    known = {key: fact for key, fact in origin.items() if fact is not None}
    return dataclasses.replace(model, origin=known)


def _gap_facts(model: Model, done: Completed | None) -> dict[str, Any]:
    """Return what is missing now, and how well it is solved for."""
    if done is None or model.unobserved is None:
        return {}
    known = {"settings_tried": 0, **model.origin.get("missing", {})}
    found = missing_facts(~model.unobserved, model.axes, model.grows, done)
    return {"missing": known | found, "notes": solve_notes(done)}
