"""How the paper's experiments are run and told."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.bench.racing import refuse_no_time, refuse_taken, write_rows
from dkrls_cli.cli.report import Report, table, width

if TYPE_CHECKING:
    from dkrls_cli.bench.paper.dataset import Dataset
    from dkrls_cli.bench.paper.entries import RaceEntry
    from dkrls_cli.bench.paper.experiment import RaceOptions, RaceRow
    from dkrls_cli.bench.paper.search_results import SearchResult

BARE = ("paper-2d", "cross")
"""What is run where none is named."""

_WHOSE = {"paper": "the paper's", "searched": "searched"}
_WIDE = 100
_RANGES = ("seeds", "best", "worst")
"""Columns that a narrow terminal has no room for."""


@dataclass(frozen=True)
class Wish:
    """What the user said: methods, splits, seconds, and where things go."""

    methods: str | None
    seeds: int
    time_limit: float
    full: bool
    search: bool
    csv: Path | None
    plot: Path | None
    overwrite: bool


def run(datasets: Sequence[Dataset], wish: Wish, report: Report) -> None:
    """Run every method on some datasets and print how they did."""
    from dkrls_cli.bench.paper.experiment import RaceOptions

    methods = chosen_methods(wish.methods)
    refuse_no_time(wish.time_limit)
    terms = RaceOptions(wish.seeds, math.inf if wish.full else wish.time_limit)
    before = rows_before(wish, report)
    refuse_undrawable(wish.plot)
    rows: list[RaceRow] = []
    for dataset in datasets:
        for row in rows_of(dataset, methods, terms, wish, before, report):
            rows.append(row)
            if wish.full and wish.csv is not None:  # what is done stays, whatever comes
                write_rows(all_rows(rows, before), wish.csv, True)
        report.part(dataset_text(dataset, [r for r in rows if r["dataset"] == dataset.name]))
    if not wish.full:
        write_rows(rows, wish.csv, wish.overwrite)
    draw(rows, wish.plot)
    tell(rows, [dataset.name for dataset in datasets], report)


def chosen_methods(text: str | None) -> list[str]:
    """The methods that race."""
    from dkrls_cli.bench.methods import select_methods
    from dkrls_cli.bench.paper.entries import PAPER_METHODS

    return select_methods(None if text is None else opt.names(text) or [], PAPER_METHODS)


def rows_before(wish: Wish, report: Report) -> list[RaceRow]:
    """Rows of a full run that was interrupted; without one the outputs must be free."""
    from dkrls_cli.bench.paper.resume import parse_rows

    refuse_taken(wish.plot, wish.overwrite)
    resumed = wish.full and wish.csv is not None and wish.csv.exists() and not wish.overwrite
    if not resumed:
        refuse_taken(wish.csv, wish.overwrite)
        if wish.full and wish.csv is None:
            report.note("Note: with --csv FILE a run that is interrupted can be gone on with.")
        return []
    assert wish.csv is not None  # it exists
    return parse_rows(wish.csv.read_text(encoding="utf-8"), str(wish.csv))


def all_rows(rows: Sequence[RaceRow], before: Sequence[RaceRow]) -> list[RaceRow]:
    """Rows of this run, and of those before it what this one has not come to yet."""
    known = {name_of(row) for row in rows}
    return [*rows, *(row for row in before if name_of(row) not in known)]


def name_of(row: RaceRow) -> tuple[str, str, str]:
    """What a row is of."""
    return row["dataset"], row["method"], row["settings"]


def rows_of(
    dataset: Dataset,
    methods: Sequence[str],
    terms: RaceOptions,
    wish: Wish,
    before: Sequence[RaceRow],
    report: Report,
) -> Iterator[RaceRow]:
    """The rows of a dataset as they come, those known from before not run again."""
    from dkrls_cli.bench.paper.entries import make_entries
    from dkrls_cli.bench.paper.resume import find_row

    found = searched(dataset, methods, report) if wish.search else None
    for entry in make_entries(dataset.name, methods, found):
        known = find_row(before, entry, dataset, terms)
        if known is not None:
            report.note(f"Note: {dataset.name}, {entry.label} is in '{wish.csv}' already.")
            yield known
        else:
            yield measured(entry, dataset, terms, report)


def searched(dataset: Dataset, methods: Sequence[str], report: Report) -> dict[str, SearchResult]:
    """Settings found here and now."""
    from dkrls_cli.bench.paper.search import SEARCH_RANGES, search_settings

    found = {}
    for method in methods:
        if method in SEARCH_RANGES:
            with report.working(f"{dataset.name}, searching settings of {method}"):
                found[method] = search_settings(dataset, method)
            report.detail(f"{dataset.name}, {method}: found {found[method]}")
    return found


def measured(entry: RaceEntry, dataset: Dataset, terms: RaceOptions, report: Report) -> RaceRow:
    """Run a method, saying how far it is."""
    from dkrls_cli.bench.paper.experiment import run_method

    with report.working(f"{dataset.name}, {entry.label}") as progress:
        row = run_method(entry, dataset, terms, lambda step: progress(step.samples / step.of))
    report.detail(f"{dataset.name}, {entry.label}: {row['parameters'] or 'its own settings'}")
    return row


def dataset_text(dataset: Dataset, rows: Sequence[RaceRow]) -> str:
    """The table of a dataset, and below what is to be said of some rows."""
    from dkrls_cli.bench.paper.experiment import published_error_column

    size = " x ".join(str(n) for n in dataset.make_task(0).values.shape)
    what = {
        "max_error": "error is the largest",
        "normalized_max_error": "error is the largest, over the largest value",
    }[published_error_column(dataset.name)]
    heading = f"{dataset.name}: {size} train, {what}, median of the splits"
    lines = [line_of(row, published_error_column(dataset.name)) for row in rows]
    if width() < _WIDE:
        lines = [{k: v for k, v in line.items() if k not in _RANGES} for line in lines]
    return "\n".join([heading, "", table(lines), "", *notes_of(rows), ""])


def line_of(row: RaceRow, error: str) -> dict[str, Any]:
    """A row as a table shows it."""
    return {
        "method": label_of(row),
        "learnt": learnt_text(row),
        "seeds": row["seeds"],
        "fit s": rounded(row["seconds"]),
        "ask s": rounded(row["predict_seconds"]),
        "error": rounded(row[error]),
        "best": rounded(row[f"{error}_min"]),
        "worst": rounded(row[f"{error}_max"]),
        "MB": rounded(row["peak_mb"]),
        "paper s": rounded(row["paper_seconds"], 3),
        "paper": rounded(row["paper_error"], 3),
    }


def label_of(row: RaceRow) -> str:
    """A method with a star where its settings were searched for."""
    from dkrls_cli.bench.paper.entries import SEARCHED

    return f"{row['method']}{'*' if row['settings'] == SEARCHED else ''}"


def learnt_text(row: RaceRow) -> str:
    """How many of the samples were learnt."""
    learnt, of = row["samples_learnt"], row["samples"]
    return "all" if learnt == of else f"{100 * learnt / of:.2g} %"


def rounded(value: float, digits: int = 2) -> float | int:
    """A number short enough for a column; whole from a hundred on."""
    if math.isnan(value):
        return value
    return round(value) if value >= 100 else float(f"{value:.{digits}g}")


def notes_of(rows: Sequence[RaceRow]) -> Iterator[str]:
    """What is to be said of some rows, the same of several in one paragraph."""
    told: dict[str, list[str]] = {}
    for row in rows:
        if row["note"]:
            told.setdefault(row["note"], []).append(label_of(row))
    for note, labels in told.items():
        yield from textwrap.wrap(f"{', '.join(labels)}: {note}.", width(), subsequent_indent="  ")
    spent = [row["search_seconds"] for row in rows if not math.isnan(row["search_seconds"])]
    if spent:
        text = f"* settings found by a search on training data, {sum(spent):.0f} s in all."
        yield from textwrap.wrap(text, width(), subsequent_indent="  ")


def refuse_undrawable(plot: Path | None) -> None:
    """Refuse a plot that cannot be drawn, before any work."""
    if plot is not None:
        from dkrls_cli.bench import plots

        plots.check_drawable(plot)


def draw(rows: Sequence[RaceRow], plot: Path | None) -> None:
    """Draw errors against times."""
    if plot is not None:
        from dkrls_cli.bench.plots import draw_race

        draw_race([drawn(row) for row in rows], plot)


def drawn(row: RaceRow) -> RaceRow:
    """A row with the error that the paper reports, and its figures only beside its own settings."""
    from dkrls_cli.bench.paper.entries import PAPER, RECURSIVE
    from dkrls_cli.bench.paper.experiment import published_error_column

    told = row["settings"] == PAPER and row["method"] != RECURSIVE
    without = {} if told else {"paper_seconds": None, "paper_error": None}
    return {**row, "max_error": row[published_error_column(row["dataset"])], **without}


def tell(rows: Sequence[RaceRow], datasets: Iterable[str], report: Report) -> None:
    """Print how D-KRLS stands, and on what the clock ran."""
    from dkrls_cli.bench.machine import describe_machine
    from dkrls_cli.bench.paper.experiment import compare_with_paper_methods
    from dkrls_cli.bench.paper.run import THREADS

    on = describe_machine() | {"threads": THREADS}
    verdicts = {name: compare_with_paper_methods(rows, name) for name in datasets}
    lines = [line for name, verdict in verdicts.items() for line in verdict_lines(name, verdict)]
    lines.append(", ".join(f"{name} {value}" for name, value in on.items()))
    wrapped = [part for line in lines for part in textwrap.wrap(line, width())]
    report.result({"rows": rows, "summary": verdicts, "machine": on}, "\n".join(wrapped))


def verdict_lines(dataset: str, verdict: Sequence[RaceRow]) -> Iterator[str]:
    """How D-KRLS stands on a dataset, in words."""
    for row in verdict:
        yield (
            f"{dataset}: {label_of(row)} is {row['times_as_fast']:.3g} times as fast as the fastest"
            f" and {row['times_as_accurate']:.3g} times as accurate as the best of the paper's"
            f" others with {_WHOSE[row['against']]} settings."
        )
