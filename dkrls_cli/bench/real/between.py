"""The default fit against the interpolators of today, on held-out cells of any grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from dkrls_cli.bench.real.cases import KINDS, Case, cases_of
from dkrls_cli.bench.real.race import NONE, OURS, Outcome, Race, scored, share
from dkrls_cli.bench.rivals import RIVALS, Problem, laid_out, problem_of
from dkrls_cli.model import fit as fitting
from dkrls_cli.model.metrics import coverage90

CLOSE = 1.02
ENOUGH_SAMPLES = 10


def attempt(method: str, case: Case) -> Outcome:
    """Run a method on a case, here and to the end."""
    return _ours(case) if method == OURS else _rival(method, case)


def _ours(case: Case) -> Outcome:
    queries = case.queries
    start = perf_counter()
    trained = fitting.fit(case.train)
    answers = trained.cascade.predict(queries)
    seconds = perf_counter() - start
    spread = trained.variance(queries)
    truth = case.truth.values
    return scored(truth, answers, seconds, coverage90(truth, answers, spread))


def _rival(method: str, case: Case) -> Outcome:
    needed = RIVALS[method].degree + 1
    if case.samples < needed:
        return Outcome(note=f"skipped: needs {needed} samples, {case.shortest} has {case.samples}")
    problem = interpolation(case)
    start = perf_counter()
    answers = RIVALS[method].answer(problem)
    seconds = perf_counter() - start
    return scored(laid_out(case.truth.values, case.held), answers, seconds)


def interpolation(case: Case) -> Problem:
    """A case as interpolators see it: along what is held out, slice by slice of the rest."""
    nodes = [axis.numbers for axis in case.train.axes]
    asked = {place: case.queries[place] for place in case.held}
    return problem_of(case.train.values, nodes, asked)


def summarise(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """How often the default fit is as good as the best rival, and its worst with samples enough."""
    sampled = [row["ratio"] for row in rows if row["samples"] >= ENOUGH_SAMPLES]
    return {
        "within_2_percent": share([row["ratio"] <= CLOSE for row in rows]),
        "worst_of_ten_samples": max(sampled, default=NONE),
    }


REAL = Race(
    taken="held out",
    kinds=KINDS,
    needs="a dimension of three coordinates at least that are not labels",
    gaps=False,
    rivals=tuple(RIVALS),
    references=("linear", "spline3", "spline5"),
    cases=cases_of,
    attempt=attempt,
    summarise=summarise,
)
