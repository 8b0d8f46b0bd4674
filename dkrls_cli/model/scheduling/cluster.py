"""Tasks on a dask cluster: one that is started here, or one that is there. The door to dask.

Workers read the chunks that they need themselves: what is sent to them is a task, once, and the
parts that it is for. A task on a worker that is lost is run again on another.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from logging import CRITICAL
from pickle import dumps, loads
from typing import Any, TypeVar
from warnings import catch_warnings, simplefilter

from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.model.scheduling.forking import fork_ahead
from dkrls_cli.model.streaming.running import Scheduler

Item = TypeVar("Item")
Result = TypeVar("Result")

_WAITING = 2
"""Tasks of each thread of a worker that are under way or wait, so that it is never idle."""

_TRIES = 4
"""Workers that may be lost with one task before it is taken for the cause."""

_TIMEOUT = 30
"""Seconds to wait for a scheduler or its first worker: a batch system has started it by then."""


@dataclass(frozen=True, eq=False)
class Cluster:
    """Tasks on the workers of a dask cluster.

    Attributes
    ----------
    client
        A client of its scheduler.
    workers
        Threads of all workers, also of those that are about to start.
    where
        What the cluster is called.
    """

    client: Any
    workers: int
    where: str = "local"

    @property
    def is_remote(self) -> bool:
        """True: tasks run in other processes."""
        return True

    def run(
        self, task: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[int, Result]]:
        """Yield the place of every item and the result of its task, in the order of the items."""
        _await_worker(self.client, self.where)
        sent = self._send(task)
        waiting: deque[tuple[int, Any]] = deque()
        try:
            for place, item in enumerate(items):
                waiting.append((place, self._submit(sent, item)))
                if len(waiting) >= _WAITING * self.workers:
                    first, future = waiting.popleft()
                    yield first, self._result(task, items[first], future)
            while waiting:
                first, future = waiting.popleft()
                yield first, self._result(task, items[first], future)
        finally:
            self.client.cancel([future for _, future in waiting], force=True)

    def _send(self, task: Any) -> Any:
        """Return a task as workers have it: if they lose it, it is unpacked again."""
        with catch_warnings():
            simplefilter("ignore")  # of a task of more than 10 MB, which is sent once
            return self.client.submit(loads, dumps(task), pure=False)

    def _submit(self, sent: Any, item: Any) -> Any:
        return self.client.submit(_call, sent, item, pure=False, retries=_TRIES)

    def _result(self, task: Any, item: Any, future: Any) -> Any:
        """Return the result of a task; if the task was lost with its worker, it is sent again."""
        distributed = _library("distributed")
        lost = (distributed.CancelledError, distributed.KilledWorker)
        for _ in range(_TRIES):
            try:
                return future.result()
            except lost:
                future = self._submit(self._send(task), item)
        return future.result()


def _call(task: Callable[[Item], Result], item: Item) -> Result:
    """Run a task on a worker, each with one thread for its matrix products, and memory kept."""
    from dkrls_cli.memory import reuse_freed
    from dkrls_cli.threads import one_blas_thread

    reuse_freed()
    with one_blas_thread():
        return task(item)


@contextmanager
def open_cluster(where: str | None, file: str | None = None) -> Iterator[Scheduler]:
    """Yield a dask cluster as a scheduler.

    Parameters
    ----------
    where
        ``local`` or ``local:N`` starts a cluster of processes on this machine, as many as it has
        processors or N; else the address of a scheduler, such as ``tcp://login1:8786``.
    file
        The file that a scheduler has written with its address, instead of one.

    Raises
    ------
    InputError
        If dask is not installed, or there is no scheduler or worker.
    SettingError
        If the number of processes is not one.
    """
    processes = _processes(where)
    distributed, dask = _library("distributed"), _library("dask")
    with dask.config.set({"distributed.comm.timeouts.connect": f"{_TIMEOUT}s"}):
        if processes is not None:
            count = processes or _library("dask.system").CPU_COUNT
            how = "forkserver" if fork_ahead() else "spawn"
            with (
                dask.config.set({"distributed.worker.multiprocessing-method": how}),
                distributed.LocalCluster(
                    n_workers=0,
                    threads_per_worker=1,
                    memory_limit=distributed.system.MEMORY_LIMIT // count,
                    dashboard_address=None,
                    silence_logs=CRITICAL,
                ) as local,
                distributed.Client(local) as client,
            ):
                local.scale(count)  # they start while the work is planned here
                yield Cluster(client, count)
            return
        with _joined(where, file) as client:
            name = where or str(file)
            _await_worker(client, name)
            yield Cluster(client, sum(client.nthreads().values()), name)


def _library(name: str) -> Any:
    """Import a library of dask, or raise InputError if it is not installed.

    The command line keeps dask from being imported for nothing: see :mod:`dkrls_cli.__main__`. Its
    arrays stay out.
    """
    if sys.modules.get("dask", sys) is None:
        del sys.modules["dask"]
        import_module("dkrls_cli.model.scheduling.lean")
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise InputError(
            "A scheduler needs dask and distributed: pip install 'dkrls-cli[dask]'."
        ) from None


def _processes(where: str | None) -> int | None:
    """Return the processes of a local cluster, 0 for one of each processor; None if it is none."""
    if where is None or where.partition(":")[0] != "local":
        return None
    number = where.partition(":")[2]
    if number and not (number.isdecimal() and 0 < int(number) <= 1024):
        raise SettingError(
            f"'{where}' is no local scheduler. Expected local, or local:N with N from 1 to 1024.",
            setting="scheduler",
        )
    return int(number or 0)


def _joined(where: str | None, file: str | None) -> Any:
    """Return a client of a scheduler that is there, or raise InputError."""
    try:
        return _library("distributed").Client(where, scheduler_file=file, timeout=_TIMEOUT)
    except (OSError, TimeoutError, ValueError) as error:
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise InputError(
            f"There is no dask scheduler at '{where or file}' ({reason}). Start one with "
            "'dask scheduler', or give local.",
            setting="scheduler",
        ) from None


def _await_worker(client: Any, where: str) -> None:
    """Wait until a cluster has a worker, or raise InputError."""
    try:
        client.wait_for_workers(1, timeout=_TIMEOUT)
    except TimeoutError:
        raise InputError(
            f"The dask scheduler at '{where}' has no worker. Start some with 'dask worker'.",
            setting="scheduler",
        ) from None
