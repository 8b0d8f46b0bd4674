"""A process that is told to stop ends with the right code and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from dkrls_cli import signals

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no such signals there")

WORK = {
    "python": "while True: sum(range(1000))",
    "sleep": "time.sleep(60)",
    "factorisation": "import numpy as np; np.linalg.eigh(np.eye(5000) + np.ones((5000, 5000)))",
}


def started(code: str) -> subprocess.Popen[str]:
    program = (
        "import signal, sys, time\nfrom dkrls_cli import signals\n"
        "for name in ('SIGINT', 'SIGTERM', 'SIGHUP'):  # which a job in the background ignores\n"
        "    signal.signal(getattr(signal, name), signal.SIG_DFL)\n"
        "signals.call_when_stopped(lambda: print('tidy', flush=True))\n"
        "signals.call_when_stopped(lambda: 1 / 0)\n"
        f"signals.stop_on_signals()\nprint('ready', flush=True)\n{code}\n"
    )
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", program], stdout=pipe, stderr=pipe, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Return what a process prints until it ends; `communicate` would lose what has been read."""
    assert process.stdout is not None
    assert process.stderr is not None
    with process:
        return process.stdout.read(), process.stderr.read()


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_whatever_it_does_a_process_ends_at_once(work: str, name: str) -> None:
    process = started(WORK[work])
    time.sleep(0.3 if work == "factorisation" else 0.0)
    number = getattr(signal, name)
    process.send_signal(number)
    out, err = ended(process)
    assert process.returncode == 128 + number
    assert out == "tidy\n"
    assert err == ("Interrupted.\n" if name == "SIGINT" else f"Stopped by {name}.\n")


def test_a_signal_that_is_ignored_stays_so() -> None:
    process = started(
        "import os, signal\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "signals.stop_on_signals(); signals.stop_on_signals()\n"
        "os.kill(os.getpid(), signal.SIGHUP)\nprint(len(signals.stop_signals()))"
    )
    out, _ = ended(process)
    assert (process.returncode, out) == (0, "2\n")


def test_the_last_resort_is_for_who_handles_signals_and_does_not_end() -> None:
    process = started(
        "import signal\n"
        "signal.signal(signal.SIGTERM, lambda *_: None)\n"
        "with signals.last_resort(lambda: print('saved', flush=True)):\n"
        "    print('go', flush=True)\n"
        "    while True: time.sleep(0.1)\n"
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "go\n"
    process.send_signal(signal.SIGTERM)
    out, _ = ended(process)
    assert process.returncode == 143
    assert out == "saved\ntidy\n"


def test_other_signals_do_not_end_a_process() -> None:
    process = started(
        "import os, signal\n"
        "signal.signal(signal.SIGALRM, lambda *_: None)\n"
        "os.kill(os.getpid(), signal.SIGALRM)\ntime.sleep(1.0)\nprint('alive')"
    )
    assert ended(process)[0] == "alive\n"
    assert process.returncode == 0


class Left(BaseException):
    """Stands for the end of the process."""


def test_the_first_of_two_threads_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[int] = []
    written: list[bytes] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    monkeypatch.setattr(os, "write", lambda _, text: written.append(text))
    monkeypatch.setattr(signals, "_tasks", [])
    monkeypatch.setattr(signals, "_stop_children", lambda: None)
    try:
        for _ in range(2):
            signals._end(signal.SIGTERM, None)
    finally:
        signals._ending.release()
    assert codes == [143]
    assert written == [b"Stopped by SIGTERM.\n"]


def test_the_second_thread_waits_saves_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Any] = []

    def ended(number: int, _: Any) -> None:
        done.append(number)
        raise Left

    monkeypatch.setattr(signals, "_end", ended)
    monkeypatch.setattr(signals, "sleep", done.append)
    listen, tell = os.pipe()
    os.write(tell, bytes([signal.SIGALRM, signal.SIGINT]))
    with signals.last_resort(lambda: done.append("saved")), pytest.raises(Left):
        signals._watch(listen, frozenset([signal.SIGINT]))
    os.close(listen)
    os.close(tell)
    assert done == [signals._GRACE, "saved", signals._REST, signal.SIGINT]
    assert signals._GRACE + signals._REST < 2


def test_processes_of_its_own_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    class Child:
        killed = False

        def kill(self) -> None:
            self.killed = True

    child = Child()
    monkeypatch.setattr("multiprocessing.active_children", lambda: [child])
    signals._stop_children()
    assert child.killed


def test_a_cursor_that_was_hidden_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.live", None)
    for terminal, text in ((True, "\r\x1b[2K\x1b[?25h"), (False, "")):
        monkeypatch.setattr(os, "isatty", lambda _, terminal=terminal: terminal)
        assert signals._cursor() == text
