"""A file is changed by one command at a time."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from written_folders import names_in

from dkrls_cli.errors import OutputError
from dkrls_cli.files.output import locks as module
from dkrls_cli.files.output.atomic import atomic_write
from dkrls_cli.files.output.locks import lock_file

ON_POSIX = pytest.mark.skipif(os.name == "nt", reason="links and permissions are others there")


class Clock:
    """Time that passes only while somebody sleeps, when something may happen."""

    def __init__(self, *events: Any) -> None:
        self.now = 0.0
        self.events = list(events)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.events:
            self.events.pop(0)()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "sleep", made.sleep)
    monkeypatch.setattr(module, "monotonic", lambda: made.now)
    return made


def test_a_lock_is_taken_and_leaves_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    for _ in range(2):
        with lock_file(tmp_path / "m", 0.0, said.append):
            assert names_in(tmp_path) == {".m.lock"}
        assert names_in(tmp_path) == set()
    assert said == []


def test_a_lock_that_is_held_is_refused_at_once_or_after_a_wait(
    tmp_path: Path, clock: Clock
) -> None:
    said: list[str] = []
    with lock_file(tmp_path / "m", 0.0, said.append):
        for wait, told in ((0.0, 0), (1.0, 1)):
            began = clock.now
            with pytest.raises(OutputError, match="m' is being changed by another command") as no:
                lock_file(tmp_path / "m", wait, said.append).__enter__()
            assert wait <= clock.now - began <= wait + 0.1
            assert len(said) == told
            assert "--" not in str(no.value)
    assert "waiting for it to end" in said[0]


def test_a_lock_is_taken_when_its_holder_has_ended(tmp_path: Path, clock: Clock) -> None:
    said: list[str] = []
    first = lock_file(tmp_path / "m", 0.0, said.append)
    first.__enter__()
    clock.events = [lambda: None, lambda: first.__exit__(None, None, None)]
    with lock_file(tmp_path / "m", 60.0, said.append):
        assert names_in(tmp_path) == {".m.lock"}
    assert len(said) == 1
    assert clock.now < 1


def test_a_waiter_whose_lock_file_was_removed_begins_again(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The holder ends between the moment a waiter opens the file and that in which it locks it.

    The waiter then holds a lock on a file that nobody else can open: a third command would lock a
    new file, and both would change the model.
    """
    lock, opened = tmp_path / ".m.lock", module._open_lock
    handles: list[int] = []

    def open_as_the_holder_ends(path: Path, name: str) -> int:
        handle = opened(path, name)
        if not handles:
            path.unlink()
        handles.append(handle)
        return handle

    monkeypatch.setattr(module, "_open_lock", open_as_the_holder_ends)
    with lock_file(tmp_path / "m", 60.0, lambda _: None):
        assert len(handles) == 2
        assert os.path.samestat(os.fstat(handles[-1]), lock.stat())
        with pytest.raises(OutputError, match="being changed"):
            lock_file(tmp_path / "m", 0.0, lambda _: None).__enter__()


def test_a_lock_file_that_was_replaced_is_not_the_one_that_is_locked(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    handle = os.open(lock, os.O_RDWR | os.O_CREAT)
    try:
        assert module._is_there(handle, lock)
        lock.rename(tmp_path / "elsewhere")
        assert not module._is_there(handle, lock)
        lock.touch()
        assert not module._is_there(handle, lock)
    finally:
        os.close(handle)


@ON_POSIX
def test_failed_attempts_leave_no_open_file(tmp_path: Path, clock: Clock) -> None:
    def open_files() -> int:
        return len(os.listdir("/dev/fd"))

    before = open_files()
    with lock_file(tmp_path / "m", 0.0, lambda _: None):
        with pytest.raises(OutputError):
            lock_file(tmp_path / "m", 3.0, lambda _: None).__enter__()
        assert open_files() == before + 1
    assert open_files() == before


def test_an_error_in_the_block_frees_the_lock(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), lock_file(tmp_path / "m", 0.0, lambda _: None):
        raise ZeroDivisionError
    with lock_file(tmp_path / "m", 0.0, lambda _: None):
        pass
    assert names_in(tmp_path) == set()


@ON_POSIX
def test_links_to_one_file_have_one_lock(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "m")
    with (
        lock_file(tmp_path / "link", 0.0, lambda _: None),
        pytest.raises(OutputError, match="being changed"),
    ):
        lock_file(tmp_path / "m", 0.0, lambda _: None).__enter__()


def test_a_process_that_dies_frees_its_lock(tmp_path: Path) -> None:
    code = (
        "import os, sys; from dkrls_cli.files.output.locks import lock_file\n"
        "lock_file(sys.argv[1], 0, print).__enter__(); os._exit(9)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "m"], check=False)
    assert done.returncode == 9
    with lock_file(tmp_path / "m", 0.0, lambda _: None):
        pass


def test_many_at_once_change_a_file_one_after_the_other(tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")

    def count() -> None:
        for _ in range(5):
            with lock_file(counter, 60.0, lambda _: None):
                number = int(counter.read_text())
                with atomic_write(counter, overwrite=True) as temporary:
                    temporary.write_text(str(number + 1))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.read_text() == "20"
    assert names_in(tmp_path) == {"counter"}


def test_a_lock_without_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"There is no folder '.*absent' for '.*m'"):
        lock_file(tmp_path / "absent" / "m", 0.0, lambda _: None).__enter__()
    (tmp_path / ".m.lock").mkdir()
    with pytest.raises(OutputError, match="m' cannot be locked"):
        lock_file(tmp_path / "m", 0.0, lambda _: None).__enter__()
