"""Answers beyond memory: made block by block, and written region by region."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from dkrls_cli.cli.describe import shape_text
from dkrls_cli.cli.output.answers import answer_blanks
from dkrls_cli.cli.report import Report, Result, command_line
from dkrls_cli.cli.terminal.pages import RESOURCES
from dkrls_cli.cli.terminal.tables import bytes_text, pairs
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.cli.asking import AnswerOptions
    from dkrls_cli.cli.output.target import Target
    from dkrls_cli.files.regions.checkpoint import Checkpoint
    from dkrls_cli.files.regions.writer import Writer
    from dkrls_cli.files.source import Source
    from dkrls_cli.grid.axes import Axis
    from dkrls_cli.model.answering.answers import Query
    from dkrls_cli.model.streaming.request import Streamed
    from dkrls_cli.model.streaming.running import Scheduler
    from dkrls_cli.model.streaming.stages import Sink


@dataclass(frozen=True)
class SchedulerOptions:
    """Where parts of a grid beyond memory are worked on."""

    panel: ClassVar[str] = RESOURCES
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="local[:N]|tcp://...",
            help="Work part by part on a dask cluster: one of N processes here, or one that is "
            "there.",
        ),
    ] = None
    scheduler_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The file that a dask scheduler wrote with its address."),
    ] = None
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Work part by part, keep what is done beside the output, and resume from it after "
            "an interruption.",
        ),
    ] = False

    @property
    def is_given(self) -> bool:
        """Whether work is to go part by part, whatever its size."""
        return self.resume or self.is_remote

    @property
    def is_remote(self) -> bool:
        """Whether a scheduler is given."""
        return self.scheduler is not None or self.scheduler_file is not None

    def begin(self) -> None:
        """Let workers of this machine import what they need, beside all else that comes first."""
        if (self.scheduler or "").partition(":")[0] == "local":
            from dkrls_cli.model.scheduling.forking import fork_ahead

            fork_ahead()

    @contextmanager
    def open(self, threads: int | None) -> Iterator[Scheduler]:
        """Yield the scheduler that is given, or threads of this process."""
        from dkrls_cli.model.streaming.running import local_threads

        if self.scheduler is not None and self.scheduler_file is not None:
            raise SettingError("--scheduler and --scheduler-file do not go together.")
        if not self.is_remote:
            yield local_threads(threads)
            return
        from dkrls_cli.model.scheduling.cluster import open_cluster

        with open_cluster(self.scheduler, self.scheduler_file) as scheduler:
            yield scheduler


def resume_key() -> dict[str, Any]:
    """Return what has to be the same for a run to be resumed: all options but those of the run."""
    words = command_line()
    free = {"--resume", "--overwrite", "--quiet", "-q", "--verbose", "-v", "--json", "--debug"}
    valued = {"--scheduler", "--scheduler-file", "--threads"}
    kept = [
        word
        for before, word in zip(["", *words], words, strict=False)
        if word not in free | valued
        and before not in valued
        and word.partition("=")[0] not in valued
    ]
    return {"command": kept}


def refuse_rows(target: Target, why: str) -> None:
    """Raise SettingError if answers beyond memory are to be rows."""
    if target.path is None or target.form not in ("nc", "zarr"):
        raise SettingError(
            f"{why}, so answers go part by part into a file. Give -o OUT.nc or OUT.zarr, or a "
            "larger --max-memory."
        )


def write_streams(
    streams: Sequence[Streamed],
    scheduler: Scheduler,
    target: Target,
    report: Report,
    *,
    key: Mapping[str, Any] | None,
    resume: bool = True,
) -> int:
    """Write the answers of variables, block by block, and return the number of cells.

    With a `key` the run leaves a checkpoint, and goes on with that of an earlier run of the same
    key, if it is to `resume` that.
    """
    from dkrls_cli.files.regions.checkpoint import has_checkpoint, open_checkpoint
    from dkrls_cli.files.regions.creating import common_regions
    from dkrls_cli.files.regions.writer import grid_writer

    assert target.path is not None
    blanks = [blank for one in streams for blank in answer_blanks(one.query, one.answers.std)]
    regions = common_regions((one.query.axes, one.plan.blocks.region) for one in streams)
    compress = compression_of(streams, target)
    how: dict[str, Any] = {"overwrite": target.overwrite, "compress": compress, "regions": regions}
    if key is None:
        with grid_writer(target.path, blanks, command_line(), **how) as writer:
            for one in streams:
                write_stream(one, scheduler, writer, target.path, report)
            notes = writer.notes
    else:
        inputs = [path for one in streams for path in one.source.paths]
        if resume and has_checkpoint(target.path):
            report.note("Note: resuming what an earlier run has done.")
        whole_key = {
            **key,
            "blocks": [[str(cut) for cut in one.plan.blocks.cuts] for one in streams],
        }
        with (
            open_checkpoint(target.path, whole_key, inputs, resume=resume) as checkpoint,
            checkpoint.writer(blanks, command_line(), **how) as writer,
        ):
            first = 0
            for one in streams:
                resume_stream(one, scheduler, writer, checkpoint, first, report)
                first += len(one.plan.blocks)
            notes = writer.notes
    for note in notes:
        report.note(f"Note: {note}.")
    return sum(math.prod(one.query.shape) for one in streams)


def write_stream(
    streamed: Streamed, scheduler: Scheduler, writer: Writer, path: str, report: Report
) -> None:
    """Write the answers of one variable, block by block."""
    from dkrls_cli.model.streaming.stages import put_answers

    names = [blank.name for blank in answer_blanks(streamed.query, streamed.answers.std)]
    blocks, remote = list(streamed.plan.blocks), writer.remote()
    if not scheduler.is_remote:
        run_stream(streamed, scheduler, partial(put_answers, writer.write, names), path, report)
    elif remote is None:

        def write_here(place: int, answers: Sequence[Any]) -> None:
            put_answers(writer.write, names, blocks[place], answers)

        run_stream(streamed, scheduler, None, path, report, collect=write_here)
    else:

        def add_tallies(place: int, tallies: Sequence[Any]) -> None:
            for name, tally in zip(names, tallies, strict=True):
                writer.add(name, tally)

        sink = partial(put_answers, remote.write, names)
        run_stream(streamed, scheduler, sink, path, report, collect=add_tallies)


def resume_stream(
    streamed: Streamed,
    scheduler: Scheduler,
    writer: Writer,
    checkpoint: Checkpoint,
    first: int,
    report: Report,
) -> None:
    """Write those answers of one variable that are not there yet; `first` numbers its blocks."""
    from dkrls_cli.model.streaming.stages import put_answers

    names = [blank.name for blank in answer_blanks(streamed.query, streamed.answers.std)]
    remote = writer.remote()
    assert remote is not None  # regions of a checkpoint are files of their own

    def mark(place: int, tallies: Sequence[Any]) -> None:
        checkpoint.mark(first + place, dict(zip(names, tallies, strict=True)))

    run_stream(
        streamed,
        scheduler,
        partial(put_answers, remote.write, names),
        checkpoint.output,
        report,
        collect=mark,
        done={number - first for number in checkpoint.done},
    )


def run_stream(
    streamed: Streamed,
    scheduler: Scheduler,
    sink: Sink | None,
    path: str,
    report: Report,
    **how: Any,
) -> None:
    """Answer one variable block by block, and show how far that is."""
    import os

    from dkrls_cli.memory import reuse_freed
    from dkrls_cli.model.streaming.stages import answer_in_blocks

    reuse_freed()
    what = f"answering {streamed.query.model.name} in {len(streamed.plan.blocks)} parts"
    folder = os.path.dirname(os.path.abspath(path))
    with report.working(what, streamed.plan.bytes_read) as done:
        answer_in_blocks(
            streamed.boxes,
            streamed.answers,
            streamed.plan,
            scheduler,
            sink,
            progress=done,
            folder=folder,
            **how,
        )


def compression_of(streams: Sequence[Streamed], target: Target) -> int | None:
    """Return the level of compression: that asked for, or none if the input has none.

    Compressing takes several times as long as reading.
    """
    plain = not any(one.source.compressed for one in streams)
    return 0 if target.compress is None and plain else target.compress


def stream_facts(streamed: Streamed) -> dict[str, Any]:
    """Return what a stream takes, as data."""
    from dkrls_cli.model.streaming.request import source_bytes

    plan, survey = streamed.plan, streamed.choosing
    read = survey.bytes_read if survey else 0
    total = source_bytes(streamed.source)
    return {
        "parts": plan.tasks,
        "memory_bytes": max(streamed.memory, survey.memory if survey else 0),
        "passes": (plan.bytes_read + read) / total,
        "bytes_read": plan.bytes_read + read,
        "bytes_kept_meanwhile": plan.bytes_spooled,
        "bytes_written": plan.bytes_written,
    }


def stream_words(facts: Mapping[str, Any]) -> str:
    """Return what a stream takes, in words."""
    kept, parts = facts["bytes_kept_meanwhile"], "part" if facts["parts"] == 1 else "parts"
    spooled = f", {bytes_text(kept)} kept on disk meanwhile" if kept else ""
    size = facts["bytes_written"]  # None of text, none of what is only measured
    written = f", {bytes_text(size)} written" if size else ""
    return (
        f"{facts['parts']} {parts}, about {bytes_text(facts['memory_bytes'])} of memory, "
        f"{bytes_text(facts['bytes_read'])} read in {facts['passes']:.2g} passes{spooled}{written}"
    )


def stream_result(
    source: Source, query: Query, facts: Mapping[str, Any], seconds: float | None
) -> Result:
    """Return what was answered part by part, or would be without `seconds`."""
    data: dict[str, Any] = {
        "variable": source.name,
        "from": shape_text(source.axes),
        "to": shape_text(query.axes),
        "outside": query.outside_count,
        "land": query.land_count,
        **facts,
        **({} if seconds is None else {"seconds": seconds}),
    }
    words = {
        "variable": source.name,
        "from": data["from"],
        "to": data["to"],
        "work": stream_words(facts),
        **({} if seconds is None else {"took": f"{seconds:.3g} s"}),
    }
    return data, (pairs(words),)


def asked_dims(answers: AnswerOptions, axes: Sequence[Axis]) -> list[str]:
    """Return the dimensions that options ask between coordinates, whatever the coordinates are.

    They may be called by other names, as latitude is by lat.
    """
    from dkrls_cli.grid.cf import find_axis
    from dkrls_cli.grid.spec import parse_region

    if answers.smooth:
        return [axis.name for axis in axes]
    region = parse_region(answers.mean_over, axes) if answers.mean_over else {}
    given = [*answers.mean_dims, *(answers.derivative or ()), *region]
    return [find_axis(dim, axes, purpose="a mean or a derivative").name for dim in given]
