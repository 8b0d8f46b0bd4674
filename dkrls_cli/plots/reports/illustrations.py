"""The pictures of a page: what they show, and how sharply they are stored in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dkrls_cli.model.model import Model
from dkrls_cli.model.validation.validate import Validation
from dkrls_cli.plots.reports.html import Html, element, picture
from dkrls_cli.plots.reports.panels import PanelRow, Row, rows_figure
from dkrls_cli.plots.reports.trials import trial_row
from dkrls_cli.plots.reports.validation import (
    PictureRow,
    calibration_row,
    error_row,
    single_fields,
    slice_picture,
)
from dkrls_cli.plots.style import Kind, encode_figure
from dkrls_cli.tuning.trials.record import ChoiceRecord

# Width in mm of a picture, and of a wide one: labels stay legible on a screen of 390 dots.
_WIDTH, _WIDE = 92.0, 150.0

# Bytes from which on a drawing of lines is larger than an image of it.
_LARGE_DRAWING = 120_000


@dataclass(frozen=True)
class Quality:
    """How pictures are stored: dots per inch of images, and whether charts are drawings."""

    dots: int
    drawings: bool


QUALITIES = (Quality(200, True), Quality(130, False), Quality(90, False))
"""From the best on: the first that keeps the page small enough is taken."""


Figure = tuple[Row, float, str, str]
"""What is drawn, its width in mm, a text for those who do not see it, and a caption."""


def gallery(
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


def slice_title(found: Validation) -> str:
    """Return which slice is shown, in words."""
    assert found.evidence is not None
    whole = slice_picture(found, found.evidence)
    among = "held-out cells" if found.runs else "cells compared"
    return f"{whole.title}: the slice with most {among}." if whole else ""


def slice_figures(found: Validation) -> list[Figure]:
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


def error_figures(found: Validation) -> list[Figure]:
    """Return the errors by coordinate, a picture for each dimension."""
    assert found.evidence is not None
    return _single(error_row(found, found.evidence))


def calibration_figures(found: Validation) -> list[Figure]:
    """Return the pictures of the error bars."""
    coverage, standardised = calibration_row(found.calibration).panels
    return [
        (PanelRow([coverage]), _WIDTH, coverage.text, "Observed against nominal coverage"),
        (PanelRow([standardised]), _WIDTH, standardised.text, "Errors over their error bars"),
    ]


def trial_figures(model: Model, tried: ChoiceRecord | None) -> list[Figure]:
    """Return what was tried, a picture for each level of which something was."""
    if tried is None:
        return []
    row = trial_row(model, tried)
    names = [level.name for level in model.levels]
    panels = zip(names, row.panels, strict=True)
    return [(PanelRow([p]), _WIDTH, p.text, p.text) for name, p in panels if tried.of(name)]


def _single(row: PanelRow) -> list[Figure]:
    return [(PanelRow([panel]), _WIDTH, panel.text, panel.text) for panel in row.panels]
