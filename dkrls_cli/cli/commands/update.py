"""``dkrls update``: add new slices to a model file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.describe import error_words, level_table, missing_words, model_rows, shape_text
from dkrls_cli.cli.expansion import expand
from dkrls_cli.cli.fitting.inputs import open_new, read_values, report_marks, report_notes
from dkrls_cli.cli.fitting.suggestions import last_slice
from dkrls_cli.cli.output.target import ChangedTarget, changed_target
from dkrls_cli.cli.report import Report, Result, edge
from dkrls_cli.cli.terminal.tables import bytes_text, duration_text, pairs
from dkrls_cli.cli.texts import read_by
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.files.source import Source
    from dkrls_cli.grid.grid import Grid
    from dkrls_cli.model.model import Model
    from dkrls_cli.model.updating.surprise import Surprise
    from dkrls_cli.model.updating.update import Update


@expand
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
    from dkrls_cli.files.output.locks import lock_file
    from dkrls_cli.threads import blas_threads

    with edge(report.debug):
        inputs = read_by(inputs, engine)
        target = changed_target(model, output, files.overwrite, report, *inputs)
        with (
            lock_file(target.path, files.wait, report.note),
            blas_threads(machine.threads),
        ):
            target.refuse_unwritable()
            how = UpdateSettings(slices, obs_error, accept_inexact, machine.memory_limit)
            update_file(model, inputs, var, target, how, report)


@dataclass(frozen=True)
class UpdateSettings:
    """How new slices are learnt: which are kept, their errors, and the bytes that may be used."""

    slices: opt.SliceOptions
    errors: Sequence[str] | None
    accept_inexact: bool
    limit: float


@dataclass(frozen=True, eq=False)
class Change:
    """A model before and after new slices, what was noticed of these, and the seconds taken."""

    before: Model
    after: Model
    done: Update
    seconds: float

    @property
    def surprise(self) -> Surprise:
        """How far the new slices were from their predictions."""
        return self.done.surprise

    @property
    def drifts(self) -> bool:
        """Whether to warn of that; settings that are chosen anew cannot drift."""
        from dkrls_cli.model.training.result import CHOSEN_ON

        settled = self.after is self.done.model and CHOSEN_ON not in self.before.origin
        return self.surprise.drifts and settled


def update_file(
    path: Path,
    inputs: list[str],
    var: str | None,
    target: ChangedTarget,
    how: UpdateSettings,
    report: Report,
) -> None:
    """Read models, add the new slices, write them to the target, and print what has changed."""
    from dkrls_cli.files.reading import read_tables
    from dkrls_cli.model.saving import load_models, save_models

    with report.working(f"reading {path}"):
        models = list(load_models(path).values())
    if any(model.reference is not None for model in models):
        refuse_of_references(models, var, how)
        extend_file(models, inputs, target, report)
        return
    if models[1:] and var is not None:
        names = ", ".join(model.name for model in models)
        raise SettingError(f"--var is for a model of one variable; '{path}' has {names}.")
    raw, changes = read_tables(inputs), []
    for model in models:
        name = model.name if models[1:] else var
        source = open_new(model, inputs, name, raw, report, how.errors)
        changes.append(learn(model, source, how, report))
        report_change(changes[-1], report)
    with report.working(f"writing {target.path}"):
        save_models([change.after for change in changes], target.path, overwrite=target.overwrite)
    size = target.path.stat().st_size
    place = f"{target.path}, {bytes_text(size)}"
    found = [change_result(one, place if one is changes[-1] else None) for one in changes]
    report.results(found, model=str(target.path), file_bytes=size)
    report.next_step(*last_slice(changes[0].after, target.path))


def learn(before: Model, source: Source, how: UpdateSettings, report: Report) -> Change:
    """Return a model with new slices: all at once, or a few at a time if they are beyond memory."""
    if goes_in_parts(before, source, how):
        return learn_in_parts(before, source, how, report)
    grid = read_values(source, report)
    report_marks(grid, report)
    return learn_whole(before, grid, how, report)


def goes_in_parts(model: Model, source: Source, how: UpdateSettings) -> bool:
    """Return whether there are more new slices than fit into memory."""
    from dkrls_cli.model.chunked.growing import plan_blocks

    if model.hierarchy[-1] not in [axis.name for axis in source.axes]:
        return False  # refused when they are added
    return len(plan_blocks(model, source, how.limit, how.slices.window)) > 1


def learn_whole(before: Model, grid: Grid, how: UpdateSettings, report: Report) -> Change:
    """Return a model with new slices that are in memory."""
    from dkrls_cli.model.fit import retune
    from dkrls_cli.model.updating.update import update_model

    start = perf_counter()
    with report.working(f"learning {shape_text(grid.axes)}"):
        done = update_model(
            before,
            grid,
            replace=how.slices.replace,
            window=how.slices.window,
            max_rank=how.slices.max_rank,
            accept_inexact=how.accept_inexact,
        )
        after = done.model
        if how.slices.retune:
            after = retune(after, accept_inexact=how.accept_inexact)
    return Change(before, after, done, perf_counter() - start)


def learn_in_parts(before: Model, source: Source, how: UpdateSettings, report: Report) -> Change:
    """Return a model with new slices that are read a few at a time."""
    from dkrls_cli.model.chunked.growing import update_in_blocks

    if how.slices.retune or how.slices.max_rank is not None:
        raise SettingError(
            "The new slices are beyond --max-memory and are added a few at a time: --retune and "
            "--max-rank do not go with that. Leave them out, or give a larger --max-memory."
        )
    start = perf_counter()
    with report.working(f"learning {shape_text(source.axes)} part by part") as progress:
        done = update_in_blocks(
            before,
            source,
            how.limit,
            replace=how.slices.replace,
            window=how.slices.window,
            accept_inexact=how.accept_inexact,
            tell=progress,
        )
    report_notes(source, report)
    return Change(before, done.model, done, perf_counter() - start)


def refuse_of_references(models: Sequence[Model], var: str | None, how: UpdateSettings) -> None:
    """Raise SettingError for what does not go with models that refer to their data."""
    if any(model.reference is None for model in models):
        names = ", ".join(model.name for model in models if model.reference is None)
        raise SettingError(
            f"Some models of the file refer to their data, and {names} holds it. Keep them in "
            "files of their own to update them."
        )
    if var is not None or how.errors:
        raise SettingError(
            "The model refers to its data, and to its variable in the new files: --var and "
            "--obs-error do not go with it."
        )
    if how.slices != opt.SliceOptions():
        raise SettingError(
            "The model refers to its data, which stays as it is: --replace, --window, --max-rank "
            "and --retune do not go with it. Fit it again instead."
        )


def extend_file(
    models: Sequence[Model], inputs: list[str], target: ChangedTarget, report: Report
) -> None:
    """Let models refer to new files as well, and print what has changed; no values are read."""
    from dkrls_cli.files.source import expand
    from dkrls_cli.model.chunked.reference import extend_reference
    from dkrls_cli.model.saving import save_models

    paths = [path for given in inputs for path in expand(given)]
    after = [extend_reference(model, paths) for model in models]
    save_models(after, target.path, overwrite=target.overwrite)
    results = [extension_result(*both) for both in zip(models, after, strict=True)]
    report.results(results, model=str(target.path), file_bytes=target.path.stat().st_size)


def extension_result(before: Model, after: Model) -> Result:
    """Return how many slices a model refers to more than before."""
    count = after.shape[after.grows] - before.shape[before.grows]
    facts = {"variable": after.name, "added": count, "slices": after.shape[after.grows]}
    added = f"{count} slices, {shape_text(after.axes)} in all"
    return facts, (pairs({"variable": after.name, "added": added}),)


def report_change(change: Change, report: Report) -> None:
    """Report what was noticed when slices were added: drift, empty slices, and new warnings."""
    if change.drifts:
        surprise = change.surprise
        report.note(
            f"Warning: the new slices differ from the prediction by {surprise.rmse:.3g} (root mean "
            f"square), {surprise.rmse / surprise.promised:.2g} times the standard error that the "
            "model predicted; if this continues, use --retune or fit again."
        )
    if change.done.empty:
        report.note(f"Note: slices without any observed cell left out: {change.done.empty}.")
    known = change.before.origin.get("notes", ())
    for note in change.after.origin.get("notes", ()):
        if note not in known:
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
