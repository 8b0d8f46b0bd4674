"""A process of its own for work that may take too long: it can be stopped at any moment."""

from __future__ import annotations

import multiprocessing
import signal
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

from dkrls_cli.errors import DkrlsError

_LONGEST = 1e6
"""Seconds: what waits below counts milliseconds in 31 bits."""


class OutOfTimeError(DkrlsError):
    """A job was stopped at its time limit."""


class FailedError(DkrlsError):
    """A job failed; the message says how."""


class Worker:
    """Runs one job after another in another process, each within a time limit.

    `prepare` runs first in every new process, outside any limit: imports and warm-up. Jobs and
    what they take and return travel between processes, so functions are those of a module.
    """

    def __init__(self, prepare: Callable[[], object]) -> None:
        self._prepare = prepare
        self._start()

    def run(self, limit: float, job: Callable[..., Any], *given: Any) -> Any:
        """What the job returns; a job that is not done within `limit` seconds is stopped."""
        if not self._process.is_alive():
            self._restart()
        self._line.send((job, given))
        try:
            self._line.recv()  # arrived: now the time runs
            if not self._line.poll(min(limit, _LONGEST)):
                self._restart()
                raise OutOfTimeError(f"stopped after {limit:g} s")
            done, outcome = self._line.recv()
        except (EOFError, ConnectionResetError):
            self._restart()
            raise FailedError("its process ended, perhaps for want of memory") from None
        if not done:
            raise FailedError(outcome)
        return outcome

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def _start(self) -> None:
        # A fork of a process with threads may hang: a new one is begun afresh on every system.
        context = multiprocessing.get_context("spawn")
        self._line, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._prepare), daemon=True)
        self._process.start()
        theirs.close()
        self._line.recv()

    def _stop(self) -> None:
        self._process.kill()
        self._process.join()
        self._process.close()
        self._line.close()

    def _restart(self) -> None:
        self._stop()
        self._start()


def _serve(line: Connection, prepare: Callable[[], object]) -> None:
    """Do jobs until the line is closed; an interrupt is for the one who gives them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    prepare()
    line.send("ready")
    while True:
        try:
            job, given = line.recv()
        except EOFError:
            return
        line.send("arrived")
        line.send(_outcome(job, given))


def _outcome(job: Callable[..., Any], given: tuple[Any, ...]) -> tuple[bool, Any]:
    try:
        return True, job(*given)
    except Exception as error:
        message = " ".join(str(error).split()).rstrip(".")
        return False, f"{type(error).__name__}: {message}"
