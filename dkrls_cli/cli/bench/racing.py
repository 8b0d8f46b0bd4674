"""How a race on grids is run and told, whichever it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.describe import shape_text
from dkrls_cli.cli.fit import open_inputs, read_values
from dkrls_cli.cli.report import Report, pairs, table
from dkrls_cli.errors import InputError, SettingError

if TYPE_CHECKING:
    from dkrls_cli.bench.real.race import CaseResult, GridRace, RaceCase
    from dkrls_cli.bench.worker import Worker
    from dkrls_cli.grid.grid import Grid

Rows = list[dict[str, Any]]

_WORDS = {
    "within_2_percent": "share within 2 % of the best rival",
    "beats_all": "share better than every rival",
    "geometric_mean": "geometric mean of the ratio",
    "worst": "worst ratio",
    "worst_of_ten_samples": "worst ratio, ten samples or more",
    "least_coverage90": "least coverage of the 90 % band",
    "most_coverage90": "most coverage of the 90 % band",
}
"""What summaries hold, for people."""


@dataclass(frozen=True)
class Terms:
    """What the user said of a race: grids, methods, seeds, seconds, and where rows go."""

    inputs: list[str]
    var: str | None
    methods: str | None
    seeds: int
    limit: float
    csv: Path | None
    overwrite: bool


def held(race: GridRace[Any], terms: Terms, report: Report) -> None:
    """Run a race and print how it ended."""
    methods = chosen_methods(race, terms.methods, report)
    refuse_no_time(terms.limit)
    refuse_taken(terms.csv, terms.overwrite)
    grids = opened_grids(race, terms.inputs, terms.var, report)
    tell_machine(report)
    rows = raced(race, grids, methods, terms.seeds, terms.limit, report)
    write_rows(rows, terms.csv, terms.overwrite)
    tell_standings(race, rows, report)


def chosen_methods(race: GridRace[Any], text: str | None, report: Report) -> list[str]:
    """The methods that race, in the order of the registry."""
    from dkrls_cli.bench.methods import DKRLS, select_methods

    methods = select_methods(None if text is None else opt.names(text) or [], race.methods)
    absent = [name for name in race.references if name not in methods]
    if absent and DKRLS in methods:
        report.note(f"Note: {', '.join(absent)} will not race, and ratios are without.")
    return methods


def refuse_no_time(limit: float) -> None:
    """Refuse a limit that is none."""
    if not limit > 0:
        raise SettingError(f"Invalid --time-limit {limit:g}. Give seconds above 0.")


def refuse_taken(output: Path | None, overwrite: bool) -> None:
    """Refuse an output that cannot be written, before any work."""
    from dkrls_cli.files.output import check_writable

    if output is not None:
        check_writable(output, overwrite=overwrite)


def opened_grids(
    race: GridRace[Any], inputs: Sequence[str], var: str | None, report: Report
) -> dict[str, Grid]:
    """Every file as a grid of its own; one that cannot race is refused before any does."""
    from dkrls_cli.files.source import expand

    paths = [path for given in inputs for path in expand(given)]
    grids = {path: read_values(open_inputs([path], var, None, report), report) for path in paths}
    for path, grid in grids.items():
        if not race.gaps:
            grid.refuse_missing()
        refuse_nothing_held(race, path, grid, report)
    return grids


def refuse_nothing_held(race: GridRace[Any], path: str, grid: Grid, report: Report) -> None:
    """Refuse a grid of which nothing can be held out; say what will not be."""
    there = [case.kind for case in race.make_cases(grid, [0])]
    if not there:
        raise InputError(
            f"Nothing of '{path}' can be {race.taken}: {shape_text(grid.axes)}. "
            f"Expected {race.needs}."
        )
    for kind in race.kinds:
        if kind not in there:
            report.note(f"Note: '{path}' has no room for '{kind}'.")


def tell_machine(report: Report) -> None:
    """Say on what the clock runs."""
    from dkrls_cli.bench.machine import describe_machine

    report.detail(", ".join(f"{name} {value}" for name, value in describe_machine().items()))


def raced(
    race: GridRace[Any],
    grids: Mapping[str, Grid],
    methods: Sequence[str],
    seeds: int,
    limit: float,
    report: Report,
) -> Rows:
    """All methods on all cases of all grids, told grid by grid."""
    from dkrls_cli.bench.real.race import case_name, make_case_rows, warm_up_race
    from dkrls_cli.bench.worker import Worker

    rows: Rows = []
    with Worker(partial(warm_up_race, race, methods)) as worker:
        for path, grid in grids.items():
            found: dict[str, Rows] = {}
            for case in race.make_cases(grid, range(seeds)):
                outcomes = outcomes_of(worker, race, path, case, methods, limit, report)
                found[case_name(case)] = make_case_rows(race, path, case, outcomes)
            heading = f"{path}: {grid.name}, {shape_text(grid.axes)}"
            report.part(grid_text(heading, race.taken, found))
            rows += [row for of_case in found.values() for row in of_case]
    return rows


def outcomes_of(
    worker: Worker,
    race: GridRace[Any],
    path: str,
    case: RaceCase,
    methods: Sequence[str],
    limit: float,
    report: Report,
) -> dict[str, CaseResult]:
    """Every method on one case."""
    from dkrls_cli.bench.real.race import case_name, run_case

    outcomes = {}
    for method in methods:
        with report.working(f"{path}, {case_name(case)}, {method}"):
            outcomes[method] = run_case(worker, race, method, case, limit)
        told = outcomes[method].note or f"rmse {outcomes[method].rmse:.4g}"
        report.detail(f"{path}, {case_name(case)}, {method}: {told}")
    return outcomes


def grid_text(heading: str, taken: str, cases: Mapping[str, Rows]) -> str:
    """The cases of a grid, a line each, and below what is to be said of some."""
    lines = [{taken: name, **case_line(of_case)} for name, of_case in cases.items()]
    notes = [
        f"{name}: {row['method']} {row['note']}."
        for name, of_case in cases.items()
        for row in of_case
        if row["note"]
    ]
    return "\n".join([heading, "", table(lines), *notes, ""])


def case_line(rows: Rows) -> dict[str, float]:
    """The error of every method in one case, and how ours stands."""
    from dkrls_cli.bench.methods import DKRLS

    line = {row["method"]: row["rmse"] for row in rows}
    for row in rows:
        if row["method"] == DKRLS:
            line |= {"ratio": row["ratio"], "cover90": row["coverage90"]}
    return {head: float(f"{value:.3g}") for head, value in line.items()}


def write_rows(rows: Rows, output: Path | None, overwrite: bool) -> None:
    """One row per case and method as CSV, whole or not at all."""
    from dkrls_cli.files.csv import csv_text
    from dkrls_cli.files.output import atomic_write

    if output is not None:
        with atomic_write(output, overwrite=overwrite) as temporary:
            temporary.write_text(csv_text(rows), encoding="utf-8")


def tell_standings(race: GridRace[Any], rows: Rows, report: Report) -> None:
    """Print how the methods stand over all cases."""
    from dkrls_cli.bench.machine import describe_machine
    from dkrls_cli.bench.real.race import summarise_rows

    summary = summarise_rows(race, rows)
    words = {"cases": f"{summary['cases']}, with a ratio {summary['compared']}"}
    words |= {text: summary[key] for key, text in _WORDS.items() if key in summary}
    text = f"{table(summary['methods'])}\n\n{pairs(words)}"
    report.result({"rows": rows, "summary": summary, "machine": describe_machine()}, text)
