"""How the race on a stream is run and told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.bench.racing import Rows, refuse_no_time, refuse_taken, tell_machine, write_rows
from dkrls_cli.cli.fit import open_inputs, read_values
from dkrls_cli.cli.report import Report, table

if TYPE_CHECKING:
    from dkrls_cli.bench.streams.data import StreamData
    from dkrls_cli.grid.grid import Grid

_COLUMNS = {
    "method": "method",
    "steps": "steps",
    "rmse": "rmse",
    "to_last_value": "to last value",
    "to_last_value_later": "later",
    "to_dkrls": "to dkrls",
    "to_dkrls_later": "later ",
    "steps_per_second": "steps/s",
}
"""What is shown of the rows, and how it is headed."""


@dataclass(frozen=True)
class StreamTerms:
    """What the user said of the race: the stream, the window, methods, and where rows go."""

    given: str
    var: str | None
    levels: str | None
    window: int
    methods: str | None
    limit: float
    csv: Path | None
    overwrite: bool


def streamed(terms: StreamTerms, report: Report) -> None:
    """Run the race and print how it ended."""
    from dkrls_cli.bench.streams.data import make_stream

    methods = chosen_methods(terms.methods)
    refuse_no_time(terms.limit)
    refuse_taken(terms.csv, terms.overwrite)
    levels = opt.names(terms.levels)
    stream = make_stream(grid_in(terms.given, terms.var, levels, report), levels)
    tell_machine(report)
    rows = raced(stream, methods, terms, report)
    write_rows(rows, terms.csv, terms.overwrite)
    tell_rows(rows, stream, report)


def chosen_methods(text: str | None) -> list[str]:
    """The methods that race, in the order of the registry."""
    from dkrls_cli.bench.methods import select_methods
    from dkrls_cli.bench.streams.race import STREAM_METHODS

    return select_methods(None if text is None else opt.names(text) or [], STREAM_METHODS)


def grid_in(path: str, var: str | None, levels: list[str] | None, report: Report) -> Grid:
    """The stream as a grid: a bare matrix of numbers, or whatever a fit would read."""
    from dkrls_cli.bench.streams.matrix import is_matrix, read_matrix

    if is_matrix(path):
        with report.working(f"reading {path}"):
            return read_matrix(path)
    return read_values(open_inputs([path], var, levels, report), report)


def raced(stream: StreamData, methods: list[str], terms: StreamTerms, report: Report) -> Rows:
    """All methods over the stream, one after the other."""
    from dkrls_cli.bench.streams.race import make_stream_rows, run_stream_method

    runs = {}
    for method in methods:
        with report.working(f"{terms.given}, {method}"):
            runs[method] = run_stream_method(method, stream, terms.window, terms.limit)
        report.detail(f"{method}: rmse {runs[method].rmse():.4g}, {runs[method].settings}")
    return make_stream_rows(runs, stream.search_steps)


def tell_rows(rows: Rows, stream: StreamData, report: Report) -> None:
    """Print the rows; settings and notes stand below."""
    from dkrls_cli.bench.machine import describe_machine

    shown = [{head: row[key] for key, head in _COLUMNS.items()} for row in rows]
    said = [
        f"{row['method']}: {'; '.join(filter(None, (row['settings'], row['note'])))}."
        for row in rows
        if row["settings"] or row["note"]
    ]
    heading = f"{stream.steps} steps of {stream.values.shape[1]} series, one step ahead"
    text = "\n".join([heading, "", table(shown), "", *said])
    report.result(
        {"rows": rows, "searched": stream.search_steps, "machine": describe_machine()}, text
    )
