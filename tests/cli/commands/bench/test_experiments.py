"""The paper's experiments: rows that are resumed, tables, and notes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from dkrls_cli.cli.commands.bench import experiments
from dkrls_cli.cli.commands.bench.options import ExperimentOptions
from dkrls_cli.cli.report import Report
from dkrls_cli.errors import DkrlsError, OutputError


def row(method: str, settings: str = "paper", **facts: Any) -> dict[str, Any]:
    plain = {"dataset": "paper-2d", "method": method, "settings": settings, "note": ""}
    return {**plain, "search_seconds": math.nan, **facts}


def test_rows_of_an_earlier_run_follow_until_they_are_measured_again() -> None:
    old = [row("dkrls", n=1), row("norma", n=1), row("norma", "searched", n=1)]
    new = [row("norma", n=2), row("linear", n=2)]
    merged = experiments.merge_rows(new, old)
    keys = [(r["method"], r["settings"], r["n"]) for r in merged]
    assert keys == [
        ("norma", "paper", 2),
        ("linear", "paper", 2),
        ("dkrls", "paper", 1),
        ("norma", "searched", 1),
    ]
    other = experiments.merge_rows(new, [row("norma", dataset="cross")])
    assert len(other) == 3


def test_only_a_full_run_is_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (rows := tmp_path / "rows.csv").write_text("dataset,odd\nx,y\n")
    for options in (
        ExperimentOptions(csv=tmp_path / "new.csv"),
        ExperimentOptions(csv=rows, overwrite=True),
        ExperimentOptions(csv=rows, overwrite=True, full=True),
        ExperimentOptions(csv=tmp_path / "new.csv", full=True),
        ExperimentOptions(),
    ):
        assert experiments.earlier_rows(options, Report()) == []
    assert capsys.readouterr().err == ""
    with pytest.raises(OutputError, match="exists"):
        experiments.earlier_rows(ExperimentOptions(csv=rows), Report())
    with pytest.raises(OutputError, match="exists"):
        experiments.earlier_rows(ExperimentOptions(plot=rows, full=True), Report())
    with pytest.raises(DkrlsError, match=r"rows\.csv"):
        experiments.earlier_rows(ExperimentOptions(csv=rows, full=True), Report())
    experiments.earlier_rows(ExperimentOptions(full=True), Report())
    assert capsys.readouterr().err == "Note: with --csv FILE an interrupted run can be resumed.\n"


@pytest.mark.parametrize(
    ("value", "digits", "expected"),
    [
        (0.012345, 2, 0.012),
        (0.012345, 3, 0.0123),
        (99.4, 2, 99),
        (100.4, 2, 100),
        (12345.6, 2, 12346),
    ],
)
def test_numbers_are_short(value: float, digits: int, expected: float) -> None:
    assert experiments.round_short(value, digits) == expected
    assert isinstance(experiments.round_short(value, digits), int) == (value >= 100)


def test_a_number_that_is_none_stays_none() -> None:
    assert math.isnan(experiments.round_short(math.nan))


def test_a_star_marks_searched_settings_and_all_samples_are_all() -> None:
    assert experiments.row_label(row("norma")) == "norma"
    assert experiments.row_label(row("norma", "searched")) == "norma*"
    assert experiments.learnt_text({"samples_learnt": 10, "samples": 10}) == "all"
    assert experiments.learnt_text({"samples_learnt": 1, "samples": 8}) == "12 %"


def test_rows_with_the_same_note_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    rows = [
        row("krls", note="took too long"),
        row("norma"),
        row("klms", "searched", note="took too long", search_seconds=3.4),
        row("swkrls", note="failed " * 12, search_seconds=2.0),
    ]
    lines = list(experiments.note_lines(rows))
    assert lines[0] == "krls, klms*: took too long."
    assert lines[1].startswith("swkrls: failed")
    assert lines[2].startswith("  failed")
    assert lines[-1].startswith("* settings found by a search on training data, 5 s in")
    assert max(map(len, lines)) <= 60
    assert list(experiments.note_lines([row("norma")])) == []


def test_a_verdict_is_a_sentence() -> None:
    verdict = [row("dkrls", times_as_fast=2.0, times_as_accurate=12.345, against="searched")]
    assert list(experiments.verdict_lines("cross", verdict)) == [
        "cross: dkrls is 2 times as fast as the fastest and 12.3 times as accurate as the best of "
        "the paper's others with searched settings."
    ]


def test_without_a_file_nothing_is_drawn() -> None:
    experiments.refuse_undrawable(None)
    experiments.draw([row("dkrls")], None)
