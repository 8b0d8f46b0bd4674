"""The page of a validation: one file with words, tables and pictures that loads nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dkrls_cli.grid.axes import Axis
from dkrls_cli.model.validation.calibration import LEVELS
from dkrls_cli.model.validation.validate import Validation
from dkrls_cli.plots.labels import units_text, variable_text
from dkrls_cli.plots.reports.html import Html, document, element, join, pairs, picture, table
from dkrls_cli.plots.reports.panels import PanelRow, Row, rows_figure
from dkrls_cli.plots.reports.trials import (
    LevelTrials,
    kernel_text,
    level_trials,
    short,
    sigma_text,
    trial_row,
)
from dkrls_cli.plots.reports.validation import (
    PictureRow,
    calibration_row,
    coverage_text,
    error_row,
    single_fields,
    slice_picture,
    spread_text,
)
from dkrls_cli.plots.style import Kind, encode_figure
from dkrls_cli.tuning.candidates import MEASURES
from dkrls_cli.tuning.trials.record import ChoiceRecord

LARGEST = 3_000_000
"""Bytes of a page at most: it can be sent by mail and opens at once on a phone."""

# Stands for a number that there is none of.
_NONE = "-"

# Width in mm of a picture, and of a wide one: labels stay legible on a screen of 390 dots.
_WIDTH, _WIDE = 92.0, 150.0

# Bytes from which on a drawing of lines is larger than an image of it.
_LARGE_DRAWING = 120_000


@dataclass(frozen=True)
class Quality:
    """How pictures are stored: dots per inch of images, and whether charts are drawings."""

    dots: int
    drawings: bool


_QUALITIES = (Quality(200, True), Quality(130, False), Quality(90, False))
"""From the best on: the first that keeps the page small enough is taken."""


@dataclass(frozen=True, eq=False)
class ReportedVariable:
    """The validation of one variable as it is reported.

    Attributes
    ----------
    found
        The validation, with evidence.
    tried
        What was tried in the fit of the last hold-out; None if a model was measured.
    missed
        Limits that were exceeded, in words.
    """

    found: Validation
    tried: ChoiceRecord | None = None
    missed: Sequence[str] = ()

    @property
    def name(self) -> str:
        """Name of the variable."""
        return self.found.model.name


@dataclass(frozen=True)
class Provenance:
    """Where a validation comes from.

    Attributes
    ----------
    command
        The command that repeats it.
    facts
        Inputs, options, seed and versions, each with its name.
    date
        Date and time.
    """

    command: str
    facts: Mapping[str, str]
    date: str


Figure = tuple[Row, float, str, str]
"""What is drawn, its width in mm, a text for those who do not see it, and a caption."""


def make_page(variables: Sequence[ReportedVariable], provenance: Provenance) -> str:
    """Return the page of a validation.

    Parameters
    ----------
    variables
        The validations, each with evidence.
    provenance
        Where they come from.

    Returns
    -------
    str
        A whole HTML page of at most 3 MB. If it would be larger, pictures are stored less sharply;
        if that is not enough, those of the last variables are left out, which the page says.
    """
    for quality in _QUALITIES:
        page = _page(variables, provenance, quality)
        if _size(page) <= LARGEST:
            return page
    for shown in range(len(variables) - 1, -1, -1):
        page = _page(variables, provenance, _QUALITIES[-1], shown)
        if _size(page) <= LARGEST:
            break
    return page


def _size(page: str) -> int:
    return len(page.encode("utf-8"))


def _page(
    variables: Sequence[ReportedVariable],
    provenance: Provenance,
    quality: Quality,
    shown: int | None = None,
) -> str:
    """Return the page with the pictures of the first variables, of all by default."""
    drawn = len(variables) if shown is None else shown
    names = ", ".join(variable.name for variable in variables)
    title = f"Validation of {names}"
    sections = [
        _section(variable, quality if place < drawn else None, len(variables) > 1)
        for place, variable in enumerate(variables)
    ]
    head = element(
        "header", element("h1", title), element("p", f"dkrls, {provenance.date}", class_="by")
    )
    return document(title, head, *sections, _provenance(provenance))


# The parts of the page ----------------------------------------------------------------------------


def _section(variable: ReportedVariable, quality: Quality | None, named: bool) -> Html:
    """Return all about one variable; without a quality there are no pictures."""
    found = variable.found
    heading = [element("h2", variable_text(variable.name, found.model.attrs))] if named else []
    missing = "Pictures are left out: the page would be too large. Report fewer variables."
    note = [] if quality else [element("p", missing, class_="note")]
    return element(
        "section",
        *heading,
        _summary(variable),
        *note,
        element("h3", "Metrics"),
        table(_metric_rows(found)),
        *_figures("Truth and prediction", _slice_figures(found), quality, _slice_title(found)),
        *_figures("Where the errors are", _error_figures(found), quality),
        *_error_bars(found, quality),
        element("h3", "What was fitted, and why"),
        *_fit_words(variable),
        table(_level_rows(variable)),
        *_figures("", _trial_figures(variable), quality),
    )


def _summary(variable: ReportedVariable) -> Html:
    """Return the result in a few sentences, and the limits that were missed."""
    found, metrics = variable.found, variable.found.metrics
    units = units_text(found.model.attrs)
    sentences = [_compared(found)]
    if math.isfinite(metrics["rmse"]):
        median = "In the median, the" if found.runs[1:] else "The"
        spread = _with(found.spread, units)
        sentences.append(
            f"{median} root mean square error is {_with(metrics['rmse'], units)}, "
            f"{_percent(metrics['rmse'], found.spread)} of the spread of the data ({spread})."
        )
    if math.isfinite(metrics["coverage90"]):
        inside = _metric("coverage90", metrics["coverage90"], "")
        sentences.append(f"The 90 % error bars hold {inside} of the cells.")
    missed = [element("p", f"Missed: {words}", class_="note") for words in variable.missed]
    return join([element("p", " ".join(sentences), class_="lead"), *missed])


def _compared(found: Validation) -> str:
    """Return what was compared in a sentence."""
    count = f"{found.metrics['n']:.0f} cells"
    if not found.runs:
        return f"The model was compared with {count}."
    held = ", ".join(f"{100 * part:.3g} % of {dim}" for dim, part in found.held_out.items())
    times = f"{len(found.runs)} hold-outs" if found.runs[1:] else "one hold-out"
    return (
        f"In {times} a model was fitted without some coordinates ({held}, at random) and asked for "
        f"the {count} there."
    )


def _error_bars(found: Validation, quality: Quality | None) -> list[Html]:
    """Return how good the error bars are: in words, in pictures and as a table."""
    words = f"{coverage_text(found.calibration)} {spread_text(found.calibration)}"
    said = [element("h3", "How good the error bars are"), element("p", words)]
    if not found.calibration.count:
        return said
    figures = _figures("", _calibration_figures(found), quality)
    return [*said, *figures, table(_coverage_rows(found))]


def _metric_rows(found: Validation) -> list[dict[str, str]]:
    """Return the metrics as rows of a table; seconds are left out, which differ from run to run."""
    units = units_text(found.model.attrs)
    rows = []
    for name, value in found.metrics.items():
        if name.endswith("_seconds"):
            continue
        row = {"metric": _METRICS[name], "value": _metric(name, value, units)}
        if found.runs[1:]:
            each = [run[name] for run in found.runs]
            row = {
                "metric": row["metric"],
                "median": row["value"],
                "lowest": _metric(name, min(each), units),
                "highest": _metric(name, max(each), units),
            }
        rows.append(row)
    return rows


def _coverage_rows(found: Validation) -> list[dict[str, str]]:
    """Return nominal and observed coverage as rows of a table."""
    each = zip(LEVELS, found.calibration.observed.tolist(), strict=True)
    return [
        {"nominal": f"{100 * level:g} %", "observed": f"{100 * share:.3g} %"}
        for level, share in each
    ]


def _fit_words(variable: ReportedVariable) -> Iterator[Html]:
    """Yield what is said of the choice of the settings."""
    model, units = variable.found.model, units_text(variable.found.model.attrs)
    ridge = model.joint_ridge
    if ridge is not None:
        yield element("p", f"One ridge of {short(ridge)} stands for the noise of the whole grid.")
    if variable.tried is None:
        yield element(
            "p", "The settings are those of the model file, which does not keep what was tried."
        )
    else:
        yield element(
            "p",
            "The settings below are those of the last hold-out. A level is chosen by predicting "
            "parts of its data from the rest. What is taken is not always the lowest point: of "
            "settings that predict slices about equally well, the one nearest to their mean is "
            "taken, and of settings that fill gaps about equally well, the one that solves best.",
        )
    yield element(
        "p",
        "The left-out error is that of the model on parts of its own data, as a share of the "
        f"spread of the data, {_with(variable.found.spread, units)}.",
    )


def _level_rows(variable: ReportedVariable) -> list[dict[str, str]]:
    """Return the levels as rows of a table."""
    model, spread = variable.found.model, variable.found.spread
    units = units_text(model.attrs)
    rows = []
    for level in level_trials(model, variable.tried or ChoiceRecord()):
        error, kernel = level.reported, level.level.kernel
        rows.append(
            {
                "dimension": level.axis.name,
                "coordinates": _range_text(level.axis),
                "kernel": kernel_text(kernel),
                "sigma": _NONE if kernel.is_spline else sigma_text(kernel, level.axis),
                "ridge": short(level.ridge),
                "left-out error": _NONE if error is None else _with(error, units),
                "of the spread": _NONE if error is None else _percent(error, spread),
                **({} if variable.tried is None else {"chosen": _chosen(level)}),
            }
        )
    return rows


def _chosen(level: LevelTrials) -> str:
    """Return how the settings of a level came about."""
    if level.axis.size == 1:
        return "nothing to choose by"
    if not level.choices:
        return "given"
    count = sum(len(choice.tried) for choice in level.choices)
    return f"from {count}, on {MEASURES[level.choices[-1].measure]}"


def _provenance(provenance: Provenance) -> Html:
    """Return where the validation comes from, and how to repeat it."""
    return element(
        "section",
        element("h2", "Where this comes from"),
        pairs(dict(provenance.facts)),
        element("p", "To repeat it, in the folder of the inputs:"),
        element("pre", provenance.command),
    )


# Pictures -----------------------------------------------------------------------------------------


def _figures(
    title: str, figures: Sequence[Figure], quality: Quality | None, what: str = ""
) -> list[Html]:
    """Return pictures beside each other, below a heading and what they show, if these are given."""
    if quality is None or not figures:
        return []
    drawn = [_encode(figure, quality) for figure in figures]
    heading = [element("h3", title)] if title else []
    words = [element("p", what)] if what else []
    return [*heading, *words, element("div", *drawn, class_="figures")]


def _encode(figure: Figure, quality: Quality) -> Html:
    """Return one picture: maps as images, charts as drawings unless these are large."""
    row, width, text, caption = figure
    kind: Kind = "svg" if quality.drawings and isinstance(row, PanelRow) else "png"
    content = encode_figure(_maker(row, width, quality.dots), kind)
    if kind == "svg" and len(content) > _LARGE_DRAWING:
        kind = "png"
        content = encode_figure(_maker(row, width, quality.dots), kind)
    return picture(content, kind, text, caption)


def _maker(row: Row, width: float, dots: int) -> Callable[[], Any]:
    def make() -> Any:
        figure = rows_figure([row], width)
        figure.set_dpi(dots)
        return figure

    return make


def _slice_title(found: Validation) -> str:
    """Return which slice is shown, in words."""
    assert found.evidence is not None
    whole = slice_picture(found, found.evidence)
    among = "held-out cells" if found.runs else "cells compared"
    return f"{whole.title}: the slice with most {among}." if whole else ""


def _slice_figures(found: Validation) -> list[Figure]:
    """Return truth, prediction and error on one slice, each alone."""
    assert found.evidence is not None
    whole = slice_picture(found, found.evidence)
    if whole is None:
        return []
    if whole.line is not None:
        text = f"{whole.title}: prediction with its 90 % interval, and the truth as points."
        return [(PictureRow(single_fields(whole)[0]), _WIDE, text, text)]
    return [
        (PictureRow(alone), _WIDTH, f"{field.heading}: {whole.title}.", field.heading.capitalize())
        for alone, field in zip(single_fields(whole), whole.fields, strict=True)
    ]


def _error_figures(found: Validation) -> list[Figure]:
    """Return the errors by coordinate, a picture for each dimension."""
    assert found.evidence is not None
    return _single(error_row(found, found.evidence))


def _calibration_figures(found: Validation) -> list[Figure]:
    """Return the pictures of the error bars."""
    coverage, standardised = calibration_row(found.calibration).panels
    return [
        (PanelRow([coverage]), _WIDTH, coverage.text, "Observed against nominal coverage"),
        (PanelRow([standardised]), _WIDTH, standardised.text, "Errors over their error bars"),
    ]


def _trial_figures(variable: ReportedVariable) -> list[Figure]:
    """Return what was tried, a picture for each level of which something was."""
    if variable.tried is None:
        return []
    model, tried = variable.found.model, variable.tried
    row = trial_row(model, tried)
    names = [level.name for level in model.levels]
    panels = zip(names, row.panels, strict=True)
    return [(PanelRow([p]), _WIDTH, p.text, p.text) for name, p in panels if tried.of(name)]


def _single(row: PanelRow) -> list[Figure]:
    return [(PanelRow([panel]), _WIDTH, panel.text, panel.text) for panel in row.panels]


# Numbers in words ---------------------------------------------------------------------------------

_METRICS = {
    "n": "cells compared",
    "rmse": "root mean square error",
    "mae": "mean absolute error",
    "max_error": "largest error",
    "normalized_max_error": "largest error over largest value",
    "bias": "bias",
    "r2": "share of variance explained (r²)",
    "coverage90": "cells within the 90 % error bars",
}
_IN_UNITS = ("rmse", "mae", "max_error", "bias")


def _metric(name: str, value: float, units: str) -> str:
    """Return a metric with its units."""
    if math.isnan(value):
        return "not known"
    if name == "n":
        return f"{value:.0f}"
    if name == "coverage90":
        return f"{100 * value:.3g} %"
    return _with(value, units if name in _IN_UNITS else "")


def _with(value: float, units: str) -> str:
    return f"{value:.4g} {units}".rstrip() if math.isfinite(value) else "not known"


def _percent(value: float, whole: float) -> str:
    return f"{100 * value / whole:.3g} %" if whole > 0 and math.isfinite(value) else _NONE


def _range_text(axis: Axis) -> str:
    """Return how many coordinates there are, and the smallest and the largest."""
    low, high = axis.take([axis.numbers.argmin(), axis.numbers.argmax()]).texts
    return f"{axis.size}: {low} to {high}" if axis.size > 1 else low
