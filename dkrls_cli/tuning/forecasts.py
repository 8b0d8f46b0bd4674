"""The next slice of a model that grows, step by step.

Every other level passes through at its own coordinates, so a forecast is a weighted sum of the
slices there are, with the weights k' C^-1 of the level that grows (13, 16, 19). The factor C^-1
follows the slices row by row. Where steps are equal the weights are too.

Settings that fill gaps well may forecast badly, so there may be several: each cell is then forecast
by their mean, weighted by how well each of them did in this very cell of late.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.growing import Growing
from dkrls_cli.cascade.kernels import FAMILIES, Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.tensors import along
from dkrls_cli.circle import spacing
from dkrls_cli.threads import one_blas_thread
from dkrls_cli.tuning.slices import CONSTANT

_MEMORY = 100
"""Steps after which what a setting missed counts for little."""

_PAST = 200
"""Slices that are looked back upon at the start."""

_SHARPNESS = 2
"""Settings are weighted by their mean square error to the power of minus this."""

_SETTINGS = tuple(product(FAMILIES, (20.0, 200.0, 2000.0), (1e-6, 1e-4, 1e-2, 1.0)))
"""Families, length scales in steps, and ridges: from the last value to a mean, and to a curve."""

_LEAST_RIDGE = 1e-9
"""A ridge that is less, beside the variance of its kernel, leaves weights no digits."""


def settings_around(level: Level, coordinates: Array) -> tuple[Level, ...]:
    """The setting of a level, and others for all kinds of streams.

    They hold no circle: what comes next lies ahead.
    """
    step = spacing(coordinates)
    others = [
        Level(level.name, Kernel(family, step * far, constant=CONSTANT), ridge)
        for family, far, ridge in _SETTINGS
    ]
    return level, *others


def has_weights(level: Level) -> bool:
    """Whether answers of a level can be had from weights, and not from its spectrum only."""
    return level.ridge >= _LEAST_RIDGE * level.kernel.variance


class Factor:
    """J with J'J = C^-1 of a level: the inverse of the Cholesky factor of C, row by row.

    A coordinate at the end adds a row. A coordinate that goes at the front changes all of them.
    """

    def __init__(self, level: Level) -> None:
        self._kernel, self._ridge = level.kernel, level.ridge
        self._nodes, self._rows = np.empty(0), np.empty((0, 0))
        self._asked: tuple[float, Array, Array] | None = None

    def weights(self, nodes: Array, query: float) -> Array:
        """What every slice counts in the answer at a new coordinate: k' C^-1."""
        self._follow(nodes)
        across, weights = self._solved(nodes, query)
        self._asked = query, across, weights
        return weights

    def _follow(self, nodes: Array) -> None:
        """Add rows, or begin anew if that is less work."""
        known = self._nodes.size
        few = 0 <= nodes.size - known <= 1 + nodes.size // 8
        if few and np.array_equal(nodes[:known], self._nodes):
            for place in range(known, nodes.size):
                self._add(nodes, place)
        else:
            covariance = gram(self._kernel, nodes, nodes) + self._ridge * np.eye(nodes.size)
            self._rows = np.linalg.inv(np.linalg.cholesky(covariance))
            self._asked = None
        self._nodes = nodes

    def _solved(self, nodes: Array, query: float) -> tuple[Array, Array]:
        """J k and J'J k of a coordinate."""
        rows = self._rows[: nodes.size, : nodes.size]
        across = rows @ gram(self._kernel, nodes, np.array([query]))[:, 0]
        return across, across @ rows

    def _add(self, nodes: Array, place: int) -> None:
        """The row of one more coordinate; what was asked for there need not be solved again."""
        if place == len(self._rows):
            self._rows = np.pad(self._rows, (0, max(16, place)))
        node, own = float(nodes[place]), self._kernel.variance + self._ridge
        asked, across, weights = self._asked or (math.nan, nodes, nodes)
        if asked != node or across.size != place:
            across, weights = self._solved(nodes[:place], node)
        left = math.sqrt(max(float(own - across @ across), self._ridge))
        self._rows[place, :place] = -weights / left
        self._rows[place, place] = 1.0 / left


@dataclass(frozen=True, eq=False)
class Forecast:
    """The slice expected next, and what every setting expects of it (settings, ...)."""

    values: Array
    each: Array


