"""The paper's experiments: its data, its settings, the clock, and what is told of it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import ndimage
from shell import assert_same_rows, dkrls, refusal

from dkrls_cli.baselines import BASELINES
from dkrls_cli.bench import memory
from dkrls_cli.bench.field import FIELD
from dkrls_cli.bench.paper import intel
from dkrls_cli.bench.paper.data import FIGURES, NAMES, SETTINGS, paper_2d, paper_3d_split, synthetic
from dkrls_cli.bench.paper.dataset import Dataset
from dkrls_cli.bench.paper.entries import METHODS, ONLINE, PAPER, SEARCHED, Entry, entries_of
from dkrls_cli.bench.paper.experiment import Terms, outcomes_of, row_of, told, verdict_of
from dkrls_cli.bench.paper.found import FOUND
from dkrls_cli.bench.paper.kept import row_among, rows_from
from dkrls_cli.bench.paper.search import KNOBS, search
from dkrls_cli.bench.paper.trial import (
    Bounds,
    Outcome,
    Progress,
    attempt,
    order_of,
    power_of,
    trial,
)
from dkrls_cli.bench.worker import FailedError, OutOfTimeError, Worker
from dkrls_cli.cli.bench import experiments
from dkrls_cli.errors import InputError
from dkrls_cli.files.csv import csv_text

FREE = Bounds(math.inf, math.inf)
INTEL_LAB = Path(__file__).parents[4] / "shared/data/intel_lab_subsfin_14400x52.txt"


def small(sizes: tuple[int, ...] = (15, 14), name: str = "paper-2d") -> Dataset:
    """The paper's field on few cells, a fifth held out."""
    axes = tuple(np.linspace(0.1, 3.0, size) for size in sizes)
    values = paper_2d(axes[:2])
    for axis in axes[2:]:
        values = values[..., None] * np.cos(axis / 3)
    return Dataset(name, axes, values, tuple(round(0.2 * size) for size in sizes))


def last(entry: Entry, dataset: Dataset, bounds: Bounds = FREE) -> Outcome:
    *_, outcome = attempt(entry, dataset.task(0), bounds)
    assert isinstance(outcome, Outcome)
    return outcome


def entry_of(method: str, settings: str, dataset: str = "paper-2d") -> Entry:
    return next(e for e in entries_of(dataset, [method]) if e.settings == settings)


# The paper's data ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "train", "held"),
    [
        ("paper-2d", (116, 120), (29, 30)),
        ("paper-3d", (116, 120, 80), (29, 30, 20)),
        ("cross", (37, 38), (11, 12)),
    ],
)
def test_datasets_have_the_sizes_of_the_paper(
    name: str, train: tuple[int, ...], held: tuple[int, ...]
) -> None:
    task = synthetic(name).task(1)
    assert task.values.shape == train
    assert task.truth.shape == held
    for known, asked in zip(task.coordinates, task.queries, strict=True):
        assert not set(known) & set(asked)


