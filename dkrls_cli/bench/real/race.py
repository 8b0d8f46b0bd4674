"""What all races on grids have in common: cases, those who answer them, and how they stand."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dkrls_cli.bench.worker import FailedError, OutOfTimeError, Worker
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.metrics import scores

OURS = "dkrls"
NONE = math.nan
_ROUNDING = 1e-14
"""Errors this small beside the largest value are none: all answer a constant field alike."""


class Case(Protocol):
    """Cells of a grid that are asked for, and what is known to answer them from."""

    @property
    def kind(self) -> str:
        """Which cells are asked for."""

    @property
    def seed(self) -> int | None:
        """What they were drawn with; None where nothing is random."""

    @property
    def facts(self) -> dict[str, Any]:
        """What rows say of the case."""

    @property
    def truth(self) -> Grid:
        """What is asked for, with its true values."""


AnyCase = TypeVar("AnyCase", bound=Case)


@dataclass(frozen=True)
class Outcome:
    """How a method did in a case; NaN where it was not run to the end, and the note says why."""

    rmse: float = NONE
    max_error: float = NONE
    seconds: float = NONE
    coverage90: float = NONE
    note: str = ""

    @property
    def finished(self) -> bool:
        """Whether there are answers."""
        return not math.isnan(self.rmse)


@dataclass(frozen=True)
class Race(Generic[AnyCase]):
    """A way to ask for cells of a grid, and who answers.

    Attributes
    ----------
    taken
        What is done to the cells asked for, in a word or two.
    kinds
        The kinds of cases there are for a grid that has room for them.
    needs
        What a grid must have to race at all.
    gaps
        Whether grids with missing cells race.
    rivals, references
        Who races against the default fit; ratios are to the best of the references, picked in
        hindsight case by case.
    cases
        The cases of a grid, for some seeds.
    attempt
        Runs a method on a case, here and to the end.
    summarise
        What else to say of the default fit, from its rows of all cases that were compared.
    """

    taken: str
    kinds: tuple[str, ...]
    needs: str
    gaps: bool
    rivals: tuple[str, ...]
    references: tuple[str, ...]
    cases: Callable[[Grid, Sequence[int]], Iterator[AnyCase]]
    attempt: Callable[[str, AnyCase], Outcome]
    summarise: Callable[[Sequence[Mapping[str, Any]]], dict[str, Any]]

    @property
    def methods(self) -> tuple[str, ...]:
        """All who race."""
        return (OURS, *self.rivals)


def case_name(case: Case) -> str:
    """Kind and seed in words."""
    return case.kind if case.seed is None else f"{case.kind}, seed {case.seed}"


def warm_up(race: Race[Any], methods: Sequence[str]) -> None:
    """Run methods once on very little: imports and first calls are not what is timed."""
    x = np.linspace(0, 1, 8)
    grid = Grid(np.outer(np.sin(x), x), (axis_of("x", x), axis_of("y", x)))
    case = next(race.cases(grid, [0]))
    for method in methods:
        race.attempt(method, case)


def outcome_of(
    worker: Worker, race: Race[AnyCase], method: str, case: AnyCase, limit: float
) -> Outcome:
    """Run a method on a case within a time limit; one that cannot or may not end says so."""
    try:
        outcome: Outcome = worker.run(limit, race.attempt, method, case)
    except OutOfTimeError as error:
        return Outcome(note=str(error))
    except FailedError as error:
        return Outcome(note=f"failed: {error}")
    return outcome


def scored(truth: ArrayLike, answers: ArrayLike, seconds: float, cover: float = NONE) -> Outcome:
    """The outcome of answers that took so long, and of error bars that cover so much."""
    found = scores(truth, answers)
    note = "" if math.isfinite(found["rmse"]) else "answers are not all finite"
    return Outcome(found["rmse"], found["max_error"], seconds, cover, note)


def share(held: Sequence[bool]) -> float:
    """Share of what holds; NaN of nothing."""
    return sum(held) / len(held) if held else NONE


def rows_of(
    race: Race[AnyCase], grid: str, case: AnyCase, outcomes: Mapping[str, Outcome]
) -> list[dict[str, Any]]:
    """One row per method of a case, with the ratio of its error to the best reference's."""
    floor = _round_off(case.truth)
    best = min(
        (o.rmse for name, o in outcomes.items() if name in race.references and o.finished),
        default=NONE,
    )
    return [
        {
            "grid": grid,
            "variable": case.truth.name,
            **case.facts,
            "method": method,
            **asdict(outcome),
            "ratio": max(outcome.rmse, floor) / max(best, floor),
        }
        for method, outcome in outcomes.items()
    ]


def _round_off(truth: Grid) -> float:
    largest = float(np.nanmax(np.abs(truth.values)))
    return max(_ROUNDING * largest, float(np.finfo(np.float64).tiny))


def summary_of(race: Race[Any], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How the default fit stands to the best reference over all cases, and every method's means."""
    ours = [row for row in rows if row["method"] == OURS and not math.isnan(row["ratio"])]
    ratios = [row["ratio"] for row in ours]
    methods = list(dict.fromkeys(row["method"] for row in rows))
    return {
        "cases": sum(row["method"] == methods[0] for row in rows),
        "compared": len(ours),
        "geometric_mean": _geometric_mean(ratios),
        "worst": max(ratios, default=NONE),
        **race.summarise(ours),
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
        "worst": max(ratios, default=NONE),
        "median_seconds": statistics.median(seconds) if seconds else NONE,
    }


def _geometric_mean(ratios: Sequence[float]) -> float:
    return statistics.geometric_mean(ratios) if ratios else NONE
