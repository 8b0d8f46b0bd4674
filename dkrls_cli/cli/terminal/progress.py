"""Progress of long work on stderr: a bar on a terminal, a line now and then in a pipe or log."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from time import monotonic

from dkrls_cli.cli.terminal.clean import clean
from dkrls_cli.cli.terminal.tables import can_draw

FIRST_AFTER = 2.0  # seconds: shorter work is over before a message could be read
NEXT_AFTER = 10.0  # seconds between two lines: a log of an hour stays readable
REFRESH = 0.1  # seconds between two drawings: looks continuous, costs nothing
_BAR_SHARE = 5  # the bar takes a fifth of the terminal: the text needs most of it
_OTHER_WIDTH = 12  # columns of spinner, elapsed time (up to 99999 s) and the spaces between

Wait = Callable[[float], bool]
"""Waits some seconds; returns True as soon as the work is done, False when the time is up."""


@dataclass
class Work:
    """Work that goes on, and how much of it is done.

    Attributes
    ----------
    what
        What is being done, such as "reading sst".
    clock
        Returns the time in seconds.
    fraction
        How much is done, 0 to 1; None: not known.
    """

    what: str
    clock: Callable[[], float] = monotonic
    fraction: float | None = None
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.clock()

    def set_fraction(self, fraction: float) -> None:
        """Record how much is done, 0 to 1."""
        self.fraction = fraction

    @property
    def elapsed(self) -> str:
        """Time since the start, in whole seconds."""
        return f"{self.clock() - self.started:.0f} s"

    @property
    def line(self) -> str:
        """The state of the work as one line of text."""
        done = "" if self.fraction is None else f", {self.fraction:.0%}"
        return f"{self.what}{done} ({self.elapsed})"


def write_lines(work: Work, wait: Wait, write: Callable[[str], object]) -> None:
    """Write a line after 2 seconds and then every 10 seconds, until the work is done."""
    pause = FIRST_AFTER
    while not wait(pause):
        write(f"{work.line}\n")
        pause = NEXT_AFTER


def draw_bar(work: Work, wait: Wait) -> None:
    """Draw a bar with the elapsed time after 2 seconds; it vanishes when the work is done."""
    if wait(FIRST_AFTER):
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    console = Console(stderr=True)
    bar_width = console.width // _BAR_SHARE
    columns = (
        SpinnerColumn("line"),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width),
        TextColumn("{task.fields[elapsed]}"),
    )
    bar = Progress(
        *columns, console=console, transient=True, auto_refresh=False, redirect_stdout=False
    )
    with bar:
        task = bar.add_task("", total=None, elapsed="")
        done = False
        while not done:
            bar.update(
                task,
                description=shorten(work.what, console.width - bar_width - _OTHER_WIDTH),
                total=None if work.fraction is None else 1.0,
                completed=work.fraction or 0.0,
                elapsed=work.elapsed,
                refresh=True,
            )
            done = wait(REFRESH)


def shorten(text: str, room: int) -> str:
    """Return a text of at most `room` columns, with dots where its end was cut off."""
    return text if len(text) <= room else f"{text[: max(0, room - 3)]}..."[: max(0, room)]


@contextmanager
def show_progress(what: str) -> Iterator[Callable[[float], None]]:
    """Show on stderr that work goes on, for as long as the body of the ``with`` takes.

    Yields a callback that takes the fraction done, 0 to 1.
    """
    work, done = Work(clean(what)), threading.Event()

    def show() -> None:
        if can_draw(sys.stderr):
            draw_bar(work, done.wait)
        else:
            write_lines(work, done.wait, _write)

    shower = threading.Thread(target=show, daemon=True)
    shower.start()
    try:
        yield work.set_fraction
    finally:
        done.set()
        shower.join()


def _write(text: str) -> None:
    """Write a text to stderr at once, if somebody reads it."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.write(text)
            sys.stderr.flush()
