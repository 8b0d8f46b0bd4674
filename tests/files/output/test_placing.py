"""What is whole takes the place of its target at once, and is on disk then."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from written_folders import make_store, names_in

from dkrls_cli.errors import OutputError
from dkrls_cli.files.output import placing as module
from dkrls_cli.files.output.atomic import atomic_write

ON_POSIX = pytest.mark.skipif(os.name == "nt", reason="links and permissions are others there")


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_folder_is_never_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanges: bool
) -> None:
    """At no rename is there anything but a whole folder, where the system can exchange two."""
    if not exchanges:
        monkeypatch.setattr(module, "_rename", lambda *_: False)
    target = make_store(tmp_path / "a.zarr", "old")
    with atomic_write(target, overwrite=True, folder=True) as temporary:
        make_store(temporary, "new")
        assert (target / "mark").read_text() == "old"
    assert (target / "mark").read_text() == "new"
    assert names_in(tmp_path) == {"a.zarr"}


def test_a_new_folder_that_cannot_come_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_rename", lambda *_: False)
    target = make_store(tmp_path / "a.zarr", "old")
    with (  # noqa: PT012
        pytest.raises(OutputError, match=r"a.zarr' cannot be written"),
        atomic_write(target, overwrite=True, folder=True) as temporary,
    ):
        make_store(temporary, "new")
        monkeypatch.setattr(module, "_flush_tree", lambda path: os.rename(path, tmp_path / "x"))
    assert (target / "mark").read_text() == "old"
    assert names_in(tmp_path) == {"a.zarr", "x"}


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
    assert names_in(tmp_path) == {"aFalse", "aTrue"}


@pytest.mark.parametrize("folder", [False, True])
def test_two_writers_of_a_new_file_do_not_both_win_on_any_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: bool
) -> None:
    monkeypatch.setattr(module, "_rename", lambda *_: False)
    target = tmp_path / "a"
    first = atomic_write(target, overwrite=False, folder=folder)
    second = atomic_write(target, overwrite=False, folder=folder)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    with pytest.raises(OutputError, match="meanwhile"):
        second.__exit__(None, None, None)
    assert names_in(tmp_path) == {"a"}


@ON_POSIX
def test_everything_is_on_disk_before_and_the_folder_after_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    rename, fsync = module._put_in_place, os.fsync
    inodes = {}

    def flushed(handle: int) -> None:
        done.append(inodes.get(os.fstat(handle).st_ino, "other"))
        fsync(handle)

    def renamed(*given: Any) -> None:
        done.append("rename")
        rename(*given)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(module, "_put_in_place", renamed)
    inodes[tmp_path.stat().st_ino] = "parent"
    with atomic_write(tmp_path / "a.zarr", overwrite=False, folder=True) as part:
        (part / "inner").mkdir()
        (part / "inner" / "0").write_text("x")
        for path in (part, part / "inner", part / "inner" / "0"):
            inodes[path.stat().st_ino] = path.relative_to(part).name or "top"
    assert sorted(done[:3]) == ["0", "inner", "top"]
    assert done[3:] == ["rename", "parent"]


def test_files_of_a_folder_wait_for_the_disk_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_store(tmp_path / "a", "one")
    both, flushed = Barrier(2, timeout=30.0), []

    def flush(path: Path) -> None:
        if path.is_file():
            both.wait()  # for another file
        flushed.append(path)

    monkeypatch.setattr(module, "flush", flush)
    module._flush_tree(tmp_path / "a")
    assert {path.name for path in flushed[:2]} == {".zgroup", "mark"}
    assert flushed[2:] == [tmp_path / "a"]


def test_a_file_that_cannot_be_brought_onto_the_disk_is_told_of(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).touch()
    with pytest.raises(FileNotFoundError, match="gone"):
        module.flush_several([tmp_path / "a", tmp_path / "gone", tmp_path / "b", tmp_path / "c"])
