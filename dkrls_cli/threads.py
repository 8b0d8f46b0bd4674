"""How many threads the matrix products may use. The only door to threadpoolctl."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any


@cache
def _thread_pools() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Hold BLAS to one thread: more of them slow small factorisations down."""
    limit: AbstractContextManager[object] = _thread_pools().limit(limits=1, user_api="blas")
    return limit


def blas_threads(count: int | None) -> AbstractContextManager[object]:
    """Hold BLAS to so many threads; None leaves it as the environment says."""
    if count is None:
        return nullcontext()
    limit: AbstractContextManager[object] = _thread_pools().limit(limits=count, user_api="blas")
    return limit
