"""The default fit against the interpolators of today, on held-out cells of any grid."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np

from dkrls_cli import model
from dkrls_cli.axes import axis_of
from dkrls_cli.benchmark.cases import Case, cases_of
from dkrls_cli.benchmark.rivals import RIVALS, Problem, laid_out, problem_of
from dkrls_cli.benchmark.worker import FailedError, OutOfTimeError, Worker
from dkrls_cli.grid import Grid
from dkrls_cli.metrics import coverage90, scores

OURS = "dkrls"
METHODS = (OURS, *RIVALS)
REFERENCES = ("linear", "spline3", "spline5")
"""Ratios are to the best of these, picked in hindsight case by case."""

CLOSE = 1.02
ENOUGH_SAMPLES = 10
_NONE = math.nan
_ROUNDING = 1e-14
"""Errors this small beside the largest value are none: all answer a constant field alike."""


@dataclass(frozen=True)
class Outcome:
    """How a method did in a case; NaN where it was not run to the end, and the note says why."""

    rmse: float = _NONE
    max_error: float = _NONE
    seconds: float = _NONE
    coverage90: float = _NONE
    note: str = ""

    @property
    def finished(self) -> bool:
        """Whether there are answers."""
        return not math.isnan(self.rmse)


def outcome_of(worker: Worker, method: str, case: Case, limit: float) -> Outcome:
    """Run a method on a case within a time limit; one that cannot or may not end says so."""
    needed = RIVALS[method].degree + 1 if method in RIVALS else 1
    if case.samples < needed:
        return Outcome(note=f"skipped: needs {needed} samples, {case.shortest} has {case.samples}")
    try:
        outcome: Outcome = worker.run(limit, attempt, method, case)
    except OutOfTimeError as error:
        return Outcome(note=str(error))
    except FailedError as error:
        return Outcome(note=f"failed: {error}")
    return outcome


def attempt(method: str, case: Case) -> Outcome:
    """Run a method on a case, here and to the end."""
    return _ours(case) if method == OURS else _rival(method, case)


def warm_up(methods: Sequence[str]) -> None:
    """Run methods once on very little: imports and first calls are not what is timed."""
    x = np.linspace(0, 1, 8)
    grid = Grid(np.outer(np.sin(x), x), (axis_of("x", x), axis_of("y", x)))
    case = next(cases_of(grid, [0]))
    for method in methods:
        attempt(method, case)


def _ours(case: Case) -> Outcome:
    queries = case.queries
    start = perf_counter()
    trained = model.fit(case.train)
    answers = trained.cascade.predict(queries)
    seconds = perf_counter() - start
    spread = trained.variance(queries)
    truth = case.truth.values
    return _scored(truth, answers, seconds, coverage90(truth, answers, spread))


def _rival(method: str, case: Case) -> Outcome:
    problem = interpolation(case)
    start = perf_counter()
    answers = RIVALS[method].answer(problem)
    seconds = perf_counter() - start
    return _scored(laid_out(case.truth.values, case.held), answers, seconds)


def interpolation(case: Case) -> Problem:
    """A case as interpolators see it: along what is held out, slice by slice of the rest."""
    nodes = [axis.numbers for axis in case.train.axes]
    asked = {place: case.queries[place] for place in case.held}
    return problem_of(case.train.values, nodes, asked)


def _scored(truth: Any, answers: Any, seconds: float, cover: float = _NONE) -> Outcome:
    found = scores(truth, answers)
    note = "" if math.isfinite(found["rmse"]) else "answers are not all finite"
    return Outcome(found["rmse"], found["max_error"], seconds, cover, note)


def rows_of(grid: str, case: Case, outcomes: Mapping[str, Outcome]) -> list[dict[str, Any]]:
    """One row per method of a case, with the ratio of its error to the best reference's."""
    floor = _round_off(case)
    best = min(
        (o.rmse for name, o in outcomes.items() if name in REFERENCES and o.finished),
        default=_NONE,
    )
    return [
        {
            "grid": grid,
            "variable": case.truth.name,
            "held_out": case.protocol,
            "seed": case.seed,
            "samples": case.samples,
            "method": method,
            **asdict(outcome),
            "ratio": max(outcome.rmse, floor) / max(best, floor),
        }
        for method, outcome in outcomes.items()
    ]


def _round_off(case: Case) -> float:
    largest = float(np.abs(case.truth.values).max())
    return max(_ROUNDING * largest, float(np.finfo(np.float64).tiny))


def summary_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How the default fit stands to the best reference over all cases, and every method's means."""
    ours = [row for row in rows if row["method"] == OURS and not math.isnan(row["ratio"])]
    ratios = [row["ratio"] for row in ours]
    sampled = [row["ratio"] for row in ours if row["samples"] >= ENOUGH_SAMPLES]
    methods = list(dict.fromkeys(row["method"] for row in rows))
    return {
        "cases": sum(row["method"] == methods[0] for row in rows),
        "compared": len(ratios),
        "within_2_percent": float(np.mean(np.array(ratios) <= CLOSE)) if ratios else _NONE,
        "geometric_mean": _geometric_mean(ratios),
        "worst": max(ratios, default=_NONE),
        "worst_of_ten_samples": max(sampled, default=_NONE),
        "methods": [
            _standing(name, [row for row in rows if row["method"] == name]) for name in methods
        ],
    }


def _standing(method: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A method's ratios over all cases it finished, and the seconds it took."""
    seconds = [row["seconds"] for row in rows if not math.isnan(row["seconds"])]
    ratios = [row["ratio"] for row in rows if not math.isnan(row["ratio"])]
    return {
        "method": method,
        "finished": len(seconds),
        "geometric_mean": _geometric_mean(ratios),
        "worst": max(ratios, default=_NONE),
        "median_seconds": statistics.median(seconds) if seconds else _NONE,
    }


def _geometric_mean(ratios: Sequence[float]) -> float:
    return statistics.geometric_mean(ratios) if ratios else _NONE
