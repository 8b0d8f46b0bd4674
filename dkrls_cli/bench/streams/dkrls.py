"""Forecasts of a stream by this package."""

from __future__ import annotations

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.model.fit import fit
from dkrls_cli.model.stream import Plan, Stream

# Slices that the first model is fitted to; until then the forecast is the last value.
FIRST_SLICES = 20


class DkrlsForecaster:
    """A forecaster that does what ``dkrls stream`` does, from a fit of the first slices on."""

    def __init__(self, plan: Plan, first: int = FIRST_SLICES) -> None:
        self._plan, self._first = plan, first
        self._stream: Stream | None = None
        self._seen: list[tuple[float, Array]] = []

    def forecast(self, coordinate: float) -> Array:
        """Return the forecast of the slice at a coordinate (series,), after the first slice."""
        if self._stream is None:
            return self._seen[-1][1]
        self._new = self._stream.model.axes[0].at([coordinate])
        return np.asarray(self._stream.expect(self._new).values[0])

    def learn(self, coordinate: float, values: Array) -> None:
        """Learn a slice (series,), whose coordinate was forecast just before."""
        if self._stream is not None:
            self._stream.learn(self._new, values[None])
            return
        self._seen.append((coordinate, values))
        if len(self._seen) == self._first:
            times, slices = zip(*self._seen, strict=True)
            series = axis_of("series", np.arange(float(values.size)))
            named = {"time": np.array(times), "series": series.numbers}
            model = fit(np.array(slices), named, ["series", "time"])
            self._stream = Stream(model, self._plan)
