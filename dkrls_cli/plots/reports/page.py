"""The page of a validation: one file with words, tables and pictures that loads nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dkrls_cli.model.validation.validate import Validation
from dkrls_cli.plots.labels import units_text, variable_text
from dkrls_cli.plots.reports.html import Html, document, element, join, pairs, table
from dkrls_cli.plots.reports.illustrations import (
    QUALITIES,
    Quality,
    calibration_figures,
    error_figures,
    gallery,
    slice_figures,
    slice_title,
    trial_figures,
)
from dkrls_cli.plots.reports.rows import (
    coverage_rows,
    level_rows,
    metric_rows,
    metric_text,
    percent_text,
    with_units,
)
from dkrls_cli.plots.reports.trials import short
from dkrls_cli.plots.reports.validation import coverage_text, spread_text
from dkrls_cli.tuning.trials.record import ChoiceRecord

LARGEST = 3_000_000
"""Bytes of a page at most: it can be sent by mail and opens at once on a phone."""


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
    for quality in QUALITIES:
        page = _page(variables, provenance, quality)
        if _size(page) <= LARGEST:
            return page
    for shown in range(len(variables) - 1, -1, -1):
        page = _page(variables, provenance, QUALITIES[-1], shown)
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
        table(metric_rows(found)),
        *gallery("Truth and prediction", slice_figures(found), quality, slice_title(found)),
        *gallery("Where the errors are", error_figures(found), quality),
        *_error_bars(found, quality),
        element("h3", "What was fitted, and why"),
        *_fit_words(variable),
        table(level_rows(found, variable.tried)),
        *gallery("", trial_figures(found.model, variable.tried), quality),
    )


def _summary(variable: ReportedVariable) -> Html:
    """Return the result in a few sentences, and the limits that were missed."""
    found, metrics = variable.found, variable.found.metrics
    units = units_text(found.model.attrs)
    sentences = [_compared(found)]
    if math.isfinite(metrics["rmse"]):
        median = "In the median, the" if found.runs[1:] else "The"
        spread = with_units(found.spread, units)
        sentences.append(
            f"{median} root mean square error is {with_units(metrics['rmse'], units)}, "
            f"{percent_text(metrics['rmse'], found.spread)} of the spread of the data ({spread})."
        )
    if math.isfinite(metrics["coverage90"]):
        inside = metric_text("coverage90", metrics["coverage90"], "")
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
    figures = gallery("", calibration_figures(found), quality)
    return [*said, *figures, table(coverage_rows(found))]


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
        f"spread of the data, {with_units(variable.found.spread, units)}.",
    )


def _provenance(provenance: Provenance) -> Html:
    """Return where the validation comes from, and how to repeat it."""
    return element(
        "section",
        element("h2", "Where this comes from"),
        pairs(dict(provenance.facts)),
        element("p", "To repeat it, in the folder of the inputs:"),
        element("pre", provenance.command),
    )
