"""A separate process for jobs that may take too long: it can be stopped at any moment."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from time import monotonic
from types import TracebackType
from typing import Any, Self

from dkrls_cli.errors import DkrlsError

# Longest time limit in seconds: the system counts milliseconds in 31 bits.
_LONGEST = 1e6


class JobTimeoutError(DkrlsError):
    """A job was stopped at its time limit."""


class JobFailedError(DkrlsError):
    """A job failed; the message says how."""


@dataclass(frozen=True)
class JobMessage:
    """A message from the process: a result of the job, its end, or its failure.

    Attributes
    ----------
    content
        A result, or the text of the failure.
    last
        Whether the job has ended without failure; such a message has no content.
    failed
        Whether the job has failed.
    """

    content: Any = None
    last: bool = False
    failed: bool = False


class Worker:
    """Runs one job after another in a separate process, each within a time limit.

    Parameters
    ----------
    prepare
        Runs first in every new process, outside any limit: imports and warm-up. Jobs, arguments and
        results are pickled, so functions must be those of a module.
    preload
        Modules to import once, in the server process that new processes are forked from, where the
        system has one. A new process then starts at once, with no state of earlier jobs.
    clock
        Returns the time in seconds; for tests.
    """

    def __init__(
        self,
        prepare: Callable[[], object],
        preload: Sequence[str] = (),
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._prepare, self._preload, self._clock = prepare, preload, clock
        self._start()

    def run(self, limit: float, job: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result of a job; see `iterate` for limit and errors."""
        *_, last = self.iterate(limit, job, *arguments)
        return last

    def iterate(self, limit: float, job: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """Yield what a job yields, as it comes, or its one result.

        Raises
        ------
        JobTimeoutError
            If the job is not done within `limit` seconds; the process is then replaced.
        JobFailedError
            If the job raises an exception or its process ends.
        """
        if not self._process.is_alive():
            self._restart()
        self._line.send((job, arguments))
        try:
            self._line.recv()  # the job has arrived: the time limit starts
            end = self._clock() + min(limit, _LONGEST)
            while not (message := self._next_message(end, limit)).last:
                yield message.content
        except (EOFError, ConnectionResetError):
            self._restart()
            raise JobFailedError("its process ended, possibly out of memory") from None

    def _next_message(self, end: float, limit: float) -> JobMessage:
        """Return the next message, or raise JobTimeoutError or JobFailedError."""
        if not self._line.poll(max(end - self._clock(), 0.0)):
            self._restart()
            raise JobTimeoutError(f"stopped after {limit:g} s")
        message: JobMessage = self._line.recv()
        if message.failed:
            raise JobFailedError(message.content)
        return message

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
        """Start a process and wait until it is prepared."""
        context = _process_context(self._preload)
        self._line, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._prepare), daemon=True)
        self._process.start()
        theirs.close()
        try:
            self._line.recv()
        except EOFError:
            raise JobFailedError("its process ended before it was ready") from None

    def _stop(self) -> None:
        self._process.kill()
        self._process.join()
        self._process.close()
        self._line.close()

    def _restart(self) -> None:
        self._stop()
        self._start()


def _process_context(preload: Sequence[str]) -> Any:
    """Return how to start a process: never by forking this one, whose threads might then hang."""
    if preload and sys.platform == "linux":  # elsewhere some libraries do not survive a fork
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(preload))
        return context
    return multiprocessing.get_context("spawn")


def _serve(line: Connection, prepare: Callable[[], object]) -> None:
    """Run jobs until the line is closed; leave interrupts to the parent process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    prepare()
    line.send("ready")
    while True:
        try:
            job, arguments = line.recv()
        except EOFError:
            return
        line.send("arrived")
        for message in _run_job(job, arguments):
            line.send(message)


def _run_job(job: Callable[..., Any], arguments: tuple[Any, ...]) -> Iterator[JobMessage]:
    """Yield the results of a job, then how it ended."""
    try:
        result = job(*arguments)
        for part in result if isinstance(result, Iterator) else [result]:
            yield JobMessage(part)
    except Exception as error:
        text = " ".join(str(error).split()).rstrip(".")
        yield JobMessage(f"{type(error).__name__}: {text}", failed=True)
    else:
        yield JobMessage(last=True)
