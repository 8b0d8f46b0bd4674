"""Progress of long work on stderr: a bar on a terminal, a line now and then in a pipe or log.

Where the share done is known, both tell the time that is left, and the rate if bytes are known.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from time import monotonic

from dkrls_cli.cli.terminal.clean import clean
from dkrls_cli.cli.terminal.tables import bytes_text, can_draw, duration_text

FIRST_AFTER = 2.0  # seconds: shorter work is over before a message could be read
NEXT_AFTER = 10.0  # seconds between two lines: a log of an hour stays readable
REFRESH = 0.1  # seconds between two drawings: looks continuous, costs nothing
_BAR_SHARE = 5  # the bar takes a fifth of the terminal: the text needs most of it
_SPINNER_WIDTH = 5  # columns of the spinner and of the spaces between the parts of a line
_LEAST_SHARE = 0.01  # of the work: after less, the time left is a guess that jumps
_LEAST_ELAPSED = 1.0  # seconds: as above
_STATE_SHARE = 2  # time and rate take half of the terminal at most: below that, only the time taken

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
    total_bytes
        Bytes of the whole work; None: not known, or not of bytes.
    """

    what: str
    clock: Callable[[], float] = monotonic
    fraction: float | None = None
    total_bytes: float | None = None
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.clock()

    def set_fraction(self, fraction: float) -> None:
        """Record how much is done, 0 to 1; it never falls."""
        self.fraction = max(fraction, self.fraction or 0.0)

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.started

    @property
    def elapsed(self) -> str:
        """Time since the start, in whole seconds."""
        return duration_text(round(self.seconds))

    @property
    def left(self) -> str:
        """The time that is left, if the work goes on as it did; empty where that is not known."""
        share, seconds = self.fraction or 0.0, self.seconds
        if not _LEAST_SHARE <= share < 1.0 or seconds < _LEAST_ELAPSED:
            return ""
        return f"about {duration_text(max(1, round(seconds * (1.0 - share) / share)))} left"

    @property
    def rate(self) -> str:
        """Bytes per second so far; empty where they are not known."""
        if self.total_bytes is None or not self.fraction or self.seconds < _LEAST_ELAPSED:
            return ""
        return f"{bytes_text(self.total_bytes * self.fraction / self.seconds)}/s"

    @property
    def state(self) -> str:
        """Rate, time left and time taken, as far as they are known."""
        return ", ".join(filter(None, (self.rate, self.left, self.elapsed)))

    @property
    def line(self) -> str:
        """The state of the work as one line of text."""
        done = "" if self.fraction is None else f"{100 * self.fraction:.0f} %"
        known = ", ".join(filter(None, (self.what, done, self.rate, self.left)))
        return f"{known} ({self.elapsed})"


def write_lines(work: Work, wait: Wait, write: Callable[[str], object]) -> None:
    """Write a line after 2 seconds and then every 10 seconds, until the work is done."""
    pause = FIRST_AFTER
    while not wait(pause):
        write(f"{work.line}\n")
        pause = NEXT_AFTER


def draw_bar(work: Work, wait: Wait) -> None:
    """Draw a bar with the time left and taken after 2 seconds; it vanishes with the work's end."""
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
            state = work.state if len(work.state) * _STATE_SHARE < console.width else work.elapsed
            room = console.width - bar_width - len(state) - _SPINNER_WIDTH
            bar.update(
                task,
                description=shorten(work.what, room),
                total=None if work.fraction is None else 1.0,
                completed=work.fraction or 0.0,
                elapsed=state,
                refresh=True,
            )
            done = wait(REFRESH)


def shorten(text: str, room: int) -> str:
    """Return a text of at most `room` columns, with dots where its end was cut off."""
    return text if len(text) <= room else f"{text[: max(0, room - 3)]}..."[: max(0, room)]


@contextmanager
def show_progress(what: str, total_bytes: float | None = None) -> Iterator[Callable[[float], None]]:
    """Show on stderr that work goes on, for as long as the body of the ``with`` takes.

    Yields a callback that takes the fraction done, 0 to 1. With the bytes of the whole work, the
    rate is shown as well.
    """
    work, done = Work(clean(what), total_bytes=total_bytes), threading.Event()

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
