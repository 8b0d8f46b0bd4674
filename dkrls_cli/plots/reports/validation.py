"""Pictures of a validation: a slice of truth and prediction, errors by coordinate, calibration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.validation.calibration import EDGES, LEVELS, Calibration
from dkrls_cli.model.validation.evidence import CoordinateErrors, Evidence
from dkrls_cli.model.validation.validate import Validation
from dkrls_cli.plots.figures import draw_picture, picture_height, set_ticks_right
from dkrls_cli.plots.labels import (
    axis_text,
    coordinate_text,
    title_text,
    units_text,
    with_units,
)
from dkrls_cli.plots.pictures import FieldPanel, LinePanel, Picture, interval
from dkrls_cli.plots.reports.panels import Panel, PanelRow, Row
from dkrls_cli.plots.scales import Scale, scale_of
from dkrls_cli.plots.slices import orient
from dkrls_cli.plots.style import ACCENT, INK, SECOND, plain_text

# Width in mm that the ticks of a chart of errors have room in.
_TICKS = 42.0

# Ticks of errors over their error bars: the outermost bins hold what lies beyond.
_TICKS_OF_Z = {-5: "below \N{MINUS SIGN}5", -2: "\N{MINUS SIGN}2", 0: "0", 2: "2", 5: "above 5"}

# Coordinates up to which each has a mark.
_FEW = 60


@dataclass(frozen=True, eq=False)
class PictureRow:
    """A picture of data or answers as a row of a figure."""

    picture: Picture

    def height(self, width: float) -> float:
        """Return the height in mm at a width in mm."""
        return picture_height(self.picture, width)

    def draw(self, figure: Any, width: float) -> None:
        """Draw the picture on a figure or a part of one."""
        draw_picture(figure, self.picture, width, self.height(width))


def validation_rows(found: Validation) -> list[Row]:
    """Return all pictures of a validation that has kept its evidence.

    Parameters
    ----------
    found
        The validation, with evidence.

    Returns
    -------
    list of Row
        Truth, prediction and error on one slice; errors by coordinate of each dimension;
        calibration of the error bars.
    """
    assert found.evidence is not None
    picture = slice_picture(found, found.evidence)
    rows: list[Row] = [] if picture is None else [PictureRow(picture)]
    errors = error_row(found, found.evidence)
    rows += [errors] if errors.panels else []
    return [*rows, calibration_row(found.calibration)]


# A slice ------------------------------------------------------------------------------------------


def slice_picture(found: Validation, evidence: Evidence) -> Picture | None:
    """Return truth, prediction and error on the slice that is shown; None of a single cell.

    On one dimension the prediction is a line with its 90 % interval, and the truth is points.
    """
    shown, model = evidence.shown, found.model
    if max(axis.size for axis in shown.axes) == 1:
        return None
    truth, answers, deviations = (
        orient(Grid(values, shown.axes, model.name, model.attrs)).grid
        for values in (shown.truth, shown.answers, shown.deviations)
    )
    title = title_text(model.name, model.attrs, shown.fixed)
    units = units_text(model.attrs)
    if len(answers.axes) == 1:
        return Picture(title, units, line=_line(truth, answers, deviations, found))
    up, right = answers.axes
    scale = scale_of([truth.values, answers.values], model.name, model.attrs)
    error = answers.values - truth.values
    fields = (
        FieldPanel((up, right), truth.values, scale, "truth"),
        FieldPanel((up, right), answers.values, scale, "prediction"),
        FieldPanel((up, right), error, _around_zero(error), "prediction minus truth"),
    )
    return Picture(title, units, fields)


def _line(truth: Grid, answers: Grid, deviations: Grid, found: Validation) -> LinePanel:
    (axis,), known = answers.axes, np.isfinite(truth.values)
    low, high = interval(answers.values, deviations.values, found.model.bounds)
    points = axis.numbers[known], truth.values[known]
    return LinePanel(axis, answers.values, low, high, points, label="prediction")


def _around_zero(errors: Array) -> Scale:
    """Return a scale with zero in its middle."""
    known = np.abs(errors[np.isfinite(errors)])
    size = float(known.max(initial=0.0)) or 1.0
    return Scale(-size, size, "diverging")


def single_fields(picture: Picture) -> list[Picture]:
    """Return the fields of a picture as pictures of their own; a line stays as it is.

    Their headings are left out: a page has captions.
    """
    if picture.line is not None:
        return [replace(picture, title="")]
    return [Picture("", picture.units, (replace(field, heading=""),)) for field in picture.fields]


# Errors by coordinate -----------------------------------------------------------------------------


def error_row(found: Validation, evidence: Evidence) -> PanelRow:
    """Return the errors by coordinate, a panel for each dimension."""
    units = units_text(found.model.attrs)
    own = [one for one in evidence.coordinates if one.counts.any()]
    panels = [Panel(_errors_drawer(one, units), _errors_text(one)) for one in own]
    return PanelRow(panels, "error by coordinate")


def _errors_drawer(errors: CoordinateErrors, units: str) -> Any:
    return lambda axes: draw_errors(axes, errors, units)


def _errors_text(errors: CoordinateErrors) -> str:
    """Return where errors are largest in words."""
    worst = int(np.nanargmax(errors.rmse))
    at = coordinate_text(errors.axis.take([worst]))
    return (
        f"Error by {errors.axis.name}: root mean square {np.nanmin(errors.rmse):.3g} to "
        f"{np.nanmax(errors.rmse):.3g}, largest at {at}."
    )


def draw_errors(axes: Any, errors: CoordinateErrors, units: str) -> None:
    """Draw root mean square error and bias at the coordinates of one dimension."""
    order = np.argsort(errors.axis.numbers, kind="stable")
    order = order[errors.counts[order] > 0]
    axis = errors.axis.take(order)
    joined = "none" if axis.labels is not None else "-"
    mark = "o" if axis.size <= _FEW or axis.labels is not None else "none"
    style: dict[str, Any] = {"linestyle": joined, "markersize": 2.6, "linewidth": 1.0}
    axes.axhline(0.0, color="0.7", linewidth=0.6, zorder=1)
    axes.plot(axis.numbers, errors.rmse[order], color=ACCENT, marker=mark, label="rmse", **style)
    hollow = {"marker": "s" if mark == "o" else mark, "markerfacecolor": "white"}
    style |= {"linestyle": "none" if joined == "none" else "--", **hollow}
    axes.plot(axis.numbers, errors.bias[order], color=SECOND, label="bias", **style)
    set_ticks_right(axes, axis, _TICKS)
    axes.set_title(plain_text(axis.name), loc="left", fontsize=7.5)
    axes.set_xlabel(plain_text(axis_text(axis)))
    axes.set_ylabel(plain_text(with_units("error", units)))
    axes.spines[["top", "right"]].set_visible(False)


# Calibration --------------------------------------------------------------------------------------


def calibration_row(calibration: Calibration) -> PanelRow:
    """Return how good the error bars are: coverage, and a histogram of errors over them."""
    return PanelRow(
        [
            Panel(lambda axes: draw_coverage(axes, calibration), coverage_text(calibration)),
            Panel(lambda axes: draw_standardised(axes, calibration), spread_text(calibration)),
        ],
        "calibration of the error bars",
    )


def coverage_text(calibration: Calibration) -> str:
    """Return some of the coverage in words."""
    if not calibration.count:
        return "No cell has a truth that is known and an error bar."
    pairs = zip(LEVELS, calibration.observed.tolist(), strict=True)
    told = [f"{100 * level:g} % bands hold {100 * share:.3g} %" for level, share in pairs]
    return f"Of {calibration.count} cells with error bars, {told[4]}, {told[8]}, {told[10]}."


def spread_text(calibration: Calibration) -> str:
    """Return whether error bars are too short or too long in words; nothing if there are none."""
    if not calibration.count:
        return ""
    return (
        f"In root mean square, errors are {calibration.spread:.3g} times as large as their error "
        "bars."
    )


def draw_coverage(axes: Any, calibration: Calibration) -> None:
    """Draw the share of cells that error bars hold against the share that they should."""
    nominal = 100 * np.array(LEVELS)
    axes.plot([0, 100], [0, 100], color="0.6", linewidth=0.8, zorder=1)
    axes.plot(nominal, 100 * calibration.observed, "o-", color=ACCENT, markersize=3.2)
    axes.set(xlim=(0, 100), ylim=(0, 100), xlabel="nominal coverage [%]")
    axes.set_ylabel("observed coverage [%]")
    words: dict[str, Any] = {"color": "0.4", "fontsize": 7.0, "transform": axes.transAxes}
    axes.text(0.04, 0.93, "bars too long", va="top", **words)
    axes.text(0.96, 0.07, "bars too short", ha="right", **words)
    axes.set_title(f"{calibration.count} cells", loc="left", fontsize=7.5)


def draw_standardised(axes: Any, calibration: Calibration) -> None:
    """Draw a histogram of errors over their error bars, beside the normal distribution."""
    middles, step = (EDGES[1:] + EDGES[:-1]) / 2, EDGES[1] - EDGES[0]
    density = calibration.bins / max(calibration.count, 1) / step
    axes.bar(middles, density, step, color=ACCENT, alpha=0.45, linewidth=0, label="errors")
    z = np.linspace(EDGES[0], EDGES[-1], 201)
    normal = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    axes.plot(z, normal, color=INK, linewidth=1.0, label="as error bars promise")
    axes.set(xlim=(EDGES[0], EDGES[-1]), xlabel="error / error bar", ylabel="density")
    if calibration.count:
        axes.set_title(f"root mean square {calibration.spread:.3g}", loc="left", fontsize=7.5)
    axes.set_xticks(list(_TICKS_OF_Z), labels=list(_TICKS_OF_Z.values()))
    axes.spines[["top", "right"]].set_visible(False)
