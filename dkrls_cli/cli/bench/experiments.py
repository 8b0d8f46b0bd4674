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
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.bench.paper.dataset import Dataset
    from dkrls_cli.bench.paper.entries import Entry
    from dkrls_cli.bench.paper.experiment import Row, Terms
    from dkrls_cli.bench.paper.found import Found

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
    from dkrls_cli.bench.paper.experiment import Terms

    methods = chosen_methods(wish.methods)
    refuse_no_time(wish.time_limit)
    terms = Terms(wish.seeds, math.inf if wish.full else wish.time_limit)
    before = rows_before(wish, report)
    refuse_undrawable(wish.plot)
    rows: list[Row] = []
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
    from dkrls_cli.bench.paper.entries import METHODS

    wanted = list(METHODS) if text is None else opt.names(text) or []
    unknown = [name for name in wanted if name not in METHODS]
    if unknown or not wanted:
        name = unknown[0] if unknown else ""
        raise SettingError(f"Unknown method '{name}'. Choose of {', '.join(METHODS)}.")
    return wanted


def rows_before(wish: Wish, report: Report) -> list[Row]:
    """Rows of a full run that was interrupted; without one the outputs must be free."""
    from dkrls_cli.bench.paper.kept import rows_from

    refuse_taken(wish.plot, wish.overwrite)
    resumed = wish.full and wish.csv is not None and wish.csv.exists() and not wish.overwrite
    if not resumed:
        refuse_taken(wish.csv, wish.overwrite)
        if wish.full and wish.csv is None:
            report.note("Note: with --csv FILE a run that is interrupted can be gone on with.")
        return []
    assert wish.csv is not None  # it exists
    return rows_from(wish.csv.read_text(encoding="utf-8"), str(wish.csv))


def all_rows(rows: Sequence[Row], before: Sequence[Row]) -> list[Row]:
    """Rows of this run, and of those before it what this one has not come to yet."""
    known = {name_of(row) for row in rows}
    return [*rows, *(row for row in before if name_of(row) not in known)]


def name_of(row: Row) -> tuple[str, str, str]:
    """What a row is of."""
    return row["dataset"], row["method"], row["settings"]


def rows_of(
    dataset: Dataset,
    methods: Sequence[str],
    terms: Terms,
    wish: Wish,
    before: Sequence[Row],
    report: Report,
) -> Iterator[Row]:
    """The rows of a dataset as they come, those known from before not run again."""
    from dkrls_cli.bench.paper.entries import entries_of
    from dkrls_cli.bench.paper.kept import row_among

    found = searched(dataset, methods, report) if wish.search else None
    for entry in entries_of(dataset.name, methods, found):
        known = row_among(before, entry, dataset, terms)
        if known is not None:
            report.note(f"Note: {dataset.name}, {entry.label} is in '{wish.csv}' already.")
            yield known
        else:
            yield measured(entry, dataset, terms, report)


def searched(dataset: Dataset, methods: Sequence[str], report: Report) -> dict[str, Found]:
    """Settings found here and now."""
    from dkrls_cli.bench.paper.search import KNOBS, search

    found = {}
    for method in methods:
        if method in KNOBS:
            with report.working(f"{dataset.name}, searching settings of {method}"):
                found[method] = search(dataset, method)
            report.detail(f"{dataset.name}, {method}: found {found[method]}")
    return found


def measured(entry: Entry, dataset: Dataset, terms: Terms, report: Report) -> Row:
    """Run a method, saying how far it is."""
    from dkrls_cli.bench.paper.experiment import row_of

    with report.working(f"{dataset.name}, {entry.label}") as progress:
        row = row_of(entry, dataset, terms, lambda step: progress(step.samples / step.of))
    report.detail(f"{dataset.name}, {entry.label}: {row['parameters'] or 'its own settings'}")
    return row


def dataset_text(dataset: Dataset, rows: Sequence[Row]) -> str:
    """The table of a dataset, and below what is to be said of some rows."""
    from dkrls_cli.bench.paper.experiment import error_key

    size = " x ".join(str(n) for n in dataset.task(0).values.shape)
    what = {
        "max_error": "error is the largest",
        "normalized_max_error": "error is the largest, over the largest value",
    }[error_key(dataset.name)]
    heading = f"{dataset.name}: {size} train, {what}, median of the splits"
    lines = [line_of(row, error_key(dataset.name)) for row in rows]
    if width() < _WIDE:
        lines = [{k: v for k, v in line.items() if k not in _RANGES} for line in lines]
    return "\n".join([heading, "", table(lines), "", *notes_of(rows), ""])


def line_of(row: Row, error: str) -> dict[str, Any]:
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


def label_of(row: Row) -> str:
    """A method with a star where its settings were searched for."""
    from dkrls_cli.bench.paper.entries import SEARCHED

    return f"{row['method']}{'*' if row['settings'] == SEARCHED else ''}"


def learnt_text(row: Row) -> str:
    """How many of the samples were learnt."""
    learnt, of = row["samples_learnt"], row["samples"]
    return "all" if learnt == of else f"{100 * learnt / of:.2g} %"


def rounded(value: float, digits: int = 2) -> float | int:
    """A number short enough for a column; whole from a hundred on."""
    if math.isnan(value):
        return value
    return round(value) if value >= 100 else float(f"{value:.{digits}g}")


def notes_of(rows: Sequence[Row]) -> Iterator[str]:
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

        plots.refuse_undrawable(plot)


def draw(rows: Sequence[Row], plot: Path | None) -> None:
    """Draw errors against times."""
    if plot is not None:
        from dkrls_cli.bench.plots import error_against_time

        error_against_time([drawn(row) for row in rows], plot)


def drawn(row: Row) -> Row:
    """A row with the error that the paper reports, and its figures only beside its own settings."""
    from dkrls_cli.bench.paper.entries import PAPER, RECURSIVE
    from dkrls_cli.bench.paper.experiment import error_key

    told = row["settings"] == PAPER and row["method"] != RECURSIVE
    without = {} if told else {"paper_seconds": None, "paper_error": None}
    return {**row, "max_error": row[error_key(row["dataset"])], **without}


def tell(rows: Sequence[Row], datasets: Iterable[str], report: Report) -> None:
    """Print how D-KRLS stands, and on what the clock ran."""
    from dkrls_cli.bench.machine import machine
    from dkrls_cli.bench.paper.experiment import verdict_of
    from dkrls_cli.bench.paper.trial import THREADS

    on = machine() | {"threads": THREADS}
    verdicts = {name: verdict_of(rows, name) for name in datasets}
    lines = [line for name, verdict in verdicts.items() for line in verdict_lines(name, verdict)]
    lines.append(", ".join(f"{name} {value}" for name, value in on.items()))
    wrapped = [part for line in lines for part in textwrap.wrap(line, width())]
    report.result({"rows": rows, "summary": verdicts, "machine": on}, "\n".join(wrapped))


def verdict_lines(dataset: str, verdict: Sequence[Row]) -> Iterator[str]:
    """How D-KRLS stands on a dataset, in words."""
    for row in verdict:
        yield (
            f"{dataset}: {label_of(row)} is {row['times_as_fast']:.3g} times as fast as the fastest"
            f" and {row['times_as_accurate']:.3g} times as accurate as the best of the paper's"
            f" others with {_WHOSE[row['against']]} settings."
        )
