"""Options that several commands share, and how their texts are read."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dkrls_cli.cli.report import edge
from dkrls_cli.errors import SettingError

Var = Annotated[
    str | None, typer.Option(help="Variable to model; needed only where there is a choice.")
]
Levels = Annotated[
    str | None,
    typer.Option(
        metavar="DIM,DIM,...",
        help="Hierarchy of dimensions, level 0 first. Default: file order, time last.",
    ),
]
Kernel = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[DIM=]NAME", help="gaussian, matern52, matern32, matern12 or auto. Repeatable."
    ),
]
Sigma = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[DIM=]VALUE", help="Length scale in units of the dimension, or auto. Repeatable."
    ),
]
Ridge = Annotated[
    list[str] | None,
    typer.Option(metavar="[DIM=]VALUE", help="Ridge, 0 or above, or auto. Repeatable."),
]
Period = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[DIM=]VALUE",
        help="Length of the circle, none (no cycle either), or auto: as found. Repeatable.",
    ),
]
Noise = Annotated[
    str,
    typer.Option(
        metavar="level|joint|auto",
        help="A ridge per level, or one for the whole grid, as gaps need.",
    ),
]
Missing = Annotated[
    str,
    typer.Option(metavar="model|error", help="Fit through missing cells, or refuse them."),
]
Folds = Annotated[
    int | None,
    typer.Option(
        min=2,
        metavar="K",
        help="Choose by leaving K blocks out, not single slices: for answers in wide gaps.",
    ),
]
Compact = Annotated[
    bool, typer.Option("--compact", help="Keep only what the kernels express: a smaller model.")
]
Float32 = Annotated[
    bool, typer.Option("--float32", help="Store in single precision: half the size, error 6e-8.")
]
MaxMemory = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Refuse a fit that is estimated to need more, like 4GB."),
]
Threads = Annotated[
    int | None, typer.Option(min=1, help="Threads for matrix products. Default: OMP_NUM_THREADS.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an output that exists.")]
Replace = Annotated[
    bool, typer.Option("--replace", help="Let slices take the place of those at their coordinate.")
]
Window = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Keep the last N slices only.")
]
MaxRank = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Keep N slices that span the others; says the cost."),
]
Wait = Annotated[
    float,
    typer.Option(min=0.0, metavar="S", help="Seconds to wait for another update of the file."),
]
Smooth = Annotated[
    bool,
    typer.Option("--smooth", help="Ask the model at training coordinates too: denoised values."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only on stderr.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say more on stderr.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback when something fails.")]


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Defaults from a TOML file: keys are long option names, a table is one value per dimension."""
    if path is not None:
        with edge(False):
            context.default_map = {**(context.default_map or {}), **_defaults(context, path)}
    return path


def _defaults(context: typer.Context, path: Path) -> dict[str, Any]:
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingError(f"'{path}' cannot be read ({error.strerror}).") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"'{path}' is not TOML: {error}.") from None
    known = {
        option.removeprefix("--"): parameter
        for parameter in context.command.params
        for option in parameter.opts
        if option.startswith("--") and option not in ("--config", "--help")
    }
    unknown = [key for key in settings if key not in known]
    if unknown:
        raise SettingError(f"'{path}' has a key '{unknown[0]}' that is no option of this command.")
    return {known[k].name or k: _from_toml(k, v, known[k]) for k, v in settings.items()}


def _from_toml(key: str, value: Any, parameter: Any) -> Any:
    """A value as the command line would have it."""
    repeatable = getattr(parameter, "multiple", False)
    if isinstance(value, Mapping):
        if not repeatable:
            raise SettingError(f"{key} takes one value, not a table of them.")
        return [f"{dim}={setting}" for dim, setting in value.items()]
    several = value if isinstance(value, list) else [value]
    if repeatable:
        return [str(word) for word in several]
    return ",".join(map(str, value)) if isinstance(value, list) else value


Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        is_eager=True,
        callback=read_config,
        help="TOML file with defaults for these options; what is given here replaces them.",
    ),
]


def setting(values: Sequence[str] | None, option: str) -> Any:
    """``VALUE`` for all dimensions, or ``DIM=VALUE`` one by one; ``auto`` without any."""
    if not values:
        return "auto"
    pairs = [value.partition("=") for value in values]
    bare = [first for first, equals, _ in pairs if not equals]
    if bare and len(values) > 1:
        raise SettingError(
            f"{option} {bare[0]} is for all dimensions and cannot stand beside another {option}. "
            f"Name the dimension: {option} DIM={bare[0]}."
        )
    if bare:
        return bare[0]
    named = {dim.strip(): value.strip() for dim, _, value in pairs}
    if len(named) < len(values):
        raise SettingError(f"{option} was given twice for the same dimension.")
    return named


def names(text: str | None) -> list[str] | None:
    """A list of names with commas between them."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


_SIZES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def byte_count(text: str) -> int:
    """A size such as 500MB, 4GB, 4GiB or 1e9."""
    match = re.fullmatch(r"\s*([\d.]+(?:e\d+)?)\s*([KMGT]?)(i?)B?\s*", text, re.IGNORECASE)
    try:
        if not match or float(match[1]) <= 0:
            raise ValueError
        power = "KMGT".find(match[2].upper()) + 1
        return int(float(match[1]) * (1024**power if match[3] else _SIZES[match[2].upper()]))
    except ValueError:
        raise SettingError(
            f"'{text}' is not a size. Expected a number and a unit, like 4GB."
        ) from None
