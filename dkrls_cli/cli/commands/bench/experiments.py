"""How the paper's experiments are run and printed."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dkrls_cli.cli.commands.bench.racing import (
    chosen_methods,
    refuse_no_time,
    refuse_unwritable,
    write_rows,
)
from dkrls_cli.cli.report import Report
from dkrls_cli.cli.terminal.tables import Layout, available_width, table

if TYPE_CHECKING:
    from dkrls_cli.bench.paper.dataset import Dataset
    from dkrls_cli.bench.paper.entries import RaceEntry
    from dkrls_cli.bench.paper.experiment import RaceOptions, RaceRow
    from dkrls_cli.bench.paper.search_results import SearchResult
    from dkrls_cli.cli.commands.bench.options import ExperimentOptions

ALONE = ("paper-2d", "cross")
"""Experiments that ``dkrls bench`` runs when no race is named."""

_WHOSE = {"paper": "the paper's", "searched": "searched"}
_WIDE = 100  # columns of a terminal from which on a table shows all of its columns
_RANGES = ("seeds", "best", "worst")
"""Columns that are left out on a narrower terminal."""


def run_experiments(
    datasets: Sequence[Dataset], options: ExperimentOptions, seconds: float, report: Report
) -> None:
    """Run every method on some datasets, `seconds` for each, and print the results."""
    from dkrls_cli.bench.paper.entries import PAPER_METHODS
    from dkrls_cli.bench.paper.experiment import RaceOptions

    methods = chosen_methods(options.methods, PAPER_METHODS)
    refuse_no_time(seconds)
    terms = RaceOptions(options.seeds, math.inf if options.full else seconds)
    before = earlier_rows(options, report)
    refuse_undrawable(options.plot)
    rows: list[RaceRow] = []
    for dataset in datasets:
        for row in measured_rows(dataset, methods, terms, options, before, report):
            rows.append(row)
            if options.full and options.csv is not None:  # an interrupted run can be resumed
                write_rows(merge_rows(rows, before), options.csv, True)
        report.part(*dataset_parts(dataset, [r for r in rows if r["dataset"] == dataset.name]))
    if not options.full:
        write_rows(rows, options.csv, options.overwrite)
    draw(rows, options.plot)
    print_verdicts(rows, [dataset.name for dataset in datasets], report)


def earlier_rows(options: ExperimentOptions, report: Report) -> list[RaceRow]:
    """Return the rows of an interrupted full run; raise OutputError if outputs exist otherwise."""
    from dkrls_cli.bench.paper.resume import parse_rows

    csv, overwrite = options.csv, options.overwrite
    refuse_unwritable(options.plot, overwrite)
    if options.full and csv is not None and csv.exists() and not overwrite:
        return parse_rows(csv.read_text(encoding="utf-8"), str(csv))
    refuse_unwritable(csv, overwrite)
    if options.full and csv is None:
        report.note("Note: with --csv FILE an interrupted run can be resumed.")
    return []


def merge_rows(rows: Sequence[RaceRow], before: Sequence[RaceRow]) -> list[RaceRow]:
    """Return the rows of this run, and those of an earlier one that it has not reached yet."""
    known = {row_key(row) for row in rows}
    return [*rows, *(row for row in before if row_key(row) not in known)]


def row_key(row: RaceRow) -> tuple[str, str, str]:
    """Return what identifies a row: dataset, method and whose settings."""
    return row["dataset"], row["method"], row["settings"]


def measured_rows(
    dataset: Dataset,
    methods: Sequence[str],
    terms: RaceOptions,
    options: ExperimentOptions,
    before: Sequence[RaceRow],
    report: Report,
) -> Iterator[RaceRow]:
    """Yield the rows of a dataset as they are measured; earlier rows are not measured again."""
    from dkrls_cli.bench.paper.entries import make_entries
    from dkrls_cli.bench.paper.resume import find_row

    found = search_all(dataset, methods, report) if options.search else None
    for entry in make_entries(dataset.name, methods, found):
        known = find_row(before, entry, dataset, terms)
        if known is not None:
            report.note(f"Note: {dataset.name}, {entry.label} is already in '{options.csv}'.")
            yield known
        else:
            yield measure_entry(entry, dataset, terms, report)


def search_all(dataset: Dataset, methods: Sequence[str], report: Report) -> dict[str, SearchResult]:
    """Search the settings of methods on this machine, and return them by method."""
    from dkrls_cli.bench.paper.search import SEARCH_RANGES, search_settings

    found = {}
    for method in methods:
        if method in SEARCH_RANGES:
            with report.working(f"{dataset.name}, searching settings of {method}"):
                found[method] = search_settings(dataset, method)
            report.detail(f"{dataset.name}, {method}: found {found[method]}")
    return found


def measure_entry(
    entry: RaceEntry, dataset: Dataset, terms: RaceOptions, report: Report
) -> RaceRow:
    """Run a method on a dataset with a progress bar, and return its row."""
    from dkrls_cli.bench.paper.experiment import run_method

    with report.working(f"{dataset.name}, {entry.label}") as progress:
        row = run_method(entry, dataset, terms, lambda step: progress(step.samples / step.of))
    report.detail(f"{dataset.name}, {entry.label}: {row['parameters'] or 'its own settings'}")
    return row


def dataset_parts(dataset: Dataset, rows: Sequence[RaceRow]) -> tuple[str, Layout, str]:
    """Return the heading and the table of a dataset, and the notes of its rows."""
    from dkrls_cli.bench.paper.experiment import published_error_column

    size = " x ".join(str(n) for n in dataset.make_task(0).values.shape)
    what = {
        "max_error": "error is the largest",
        "normalized_max_error": "error is the largest, over the largest value",
    }[published_error_column(dataset.name)]
    heading = f"{dataset.name}: {size} train, {what}, median of the splits"
    lines = [table_line(row, published_error_column(dataset.name)) for row in rows]
    if available_width() < _WIDE:
        lines = [{k: v for k, v in line.items() if k not in _RANGES} for line in lines]
    return heading, table(lines), "\n".join(note_lines(rows))


def table_line(row: RaceRow, error: str) -> dict[str, Any]:
    """Return the columns of a row that the table shows; `error` is the key of its error."""
    return {
        "method": row_label(row),
        "learnt": learnt_text(row),
        "seeds": row["seeds"],
        "fit s": round_short(row["seconds"]),
        "ask s": round_short(row["predict_seconds"]),
        "error": round_short(row[error]),
        "best": round_short(row[f"{error}_min"]),
        "worst": round_short(row[f"{error}_max"]),
        "MB": round_short(row["peak_mb"]),
        "paper s": round_short(row["paper_seconds"], 3),
        "paper": round_short(row["paper_error"], 3),
    }


def row_label(row: RaceRow) -> str:
    """Return the name of a method, with a star if its settings were found by a search."""
    from dkrls_cli.bench.paper.entries import SEARCHED

    return f"{row['method']}{'*' if row['settings'] == SEARCHED else ''}"


def learnt_text(row: RaceRow) -> str:
    """Return the share of the samples that was learnt, in percent."""
    learnt, of = row["samples_learnt"], row["samples"]
    return "all" if learnt == of else f"{100 * learnt / of:.2g} %"


def round_short(value: float, digits: int = 2) -> float | int:
    """Return a number with few digits; from 100 on as a whole number."""
    if math.isnan(value):
        return value
    return round(value) if value >= 100 else float(f"{value:.{digits}g}")


def note_lines(rows: Sequence[RaceRow]) -> Iterator[str]:
    """Yield the notes of rows, wrapped to the terminal; rows with the same note share it."""
    labels_by_note: dict[str, list[str]] = {}
    for row in rows:
        if row["note"]:
            labels_by_note.setdefault(row["note"], []).append(row_label(row))
    for note, labels in labels_by_note.items():
        yield from _wrap(f"{', '.join(labels)}: {note}.")
    spent = [row["search_seconds"] for row in rows if not math.isnan(row["search_seconds"])]
    if spent:
        yield from _wrap(
            f"* settings found by a search on training data, {sum(spent):.0f} s in all."
        )


def _wrap(text: str) -> list[str]:
    """Return a text in lines that fit the terminal, all but the first indented."""
    return textwrap.wrap(text, available_width(), subsequent_indent="  ")


def refuse_undrawable(plot: Path | None) -> None:
    """Raise an error if a plot cannot be drawn, before any work is done."""
    if plot is not None:
        from dkrls_cli.plots.style import check_drawable

        check_drawable(plot)


def draw(rows: Sequence[RaceRow], plot: Path | None) -> None:
    """Draw errors against times, if a file for it was given."""
    if plot is not None:
        from dkrls_cli.bench.plots import draw_race

        draw_race([plotted_row(row) for row in rows], plot, overwrite=True)


def plotted_row(row: RaceRow) -> RaceRow:
    """Return a row with the error that the paper reports as `max_error`.

    The paper's own results are kept only where the row has the paper's settings.
    """
    from dkrls_cli.bench.paper.entries import PAPER, RECURSIVE
    from dkrls_cli.bench.paper.experiment import published_error_column

    comparable = row["settings"] == PAPER and row["method"] != RECURSIVE
    without = {} if comparable else {"paper_seconds": None, "paper_error": None}
    return {**row, "max_error": row[published_error_column(row["dataset"])], **without}


def print_verdicts(rows: Sequence[RaceRow], datasets: Iterable[str], report: Report) -> None:
    """Print how D-KRLS compares with the other methods, and the machine."""
    from dkrls_cli.bench.machine import describe_machine
    from dkrls_cli.bench.paper.experiment import compare_with_paper_methods
    from dkrls_cli.bench.paper.run import THREADS

    on = describe_machine() | {"threads": THREADS}
    verdicts = {name: compare_with_paper_methods(rows, name) for name in datasets}
    lines = [line for name, verdict in verdicts.items() for line in verdict_lines(name, verdict)]
    lines.append(", ".join(f"{name} {value}" for name, value in on.items()))
    wrapped = [part for line in lines for part in textwrap.wrap(line, available_width())]
    report.result({"rows": rows, "summary": verdicts, "machine": on}, "\n".join(wrapped))


def verdict_lines(dataset: str, verdict: Sequence[RaceRow]) -> Iterator[str]:
    """Yield a sentence for each comparison of D-KRLS with the others on a dataset."""
    for row in verdict:
        yield (
            f"{dataset}: {row_label(row)} is {row['times_as_fast']:.3g} times as fast as the "
            f"fastest and {row['times_as_accurate']:.3g} times as accurate as the best of the "
            f"paper's others with {_WHOSE[row['against']]} settings."
        )
