"""Runs independent tasks part by part: on threads of this process, or on other machines.

A *scheduler* takes a function and items, and yields the results in the order of the items, so that
sums of results do not depend on which task ended first. No more tasks are under way than it has
workers, but for a few that wait, so that memory is bounded.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol, TypeVar

from dkrls_cli.threads import blas_threads

_TASKS = 3
"""Tasks on threads at a time. Of two, each waits for the other to read or write a tenth of the time
where that takes a third of it."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class Scheduler(Protocol):
    """Runs tasks."""

    @property
    def workers(self) -> int:
        """Tasks that are under way at the same time."""

    @property
    def is_remote(self) -> bool:
        """Whether tasks run in other processes."""

    def run(
        self, task: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[int, Result]]:
        """Yield the place of every item and the result of its task, in the order of the items."""


@dataclass(frozen=True)
class Threads:
    """Tasks on threads of this process: while one reads, another computes.

    Attributes
    ----------
    workers
        Number of threads.
    blas
        Threads of a matrix product; None leaves the number as it is.
    """

    workers: int = 2
    blas: int | None = None

    @property
    def is_remote(self) -> bool:
        """False: tasks run in this process."""
        return False

    def run(
        self, task: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[int, Result]]:
        """Yield the place of every item and the result of its task, in the order of the items."""
        with ExitStack() as stack:
            stack.enter_context(blas_threads(self.blas))
            pool = stack.enter_context(ThreadPoolExecutor(self.workers))
            stack.callback(pool.shutdown, wait=True, cancel_futures=True)
            waiting: deque[tuple[int, Future[Result]]] = deque()
            for place, item in enumerate(items):
                waiting.append((place, pool.submit(task, item)))
                if len(waiting) >= self.workers:
                    yield _first_result(waiting)
            while waiting:
                yield _first_result(waiting)


def _first_result(waiting: deque[tuple[int, Future[Result]]]) -> tuple[int, Result]:
    """Return the place and the result of the task that was begun first, when it has ended."""
    place, future = waiting.popleft()
    return place, future.result()


def local_threads(threads: int | None) -> Threads:
    """Return threads of this process: three tasks, and the rest of the threads for each product.

    `threads` is the number that a user gave; None: that of OMP_NUM_THREADS, or of the processors.
    Without a number, one task reads or writes, which only one can do at a time, while two others
    compute, whatever the number of processors: plans of memory are the same on all machines.
    """
    if threads is not None:
        return Threads(min(_TASKS, threads), max(1, threads // _TASKS))
    given = os.environ.get("OMP_NUM_THREADS", "")
    number = int(given) if given.isdecimal() else os.cpu_count() or 1
    return Threads(_TASKS, -(-number // _TASKS))
