"""A target that cannot or must not be written is refused before any work is done."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from written_folders import names_in

from dkrls_cli.errors import OutputError
from dkrls_cli.files.output import checks as module
from dkrls_cli.files.output.atomic import atomic_write
from dkrls_cli.files.output.checks import check_writable

ON_POSIX = pytest.mark.skipif(os.name == "nt", reason="links and permissions are others there")


def test_only_a_zarr_store_is_replaced_by_one(tmp_path: Path) -> None:
    target = tmp_path / "a.zarr"
    target.mkdir()
    for precious in ((), ("thesis.tex",)):
        for name in precious:
            (target / name).touch()
        with pytest.raises(OutputError, match="is a folder and no Zarr store: it is not replaced"):
            check_writable(target, overwrite=True, folder=True)
        assert names_in(target) == set(precious)
    for mark in module._ZARR_FILES:
        (target / mark).touch()
        check_writable(target, overwrite=True, folder=True)
        (target / mark).unlink()
    (tmp_path / "b.zarr").write_text("a file")
    with pytest.raises(OutputError, match="is a file and cannot be replaced by a folder"):
        check_writable(tmp_path / "b.zarr", overwrite=True, folder=True)


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