def test_the_split_is_that_of_the_other_races() -> None:
    train, held = paper_3d_split(4)
    task = synthetic("paper-3d").task(4)
    for ours, theirs in zip((*task.coordinates, *task.queries), (*train, *held), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_samples_come_with_the_first_dimension_fastest() -> None:
    task = small((4, 5, 3)).task(0)
    points, values = task.samples(np.arange(task.size))
    np.testing.assert_array_equal(values, task.values.ravel(order="F"))
    assert points[1, 0] != points[0, 0]
    assert (points[1, 1:] == points[0, 1:]).all()
    assert (np.diff(points[:, -1]) >= 0).all()
    truth = np.sin(task.asked()[:, 0]) * np.cos(task.asked()[:, 1] / 2)
    truth *= np.cos(task.asked()[:, 2] / 3)
    np.testing.assert_allclose(task.laid_out(truth), task.truth)


def test_every_figure_of_the_paper_has_its_settings() -> None:
    for name in NAMES:
        assert set(FIGURES[name]) == set(SETTINGS[name])
        assert set(FOUND[name]) == {"dkrls", *ONLINE} == set(KNOBS)
        for method, settings in SETTINGS[name].items():
            BASELINES["recursive" if method == "dkrls" else method](**settings)
        for method in ONLINE:
            BASELINES[method](**FOUND[name][method].parameters)


def test_settings_are_searched_in_the_training_part_alone() -> None:
    whole = synthetic("cross")
    thin, train = whole.thinned(400), whole.task(0)
    for few, known in zip(thin.coordinates, train.coordinates, strict=True):
        assert set(few) <= set(known)
    assert thin.values.size <= 400
    task = thin.task(0)
    assert task.truth.shape == thin.held


def test_a_search_finds_what_is_written_down() -> None:
    found = search(synthetic("cross"), "qklms")
    assert replace(found, seconds=0.0) == replace(FOUND["cross"]["qklms"], seconds=0.0)


def test_a_search_may_be_repeated() -> None:
    words = ["bench", "cross", "--methods", "klms", "--seeds", 1, "--json"]
    stored, searched = (json.loads(dkrls(*words, *more).stdout) for more in ([], ["--search"]))
    for name in ("parameters", "max_error", "samples_learnt"):
        assert stored["rows"][0][name] == searched["rows"][0][name]


def test_a_search_improves_on_where_it_starts() -> None:
    data = small((20, 20))
    start, end = (search(data, "swkrls", trials) for trials in (1, 30))
    errors = [
        last(Entry("swkrls", SEARCHED, f.parameters, f.scales, True), data).rmse
        for f in (start, end)
    ]
    assert errors[1] < errors[0] / 3


# Under the clock ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["paper-2d", "cross"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_finite_rows(method: str, name: str) -> None:
    if method in FIELD and FIELD[method].missing():
        pytest.skip(FIELD[method].missing())
    entries = list(entries_of(name, [method]))
    assert entries
    for entry in entries:
        outcome = last(entry, small(name=name))
        assert outcome.samples == outcome.of == 12 * 11
        assert outcome.seconds > 0
        assert outcome.predict_seconds > 0
        assert math.isfinite(outcome.max_error)
        assert outcome.mean_error <= outcome.rmse
        assert outcome.rmse <= outcome.max_error


def test_three_dimensions_race_too() -> None:
    for entry in entries_of("paper-3d", ["dkrls", "dkrls-recursive", "kkf", "norma", "linear"]):
        assert math.isfinite(last(entry, small((7, 6, 5), "paper-3d")).max_error)


def test_the_recursion_answers_as_the_solution_at_once() -> None:
    settings = {"sigmas": (1.0, 0.3), "ridge": 1e-3}
    ours, theirs = (
        last(Entry(method, PAPER, settings), small((30, 30)))
        for method in ("dkrls", "dkrls-recursive")
    )
    assert theirs.max_error == pytest.approx(ours.max_error, rel=1e-9)


def test_the_paper_has_its_own_order_and_a_careful_user_none() -> None:
    task = small().task(0)
    assert not entry_of("swkrls", PAPER).shuffled
    assert entry_of("swkrls", SEARCHED).shuffled
    assert not entry_of("kkf", SEARCHED).shuffled
    np.testing.assert_array_equal(np.sort(order_of(task, True)), order_of(task, False))


def test_a_method_out_of_time_says_how_far_it_came() -> None:
    data = small((40, 40))
    outcome = last(entry_of("qklms", SEARCHED), data, Bounds(1e-9, math.inf))
    assert (outcome.samples, outcome.of) == (512, 1024)
    assert math.isfinite(outcome.max_error)
    assert outcome.note == "stopped at the time limit of 1e-09 s"


def test_a_method_out_of_memory_says_so() -> None:
    outcome = last(entry_of("krls", SEARCHED), small((40, 40)), Bounds(math.inf, 0.0))
    assert outcome.samples == 512
    assert "half the memory" in outcome.note


def test_scattered_methods_learn_as_many_samples_as_time_allows() -> None:
    entry, data = entry_of("rbf", "own"), small((30, 30))
    steps = [step for step in attempt(entry, data.task(0), FREE) if isinstance(step, Outcome)]
    assert [step.samples for step in steps] == [128, 256, 512, 576]
    assert steps[-1].note == ""
    stopped = last(entry, data, Bounds(1e-9, math.inf))
    assert (stopped.samples, stopped.of) == (128, 576)
    assert "more would pass the time limit" in stopped.note
    assert math.isfinite(stopped.max_error)


@pytest.mark.parametrize(("ratio", "power"), [(0.0, 2), (1.0, 2), (4, 2), (8, 3), (100, 3)])
def test_time_grows_within_reason(ratio: float, power: float) -> None:
    assert power_of(ratio) == power


def test_splits_share_the_time() -> None:
    entry = entry_of("dkrls", PAPER)
    assert len(list(trial(entry, small(), range(4), 60.0))) == 4
    assert len(list(trial(entry, small(), range(4), 1e-9))) == 1


def test_answers_that_are_not_finite_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(coordinates: Any, values: Any) -> Any:
        return lambda queries: np.where(np.arange(9).reshape(3, 3) == 4, np.nan, 0.0)

    monkeypatch.setitem(FIELD, "linear", replace(FIELD["linear"], fit=lacking))
    outcome = last(Entry("linear", "own"), small())
    assert outcome.note == "no answer at 1 of 9 cells"
    assert math.isfinite(outcome.max_error)


def test_peaks_are_those_of_now() -> None:
    if math.isnan(memory.peak()) or not Path("/proc/self/clear_refs").exists():
        pytest.skip("this system does not forget peaks")
    memory.forget_peak()
    bounds = Bounds(math.inf, math.inf)
    block = np.ones(8_000_000)
    assert bounds.taken() == pytest.approx(block.nbytes, rel=0.1)


# Processes ----------------------------------------------------------------------------------------


def counting(count: int) -> Iterator[int]:
    import time

    yield from range(count)
    time.sleep(60)


def test_what_came_before_the_end_remains() -> None:
    seen = []
    with Worker(dict) as worker:
        parts = worker.watch(0.5, counting, 3)
        with pytest.raises(OutOfTimeError):
            seen.extend(next(parts) for _ in range(4))
        assert worker.run(10, dict) == {}
    assert seen == [0, 1, 2]


def gone() -> None:
    import os

    os._exit(1)


def test_a_process_that_ends_before_it_begins_is_told() -> None:
    with pytest.raises(FailedError, match="before it had begun"):
        Worker(gone)


def test_medians_and_ranges_are_over_the_splits() -> None:
    outcomes, note = outcomes_of(
        entry_of("dkrls", PAPER), small(), Terms(3, 60.0), lambda progress: None
    )
    assert note == ""
    errors = sorted(outcome.max_error for outcome in outcomes)
    row = told(entry_of("dkrls", PAPER), small(), Terms(3, 60.0), outcomes, note)
    assert [row[f"max_error{end}"] for end in ("_min", "", "_max")] == errors
    assert row["seeds"] == 3
    assert row["peak_mb"] >= 0


def test_the_last_outcome_of_a_split_counts() -> None:
    seen: list[Progress] = []
    row = row_of(Entry("rbf", "own"), small((20, 20)), Terms(2, 60.0), seen.append)
    assert (row["samples_learnt"], row["samples"], row["seeds"]) == (256, 256, 2)


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = replace(FIELD["linear"], library="no_such_library")
    monkeypatch.setitem(FIELD, "linear", gone)
    row = row_of(Entry("linear", "own"), small(), Terms(1, 60.0), lambda progress: None)
    assert row["note"].startswith("skipped: no_such_library is not installed")
    assert math.isnan(row["max_error"])


def test_what_fails_is_told() -> None:
    entry = Entry("dkrls-recursive", PAPER, {"sigmas": (1.0, 1.0), "ridge": 1e-8})
    worse = replace(entry, method="qklms", parameters={"sigma": 1.0, "step": 1.0, "radius": -1.0})
    assert outcomes_of(entry, small((6, 6)), Terms(1, 60.0), lambda progress: None)[1] == ""
    row = row_of(worse, small(), Terms(1, 60.0), lambda progress: None)
    assert row["note"].startswith("failed: ")
    assert "radius" in row["note"]
    assert (row["samples_learnt"], row["samples"]) == (0, 132)


# What is told -------------------------------------------------------------------------------------

KEYS = """
dataset method settings parameters samples_learnt samples seeds seeds_asked time_limit seconds
seconds_min seconds_max predict_seconds max_error max_error_min max_error_max normalized_max_error
normalized_max_error_min normalized_max_error_max rmse mean_error peak_mb search_seconds
paper_seconds paper_error paper_mean_error note
"""


@pytest.fixture(scope="module")
def cross(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    """What cross tells of some methods, as an object and as CSV."""
    rows = tmp_path_factory.mktemp("cross") / "rows.csv"
    words = ["bench", "cross", "--methods", "dkrls,dkrls-auto,krls,nonstill,spline3"]
    run = dkrls(*words, "--seeds", 2, "--json", "-q", "--csv", rows)
    assert run.stderr == ""
    return json.loads(run.stdout), rows.read_text()


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


def test_csv_says_the_same(cross: tuple[dict[str, Any], str]) -> None:
    assert_same_rows(cross[1], cross[0]["rows"])


def test_bare_bench_runs_two_experiments() -> None:
    run = dkrls("bench", "--methods", "dkrls", "--seeds", 1, "-q")
    first, second = run.stdout.index("paper-2d: 116 x 120"), run.stdout.index("cross: 37 x 38")
    assert first < second
    assert "0.0134" in run.stdout  # the paper's error
    assert "threads 1" in run.stdout


def some_rows() -> list[dict[str, Any]]:
    """As wide as rows may be."""
    outcome = Outcome(123_456, 1_113_600, 6.8e-5, 1.23e-4, 1.2e-5, 1.3e-5, 1.4e-6, 1.5e-6, 12_345.0)
    rows = []
    for name in ("dkrls-recursive", "kernel-ridge", "norma"):
        row = told(Entry(name, PAPER), small(), Terms(5, 60.0), [outcome], "a note. " * 20)
        rows.append(row | {"paper_seconds": 68168.58, "paper_error": 0.9949})
    return rows


@pytest.mark.parametrize("columns", [80, 100, 140])
def test_tables_fit(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    text = experiments.dataset_text(small(), some_rows())
    heading, _, heads, *_ = text.splitlines()
    assert heads.split()[0] == "method"
    assert ("worst" in heads) == (columns >= 100)
    assert max(map(len, text.splitlines())) <= columns
    assert len(heading) <= 80


def test_a_verdict_is_over_the_paper_s_methods_with_its_settings() -> None:
    def row(method: str, settings: str, seconds: float, error: float) -> dict[str, Any]:
        outcome = Outcome(1, 1, seconds, max_error=error)
        return told(Entry(method, settings), small(), Terms(1, 60.0), [outcome], "")

    rows = [
        row("dkrls", PAPER, 0.5, 0.1),
        row("norma", PAPER, 1.0, 0.4),
        row("swkrls", PAPER, 4.0, 0.2),
        row("swkrls", SEARCHED, 0.1, 0.01),
        row("krls", SEARCHED, 0.01, 0.001),  # not in the paper's table
        row("dkrls-auto", "own", 0.2, 0.001),
    ]
    names = ("method", "against", "times_as_fast", "times_as_accurate")
    assert [tuple(verdict[name] for name in names) for verdict in verdict_of(rows, "paper-2d")] == [
        ("dkrls", PAPER, 2.0, 2.0),
        ("dkrls-auto", SEARCHED, 0.5, 10.0),
    ]


def test_plots_need_matplotlib(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("dkrls_cli.bench.plots.find_spec", lambda name: None)
    line = refusal("bench", "cross", "--plot", tmp_path / "race.png", code=2)
    assert "matplotlib is not installed" in line


def test_plots_show_the_error_of_the_paper_and_its_figures_once() -> None:
    outcome = Outcome(1, 1, 1.0, max_error=3.0, normalized_max_error=0.1)
    lab = small(name="intel-lab")
    for entry, figure in ((Entry("norma", PAPER), 0.3422), (Entry("norma", SEARCHED), None)):
        row = experiments.drawn(told(entry, lab, Terms(1, 60.0), [outcome], ""))
        assert (row["max_error"], row["paper_error"]) == (0.1, figure)


def test_a_race_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    words = ["bench", "cross", "--methods", "dkrls,linear", "--seeds", 1, "-q"]
    dkrls(*words, "--plot", tmp_path / "race.svg")
    assert "<svg" in (tmp_path / "race.svg").read_text()


# Going on after an interruption -------------------------------------------------------------------


def test_a_full_run_goes_on_where_it_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = tmp_path / "rows.csv"
    words = ["bench", "cross", "--full", "--seeds", 1, "--csv", rows]
    dkrls(*words, "--methods", "knlms", "-q")
    before = rows.read_text()
    run = dkrls(*words, "--methods", "knlms,linear", "--json")
    assert f"Note: cross, knlms* is in '{rows}' already." in run.stderr
    assert rows.read_text().startswith(before)
    assert [row["method"] for row in json.loads(run.stdout)["rows"]] == ["knlms", "linear"]
    assert_same_rows(rows.read_text(), json.loads(run.stdout)["rows"])

    def again(*_: Any) -> None:
        raise AssertionError("run again")

    monkeypatch.setattr(experiments, "measured", again)
    dkrls(*words, "--methods", "linear", "-q")
    assert_same_rows(rows.read_text(), json.loads(run.stdout)["rows"][::-1])
    with pytest.raises(AssertionError, match="run again"):
        dkrls(*words, "--methods", "linear", "-q", "--overwrite", "--debug")


def test_rows_are_kept_only_on_the_same_terms() -> None:
    entry, data = entry_of("dkrls", PAPER), small()
    terms = Terms(2, math.inf)
    row = told(entry, data, terms, [Outcome(132, 132, 1.0, 1.0, 0.5)], "")
    rows = rows_from(csv_text([row]), "rows.csv")
    assert csv_text(rows) == csv_text([row])
    assert row_among(rows, entry, data, terms) is not None
    assert row_among(rows, entry, data, Terms(3, math.inf)) is None
    assert row_among(rows, entry, data, Terms(2, 60.0)) is None
    assert row_among(rows, entry_of("dkrls", PAPER, "paper-3d"), data, terms) is None
    failed = rows_from(csv_text([told(entry, data, terms, [], "failed")]), "rows.csv")
    assert row_among(failed, entry, data, terms) is None


def test_another_file_is_not_gone_on_with(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("a,b\n1,2\n")
    line = refusal("bench", "cross", "--full", "--csv", rows)
    assert "not from such a run" in line
    assert rows.read_text() == "a,b\n1,2\n"


def test_a_run_with_a_limit_overwrites_nothing(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("mine")
    assert "exists already" in refusal("bench", "cross", "--csv", rows)


# What is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["bench", "cross", "--methods", "magic"], "Unknown method 'magic'"),
        (["bench", "cross", "--time-limit", "0"], "Invalid --time-limit 0"),
        (["bench", "paper-2d", "--full", "--time-limit", "9"], "cannot stand beside --full"),
        (["bench", "--json", "cross"], "--json stands before cross"),
        (["bench", "cross", "--plot", "race.txt"], "race.txt"),
    ],
)
def test_refusals(words: list[str], why: str) -> None:
    assert why in refusal(*words, code=2)


# Intel Lab ----------------------------------------------------------------------------------------


def degrees(mote: int, step: float) -> float:
    return 20 + mote / 10 + math.sin(step / 15)


def raw_lines() -> Iterator[str]:
    """A lab of six motes for 420 steps: a reading each 30 s, and all that may be wrong."""
    for mote in (1, 2, 3, 5, 7, 9):
        for step in range(420):
            clock = f"{step // 120:02d}:{step // 2 % 60:02d}:{step % 2 * 30:02d}.25"
            head = f"2004-02-28 {clock} {step} {mote}"
            if mote == 7 and step > 330:
                continue  # it fell silent
            if mote == 2 and 340 <= step < 350:
                yield f"{head} 122.153 -4.0 11.04 2.03"  # its battery is low
                continue
            yield f"{head} {degrees(mote, step):.6f} 37.1 45.08 2.69"
            if step == 5:
                yield f"{head} 19.3"  # cut short
    yield "2004-03-31 03:38:15.757551 2 1 122.153 -3.91901 11.04 2.03397"
    yield "2004-02-28 01:00:00.5 3 65407 19.9 37.0 45.0 2.7"


def test_raw_readings_become_a_grid(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_text("\n".join(raw_lines()) + "\n")
    rows, without = intel.resampled(logs_of(path))
    assert 7 in without
    assert 5 not in without
    assert set(without) == set(intel.MOTES) - {1, 2, 3, 9}
    steps = np.arange(300, 400)
    for mote, row in zip((1, 2, 3, 9), rows, strict=True):
        exact = np.array([degrees(mote, step) for step in steps])
        gap = (steps >= 340) & (steps < 350) & (mote == 2)
        np.testing.assert_allclose(row[~gap], exact[~gap], atol=1e-5)
        np.testing.assert_allclose(row[gap], np.interp(steps, steps[~gap], exact[~gap])[gap])
    found = intel.read(str(path))
    assert found.values.shape == (4, 100)
    assert "readings were dropped" in found.told[0]
    assert "7" in found.told[1]


def logs_of(path: Path) -> dict[int, intel.Log]:
    logs: dict[int, intel.Log] = {}
    for line in path.read_text().splitlines():
        reading = intel.reading_of(line)
        if reading is not None:
            logs.setdefault(reading.mote, intel.Log()).add(reading)
    return logs


def test_a_matrix_gives_the_window_of_the_paper(tmp_path: Path) -> None:
    matrix = np.random.default_rng(0).normal(20, 1, (410, 52)).round(3)
    np.savetxt(tmp_path / "matrix.txt", matrix, fmt="%.3f")
    offsets = np.arange(6) - 2.5
    weights = np.exp(-np.add.outer(offsets**2, offsets**2) / 10)
    expected = ndimage.correlate(matrix[300:400].T, weights / weights.sum(), mode="reflect")
    np.testing.assert_allclose(intel.read(str(tmp_path / "matrix.txt")).values, expected)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1 2 3\n" * 500, "has 3 columns"),
        ("1 " * 52 + "\n", "less than 400 rows"),
        (("1 " * 52 + "\n") * 350 + "x " * 52, "row 351: could not convert"),
        (("1 " * 52 + "\n") * 350 + "1 1\n", "row 351: expected 52 finite numbers"),
        ("", "has 0 columns"),
        ("2004-02-28 00:00:00 1 1 99 0 0 9\n", "None of the 1 lines"),
        ("2004-02-28 00:00:00 1 1 20 0 0 2.7\n", "readings of 0 motes"),
    ],
)
def test_files_that_are_neither_are_refused(text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=why):
        intel.read(str(path))


def test_intel_lab_races_from_raw_readings(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_text("\n".join(raw_lines()) + "\n")
    words = ["bench", "intel-lab", "--data", path, "--methods", "dkrls,aldkrls,linear"]
    run = dkrls(*words, "--seeds", 1, "--json")
    assert "Note: motes without enough readings" in run.stderr
    rows = json.loads(run.stdout)["rows"]
    assert [row["samples"] for row in rows] == [320] * 5
    assert all(row["normalized_max_error"] < 1.2 for row in rows)


def test_intel_lab_of_the_paper() -> None:
    """The median over splits is of the paper's size, which is that of one."""
    if not INTEL_LAB.exists():
        pytest.skip(f"{INTEL_LAB} is not there")
    words = ["bench", "intel-lab", "--data", INTEL_LAB, "--methods", "dkrls,dkrls-auto,swkrls"]
    run = dkrls(*words, "--seeds", 1, "--time-limit", "0.5", "--json", "-q")
    rows = {(r["method"], r["settings"]): r for r in json.loads(run.stdout)["rows"]}
    assert 0.03 < rows["dkrls", "paper"]["normalized_max_error"] < 0.6
    assert rows["swkrls", "paper"]["normalized_max_error"] == pytest.approx(0.9895, abs=0.02)
    assert rows["dkrls-auto", "own"]["normalized_max_error"] < 0.05
