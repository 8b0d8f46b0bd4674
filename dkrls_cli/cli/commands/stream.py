"""``dkrls stream``: read slices from stdin, write forecasts to stdout, and learn."""

from __future__ import annotations

import math
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.output.rows import stdout_writer
from dkrls_cli.cli.output.target import changed_target
from dkrls_cli.cli.report import Report, edge
from dkrls_cli.cli.terminal.tables import count_text, duration_text
from dkrls_cli.errors import OutputError, SettingError
from dkrls_cli.signals import last_resort, stop_signals

if TYPE_CHECKING:
    from dkrls_cli.files.feed import Feed, NewSlice
    from dkrls_cli.files.text.rows import RowWriter
    from dkrls_cli.model.model import Model
    from dkrls_cli.model.stream import Expected, Stream

_REST = 10.0  # time between saves, in units of the time one save takes: saving costs a tenth
_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}  # in each unit of --save-every


@dataclass(frozen=True)
class StreamOptions(opt.SliceOptions):
    """Which slices are kept, and how the next one is forecast."""

    retune: Annotated[
        bool,
        typer.Option(
            "--retune",
            help="Average settings by recent skill; re-tune the last level before saving.",
        ),
    ] = False


@dataclass(frozen=True)
class ForecastOptions:
    """How forecasts are written."""

    std: Annotated[bool, typer.Option("--std", help="Add a column with standard errors.")] = False
    form: Annotated[
        opt.RowFormat | None,
        typer.Option("--format", help="Format of the forecasts.", show_default="that of the input"),
    ] = None


@opt.expand
def stream(
    model: opt.ModelFile,
    *,
    output: opt.NewModelFile = None,
    forecasts: ForecastOptions,
    slices: StreamOptions,
    save_every: Annotated[
        str,
        typer.Option(metavar="N|TIME", help="Save every N slices, or every TIME: 60s, 5min, 1h."),
    ] = "60s",
    files: opt.InPlaceOptions,
    report: Report,
) -> None:
    """Forecast every slice that comes on stdin, then learn it.

    Rows are long CSV with a header, or JSON lines; the rows of a slice follow one another.

    The model is saved at intervals, at the end, and when the command is told to stop; it then ends
    with exit code 143 (SIGTERM) or 130 (Ctrl-C).

    Examples:
      tail -f log.csv | dkrls stream m.npz --window 8760

      dkrls stream m.npz --std --save-every 100 < day.csv > errors.csv

      dkrls stream m.npz --retune --json -o new.npz < day.jsonl
    """
    with edge(report.debug):
        from dkrls_cli.files.output.locks import lock_file

        intervals = parse_intervals(save_every)
        target = changed_target(model, output, files.overwrite, report)
        with lock_file(target.path, files.wait, report.note):
            target.refuse_unwritable()
            saver = Saver(target.path, *intervals, overwrite=target.overwrite)
            run_stream(model, saver, slices, forecasts, report)


def parse_intervals(text: str) -> tuple[int | None, float | None]:
    """Return how often to save: after so many slices, or after so many seconds; one is None."""
    match = re.fullmatch(r"([0-9]{1,6})\s*(s|min|h)?", text.strip())
    if not match or int(match[1]) == 0:
        raise SettingError(
            f"Invalid --save-every {text}. Give a number of slices (100) or a time (60s, 5min)."
        )
    number = int(match[1])
    return (None, number * _SECONDS[match[2]]) if match[2] else (number, None)


class StoppedError(Exception):
    """The command was told to stop while it waited for input."""


