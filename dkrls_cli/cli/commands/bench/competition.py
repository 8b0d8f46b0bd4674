"""How the competition of Heaton et al. (2019) is run and printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dkrls_cli.cli.commands.bench.racing import Rows, print_machine, refuse_unwritable, write_rows
from dkrls_cli.cli.describe import shape_text
from dkrls_cli.cli.fitting.inputs import open_inputs, read_values
from dkrls_cli.cli.report import Report
from dkrls_cli.cli.terminal.tables import pairs, table

if TYPE_CHECKING:
    from dkrls_cli.bench.real.heaton import CompetitionCase
    from dkrls_cli.cli.commands.bench.options import CompetitionOptions

_COLUMNS = {
    "method": "method",
    "rmse": "rmse",
    "mae": "mae",
    "crps": "crps",
    "interval_score": "interval score",
    "coverage95": "cover95",
    "seconds": "seconds",
}
"""Keys of the rows that are printed, and the headings of their columns."""


def run_heaton(given: Sequence[str], options: CompetitionOptions, report: Report) -> None:
    """Fill every file, write the rows, and print them beside those published."""
    from dkrls_cli.files.source import expand

    refuse_unwritable(options.csv, options.overwrite)
    paths = [path for pattern in given for path in expand(pattern)]
    cases = {path: read_case(path, report) for path in paths}
    datasets = {path: choose_dataset(path, options.dataset, report) for path in cases}
    print_machine(report)
    of_files = [run_file(path, case, datasets[path], report) for path, case in cases.items()]
    write_rows([row for rows in of_files for row in rows], options.csv, options.overwrite)
    print_places(of_files, report)


def choose_dataset(path: str, given: str | None, report: Report) -> str | None:
    """Return the data set of a file, or None if it is none or not known; a note says so."""
    from dkrls_cli.bench.real.heaton import DATASETS, find_dataset

    dataset = find_dataset(path) if given is None else given
    if dataset in DATASETS:
        return dataset
    name = Path(path).name
    if given:
        report.note(f"Note: only dkrls is shown for '{name}', as --dataset {given} asks.")
    else:
        report.note(
            f"Note: '{name}' does not say by its name which data set it is, so only dkrls is "
            f"shown. Give --dataset {' or '.join(DATASETS)}."
        )
    return None


def read_case(path: str, report: Report) -> CompetitionCase:
    """Return the two variables of a file as a case, or raise InputError if they make none."""
    from dkrls_cli.bench.real.heaton import VARIABLES, make_competition_case

    train, truth = (
        read_values(source, report) for source in open_inputs([path], VARIABLES, None, report)
    )
    return make_competition_case(train, truth, path)


def run_file(path: str, case: CompetitionCase, dataset: str | None, report: Report) -> Rows:
    """Fill a file, print its table, and return its rows."""
    from dkrls_cli.bench.real.heaton import make_competition_rows, run_competition

    with report.working(f"{path}, filling {shape_text(case.train.axes)}"):
        ours = run_competition(case)
    rows = make_competition_rows(path, dataset, ours)
    shown = [{head: row[key] for key, head in _COLUMNS.items()} for row in rows]
    notes = [f"{row['method']}: {row['note']}." for row in rows if row["note"]]
    report.part(file_heading(path, case), table(shown), "\n".join(notes))
    return rows


def file_heading(path: str, case: CompetitionCase) -> str:
    """Return the heading of a file: its grid, and its numbers of training and test cells."""
    train, test = case.train.observed.sum(), case.test.sum()
    return f"{path}: {shape_text(case.train.axes)}, {train:,} train, {test:,} test"


def print_places(of_files: Sequence[Rows], report: Report) -> None:
    """Print our place in every file, and with --json all rows and the machine."""
    from dkrls_cli.bench.machine import describe_machine
    from dkrls_cli.bench.real.heaton import summarise_competition

    summary = [summarise_competition(rows) for rows in of_files]
    rows = [row for rows in of_files for row in rows]
    words = {place["file"]: place_text(place) for place in summary}
    data = {"rows": rows, "summary": summary, "machine": describe_machine()}
    report.result(data, pairs(words))


def place_text(place: Mapping[str, Any]) -> str:
    """Return our place among the published methods in words."""
    if place["dataset"] is None:
        return "no published results to compare with"
    if place["place"] is None:
        return "not all test cells are filled"
    return f"dkrls is number {place['place']} of {place['methods']} by rmse"
