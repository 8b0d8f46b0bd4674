"""``dkrls validate``: how good the answers are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.expansion import expand
from dkrls_cli.cli.fitting.running import fit_settings
from dkrls_cli.cli.fitting.suggestions import fit_words
from dkrls_cli.cli.output.reports import (
    check_reports,
    draw_validations,
    provenance_of,
    write_page,
)
from dkrls_cli.cli.report import Report, edge
from dkrls_cli.cli.texts import read_by
from dkrls_cli.cli.validating.holdouts import Holdouts
from dkrls_cli.cli.validating.models import Comparison
from dkrls_cli.cli.validating.results import (
    Kept,
    missed_words,
    read_limits,
    report_metrics,
)
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.model.settings import Settings

# Exit code for a metric above its limit: 1 and 2 are errors.
_ABOVE_LIMIT = 3


@expand
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
    dry_run: opt.DryRun = False,
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
        inputs = read_by(inputs, options.engine)
        if (model is None) == (holdout is None):
            raise SettingError("Give either --model MODEL or --holdout FRACTION.")
        limits = read_limits(fail_above)
        settings = fit_settings(options)
        if dry_run:
            refuse_measured(plot=plot, report=page, fail_above=fail_above)
        check_reports(plot, page, outputs.overwrite, report, *inputs, model)
        kept = Kept(evidence=plot is not None or page is not None, trials=page is not None)
        asked: Comparison | Holdouts
        if model is not None:
            others = {"repeats": repeats, "seed": seed, "keep-edges": keep_edges or None}
            refuse_fit_options(settings, others)
            errors = options.obs_error or ()
            asked = Comparison(model, inputs, options.var, errors, smooth, machine)
        else:
            how = (holdout, repeats or REPEATS, seed or 0, keep_edges, smooth)
            asked = Holdouts(inputs, options, settings, machine, *how)
        with blas_threads(machine.threads):
            if dry_run:
                report.results(asked.plan(report))
                return
            measured = asked.measure(kept, report)
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
