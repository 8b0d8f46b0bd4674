"""The parts that all races on grids share: cases, results, rows and summaries."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dkrls_cli.bench.methods import DKRLS
from dkrls_cli.bench.worker import JobFailedError, JobTimeoutError, Worker
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.validation.metrics import scores

# Errors below this share of the largest value are round-off and count as equal: every method is
# exact on a constant field.
_ROUND_OFF = 1e-14


class RaceCase(Protocol):
    """Cells of a grid to predict, and the data to predict them from."""

    @property
    def kind(self) -> str:
        """How the cells were selected."""

    @property
    def seed(self) -> int | None:
        """Seed of the selection; None if nothing is random."""

    @property
    def columns(self) -> dict[str, Any]:
        """Columns of the rows that describe the case."""

    @property
    def truth(self) -> Grid:
        """The cells to predict, with their true values."""


AnyCase = TypeVar("AnyCase", bound=RaceCase)


@dataclass(frozen=True)
class CaseResult:
    """The result of a method in a case; NaN where it has none, and a note why."""

    rmse: float = math.nan
    max_error: float = math.nan
    seconds: float = math.nan
    coverage90: float = math.nan
    note: str = ""

    @property
    def is_finished(self) -> bool:
        """Whether there are answers."""
        return not math.isnan(self.rmse)


@dataclass(frozen=True)
class GridRace(Generic[AnyCase]):
    """A kind of race: how cells are selected, and which methods predict them.

    Attributes
    ----------
    taken
        What is done to the selected cells, in a word or two.
    kinds
        The kinds of cases of a grid that is large enough for all of them.
    needs
        What a grid must have for at least one case.
    gaps
        Whether grids with missing cells are accepted.
    rivals, references
        Methods besides the default fit; and those of them whose best result, case by case, ratios
        are relative to.
    make_cases
        Yields the cases of a grid for some seeds.
    run
        Runs a method on a case in this process, without a time limit.
    summarise
        Returns further results of the default fit, from its rows of all compared cases.
    """

    taken: str
    kinds: tuple[str, ...]
    needs: str
    gaps: bool
    rivals: tuple[str, ...]
    references: tuple[str, ...]
    make_cases: Callable[[Grid, Sequence[int]], Iterator[AnyCase]]
    run: Callable[[str, AnyCase], CaseResult]
    summarise: Callable[[Sequence[Mapping[str, Any]]], dict[str, Any]]

    @property
    def methods(self) -> tuple[str, ...]:
        """All methods, the default fit first."""
        return (DKRLS, *self.rivals)


def case_name(case: RaceCase) -> str:
    """Return the kind and seed of a case as text."""
    return case.kind if case.seed is None else f"{case.kind}, seed {case.seed}"


def warm_up_race(race: GridRace[Any], methods: Sequence[str]) -> None:
    """Run methods once on a tiny grid, so that imports and first calls are not timed."""
    x = np.linspace(0, 1, 8)
    grid = Grid(np.outer(np.sin(x), x), (axis_of("x", x), axis_of("y", x)))
    case = next(race.make_cases(grid, [0]))
    for method in methods:
        race.run(method, case)


def run_case(
    worker: Worker, race: GridRace[AnyCase], method: str, case: AnyCase, limit: float
) -> CaseResult:
    """Run a method on a case within `limit` seconds; a note says if it was stopped or failed."""
    try:
        result: CaseResult = worker.run(limit, race.run, method, case)
    except JobTimeoutError as error:
        return CaseResult(note=str(error))
    except JobFailedError as error:
        return CaseResult(note=f"failed: {error}")
    return result


def score_answers(
    truth: ArrayLike, answers: ArrayLike, seconds: float, coverage: float = math.nan
) -> CaseResult:
    """Return the result of answers that took `seconds`, with the coverage of their 90 % band."""
    found = scores(truth, answers)
    note = "" if math.isfinite(found["rmse"]) else "answers are not all finite"
    return CaseResult(found["rmse"], found["max_error"], seconds, coverage, note)


def share_true(holds: Sequence[bool]) -> float:
    """Return the share of True, or NaN of an empty sequence."""
    return sum(holds) / len(holds) if holds else math.nan


def make_case_rows(
    race: GridRace[AnyCase], grid: str, case: AnyCase, results: Mapping[str, CaseResult]
) -> list[dict[str, Any]]:
    """Return a row per method of a case, with the ratio of its error to the best reference's."""
    floor = _smallest_error(case.truth)
    best = min(
        (r.rmse for name, r in results.items() if name in race.references and r.is_finished),
        default=math.nan,
    )
    return [
        {
            "grid": grid,
            "variable": case.truth.name,
            **case.columns,
            "method": method,
            **asdict(result),
            "ratio": max(result.rmse, floor) / max(best, floor),
        }
        for method, result in results.items()
    ]


def _smallest_error(truth: Grid) -> float:
    """Return the error below which errors count as equal."""
    largest = float(np.nanmax(np.abs(truth.values)))
    return max(_ROUND_OFF * largest, float(np.finfo(np.float64).tiny))


def summarise_rows(race: GridRace[Any], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the default fit's ratios over all cases, and a summary of every method."""
    ours = [row for row in rows if row["method"] == DKRLS and not math.isnan(row["ratio"])]
    ratios = [row["ratio"] for row in ours]
    methods = list(dict.fromkeys(row["method"] for row in rows))
    return {
        "cases": sum(row["method"] == methods[0] for row in rows),
        "compared": len(ours),
        "geometric_mean": _geometric_mean(ratios),
        "worst": max(ratios, default=math.nan),
        **race.summarise(ours),
        "methods": [
            _summarise_method(name, [row for row in rows if row["method"] == name])
            for name in methods
        ],
    }


def _summarise_method(method: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a method's ratios over all cases it finished, and its median time."""
    seconds = [row["seconds"] for row in rows if not math.isnan(row["seconds"])]
    ratios = [row["ratio"] for row in rows if not math.isnan(row["ratio"])]
    return {
        "method": method,
        "finished": len(seconds),
        "geometric_mean": _geometric_mean(ratios),
        "worst": max(ratios, default=math.nan),
        "median_seconds": statistics.median(seconds) if seconds else math.nan,
    }


def _geometric_mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean, or NaN of an empty sequence."""
    return statistics.geometric_mean(ratios) if ratios else math.nan
