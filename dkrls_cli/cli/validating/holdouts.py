"""Parts of a grid held out at random: the method measured on them, at once or part by part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dkrls_cli.cli.fitting.inputs import open_inputs, read_values, report_marks, report_notes
from dkrls_cli.cli.fitting.memory import (
    can_be_streamed,
    estimates,
    refuse_large_gaps,
    refuse_too_large,
)
from dkrls_cli.cli.fitting.plans import plan_results
from dkrls_cli.cli.fitting.running import report_bounds
from dkrls_cli.cli.options import FitOptions, RunOptions
from dkrls_cli.cli.output.plans import plan_validation
from dkrls_cli.cli.report import Report, Result
from dkrls_cli.cli.texts import read_setting
from dkrls_cli.cli.validating.results import Kept, Measured, holdout_facts

if TYPE_CHECKING:
    from dkrls_cli.files.source import Source
    from dkrls_cli.model.settings import Settings
    from dkrls_cli.model.validation.validate import Validation
    from dkrls_cli.tuning.trials.record import ChoiceRecord


@dataclass(frozen=True)
class Holdouts:
    """The grids of some inputs, how parts of them are held out, and how models are asked for them.

    `settings` are those of the options, read.
    """

    inputs: list[str]
    options: FitOptions
    settings: Settings
    machine: RunOptions
    fractions: list[str] | None
    repeats: int
    seed: int
    keep_edges: bool
    smooth: bool

    @property
    def limit(self) -> float:
        """Bytes of memory that may be used."""
        return self.machine.memory_limit

    @property
    def keywords(self) -> dict[str, Any]:
        """Keywords of the functions that measure hold-outs."""
        return {
            "holdout": read_setting(self.fractions, "--holdout"),
            "repeats": self.repeats,
            "seed": self.seed,
            "keep_edges": self.keep_edges,
            "smooth": self.smooth,
        }

    def sources(self, report: Report) -> list[Source]:
        """Open the variables that are measured."""
        errors = self.options.obs_error or ()
        return open_inputs(self.inputs, self.options.var, self.settings.level_names, report, errors)

    def plan(self, report: Report) -> list[Result]:
        """Return what measuring would take."""
        from dkrls_cli.model.streaming.running import local_threads
        from dkrls_cli.model.validation.planning import plan_holdouts

        sources = self.sources(report)
        needs = [holdout_needs(source, self) for source in sources]
        if can_be_streamed(sources) and holdouts_exceed(needs, self):
            workers = local_threads(self.machine.threads).workers
            how: dict[str, Any] = {**self.keywords, "limit": self.limit, "workers": workers}
            return [
                plan_validation(one, plan_holdouts(one, self.settings, **how)) for one in sources
            ]
        results: list[Result] = []
        for part, besides in needs:
            refuse_too_large([part], self.settings, self.limit, besides=besides)
            results += plan_results([part], self.settings, report, besides=besides)
        return results

    def measure(self, kept: Kept, report: Report) -> Measured:
        """Measure the method on what is held out."""
        from dkrls_cli.tuning.trials.record import ChoiceRecord

        sources = self.sources(report)
        tried = [ChoiceRecord() if kept.trials else None for _ in sources]
        needs = [holdout_needs(source, self) for source in sources]
        if can_be_streamed(sources) and holdouts_exceed(needs, self):
            kept.refuse_in_parts()
            found = [holdouts_in_parts(one, self, report) for one in sources]
        else:
            for part, besides in needs:
                refuse_too_large([part], self.settings, self.limit, besides=besides)
            found = [
                measure_holdouts(source, self, kept, report, record)
                for source, record in zip(sources, tried, strict=True)
            ]
        for one in found:
            report_bounds(one.model, report)
        facts = [holdout_facts(one, self.seed) for one in found]
        about = {"holdout": found[0].held_out, "repeats": self.repeats, "seed": self.seed}
        return Measured(found, tried, facts, {**about, "options": self.settings.given})


def holdouts_exceed(needs: Sequence[tuple[Source, int]], held: Holdouts) -> bool:
    """Return whether hold-outs would need more memory than allowed."""
    return any(
        found.memory > held.limit
        for part, besides in needs
        for found in estimates([part], held.settings, besides=besides)
    )


def holdout_needs(source: Source, held: Holdouts) -> tuple[Source, int]:
    """Return what is trained on in a hold-out, and the bytes that are held besides its fit."""
    from dkrls_cli.tuning.footprint import holdout_memory

    part = trained_part(source, held)
    return part, holdout_memory(source.shape, part.shape, source.dtype, held.settings.dtype)


def trained_part(source: Source, held: Holdouts) -> Source:
    """Return a source of as many coordinates as train when a fraction of them is held out."""
    from dkrls_cli.model.validation.validate import read_fractions

    fractions = read_fractions(held.keywords["holdout"], source.axes)
    sizes = [round(axis.size * (1 - fractions.get(axis.name, 0.0))) for axis in source.axes]
    axes = (axis.take(range(max(1, n))) for axis, n in zip(source.axes, sizes, strict=True))
    return replace(source, axes=tuple(axes), table=None)


def measure_holdouts(
    source: Source, held: Holdouts, kept: Kept, report: Report, record: ChoiceRecord | None
) -> Validation:
    """Measure the method on parts of a grid; `record` is told what was tried in the last fit."""
    from dkrls_cli.model.validation.validate import validate_holdout

    grid = read_values(source, report)
    report_marks(grid, report)
    refuse_large_gaps(trained_part(source, held), grid, held.settings, held.limit, loaded=False)
    with report.working("holding out") as progress:

        def report_run(number: int, metrics: Mapping[str, float]) -> None:
            progress((number + 1) / held.repeats)
            report_holdout(number, metrics, report)

        return validate_holdout(
            grid,
            held.settings,
            evidence=kept.evidence,
            on_run=report_run,
            watch=record,
            **held.keywords,
        )


def holdouts_in_parts(source: Source, held: Holdouts, report: Report) -> Validation:
    """Measure the method on parts of a grid beyond memory that are held out at random."""
    from dkrls_cli.model.streaming.running import local_threads
    from dkrls_cli.model.streaming.validating import validate_holdout_in_blocks

    with report.working("holding out part by part") as progress:
        found = validate_holdout_in_blocks(
            source,
            held.settings,
            limit=held.limit,
            scheduler=local_threads(held.machine.threads),
            on_run=lambda number, metrics: report_holdout(number, metrics, report),
            progress=progress,
            **held.keywords,
        )
    report_notes(source, report)
    note = found.model.origin.get("settings_chosen_on")
    if note:
        report.note(f"Note: {note}.")
    return found


def report_holdout(number: int, metrics: Mapping[str, float], report: Report) -> None:
    """Report the error of one hold-out to those who want details."""
    report.detail(f"hold-out {number + 1}: rmse {metrics['rmse']:.4g}")
