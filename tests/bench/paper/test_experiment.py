"""Rows of the paper's experiments: medians, notes, and the comparison with the paper's methods."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from bench.paper.small_data import entry_of, small

from dkrls_cli.bench.paper import experiment as module
from dkrls_cli.bench.paper.entries import OWN, PAPER, SEARCHED, RaceEntry
from dkrls_cli.bench.paper.experiment import (
    RaceOptions,
    compare_with_paper_methods,
    make_race_row,
    published_error_column,
    published_result,
    run_in_worker,
    run_method,
)
from dkrls_cli.bench.paper.run import RunProgress, SplitResult
from dkrls_cli.bench.rivals.registry import RIVALS
from dkrls_cli.bench.worker import JobFailedError, JobTimeoutError


def ignore(progress: RunProgress) -> None:
    pass


def test_medians_and_ranges_are_over_the_splits() -> None:
    results, note = run_in_worker(entry_of("dkrls", PAPER), small(), RaceOptions(3, 60.0), ignore)
    assert note == ""
    errors = sorted(result.max_error for result in results)
    row = make_race_row(entry_of("dkrls", PAPER), small(), RaceOptions(3, 60.0), results, note)
    assert [row[f"max_error{end}"] for end in ("_min", "", "_max")] == errors
    assert row["seeds"] == 3
    assert row["peak_mb"] >= 0


def test_the_last_result_of_a_split_counts() -> None:
    seen: list[RunProgress] = []
    row = run_method(RaceEntry("rbf", "own"), small((20, 20)), RaceOptions(2, 60.0), seen.append)
    assert (row["samples_learnt"], row["samples"], row["seeds"]) == (256, 256, 2)


def test_a_method_that_is_not_installed_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = replace(RIVALS["linear"], library="no_such_library")
    monkeypatch.setitem(RIVALS, "linear", gone)
    row = run_method(RaceEntry("linear", "own"), small(), RaceOptions(1, 60.0), ignore)
    assert row["note"].startswith("skipped: no_such_library is not installed")
    assert math.isnan(row["max_error"])


def test_what_fails_is_make_race_row() -> None:
    entry = RaceEntry("dkrls-recursive", PAPER, {"sigmas": (1.0, 1.0), "ridge": 1e-8})
    worse = replace(entry, method="qklms", parameters={"sigma": 1.0, "step": 1.0, "radius": -1.0})
    assert run_in_worker(entry, small((6, 6)), RaceOptions(1, 60.0), ignore)[1] == ""
    row = run_method(worse, small(), RaceOptions(1, 60.0), ignore)
    assert row["note"].startswith("failed: ")
    assert "radius" in row["note"]
    assert (row["samples_learnt"], row["samples"]) == (0, 132)


def test_the_comparison_is_with_the_paper_s_methods_and_equal_settings() -> None:
    def row(method: str, settings: str, seconds: float, error: float) -> dict[str, Any]:
        outcome = SplitResult(1, 1, seconds, max_error=error)
        return make_race_row(
            RaceEntry(method, settings), small(), RaceOptions(1, 60.0), [outcome], ""
        )

    rows = [
        row("dkrls", PAPER, 0.5, 0.1),
        row("norma", PAPER, 1.0, 0.4),
        row("swkrls", PAPER, 4.0, 0.2),
        row("swkrls", SEARCHED, 0.1, 0.01),
        row("krls", SEARCHED, 0.01, 0.001),  # not in the paper's table
        row("dkrls-auto", "own", 0.2, 0.001),
    ]
    names = ("method", "against", "times_as_fast", "times_as_accurate")
    assert [
        tuple(verdict[name] for name in names)
        for verdict in compare_with_paper_methods(rows, "paper-2d")
    ] == [
        ("dkrls", PAPER, 2.0, 2.0),
        ("dkrls-auto", SEARCHED, 0.5, 10.0),
    ]


class StubWorker:
    """Stands for a worker: yields these steps, then raises this error."""

    steps: ClassVar[list[Any]] = []
    error: ClassVar[Exception | None] = None
    given: ClassVar[list[Any]] = []

    def __init__(self, prepare: Any, preload: Any) -> None:
        type(self).given = [preload]

    def __enter__(self) -> StubWorker:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def iterate(self, limit: float, job: Any, *arguments: Any) -> Iterator[Any]:
        self.given.extend([limit, *arguments[2:]])
        yield from self.steps
        if self.error is not None:
            raise self.error


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> type[StubWorker]:
    monkeypatch.setattr(module, "Worker", StubWorker)
    monkeypatch.setattr(StubWorker, "error", None)
    return StubWorker


def test_unfinished_results_are_replaced_and_finished_ones_kept(
    stub: type[StubWorker], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [RunProgress(1, 4), SplitResult(2, 4), SplitResult(4, 4), SplitResult(2, 4)]
    steps += [RunProgress(3, 4), SplitResult(3, 4)]
    monkeypatch.setattr(stub, "steps", steps)
    seen: list[RunProgress] = []
    results, note = run_in_worker(
        entry_of("dkrls", PAPER), small(), RaceOptions(3, 10.0), seen.append
    )
    assert (results, note) == ([SplitResult(4, 4), SplitResult(3, 4)], "")
    assert seen == [RunProgress(1, 4), RunProgress(3, 4)]
    assert stub.given == [["dkrls_cli.bench.paper.run"], 50.0, range(3), 10.0]


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (JobTimeoutError("stopped after 50 s"), "stopped after 50 s"),
        (JobFailedError("ValueError: no"), "failed: ValueError: no"),
    ],
)
def test_a_process_that_is_stopped_or_fails_leaves_its_results_and_a_note(
    error: Exception, note: str, stub: type[StubWorker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stub, "steps", [SplitResult(4, 4, 1.0)])
    monkeypatch.setattr(stub, "error", error)
    row = run_method(entry_of("dkrls", PAPER), small(), RaceOptions(3, 10.0), ignore)
    assert (row["note"], row["seeds"], row["seconds"]) == (note, 1, 1.0)


def test_a_row_has_medians_ranges_and_each_note_once() -> None:
    results = [
        SplitResult(9, 9, seconds, 2 * seconds, error, error / 2, error / 3, error / 4, mb, "late")
        for seconds, error, mb in ((3.0, 0.5, 7.0), (1.0, 0.9, 8.0), (2.0, 0.1, 6.0))
    ]
    entry = RaceEntry("norma", PAPER, {"step": 0.5}, search_seconds=4.0)
    row = make_race_row(entry, small(), RaceOptions(5, math.inf), results, "stopped")
    assert [row[f"seconds{end}"] for end in ("_min", "", "_max")] == [1.0, 2.0, 3.0]
    assert [row[f"max_error{end}"] for end in ("_min", "", "_max")] == [0.1, 0.5, 0.9]
    assert [row[f"normalized_max_error{end}"] for end in ("_min", "", "_max")] == [0.05, 0.25, 0.45]
    assert (row["predict_seconds"], row["peak_mb"], row["search_seconds"]) == (4.0, 8.0, 4.0)
    assert (row["rmse"], row["mean_error"]) == (0.5 / 3, 0.125)
    assert (row["seeds"], row["seeds_asked"], row["time_limit"]) == (3, 5, None)
    assert (row["note"], row["parameters"]) == ("late; stopped", "step 0.5")
    assert (row["paper_seconds"], row["paper_error"]) == (38.61, 0.3502)


def test_a_row_without_results_has_no_numbers() -> None:
    row = make_race_row(RaceEntry("rbf", OWN), small(), RaceOptions(5, 7.0), [], "failed")
    assert (row["samples_learnt"], row["samples"], row["seeds"]) == (0, 132, 0)
    assert (row["time_limit"], row["note"]) == (7.0, "failed")
    assert all(math.isnan(row[name]) for name in ("seconds", "max_error_min", "peak_mb", "rmse"))
    assert math.isnan(row["paper_error"])


@pytest.mark.parametrize("method", ["dkrls", "dkrls-auto", "dkrls-recursive"])
def test_all_our_rows_have_the_paper_s_result_of_dkrls(method: str) -> None:
    assert published_result(RaceEntry(method, OWN), "cross").error == 0.0519


def test_the_error_of_the_lab_is_normalized() -> None:
    assert published_error_column("intel-lab") == "normalized_max_error"
    assert published_error_column("cross") == "max_error"


def test_a_comparison_leaves_out_methods_without_an_error() -> None:
    def row(method: str, seconds: float, error: float) -> dict[str, Any]:
        result = [SplitResult(1, 1, seconds, max_error=error)]
        return make_race_row(RaceEntry(method, PAPER), small(), RaceOptions(1, 1.0), result, "")

    rows = [row("dkrls", 1.0, 0.5), row("norma", math.nan, math.nan), row("skrls", 2.0, 1.0)]
    (found,) = compare_with_paper_methods(rows, "paper-2d")
    assert (found["times_as_fast"], found["times_as_accurate"]) == (2.0, 2.0)
    assert compare_with_paper_methods(rows, "cross") == []
    assert compare_with_paper_methods(rows[:1], "paper-2d") == []
