"""Fewer slices that span the level that grows about as well."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.factors.choice import is_long
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.growing import Growing
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.spectrum import ROUND_OFF
from dkrls_cli.errors import SettingError
from dkrls_cli.model.model import Model
from dkrls_cli.model.updating.joining import rearrange
from dkrls_cli.model.updating.outcome import with_facts
from dkrls_cli.threads import one_blas_thread

if TYPE_CHECKING:
    pass


# Relative difference of two variances that count as equal.
_ALIKE = 1e-6


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
    fewer = rearrange(model, *none, axis, kept, accept_inexact=accept_inexact)
    queries: list[Array | None] = [None] * growing.cascade.ndim
    queries[growing.axis] = growing.coordinates[gone]
    errors = model.cut(fewer.cascade.predict(queries) - growing.slices(gone))
    unobserved = model.unobserved
    seen = slice(None) if unobserved is None else ~unobserved.take(gone, growing.axis)
    before = model.origin.get("thinned") or {"slices": 0, "rmse": 0.0}
    slices = gone.size + before["slices"]
    squares = gone.size * float(np.mean(errors[seen] ** 2)) + before["slices"] * before["rmse"] ** 2
    return with_facts(fewer, {"thinned": {"slices": slices, "rmse": math.sqrt(squares / slices)}})


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
