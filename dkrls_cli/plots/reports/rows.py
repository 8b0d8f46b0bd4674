"""The tables of a page: metrics, coverage and levels, and their numbers in words."""

from __future__ import annotations

import math

from dkrls_cli.grid.axes import Axis
from dkrls_cli.model.validation.calibration import LEVELS
from dkrls_cli.model.validation.validate import Validation
from dkrls_cli.plots.labels import units_text
from dkrls_cli.plots.reports.trials import (
    LevelTrials,
    kernel_text,
    level_trials,
    short,
    sigma_text,
)
from dkrls_cli.tuning.candidates import MEASURES
from dkrls_cli.tuning.trials.record import ChoiceRecord

# Stands for a number that there is none of.
_NONE = "-"

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


def metric_rows(found: Validation) -> list[dict[str, str]]:
    """Return the metrics as rows of a table; seconds are left out, which differ from run to run."""
    units = units_text(found.model.attrs)
    rows = []
    for name, value in found.metrics.items():
        if name.endswith("_seconds"):
            continue
        row = {"metric": _METRICS[name], "value": metric_text(name, value, units)}
        if found.runs[1:]:
            each = [run[name] for run in found.runs]
            row = {
                "metric": row["metric"],
                "median": row["value"],
                "lowest": metric_text(name, min(each), units),
                "highest": metric_text(name, max(each), units),
            }
        rows.append(row)
    return rows


def coverage_rows(found: Validation) -> list[dict[str, str]]:
    """Return nominal and observed coverage as rows of a table."""
    each = zip(LEVELS, found.calibration.observed.tolist(), strict=True)
    return [
        {"nominal": f"{100 * level:g} %", "observed": f"{100 * share:.3g} %"}
        for level, share in each
    ]


def level_rows(found: Validation, tried: ChoiceRecord | None) -> list[dict[str, str]]:
    """Return the levels as rows of a table; `tried` is what the fit tried, if that is known."""
    model, spread = found.model, found.spread
    units = units_text(model.attrs)
    rows = []
    for level in level_trials(model, tried or ChoiceRecord()):
        error, kernel = level.reported, level.level.kernel
        rows.append(
            {
                "dimension": level.axis.name,
                "coordinates": _range_text(level.axis),
                "kernel": kernel_text(kernel),
                "sigma": _NONE if kernel.is_spline else sigma_text(kernel, level.axis),
                "ridge": short(level.ridge),
                "left-out error": _NONE if error is None else with_units(error, units),
                "of the spread": _NONE if error is None else percent_text(error, spread),
                **({} if tried is None else {"chosen": _chosen(level)}),
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


def metric_text(name: str, value: float, units: str) -> str:
    """Return a metric with its units."""
    if math.isnan(value):
        return "not known"
    if name == "n":
        return f"{value:.0f}"
    if name == "coverage90":
        return f"{100 * value:.3g} %"
    return with_units(value, units if name in _IN_UNITS else "")


def with_units(value: float, units: str) -> str:
    """Return a number with its units, or that it is not known."""
    return f"{value:.4g} {units}".rstrip() if math.isfinite(value) else "not known"


def percent_text(value: float, whole: float) -> str:
    """Return a number as a share of another in percent; `-` if there is none."""
    return f"{100 * value / whole:.3g} %" if whole > 0 and math.isfinite(value) else _NONE


def _range_text(axis: Axis) -> str:
    """Return how many coordinates there are, and the smallest and the largest."""
    low, high = axis.take([axis.numbers.argmin(), axis.numbers.argmax()]).texts
    return f"{axis.size}: {low} to {high}" if axis.size > 1 else low
