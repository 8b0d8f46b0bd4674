"""``dkrls stream``: slices on stdin, forecasts on stdout, and a model that learns."""

from __future__ import annotations

import math
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.report import Report, edge
from dkrls_cli.errors import OutputError, SettingError

if TYPE_CHECKING:
    from dkrls_cli.files.feed import Feed, NewSlice
    from dkrls_cli.files.rows import RowWriter
    from dkrls_cli.model.stream import Expected, Plan, Stream

_REST = 10.0
"""Between saves at least so many times as long as one takes."""

_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}


def stream(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="OUT.npz", help="Instead of changing MODEL."),
    ] = None,
    std: Annotated[bool, typer.Option("--std", help="Add a column with standard errors.")] = False,
    replace: opt.Replace = False,
    window: opt.Window = None,
    max_rank: opt.MaxRank = None,
    retune: Annotated[
        bool,
        typer.Option("--retune", help="Forecast by what did best of late; choose anew to save."),
    ] = False,
    save_every: Annotated[
        str, typer.Option(metavar="N|Ts", help="Save every N slices, or T seconds (60s, 5min).")
    ] = "60s",
    form: Annotated[
        str | None, typer.Option("--format", metavar="csv|jsonl", help="Default: as the input.")
    ] = None,
    wait: opt.Wait = 60.0,
    overwrite: opt.Overwrite = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
    debug: opt.Debug = False,
) -> None:
    """Forecast every slice that comes on stdin, then learn it.

    Rows are long CSV with a header, or JSON lines; the rows of a slice follow one another.

    The model is saved now and then, at the end, and when the command is told to stop.

    Examples:
      tail -f log.csv | dkrls stream m.npz --window 8760

      dkrls stream m.npz --std --save-every 100 < day.csv > errors.csv

      dkrls stream m.npz --retune --json -o new.npz < day.jsonl
    """
    with edge(debug):
        from dkrls_cli.files.output import check_writable, lock_file
        from dkrls_cli.model.stream import Plan

        report = Report(json, quiet, verbose)
        target = output or model
        if form not in (None, "csv", "jsonl"):
            raise SettingError(f"Unknown format '{form}'. Choose csv or jsonl.")
        saving = parsed_saving(save_every)
        if output is not None and output != model:
            check_writable(output, overwrite=overwrite)
        with lock_file(target, wait, report.note):
            plan = Plan(window, max_rank, replace, retune)
            lived(model, Keeper(target, *saving), plan, form, std, report)


def parsed_saving(text: str) -> tuple[int | None, float | None]:
    """How often to save: after so many slices, or so many seconds."""
    match = re.fullmatch(r"([0-9]{1,6})\s*(s|min|h)?", text.strip())
    if not match or int(match[1]) == 0:
        raise SettingError(f"Invalid --save-every {text}. Give slices (100) or a time (60s, 5min).")
    number = int(match[1])
    return (None, number * _UNITS[match[2]]) if match[2] else (number, None)


class StoppedError(Exception):
    """The command was told to stop while it waited for input."""


@dataclass
class Keeper:
    """Saves a model in time, and stops in time.

    A signal that comes while a slice is learnt is heeded after it; only while waiting for input
    does it interrupt.
    """

    path: Path
    every_slices: int | None
    every_seconds: float | None
    saved_slices: int = 0
    saved_at: float = field(default_factory=monotonic)
    save_took: float = 0.0
    skipped: int = 0
    stopped: bool = False
    waiting: bool = False
    stream: Stream | None = None

    def save(self) -> None:
        """Write the model, if there is something new in it."""
        begun = monotonic()
        if self.stream is not None and self.stream.slices > self.saved_slices:
            self.stream.final_model().save(self.path, overwrite=True)
            self.saved_slices = self.stream.slices
        self.saved_at = monotonic()
        self.save_took = self.saved_at - begun

    def save_in_time(self) -> None:
        """Write the model if it is due."""
        assert self.stream is not None
        new = self.stream.slices - self.saved_slices
        by_count = self.every_slices is not None and new >= self.every_slices
        if by_count or (self._is_late() and new):
            self.save()

    def _is_late(self) -> bool:
        """Whether the time has come; saves that take long come less often."""
        if self.every_seconds is None:
            return False
        return monotonic() - self.saved_at >= max(self.every_seconds, _REST * self.save_took)

    def incoming(self, slices: Iterator[NewSlice]) -> Iterator[NewSlice]:
        """Slices until there are no more, or until told to stop."""
        while not self.stopped:
            self.waiting = True
            try:
                new = None if self.stopped else next(slices, None)  # it may be told just before
            finally:
                self.waiting = False
            if new is None:
                return
            yield new

    @contextmanager
    def on_watch(self) -> Iterator[None]:
        """Heed the signals that end a command, and the clock where there is one."""
        endings = (signal.SIGTERM, signal.SIGINT)
        before = {number: signal.signal(number, self._stop) for number in endings}
        pause = self.every_seconds if hasattr(signal, "setitimer") else None
        if pause is not None:
            before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._tick)
            signal.setitimer(signal.ITIMER_REAL, pause, pause)
        try:
            yield
        finally:
            if pause is not None:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, frame: Any) -> None:
        self.stopped = True
        if self.waiting:
            self.waiting = False
            raise StoppedError

    def _tick(self, number: int, frame: Any) -> None:
        if self.waiting:
            self.save_in_time()


