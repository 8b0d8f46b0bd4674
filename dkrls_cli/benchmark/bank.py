"""Forecasts along the last level by a bank of settings, averaged series by series.

Each setting is kernel ridge regression over the slices of a window, which all series share: the
forecast of a coordinate is k' (K + ridge I)^-1 times the slices. Every slice is forecast by every
setting before it is learnt, so each has a record of true one-step-ahead errors at no further
cost. Of a series, the settings are averaged with weights 1 / (mean square error)^2, the record
fading with the length of the window. No setting is chosen beforehand: where a series calls for a
sharp one it leads, and right after a surprise that all have missed alike, all count alike.
What the bank holds and the power of the weights were settled with the Intel Lab stream in view,
so figures on that stream are not free of hindsight.

On equal steps the weights of the slices depend on their number alone. With K + ridge I = L L',
row n of L times the inverse of L above it gives those of n slices, so that one factor serves
while the window fills, and once it is full they stay. On other steps each forecast is a solve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from dkrls_cli.kernels import FAMILIES, Array, Kernel, gram

SPANS = (0.1, 1.0, 10.0)
"""Length scales of the bank, in windows."""

RIDGES = (1e-6, 1e-4, 1e-2, 1.0)
_CONSTANT = 1.0
_SAME = 1e-6
"""Share of a step by which steps may differ and be the same: times are rounded."""


@dataclass(frozen=True)
class Setting:
    """A kernel over the last level, and its ridge."""

    kernel: Kernel
    ridge: float


def settings_for(span: float) -> list[Setting]:
    """The bank for windows of such a length: every family, three length scales, four ridges."""
    return [
        Setting(Kernel(family, share * span, constant=_CONSTANT), ridge)
        for family, share, ridge in product(FAMILIES, SPANS, RIDGES)
    ]


class Bank:
    """Forecasts of the next slice from a window of the last ones.

    Parameters
    ----------
    settings
        Those that forecast.
    window
        How many slices they see, and how long an error counts.
    """

    def __init__(self, settings: Sequence[Setting], window: int) -> None:
        self._filters = Filters(settings, window)
        self._slices = Window(window)
        self._fading = 1.0 - 1.0 / window
        self._asked = np.nan

    def forecast(self, coordinate: float) -> Array:
        """The slice at a coordinate (series,), after at least one was learnt."""
        weights = self._filters.weights(self._slices.coordinates, coordinate)
        self._each = weights @ self._slices.values  # (settings, series)
        self._asked = coordinate
        return np.asarray(self._first + np.sum(self._shares() * self._each, axis=0))

    def learn(self, coordinate: float, values: Array) -> None:
        """Take a slice in."""
        if len(self._slices) == 0:
            self._first = values.copy()  # what all else is counted from
            self._record = np.zeros((len(self._filters), values.size))
        else:
            self._score(coordinate, values)
        self._slices.append(coordinate, values - self._first)

    def _score(self, coordinate: float, values: Array) -> None:
        """Enter the errors of all settings into their record."""
        if coordinate != self._asked:
            self.forecast(coordinate)
        errors = self._each - (values - self._first)
        self._record *= self._fading
        self._record += np.square(errors, out=errors)

    def _shares(self) -> Array:
        """What each setting counts for each series (settings, series)."""
        least = self._record.min(axis=0)
        shares = np.ones_like(self._record)
        np.divide(least, self._record, out=shares, where=self._record > 0)
        shares *= shares
        shares /= shares.sum(axis=0)
        return shares


class Window:
    """The last slices, side by side in memory."""

    def __init__(self, size: int) -> None:
        self._size, self._start, self._end = size, 0, 0

    def __len__(self) -> int:
        return self._end - self._start

    @property
    def values(self) -> Array:
        """The slices (n, series), oldest first, as a view."""
        return self._values[self._start : self._end]

    @property
    def coordinates(self) -> Array:
        """Where they are (n,), as a view."""
        return self._coordinates[self._start : self._end]

    def append(self, coordinate: float, values: Array) -> None:
        """Take a slice in; the oldest goes when there are too many."""
        if self._end == 0:
            self._values = np.empty((2 * self._size, values.size))
            self._coordinates = np.empty(2 * self._size)
        if self._end == len(self._values):
            kept = self._size - 1
            for room in (self._values, self._coordinates):
                room[:kept] = room[self._end - kept :]
            self._start, self._end = 0, kept
        self._values[self._end], self._coordinates[self._end] = values, coordinate
        self._end += 1
        self._start = max(self._start, self._end - self._size)


class Filters:
    """What slices count in a forecast, for several settings: k' (K + ridge I)^-1."""

    def __init__(self, settings: Sequence[Setting], window: int) -> None:
        self._settings, self._window = settings, window
        self._step = np.nan
        self._known: Array = np.empty(
            (len(settings), 0)
        )  # on equal steps, of the last number of slices

    def __len__(self) -> int:
        return len(self._settings)

    def weights(self, coordinates: Array, asked: float) -> Array:
        """Weights (settings, n) of slices at such coordinates in the forecast of another."""
        steps = np.diff(coordinates, append=asked)
        if not np.abs(steps - steps[0]).max() <= _SAME * abs(steps[0]):
            return self._solved(coordinates, asked)
        if not abs(steps[0] - self._step) <= _SAME * abs(steps[0]):
            self._factorise(float(steps[0]))
        if self._known.shape[1] != steps.size:
            n = steps.size
            products = self._rows[:, n : n + 1, :n] @ self._inverses[:, :n, :n]
            self._known = np.asarray(products[:, 0], np.float64)
        return self._known

    def _factorise(self, step: float) -> None:
        """Factors of a full window and the slice after it, on equal steps."""
        self._step = step
        self._known = self._known[:, :0]
        self._rows = np.linalg.cholesky(self._matrices(step * np.arange(self._window + 1.0)))
        self._inverses = np.linalg.inv(self._rows)

    def _solved(self, coordinates: Array, asked: float) -> Array:
        ahead = [gram(s.kernel, coordinates, np.array([asked])) for s in self._settings]
        return np.asarray(np.linalg.solve(self._matrices(coordinates), np.stack(ahead))[:, :, 0])

    def _matrices(self, coordinates: Array) -> Array:
        """K + ridge I of every setting (settings, n, n)."""
        eye = np.eye(coordinates.size)
        return np.stack(
            [gram(s.kernel, coordinates, coordinates) + s.ridge * eye for s in self._settings]
        )
