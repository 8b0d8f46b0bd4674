"""A file is written whole or not at all, and by one command at a time."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dkrls_cli.errors import OutputError
from dkrls_cli.files import output
from dkrls_cli.files.output import atomic_write, check_writable, lock_file

ON_POSIX = pytest.mark.skipif(os.name == "nt", reason="links and permissions are others there")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def make_store(path: Path, mark: str = "") -> Path:
    """Make a folder that looks like a Zarr store."""
    path.mkdir(exist_ok=True)
    (path / ".zgroup").touch()
    if mark:
        (path / "mark").write_text(mark)
    return path


def write_and_fail(target: Path, *, folder: bool = False) -> None:
    with atomic_write(target, overwrite=True, folder=folder) as temporary:
        make_store(temporary) if folder else temporary.write_text("new")
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
            make_store(temporary)
            (temporary / name).write_text(name)
    assert names(target) == {".zgroup", "new"}
    with pytest.raises(ZeroDivisionError):
        write_and_fail(target, folder=True)
    assert names(target) == {".zgroup", "new"}
    assert names(tmp_path) == {"a.zarr"}


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_folder_is_never_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanges: bool
) -> None:
    """At no rename is there anything but a whole folder, where the system can exchange two."""
    if not exchanges:
        monkeypatch.setattr(output, "_rename", lambda *_: False)
    target = make_store(tmp_path / "a.zarr", "old")
    with atomic_write(target, overwrite=True, folder=True) as temporary:
        make_store(temporary, "new")
        assert (target / "mark").read_text() == "old"
    assert (target / "mark").read_text() == "new"
    assert names(tmp_path) == {"a.zarr"}


def test_a_new_folder_that_cannot_come_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "_rename", lambda *_: False)
    target = make_store(tmp_path / "a.zarr", "old")
    with (  # noqa: PT012
        pytest.raises(OutputError, match=r"a.zarr' cannot be written"),
        atomic_write(target, overwrite=True, folder=True) as temporary,
    ):
        make_store(temporary, "new")
        monkeypatch.setattr(output, "_flush_tree", lambda path: os.rename(path, tmp_path / "x"))
    assert (target / "mark").read_text() == "old"
    assert names(tmp_path) == {"a.zarr", "x"}


def test_only_a_zarr_store_is_replaced_by_one(tmp_path: Path) -> None:
    target = tmp_path / "a.zarr"
    target.mkdir()
    for precious in ((), ("thesis.tex",)):
        for name in precious:
            (target / name).touch()
        with pytest.raises(OutputError, match="is a folder and no Zarr store: it is not replaced"):
            check_writable(target, overwrite=True, folder=True)
        assert names(target) == set(precious)
    for mark in output._ZARR_FILES:
        (target / mark).touch()
        check_writable(target, overwrite=True, folder=True)
        (target / mark).unlink()
    (tmp_path / "b.zarr").write_text("a file")
    with pytest.raises(OutputError, match="is a file and cannot be replaced by a folder"):
        check_writable(tmp_path / "b.zarr", overwrite=True, folder=True)


def test_a_folder_is_not_taken_for_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "precious").touch()
    with pytest.raises(OutputError, match="is a folder and cannot be replaced by a file"):
        atomic_write(tmp_path / "a", overwrite=True).__enter__()
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


def test_a_target_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    for folder in (False, True):
        target = tmp_path / f"a{folder}"
        with (  # noqa: PT012
            pytest.raises(OutputError, match="another command has written it meanwhile"),
            atomic_write(target, overwrite=False, folder=folder) as temporary,
        ):
            make_store(temporary, "late") if folder else temporary.write_text("late")
            make_store(target, "first") if folder else target.write_text("first")
        assert (target / "mark" if folder else target).read_text() == "first"
    assert names(tmp_path) == {"aFalse", "aTrue"}


@pytest.mark.parametrize("folder", [False, True])
def test_two_writers_of_a_new_file_do_not_both_win_on_any_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: bool
) -> None:
    monkeypatch.setattr(output, "_rename", lambda *_: False)
    target = tmp_path / "a"
    first = atomic_write(target, overwrite=False, folder=folder)
    second = atomic_write(target, overwrite=False, folder=folder)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    with pytest.raises(OutputError, match="meanwhile"):
        second.__exit__(None, None, None)
    assert names(tmp_path) == {"a"}


@ON_POSIX
def test_a_temporary_file_is_private_new_and_of_no_known_name(tmp_path: Path) -> None:
    target, seen = tmp_path / "a", set()
    for folder in (False, True):
        with atomic_write(target.with_suffix(f".{folder}"), overwrite=False, folder=folder) as part:
            assert part.stat().st_mode & 0o777 == (0o700 if folder else 0o600)
            seen.add(part.name.rpartition("-")[2])
            with pytest.raises(FileExistsError):
                output._create(part, folder)
    assert len(seen) == 2
    assert min(map(len, seen)) >= 16
    old = os.umask(0o027)
    try:
        with atomic_write(target, overwrite=False) as part:
            part.write_text("x")
    finally:
        os.umask(old)
    assert target.stat().st_mode & 0o777 == 0o640


@ON_POSIX
def test_a_planted_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trap = tmp_path / ".a.1-x-guessed.part"
    trap.symlink_to(tmp_path / "victim")
    monkeypatch.setattr(output, "_temporary_name", lambda *_: trap)
    with pytest.raises(OutputError, match=r"a' cannot be written \(File exists\)"):
        atomic_write(tmp_path / "a", overwrite=False).__enter__()
    assert not (tmp_path / "victim").exists()
    (tmp_path / ".m.lock").symlink_to(tmp_path / "victim")
    with pytest.raises(OutputError, match="m' cannot be locked"):
        lock_file(tmp_path / "m", 0.0, lambda _: None).__enter__()


@ON_POSIX
def test_everything_is_on_disk_before_and_the_folder_after_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    rename, fsync = output._put_in_place, os.fsync
    inodes = {}

    def flushed(handle: int) -> None:
        done.append(inodes.get(os.fstat(handle).st_ino, "other"))
        fsync(handle)

    def renamed(*given: Any) -> None:
        done.append("rename")
        rename(*given)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(output, "_put_in_place", renamed)
    inodes[tmp_path.stat().st_ino] = "parent"
    with atomic_write(tmp_path / "a.zarr", overwrite=False, folder=True) as part:
        (part / "inner").mkdir()
        (part / "inner" / "0").write_text("x")
        for path in (part, part / "inner", part / "inner" / "0"):
            inodes[path.stat().st_ino] = path.relative_to(part).name or "top"
    assert sorted(done[:3]) == ["0", "inner", "top"]
    assert done[3:] == ["rename", "parent"]


def test_a_disk_that_fails_is_told_and_one_that_cannot_flush_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(code: int) -> Any:
        def fsync(_: int) -> None:
            raise OSError(code, os.strerror(code))

        return fsync

    monkeypatch.setattr(os, "fsync", failing(5))
    with (
        pytest.raises(OutputError, match="a' cannot be written"),
        atomic_write(tmp_path / "a", overwrite=False) as part,
    ):
        part.write_text("x")
    assert names(tmp_path) == set()
    monkeypatch.setattr(os, "fsync", failing(22))
    with atomic_write(tmp_path / "a", overwrite=False) as part:
        part.write_text("x")
    assert (tmp_path / "a").read_text() == "x"


def test_a_library_that_fails_on_a_full_disk_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = 2**20
    monkeypatch.setattr(output.shutil, "disk_usage", lambda _: SimpleNamespace(free=room))
    for free, words in ((2**20, r"\(NetCDF: HDF error\)"), (2**20 - 1, "; the disk is full")):
        room = free
        with (
            pytest.raises(OutputError, match=words),
            atomic_write(tmp_path / "a", overwrite=False),
        ):
            raise RuntimeError("NetCDF: HDF error")
    assert names(tmp_path) == set()


def test_an_output_that_is_an_input_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    os.link(tmp_path / "a", tmp_path / "hard")
    for name in ("a", "hard"):
        with pytest.raises(OutputError, match="is one of the inputs"):
            check_writable(tmp_path / name, overwrite=True, inputs=["-", tmp_path / "a"])
    check_writable(tmp_path / "b", overwrite=True, inputs=[tmp_path / "a", tmp_path / "b"])
    check_writable(tmp_path / "a", overwrite=True, inputs=["no\0name"])


@ON_POSIX
def test_a_folder_without_permission_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(OutputError, match="no permission for its folder"):
        check_writable(tmp_path / "a", overwrite=True)


@ON_POSIX
def test_devices_and_pipes_are_written_to_and_stay(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    with atomic_write(pipe, overwrite=False) as part:
        assert part.parent != tmp_path
        part.write_text("through")
    reader.join()
    assert got == [b"through"]
    assert pipe.is_fifo()
    for path in (Path("/dev/null"), tmp_path / "link"):
        if not path.exists():
            path.symlink_to("/dev/null")
        with atomic_write(path, overwrite=False) as part, lock_file(path, 0.0, lambda _: None):
            part.write_text("gone")
        assert path.is_char_device()
    with pytest.raises(OutputError, match="a Zarr store is a folder"):
        check_writable(pipe, overwrite=True, folder=True)
    assert names(tmp_path) == {"pipe", "link"}
    assert not part.parent.exists()


def test_long_names_have_short_temporary_ones(tmp_path: Path) -> None:
    target = tmp_path / ("n" * 250)
    with lock_file(target, 0.0, lambda _: None), atomic_write(target, overwrite=False) as part:
        part.write_text("x")
    assert names(tmp_path) == {target.name}


# What killed processes leave ----------------------------------------------------------------------


def dead_process() -> int:
    """Return the number of a process that has ended."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


