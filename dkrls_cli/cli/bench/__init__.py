"""``dkrls bench``: races on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.report import Report, edge, table
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.bench.speed import Measure
    from dkrls_cli.cli.bench.racing import Rows

bench = typer.Typer(
    name="bench",
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


Methods = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,NAME,...",
        help="Only these; a wrong name lists all.",
    ),
]
Splits = Annotated[
    int, typer.Option("--seeds", min=1, help="Random splits, as far as there is time.")
]
SecondsAll = Annotated[
    float | None,
    typer.Option(
        metavar="S", help="Seconds for a method on one dataset. Default: 60, bench alone 4."
    ),
]
Full = Annotated[
    bool,
    typer.Option("--full", help="No time limit; goes on where it was interrupted, from --csv."),
]
Search = Annotated[
    bool, typer.Option("--search", help="Search the settings of the starred rows anew.")
]
PlotTo = Annotated[
    Path | None,
    typer.Option(metavar="OUT.png", help="Draw error against time; also .svg and .pdf."),
]


@bench.callback(invoke_without_command=True)
def races(
    context: typer.Context,
    methods: Methods = None,
    seeds: Splits = 3,
    time_limit: SecondsAll = None,
    full: Full = False,
    search: Search = False,
    csv: RowsTo = None,
    plot: PlotTo = None,
    overwrite: opt.Overwrite = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
    debug: opt.Debug = False,
) -> None:
    """Race on this machine: the paper's experiments, your own grids, and the clock.

    Alone it runs paper-2d and cross, four seconds a method: two minutes at most.

    Every race takes --json, --quiet, --verbose and --debug, after its name.

    Examples:
      dkrls bench

      dkrls bench paper-3d --methods dkrls,norma,linear

      dkrls bench real sst.nc

      dkrls bench gaps cloudy.nc

      dkrls bench stream sensors.csv

      dkrls bench speed --json
    """
    with edge(debug):
        if context.invoked_subcommand is not None:
            refuse_misplaced(context)
            return
        from dkrls_cli.bench.paper.published import synthetic_dataset
        from dkrls_cli.cli.bench.experiments import BARE, Wish, run

        seconds = limit_of(time_limit, 4.0, full)
        wish = Wish(methods, seeds, seconds, full, search, csv, plot, overwrite)
        run([synthetic_dataset(name) for name in BARE], wish, Report(json, quiet, verbose))


def refuse_misplaced(context: typer.Context) -> None:
    """Refuse options before the name of a race: they are for the races that run without one."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE":
            race = context.invoked_subcommand
            raise SettingError(
                f"{parameter.opts[0]} stands before {race}. Write dkrls bench {race} first, "
                "then its options."
            )


def limit_of(given: float | None, default: float, full: bool) -> float:
    """Seconds for a method; a full run has no limit to give."""
    if full and given is not None:
        raise SettingError(f"--time-limit {given:g} cannot stand beside --full, which has none.")
    return default if given is None else given


PAPER = {
    "paper-2d": "The paper's 2D comparison: 13,920 samples of sin(x) cos(d/2).",
    "paper-3d": "The paper's 3D comparison: 1,113,600 samples of cos(x) sin(d1/2) sin(d2/3).",
    "cross": "The paper's space-time table: 1,406 samples, KRLS and NONSTILL-KRLS.",
}
"""Experiments that need no file, and what each is about."""

_ROWS = (
    "Rows have the paper's settings; with a star settings found by a search.\n\n"
    "The paper's own figures stand beside them."
)


def experiment(name: str, about: str) -> None:
    """Add the command of one of the paper's experiments."""
    examples = (
        f"Examples:\n  dkrls bench {name}\n\n  dkrls bench {name} --methods dkrls,qklms,linear\n\n"
        f"  dkrls bench {name} --full --csv rows.csv --plot race.png"
    )

    @bench.command(name, help=f"{about}\n\n{_ROWS}\n\n{examples}")
    def command(
        methods: Methods = None,
        seeds: Splits = 5,
        time_limit: SecondsAll = None,
        full: Full = False,
        search: Search = False,
        csv: RowsTo = None,
        plot: PlotTo = None,
        overwrite: opt.Overwrite = False,
        json: opt.Json = False,
        quiet: opt.Quiet = False,
        verbose: opt.Verbose = False,
        debug: opt.Debug = False,
    ) -> None:
        with edge(debug):
            from dkrls_cli.bench.paper.published import synthetic_dataset
            from dkrls_cli.cli.bench.experiments import Wish, run

            seconds = limit_of(time_limit, 60.0, full)
            wish = Wish(methods, seeds, seconds, full, search, csv, plot, overwrite)
            run([synthetic_dataset(name)], wish, Report(json, quiet, verbose))


