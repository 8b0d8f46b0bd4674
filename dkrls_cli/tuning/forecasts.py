"""Forecast the next slice of a model that grows, step by step.

Every other level passes through at its own coordinates, so a forecast is a weighted sum of the
known slices, with the weights k' C^-1 of the level that grows (13, 16, 19): see
:mod:`dkrls_cli.tuning.weights`, and :mod:`dkrls_cli.tuning.following` for long levels. Where steps
are equal, so are the weights.

Settings that fill gaps well may forecast badly, so several settings can be used. Each cell is then
forecast by their mean, weighted by how well each of them did in this very cell of late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.factors import choice
from dkrls_cli.cascade.growing import Growing
from dkrls_cli.cascade.kernels import FAMILIES, Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.tensors import along
from dkrls_cli.circle import spacing
from dkrls_cli.threads import one_blas_thread
from dkrls_cli.tuning.candidates import CONSTANT
from dkrls_cli.tuning.following import LongForecaster
from dkrls_cli.tuning.weights import Factor, same_offsets

_MEMORY = 100
"""Steps after which an error counts 1/e: settings are compared by their last 100 errors or so."""

_PAST = 200
"""Latest slices that settings are compared on at the start: twice the memory."""

_SHARPNESS = 2
"""Settings are weighted by their mean square error to the power of minus this."""

_SETTINGS = tuple(product(FAMILIES, (20.0, 200.0, 2000.0), (1e-6, 1e-4, 1e-2, 1.0)))
"""Families, length scales in steps, and ridges.

They range from the last value (matern12, tiny ridge) over curves to a mean (ridge 1).
"""

_LEAST_RIDGE = 1e-9
"""Ridge, as a share of the kernel's variance, below which weights lose all digits."""


def settings_around(level: Level, coordinates: Array) -> tuple[Level, ...]:
    """Return a level's own setting, followed by others that suit streams of all kinds.

    The others have no period: on a circle too, the next slice lies ahead.
    """
    step = spacing(coordinates)
    others = [
        Level(level.name, Kernel(family, step * far, constant=CONSTANT), ridge)
        for family, far, ridge in _SETTINGS
    ]
    return level, *others


def has_weights(level: Level) -> bool:
    """Return whether a level can forecast by weights, which depend on distances only.

    If its ridge is too small, C is nearly singular and answers must come from the spectrum. A
    spline has no ridge, and a warp changes distances.
    """
    return level.kernel.warp is None and level.ridge >= _LEAST_RIDGE * level.kernel.variance


@dataclass(frozen=True, eq=False)
class Forecast:
    """The slice that is expected next, and what each setting expects (settings, ...)."""

    values: Array
    each: Array


class Forecaster:
    """Forecasts slices of a growing cascade with one setting of its last level, or with several.

    Parameters
    ----------
    growing
        The cascade. Its latest slices tell how well each setting would have done.
    settings
        Settings of the last level.
    with_another
        Whether every call of :meth:`forecast` is given one more forecast to weigh in.
    """

    def __init__(
        self, growing: Growing, settings: Sequence[Level], *, with_another: bool = False
    ) -> None:
        self._factors = [Factor(level) for level in settings]
        self._long = LongForecaster(settings, exact=0 if with_another else 1)
        self._offsets = self._rows = np.empty(0)
        self._missed = _past_errors(growing, settings) if settings[1:] else np.zeros((1, 1))
        if with_another:
            self._missed = np.vstack([self._missed, self._missed.min(axis=0)])

    def forecast(
        self, growing: Growing, coordinate: float, another: Array | None = None
    ) -> Forecast:
        """Return the forecast at a new coordinate, with the axes of the data.

        `another` is the forecast of the caller, if `with_another` was set.
        """
        cascade, axis = growing.cascade, growing.axis
        each, sums = self._ask(growing, coordinate)
        for other, frame in enumerate(cascade.frames):
            if frame is not None and other != axis:
                each = along(each, other, frame)
        each += cascade.mean * (1.0 - sums).reshape(
            [-1 if other == axis else 1 for other in range(cascade.ndim)]
        )
        if another is not None:
            each = np.concatenate([each, another], axis)
        each = np.moveaxis(each, axis, 0)
        values = np.einsum("s...,s...->...", self._shares(each.shape[1:]), each)
        return Forecast(np.expand_dims(values, axis), each)

    def _ask(self, growing: Growing, coordinate: float) -> tuple[Array, Array]:
        """Return weighted sums of the slices, in their frames, and the sums of the weights.

        The axis that grows is that of the settings.
        """
        cascade, axis = growing.cascade, growing.axis
        if growing.coordinates.size > choice.LONG:
            sums = self._long.forecast(growing, coordinate)
            others = [size for other, size in enumerate(cascade.core.shape) if other != axis]
            return np.moveaxis(sums[:, :-1].reshape(-1, *others), 0, axis), sums[:, -1]
        rows, framed = self._weights(growing.coordinates, coordinate), cascade.frames[axis]
        each = along(cascade.core, axis, rows if framed is None else rows @ framed)
        return each, rows.sum(axis=1)

    def learn(self, forecast: Forecast, values: Array) -> None:
        """Remember the error of every setting in each cell; missing cells (NaN) change nothing."""
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
        """Return rows of weights, one per setting: the same if nodes and query have shifted."""
        if not same_offsets(self._offsets, nodes, coordinate):
            self._offsets = nodes - coordinate
            with one_blas_thread():
                self._rows = np.stack([f.weights(nodes, coordinate) for f in self._factors])
        return self._rows

    def _shares(self, shape: tuple[int, ...]) -> Array:
        """Return the weight of every setting in every cell; weights of a cell sum to 1."""
        if len(self._missed) == 1:
            return np.ones(1)
        none = float(np.finfo(np.float64).tiny)
        shares = (self._missed.min(axis=0) + none) / (self._missed + none)
        shares **= _SHARPNESS
        shares /= shares.sum(axis=0)
        return np.asarray(shares.reshape(-1, *shape))


def _past_errors(growing: Growing, settings: Sequence[Level]) -> Array:
    """Return the sums of squared errors of every setting on the latest slices (settings, cells).

    Each slice is forecast from those before it, and the latest count most. The first half is not
    counted: it has too little before it.
    """
    order = np.argsort(growing.coordinates, kind="stable")[-_PAST:]
    slices = np.moveaxis(growing.slices(order), growing.axis, 0).reshape(order.size, -1)
    centred, nodes = slices - growing.cascade.mean, growing.coordinates[order]
    half = order.size // 2
    fading = (1.0 - 1.0 / _MEMORY) ** np.arange(order.size - half - 1, -1, -1)
    return np.stack(
        [fading @ _one_step_errors(level, nodes, centred)[half:] ** 2 for level in settings]
    )


def _one_step_errors(level: Level, nodes: Array, values: Array) -> Array:
    """Return the errors of slices (m, ...) that are each forecast from all before it.

    With C = L L' the error of slice i is L_ii times row i of L^-1 Y: one factorisation for all
    slices. Errors are infinite if C is not positive definite in float64.
    """
    from scipy.linalg import solve_triangular

    covariance = gram(level.kernel, nodes, nodes) + level.ridge * np.eye(nodes.size)
    with one_blas_thread():
        try:
            lower = np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            return np.full(values.shape, np.inf)
        solved = solve_triangular(lower, values, lower=True, check_finite=False)
    return np.asarray(solved * lower.diagonal()[:, None])
