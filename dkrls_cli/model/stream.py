"""A model that lives on a stream: each slice is forecast first, and then learnt."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.circle import nearest
from dkrls_cli.grid.axes import Axis
from dkrls_cli.model.fit import retuned
from dkrls_cli.model.model import Model
from dkrls_cli.tuning.forecasts import Forecast, Forecaster, has_weights, settings_around

_FADING = 0.99
"""What an error counts a slice later."""

_PROMISE = 5.0
"""Slices that what the model promised counts for in the error bars."""

_ENOUGH, _FAR = 10, 3.0
"""Slices after which a drift may be told, and errors that are one in units of those promised."""


@dataclass(frozen=True)
class Plan:
    """How to live on a stream: what is kept as in :meth:`dkrls_cli.model.model.Model.update`.

    With `retune` every cell is forecast by several settings of the last level, weighted by how
    they did there of late, and the model that is kept has its last level chosen anew.
    """

    window: int | None = None
    max_rank: int | None = None
    replace: bool = False
    retune: bool = False


@dataclass(frozen=True, eq=False)
class Expected:
    """What a slice was expected to be before it was learnt, with the axes of the model."""

    values: Array
    std: Array


class Stream:
    """Forecasts slices one after the other, and learns them.

    Examples
    --------
    >>> from dkrls_cli import fit
    >>> x, t = np.linspace(0, 3, 20), np.arange(40.0)
    >>> values = np.outer(np.sin(x), np.cos(t / 4))
    >>> stream = Stream(fit(values[:, :30], {"x": x, "t": t[:30]}), Plan(window=30, retune=True))
    >>> time = stream.model.axes[1]
    >>> for step in range(30, 40):
    ...     expected = stream.step(time.at(t[step]), values[:, [step]])
    >>> stream.rmse < 0.2 * stream.last_value_rmse
    True
    """

    def __init__(self, model: Model, plan: Plan) -> None:
        self.model, self.plan, self.slices = model, plan, 0
        self._forecaster = _forecaster(model, plan)
        self._tally = _Tally(model)
        self._bars: _Bars | None = None
        self._forecast: Forecast | None = None

    def wants(self, new: Axis) -> bool:
        """Whether a slice would be learnt and kept: one that is known may be to be replaced."""
        known, window = self.model.growing.coordinates, self.plan.window
        if window is not None and window <= known.size:
            oldest = np.partition(known, -window)[-window]
            if new.numbers[0] < oldest:
                return False
        kernel = self.model.cascade.levels[self.model.grows].kernel
        return self.plan.replace or not nearest(new.numbers, known, kernel.period)[1][0]

    def step(self, new: Axis, values: Array) -> Expected:
        """Forecast a slice, then learn it; NaN where it has no value."""
        expected = self.expect(new)
        self.learn(new, values)
        return expected

    def expect(self, new: Axis) -> Expected:
        """What is expected at a coordinate."""
        if self._bars is None:
            self._bars = _Bars(self.model.variance(_queries(self.model, new)))
        self._forecast = self._forecast_of(new)
        return Expected(self._forecast.values, self._bars.std)

    def learn(self, new: Axis, values: Array) -> None:
        """Learn the slice that was expected last, NaN where it has no value."""
        forecast, plan = self._forecast, self.plan
        assert forecast is not None
        assert self._bars is not None
        self.model = self.model.learn(
            values, new, replace=plan.replace, window=plan.window, max_rank=plan.max_rank
        )
        self.slices += 1
        squares = (forecast.values - values) ** 2
        self._bars.learn(squares)
        self._tally.learn(squares, values)
        if self._forecaster is not None:
            self._forecaster.learn(forecast, values)

    @property
    def rmse(self) -> float:
        """Root mean square error of all forecasts so far."""
        return self._tally.rmse(self._tally.ours)

    @property
    def last_value_rmse(self) -> float:
        """That of forecasting the last value of every cell."""
        return self._tally.rmse(self._tally.last_value)

    @property
    def drift(self) -> float:
        """How many times larger the errors of late are than promised; 0 if that is no drift."""
        if self._bars is None or self.slices < _ENOUGH or self._bars.promised == 0:
            return 0.0
        late = math.sqrt(self._bars.late / self._bars.promised)
        return late if late > _FAR else 0.0

    def kept(self) -> Model:
        """The model as it is to be kept."""
        return retuned(self.model) if self.plan.retune and self.slices else self.model

    def _forecast_of(self, new: Axis) -> Forecast:
        own = None
        if not _forecasts_by_weights(self.model):
            own = self.model.cascade.predict(_queries(self.model, new))
        if self._forecaster is not None:
            return self._forecaster.forecast(self.model.growing, float(new.numbers[0]), own)
        assert own is not None
        return Forecast(own, np.moveaxis(own, self.model.grows, 0))


def _forecaster(model: Model, plan: Plan) -> Forecaster | None:
    """What forecasts by weights of the last level; None where the model itself is to be asked."""
    growing, own = model.growing, model.cascade.levels[model.grows]
    alone = _forecasts_by_weights(model)
    if not plan.retune:
        return Forecaster(growing, [own]) if alone else None
    settings = settings_around(own, growing.coordinates)
    return Forecaster(growing, settings if alone else settings[1:], with_another=not alone)


def _forecasts_by_weights(model: Model) -> bool:
    level = model.cascade.levels[model.grows]
    return model.cascade.joint_ridge is None and has_weights(level)


def _queries(model: Model, new: Axis) -> list[Array]:
    queries = list(model.cascade.coordinates)
    queries[model.grows] = new.numbers
    return queries


class _Bars:
    """Error bars of every cell: as promised at first, then more and more as experienced."""

    def __init__(self, promised: Array) -> None:
        self.promised = self.late = float(promised.mean())
        self._squares, self._counts = _PROMISE * promised, np.full(promised.shape, _PROMISE)

    @property
    def std(self) -> Array:
        """Standard error of every cell."""
        return np.asarray(np.sqrt(self._squares / self._counts))

    def learn(self, squares: Array) -> None:
        """From the squares of what was missed, NaN where nothing is known."""
        seen = ~np.isnan(squares)
        self._squares = _FADING * self._squares + np.where(seen, squares, 0.0)
        self._counts = _FADING * self._counts + seen
        self.late = float(self._squares.sum() / self._counts.sum())


class _Tally:
    """Sums of squares of what was missed, by ourselves and by the last value."""

    def __init__(self, model: Model) -> None:
        growing = model.growing
        self._last = growing.slices(np.array([np.argmax(growing.coordinates)]))
        self.cells, self.ours, self.last_value = 0, 0.0, 0.0

    def learn(self, squares: Array, values: Array) -> None:
        """Add those of one slice."""
        seen = ~np.isnan(values)
        self.cells += int(np.count_nonzero(seen))
        self.ours += float(squares[seen].sum())
        self.last_value += float(((values - self._last)[seen] ** 2).sum())
        self._last = np.where(seen, values, self._last)

    def rmse(self, total: float) -> float:
        """Root of the mean, over all cells so far."""
        return math.sqrt(total / self.cells) if self.cells else math.nan
