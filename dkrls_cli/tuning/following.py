"""Forecasts of long levels, at a cost per step that hardly depends on the number of slices.

A filter (:mod:`dkrls_cli.cascade.factors.filter`) follows the slices as they come. It serves
Matern settings, new slices behind all others, and slices that leave at the front. Whatever else is
asked of the model's own setting is solved for with the factor of a long level.

Settings that are tried beside it are there to be compared by their forecasts, and need not see
exactly the slices of the model: they also remember slices that left of late, and a Gaussian sees
the latest slices only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Protocol

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.factors.choice import is_long
from dkrls_cli.cascade.factors.filter import Filter
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.factors.markov import is_markov
from dkrls_cli.cascade.growing import Growing, SliceStore
from dkrls_cli.cascade.kernels import gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.threads import one_blas_thread
from dkrls_cli.tuning.weights import Factor, same_offsets

_LEAVING = 64
"""Slices that may leave an exact filter before it is made again.

Making it takes O(m), a step with that many slices left out some 64^3 / 3 operations.
"""

_STALE = 4
"""A filter beside the own one is made again when the slices differ by one in four."""

_LATEST, _MORE = 200, 50
"""Slices that a Gaussian sees at least, and how many more before the first ones go.

As many as settings are compared on at the start; one of 20 steps does not reach farther.
"""


class Source(Protocol):
    """What forecasts with some settings of a long level."""

    def forecast(self, growing: Growing, coordinate: float) -> Array:
        """Return the weighted sums of slices and of ones (settings, n + 1)."""


class LongForecaster:
    """Forecasts with several settings of a long level.

    Parameters
    ----------
    settings
        The settings.
    exact
        Number of first settings whose forecasts are those of a model of the very slices.
    """

    def __init__(self, settings: Sequence[Level], exact: int) -> None:
        self._exact = [_Exact(level) for level in settings[:exact]]
        groups = groupby(settings[exact:], key=lambda level: level.kernel.family)
        self._others = [_Beside(tuple(levels)) for _, levels in groups]

    def forecast(self, growing: Growing, coordinate: float) -> Array:
        """Return the weighted sums of slices, in their frames, and of ones (settings, n + 1)."""
        sources: list[Source] = [*self._exact, *self._others]
        with one_blas_thread():
            return np.concatenate([each.forecast(growing, coordinate) for each in sources])


class _Exact:
    """The forecasts of one setting, from the very slices of a cascade."""

    def __init__(self, level: Level) -> None:
        self._level = level
        self._solved = _Solved(level)
        self._filter: Filter | None = None
        self._store: SliceStore | None = None

    def forecast(self, growing: Growing, coordinate: float) -> Array:
        """Return the weighted sums of slices and of ones (1, n + 1)."""
        if not (is_markov(self._level.kernel) and _follows(growing, coordinate)):
            return self._solved.forecast(growing, coordinate)
        filtered, gone = self._follow(growing)
        return filtered.forecast(coordinate, gone)

    def _follow(self, growing: Growing) -> tuple[Filter, int]:
        """Return a filter that has seen all slices, and how many of its first are gone by now.

        Slices in a buffer never change, so in the same buffer only new ones are unknown.
        """
        store = growing.store.slices if growing.store else None
        known, first = self._filter, self._store
        if known is None or first is None or store is None or store.buffer is not first.buffer:
            return self._make(growing, store), 0
        gone, new = store.start - first.start, store.stop - first.stop
        if not (0 <= gone <= known.leaving and 0 <= new <= _LEAVING):
            return self._make(growing, store), 0
        self._filter, self._store = _append(known, growing, new), replace(first, stop=store.stop)
        return self._filter, gone

    def _make(self, growing: Growing, store: SliceStore | None) -> Filter:
        """Return a filter of all slices, which are in a store from their first update on."""
        leaving = min(_LEAVING, growing.coordinates.size)
        self._filter, self._store = _build([self._level], growing, leaving), store
        return self._filter


class _Beside:
    """The forecasts of settings of one family that are tried beside the model's own.

    Slices count as they were when they came, until the filter is made again.
    """

    def __init__(self, levels: tuple[Level, ...]) -> None:
        self._levels = levels
        self._latest = _Latest(levels)
        self._filter: Filter | None = None
        self._frames: tuple[Array | None, ...] = ()
        self._seen = 0

    def forecast(self, growing: Growing, coordinate: float) -> Array:
        """Return the weighted sums of slices and of ones (settings, n + 1)."""
        if not (is_markov(self._levels[0].kernel) and _follows(growing, coordinate)):
            return self._latest.forecast(growing, coordinate)
        return self._follow(growing).forecast(coordinate)

    def _follow(self, growing: Growing) -> Filter:
        nodes, known = growing.coordinates, self._filter
        most = nodes.size // _STALE
        new = 0 if known is None else nodes.size - int(np.searchsorted(nodes, known.last, "right"))
        same = known is not None and _same(self._frames, _other_frames(growing))
        if known is None or not same or new > most or abs(self._seen + new - nodes.size) > most:
            self._filter, self._seen = _build(self._levels, growing, 0), nodes.size
            self._frames = _other_frames(growing)
            return self._filter
        self._filter, self._seen = _append(known, growing, new), self._seen + new
        return self._filter


class _Solved:
    """The forecasts of one setting from weights, which are solved for when offsets change."""

    def __init__(self, level: Level) -> None:
        self._level, self._dense = level, Factor(level)
        self._offsets = self._row = np.empty(0)

    def forecast(self, growing: Growing, coordinate: float) -> Array:
        """Return the weighted sums of slices and of ones (1, n + 1)."""
        nodes = growing.coordinates
        if not same_offsets(self._offsets, nodes, coordinate):
            self._offsets, self._row = nodes - coordinate, self._weights(nodes, coordinate)
        return _sums(self._row[None], growing, np.arange(nodes.size))

    def _weights(self, nodes: Array, coordinate: float) -> Array:
        kernel = self._level.kernel
        if not is_long(kernel, nodes):
            return self._dense.weights(nodes, coordinate)
        factor = LongFactor.build(kernel, nodes, self._level.ridge)
        return factor.solve(gram(kernel, nodes, np.array([coordinate])))[:, 0]


class _Latest:
    """The forecasts of settings that see the latest slices only, from weights."""

    def __init__(self, levels: Sequence[Level]) -> None:
        self._factors = [Factor(level) for level in levels]
        self._since = np.inf
        self._offsets = self._rows = np.empty(0)

    def forecast(self, growing: Growing, coordinate: float) -> Array:
        """Return the weighted sums of slices and of ones (settings, n + 1)."""
        nodes = growing.coordinates
        places = np.arange(nodes.size)[-max(self._offsets.size, min(_LATEST, nodes.size)) :]
        if not same_offsets(self._offsets, nodes[places], coordinate):
            places = self._find_latest(nodes)
            self._offsets = nodes[places] - coordinate
            rows = [factor.weights(nodes[places], coordinate) for factor in self._factors]
            self._rows = np.stack(rows)
        return _sums(self._rows, growing, places)

    def _find_latest(self, nodes: Array) -> Indices:
        """Return the places of the latest slices, of which none goes as long as they are few."""
        seen = int(np.count_nonzero(nodes >= self._since))
        if not _LATEST <= seen <= _LATEST + _MORE:
            self._since = float(np.sort(nodes)[-_LATEST:][0])
        return np.flatnonzero(nodes >= self._since)


def _follows(growing: Growing, coordinate: float) -> bool:
    """Return whether a coordinate lies behind slices that rise: what a filter can forecast."""
    return growing.rises and coordinate > growing.coordinates[-1]


def _build(levels: Sequence[Level], growing: Growing, leaving: int) -> Filter:
    """Return the filter of all slices, and of ones."""
    kernels, ridges = zip(*((level.kernel, level.ridge) for level in levels), strict=True)
    nodes = growing.coordinates
    values = np.column_stack([_samples(growing, np.arange(nodes.size)), np.ones(nodes.size)])
    return Filter.build(kernels, ridges, nodes, values, leaving)


def _append(known: Filter, growing: Growing, count: int) -> Filter:
    """Return the filter with the last slices, so many of them."""
    nodes = growing.coordinates
    places = np.arange(nodes.size - count, nodes.size)
    for place, values in zip(places, _samples(growing, places), strict=True):
        known = known.append(float(nodes[place]), np.append(values, 1.0))
    return known


def _sums(rows: Array, growing: Growing, places: Indices) -> Array:
    """Return the weighted sums of some slices, and of ones (rows, n + 1)."""
    return np.column_stack([rows @ _samples(growing, places), rows.sum(axis=1)])


def _samples(growing: Growing, places: Indices) -> Array:
    """Return some slices in the frames of the other axes (slices, n)."""
    samples = np.moveaxis(growing.samples(places), growing.axis, 0)
    return np.asarray(samples.reshape(places.size, math.prod(samples.shape[1:])), np.float64)


def _other_frames(growing: Growing) -> tuple[Array | None, ...]:
    """Return the frames of the axes that do not grow."""
    frames = growing.cascade.frames
    return (*frames[: growing.axis], *frames[growing.axis + 1 :])


def _same(one: Sequence[Array | None], other: Sequence[Array | None]) -> bool:
    """Return whether the frames are the very same."""
    return all(a is b for a, b in zip(one, other, strict=True))
