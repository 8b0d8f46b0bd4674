"""Online methods as forecasters of a stream.

An online method learns samples of one value. Each slice of a stream gives one sample per series,
and there are several schemes to make them, of which a search takes the best:

- changes: the features are the recent values of a series relative to the last one, and the value is
  the next change; one model for all series. It is the time embedding of kernel adaptive filtering,
  made independent of the level of the series.
- own changes: the same with a separate model for each series.
- time: the feature is the coordinate of the slice, and the value the change; a model for each
  series.
- place: the features are the place of the series and the coordinate, and the value is the change,
  or the difference from the first slice.

An answer of 0 is thus the last slice (in the last case the first), to which all methods fall back
far from their samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.baselines import Baseline


class SliceForecaster(Protocol):
    """A method that forecasts each slice of a stream before it learns it."""

    def forecast(self, coordinate: float) -> Array:
        """Return the forecast of the slice at a coordinate (series,), after the first slice."""

    def learn(self, coordinate: float, values: Array) -> None:
        """Learn a slice (series,)."""


class LastValue:
    """The forecaster that repeats the last slice."""

    def forecast(self, coordinate: float) -> Array:
        """Return the slice that was learnt last."""
        return self._last

    def learn(self, coordinate: float, values: Array) -> None:
        """Remember a slice."""
        self._last = values


@dataclass(frozen=True)
class SampleScheme:
    """How samples are made from slices.

    Attributes
    ----------
    kind
        changes, time or place.
    lags
        Number of last values that a sample of changes uses.
    own
        Whether each series has a model of its own.
    level
        Whether the value is the difference from the first slice, and not the change.
    """

    kind: str
    lags: int = 0
    own: bool = False
    level: bool = False

    def __str__(self) -> str:
        if self.kind == "changes":
            return f"{'own ' if self.own else ''}changes of {self.lags} values"
        return f"{self.kind}, {'values' if self.level else 'changes'}"


CHANGE_SCHEMES = (
    SampleScheme("changes", 2),
    SampleScheme("changes", 5),
    SampleScheme("changes", 3),
    SampleScheme("changes", 3, own=True),
    SampleScheme("time", own=True),
)
PLACE_SCHEMES = (SampleScheme("place"), SampleScheme("place", level=True))


@dataclass(frozen=True, eq=False)
class SampleUnits:
    """Units of samples, so that settings mean the same in every stream.

    Attributes
    ----------
    change
        Root mean square change from one slice to the next.
    step
        Median step between coordinates.
    places
        Positions of the series (series, dimensions), in steps of each dimension.
    """

    change: float
    step: float
    places: Array


class OnlineForecaster:
    """A forecaster by an online method, with one model or one per series."""

    def __init__(
        self, make: Callable[[], Baseline], scheme: SampleScheme, units: SampleUnits
    ) -> None:
        self._make, self._scheme, self._units = make, scheme, units
        self._models: Sequence[Baseline] = ()

    def forecast(self, coordinate: float) -> Array:
        """Return the forecast of the slice at a coordinate (series,), after the first slice."""
        points = self._points(coordinate)
        if self._scheme.own:
            pairs = zip(self._models, points, strict=True)
            answers = np.array([own.predict(point[None])[0] for own, point in pairs])
        else:
            answers = self._models[0].predict(points)
        return np.asarray(self._base() + self._units.change * answers)

    def learn(self, coordinate: float, values: Array) -> None:
        """Learn a slice (series,)."""
        if not self._models:
            self._models = [self._make() for _ in range(values.size if self._scheme.own else 1)]
            self._recent = np.tile(values, (max(self._scheme.lags, 1), 1))
            self._first = values
            return
        points = self._points(coordinate)
        wanted = (values - self._base()) / self._units.change
        for place, (point, target) in enumerate(zip(points, wanted.tolist(), strict=True)):
            self._models[place if self._scheme.own else 0].update(point, target)
        self._recent = np.vstack([values, self._recent[:-1]])

    def _base(self) -> Array:
        """Return the slice that answers are relative to."""
        return self._first if self._scheme.level else self._recent[0]

    def _points(self, coordinate: float) -> Array:
        """Return the features of a slice (series, features)."""
        if self._scheme.kind == "changes":
            return np.asarray((self._recent[1:] - self._recent[0]).T / self._units.change)
        time = np.full((self._recent.shape[1], 1), coordinate / self._units.step)
        return np.hstack([self._units.places, time]) if self._scheme.kind == "place" else time
