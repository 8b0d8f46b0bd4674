"""Inputs of commands, and what is said of them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from shell import csv_rows, dkrls, refusal

from dkrls_cli import load_model

LONG = "x,y,v\n" + "".join(f"{i},{j / 2},{i * j}\n" for i in range(5) for j in range(4))


@pytest.mark.parametrize("way", ["stdin", "gzip on stdin", "file", "tsv"])
def test_tables_come_in_every_way(tmp_path: Path, way: str) -> None:
    (tmp_path / "t.csv").write_text(LONG)
    (tmp_path / "t.tsv").write_text(LONG.replace(",", "\t"))
    stdin = gzip.compress(LONG.encode()) if way == "gzip on stdin" else LONG.encode()
    source = {"file": tmp_path / "t.csv", "tsv": tmp_path / "t.tsv"}.get(way, "-")
    dkrls("fit", source, "-o", tmp_path / "m.npz", stdin=stdin)
    told = csv_rows(dkrls("predict", tmp_path / "m.npz", "--at", "x=2", "--at", "y=1").stdout)
    assert told == [{"x": "2", "y": "1.0", "v": "4.0"}]


def test_scattered_points_are_refused_with_the_options_that_help(tmp_path: Path) -> None:
    rows = "".join(f"{(i * 37 % 101) / 7},{(i * 53 % 97) / 3},{i}\n" for i in range(90))
    (source := tmp_path / "s.csv").write_text(f"x,t,v\n{rows}")
    for words in (["--dry-run"], ["-o", tmp_path / "m.npz"]):
        line = refusal("fit", source, *words)
        assert "looks like 90 scattered points in x and t with values v, not a grid" in line
        assert line.endswith("Options: --var, --levels.")
    assert "scattered points" in refusal("fit", "-", "--dry-run", stdin=source.read_text())


def test_dates_of_two_readings_are_refused(tmp_path: Path) -> None:
    (source := tmp_path / "d.csv").write_text("date,v\n01/01/2020,1\n01/02/2020,2\n")
    line = refusal("fit", source, "--dry-run")
    assert "Line 3" in line
    assert "Write dates as ISO 8601" in line


def test_a_variable_that_is_nearly_right_gets_a_suggestion(globe: Path, tmp_path: Path) -> None:
    name = json.loads(dkrls("fit", globe, "--dry-run", "--json").stdout)["variable"]
    assert f"Did you mean '{name}'?" in refusal("fit", globe, "--dry-run", "--var", f"{name}x")
    (table := tmp_path / "t.csv").write_text("x,y,flow\n1,1,1\n1,2,2\n2,1,3\n2,2,4\n")
    assert "Did you mean 'flow'?" in refusal("fit", table, "--dry-run", "--var", "flw")


@pytest.mark.parametrize("kind", ["nc", "csv"])
def test_the_history_of_a_model_begins_with_its_fit(
    globe: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    table = tmp_path / "a.csv"
    table.write_text("x,y,t\n" + "".join(f"{x},{y},{x * y}\n" for x in range(4) for y in range(5)))
    source = globe if kind == "nc" else table
    dkrls("fit", source, "-o", tmp_path / "m.npz")
    first, *others = load_model(tmp_path / "m.npz").style.global_attrs["history"].split("\n")
    assert first.startswith(f"1970-01-01T00:00:00Z: dkrls fit {source.name} -o m.npz (dkrls ")
    assert others == (["2001-01-01: made"] if kind == "nc" else [])
