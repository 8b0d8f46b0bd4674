"""Limits on the number of BLAS threads. The only module of the library to import threadpoolctl."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any


def one_blas_thread() -> AbstractContextManager[object]:
    """Return a context in which BLAS uses one thread.

    More threads slow small factorisations down.
    """
    return blas_threads(1)


def blas_threads(count: int | None) -> AbstractContextManager[object]:
    """Return a context in which BLAS uses `count` threads; None leaves the number as it is."""
    if count is None:
        return nullcontext()
    pools = _thread_pools(with_scipy="scipy.linalg" in sys.modules)
    limit: AbstractContextManager[object] = pools.limit(limits=count, user_api="blas")
    return limit


@cache
def _thread_pools(with_scipy: bool) -> Any:
    """Return a controller of the BLAS libraries that are loaded now.

    Finding them takes about a millisecond, so it is done once for numpy, and once more when scipy,
    which brings a BLAS library of its own, has been imported since.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