class Forecaster:
    """Forecasts slices of a growing cascade with one setting of its last level, or with several.

    `with_another` leaves room for one more forecast, which the caller makes.
    """

    def __init__(
        self, growing: Growing, settings: Sequence[Level], *, with_another: bool = False
    ) -> None:
        self._factors = [Factor(level) for level in settings]
        self._offsets = self._rows = np.empty(0)
        self._missed = _past(growing, settings) if settings[1:] else np.zeros((1, 1))
        if with_another:
            self._missed = np.vstack([self._missed, self._missed.min(axis=0)])

    def forecast(
        self, growing: Growing, coordinate: float, another: Array | None = None
    ) -> Forecast:
        """What is expected at a new coordinate, with the axes of the data."""
        rows = self._weights(growing.coordinates, coordinate)
        cascade, axis = growing.cascade, growing.axis
        framed = cascade.frames[axis]
        each = along(cascade.core, axis, rows if framed is None else rows @ framed)
        for other, frame in enumerate(cascade.frames):
            if frame is not None and other != axis:
                each = along(each, other, frame)
        each += cascade.mean * (1.0 - rows.sum(axis=1)).reshape(
            [-1 if other == axis else 1 for other in range(cascade.ndim)]
        )
        if another is not None:
            each = np.concatenate([each, another], axis)
        each = np.moveaxis(each, axis, 0)
        values = np.einsum("s...,s...->...", self._shares(each.shape[1:]), each)
        return Forecast(np.expand_dims(values, axis), each)

    def learn(self, forecast: Forecast, values: Array) -> None:
        """Remember how every setting did; cells that are missing tell nothing."""
        if len(self._missed) == 1:
            return
        squares = forecast.each.reshape(len(self._missed), -1) - values.ravel()
        squares *= squares
        known = ~np.isnan(squares[0])
        if not known.all():
            squares = np.where(known, squares, self._missed / _MEMORY)
        self._missed *= 1.0 - 1.0 / _MEMORY
        self._missed += squares

    def _weights(self, nodes: Array, coordinate: float) -> Array:
        """Rows of weights, one per setting; the last ones where nothing but the place has moved."""
        offsets = nodes - coordinate
        slack = 8 * float(np.finfo(np.float64).eps) * max(abs(coordinate), abs(float(nodes[0])))
        if offsets.shape != self._offsets.shape or np.abs(offsets - self._offsets).max() > slack:
            self._offsets = offsets
            with one_blas_thread():
                self._rows = np.stack([f.weights(nodes, coordinate) for f in self._factors])
        return self._rows

    def _shares(self, shape: tuple[int, ...]) -> Array:
        """What every setting counts in every cell."""
        if len(self._missed) == 1:
            return np.ones(1)
        none = float(np.finfo(np.float64).tiny)
        shares = (self._missed.min(axis=0) + none) / (self._missed + none)
        shares **= _SHARPNESS
        shares /= shares.sum(axis=0)
        return np.asarray(shares.reshape(-1, *shape))


def _past(growing: Growing, settings: Sequence[Level]) -> Array:
    """What every setting would have missed on the last slices, each forecast from those before.

    With C = L L' that is L_ii times row i of L^-1 Y: one factorisation for all slices. The first
    half has too little before it to tell.
    """
    order = np.argsort(growing.coordinates, kind="stable")[-_PAST:]
    slices = np.moveaxis(growing.slices(order), growing.axis, 0).reshape(order.size, -1)
    centred, nodes = slices - growing.cascade.mean, growing.coordinates[order]
    half = order.size // 2
    fading = (1.0 - 1.0 / _MEMORY) ** np.arange(order.size - half - 1, -1, -1)
    with one_blas_thread():
        return np.stack([fading @ _ahead(level, nodes, centred)[half:] ** 2 for level in settings])


def _ahead(level: Level, nodes: Array, values: Array) -> Array:
    """Errors of slices forecast from all before (m, ...); infinite where that cannot be solved."""
    covariance = gram(level.kernel, nodes, nodes) + level.ridge * np.eye(nodes.size)
    try:
        lower = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return np.full(values.shape, np.inf)
    return np.asarray(np.linalg.solve(lower, values) * lower.diagonal()[:, None])