@dataclass
class Saver:
    """Saves the model of a stream at intervals, and stops when a signal says so.

    A signal interrupts only the wait for input. One that comes while a slice is learnt takes
    effect after that slice.

    Attributes
    ----------
    path
        File to save to.
    every_slices, every_seconds
        Interval between saves: a number of slices, or seconds. One of them is None.
    clock
        Returns the time in seconds.
    saved_slices, saved_at, save_took
        Slices in the last save, its time, and the seconds it took.
    skipped, empty, unusable
        Number of slices that were not learnt, of those without any value, and of values that were
        no usable numbers.
    number, waiting
        Number of the signal that has come, 0 before, and whether the command waits for input.
    stream
        The stream to save; None before it starts.
    overwrite
        Whether the first save may replace a file; the later ones replace the first.
    saving
        Held while the model is saved.
    """

    path: Path
    every_slices: int | None
    every_seconds: float | None
    clock: Callable[[], float] = monotonic
    saved_slices: int = 0
    saved_at: float = field(init=False)
    save_took: float = 0.0
    skipped: int = 0
    empty: int = 0
    unusable: int = 0
    number: int = 0
    waiting: bool = False
    stream: Stream | None = None
    overwrite: bool = True
    saving: Any = field(default_factory=RLock, repr=False)

    def __post_init__(self) -> None:
        self.saved_at = self.clock()

    def save(self) -> None:
        """Write the model, if it has learnt something since the last save."""
        begun = self.clock()
        if self.stream is not None and self.stream.slices > self.saved_slices:
            model = self.stream.final_model()  # may take long: the last resort does not wait for it
            with self.saving:
                if self.stream.slices > self.saved_slices:
                    self._write(model)
        self.saved_at = self.clock()
        self.save_took = self.saved_at - begun

    def save_at_once(self) -> None:
        """Write the model as it is, while the main thread is busy with a slice: the last resort."""
        with self.saving:
            if self.stream is not None and self.stream.slices > self.saved_slices:
                self._write(self.stream.model)

    def _write(self, model: Model) -> None:
        assert self.stream is not None
        slices = self.stream.slices
        model.save(self.path, overwrite=self.overwrite)
        self.overwrite, self.saved_slices = True, slices

    @property
    def stopped(self) -> bool:
        """Whether a signal has come."""
        return self.number != 0

    def save_if_due(self) -> None:
        """Write the model if the interval between saves is over."""
        assert self.stream is not None
        new = self.stream.slices - self.saved_slices
        by_count = self.every_slices is not None and new >= self.every_slices
        if by_count or (new and self.is_late()):
            self.save()

    def is_late(self) -> bool:
        """Return whether the seconds between saves are over; slow saves come less often."""
        if self.every_seconds is None:
            return False
        return self.clock() - self.saved_at >= max(self.every_seconds, _REST * self.save_took)

    def incoming(self, slices: Iterator[NewSlice]) -> Iterator[NewSlice]:
        """Yield slices until there are no more, or until the command is told to stop."""
        while not self.stopped:
            self.waiting = True
            try:  # a signal may have come just before `waiting` was set
                new = None if self.stopped else next(slices, None)
            finally:
                self.waiting = False
            if new is None:
                return
            yield new

    @contextmanager
    def handle_signals(self) -> Iterator[None]:
        """Stop when told to, and save by a timer where the system has one."""
        before = {n: signal.signal(n, self._stop) for n in stop_signals()}
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
        self.number = number
        if self.waiting:
            self.waiting = False
            raise StoppedError

    def _tick(self, number: int, frame: Any) -> None:
        if self.waiting:
            self.save_if_due()


def run_stream(
    path: Path,
    saver: Saver,
    slices: StreamOptions,
    forecasts: ForecastOptions,
    report: Report,
) -> None:
    """Forecast and learn until the input ends, and save the model whatever happens."""
    from dkrls_cli.files.feed import Feed
    from dkrls_cli.files.text.csv.opening import open_text, source_name
    from dkrls_cli.model.saving import load_models
    from dkrls_cli.model.stream import Plan, Stream

    model, *others = load_models(path).values()
    if others:
        names = ", ".join(one.name for one in (model, *others))
        raise SettingError(f"'{path}' has models of {names}. A stream has one: fit it alone.")
    plan = Plan(slices.window, slices.max_rank, slices.replace, slices.retune)
    saver.stream = Stream(model, plan)
    start = perf_counter()
    with last_resort(saver.save_at_once), saver.handle_signals():
        try:
            with suppress(StoppedError), open_text("-") as text:
                feed = Feed(text, list(model.axes), model.grows, model.name, source_name("-"))
                writer = None if report.json else ForecastWriter(feed, forecasts)
                learn_slices(saver, feed, writer, report)
        finally:
            saver.save()
        print_summary(saver, perf_counter() - start, report)
    if saver.stopped:
        raise typer.Exit(128 + saver.number)


