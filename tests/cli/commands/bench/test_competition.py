"""The command `dkrls bench heaton`: files, data sets, tables, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample_files import EAST, NORTH, grid
from shell import ROOT, assert_same_rows, csv_rows, dkrls, refusal

from dkrls_cli.bench.real import heaton
from dkrls_cli.bench.real.heaton import CompetitionScores
from dkrls_cli.cli.commands.bench import competition
from dkrls_cli.cli.report import Report

OURS = CompetitionScores(1.7, 1.25, 0.9, 9.125, 0.875, 12.0)


def field_file(path: Path, *names: str, turned: bool = False) -> Path:
    """A file with a field that has a hole in `temp` and is whole in `truth`, or part of these."""
    lat, lon = np.linspace(30.0, 40.0, 12), np.linspace(0.0, 9.0, 10)
    truth = np.sin(lat[:, None] / 3) * np.cos(lon / 4)
    temp = truth.copy()
    temp[3:6, 4:8] = np.nan
    made: dict[str, Any] = {
        "temp": (("lat", "lon"), temp, {}),
        "truth": (("lon", "lat"), truth.T, {}) if turned else (("lat", "lon"), truth, {}),
    }
    axes = {"lat": (lat, NORTH), "lon": (lon, EAST)}
    return grid(path, axes, extra={name: made[name] for name in names or made})


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Cases that would be filled; their scores are made up."""
    cases: list[Any] = []

    def run(case: Any) -> CompetitionScores:
        cases.append(case)
        return OURS

    monkeypatch.setattr(heaton, "run_competition", run)
    return cases


@pytest.mark.slow
def test_a_field_is_filled_and_scored(tmp_path: Path) -> None:
    path = field_file(tmp_path / "satellite.nc")
    words = ["bench", "heaton", "--data", path, "--json", "--csv", tmp_path / "rows.csv"]
    told = json.loads(dkrls(*words).stdout)
    (ours,) = (row for row in told["rows"] if row["method"] == "dkrls")
    assert 0 < ours["rmse"] < 0.2
    assert ours["seconds"] > 0
    assert ours["source"] == "measured"
    assert told["summary"] == [
        {"file": str(path), "dataset": "satellite", "place": 1, "methods": 13}
    ]
    assert {"threads", "numpy"} <= set(told["machine"])
    assert_same_rows((tmp_path / "rows.csv").read_text(), told["rows"])


def test_both_files_have_a_table_with_the_rows_of_their_data_set(
    tmp_path: Path, quick: list[Any]
) -> None:
    satellite = field_file(tmp_path / "satellite.nc")
    simulated = field_file(tmp_path / "AllSimulatedTemps.nc")
    run = dkrls("bench", "heaton", "--data", satellite, "--data", simulated, COLUMNS="100")
    assert run.stderr == ""
    _, first, heading, second, places = run.stdout.split("\n\n")
    assert heading.startswith(f"{simulated}: ")
    for text, spde in ((first, "1.53"), (second, "0.86")):
        head, *lines = text.splitlines()
        assert " ".join(head.split()) == "method rmse mae crps interval score cover95 seconds"
        assert len(lines) == 13
        rows = {line.split()[0]: line.split() for line in lines}
        assert rows["dkrls"] == ["dkrls", "1.7", "1.25", "0.9", "9.125", "0.875", "12"]
        assert (rows["SPDE"][1], rows["SPDE"][-1]) == (spde, "-")
        errors = [float(line.split()[-6]) for line in lines]
        assert errors == sorted(errors)
    assert f"{satellite}: lat 12 x lon 10, 108 train, 12 test" in run.stdout
    assert places.splitlines()[0].endswith("dkrls is number 5 of 13 by rmse")
    assert places.splitlines()[1].endswith("dkrls is number 13 of 13 by rmse")
    assert len(quick) == 2


