"""Saves of ``dkrls stream``: at intervals, at the end, and when the command is told to stop."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from time import monotonic
from typing import TYPE_CHECKING, Any

from dkrls_cli.errors import SettingError
from dkrls_cli.signals import stop_signals

if TYPE_CHECKING:
    from dkrls_cli.files.feed import NewSlice
    from dkrls_cli.model.model import Model
    from dkrls_cli.model.stream import Stream

_REST = 10.0  # time between saves, in units of the time one save takes: saving costs a tenth
_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}  # in each unit of --save-every


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
