"""The race of the default fit against interpolators, on held-out cells of complete grids."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from dkrls_cli.bench.methods import DKRLS
from dkrls_cli.bench.real.cases import KINDS, HeldOutCase, make_held_out_cases
from dkrls_cli.bench.real.race import CaseResult, GridRace, score_answers, share_true
from dkrls_cli.bench.rivals.interpolators import (
    INTERPOLATORS,
    InterpolationProblem,
    make_problem,
    move_first,
)
from dkrls_cli.model import fit as fitting
from dkrls_cli.model.validation.metrics import coverage90

# A ratio up to this counts as good as the best interpolator.
CLOSE = 1.02

# Training samples per dimension from which the worst ratio is also reported separately.
ENOUGH_SAMPLES = 10


def run_interpolation(method: str, case: HeldOutCase) -> CaseResult:
    """Run a method on a case in this process, without a time limit."""
    return _run_default_fit(case) if method == DKRLS else _run_interpolator(method, case)


def _run_default_fit(case: HeldOutCase) -> CaseResult:
    axes = case.query_axes
    start = perf_counter()
    trained = fitting.fit(case.train)
    answers = trained.values_on(axes)
    seconds = perf_counter() - start
    truth = case.truth.values
    return score_answers(
        truth, answers, seconds, coverage90(truth, answers, trained.std_on(axes) ** 2)
    )


def _run_interpolator(method: str, case: HeldOutCase) -> CaseResult:
    needed = INTERPOLATORS[method].degree + 1
    if case.samples < needed:
        return CaseResult(
            note=f"skipped: needs {needed} samples, {case.shortest} has {case.samples}"
        )
    problem = make_interpolation_problem(case)
    start = perf_counter()
    answers = INTERPOLATORS[method].solve(problem)
    seconds = perf_counter() - start
    return score_answers(move_first(case.truth.values, case.held), answers, seconds)


def make_interpolation_problem(case: HeldOutCase) -> InterpolationProblem:
    """Return a case as a problem along the held-out dimensions, for each slice of the others."""
    nodes = [axis.numbers for axis in case.train.axes]
    asked = {place: case.truth.axes[place].numbers for place in case.held}
    return make_problem(case.train.values, nodes, asked)


def summarise_interpolation(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return how often the default fit is close to the best, and its worst with enough samples."""
    sampled = [row["ratio"] for row in rows if row["samples"] >= ENOUGH_SAMPLES]
    return {
        "within_2_percent": share_true([row["ratio"] <= CLOSE for row in rows]),
        "worst_of_ten_samples": max(sampled, default=math.nan),
    }


INTERPOLATION_RACE = GridRace(
    taken="held out",
    kinds=KINDS,
    needs="a dimension with at least three coordinates that are not labels",
    gaps=False,
    rivals=tuple(INTERPOLATORS),
    references=("linear", "spline3", "spline5"),
    make_cases=make_held_out_cases,
    run=run_interpolation,
    summarise=summarise_interpolation,
)
