"""A model on a stream of slices: each slice is forecast first, and then learnt."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.level import Level
from dkrls_cli.circle import is_behind, nearest
from dkrls_cli.errors import SettingError
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.observations import read_number
from dkrls_cli.model.fit import retune
from dkrls_cli.model.model import Model
from dkrls_cli.model.updating.adding import add_slices
from dkrls_cli.model.updating.alignment import usual_error
from dkrls_cli.tuning.forecasts import Forecast, Forecaster, has_weights, settings_around

# Weight of a squared error after each further slice: a memory of about 100 slices.
_FADING = 0.99

# Slices that the model's own error bars count for beside the errors seen on the stream.
_PRIOR_SLICES = 5.0

# Slices before a drift is reported, and the ratio of recent to predicted error that is a drift.
_SLICES_BEFORE_DRIFT, _DRIFT = 10, 3.0


@dataclass(frozen=True)
class Plan:
    """How a model follows a stream.

    Attributes
    ----------
    window, max_rank, replace
        Which slices are kept, as in :meth:`dkrls_cli.model.model.Model.update`.
    retune
        Forecast every cell with several settings of the last level, averaged by their recent
        skill, and choose the settings of the last level again before the model is kept.
    """

    window: int | None = None
    max_rank: int | None = None
    replace: bool = False
    retune: bool = False


@dataclass(frozen=True, eq=False)
class Expected:
    """Forecast of a slice before it is learnt, and its standard errors, with the model's axes.

    Cells that the model has no answers at, such as land, are NaN.
    """

    values: Array
    std: Array


class Stream:
    """Forecasts slices one after the other, and learns them.

    Parameters
    ----------
    model
        The model before the first slice.
    plan
        Which slices are kept, and whether settings are chosen again.

    Raises
    ------
    SettingError
        If the observations of the model have errors that are not one number: a stream brings none.

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
        if model.observations is not None and read_number(usual_error(model)) is None:
            raise SettingError(
                "A stream brings values without errors, and the observations of this model have "
                "errors that are not one number. Add the slices by updates, with their errors."
            )
        self.model, self.plan, self.slices = model, plan, 0
        self._forecaster = _make_forecaster(model, plan)
        self._tally = _Tally(model)
        self._bars: _StreamBars | None = None
        self._forecast: Forecast | None = None

    def wants(self, new: Axis) -> bool:
        """Return whether a slice would be learnt and kept.

        A slice older than the window is not, nor one whose coordinate the model has, unless the
        plan is to replace it.
        """
        growing, window = self.model.growing, self.plan.window
        known, period = growing.coordinates, growing.cascade.levels[growing.axis].kernel.period
        if period is None and growing.rises and is_behind(float(new.numbers[0]), known):
            return True
        if window is not None and window <= known.size:
            oldest = np.partition(known, -window)[-window]
            if new.numbers[0] < oldest:
                return False
        return self.plan.replace or not self._has(new)

    def _has(self, new: Axis) -> bool:
        """Return whether the model has a slice at a coordinate."""
        growing = self.model.growing
        period = growing.cascade.levels[growing.axis].kernel.period
        return bool(nearest(new.numbers, growing.coordinates, period)[1][0])

    def step(self, new: Axis, values: Array) -> Expected:
        """Forecast a slice, then learn it; `values` is NaN where the slice has no value."""
        expected = self.expect(new)
        self.learn(new, values)
        return expected

    def expect(self, new: Axis) -> Expected:
        """Return the forecast of the slice at a coordinate, NaN on land.

        That of a slice that is to be replaced is the slice that the model has.
        """
        queries = _slice_queries(self.model, new)
        if self.plan.replace and self._has(new):
            self._forecast = None
            values = self.model.cascade.predict(queries)
            std = np.sqrt(self.model.variance(queries))
        else:
            if self._bars is None:
                self._bars = _StreamBars(self.model.variance(queries))
            self._forecast = self._forecast_slice(new)
            values, std = self.model.cut(self._forecast.values), self._bars.std
        bounds = self.model.bounds
        if bounds is not None:
            values, std = bounds.clip(values), bounds.spread(values, std)
        coverage = self.model.coverage
        if coverage.has_land:
            axes = [*self.model.axes]
            axes[self.model.grows] = new
            land = coverage.absent_on(axes)
            values, std = np.where(land, np.nan, values), np.where(land, np.nan, std)
        return Expected(values, std)

    def learn(self, new: Axis, values: Array) -> None:
        """Learn the slice that was forecast last, NaN where it has no value."""
        forecast, plan, before = self._forecast, self.plan, self.model
        self.model = add_slices(
            self.model,
            values,
            new,
            replace=plan.replace,
            window=plan.window,
            max_rank=plan.max_rank,
            accept_inexact=True,  # a stream goes on
        )
        self.slices += 1
        if forecast is not None:
            self._judge(before.cut(forecast.values), values)
        if _last_settings(self.model) != _last_settings(before):  # few slices: chosen again
            self._forecaster = _make_forecaster(self.model, plan)
        elif self._forecaster is not None and forecast is not None:
            self._forecaster.learn(forecast, before.extend(values))

    def _judge(self, expected: Array, values: Array) -> None:
        """Learn how far a slice is from its forecast."""
        assert self._bars is not None
        squares = (expected - values) ** 2
        self._bars.learn(squares)
        if self.model.bounds is not None:
            squares = (self.model.bounds.clip(expected) - values) ** 2
        self._tally.learn(squares, values)

    @property
    def rmse(self) -> float:
        """Root mean square error of all forecasts so far."""
        return self._tally.rmse(self._tally.ours)

    @property
    def last_value_rmse(self) -> float:
        """Root mean square error of forecasting every cell by its last value."""
        return self._tally.rmse(self._tally.last_value)

    @property
    def drift(self) -> float:
        """Ratio of recent errors to predicted ones; 0 if it is no drift."""
        if self._bars is None or self.slices < _SLICES_BEFORE_DRIFT or self._bars.promised == 0:
            return 0.0
        ratio = math.sqrt(self._bars.recent / self._bars.promised)
        return ratio if ratio > _DRIFT else 0.0

    def final_model(self) -> Model:
        """Return the model to keep: with its last level tuned again if that is the plan."""
        return (
            retune(self.model, accept_inexact=True)
            if self.plan.retune and self.slices
            else self.model
        )

    def _forecast_slice(self, new: Axis) -> Forecast:
        own = None
        if not _forecasts_by_weights(self.model):
            queries = list(self.model.cascade.coordinates)
            queries[self.model.grows] = new.numbers
            own = self.model.cascade.predict(queries)
        if self._forecaster is not None:
            return self._forecaster.forecast(self.model.growing, float(new.numbers[0]), own)
        assert own is not None
        return Forecast(own, np.moveaxis(own, self.model.grows, 0))


