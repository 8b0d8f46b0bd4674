"""How many threads BLAS uses, as BLAS itself says."""

import subprocess
import sys

import pytest
import threadpoolctl

from dkrls_cli.threads import _thread_pools, blas_threads, one_blas_thread


def counts() -> set[int]:
    found = threadpoolctl.threadpool_info()
    return {pool["num_threads"] for pool in found if pool["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads_outside():
    import scipy.linalg  # noqa: F401 - loads a BLAS library besides that of numpy

    with threadpoolctl.threadpool_limits(2, "blas"):
        if counts() != {2}:
            pytest.skip("this BLAS has no number of threads to change")
        yield


def test_one_thread_inside_and_as_many_as_before_outside() -> None:
    with one_blas_thread():
        assert counts() == {1}
    assert counts() == {2}


@pytest.mark.parametrize("count", [1, 2, 3])
def test_as_many_threads_as_asked_for(count: int) -> None:
    with one_blas_thread():
        with blas_threads(count):
            assert counts() == {count}
        assert counts() == {1}


def test_none_leaves_the_number_as_it_is() -> None:
    with blas_threads(None):
        assert counts() == {2}
    with one_blas_thread(), blas_threads(None):
        assert counts() == {1}


def test_an_exception_inside_restores_the_number() -> None:
    with pytest.raises(KeyError), one_blas_thread():
        raise KeyError
    assert counts() == {2}


def test_libraries_are_looked_up_once() -> None:
    assert _thread_pools(with_scipy=True) is _thread_pools(with_scipy=True)


def run(code: str) -> str:
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return out.stdout.strip()


def test_a_library_that_is_loaded_later_is_limited_as_well() -> None:
    code = """
import numpy, threadpoolctl
from dkrls_cli.threads import one_blas_thread
with one_blas_thread():
    pass
import scipy.linalg
with threadpoolctl.threadpool_limits(2, "blas"), one_blas_thread():
    pools = [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
print({pool["num_threads"] for pool in pools})
"""
    assert run(code) == "{1}"


def test_threadpoolctl_is_imported_only_where_a_limit_is_set() -> None:
    code = """
import sys
from dkrls_cli.threads import blas_threads
with blas_threads(None):
    print("threadpoolctl" in sys.modules)
"""
    assert run(code) == "False"
