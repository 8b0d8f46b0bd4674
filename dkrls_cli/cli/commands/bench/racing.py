"""How a race on grids is run and printed, whichever race it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dkrls_cli.cli.describe import shape_text
from dkrls_cli.cli.fitting.inputs import open_inputs, read_values
from dkrls_cli.cli.report import Report
from dkrls_cli.cli.terminal.tables import Layout, pairs, table
from dkrls_cli.cli.texts import split_names
from dkrls_cli.errors import InputError, SettingError

if TYPE_CHECKING:
    from dkrls_cli.bench.real.race import CaseResult, GridRace, RaceCase
    from dkrls_cli.bench.worker import Worker
    from dkrls_cli.cli.commands.bench.options import RealOptions
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
"""Facts of a summary by their keys, in words."""


def run_race(
    race: GridRace[Any], inputs: Sequence[str], options: RealOptions, report: Report
) -> None:
    """Run a race, write its rows, and print how it ended."""
    methods = race_methods(race, options.methods, report)
    refuse_no_time(options.time_limit)
    refuse_unwritable(options.csv, options.overwrite, *inputs)
    grids = read_grids(race, inputs, options.var, report)
    print_machine(report)
    rows = race_rows(race, grids, methods, options, report)
    write_rows(rows, options.csv, options.overwrite)
    print_standings(race, rows, report)


def chosen_methods(text: str | None, known: Sequence[str]) -> list[str]:
    """Return the methods named in a text, or all that are known without one."""
    from dkrls_cli.bench.methods import select_methods

    return select_methods(None if text is None else split_names(text) or [], known)


def race_methods(race: GridRace[Any], text: str | None, report: Report) -> list[str]:
    """Return the methods that race, in the order of the registry."""
    from dkrls_cli.bench.methods import DKRLS

    methods = chosen_methods(text, race.methods)
    absent = [name for name in race.references if name not in methods]
    if absent and DKRLS in methods:
        report.note(f"Note: {', '.join(absent)} will not race; ratios are without them.")
    return methods


def refuse_no_time(limit: float) -> None:
    """Raise SettingError if there is no time to run a method in."""
    if not limit > 0:
        raise SettingError(f"Invalid --time-limit {limit:g}. Give seconds above 0.")


def refuse_unwritable(output: Path | None, overwrite: bool, *inputs: str) -> None:
    """Raise OutputError if an output cannot be written, before any work is done."""
    from dkrls_cli.files.output.checks import check_writable

    if output is not None:
        check_writable(output, overwrite=overwrite, inputs=inputs)


def read_grids(
    race: GridRace[Any], inputs: Sequence[str], var: str | None, report: Report
) -> dict[str, Grid]:
    """Return every file as a grid, by its path; raise InputError if one of them cannot race."""
    from dkrls_cli.files.source import expand

    paths = [path for given in inputs for path in expand(given)]
    grids = {path: read_thin(path, var, None, report) for path in paths}
    for path, grid in grids.items():
        if not race.gaps:
            grid.refuse_missing()
        refuse_without_cases(race, path, grid, report)
    return grids


def read_thin(path: str, var: str | None, levels: list[str] | None, report: Report) -> Grid:
    """Return a file as a grid that every method can use.

    It has no dimension of one coordinate, and no longitude twice.
    """
    from dkrls_cli.grid.alignment import drop_other_single
    from dkrls_cli.grid.grid import drop_repeats

    (source,) = open_inputs([path], [var] if var else None, levels, report)
    return drop_other_single(drop_repeats(read_values(source, report))[0], ())


def refuse_without_cases(race: GridRace[Any], path: str, grid: Grid, report: Report) -> None:
    """Raise InputError if nothing of a grid can be held out; print which kinds are not."""
    kinds = [case.kind for case in race.make_cases(grid, [0])]
    if not kinds:
        raise InputError(
            f"Nothing of '{path}' can be {race.taken}: {shape_text(grid.axes)}. "
            f"Expected {race.needs}."
        )
    for kind in race.kinds:
        if kind not in kinds:
            report.note(f"Note: '{path}' has no room for '{kind}'.")


def print_machine(report: Report) -> None:
    """Print the machine that the times are measured on, with --verbose."""
    from dkrls_cli.bench.machine import describe_machine

    report.detail(", ".join(f"{name} {value}" for name, value in describe_machine().items()))


def race_rows(
    race: GridRace[Any],
    grids: Mapping[str, Grid],
    methods: Sequence[str],
    options: RealOptions,
    report: Report,
) -> Rows:
    """Run all methods on all cases of all grids, print each grid when done, and return the rows."""
    from dkrls_cli.bench.real.race import case_name, make_case_rows, warm_up_race
    from dkrls_cli.bench.worker import Worker

    rows: Rows = []
    with Worker(partial(warm_up_race, race, methods)) as worker:
        for path, grid in grids.items():
            found: dict[str, Rows] = {}
            for case in race.make_cases(grid, range(options.seeds)):
                outcomes = run_case(worker, race, path, case, methods, options.time_limit, report)
                found[case_name(case)] = make_case_rows(race, path, case, outcomes)
            heading = f"{path}: {grid.name}, {shape_text(grid.axes)}"
            report.part(heading, *grid_parts(race.taken, found))
            rows += [row for of_case in found.values() for row in of_case]
    return rows


def run_case(
    worker: Worker,
    race: GridRace[Any],
    path: str,
    case: RaceCase,
    methods: Sequence[str],
    limit: float,
    report: Report,
) -> dict[str, CaseResult]:
    """Run every method on one case, and return the outcomes by method."""
    from dkrls_cli.bench.real.race import case_name
    from dkrls_cli.bench.real.race import run_case as run_method

    outcomes = {}
    for method in methods:
        with report.working(f"{path}, {case_name(case)}, {method}"):
            outcomes[method] = run_method(worker, race, method, case, limit)
        result = outcomes[method].note or f"rmse {outcomes[method].rmse:.4g}"
        report.detail(f"{path}, {case_name(case)}, {method}: {result}")
    return outcomes


def grid_parts(taken: str, cases: Mapping[str, Rows]) -> tuple[Layout, str]:
    """Return the table of a grid, a line per case, and the notes of its rows."""
    lines = [{taken: name, **case_line(of_case)} for name, of_case in cases.items()]
    notes = [
        f"{name}: {row['method']} {row['note']}."
        for name, of_case in cases.items()
        for row in of_case
        if row["note"]
    ]
    return table(lines), "\n".join(notes)


def case_line(rows: Rows) -> dict[str, float]:
    """Return the error of every method in one case, and the ratio and coverage of dkrls."""
    from dkrls_cli.bench.methods import DKRLS

    line = {row["method"]: row["rmse"] for row in rows}
    for row in rows:
        if row["method"] == DKRLS:
            line |= {"ratio": row["ratio"], "cover90": row["coverage90"]}
    return {head: float(f"{value:.3g}") for head, value in line.items()}


def write_rows(rows: Rows, output: Path | None, overwrite: bool) -> None:
    """Write one row per case and method as CSV; the file is complete or not there at all."""
    from dkrls_cli.files.output.atomic import atomic_write
    from dkrls_cli.files.text.csv.small import csv_text

    if output is not None:
        with atomic_write(output, overwrite=overwrite) as temporary:
            temporary.write_text(csv_text(rows), encoding="utf-8")


def print_standings(race: GridRace[Any], rows: Rows, report: Report) -> None:
    """Print how the methods stand over all cases."""
    from dkrls_cli.bench.machine import describe_machine
    from dkrls_cli.bench.real.race import summarise_rows

    summary = summarise_rows(race, rows)
    words = {"cases": f"{summary['cases']}, with a ratio {summary['compared']}"}
    words |= {text: summary[key] for key, text in _WORDS.items() if key in summary}
    data = {"rows": rows, "summary": summary, "machine": describe_machine()}
    report.result(data, table(summary["methods"]), pairs(words))
