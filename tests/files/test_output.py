"""A file is written whole or not at all, and by one command at a time."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from dkrls_cli.errors import OutputError
from dkrls_cli.files import output
from dkrls_cli.files.output import atomic_write, check_writable, lock_file

ON_POSIX = pytest.mark.skipif(os.name == "nt", reason="links and permissions are others there")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def write_and_fail(target: Path, *, folder: bool = False) -> None:
    with atomic_write(target, overwrite=True, folder=folder) as temporary:
        temporary.mkdir() if folder else temporary.write_text("new")
        raise ZeroDivisionError


# Writing ------------------------------------------------------------------------------------------


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    with atomic_write(target, overwrite=False) as temporary:
        temporary.write_text("half")
        assert temporary.parent == tmp_path
        assert temporary.name.startswith(".")
        assert str(os.getpid()) in temporary.name
        assert not target.exists()
    assert target.read_text() == "half"
    assert names(tmp_path) == {"a.txt"}


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(ZeroDivisionError):
        write_and_fail(target)
    assert target.read_text() == "old"
    assert names(tmp_path) == {"a.txt"}


def test_a_failure_before_anything_is_written_is_the_one_that_is_raised(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), atomic_write(tmp_path / "a", overwrite=False):
        raise ZeroDivisionError
    assert names(tmp_path) == set()


def test_a_folder_is_replaced_as_a_whole(tmp_path: Path) -> None:
    target = tmp_path / "a.zarr"
    for name in ("old", "new"):
        with atomic_write(target, overwrite=True, folder=True) as temporary:
            temporary.mkdir()
            (temporary / name).write_text(name)
    assert names(target) == {"new"}
    with pytest.raises(ZeroDivisionError):
        write_and_fail(target, folder=True)
    assert names(target) == {"new"}
    assert names(tmp_path) == {"a.zarr"}


def test_a_folder_is_not_taken_for_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "precious").touch()
    with pytest.raises(OSError), atomic_write(tmp_path / "a", overwrite=True) as temporary:  # noqa: PT011
        temporary.write_text("new")
    assert names(tmp_path) == {"a"}
    assert names(tmp_path / "a") == {"precious"}


@ON_POSIX
def test_links_and_permissions_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "folder" / "real.txt", tmp_path / "link.txt"
    real.parent.mkdir()
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    with atomic_write(link, overwrite=True) as temporary:
        temporary.write_text("new")
        assert temporary.parent == real.parent
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert real.stat().st_mode & 0o777 == 0o640


def test_what_is_there_is_not_overwritten_unless_allowed(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(OutputError, match=r"'.*a.txt' exists already") as caught:
        check_writable(target, overwrite=False)
    assert "--" not in str(caught.value)
    with pytest.raises(OutputError, match="exists already"):
        atomic_write(target, overwrite=False).__enter__()
    check_writable(target, overwrite=True)
    assert target.read_text() == "old"


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    for overwrite in (True, False):
        with pytest.raises(OutputError, match=r"no folder '.*absent' to write 'a' into"):
            check_writable(tmp_path / "absent" / "a", overwrite=overwrite)
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="no folder"):
        check_writable(tmp_path / "file" / "a", overwrite=False)


# Locks --------------------------------------------------------------------------------------------


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
    monkeypatch.setattr(output, "sleep", made.sleep)
    monkeypatch.setattr(output, "monotonic", lambda: made.now)
    return made


def test_a_lock_is_taken_and_leaves_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    for _ in range(2):
        with lock_file(tmp_path / "m", 0.0, said.append):
            assert names(tmp_path) == {".m.lock"}
        assert names(tmp_path) == set()
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
        assert names(tmp_path) == {".m.lock"}
    assert len(said) == 1
    assert clock.now < 1


def test_a_waiter_whose_lock_file_was_removed_begins_again(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The holder ends between the moment a waiter opens the file and that in which it locks it.

    The waiter then holds a lock on a file that nobody else can open: a third command would lock a
    new file, and both would change the model.
    """
    lock, opened = tmp_path / ".m.lock", output._open_lock
    handles: list[int] = []

    def open_as_the_holder_ends(path: Path, name: str) -> int:
        handle = opened(path, name)
        if not handles:
            path.unlink()
        handles.append(handle)
        return handle

    monkeypatch.setattr(output, "_open_lock", open_as_the_holder_ends)
    with lock_file(tmp_path / "m", 60.0, lambda _: None):
        assert len(handles) == 2
        assert os.path.samestat(os.fstat(handles[-1]), lock.stat())
        with pytest.raises(OutputError, match="being changed"):
            lock_file(tmp_path / "m", 0.0, lambda _: None).__enter__()


def test_a_lock_file_that_was_replaced_is_not_the_one_that_is_locked(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    handle = os.open(lock, os.O_RDWR | os.O_CREAT)
    try:
        assert output._is_there(handle, lock)
        lock.rename(tmp_path / "elsewhere")
        assert not output._is_there(handle, lock)
        lock.touch()
        assert not output._is_there(handle, lock)
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
    assert names(tmp_path) == set()


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
        "import os, sys; from dkrls_cli.files.output import lock_file\n"
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
    assert names(tmp_path) == {"counter"}


def test_a_lock_without_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"There is no folder '.*absent' for '.*m'"):
        lock_file(tmp_path / "absent" / "m", 0.0, lambda _: None).__enter__()
    (tmp_path / ".m.lock").mkdir()
    with pytest.raises(OutputError, match="m' cannot be locked"):
        lock_file(tmp_path / "m", 0.0, lambda _: None).__enter__()
