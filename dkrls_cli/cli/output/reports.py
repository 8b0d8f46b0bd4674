"""Pictures and pages of validations: checked before the work, and written after it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dkrls_cli import __version__
from dkrls_cli.cli.output.pictures import check_picture
from dkrls_cli.cli.output.target import check_file
from dkrls_cli.cli.report import Report, command_line
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.model.validation.validate import Validation
    from dkrls_cli.plots.reports.page import Provenance
    from dkrls_cli.tuning.trials.record import ChoiceRecord

_ENDINGS = (".html", ".htm")
"""Endings of the names of pages."""

_LIBRARIES = ("numpy", "scipy", "xarray", "matplotlib")
"""Libraries whose versions a page tells."""


def check_page(path: Path, overwrite: bool, report: Report, *inputs: str | Path | None) -> None:
    """Raise an error if a page cannot be drawn or written, before any work is done."""
    from dkrls_cli.files.writing import date_text
    from dkrls_cli.plots.style import check_installed

    date_text()  # one that is not possible is refused now
    if path.suffix.lower() not in _ENDINGS:
        raise SettingError(f"Cannot write the page '{path}'. Expected a name that ends in .html.")
    check_installed(path)
    check_file(path, overwrite, report, *inputs)


def check_reports(
    plot: Path | None,
    page: Path | None,
    overwrite: bool,
    report: Report,
    *inputs: str | Path | None,
) -> None:
    """Raise an error if a picture or a page of a validation cannot be written."""
    if plot is not None:
        check_picture(plot, overwrite, report, *inputs)
    if page is not None:
        check_page(page, overwrite, report, *inputs)


def draw_validations(found: Sequence[Validation], path: Path, overwrite: bool) -> None:
    """Draw what validations have kept, one below the other."""
    from dkrls_cli.plots.reports.panels import rows_figure
    from dkrls_cli.plots.reports.validation import validation_rows
    from dkrls_cli.plots.style import write_figure

    rows = [row for one in found for row in validation_rows(one)]
    write_figure(lambda: rows_figure(rows), path, overwrite=overwrite)


def write_page(
    each: Sequence[tuple[Validation, ChoiceRecord | None, Sequence[str]]],
    provenance: Provenance,
    path: Path,
    overwrite: bool,
) -> None:
    """Write the page of validations, each with what was tried and the limits that it missed."""
    from dkrls_cli.files.output.atomic import atomic_write
    from dkrls_cli.plots.reports.page import ReportedVariable, make_page

    page = make_page([ReportedVariable(*one) for one in each], provenance)
    with atomic_write(path, overwrite=overwrite) as temporary:
        temporary.write_text(page, encoding="utf-8", newline="\n")


def provenance_of(inputs: Sequence[str], facts: Mapping[str, Any]) -> Provenance:
    """Return where a validation of some inputs comes from.

    `facts` are the settings of the validation by name; those that are None are left out.
    """
    import platform
    from importlib.metadata import version

    from dkrls_cli.files.writing import command_text, date_text
    from dkrls_cli.plots.reports.page import Provenance

    libraries = [f"{name} {version(name)}" for name in _LIBRARIES]
    programs = [f"dkrls {__version__}", f"Python {platform.python_version()}", *libraries]
    told = {
        "inputs": ", ".join(Path(name).name for name in inputs),
        **{name: _text(value) for name, value in facts.items() if value is not None},
        "versions": ", ".join(programs),
        "system": sys.platform,
    }
    return Provenance(command_text(command_line()), told, date_text())


def _text(value: Any) -> str:
    """Return a setting in words."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(own)}" for key, own in value.items()) or "none given"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
