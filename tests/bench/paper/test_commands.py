"""The commands that repeat the paper's experiments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench.paper.lab_files import raw_lines
from bench.paper.small_data import small
from shell import assert_same_rows, dkrls, refusal

from dkrls_cli.bench.paper.entries import PAPER, SEARCHED, RaceEntry
from dkrls_cli.bench.paper.experiment import RaceOptions, make_race_row
from dkrls_cli.bench.paper.run import SplitResult
from dkrls_cli.cli.commands.bench import experiments

INTEL_LAB = Path(__file__).parents[4] / "shared/data/intel_lab_subsfin_14400x52.txt"

KEYS = """
dataset method settings parameters samples_learnt samples seeds seeds_asked time_limit seconds
seconds_min seconds_max predict_seconds max_error max_error_min max_error_max normalized_max_error
normalized_max_error_min normalized_max_error_max rmse mean_error peak_mb search_seconds
paper_seconds paper_error paper_mean_error note
"""


def test_a_search_may_be_repeated() -> None:
    words = ["bench", "cross", "--methods", "klms", "--seeds", 1, "--json"]
    stored, searched = (json.loads(dkrls(*words, *more).stdout) for more in ([], ["--search"]))
    for name in ("parameters", "max_error", "samples_learnt"):
        assert stored["rows"][0][name] == searched["rows"][0][name]


@pytest.fixture(scope="module")
def cross(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    """What cross tells of some methods, as an object and as CSV."""
    rows = tmp_path_factory.mktemp("cross") / "rows.csv"
    words = ["bench", "cross", "--methods", "dkrls,dkrls-auto,krls,nonstill,spline3"]
    run = dkrls(*words, "--seeds", 2, "--json", "-q", "--csv", rows)
    assert run.stderr == ""
    return json.loads(run.stdout), rows.read_text()


@pytest.mark.slow
def test_json_has_a_row_per_method_and_settings(cross: tuple[dict[str, Any], str]) -> None:
    rows = cross[0]["rows"]
    assert [(row["method"], row["settings"]) for row in rows] == [
        ("dkrls", "paper"),
        ("dkrls", "searched"),
        ("dkrls-auto", "own"),
        ("krls", "paper"),
        ("krls", "searched"),
        ("nonstill", "paper"),
        ("nonstill", "searched"),
        ("spline3", "own"),
    ]
    for row in rows:
        assert list(row) == KEYS.split()
        assert (row["samples_learnt"], row["samples"], row["seeds"]) == (1406, 1406, 2)
        assert row["max_error_min"] <= row["max_error"] <= row["max_error_max"]
    assert rows[0]["paper_error"] == 0.0519
    assert rows[-1]["paper_error"] is None
    assert rows[1]["search_seconds"] > 0
    assert cross[0]["machine"]["threads"] == 1


@pytest.mark.slow
def test_the_default_fit_wins_the_table_of_space_and_time(
    cross: tuple[dict[str, Any], str],
) -> None:
    by_name = {(row["method"], row["settings"]): row for row in cross[0]["rows"]}
    ours = by_name["dkrls-auto", "own"]
    for (method, settings), row in by_name.items():
        if method in ("krls", "nonstill"):
            assert ours["max_error"] < row["max_error"], settings
    for verdict in cross[0]["summary"]["cross"]:
        assert verdict["times_as_accurate"] > 1


@pytest.mark.slow
def test_csv_says_the_same(cross: tuple[dict[str, Any], str]) -> None:
    assert_same_rows(cross[1], cross[0]["rows"])


def test_bare_bench_runs_two_experiments() -> None:
    run = dkrls("bench", "--methods", "dkrls", "--seeds", 1)
    first, second = run.stdout.index("paper-2d: 116 x 120"), run.stdout.index("cross: 37 x 38")
    assert first < second
    assert "0.0134" in run.stdout  # the paper's error
    assert "threads 1" in run.stdout


def some_rows() -> list[dict[str, Any]]:
    """As wide as rows may be."""
    outcome = SplitResult(
        123_456, 1_113_600, 6.8e-5, 1.23e-4, 1.2e-5, 1.3e-5, 1.4e-6, 1.5e-6, 12_345.0
    )
    rows = []
    for name in ("dkrls-recursive", "kernel-ridge", "norma"):
        row = make_race_row(
            RaceEntry(name, PAPER), small(), RaceOptions(5, 60.0), [outcome], "a note. " * 20
        )
        rows.append(row | {"paper_seconds": 68168.58, "paper_error": 0.9949})
    return rows


@pytest.mark.parametrize("columns", [80, 100, 140])
def test_tables_fit(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    text = "\n\n".join(str(part) for part in experiments.dataset_parts(small(), some_rows()))
    heading, _, heads, *_ = text.splitlines()
    assert heads.split()[0] == "method"
    assert ("worst" in heads) == (columns >= 100)
    assert max(map(len, text.splitlines())) <= columns
    assert len(heading) <= 80


def test_plots_need_matplotlib(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("dkrls_cli.plots.style.find_spec", lambda name: None)
    line = refusal("bench", "cross", "--plot", tmp_path / "race.png", code=1)
    assert "matplotlib is not installed" in line


def test_plots_show_the_error_of_the_paper_and_its_figures_once() -> None:
    outcome = SplitResult(1, 1, 1.0, max_error=3.0, normalized_max_error=0.1)
    lab = small(name="intel-lab")
    for entry, figure in (
        (RaceEntry("norma", PAPER), 0.3422),
        (RaceEntry("norma", SEARCHED), None),
    ):
        row = experiments.plotted_row(
            make_race_row(entry, lab, RaceOptions(1, 60.0), [outcome], "")
        )
        assert (row["max_error"], row["paper_error"]) == (0.1, figure)


@pytest.mark.slow
def test_a_race_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    words = ["bench", "cross", "--methods", "dkrls,linear", "--seeds", 1, "-q"]
    dkrls(*words, "--plot", tmp_path / "race.svg")
    assert "<svg" in (tmp_path / "race.svg").read_text()


def test_a_full_run_is_resumed_where_it_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = tmp_path / "rows.csv"
    words = ["bench", "cross", "--full", "--seeds", 1, "--csv", rows]
    dkrls(*words, "--methods", "knlms", "-q")
    before = rows.read_text()
    run = dkrls(*words, "--methods", "knlms,linear", "--json")
    assert f"Note: cross, knlms* is already in '{rows}'." in run.stderr
    assert rows.read_text().startswith(before)
    assert [row["method"] for row in json.loads(run.stdout)["rows"]] == ["knlms", "linear"]
    assert_same_rows(rows.read_text(), json.loads(run.stdout)["rows"])

    def again(*_: Any) -> None:
        raise AssertionError("run again")

    monkeypatch.setattr(experiments, "measure_entry", again)
    dkrls(*words, "--methods", "linear", "-q")
    assert_same_rows(rows.read_text(), json.loads(run.stdout)["rows"][::-1])
    with pytest.raises(AssertionError, match="run again"):
        dkrls(*words, "--methods", "linear", "-q", "--overwrite", "--debug")


def test_a_file_of_another_kind_is_not_resumed(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("a,b\n1,2\n")
    line = refusal("bench", "cross", "--full", "--csv", rows)
    assert "was not written by such a run" in line
    assert rows.read_text() == "a,b\n1,2\n"


def test_a_run_with_a_limit_overwrites_nothing(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("mine")
    assert "exists already" in refusal("bench", "cross", "--csv", rows)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["bench", "cross", "--methods", "magic"], "Unknown method 'magic'"),
        (["bench", "cross", "--time-limit", "0"], "Invalid --time-limit 0"),
        (["bench", "paper-2d", "--full", "--time-limit", "9"], "do not go together"),
        (["bench", "--json", "cross"], "--json stands before cross"),
        (["bench", "cross", "--plot", "race.txt"], "race.txt"),
    ],
)
def test_refusals(words: list[str], why: str) -> None:
    assert why in refusal(*words, code=2)


def test_intel_lab_races_from_raw_readings(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_text("\n".join(raw_lines()) + "\n")
    words = ["bench", "intel-lab", "--data", path, "--methods", "dkrls,skrls,linear"]
    run = dkrls(*words, "--seeds", 1, "--json")
    assert "Note: motes without enough readings" in run.stderr
    rows = json.loads(run.stdout)["rows"]
    assert [row["samples"] for row in rows] == [320] * 5
    assert all(row["normalized_max_error"] < 1.2 for row in rows)


@pytest.mark.slow
def test_intel_lab_of_the_paper() -> None:
    """The median over splits is of the paper's size, which is that of one."""
    if not INTEL_LAB.exists():
        pytest.skip("needs ../shared/data; twin: test_intel_lab_races_from_raw_readings")
    words = ["bench", "intel-lab", "--data", INTEL_LAB, "--methods", "dkrls,dkrls-auto,swkrls"]
    run = dkrls(*words, "--seeds", 1, "--time-limit", 2, "--json", "-q")
    rows = {(r["method"], r["settings"]): r for r in json.loads(run.stdout)["rows"]}
    assert 0.03 < rows["dkrls", "paper"]["normalized_max_error"] < 0.6
    assert rows["swkrls", "paper"]["normalized_max_error"] == pytest.approx(0.9895, abs=0.02)
    assert rows["dkrls-auto", "own"]["normalized_max_error"] < 0.05
