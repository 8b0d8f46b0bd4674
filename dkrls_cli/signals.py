"""Signals: a command that is told to stop ends at once, and leaves nothing half written.

SIGINT (Ctrl-C), SIGTERM and SIGHUP end a command with the exit code that shells expect, 128 and
the number of the signal: 130, 143 and 129. No exception is raised for it, which a library could
swallow or print; what has to be tidied up is named beforehand (`call_when_stopped`).

Python runs a handler between two steps of the main thread only. While that is inside a long
factorisation a second thread ends the process: the system tells it of a signal through a pipe.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import sleep
from typing import Any

# Seconds that the main thread has to end before the second thread does it.
_GRACE = 0.7

# Seconds that the main thread has, after somebody else has saved its work, to end by itself.
_REST = 0.3

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
_WORDS = {"SIGINT": "Interrupted."}

_tasks: list[Callable[[], None]] = []
_last_resorts: list[Callable[[], None]] = []
_ending = threading.Lock()


def stop_on_signals() -> None:
    """End this process when it is told to stop, from now on; a signal that is ignored stays so."""
    wanted = [number for number in stop_signals() if signal.getsignal(number) is not _end]
    for number in wanted:
        signal.signal(number, _end)
    if wanted and os.name == "posix":
        listen, tell = os.pipe()
        os.set_blocking(tell, False)
        signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
        arguments = (listen, frozenset(wanted))
        threading.Thread(target=_watch, args=arguments, name="signals", daemon=True).start()


def stop_signals() -> list[int]:
    """Return the numbers of the signals that stop a process, without those that it ignores."""
    numbers = [int(getattr(signal, name)) for name in _NAMES if hasattr(signal, name)]
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


def call_when_stopped(task: Callable[[], None]) -> None:
    """Add a task that runs before a signal ends this process."""
    _tasks.append(task)


@contextmanager
def last_resort(task: Callable[[], None]) -> Iterator[None]:
    """Let the block handle signals itself; if it does not end in time, run a task and end.

    The task runs in another thread, while the main thread still works.
    """
    _last_resorts.append(task)
    try:
        yield
    finally:
        _last_resorts.remove(task)


def _watch(listen: int, wanted: frozenset[int]) -> None:
    """Wait for signals, and end the process if the main thread does not do it in time."""
    while True:
        number = os.read(listen, 1)[0]
        if number not in wanted:  # of a timer
            continue
        sleep(_GRACE)
        for task in list(_last_resorts):
            with suppress(Exception):
                task()
            sleep(_REST)
        _end(number, None)


def _end(number: int, frame: Any) -> None:
    """Tidy up, say so, and end the process; the first thread that comes here does it."""
    if not _ending.acquire(blocking=False):
        return
    for task in _tasks:
        with suppress(Exception):
            task()
    if "multiprocessing" in sys.modules:
        _stop_children()
    name = signal.Signals(number).name
    with suppress(OSError):
        os.write(2, f"{_cursor()}{_WORDS.get(name, f'Stopped by {name}.')}\n".encode())
    os._exit(128 + number)


def _stop_children() -> None:
    """End the processes that this one has started."""
    from multiprocessing import active_children

    for child in active_children():
        child.kill()


def _cursor() -> str:
    """Return what shows the cursor of a terminal again, which a progress bar hides."""
    return "\r\x1b[2K\x1b[?25h" if "rich.live" in sys.modules and os.isatty(2) else ""
