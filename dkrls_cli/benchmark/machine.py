"""What a clock was read on: threads and versions of libraries."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from threadpoolctl import threadpool_info

from dkrls_cli import __version__

_LIBRARIES = ("numpy", "scipy", "xarray")


def machine() -> dict[str, Any]:
    """Number of threads of matrix products, and the versions that race."""
    threads = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return {
        "threads": max(threads, default=1),
        "dkrls": __version__,
        **{name: version(name) for name in _LIBRARIES},
    }


def seconds(job: Callable[[], object], repeats: int) -> float:
    """Median time of a job after one warm-up."""
    job()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
