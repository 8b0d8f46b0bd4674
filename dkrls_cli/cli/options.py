"""Options of the commands: each is described once, with its default, and how its text is read.

Options that belong together are the fields of a frozen dataclass. A command takes the dataclass
as one parameter; :func:`expand` gives Typer the options and the command the dataclass.

On a help page, an option stands in the panel that its `rich_help_panel` names, or its parameter in
`NAMED_PANELS`, or the class variable `panel` of its dataclass; otherwise under "What".
"""

from __future__ import annotations

import copy
import functools
import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args, get_type_hints

import typer

from dkrls_cli.cli.config import Config, SaveConfig, saved_options
from dkrls_cli.cli.terminal.pages import OUTPUT, RESOURCES, SETTINGS, WHAT
from dkrls_cli.errors import SettingError

NAMED_PANELS = {
    "compress": OUTPUT,
    "csv": OUTPUT,
    "dry_run": OUTPUT,
    "form": OUTPUT,
    "mask_out": OUTPUT,
    "output": OUTPUT,
    "overwrite": OUTPUT,
    "plot": OUTPUT,
    "resume": RESOURCES,
    "scheduler": RESOURCES,
    "threads": RESOURCES,
    "time_limit": RESOURCES,
    "wait": RESOURCES,
    "weights": OUTPUT,
}
"""Panels of parameters by name: options that mean the same in every command."""


def expand(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with its dataclass parameters expanded into their fields, for Typer.

    Defaults stand in the dataclasses. The command itself receives one instance of each. It also
    gets --config and --save-config, unless it has a `config` of its own.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            parameters += _field_parameters(groups[name])
        else:
            hint = _in_panel(hints[name], name, WHAT)
            parameters.append(parameter.replace(annotation=hint, kind=_KEYWORD))
    own = [parameter.name for parameter in parameters]
    added = [] if "config" in own else [one for one in _file_parameters() if one.name not in own]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        saving: Any = given.get("context"), given.get("save_config"), given.get("overwrite", False)
        for parameter in added:
            del given[parameter.name]
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        with saved_options(*saving):
            command(**given)

    parameters += added
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _file_parameters() -> list[inspect.Parameter]:
    """Return the parameters of commands whose options may come from a file and go to one."""
    hints = {"context": typer.Context, "config": Config, "save_config": SaveConfig}
    made = [
        inspect.Parameter(name, _KEYWORD, default=None, annotation=hint)
        for name, hint in hints.items()
    ]
    made[0] = made[0].replace(default=inspect.Parameter.empty)
    overwrite = _in_panel(Overwrite, "overwrite", OUTPUT)
    return [*made, inspect.Parameter("overwrite", _KEYWORD, default=False, annotation=overwrite)]


# Share of the memory that is free which a fit may take by default: the rest is for other processes,
# for files in the cache of the system, and for what the estimate is too low.
_MEMORY_SHARE = 0.8

_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def _field_parameters(group: Any) -> list[inspect.Parameter]:
    """Return the fields of a dataclass as parameters with their annotations and defaults."""
    hints = get_type_hints(group, include_extras=True)
    empty, panel = inspect.Parameter.empty, getattr(group, "panel", WHAT)
    return [
        inspect.Parameter(
            field.name,
            _KEYWORD,
            default=empty if field.default is MISSING else field.default,
            annotation=_in_panel(hints[field.name], field.name, panel),
        )
        for field in fields(group)
    ]


def _in_panel(hint: Any, name: str, usual: str) -> Any:
    """Return the annotation of an option with the panel of help pages that it stands in."""
    kind, *notes = get_args(hint) if hasattr(hint, "__metadata__") else (hint,)
    if not notes:
        return hint
    info = copy.copy(notes[0])
    info.rich_help_panel = info.rich_help_panel or NAMED_PANELS.get(name, usual)
    return Annotated[kind, info]


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
        show_default="by its name",
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
RowFormat = Literal["csv", "jsonl"]
AnyFormat = Literal["csv", "jsonl", "nc"]


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
            help="How data on the globe goes on across a pole: as a scalar, as a component of a "
            "vector (the sign changes), not at all, or, if complete, as it predicts best."
        ),
    ] = "auto"
    robust: Annotated[
        bool,
        typer.Option(
            "--robust",
            help="Fit without the cells that the others speak against, see dkrls check.",
        ),
    ] = False
    obs_error: ObsError = None
    bounds: Annotated[
        str,
        typer.Option(
            metavar="LOW,HIGH",
            help="Least and largest answer, like 0,1 or 0, for one alone; none; auto: as the file "
            "tells (valid_range, fractions).",
        ),
    ] = "auto"


@dataclass(frozen=True)
class FitOptions(LevelOptions):
    """All settings of a fit."""

    noise: Annotated[
        Literal["level", "joint", "auto"],
        typer.Option(help="A ridge per level, or one for the whole grid, as gaps need."),
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
            help="Keep only what the kernels express: smaller where the data is smooth.",
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
            help="The data are means over cells, which means over other cells keep. Dimensions: "
            "those of cell_methods, or else latitude and longitude, or else all.",
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
            min=1, metavar="N", help="Keep N slices that span the others; reports the cost."
        ),
    ] = None
    retune: Retune = False


# --- texts of options ----------------------------------------------------------------------------


