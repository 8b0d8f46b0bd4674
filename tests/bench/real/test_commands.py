"""The commands `dkrls bench real` and `gaps`, and those against the clock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sample_files as files
from sample_files import EAST, NORTH, grid
from shell import ROOT, assert_same_rows, dkrls, refusal, spawn

from dkrls_cli.bench import growth, long, speed
from dkrls_cli.bench import worker as worker_module
from dkrls_cli.bench.machine import describe_machine
from dkrls_cli.bench.real.cases import ALTERNATE, RANDOM
from dkrls_cli.bench.real.gaps import BLOCKS, CELLS, GAP_RACE, HOLE
from dkrls_cli.bench.real.interpolation import INTERPOLATION_RACE
from dkrls_cli.bench.speed import Measure
from dkrls_cli.bench.worker import JobTimeoutError

OCEAN = ROOT / "sample_data" / "ocean.nc"
CLOUDY = ROOT / "sample_data" / "ocean_gaps.nc"
X = np.arange(4.0)
TIME = {"units": "days since 2001-01-01"}


def waves(shape: tuple[int, ...]) -> np.ndarray:
    """A smooth field without a fifth of its cells."""
    places = np.meshgrid(*map(np.arange, shape), indexing="ij")
    values = np.sin(sum((i + 1) * p / 9 for i, p in enumerate(places)))
    values[np.random.default_rng(5).random(shape) < 0.2] = np.nan
    return np.asarray(values)


@pytest.fixture(scope="module")
def real_race(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One race in its three forms."""
    folder = tmp_path_factory.mktemp("race")
    run = dkrls("bench", "real", OCEAN, "--seeds", 1, "--json", "--csv", folder / "rows.csv")
    table = dkrls("bench", "real", OCEAN, "--seeds", 1, COLUMNS="100").stdout
    return {**json.loads(run.stdout), "csv": (folder / "rows.csv").read_text(), "table": table}


