"""``dkrls info``: what a model file contains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.describe import (
    cv_words,
    error_words,
    fit_options,
    level_table,
    missing_words,
    model_rows,
    pole_facts,
    pole_words,
    robust_words,
    shape_text,
    tolerance_words,
)
from dkrls_cli.cli.expansion import expand
from dkrls_cli.cli.fitting.inputs import chosen_models
from dkrls_cli.cli.output.answers import write_fields
from dkrls_cli.cli.output.target import Target, grid_target
from dkrls_cli.cli.report import Report, Result, edge
from dkrls_cli.cli.saveconfig import table_text
from dkrls_cli.cli.terminal.clean import clean
from dkrls_cli.cli.terminal.tables import bytes_text, pairs
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.files.writing import Field
    from dkrls_cli.model.model import Model


@expand
def info(
    model: opt.ModelFile,
    *,
    weights: Annotated[
        str | None,
        typer.Option(metavar="OUT.nc", help="Write the paper's weights of each level there."),
    ] = None,
    config: Annotated[
        bool,
        typer.Option(
            "--config", help="Print the options of a fit that gives the model back, as TOML."
        ),
    ] = False,
    var: Annotated[
        str | None,
        typer.Option(metavar="NAME", show_default="all", help="Variable of the model."),
    ] = None,
    outputs: opt.GridOutputOptions,
    report: Report,
) -> None:
    """Show the levels of a model, its size and where it came from.

    The paper's weights are not stored in a model file; they are computed when asked for.

    Examples:
      dkrls info sst.npz

      dkrls info sst.npz --weights weights.nc

      dkrls info sst.npz --config > sst.toml
    """
    with edge(report.debug):
        target = weights_target(weights, outputs, report, model)
        with report.working(f"reading {model}"):
            models = chosen_models(model, [var] if var else None)
        if config:
            refuse_beside_config(weights, report)
            print_config(models)
            return
        if target is not None:
            with report.working(f"writing {weights}"):
                write_weights(models, target)
            for one in models:
                of = f" of {one.name}" if models[1:] else ""
                report.note(f"Weights{of} of {weight_count(one)} levels written to {weights}.")
        size = model.stat().st_size
        report.results([model_result(one, size) for one in models], model=str(model))


def refuse_beside_config(weights: str | None, report: Report) -> None:
    """Raise SettingError if anything but the options is asked for."""
    if weights is not None or report.json:
        other = "--weights" if weights is not None else "--json"
        raise SettingError(f"--config prints TOML: it does not go with {other}. Give one of them.")


def print_config(models: Sequence[Model]) -> None:
    """Print the options of a fit that gives the model back, as TOML on stdout."""
    if models[1:]:
        names = ", ".join(model.name for model in models)
        raise SettingError(
            f"The model has {names}, and a file of options is for one fit. Choose by --var."
        )
    options, notes = fit_options(models[0])
    comments = "".join(f"# {clean(note)}\n" for note in notes)
    typer.echo(comments + table_text(["fit"], options), nl=False)


def weights_target(
    weights: str | None, outputs: opt.GridOutputOptions, report: Report, model: Path
) -> Target | None:
    """Return where the weights go, None without them; raise an error if they cannot go there."""
    if weights is not None:
        return grid_target(weights, outputs.overwrite, outputs.compress, report, model)
    if outputs.compress is not None:
        raise SettingError("--compress is for the file of --weights. Give --weights OUT.nc.")
    return None


def weight_count(model: Model) -> int:
    """Return how many arrays of weights there are: one per level, or one with a joint ridge."""
    return 1 if model.joint_ridge is not None else len(model.hierarchy)


def write_weights(models: Sequence[Model], target: Target) -> None:
    """Write the paper's weights, one variable per level."""
    fields = [field for model in models for field in weight_fields(model, alone=not models[1:])]
    write_fields(fields, target)


def weight_fields(model: Model, *, alone: bool) -> list[Field]:
    """Return the weights of a model to be written, named after its variable if it is not alone."""
    from dkrls_cli.files.writing import Field
    from dkrls_cli.grid.style import Style

    depths = range(len(model.hierarchy) + 1 - weight_count(model), len(model.hierarchy) + 1)
    style = Style(global_attrs={"title": f"Weights of a D-KRLS model of {model.name}"})
    start = "" if alone else f"{model.name}_"
    return [
        Field(f"{start}{one.name}", one.values, model.trained_axes, one.attrs, style)
        for one in map(model.weights, depths)
    ]


def model_result(model: Model, size: int) -> Result:
    """Return levels, sizes and origin of a model in a file of some bytes."""
    rows, facts = model_rows(model), model_facts(model, size)
    return {**facts, "levels": rows}, (pairs(model_words(model, facts)), level_table(rows))


def model_facts(model: Model, size: int) -> dict[str, Any]:
    """Return what ``--json`` shows of a model, besides its levels."""
    cells = math.prod(model.shape)
    return {
        "variable": model.name,
        "units": str(model.attrs.get("units", "")) or None,
        "cells": cells,
        "file_bytes": size,
        "data_bytes": cells * (4 if model.style.dtype == "float32" else 8),
        "joint_ridge": model.joint_ridge,
        "dropped": model.dropped,
        "data_std": model.spread,
        "storage": model.storage,
        "poles": pole_facts(model),
        "reference": reference_facts(model),
        "origin": dict(model.origin),
    }


def reference_facts(model: Model) -> dict[str, Any] | None:
    """Return where the data of a model is that holds none, and how that has changed."""
    reference = model.reference
    if reference is None:
        return None
    return {"files": list(reference.paths), "changed": reference.changed}


def model_words(model: Model, facts: dict[str, Any]) -> dict[str, str]:
    """Return the same facts in words."""
    units, ridge = facts["units"], facts["joint_ridge"]
    words = {
        "variable": f"{model.name} ({units})" if units else model.name,
        "grid": shape_text(model.axes),
        "file": f"{bytes_text(facts['file_bytes'])} for {bytes_text(facts['data_bytes'])} of data",
        "storage": facts["storage"],
        "ridge": "per level" if ridge is None else f"joint, {ridge:g}",
    }
    if model.reference is not None:
        changed = "; ".join(model.reference.changed)
        words["data"] = f"{model.reference}, {f'changed: {changed}' if changed else 'unchanged'}"
    words |= cv_words(model)
    if model.dropped:
        words["dropped"] = f"{model.dropped:.3g} of the energy"
    words |= tolerance_words(model) | missing_words(model) | robust_words(model)
    words |= error_words(model) | pole_words(model)
    for key, value in model.origin.items():
        if key not in ("missing", "tolerance", "observation_errors") and value != []:
            words[key.replace("_", " ")] = _flat_text(value)
    return words


def _flat_text(value: Any) -> str:
    """Return a value of the origin, which may hold lists and dictionaries, as one line."""
    if isinstance(value, dict):
        return ", ".join(f"{k}={_flat_text(v)}" for k, v in value.items()) or "none"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
