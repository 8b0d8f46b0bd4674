"""``dkrls plot``: a picture of data or of a model's answers, in a file or in the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.expansion import expand
from dkrls_cli.cli.fitting.inputs import open_inputs, report_notes
from dkrls_cli.cli.output.answers import refuse_large_answers
from dkrls_cli.cli.output.pictures import (
    check_picture,
    print_picture,
    report_fixed,
    write_pictures,
)
from dkrls_cli.cli.report import Report, edge, refuse_closed_stdout
from dkrls_cli.errors import SettingError
from dkrls_cli.grid.spec import parse_at

if TYPE_CHECKING:
    from dkrls_cli.plots.pictures import Picture

# First bytes of a zip archive, as model files are.
_ARCHIVE = b"PK"


@expand
def plot(
    source: Annotated[
        str,
        typer.Argument(metavar="MODEL|FILE", help="Model file, or NetCDF, Zarr or CSV with data."),
    ],
    *,
    at: opt.At = None,
    var: Annotated[
        str | None, typer.Option(metavar="NAME", help="Variable, where there is a choice.")
    ] = None,
    std: Annotated[
        bool, typer.Option("--std", help="Also standard errors: a map, or 90 % around a line.")
    ] = False,
    data: Annotated[
        bool,
        typer.Option("--data", help="Also the data of a MODEL beside its map; a line has it."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PICTURE", help="Ends in .png, .svg or .pdf."),
    ] = None,
    term: Annotated[bool, typer.Option("--term", help="Draw in the terminal.")] = False,
    width: Annotated[
        float, typer.Option(metavar="MM", help="Width of PICTURE, 60 to 600.")
    ] = 180.0,
    threads: opt.Threads = None,
    outputs: opt.OutputOptions,
    report: Report,
) -> None:
    """Draw data or a model's answers: a map, a section or a line.

    Of a FILE the data is drawn; of a MODEL its answers, also between the data.

    The dimensions that --at leaves longer than one decide: two are a map or a
    section, one is a line. Of more, places are shown at the last time, or at
    the first of other coordinates; which, is said on stderr.

    Examples:
      dkrls plot sst.nc -o sst.png

      dkrls plot sst.npz --at lat=20:60:0.5 --at lon=-80:0:0.5 --std --data -o map.pdf

      dkrls plot sst.npz --at lat=35 --at lon=-40 --at time=2020-01-01:2020-12-31:1D --std -o s.svg

      dkrls plot sst.nc --at time=2020-03-01 --term
    """
    from dkrls_cli.threads import blas_threads

    with edge(report.debug):
        refuse_nowhere(output, term, report)
        if output is not None:
            refuse_width(width)
            check_picture(output, outputs.overwrite, report, source)
        with blas_threads(threads):
            if is_model(source):
                picture = draw_model(Path(source), var, at, std, data, report)
            else:
                picture = draw_file(source, var, at, std, data, report)
        if output is not None:
            write_pictures([picture], output, width, outputs.overwrite)
            report.detail(f"{picture.title}: written to {output}")
        if term:
            print_picture(picture)
        if report.json:
            report.result({"output": str(output), "title": picture.title, "units": picture.units})


def refuse_nowhere(output: Path | None, term: bool, report: Report) -> None:
    """Raise an error if it is not said where the picture goes, or it cannot go there."""
    if output is None and not term:
        raise SettingError("Where should the picture go? Give -o PICTURE.png, or --term.")
    if term and report.json:
        raise SettingError("--json and --term both write to stdout. Give one of them.")
    if term:
        refuse_closed_stdout()


def refuse_width(width: float) -> None:
    """Raise SettingError if a picture of this width in mm could not be read or rendered."""
    from dkrls_cli.plots.style import LARGEST_WIDTH, LEAST_WIDTH

    if not LEAST_WIDTH <= width <= LARGEST_WIDTH:
        raise SettingError(
            f"--width {width:g} is no width of a picture. Expected {LEAST_WIDTH:g} to "
            f"{LARGEST_WIDTH:g} mm."
        )


def is_model(path: str) -> bool:
    """Return whether a path is that of a model file, by its name or its first bytes."""
    if path.lower().endswith(".npz"):
        return True
    if not Path(path).is_file():
        return False
    with open(path, "rb") as file:
        return file.read(len(_ARCHIVE)) == _ARCHIVE


def draw_model(
    path: Path,
    var: str | None,
    at: Sequence[str] | None,
    std: bool,
    data: bool,
    report: Report,
) -> Picture:
    """Return the picture of a model's answers, and report what is shown."""
    from dkrls_cli.model.saving import load_model
    from dkrls_cli.plots.pictures import ask_model, picture_model

    model = load_model(path, var)
    asked = ask_model(model, parse_at(at, model.coverage.axes))
    refuse_large_answers([asked.query], std)
    report_fixed(asked.fixed, report)
    beyond = asked.query.outside_count
    if beyond:
        report.note(
            f"Note: {beyond} of {math.prod(asked.query.shape)} cells are outside the training "
            "range and stay empty."
        )
    with report.working("predicting"):
        return picture_model(asked, std=std, data=data)


def draw_file(
    path: str,
    var: str | None,
    at: Sequence[str] | None,
    std: bool,
    data: bool,
    report: Report,
) -> Picture:
    """Return the picture of data in a file, and report what is shown."""
    from dkrls_cli.plots.pictures import picture_data
    from dkrls_cli.plots.slices import read_slice

    for option, given in (("--std", std), ("--data", data)):
        if given:
            raise SettingError(
                f"{option} is for a model, and '{path}' is none. Leave it out, or fit a model: "
                f"dkrls fit {path} -o MODEL.npz."
            )
    [source] = open_inputs([path], [var] if var else None, None, report)
    with report.working(f"reading {source.name}"):
        found, fixed = read_slice(source, parse_at(at, source.axes, "file"))
    report_notes(source, report)
    report_fixed(fixed, report)
    return picture_data(found)
