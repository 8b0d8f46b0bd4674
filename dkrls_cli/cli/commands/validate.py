"""``dkrls validate``: how good the answers are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.describe import level_table, model_rows, shape_text
from dkrls_cli.cli.fitting.inputs import (
    open_inputs,
    read_values,
    report_marks,
    report_notes,
)
from dkrls_cli.cli.fitting.memory import (
    can_be_streamed,
    estimates,
    refuse_large_gaps,
    refuse_too_large,
)
from dkrls_cli.cli.fitting.plans import plan_results
from dkrls_cli.cli.fitting.running import fit_settings, report_bounds
from dkrls_cli.cli.fitting.suggestions import fit_words
from dkrls_cli.cli.output.plans import plan_validation
from dkrls_cli.cli.output.reports import (
    check_reports,
    draw_validations,
    provenance_of,
    write_page,
)
from dkrls_cli.cli.report import Report, Result, edge
from dkrls_cli.cli.terminal.tables import pairs, table
from dkrls_cli.errors import SettingError
from dkrls_cli.spelling import suggest

if TYPE_CHECKING:
    from dkrls_cli.cli.terminal.tables import Layout
    from dkrls_cli.files.source import Source
    from dkrls_cli.model.model import Model
    from dkrls_cli.model.settings import Settings
    from dkrls_cli.model.validation.validate import Validation
    from dkrls_cli.tuning.trials.record import ChoiceRecord

# Exit code for a metric above its limit: 1 and 2 are errors.
_ABOVE_LIMIT = 3


@opt.expand
def validate(
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="GRID", help="The truth: NetCDF, Zarr or CSV; several are joined."),
    ],
    *,
    model: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Model file to compare with it.")
    ] = None,
    holdout: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[DIM=]FRACTION",
            help="Instead: hold out this share of every dimension, train on the rest. Repeatable.",
        ),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, metavar="N", show_default="5", help="Random hold-outs.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", show_default="0", help="Seed of the first hold-out."),
    ] = None,
    keep_edges: Annotated[
        bool, typer.Option("--keep-edges", help="Never hold out the ends of a dimension.")
    ] = False,
    fail_above: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC=VALUE", help="Exit with 3 if a metric is above. Repeatable."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="PICTURE",
            help="Draw a slice, errors by coordinate and calibration: .png, .svg or .pdf.",
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option("--report", metavar="PAGE.html", help="Write all of it as one HTML page."),
    ] = None,
    options: opt.FitOptions,
    smooth: opt.Smooth = False,
    machine: opt.RunOptions,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be done, and what it would take.")
    ] = False,
    outputs: opt.OutputOptions,
    report: Report,
) -> None:
    """Measure a model against a grid, or the method against held-out parts of one.

    Settings of a fit are for --holdout; a model has its own settings.

    With --obs-error the grid has errors of that size, and coverage90 counts them.

    Examples:
      dkrls validate later.nc --model sst.npz

      dkrls validate sst.nc --holdout 0.2 --repeats 5 --fail-above rmse=0.5

      dkrls validate sst.nc --holdout time=0.1 --plot errors.png --report sst.html
    """
    from dkrls_cli.model.validation.metrics import exceeded
    from dkrls_cli.model.validation.validate import REPEATS
    from dkrls_cli.threads import blas_threads

    with edge(report.debug):
        inputs = opt.read_by(inputs, options.engine)
        if (model is None) == (holdout is None):
            raise SettingError("Give either --model MODEL or --holdout FRACTION.")
        limits = read_limits(fail_above)
        settings = fit_settings(options)
        if dry_run:
            refuse_measured(plot=plot, report=page, fail_above=fail_above)
        check_reports(plot, page, outputs.overwrite, report, *inputs, model)
        kept = Kept(evidence=plot is not None or page is not None, trials=page is not None)
        with blas_threads(machine.threads):
            if model is not None:
                others = {"repeats": repeats, "seed": seed}
                refuse_fit_options(settings, {**others, "keep-edges": keep_edges or None})
                errors = options.obs_error or ()
                if dry_run:
                    report.results(
                        plan_models(model, inputs, options.var, smooth, errors, machine, report)
                    )
                    return
                measured = measure_models(
                    model, inputs, options.var, smooth, errors, machine, kept, report
                )
            else:
                held = Holdouts(holdout, repeats or REPEATS, seed or 0, keep_edges, smooth)
                if dry_run:
                    report.results(plan_inputs(inputs, options, settings, machine, held, report))
                    return
                measured = measure_inputs(inputs, options, settings, machine, held, kept, report)
        found = measured.found
        above = [exceeded(one.metrics, limits) for one in found]
        missed = missed_words(found, above, limits)
        if plot is not None:
            draw_validations(found, plot, outputs.overwrite)
        if page is not None:
            each = list(zip(found, measured.tried, missed, strict=True))
            write_page(each, provenance_of(inputs, measured.about), page, outputs.overwrite)
        written = {"plot": plot, "report": page}
        report_metrics(found, measured.facts, above, missed, written, report)
        suggest_next(model, inputs, report)
        if any(above):
            raise typer.Exit(_ABOVE_LIMIT)


def suggest_next(model: Path | None, inputs: list[str], report: Report) -> None:
    """Suggest to fit what was held out of, or to add what a model was measured on."""
    if model is None:
        report.next_step(*fit_words(*inputs))
    else:
        report.next_step("update", str(model), *inputs)


def read_limits(texts: list[str] | None) -> dict[str, float]:
    """Return the largest values allowed, by metric."""
    from dkrls_cli.model.validation.metrics import ERRORS

    limits = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or name not in ERRORS:
            raise SettingError(
                f"--fail-above {text} is not METRIC=VALUE with one of {', '.join(ERRORS)}."
                f"{suggest(name, ERRORS)}"
            )
        try:
            limits[name] = float(value)
        except ValueError:
            raise SettingError(f"--fail-above {text}: '{value}' is not a number.") from None
    return limits


def refuse_fit_options(settings: Settings, others: Mapping[str, Any]) -> None:
    """Raise SettingError if an option is given that only a hold-out has."""
    given = [*settings.given, *(name for name, value in others.items() if value is not None)]
    if given:
        option = "float32" if given[0] == "dtype" else given[0]
        raise SettingError(f"--{option} goes with --holdout; a model has its own settings.")


def refuse_measured(**given: object) -> None:
    """Raise SettingError for options of what was measured, which a dry run does not."""
    named = [f"--{name.replace('_', '-')}" for name, value in given.items() if value]
    if named:
        raise SettingError(f"{named[0]} is for what was measured, and --dry-run measures nothing.")


def plan_models(
    path: Path,
    inputs: list[str],
    var: Sequence[str] | None,
    smooth: bool,
    errors: Sequence[str],
    machine: opt.RunOptions,
    report: Report,
) -> list[Result]:
    """Return what measuring the models of a file would take."""
    from dkrls_cli.model.streaming.running import local_threads
    from dkrls_cli.model.validation.planning import plan_model

    limit, workers = machine.memory_limit, local_threads(machine.threads).workers
    results = []
    for model, name in measured_models(path, inputs, var):
        (source,) = open_inputs(inputs, [name] if name else None, None, report, errors)
        refuse_whole_grid(source, limit)
        plan = plan_model(model, source, smooth=smooth, limit=limit, workers=workers)
        results.append(plan_validation(source, plan))
    return results


def plan_inputs(
    inputs: list[str],
    options: opt.FitOptions,
    settings: Settings,
    machine: opt.RunOptions,
    held: Holdouts,
    report: Report,
) -> list[Result]:
    """Return what hold-outs would take: each fit that of a part in memory, or all part by part."""
    from dkrls_cli.model.streaming.running import local_threads
    from dkrls_cli.model.validation.planning import plan_holdouts

    errors, limit = options.obs_error or (), machine.memory_limit
    sources = open_inputs(inputs, options.var, settings.level_names, report, errors)
    needs = [holdout_needs(source, settings, held.fractions) for source in sources]
    if can_be_streamed(sources) and holdouts_exceed(needs, settings, limit):
        workers = local_threads(machine.threads).workers
        how: dict[str, Any] = {**held.keywords, "limit": limit, "workers": workers}
        return [plan_validation(one, plan_holdouts(one, settings, **how)) for one in sources]
    results: list[Result] = []
    for part, besides in needs:
        refuse_too_large([part], settings, limit, besides=besides)
        results += plan_results([part], settings, report, besides=besides)
    return results


def measured_models(
    path: Path, inputs: list[str], var: Sequence[str] | None
) -> list[tuple[Model, str | None]]:
    """Return the models to measure, each with the variable of the inputs to measure it on.

    The model of one variable may be measured on a variable of another name.
    """
    from dkrls_cli.cli.commands.predict import chosen_models
    from dkrls_cli.model.saving import load_models

    if var and len(var) == 1 and var[0] != "all":
        models = list(load_models(path).values())
        if len(models) == 1:
            return [(models[0], var[0])]
    return [(model, variable_of(model, inputs)) for model in chosen_models(path, var)]


@dataclass(frozen=True)
class Kept:
    """What is kept for pictures and pages: evidence of all runs, and trials of the last fit."""

    evidence: bool
    trials: bool


@dataclass(frozen=True, eq=False)
class Measured:
    """Validations, each with what was tried and its facts, and the settings of them all."""

    found: Sequence[Validation]
    tried: Sequence[ChoiceRecord | None]
    facts: Sequence[dict[str, Any]]
    about: Mapping[str, Any]


def measure_models(
    path: Path,
    inputs: list[str],
    var: Sequence[str] | None,
    smooth: bool,
    errors: Sequence[str],
    machine: opt.RunOptions,
    kept: Kept,
    report: Report,
) -> Measured:
    """Measure the models of a file."""
    with report.working(f"reading {path}"):
        models = measured_models(path, inputs, var)
    found = [
        measure_model(one, inputs, name, smooth, machine, report, errors, kept.evidence)
        for one, name in models
    ]
    for one in found:
        report_outside(one, report)
    about = {"model": path.name, "fit": origin_text(found)}
    return Measured(found, [None] * len(found), [model_facts(one) for one in found], about)


def report_outside(found: Validation, report: Report) -> None:
    """Report how many coordinates of the truth lie outside the training range of the model."""
    beyond = [
        f"{int(far.sum())} of {axis.size} coordinates of '{axis.name}'"
        for axis, far in zip(found.axes, found.model.outside(found.axes), strict=True)
        if far.any()
    ]
    if beyond:
        report.note(
            f"Note: {' and '.join(beyond)} are outside the training range: errors there are those "
            "of extrapolation."
        )


def measure_inputs(
    inputs: list[str],
    options: opt.FitOptions,
    settings: Settings,
    machine: opt.RunOptions,
    held: Holdouts,
    kept: Kept,
    report: Report,
) -> Measured:
    """Measure the method on parts of the variables of some inputs that are held out."""
    from dkrls_cli.tuning.trials.record import ChoiceRecord

    errors, limit = options.obs_error or (), machine.memory_limit
    sources = open_inputs(inputs, options.var, settings.level_names, report, errors)
    tried = [ChoiceRecord() if kept.trials else None for _ in sources]
    needs = [holdout_needs(source, settings, held.fractions) for source in sources]
    if can_be_streamed(sources) and holdouts_exceed(needs, settings, limit):
        refuse_pictures(kept.evidence)
        found = [holdouts_in_parts(one, settings, held, machine, report) for one in sources]
    else:
        for part, besides in needs:
            refuse_too_large([part], settings, limit, besides=besides)
        found = [
            measure_holdouts(source, settings, limit, held, kept.evidence, report, record)
            for source, record in zip(sources, tried, strict=True)
        ]
    for one in found:
        report_bounds(one.model, report)
    facts = [holdout_facts(one, held.seed) for one in found]
    about = {"holdout": found[0].held_out, "repeats": held.repeats, "seed": held.seed}
    return Measured(found, tried, facts, {**about, "options": settings.given})


def measure_model(
    model: Model,
    inputs: list[str],
    var: str | None,
    smooth: bool,
    machine: opt.RunOptions,
    report: Report,
    errors: Sequence[str],
    evidence: bool,
) -> Validation:
    """Measure a model on the cells of a grid; with `evidence`, keep what pictures need.

    It goes part by part if the model refers to its data, or the grid is beyond memory.
    """
    from dkrls_cli.model.validation.validate import validate_model

    (source,) = open_inputs(inputs, [var] if var else None, None, report, errors)
    if model.reference is not None or model_exceeds(source, machine.memory_limit):
        refuse_pictures(evidence)
        return model_in_parts(model, source, smooth, machine, report)
    grid = read_values(source, report)
    report_marks(grid, report)
    with report.working("predicting"):
        return validate_model(model, grid, source.scalars, smooth=smooth, evidence=evidence)


def refuse_pictures(asked: bool) -> None:
    """Raise SettingError if pictures are asked for where a grid is compared part by part."""
    if asked:
        raise SettingError(
            "The grid is compared part by part, and pictures need all of it at once: --plot and "
            "--report do not go with that. Leave them out, or validate a part that fits into "
            "--max-memory."
        )


def model_exceeds(source: Source, limit: float) -> bool:
    """Return whether a grid is too large to measure a model on all of it at once."""
    from dkrls_cli.model.streaming.validating import validation_bytes

    return validation_bytes(source) > limit


def model_in_parts(
    model: Model, source: Source, smooth: bool, machine: opt.RunOptions, report: Report
) -> Validation:
    """Measure a model on a grid part by part."""
    from dkrls_cli.model.streaming.running import local_threads
    from dkrls_cli.model.streaming.validating import validate_model_in_blocks

    limit = machine.memory_limit
    refuse_whole_grid(source, limit)
    with report.working("predicting part by part") as progress:
        found = validate_model_in_blocks(
            model,
            source,
            smooth=smooth,
            limit=limit,
            scheduler=local_threads(machine.threads),
            progress=progress,
        )
    report_notes(source, report)
    return found


def refuse_whole_grid(source: Source, limit: float) -> None:
    """Raise SettingError if a grid beyond memory can only be read as a whole."""
    if (source.reader is None or source.errors is not None) and model_exceeds(source, limit):
        raise SettingError(
            f"{shape_text(source.axes)} is beyond --max-memory, and can only be read as a whole. "
            "Write it to NetCDF or Zarr, leave --obs-error out, or give a larger --max-memory."
        )


def variable_of(model: Model, inputs: list[str]) -> str | None:
    """Return the name of the model's variable if the inputs have it, else None."""
    from dkrls_cli.files.reading import has_variable

    return model.name if has_variable(inputs, model.name) else None


