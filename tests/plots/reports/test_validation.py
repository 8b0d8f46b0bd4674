"""Pictures of a validation show what it has compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from dkrls_cli import fit, validate
from dkrls_cli.grid.axes import axis_of, text_axis
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.validation.calibration import LEVELS, Calibration
from dkrls_cli.model.validation.evidence import CoordinateErrors
from dkrls_cli.model.validation.validate import Validation, validate_holdout, validate_model
from dkrls_cli.plots.reports.panels import rows_figure
from dkrls_cli.plots.reports.validation import (
    calibration_row,
    draw_coverage,
    draw_errors,
    draw_standardised,
    error_row,
    single_fields,
    slice_picture,
    validation_rows,
)

figures = pytest.importorskip("matplotlib.figure", reason="drawing needs the extra plot")

TIME = axis_of("time", np.datetime64("2020-01-01") + np.arange(8))
LAT = axis_of("lat", np.linspace(60.0, 20.0, 6), {"units": "degrees_north"})
LON = axis_of("lon", np.arange(7.0) * 10, {"units": "degrees_east"})
WAVES = [np.sin(np.linspace(0, 2, n) + i) + 2 for i, n in enumerate((8, 6, 7))]
VALUES = WAVES[0][:, None, None] * WAVES[1][:, None] * WAVES[2]
GRID = Grid(VALUES, (TIME, LAT, LON), "tas", {"units": "K", "long_name": "air $"})
GIVEN = Settings(kernel="matern32", sigma={"time": 4.0, "lat": 20.0, "lon": 30.0}, ridge=1e-3)


@pytest.fixture(scope="module")
def held() -> Validation:
    return validate_holdout(GRID, GIVEN, holdout={"time": 0.3}, repeats=2, evidence=True)


def new_axes() -> Any:
    return figures.Figure().add_subplot()


def test_a_slice_has_truth_prediction_and_their_difference_with_zero_in_the_middle(held) -> None:
    picture = slice_picture(held, held.evidence)
    truth, answers, error = picture.fields
    assert [axis.name for axis in truth.axes] == ["lat", "lon"]
    assert truth.axes[0].numbers.tolist() == sorted(LAT.numbers)
    shown = held.evidence.shown
    np.testing.assert_array_equal(truth.values, shown.truth[::-1])
    np.testing.assert_array_equal(answers.values, shown.answers[::-1])
    np.testing.assert_array_equal(error.values, (shown.answers - shown.truth)[::-1])
    assert truth.scale == answers.scale
    assert error.scale.low == -error.scale.high == -np.abs(error.values).max()
    assert picture.title == f"air $, {shown.fixed[0].texts[0]}"
    assert picture.units == "K"
    assert [one.fields[0].heading for one in single_fields(picture)] == ["", "", ""]


def test_one_dimension_is_a_line_with_its_interval_and_the_truth_as_points() -> None:
    x = np.linspace(0, 6, 20)
    truth = np.where(x > 5, np.nan, np.sin(x))
    model = fit(np.sin(x[::2]), {"x": x[::2]}, sigma=1.0, kernel="matern32", ridge=1e-3)
    found = validate(truth, {"x": x}, model=model, evidence=True, smooth=True)
    line = slice_picture(found, found.evidence).line
    np.testing.assert_allclose(line.values, found.evidence.shown.answers)
    half = stats.norm.ppf(0.95) * found.evidence.shown.deviations
    np.testing.assert_allclose(line.high - line.values, half, rtol=1e-4)
    assert line.points[0].tolist() == x[x <= 5].tolist()
    np.testing.assert_array_equal(line.points[1], truth[x <= 5])
    (alone,) = single_fields(slice_picture(found, found.evidence))
    assert alone.title == ""
    np.testing.assert_array_equal(alone.line.values, line.values)


def test_a_single_cell_has_no_picture_but_its_error_bars() -> None:
    model = fit(np.sin(np.arange(9.0)), {"x": np.arange(9.0)}, sigma=2.0, kernel="matern32")
    found = validate([0.3], {"x": [0.5]}, model=model, evidence=True)
    assert slice_picture(found, found.evidence) is None
    (only,) = validation_rows(found)
    assert only.title == "calibration of the error bars"


def test_all_rows_of_a_validation_can_be_drawn(held) -> None:
    rows = validation_rows(held)
    figure = rows_figure(rows, 180)
    figure.canvas.draw()
    assert [getattr(row, "title", "") for row in rows] == [
        "",
        "error by coordinate",
        "calibration of the error bars",
    ]
    assert len(error_row(held, held.evidence).panels) == 3


def test_truth_that_is_nowhere_known_can_be_drawn() -> None:
    model = fit(GRID, kernel="matern32", sigma=20.0, ridge=1e-3)
    nothing = Grid(np.full(VALUES.shape, np.nan), GRID.axes, "tas", {"units": "K"})
    found = validate_model(model, nothing, evidence=True)
    picture = slice_picture(found, found.evidence)
    assert (picture.fields[2].scale.low, picture.fields[2].scale.high) == (-1.0, 1.0)
    assert len(validation_rows(found)) == 2  # no coordinate has an error
    axes = new_axes()
    draw_standardised(axes, found.calibration)
    assert axes.get_title("left") == ""
    coverage, spread = (panel.text for panel in calibration_row(found.calibration).panels)
    assert coverage == "No cell has a truth that is known and an error bar."
    assert spread == ""


def test_errors_are_drawn_at_the_coordinates_that_have_some_in_rising_order() -> None:
    counts = np.array([2, 0, 4, 1, 1, 1])
    errors = CoordinateErrors(LAT, counts, np.arange(6.0), np.arange(6.0) ** 2 + 1)
    axes = new_axes()
    draw_errors(axes, errors, "K")
    rmse, bias = axes.lines[1:]
    assert [rmse.get_label(), bias.get_label()] == ["rmse", "bias"]
    order = [5, 4, 3, 2, 0]
    assert rmse.get_xdata().tolist() == LAT.numbers[order].tolist()
    assert rmse.get_ydata().tolist() == errors.rmse[order].tolist()
    assert bias.get_ydata().tolist() == errors.bias[order].tolist()
    assert axes.get_ylabel() == "error [K]"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["30°N", "45°N", "60°N"]


def test_errors_at_text_labels_are_not_joined() -> None:
    sites = text_axis("site", ["a", "b$", "c"])
    axes = new_axes()
    draw_errors(axes, CoordinateErrors(sites, np.ones(3, int), np.ones(3), np.ones(3)), "")
    assert all(one.get_linestyle() == "None" for one in axes.lines[1:])
    assert [text.get_text() for text in axes.get_xticklabels()] == ["a", r"b\$", "c"]


def test_words_tell_where_errors_are_largest(held) -> None:
    own = held.evidence.coordinates[1]
    text = error_row(held, held.evidence).panels[1].text
    worst = own.axis.plain[np.nanargmax(own.rmse)]
    assert text.startswith("Error by lat: root mean square ")
    assert text.endswith(f"largest at {worst:g}°N.")


def test_calibration_is_drawn_as_it_was_counted() -> None:
    rng = np.random.default_rng(0)
    calibration = Calibration.of(np.zeros(500), 2 * rng.standard_normal(500), np.ones(500))
    axes = new_axes()
    draw_coverage(axes, calibration)
    nominal, observed = axes.lines[-1].get_data()
    np.testing.assert_allclose(nominal, 100 * np.array(LEVELS))
    np.testing.assert_allclose(observed, 100 * calibration.observed)
    axes = new_axes()
    draw_standardised(axes, calibration)
    areas = [bar.get_width() * bar.get_height() for bar in axes.patches]
    assert sum(areas) == pytest.approx(1.0)
    assert areas[0] == pytest.approx(calibration.bins[0] / 500)
    z, density = axes.lines[-1].get_data()
    np.testing.assert_allclose(density, stats.norm.pdf(z))
    coverage, spread = (panel.text for panel in calibration_row(calibration).panels)
    assert f"90 % bands hold {100 * calibration.observed[8]:.3g} %" in coverage
    assert f"errors are {calibration.spread:.3g} times as large" in spread
