"""``dkrls bench``: races on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from dkrls_cli.cli.commands.bench.options import (
    CompetitionOptions,
    ExperimentOptions,
    GapOptions,
    QuickOptions,
    RealOptions,
    StreamRaceOptions,
)
from dkrls_cli.cli.expansion import expand
from dkrls_cli.cli.report import Report, edge
from dkrls_cli.cli.terminal.tables import table
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.bench.speed import Measure
    from dkrls_cli.cli.commands.bench.racing import Rows

_QUICK_SECONDS = 4.0  # per method where `dkrls bench` runs alone: two minutes in all
_EXPERIMENT_SECONDS = 60.0  # per method in one of the paper's experiments

bench = typer.Typer(
    name="bench",
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Files = Annotated[
    list[str], typer.Argument(metavar="FILE", help="NetCDF, Zarr or CSV, each a grid of its own.")
]


@bench.callback(invoke_without_command=True)
@expand
def races(context: typer.Context, *, options: QuickOptions, report: Report) -> None:
    """Race on this machine: the paper's experiments, your own grids, and the clock.

    Alone it runs paper-2d and cross, four seconds per method: two minutes at most.

    Every race takes --json, --quiet, --verbose and --debug, after its name.

    Examples:
      dkrls bench

      dkrls bench paper-3d --methods dkrls,norma,linear

      dkrls bench real sst.nc

      dkrls bench gaps cloudy.nc

      dkrls bench heaton --data satellite.nc

      dkrls bench stream sensors.csv

      dkrls bench speed --json
    """
    with edge(report.debug):
        if context.invoked_subcommand is not None:
            refuse_misplaced(context)
            return
        from dkrls_cli.bench.paper.published import synthetic_dataset
        from dkrls_cli.cli.commands.bench.experiments import ALONE, run_experiments

        seconds = options.seconds(_QUICK_SECONDS)
        run_experiments([synthetic_dataset(name) for name in ALONE], options, seconds, report)


def refuse_misplaced(context: typer.Context) -> None:
    """Raise SettingError for options before the name of a race: they belong after it."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE":
            race = context.invoked_subcommand
            raise SettingError(
                f"{parameter.opts[0]} stands before {race}. Write dkrls bench {race} first, "
                "then its options."
            )


PAPER = {
    "paper-2d": "The paper's 2D comparison: 13,920 samples of sin(x) cos(d/2).",
    "paper-3d": "The paper's 3D comparison: 1,113,600 samples of cos(x) sin(d1/2) sin(d2/3).",
    "cross": "The paper's space-time table: 1,406 samples, KRLS and NONSTILL-KRLS.",
}
"""Experiments that need no file, and what each is about."""

_ROWS = (
    "Rows have the paper's settings; a star marks settings found by a search.\n\n"
    "The paper's own results are shown beside them."
)


def add_experiment(name: str, about: str) -> None:
    """Add the command of one of the paper's experiments."""
    examples = (
        f"Examples:\n  dkrls bench {name}\n\n  dkrls bench {name} --methods dkrls,qklms,linear\n\n"
        f"  dkrls bench {name} --full --csv rows.csv --plot race.png"
    )

    @bench.command(name, help=f"{about}\n\n{_ROWS}\n\n{examples}")
    @expand
    def command(*, options: ExperimentOptions, report: Report) -> None:
        with edge(report.debug):
            from dkrls_cli.bench.paper.published import synthetic_dataset
            from dkrls_cli.cli.commands.bench.experiments import run_experiments

            seconds = options.seconds(_EXPERIMENT_SECONDS)
            run_experiments([synthetic_dataset(name)], options, seconds, report)


for _name, _about in PAPER.items():
    add_experiment(_name, _about)


@bench.command("intel-lab")
@expand
def temperatures(
    *,
    data: Annotated[
        str, typer.Option(metavar="FILE", help="The matrix of 52 columns, or the raw data.txt.")
    ],
    options: ExperimentOptions,
    report: Report,
) -> None:
    """Run the paper's Intel Lab comparison: 4,160 temperatures of 52 sensors.

    FILE is a matrix of 52 columns, or data.txt, of which bad readings are dropped.

    Rows have the paper's settings; a star marks settings found by a search.

    Examples:
      dkrls bench intel-lab --data data.txt

      dkrls bench intel-lab --data data.txt.gz --methods dkrls,dkrls-auto,swkrls
    """
    with edge(report.debug):
        from dkrls_cli.bench.paper.intel_lab import read_intel_lab
        from dkrls_cli.bench.paper.published import intel_lab_dataset
        from dkrls_cli.cli.commands.bench.experiments import run_experiments

        seconds = options.seconds(_EXPERIMENT_SECONDS)
        with report.working(f"reading {data}"):
            found = read_intel_lab(data)
        for text in found.notes:
            report.note(f"Note: {text}.")
        run_experiments([intel_lab_dataset(found.values)], options, seconds, report)


@bench.command()
@expand
def real(inputs: Files, *, options: RealOptions, report: Report) -> None:
    """Race the default fit against scipy and xarray on held-out parts of your own grids.

    Held out are 20 % of every dimension at random, and every second latitude and longitude.

    The ratio is the error of dkrls over that of the best of linear, spline3 and spline5.

    Examples:
      dkrls bench real sst.nc

      dkrls bench real '*.nc' --var tas --seeds 5 --csv race.csv

      dkrls bench real sst.nc --methods dkrls,linear,cubic --time-limit 10
    """
    with edge(report.debug):
        from dkrls_cli.bench.real.interpolation import INTERPOLATION_RACE
        from dkrls_cli.cli.commands.bench.racing import run_race

        run_race(INTERPOLATION_RACE, inputs, options, report)


