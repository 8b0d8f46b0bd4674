"""Online methods as forecasters of a stream: what they are fed, and what they are asked for.

The methods learn samples of one value. Of a stream with many series each slice is a sample per
series, and there are several ways to make them, of which a search takes the best:

- changes: the recent values of a series less the last one, and the change that follows; one
  filter for all series. It is the time embedding of kernel adaptive filtering, freed of the level.
- own changes: the same with a filter of its own for each series.
- time: the coordinate of the slice, and the change; a filter for each series.
- place: the place of the series and the coordinate, and the change, or the value less the first.

An answer of 0 is thus the last value (the first in the last case), to which all methods fall back
where they know nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.baselines import Baseline


class Forecaster(Protocol):
    """What forecasts a slice before it learns it."""

    def forecast(self, coordinate: float) -> Array:
        """The slice at a coordinate (series,), after at least one was learnt."""

    def learn(self, coordinate: float, values: Array) -> None:
        """Take a slice in (series,)."""


class LastValue:
    """The last slice again."""

    def forecast(self, coordinate: float) -> Array:
        """The slice that was learnt last."""
        return self._last

    def learn(self, coordinate: float, values: Array) -> None:
        """Remember a slice."""
        self._last = values


@dataclass(frozen=True)
class Feed:
    """How samples are made of slices.

    Attributes
    ----------
    kind
        changes, time or place.
    lags
        How many of the last values make a sample of changes.
    own
        Whether each series has a filter of its own.
    level
        Whether values less the first are asked for, and not changes.
    """

    kind: str
    lags: int = 0
    own: bool = False
    level: bool = False

    def __str__(self) -> str:
        if self.kind == "changes":
            return f"{'own ' if self.own else ''}changes of {self.lags} values"
        return f"{self.kind}, {'values' if self.level else 'changes'}"


CHANGES = (
    Feed("changes", 2),
    Feed("changes", 5),
    Feed("changes", 3),
    Feed("changes", 3, own=True),
    Feed("time", own=True),
)
PLACES = (Feed("place"), Feed("place", level=True))


@dataclass(frozen=True, eq=False)
class Units:
    """What numbers are counted in, so that settings mean the same in every stream.

    Attributes
    ----------
    change
        Size of a usual change.
    step
        Size of a usual step between coordinates.
    places
        Places of the series (series, dimensions), in steps of theirs.
    """

    change: float
    step: float
    places: Array


class Online:
    """A stream forecast by an online method, or by one for each series."""

    def __init__(self, make: Callable[[], Baseline], feed: Feed, units: Units) -> None:
        self._make, self._feed, self._units = make, feed, units
        self._filters: Sequence[Baseline] = ()

    def forecast(self, coordinate: float) -> Array:
        """The slice at a coordinate (series,), after at least one was learnt."""
        points = self._points(coordinate)
        if self._feed.own:
            pairs = zip(self._filters, points, strict=True)
            answers = np.array([own.predict(point[None])[0] for own, point in pairs])
        else:
            answers = self._filters[0].predict(points)
        return np.asarray(self._base() + self._units.change * answers)

    def learn(self, coordinate: float, values: Array) -> None:
        """Take a slice in (series,)."""
        if not self._filters:
            self._filters = [self._make() for _ in range(values.size if self._feed.own else 1)]
            self._recent = np.tile(values, (max(self._feed.lags, 1), 1))
            self._first = values
            return
        points = self._points(coordinate)
        wanted = (values - self._base()) / self._units.change
        for place, (point, target) in enumerate(zip(points, wanted.tolist(), strict=True)):
            self._filters[place if self._feed.own else 0].update(point, target)
        self._recent = np.vstack([values, self._recent[:-1]])

    def _base(self) -> Array:
        """What answers are counted from."""
        return self._first if self._feed.level else self._recent[0]

    def _points(self, coordinate: float) -> Array:
        """The samples of a slice (series, features)."""
        if self._feed.kind == "changes":
            return np.asarray((self._recent[1:] - self._recent[0]).T / self._units.change)
        time = np.full((self._recent.shape[1], 1), coordinate / self._units.step)
        return np.hstack([self._units.places, time]) if self._feed.kind == "place" else time