@ON_POSIX
def test_what_a_dead_process_left_is_removed_and_told(tmp_path: Path) -> None:
    dead, here = dead_process(), output._machine()
    stale = [f".a.{dead}.part", f".a.{dead}-{here}-1f.part", f".a.{dead}-elsewhere-1f.part"]
    kept = [f".a.{os.getpid()}-{here}-1f.part", ".a.lock", ".a.x-y-z.part", ".a.part"]
    kept += [f".a.{dead}-elsewhere-2f.part", f".ab.{dead}-{here}-1f.part", f"a.{dead}.part"]
    for name in (*stale, *kept):
        (tmp_path / name).touch()
    os.utime(tmp_path / stale[2], (0, 0))
    told: list[str] = []
    output.clear_stale(tmp_path / "a", told.append)
    assert names(tmp_path) == set(kept)
    assert len(told) == 3
    assert set(told) == {
        "Note: an unfinished 'a', left by a command that was killed, is removed.",
    }
    make_store(tmp_path / stale[1])
    with atomic_write(tmp_path / "a", overwrite=False) as part:
        part.write_text("x")
    assert names(tmp_path) == {*kept, "a"}


@ON_POSIX
def test_a_folder_that_was_moved_aside_comes_back(tmp_path: Path) -> None:
    aside = tmp_path / f".a.zarr.{dead_process()}-{output._machine()}-1f.old"
    told: list[str] = []
    for found in ("restored", "removed"):
        make_store(aside, "old")
        output.clear_stale(tmp_path / "a.zarr", told.append)
        assert names(tmp_path) == {"a.zarr"}
        assert found in told[-1]


