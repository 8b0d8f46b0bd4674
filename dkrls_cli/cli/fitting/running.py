"""Fits of one or several variables in memory, and what is reported of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from dkrls_cli import __version__
from dkrls_cli.cli import options as opt
from dkrls_cli.cli.describe import shape_text
from dkrls_cli.cli.fitting.inputs import read_values, with_history
from dkrls_cli.cli.fitting.memory import refuse_large_gaps
from dkrls_cli.cli.fitting.watching import both, choice_printer, counting
from dkrls_cli.cli.report import Report
from dkrls_cli.cli.texts import read_level_settings

if TYPE_CHECKING:
    from dkrls_cli.files.source import Source
    from dkrls_cli.grid.grid import Grid
    from dkrls_cli.model.choosing import ChoiceCallback
    from dkrls_cli.model.model import Model
    from dkrls_cli.model.settings import Settings
    from dkrls_cli.tuning.spectra import SpectrumCache
    from dkrls_cli.tuning.trials.record import ChoiceRecord


@dataclass(frozen=True, eq=False)
class FittedVariable:
    """The model of a variable, and what its fit took: cells, bytes of data, seconds.

    What was tried is None if it was not to be recorded.
    """

    model: Model
    cells: int
    data_bytes: int
    seconds: float
    tried: ChoiceRecord | None = None


def fit_settings(options: opt.LevelOptions) -> Settings:
    """Return the settings that the options of a command give."""
    from dkrls_cli.model.settings import Settings

    whole = opt.FitOptions(**{**vars(opt.FitOptions()), **vars(options)})
    noise = whole.noise if isinstance(options, opt.FitOptions) else "joint"  # through gaps, always
    return Settings(
        **read_level_settings(whole, noise),
        noise=whole.noise,
        missing=whole.missing,
        compact=whole.compact,
        dtype="float32" if whole.float32 else "float64",
        folds=whole.folds,
        bounds=whole.bounds,
        tolerance=whole.tolerance,
        group=whole.group,
        accept_inexact=whole.accept_inexact,
        poles=whole.poles,
        cell_means=whole.cell_means_along or whole.cell_means,
        robust=whole.robust,
    )


def fit_sources(
    sources: Sequence[Source],
    settings: Settings,
    threads: int | None,
    limit: float,
    inputs: list[str],
    report: Report,
    *,
    history: bool = True,
    record: bool = False,
) -> list[FittedVariable]:
    """Fit a model of every variable; those on the same coordinates share their factors.

    `limit` is the memory that may be used. With `history`, that of the data begins with this
    command. With `record`, what was tried is kept.
    """
    from dkrls_cli.tuning.spectra import SpectrumCache
    from dkrls_cli.tuning.trials.record import ChoiceRecord

    shared = SpectrumCache() if sources[1:] else None
    fits = []
    for source in sources:
        grid = read_values(source, report)
        refuse_large_gaps(source, grid, settings, limit)
        grid = with_history(grid) if history else grid
        tried = ChoiceRecord() if record else None
        model, seconds = run_fit(
            grid, settings, threads, inputs, report, shared, source.errors_from, tried
        )
        fits.append(FittedVariable(model, grid.values.size, grid.values.nbytes, seconds, tried))
    return fits


def run_fit(
    grid: Grid,
    settings: Settings,
    threads: int | None,
    inputs: list[str],
    report: Report,
    shared: SpectrumCache | None,
    errors_from: float | str | None,
    record: ChoiceCallback | None,
) -> tuple[Model, float]:
    """Fit a model, and return it with the seconds that took; `record` is told what was tried."""
    from dkrls_cli.model.fit import error_origin, fit_grid
    from dkrls_cli.threads import blas_threads

    origin = {**fit_origin(settings, inputs), **error_origin(errors_from)}
    start = perf_counter()
    with report.working(f"fitting {shape_text(grid.axes)}") as done, blas_threads(threads):
        printed = both(choice_printer(report, grid.axes), record)
        watch = counting(printed, len(grid.axes), done)
        model = fit_grid(grid, settings, origin=origin, watch=watch, spectra=shared, tell=done)
    seconds = perf_counter() - start
    report_fit_notes(model, report)
    report_cell_means(model, report)
    if "land" in model.origin:
        report.note(f"Note: {model.origin['land']}. predict --mask none answers there.")
    return model, seconds


def fit_origin(settings: Settings, inputs: Sequence[str]) -> dict[str, Any]:
    """Return where a model comes from: inputs, options and program."""
    return {
        "inputs": [Path(path).name for path in inputs],
        "options": asked_options(settings),
        "program": f"dkrls {__version__}",
    }


def asked_options(settings: Settings) -> dict[str, Any]:
    """Return the settings that were given, as a model file holds them: levels by their names."""
    names = {"levels": settings.level_names} if settings.levels is not None else {}
    return settings.given | names


def report_fit_notes(model: Model, report: Report) -> None:
    """Report the warnings of a fit, the coordinates it dropped, and its bounds."""
    for note in model.origin.get("notes", ()):
        report.note(f"Warning: {note}.")
    for note in model.origin.get("dropped_coordinates", ()):
        report.note(f"Note: {note}.")
    report_bounds(model, report)


def report_cell_means(model: Model, report: Report) -> None:
    """Report that the file tells of means or sums over cells, if they are taken for values."""
    from dkrls_cli.model.answering.cellmeans import told_means

    sums = told_means(model.axes, model.attrs, "sum")
    if sums:
        report.note(
            f"Note: cell_methods tells of sums over {' and '.join(sums)}: answers at new "
            "coordinates are sums over cells as wide as those of the data. For other cells, divide "
            "the data by the sizes of its cells first."
        )

    told = told_means(model.axes, model.attrs)
    if told and not model.cell_means:
        report.note(
            f"Note: cell_methods tells of means over {' and '.join(told)}, which are taken "
            "for values; --cell-means keeps them as means."
        )


def report_bounds(model: Model, report: Report) -> None:
    """Report the bounds that the file of a model tells, and how to turn them off."""
    if "bounds" in model.origin:
        off = " --bounds none turns that off." if model.bounds is not None else ""
        report.note(f"Note: {model.origin['bounds']}.{off}")
