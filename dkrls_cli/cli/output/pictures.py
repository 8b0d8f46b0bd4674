"""Pictures of commands: checked before the work, written to a file or drawn in the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dkrls_cli.cli.output.target import Target, check_file
from dkrls_cli.cli.report import Report
from dkrls_cli.cli.terminal.tables import available_width, can_draw

if TYPE_CHECKING:
    from dkrls_cli.files.source import Source
    from dkrls_cli.model.fill import Filled
    from dkrls_cli.plots.filling import FilledSlice
    from dkrls_cli.plots.pictures import Picture
    from dkrls_cli.plots.slices import Fixed
    from dkrls_cli.plots.terminal import Terminal


def check_picture(path: Path, overwrite: bool, report: Report, *inputs: str | Path | None) -> None:
    """Raise an error if a picture cannot be drawn or written, before any work is done."""
    from dkrls_cli.plots.style import check_drawable

    check_drawable(path)
    check_file(path, overwrite, report, *inputs)


def write_pictures(pictures: Sequence[Picture], path: Path, width: float, overwrite: bool) -> None:
    """Draw pictures, one below the other, and write them to a file; `width` is in mm."""
    from dkrls_cli.plots.figures import make_figure
    from dkrls_cli.plots.style import write_figure

    write_figure(lambda: make_figure(pictures, width), path, overwrite=overwrite)


def print_picture(picture: Picture) -> None:
    """Draw a picture in the terminal, or as plain text where stdout is none."""
    from dkrls_cli.plots.terminal import draw_text

    typer.echo(draw_text(picture, known_terminal()), color=True)


def known_terminal() -> Terminal:
    """Return what stdout can show: colours of a terminal that has them, shades elsewhere."""
    from dkrls_cli.plots.terminal import Terminal

    encoding = (sys.stdout.encoding or "ascii").lower()
    return Terminal(available_width(), _colour_count(), encoding.startswith("utf"))


def _colour_count() -> int:
    """Return how many colours stdout shows: none in a pipe and with NO_COLOR."""
    if os.environ.get("NO_COLOR") or not can_draw(sys.stdout):
        return 0
    if os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return 2**24
    return 256 if "256" in os.environ.get("TERM", "") else 0


def report_fixed(fixed: Sequence[Fixed], report: Report, where: str = "") -> None:
    """Say which coordinates are shown of dimensions that nobody chose one of."""
    for one in fixed:
        other = "" if one.asked else f"; --at {one.dim}=... shows another"
        report.note(f"Note: {one.dim}={one.text} is shown{where}, {one.reason}{other}.")


def draw_filled(filled: Sequence[Filled], path: Path, overwrite: bool, report: Report) -> None:
    """Draw what was filled of variables in memory."""
    from dkrls_cli.plots.filling import slice_filled

    with report.working("computing error bars of the picture"):
        found = [slice_filled(one) for one in filled]
    write_filled_slices(found, path, overwrite, report)


def draw_filled_files(
    sources: Sequence[Source], target: Target, std: bool, path: Path, report: Report
) -> None:
    """Draw what was filled of variables in files, of which one slice at a time is read."""
    from dkrls_cli.files.reading import open_source
    from dkrls_cli.grid.grid import std_variable
    from dkrls_cli.plots.filling import slice_files

    assert target.path is not None
    found, output = [], target.path
    with report.working("reading filled cells"):
        for source in sources:
            name = std_variable(source.name, source.attrs)[0]
            errors = open_source([output], name) if std else None
            found.append(slice_files(source, open_source([output], source.name), errors))
    if not std:
        report.note("Note: grids filled in tiles are drawn with error bars only with --std.")
    write_filled_slices(found, path, target.overwrite, report)


def write_filled_slices(
    found: Sequence[FilledSlice], path: Path, overwrite: bool, report: Report
) -> None:
    """Write a picture of what was filled, one row for each variable, and say what it shows."""
    from dkrls_cli.plots.filling import picture_filled
    from dkrls_cli.plots.style import FULL_WIDTH

    pictures = []
    for one in found:
        picture = picture_filled(one)
        if picture is None:
            report.note(f"Note: '{one.before.name}' has no values and is not drawn.")
            continue
        whose = f" of {one.before.name}" if found[1:] else ""
        report_fixed(one.fixed, report, f"{whose} in {path}")
        pictures.append(picture)
    if pictures:
        write_pictures(pictures, path, FULL_WIDTH, overwrite)