def test_a_process_that_is_told_to_stop_removes_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lock_file(tmp_path / "m", 0.0, lambda _: None), output.private_folder() as folder:
        part = atomic_write(tmp_path / "m", overwrite=False)
        part.__enter__().write_text("half")
        assert len(names(tmp_path)) == 2
        aside = make_store(tmp_path / ".a.zarr.1-x-y.old", "old")
        monkeypatch.setitem(output._moved, aside, tmp_path / "a.zarr")
        output.remove_unfinished()
        assert names(tmp_path) == {"a.zarr"}
        assert not folder.exists()
        assert not part.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
    assert not output._unfinished


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


@pytest.mark.parametrize("folder", [False, True])
def test_what_is_whole_moves_into_place(tmp_path: Path, folder: bool) -> None:
    def made(text: str) -> Path:
        path = tmp_path / "made"
        if folder:
            path.mkdir()
        (path / ".zgroup" if folder else path).write_text(text)
        return path

    target = tmp_path / "target"
    output.move_into_place(made("one"), target, overwrite=False, folder=folder)
    with pytest.raises(OutputError, match="exists already"):
        output.move_into_place(made("two"), target, overwrite=False, folder=folder)
    assert (tmp_path / "made").exists()
    output.move_into_place(tmp_path / "made", target, overwrite=True, folder=folder)
    assert (target / ".zgroup" if folder else target).read_text() == "two"


def test_a_hidden_name_stands_for_its_target(tmp_path: Path) -> None:
    assert output.hidden_beside(tmp_path / "a.nc", ".x") == tmp_path / ".a.nc.x"
    assert len(output.hidden_beside(tmp_path / ("a" * 250), ".x").name) < 100
