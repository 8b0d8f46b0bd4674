"""Forecasts one step ahead: scores, missing cells, limits, ratios."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.streams.known_streams import NO_LIMIT, waves

from dkrls_cli.bench.methods import DKRLS
from dkrls_cli.bench.streams import race as module
from dkrls_cli.bench.streams.data import StreamData, make_stream
from dkrls_cli.bench.streams.matrix import read_matrix
from dkrls_cli.bench.streams.online import LastValue
from dkrls_cli.bench.streams.race import (
    FIXED,
    LAST_VALUE,
    STREAM_METHODS,
    StreamRun,
    make_stream_rows,
    run_forecaster,
    run_stream_method,
)
from dkrls_cli.bench.streams.search import STREAM_SETTINGS
from dkrls_cli.errors import InputError
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import Grid

EVEN = np.arange(30.0)
INTEL_LAB = Path(__file__).parents[4] / "shared/data/intel_lab_subsfin_14400x52.txt"


def test_the_last_value_is_the_mean_square_of_the_changes() -> None:
    stream = waves()
    expected = math.sqrt(np.mean(np.diff(stream.values, axis=0) ** 2))
    assert run_stream_method(LAST_VALUE, stream, 200, NO_LIMIT).rmse() == pytest.approx(
        expected, rel=1e-14
    )


def test_missing_cells_are_not_scored_and_carried_on() -> None:
    values = np.array([[1.0, np.nan], [np.nan, 2.0], [4.0, np.nan], [4.0, 5.0]])
    axes = (axis_of("time", np.arange(4.0)), axis_of("place", np.arange(2.0)))
    run = run_stream_method(LAST_VALUE, make_stream(Grid(values, axes)), 5, NO_LIMIT)
    assert run.squares.tolist() == [1.0, 9.0, 9.0]  # 2 - 1, 4 - 1, 4 - 4 and 5 - 2
    assert run.cells.tolist() == [1, 1, 2]
    assert run.rmse() == pytest.approx(math.sqrt(19 / 4))


def test_a_stream_that_never_changes_is_forecast_so() -> None:
    values = np.tile([3.0, -1.0], (30, 1))
    axes = (axis_of("time", EVEN), axis_of("place", np.arange(2.0)))
    assert run_stream_method(DKRLS, make_stream(Grid(values, axes)), 8, NO_LIMIT).rmse() < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("method", STREAM_METHODS)
def test_no_forecast_knows_what_comes_later(method: str) -> None:
    """Neither in the run nor through the search: another future leaves the past as it was."""
    stream = waves(steps=32, series=2)
    other = StreamData(stream.coordinates, stream.values.copy(), stream.places, stream.few)
    other.values[20:] += 5.0
    runs = [run_stream_method(method, given, 10, NO_LIMIT) for given in (stream, other)]
    assert all(run.steps == 31 and not run.note for run in runs)
    np.testing.assert_array_equal(runs[0].squares[:19], runs[1].squares[:19])
    assert runs[0].squares[19] != runs[1].squares[19]


def test_a_run_out_of_time_has_the_steps_until_then() -> None:
    run = run_forecaster(LastValue(), waves(), 0.0)
    assert (run.steps, run.out_of_time, run.note) == (0, True, "stopped after 0 s")
    row = make_stream_rows({LAST_VALUE: run}, 10)[0]
    assert math.isnan(row["rmse"])
    assert math.isnan(row["to_last_value"])


def test_ratios_are_on_the_steps_that_both_have_done() -> None:
    stream = waves()
    whole, half = (
        run_forecaster(LastValue(), part, NO_LIMIT) for part in (stream, stream.first(20))
    )
    rows = make_stream_rows({LAST_VALUE: whole, DKRLS: half}, 5)
    assert [row["to_last_value"] for row in rows] == [1.0, 1.0]
    assert [row["to_dkrls_later"] for row in rows] == [1.0, 1.0]
    assert whole.rmse() != half.rmse()


@pytest.mark.slow
def test_the_lab_is_forecast_better_than_by_its_last_values() -> None:
    if not INTEL_LAB.exists():
        pytest.skip(
            "needs ../shared/data; twin: test_slow_waves_are_forecast_better_than_by_last_values"
        )
    stream = make_stream(read_matrix(str(INTEL_LAB)))
    runs = {
        method: run_stream_method(method, stream, 200, NO_LIMIT) for method in (LAST_VALUE, DKRLS)
    }
    assert runs[LAST_VALUE].rmse() == pytest.approx(0.13841572, rel=1e-6)
    assert make_stream_rows(runs, stream.search_steps)[1]["to_last_value"] < 0.92


def test_slow_waves_are_forecast_better_than_by_last_values() -> None:
    stream = waves(steps=160, series=6, noise=0.05)
    runs = {
        method: run_stream_method(method, stream, 40, NO_LIMIT) for method in (LAST_VALUE, DKRLS)
    }
    assert make_stream_rows(runs, stream.search_steps)[1]["to_last_value"] < 0.75


class Scripted:
    """A forecaster that answers from a list; an error in it is raised."""

    def __init__(self, answers: list[Any]) -> None:
        self.answers, self.learnt = iter(answers), list[list[float]]()

    def forecast(self, coordinate: float) -> Any:
        answer = next(self.answers)
        if isinstance(answer, Exception):
            raise answer
        return np.array(answer)

    def learn(self, coordinate: float, values: Any) -> None:
        self.learnt.append(values.tolist())


def stream(*slices: list[float]) -> StreamData:
    values = np.array(slices)
    axes = (axis_of("time", np.arange(float(len(values)))), axis_of("x", np.arange(2.0)))
    return make_stream(Grid(values, axes))


NAN = math.nan


def test_forecasts_stand_in_for_missing_cells() -> None:
    forecaster = Scripted([[5.0, 6.0], [7.0, 8.0]])
    run = run_forecaster(forecaster, stream([1, NAN], [NAN, 4], [NAN, NAN]), NO_LIMIT)
    assert forecaster.learnt == [[1.0, 1.0], [5.0, 4.0], [7.0, 8.0]]
    assert (run.squares.tolist(), run.cells.tolist()) == ([4.0, 0.0], [1, 0])
    assert run.rmse() == 2.0
    assert math.isnan(run.rmse(1))


def test_a_first_slice_without_observed_cells_starts_at_zero() -> None:
    forecaster = Scripted([[0.0, 0.0]] * 2)
    run_forecaster(forecaster, stream([NAN, NAN], [1, 1], [1, 1]), NO_LIMIT)
    assert forecaster.learnt[0] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("answer", "note"),
    [
        (InputError("The matrix is\n singular. Raise the ridge."),
         "failed: The matrix is singular. Raise the ridge"),
        (np.linalg.LinAlgError("no"), "failed: no"),
        ([NAN, 1.0], "answers are not all finite"),
        ([math.inf, 1.0], "answers are not all finite"),
    ],
)  # fmt: skip
def test_a_failure_ends_the_run_and_keeps_the_steps_before(answer: Any, note: str) -> None:
    forecaster = Scripted([[1.0, 1.0], answer, [1.0, 1.0]])
    run = run_forecaster(forecaster, stream([1, 1], [1, 2], [1, 1], [1, 1]), NO_LIMIT)
    assert (run.steps, run.note, run.out_of_time) == (1, note, False)
    assert run.squares.tolist() == [1.0]


def test_a_run_is_stopped_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter(range(100))
    monkeypatch.setattr(module, "perf_counter", lambda: float(next(readings)))
    run = run_forecaster(Scripted([[1.0, 1.0]] * 9), stream(*[[1.0, 1.0]] * 9), 3.0)
    assert (run.steps, run.note, run.out_of_time) == (3, "stopped after 3 s", True)
    assert run.seconds == 5.0


def run_of(squares: list[float], **more: Any) -> StreamRun:
    return StreamRun(np.array(squares), np.ones(len(squares)), 2.0, **more)


def test_rows_have_ratios_on_common_steps_and_later_ones() -> None:
    runs = {
        LAST_VALUE: run_of([4.0, 4.0, 16.0, 16.0]),
        DKRLS: run_of([1.0, 1.0, 4.0], settings="s", note="n"),
    }
    last, ours = make_stream_rows(runs, 2)
    assert (ours["to_last_value"], ours["to_last_value_later"]) == (0.5, 0.5)
    assert (last["to_dkrls"], last["to_dkrls_later"]) == (2.0, 2.0)
    assert (ours["steps"], ours["steps_per_second"], ours["seconds"]) == (3, 1.5, 2.0)
    assert (ours["settings"], ours["note"], ours["rmse"]) == ("s", "n", math.sqrt(2.0))
    (alone,) = make_stream_rows({"klms": run_of([1.0])}, 0)
    assert math.isnan(alone["to_last_value"])


def test_the_settings_of_a_run_are_described() -> None:
    found = {m: run_stream_method(m, waves(32, 2), 10, NO_LIMIT) for m in (DKRLS, FIXED, "klms")}
    assert (
        found[DKRLS].settings
        == "fitted to the first 8, window 10, settings averaged by recent skill"
    )
    assert found[FIXED].settings == "fitted to the first 8, window 10, settings of that fit"
    assert found["klms"].settings.startswith("feed ")
    assert "(best of " in found["klms"].settings


def test_a_search_sees_the_first_steps_of_a_few_series(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, float]] = []

    def record(forecaster: Any, given: StreamData, limit: float) -> StreamRun:
        seen.append((given.steps, limit))
        return run_of([1.0] * (given.steps - 1))

    monkeypatch.setattr(module, "run_forecaster", record)
    data = waves(40, 3)
    error = module._search_error("klms", data, 100.0)
    middle = module.middle_settings(STREAM_SETTINGS["klms"])
    assert error(middle) == 1.0
    assert seen == [(10, 5.0), (10, 20.0)]


def test_trials_go_as_far_as_the_first_one_had_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    done = iter([4, 4, 3])
    seen: list[int] = []

    def record(forecaster: Any, given: StreamData, limit: float) -> StreamRun:
        seen.append(given.steps)
        return run_of([1.0] * next(done), out_of_time=len(seen) == 1)

    monkeypatch.setattr(module, "run_forecaster", record)
    error = module._search_error("klms", waves(40, 3), 100.0)
    middle = module.middle_settings(STREAM_SETTINGS["klms"])
    assert error(middle) == 1.0
    assert error(middle) == math.inf  # one that does not finish
    assert seen == [10, 5, 5]
