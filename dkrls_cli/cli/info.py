"""``dkrls info``: what a model file holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.describe import missing_words, model_rows, shape_text
from dkrls_cli.cli.report import Report, bytes_text, command_line, edge, pairs, table
from dkrls_cli.cli.target import Target, grid_target

if TYPE_CHECKING:
    from dkrls_cli.model.model import Model


def info(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file.")],
    weights: Annotated[
        str | None,
        typer.Option(metavar="OUT.nc", help="Write the paper's weights of each level there."),
    ] = None,
    overwrite: opt.Overwrite = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
    debug: opt.Debug = False,
) -> None:
    """Show the levels of a model, its size and where it came from.

    The paper's weights are in no model file, and are worked out when they are asked for.

    Examples:
      dkrls info sst.npz

      dkrls info sst.npz --weights weights.nc
    """
    from dkrls_cli.model.model import load_model

    with edge(debug):
        report = Report(json, quiet, verbose)
        target = None if weights is None else grid_target(weights, overwrite)
        loaded = load_model(model)
        if target is not None:
            write_weights(loaded, target)
            report.note(f"Weights of {weight_count(loaded)} levels written to {weights}.")
        tell(loaded, model, report)


def weight_count(model: Model) -> int:
    """How many records of weights there are: one per level, one in all under a joint ridge."""
    return 1 if model.cascade.joint_ridge is not None else len(model.hierarchy)


def write_weights(model: Model, target: Target) -> None:
    """The paper's weights, one variable per level."""
    from dkrls_cli.files.writing import write_grid
    from dkrls_cli.grid.grid import Style

    depths = range(len(model.hierarchy) + 1 - weight_count(model), len(model.hierarchy) + 1)
    arrays = [model.weights(depth) for depth in depths]
    variables = {str(a.name): (a.values, a.attrs) for a in arrays}
    style = Style(global_attrs={"title": f"Weights of a D-KRLS model of {model.name}"})
    path, overwrite = str(target.path), target.overwrite
    write_grid(path, model.axes, variables, style, command_line(), overwrite=overwrite)


def tell(model: Model, path: Path, report: Report) -> None:
    """Print levels, sizes and origin."""
    import math

    rows, size = model_rows(model), path.stat().st_size
    cells, joint_ridge = math.prod(model.cascade.shape), model.cascade.joint_ridge
    width = 4 if model.style.dtype == "float32" else 8
    facts: dict[str, Any] = {
        "model": str(path),
        "variable": model.name,
        "units": str(model.attrs.get("units", "")) or None,
        "cells": cells,
        "file_bytes": size,
        "data_bytes": cells * width,
        "joint_ridge": joint_ridge,
        "dropped": model.cascade.dropped,
        "storage": model.cascade.core.dtype.name,
        "origin": dict(model.origin),
    }
    words = {
        "variable": " ".join(
            filter(None, [model.name, f"({facts['units']})" if facts["units"] else ""])
        ),
        "grid": shape_text(model.axes),
        "file": f"{bytes_text(size)} for {bytes_text(cells * width)} of data",
        "storage": facts["storage"],
        "ridge": "per level"
        if facts["joint_ridge"] is None
        else f"joint, {facts['joint_ridge']:g}",
    }
    if model.cascade.dropped:
        words["dropped"] = f"{model.cascade.dropped:.3g} of the energy"
    words |= missing_words(model)
    for key, value in model.origin.items():
        if key != "missing" and value != []:
            words[key.replace("_", " ")] = _flat(value)
    report.result({**facts, "levels": rows}, f"{pairs(words)}\n\n{table(rows)}")


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k}={_flat(v)}" for k, v in value.items()) or "none"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