@pytest.fixture(scope="module")
def gap_race(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One race in its three forms."""
    folder = tmp_path_factory.mktemp("race")
    axes = {"time": (np.arange(9.0), TIME), "x": (np.arange(8.0), {})}
    field = {"t": (("time", "x"), waves((9, 8)), {})}
    path = grid(folder / "g.nc", axes, extra=field)
    words = ["bench", "gaps", path]
    run = dkrls(*words, "--json", "--csv", folder / "rows.csv")
    table = dkrls(*words, COLUMNS="100").stdout
    return {**json.loads(run.stdout), "csv": (folder / "rows.csv").read_text(), "table": table}


@pytest.mark.slow
def test_gaps_json_has_a_row_per_case_and_method(gap_race: dict[str, Any]) -> None:
    rows = gap_race["rows"]
    assert [row["method"] for row in rows] == list(GAP_RACE.methods) * 3
    assert [row["hidden"] for row in rows] == [CELLS] * 5 + [BLOCKS] * 5 + [HOLE] * 5
    for row in rows:
        assert row["seed"] == 0
        assert row["max_error"] >= row["rmse"] > 0
        assert row["seconds"] > 0
        assert (row["coverage90"] is None) == (row["method"] != "dkrls")
    for start in (0, 5, 10):
        best = min(row["rmse"] for row in rows[start + 1 : start + 5])
        assert rows[start]["ratio"] == pytest.approx(rows[start]["rmse"] / best)


@pytest.mark.slow
def test_gaps_csv_and_table_say_the_same_as_json(gap_race: dict[str, Any]) -> None:
    assert_same_rows(gap_race["csv"], gap_race["rows"])
    for start, kind in ((5, BLOCKS), (10, HOLE)):
        line = next(x for x in gap_race["table"].splitlines() if x.startswith(f"{kind}, seed 0"))
        errors = [float(f"{row['rmse']:.3g}") for row in gap_race["rows"][start : start + 5]]
        assert line.split()[3:8] == [f"{error:.4g}" for error in errors]
    assert "share better than every rival" in gap_race["table"]


@pytest.mark.slow
def test_a_grid_without_gaps_races_as_well(tmp_path: Path) -> None:
    path = grid(tmp_path / "g.nc", {"x": (np.arange(12.0), {})})
    run = dkrls("bench", "gaps", path, "--methods", "nearest,per-axis", "--seeds", 2, "--json")
    found = json.loads(run.stdout)["rows"]
    assert [row["seed"] for row in found] == [0] * 6 + [1] * 6
    assert json.loads(run.stdout)["summary"]["beats_all"] is None


def test_gaps_wrong_data_and_words_are_refused(tmp_path: Path) -> None:
    nothing = {"t": (("x",), np.full(20, np.nan), {})}
    empty = grid(tmp_path / "e.nc", {"x": (np.arange(20.0), {})}, extra=nothing)
    assert "Expected at least ten observed cells." in refusal("bench", "gaps", empty)
    assert "There is no file" in refusal("bench", "gaps", tmp_path / "absent.nc")
    unknown = refusal("bench", "gaps", CLOUDY, "--methods", "linear", code=2)
    assert "dkrls, per-axis, nearest, griddata, eof." in unknown
    assert "--time-limit 0" in refusal("bench", "gaps", CLOUDY, "--time-limit", 0, code=2)


class InThisProcess:
    """Stands for a worker: runs jobs here, and stops the method `cubic` at its limit."""

    def __init__(self, prepare: Any) -> None:
        prepare()

    def __enter__(self) -> InThisProcess:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def run(self, limit: float, job: Any, method: str, case: Any) -> Any:
        if method == "cubic":
            raise JobTimeoutError(f"stopped after {limit:g} s")
        return job(method, case)


def test_a_method_out_of_time_is_in_the_table_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "Worker", InThisProcess)
    words = ["bench", "real", OCEAN, "--seeds", 1, "--methods", "linear,cubic"]
    run = dkrls(*words, "--time-limit", "0.001")
    assert "20 %, seed 0: cubic stopped after 0.001 s." in run.stdout
    assert "every second: cubic stopped after 0.001 s." in run.stdout
    rows = json.loads(dkrls(*words, "--json").stdout)["rows"]
    assert [row["rmse"] is None for row in rows] == [False, True] * 2


@pytest.mark.slow
def test_json_has_a_row_per_case_and_method(real_race: dict[str, Any]) -> None:
    rows = real_race["rows"]
    assert [row["method"] for row in rows] == list(INTERPOLATION_RACE.methods) * 2
    assert [row["held_out"] for row in rows[:: len(INTERPOLATION_RACE.methods)]] == [
        RANDOM,
        ALTERNATE,
    ]
    assert [row["seed"] for row in rows[:: len(INTERPOLATION_RACE.methods)]] == [0, None]
    for row in rows:
        assert row["grid"] == str(OCEAN)
        assert row["rmse"] > 0
        assert row["max_error"] >= row["rmse"]
        assert row["seconds"] > 0
        assert (row["coverage90"] is None) == (row["method"] != "dkrls")
    assert {"threads", "numpy", "scipy", "xarray", "dkrls"} <= set(real_race["machine"])


@pytest.mark.slow
def test_ratio_and_summary_follow_from_the_rows(real_race: dict[str, Any]) -> None:
    ratios = []
    for start in (0, len(INTERPOLATION_RACE.methods)):
        rows = {
            row["method"]: row
            for row in real_race["rows"][start : start + len(INTERPOLATION_RACE.methods)]
        }
        best = min(rows[name]["rmse"] for name in INTERPOLATION_RACE.references)
        for row in rows.values():
            assert row["ratio"] == pytest.approx(row["rmse"] / best)
        ratios.append(rows["dkrls"]["ratio"])
    summary = real_race["summary"]
    assert summary["geometric_mean"] == pytest.approx(np.exp(np.mean(np.log(ratios))))
    assert summary["worst"] == summary["worst_of_ten_samples"] == max(ratios)
    assert summary["within_2_percent"] == np.mean(np.array(ratios) <= 1.02)


@pytest.mark.slow
def test_csv_and_table_say_the_same_as_json(real_race: dict[str, Any]) -> None:
    assert_same_rows(real_race["csv"], real_race["rows"])
    line = next(x for x in real_race["table"].splitlines() if x.startswith(RANDOM))
    errors = [f"{row['rmse']:.3g}" for row in real_race["rows"][: len(INTERPOLATION_RACE.methods)]]
    assert line.split()[4 : 4 + len(INTERPOLATION_RACE.methods)] == [
        f"{float(e):.4g}" for e in errors
    ]


@pytest.mark.slow
def test_the_tables_fit_a_terminal(real_race: dict[str, Any], tmp_path: Path) -> None:
    axes = {"lat": (np.linspace(-60, 60, 13), NORTH), "lon": (np.arange(0.0, 120.0, 10.0), EAST)}
    words = ["bench", "real", grid(tmp_path / "g.nc", axes), "--seeds", 1]
    narrow = dkrls(*words, COLUMNS="60").stdout
    for text, width in ((real_race["table"], 100), (narrow, 60)):
        below = text.splitlines()[1:]  # the first line is the path, as long as it is
        assert max(map(len, below)) <= width


def test_short_dimensions_skip_splines_and_say_so(tmp_path: Path) -> None:
    axes = {"x": (np.arange(5.0), {}), "y": (np.arange(30.0), {})}
    path = grid(tmp_path / "g.nc", axes)
    words = ["bench", "real", path, "--seeds", 1, "--methods", "dkrls,linear,spline3,spline5"]
    text = dkrls(*words).stdout
    assert "20 %, seed 0: spline5 skipped: needs 6 samples, x has 4." in text
    assert "every second: spline3 skipped: needs 4 samples, x has 3." in text
    assert "seed 0: spline3" not in text


@pytest.mark.slow
def test_a_series_has_but_one_kind(tmp_path: Path) -> None:
    path = grid(tmp_path / "g.nc", {"time": (np.arange(20.0), {"units": "days since 2001-01-01"})})
    run = dkrls("bench", "real", path, "--seeds", 1, "--json", "--methods", "dkrls,linear")
    assert "has no room for 'every second'." in run.stderr
    assert "Note: spline3, spline5 will not race" in run.stderr
    assert {row["held_out"] for row in json.loads(run.stdout)["rows"]} == {RANDOM}


def test_every_file_is_a_grid_of_its_own_and_verbose_tells_of_the_machine(tmp_path: Path) -> None:
    for name, size in (("a", 9), ("b", 12)):
        grid(tmp_path / f"{name}.nc", {"x": (np.arange(float(size)), {}), "y": (X, {})})
    words = ["bench", "real", tmp_path / "*.nc", "--seeds", 1, "--methods", "linear", "--json"]
    run = dkrls(*words, "-v")
    found = json.loads(run.stdout)["rows"]
    assert list(dict.fromkeys(Path(row["grid"]).name for row in found)) == ["a.nc", "b.nc"]
    assert f"threads {describe_machine()['threads']}, dkrls " in run.stderr
    assert all(word in run.stderr for word in ("numpy", "scipy", "xarray", "linear: rmse"))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--methods", "linear,magic"], "Unknown method 'magic'. "),
        (["--methods", ","], "Unknown method ''"),
        (["--time-limit", "0"], "Invalid --time-limit 0. Give seconds above 0."),
        (["--time-limit", "nan"], "Invalid --time-limit nan"),
    ],
)
def test_a_wrong_command_line_is_refused(options: list[str], reason: str) -> None:
    assert reason in refusal("bench", "real", OCEAN, *options, code=2)


@pytest.mark.slow
def test_wrong_data_is_refused_before_any_race(tmp_path: Path) -> None:
    missing = files.REFUSED["missing_as_nan"][0](tmp_path)
    assert "2 of 30 cells" in refusal("bench", "real", OCEAN, missing)
    assert "There is no file" in refusal("bench", "real", OCEAN, tmp_path / "absent.nc")
    pair = grid(tmp_path / "pair.nc", {"x": (np.arange(2.0), {}), "y": (np.arange(2.0), {})})
    assert "can be held out: x 2 x y 2" in refusal("bench", "real", pair)
    two = {"s": (("x",), np.arange(9.0), {})}
    several = grid(tmp_path / "two.nc", {"x": (np.arange(9.0), {})}, extra=two)
    assert "Choose one by its name" in refusal("bench", "real", several)
    dkrls("bench", "real", several, "--var", "s", "--seeds", 1, "--methods", "linear")


@pytest.mark.slow
def test_an_output_is_refused_before_any_race(tmp_path: Path) -> None:
    (target := tmp_path / "rows.csv").write_text("mine")
    absent = tmp_path / "absent.nc"  # which is not even looked for
    assert "exists already" in refusal("bench", "real", absent, "--csv", target)
    assert "There is no folder" in refusal("bench", "real", absent, "--csv", tmp_path / "x" / "y")
    words = ["bench", "real", OCEAN, "--seeds", 1, "--methods", "linear", "--csv", target]
    dkrls(*words, "--overwrite")
    assert target.read_text().startswith("grid,variable,held_out,seed,samples,method,rmse")


@pytest.mark.slow
def test_a_race_in_a_process_of_its_own(tmp_path: Path) -> None:
    axes = {"x": (np.arange(9.0), {}), "y": (np.arange(9.0), {})}
    path = grid(tmp_path / "g.nc", axes)
    run = spawn("bench", "real", path, "--seeds", 1, "--methods", "dkrls,linear,spline3,spline5")
    assert (run.returncode, run.stderr) == (0, "")
    assert "worst ratio" in run.stdout
    assert spawn("bench", "real").returncode == 2


@pytest.mark.parametrize("race", ["speed", "tuning", "large", "startup"])
def test_clocks_print_what_they_measure(race: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, f"measure_{race}", lambda: [Measure("fit", 1.25, "x the products")])
    monkeypatch.setattr(growth, "measure_cells", lambda seconds: [])
    monkeypatch.setattr(long, "measure_long", list)
    assert "fit    1.25  x the products" in dkrls("bench", race).stdout
    found = json.loads(dkrls("bench", race, "--json").stdout)
    assert found["rows"] == [{"what": "fit", "value": 1.25, "unit": "x the products"}]
    assert found["machine"]["threads"] >= 1


def test_the_clock_of_speed_goes_on_with_long_dimensions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "measure_speed", lambda: [Measure("fit", 1.25, "x the products")])
    cells = [Measure("cells", 1.0, "slope")]
    monkeypatch.setattr(growth, "measure_cells", lambda seconds: cells)
    monkeypatch.setattr(long, "measure_long", lambda: [Measure("year", 2.5, "x splines")])
    found = json.loads(dkrls("bench", "speed", "--json").stdout)
    assert [row["what"] for row in found["rows"]] == ["fit", "cells", "year"]