for _name, _about in PAPER.items():
    experiment(_name, _about)


@bench.command("intel-lab")
def temperatures(
    data: Annotated[
        str, typer.Option(metavar="FILE", help="The matrix of 52 columns, or the raw data.txt.")
    ],
    methods: Methods = None,
    seeds: Splits = 5,
    time_limit: SecondsAll = None,
    full: Full = False,
    search: Search = False,
    csv: RowsTo = None,
    plot: PlotTo = None,
    overwrite: opt.Overwrite = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
    debug: opt.Debug = False,
) -> None:
    """The paper's Intel Lab comparison: 4,160 temperatures of 52 sensors.

    FILE is a matrix of 52 columns, or data.txt, of which bad readings are dropped.

    Rows have the paper's settings; with a star settings found by a search.

    Examples:
      dkrls bench intel-lab --data data.txt

      dkrls bench intel-lab --data data.txt.gz --methods dkrls,dkrls-auto,swkrls
    """
    with edge(debug):
        from dkrls_cli.bench.paper.intel_lab import read_intel_lab
        from dkrls_cli.bench.paper.published import intel_lab_dataset
        from dkrls_cli.cli.bench.experiments import Wish, run

        report = Report(json, quiet, verbose)
        seconds = limit_of(time_limit, 60.0, full)
        wish = Wish(methods, seeds, seconds, full, search, csv, plot, overwrite)
        with report.working(f"reading {data}"):
            found = read_intel_lab(data)
        for text in found.notes:
            report.note(f"Note: {text}.")
        run([intel_lab_dataset(found.values)], wish, report)


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
        from dkrls_cli.bench.real.interpolation import INTERPOLATION_RACE
        from dkrls_cli.cli.bench.racing import Terms, held

        terms = Terms(inputs, var, methods, seeds, time_limit, csv, overwrite)
        held(INTERPOLATION_RACE, terms, Report(json, quiet, verbose))


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
        from dkrls_cli.bench.real.gaps import GAP_RACE
        from dkrls_cli.cli.bench.racing import Terms, held

        terms = Terms(inputs, var, methods, seeds, time_limit, csv, overwrite)
        held(GAP_RACE, terms, Report(json, quiet, verbose))


@bench.command()
def stream(
    given: Annotated[
        str, typer.Argument(metavar="FILE", help="NetCDF, Zarr, CSV, or a matrix of numbers.")
    ],
    var: opt.Var = None,
    levels: opt.Levels = None,
    window: Annotated[int, typer.Option(min=2, help="Slices that dkrls remembers.")] = 200,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,...",
            help="Of last-value, dkrls and the online methods. Default: all.",
        ),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(metavar="S", help="Seconds for a search, and for a run.")
    ] = 300.0,
    csv: RowsTo = None,
    overwrite: opt.Overwrite = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
    debug: opt.Debug = False,
) -> None:
    """Race forecasts of a stream, one step ahead, against online kernel methods.

    Slices along the last level are forecast one by one, each before it is learnt.

    Online methods are searched on the first 1000 steps, or a quarter of all.

    `later` is after these steps. Ratios to dkrls are on the same steps.

    Examples:
      dkrls bench stream sensors.csv

      dkrls bench stream sst.nc --window 50 --methods last-value,dkrls,qklms

      dkrls bench stream matrix.txt --time-limit 60 --csv race.csv
    """
    with edge(debug):
        from dkrls_cli.cli.bench.streamrace import StreamTerms, streamed

        terms = StreamTerms(given, var, levels, window, methods, time_limit, csv, overwrite)
        streamed(terms, Report(json, quiet, verbose))


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
    from dkrls_cli.bench import speed
    from dkrls_cli.cli.bench.racing import tell_machine

    runs: dict[str, Callable[[], Iterable[Measure]]] = {
        "speed": speed.measure_speed,
        "tuning": speed.measure_tuning,
        "large": speed.measure_large,
        "startup": speed.measure_startup,
    }
    tell_machine(report)
    with report.working(f"measuring {race}"):
        rows = [asdict(measure) for measure in runs[race]()]
    tell_measures(rows, report)


def tell_measures(rows: Rows, report: Report) -> None:
    """Print what was measured, and on what."""
    from dkrls_cli.bench.machine import describe_machine

    report.result({"rows": rows, "machine": describe_machine()}, table(rows))
