"""Options of the commands: each is described once, with its default.

Options that belong together are the fields of a frozen dataclass, which a command takes as one
parameter, see :mod:`dkrls_cli.cli.expansion`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import typer

from dkrls_cli.cli.terminal.pages import RESOURCES, SETTINGS, WHAT
from dkrls_cli.cli.texts import byte_count

# Share of the memory that is free which a fit may take by default: the rest is for other processes,
# for files in the cache of the system, and for what the estimate is too low.
_MEMORY_SHARE = 0.8

# --- single options ------------------------------------------------------------------------------

Var = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Variable to model; needed only where there is a choice.",
        rich_help_panel=WHAT,
    ),
]
Vars = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME|all",
        help="Variable to model, where there is a choice. Repeatable.",
        rich_help_panel=WHAT,
    ),
]
Levels = Annotated[
    str | None,
    typer.Option(
        metavar="DIM,DIM,...",
        help="Hierarchy of dimensions, level 0 first.",
        show_default="file order, time last",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=1024,
        metavar="N",
        help="Threads for matrix products.",
        show_default="OMP_NUM_THREADS, or all",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an output that exists.")]
Smooth = Annotated[
    bool,
    typer.Option(
        "--smooth", help="Ask the model at training coordinates as well: denoised values."
    ),
]
At = Annotated[
    list[str] | None,
    typer.Option(
        metavar="DIM=SPEC",
        help="A value, 1,2,3, start:stop:step (of dates: step 7D, 6H, 1M), start:stop (the "
        "training coordinates in that range) or all. Repeatable.",
    ),
]
Like = Annotated[
    str | None,
    typer.Option(metavar="GRID", help="Take the coordinates of a file, or a name: r360x180."),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file.")]
NewModelFile = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="OUT.npz", help="Write here instead of changing MODEL."),
]
Retune = Annotated[
    bool, typer.Option("--retune", help="Choose the settings of the last level again.")
]
AcceptInexact = Annotated[
    bool,
    typer.Option(
        "--accept-inexact", help="Take missing cells that could not be solved for exactly."
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Engine of xarray that reads the input, like cfgrib or h5netcdf.",
        show_default="by the name of the input",
    ),
]
ObsError = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]VAR|VALUE|FILE",
        help="Standard error of the observations: a variable of the input, a number, or a file on "
        "some of its dimensions. NAME= is for one of several variables. Repeatable.",
    ),
]
Inputs = Annotated[
    list[str],
    typer.Argument(metavar="INPUT", help="NetCDF, Zarr or CSV; several are joined; - is stdin."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print what would be done, and what it would take.")
]
AnswerFile = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="OUT", help=".nc, .zarr, .csv, .jsonl, .parquet, or -."),
]
AnswerFormat = Annotated[
    Literal["csv", "jsonl", "nc"] | None,
    typer.Option("--format", help="Format of OUT.", show_default="what OUT ends in, or csv"),
]
RowFormat = Literal["csv", "jsonl"]


# --- groups of options ---------------------------------------------------------------------------


@dataclass(frozen=True)
class KernelOptions:
    """Which variable to use, and the kernels of its levels; None: to be chosen."""

    panel: ClassVar[str] = SETTINGS

    var: Vars = None
    engine: Engine = None
    levels: Levels = None
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[DIM=]NAME",
            help="gaussian, matern52, matern32 or matern12; the splines linear, cubic or quintic; "
            "any of them of a logarithm or root, as log-cubic or sqrt-gaussian; or auto. "
            "Repeatable.",
        ),
    ] = None
    sigma: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[DIM=]VALUE",
            help="Length scale in units of the dimension (of time also 30D, 6H), or auto. "
            "lat=10,lon=20 sets two. Repeatable.",
        ),
    ] = None
    ridge: Annotated[
        list[str] | None,
        typer.Option(metavar="[DIM=]VALUE", help="Ridge, 0 or above, or auto. Repeatable."),
    ] = None
    period: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[DIM=]VALUE",
            help="Length of the circle (of time also 1Y); none: no circle and no cycle; auto: as "
            "found. Repeatable.",
        ),
    ] = None


@dataclass(frozen=True)
class LevelOptions(KernelOptions):
    """Which variable to model, and the settings of its levels; None: to be chosen."""

    group: Annotated[
        str,
        typer.Option(
            metavar="DIM,DIM",
            help="Dimensions with one distance where cells are missing, like lat,lon; none; auto: "
            "latitude and longitude (on the sphere if they go round it) where that predicts hidden "
            "cells better.",
        ),
    ] = "auto"
    accept_inexact: AcceptInexact = False
    poles: Annotated[
        Literal["auto", "none", "scalar", "vector"],
        typer.Option(
            help="How data on the globe is continued across a pole: as a scalar, as a component of "
            "a vector (the sign changes), not at all, or, if no cell is missing, as predicts best."
        ),
    ] = "auto"
    robust: Annotated[
        bool,
        typer.Option(
            "--robust",
            help="Fit without the cells that dkrls check would flag.",
        ),
    ] = False
    obs_error: ObsError = None
    bounds: Annotated[
        str,
        typer.Option(
            metavar="LOW,HIGH",
            help="Least and largest answer, like 0,1 or 0, for one alone; none; auto: as the file "
            "says (valid_range, fractions).",
        ),
    ] = "auto"


@dataclass(frozen=True)
class FitOptions(LevelOptions):
    """All settings of a fit."""

    noise: Annotated[
        Literal["level", "joint", "auto"],
        typer.Option(
            help="One ridge per level, or one for the whole grid. auto: joint if cells are missing "
            "and one ridge is given."
        ),
    ] = "auto"
    missing: Annotated[
        Literal["model", "error"],
        typer.Option(help="Fit through missing cells, or refuse them."),
    ] = "model"
    folds: Annotated[
        int | None,
        typer.Option(
            min=2,
            metavar="K",
            help="Choose by leaving out K blocks, not single slices: for answers in wide gaps.",
        ),
    ] = None
    compact: Annotated[
        bool,
        typer.Option(
            "--compact",
            help="Keep only what the kernels can express: smaller where the data is smooth.",
        ),
    ] = False
    tolerance: Annotated[
        str | None,
        typer.Option(
            metavar="T",
            help="Store the smallest model whose answers are this close to the full one: 1e-3 of "
            "the standard deviation, or '0.05 K'.",
        ),
    ] = None
    float32: Annotated[
        bool,
        typer.Option("--float32", help="Store numbers of 8 bytes in 4: half the size, error 6e-8."),
    ] = False
    cell_means: Annotated[
        bool,
        typer.Option(
            "--cell-means",
            help="The data are means over cells, and means over other cells agree with them. "
            "Dimensions: those of cell_methods, or else latitude and longitude, or else all.",
        ),
    ] = False
    cell_means_along: Annotated[
        str | None,
        typer.Option(metavar="DIM,...", help="The data are means over cells of these dimensions."),
    ] = None


@dataclass(frozen=True)
class RunOptions:
    """Limits on the memory and the threads of a fit."""

    panel: ClassVar[str] = RESOURCES

    max_memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE|none",
            help="Refuse what is estimated to need more, like 4GB; fill works in tiles then.",
            show_default="80 % of what the machine or the job has free",
        ),
    ] = None
    threads: Threads = None

    @property
    def memory_limit(self) -> float:
        """Bytes that may be used, the process included; infinity for no limit."""
        if self.max_memory == "none":
            return math.inf
        if self.max_memory is not None:
            return byte_count(self.max_memory)
        from dkrls_cli.memory import available_bytes

        return _MEMORY_SHARE * available_bytes()


@dataclass(frozen=True)
class OutputOptions:
    """Whether an output that exists may be replaced."""

    overwrite: Overwrite = False


@dataclass(frozen=True)
class GridOutputOptions(OutputOptions):
    """How a grid is written: whether it may replace another file, and how far it is compressed."""

    compress: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=9,
            metavar="LEVEL",
            help="Compress NetCDF or Zarr, 0 (not) to 9.",
            show_default="1 for variables above 1 MB",
        ),
    ] = None


@dataclass(frozen=True)
class InPlaceOptions:
    """How to change a model file that other commands may change as well."""

    wait: Annotated[
        float,
        typer.Option(min=0.0, metavar="S", help="Seconds to wait for another update of the file."),
    ] = 60.0
    overwrite: Overwrite = False


@dataclass(frozen=True)
class SliceOptions:
    """Which slices of a growing model are kept, and whether it is tuned again."""

    panel: ClassVar[str] = SETTINGS

    replace: Annotated[
        bool, typer.Option("--replace", help="Let a new slice replace one at its coordinate.")
    ] = False
    window: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Keep only the last N slices.")
    ] = None
    max_rank: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Keep the N slices that best predict the others; reports the cost.",
        ),
    ] = None
    retune: Retune = False