def holdouts_exceed(needs: Sequence[tuple[Source, int]], settings: Settings, limit: float) -> bool:
    """Return whether hold-outs would need more memory than allowed."""
    return any(
        found.memory > limit
        for part, besides in needs
        for found in estimates([part], settings, besides=besides)
    )


def holdout_needs(
    source: Source, settings: Settings, holdout: list[str] | None
) -> tuple[Source, int]:
    """Return what is trained on in a hold-out, and the bytes that are held besides its fit."""
    from dkrls_cli.tuning.footprint import holdout_memory

    part = trained_part(source, holdout)
    return part, holdout_memory(source.shape, part.shape, source.dtype, settings.dtype)


def trained_part(source: Source, holdout: list[str] | None) -> Source:
    """Return a source of as many coordinates as train when a fraction of them is held out."""
    from dkrls_cli.model.validation.validate import read_fractions

    fractions = read_fractions(opt.setting(holdout, "--holdout"), source.axes)
    sizes = [round(axis.size * (1 - fractions.get(axis.name, 0.0))) for axis in source.axes]
    axes = (axis.take(range(max(1, n))) for axis, n in zip(source.axes, sizes, strict=True))
    return replace(source, axes=tuple(axes), table=None)


@dataclass(frozen=True)
class Holdouts:
    """How parts of a grid are held out, and how models are asked for them."""

    fractions: list[str] | None
    repeats: int
    seed: int
    keep_edges: bool
    smooth: bool

    @property
    def keywords(self) -> dict[str, Any]:
        """Keywords of the functions that measure hold-outs."""
        return {
            "holdout": opt.setting(self.fractions, "--holdout"),
            "repeats": self.repeats,
            "seed": self.seed,
            "keep_edges": self.keep_edges,
            "smooth": self.smooth,
        }


