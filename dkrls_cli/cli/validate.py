"""``dkrls validate``: how good the answers are."""

from __future__ import annotations

import statistics
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.describe import model_rows, shape_text
from dkrls_cli.cli.fit import fit_settings, loaded, opened, refuse_too_large, tell_notes
from dkrls_cli.cli.report import Report, edge, pairs, table
from dkrls_cli.errors import InputError, SettingError

if TYPE_CHECKING:
    from dkrls_cli.arrays import Array
    from dkrls_cli.grid.grid import Grid
    from dkrls_cli.model.model import Model

_MISSED = 3


def validate(
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="GRID", help="The truth: NetCDF, Zarr or CSV; several join."),
    ],
    model: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Model file to hold against it.")
    ] = None,
    holdout: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[DIM=]FRACTION",
            help="Instead: hold this share of every dimension out, train on the rest. Repeatable.",
        ),
    ] = None,
    repeats: Annotated[int | None, typer.Option(min=1, help="Random hold-outs.  [5]")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the first of them.  [0]")] = None,
    keep_edges: Annotated[
        bool, typer.Option("--keep-edges", help="Never hold out the ends of a dimension.")
    ] = False,
    fail_above: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC=VALUE", help="Exit with 3 if a metric is above. Repeatable."),
    ] = None,
    var: opt.Var = None,
    levels: opt.Levels = None,
    kernel: opt.Kernel = None,
    sigma: opt.Sigma = None,
    ridge: opt.Ridge = None,
    period: opt.Period = None,
    noise: opt.Noise = "auto",
    missing: opt.Missing = "model",
    folds: opt.Folds = None,
    compact: opt.Compact = False,
    float32: opt.Float32 = False,
    smooth: opt.Smooth = False,
    max_memory: opt.MaxMemory = None,
    threads: opt.Threads = None,
    config: opt.Config = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
    debug: opt.Debug = False,
) -> None:
    """Measure a model against a grid, or the method against held-out parts of one.

    The settings of a fit go with --holdout; a model has its own.

    Examples:
      dkrls validate later.nc --model sst.npz

      dkrls validate sst.nc --holdout 0.2 --repeats 5 --fail-above rmse=0.5

      dkrls validate sst.nc --holdout time=0.1
    """
    from dkrls_cli.threads import blas_threads

    with edge(debug):
        report = Report(json, quiet, verbose)
        if (model is None) == (holdout is None):
            raise SettingError("Give either --model MODEL or --holdout FRACTION.")
        limits = thresholds(fail_above)
        settings = fit_settings(
            levels, kernel, sigma, ridge, period, noise, missing, folds, compact, float32
        )
        with blas_threads(threads):
            if model is not None:
                refuse_fit_options(
                    {
                        **settings,
                        "repeats": repeats,
                        "seed": seed,
                        "keep-edges": keep_edges,
                        "max-memory": max_memory,
                    }
                )
                outcome = against_model(model, inputs, var, smooth, report)
            else:
                source = opened(inputs, var, settings["levels"], report)
                refuse_too_large(source, None if max_memory is None else opt.byte_count(max_memory))
                grid = loaded(source, report)
                shares = fractions(holdout or [], grid)
                outcome = held_out(
                    grid, settings, shares, repeats or 5, seed or 0, keep_edges, smooth, report
                )
        missed = [n for n, limit in limits.items() if not abs(outcome["metrics"][n]) <= limit]
        tell(outcome, missed, limits, report)
        if missed:
            raise typer.Exit(_MISSED)


def thresholds(texts: list[str] | None) -> dict[str, float]:
    """Largest values allowed, by metric."""
    from dkrls_cli.model.metrics import ERRORS

    limits = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or name not in ERRORS:
            raise SettingError(
                f"--fail-above {text} is not METRIC=VALUE with one of {', '.join(ERRORS)}."
            )
        try:
            limits[name] = float(value)
        except ValueError:
            raise SettingError(f"--fail-above {text}: '{value}' is not a number.") from None
    return limits


def refuse_fit_options(settings: dict[str, Any]) -> None:
    """A model brings its settings along."""
    plain = fit_settings(None, None, None, None, None, "auto", "model", None, False, False)
    given = [name for name, value in settings.items() if value not in (plain.get(name), False)]
    if given:
        option = "float32" if given[0] == "dtype" else given[0]
        raise SettingError(f"--{option} goes with --holdout; a model has its own settings.")


def fractions(texts: list[str], grid: Grid) -> dict[str, float]:
    """Share to hold out of every dimension that has something between its coordinates."""
    setting = opt.setting(texts, "--holdout")
    if isinstance(setting, dict):
        unknown = [dim for dim in setting if dim not in grid.dims]
        if unknown:
            raise SettingError(
                f"There is no dimension '{unknown[0]}'. The data has {', '.join(grid.dims)}."
            )
        labelled = [axis.name for axis in grid.axes if axis.labels is not None]
        if set(setting) & set(labelled):
            raise SettingError(
                f"'{labelled[0]}' holds text labels: between them there is nothing to answer."
            )
        wanted = setting
    else:
        wanted = {axis.name: setting for axis in grid.axes if axis.labels is None}
    try:
        shares = {dim: float(value) for dim, value in wanted.items()}
    except ValueError:
        raise SettingError(f"--holdout {texts[0]} is not a fraction, like 0.2.") from None
    if not shares or not all(0 < share < 1 for share in shares.values()):
        raise SettingError("--holdout needs a fraction between 0 and 1 of at least one dimension.")
    return shares


