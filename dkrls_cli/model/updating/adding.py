"""Slices that are added to a model, and models of the same slices with other settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.errorbars.bars import Bars
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.level import Level
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.gaps.bars import GapBars, rescale
from dkrls_cli.gaps.noisy.bars import NoisyBars
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.observations import read_number
from dkrls_cli.grid.quantities import refuse_no_averages, turn_of
from dkrls_cli.model.answering.tolerance import PROMISE
from dkrls_cli.model.model import Model
from dkrls_cli.model.poles.crossing import continue_rows
from dkrls_cli.model.poles.planning import extend_axes, plan_poles
from dkrls_cli.model.training.result import CHOSEN_ON
from dkrls_cli.model.updating.alignment import no_errors, usual_error
from dkrls_cli.model.updating.joining import join
from dkrls_cli.model.updating.order import observed_slices
from dkrls_cli.model.updating.outcome import with_facts
from dkrls_cli.model.updating.refilling import has_gaps, keep_group, keep_observations
from dkrls_cli.model.updating.thinning import thin

if TYPE_CHECKING:
    pass


# Slices that are enough to choose the settings of the last level for good: two years of months.
_ENOUGH = 24


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
    InputError
        If cells are missing under a joint ridge, and the slices change the rows across the poles.
    """
    if model.observations is not None and errors is None and values.size:
        number = read_number(usual_error(model))
        if number is None:
            raise no_errors()
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
        if model.joint_ridge is not None and has_gaps(model, values):
            raise InputError(
                "The data has missing cells and goes on across the poles, and new coordinates of "
                f"'{new.name}' change the rows from which they are solved for. Fit all slices "
                "again."
            )
        bare = _without_poles(model)
        joined = join(bare, values, new, replace, window, None, accept_inexact)
        after = _settle(with_facts(joined, facts), accept_inexact)
        after = after if max_rank is None else thin(after, max_rank, accept_inexact)
        return _across_poles(after, rows.sign)
    whole = model.extend(values)
    joined = join(model, whole, new, replace, window, errors, accept_inexact)
    after = _settle(with_facts(joined, facts), accept_inexact)
    return after if max_rank is None else thin(after, max_rank, accept_inexact)


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

    settled = retune(with_facts(model, {CHOSEN_ON: None}), accept_inexact=accept_inexact)
    return with_facts(settled, {CHOSEN_ON: slices if slices < _ENOUGH else None})


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
        known = keep_group(known, rescale(bars, known.unobserved))
    if isinstance(known, NoisyBars) and isinstance(bars, NoisyBars):
        known = keep_observations(known, bars)
    origin = {**model.origin, "notes": notes}
    changed = dataclasses.replace(model, cascade=cascade, known_bars=known, origin=origin)
    none = np.arange(0)
    slices = model.cut(model.growing.slices(none))
    nothing = slices, model.axes[model.grows].take(none)
    return add_slices(changed, *nothing, accept_inexact=accept_inexact)
