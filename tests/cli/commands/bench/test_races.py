"""``dkrls bench``: the list of races, and options in the wrong place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from shell import dkrls, refusal

from dkrls_cli.bench import growth, long, speed
from dkrls_cli.bench.speed import Measure
from dkrls_cli.cli.commands.bench import CLOCKS, PAPER, experiments
from dkrls_cli.cli.report import Report

RACES = (*PAPER, "intel-lab", "real", "gaps", "heaton", "stream", *CLOCKS)


def test_every_race_is_listed_and_has_examples() -> None:
    told = dkrls("bench", "--help").stdout
    for race in RACES:
        assert f" {race} " in told
        shown = dkrls("bench", race, "--help").stdout
        assert f"dkrls bench {race}" in shown
        assert all(option in shown for option in ("--json", "--quiet", "--verbose", "--debug"))


@pytest.mark.parametrize(
    ("words", "option"),
    [(["--json", "real", "a.nc"], "--json"), (["--seeds", "2", "cross"], "--seeds")],
)
def test_an_option_before_the_name_of_a_race_is_refused(words: list[str], option: str) -> None:
    race = words[-2] if "real" in words else words[-1]
    line = refusal("bench", *words, code=2)
    expected = f"Error: {option} stands before {race}. Write dkrls bench {race} first, then its"
    assert line.startswith(expected)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would be run: names of the datasets, options and seconds."""
    found: list[Any] = []

    def run(datasets: Any, options: Any, seconds: float, report: Report) -> None:
        found.append(([dataset.name for dataset in datasets], options, seconds, report.json))

    monkeypatch.setattr(experiments, "run_experiments", run)
    return found


def test_alone_two_experiments_run_four_seconds_a_method(runs: list[Any]) -> None:
    dkrls("bench", "--json")
    dkrls("bench", "--time-limit", "9", "--methods", "dkrls", "--plot", "a.png")
    (names, options, seconds, json_wanted), (_, other, more, _) = runs
    assert (names, seconds, json_wanted, options.seeds) == (["paper-2d", "cross"], 4.0, True, 3)
    assert (more, other.methods, str(other.plot)) == (9.0, "dkrls", "a.png")


@pytest.mark.parametrize("race", list(PAPER))
def test_an_experiment_runs_a_minute_a_method(race: str, runs: list[Any]) -> None:
    dkrls("bench", race, "--full", "--csv", "rows.csv")
    [(names, options, seconds, _)] = runs
    assert (names, seconds, options.seeds) == ([race], 60.0, 5)
    assert (options.full, options.search, str(options.csv)) == (True, False, "rows.csv")


@pytest.mark.parametrize("race", list(CLOCKS))
def test_measures_are_printed_with_the_machine(race: str, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = Measure(*([f"{race} one"] * len(Measure.__dataclass_fields__)))
    monkeypatch.setattr(speed, f"measure_{race}", lambda: iter([measure]))
    monkeypatch.setattr(long, "measure_long", list)
    monkeypatch.setattr(growth, "measure_cells", lambda seconds: [])
    assert f"{race} one" in dkrls("bench", race).stdout
    told = json.loads(dkrls("bench", race, "--json").stdout)
    assert len(told["rows"]) == 1
    assert told["machine"]
    assert dkrls("bench", race, "-q").output == ""


def test_the_growth_of_cost_is_part_of_speed_and_has_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits: list[float] = []

    def measured(seconds: float) -> list[Measure]:
        limits.append(seconds)
        return [Measure("growth of a fit", 1.0, "slope, 1 is linear")]

    monkeypatch.setattr(speed, "measure_speed", list)
    monkeypatch.setattr(long, "measure_long", list)
    monkeypatch.setattr(growth, "measure_cells", measured)
    told = json.loads(dkrls("bench", "speed", "--time-limit", "7", "--json").stdout)
    assert [row["what"] for row in told["rows"]] == ["growth of a fit"]
    assert "growth of a fit" in dkrls("bench", "speed").stdout
    assert limits == [7.0, 120.0]
    assert "time-limit" in refusal("bench", "speed", "--time-limit", "-1", code=2)
