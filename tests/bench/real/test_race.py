"""Rows, ratios and summaries of races on grids, and how results are collected."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from shell import ROOT

from dkrls_cli.bench.real.cases import RANDOM, HeldOutCase, make_held_out_cases
from dkrls_cli.bench.real.gaps import GAP_RACE, make_hidden_cases
from dkrls_cli.bench.real.interpolation import INTERPOLATION_RACE, run_interpolation
from dkrls_cli.bench.real.race import (
    CaseResult,
    case_name,
    make_case_rows,
    run_case,
    score_answers,
    share_true,
    summarise_rows,
    warm_up_race,
)
from dkrls_cli.bench.worker import JobFailedError, JobTimeoutError
from dkrls_cli.files.reading import open_source
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import Grid

OCEAN = ROOT / "sample_data" / "ocean.nc"


def made(values: Any, **coordinates: Any) -> Grid:
    return Grid(values, tuple(axis_of(name, c) for name, c in coordinates.items()))


def case_of(grid: Grid, kind: str = RANDOM) -> HeldOutCase:
    return next(case for case in make_held_out_cases(grid, [0]) if case.kind == kind)


@pytest.fixture(scope="module")
def ocean() -> Grid:
    return open_source([str(OCEAN)]).grid()


def results(**errors: float) -> dict[str, CaseResult]:
    return {name: CaseResult(rmse=error, seconds=1.0) for name, error in errors.items()}


def test_ratios_are_to_the_best_reference_in_hindsight(ocean: Grid) -> None:
    case = case_of(ocean)
    raced = results(dkrls=3.0, linear=8.0, spline3=4.0, spline5=6.0, cubic=1.0)
    ratios = {
        row["method"]: row["ratio"] for row in make_case_rows(INTERPOLATION_RACE, "g", case, raced)
    }
    assert ratios == {"dkrls": 0.75, "linear": 2.0, "spline3": 1.0, "spline5": 1.5, "cubic": 0.25}


def test_a_field_that_all_answer_has_ratio_one() -> None:
    case = case_of(made(np.full((12, 12), 7.0), x=np.arange(12.0), y=np.arange(12.0)))
    rows = make_case_rows(
        INTERPOLATION_RACE,
        "g",
        case,
        {name: run_interpolation(name, case) for name in ("dkrls", *INTERPOLATION_RACE.references)},
    )
    assert [row["ratio"] for row in rows] == [1.0] * 4


def test_the_summary_counts_what_was_compared(ocean: Grid) -> None:
    short = case_of(made(np.eye(6), x=np.arange(6.0), y=np.arange(6.0)))
    rows = [
        *make_case_rows(INTERPOLATION_RACE, "a", case_of(ocean), results(dkrls=1.0, linear=2.0)),
        *make_case_rows(INTERPOLATION_RACE, "b", short, results(dkrls=8.0, linear=4.0)),
        *make_case_rows(
            INTERPOLATION_RACE,
            "c",
            short,
            {"dkrls": CaseResult(note="stopped"), "linear": CaseResult(1.0, 1.0, 3.0)},
        ),
    ]
    summary = summarise_rows(INTERPOLATION_RACE, rows)
    assert (summary["cases"], summary["compared"], summary["within_2_percent"]) == (3, 2, 0.5)
    assert summary["geometric_mean"] == pytest.approx(1.0)
    assert (summary["worst"], summary["worst_of_ten_samples"]) == (2.0, 0.5)
    assert [row["finished"] for row in summary["methods"]] == [2, 3]


def test_errors_of_round_off_count_as_equal(ocean: Grid) -> None:
    case = case_of(made(np.full((12, 12), 7.0), x=np.arange(12.0), y=np.arange(12.0)))
    (ours, _) = make_case_rows(INTERPOLATION_RACE, "g", case, results(dkrls=6e-14, linear=1e-20))
    assert ours["ratio"] == 1.0
    (ours, _) = make_case_rows(INTERPOLATION_RACE, "g", case, results(dkrls=8e-14, linear=1e-20))
    assert ours["ratio"] == pytest.approx(8 / 7)


def test_a_case_without_a_reference_has_no_ratio(ocean: Grid) -> None:
    (row,) = make_case_rows(INTERPOLATION_RACE, "g", case_of(ocean), results(dkrls=1.0))
    assert math.isnan(row["ratio"])
    assert (row["grid"], row["variable"], row["held_out"], row["seed"]) == ("g", "sst", RANDOM, 0)


def test_the_best_reference_has_finished(ocean: Grid) -> None:
    raced = results(dkrls=3.0, linear=6.0) | {"spline3": CaseResult(note="stopped")}
    ours, *_, stopped = make_case_rows(INTERPOLATION_RACE, "g", case_of(ocean), raced)
    assert ours["ratio"] == 0.5
    assert (stopped["note"], stopped["method"]) == ("stopped", "spline3")


def test_answers_are_scored_with_their_time_and_coverage() -> None:
    found = score_answers([1.0, 2.0], [1.0, 5.0], 0.25, 0.9)
    assert found == CaseResult(math.sqrt(4.5), 3.0, 0.25, 0.9, "")
    assert found.is_finished
    lost = score_answers([1.0, 2.0], [1.0, math.nan], 0.25)
    assert lost.note == "answers are not all finite"
    assert not CaseResult(note="stopped").is_finished


def test_shares() -> None:
    assert share_true([True, False, False, True]) == 0.5
    assert math.isnan(share_true([]))


def test_names_of_cases(ocean: Grid) -> None:
    assert [case_name(case) for case in make_held_out_cases(ocean, [3])] == [
        "20 %, seed 3",
        "every second",
    ]


class Raising:
    """Stands for a worker whose job ends like this."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def run(self, limit: float, job: Callable[..., Any], *arguments: Any) -> Any:
        assert (limit, job, arguments[0]) == (7.0, run_interpolation, "linear")
        raise self._error


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (JobTimeoutError("stopped after 7 s"), "stopped after 7 s"),
        (JobFailedError("ValueError: no"), "failed: ValueError: no"),
    ],
)
def test_a_method_that_is_stopped_or_fails_has_a_note(
    ocean: Grid, error: Exception, note: str
) -> None:
    worker: Any = Raising(error)
    found = run_case(worker, INTERPOLATION_RACE, "linear", case_of(ocean), 7.0)
    assert found.note == note
    assert not found.is_finished


@pytest.mark.parametrize("race", [INTERPOLATION_RACE, GAP_RACE])
def test_every_method_can_warm_up(race: Any) -> None:
    assert race.methods[0] == "dkrls"
    assert set(race.references) <= set(race.rivals) == set(race.methods[1:])
    warm_up_race(race, race.methods)


def test_a_race_has_cases_of_all_its_kinds(ocean: Grid) -> None:
    for race, make in ((INTERPOLATION_RACE, make_held_out_cases), (GAP_RACE, make_hidden_cases)):
        kinds = [case.kind for case in make(ocean, [0])]  # type: ignore[operator]
        assert tuple(kinds) == race.kinds  # type: ignore[attr-defined]
