"""``dkrls bench``: races on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.report import Report, edge, table

if TYPE_CHECKING:
    from dkrls_cli.benchmark.speed import Measure
    from dkrls_cli.cli.racing import Rows

bench = typer.Typer(
    name="bench",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Files = Annotated[
    list[str], typer.Argument(metavar="FILE", help="NetCDF, Zarr or CSV, each a grid of its own.")
]
Seeds = Annotated[int, typer.Option(min=1, help="Random draws per grid.")]
TimeLimit = Annotated[float, typer.Option(metavar="S", help="Seconds for a method on one case.")]
RowsTo = Annotated[
    Path | None, typer.Option(metavar="OUT.csv", help="Write the rows there as well.")
]


@bench.callback()
def races() -> None:
    """Race on this machine: other methods on your own grids, and the clock.

    Every race takes --json, --quiet, --verbose and --debug.

    Examples:
      dkrls bench real sst.nc

      dkrls bench gaps cloudy.nc

      dkrls bench speed --json
    """


@bench.command()
def real(
    inputs: Files,
    var: opt.Var = None,
    seeds: Seeds = 3,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,...",
            help="Of dkrls, linear, spline3, spline5, cubic, xarray. Default: all.",
        ),
    ] = None,
    time_limit: TimeLimit = 60.0,
    csv: RowsTo = None,
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
        from dkrls_cli.benchmark.real import REAL
        from dkrls_cli.cli.racing import Terms, held

        terms = Terms(inputs, var, methods, seeds, time_limit, csv, overwrite)
        held(REAL, terms, Report(json, quiet, verbose))


@bench.command()
def gaps(
    inputs: Files,
    var: opt.Var = None,
    seeds: Seeds = 1,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,...",
            help="Of dkrls, per-axis, nearest, griddata, eof. Default: all.",
        ),
    ] = None,
    time_limit: TimeLimit = 300.0,
    csv: RowsTo = None,
    overwrite: opt.Overwrite = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
    debug: opt.Debug = False,
) -> None:
    """Race the default fit against other ways to fill missing cells, on your own grids.

    Hidden are a further 10 % of the observed cells: single ones, then blocks of 5 x 5 x 3.

    The ratio is that of dkrls to the best of all others, picked in hindsight.

    Examples:
      dkrls bench gaps cloudy.nc

      dkrls bench gaps '*.nc' --var sst --seeds 3 --csv race.csv

      dkrls bench gaps cloudy.nc --methods dkrls,per-axis,eof
    """
    with edge(debug):
        from dkrls_cli.benchmark.gaps import GAPS
        from dkrls_cli.cli.racing import Terms, held

        terms = Terms(inputs, var, methods, seeds, time_limit, csv, overwrite)
        held(GAPS, terms, Report(json, quiet, verbose))


CLOCKS = {
    "speed": "Time fits and answers on the paper's 3D grid against bare matrix products and scipy.",
    "tuning": "Time the choice of all settings against quintic splines, and against the fit alone.",
    "large": "Measure memory and rate of a fit of 400 x 400 x 400 cells, on all threads.",
    "startup": "Time whole commands against the imports and reads they cannot do without.",
}
"""Races against the clock, and what each is about."""


def clock(race: str, about: str) -> None:
    """Add the command of a race against the clock."""
    examples = f"Examples:\n  dkrls bench {race}\n\n  dkrls bench {race} --json"

    @bench.command(race, help=f"{about}\n\n{examples}")
    def command(
        json: opt.Json = False,
        quiet: opt.Quiet = False,
        verbose: opt.Verbose = False,
        debug: opt.Debug = False,
    ) -> None:
        with edge(debug):
            measured(race, Report(json, quiet, verbose))


for _race, _about in CLOCKS.items():
    clock(_race, _about)


def measured(race: str, report: Report) -> None:
    """Run a race against the clock and print what it measured."""
    from dkrls_cli.benchmark import speed
    from dkrls_cli.cli.racing import tell_machine

    runs: dict[str, Callable[[], Iterable[Measure]]] = {
        "speed": speed.speed,
        "tuning": speed.tuning,
        "large": speed.large,
        "startup": speed.startup,
    }
    tell_machine(report)
    with report.working(f"measuring {race}"):
        rows = [asdict(measure) for measure in runs[race]()]
    tell_measures(rows, report)


def tell_measures(rows: Rows, report: Report) -> None:
    """Print what was measured, and on what."""
    from dkrls_cli.benchmark.machine import machine

    report.result({"rows": rows, "machine": machine()}, table(rows))
