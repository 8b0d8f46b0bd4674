"""Pictures of a page: maps are images, charts are drawings, and a slice is shown where one is."""

from __future__ import annotations

import numpy as np
import pytest

from dkrls_cli import fit
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.validation.validate import Validation, validate_model
from dkrls_cli.plots.reports import illustrations as module
from dkrls_cli.plots.reports.illustrations import (
    Quality,
    calibration_figures,
    error_figures,
    gallery,
    slice_figures,
    slice_title,
    trial_figures,
)
from dkrls_cli.plots.reports.panels import PanelRow
from dkrls_cli.tuning.trials.record import ChoiceRecord

pytest.importorskip("matplotlib", reason="drawing needs the extra plot")

SHARP, PLAIN = Quality(200, drawings=True), Quality(130, drawings=False)


def validated(*sizes: int) -> Validation:
    axes = tuple(axis_of(name, np.arange(float(m))) for name, m in zip("xy", sizes, strict=False))
    values = np.sin(np.add.outer(*(a.numbers for a in axes)) if sizes[1:] else axes[0].numbers)
    grid = Grid(values, axes, "t", {})
    model = fit(grid, kernel="matern32", sigma=3.0, ridge=1e-3)
    return validate_model(model, grid, evidence=True)


def test_a_map_has_three_pictures_and_a_line_one() -> None:
    whole, line = validated(9, 8), validated(12)
    captions = [caption for *_, caption in slice_figures(whole)]
    assert captions == ["Truth", "Prediction", "Prediction minus truth"]
    ((_, width, text, caption),) = slice_figures(line)
    assert width > slice_figures(whole)[0][1]
    assert text == caption
    assert slice_title(whole).endswith("the slice with most cells compared.")


def test_charts_have_a_picture_for_each_dimension_and_two_for_error_bars() -> None:
    found = validated(9, 8)
    assert len(error_figures(found)) == 2
    assert len(calibration_figures(found)) == 2
    assert all(isinstance(row, PanelRow) for row, *_ in error_figures(found))


def test_a_level_of_which_nothing_was_tried_has_no_picture() -> None:
    found = validated(9, 8)
    assert trial_figures(found.model, None) == []
    assert trial_figures(found.model, ChoiceRecord()) == []


@pytest.mark.parametrize(
    ("quality", "size", "kinds"),
    [
        (SHARP, 120_000, ["png", "svg"]),
        (SHARP, 120_001, ["png", "png"]),
        (PLAIN, 1, ["png", "png"]),
    ],
)
def test_charts_are_drawings_unless_these_are_large(
    quality: Quality, size: int, kinds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[str] = []

    def picture(content: bytes, kind: str, text: str, caption: str) -> str:
        stored.append(kind)
        return ""

    monkeypatch.setattr(module, "encode_figure", lambda make, kind: b"x" * size)
    monkeypatch.setattr(module, "picture", picture)
    found = validated(9, 8)
    gallery("", [slice_figures(found)[0], error_figures(found)[0]], quality)
    assert stored == kinds


def test_without_a_quality_or_pictures_there_is_no_heading_either() -> None:
    found = validated(12)
    assert gallery("Errors", error_figures(found), None) == []
    assert gallery("Errors", [], SHARP) == []
    heading, words, _ = gallery("Errors", error_figures(found), PLAIN, "By coordinate.")
    assert "Errors" in str(heading)
    assert "By coordinate." in str(words)
