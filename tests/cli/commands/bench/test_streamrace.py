"""The race on a stream: what is read, run and printed."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from shell import csv_rows, dkrls, refusal

from dkrls_cli.cli.commands.bench import streamrace
from dkrls_cli.cli.report import Report

MATRIX = "\n".join(" ".join(f"{np.sin(t / 5 + s):.4f}" for s in range(3)) for t in range(30))


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    (path := tmp_path / "matrix.txt").write_text(MATRIX)
    return path


def test_methods_race_in_the_order_of_the_registry(matrix: Path, tmp_path: Path) -> None:
    words = ["bench", "stream", matrix, "--methods", "dkrls,last-value", "--window", 10]
    told = json.loads(dkrls(*words, "--json", "--csv", tmp_path / "rows.csv").stdout)
    assert [row["method"] for row in told["rows"]] == ["last-value", "dkrls"]
    written = csv_rows((tmp_path / "rows.csv").read_text())
    assert [row["method"] for row in written] == ["last-value", "dkrls"]
    assert told["machine"]
    text = dkrls(*words).stdout
    assert text.splitlines()[0].endswith("steps of 3 series, one step ahead")


def test_a_table_is_read_as_fit_reads_it(tmp_path: Path) -> None:
    rows = "".join(f"{t},{s},{np.sin(t / 5 + s):.4f}\n" for t in range(20) for s in range(2))
    (tmp_path / "t.csv").write_text("time,site,heat\n" + rows)
    grid = streamrace.read_stream(str(tmp_path / "t.csv"), "heat", ["site", "time"], Report())
    assert grid.name == "heat"
    assert sorted(grid.values.shape) == [2, 20]


def test_wrong_words_are_refused_before_the_stream_is_read(tmp_path: Path) -> None:
    absent = tmp_path / "absent.txt"
    for words, reason in (
        (["--methods", "arima"], "Choose from: last-value, dkrls"),
        (["--time-limit", "0"], "Invalid --time-limit 0"),
        (["--window", "1"], "'--window': 1 is not in the range x>=2"),
    ):
        assert reason in refusal("bench", "stream", absent, *words, code=2)
    (tmp_path / "rows.csv").touch()
    assert "exists" in refusal("bench", "stream", absent, "--csv", tmp_path / "rows.csv")


def row(method: str, settings: str, note: str) -> dict[str, Any]:
    numbers = {key: 1.5 for key in streamrace._COLUMNS if key != "method"}
    return {"method": method, **numbers, "settings": settings, "note": note}


def test_settings_and_notes_stand_below_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row("klms", "sigma 2", "took long"), row("dkrls", "", ""), row("norma", "", "failed")]
    stream: Any = SimpleNamespace(steps=30, values=np.zeros((30, 3)), searched=10, search_steps=10)
    streamrace.print_rows(rows, stream, Report())
    heading, table, notes = capsys.readouterr().out.split("\n\n")
    assert heading == "30 steps of 3 series, one step ahead"
    assert len(table.splitlines()) == 4
    assert notes == "klms: sigma 2; took long.\nnorma: failed.\n"
