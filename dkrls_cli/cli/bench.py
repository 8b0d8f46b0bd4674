"""``dkrls bench``: races on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.describe import shape_text
from dkrls_cli.cli.fit import loaded, opened
from dkrls_cli.cli.report import Report, edge, pairs, table
from dkrls_cli.errors import InputError, SettingError

if TYPE_CHECKING:
    from dkrls_cli.benchmark.cases import Case
    from dkrls_cli.benchmark.real import Outcome
    from dkrls_cli.benchmark.speed import Measure
    from dkrls_cli.benchmark.worker import Worker
    from dkrls_cli.grid import Grid

Rows = list[dict[str, Any]]

bench = typer.Typer(
    name="bench",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@bench.callback()
def races() -> None:
    """Race on this machine: other interpolators on your own grids, and the clock.

    Every race takes --json, --quiet, --verbose and --debug.

    Examples:
      dkrls bench real sst.nc

      dkrls bench speed --json
    """


@bench.command()
def real(
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="NetCDF, Zarr or CSV, each a grid of its own."),
    ],
    var: opt.Var = None,
    seeds: Annotated[int, typer.Option(min=1, help="Random hold-outs per grid.")] = 3,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,...",
            help="Of dkrls, linear, spline3, spline5, cubic, xarray. Default: all.",
        ),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(metavar="S", help="Seconds for a method on one hold-out.")
    ] = 60.0,
    csv: Annotated[
        Path | None, typer.Option(metavar="OUT.csv", help="Write the rows there as well.")
    ] = None,
    overwrite: opt.Overwrite = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
    debug: opt.Debug = False,
) -> None:
    """Race the default fit against scipy and xarray on held-out parts of your own grids.

    Held out are 20 % of every dimension at random, and every second latitude and longitude.

    The ratio is that of dkrls to the best of linear, spline3 and spline5, picked in hindsight.

    Examples:
      dkrls bench real sst.nc

      dkrls bench real '*.nc' --var tas --seeds 5 --csv race.csv

      dkrls bench real sst.nc --methods dkrls,linear,cubic --time-limit 10
    """
    with edge(debug):
        report = Report(json, quiet, verbose)
        racing = chosen_methods(methods, report)
        refuse_no_time(time_limit)
        refuse_taken(csv, overwrite)
        grids = opened_grids(inputs, var, report)
        tell_machine(report)
        rows = raced(grids, racing, seeds, time_limit, report)
        write_rows(rows, csv, overwrite)
        tell_standings(rows, report)


def chosen_methods(text: str | None, report: Report) -> list[str]:
    """The methods that race, in the order of the registry."""
    from dkrls_cli.benchmark.real import METHODS, OURS, REFERENCES

    wanted = list(METHODS) if text is None else opt.names(text) or []
    unknown = [name for name in wanted if name not in METHODS]
    if unknown or not wanted:
        name = unknown[0] if unknown else ""
        raise SettingError(f"Unknown method '{name}'. Choose of {', '.join(METHODS)}.")
    absent = [name for name in REFERENCES if name not in wanted]
    if absent and OURS in wanted:
        report.note(f"Note: {', '.join(absent)} will not race, and ratios are without.")
    return [name for name in METHODS if name in wanted]


def refuse_no_time(limit: float) -> None:
    """Refuse a limit that is none."""
    if not limit > 0:
        raise SettingError(f"Invalid --time-limit {limit:g}. Give seconds above 0.")


def refuse_taken(output: Path | None, overwrite: bool) -> None:
    """Refuse an output that cannot be written, before any work."""
    from dkrls_cli.modelfile import refuse_unwritable

    if output is not None:
        refuse_unwritable(output, overwrite=overwrite)


def opened_grids(inputs: Sequence[str], var: str | None, report: Report) -> dict[str, Grid]:
    """Every file as a grid of its own; one that cannot race is refused before any does."""
    from dkrls_cli.sources import expand

    paths = [path for given in inputs for path in expand(given)]
    grids = {path: loaded(opened([path], var, None, report), report) for path in paths}
    for grid in grids.values():
        grid.refuse_missing()
    for path, grid in grids.items():
        refuse_nothing_held(path, grid, report)
    return grids


def refuse_nothing_held(path: str, grid: Grid, report: Report) -> None:
    """Refuse a grid of which nothing can be held out; say what will not be."""
    from dkrls_cli.benchmark.cases import PROTOCOLS, cases_of

    held = [case.protocol for case in cases_of(grid, [0])]
    if not held:
        raise InputError(
            f"Nothing of '{path}' can be held out: {shape_text(grid.axes)}. Expected a dimension "
            "of three coordinates at least that are not labels."
        )
    for protocol in PROTOCOLS:
        if protocol not in held:
            report.note(f"Note: '{path}' has no dimension to hold {protocol} out of.")


def tell_machine(report: Report) -> None:
    """Say on what the clock runs."""
    from dkrls_cli.benchmark.machine import machine

    report.detail(", ".join(f"{name} {value}" for name, value in machine().items()))


def raced(
    grids: Mapping[str, Grid], methods: Sequence[str], seeds: int, limit: float, report: Report
) -> Rows:
    """All methods on all cases of all grids, told grid by grid."""
    from dkrls_cli.benchmark.cases import cases_of
    from dkrls_cli.benchmark.real import rows_of, warm_up
    from dkrls_cli.benchmark.worker import Worker

    rows: Rows = []
    with Worker(partial(warm_up, methods)) as worker:
        for path, grid in grids.items():
            found: Rows = []
            for case in cases_of(grid, range(seeds)):
                outcomes = outcomes_of(worker, path, case, methods, limit, report)
                found += rows_of(path, case, outcomes)
            report.part(grid_text(f"{path}: {grid.name}, {shape_text(grid.axes)}", found))
            rows += found
    return rows


def outcomes_of(
    worker: Worker, path: str, case: Case, methods: Sequence[str], limit: float, report: Report
) -> dict[str, Outcome]:
    """Every method on one case."""
    from dkrls_cli.benchmark.real import outcome_of

    outcomes = {}
    for method in methods:
        with report.working(f"{path}, {case.name}, {method}"):
            outcomes[method] = outcome_of(worker, method, case, limit)
        told = outcomes[method].note or f"rmse {outcomes[method].rmse:.4g}"
        report.detail(f"{path}, {case.name}, {method}: {told}")
    return outcomes


def grid_text(heading: str, rows: Rows) -> str:
    """The cases of a grid, a line each, and below what is to be said of some."""
    from dkrls_cli.benchmark.cases import case_name

    cases: dict[str, Rows] = {}
    for row in rows:
        cases.setdefault(case_name(row["held_out"], row["seed"]), []).append(row)
    lines = [{"held out": name, **case_line(of_case)} for name, of_case in cases.items()]
    notes = [
        f"{name}: {row['method']} {row['note']}."
        for name, of_case in cases.items()
        for row in of_case
        if row["note"]
    ]
    return "\n".join([heading, "", table(lines), *notes, ""])


def case_line(rows: Rows) -> dict[str, float]:
    """The error of every method in one case, and how ours stands."""
    from dkrls_cli.benchmark.real import OURS

    line = {row["method"]: row["rmse"] for row in rows}
    for row in rows:
        if row["method"] == OURS:
            line |= {"ratio": row["ratio"], "cover90": row["coverage90"]}
    return {head: float(f"{value:.3g}") for head, value in line.items()}


def write_rows(rows: Rows, output: Path | None, overwrite: bool) -> None:
    """One row per case and method as CSV, whole or not at all."""
    from dkrls_cli.modelfile import replacing
    from dkrls_cli.text import csv_text

    if output is not None:
        with replacing(output, overwrite=overwrite) as temporary:
            temporary.write_text(csv_text(rows), encoding="utf-8")


def tell_standings(rows: Rows, report: Report) -> None:
    """Print how the methods stand over all cases."""
    from dkrls_cli.benchmark.machine import machine
    from dkrls_cli.benchmark.real import summary_of

    summary = summary_of(rows)
    words = {
        "cases": f"{summary['cases']}, with a ratio {summary['compared']}",
        "share within 2 % of the best rival": summary["within_2_percent"],
        "geometric mean of the ratio": summary["geometric_mean"],
        "worst ratio": summary["worst"],
        "worst ratio, ten samples or more": summary["worst_of_ten_samples"],
    }
    text = f"{table(summary['methods'])}\n\n{pairs(words)}"
    report.result({"rows": rows, "summary": summary, "machine": machine()}, text)


@bench.command()
def speed(
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
    debug: opt.Debug = False,
) -> None:
    """Time fits and answers on the paper's 3D grid against bare matrix products and scipy.

    Examples:
      dkrls bench speed

      dkrls bench speed --json
    """
    measured("speed", Report(json, quiet, verbose), debug)


@bench.command()
def tuning(
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
    debug: opt.Debug = False,
) -> None:
    """Time the choice of all settings against quintic splines, and against the fit alone.

    Examples:
      dkrls bench tuning

      dkrls bench tuning --json
    """
    measured("tuning", Report(json, quiet, verbose), debug)


@bench.command()
def large(
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
    debug: opt.Debug = False,
) -> None:
    """Measure memory and rate of a fit of 400 x 400 x 400 cells, on all threads.

    Examples:
      dkrls bench large

      dkrls bench large --json
    """
    measured("large", Report(json, quiet, verbose), debug)


@bench.command()
def startup(
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
    debug: opt.Debug = False,
) -> None:
    """Time whole commands against the imports and reads they cannot do without.

    Examples:
      dkrls bench startup

      dkrls bench startup --json
    """
    measured("startup", Report(json, quiet, verbose), debug)


def measured(race: str, report: Report, debug: bool) -> None:
    """Run a race against the clock and print what it measured."""
    from dkrls_cli.benchmark import speed as clock

    runs: dict[str, Callable[[], Iterable[Measure]]] = {
        "speed": clock.speed,
        "tuning": clock.tuning,
        "large": clock.large,
        "startup": clock.startup,
    }
    with edge(debug):
        tell_machine(report)
        with report.working(f"measuring {race}"):
            rows = [asdict(measure) for measure in runs[race]()]
        tell_measures(rows, report)


def tell_measures(rows: Rows, report: Report) -> None:
    """Print what was measured, and on what."""
    from dkrls_cli.benchmark.machine import machine

    report.result({"rows": rows, "machine": machine()}, table(rows))
