"""The command `dkrls bench stream`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shell import ROOT, assert_same_rows, dkrls, refusal

SENSORS = ROOT / "sample_data" / "sensors.csv"


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
    assert "Unknown method 'arima'" in unknown
    assert "--time-limit 0" in refusal("bench", "stream", SENSORS, "--time-limit", 0, code=2)
    assert "There is no file" in refusal("bench", "stream", tmp_path / "absent.nc")
    assert "There is no file" in refusal("bench", "stream", tmp_path / "absent.txt")
    (tmp_path / "rows.csv").touch()
    assert "exists" in refusal("bench", "stream", SENSORS, "--csv", tmp_path / "rows.csv")


def test_a_matrix_can_be_raced_and_both_spellings_of_skrls_are_known(tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    path.write_text("\n".join(f"{i % 5} {i % 7} {i % 3}" for i in range(20)))
    for name in ("skrls", "aldkrls"):
        words = ["bench", "stream", path, "--methods", name, "--json"]
        assert [row["method"] for row in json.loads(dkrls(*words).stdout)["rows"]] == ["skrls"]
    path.write_text("1 2\n3 4")
    assert "needs at least 3" in refusal("bench", "stream", path)
