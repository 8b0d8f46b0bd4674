"""Methods within limits of time and memory, with a clock that the tests set where time matters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.paper.small_data import UNLIMITED, entry_of, last, small

from dkrls_cli import memory
from dkrls_cli.baselines import BASELINES
from dkrls_cli.bench.paper import run as module
from dkrls_cli.bench.paper.entries import PAPER, PAPER_METHODS, SEARCHED, RaceEntry, make_entries
from dkrls_cli.bench.paper.run import (
    CHUNK,
    Limits,
    RunProgress,
    SplitResult,
    growth_power,
    make_learner,
    run_split,
    run_splits,
    sample_order,
    time_job,
    warm_up,
)
from dkrls_cli.bench.rivals.registry import RIVALS


class Clock:
    """A clock that moves by `step` seconds whenever it is read."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock(0.01)
    monkeypatch.setattr(module, "perf_counter", found)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["paper-2d", "cross"])
@pytest.mark.parametrize("method", PAPER_METHODS)
def test_every_method_gives_finite_rows(method: str, name: str) -> None:
    if method in RIVALS and RIVALS[method].missing():
        pytest.skip(RIVALS[method].missing())
    entries = list(make_entries(name, [method]))
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
    for entry in make_entries("paper-3d", ["dkrls", "dkrls-recursive", "kkf", "norma", "linear"]):
        assert math.isfinite(last(entry, small((7, 6, 5), "paper-3d")).max_error)


def test_the_recursion_answers_as_the_solution_at_once() -> None:
    settings = {"sigmas": (1.0, 0.3), "ridge": 1e-3}
    ours, theirs = (
        last(RaceEntry(method, PAPER, settings), small((30, 30)))
        for method in ("dkrls", "dkrls-recursive")
    )
    assert theirs.max_error == pytest.approx(ours.max_error, rel=1e-9)


def test_the_default_fit_and_the_rivals_answer_as_direct_calls_do() -> None:
    from dkrls_cli import fit

    task = small().make_task(0)
    model = fit(task.values, {"x": task.coordinates[0], "y": task.coordinates[1]})
    answers = model.predict(x=task.queries[0], y=task.queries[1], extrapolate=True).values
    found = last(RaceEntry("dkrls-auto", "own"), small())
    assert found.max_error == pytest.approx(np.abs(answers - task.truth).max(), rel=1e-9)


def test_a_prepared_entry_subtracts_the_mean_and_divides_by_the_scales() -> None:
    """The same method by hand, on coordinates and values prepared so."""
    task = small().make_task(0)
    entry = RaceEntry("krls", SEARCHED, {"ridge": 1e-3}, (0.5, 2.0), prepared=True)
    model, mean = BASELINES["krls"](ridge=1e-3), task.values.mean()
    points, values = task.samples(np.arange(task.size))
    for x, y in zip(points / [0.5, 2.0], values - mean, strict=True):
        model.update(x, y)
    answers = task.as_grid(model.predict(task.query_points() / [0.5, 2.0])) + mean
    expected = np.sqrt(np.mean((answers - task.truth) ** 2))
    assert last(entry, small()).rmse == pytest.approx(expected, rel=1e-6)


def test_dkrls_with_scales_has_them_for_sigmas() -> None:
    settings = {"sigmas": (9.0, 9.0), "ridge": 1e-6}
    one = last(RaceEntry("dkrls", SEARCHED, settings, (1.0, 0.3)), small())
    two = last(RaceEntry("dkrls", PAPER, settings | {"sigmas": (1.0, 0.3)}), small())
    assert one.rmse == two.rmse


def test_the_order_is_the_paper_s_or_random() -> None:
    task = small().make_task(0)
    plain, mixed = sample_order(task, False), sample_order(task, True)
    np.testing.assert_array_equal(plain, np.arange(task.size))
    assert not np.array_equal(plain, mixed)
    np.testing.assert_array_equal(np.sort(mixed), plain)


def test_learners_are_made_by_name() -> None:
    assert make_learner(entry_of("dkrls-recursive", PAPER)).paper_name == "D-KRLS"
    assert make_learner(entry_of("skrls", PAPER)).paper_name == "S-KRLS"