@pytest.mark.parametrize(
    ("name", "option", "methods", "note"),
    [
        ("field.nc", [], 1, "Note: 'field.nc' does not say by its name which data set it is, so"),
        ("field.nc", ["--dataset", "simulated"], 13, ""),
        ("satellite.nc", ["--dataset", "none"], 1, "Note: only dkrls is shown for 'satellite.nc'"),
        ("satellite.nc", [], 13, ""),
    ],
)
def test_published_rows_are_those_named_or_none(
    name: str, option: list[str], methods: int, note: str, tmp_path: Path, quick: list[Any]
) -> None:
    path = field_file(tmp_path / name)
    run = dkrls("bench", "heaton", "--data", path, *option, "--json")
    told = json.loads(run.stdout)
    assert len(told["rows"]) == told["summary"][0]["methods"] == methods
    assert run.stderr.startswith(note)
    assert bool(run.stderr) == bool(note)
    if option and methods > 1:
        assert {row["dataset"] for row in told["rows"]} == {"simulated"}
    text = dkrls("bench", "heaton", "--data", path, *option).stdout
    assert ("no published results to compare with" in text) == (methods == 1)


def test_a_file_that_is_no_such_field_is_refused(tmp_path: Path, quick: list[Any]) -> None:
    def told(path: Path) -> str:
        return refusal("bench", "heaton", "--data", path)

    assert "There is no file" in told(tmp_path / "absent.nc")
    assert "has no variable 'temp'" in told(field_file(tmp_path / "a.nc", "truth"))
    assert "has no variable 'truth'" in told(field_file(tmp_path / "b.nc", "temp"))
    assert "'truth' on lon, lat." in told(field_file(tmp_path / "c.nc", turned=True))
    (tmp_path / "d.nc").write_text("no grid")
    assert "is not a NetCDF file" in told(tmp_path / "d.nc")
    scalar = {"temp": ((), 1.0, {}), "truth": ((), 1.0, {})}
    path = grid(tmp_path / "e.nc", {"x": (np.arange(4.0), {})}, extra=scalar)
    assert "'temp' in" in told(path)
    assert "has no column 'temp'" in told(ROOT / "sample_data" / "sensors.csv")
    assert quick == []


def test_every_file_is_read_before_one_is_filled(tmp_path: Path, quick: list[Any]) -> None:
    words = ["--data", field_file(tmp_path / "satellite.nc"), "--data", tmp_path / "absent.nc"]
    assert "There is no file" in refusal("bench", "heaton", *words)
    assert quick == []


def test_wrong_words_are_refused(tmp_path: Path) -> None:
    assert "'--data'" in refusal("bench", "heaton", code=2)
    line = refusal("bench", "heaton", "--data", "a.nc", "--dataset", "sat", code=2)
    assert "Choose from: satellite, simulated, none." in line
    (tmp_path / "rows.csv").touch()
    words = ["bench", "heaton", "--data", "a.nc", "--csv", tmp_path / "rows.csv"]
    assert "exists" in refusal(*words)


def test_rows_of_all_files_are_written(tmp_path: Path, quick: list[Any]) -> None:
    for name in ("simulated", "satellite"):
        field_file(tmp_path / f"{name}.nc")
    words = ["bench", "heaton", "--data", tmp_path / "*.nc", "-q", "--csv", tmp_path / "rows.csv"]
    assert dkrls(*words).output == ""
    rows = csv_rows((tmp_path / "rows.csv").read_text())
    assert [row["dataset"] for row in rows] == ["satellite"] * 13 + ["simulated"] * 13
    assert list(rows[0])[:5] == ["file", "dataset", "method", "source", "rmse"]


def test_a_note_stands_below_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nan = float("nan")
    lost = CompetitionScores(nan, nan, nan, nan, nan, 2.0, "3 of 12 test cells are not filled")
    monkeypatch.setattr(heaton, "run_competition", lambda case: lost)
    path = str(field_file(tmp_path / "satellite.nc"))
    case = competition.read_case(path, Report())
    rows = competition.run_file(path, case, "satellite", Report())
    competition.print_places([rows], Report())
    _, table, notes, places = capsys.readouterr().out.split("\n\n")
    assert table.splitlines()[-1].split() == ["dkrls", "-", "-", "-", "-", "-", "2"]
    assert notes == "dkrls: 3 of 12 test cells are not filled."
    assert places == f"{path}  not all test cells are filled\n"