def learn_slices(saver: Saver, feed: Feed, writer: ForecastWriter | None, report: Report) -> None:
    """Forecast every slice that is new, write the forecast, and learn the slice."""
    stream, warned, marked = saver.stream, False, False
    assert stream is not None
    for new in saver.incoming(feed.slices()):
        saver.unusable = feed.unusable
        if feed.suspect and not marked:
            report.note(f"Warning: {feed.suspect}.")
            marked = True
        if not stream.wants(new.axis):
            saver.skipped += 1
            continue
        saver.empty += bool((new.values != new.values).all())  # NaN in every cell
        expected = stream.step(new.axis, new.values)
        if writer is not None:
            writer.write(stream, new, expected)
        saver.save_if_due()
        if stream.drift and not warned and not stream.plan.retune:
            report.note(f"Warning: {drift_text(stream)}.")
            warned = True


def drift_text(stream: Stream) -> str:
    """Return a warning that recent slices are far from their forecasts."""
    return (
        f"recent forecast errors are {stream.drift:.2g} times the standard error that the model "
        "predicted; --retune adapts to changes"
    )


@dataclass
class ForecastWriter:
    """Writes the forecast of a slice to stdout as soon as the slice has come, a row per cell."""

    feed: Feed
    options: ForecastOptions
    rows: RowWriter | None = None

    def write(self, stream: Stream, new: NewSlice, expected: Expected) -> None:
        """Write the cells of a slice: value, forecast, error, and the standard error if wanted."""
        if self.rows is None:  # the format of the input is known from its first slice on
            self.rows = stdout_writer(self.options.form or self.feed.form)
        model = stream.model
        axes = [new.axis if i == model.grows else axis for i, axis in enumerate(model.axes)]
        columns = {
            model.name: new.values,
            "predicted": expected.values,
            "error": expected.values - new.values,
            **({"std": expected.std} if self.options.std else {}),
        }
        try:
            self.rows.write_cells(model.dims, [axis.texts for axis in axes], columns)
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(f"Standard output cannot be written ({error.strerror}).") from None


def print_summary(saver: Saver, seconds: float, report: Report) -> None:
    """Print how many slices were learnt, and how good the forecasts were."""
    stream = saver.stream
    assert stream is not None
    facts: dict[str, Any] = {
        "model": str(saver.path),
        "slices": stream.slices,
        "skipped": saver.skipped,
        "empty": saver.empty,
        "unusable_values": saver.unusable,
        "kept": stream.model.axes[stream.model.grows].size,
        "rmse": stream.rmse,
        "last_value_rmse": stream.last_value_rmse,
        "thinned": stream.model.origin.get("thinned"),
        "stopped": saver.stopped,
        "seconds": seconds,
    }
    if report.json:
        report.result(facts)
        return
    words = f"{count_text(stream.slices)} slices learnt in {duration_text(seconds)}"
    if math.isfinite(stream.rmse):
        words += f", forecast rmse {stream.rmse:.4g} (last value: {stream.last_value_rmse:.4g})"
    if saver.skipped:
        words += f"; {saver.skipped} skipped: already known, or too old for the window"
    if saver.empty:
        words += f"; {saver.empty} of them without any value, and not kept"
    if saver.unusable:
        words += f"; {saver.unusable} values infinite or beyond 9.9e+36 taken as missing"
    where = f"saved to {saver.path}" if stream.slices else "the model is unchanged"
    report.note(f"{'Stopped: ' if saver.stopped else ''}{words}; {where}.")
