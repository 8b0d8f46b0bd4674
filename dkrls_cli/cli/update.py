"""``dkrls update``: new slices join a model."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.describe import missing_words, model_rows, shape_text
from dkrls_cli.cli.fit import read_values
from dkrls_cli.cli.report import Report, bytes_text, edge, pairs, table

if TYPE_CHECKING:
    from dkrls_cli.grid.grid import Grid
    from dkrls_cli.model.model import Model
    from dkrls_cli.model.stream import Plan
    from dkrls_cli.model.update import Surprise


def update(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file.")],
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="NEW", help="NetCDF, Zarr or CSV; several join; - is stdin."),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="OUT.npz", help="Instead of changing MODEL."),
    ] = None,
    var: opt.Var = None,
    replace: opt.Replace = False,
    window: opt.Window = None,
    max_rank: opt.MaxRank = None,
    retune: Annotated[
        bool,
        typer.Option("--retune", help="Choose the settings of the last level anew."),
    ] = False,
    wait: opt.Wait = 60.0,
    overwrite: opt.Overwrite = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
    debug: opt.Debug = False,
) -> None:
    """Add slices along the last level to a model.

    The result is that of a fit of all slices with the same settings, whatever their order.

    Examples:
      dkrls update sst.npz 2026-11-16.nc

      dkrls update sensors.npz today.csv --window 8760

      tail -n +2 more.csv | cat header.csv - | dkrls update m.npz - -o new.npz
    """
    with edge(debug):
        from dkrls_cli.files.output import check_writable, lock_file
        from dkrls_cli.model.stream import Plan

        report = Report(json, quiet, verbose)
        target = output or model
        if output is not None and output != model:
            check_writable(output, overwrite=overwrite)
        with lock_file(target, wait, report.note):
            plan = Plan(window, max_rank, replace, retune)
            changed(model, target, inputs, var, plan, report)


def changed(
    path: Path,
    target: Path,
    inputs: list[str],
    var: str | None,
    plan: Plan,
    report: Report,
) -> None:
    """Read the model, let the slices join, write it again, and say what has become of it."""
    from dkrls_cli.model.fit import retune
    from dkrls_cli.model.model import load_model
    from dkrls_cli.model.update import update_model

    before = load_model(path)
    grid = new_slices(before, inputs, var, report)
    start = perf_counter()
    with report.working(f"learning {shape_text(grid.axes)}"):
        done = update_model(
            before, grid, replace=plan.replace, window=plan.window, max_rank=plan.max_rank
        )
        surprise, after = done.surprise, done.model
        if plan.retune:
            after = retune(after)
        after.save(target, overwrite=True)
    if surprise.drifts and not plan.retune:
        report.note(f"Warning: {drift_text(surprise)}.")
    empty = grid.values.shape[grid.dims.index(before.hierarchy[-1])] - added(before, after)
    if empty:
        report.note(f"Note: slices without any observed cell left out: {empty}.")
    for note in after.origin.get("notes", ()):
        if note not in before.origin.get("notes", ()):
            report.note(f"Warning: {note}.")
    tell(before, after, surprise, target, perf_counter() - start, report)


def new_slices(model: Model, inputs: list[str], var: str | None, report: Report) -> Grid:
    """The slices in their files; the model's own variable is taken if it is there."""
    from dkrls_cli.files.reading import open_slices

    source = open_slices(inputs, var, model.hierarchy, model.name)
    if source.name != model.name and var is None:
        report.note(f"Note: '{source.name}' is taken for the model's '{model.name}'.")
    return read_values(source, report)


def drift_text(surprise: Surprise) -> str:
    """What to say when slices are far from what was predicted."""
    return (
        f"the new slices differ from what the model predicted by {surprise.rmse:.3g} (root mean "
        f"square), {surprise.rmse / surprise.promised:.2g} times as much as it promised; if that "
        "goes on, --retune, or fit again"
    )


def tell(
    before: Model, after: Model, surprise: Surprise, target: Path, seconds: float, report: Report
) -> None:
    """Print what has become of the model."""
    last, kept = after.hierarchy[-1], after.axes[after.grows]
    facts: dict[str, Any] = {
        "model": str(target),
        "variable": after.name,
        "dimension": last,
        "slices_before": before.axes[before.grows].size,
        "slices_added": added(before, after),
        "slices": kept.size,
        "from": kept.take([kept.numbers.argmin()]).texts[0],
        "to": kept.take([kept.numbers.argmax()]).texts[0],
        "forecast_rmse": surprise.rmse,
        "promised_rmse": surprise.promised,
        "drift": surprise.drifts,
        "thinned": after.origin.get("thinned"),
        "file_bytes": target.stat().st_size,
        "seconds": seconds,
    }
    words = {
        "variable": after.name,
        "grid": shape_text(after.axes),
        last: f"{facts['from']} to {facts['to']}; "
        f"{facts['slices_before']} slices and {facts['slices_added']} new, {kept.size} kept",
        **missing_words(after),
        **surprise_words(surprise),
        **thinned_words(after),
        "model": f"{target}, {bytes_text(facts['file_bytes'])}",
        "updated in": f"{seconds:.3g} s",
    }
    if not report.quiet or report.json:
        rows = model_rows(after)
        report.result({**facts, "levels": rows}, f"{pairs(words)}\n\n{table(rows)}")


def added(before: Model, after: Model) -> int:
    """How many slices came."""
    return int(after.origin["slices_added"]) - int(before.origin.get("slices_added", 0))


def surprise_words(surprise: Surprise) -> dict[str, str]:
    """How the new slices compare with what was predicted of them."""
    if not surprise.cells:
        return {}
    return {
        "predicted before": f"rmse {surprise.rmse:.4g}, promised {surprise.promised:.4g}",
    }


def thinned_words(model: Model) -> dict[str, str]:
    """What thinning has cost so far."""
    known = model.origin.get("thinned")
    if not known:
        return {}
    return {"left out": f"{known['slices']} slices, predicted by the others to {known['rmse']:.4g}"}
