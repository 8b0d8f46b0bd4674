"""Workers of this machine as copies of one process that has imported what they need.

Imports take longer than anything else a worker does before its first task. Where the system can
fork, they are done once for all workers, and beside the planning of the work.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_IMPORTED = (
    "dkrls_cli.model.scheduling.lean",
    "distributed.nanny",
    "distributed.worker",
    "xarray.backends.zarr",
    "zarr",
    "netCDF4",
    "dkrls_cli.files.regions.writer",
    "dkrls_cli.model.chunked.reduction",
    "dkrls_cli.model.lasting.answering",
    "dkrls_cli.model.streaming.stages",
    "threadpoolctl",
)
"""Modules that workers need; what is not installed is left out."""

_ALONE = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "ZARR_ASYNC__CONCURRENCY",
    "ZARR_THREADING__MAX_WORKERS",
    "PYTHONSAFEPATH",
)
"""Variables that are 1: threads of matrix products, as a process with threads cannot fork, and of
reading and writing stores, where those of several workers get in each other's way; and that modules
are not looked for in the folder where a command is run, whose files may be called as libraries."""


def fork_ahead() -> bool:
    """Start the process that workers are forked from, and return whether the system can do so.

    It ends with this process. Elsewhere than on Linux, forks do not go with libraries of the
    system, and workers are processes of their own.
    """
    if sys.platform != "linux":
        return False
    from multiprocessing.forkserver import ensure_running

    multiprocessing.get_context("forkserver").set_forkserver_preload([*_IMPORTED])
    with _started_alone():
        ensure_running()
    return True


@contextmanager
def _started_alone() -> Iterator[None]:
    """Let processes that are started use one thread, and no module of the working folder."""
    before = {name: os.environ.get(name) for name in _ALONE}
    os.environ.update(dict.fromkeys(_ALONE, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