def setting(values: Sequence[str] | None, option: str) -> Any:
    """Return one value for all dimensions, or a value for each dimension that was named.

    ``VALUE`` is for all dimensions, ``DIM=VALUE`` for one and ``DIM=VALUE,DIM=VALUE`` for several;
    without any value it is ``auto``.
    """
    if not values:
        return "auto"
    values = [pair for value in values for pair in _split_pairs(value)]
    split = [value.partition("=") for value in values]
    bare = [first for first, equals, _ in split if not equals]
    if bare and len(values) > 1:
        raise SettingError(
            f"{option} {bare[0]} is for all dimensions and cannot stand beside another {option}. "
            f"Name the dimension: {option} DIM={bare[0]}."
        )
    if bare:
        return bare[0]
    named = {dim.strip(): value.strip() for dim, _, value in split}
    if len(named) < len(values):
        dims = [dim.strip() for dim, _, _ in split]
        twice = next(dim for dim in dims if dims.count(dim) > 1)
        raise SettingError(f"{option} was given twice for the same dimension, {twice}.")
    return named


LEVEL_SETTINGS = ("kernel", "sigma", "ridge", "period")
"""Options with a value per level."""


def level_settings(options: KernelOptions, noise: str = "auto") -> dict[str, Any]:
    """Return the settings of levels that options give, by the names of a fit.

    A level is given whole by a kernel with parts, such as ``gaussian+constant:1``, as ``dkrls info
    --config`` prints it.
    """
    given = {name: setting(getattr(options, name), f"--{name}") for name in LEVEL_SETTINGS}
    order, kernel = names(options.levels), given["kernel"]
    texts = kernel if isinstance(kernel, Mapping) else dict.fromkeys(order or ["DIM"], kernel)
    whole = [dim for dim, text in texts.items() if "+" in text]
    if not whole:
        return {"levels": order, **given}
    joint = noise == "joint"
    made = {dim: _whole_level(dim, texts[dim], order or (), given, joint) for dim in whole}
    rest = {
        name: value if joint and name == "ridge" else _without(value, whole)
        for name, value in given.items()
    }
    return {"levels": [made.get(dim, dim) for dim in order or ()], **rest}


def _whole_level(
    dim: str, kernel: str, order: Sequence[str], given: Mapping[str, Any], joint: bool
) -> Any:
    """Return a level that is given whole; under a joint ridge it has none of its own."""
    from dkrls_cli.cascade.kernels import read_kernel
    from dkrls_cli.cascade.level import Level

    needed = [name for name in ("sigma", "ridge", "period") if not (joint and name == "ridge")]
    own = {name: given[name].get(dim) for name in needed if isinstance(given[name], Mapping)}
    lacking = [name for name in needed if own.get(name) in (None, "auto")]
    lacking += [] if dim in order else ["levels"]
    if lacking:
        raise SettingError(
            f"--kernel {dim}={kernel} gives a whole level. Give --{lacking[0]} of it as well, or "
            "the kernel without parts."
        )
    line = own["period"] == "none"
    numbers = {n: 0.0 if n == "period" and line else _number(own[n], n) for n in needed}
    period = None if line else numbers["period"]
    return Level(dim, read_kernel(kernel, numbers["sigma"], period), numbers.get("ridge", 0.0))


def _without(given: Any, dims: Sequence[str]) -> Any:
    """Return a setting for the dimensions that are not named; ``auto`` if none is left."""
    if not isinstance(given, Mapping):
        return given
    return {dim: value for dim, value in given.items() if dim not in dims} or "auto"


def _number(text: Any, option: str) -> float:
    """Return the number of an option, or raise SettingError."""
    try:
        return float(text)
    except ValueError:
        raise SettingError(f"--{option} {text} is not a number, as a whole level needs.") from None


def _split_pairs(text: str) -> list[str]:
    """Return the ``DIM=VALUE`` pairs of a text; a comma separates only if a pair follows it.

    >>> _split_pairs("lat=10,lon=20"), _split_pairs("lat=10,20"), _split_pairs("b, c=3")
    (['lat=10', 'lon=20'], ['lat=10,20'], ['b, c=3'])
    """
    pairs: list[str] = []
    for part in text.split(","):
        if pairs and not ("=" in part and "=" in pairs[-1]):
            pairs[-1] = f"{pairs[-1]},{part}"
        else:
            pairs.append(part)
    return pairs


def read_by(inputs: list[str], engine: str | None) -> list[str]:
    """Return the inputs of a command, to be read by an engine if one is given."""
    if engine is None:
        return inputs
    from dkrls_cli.files.foreign.engines import with_engine

    return with_engine(inputs, engine)


def names(text: str | None) -> list[str] | None:
    """Return the names in a text, which commas separate; None without a text."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def byte_count(text: str) -> int:
    """Return the bytes of a size such as 500MB, 4GB, 4GiB or 1e9."""
    match = re.fullmatch(r"\s*([\d.]+(?:e\d+)?)\s*([KMGT]?)(i?)B?\s*", text, re.IGNORECASE)
    try:
        if not match or float(match[1]) <= 0:
            raise ValueError
        power = ["", "K", "M", "G", "T"].index(match[2].upper())
        return int(float(match[1]) * (1024 if match[3] else 1000) ** power)
    except (ValueError, OverflowError):
        raise SettingError(
            f"'{text}' is not a size. Expected a number above 0 and a unit, like 4GB, or none."
        ) from None
