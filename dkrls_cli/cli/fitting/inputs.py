"""The inputs of a command: opened, read, and what was noticed on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dkrls_cli.cli.describe import shape_text
from dkrls_cli.cli.report import Report, command_line
from dkrls_cli.errors import SettingError
from dkrls_cli.spelling import suggest

if TYPE_CHECKING:
    from dkrls_cli.files.source import Source
    from dkrls_cli.grid.grid import Grid
    from dkrls_cli.model.model import Model


def open_inputs(
    inputs: list[str],
    var: Sequence[str] | None,
    levels: list[str] | None,
    report: Report,
    errors: Sequence[str] | None = None,
) -> list[Source]:
    """Open the files of variables; their values are not read yet.

    `errors` is what --obs-error was given; None for a command that has no such option.
    """
    from dkrls_cli.files.observed.errors import GivenErrors, open_with_errors
    from dkrls_cli.files.reading import open_variables

    given = GivenErrors.read(errors)
    with report.working("opening files"):
        if given:
            sources = open_with_errors(inputs, var or (), levels, given)
        else:
            sources = open_variables(inputs, var or (), levels)
    if errors is not None and not given:
        note_known_errors(inputs, sources, report)
    for source in sources:
        report.detail(f"{source.name}: {shape_text(source.axes)}, {source.dtype}")
    return sources


def open_whole(
    path: str,
    var: Sequence[str] | None,
    levels: list[str] | None,
    report: Report,
    errors: Sequence[str] | None,
) -> list[Source]:
    """Open variables of the one file; their values are not read yet."""
    from dkrls_cli.files.source import expand

    paths = expand(path)
    if len(paths) > 1:
        raise SettingError(f"'{path}' is {len(paths)} files. Give one of them, or join them first.")
    return open_inputs(paths, var, levels, report, errors)


def note_known_errors(inputs: list[str], sources: Sequence[Source], report: Report) -> None:
    """Say that a file has standard errors of a variable, which are used on request only."""
    from dkrls_cli.files.observed.errors import known_errors

    for source in sources:
        name = known_errors(inputs, source)
        if name is not None:
            report.note(
                f"Note: '{name}' has standard errors of '{source.name}', which are not used. "
                f"--obs-error {name} uses them."
            )


def read_values(source: Source, report: Report) -> Grid:
    """Read the values of a variable, and report what was noticed on the way."""
    with report.working(f"reading {source.name}"):
        grid = source.grid().freeze()  # so that a model need not copy it
    report_notes(source, report)
    return grid


def report_notes(source: Source, report: Report) -> None:
    """Report what was decided or noticed while reading."""
    for note in source.notes:
        report.note(f"Note: {note}.")


def report_marks(grid: Grid, report: Report) -> None:
    """Warn of values that seem to mark missing cells, where no fit does."""
    from dkrls_cli.grid.quantities import mark_note

    note = mark_note(grid.name, grid.values)
    if note:
        report.note(f"Warning: {note}.")


def with_history(grid: Grid) -> Grid:
    """Return a grid whose history begins with this command."""
    from dkrls_cli.files.writing import history_line

    return replace(grid, style=grid.style.after(history_line(command_line())))


def open_new(
    model: Model,
    inputs: list[str],
    var: str | None,
    raw: Mapping[str, bytes],
    report: Report,
    errors: Sequence[str] | None = None,
) -> Source:
    """Open the new slices in files; of several variables, the one the model was fitted to.

    They have the errors of --obs-error, or those that the model has from a number or a variable.
    """
    from dkrls_cli.files.observed.errors import GivenErrors, slices_with_errors
    from dkrls_cli.files.reading import open_slices
    from dkrls_cli.model.updating.alignment import usual_error

    source = open_slices(inputs, var, model.hierarchy, model.name, raw)
    if source.name != model.name and var is None:
        report.note(f"Note: '{source.name}' is used as the model's '{model.name}'.")
    if model.attrs.get("units") and not source.attrs.get("units"):
        report.note(f"Note: '{source.name}' has no units: taken as '{model.attrs['units']}'.")
    text: str | float | None = GivenErrors.read(errors).of(model.name)
    text = usual_error(model) if text is None else text
    if text is not None:
        source = slices_with_errors(source, inputs, text, model.hierarchy, raw)
    return source


def chosen_models(path: Path, var: Sequence[str] | None) -> list[Model]:
    """Return the models of a file that are named, or all without a name."""
    from dkrls_cli.model.saving import load_models

    models = load_models(path)
    if not var or list(var) == ["all"]:
        return list(models.values())
    for name in var:
        if name not in models:
            raise SettingError(
                f"'{path}' has no variable '{name}'. It has {', '.join(models)}."
                f"{suggest(name, models)}"
            )
    if len(set(var)) < len(var):
        raise SettingError(f"--var names a variable twice: {', '.join(var)}.")
    return [models[name] for name in var]
