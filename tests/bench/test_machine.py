"""The description of the machine, and the median of several times."""

from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits

import dkrls_cli
from dkrls_cli.bench import machine
from dkrls_cli.bench.machine import describe_machine, median_seconds


def test_threads_and_versions_are_described() -> None:
    import numpy as np

    with threadpool_limits(limits=1, user_api="blas"):
        found = describe_machine()
    assert found["threads"] == 1
    assert found["dkrls"] == dkrls_cli.__version__
    assert found["numpy"] == np.__version__
    assert list(found)[:5] == ["threads", "dkrls", "numpy", "scipy", "xarray"]


def test_the_threads_are_the_most_of_all_blas_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    pools = [
        {"user_api": "blas", "num_threads": 2},
        {"user_api": "blas", "num_threads": 5},
        {"user_api": "openmp", "num_threads": 9},
    ]
    monkeypatch.setattr(machine, "threadpool_info", lambda: pools)
    assert describe_machine()["threads"] == 5
    monkeypatch.setattr(machine, "threadpool_info", list)
    assert describe_machine()["threads"] == 1


def test_a_library_that_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_LIBRARIES", ("numpy", "no-such-library"))
    assert list(describe_machine()) == ["threads", "dkrls", "numpy"]


def test_the_median_is_over_the_repeats_without_the_warm_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    readings: Iterator[float] = iter([0.0, 5.0, 10.0, 11.0, 20.0, 22.0])
    monkeypatch.setattr(machine.time, "perf_counter", lambda: next(readings))
    runs: list[int] = []
    assert median_seconds(lambda: runs.append(1), 3) == 2.0
    assert len(runs) == 4
