"""New slices among the old ones: which are kept, and where they go."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.growing import Growing, does_rise
from dkrls_cli.gaps.noisy.bars import NoisyBars
from dkrls_cli.grid.axes import Axis
from dkrls_cli.model.model import Model
from dkrls_cli.model.updating.order import (
    kept_slices,
    observed_slices,
    order_slices,
    refuse_repeated,
)
from dkrls_cli.model.updating.outcome import with_slices
from dkrls_cli.model.updating.refilling import (
    Judge,
    has_gaps,
    missing_cells,
    reanalyse,
    refill_all,
    refill_slices,
)

if TYPE_CHECKING:
    pass


def join(
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
    refuse_repeated(kernel, new)
    kept = kept_slices(kernel, old, new, replace)
    together = old.take(kept).append(new)
    places = order_slices(together.numbers, old.numbers, window)
    source = np.concatenate([kept, old.size + np.arange(new.size)])[places]
    axis = together.take(places)
    return rearrange(model, values, new.numbers, axis, source, errors, accept_inexact)


def _only_follow(model: Model, values: Array, new: Axis) -> bool:
    """Return whether complete slices come behind complete ones, as they mostly do."""
    circle = model.cascade.levels[model.grows].kernel.period is not None
    if circle or has_gaps(model, values) or model.observations is not None:
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
    return with_slices(model, growing, _follow(old, new, growing.coordinates, over))


def _follow(old: Axis, new: Axis, together: Array, over: int) -> Axis:
    """Return an axis followed by a new one; the numbers of both are known, and are not copied."""
    if old.turn is not None:
        return old.append(new, without=over)
    return dataclasses.replace(old, numbers=together, labels=new.labels)


def rearrange(
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
    judge = Judge(model, accept_inexact)
    if isinstance(model.known_bars, NoisyBars):
        new = np.zeros(values.shape) if errors is None else errors
        observations = model.known_bars.observations.append(values, new, model.grows)
        taken = observations.take(source, model.grows)
        return reanalyse(model, taken, model.known_bars, axis, judge)
    if has_gaps(model, values):
        missing = missing_cells(model, values)[source]
        if model.joint_ridge is not None:
            return refill_all(model, values, axis, source, missing, judge)
        if missing.any():
            return refill_slices(model, values, axis, source, missing, judge)
    growing = model.growing.append(numbers, values)
    return with_slices(model, _take_slices(growing, source), axis)


def _take_slices(growing: Growing, places: Indices) -> Growing:
    """Return slices in this order; if only the first ones go, no other is touched."""
    first = places[0]
    if np.array_equal(places, np.arange(first, growing.coordinates.size)):
        return growing.drop_first(int(first)) if first else growing
    return growing.take(places)
