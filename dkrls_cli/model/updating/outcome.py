"""A model with other slices: its axes, its coverage, and what is known of its origin."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from dkrls_cli.arrays import Mask
from dkrls_cli.cascade.errorbars.bars import Bars
from dkrls_cli.cascade.growing import Growing
from dkrls_cli.circle import nearest
from dkrls_cli.gaps.solve import Completed
from dkrls_cli.grid.axes import Attributes, Axis
from dkrls_cli.grid.cf import place_of
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.answering.masks import lasting_mask
from dkrls_cli.model.model import Model
from dkrls_cli.model.training.result import missing_facts, solve_notes
from dkrls_cli.model.updating.order import order_slices

if TYPE_CHECKING:
    pass


def with_slices(
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
    return with_facts(changed, _gap_facts(changed, done))


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
        changed = with_facts(changed, {"land": None})
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
    return together.take(order_slices(together.numbers, axis.numbers, None))


def with_facts(model: Model, facts: Attributes) -> Model:
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
