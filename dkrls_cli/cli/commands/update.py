"""``dkrls update``: add new slices to a model file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.describe import error_words, level_table, missing_words, model_rows, shape_text
from dkrls_cli.cli.fitting.inputs import read_values, report_marks, report_notes
from dkrls_cli.cli.fitting.suggestions import last_slice
from dkrls_cli.cli.output.target import check_file, refuse_other_ending
from dkrls_cli.cli.report import Report, Result, edge
from dkrls_cli.cli.terminal.tables import bytes_text, duration_text, pairs
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.files.source import Source
    from dkrls_cli.grid.grid import Grid
    from dkrls_cli.model.model import Model
    from dkrls_cli.model.updating.surprise import Surprise
    from dkrls_cli.model.updating.update import Update


@opt.expand
def update(
    model: opt.ModelFile,
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="NEW", help="NetCDF, Zarr or CSV; several are joined; - is stdin."),
    ],
    *,
    output: opt.NewModelFile = None,
    var: opt.Var = None,
    engine: opt.Engine = None,
    obs_error: opt.ObsError = None,
    accept_inexact: opt.AcceptInexact = False,
    slices: opt.SliceOptions,
    machine: opt.RunOptions,
    files: opt.InPlaceOptions,
    report: Report,
) -> None:
    """Add slices along the last level to a model.

    The result is that of a fit of all slices with the same settings, whatever their order.

    Examples:
      dkrls update sst.npz 2026-11-16.nc

      dkrls update sensors.npz today.csv --window 8760

      tail -n +2 more.csv | cat header.csv - | dkrls update m.npz - -o new.npz
    """
    with edge(report.debug):
        from dkrls_cli.files.output.locks import lock_file
        from dkrls_cli.threads import blas_threads

        inputs = opt.read_by(inputs, engine)
        target = changed_target(model, output, files.overwrite, report, *inputs)
        with (
            lock_file(target.path, files.wait, report.note),
            blas_threads(machine.threads),
        ):
            target.refuse_unwritable()
            limit = machine.memory_limit
            update_file(
                model, target, inputs, var, slices, report, obs_error, accept_inexact, limit
            )


@dataclass(frozen=True)
class ChangedTarget:
    """Where a changed model goes, and whether it may replace what is there."""

    path: Path
    overwrite: bool

    def refuse_unwritable(self) -> None:
        """Raise OutputError if another command has written a new file while this one waited."""
        from dkrls_cli.files.output.checks import check_writable

        check_writable(self.path, overwrite=self.overwrite)


def changed_target(
    model: Path, output: Path | None, overwrite: bool, report: Report, *inputs: str
) -> ChangedTarget:
    """Return where a changed model goes; raise OutputError if another file cannot be written."""
    from dkrls_cli.files.output.checks import is_same

    if output is None or output == model or is_same(output, model):
        check_file(model, True, report, *inputs)
        return ChangedTarget(model, True)
    refuse_other_ending(output)
    check_file(output, overwrite, report, *inputs)
    return ChangedTarget(output, overwrite)


def update_file(
    path: Path,
    target: ChangedTarget,
    inputs: list[str],
    var: str | None,
    slices: opt.SliceOptions,
    report: Report,
    errors: Sequence[str] | None = None,
    accept_inexact: bool = False,
    limit: float = math.inf,
) -> None:
    """Read models, add the new slices, write them to the target, and print what has changed."""
    from dkrls_cli.files.reading import read_tables
    from dkrls_cli.model.saving import load_models, save_models

    with report.working(f"reading {path}"):
        models = list(load_models(path).values())
    if any(model.reference is not None for model in models):
        refuse_of_references(models, var, errors)
        extend_file(models, target, inputs, slices, report)
        return
    if models[1:] and var is not None:
        names = ", ".join(model.name for model in models)
        raise SettingError(f"--var is for a model of one variable; '{path}' has {names}.")
    raw = read_tables(inputs)
    changes = []
    for model in models:
        name = model.name if models[1:] else var
        source = open_new(model, inputs, name, raw, report, errors)
        if in_parts(model, source, limit, slices.window):
            changes.append(learn_in_parts(model, source, slices, report, accept_inexact, limit))
        else:
            grid = read_values(source, report)
            report_marks(grid, report)
            changes.append(learn(model, grid, slices, report, accept_inexact))
    with report.working(f"writing {target.path}"):
        save_models([change.after for change in changes], target.path, overwrite=target.overwrite)
    size = target.path.stat().st_size
    place = f"{target.path}, {bytes_text(size)}"
    found = [change_result(one, place if one is changes[-1] else None) for one in changes]
    report.results(found, model=str(target.path), file_bytes=size)
    report.next_step(*last_slice(changes[0].after, target.path))


def refuse_of_references(
    models: Sequence[Model], var: str | None, errors: Sequence[str] | None
) -> None:
    """Raise SettingError for what does not go with models that refer to their data."""
    if any(model.reference is None for model in models):
        names = ", ".join(model.name for model in models if model.reference is None)
        raise SettingError(
            f"Some models of the file refer to their data, and {names} holds it. Keep them in "
            "files of their own to update them."
        )
    if var is not None or errors:
        raise SettingError(
            "The model refers to its data, and to its variable in the new files: --var and "
            "--obs-error do not go with it."
        )


def in_parts(model: Model, source: Source, limit: float, window: int | None) -> bool:
    """Return whether there are more new slices than fit into memory."""
    from dkrls_cli.model.chunked.growing import plan_blocks

    if model.hierarchy[-1] not in [axis.name for axis in source.axes]:
        return False  # which is told when they are added
    return len(plan_blocks(model, source, limit, window)) > 1


def learn_in_parts(
    before: Model,
    source: Source,
    slices: opt.SliceOptions,
    report: Report,
    accept_inexact: bool,
    limit: float,
) -> Change:
    """Return a model with new slices that are read a few at a time; report what was noticed."""
    from dkrls_cli.model.chunked.growing import update_in_blocks

    if slices.retune or slices.max_rank is not None:
        raise SettingError(
            "The new slices are beyond --max-memory and are added a few at a time: --retune and "
            "--max-rank do not go with that. Leave them out, or give a larger --max-memory."
        )
    start = perf_counter()
    with report.working(f"learning {shape_text(source.axes)} part by part") as progress:
        done = update_in_blocks(
            before,
            source,
            limit,
            replace=slices.replace,
            window=slices.window,
            accept_inexact=accept_inexact,
            tell=progress,
        )
    report_notes(source, report)
    return noticed(before, done, done.model, perf_counter() - start, report)


def noticed(before: Model, done: Update, after: Model, seconds: float, report: Report) -> Change:
    """Report what was noticed when slices were added, and return what has changed."""
    from dkrls_cli.model.training.result import CHOSEN_ON

    settled = CHOSEN_ON not in before.origin  # settings that are chosen anew cannot drift
    if done.surprise.drifts and settled and after is done.model:
        report.note(f"Warning: {drift_text(done.surprise)}.")
    print_notes(before, after, done.empty, report)
    return Change(before, after, done.surprise, seconds)


def extend_file(
    models: Sequence[Model],
    target: ChangedTarget,
    inputs: list[str],
    slices: opt.SliceOptions,
    report: Report,
) -> None:
    """Let models refer to new files as well, and print what has changed; no values are read."""
    from dkrls_cli.files.source import expand
    from dkrls_cli.model.chunked.reference import extend_reference
    from dkrls_cli.model.saving import save_models

    if slices != opt.SliceOptions():
        raise SettingError(
            "The model refers to its data, which stays as it is: --replace, --window, --max-rank "
            "and --retune do not go with it. Fit it again instead."
        )
    paths = [path for given in inputs for path in expand(given)]
    after = [extend_reference(model, paths) for model in models]
    save_models(after, target.path, overwrite=target.overwrite)
    added = [
        new.shape[new.grows] - old.shape[old.grows] for old, new in zip(models, after, strict=True)
    ]
    results = [
        (
            {"variable": new.name, "added": count, "slices": new.shape[new.grows]},
            (
                pairs(
                    {
                        "variable": new.name,
                        "added": f"{count} slices, {shape_text(new.axes)} in all",
                    }
                ),
            ),
        )
        for new, count in zip(after, added, strict=True)
    ]
    report.results(results, model=str(target.path), file_bytes=target.path.stat().st_size)


@dataclass(frozen=True, eq=False)
class Change:
    """A model before and after new slices, how surprising these were, and the seconds taken."""

    before: Model
    after: Model
    surprise: Surprise
    seconds: float


def learn(
    before: Model, grid: Grid, slices: opt.SliceOptions, report: Report, accept_inexact: bool
) -> Change:
    """Return a model with new slices, and report what was noticed."""
    from dkrls_cli.model.fit import retune
    from dkrls_cli.model.updating.update import update_model

    start = perf_counter()
    with report.working(f"learning {shape_text(grid.axes)}"):
        done = update_model(
            before,
            grid,
            replace=slices.replace,
            window=slices.window,
            max_rank=slices.max_rank,
            accept_inexact=accept_inexact,
        )
        after = done.model
        if slices.retune:
            after = retune(after, accept_inexact=accept_inexact)
    return noticed(before, done, after, perf_counter() - start, report)


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


def read_slices(
    model: Model, inputs: list[str], var: str | None, raw: Mapping[str, bytes], report: Report
) -> Grid:
    """Return the new slices in files."""
    return read_values(open_new(model, inputs, var, raw, report), report)


def drift_text(surprise: Surprise) -> str:
    """Return a warning that new slices are far from what the model predicted."""
    return (
        f"the new slices differ from the prediction by {surprise.rmse:.3g} (root mean square), "
        f"{surprise.rmse / surprise.promised:.2g} times the standard error that the model "
        "predicted; if this continues, use --retune or fit again"
    )


def print_notes(before: Model, after: Model, empty: int, report: Report) -> None:
    """Print how many slices were left out, and the warnings that are new."""
    if empty:
        report.note(f"Note: slices without any observed cell left out: {empty}.")
    for note in after.origin.get("notes", ()):
        if note not in before.origin.get("notes", ()):
            report.note(f"Warning: {note}.")


def change_result(change: Change, place: str | None) -> Result:
    """Return which slices the model has now, and how well it predicted the new ones."""
    before, after, surprise = change.before, change.after, change.surprise
    last, kept = after.hierarchy[-1], after.axes[after.grows]
    facts: dict[str, Any] = {
        "variable": after.name,
        "dimension": last,
        "slices_before": before.axes[before.grows].size,
        "slices_added": added_slices(before, after),
        "slices": kept.size,
        "from": kept.take([kept.numbers.argmin()]).texts[0],
        "to": kept.take([kept.numbers.argmax()]).texts[0],
        "forecast_rmse": surprise.rmse,
        "promised_rmse": surprise.promised,
        "drift": surprise.drifts,
        "thinned": after.origin.get("thinned"),
        "seconds": change.seconds,
    }
    words = {
        "variable": after.name,
        "grid": shape_text(after.axes),
        last: f"{facts['from']} to {facts['to']}; "
        f"{facts['slices_before']} slices and {facts['slices_added']} new, {kept.size} kept",
        **missing_words(after),
        **error_words(after),
        **surprise_words(surprise),
        **thinned_words(after),
        **({"model": place} if place else {}),
        "updated in": duration_text(change.seconds),
    }
    rows = model_rows(after)
    return {**facts, "levels": rows}, (pairs(words), level_table(rows))


def added_slices(before: Model, after: Model) -> int:
    """Return how many slices were added."""
    return int(after.origin["slices_added"]) - int(before.origin.get("slices_added", 0))


def surprise_words(surprise: Surprise) -> dict[str, str]:
    """Return how the new slices compare with their prediction; empty without an observed cell."""
    if not surprise.cells:
        return {}
    return {
        "new slices": f"predicted with rmse {surprise.rmse:.4g}, expected {surprise.promised:.4g}",
    }


def thinned_words(model: Model) -> dict[str, str]:
    """Return what leaving slices out has cost so far; empty if none was left out."""
    known = model.origin.get("thinned")
    if not known:
        return {}
    return {"left out": f"{known['slices']} slices, predicted by the others to {known['rmse']:.4g}"}