# Limits -------------------------------------------------------------------------------------------


def test_a_method_out_of_time_says_how_far_it_came() -> None:
    data = small((40, 40))
    outcome = last(entry_of("qklms", SEARCHED), data, Limits(1e-9, math.inf))
    assert (outcome.samples, outcome.of) == (512, 1024)
    assert math.isfinite(outcome.max_error)
    assert outcome.note == "stopped at the time limit of 1e-09 s"


def test_a_method_out_of_memory_says_so() -> None:
    outcome = last(entry_of("krls", SEARCHED), small((40, 40)), Limits(math.inf, 0.0))
    assert outcome.samples == 512
    assert "half of this machine's memory" in outcome.note


def test_the_last_samples_are_learnt_whatever_the_limit() -> None:
    """A limit that is reached with the last chunk stops nothing."""
    found = last(entry_of("qklms", SEARCHED), small((20, 20)), Limits(1e-9, 0.0))
    assert (found.samples, found.of, found.note) == (256, 256, "")


@pytest.mark.parametrize(
    ("seconds", "taken", "text"),
    [
        (0.9, 4e9, ""),
        (1.0, 4e9, "stopped at the time limit of 1 s"),
        (0.9, 5e9, "stopped at 5 GB, half of this machine's memory"),
        (1.0, 5e9, "stopped at the time limit of 1 s"),
    ],
)
def test_a_limit_is_reached_when_it_is_met(seconds: float, taken: float, text: str) -> None:
    assert Limits(1.0, 5e9, 0.0).reached(seconds, taken) == text


def test_memory_taken_is_the_peak_beyond_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "peak_bytes", lambda: 700.0)
    assert Limits(1.0, 1.0, held=500.0).taken_bytes() == 200.0
    assert Limits(1.0, 1.0, held=900.0).taken_bytes() == 0.0


def test_scattered_methods_learn_as_many_samples_as_time_allows() -> None:
    entry, data = entry_of("rbf", "own"), small((30, 30))
    steps = [
        step
        for step in run_split(entry, data.make_task(0), UNLIMITED)
        if isinstance(step, SplitResult)
    ]
    assert [step.samples for step in steps] == [128, 256, 512, 576]
    assert steps[-1].note == ""
    stopped = last(entry, data, Limits(1e-9, math.inf))
    assert (stopped.samples, stopped.of) == (128, 576)
    assert "more would pass the time limit" in stopped.note
    assert math.isfinite(stopped.max_error)