def _make_forecaster(model: Model, plan: Plan) -> Forecaster | None:
    """Return what forecasts by weights of the last level; None if the model itself is asked."""
    growing, own = model.growing, model.cascade.levels[model.grows]
    alone = _forecasts_by_weights(model)
    if not plan.retune:
        return Forecaster(growing, [own]) if alone else None
    settings = settings_around(own, growing.coordinates)
    return Forecaster(growing, settings if alone else settings[1:], with_another=not alone)


def _last_settings(model: Model) -> tuple[Level, float | None]:
    """Return the settings of the last level, and the joint ridge."""
    return model.levels[-1], model.joint_ridge


def _forecasts_by_weights(model: Model) -> bool:
    """Return whether weights of the last level alone give the model's forecast accurately."""
    return model.joint_ridge is None and has_weights(model.cascade.levels[model.grows])


def _slice_queries(model: Model, new: Axis) -> list[Array]:
    """Return the queries of one slice: coordinates of the data along all other axes."""
    queries = list(model.queries(model.axes))
    queries[model.grows] = new.numbers
    return queries


class _StreamBars:
    """Error bars of every cell: the model's own at first, then more and more the errors seen."""

    def __init__(self, promised: Array) -> None:
        self.promised = self.recent = float(promised.mean())
        self._squares = _PRIOR_SLICES * promised
        self._counts = np.full(promised.shape, _PRIOR_SLICES)

    @property
    def std(self) -> Array:
        """Standard error of every cell."""
        return np.asarray(np.sqrt(self._squares / self._counts))

    def learn(self, squares: Array) -> None:
        """Add the squared errors of a slice, NaN where a cell has no value."""
        seen = ~np.isnan(squares)
        self._squares = _FADING * self._squares + np.where(seen, squares, 0.0)
        self._counts = _FADING * self._counts + seen
        self.recent = float(self._squares.sum() / self._counts.sum())


class _Tally:
    """Sums of squared errors of the forecasts, and of forecasting by the last value."""

    def __init__(self, model: Model) -> None:
        growing = model.growing
        self._last = model.cut(growing.slices(np.array([np.argmax(growing.coordinates)])))
        self.cells, self.ours, self.last_value = 0, 0.0, 0.0

    def learn(self, squares: Array, values: Array) -> None:
        """Add the squared errors of one slice."""
        seen = ~np.isnan(values)
        self.cells += int(np.count_nonzero(seen))
        self.ours += float(squares[seen].sum())
        self.last_value += float(((values - self._last)[seen] ** 2).sum())
        self._last = np.where(seen, values, self._last)

    def rmse(self, total: float) -> float:
        """Return the root of the mean over all cells so far; NaN before the first."""
        return math.sqrt(total / self.cells) if self.cells else math.nan
