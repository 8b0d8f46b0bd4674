"""Tasks on threads: in order, few at a time, and errors come through."""

import threading

import pytest

from dkrls_cli.model.streaming.running import Threads, local_threads


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_results_come_in_the_order_of_the_items(workers):
    gate = threading.Event()

    def task(item):
        if item == 0 and workers > 1:
            assert gate.wait(10)  # the first task ends last
        else:
            gate.set()
        return item * item

    found = list(Threads(workers).run(task, range(7)))
    assert found == [(place, place * place) for place in range(7)]


def test_no_more_tasks_are_under_way_than_workers():
    lock, under_way, most = threading.Lock(), 0, 0

    def task(item):
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        threading.Event().wait(0.002)
        with lock:
            under_way -= 1

    list(Threads(2).run(task, range(20)))
    assert most <= 2


def test_results_that_nobody_takes_hold_up_the_tasks():
    begun = []
    results = Threads(2).run(begun.append, range(50))
    next(results)
    assert len(begun) <= 3
    results.close()
    assert len(begun) <= 3


def test_an_error_ends_the_run():
    begun = []

    def task(item):
        begun.append(item)
        if item == 3:
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        list(Threads(2).run(task, range(100)))
    assert len(begun) <= 6


def test_threads_are_shared_between_tasks_and_products(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "6")
    assert local_threads(None) == Threads(3, 2)
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert local_threads(None) == Threads(3, 1)
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    assert local_threads(None) == Threads(3, 2)
    assert local_threads(1) == Threads(1, 1)
    assert local_threads(2) == Threads(2, 1)
    assert local_threads(8) == Threads(3, 2)
    assert not Threads().is_remote