def lived(
    path: Path, keeper: Keeper, plan: Plan, form: str | None, std: bool, report: Report
) -> None:
    """Forecast and learn until the input ends, and keep the model whatever happens."""
    from dkrls_cli.files.csv import open_text, source_name
    from dkrls_cli.files.feed import Feed
    from dkrls_cli.model.model import load_model
    from dkrls_cli.model.stream import Stream

    model = load_model(path)
    keeper.stream = Stream(model, plan)
    start = perf_counter()
    with keeper.on_watch():
        try:
            with suppress(StoppedError), open_text("-") as text:
                feed = Feed(text, list(model.axes), model.grows, model.name, source_name("-"))
                learn(keeper, feed, None if report.json else Teller(feed, form, std), report)
        finally:
            keeper.save()
    tell(keeper, perf_counter() - start, report)


def learn(keeper: Keeper, feed: Feed, teller: Teller | None, report: Report) -> None:
    """Forecast, tell and learn every slice that is new."""
    stream, warned = keeper.stream, False
    assert stream is not None
    for new in keeper.incoming(feed.slices()):
        if not stream.wants(new.axis):
            keeper.skipped += 1
            continue
        expected = stream.step(new.axis, new.values)
        if teller is not None:
            teller.tell(stream, new, expected)
        keeper.save_in_time()
        if stream.drift and not warned and not stream.plan.retune:
            report.note(f"Warning: {drift_text(stream)}.")
            warned = True


def drift_text(stream: Stream) -> str:
    """What to say when slices go on being far from what was promised."""
    return (
        f"forecasts of late miss {stream.drift:.2g} times as much as the model promised; "
        "--retune follows what changes"
    )


@dataclass
class Teller:
    """Writes forecasts, a row per cell, as soon as a slice has come."""

    feed: Feed
    form: str | None
    std: bool
    writer: RowWriter | None = None

    def tell(self, stream: Stream, new: NewSlice, expected: Expected) -> None:
        """The rows of a slice: what came, what was expected, and how far that was off."""
        from dkrls_cli.files.rows import RowWriter

        if self.writer is None:
            self.writer = RowWriter(sys.stdout, self.form or self.feed.form)
        model = stream.model
        axes = [new.axis if i == model.grows else axis for i, axis in enumerate(model.axes)]
        answers = {
            model.name: new.values,
            "predicted": expected.values,
            "error": expected.values - new.values,
            **({"std": expected.std} if self.std else {}),
        }
        try:
            self.writer.write_cells(model.dims, [axis.texts for axis in axes], answers)
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(f"Standard output cannot be written ({error.strerror}).") from None


def tell(keeper: Keeper, seconds: float, report: Report) -> None:
    """Say how it went."""
    stream = keeper.stream
    assert stream is not None
    facts: dict[str, Any] = {
        "model": str(keeper.path),
        "slices": stream.slices,
        "skipped": keeper.skipped,
        "kept": stream.model.axes[stream.model.grows].size,
        "rmse": stream.rmse,
        "last_value_rmse": stream.last_value_rmse,
        "thinned": stream.model.origin.get("thinned"),
        "stopped": keeper.stopped,
        "seconds": seconds,
    }
    if report.json:
        report.result(facts, "")
        return
    words = f"{stream.slices} slices learnt in {seconds:.3g} s"
    if math.isfinite(stream.rmse):
        words += f", forecast to {stream.rmse:.4g} (the last value: {stream.last_value_rmse:.4g})"
    if keeper.skipped:
        words += f"; {keeper.skipped} known already, or too old for the window, and skipped"
    where = f"saved to {keeper.path}" if stream.slices else "the model is as it was"
    report.note(f"{'Stopped: ' if keeper.stopped else ''}{words}; {where}.")
