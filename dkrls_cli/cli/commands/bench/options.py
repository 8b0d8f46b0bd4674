"""Options of the races: what a race is run with, each with its default."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.errors import SettingError

Csv = Annotated[
    Path | None, typer.Option(metavar="OUT.csv", help="Also write the rows to this file.")
]
Draws = Annotated[int, typer.Option(min=1, metavar="N", help="Random draws per grid.")]
Splits = Annotated[
    int,
    typer.Option(
        "--seeds", min=1, metavar="N", help="Random splits, as many as there is time for."
    ),
]
CaseLimit = Annotated[float, typer.Option(metavar="S", help="Seconds for a method on one case.")]


@dataclass(frozen=True)
class ExperimentOptions:
    """How one of the paper's experiments is run."""

    methods: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,...",
            help="Only these methods; a wrong name lists all of them.",
            show_default="all",
        ),
    ] = None
    seeds: Splits = 5
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help="Seconds for a method on one dataset.",
            show_default="60, or 4 for bench alone",
        ),
    ] = None
    full: Annotated[
        bool,
        typer.Option("--full", help="No time limit; resumes an interrupted run from --csv."),
    ] = False
    search: Annotated[
        bool, typer.Option("--search", help="Search the settings of the starred rows again.")
    ] = False
    csv: Csv = None
    plot: Annotated[
        Path | None,
        typer.Option(metavar="OUT.png", help="Draw error against time; also .svg and .pdf."),
    ] = None
    overwrite: opt.Overwrite = False

    def seconds(self, default: float) -> float:
        """Return the seconds for a method on a dataset; raise SettingError if they contradict."""
        if self.full and self.time_limit is not None:
            raise SettingError(
                f"--time-limit {self.time_limit:g} and --full, which has no limit, do not go "
                "together. Give one of them."
            )
        return default if self.time_limit is None else self.time_limit


@dataclass(frozen=True)
class QuickOptions(ExperimentOptions):
    """How the experiments of ``dkrls bench`` alone are run: on fewer splits."""

    seeds: Splits = 3


@dataclass(frozen=True)
class RealOptions:
    """How grids race with parts held out."""

    var: opt.Var = None
    seeds: Draws = 3
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,...",
            help="Of dkrls, linear, spline3, spline5, cubic, xarray.",
            show_default="all",
        ),
    ] = None
    time_limit: CaseLimit = 60.0
    csv: Csv = None
    overwrite: opt.Overwrite = False


@dataclass(frozen=True)
class GapOptions(RealOptions):
    """How grids race with cells hidden: slower, so on fewer draws and with more time."""

    seeds: Draws = 1
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,...",
            help="Of dkrls, per-axis, nearest, griddata, eof.",
            show_default="all",
        ),
    ] = None
    time_limit: CaseLimit = 300.0


@dataclass(frozen=True)
class CompetitionOptions:
    """Which published results stand beside ours, and where the rows go."""

    dataset: Annotated[
        Literal["satellite", "simulated", "none"] | None,
        typer.Option(help="Published results to show.", show_default="by the name of the file"),
    ] = None
    csv: Csv = None
    overwrite: opt.Overwrite = False


@dataclass(frozen=True)
class StreamRaceOptions:
    """How forecasts of a stream race."""

    var: opt.Var = None
    levels: opt.Levels = None
    window: Annotated[
        int, typer.Option(min=2, metavar="N", help="Slices that dkrls remembers.")
    ] = 200
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,...",
            help="Of last-value, dkrls and the online methods.",
            show_default="all",
        ),
    ] = None
    time_limit: Annotated[
        float, typer.Option(metavar="S", help="Seconds for a search, and for a run.")
    ] = 300.0
    csv: Csv = None
    overwrite: opt.Overwrite = False
