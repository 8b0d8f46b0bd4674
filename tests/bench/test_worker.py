"""Jobs in a process of their own: results, limits, failures.

Limits are tested with a clock that the test sets, so no test depends on the speed of the machine.
"""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Iterator

import pytest

from dkrls_cli.bench import worker as module
from dkrls_cli.bench.worker import JobFailedError, JobMessage, JobTimeoutError, Worker

LONG = 300.0  # seconds: never reached, whatever else the machine does


def count_and_wait(count: int) -> Iterator[int]:
    yield from range(count)
    threading.Event().wait()


def count(number: int) -> Iterator[int]:
    yield from range(number)


def fail_after(number: int) -> Iterator[int]:
    yield from range(number)
    raise ValueError("two\n lines  here.")


def warn() -> str:
    warnings.warn("not an error", UserWarning, stacklevel=1)
    return "warned"


def interrupt() -> str:
    os.kill(os.getpid(), signal.SIGINT)
    return "alive"


def exit_at_once() -> None:
    os._exit(1)


def test_results_come_back_and_the_process_is_used_again() -> None:
    with Worker(dict) as worker:
        first = worker.run(LONG, os.getpid)
        assert first != os.getpid()
        assert worker.run(LONG, os.getpid) == first
        assert worker.run(float("inf"), abs, -4) == 4
        assert list(worker.iterate(LONG, count, 3)) == [0, 1, 2]
        assert worker.run(LONG, count, 3) == 2
        assert worker.run(LONG, warn) == "warned"
        assert worker.run(LONG, interrupt) == "alive"


def test_a_job_is_stopped_at_its_limit_and_earlier_results_remain() -> None:
    seen: list[int] = []

    def clock() -> float:
        return 100.0 if len(seen) < 3 else 1000.0

    with Worker(dict, clock=clock) as worker:
        first = worker.run(LONG, os.getpid)
        parts = worker.iterate(LONG, count_and_wait, 3)
        for _ in range(3):
            seen.append(next(parts))
        with pytest.raises(JobTimeoutError, match=r"^stopped after 300 s$"):
            next(parts)
        assert seen == [0, 1, 2]
        seen.clear()
        assert worker.run(LONG, os.getpid) != first


def test_a_real_clock_stops_a_job_that_never_ends() -> None:
    with Worker(dict) as worker, pytest.raises(JobTimeoutError, match=r"stopped after 0\.2 s"):
        worker.run(0.2, count_and_wait, 0)


def test_time_before_the_job_has_arrived_does_not_count() -> None:
    """The clock is first read after the arrival."""
    readings = iter([5.0, 5.0 + LONG - 1.0, 5.0 + LONG - 1.0])
    with Worker(dict, clock=lambda: next(readings)) as worker:
        assert worker.run(LONG, abs, -1) == 1


def test_a_limit_is_cut_to_what_the_system_can_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with Worker(dict, clock=lambda: 0.0) as worker:
        waits: list[float] = []
        poll = worker._line.poll
        monkeypatch.setattr(
            worker, "_line", type("Line", (), {
                "poll": lambda self, wait: waits.append(wait) or poll(wait),
                "send": staticmethod(worker._line.send),
                "recv": staticmethod(worker._line.recv),
                "close": staticmethod(worker._line.close),
            })(),
        )  # fmt: skip
        worker.run(float("inf"), abs, -1)
    assert set(waits) == {1e6}


def test_a_failure_is_reported_in_one_line_and_the_process_goes_on() -> None:
    with Worker(dict) as worker:
        first = worker.run(LONG, os.getpid)
        parts = worker.iterate(LONG, fail_after, 2)
        assert [next(parts), next(parts)] == [0, 1]
        with pytest.raises(JobFailedError, match=r"^ValueError: two lines here$"):
            next(parts)
        assert worker.run(LONG, os.getpid) == first


def test_a_process_that_ends_is_replaced() -> None:
    with Worker(dict) as worker:
        with pytest.raises(JobFailedError, match="its process ended, possibly out of memory"):
            worker.run(LONG, exit_at_once)
        assert worker.run(LONG, abs, -5) == 5


def test_a_process_that_ended_between_jobs_is_replaced() -> None:
    with Worker(dict) as worker:
        os.kill(worker.run(LONG, os.getpid), signal.SIGKILL)
        worker._process.join()
        assert worker.run(LONG, abs, -5) == 5


def test_a_process_that_ends_before_it_is_ready_is_reported() -> None:
    with pytest.raises(JobFailedError, match="ended before it was ready"):
        Worker(exit_at_once)


def test_the_process_ends_with_the_worker() -> None:
    with Worker(dict) as worker:
        process = worker._process
        assert process.is_alive()
    with pytest.raises(ValueError, match="closed"):
        process.is_alive()


def test_preloaded_modules_start_from_a_server_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module.sys, "platform", "linux")
    assert module._process_context(["json"]).get_start_method() == "forkserver"
    assert module._process_context([]).get_start_method() == "spawn"
    monkeypatch.setattr(module.sys, "platform", "darwin")
    assert module._process_context(["json"]).get_start_method() == "spawn"


def test_messages_of_a_job() -> None:
    assert list(module._run_job(abs, (-2,))) == [JobMessage(2), JobMessage(last=True)]
    assert list(module._run_job(count, (2,))) == [
        JobMessage(0),
        JobMessage(1),
        JobMessage(last=True),
    ]
    assert next(module._run_job(list, ((1, 2),))) == JobMessage([1, 2])
