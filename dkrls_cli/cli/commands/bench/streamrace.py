"""How the race on a stream is run and printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dkrls_cli.cli.commands.bench.racing import (
    Rows,
    chosen_methods,
    print_machine,
    read_thin,
    refuse_no_time,
    refuse_unwritable,
    write_rows,
)
from dkrls_cli.cli.report import Report
from dkrls_cli.cli.terminal.tables import table
from dkrls_cli.cli.texts import split_names

if TYPE_CHECKING:
    from dkrls_cli.bench.streams.data import StreamData
    from dkrls_cli.cli.commands.bench.options import StreamRaceOptions
    from dkrls_cli.grid.grid import Grid

_COLUMNS = {
    "method": "method",
    "steps": "steps",
    "rmse": "rmse",
    "to_last_value": "to last value",
    "to_last_value_later": "later",
    "to_dkrls": "to dkrls",
    "to_dkrls_later": "later ",  # a second column of this name: keys of a row differ
    "steps_per_second": "steps/s",
}
"""Keys of the rows that are printed, and the headings of their columns."""


def run_stream_race(given: str, options: StreamRaceOptions, report: Report) -> None:
    """Run the race on a stream, write its rows, and print how it ended."""
    from dkrls_cli.bench.streams.data import make_stream
    from dkrls_cli.bench.streams.race import STREAM_METHODS

    methods = chosen_methods(options.methods, STREAM_METHODS)
    refuse_no_time(options.time_limit)
    refuse_unwritable(options.csv, options.overwrite)
    levels = split_names(options.levels)
    stream = make_stream(read_stream(given, options.var, levels, report), levels)
    print_machine(report)
    rows = race_rows(stream, methods, given, options, report)
    write_rows(rows, options.csv, options.overwrite)
    print_rows(rows, stream, report)


def read_stream(path: str, var: str | None, levels: list[str] | None, report: Report) -> Grid:
    """Return the stream as a grid: a bare matrix of numbers, or any file that fit reads."""
    from dkrls_cli.bench.streams.matrix import is_matrix, read_matrix

    if is_matrix(path):
        with report.working(f"reading {path}"):
            return read_matrix(path)
    return read_thin(path, var, levels, report)


def race_rows(
    stream: StreamData, methods: list[str], given: str, options: StreamRaceOptions, report: Report
) -> Rows:
    """Run all methods over the stream, one after the other, and return their rows."""
    from dkrls_cli.bench.streams.race import make_stream_rows, run_stream_method

    runs = {}
    for method in methods:
        with report.working(f"{given}, {method}"):
            runs[method] = run_stream_method(method, stream, options.window, options.time_limit)
        report.detail(f"{method}: rmse {runs[method].rmse():.4g}, {runs[method].settings}")
    return make_stream_rows(runs, stream.search_steps)


def print_rows(rows: Rows, stream: StreamData, report: Report) -> None:
    """Print the rows as a table, and the settings and notes of the methods below it."""
    from dkrls_cli.bench.machine import describe_machine

    shown = [{head: row[key] for key, head in _COLUMNS.items()} for row in rows]
    notes = [
        f"{row['method']}: {'; '.join(filter(None, (row['settings'], row['note'])))}."
        for row in rows
        if row["settings"] or row["note"]
    ]
    heading = f"{stream.steps} steps of {stream.values.shape[1]} series, one step ahead"
    data = {"rows": rows, "searched": stream.search_steps, "machine": describe_machine()}
    report.result(data, heading, table(shown), "\n".join(notes))
