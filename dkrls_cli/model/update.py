"""New slices join a model: what they must be like, where they go, and what is kept.

The result is the model that a fit of all slices kept would make with the same settings, whatever
the order in which they came: slices stand in the order of their coordinates, and cells that were
missing are filled anew from all that is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.cascade import cascade as cascades
from dkrls_cli.cascade.errorbars import Calibration, calibrate
from dkrls_cli.cascade.growing import Growing
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.spectrum import ROUND_OFF
from dkrls_cli.circle import nearest, repeated
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.gaps.bars import Bars, GapBars, distance
from dkrls_cli.gaps.slices import fill_slices
from dkrls_cli.gaps.solve import Completed, complete
from dkrls_cli.grid.axes import Axis
from dkrls_cli.threads import one_blas_thread

_ALIKE = 1e-6
"""Relative difference of variances that are taken as equal."""

_FAR = 3.0
"""Errors so many times as large as promised are no chance."""


@dataclass(frozen=True, eq=False)
class Held:
    """What of a model changes when slices come and go.

    Attributes
    ----------
    growing
        The cascade, and the axis along which it grows.
    axis
        What the coordinates of the slices mean.
    unobserved
        Cells that were missing and are filled, in the shape of the grid; None: there is none.
    bars
        What error bars are made from; None where they are to be calibrated anew.
    done
        How missing cells were solved for, if there are any.
    """

    growing: Growing
    axis: Axis
    unobserved: Mask | None
    bars: Bars | None
    done: Completed | None = None

    @property
    def kernel(self) -> Kernel:
        """That of the level that grows."""
        return self.growing.cascade.levels[self.growing.axis].kernel


def updated(held: Held, values: Array, new: Axis, *, replace_old: bool, window: int | None) -> Held:
    """With new slices, each in its place by its coordinate.

    Parameters
    ----------
    held
        What there is.
    values, new
        The slices, NaN where missing, and their coordinates: see :mod:`dkrls_cli.grid.alignment`.
    replace_old
        Whether a slice may take the place of one at the same coordinate.
    window
        How many slices to keep at most: those of the largest coordinates.
    """
    if window is not None and window < 1:
        raise SettingError(f"Invalid window {window}. It must be 1 or above.")
    if _just_follow(held, values, new):
        return _followed(held, values, new, window)
    values, new = _without_empty(values, new, held.growing.axis)
    _refuse_twice(held.kernel, new)
    kept = _kept(held, new, replace_old)
    together = held.axis.take(kept).joined(new)
    places = _places(together.numbers, held.axis.numbers, window)
    source = np.concatenate([kept, held.axis.size + np.arange(new.size)])[places]
    return _moved(held, values, new.numbers, together.take(places), source)


def _just_follow(held: Held, values: Array, new: Axis) -> bool:
    """Whether complete slices come behind complete ones, as they mostly do."""
    if held.kernel.period is not None or isinstance(held.bars, GapBars) or _has_gaps(held, values):
        return False
    behind = np.concatenate([held.axis.numbers[-1:], new.numbers])
    return all(bool((n[1:] > n[:-1]).all()) for n in (held.axis.numbers, behind))


def _followed(held: Held, values: Array, new: Axis, window: int | None) -> Held:
    """With slices behind; nothing but these is touched."""
    total = held.axis.size + new.size
    over = 0 if window is None else max(0, total - window)
    if over > held.axis.size:
        surplus = over - held.axis.size
        kept = np.arange(surplus, new.size)
        values, new, over = values.take(kept, held.growing.axis), new.take(kept), held.axis.size
    growing = held.growing.grown(new.numbers, values, without=over)
    return Held(growing, held.axis.joined(new, without=over), None, None)


def _without_empty(values: Array, new: Axis, grows: int) -> tuple[Array, Axis]:
    """Slices with one observed cell at least."""
    seen = observed_slices(values, grows)
    if seen.size == new.size:
        return values, new
    return values.take(seen, grows), new.take(seen)


def observed_slices(values: Array, grows: int) -> Indices:
    """Places of the slices with one observed cell at least."""
    others = tuple(axis for axis in range(values.ndim) if axis != grows)
    return np.flatnonzero(~np.isnan(values).all(axis=others))


def _refuse_twice(kernel: Kernel, new: Axis) -> None:
    twice = repeated(new.numbers, kernel.period)
    if twice:
        text = new.take([twice[0]]).texts[0]
        raise InputError(f"Coordinate {text} of '{new.name}' is twice in the new slices.")


def _kept(held: Held, new: Axis, replace_old: bool) -> Indices:
    """Places of old slices that no new one replaces."""
    near, same = nearest(new.numbers, held.axis.numbers, held.kernel.period)
    if same.any() and not replace_old:
        text = new.take(np.flatnonzero(same)[:1]).texts[0]
        raise InputError(
            f"Coordinate {text} of '{new.name}' is in the model already. Give --replace to learn "
            "it anew, or leave it out."
        )
    return np.setdiff1d(np.arange(held.axis.size), near[same])


def _places(numbers: Array, old: Array, window: int | None) -> Indices:
    """Which coordinates stay, and in which order: that of the old ones, if they had any."""
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


def _moved(held: Held, values: Array, numbers: Array, axis: Axis, source: Indices) -> Held:
    """The slices from `source`: places of old ones, and behind them those of the new."""
    if isinstance(held.bars, GapBars) or _has_gaps(held, values):
        lost = _lost(held, values)[source]
        if held.growing.cascade.joint_ridge is not None:
            return _under_joint_ridge(held, values, axis, source, lost)
        if lost.any():
            return _under_level_ridges(held, values, axis, source, lost)
    growing = held.growing.grown(numbers, values)
    return Held(_in_order(growing, source), axis, None, None)


def _has_gaps(held: Held, values: Array) -> bool:
    return held.unobserved is not None or bool(np.isnan(values).any())


def _lost(held: Held, values: Array) -> Mask:
    """Cells that are missing of old and new slices, the axis that grows first."""
    axis, shape = held.growing.axis, held.growing.cascade.shape
    before = np.zeros(shape, bool) if held.unobserved is None else held.unobserved
    together: Mask = np.concatenate([before, np.isnan(values)], axis=axis)
    return np.moveaxis(together, axis, 0)


def _in_order(growing: Growing, places: Indices) -> Growing:
    """Slices in an order; if only the first ones go, no other is touched."""
    first = places[0]
    if np.array_equal(places, np.arange(first, growing.coordinates.size)):
        return growing.without_first(int(first)) if first else growing
    return growing.taken(places)


def _under_level_ridges(held: Held, values: Array, axis: Axis, source: Indices, lost: Mask) -> Held:
    """Slices with gaps are filled from the complete ones and from each other.

    All stand in the order of the axis, whenever they came: what is solved for step by step depends
    on it, to the tolerance of the solve.
    """
    grows, old = held.growing.axis, held.axis.size
    gappy: Mask = np.asarray(lost.reshape(len(lost), -1).any(axis=1))
    known = _complete(held.growing, values, axis.take(~gappy).numbers, source[~gappy], old)
    slices = _gathered(held.growing, values, source[gappy], old)
    slices[np.moveaxis(lost[gappy], 0, grows)] = np.nan
    coordinates = axis.numbers[gappy]
    done = fill_slices(known, coordinates, slices)
    together = known.grown(coordinates, done.values)
    places = np.argsort(np.concatenate([np.flatnonzero(~gappy), np.flatnonzero(gappy)]))
    unobserved = np.moveaxis(lost, 0, grows)
    return Held(together.taken(places), axis, unobserved, None, done)


def _complete(
    growing: Growing, values: Array, coordinates: Array, source: Indices, old: int
) -> Growing:
    """Old and new slices without gaps."""
    new = source >= old
    together = growing.grown(coordinates[new], values.take(source[new] - old, growing.axis))
    places = source.copy()
    places[new] = old + np.arange(np.count_nonzero(new))
    return together.taken(places)


def _gathered(growing: Growing, values: Array, source: Indices, old: int) -> Array:
    """Old and new slices as they were given."""
    by_age = np.argsort(source)
    before, new = np.split(source[by_age], [np.count_nonzero(source < old)])
    parts = [growing.slices(before), values.take(new - old, growing.axis)]
    return np.concatenate(parts, growing.axis).take(np.argsort(by_age), growing.axis)


def _under_joint_ridge(held: Held, values: Array, axis: Axis, source: Indices, lost: Mask) -> Held:
    """All missing cells are solved for again, as in a fit."""
    growing, trained = held.growing, held.growing.cascade
    slices = _gathered(growing, values, source, held.axis.size)
    unobserved = np.moveaxis(lost, 0, growing.axis)
    slices[unobserved] = np.nan
    nodes = list(trained.coordinates)
    nodes[growing.axis] = axis.numbers
    kernels, ridge = [level.kernel for level in trained.levels], trained.joint_ridge or 0.0
    done = complete(slices, nodes, kernels, ridge, trained.mean)
    solved = cascades.fit(
        done.values,
        nodes,
        trained.levels,
        joint_ridge=ridge,
        mean=trained.mean,
        dtype=trained.core.dtype,
    )
    bars = _gap_bars(held, distance(nodes, kernels, ~unobserved, ridge))
    return Held(Growing(solved, growing.axis), axis, unobserved, bars, done)


def _gap_bars(held: Held, away: Array) -> GapBars:
    """Error bars as wide as before, with the distances of now."""
    known = held.bars if held.bars is not None else calibrate(held.growing.cascade)
    if isinstance(known, Calibration):
        return GapBars(away, float(known.scales[0]), 1.0, float(known.errors[0]))
    return replace(known, distance=away)


@dataclass(frozen=True)
class Thinning:
    """Slices that were left out because the others span them, and what that costs."""

    slices: int
    rmse: float

    def after(self, earlier: Mapping[str, Any] | None) -> dict[str, Any]:
        """Together with those left out before."""
        before = earlier or {"slices": 0, "rmse": 0.0}
        slices = self.slices + before["slices"]
        squares = self.slices * self.rmse**2 + before["slices"] * before["rmse"] ** 2
        return {"slices": slices, "rmse": (squares / slices) ** 0.5}


def thinned(held: Held, most: int) -> tuple[Held, Thinning | None]:
    """Without the slices whose coordinates the others span best, until at most so many are left.

    That is the approximate linear dependency of S-KRLS on the level that grows: a slice goes that
    has the least variance given the others. What it costs is the error with which those left
    predict the slices that go.
    """
    if most < 1:
        raise SettingError(f"Invalid rank {most}. It must be 1 or above.")
    growing = held.growing
    if growing.coordinates.size <= most:
        return held, None
    kept = _least_dependent(growing, most)
    gone = np.setdiff1d(np.arange(growing.coordinates.size), kept)
    fewer = _moved(
        held, growing.slices(gone[:0]), growing.coordinates[:0], held.axis.take(kept), kept
    )
    queries: list[Array | None] = [None] * growing.cascade.ndim
    queries[growing.axis] = growing.coordinates[gone]
    missed = fewer.growing.cascade.predict(queries) - growing.slices(gone)
    seen = slice(None) if held.unobserved is None else ~held.unobserved.take(gone, growing.axis)
    return fewer, Thinning(gone.size, float(np.sqrt(np.mean(missed[seen] ** 2))))


def _least_dependent(growing: Growing, most: int) -> Indices:
    """Places of the slices that stay; among equals the oldest place goes first."""
    level = growing.cascade.levels[growing.axis]
    spectrum = growing.cascade.spectra[growing.axis]
    ridge = level.ridge or ROUND_OFF * float(spectrum.values[0])
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


@dataclass(frozen=True)
class Surprise:
    """How new slices differ from what was predicted of them.

    Attributes
    ----------
    cells
        How many were compared.
    rmse
        Root mean square error of the predictions.
    promised
        Root mean square of the standard errors that the model gave them.
    """

    cells: int
    rmse: float
    promised: float

    @classmethod
    def of(cls, missed: Array, variance: Array) -> Self:
        """From errors and the variances that were promised."""
        if not missed.size:
            return cls(0, math.nan, math.nan)
        rmse, promised = (float(np.sqrt(np.mean(x))) for x in (missed**2, variance))
        return cls(missed.size, rmse, promised)

    @property
    def drifts(self) -> bool:
        """Whether the errors are far larger than promised."""
        return self.cells > 0 and self.rmse > _FAR * self.promised
