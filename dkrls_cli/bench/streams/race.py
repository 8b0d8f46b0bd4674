"""The race on a stream: every slice is forecast before it is learnt.

A missing cell is not scored, and its forecast is learnt in its place.

The settings of the online methods are searched on the first steps of the stream; then every method
runs over the whole of it. D-KRLS has no settings to search. Results after the steps that the search
has seen are reported separately.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.bench.methods import DKRLS
from dkrls_cli.bench.streams.data import LEAST_STEPS, StreamData
from dkrls_cli.bench.streams.dkrls import FIRST_SLICES, DkrlsForecaster
from dkrls_cli.bench.streams.online import LastValue, OnlineForecaster, SliceForecaster
from dkrls_cli.bench.streams.search import (
    SCHEME,
    STREAM_SETTINGS,
    OnlineSettings,
    make_factory,
    middle_settings,
    search_one_by_one,
    settings_text,
)
from dkrls_cli.errors import DkrlsError
from dkrls_cli.model.stream import Plan
from dkrls_cli.threads import one_blas_thread

LAST_VALUE = "last-value"
FIXED = "dkrls-fixed"
STREAM_METHODS = (LAST_VALUE, DKRLS, FIXED, *STREAM_SETTINGS)

# Share of the time limit for the first trial of a search; later ones may take four times as long.
_TRIAL_SHARE, _LATER_TRIALS = 0.05, 4.0


@dataclass(frozen=True, eq=False)
class StreamRun:
    """The forecasts of a method, and the time they took.

    A run that was stopped, or that failed, has the steps until then.

    Attributes
    ----------
    squares, cells
        Sum of the squared errors of every step but the first, and number of observed cells.
    seconds
        Time of the run.
    settings, note
        Settings of the method, and why the run ended early; as text.
    out_of_time
        Whether the run was stopped at its time limit.
    """

    squares: Array
    cells: Array
    seconds: float
    settings: str = ""
    note: str = ""
    out_of_time: bool = False

    @property
    def steps(self) -> int:
        """Number of forecasts."""
        return self.squares.size

    def rmse(self, start: int = 0, stop: int | None = None) -> float:
        """Return the root mean square error of some forecasts, or NaN of none."""
        cells = float(self.cells[start:stop].sum())
        return math.sqrt(float(self.squares[start:stop].sum()) / cells) if cells else math.nan


def run_forecaster(forecaster: SliceForecaster, stream: StreamData, limit: float) -> StreamRun:
    """Forecast every slice, then learn it, for at most `limit` seconds."""
    squares, note, late, start = list[float](), "", False, perf_counter()
    observed = np.isfinite(stream.values)
    forecaster.learn(float(stream.coordinates[0]), _fill_with_mean(stream.values[0]))
    with np.errstate(all="ignore"), one_blas_thread():
        for place, coordinate in enumerate(stream.coordinates[1:].tolist(), start=1):
            late = perf_counter() - start > limit
            if late:
                note = f"stopped after {limit:g} s"
                break
            try:
                guess = forecaster.forecast(coordinate)
                values = np.where(observed[place], stream.values[place], guess)
                forecaster.learn(coordinate, values)
            except (DkrlsError, np.linalg.LinAlgError) as error:
                note = f"failed: {' '.join(str(error).split()).rstrip('.')}"
                break
            if not np.isfinite(guess).all():
                note = "answers are not all finite"
                break
            squares.append(float(np.sum((guess - values) ** 2)))
    cells = observed[1 : len(squares) + 1].sum(axis=1)
    return StreamRun(np.array(squares), cells, perf_counter() - start, note=note, out_of_time=late)


def _fill_with_mean(values: Array) -> Array:
    """Return a slice with the mean of its observed cells in the missing ones."""
    observed = np.isfinite(values)
    return np.where(observed, values, values[observed].mean() if observed.any() else 0.0)


def run_stream_method(method: str, stream: StreamData, window: int, limit: float) -> StreamRun:
    """Run a method over the stream, after a search of its settings if it has any.

    Parameters
    ----------
    method
        One of `STREAM_METHODS`.
    stream
        The slices.
    window
        Number of slices that D-KRLS keeps.
    limit
        Seconds for the search, and for the run.
    """
    if method == LAST_VALUE:
        return run_forecaster(LastValue(), stream, limit)
    if method in (DKRLS, FIXED):
        return _run_dkrls(stream, Plan(window, retune=method == DKRLS), limit)
    found = search_one_by_one(STREAM_SETTINGS[method], _search_error(method, stream, limit), limit)
    run = run_forecaster(_make_forecaster(method, found.settings, stream), stream, limit)
    searched = f"best of {found.tried} tried in {found.seconds:.0f} s"
    return replace(run, settings=f"{settings_text(found.settings)} ({searched})")


def _run_dkrls(stream: StreamData, plan: Plan, limit: float) -> StreamRun:
    """Run D-KRLS as `dkrls stream` does, from a default fit of the first slices on."""
    first = min(FIRST_SLICES, max(stream.search_steps, LEAST_STEPS))
    run = run_forecaster(DkrlsForecaster(plan, first), stream, limit)
    how = "settings averaged by recent skill" if plan.retune else "settings of that fit"
    return replace(run, settings=f"fitted to the first {first}, window {plan.window}, {how}")


def _make_forecaster(method: str, settings: OnlineSettings, stream: StreamData) -> OnlineForecaster:
    """Return a new forecaster by an online method."""
    units = stream.units()
    factory = make_factory(method, settings, units.places.shape[1])
    return OnlineForecaster(factory, settings[SCHEME], units)


def _search_error(
    method: str, stream: StreamData, limit: float
) -> Callable[[OnlineSettings], float]:
    """Return a function from settings to the error on the first steps of a few series.

    The first trial decides how many steps there is time for; later trials must finish as many.
    """
    whole = stream.first(max(stream.search_steps, LEAST_STEPS)).thin()
    start = _make_forecaster(method, middle_settings(STREAM_SETTINGS[method]), whole)
    first = run_forecaster(start, whole, _TRIAL_SHARE * limit)
    part = whole.first(max(first.steps + 1, LEAST_STEPS)) if first.out_of_time else whole

    def error(settings: OnlineSettings) -> float:
        forecaster = _make_forecaster(method, settings, part)
        run = run_forecaster(forecaster, part, _LATER_TRIALS * _TRIAL_SHARE * limit)
        return run.rmse() if run.steps == part.steps - 1 else math.inf

    return error


def make_stream_rows(runs: Mapping[str, StreamRun], search_steps: int) -> list[dict[str, Any]]:
    """Return a row per method, with ratios to the last value and to D-KRLS on the same steps.

    Columns that end in ``_later`` leave out the first `search_steps`.
    """
    last, ours = runs.get(LAST_VALUE), runs.get(DKRLS)
    return [
        {
            "method": method,
            "steps": run.steps,
            "rmse": run.rmse(),
            "to_last_value": _ratio(run, last),
            "to_last_value_later": _ratio(run, last, search_steps),
            "to_dkrls": _ratio(run, ours),
            "to_dkrls_later": _ratio(run, ours, search_steps),
            "seconds": run.seconds,
            "steps_per_second": run.steps / run.seconds,
            "settings": run.settings,
            "note": run.note,
        }
        for method, run in runs.items()
    ]


def _ratio(run: StreamRun, other: StreamRun | None, start: int = 0) -> float:
    """Return the ratio of the errors of two runs, on the steps that both have done."""
    stop = min(run.steps, other.steps) if other else 0
    below = other.rmse(start, stop) if other else math.nan
    return run.rmse(start, stop) / below if below > 0 else math.nan
