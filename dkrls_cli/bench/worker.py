"""A process of its own for work that may take too long: it can be stopped at any moment."""

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

_LONGEST = 1e6
"""Seconds: what waits below counts milliseconds in 31 bits."""


class OutOfTimeError(DkrlsError):
    """A job was stopped at its time limit."""


class FailedError(DkrlsError):
    """A job failed; the message says how."""


@dataclass(frozen=True)
class Message:
    """A part of what a job yields; the last one has none, or says how it failed."""

    what: Any = None
    last: bool = False
    failed: bool = False


class Worker:
    """Runs one job after another in another process, each within a time limit.

    `prepare` runs first in every new process, outside any limit: imports and warm-up. Jobs and
    what they take and return travel between processes, so functions are those of a module.

    Modules that are `ready` are imported once and for all, where the system has a server of
    processes: from it every new one begins in no time, with nothing of those before it.
    """

    def __init__(self, prepare: Callable[[], object], ready: Sequence[str] = ()) -> None:
        self._prepare, self._ready = prepare, ready
        self._start()

    def run(self, limit: float, job: Callable[..., Any], *given: Any) -> Any:
        """What the job returns; a job that is not done within `limit` seconds is stopped."""
        *_, last = self.watch(limit, job, *given)
        return last

    def watch(self, limit: float, job: Callable[..., Any], *given: Any) -> Iterator[Any]:
        """What the job yields, as it comes, or the one thing that it returns.

        A job that is not done within `limit` seconds is stopped; what came before remains.
        """
        if not self._process.is_alive():
            self._restart()
        self._line.send((job, given))
        try:
            self._line.recv()  # arrived: now the time runs
            end = monotonic() + min(limit, _LONGEST)
            while not (message := self._message(end, limit)).last:
                yield message.what
        except (EOFError, ConnectionResetError):
            self._restart()
            raise FailedError("its process ended, perhaps for want of memory") from None

    def _message(self, end: float, limit: float) -> Message:
        """The next thing a job says."""
        if not self._line.poll(max(end - monotonic(), 0.0)):
            self._restart()
            raise OutOfTimeError(f"stopped after {limit:g} s")
        message: Message = self._line.recv()
        if message.failed:
            raise FailedError(message.what)
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
        context = _context(self._ready)
        self._line, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._prepare), daemon=True)
        self._process.start()
        theirs.close()
        try:
            self._line.recv()
        except EOFError:
            raise FailedError("its process ended before it had begun") from None

    def _stop(self) -> None:
        self._process.kill()
        self._process.join()
        self._process.close()
        self._line.close()

    def _restart(self) -> None:
        self._stop()
        self._start()


def _context(ready: Sequence[str]) -> Any:
    # A fork of this process, which has threads, may hang: a new one is begun afresh.
    if ready and sys.platform == "linux":  # elsewhere libraries do not survive a fork
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(ready))
        return context
    return multiprocessing.get_context("spawn")


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
        for message in _messages(job, given):
            line.send(message)


def _messages(job: Callable[..., Any], given: tuple[Any, ...]) -> Iterator[Message]:
    """What a job says, part by part, and how it ends."""
    try:
        result = job(*given)
        for part in result if isinstance(result, Iterator) else [result]:
            yield Message(part)
    except Exception as error:
        message = " ".join(str(error).split()).rstrip(".")
        yield Message(f"{type(error).__name__}: {message}", failed=True)
    else:
        yield Message(last=True)
