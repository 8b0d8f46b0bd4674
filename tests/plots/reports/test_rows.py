"""Numbers of a page in words: with their units, as shares, and unknown ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dkrls_cli import fit
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.validation.calibration import LEVELS
from dkrls_cli.model.validation.validate import Validation, validate_model
from dkrls_cli.plots.reports.rows import (
    coverage_rows,
    level_rows,
    metric_rows,
    metric_text,
    percent_text,
    with_units,
)
from dkrls_cli.tuning.trials.record import ChoiceRecord


def validated() -> Validation:
    axes = axis_of("x", np.arange(9.0)), axis_of("y", [5.0])
    grid = Grid(np.sin(np.arange(9.0))[:, None], axes, "t", {"units": "K"})
    return validate_model(fit(grid, kernel="matern32", sigma=3.0, ridge=1e-3), grid)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("n", 1234567.0, "1234567"),
        ("rmse", 0.123456, "0.1235 K"),
        ("r2", 0.98764, "0.9876"),
        ("coverage90", 0.8912, "89.1 %"),
        ("bias", math.nan, "not known"),
        ("max_error", math.inf, "not known"),
    ],
)
def test_metrics_have_their_units(name: str, value: float, text: str) -> None:
    assert metric_text(name, value, "K") == text


def test_numbers_without_units_or_a_whole() -> None:
    assert with_units(2.0, "") == "2"
    assert with_units(2.0, "K") == "2 K"
    assert percent_text(1.0, 8.0) == "12.5 %"
    assert percent_text(1.0, 0.0) == percent_text(math.nan, 8.0) == "-"


def test_every_metric_but_seconds_has_a_row() -> None:
    found = validated()
    rows = metric_rows(found)
    assert len(rows) == len([name for name in found.metrics if not name.endswith("_seconds")])
    assert {tuple(row) for row in rows} == {("metric", "value")}
    assert rows[0] == {"metric": "cells compared", "value": "9"}


def test_coverage_has_a_row_for_every_level() -> None:
    rows = coverage_rows(found := validated())
    assert [row["nominal"] for row in rows] == [f"{100 * level:g} %" for level in LEVELS]
    assert rows[0]["observed"] == f"{100 * found.calibration.observed[0]:.3g} %"


def test_levels_say_how_they_came_about_where_that_is_known() -> None:
    found = validated()
    assert all("chosen" not in row for row in level_rows(found, None))
    rows = {row["dimension"]: row for row in level_rows(found, ChoiceRecord())}
    assert rows["x"]["coordinates"] == "9: 0.0 to 8.0"
    assert rows["x"]["chosen"] == "given"
    assert rows["y"]["coordinates"] == "5.0"
    assert rows["y"]["chosen"] == "nothing to choose by"
