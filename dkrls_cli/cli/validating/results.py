"""What is reported of validations: metrics, levels, and metrics above their limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dkrls_cli.cli.describe import level_table, model_rows, shape_text
from dkrls_cli.cli.report import Report
from dkrls_cli.cli.terminal.tables import pairs, table
from dkrls_cli.errors import SettingError
from dkrls_cli.spelling import suggest

if TYPE_CHECKING:
    from dkrls_cli.cli.terminal.tables import Layout
    from dkrls_cli.model.validation.validate import Validation
    from dkrls_cli.tuning.trials.record import ChoiceRecord


@dataclass(frozen=True)
class Kept:
    """What is kept for pictures and pages: evidence of all runs, and trials of the last fit."""

    evidence: bool
    trials: bool

    def refuse_in_parts(self) -> None:
        """Raise SettingError if pictures are asked for where a grid is compared part by part."""
        if self.evidence:
            raise SettingError(
                "The grid is compared part by part, and pictures need all of it at once: --plot "
                "and --report do not go with that. Leave them out, or validate a part that fits "
                "into --max-memory."
            )


@dataclass(frozen=True, eq=False)
class Measured:
    """Validations, each with what was tried and its facts, and the settings of them all."""

    found: Sequence[Validation]
    tried: Sequence[ChoiceRecord | None]
    facts: Sequence[dict[str, Any]]
    about: Mapping[str, Any]


def read_limits(texts: list[str] | None) -> dict[str, float]:
    """Return the largest values allowed, by metric."""
    from dkrls_cli.model.validation.metrics import ERRORS

    limits = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or name not in ERRORS:
            raise SettingError(
                f"--fail-above {text} is not METRIC=VALUE with one of {', '.join(ERRORS)}."
                f"{suggest(name, ERRORS)}"
            )
        try:
            limits[name] = float(value)
        except ValueError:
            raise SettingError(f"--fail-above {text}: '{value}' is not a number.") from None
    return limits


def missed_words(
    found: Sequence[Validation], above: Sequence[list[str]], limits: Mapping[str, float]
) -> list[list[str]]:
    """Return the metrics above their limits in words, for every variable."""
    words = []
    for one, names in zip(found, above, strict=True):
        of = f" of {one.model.name}" if found[1:] else ""
        each = [(name, one.metrics[name], limits[name]) for name in names]
        words.append([f"{name}{of} is {v:.6g}, allowed is {limit:.6g}." for name, v, limit in each])
    return words


def model_facts(found: Validation) -> dict[str, Any]:
    """Return what is reported of a model."""
    return {
        "variable": found.model.name,
        "grid": shape_text(found.axes),
        "predict_seconds": found.seconds,
        "metrics": found.metrics,
        "calibration": calibration_facts(found),
        "levels": model_rows(found.model),
    }


def holdout_facts(found: Validation, seed: int) -> dict[str, Any]:
    """Return what is reported of hold-outs."""
    return {
        "variable": found.model.name,
        "grid": shape_text(found.axes),
        "held_out": found.held_out,
        "repeats": len(found.runs),
        "seed": seed,
        "metrics": found.metrics,
        "runs": found.runs,
        "calibration": calibration_facts(found),
        "levels": model_rows(found.model),
    }


def calibration_facts(found: Validation) -> dict[str, Any]:
    """Return how often error bars hold the truth, and the root mean square of errors over them."""
    from dkrls_cli.model.validation.calibration import LEVELS

    own = found.calibration
    return {
        "n": own.count,
        "nominal": LEVELS,
        "observed": own.observed.tolist(),
        "standardised_rms": own.spread,
    }


def origin_text(found: Sequence[Validation]) -> str:
    """Return what models know of their fit: the program, the inputs and the options."""
    origin = found[0].model.origin
    inputs = ", ".join(map(str, origin.get("inputs", ())))
    words = [str(origin.get("program", "")), f"from {inputs}" if inputs else ""]
    options = ", ".join(f"{key} {value}" for key, value in origin.get("options", {}).items())
    return ", ".join(word for word in [*words, options] if word) or "not known"


def report_metrics(
    found: Sequence[Validation],
    facts: Sequence[dict[str, Any]],
    above: Sequence[list[str]],
    missed: Sequence[list[str]],
    written: Mapping[str, Path | None],
    report: Report,
) -> None:
    """Report metrics and levels of every variable, and the metrics above their limits.

    `written` are the files that were asked for, by name.
    """
    results = [
        ({**fact, "missed": names}, metric_parts(one, fact))
        for one, fact, names in zip(found, facts, above, strict=True)
    ]
    report.results(results, **{name: str(path) for name, path in written.items() if path})
    for words in missed:
        for text in words:
            report.note(f"Missed: {text}")


def metric_parts(found: Validation, facts: dict[str, Any]) -> Sequence[str | Layout]:
    """Return metrics and levels as a heading and tables."""
    metrics = found.metrics
    body: Layout = pairs({**metrics, "predict_seconds": found.seconds})
    if found.runs:
        rows = [
            {
                "metric": key,
                "median": metrics[key],
                "lowest": min(run[key] for run in found.runs),
                "highest": max(run[key] for run in found.runs),
            }
            for key in metrics
        ]
        body = table(rows)
    heading = pairs({"variable": facts["variable"], "grid": facts["grid"]})
    return heading, body, level_table(facts["levels"])
