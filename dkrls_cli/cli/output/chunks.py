"""``dkrls fit`` of a grid beyond memory: settings from a part of it, and one pass or none."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from dkrls_cli.cli.describe import shape_text
from dkrls_cli.cli.report import Report, Result, command_line
from dkrls_cli.cli.terminal.tables import bytes_text, pairs
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from pathlib import Path

    from dkrls_cli.files.source import Source
    from dkrls_cli.model.model import Model
    from dkrls_cli.model.settings import Settings
    from dkrls_cli.model.streaming.running import Scheduler
    from dkrls_cli.model.streaming.summing import Keeper, SlabRunner


def fit_beyond_memory(
    source: Source,
    settings: Settings,
    limit: float,
    scheduler: Scheduler,
    report: Report,
    resumed: tuple[Path, dict[str, Any]] | None,
) -> tuple[Model, float]:
    """Fit a model of a grid that does not fit into memory; return it, and the seconds that took.

    `resumed` is the output and what has to be the same for a run to be resumed; None: nothing of
    this run is kept for another one.
    """
    from dkrls_cli.model.chunked.reference import fit_by_reference

    start = perf_counter()
    source = with_history(source)
    is_compact = settings.compact or settings.tolerance is not None
    if is_compact:
        model = fit_one_pass(source, settings, limit, scheduler, report, resumed)
    else:
        with report.working(f"choosing settings of {source.name}"):
            model = fit_by_reference(source, settings, limit)
        smaller = " --compact or --tolerance keeps what is needed of it in the model."
        report.note(
            f"Note: the model refers to the data in {source.paths[0]}, which has to stay as it is."
            + ("" if model.coverage.has_land else smaller)
        )
    note = model.origin.get("settings_chosen_on")
    if note:
        report.note(f"Note: {note}.")
    return model, perf_counter() - start


def with_history(source: Source) -> Source:
    """Return a source whose history begins with this command."""
    from dkrls_cli.files.writing import history_line

    return replace(source, style=source.style.after(history_line(command_line())))


def fit_one_pass(
    source: Source,
    settings: Settings,
    limit: float,
    scheduler: Scheduler,
    report: Report,
    resumed: tuple[Path, dict[str, Any]] | None,
) -> Model:
    """Fit a compact model in one pass over the chunks of a grid."""
    from dkrls_cli.files.regions.checkpoint import has_checkpoint, open_checkpoint
    from dkrls_cli.memory import reuse_freed
    from dkrls_cli.model.chunked.compact import fit_compact

    reuse_freed()
    kept: Any = nullcontext()
    if resumed is not None:
        output, key = resumed
        if has_checkpoint(str(output)):
            report.note("Note: resuming what an earlier run has done.")
        kept = open_checkpoint(str(output), key, source.paths, resume=True)
    with kept as keeper, report.working(f"fitting {shape_text(source.axes)}") as done:
        run = slab_runner(scheduler, keeper) if keeper or scheduler.is_remote else None
        return fit_compact(source, settings, limit, tell=done, run=run)


def slab_runner(scheduler: Scheduler, keeper: Keeper | None) -> SlabRunner:
    """Return what runs the pass of a fit on a scheduler, and keeps its sums now and then."""
    from dkrls_cli.model.streaming.summing import SlabRunner

    return SlabRunner(scheduler, keeper)


def refuse_several(sources: Sequence[Source]) -> None:
    """Raise SettingError if several variables are to be resumed."""
    if sources[1:]:
        raise SettingError("--resume is for one variable at a time. Choose it by --var.")


def plan_result(source: Source, settings: Settings, limit: float) -> Result:
    """Return what a fit beyond memory would do and take; one time may be read, to see land."""
    from dkrls_cli.model.chunked.compact import plan_given
    from dkrls_cli.model.chunked.survey import plan_survey
    from dkrls_cli.model.lasting.choosing import plan_land
    from dkrls_cli.model.lasting.land import find_land
    from dkrls_cli.model.streaming.request import source_bytes

    is_compact = settings.compact or settings.tolerance is not None
    land = None if is_compact else find_land(source)
    choosing = (
        plan_survey(source, settings, None, limit, bars=not is_compact)
        if land is None
        else plan_land(land, settings, limit, bars=True)[1]
    )
    total = source_bytes(source)
    passes = 0 if not is_compact else 1 if settings.tolerance is None else 2
    known = plan_given(source, settings, limit) if is_compact else None
    memory = max(choosing.memory, limit if is_compact and known is None else 0)
    read = (choosing.bytes_read if known is None else 0) + passes * total
    facts: dict[str, Any] = {
        "variable": source.name,
        "model": "compact" if is_compact else "reference",
        "memory_bytes": int(min(limit, memory) if known is None else known.memory),
        "passes": read / total,
        "chunks_read_for_settings": choosing.chunks_read if known is None else 0,
        "bytes_read": read,
    }
    what = "refers to the data, which stays where it is"
    if is_compact:
        what = "compact, in one pass" if passes == 1 else "compact, in two passes"
    words = {
        "variable": source.name,
        "grid": shape_text(source.axes),
        "model": what,
        "memory": f"{'at most' if known is None else 'about'} {bytes_text(facts['memory_bytes'])}",
        "read": f"{bytes_text(read)}, {facts['passes']:.2g} passes",
    }
    return facts, (pairs(words),)