def measure_holdouts(
    source: Source,
    settings: Settings,
    limit: float,
    held: Holdouts,
    evidence: bool,
    report: Report,
    record: ChoiceRecord | None,
) -> Validation:
    """Measure the method on parts of a grid that are held out at random.

    `limit` is the memory that may be used. `record` is told what was tried in the last fit.
    """
    from dkrls_cli.model.validation.validate import validate_holdout

    grid = read_values(source, report)
    report_marks(grid, report)
    refuse_large_gaps(trained_part(source, held.fractions), grid, settings, limit, loaded=False)
    with report.working("holding out") as progress:

        def report_run(number: int, metrics: Mapping[str, float]) -> None:
            progress((number + 1) / held.repeats)
            report_holdout(number, metrics, report)

        return validate_holdout(
            grid, settings, evidence=evidence, on_run=report_run, watch=record, **held.keywords
        )


def holdouts_in_parts(
    source: Source, settings: Settings, held: Holdouts, machine: opt.RunOptions, report: Report
) -> Validation:
    """Measure the method on parts of a grid beyond memory that are held out at random."""
    from dkrls_cli.model.streaming.running import local_threads
    from dkrls_cli.model.streaming.validating import validate_holdout_in_blocks

    with report.working("holding out part by part") as progress:
        found = validate_holdout_in_blocks(
            source,
            settings,
            limit=machine.memory_limit,
            scheduler=local_threads(machine.threads),
            on_run=lambda number, metrics: report_holdout(number, metrics, report),
            progress=progress,
            **held.keywords,
        )
    report_notes(source, report)
    note = found.model.origin.get("settings_chosen_on")
    if note:
        report.note(f"Note: {note}.")
    return found


