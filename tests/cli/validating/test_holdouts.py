"""The method measured on parts of a grid."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shell import dkrls, refusal


def test_seeds_are_kept_to(globe: Path) -> None:
    words = ["validate", globe, "--holdout", "0.3", "--repeats", "2", "--json", "--seed"]

    def errors(seed: str) -> list[float]:
        return [run["rmse"] for run in json.loads(dkrls(*words, seed).stdout)["runs"]]

    assert errors("4") == errors("4")
    assert errors("4")[1] == errors("5")[0]


GIVEN = ["--kernel", "matern52", "--sigma", "60", "--ridge", "1e-2", "--poles", "none"]


def test_hold_outs_beyond_memory_are_told_as_others(
    globe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dkrls_cli.cli.validating import holdouts

    words = ["validate", globe, "--holdout", "0.2", "--repeats", 2, "--seed", 4, "--keep-edges"]
    words += [*GIVEN, "--json"]
    whole = json.loads(dkrls(*words).stdout)
    monkeypatch.setattr(holdouts, "holdouts_exceed", lambda *a: True)
    done = dkrls(*words, "--threads", 1)
    parts = json.loads(done.stdout)
    assert parts.keys() == whole.keys()
    assert parts["metrics"].keys() == whole["metrics"].keys()
    assert parts["held_out"] == whole["held_out"]
    assert parts["grid"] == whole["grid"]
    assert len(parts["runs"]) == 2
    assert [row.keys() for row in parts["levels"]] == [row.keys() for row in whole["levels"]]
    assert parts["metrics"]["n"] == whole["metrics"]["n"]
    assert parts["metrics"]["rmse"] == pytest.approx(whole["metrics"]["rmse"], rel=0.01)
    assert parts["calibration"]["n"] == whole["calibration"]["n"]
    assert "--report" in refusal(*words[:-1], "--report", tmp_path / "p.html", code=2)
    told = dkrls(*words[:-1], "--fail-above", "rmse=0", code=3)
    assert "Missed: rmse is" in told.stderr
    assert "median" in told.stdout


@pytest.mark.parametrize(
    ("options", "reason"),
    [(["--noise", "joint"], "joint ridge needs the whole grid"), (["--robust"], "robust fit")],
)
def test_hold_outs_that_need_the_whole_grid_are_refused_beyond_memory(
    globe: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], reason: str
) -> None:
    from dkrls_cli.cli.validating import holdouts

    monkeypatch.setattr(holdouts, "holdouts_exceed", lambda *a: True)
    assert reason in refusal("validate", globe, "--holdout", "0.2", *options, code=2)