def against_model(
    path: Path, inputs: list[str], var: str | None, smooth: bool, report: Report
) -> dict[str, Any]:
    """Metrics of a model on the cells of a grid."""
    import numpy as np

    from dkrls_cli.grid.axes import like
    from dkrls_cli.model.model import load_model

    model = load_model(path)
    source = opened(inputs, var or _same_name(inputs, model), None, report)
    grid = source.grid()
    tell_notes(source, report)
    theirs = {axis.name: axis for axis in (*source.scalars, *grid.axes)}
    absent = [dim for dim in model.dims if dim not in theirs]
    if absent or any(dim not in model.dims for dim in grid.dims):
        raise InputError(
            f"The grid has dimensions {', '.join(grid.dims)}, the model {', '.join(model.dims)}. "
            "The grid needs each of the model's, of size 1 at least, and no other."
        )
    axes = model.axes_at({own.name: like(theirs[own.name], own) for own in model.axes})
    start = perf_counter()
    with report.working("predicting"):
        answers = model.cascade.predict(model.queries(axes), smooth=smooth)
    seconds = perf_counter() - start
    order = [grid.dims.index(dim) for dim in model.dims if dim in grid.dims]
    truth = np.asarray(grid.values, np.float64).transpose(order).reshape(answers.shape)
    return {
        "grid": shape_text(axes),
        "predict_seconds": seconds,
        "metrics": all_scores(model, model.queries(axes), truth, answers, smooth),
        "levels": model_rows(model),
    }


def all_scores(
    model: Model, queries: list[Array], truth: Array, answers: Array, smooth: bool
) -> dict[str, float]:
    """Metrics of answers, and of their error bars."""
    from dkrls_cli.model.metrics import coverage90, scores

    spread = model.variance(queries, smooth=smooth)
    return {**scores(truth, answers), "coverage90": coverage90(truth, answers, spread)}


def _same_name(inputs: list[str], model: Model) -> str | None:
    """The model's own variable, where the file has it."""
    from dkrls_cli.files.reading import has_variable

    return model.name if has_variable(inputs, model.name) else None


def held_out(
    grid: Grid,
    settings: dict[str, Any],
    shares: dict[str, float],
    repeats: int,
    seed: int,
    keep_edges: bool,
    smooth: bool,
    report: Report,
) -> dict[str, Any]:
    """Median metrics over random hold-outs: the paper's protocol."""
    runs: list[dict[str, float]] = []
    rows: list[dict[str, Any]] = []
    for repeat in range(repeats):
        with report.working(f"hold-out {repeat + 1} of {repeats}"):
            run, rows = _one_holdout(grid, settings, shares, seed + repeat, keep_edges, smooth)
        report.detail(f"hold-out {repeat + 1}: rmse {run['rmse']:.4g}")
        runs.append(run)
    return {
        "grid": shape_text(grid.axes),
        "held_out": shares,
        "repeats": repeats,
        "seed": seed,
        "metrics": {
            **{key: statistics.median(run[key] for run in runs) for key in runs[0]},
            "n": runs[0]["n"],
        },
        "runs": runs,
        "levels": rows,
    }


def _one_holdout(
    grid: Grid,
    settings: dict[str, Any],
    shares: dict[str, float],
    seed: int,
    keep_edges: bool,
    smooth: bool,
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    import numpy as np

    from dkrls_cli.model.fit import fit as fit_model
    from dkrls_cli.model.splits import Split, random_split

    rng = np.random.default_rng(seed)
    splits = [
        random_split(axis.size, shares[axis.name], rng, keep_edges=keep_edges)
        if axis.name in shares
        else Split(np.arange(axis.size), np.arange(axis.size))
        for axis in grid.axes
    ]
    if any(split.held.size == 0 for split in splits):
        small = next(a.name for a, s in zip(grid.axes, splits, strict=True) if s.held.size == 0)
        raise SettingError(f"'{small}' is too short to hold that share out. Raise the fraction.")
    start = perf_counter()
    model = fit_model(grid.take([split.train for split in splits]), **settings)
    fitted = perf_counter()
    truth = grid.take([split.held for split in splits])
    queries = [axis.numbers for axis in truth.axes]
    answers = model.cascade.predict(queries, smooth=smooth)
    timed = {"fit_seconds": fitted - start, "predict_seconds": perf_counter() - fitted}
    metrics = all_scores(model, queries, truth.values, answers, smooth)
    return {**metrics, **timed}, model_rows(model)


def tell(
    outcome: dict[str, Any], missed: list[str], limits: dict[str, float], report: Report
) -> None:
    """Print the metrics, the levels, and what was missed."""
    metrics = outcome["metrics"]
    if "runs" in outcome:
        rows = [
            {
                "metric": key,
                "median": metrics[key],
                "lowest": min(run[key] for run in outcome["runs"]),
                "highest": max(run[key] for run in outcome["runs"]),
            }
            for key in metrics
        ]
        body = table(rows)
    else:
        body = pairs({**metrics, "predict_seconds": outcome["predict_seconds"]})
    text = f"grid  {outcome['grid']}\n\n{body}\n\n{table(outcome['levels'])}"
    report.result({**outcome, "missed": missed}, text)
    for name in missed:
        report.note(f"Missed: {name} is {metrics[name]:.6g}, allowed is {limits[name]:.6g}.")
