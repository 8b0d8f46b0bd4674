"""What is not whole is removed: by its own process, or by the next writer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from written_folders import make_store, names_in

from dkrls_cli.files.output import leftovers as module
from dkrls_cli.files.output.atomic import atomic_write
from dkrls_cli.files.output.leftovers import (
    clear_stale,
    moved_aside,
    private_folder,
    remove_unfinished,
)
from dkrls_cli.files.output.locks import lock_file
from dkrls_cli.files.output.names import machine

ON_POSIX = pytest.mark.skipif(os.name == "nt", reason="links and permissions are others there")


def dead_process() -> int:
    """Return the number of a process that has ended."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


@ON_POSIX
def test_what_a_dead_process_left_is_removed_and_told(tmp_path: Path) -> None:
    dead, here = dead_process(), machine()
    stale = [f".a.{dead}.part", f".a.{dead}-{here}-1f.part", f".a.{dead}-elsewhere-1f.part"]
    kept = [f".a.{os.getpid()}-{here}-1f.part", ".a.lock", ".a.x-y-z.part", ".a.part"]
    kept += [f".a.{dead}-elsewhere-2f.part", f".ab.{dead}-{here}-1f.part", f"a.{dead}.part"]
    for name in (*stale, *kept):
        (tmp_path / name).touch()
    os.utime(tmp_path / stale[2], (0, 0))
    told: list[str] = []
    clear_stale(tmp_path / "a", told.append)
    assert names_in(tmp_path) == set(kept)
    assert len(told) == 3
    assert set(told) == {
        "Note: an unfinished 'a', left by a command that was killed, is removed.",
    }
    make_store(tmp_path / stale[1])
    with atomic_write(tmp_path / "a", overwrite=False) as part:
        part.write_text("x")
    assert names_in(tmp_path) == {*kept, "a"}


@ON_POSIX
def test_a_folder_that_was_moved_aside_comes_back(tmp_path: Path) -> None:
    aside = tmp_path / f".a.zarr.{dead_process()}-{machine()}-1f.old"
    told: list[str] = []
    for found in ("restored", "removed"):
        make_store(aside, "old")
        clear_stale(tmp_path / "a.zarr", told.append)
        assert names_in(tmp_path) == {"a.zarr"}
        assert found in told[-1]


def test_a_process_that_is_told_to_stop_removes_its_own(tmp_path: Path) -> None:
    with lock_file(tmp_path / "m", 0.0, lambda _: None), private_folder() as folder:
        part = atomic_write(tmp_path / "m", overwrite=False)
        part.__enter__().write_text("half")
        assert len(names_in(tmp_path)) == 2
        aside = make_store(tmp_path / ".a.zarr.1-x-y.old", "old")
        with moved_aside(aside, tmp_path / "a.zarr"):
            remove_unfinished()
        assert names_in(tmp_path) == {"a.zarr"}
        assert not folder.exists()
        assert not part.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
    assert not module._unfinished
    assert not module._moved
