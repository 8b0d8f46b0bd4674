"""``dkrls stream``: read slices from stdin, write forecasts to stdout, and learn."""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.expansion import expand
from dkrls_cli.cli.output.rows import stdout_writer
from dkrls_cli.cli.output.target import changed_target
from dkrls_cli.cli.report import Report, edge
from dkrls_cli.cli.saver import Saver, StoppedError, parse_intervals
from dkrls_cli.cli.terminal.tables import count_text, duration_text
from dkrls_cli.errors import OutputError, SettingError
from dkrls_cli.signals import last_resort

if TYPE_CHECKING:
    from dkrls_cli.files.feed import Feed, NewSlice
    from dkrls_cli.files.text.rows import RowWriter
    from dkrls_cli.model.stream import Expected, Stream


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


@expand
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