@bench.command()
@expand
def gaps(inputs: Files, *, options: GapOptions, report: Report) -> None:
    """Race the default fit against other ways to fill missing cells, on your own grids.

    Hidden are a further 10 % of the observed cells: single ones, then blocks of 5 x 5 x 3.

    Last comes one hole, a quarter of every dimension wide.

    The ratio is the error of dkrls over that of the best of all others.

    Examples:
      dkrls bench gaps cloudy.nc

      dkrls bench gaps '*.nc' --var sst --seeds 3 --csv race.csv

      dkrls bench gaps cloudy.nc --methods dkrls,per-axis,eof
    """
    with edge(report.debug):
        from dkrls_cli.bench.real.gaps import GAP_RACE
        from dkrls_cli.cli.commands.bench.racing import run_race

        run_race(GAP_RACE, inputs, options, report)


@bench.command()
@expand
def heaton(
    *,
    data: Annotated[
        list[str],
        typer.Option(metavar="FILE", help="NetCDF with the variables temp and truth. Repeatable."),
    ],
    options: CompetitionOptions,
    report: Report,
) -> None:
    """Fill the fields of a published competition, beside the results of its methods.

    The competition is that of Heaton et al. (2019), with a satellite and a simulated field.

    Of FILE, `temp` has the training cells. Test cells are missing there and present in `truth`.

    Cells are filled as by dkrls fill --mask none. The name of the file says which field it is.

    Examples:
      dkrls bench heaton --data satellite.nc

      dkrls bench heaton --data satellite.nc --data simulated.nc --csv scores.csv

      dkrls bench heaton --data field.nc --dataset simulated --json
    """
    with edge(report.debug):
        from dkrls_cli.cli.commands.bench.competition import run_heaton

        run_heaton(data, options, report)


@bench.command()
@expand
def stream(
    given: Annotated[
        str, typer.Argument(metavar="FILE", help="NetCDF, Zarr, CSV, or a matrix of numbers.")
    ],
    *,
    options: StreamRaceOptions,
    report: Report,
) -> None:
    """Race forecasts of a stream, one step ahead, against online kernel methods.

    Slices along the last level are forecast one by one, each before it is learnt.

    Settings of online methods are searched on the first 1000 steps, or a quarter of all.

    `later` is after these steps. Ratios to dkrls are on the same steps.

    Examples:
      dkrls bench stream sensors.csv

      dkrls bench stream sst.nc --window 50 --methods last-value,dkrls,qklms

      dkrls bench stream matrix.txt --time-limit 60 --csv race.csv
    """
    with edge(report.debug):
        from dkrls_cli.cli.commands.bench.streamrace import run_stream_race

        run_stream_race(given, options, report)


CLOCKS = {
    "speed": "Time fits and answers against bare matrix products and scipy, and their growth.",
    "tuning": "Time the choice of all settings against quintic splines, and against the fit alone.",
    "large": "Measure memory and rate of a fit of 400 x 400 x 400 cells, on all threads.",
    "startup": "Time whole commands against the imports and reads they cannot do without.",
}
"""Races against the clock, and what each is about."""


def clock_help(race: str) -> str:
    """Return the help of a race against the clock."""
    return f"{CLOCKS[race]}\n\nExamples:\n  dkrls bench {race}\n\n  dkrls bench {race} --json"


@bench.command("speed", help=clock_help("speed"))
@expand
def time_speed(
    *,
    time_limit: Annotated[
        float, typer.Option(metavar="S", min=0, help="Seconds for one size of a growing grid.")
    ] = 120.0,
    report: Report,
) -> None:
    """Run the race of speed."""
    with edge(report.debug):
        run_clock("speed", report, time_limit)


def add_clock(race: str) -> None:
    """Add the command of a race against the clock that has no options of its own."""

    @bench.command(race, help=clock_help(race))
    @expand
    def command(*, report: Report) -> None:
        with edge(report.debug):
            run_clock(race, report)


for _race in CLOCKS:
    if _race != "speed":
        add_clock(_race)


def run_clock(race: str, report: Report, seconds: float = 0.0) -> None:
    """Run a race against the clock and print its measurements.

    `seconds` are those that one size of a growing grid may take.
    """
    from dkrls_cli.bench import growth, long, speed
    from dkrls_cli.cli.commands.bench.racing import print_machine

    runs: dict[str, Callable[[], Iterable[Measure]]] = {
        "speed": lambda: chain(
            speed.measure_speed(), growth.measure_cells(seconds), long.measure_long()
        ),
        "tuning": speed.measure_tuning,
        "large": speed.measure_large,
        "startup": speed.measure_startup,
    }
    print_machine(report)
    with report.working(f"measuring {race}"):
        rows = [asdict(measure) for measure in runs[race]()]
    print_measures(rows, report)


def print_measures(rows: Rows, report: Report) -> None:
    """Print measurements, and with --json the machine they were made on."""
    from dkrls_cli.bench.machine import describe_machine

    report.result({"rows": rows, "machine": describe_machine()}, table(rows))
