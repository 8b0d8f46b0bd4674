"""A file is written whole or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from written_folders import make_store, names_in

from dkrls_cli.errors import OutputError
from dkrls_cli.files.output import atomic as module
from dkrls_cli.files.output.atomic import atomic_write, move_into_place
from dkrls_cli.files.output.checks import check_writable
from dkrls_cli.files.output.locks import lock_file

ON_POSIX = pytest.mark.skipif(os.name == "nt", reason="links and permissions are others there")


def write_and_fail(target: Path, *, folder: bool = False) -> None:
    with atomic_write(target, overwrite=True, folder=folder) as temporary:
        make_store(temporary) if folder else temporary.write_text("new")
        raise ZeroDivisionError


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    with atomic_write(target, overwrite=False) as temporary:
        temporary.write_text("half")
        assert temporary.parent == tmp_path
        assert temporary.name.startswith(".")
        assert str(os.getpid()) in temporary.name
        assert not target.exists()
    assert target.read_text() == "half"
    assert names_in(tmp_path) == {"a.txt"}


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(ZeroDivisionError):
        write_and_fail(target)
    assert target.read_text() == "old"
    assert names_in(tmp_path) == {"a.txt"}


def test_a_failure_before_anything_is_written_is_the_one_that_is_raised(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), atomic_write(tmp_path / "a", overwrite=False):
        raise ZeroDivisionError
    assert names_in(tmp_path) == set()


def test_a_folder_is_replaced_as_a_whole(tmp_path: Path) -> None:
    target = tmp_path / "a.zarr"
    for name in ("old", "new"):
        with atomic_write(target, overwrite=True, folder=True) as temporary:
            make_store(temporary)
            (temporary / name).write_text(name)
    assert names_in(target) == {".zgroup", "new"}
    with pytest.raises(ZeroDivisionError):
        write_and_fail(target, folder=True)
    assert names_in(target) == {".zgroup", "new"}
    assert names_in(tmp_path) == {"a.zarr"}


def test_a_folder_is_not_taken_for_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "precious").touch()
    with pytest.raises(OutputError, match="is a folder and cannot be replaced by a file"):
        atomic_write(tmp_path / "a", overwrite=True).__enter__()
    assert names_in(tmp_path) == {"a"}
    assert names_in(tmp_path / "a") == {"precious"}


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


@ON_POSIX
def test_a_temporary_file_is_private_new_and_of_no_known_name(tmp_path: Path) -> None:
    target, seen = tmp_path / "a", set()
    for folder in (False, True):
        with atomic_write(target.with_suffix(f".{folder}"), overwrite=False, folder=folder) as part:
            assert part.stat().st_mode & 0o777 == (0o700 if folder else 0o600)
            seen.add(part.name.rpartition("-")[2])
            with pytest.raises(FileExistsError):
                module._create(part, folder)
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
    monkeypatch.setattr(module, "temporary_name", lambda *_: trap)
    with pytest.raises(OutputError, match=r"a' cannot be written \(File exists\)"):
        atomic_write(tmp_path / "a", overwrite=False).__enter__()
    assert not (tmp_path / "victim").exists()
    (tmp_path / ".m.lock").symlink_to(tmp_path / "victim")
    with pytest.raises(OutputError, match="m' cannot be locked"):
        lock_file(tmp_path / "m", 0.0, lambda _: None).__enter__()


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
    assert names_in(tmp_path) == set()
    monkeypatch.setattr(os, "fsync", failing(22))
    with atomic_write(tmp_path / "a", overwrite=False) as part:
        part.write_text("x")
    assert (tmp_path / "a").read_text() == "x"


LIBRARY = "NetCDF: HDF error"


@pytest.mark.parametrize(
    ("error", "free", "total", "words"),
    [
        (RuntimeError(LIBRARY), 2**20, 2**30, LIBRARY),
        (RuntimeError(LIBRARY), 2**20 - 1, 2**30, f"{LIBRARY}; the disk is full"),
        (OSError(-101, LIBRARY), 0, 2**30, f"{LIBRARY}; the disk is full"),
        (RuntimeError(LIBRARY), 0, 0, LIBRARY),
        (FileNotFoundError(2, "No such file or directory"), 0, 2**30, "No such file or directory"),
    ],
)
def test_a_library_that_fails_on_a_full_disk_is_explained(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    free: int,
    total: int,
    words: str,
) -> None:
    room = SimpleNamespace(free=free, total=total)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: room)
    with (
        pytest.raises(OutputError, match=rf"cannot be written \({words}\)\.$"),
        atomic_write(tmp_path / "a", overwrite=False),
    ):
        raise error
    assert names_in(tmp_path) == set()


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
    assert names_in(tmp_path) == {"pipe", "link"}
    assert not part.parent.exists()


@pytest.mark.parametrize("folder", [False, True])
def test_what_is_whole_moves_into_place(tmp_path: Path, folder: bool) -> None:
    def made(text: str) -> Path:
        path = tmp_path / "made"
        if folder:
            path.mkdir()
        (path / ".zgroup" if folder else path).write_text(text)
        return path

    target = tmp_path / "target"
    move_into_place(made("one"), target, overwrite=False, folder=folder)
    with pytest.raises(OutputError, match="exists already"):
        move_into_place(made("two"), target, overwrite=False, folder=folder)
    assert (tmp_path / "made").exists()
    move_into_place(tmp_path / "made", target, overwrite=True, folder=folder)
    assert (target / ".zgroup" if folder else target).read_text() == "two"
