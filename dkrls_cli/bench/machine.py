"""What a clock was read on: threads and versions of libraries."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from threadpoolctl import threadpool_info

from dkrls_cli import __version__

_LIBRARIES = ("numpy", "scipy", "xarray", "scikit-learn", "gpytorch", "torch")


def machine() -> dict[str, Any]:
    """Number of threads of matrix products, and the versions that race."""
    threads = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return {
        "threads": max(threads, default=1),
        "dkrls": __version__,
        **dict(_versions()),
    }


def _versions() -> Iterator[tuple[str, str]]:
    """The libraries that are installed."""
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):
            yield name, version(name)


def seconds(job: Callable[[], object], repeats: int) -> float:
    """Median time of a job after one warm-up."""
    job()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
