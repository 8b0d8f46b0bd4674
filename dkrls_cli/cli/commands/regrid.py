"""``dkrls regrid``: a grid on other coordinates, in one step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.asking import AnswerOptions, asked_cells, asked_grids
from dkrls_cli.cli.describe import (
    cv_words,
    error_words,
    missing_words,
    model_rows,
    robust_words,
    shape_text,
)
from dkrls_cli.cli.expansion import expand
from dkrls_cli.cli.fitting.inputs import open_inputs, report_notes
from dkrls_cli.cli.fitting.memory import (
    can_be_streamed,
    exceeds,
    has_large_land,
    refuse_too_large,
    refuse_whole,
)
from dkrls_cli.cli.fitting.plans import plan_results
from dkrls_cli.cli.fitting.running import fit_settings, fit_sources, report_fit_notes
from dkrls_cli.cli.output.answers import answer_grids, refuse_taken_names, report_cells
from dkrls_cli.cli.output.rows import ROW_FORMATS
from dkrls_cli.cli.output.streams import (
    SchedulerOptions,
    asked_dims,
    refuse_rows,
    resume_key,
    stream_facts,
    stream_result,
    stream_words,
    write_streams,
)
from dkrls_cli.cli.output.target import Target, chosen_target
from dkrls_cli.cli.report import Report, Result, edge
from dkrls_cli.cli.terminal.tables import duration_text, pairs
from dkrls_cli.cli.texts import read_by
from dkrls_cli.errors import ScatteredGapsError, SettingError

if TYPE_CHECKING:
    from dkrls_cli.cli.fitting.running import FittedVariable
    from dkrls_cli.files.source import Source
    from dkrls_cli.model.answering.answers import Query
    from dkrls_cli.model.model import Model
    from dkrls_cli.model.settings import Settings
    from dkrls_cli.model.streaming.request import Streamed
    from dkrls_cli.model.streaming.running import Scheduler


_SCATTERED = "scattered"
"""Key of a checkpoint whose run has found cells that are missing at some times only."""


@expand
def regrid(
    inputs: opt.Inputs,
    *,
    output: opt.AnswerFile = None,
    form: opt.AnswerFormat = None,
    like: opt.Like = None,
    at: opt.At = None,
    answers: AnswerOptions,
    options: opt.FitOptions,
    machine: opt.RunOptions,
    scheduling: SchedulerOptions,
    dry_run: opt.DryRun = False,
    outputs: opt.GridOutputOptions,
    report: Report,
) -> None:
    """Bring a grid onto another one: fit and predict in one step.

    Dimensions that neither --like nor --at names keep their coordinates. What lies outside the
    range of the data stays missing, and so does land.

    Examples:
      dkrls regrid sst.nc -o sst-1deg.nc --like r360x180

      dkrls regrid 'run-*.nc' --var all -o coarse.nc --like other.nc --std

      dkrls regrid sst.nc -o coarse.nc --like r90x45 --mean --std

      dkrls regrid sst.nc -o part.nc --at lat=10:20:0.25 --at lon=0:30:0.25 --outside nearest
    """
    from dkrls_cli.threads import blas_threads

    with edge(report.debug):
        scheduling.begin()
        inputs = read_by(inputs, options.engine)
        target = regrid_target(output, form, outputs, report, *inputs, like)
        if like is None and not at and not answers.mean_over:
            raise SettingError("Where should the grid go? Give --like GRID or --at DIM=SPEC.")
        answers.refuse_impossible()
        settings = fit_settings(options)
        errors = options.obs_error or ()
        sources = open_inputs(inputs, options.var, settings.level_names, report, errors)
        asked, cells = asked_cells([source.axes for source in sources], at, like, report)
        held, limit = held_answers(sources, asked, target, answers.std), machine.memory_limit
        request = RegridRequest(settings, answers, asked, cells, limit)
        refuse_whole(sources, scheduling)
        is_large = exceeds(sources, settings, limit, held)
        is_large = is_large or has_large_land(sources, settings, limit)
        if dry_run and not (is_large or scheduling.is_given):
            report.results(plan_results(sources, settings, report, answers=held))
            return
        if can_be_streamed(sources) and (is_large or scheduling.is_given):
            with scheduling.open(machine.threads) as scheduler:
                key = resume_key() if scheduling.resume else None
                request.run(sources, scheduler, target, report, dry_run=dry_run, key=key)
            return
        refuse_too_large(sources, settings, limit, answers=held)
        fits = fit_sources(sources, settings, machine.threads, limit, inputs, report, history=False)
        start = perf_counter()
        with blas_threads(machine.threads):
            queries = asked_grids([one.model for one in fits], asked, answers, "missing", cells)
            answer_grids(queries, target, answers, report)
        seconds = perf_counter() - start
        together = list(zip(fits, queries, strict=True))
        results = [regrid_result(*one, target if one is together[-1] else None) for one in together]
        if target.path is not None:
            report.results(results, output=target.path, predict_seconds=seconds)
            report.next_step("validate", *inputs, "--holdout", "0.2")


@dataclass(frozen=True, eq=False)
class RegridRequest:
    """What to bring onto another grid part by part.

    Attributes
    ----------
    settings
        Settings of the fits.
    answers
        How to answer.
    asked, cells
        Coordinates that are asked for by dimension, and their cells, of every variable.
    limit
        Bytes that may be in use.
    """

    settings: Settings
    answers: AnswerOptions
    asked: Sequence[dict[str, Any]]
    cells: Sequence[Mapping[str, Any]]
    limit: float

    def run(
        self,
        sources: Sequence[Source],
        scheduler: Scheduler,
        target: Target,
        report: Report,
        *,
        dry_run: bool,
        key: Mapping[str, Any] | None = None,
    ) -> None:
        """Regrid variables part by part, and report what was done; or what would be."""
        refuse_rows(target, f"{shape_text(sources[0].axes)} is beyond the memory allowed")
        refuse_taken_names(sources, self.answers.std)
        start, seconds = perf_counter(), None
        if dry_run:
            streams = [self.plan(place, one, scheduler) for place, one in enumerate(sources)]
        else:
            streams = self.write_any(sources, scheduler, target, report, key)
            seconds = perf_counter() - start
        results = [
            stream_result(source, one.query, stream_facts(one), seconds)
            for source, one in zip(sources, streams, strict=True)
        ]
        report.results(results, output=None if dry_run else target.path)

    def write_any(
        self,
        sources: Sequence[Source],
        scheduler: Scheduler,
        target: Target,
        report: Report,
        key: Mapping[str, Any] | None,
    ) -> list[Streamed]:
        """Write variables part by part; if their missing cells come and go, after one more pass.

        A run that is resumed goes on as the one before had found them.
        """
        from dkrls_cli.files.regions.checkpoint import checkpoint_key

        where = (sources, scheduler, target, report)
        if key is not None and _SCATTERED in checkpoint_key(target.path or ""):
            return self.write(*where, scattered=True, key={**key, _SCATTERED: True})
        try:
            return self.write(*where, key=key)
        except ScatteredGapsError:
            report.note(
                "Note: cells are missing at some times only. The data is read once more, to see "
                "which cells are missing at all times."
            )
        anew = None if key is None else {**key, _SCATTERED: True}
        return self.write(*where, scattered=True, key=anew, resume=False)

    def write(
        self,
        sources: Sequence[Source],
        scheduler: Scheduler,
        target: Target,
        report: Report,
        *,
        scattered: bool = False,
        key: Mapping[str, Any] | None = None,
        resume: bool = True,
    ) -> list[Streamed]:
        """Write variables part by part, and return what was done; `scattered`: with any gaps.

        With a `key` the run leaves a checkpoint, and goes on with an earlier one to `resume`.
        """
        streams = [
            self.prepare(place, one, scheduler, report, scattered)
            for place, one in enumerate(sources)
        ]
        report_cells([one.query for one in streams], self.answers, report)
        write_streams(streams, scheduler, target, report, key=key, resume=resume)
        return streams

    def prepare(
        self, place: int, source: Source, scheduler: Scheduler, report: Report, scattered: bool
    ) -> Streamed:
        """Choose the settings of a variable, and plan its parts."""
        from dkrls_cli.model.streaming.request import stream_regrid

        with report.working(f"choosing settings of {source.name}"):
            how, on = self.how(place, source), self.on(scheduler)
            streamed = stream_regrid(source, *how, **on, land=True, scattered=scattered)
        report_notes(source, report)
        report_fit_notes(streamed.query.model, report)
        if streamed.note:
            report.note(f"Note: {streamed.note}.")
        words = stream_words(stream_facts(streamed))
        report.note(f"Note: {source.name} goes part by part: {words}.")
        return streamed

    def plan(self, place: int, source: Source, scheduler: Scheduler) -> Streamed:
        """Plan the parts of a variable, and the choice of its settings; one time may be read."""
        from dkrls_cli.model.streaming.request import plan_regrid

        return plan_regrid(source, *self.how(place, source), **self.on(scheduler), land=True)

    def how(self, place: int, source: Source) -> tuple[Any, ...]:
        """Return the settings of a variable, what it is asked, and along which axes."""
        asked, cells = self.asked[place], self.cells[place]

        def ask_model(model: Model) -> Query:
            return asked_grids([model], [asked], self.answers, "missing", [cells])[0]

        return self.settings, ask_model, self.wanted(place, source)

    def on(self, scheduler: Scheduler) -> dict[str, Any]:
        """Return what is asked for besides, and the size of the machine."""
        std, limit = self.answers.std, self.limit
        return {"std": std, "limit": limit, "workers": scheduler.workers}

    def wanted(self, place: int, source: Source) -> list[int]:
        """Return the axes of a variable that are asked between their coordinates."""
        from dkrls_cli.model.streaming.request import asked_between

        others = asked_dims(self.answers, source.axes)
        if self.answers.mean or self.settings.cell_means:
            others += list(self.asked[place])
        return asked_between(source.axes, self.asked[place], others)


def regrid_target(
    output: str | None,
    form: str | None,
    outputs: opt.GridOutputOptions,
    report: Report,
    *inputs: str | None,
) -> Target:
    """Return where the grid goes, or raise if it cannot be written there."""
    if output is None:
        raise SettingError("Where should the grid be written? Give -o OUT.nc, or - for stdout.")
    target = chosen_target(output, form, report.json, outputs.overwrite, outputs.compress)
    target.refuse_unwritable(report, *inputs)
    return target


def held_answers(
    sources: Sequence[Source], asked: Sequence[dict[str, Any]], target: Target, std: bool
) -> int:
    """Return the bytes of all answers at the coordinates asked for; rows are not held."""
    from numpy import size

    from dkrls_cli.tuning.footprint import answer_memory

    if target.form in ROW_FORMATS:
        return 0
    cells = [
        math.prod(size(at[a.name]) if a.name in at else a.size for a in source.axes)
        for source, at in zip(sources, asked, strict=True)
    ]
    return answer_memory(sum(cells), std=std)


def regrid_result(fitted: FittedVariable, query: Query, target: Target | None) -> Result:
    """Return what was regridded; `target` is said of the last variable."""
    model = fitted.model
    facts: dict[str, Any] = {
        "variable": model.name,
        "from": shape_text(model.coverage.axes),
        "to": shape_text(query.axes),
        "outside": query.outside_count,
        "land": query.land_count,
        "cv_error": list(model.errors),
        "data_std": model.spread,
        "fit_seconds": fitted.seconds,
        "levels": model_rows(model),
    }
    words = {
        "variable": model.name,
        "from": facts["from"],
        "to": facts["to"],
        **missing_words(model),
        **robust_words(model),
        **error_words(model),
        **cv_words(model),
        "fitted in": duration_text(fitted.seconds),
        **({"output": str(target.path)} if target else {}),
    }
    return facts, (pairs(words),)
