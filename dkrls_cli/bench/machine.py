"""The machine and libraries that a race was timed on, and how a time is measured."""

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


def describe_machine() -> dict[str, Any]:
    """Return the number of BLAS threads and the versions of the libraries that race."""
    threads = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return {
        "threads": max(threads, default=1),
        "dkrls": __version__,
        **dict(_installed_versions()),
    }


def _installed_versions() -> Iterator[tuple[str, str]]:
    """Yield the name and version of every library that is installed."""
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):
            yield name, version(name)


def median_seconds(job: Callable[[], object], repeats: int) -> float:
    """Return the median time of a job over `repeats` runs, after one warm-up run."""
    job()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