def test_scattered_methods_stop_before_the_limit_would_be_passed(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every fit takes 0.02 s; four times as long is expected for twice the samples."""
    lazy = replace(RIVALS["rbf"], fit=lambda c, v: lambda queries: np.zeros(queries[0].size))
    monkeypatch.setitem(RIVALS, "rbf", lazy)
    entry, data = RaceEntry("rbf", "own"), small((30, 30))
    assert last(entry, data, Limits(0.0999, math.inf)).samples == 128
    assert last(entry, data, Limits(0.1001, math.inf)).samples == 256
    found = last(entry, data, Limits(0.1001, math.inf))
    assert found.note == "more would pass the time limit of 0.1 s"
    assert (found.seconds, found.predict_seconds) == (pytest.approx(0.01), pytest.approx(0.01))


@pytest.mark.parametrize(("ratio", "power"), [(0.0, 2), (1.0, 2), (4, 2), (8, 3), (100, 3)])
def test_the_power_of_growth_is_from_two_to_three(ratio: float, power: float) -> None:
    assert growth_power(ratio) == power


# Splits -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "splits"), [(3.9, 1), (4.0, 2), (5.9, 2), (6.0, 3), (1e9, 5), (math.inf, 5)]
)
def test_splits_are_run_while_they_fit_in_half_of_the_time(
    seconds: float, splits: int, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every split takes one second."""

    def one(entry: Any, task: Any, limits: Limits) -> Iterator[SplitResult]:
        assert limits.seconds == seconds
        clock.now += 1.0
        yield SplitResult(5, 5)

    clock.step = 0.0
    monkeypatch.setattr(module, "run_split", one)
    results = list(run_splits(entry_of("dkrls", PAPER), small(), range(5), seconds))
    assert len(results) == splits


def test_without_a_limit_splits_have_a_minute(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one(entry: Any, task: Any, limits: Limits) -> Iterator[SplitResult]:
        clock.now += 20.0
        yield SplitResult(5, 5)

    clock.step = 0.0
    monkeypatch.setattr(module, "run_split", one)
    results = list(run_splits(entry_of("dkrls", PAPER), small(), range(9), math.inf))
    assert len(results) == 3


def test_no_split_follows_one_that_was_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    def one(entry: Any, task: Any, limits: Limits) -> Iterator[SplitResult]:
        yield SplitResult(4, 5)

    monkeypatch.setattr(module, "run_split", one)
    results = list(run_splits(entry_of("dkrls", PAPER), small(), range(5), math.inf))
    assert results == [SplitResult(4, 5)]
    assert not results[0].is_complete
    assert SplitResult(5, 5).is_complete


# Time and progress --------------------------------------------------------------------------------


def test_quick_jobs_are_repeated_and_slow_ones_are_not(clock: Clock) -> None:
    runs: list[int] = []
    times = iter([0.1, 0.05, 0.2, 0.07, 0.06])

    def quick() -> int:
        clock.now += next(times)
        runs.append(1)
        return 7

    clock.step = 0.0
    assert time_job(quick) == (pytest.approx(0.07), 7)
    assert len(runs) == 5
    times = iter([0.11])
    assert time_job(quick) == (pytest.approx(0.11), 7)


def test_progress_is_reported_every_half_second(clock: Clock) -> None:
    """The clock is read three times per chunk, two more for a report."""
    clock.step = 0.2
    entry, task = entry_of("klms", SEARCHED), small((60, 60)).make_task(0)
    *reports, result = run_split(entry, task, UNLIMITED)
    assert isinstance(result, SplitResult)
    assert [step.samples for step in reports] == [*range(CHUNK, task.size, CHUNK), task.size]
    assert all(isinstance(step, RunProgress) and step.of == task.size for step in reports)
    clock.step = 0.01
    steps = [step for step in run_split(entry, task, UNLIMITED) if isinstance(step, RunProgress)]
    assert steps == []


def test_learning_time_includes_delayed_work(clock: Clock) -> None:
    """One reading before and after each chunk, and around the first answer."""
    found = last(entry_of("krls", SEARCHED), small((20, 20)))
    assert found.seconds == pytest.approx(0.02)
    assert found.predict_seconds == pytest.approx(0.01)


def test_answers_that_are_not_finite_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(coordinates: Any, values: Any) -> Any:
        return lambda queries: np.where(np.arange(9).reshape(3, 3) == 4, np.nan, 0.0)

    monkeypatch.setitem(RIVALS, "linear", replace(RIVALS["linear"], fit=lacking))
    outcome = last(RaceEntry("linear", "own"), small())
    assert outcome.note == "no finite answer at 1 of 9 cells"
    assert math.isfinite(outcome.max_error)


def test_peaks_are_those_of_now() -> None:
    if math.isnan(memory.peak_bytes()) or not Path("/proc/self/clear_refs").exists():
        pytest.skip("this system does not forget peaks")
    memory.reset_peak()
    limits = Limits(math.inf, math.inf)
    block = np.ones(8_000_000)
    assert limits.taken_bytes() == pytest.approx(block.nbytes, rel=0.1)


def test_a_warm_up_hides_failures_and_leaves_one_thread() -> None:
    from threadpoolctl import threadpool_info

    warm_up(RaceEntry("qklms", PAPER, {"radius": -1.0}), 2)
    warm_up(entry_of("dkrls", PAPER), 2)
    assert {pool["num_threads"] for pool in threadpool_info()} == {1}


def test_a_chunk_fills_whole_blocks_of_all_baselines() -> None:
    """Else the work of a block would be timed with the wrong chunk."""
    from dkrls_cli.baselines.gradient import klms
    from dkrls_cli.baselines.least_squares import krls

    assert CHUNK % klms.BLOCK == CHUNK % krls.BLOCK == 0