def report_holdout(number: int, metrics: Mapping[str, float], report: Report) -> None:
    """Report the error of one hold-out to those who want details."""
    report.detail(f"hold-out {number + 1}: rmse {metrics['rmse']:.4g}")


def model_facts(found: Validation) -> dict[str, Any]:
    """Return what is reported of a model."""
    return {
        "variable": found.model.name,
        "grid": shape_text(found.axes),
        "predict_seconds": found.seconds,
        "metrics": found.metrics,
        "calibration": calibration_facts(found),
        "levels": model_rows(found.model),
    }


def holdout_facts(found: Validation, seed: int) -> dict[str, Any]:
    """Return what is reported of hold-outs."""
    return {
        "variable": found.model.name,
        "grid": shape_text(found.axes),
        "held_out": found.held_out,
        "repeats": len(found.runs),
        "seed": seed,
        "metrics": found.metrics,
        "runs": found.runs,
        "calibration": calibration_facts(found),
        "levels": model_rows(found.model),
    }


def calibration_facts(found: Validation) -> dict[str, Any]:
    """Return how often error bars hold the truth, and the root mean square of errors over them."""
    from dkrls_cli.model.validation.calibration import LEVELS

    own = found.calibration
    return {
        "n": own.count,
        "nominal": LEVELS,
        "observed": own.observed.tolist(),
        "standardised_rms": own.spread,
    }


