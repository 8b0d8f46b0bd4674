"""Models of a file measured on a grid, at once or part by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dkrls_cli.cli.describe import shape_text
from dkrls_cli.cli.fitting.inputs import (
    chosen_models,
    open_inputs,
    read_values,
    report_marks,
    report_notes,
)
from dkrls_cli.cli.options import RunOptions
from dkrls_cli.cli.output.plans import plan_validation
from dkrls_cli.cli.report import Report, Result
from dkrls_cli.cli.validating.results import Kept, Measured, model_facts, origin_text
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.files.source import Source
    from dkrls_cli.model.model import Model
    from dkrls_cli.model.validation.validate import Validation


@dataclass(frozen=True)
class Comparison:
    """A model file, the grid it is measured on, and how its models are asked."""

    path: Path
    inputs: list[str]
    var: Sequence[str] | None
    errors: Sequence[str]
    smooth: bool
    machine: RunOptions

    def source(self, var: str | None, report: Report) -> Source:
        """Open a variable of the grid; None is the only one."""
        (source,) = open_inputs(self.inputs, [var] if var else None, None, report, self.errors)
        return source

    def plan(self, report: Report) -> list[Result]:
        """Return what measuring would take."""
        from dkrls_cli.model.streaming.running import local_threads
        from dkrls_cli.model.validation.planning import plan_model

        limit, workers = self.machine.memory_limit, local_threads(self.machine.threads).workers
        results = []
        for model, name in measured_models(self):
            source = self.source(name, report)
            refuse_whole_grid(source, limit)
            plan = plan_model(model, source, smooth=self.smooth, limit=limit, workers=workers)
            results.append(plan_validation(source, plan))
        return results

    def measure(self, kept: Kept, report: Report) -> Measured:
        """Measure the models on the grid."""
        with report.working(f"reading {self.path}"):
            models = measured_models(self)
        found = [measure_model(one, name, self, kept, report) for one, name in models]
        for one in found:
            report_outside(one, report)
        about = {"model": self.path.name, "fit": origin_text(found)}
        return Measured(found, [None] * len(found), [model_facts(one) for one in found], about)


def measured_models(asked: Comparison) -> list[tuple[Model, str | None]]:
    """Return the models to measure, each with the variable of the inputs to measure it on.

    The model of one variable may be measured on a variable of another name.
    """
    from dkrls_cli.model.saving import load_models

    if asked.var and len(asked.var) == 1 and asked.var[0] != "all":
        models = list(load_models(asked.path).values())
        if len(models) == 1:
            return [(models[0], asked.var[0])]
    models_of = chosen_models(asked.path, asked.var)
    return [(model, variable_of(model, asked.inputs)) for model in models_of]


def variable_of(model: Model, inputs: list[str]) -> str | None:
    """Return the name of the model's variable if the inputs have it, else None."""
    from dkrls_cli.files.reading import has_variable

    return model.name if has_variable(inputs, model.name) else None


def measure_model(
    model: Model, var: str | None, asked: Comparison, kept: Kept, report: Report
) -> Validation:
    """Measure a model on the cells of a grid.

    It goes part by part if the model refers to its data, or the grid is beyond memory.
    """
    from dkrls_cli.model.validation.validate import validate_model

    source = asked.source(var, report)
    if model.reference is not None or model_exceeds(source, asked.machine.memory_limit):
        kept.refuse_in_parts()
        return model_in_parts(model, source, asked, report)
    grid = read_values(source, report)
    report_marks(grid, report)
    with report.working("predicting"):
        return validate_model(
            model, grid, source.scalars, smooth=asked.smooth, evidence=kept.evidence
        )


def model_exceeds(source: Source, limit: float) -> bool:
    """Return whether a grid is too large to measure a model on all of it at once."""
    from dkrls_cli.model.streaming.validating import validation_bytes

    return validation_bytes(source) > limit


def refuse_whole_grid(source: Source, limit: float) -> None:
    """Raise SettingError if a grid beyond memory can only be read as a whole."""
    if (source.reader is None or source.errors is not None) and model_exceeds(source, limit):
        raise SettingError(
            f"{shape_text(source.axes)} is beyond --max-memory, and can only be read as a whole. "
            "Write it to NetCDF or Zarr, leave --obs-error out, or give a larger --max-memory."
        )


def model_in_parts(model: Model, source: Source, asked: Comparison, report: Report) -> Validation:
    """Measure a model on a grid part by part."""
    from dkrls_cli.model.streaming.running import local_threads
    from dkrls_cli.model.streaming.validating import validate_model_in_blocks

    limit = asked.machine.memory_limit
    refuse_whole_grid(source, limit)
    with report.working("predicting part by part") as progress:
        found = validate_model_in_blocks(
            model,
            source,
            smooth=asked.smooth,
            limit=limit,
            scheduler=local_threads(asked.machine.threads),
            progress=progress,
        )
    report_notes(source, report)
    return found


def report_outside(found: Validation, report: Report) -> None:
    """Report how many coordinates of the truth lie outside the training range of the model."""
    beyond = [
        f"{int(far.sum())} of {axis.size} coordinates of '{axis.name}'"
        for axis, far in zip(found.axes, found.model.outside(found.axes), strict=True)
        if far.any()
    ]
    if beyond:
        report.note(
            f"Note: {' and '.join(beyond)} are outside the training range: errors there are those "
            "of extrapolation."
        )
