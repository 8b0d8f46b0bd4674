"""The race on streams: forecasts one step ahead, who makes them, and what is told."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shell import ROOT, assert_same_rows, dkrls, refusal

from dkrls_cli import fit
from dkrls_cli.baselines import BASELINES
from dkrls_cli.bench.real.race import OURS
from dkrls_cli.bench.streams.contenders import CONTENDERS, descended, maker, middle
from dkrls_cli.bench.streams.matrix import is_matrix, read_matrix
from dkrls_cli.bench.streams.online import Feed, LastValue, Online, Units
from dkrls_cli.bench.streams.ours import Ours
from dkrls_cli.bench.streams.stream import (
    LAST,
    METHODS,
    Stream,
    prequential,
    rows_of,
    run_of,
    stream_of,
)
from dkrls_cli.errors import InputError
from dkrls_cli.grid.axes import axis_of, text_axis
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.stream import Plan
from dkrls_cli.model.stream import Stream as Lives

SENSORS = ROOT / "sample_data" / "sensors.csv"
INTEL_LAB = Path(__file__).parents[4] / "shared/data/intel_lab_subsfin_14400x52.txt"
NO_LIMIT = 1e6
EVEN = np.arange(30.0)
UNEVEN = np.cumsum(np.random.default_rng(1).uniform(0.5, 1.5, 30))


def waves(steps: int = 40, series: int = 3, noise: float = 0.1) -> Stream:
    """Slow waves with noise, a series for each phase."""
    rng = np.random.default_rng(0)
    times = np.arange(float(steps))
    values = np.sin(times[:, None] / 7 + np.arange(series)) + noise * rng.normal(
        size=(steps, series)
    )
    axes = (axis_of("time", times), axis_of("place", np.arange(float(series))))
    return stream_of(Grid(values, axes))


def test_the_last_value_is_the_mean_square_of_the_changes() -> None:
    stream = waves()
    expected = math.sqrt(np.mean(np.diff(stream.values, axis=0) ** 2))
    assert run_of(LAST, stream, 200, NO_LIMIT).rmse() == pytest.approx(expected, rel=1e-14)


def test_missing_cells_are_not_scored_and_carried_on() -> None:
    values = np.array([[1.0, np.nan], [np.nan, 2.0], [4.0, np.nan], [4.0, 5.0]])
    axes = (axis_of("time", np.arange(4.0)), axis_of("place", np.arange(2.0)))
    run = run_of(LAST, stream_of(Grid(values, axes)), 5, NO_LIMIT)
    assert run.squares.tolist() == [1.0, 9.0, 9.0]  # 2 - 1, 4 - 1, 4 - 4 and 5 - 2
    assert run.cells.tolist() == [1, 1, 2]
    assert run.rmse() == pytest.approx(math.sqrt(19 / 4))


def test_a_stream_that_never_changes_is_forecast_so() -> None:
    values = np.tile([3.0, -1.0], (30, 1))
    axes = (axis_of("time", EVEN), axis_of("place", np.arange(2.0)))
    assert run_of(OURS, stream_of(Grid(values, axes)), 8, NO_LIMIT).rmse() < 1e-6


@pytest.mark.parametrize("retune", [False, True])
def test_ours_is_what_a_stream_does(retune: bool) -> None:
    stream, plan = waves(steps=40), Plan(15, retune=retune)
    run = prequential(Ours(plan, first=10), stream, NO_LIMIT)
    named = {"time": stream.coordinates[:10], "series": np.arange(3.0)}
    lives = Lives(fit(stream.values[:10], named, ["series", "time"]), plan)
    for place in range(10, 40):
        new = lives.model.axes[0].at(stream.coordinates[place])
        expected = lives.step(new, stream.values[place : place + 1])
        missed = np.sum((expected.values - stream.values[place]) ** 2)
        assert run.squares[place - 1] == pytest.approx(missed, rel=1e-9)
    changes = np.sum(np.diff(stream.values[:10], axis=0) ** 2, axis=1)
    assert run.squares[:9] == pytest.approx(changes)


@pytest.mark.parametrize("method", METHODS)
def test_no_forecast_knows_what_comes_later(method: str) -> None:
    """Neither in the run nor through the search: another future leaves the past as it was."""
    stream = waves(steps=32, series=2)
    other = Stream(stream.coordinates, stream.values.copy(), stream.places, stream.few)
    other.values[20:] += 5.0
    runs = [run_of(method, given, 10, NO_LIMIT) for given in (stream, other)]
    assert all(run.steps == 31 and not run.note for run in runs)
    np.testing.assert_array_equal(runs[0].squares[:19], runs[1].squares[:19])
    assert runs[0].squares[19] != runs[1].squares[19]


def test_every_online_method_is_searched_from_settings_it_takes() -> None:
    assert set(CONTENDERS) == set(BASELINES)
    for name, lists in CONTENDERS.items():
        for key, values in lists.items():
            for value in values:
                assert maker(name, {**middle(lists), key: value}, 1)().size == 0


class Spy:
    """Stands for a method: remembers what it was given, answers 0.5."""

    def __init__(self) -> None:
        self.given: list[tuple[list[float], float]] = []

    def update(self, x: Any, y: float) -> None:
        self.given.append((np.asarray(x).tolist(), y))

    def predict(self, points: Any) -> Any:
        return np.full(len(points), 0.5)


@pytest.mark.parametrize(
    ("feed", "samples", "guess"),
    [
        (Feed("changes", 3), [([-2.0, -3.0], 1.0), ([4.0, 5.0], 2.0)], [7.0, 1.0]),
        (Feed("changes", 3, own=True), [([-2.0, -3.0], 1.0)], [7.0, 1.0]),
        (Feed("time", own=True), [([3.0], 1.0)], [7.0, 1.0]),
        (Feed("place"), [([10.0, 3.0], 1.0), ([20.0, 3.0], 2.0)], [7.0, 1.0]),
        (Feed("place", level=True), [([10.0, 3.0], 4.0), ([20.0, 3.0], -3.0)], [1.0, 11.0]),
    ],
    ids=str,
)
def test_samples_are_made_as_the_feed_says(feed: Feed, samples: Any, guess: list[float]) -> None:
    spies: list[Spy] = []

    def make() -> Any:
        spies.append(Spy())
        return spies[-1]

    online = Online(make, feed, Units(2.0, 5.0, np.array([[10.0], [20.0]])))
    slices = [[0.0, 10.0], [2.0, 8.0], [6.0, 0.0], [8.0, 4.0]]
    for time, values in zip((0.0, 5.0, 10.0, 15.0), slices, strict=True):
        if time == 15.0:
            assert online.forecast(time).tolist() == guess
        online.learn(time, np.array(values))
    assert len(spies) == (2 if feed.own else 1)
    assert spies[0].given[-len(samples) :] == samples


def test_a_filter_in_time_answers_as_the_method_itself() -> None:
    stream, changes = waves(steps=20, series=2), {}
    online = Online(lambda: BASELINES["swkrls"](sigma=3.0), Feed("time", own=True), stream.units())
    online.learn(0.0, stream.values[0])
    for i in range(1, 20):
        online.forecast(float(i))
        online.learn(float(i), stream.values[i])
    for series in range(2):
        changes[series] = np.diff(stream.values[:, series])
        alone = BASELINES["swkrls"](sigma=3.0)
        for i, change in enumerate(changes[series], start=1):
            alone.update([float(i)], change)
        expected = stream.values[-1, series] + alone.predict([[20.0]])[0]
        assert online.forecast(20.0)[series] == pytest.approx(expected, rel=1e-10)


def test_a_search_goes_downhill_one_setting_at_a_time() -> None:
    lists = {"feed": ("a", "b"), "x": (1, 2, 3, 4, 5), "y": (1, 2, 3)}

    def error(choice: Any) -> float:
        return (choice["x"] - 4) ** 2 + (choice["y"] - 1) ** 2 + (choice["feed"] == "b")

    found = descended(lists, error, NO_LIMIT)
    assert found.choice == {"feed": "a", "x": 4, "y": 1}
    assert 1 < found.tried < 30
    hurried = descended(lists, error, 0.0)
    assert hurried.choice == middle(lists)
    assert hurried.tried == 1


def test_a_run_out_of_time_has_the_steps_until_then() -> None:
    run = prequential(LastValue(), waves(), 0.0)
    assert (run.steps, run.out_of_time, run.note) == (0, True, "stopped after 0 s")
    row = rows_of({LAST: run}, 10)[0]
    assert math.isnan(row["rmse"])
    assert math.isnan(row["to_last_value"])


def test_ratios_are_on_the_steps_that_both_have_done() -> None:
    stream = waves()
    whole, half = (prequential(LastValue(), part, NO_LIMIT) for part in (stream, stream.first(20)))
    rows = rows_of({LAST: whole, OURS: half}, 5)
    assert [row["to_last_value"] for row in rows] == [1.0, 1.0]
    assert [row["to_dkrls_later"] for row in rows] == [1.0, 1.0]
    assert whole.rmse() != half.rmse()


def test_a_grid_streams_along_its_last_level() -> None:
    values = np.arange(24.0).reshape(2, 4, 3)
    axes = (axis_of("y", [0.0, 5.0]), axis_of("time", [3.0, 1.0, 2.0, 0.0]), text_axis("x", "abc"))
    stream = stream_of(Grid(values, axes))
    assert stream.coordinates.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert stream.values[0].tolist() == values[:, 3].ravel().tolist()
    assert stream.places.tolist() == [[x, y] for y in (0, 1) for x in (0, 1, 2)]  # x fastest
    assert stream_of(Grid(values, axes), ["time", "x", "y"][::-1]).steps == 4
    with pytest.raises(InputError, match="2 coordinates of y, its last level"):
        stream_of(Grid(values, axes), ["time", "x", "y"])


def test_a_search_sees_few_series_that_are_a_grid() -> None:
    axes = [axis_of(name, np.arange(float(n))) for name, n in (("time", 8), ("y", 9), ("x", 30))]
    few = stream_of(Grid(np.random.default_rng(0).normal(size=(8, 9, 30)), tuple(axes))).thinned()
    assert few.values.shape == (8, 16)
    assert {tuple(place) for place in few.places} == {
        (x, y) for x in (0, 9, 19, 29) for y in (0, 2, 5, 8)
    }
    run = run_of("recursive", few, 5, NO_LIMIT)
    assert run.steps == 7
    assert not run.note


def test_a_matrix_of_numbers_is_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    path.write_text("1 2.5 3\n\n4 5 6e1\n7 8 9\n")
    assert is_matrix(str(path))
    grid = read_matrix(str(path))
    assert grid.dims == ("time", "series")
    assert grid.values.tolist() == [[1, 2.5, 3], [4, 5, 60], [7, 8, 9]]
    assert stream_of(grid).steps == 3
    for text, reason in (
        ("1 2\n3\n4 5", "Row 2"),
        ("1 2\n3 x\n", "Line 2"),
        ("1 2\n3 4", "needs 3"),
    ):
        path.write_text(text)
        assert reason in refusal("bench", "stream", path)
    path.write_text("time,a,b\n0,1,2\n1,2,3\n")
    assert not is_matrix(str(path))
    assert not is_matrix(str(SENSORS))


def test_the_race_is_told_as_rows_of_json_and_csv(tmp_path: Path) -> None:
    words = ["bench", "stream", SENSORS, "--methods", "dkrls,last-value,knlms", "--window", 50]
    said = json.loads(dkrls(*words, "--json", "--csv", tmp_path / "rows.csv").stdout)
    rows = {row["method"]: row for row in said["rows"]}
    assert list(rows) == ["last-value", "dkrls", "knlms"]
    assert {row["steps"] for row in said["rows"]} == {191}
    assert said["searched"] == 48
    assert rows["last-value"]["to_last_value"] == 1.0
    assert rows["dkrls"]["to_last_value"] < 0.5
    assert rows["dkrls"]["settings"].startswith("fitted to the first 20, window 50")
    assert "tried in" in rows["knlms"]["settings"]
    assert rows["knlms"]["to_dkrls"] == pytest.approx(
        rows["knlms"]["rmse"] / rows["dkrls"]["rmse"], rel=1e-12
    )
    assert_same_rows((tmp_path / "rows.csv").read_text(), said["rows"])


def test_the_table_stands_above_settings_and_notes() -> None:
    words = ["bench", "stream", SENSORS, "--methods", "last-value,kkf", "--time-limit", "1e-6"]
    text = dkrls(*words, COLUMNS="100").stdout
    assert text.startswith("192 steps of 12 series, one step ahead\n\nmethod")
    assert "kkf: feed place" in text
    assert "stopped after 1e-06 s." in text


def test_what_cannot_race_is_refused(tmp_path: Path) -> None:
    unknown = refusal("bench", "stream", SENSORS, "--methods", "arima", code=2)
    assert "Unknown method 'arima'. Choose of last-value, dkrls, dkrls-fixed, klms," in unknown
    assert "--time-limit 0" in refusal("bench", "stream", SENSORS, "--time-limit", 0, code=2)
    assert "There is no file" in refusal("bench", "stream", tmp_path / "absent.nc")
    assert "There is no file" in refusal("bench", "stream", tmp_path / "absent.txt")
    (tmp_path / "rows.csv").touch()
    assert "exists" in refusal("bench", "stream", SENSORS, "--csv", tmp_path / "rows.csv")


def test_the_lab_is_forecast_better_than_by_its_last_values() -> None:
    if not INTEL_LAB.exists():
        pytest.skip("the Intel Lab data is not here")
    stream = stream_of(read_matrix(str(INTEL_LAB)))
    runs = {method: run_of(method, stream, 200, NO_LIMIT) for method in (LAST, OURS)}
    assert runs[LAST].rmse() == pytest.approx(0.13841572, rel=1e-6)
    assert rows_of(runs, stream.searched)[1]["to_last_value"] < 0.92