def report_metrics(
    found: Sequence[Validation],
    facts: Sequence[dict[str, Any]],
    above: Sequence[list[str]],
    missed: Sequence[list[str]],
    written: Mapping[str, Path | None],
    report: Report,
) -> None:
    """Report metrics and levels of every variable, and the metrics above their limits.

    `written` are the files that were asked for, by name.
    """
    results = [
        ({**fact, "missed": names}, metric_parts(one, fact))
        for one, fact, names in zip(found, facts, above, strict=True)
    ]
    report.results(results, **{name: str(path) for name, path in written.items() if path})
    for words in missed:
        for text in words:
            report.note(f"Missed: {text}")


def missed_words(
    found: Sequence[Validation], above: Sequence[list[str]], limits: Mapping[str, float]
) -> list[list[str]]:
    """Return the metrics above their limits in words, for every variable."""
    words = []
    for one, names in zip(found, above, strict=True):
        of = f" of {one.model.name}" if found[1:] else ""
        each = [(name, one.metrics[name], limits[name]) for name in names]
        words.append([f"{name}{of} is {v:.6g}, allowed is {limit:.6g}." for name, v, limit in each])
    return words


def origin_text(found: Sequence[Validation]) -> str:
    """Return what models know of their fit: the program, the inputs and the options."""
    origin = found[0].model.origin
    inputs = ", ".join(map(str, origin.get("inputs", ())))
    words = [str(origin.get("program", "")), f"from {inputs}" if inputs else ""]
    options = ", ".join(f"{key} {value}" for key, value in origin.get("options", {}).items())
    return ", ".join(word for word in [*words, options] if word) or "not known"


def metric_parts(found: Validation, facts: dict[str, Any]) -> Sequence[str | Layout]:
    """Return metrics and levels as a heading and tables."""
    metrics = found.metrics
    body: Layout = pairs({**metrics, "predict_seconds": found.seconds})
    if found.runs:
        rows = [
            {
                "metric": key,
                "median": metrics[key],
                "lowest": min(run[key] for run in found.runs),
                "highest": max(run[key] for run in found.runs),
            }
            for key in metrics
        ]
        body = table(rows)
    heading = pairs({"variable": facts["variable"], "grid": facts["grid"]})
    return heading, body, level_table(facts["levels"])
